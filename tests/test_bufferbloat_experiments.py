"""Modified CoDel and Minstrel PIE: scenarios are those of the thesis, quick forms give what is promised."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from penstock import engine, rundir
from penstock.papers.minstrel_pie.figures import ellipse
from penstock.papers.minstrel_pie.runs import CONGESTION, PIES
from penstock.papers.minstrel_pie_testbed import claims as testbed_claims
from penstock.reproduce import EXPERIMENTS, Case, Outcome, Series, load
from penstock.reproduce.columns import drop_share, jain_of_all
from penstock.reproduce.results import RESULTS
from penstock.reproduce.seconds import window_spread

NAMES = ["modified-codel", "minstrel-pie"]
CODELS = EXPERIMENTS["modified-codel"].aqms


def scenario(name: str, case: Case) -> dict[str, Any]:
    """What a case runs, read back from its text."""
    return tomllib.loads(EXPERIMENTS[name].scenario(case, False).text)


def test_table_3_1() -> None:
    tree = scenario("modified-codel", Case("codel", 1000, 1, setting="tcp"))
    topology = tree["topology"]
    assert (topology["rate"], topology["access_rate"]) == ("10Mbit/s", "20Mbit/s")
    assert (tree["duration"], tree["tcp"]["cc"], tree["aqm"]) == ("100s", "cubic", {"name": "codel"})
    assert float(topology["delay"].removesuffix("ms")) + 2 * float(topology["access_delay"].removesuffix("ms")) == 40
    assert int(topology["limit"].removesuffix("p")) == 8 * 10e6 * 0.08 / 8 / 500
    streams = scenario("modified-codel", Case("codel", 1000, 1, setting="udp"))["flows"]
    for flows, tcp, udp in ((tree["flows"], 1000, 5), (streams, 5, 1000)):
        found = {(f["kind"], f.get("direction", "forward")): f.get("count", 1) for f in flows}
        assert found == {
            ("bulk", "forward"): tcp,
            ("cbr", "forward"): udp,
            ("bulk", "reverse"): 5,
            ("cbr", "reverse"): 5,
            ("web", "forward"): 1,
            ("voip", "forward"): 5,
        }
        assert next(f["per_second"] for f in flows if f["kind"] == "web") == 15


def test_the_thesis_compares_four_targets_at_half_a_megabit() -> None:
    for target in (5, 10, 15, 20):
        tree = scenario("modified-codel", Case("modified-codel", 5, 1, setting=f"five-{target}ms"))
        assert tree["aqm"] == {"name": "modified-codel", "target": f"{target}ms"}
        assert (tree["topology"]["rate"], tree["duration"]) == ("0.5Mbit/s", "200s")
        assert tree["flows"] == [{"kind": "bulk", "count": 5}]


@pytest.mark.parametrize(("name", "rate"), [("slow", "0.5Mbit/s"), ("fast", "10Mbit/s")])
def test_section_3_3_has_udp_from_26_to_75_s(name: str, rate: str) -> None:
    tree = scenario("modified-codel", Case("codel", 6, 1, setting=f"udp-{name}"))
    assert (tree["topology"]["rate"], tree["duration"]) == (rate, "100s")
    assert tree["flows"][1]["kind"] == "cbr"
    assert (tree["flows"][1]["start"], tree["flows"][1]["stop"]) == ("26s", "75s")


def test_tables_4_1_4_5_and_4_9() -> None:
    mix = scenario("minstrel-pie", Case("pie", 7, 1, setting="mix"))
    assert (mix["topology"]["rate"], mix["topology"]["limit"]) == ("10Mbit/s", "200p")
    assert (mix["topology"]["access_rate"], mix["tcp"]["mss"], mix["duration"]) == ("100Mbit/s", "1000B", "100s")
    assert [(f["kind"], f["count"]) for f in mix["flows"]] == [("bulk", 5), ("cbr", 2)]
    assert mix["flows"][1]["rate"] == "10Mbit/s"
    one = scenario("minstrel-pie", Case("pie", 2, 1, setting="one-each"))
    assert (one["duration"], one["tcp"]["cc"]) == ("300s", "newreno")
    buffer = scenario("minstrel-pie", Case("droptail", 50, 1, setting="buffer-15-heavy"))
    assert (buffer["topology"]["limit"], buffer["tcp"]["cc"]) == ("15p", "cubic")


@pytest.mark.parametrize(("setting", "flows"), [("light", 5), ("heavy", 50)])
def test_table_4_9_with_tcp_alone(setting: str, flows: int) -> None:
    tree = scenario("minstrel-pie-testbed", Case("pie", flows, 1, setting=setting))
    topology = tree["topology"]
    assert (topology["rate"], topology["access_rate"], topology["limit"]) == ("10Mbit/s", "100Mbit/s", "200p")
    assert (tree["tcp"]["cc"], tree["duration"], tree["aqm"]) == ("cubic", "100s", {"name": "pie"})
    assert tree["flows"] == [{"kind": "bulk", "count": flows}]


@pytest.mark.parametrize("ecn", [False, True])
@pytest.mark.parametrize("count", [1, 5])
def test_section_4_3_3_c_has_udp_from_25_to_75_s(count: int, ecn: bool) -> None:
    tree = scenario("minstrel-pie-testbed", Case("minstrel-pie", count + 1, 1, setting=f"up-{count}{'-ecn' * ecn}"))
    tcp, udp = tree["flows"]
    assert (tcp["kind"], tcp["count"], tcp["start"]) == ("bulk", count, "1s")
    assert (udp["kind"], udp["rate"], udp["start"], udp["stop"]) == ("cbr", "10Mbit/s", "25s", "75s")
    assert (tree["aqm"].get("ecn", False), tree["tcp"].get("ecn", False)) == (ecn, ecn)


def test_throughput_before_and_after_udp_is_of_settled_seconds() -> None:
    # 8 Mbit/s before UDP, 1 beside it, 6 within ten seconds of its end, then 7; the first ten seconds are left out.
    tcp = [3000] * 10 + [8000] * 15 + [1000] * 50 + [6000] * 10 + [7000] * 15
    summary = {"flows": [{"kind": "bulk"}, {"kind": "cbr"}]}
    outcome = Outcome(Case("pie", 2, 1, setting="up-1"), "cubic", summary, 0.0, Series((tuple(tcp), (0,) * 100), {}))
    assert (testbed_claims._before_mbps(outcome), testbed_claims._after_mbps(outcome)) == (8.0, 7.0)


def test_levels_of_congestion_follow_from_the_law_of_tcp() -> None:
    # 115 ms of 10 Mbit/s hold 136.6 frames of 1052 B; a flow has 1.22 / sqrt(p) of them.
    for flows, p in CONGESTION.values():
        assert flows == round(10e6 / 8 / 1052 * 0.115 / (1.22 / p**0.5))


def test_two_of_seven_flows_have_the_index_of_table_4_4() -> None:
    rates = [0.010, 0.015, 0.006, 0.007, 0.014, 4.790, 4.729]
    flows = [{"goodput_bps": rate * 1e6} for rate in rates]
    # Eq. (4.1) as printed, without n, would be 2.02.
    assert jain_of_all({"flows": flows}) == pytest.approx(0.288, abs=0.002)


def test_the_share_of_drops_is_of_all_arrivals() -> None:
    bottleneck = {"drops_overflow": 1, "drops_aqm": 4, "packets_all": 95}
    assert drop_share({"bottlenecks": [bottleneck]}) == 0.05


def test_ellipses_by_hand() -> None:
    # Variances 4 and 1 along the axes; then the same turned by 45 degrees.
    assert ellipse([2, -2, 0, 0], [0, 0, 1, -1]) == pytest.approx((2 * 2**0.5, 2 * 0.5**0.5, 0))
    r = 0.5**0.5
    turned = ellipse([2 * r, -2 * r, -r, r], [2 * r, -2 * r, r, -r])
    assert turned == pytest.approx((2 * 2**0.5, 2 * 0.5**0.5, 45))


def test_seconds_are_stored_and_read_back() -> None:
    queue = {"bottleneck": (1, 2)}
    told = [{"bottleneck": values} for values in ((1052, 2104), (840, 1680), (600, 700))]
    series = Series(((0, 12),), queue, told[0], told[1], told[2], ((1000, 2000),))
    assert series.to_json()["longest_bytes"] == {"bottleneck": "1052 2104"}
    assert series.to_json()["windows_bytes"] == ["1000 2000"]
    assert Series.from_json(json.loads(json.dumps(series.to_json()))) == series


def test_the_spread_of_windows_by_hand() -> None:
    # After the warm-up of a second: mean 2 and variance 1, so 1/4; a steady flow has none.
    series = Series(((0,) * 5, (0,) * 5), {}, windows=((9, 1, 3, 1, 3), (0, 5, 5, 5, 5)))
    outcome = Outcome(Case("codel", 2, 1), "newreno", {"warmup_s": 1.0}, 0.0, series)
    assert window_spread(outcome) == pytest.approx(0.125)


def test_the_seconds_of_a_run_hold_delays_and_windows() -> None:
    # NewReno's window grows by a segment of 1000 B per round trip; what waits is sent at 1 Mbit/s.
    text = """
        duration = "3s"
        [output]
        series = true
        [tcp]
        cc = "newreno"
        mss = "1000B"
        [topology]
        kind = "dumbbell"
        rate = "1Mbit/s"
        delay = "10ms"
        limit = "20p"
        [[flows]]
        kind = "bulk"
    """
    result = engine.run(text)
    series = Series.of(result)
    (delays,) = series.waited_us.values()
    assert len(delays) == len(series.windows[0]) == 3
    assert 0 < delays[2] <= 1e6 * 20 * 1052 * 8 / 1e6
    assert 2000 <= series.windows[0][2] <= 25_000
    (means,) = series.waiting.values()
    assert means[2] == pytest.approx(delays[2] / 1e6 * 1e6 / 8, rel=0.07)  # what waits at the ends of a second differs


@pytest.mark.parametrize("name", NAMES)
def test_the_quick_form_is_complete(quick: Any, name: str) -> None:
    printed, out = quick(name)
    experiment = EXPERIMENTS[name]
    assert len(printed["runs"]) == len(list(experiment.cases(quick=True, seeds=1)))
    assert {run["aqm"] for run in printed["runs"]} == set(CODELS if name == "modified-codel" else ("droptail", *PIES))
    assert "not-run" not in {claim["verdict"] for claim in printed["claims"]}
    assert all(claim["reason"] for claim in printed["claims"])
    assert {file.stem for file in (out / "figures").glob("*.svg")} == experiment.figures.keys()
    found = load(out)
    assert rundir.dump(found.to_json()) == (out / RESULTS).read_text(encoding="utf-8")


def test_each_run_names_its_congestion_control(quick: Any) -> None:
    runs = quick("modified-codel")[0]["runs"]
    assert {run["cc"] for run in runs if run.get("setting", "").startswith("five")} == {"newreno"}
    assert {run["cc"] for run in runs if run.get("setting") == "tcp"} == {"cubic"}


def test_modified_codel_has_the_shorter_queue(verdicts: Any) -> None:
    found = verdicts("modified-codel")
    assert found["codel-queue-grows-with-streams"] == "holds"
    assert found["modified-queue-is-shorter"] == "holds"
    assert found["modified-controls-udp-better"] == "holds"
    assert found["modified-throughput-is-similar"] == "holds"
    # 68,875 packets of 1000 B would need 2.8 Mbit/s.
    assert found["stated-drops"] == "fails"


def test_what_a_verdict_hangs_on_is_named(quick: Any) -> None:
    claims = {claim["id"].split(".", 1)[1]: claim for claim in quick("modified-codel")[0]["claims"]}
    overload = claims["pie-is-better-in-overload"]
    assert overload["verdict"] == "fails"
    assert "with PIE's delay estimated from departures it holds" in overload["reason"]


def test_minstrel_pie_has_the_shorter_delay_and_the_same_use(verdicts: Any) -> None:
    found = verdicts("minstrel-pie")
    assert found["minstrel-delays-less"] == "holds"
    assert found["minstrel-uses-the-link-alike"] == "holds"
    assert found["minstrel-is-at-its-lower-bound-with-udp"] == "holds"
    assert found["fairness-with-udp"] == "holds"
    assert found["large-buffers-shorten-much"] == "holds"


def test_on_the_testbed_minstrel_pie_has_the_shorter_delay_beside_udp(verdicts: Any) -> None:
    found = verdicts("minstrel-pie-testbed")
    assert "not-run" not in found.values()
    assert found["one-flow-and-udp-wait-less"] == "holds"
    assert found["five-flows-and-udp-wait-less"] == "holds"
    assert found["one-flow-falls-and-recovers"] == "holds"
    assert found["fairness-of-fifty-flows"] == "holds"
