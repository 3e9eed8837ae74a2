"""Experiments: which runs they are made of, and what is kept of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from made_up import evidence
from penstock import engine, rundir
from penstock.report import write_experiment
from penstock.reproduce import EXPERIMENTS, Case, load
from penstock.reproduce import runner as running
from penstock.reproduce.results import RESULTS, home, stored


def test_the_dsl_testbed_is_table_2() -> None:
    scenario = tomllib.loads(EXPERIMENTS["pink-dsl"].scenario(Case("pink", 64, 3), quick=False).text)
    assert scenario["topology"]["rate"] == "10Mbit/s"
    assert scenario["topology"]["delay"] == "50ms"
    assert scenario["topology"]["limit"] == "125kB"
    assert scenario["topology"]["access_rate"] == "100Mbit/s"
    assert scenario["tcp"]["mss"] == "1000B"
    assert scenario["duration"] == "300s"
    assert (scenario["aqm"]["name"], scenario["flows"][0]["count"], scenario["seed"]) == ("pink", 64, 3)


def test_the_satellite_testbed_differs_as_table_3_says() -> None:
    dsl, sat = (EXPERIMENTS[name].template for name in ("pink-dsl", "pink-sat"))
    assert (sat["topology"]["rate"], sat["topology"]["delay"], sat["topology"]["limit"]) == (
        "4Mbit/s",
        "350ms",
        "350kB",
    )
    changed = {"rate", "delay", "limit"}
    assert {k: v for k, v in dsl["topology"].items() if k not in changed} == {
        k: v for k, v in sat["topology"].items() if k not in changed
    }
    assert dsl["tcp"] == sat["tcp"]


def test_the_limit_of_goodput_is_the_papers() -> None:
    # 000, 6.1.4: 10e6 / 8 x 300 x 1000 / 1052 = 356 MB.
    assert EXPERIMENTS["pink-dsl"].goodput_limit_bps * 300 / 8e6 == pytest.approx(356.46, abs=0.01)


def test_the_unloaded_rtt() -> None:
    # 100 ms and 4 x 1.45 ms of propagation; 1052 B and 52 B at 10 Mbit/s once and at 100 Mbit/s twice.
    assert EXPERIMENTS["pink-dsl"].unloaded_rtt_ms == pytest.approx(105.8 + 0.8832 + 2 * 0.08832)
    assert EXPERIMENTS["pink-sat"].unloaded_rtt_ms == pytest.approx(705.8 + 2.208 + 2 * 0.08832)


def test_cases_are_all_combinations() -> None:
    experiment = EXPERIMENTS["pink-dsl"]
    assert len(list(experiment.cases(quick=False, seeds=2))) == 5 * 6 * 2
    assert {case.flows for case in experiment.cases(quick=True, seeds=1)} == {4, 64}


def test_results_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    run = evidence(seeds=2)
    (tmp_path / RESULTS).write_text(rundir.dump(run.to_json()))
    assert load(tmp_path) == run


def test_the_full_form_is_preferred_and_the_quick_form_used(tmp_path: Path) -> None:
    for quick, counts in ((True, (4, 64)), (False, (2, 4))):
        path = home("pink-dsl", quick, tmp_path)
        path.mkdir()
        (path / RESULTS).write_text(rundir.dump(evidence(counts=counts).to_json()))
        assert stored(tmp_path)["pink-dsl"].counts() == list(counts)
    with pytest.raises(rundir.RunDirError, match="not results"):
        (home("pink-sat", False, tmp_path)).mkdir()
        (home("pink-sat", False, tmp_path) / RESULTS).write_text('{"runs": 3}')
        stored(tmp_path)


def test_the_page_and_the_figures_are_the_same_each_time(tmp_path: Path) -> None:
    pages = [write_experiment(evidence(), tmp_path / name).read_bytes() for name in ("a", "b")]
    assert pages[0] == pages[1]
    assert pages[0].count(b"data:image/svg+xml;base64,") == 4
    assert sorted(file.name for file in (tmp_path / "a/figures").iterdir()) == sorted(
        f"{name}.{kind}" for name in ("goodput", "rtt", "fairness", "data") for kind in ("png", "svg")
    )


class Notes:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.begun: tuple[int, int] = (0, 0)
        self.runs: list[str] = []
        self.seconds = self.planned = 0.0

    def begin(self, runs: int, reused: int, simulated_s: float) -> None:
        """Keeps the counts."""
        self.begun = (runs, reused)
        self.planned = simulated_s

    def advanced(self, seconds: float) -> None:
        """Adds up."""
        self.seconds += seconds

    def finished(self, label: str, cpu_s: float) -> None:
        """Keeps the label."""
        assert cpu_s > 0
        self.runs.append(label)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiment with runs of twelve seconds and disciplines that are always there."""
    experiment = EXPERIMENTS["pink-dsl"]
    for name, value in (("quick_duration", "12s"), ("aqms", ("droptail",))):
        monkeypatch.setitem(experiment.__dict__, name, value)


@pytest.mark.usefixtures("small")
def test_finished_runs_are_kept_for_the_same_build_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def go(**options: bool) -> tuple[Notes, str]:
        notes = Notes()
        found, complete = running.reproduce(EXPERIMENTS["pink-dsl"], tmp_path, quick=True, watcher=notes, **options)
        assert complete
        assert found is not None
        return notes, json.dumps([outcome.summary for outcome in found.outcomes])

    first, summaries = go()
    assert first.begun == (2, 0)
    assert first.seconds == pytest.approx(first.planned) == pytest.approx(2 * 12.0)
    second, again = go()
    assert (second.begun, second.runs, again) == ((2, 2), [], summaries)
    third, anew = go(fresh=True)
    assert (third.begun, anew) == ((2, 0), summaries)
    monkeypatch.setattr(running, "core_fingerprint", lambda: "another build")
    assert go()[0].begun == (2, 0)


@pytest.mark.usefixtures("small")
def test_ctrl_c_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()
    after_first = notes.finished

    def interrupt(label: str, cpu_s: float) -> None:
        after_first(label, cpu_s)
        raise KeyboardInterrupt

    monkeypatch.setattr(notes, "finished", interrupt)
    found, complete = running.reproduce(EXPERIMENTS["pink-dsl"], tmp_path, quick=True, jobs=1, watcher=notes)
    assert not complete
    assert found is not None
    assert len(found.outcomes) < 2 + 1
    assert load(tmp_path) == found


def test_a_run_that_cannot_be_ends_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXPERIMENTS["pink-dsl"].__dict__, "aqms", ("no-such-aqm",))
    with pytest.raises(engine.ScenarioError, match="no-such-aqm"):
        running.reproduce(EXPERIMENTS["pink-dsl"], tmp_path, quick=True, watcher=Notes())


def test_ctrl_c_from_outside(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock", "reproduce", "pink-dsl", "--seeds", "500", "--out", "out"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running_one:
        assert running_one.stderr is not None
        line = running_one.stderr.readline()
        running_one.send_signal(signal.SIGINT)
        _, rest = running_one.communicate(timeout=60)
    assert line.startswith("[1/15000]"), line
    assert running_one.returncode == 130
    assert "Traceback" not in rest
    assert "what was finished is kept" in rest
    assert len(load(tmp_path / "out").outcomes) == len(list((tmp_path / "out/cases").glob("*.json")))
