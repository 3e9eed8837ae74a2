"""Written results whose inputs have changed are told, by their hash, with git and without."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
TABLE = '["docs/page.md"]\ninputs = ["src", "one.txt"]\nrenew = "make page"\n'


@pytest.fixture(scope="module")
def stale() -> ModuleType:
    """The command as a module."""
    loader = importlib.machinery.SourceFileLoader("stale", str(ROOT / "tools" / "stale"))
    spec = importlib.util.spec_from_loader("stale", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["stale"] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in git with a result of four inputs."""
    texts = {f"src/{name}": name for name in ("a.rs", "b.rs", "deep/c.rs")}
    for name, text in {**texts, "one.txt": "1", "docs/page.md": "", "tools/written.toml": TABLE}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(project: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    done = subprocess.run(
        ["git", "-C", str(project), *identity, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(project: Path) -> str:
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "all")
    return git(project, "rev-parse", "HEAD")[:10]


def test_a_result_is_stale_once_an_input_has_changed(
    stale: ModuleType, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stale.main([], project) == 0
    assert capsys.readouterr().out == "stale: docs/page.md: its inputs were never recorded; renew: make page\n"
    stale.main(["--note", "docs/page.md"], project)
    revision = git(project, "rev-parse", "HEAD")[:10]
    # What programs make is no input.
    for made in ("src/__pycache__/a.pyc", "src/target/debug/a", "src/lib.so"):
        (project / made).parent.mkdir(parents=True, exist_ok=True)
        (project / made).write_text("made")
    assert stale.main([], project) == 0
    assert capsys.readouterr().out == ""
    (project / "src" / "a.rs").write_text("changed")
    (project / "one.txt").unlink()
    (project / "one.txt").write_text("2")
    (project / "src" / "new.rs").write_text("new")
    (project / "src" / "deep" / "c.rs").unlink()
    assert stale.main([], project) == 0
    assert capsys.readouterr().out == (
        f"stale: docs/page.md: 4 inputs have changed since {revision}: one.txt, src/a.rs, src/deep/c.rs and 1 more;"
        " renew: make page\n"
    )


def test_a_commit_and_the_files_it_holds_have_one_hash(stale: ModuleType, project: Path) -> None:
    first = commit_of(project, "3")
    stale.main(["--note", "docs/page.md"], project)
    by_files = stale.noted(project)["docs/page.md"]
    assert by_files["revision"] == first
    commit_of(project, "4")
    stale.main(["--note", "docs/page.md", "--at", first], project)
    assert stale.noted(project)["docs/page.md"] == by_files
    (project / "one.txt").write_text("5")
    stale.main(["--note", "docs/page.md"], project)
    assert stale.noted(project)["docs/page.md"]["revision"].endswith("+changes")


def commit_of(project: Path, text: str) -> str:
    (project / "one.txt").write_text(text)
    return commit(project)


def test_without_git_the_hash_still_tells(
    stale: ModuleType, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stale.main(["--note", "docs/page.md"], project)
    monkeypatch.setenv("PATH", "")
    assert stale.main(["--json"], project) == 0
    assert not json.loads(capsys.readouterr().out)[0]["stale"]
    (project / "one.txt").write_text("2")
    assert stale.main([], project) == 0
    assert "its inputs have changed since" in capsys.readouterr().out


def test_mistakes_are_refused(stale: ModuleType, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {
        "tools/written.toml has no result docs/pag.md; it has docs/page.md": ["--note", "docs/pag.md"],
        "--at needs --note FILE": ["--at", "HEAD"],
        "git knows none of the inputs of docs/page.md at v9": ["--note", "docs/page.md", "--at", "v9"],
    }
    for message, arguments in wrong.items():
        with pytest.raises(SystemExit) as ended:
            stale.main(arguments, project)
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
    (project / "tools" / "written.toml").write_text(TABLE.replace('"src"', '"scr"'))
    with pytest.raises(SystemExit):
        stale.main([], project)
    assert 'tools/written.toml: "docs/page.md": scr does not exist' in capsys.readouterr().err


def test_every_result_of_the_project_has_a_record(stale: ModuleType) -> None:
    results = stale.results(ROOT)
    assert results.keys() == stale.noted(ROOT).keys()
    # Who prints a result's command must be able to run it.
    for one in results.values():
        first = one.renew.split()[0]
        assert first in ("make", "penstock") or (ROOT / first).is_file(), one.renew
