"""Sections 4.1.3 and 4.2 of document 002: runs are those of the document, and quick forms tell what they should."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from penstock import engine
from penstock.claims import Verdict
from penstock.claims.ledger import ledger
from penstock.papers._shared.hfs import ALONE, KNOWING, best_delay, good_twfi_ms
from penstock.papers._shared.schedulers import losses
from penstock.papers.hfs import claims
from penstock.papers.hfs.runs import losses_of, weighted_throughput
from penstock.reproduce import EXPERIMENTS, Case, Evidence, Experiment, Outcome

HFS = EXPERIMENTS["hfs"]


def flags(experiment: Experiment, case: Case, quick: bool = False) -> dict[str, str]:
    """What a case asks of TEMPEST, read back from its text."""
    given: dict[str, str] = tomllib.loads(experiment.scenario(case, quick).text)["tempest"]
    return given


def test_the_scenario_is_that_of_section_4_2_3() -> None:
    given = flags(HFS, Case("hfs", 100, 1, setting="q-100"))
    assert (given["mode"], given["qos"], given["mac"], given["qmac"]) == ("double", "qfq-plus", "qfq-plus", "100")
    assert (given["flowsets"], given["flowsmac"]) == ("20::20,10::20,1::60", "20")
    assert (given["n"], given["qmin"], given["qmax"], given["burst"]) == ("10M", "0", "10n", "1")
    wired = flags(HFS, Case("qfq-plus", 100, 1, setting=ALONE))
    assert (wired["mode"], wired["alg"]) == ("single", "qfq-plus")
    assert not {"qmac", "qos", "mac"} & wired.keys()
    knowing = flags(HFS, Case(KNOWING, 100, 1, setting=ALONE))
    assert (knowing["mode"], knowing["intgr_th"]) == ("integrated", "80")


def test_variants_change_flags_and_nothing_else() -> None:
    published = {case: flags(HFS, case, True) for case in HFS.cases(True, 1)}
    for case in HFS.variant_cases(1):
        plain = Case(case.aqm, case.flows, case.seed, setting=case.setting)
        after = flags(HFS, case, True)
        assert after != published[plain]
        assert (after["mode"], after["n"]) == (published[plain]["mode"], published[plain]["n"])
    by_station = flags(HFS, Case(KNOWING, 100, 1, "by-station", ALONE), True)["flowsets"].split(",")
    assert (len(by_station), by_station[:2], by_station[-1]) == (20, ["1::1", "384::1"], "1000::1")


def test_weights_say_what_a_large_buffer_can_give() -> None:
    steps, powers = losses("steps"), losses()
    # With 1 - p = 0.9999 k / 19 for k of 0 to 19: sum k^2 / (19 sum k) = 2470 / (19 * 190), and so on.
    given = {policy: weighted_throughput(policy, steps) for policy in ("constant", "linear", "analogical")}
    assert given == pytest.approx({"constant": 0.49995, "linear": 0.66660, "analogical": 0.68414}, abs=1e-4)
    assert weighted_throughput("exponential", steps) == pytest.approx(0.9999 - 0.9999 / 19, abs=1e-4)
    # By powers a geometric series: p sum up to 2.60298 and p^2 to 1.61100.
    assert weighted_throughput("constant", powers) == pytest.approx(17.39702 / 20, abs=1e-5)
    assert weighted_throughput("analogical", powers) == pytest.approx(16.40505 / 17.39702, abs=1e-5)


def flow(weight: int, station: int, t_wfi_ms: float | None, delay: int) -> dict[str, Any]:
    """One flow of a report."""
    loss = losses()[station]
    return {"weight": weight, "station": station, "loss": loss, "t_wfi_ms": t_wfi_ms, "max_delay_dequeues": delay}


def test_flows_in_good_condition_are_those_of_sixteen_stations() -> None:
    # 10^(-12/19) = 0.234, 10^(-16/19) = 0.144.
    report = {"flows_detail": [flow(20, 3, 99.0, 9), flow(20, 4, 2.0, 5), flow(20, 19, 3.0, 7), flow(1, 19, 50.0, 8)]}
    assert (good_twfi_ms(report), best_delay(report)) == (3.0, 7.0)
    assert losses_of(report) == [losses()[station] for station in (3, 4, 19)]
    assert best_delay({"flows_detail": []}) is None


def made_up(hfs_at_100: float, integrated: float) -> Evidence:
    """Throughputs of the quick form as they might be, and as variants might change them."""
    outcomes: list[Outcome] = []
    variants: list[Outcome] = []
    for case in [*HFS.cases(True, 1), *HFS.variant_cases(1)]:
        throughput = {KNOWING: integrated}.get(case.aqm, 0.5)
        if case.aqm == "hfs" and case.setting in ("q-100", "q-250"):
            throughput = hfs_at_100
        if case.aqm == KNOWING and case.variant == "chance":
            throughput = 0.977
        report = {"throughput": throughput, "events": 1000, "flows_detail": [flow(20, 19, 1.0, 1)], "worst": None}
        (variants if case.variant else outcomes).append(Outcome(case, "", report, 0.0, None))
    return Evidence(HFS, True, tuple(outcomes), {}, tuple(variants))


@pytest.mark.parametrize(("ours", "verdict"), [(0.95, Verdict.HOLDS), (0.91, Verdict.FAILS)])
def test_hfs_is_compared_with_the_integrated_scheduler(ours: float, verdict: Verdict) -> None:
    found = claims.from_a_hundred_packets_on_hfs_beats_the_integrated_scheduler(made_up(ours, 0.92))
    assert found.verdict == verdict
    assert f"{ours:.3f}" in found.measured


def test_a_claim_that_holds_tells_what_another_reading_gives() -> None:
    name = "hfs.from-a-hundred-packets-on-hfs-beats-the-integrated-scheduler"
    entry = next(e for e in ledger({"hfs": made_up(0.95, 0.92)}, "hfs") if e.id == name)
    assert entry.verdict == "holds"
    assert "hold: a threshold of 80 % to arrive 0 of 2 (Q = 100: HFS 0.950, W2F2Q 0.977" in entry.reason
    assert "equal steps" not in entry.reason, "so read it holds, too"


def throughput(case: Case) -> float:
    """What a short run gives."""
    return float(engine.tempest({**flags(HFS, case, True), "n": "100k"})["throughput"])


def test_without_a_second_layer_it_is_the_wired_scheduler() -> None:
    wired = throughput(Case("qfq-plus", 100, 1, setting=ALONE))
    assert wired == pytest.approx(0.8699, abs=0.005)
    assert throughput(Case("hfs", 100, 1, setting="q-0")) == pytest.approx(wired, abs=1e-12)


def test_the_sentence_hangs_on_how_the_setup_is_read() -> None:
    def both(variant: str, setting: str) -> tuple[float, float]:
        hfs = throughput(Case("hfs", 100, 1, variant, setting))
        changed = any(v.name == variant and KNOWING in v.aqms for v in HFS.variants)
        return hfs, throughput(Case(KNOWING, 100, 1, variant if changed else "", ALONE))

    # All stations but the one that loses everything: 1 - 1.603 / 19.
    hfs, knowing = both("", "q-100")
    assert knowing == pytest.approx(0.9156, abs=0.005)
    assert knowing < hfs < 0.943
    # Sixteen stations: 1 - 0.0234.
    hfs, knowing = both("chance", "q-250")
    assert knowing == pytest.approx(0.9766, abs=0.005)
    assert hfs < knowing
    # Four stations: (0.842 + 0.895 + 0.947 + 1) / 4.
    hfs, knowing = both("steps-chance", "q-250")
    assert knowing == pytest.approx(0.921, abs=0.005)
    assert hfs < 0.684
    # Only the best station is served but for one packet in two of the next, and so on: 0.9999 - 0.0526.
    hfs, knowing = both("steps-doubled", "q-250")
    assert (hfs, knowing) == pytest.approx((0.947, 0.921), abs=0.005)
