"""What the project is made of: the document that lists it, and the toolchain that builds it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(not shutil.which("cargo"), reason="needs cargo")
def test_the_bill_of_materials_has_what_the_locks_have(tmp_path: Path) -> None:
    made = tmp_path / "made.json"
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "pack" / "sbom", made], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    components = json.loads(made.read_text())["components"]
    found = {one["purl"]: one for one in components}
    crates = [
        (one["name"], one["version"], one["checksum"])
        for one in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
        if "checksum" in one
    ]
    wheels = re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "python" / "requirements.lock").read_text(), re.M)
    uplot = next(purl for purl in found if purl.startswith("pkg:npm/uplot@"))
    assert set(found) == {
        uplot,
        *(f"pkg:cargo/{name}@{version}" for name, version, _ in crates),
        *(f"pkg:pypi/{name}@{version}" for name, version in wheels),
    }
    for name, version, checksum in crates:
        assert found[f"pkg:cargo/{name}@{version}"]["hashes"] == [{"alg": "SHA-256", "content": checksum}]
    assert all(len(one["hashes"]) > 0 for one in components)
    scopes = {one["name"]: one["scope"] for one in components}
    delivered, tests_only = ("numpy", "jinja2", "pyo3", "clap", "uplot"), ("pytest", "mypy", "proptest", "pcap-file")
    assert {scopes[name] for name in delivered} == {"required"}
    assert {scopes[name] for name in tests_only} == {"excluded"}


def locked(name: str) -> dict[str, str]:
    """The packages of a lock of Python, each with all that stands there: version and hashes."""
    text = (ROOT / "python" / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)(==(?:.*\\\n)*.*)$", text, re.M))


def test_the_lab_has_the_packages_that_the_tests_have() -> None:
    lab, tests = locked("lab.lock"), locked("requirements.lock")
    assert "maturin" in lab
    assert lab == {name: tests[name] for name in lab}
    assert {"mypy", "pytest", "ruff", "scipy"}.isdisjoint(lab)
    direct = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert {re.split(r"[<>=]", one)[0] for one in direct} <= set(lab)


def chosen(*selection: str) -> set[str]:
    """Each package with the features that cargo chooses for a selection: what differs is compiled again."""
    command = ["cargo", "tree", "--locked", "--offline", "--prefix", "none", "--format", "{p} [{f}]", *selection]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {line.removesuffix(" (*)") for line in done.stdout.splitlines() if line}


@pytest.mark.skipif(not shutil.which("cargo"), reason="needs cargo")
def test_lab_appliances_and_their_pages_share_what_is_compiled() -> None:
    appliances = chosen("--workspace", "--edges", "normal,build")
    assert chosen("--package", "penstock-py", "--edges", "normal,build") <= appliances
    known = {one.split()[0] for one in appliances}
    pages = chosen("--package", "penstock-gateway", "--package", "penstock-py", "--edges", "normal,build,dev")
    shared = {one for one in pages if one.split()[0] in known}
    # Tests have this crate with its testbed, which nothing that is compiled for people has.
    assert {one.split()[0] for one in shared - appliances} <= {"penstock-linux"}


def test_every_file_of_tests_is_in_the_program_of_its_crate() -> None:
    programs = list(ROOT.glob("crates/*/tests/all.rs"))
    assert {path.parts[-3] for path in programs} >= {"core", "sim", "trace"}
    for program in programs:
        lines = set(re.findall(r"^mod (\w+);$", program.read_text(encoding="utf-8"), re.M))
        manifest = tomllib.loads((program.parents[1] / "Cargo.toml").read_text(encoding="utf-8"))
        assert manifest["package"]["autotests"] is False
        names = {one["name"] for one in manifest["test"]}
        assert lines | names >= {path.stem for path in program.parent.glob("*.rs")} | {"all"}


@pytest.mark.parametrize("version", ["1.9.0", "1.94.1"])
def test_a_toolchain_that_is_too_old_is_one_sentence(tmp_path: Path, version: str) -> None:
    needed = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    for name in ("cargo", "rustc"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} {version} '(abc 2026-01-01)'\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        [ROOT / "tools" / "setup"], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: Rust {version} is too old: Penstock needs {needed} or newer")


def test_setup_says_what_it_can_make() -> None:
    done = subprocess.run([ROOT / "tools" / "setup", "lap"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    for what in ("lab", "edit", "appliances", "python", "tests", "bench"):
        assert re.search(rf"^  {what} ", done.stderr, re.M)
