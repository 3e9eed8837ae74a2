"""LINDROP on long paths and RED-ERN: scenarios of the documents, and quick forms that give what they must."""

from __future__ import annotations

import tomllib
from itertools import product
from typing import Any

import pytest
from penstock.claims import Cause
from penstock.claims.ledger import claims
from penstock.papers.ern.runs import COUNTS, OTHERS, RATES, left_delays_ms, thresholds
from penstock.papers.lindrop.claims import QUEUE, THROUGHPUT
from penstock.papers.lindrop.runs import EIGHT, LOADS, NETWORKS, connections
from penstock.reproduce import EXPERIMENTS, Case, Evidence, Outcome, columns, load


def scenario(name: str, case: Case) -> dict[str, Any]:
    """What a case of the full form runs, read back from its text."""
    return tomllib.loads(EXPERIMENTS[name].scenario(case, False).text)


def reason(printed: dict[str, Any], name: str) -> str:
    """Why a claim does not hold."""
    return next(str(claim["reason"]) for claim in printed["claims"] if claim["id"].endswith(f".{name}"))


@pytest.mark.parametrize(
    ("load", "large", "small", "web"), [("low", 7, 1, 2), ("moderate", 68, 10, 22), ("heavy", 675, 100, 225)]
)
def test_section_4_2_deals_connections_to_nine_paths(load: str, large: int, small: int, web: int) -> None:
    flows = connections(load)
    bulk = [flow for flow in flows if flow["kind"] == "bulk"]
    assert sum(flow["count"] for flow in bulk if "tcp" not in flow) == large
    assert sum(flow["count"] for flow in bulk if "tcp" in flow) == small
    assert sum(flow["count"] for flow in flows if flow["kind"] == "web") == web
    assert large + small + web == LOADS[load]
    per_path = dict.fromkeys(product(("n1", "n2", "n3"), ("n4", "n5", "n6")), 0)
    for flow in flows:
        if flow["kind"] != "cbr":
            per_path[flow["from"], flow["to"]] += flow["count"]
    assert max(per_path.values()) - min(per_path.values()) <= 1


def test_packets_of_section_4_2_are_of_1500_536_and_1000_bytes() -> None:
    tree = scenario("lindrop", Case("lindrop", 10, 1, setting="wan-300-low"))
    headers = 52  # IPv4, TCP, timestamps
    assert tree["tcp"]["mss"] == f"{1500 - headers}B"
    assert {flow["tcp"]["mss"] for flow in tree["flows"] if "tcp" in flow} == {f"{536 - headers}B"}
    udp = [flow for flow in tree["flows"] if flow["kind"] == "cbr"]
    assert {flow["packet_size"] for flow in udp} == {f"{1000 - 28}B"}
    rate = sum(float(flow["rate"].removesuffix("bit/s")) for flow in udp)
    assert rate == pytest.approx(10e6, rel=1e-6)  # a tenth of the way back
    assert tree["topology"]["links"][0]["delay"] == "300ms"


def test_table_2_gives_drop_tail_100_packets_and_the_others_300() -> None:
    limits = {}
    for aqm in EXPERIMENTS["lindrop"].aqms:
        bottleneck = scenario("lindrop", Case(aqm, 10, 1, setting="lan-low"))["topology"]["links"][0]
        limits[aqm] = bottleneck["limit"]
        assert bottleneck["aqm"]["name"] == aqm.removesuffix("-300")
    assert limits.pop("droptail") == "100p"
    assert set(limits.values()) == {"300p"}
    # ARED sets its lower threshold to half of target x rate, the upper one to three times that: 50 and 150 packets.
    assert 12e-3 * 100e6 / (8 * 1500) / 2 == 50


def test_tables_3_to_5_are_whole() -> None:
    assert all(rows.keys() == set(EIGHT) for rows in (*THROUGHPUT.values(), *QUEUE.values()))
    assert THROUGHPUT.keys() == NETWORKS.keys()
    cases = {(case.setting, case.aqm) for case in EXPERIMENTS["lindrop"].cases(False, 1)}
    assert {(f"{n}-{load}", aqm) for n in NETWORKS for load in LOADS for aqm in EIGHT} <= cases


@pytest.mark.parametrize("levels", [4, 10])
def test_round_trips_of_section_iv_stay_in_their_categories(levels: int) -> None:
    # The categories of RED-ERN end at 40, 80, 160 and 320 ms. By the document the first begins at 24 ms.
    bounds = [(24, 40), (40, 80), (80, 160), (160, 320), (320, 640)]
    for delays, (low, high) in zip(left_delays_ms(levels), bounds, strict=True):
        round_trips = [2 * (8 + delay + 2) for delay in delays]
        assert all(low <= trip <= high for trip in round_trips)
        assert round_trips == sorted(round_trips)
    # Means are kept: one way 8 ms and twice the mean of a link.
    means = [sum(2 * (8 + d + 2) for d in delays) / levels for delays in left_delays_ms(levels)]
    assert means == pytest.approx([2 * (8 + 2 * mean) for mean in (4, 11, 26, 56, 101)], abs=0.1)


def test_syns_reach_the_queue_within_20_ms_though_round_trips_differ() -> None:
    flows = scenario("ern", Case("red-ern", 800, 1, setting="ftp-30-800"))["flows"]
    times = [float(flow["start"].removesuffix("ms")) + float(flow["access_delay"].removesuffix("ms")) for flow in flows]
    assert max(times) == pytest.approx(min(times), abs=0.01)
    assert {flow["start_spread"] for flow in flows} == {"20ms"}


def test_thresholds_are_half_and_one_and_a_half_of_91_packets_at_30_mbit() -> None:
    assert thresholds(30)["aqm.min_threshold"] == "46p"  # 91.1 / 2
    assert thresholds(30)["aqm.max_threshold"] == "137p"


def test_section_iv_has_every_rate_and_number_of_flows() -> None:
    cases = list(EXPERIMENTS["ern"].cases(False, 1))
    settings = {case.setting for case in cases}
    expected = {f"ftp-{rate}-{count}" for rate in RATES for count in COUNTS}
    expected |= {f"{kind}-{count}" for kind in ("udp", "http") for count in OTHERS} | {"starved"}
    assert settings == expected
    for case in cases:
        flows = scenario("ern", case)["flows"]
        assert sum(flow["count"] for flow in flows) == case.flows
        # As many of each class of round trips, ten or, of twenty flows, four in a class.
        assert len({flow["access_delay"] for flow in flows}) in (50, 70)
    tcp = [scenario("ern", Case(aqm, 50, 1, setting="ftp-30-50"))["tcp"] for aqm in EXPERIMENTS["ern"].aqms]
    told = [(table.get("ern", False), table.get("ecn", False)) for table in tcp]
    assert told == [(True, True), (False, True), (False, False)]


@pytest.mark.parametrize("name", ["lindrop", "ern"])
def test_a_variant_leaves_the_published_scenario_alone(name: str) -> None:
    experiment = EXPERIMENTS[name]
    variants = list(experiment.variant_cases(seeds=1))
    published = [Case(case.aqm, case.flows, case.seed, setting=case.setting) for case in variants]
    before = [experiment.scenario(case, True).text for case in published]
    varied = [experiment.scenario(case, True).text for case in variants]
    assert [experiment.scenario(case, True).text for case in published] == before
    without_name = [(a.partition("\n")[2], b.partition("\n")[2]) for a, b in zip(before, varied, strict=True)]
    assert all(a != b for a, b in without_name)


def outcome(**bottleneck: Any) -> Outcome:
    """A run of 10 s with one bottleneck and two bulk flows and a UDP flow."""
    flows = [{"kind": kind, "goodput_bps": bps} for kind, bps in (("bulk", 3e6), ("bulk", 1e6), ("cbr", 5e6))]
    return Outcome(Case("red", 3, 1), "newreno", {"duration_s": 10.0, "flows": flows, "bottlenecks": [bottleneck]}, 0.0)


def test_measures_by_hand() -> None:
    # 12 Mbit/s for 10 s are 15 MB: with 10,000 packets 1500 B each, and a queue of 4500 B holds three.
    run = outcome(throughput_bps=12e6, packets=10_000, queue_bytes={"mean": 4500.0}, drops_aqm=1, drops_overflow=3)
    assert columns.queue_packets(run) == 3.0
    assert columns.own_drops(run) == 0.25
    assert columns.own_drops(outcome(drops_aqm=0, drops_overflow=0)) is None
    # (3 + 1)^2 / (2 (9 + 1)) = 0.8; the UDP flow is not counted.
    assert columns.fairness_of("bulk")(run) == pytest.approx(0.8)
    assert columns.fairness_of("http")(run) is None


def test_lindrop_is_drop_tail_in_the_end(quick: Any, verdicts: Any) -> None:
    printed, _ = quick("lindrop")
    found = verdicts("lindrop")
    assert found["lindrop-decides-on-drops"] in ("partly", "fails")
    # The reason is shown by a run: steps that cancel give LINDROP a say in far more of the drops.
    told = reason(printed, "lindrop-decides-on-drops")
    assert "n_pd = 1.005" in told
    assert found["lindrop-beats-drop-tail-of-its-size"] in ("partly", "fails")
    assert found["lindrop-fills-its-buffer"] == "holds"
    assert found["longest-round-trips"] == "fails"
    assert found["mean-round-trip-is-100-ms"] == "holds"


def test_rates_help_with_few_flows_and_beside_http(verdicts: Any) -> None:
    found = verdicts("ern")
    assert found["dropping-waits-least"] == "holds"
    assert found["waiting-grows-with-flows"] == "holds"
    assert found["only-dropping-holds-the-target"] == "holds"
    assert found["ern-uses-more-beside-http"] == "holds"
    assert found["ern-is-fairer-beside-http"] == "holds"


def test_flows_whose_syn_is_dropped_starve_among_those_that_are_marked(quick: Any) -> None:
    _, out = quick("ern")
    run = load(out)

    def fairness(found: Evidence, cell: tuple[str, int, str]) -> float:
        return found.cell_value(cell, columns.fairness_of("bulk")) or 0.0

    few = ("red-ern", 50, "ftp-30-50")
    assert fairness(run.varied["late-starts"], few) < fairness(run, few) - 0.05
    # Where slow start and retransmissions are marked, nobody starves. With the hard limit of before it is worse still.
    many = ("red-ern", 800, "ftp-30-800")
    assert fairness(run.varied["all-marked"], many) > 0.85 > 0.5 > fairness(run, many)
    assert fairness(run.varied["certain-drops"], many) < fairness(run, many)


def test_eq_3_is_run_as_it_is_written() -> None:
    experiment = EXPERIMENTS["ern"]
    for case in experiment.cases(True, 1):
        aqm = scenario("ern", case)["aqm"]
        assert aqm["over_max"] == "linear" and "ecn_retransmits" not in scenario("ern", case)["tcp"]
        assert aqm.get("ecn", False) == (case.aqm == "red-ecn"), "RED-ERN drops what tells no rate"


def test_what_the_document_says_of_slow_start_excludes_its_figures(verdicts: Any) -> None:
    found = verdicts("ern")
    assert found["slow-start-must-be-dropped-and-must-not"] == "holds"
    # Beside 800 sessions packets wait 15.2 and 16.6 ms in 30 s (the quick form); in 120 s, 15.5 and 16.3 ms, it holds.
    assert found["what-is-done-to-slow-start-does-not-matter-beside-http"] == "partly"
    # No row is left for us to do but processor times, which are those of our code.
    ours = {claim.needs[0] for claim in claims() if claim.because and claim.because.cause == Cause.OURS}
    assert ours == {"hfs-time", "tempest-time", "tempest-growth"}
