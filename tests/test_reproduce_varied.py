"""Published experiments with other values and own algorithms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Command
from penstock.mistake import MistakeError
from penstock.reproduce import EXPERIMENTS, Tempest
from penstock.reproduce.varied import varied, varied_tests
from penstock.scenario import tree

OWN = "import penstock\nclass Mine(penstock.Aqm):\n    def on_enqueue(self, p):\n        pass\n"
CONTROL = "import penstock\nclass Cc(penstock.CongestionControl):\n    def on_ack(self, ack):\n        pass\n"


def test_the_points_are_the_published_runs_and_the_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN + CONTROL)
    dsl = EXPERIMENTS["pink-dsl"]
    change = {"flows.0.count": "1,4,256"}
    found = varied(dsl, quick=False, vary=change, own=["mine.py:Mine"], seeds=20, measure=())
    points = list(found.points())
    assert [(p.settings["aqm.name"], p.settings["flows.0.count"]) for p in points] == [
        (aqm, count) for aqm in (*dsl.aqms, "Mine") for count in (1, 4, 256)
    ]
    assert found.seeds == tuple(range(1, 21))
    [pink] = [p for p in points if p.settings == {"aqm.name": "pink", "flows.0.count": 4}]
    published = next(case for case in dsl.cases(False, 1) if (case.aqm, case.flows) == ("pink", 4))
    assert {**tree(pink.scenario.text), "name": ""} == {**tree(dsl.scenario(published, False).text), "name": ""}
    both = varied(dsl, quick=True, vary={}, own=["mine.py:Cc"], seeds=1, measure=())
    assert len(list(both.points())) == 2 * len(list(dsl.cases(True, 1)))
    assert {p.settings["tcp.cc"] for p in both.points()} == {"newreno", "mine.py:Cc"}


def test_every_experiment_of_scenarios_can_be_varied() -> None:
    for name, experiment in EXPERIMENTS.items():
        if isinstance(experiment, Tempest):
            continue
        found = varied(experiment, quick=True, vary={"duration": "60s"}, own=[], seeds=1, measure=())
        assert 0 < found.size <= len(list(experiment.cases(True, 1))), name


SCHEDULER = """
import penstock
class Turns(penstock.Scheduler):
    def __init__(self):
        self.waiting = []
    def arrive(self, cls, size):
        self.waiting.append(cls)
    def depart(self):
        return self.waiting.pop(0) if self.waiting else None
"""


def test_tests_of_schedulers_take_other_flags_and_own_schedulers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SCHEDULER + OWN)
    for name, experiment in EXPERIMENTS.items():
        if isinstance(experiment, Tempest):
            found = varied_tests(experiment, {"n": "2k,4k", "qmac": [7]}, ["mine.py:Turns"])
            published, cases = list(experiment.cases(True, 1)), list(found.cases(True, 1))
            tests = len({case.setting for case in published})
            assert len(cases) == 2 * (len(published) + tests), name
            flags = [tree(found.scenario(case, True).text)["tempest"] for case in cases]
            assert {one["n"] for one in flags} == {"2k", "4k"}
            assert all((one.get("qmac") == "7") == (one["mode"] == "double") for one in flags)
            mine = [one for one, case in zip(flags, cases, strict=True) if case.aqm == "Turns"]
            assert all("mine.py:Turns" in one.get("alg", one.get("qos", "")) for one in mine)
            assert not found.figures
            assert not found.variants
    hfs = EXPERIMENTS["hfs"]
    assert isinstance(hfs, Tempest)
    with pytest.raises(MistakeError, match="derives from Scheduler"):
        varied_tests(hfs, {}, ["mine.py:Mine"])


def test_the_command_prints_a_sweep(penstock: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    words = ("--quick", "--with", "mine.py:Mine", "--vary", "duration=12s", "--vary", "flows.0.count=1", "--json")
    done = penstock("reproduce", "pink-dsl", *words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [p["settings"]["aqm.name"] for p in found["points"]][-1] == "Mine"
    assert not (tmp_path / "runs" / "reproduce").exists()


def test_the_command_tests_an_own_scheduler_beside_the_published_ones(penstock: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCHEDULER)
    done = penstock("reproduce", "hfs-mac", "--quick", "--with", "mine.py:Turns", "--vary", "n=2k", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {run["aqm"] for run in found["runs"]} == {*EXPERIMENTS["hfs-mac"].aqms, "Turns"}
    assert {run["summary"]["events"] for run in found["runs"]} == {2000}
    assert "claims" not in found
    assert (tmp_path / found["path"] / "report.html").is_file()
    again = penstock("runs", "report", found["path"])
    assert (again.returncode, "the command that made them" in again.stderr) == (2, True), again.stderr
    wrong = penstock("reproduce", "hfs-mac", "--quick", "--vary", "qmx=1")
    assert wrong.returncode == 2
    assert "unknown field `qmx`" in wrong.stderr
