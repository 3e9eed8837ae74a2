"""PINK's further experiments: the scenarios are those of the documents, and their quick forms give what is promised."""

from __future__ import annotations

import copy
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from penstock import rundir
from penstock.fairness import jain
from penstock.papers.pink_flood.runs import FLOOD_FROM_S, SYN_BYTES
from penstock.papers.pink_limits.runs import THEOREM_1_BYTES
from penstock.papers.pink_multi.columns import predicted_use
from penstock.papers.pink_multi.runs import REALLOCATIONS
from penstock.reproduce import EXPERIMENTS, Case, Listed, Outcome, Series, load, sharing
from penstock.reproduce.base import aqm_tables
from penstock.reproduce.results import RESULTS
from penstock.reproduce.settings import put
from penstock.scenario import to_toml

ALL_PINK = [EXPERIMENTS[f"pink-{name}"] for name in ("rtt", "multi", "c", "ppdr", "limits", "flood")]
LISTED = [experiment for experiment in EXPERIMENTS.values() if isinstance(experiment, Listed)]  # PINK's and others


def scenario(name: str, case: Case, quick: bool = False) -> dict[str, Any]:
    """What a case runs, read back from its text."""
    return tomllib.loads(EXPERIMENTS[name].scenario(case, quick).text)


@pytest.mark.parametrize("experiment", ALL_PINK, ids=lambda experiment: experiment.name)
def test_a_setting_changes_what_it_says_and_nothing_else(experiment: Listed) -> None:
    for case in experiment.cases(quick=False, seeds=1):
        got = tomllib.loads(experiment.scenario(case, quick=False).text)
        expected = copy.deepcopy(experiment.template)
        for table in aqm_tables(expected):
            table["name"] = case.aqm
        setting = experiment.setting(case.setting)
        for path, value in (*experiment.per_aqm.get(case.aqm, {}).items(), *setting.change.items()):
            put(expected, path, value)
        if setting.counts:
            expected["flows"][0]["count"] = case.flows
        assert got.pop("name").startswith(expected.pop("name"))
        assert got == {**expected, "seed": case.seed}


def test_names_of_cases_are_their_own() -> None:
    for experiment in LISTED:
        cases = [*experiment.cases(quick=False, seeds=2), *experiment.variant_cases(seeds=2)]
        assert len(set(cases)) == len(cases)
        names = [(experiment.scenario(case, False).file, case.seed) for case in cases]
        assert len(set(names)) == len(names)
        assert {c.cell for c in experiment.cases(True, 1)} <= {c.cell for c in experiment.cases(False, 1)}


def test_section_6_2_has_four_round_trips_80_mb_and_25_s_between() -> None:
    flows = scenario("pink-rtt", Case("codel", 4, 1))["flows"]
    assert [flow["start"] for flow in flows] == ["0s", "25s", "50s", "75s"]
    assert {flow["size"] for flow in flows} == {"80MB"}
    # 50 ms of the link and twice the right half's 1.45 ms: the left half gives the rest of 100, 150, 200 and 250 ms.
    left = [float(flow["access_delay"].removesuffix("ms")) for flow in flows]
    assert [round(2 * (50 + value - 1.45)) for value in left] == [100, 150, 200, 250]


def test_section_6_4_has_eight_flows_of_which_the_second_is_bad() -> None:
    tree = scenario("pink-multi", Case("pink", 8, 1, setting="max-min"))
    assert [link["rate"] for link in tree["topology"]["links"]] == ["10Mbit/s", "2Mbit/s", "500kbit/s"]
    assert all(
        link["aqm"] == {"name": "pink", "reallocation": "max-min", "window": "dither"}
        for link in tree["topology"]["links"]
    )
    starts = [flow["start"] for flow in tree["flows"]]
    assert starts == ["0s", "25s", "50s"]
    assert tree["flows"][1]["to"] == "corner"
    assert sum(flow.get("count", 1) for flow in tree["flows"]) == 8
    settings = [case.setting for case in EXPERIMENTS["pink-multi"].cases(False, 1)]
    assert settings == [*REALLOCATIONS, *(f"{mode}-two" for mode in REALLOCATIONS)]


def test_section_6_5_goes_from_080_to_100_on_both_links() -> None:
    settings = [case.setting for case in EXPERIMENTS["pink-c"].cases(False, 1)]
    assert settings == [f"{link}-{0.8 + 0.01 * k:.2f}" for link in ("dsl", "sat") for k in range(21)]
    tree = scenario("pink-c", Case("pink", 4, 1, setting="sat-0.93"))
    assert (tree["aqm"]["c"], tree["topology"]["rate"], tree["topology"]["limit"]) == (0.93, "4Mbit/s", "350kB")


def test_the_emergency_network_is_that_of_section_3_2_3() -> None:
    tree = scenario("pink-ppdr", Case("red", 4, 1, setting="joins"))
    satellite = tree["topology"]["links"][0]
    assert (satellite["rate"], satellite["delay"], satellite["limit"]) == ("4Mbit/s", "350ms", "350kB")
    assert satellite["aqm"] == {"name": "red"}
    assert (tree["topology"]["access_rate"], tree["topology"]["access_delay"]) == ("4Mbit/s", "5ms")
    assert (tree["tcp"]["cc"], tree["duration"], tree["flows"][0]["start_step"]) == ("cubic", "100s", "5s")
    files = scenario("pink-ppdr", Case("pink", 32, 1, setting="files"))
    assert (files["flows"][0]["size"], files["flows"][0]["count"]) == ("5MB", 32)


def test_theorem_1_allows_the_bandwidth_delay_product() -> None:
    # 100 ms and 4 x 1.45 ms of propagation; 1052 B and 52 B at 10 Mbit/s, the rest of sending at 1 Gbit/s is small.
    rtt_s = 0.1058 + 8 * 1104 / 10e6
    assert pytest.approx(10e6 / 8 * rtt_s, abs=50) == THEOREM_1_BYTES
    tree = scenario("pink-limits", Case("pink", 64, 1, setting="bursts-literal"))
    assert tree["invariants"] == {"max_queue": f"{THEOREM_1_BYTES}B", "no_drops": True}


def test_a_flood_of_1000_syns_takes_416_kbit_per_second() -> None:
    assert 1000 * SYN_BYTES * 8 == 416_000
    tree = scenario("pink-flood", Case("pink", 8, 1, setting="always-1000"))
    assert (tree["topology"]["rate"], tree["aqm"]["sampling"]) == ("100Mbit/s", "always")
    assert float(tree["topology"]["delay"].removesuffix("ms")) + 2 * 2.5 == 50
    assert tree["flows"][1]["start"] == tree["warmup"] == f"{FLOOD_FROM_S}s"
    assert [(f["kind"], f.get("count"), f.get("per_second")) for f in tree["flows"]] == [
        ("bulk", 8, None),
        ("synflood", None, 1000),
    ]


def test_what_a_bad_flow_leaves_unused() -> None:
    # Two flows share 10: 5 and 2 of 5. Four: 3 x 2.5 and 2. Five: 2 each.
    assert [predicted_use(n) for n in (1, 2, 4, 5, 8)] == pytest.approx([1, 0.7, 0.95, 1, 1])
    # Four of which two are bad: 2.5, 2, 0.5 and 2.5.
    assert predicted_use(4, "off-two") == pytest.approx(0.75)


def test_max_min_shares_by_hand() -> None:
    assert sharing.max_min(10, [9, 9]) == [5, 5]
    assert sharing.max_min(9.5, [9.5, 1.9]) == pytest.approx([7.6, 1.9])
    assert sharing.max_min(9.5, [9.5, 1.9, 9.5, 9.5, 9.5]) == pytest.approx([1.9] * 5)


def outcome(flows: list[tuple[float, float | None]], rates: list[list[int]], duration_s: float = 10.0) -> Outcome:
    """A run with these starts and completion times and kbit/s, at round trips of 100 ms."""
    told = [{"start_s": s, "completion_s": e, "rtt_ms": {"min": 100.0}} for s, e in flows]
    series = Series(tuple(map(tuple, rates)), {})
    return Outcome(Case("pink", len(flows), 1), "newreno", {"duration_s": duration_s, "flows": told}, 0.0, series)


def test_phases_begin_where_flows_come_and_go() -> None:
    found = sharing.phases(outcome([(0.0, 6.5), (3.0, None)], [[0] * 10, [0] * 10]))
    assert [(p.begin_s, p.end_s, p.active, p.joined) for p in found] == [
        (0.0, 3.0, (0,), True),
        (3.0, 6.5, (0, 1), True),
        (6.5, 10.0, (1,), False),
    ]
    assert found[1].judged == range(4, 6)  # from 3.3 s on, whole seconds only


def test_shares_are_settled_after_the_last_second_that_misses() -> None:
    run = outcome([(0.0, None), (0.0, None)], [[0, 90, 80, 100, 96] + [100] * 5, [50] * 10])
    (phase,) = sharing.phases(run)
    assert run.series is not None
    assert sharing.settle_s(run.series, phase, [100, 50]) == 3.0
    assert sharing.settle_s(run.series, phase, [100, 100]) is None
    assert jain([1, 1, 1, 1]) == 1.0


def test_flows_are_steady_once_they_stay_near_the_mean_they_end_with() -> None:
    # The last ten seconds give 100; 90 and 96 are near it, 80 is not.
    run = outcome([(0.0, None)], [[0, 90, 80, 100, 96] + [100] * 20], duration_s=25.0)
    (phase,) = sharing.phases(run)
    assert phase.tail == range(15, 25)
    assert run.series is not None
    assert sharing.converge_s(run.series, phase) == 3.0
    late = outcome([(0.0, None)], [[100] * 20 + [80] + [100] * 4], duration_s=25.0)
    assert late.series is not None
    assert sharing.converge_s(late.series, phase) is None


def test_jains_index() -> None:
    assert jain([1, 1, 1, 1]) == 1.0
    assert jain([1, 0, 0, 0]) == 0.25


def test_series_are_stored_as_lines_and_read_back() -> None:
    series = Series(((0, 12, 9500), (3, 4, 5)), {"dsl": (1, 2, 3)})
    assert series.to_json()["flows_kbps"] == ["0 12 9500", "3 4 5"]
    assert Series.from_json(json.loads(json.dumps(series.to_json()))) == series
    assert series.total() == [3, 16, 9505]


# Those with flow queues have claims that cannot be run, and tests of their own.
@pytest.mark.parametrize("name", [experiment.name for experiment in LISTED if not experiment.name.startswith("fq-")])
def test_the_quick_form_is_complete(quick: Any, name: str) -> None:
    printed, out = quick(name)
    experiment = EXPERIMENTS[name]
    assert printed["name"] == name
    assert len(printed["runs"]) == len(list(experiment.cases(quick=True, seeds=1)))
    assert {"aqm", "flows", "cc", "seed", "summary"} <= printed["runs"][0].keys()
    not_run = {claim["id"] for claim in printed["claims"] if claim["verdict"] == "not-run"}
    assert not_run <= {"lindrop.lindrop-draws-no-random-numbers"}, "it compares seeds, and the quick form has one"
    assert all(claim["reason"] for claim in printed["claims"])
    assert {file.stem for file in (out / "figures").glob("*.svg")} == experiment.figures.keys()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == len(experiment.figures)
    found = load(out)
    assert rundir.dump(found.to_json()) == (out / RESULTS).read_text(encoding="utf-8")


def test_pink_completes_four_round_trips_first(verdicts: Any) -> None:
    found = verdicts("pink-rtt")
    assert found["pink-completes-all"] == "holds"
    assert found["others-complete-later"] == "holds"


def test_reallocation_gives_back_what_the_bad_flow_leaves(verdicts: Any) -> None:
    found = verdicts("pink-multi")
    assert found["loss-is-that-of-arithmetic"] == "holds"
    assert found["reallocation-uses-the-link"] == "holds"
    assert found["max-min-uses-the-link"] == "holds"


def test_c_from_092_fills_the_link_and_up_to_097_keeps_round_trips(verdicts: Any) -> None:
    found = verdicts("pink-c")
    assert found["throughput-full-from-092"] == "holds"
    assert found["rtt-near-base-on-dsl"] == "holds"
    assert found["rtt-rises-only-near-the-end"] == "holds"


def test_files_over_the_satellite_are_through_first_with_pink(verdicts: Any) -> None:
    found = verdicts("pink-ppdr")
    assert found["pink-completes-files-first"] == "holds"
    assert found["pink-is-fair-over-distances"] == "holds"


def test_dithering_and_reserving_and_the_bound(verdicts: Any) -> None:
    found = verdicts("pink-limits")
    # As arithmetic says: an exact 1448 B window of 1.36 segments, and senders that send one.
    assert found["windows-of-equation-1-use-the-link"] == "fails"
    assert found["strict-senders-lose-the-fraction"] == "holds"
    assert found["windows-that-dither-use-the-link"] == "holds"
    assert found["reserved-traffic-does-no-harm"] == "holds"
    assert found["queue-stays-below-the-bound"] == "holds"


def test_a_flood_costs_what_its_syns_take(verdicts: Any) -> None:
    found = verdicts("pink-flood")
    assert found["who-transmits-is-counted"] == "holds"
    assert found["every-syn-counted-does-harm"] == "holds"
    assert found["a-flood-makes-no-drops-where-who-transmits-counts"] == "holds"


def test_a_queue_above_the_bound_would_stop_the_run(penstock: Command, tmp_path: Path) -> None:
    tree = EXPERIMENTS["pink-limits"].tree(Case("pink", 64, 1, setting="bursts-literal"), quick=True)
    tree["invariants"]["max_queue"] = f"{THEOREM_1_BYTES * 9 // 10}B"
    (tmp_path / "bound.toml").write_text(to_toml(tree))
    done = penstock("run", "bound.toml", "--json")
    assert done.returncode == 1
    assert "queue" in done.stderr
