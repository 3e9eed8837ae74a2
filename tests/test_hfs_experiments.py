"""Sections 4.1.3 and 4.2 of document 002: runs are those of the document, and quick forms tell what they should."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from penstock import engine
from penstock.claims import Verdict, hfs
from penstock.reproduce import EXPERIMENTS, Case, Evidence, Outcome
from penstock.reproduce import hfs as lab


def flags(experiment: lab.Modular, case: Case, quick: bool = False) -> dict[str, str]:
    """What a case asks of TEMPEST, read back from its text."""
    given: dict[str, str] = tomllib.loads(experiment.scenario(case, quick).text)["tempest"]
    return given


def test_the_experiments_are_listed() -> None:
    assert [EXPERIMENTS[name] for name in ("hfs", "hfs-mac", "hfs-time")] == list(lab.ALL_HFS)


def test_the_scenario_is_that_of_section_4_2_3() -> None:
    given = flags(lab.HFS, Case("hfs", 100, 1, setting="q-100"))
    assert (given["mode"], given["qos"], given["mac"], given["qmac"]) == ("double", "qfq-plus", "qfq-plus", "100")
    assert (given["flowsets"], given["flowsmac"]) == ("20::20,10::20,1::60", "20")
    assert (given["n"], given["qmin"], given["qmax"], given["burst"]) == ("10M", "0", "10n", "1")
    wired = flags(lab.HFS, Case("qfq-plus", 100, 1, setting=lab.ALONE))
    assert (wired["mode"], wired["alg"]) == ("single", "qfq-plus")
    assert not {"qmac", "qos", "mac", "flowsmac"} & wired.keys()


def test_variants_change_flags_and_nothing_else() -> None:
    published = {case: flags(lab.HFS, case, True) for case in lab.HFS.cases(True, 1)}
    for case in lab.HFS.variant_cases(1):
        plain = Case(case.aqm, case.flows, case.seed, setting=case.setting)
        after = flags(lab.HFS, case, True)
        assert after != published[plain]
        assert {key: after[key] for key in ("mode", "flowsets", "n")} == {
            key: published[plain][key] for key in ("mode", "flowsets", "n")
        }
    powers = flags(lab.HFS, Case("hfs", 100, 1, "powers", "q-1"), True)["ploss"].split(":")
    assert (len(powers), powers[0], powers[-1]) == (20, "1.000000", "0.000100")


def test_weights_say_what_a_large_buffer_can_give() -> None:
    # With 1 - p = 0.9999 k / 19 for k of 0 to 19: sum k^2 / (19 sum k) = 2470 / (19 * 190), and so on.
    given = {policy: lab.weighted_throughput(policy) for policy in ("constant", "linear", "analogical")}
    assert given == pytest.approx({"constant": 0.49995, "linear": 0.66660, "analogical": 0.68414}, abs=1e-4)
    assert lab.weighted_throughput("exponential") == pytest.approx(0.9999 - 0.9999 / 19, abs=1e-4)


def flow(weight: int, station: int, t_wfi_ms: float | None, delay: int) -> dict[str, Any]:
    """One flow of a report."""
    return {"weight": weight, "station": station, "t_wfi_ms": t_wfi_ms, "max_delay_dequeues": delay}


def test_flows_in_good_condition_are_those_of_four_stations() -> None:
    # 1 - 0.9999 * 15 / 19 = 0.2106, 1 - 0.9999 * 16 / 19 = 0.1580.
    assert lab.good_stations() == range(16, 20)
    report = {"flows_detail": [flow(20, 15, 99.0, 9), flow(20, 16, 2.0, 5), flow(20, 19, 3.0, 7), flow(1, 19, 50.0, 8)]}
    assert (lab.good_twfi_ms(report), lab.best_delay(report)) == (3.0, 7.0)
    assert lab.good_twfi_ms({"flows_detail": []}) is None


def made_up(hfs_at_100: float, integrated: float) -> Evidence:
    """Throughputs of the quick form as they might be."""
    outcomes = []
    for case in lab.HFS.cases(True, 1):
        throughput = {lab.KNOWING: integrated}.get(case.aqm, 0.5)
        if case.aqm == "hfs" and case.setting in ("q-100", "q-250"):
            throughput = hfs_at_100
        report = {"throughput": throughput, "events": 1000, "flows_detail": [flow(20, 19, 1.0, 1)], "worst": None}
        outcomes.append(Outcome(case, "", report, 0.0, None))
    return Evidence(lab.HFS, True, tuple(outcomes), {}, ())


@pytest.mark.parametrize(("ours", "verdict"), [(0.95, Verdict.HOLDS), (0.91, Verdict.FAILS)])
def test_hfs_is_compared_with_the_integrated_scheduler(ours: float, verdict: Verdict) -> None:
    found = hfs.from_a_hundred_packets_on_hfs_beats_the_integrated_scheduler(made_up(ours, 0.92))
    assert found.verdict == verdict
    assert f"{ours:.3f}" in found.measured


def test_without_a_second_layer_it_is_the_wired_scheduler_and_doubled_weights_beat_the_integrated_one() -> None:
    def throughput(case: Case) -> float:
        found = lab.throughput(engine.tempest({**flags(lab.HFS, case, True), "n": "40k"}))
        assert found is not None
        return found

    wired = throughput(Case("qfq-plus", 100, 1, setting=lab.ALONE))
    assert throughput(Case("hfs", 100, 1, setting="q-0")) == pytest.approx(wired, abs=1e-12)
    # Only the best station is served but for one packet in two of the next, and so on: 0.9999 - 0.0526.
    assert throughput(Case("hfs", 100, 1, "few-exponential", "q-250")) == pytest.approx(0.947, abs=0.005)
    # Four stations: (0.842 + 0.895 + 0.947 + 1) / 4.
    assert throughput(Case(lab.KNOWING, 100, 1, setting=lab.ALONE)) == pytest.approx(0.921, abs=0.005)
