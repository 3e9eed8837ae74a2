"""Runs in real time that the machine disturbed are named by every command that runs several."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up
import pytest
from penstock import engine, report, worlds
from penstock.cli import experiments, sweep
from penstock.experiments import compare, reading, results, runner, work
from penstock.experiments.adjusting import adjusted
from penstock.experiments.runner import How
from penstock.experiments.workers import Workers
from penstock.report import experiment_page
from penstock.reproduce.results import Outcome

CAUSES = ("lateness", "starved")
NO_FIGURES: defaultdict[str, bytes] = defaultdict(lambda: b"<svg/>")


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that disturbs the runs with seed 2 on the wire, which are simulated here."""

    def run(scenario: Any, seed: int | None = None, _on: str = worlds.SIM, **_given: Any) -> engine.Result:
        return replace(engine.simulate(scenario, seed), wire={"disturbed_by": list(CAUSES) if seed == 2 else []})

    def results_of(_workers: Any, tasks: list[work.Task]) -> Any:
        yield from ((task, work.run(task)) for task in tasks)

    monkeypatch.setattr(worlds, "run", run)
    monkeypatch.setattr(worlds, "check", lambda *_given: {})
    monkeypatch.setattr(Workers, "results", results_of)


def swept(scenario: Path, out: Path, on: str = worlds.WIRE) -> results.Sweep:
    wanted = adjusted(reading.load(scenario), vary={"aqm.name": "codel,pie"}, seeds=3, on=on)
    done = runner.run(wanted, out, How(jobs=1))
    assert done.sweep
    return done.sweep


@pytest.mark.usefixtures("busy")
def test_a_sweep_names_its_disturbed_runs(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = swept(scenario, tmp_path / "sim", worlds.SIM)
    assert quiet.disturbed == () and results.load(quiet.path).disturbed == ()
    sweep.tell_disturbed(quiet)
    assert capsys.readouterr().err == ""
    found = swept(scenario, tmp_path / "wire")
    named = [(one.point, one.seed, one.by) for one in found.disturbed]
    assert named == [("aqm.name=codel", 2, CAUSES), ("aqm.name=pie", 2, CAUSES)]
    assert results.load(found.path).disturbed == found.disturbed, "they are stored"
    assert [one["seed"] for one in json.loads(json.dumps(found.to_json()))["disturbed"]] == [2, 2]
    sweep.tell_disturbed(found)
    told = " ".join(capsys.readouterr().err.split())
    assert "the machine disturbed 2 runs" in told and "aqm.name=pie, seed 2: lateness, starved" in told
    page = report.write_sweep(found.path).read_text()
    assert "The machine disturbed 2 runs" in page and "lateness, starved" in page
    assert "Disturbed runs" not in report.write_sweep(quiet.path).read_text()


@pytest.mark.usefixtures("busy")
def test_a_comparison_counts_them_for_each_side(scenario: Path, tmp_path: Path) -> None:
    wanted = adjusted(reading.load(scenario), vary={"aqm.name": "codel,pie"}, seeds=3, on=worlds.WIRE)
    found = compare.compare([("home", wanted, None)], root=tmp_path)
    assert [side["disturbed"] for side in found.to_json()["sides"]] == [2, 2]


def test_an_experiment_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    evidence = made_up.evidence()
    assert evidence.disturbed == {} and "Disturbed runs" not in experiment_page.page(evidence, [], NO_FIGURES)
    first = replace(evidence.outcomes[0], disturbed=CAUSES)
    assert Outcome.from_json(json.loads(json.dumps(first.to_store()))) == first
    evidence = replace(evidence, outcomes=(first, *evidence.outcomes[1:]))
    assert evidence.disturbed == {first.case: CAUSES}
    page = experiment_page.page(evidence, [], NO_FIGURES)
    assert "The machine disturbed 1 run" in page and "lateness, starved" in page
    experiments.tell_disturbed(evidence)
    assert f"{first.case}: lateness, starved" in " ".join(capsys.readouterr().err.split())
