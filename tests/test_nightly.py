"""`make nightly`: slow steps run until they end well, and every command of the pages has something that runs it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from penstock import manual

ROOT = Path(__file__).resolve().parents[1]
STEP = '["{name}"]\ninputs = ["{name}.in"]\n{key} = "echo {name} >> ran.txt{more}"\nminutes = {minutes}\n\n'


def tool(name: str) -> ModuleType:
    """Loads a script of tools/ that has no ending."""
    loader = importlib.machinery.SourceFileLoader(f"tools_{name}", str(next(ROOT.glob(f"tools/**/{name}"))))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a written result, which takes longest, and two checks."""
    (tmp_path / "tools" / "check").mkdir(parents=True)
    page = STEP.format(name="page", key="renew", minutes=9, more="; cp note.json tools/written.json")
    (tmp_path / "tools" / "written.toml").write_text(page)
    checks = [STEP.format(name=name, key="command", minutes=m, more="") for name, m in (("slow", 5), ("quick", 1))]
    (tmp_path / "tools" / "check" / "nightly.toml").write_text("".join(checks))
    for name in ("page", "slow", "quick"):
        (tmp_path / f"{name}.in").write_text("1")
    note(tmp_path)
    return tmp_path


def note(project: Path) -> None:
    """Writes what `tools/stale --note page` would record of the present inputs."""
    stale = tool("stale")
    inputs = stale.digest(stale.present(project, ("page.in",)))
    (project / "note.json").write_text(json.dumps({"page": {"revision": "0", "inputs": inputs}}))


def ran(project: Path) -> list[str]:
    """The steps that ran since this was last asked, in their order."""
    path = project / "ran.txt"
    found = path.read_text().split() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def test_a_step_runs_until_it_ends_well_and_again_when_its_inputs_change(project: Path) -> None:
    nightly = tool("nightly")
    assert nightly.main([], project) == 0
    assert ran(project) == ["quick", "slow", "page"]
    assert nightly.main([], project) == 0
    assert ran(project) == []
    (project / "slow.in").write_text("2")
    (project / "page.in").write_text("2")
    note(project)
    assert nightly.main(["--hours", "0"], project) == 0
    assert ran(project) == []
    assert nightly.main([], project) == 0
    assert ran(project) == ["slow", "page"]
    assert nightly.main(["--all", "--only", "quick"], project) == 0
    assert ran(project) == ["quick"]


def test_a_step_that_fails_is_told_and_runs_again(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nightly = tool("nightly")
    table = project / "tools" / "check" / "nightly.toml"
    table.write_text(table.read_text().replace("echo slow >> ran.txt", "echo slow >> ran.txt; exit 3"))
    assert nightly.main([], project) == 1
    assert ran(project) == ["quick", "slow", "page"]
    assert "exit code 3" in capsys.readouterr().out
    assert json.loads((project / "target" / "nightly" / "results.json").read_text())["slow"]["code"] == 3
    assert nightly.main([], project) == 1
    assert ran(project) == ["slow"]


def test_commands_are_found_in_all_blocks_of_a_page() -> None:
    commands = tool("page-commands").commands
    page = "Text.\n\n    penstock run a.toml    # why\n    files/   no command\n\n"
    page += "```sh\n$ make test\npenstock new \\\n  x y\n```\n"
    assert commands(page) == ["penstock run a.toml", "make test", "penstock new x y"]
    assert commands('```python\nmake = 1\n```\n\n```toml\nip = "a"\n```\n') == []


def test_every_reason_of_the_table_of_commands_is_that_of_a_command() -> None:
    pages = tool("page-commands")
    table = tomllib.loads((ROOT / "tools" / "check" / "page-commands.toml").read_text())
    shown = [one for glob in pages.PAGES for page in ROOT.glob(glob) for one in pages.commands(page.read_text())]
    assert len(shown) > 100
    alternatives = [part for pattern in table["elsewhere"] for part in re.split(r"\|(?![^(]*\))", pattern)]
    assert [one for one in alternatives if not any(re.match(one, command) for command in shown)] == []
    assert [word for word in table["instead"] if not any(word in command for command in shown)] == []
    assert [command for command in table["exits"] if command not in shown] == []


def test_the_first_screens_have_the_same_doors_and_the_same_plot() -> None:
    readme = (ROOT / "README.md").read_text()
    for who, where in manual.doors():
        assert f"| {who} | {where.replace('](', '](docs/')} |" in readme
    plots = {name: re.findall(r"```python\n.*?```", (ROOT / name).read_text(), re.DOTALL)[0] for name in FIRST}
    assert len(set(plots.values())) == 1, plots
    assert len(plots["README.md"].splitlines()) <= 12  # ten lines between the marks


FIRST = ("README.md", "docs/install.md", "docs/tutorial.md")


def test_the_first_plot_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.cli import app
    from typer.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["new", "scenario", "home"]).exit_code == 0
    home = tmp_path / "home.toml"
    home.write_text(re.sub(r'^duration = "\w+"', 'duration = "8s"', home.read_text(), flags=re.MULTILINE))
    exec(re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0], {})
    assert (tmp_path / "delay.pdf").stat().st_size > 5000


def test_every_script_in_python_is_linted_and_the_folder_stays_small() -> None:
    entries = [path for path in (ROOT / "tools").iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 15, sorted(path.name for path in entries)
    scripts = [path for path in (ROOT / "tools").rglob("*") if path.is_file() and not path.suffix]
    python = {
        path.relative_to(ROOT).as_posix() for path in scripts if b"python" in path.read_bytes().partition(b"\n")[0]
    }
    linted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["extend-include"]
    assert python == set(linted)
