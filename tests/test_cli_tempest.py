"""`tempest`, and what the laboratory makes of it."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from conftest import Command
from penstock import engine
from penstock.bench import schedulers
from penstock.claims import Verdict
from penstock.papers._shared import schedulers as lab
from penstock.papers.tempest_fairness.runs import b_wfi_bound
from penstock.papers.tempest_growth.figures import fitted
from penstock.papers.tempest_time.claims import qfq_plus_costs_about_what_drr_does
from penstock.papers.tempest_time.runs import FLOW_SETS
from penstock.papers.tempest_twfi.claims import wf2q_plus_is_below_its_bound
from penstock.papers.tempest_twfi.runs import ROOMY, WIRED, t_wfi_bound_ms, waiting_bound_ms
from penstock.reproduce import EXPERIMENTS, Case, Evidence, Outcome, Tempest

EMERGENCY = ("-flowsets", "20::20,10::20,1::60", "-qmax", "300", "-burst", "1")
SHORT = ("-n", "20k", "-repeat", "1")


def report(penstock: Command, *flags: str) -> dict[str, Any]:
    """The JSON of a run that must go well."""
    done = penstock("tempest", *flags, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_run_tells_cost_and_service(penstock: Command) -> None:
    found = report(penstock, "-alg", "DRR", *EMERGENCY, *SHORT)
    wanted = {"alg", "mode", "flows", "events", "ns_per_packet", "ns_harness", "mpps", "throughput", "rfi"}
    assert wanted <= found.keys()
    assert (found["alg"], found["mode"], found["flows"], found["events"]) == ("drr", "single", 100, 20_000)
    assert found["ns_per_packet"] > 0
    assert found["ns_harness"] > 0
    assert found["mpps"] * found["ns_per_packet"] == pytest.approx(1000)
    assert found["energy"]["kind"] in ("rapl", "time")
    assert (found["counters"]["instructions"] is None) == (found["counters"]["missing"] is not None)
    flows = found["flows_detail"]
    assert [flow["weight"] for flow in flows] == [20] * 20 + [10] * 20 + [1] * 60
    assert {"weight", "b_wfi_packets", "t_wfi_ms", "max_delay_dequeues"} <= flows[0].keys()
    assert max(flow["max_delay_dequeues"] for flow in flows) == found["worst"]["max_delay_dequeues"] <= 300


def test_fifo_makes_the_last_wait_for_all(penstock: Command) -> None:
    # Four flows, 20 packets, all of them in and out by turns: the last waits for 20 departures.
    found = report(penstock, "-alg", "fifo", "-flows", "4", "-qmax", "20", "-n", "4k", "-measure", "fairness")
    assert found["worst"]["max_delay_dequeues"] == 20
    assert found["ns_per_packet"] is None
    # In turn, so no flow is ever more than 3/4 of a packet behind, and pairs differ by one packet of a quarter.
    assert found["worst"]["b_wfi_packets"] == pytest.approx(0.75)
    assert found["rfi"] == pytest.approx(4.0)


def test_every_spelling_of_a_flag_is_the_same(penstock: Command) -> None:
    spellings = [
        ("-n", "20k", "-qmin", "5", "-qmax", "3n"),
        ("-num_event", "20k", "-q_min", "5", "-q_max", "3n"),
        ("--num-events", "20k", "--q-min", "5", "--qmax=3n"),
    ]
    found = [report(penstock, "-alg", "drr", "-flows", "10", "-measure", "fairness", *flags) for flags in spellings]
    assert found[0] == found[1] == found[2]


def test_bursts_follow_the_seed(penstock: Command) -> None:
    flags = ("-alg", "drr", *EMERGENCY, "-n", "20k", "-measure", "fairness")
    assert report(penstock, *flags) == report(penstock, *flags)
    assert report(penstock, *flags)["flows_detail"] != report(penstock, *flags, "-seed", "2")["flows_detail"]


def test_people_see_a_table(penstock: Command) -> None:
    done = penstock("tempest", "-alg", "drr", *EMERGENCY, *SHORT)
    assert done.returncode == 0, done.stderr
    for part in ("drr, single, 100 flows", "of this the harness", "T-WFI", "B-WFI", "energy", "instructions"):
        assert part in done.stdout
    assert "penstock tempest -alg" in penstock("tempest", "--help").stdout


MISTAKES = [
    (("-alg", "drr"), ["-flows", "-flowsets"]),
    (("-flows", "3"), ["-alg", "give one of", "drr"]),
    (("-alg", "drrr", "-flows", "3"), ["-alg drrr", "must be one of", "wf2q-plus"]),
    (("-alg", "drr", "-flowsets", "0::3"), ["-flowsets 0::3", "weight is from 1 to"]),
    (("-alg", "drr", "-flowsets", "5"), []),
    (("-alg", "drr", "-flowsets", "1:2:3"), ["-flowsets 1:2:3", "weight::flows"]),
    (("-alg", "drr", "-flows", "3", "-flowsets", "1::3"), ["-flows 3", "excludes -flowsets"]),
    (("-alg", "drr", "-flows", "3", "-qmin", "9", "-qmax", "9"), ["-qmin 9", "less than -qmax"]),
    (("-alg", "drr", "-flows", "3", "-burst", "-1"), ["-burst -1", "whole number"]),
    (("-alg", "drr", "-flows", "3", "-qmac", "4"), ["-qmac 4", "-mode double"]),
    (("-alg", "drr", "-flows", "3", "-mode", "both"), ["-mode both", "single, integrated or double"]),
    (("-alg", "drr", "-flows", "3", "-mode", "double"), ["-alg drr", "-qos and -mac"]),
    (("-alg", "hfs", "-flows", "3"), ["-alg hfs", "-mode double"]),
    (("-mode", "double", "-alg", "hfs", "-flows", "3", "-wdistr", "4"), ["-wdistr 4", "0 to 3"]),
    (("-mode", "integrated", "-alg", "w2f2q", "-flows", "3", "-ploss", "0.1:1.1"), ["-ploss 0.1:1.1", "0 to 1"]),
    (("-mode", "integrated", "-alg", "w2f2q", "-flows", "3", "-intgr_th", "120%"), ["-intgr_th 120", "0% to 100%"]),
    (("-alg", "drr", "-flows", "3", "-qmaks", "4"), ["-qmaks", "no such flag", "-qmax"]),
]


@pytest.mark.parametrize(("flags", "parts"), [case for case in MISTAKES if case[1]])
def test_a_mistake_is_told_in_one_line(penstock: Command, flags: tuple[str, ...], parts: list[str]) -> None:
    done = penstock("tempest", *flags)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    for part in parts:
        assert part in done.stderr


def test_two_layers_see_the_channel(penstock: Command) -> None:
    wireless = (*EMERGENCY, "-n", "100k", "-measure", "fairness")
    hfs = report(penstock, "-mode", "double", "-alg", "HFS", "-qmac", "250", *wireless)
    named = report(penstock, "-mode", "double", "-qos", "qfq+", "-mac", "qfq+", "-qmac", "250", *wireless)
    assert hfs == named
    assert (hfs["alg"], hfs["mode"]) == ("hfs", "double")
    blind = report(penstock, "-mode", "double", "-alg", "hfs", "-qmac", "250", "-wdistr", "0", *wireless)
    # A geometric series of ratio 10^(-4/19): 20 terms sum up to 2.603, and 17.397 of 20 arrive if nobody looks.
    assert blind["throughput"] == pytest.approx(0.8699, abs=0.02)
    assert hfs["throughput"] > blind["throughput"] + 0.05
    # Losses from 1 to 0.0001 in equal steps: half arrives.
    steps = report(penstock, "-mode", "double", "-alg", "hfs", "-wdistr", "0", "-ploss", "steps", *wireless)
    assert steps["throughput"] == pytest.approx(0.5, abs=0.02)


def test_an_integrated_scheduler_serves_good_stations_only(penstock: Command) -> None:
    flags = ("-mode", "integrated", "-alg", "W2F2Q", *EMERGENCY, "-n", "100k", "-measure", "fairness")
    # In equal steps the last four of twenty stations pass 80 %: their mean is 0.921. By powers all but the first have a
    # weight of more than 80: 1 - 1.603 / 19.
    for law, threshold, least, first, mean in (("steps", "80%", 0.8, 16, 0.92096), ("powers", "80", 0.08, 1, 0.91563)):
        found = report(penstock, *flags, "-ploss", law, "-intgr_th", threshold)
        served = {flow["station"] for flow in found["flows_detail"] if flow["packets"]}
        assert served == set(range(first, 20))
        assert found["throughput"] == pytest.approx(mean, abs=0.005)
        assert lab.good_throughput(law, least) == pytest.approx(mean, abs=1e-4)


# The experiments.


def test_flags_of_a_run_are_those_of_the_documents_tables() -> None:
    scenario = EXPERIMENTS["tempest-fairness"].scenario(Case("qfq-plus", 101, 1, setting="w-50"), quick=False)
    flags = tomllib.loads(scenario.text)["tempest"]
    assert flags["flowsets"] == "1::100,50::1"
    assert (flags["n"], flags["qmin"], flags["qmax"]) == ("5M", "15n", "25n")
    assert (flags["burst"], flags["qsing"], flags["alg"]) == ("2", "1", "qfq-plus")
    counts = [case.flows for case in EXPERIMENTS["tempest-growth"].cases(False, 1) if case.aqm == "kps"]
    assert counts == [1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000]
    assert [lab.flows_in(sets) for sets in FLOW_SETS.values()] == [1000, 875, 32000, 28000]


def test_flags_of_other_modes_are_left_out() -> None:
    experiment = EXPERIMENTS["tempest-throughput"]
    of = {
        (case.aqm, case.setting): tomllib.loads(experiment.scenario(case, False).text)["tempest"]
        for case in experiment.cases(False, 1)
    }
    assert of["w2f2q", "integrated"]["intgr_th"] == "80"
    assert "intgr_th" not in of["hfs", "q-100"]
    assert (of["hfs-drr", "q-100"]["qos"], of["hfs-drr", "q-100"]["mac"]) == ("qfq-plus", "drr")


def test_theory_is_that_of_the_document() -> None:
    # Section 4.3.3.2: 17 ms, and 199 ms.
    assert t_wfi_bound_ms("wf2q-plus", 20) == pytest.approx(16.62, abs=0.01)
    assert t_wfi_bound_ms("drr", 20) == pytest.approx(199.5, abs=0.1)
    assert (b_wfi_bound("wf2q-plus", 5), b_wfi_bound("qfq", 5), b_wfi_bound("fifo", 5)) == (1, 5, None)
    assert b_wfi_bound("qfq-plus", 100) == pytest.approx(5 + 7 + 3)  # half of the link: 2 * 7 * 1/2
    assert (lab.blind_throughput(), lab.blind_throughput("steps")) == pytest.approx((0.86985, 0.49995), abs=1e-5)
    # 300 packets wait at most, and a flow of weight 20 has 20 of 660: (300 - 33) * 1700 * 8 / 54 Mbit/s.
    assert waiting_bound_ms(300, 20) == pytest.approx(67.244, abs=1e-3)
    assert fitted([1, 2, 4, 8], [5, 7, 9, 11]) == pytest.approx((5, 2))


def made(alg: str, setting: str, flows: int, **given: Any) -> Outcome:
    """A run with what claims read."""
    detail = {"weight": 20, **{key: given.get(key) for key in ("b_wfi_packets", "t_wfi_ms", "max_delay_dequeues")}}
    keys = ("ns_per_packet", "ns_harness", "ns_scheduler", "throughput")
    summary = {"events": 10, "flows_detail": [detail], "worst": None, **{key: given.get(key) for key in keys}}
    return Outcome(Case(alg, flows, 1, setting=setting), "", summary, 0.0)


def test_times_are_judged_by_ratios() -> None:
    def verdict(ours: float) -> Verdict:
        experiment = EXPERIMENTS["tempest-time"]
        assert isinstance(experiment, Tempest)
        tests = [test for test in experiment.tests if test.name.startswith("smooth")]
        times = {"drr": 20.0, "qfq-plus": ours}
        runs = [made(alg, test.name, test.flows, ns_per_packet=ns) for alg, ns in times.items() for test in tests]
        return qfq_plus_costs_about_what_drr_does(Evidence(experiment, False, tuple(runs), {})).verdict

    # "About as long" is less than a quarter more: the table of words in docs/results/ledger.md.
    assert verdict(24.9) == Verdict.HOLDS
    assert verdict(25.1) == Verdict.FAILS


def test_a_bound_is_judged_by_its_formula() -> None:
    def verdict(ms: float) -> Verdict:
        runs = tuple(made("wf2q-plus", setting, 100, t_wfi_ms=ms) for setting in (WIRED, ROOMY))
        return wf2q_plus_is_below_its_bound(Evidence(EXPERIMENTS["tempest-twfi"], False, runs, {})).verdict

    assert verdict(16.6) == Verdict.HOLDS
    assert verdict(16.7) == Verdict.FAILS


@pytest.mark.parametrize("name", ["tempest-fairness", "tempest-twfi", "tempest-throughput"])
def test_the_quick_form_is_complete(quick: Any, name: str) -> None:
    printed, out = quick(name)
    experiment = EXPERIMENTS[name]
    assert len(printed["runs"]) == len(list(experiment.cases(quick=True, seeds=1)))
    assert all(claim["verdict"] != "not-run" and claim["reason"] for claim in printed["claims"])
    assert {file.stem for file in (out / "figures").glob("*.svg")} == experiment.figures.keys()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == len(experiment.figures)


def test_the_benchmark_has_every_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedulers, "_instructions", lambda _names, _say: "left out")
    costs = schedulers.measure(True, lambda _line: None, flows=(100,))
    assert [row.alg for row in costs.rows] == [entry.name for entry in engine.schedulers()]
    assert next(row.ratio for row in costs.rows if row.alg == "drr") == 1.0
    assert len(schedulers.cells(costs)) == len(costs.rows)
    assert costs.to_json()["scheduler_instructions_missing"] == "left out"
