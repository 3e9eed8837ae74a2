"""What a change costs: each patch in `toys/` adds a toy, and touches what the table of docs/extending.md says.

A patch begins with a line that says what its toy is, and with lines `check:` (crates that must compile with all toys at
once), `try:` (a command in the tree with all toys) and `full:` (commands in a tree with this toy alone, which run if
`PENSTOCK_TOYS=full`). A new toy is a patch, and its name in the table.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

import pytest
from penstock import _penstock

ROOT = Path(__file__).resolve().parents[1]
PATCHES = {path.stem: path for path in sorted((ROOT / "tests" / "toys").glob("*.patch"))}
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# Always the same place, so that what was compiled there before is replaced.
TREE = TARGET / "toys"
PARTS = ("Cargo.toml", "Cargo.lock", "clippy.toml", "bpf", "crates", "docs", "examples", "fuzz", "python", "web")
TESTS = "\n#[cfg(test)]\nmod tests {"
needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo")


@dataclass(frozen=True)
class Row:
    """A row of the table: the lines and the files outside of a toy's own files; names without those in parentheses."""

    lines: int
    files: int
    names: tuple[str, ...]


@cache
def rows() -> dict[str, Row]:
    """The rows that have a toy."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^### What a change costs\n+[^|]*((?:\|.*\n)+)", page, re.MULTILINE)
    header, _, *body = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines())
    assert header == ["new", "toy", "lines", "files", "files outside"]
    found = {}
    for _, toy, lines, files, names in body:
        if toy:
            without = re.sub(r"\([^)]*\)", "", names)
            found[toy.strip("`")] = Row(int(lines), int(files), tuple(re.findall(r"`([^`]*)`", without)))
    return found


def told(toy: str, key: str) -> list[str]:
    """The values of a key before a patch."""
    head = PATCHES[toy].read_text(encoding="utf-8").partition("\ndiff --git ")[0]
    return [value.strip() for value in re.findall(rf"^{key}:(.*)$", head, re.MULTILINE)]


@dataclass
class Tree:
    """A copy of what is in the repository."""

    root: Path

    def fill(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", *PARTS], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).exists():
                copy(ROOT / name, self.root / name)
        copy(Path(_penstock.__file__), self.root / "python" / "penstock" / Path(_penstock.__file__).name)
        # With a version of its own nothing that is compiled there is taken for a crate of the repository.
        for name, head in {
            "Cargo.toml": r"\A.*?^\[workspace\.package\]\n",
            "Cargo.lock": r'^name = "penstock[^"]*"\n',
        }.items():
            text = (self.root / name).read_text(encoding="utf-8")
            versions = re.compile(rf'({head}version = "\d+\.\d+\.)\d+"', re.MULTILINE | re.DOTALL)
            text, found = versions.subn(r'\g<1>999"', text)
            assert found, name
            (self.root / name).write_text(text, encoding="utf-8")

    def apply(self, toy: str) -> list[str]:
        """Applies a patch, and returns the files that it touches."""
        # The copy is in a directory that git ignores, so git must not take it for a part of the repository.
        here = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.root.parent)}
        for options in (["--numstat", "-z"], ["--verbose"]):
            done = subprocess.run(
                ["git", "apply", *options, str(PATCHES[toy])], cwd=self.root, env=here, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{toy}.patch does not fit any more; make it anew\n{done.stderr}"
            if options[0] == "--numstat":
                touched = [entry.split("\t")[2] for entry in done.stdout.split("\0") if entry]
        return touched

    def run(self, command: str) -> None:
        words = shlex.split(command)
        words = [sys.executable, *words[1:]] if words[0] == "python" else words
        here = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "PYTHONPATH": str(self.root / "python")}
        done = subprocess.run(words, cwd=self.root, env=here, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "warning" not in done.stderr, f"{command}\n{done.stderr}"


def copy(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        to.symlink_to(source.readlink())
    else:
        shutil.copyfile(source, to)


@pytest.fixture
def tree() -> Iterator[Tree]:
    """The only tree, for one test at a time."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with (TARGET / "toys.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        filled = Tree(TREE)
        filled.fill()
        yield filled


def code(path: Path) -> list[str]:
    """The lines of a file without its tests."""
    return path.read_text(encoding="utf-8").partition(TESTS)[0].splitlines()


def lines_between(before: list[str], after: list[str]) -> int:
    """The number of lines that were added, changed or removed."""
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in steps if tag != "equal")


def cost(tree: Tree, touched: list[str]) -> dict[str, int]:
    """The lines of code in each file that was there before, but for tests and pages."""
    there = [name for name in touched if (ROOT / name).exists()]
    kept = [name for name in there if "tests" not in Path(name).parts and Path(name).parts[0] != "docs"]
    counted = {name: lines_between(code(ROOT / name), code(tree.root / name)) for name in kept}
    return {name: lines for name, lines in counted.items() if lines}


def test_every_toy_has_its_row_and_every_row_its_toy() -> None:
    assert set(rows()) == set(PATCHES)


@pytest.mark.parametrize("toy", PATCHES)
def test_a_toy_costs_what_the_page_says(toy: str, tmp_path: Path) -> None:
    small = Tree(tmp_path)
    for name in re.findall(r"^--- a/(.*)$", PATCHES[toy].read_text(encoding="utf-8"), re.MULTILINE):
        copy(ROOT / name, small.root / name)
    found, row = cost(small, small.apply(toy)), rows()[toy]
    assert (sum(found.values()), len(found)) == (row.lines, row.files), found
    for name in row.names:
        assert any(path.endswith(f"/{name}") for path in found), f"{name} is not among {list(found)}"


@needs_cargo
def test_all_toys_together_compile_and_run(tree: Tree) -> None:
    for toy in PATCHES:
        tree.apply(toy)
    crates = sorted({crate for toy in PATCHES for line in told(toy, "check") for crate in line.split()})
    tree.run(f"cargo check --locked --quiet {' '.join(f'--package {crate}' for crate in crates)}")
    for toy in PATCHES:
        for command in told(toy, "try"):
            tree.run(command)


@needs_cargo
@pytest.mark.skipif(os.environ.get("PENSTOCK_TOYS") != "full", reason="minutes: PENSTOCK_TOYS=full")
@pytest.mark.parametrize("toy", PATCHES)
def test_a_toy_alone_compiles_and_does_what_it_says(toy: str, tree: Tree) -> None:
    tree.apply(toy)
    commands = [*told(toy, "full"), *told(toy, "try")]
    assert commands, "a toy is tried"
    for command in commands:
        tree.run(command)
