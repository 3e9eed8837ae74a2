"""`runs`: what stands under `runs/`, and that nothing but results is ever removed."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from conftest import SCENARIO, Command
from penstock import rundir, runs
from penstock.cli import app
from penstock.engine import simulate
from penstock.mistake import MistakeError
from penstock.scenario import Scenario
from typer.testing import CliRunner

SHORT = SCENARIO.replace('"5s"', '"2s"')
OWN = 'name = "own"\n' + SHORT.replace('"droptail"', '"mine.py:Mine"').replace('name = "small"\n', "")
MINE = "import penstock\n\n\nclass Mine(penstock.Aqm):\n    def on_enqueue(self, packet):\n        return None\n"
DAY_S = 86_400


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with a copy of an algorithm's file."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "mine.py").write_text(MINE)
    (folder / "own.toml").write_text(OWN)
    rundir.write(simulate(Scenario.load(folder / "own.toml")), folder / "run")
    (folder / "run" / "report.html").write_text("<p>")
    assert (folder / "run" / "own" / "mine.py").is_file()
    return folder / "run"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory in which the command runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(original: Path, to: Path, days: float = 0.0) -> Path:
    """A copy of the run directory, so many days old."""
    shutil.copytree(original, to)
    then = time.time() - days * DAY_S
    os.utime(to / rundir.MANIFEST, (then, then))
    return to


def called(*words: str, typed: str | None = None) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["runs", *words], input=typed)
    return done.exit_code, done.output


def test_list_tells_of_each_run(here: Path, original: Path) -> None:
    put(original, here / "runs" / "new")
    put(original, here / "runs" / "a" / "b" / "old", days=40)
    found = json.loads(called("list", "--json")[1])
    assert [one["path"] for one in found] == ["runs/new", "runs/a/b/old"]
    one = found[0]
    assert (one["name"], one["seed"], one["kind"]) == ("own", 1, "run")
    assert one["scenario"].endswith("own.toml")
    assert one["size_bytes"] == sum(file.stat().st_size for file in original.rglob("*") if file.is_file())
    assert one["version"] == json.loads((original / "manifest.json").read_text())["versions"]["penstock"]
    assert one["written"].endswith("Z")
    code, table = called("list")
    assert code == 0
    assert "runs/new" in table
    assert "no runs yet" in called("list", "elsewhere")[1]


def test_an_experiment_is_one_entry(here: Path, original: Path) -> None:
    folder = here / "runs" / "reproduce" / "pink-dsl"
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps({"name": "pink-dsl", "runs": [], "versions": {"penstock": "0.1"}}))
    put(original, folder / "cases" / "one")
    found = json.loads(called("list", "--json")[1])
    assert [(one["path"], one["kind"], one["version"]) for one in found] == [
        ("runs/reproduce/pink-dsl", "experiment", "0.1")
    ]
    assert called("prune", "--yes")[0] == 0
    assert (folder / "cases" / "one" / "manifest.json").is_file()


def test_show_is_what_run_printed(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    first = penstock("run", scenario)
    name = next((tmp_path / "runs").iterdir()).name
    shown = penstock("runs", "show", name)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(first.stdout.split("\nJain")[0])
    assert f"again: penstock runs rerun runs/{name}" in shown.stdout
    told = json.loads(penstock("runs", "show", name, "--json").stdout)
    assert told["summary"] == json.loads((tmp_path / "runs" / name / "summary.json").read_text())
    again = penstock("runs", "rerun", name, "--json")
    assert json.loads(again.stdout) == {"same": True, "versions_changed": {}, "differences": []}
    (tmp_path / "runs" / name / "report.html").unlink()
    assert penstock("runs", "report").stdout.strip() == f"runs/{name}/report.html"
    wrong = penstock("runs", "show", name[:-1])
    assert wrong.returncode == 2
    assert f"did you mean {name}?" in wrong.stderr


def test_prune_removes_run_directories_and_nothing_else(here: Path, original: Path) -> None:
    outside = put(original, here / "outside")
    root = here / "runs"
    clean = [put(original, root / "clean"), put(original, root / "deep" / "er" / "clean")]
    notes = put(original, root / "notes")
    (notes / "notes.txt").write_text("mine")
    parquet = put(original, root / "parquet")
    (parquet / "analysis.parquet").write_bytes(b"PAR1 of somebody else PAR1")
    in_own = put(original, root / "in-own")
    (in_own / "own" / "other.py").write_text("mine")
    nested = put(original, root / "nested")
    put(original, nested / "inner")
    linked = put(original, root / "linked")
    (linked / "more.parquet").symlink_to(outside / "flow_seconds.parquet")
    (root / "link").symlink_to(outside)
    (root / "folder-link").symlink_to(here, target_is_directory=True)
    fake = root / "fake"
    fake.mkdir()
    (fake / "manifest.json").write_text('{"name": "a web page"}')
    number = root / "number"
    number.mkdir()
    (number / "manifest.json").write_text("7")
    linked_manifest = root / "linked-manifest"
    linked_manifest.mkdir()
    (linked_manifest / "manifest.json").symlink_to(outside / "manifest.json")
    (root / "file.txt").write_text("mine")
    before = {path for path in here.rglob("*") if not any(one in (path, *path.parents) for one in clean)}

    code, said = called("prune", "--yes")
    assert code == 0
    assert "removed: 2 directories" in said
    for path in (notes, parquet, in_own, nested, linked):
        assert f"kept: {path.relative_to(here)}" in said
    assert set(here.rglob("*")) == before
    assert (outside / "own" / "mine.py").read_text() == MINE


def test_prune_asks_first(here: Path, original: Path) -> None:
    run = put(original, here / "runs" / "one")
    for typed in ("n\n", ""):
        assert called("prune", typed=typed)[0] == 1
        assert run.is_dir()
    code, said = called("prune", "--dry-run", "--yes")
    assert code == 0
    assert "would be removed: 1 directory," in said
    assert run.is_dir()
    assert called("prune", typed="y\n")[0] == 0
    assert not run.exists()
    assert "nothing to remove" in called("prune")[1]


def test_prune_knows_ages(here: Path, original: Path) -> None:
    for days in (29, 31):
        put(original, here / "runs" / f"{days}", days=days)
    assert called("prune", "--older", "30d", "--yes")[0] == 0
    assert [path.name for path in (here / "runs").iterdir()] == ["29"]
    assert [runs.age_s(text) for text in ("90min", "2w", "1.5 d", "12h", "5s")] == [
        5400,
        14 * DAY_S,
        129_600,
        43_200,
        5,
    ]
    for text in ("30", "d", "-1d", "30 months"):
        with pytest.raises(MistakeError, match="is no age"):
            runs.age_s(text)


def test_sweeps_answers_and_replays_are_listed_and_pruned(here: Path) -> None:
    made = {"s": "sweep.json", "w": "answer.json", "r": "replay.json", "mine": "replay.json"}
    for name, file in made.items():
        (here / "runs" / name / "runs").mkdir(parents=True)
        (here / "runs" / name / file).write_text("{}")
        (here / "runs" / name / "report.html").write_text("")
    (here / "runs" / "s" / "runs" / "all-0001.segment").write_text("")
    (here / "runs" / "mine" / "notes.txt").write_text("")
    found = {entry["path"]: entry["kind"] for entry in json.loads(called("list", "--json")[1])}
    assert found == {"runs/s": "sweep", "runs/w": "what-if", "runs/r": "replay", "runs/mine": "replay"}
    assert "notes.txt" in called("prune", "--yes")[1]
    assert [path.name for path in (here / "runs").iterdir()] == ["mine"]


def test_a_link_to_a_run_is_not_removed_even_when_it_is_named(here: Path, original: Path) -> None:
    outside = put(original, here / "outside")
    (here / "link").symlink_to(outside)
    called("prune", "link", "--yes")
    assert (outside / "manifest.json").is_file()
    with pytest.raises(MistakeError, match="not removed"):
        runs.remove(here / "link")
    with pytest.raises(MistakeError, match="not removed"):
        runs.remove(here)
