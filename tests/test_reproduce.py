"""Experiments: which runs they are made of, and what is kept of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from made_up import evidence
from penstock import engine, rundir
from penstock.report import write_experiment
from penstock.reproduce import EXPERIMENTS, Case, Series, Sweep, Tempest, Variant, columns, load
from penstock.reproduce import runner as running
from penstock.reproduce.results import RESULTS, drops, home, stored
from penstock.scenario import Scenario

VARIANTS = EXPERIMENTS["pink-dsl"].variants


@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if not isinstance(one, Tempest)])
def test_every_variant_is_a_scenario(name: str) -> None:
    experiment = EXPERIMENTS[name]
    cells = {(case.variant, case.setting, case.aqm): case for case in experiment.variant_cases(seeds=1)}
    assert {variant for variant, _, _ in cells} == {variant.name for variant in experiment.variants}
    for case in cells.values():
        engine.stepped(experiment.scenario(case, quick=True), case.seed)


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
    dsl, sat = (EXPERIMENTS[name] for name in ("pink-dsl", "pink-sat"))
    assert isinstance(dsl, Sweep)
    assert isinstance(sat, Sweep)
    # 100 ms and 4 x 1.45 ms of propagation; 1052 B and 52 B at 10 Mbit/s once and at 100 Mbit/s twice.
    assert dsl.unloaded_rtt_ms == pytest.approx(105.8 + 0.8832 + 2 * 0.08832)
    assert sat.unloaded_rtt_ms == pytest.approx(705.8 + 2.208 + 2 * 0.08832)


def test_cases_are_all_combinations() -> None:
    experiment = EXPERIMENTS["pink-dsl"]
    assert len(list(experiment.cases(quick=False, seeds=2))) == 5 * 6 * 2
    assert {case.flows for case in experiment.cases(quick=True, seeds=1)} == {4, 64}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_variant_changes_what_it_says_and_nothing_else(variant: Variant) -> None:
    experiment = EXPERIMENTS["pink-dsl"]
    for aqm in variant.aqms:
        published, varied = (
            tomllib.loads(experiment.scenario(Case(aqm, 64, 1, name), quick=False).text) for name in ("", variant.name)
        )
        assert varied.pop("name") == f"{published.pop('name')}-{variant.name}"
        assert varied != published
        parts = [one for one in VARIANTS if one.name in (*variant.joint, variant.name)]
        for part in ("tcp", "aqm"):
            change = {key: value for one in parts for key, value in getattr(one, part).items()}
            assert varied.pop(part) == {**published.pop(part), **change}
        for path, value in ((path, value) for one in parts for path, value in one.by_path.items()):
            assert varied.pop(path) == value
            published.pop(path, None)
        assert varied == published


def test_variants_are_run_at_few_and_at_many_flows_where_they_matter() -> None:
    cases = list(EXPERIMENTS["pink-dsl"].variant_cases(seeds=1))
    assert len(set(cases)) == len(cases) == 2 * (6 * 5 + 2)
    assert {case.flows for case in cases} == {4, 64}
    assert {case.aqm for case in cases if case.variant == "no-pink-margin"} == {"pink"}
    assert {case.aqm for case in cases if case.variant == "green-c-ack-every-segment"} == {"green"}


def test_variants_are_stored_beside_the_runs(tmp_path: Path) -> None:
    run = evidence(variants={"ack-pairs": lambda _aqm, _flows: {"jain": 0.5}})
    stored_form = run.to_json()
    assert len(stored_form["runs"]) == len(stored_form["variants"]) == 5 * 2
    assert all("variant" not in one for one in stored_form["runs"])
    assert {one["variant"] for one in stored_form["variants"]} == {"ack-pairs"}
    (tmp_path / RESULTS).write_text(rundir.dump(stored_form))
    assert load(tmp_path) == run
    del stored_form["variants"], stored_form["sha256"]  # as results were stored before there were any
    stored_form["format"] = 2
    (tmp_path / RESULTS).write_text(rundir.dump(stored_form))
    assert load(tmp_path) == evidence()


def test_the_page_sets_variants_beside_the_published_runs(tmp_path: Path) -> None:
    run = evidence(variants={"no-pink-margin": lambda _aqm, _flows: {"goodput": 9.45}})
    page = write_experiment(run, tmp_path).read_text(encoding="utf-8")
    assert "no-pink-margin" in page
    assert page.count("9.00 → 9.45") == 2
    assert "ack-pairs" not in page
    assert '<h2 id="variants">Variants</h2>' in page
    assert ">Variants</h2>" not in write_experiment(evidence(), tmp_path).read_text(encoding="utf-8")


def test_the_table_says_how_many_flows_lost_ecn() -> None:
    run = evidence(counts=(4,), seeds=2)
    assert "flows without ECN" not in columns.headings(run)
    for outcome in run.runs("pink", 4):
        for flow in outcome.summary["flows"]:
            flow.update(id=0, ecn_asked=1, ecn_used=0, ecn_lost=0, ecn_lost_why=None)
        outcome.summary["flows"][0].update(ecn_lost=1, ecn_lost_why="syn-retransmitted")
    assert columns.headings(run)[-1] == "flows without ECN"
    cells = {row.aqm: row.cells[-1] for row in columns.rows(run)}
    assert (cells.pop("pink"), set(cells.values())) == ("2 of 8", {"-"})
    assert all(len(row.cells) == len(columns.headings(run)) for row in columns.rows(run))


def test_series_have_whole_seconds_only() -> None:
    text = """
        duration = "2700ms"
        topology = { kind = "dumbbell", rate = "1Mbit/s", delay = "1ms", limit = "20p" }
        flows = [{ kind = "cbr", rate = "2Mbit/s" }]"""
    series = Series.of(engine.simulate(Scenario(text, "part.toml")))
    assert series.queues["bottleneck"] == (1000, 1000)
    assert len(series.flows[0]) == 2


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


def test_results_of_another_version_are_as_if_not_there(tmp_path: Path) -> None:
    old = {**evidence().to_json(), "format": 1}
    path = home("pink-dsl", True, tmp_path)
    path.mkdir()
    (path / RESULTS).write_text(rundir.dump(old))
    assert stored(tmp_path) == {}
    with pytest.raises(rundir.RunDirError, match="reproduce them again"):
        load(path)


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
    for name, value in (("quick_duration", "12s"), ("aqms", ("droptail",)), ("variants", ())):
        monkeypatch.setitem(experiment.__dict__, name, value)


@pytest.mark.usefixtures("small")
def test_finished_runs_are_kept_for_the_same_build_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def go(**options: Any) -> tuple[Notes, str]:
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
def test_variants_are_run_after_the_published_runs_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = EXPERIMENTS["pink-dsl"]
    slow_timer = next(variant for variant in VARIANTS if variant.name == "rto-200ms")
    monkeypatch.setitem(experiment.__dict__, "variants", (slow_timer,))
    notes = Notes()
    found, _ = running.reproduce(experiment, tmp_path, quick=True, jobs=1, watcher=notes)
    assert found is not None
    assert [label.endswith(", rto-200ms") for label in notes.runs] == [False, False, True, True]
    assert [outcome.case for outcome in found.variants] == [Case("droptail", n, 1, "rto-200ms") for n in (4, 64)]
    assert found.values("droptail", 64, drops) != found.varied["rto-200ms"].values("droptail", 64, drops)
    again = Notes()
    assert running.reproduce(experiment, tmp_path, quick=True, watcher=again)[0] == found
    assert again.begun == (4, 4)


@pytest.mark.usefixtures("small")
def test_ctrl_c_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()
    after_first = notes.finished

    def interrupt(label: str, cpu_s: float) -> None:
        after_first(label, cpu_s)
        if len(notes.runs) == 1:  # the second run may be over by then, and is kept too
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
    cases = [*EXPERIMENTS["pink-dsl"].cases(False, 500), *EXPERIMENTS["pink-dsl"].variant_cases(1)]
    assert line.startswith(f"[1/{len(cases)}]"), line
    assert running_one.returncode == 130
    assert "Traceback" not in rest
    assert "finished runs are kept" in rest
    assert len(load(tmp_path / "out").outcomes) == len(list((tmp_path / "out/cases").glob("*.json")))


def test_variants_are_chosen_by_name(penstock: Command, tmp_path: Path) -> None:
    wrong = penstock("reproduce", "pink-multi", "--quick", "--variants", "max-min,max-mix")
    assert wrong.returncode == 2
    known = [variant.name for variant in EXPERIMENTS["pink-multi"].variants]
    assert "has no variant" in wrong.stderr and all(name in wrong.stderr for name in ("none", *known))
    for names, found in (("none", set()), (known[0], {known[0]})):
        done = penstock("reproduce", "pink-multi", "--quick", "--variants", names, "--json", "--out", "out")
        assert done.returncode == 0, done.stderr
        assert {run["variant"] for run in json.loads(done.stdout)["variants"]} == found
    assert {outcome.case.variant for outcome in load(tmp_path / "out").variants} == {known[0]}
