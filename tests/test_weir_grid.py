"""The comparison of WEIR with others: testbeds are what their names say, and measures are those by hand."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from penstock.papers._shared import weir as columns
from penstock.papers.weir_drawn.losses import LIMITS, lost
from penstock.papers.weir_drawn.runs import COUNT, drawn
from penstock.papers.weir_drawn.runs import SETTINGS as DRAWN
from penstock.papers.weir_grid.runs import RATES, SETTINGS
from penstock.reproduce import EXPERIMENTS, Case, Outcome, reproduce
from penstock.reproduce import columns as table
from penstock.reproduce.settings import Listed

GRID = EXPERIMENTS["weir-grid"]


class Silent:
    """Shows nothing."""

    def begin(self, runs: int, reused: int, simulated_s: float) -> None: ...

    def advanced(self, seconds: float) -> None: ...

    def finished(self, label: str, cpu_s: float) -> None: ...


def tree(aqm: str, setting: str, quick: bool = False) -> dict[str, Any]:
    return GRID.tree(Case(aqm, 1, 1, setting=setting), quick)


def outcome(setting: str, flows: list[dict[str, Any]]) -> Outcome:
    return Outcome(Case("weir", 1, 1, setting=setting), "cubic", {"flows": flows, "bottlenecks": [{}]}, 0.0)


def test_every_testbed_has_a_call_and_each_discipline_and_each_part() -> None:
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS) == 24
    assert all(any(flow["kind"] == "voip" for flow in setting.change["flows"]) for setting in SETTINGS)
    parts = [tree(aqm, "near")["aqm"] for aqm in GRID.aqms if aqm.startswith("no ")]
    assert [part["without"] for part in parts] == [[aqm.removeprefix("no ")] for aqm in GRID.aqms if "no " in aqm]
    assert {part["name"] for part in parts} == {"weir"}
    assert tree("pink", "near")["aqm"] == {"name": "pink", "queue": "fq-others"}


def test_both_directions_have_the_discipline() -> None:
    for aqm in GRID.aqms:
        there = tree(aqm, "two-way")
        assert there["topology"]["reverse_aqm"] == there["aqm"]
    flows = [{"goodput_bps": rate * 1e6} for rate in (1, 1, 1, 1, 2, 2, 2, 3)]
    both, one = (next(one for one in SETTINGS if one.name == name) for name in ("two-way", "near"))
    assert columns.back({"flows": [*flows, {"goodput_bps": 1e5}]}, both) == 9.0, "the second four, without the call"
    assert math.isnan(columns.back({"flows": flows[:3]}, one)), "only ACKs"


def test_the_quick_form_is_a_fourth_of_the_time_with_what_is_usually_advised() -> None:
    quick = list(GRID.cases(quick=True, seeds=1))
    assert {case.aqm for case in quick} == {"weir", "cake", "fq-codel"}
    assert len({case.setting for case in quick}) == 20
    assert (tree("weir", "sat-4")["duration"], tree("weir", "sat-4", quick=True)["duration"]) == ("120s", "30s")


def test_the_rates_of_the_cell_are_the_walk_that_their_first_line_tells() -> None:
    r, rate = random.Random(7), 13.0
    head, _, *rows = Path(RATES).read_text().splitlines()
    assert "exp(N(0, 0.25))" in head
    for step, row in enumerate(rows):
        rate = min(25.0, max(1.0, rate * math.exp(r.gauss(0, 0.25))))
        assert row == f"{step / 10:.1f},{0.1 if r.random() < 0.01 else rate:.3f}"
    assert len(rows) == 1100


def test_measures_by_hand() -> None:
    voip = [{"kind": "voip", "cc": "", "voip": {"delay_ms": {"p99": p99}}} for p99 in (21.5, 25.0)]
    near = next(setting for setting in SETTINGS if setting.name == "near")
    assert columns.path_ms(near) == pytest.approx(0.95)
    assert columns.called({"flows": voip}, 20.0) == 5.0, "the worst call, beyond the path"
    assert math.isnan(columns.called({"flows": []}, 20.0))
    again = [{"cc": "cubic", "delivered_bytes": 1448 * 90, "retransmits": 10}, {"cc": "", "delivered_bytes": 10**9}]
    assert columns.again(outcome("near", again)) == 0.1, "of a hundred segments ten, and UDP does not count"
    pages = [{"kind": "web", "transfers": {"completion_ms": took}} for took in ({"p50": 7}, {"p50": None}, None)]
    times = [columns.page("p50", outcome("near", [one])) for one in pages]
    assert times == [7.0, math.inf, math.inf], "pages that never end are no missing value"
    l4s = [{"kind": "bulk", "cc": cc, "goodput_bps": rate} for cc, rate in (("cubic", 4), ("cubic", 6), ("prague", 5))]
    assert columns.prague_share(outcome("l4s", l4s)) == 0.5


def test_hosts_share_by_the_sum_of_their_transfers() -> None:
    hosts = next(setting for setting in SETTINGS if setting.name == "hosts")
    flows = [{"kind": "bulk", "goodput_bps": rate} for rate in [8.0] + [2.0] * 4 + [0.5] * 16]
    assert columns.by_hosts({"flows": [*flows, {"kind": "voip"}]}, hosts) == pytest.approx(1.0)
    flows[0]["goodput_bps"] = 0.0
    assert columns.by_hosts({"flows": [*flows, {"kind": "voip"}]}, hosts) == pytest.approx(2 / 3)


def test_another_release_has_other_scenarios_within_the_stated_ranges() -> None:
    assert len(DRAWN) == COUNT == 200
    assert [drawn(n, "1.0").label for n in range(20)] == [drawn(n, "1.0").label for n in range(20)]
    assert all(drawn(n, "1.0").label != drawn(n, "1.1").label for n in range(20))
    seen = set()
    for setting in DRAWN:
        mbps, rtt_ms = float(setting.change["topology.rate"][:-6]), 2 * columns.path_ms(setting)
        assert 1 <= mbps <= 200
        assert 1.9 <= rtt_ms <= 600.1
        assert int(setting.change["topology.limit"][:-1]) >= 64_000
        nodes = {flow["node"] for flow in setting.change["flows"] if flow["kind"] == "bulk"}
        assert 1 <= len(nodes) <= 6
        controls = [flow for flow in setting.change["flows"] if "tcp" in flow]
        seen |= {flow["tcp"]["cc"] + " opaque" * flow.get("opaque", False) for flow in controls}
    assert seen == {"cubic", "newreno", "bbr", "bbr3", "prague", "cubic opaque", "bbr3 opaque"}


def test_who_is_beyond_what_the_best_of_the_others_allows_loses() -> None:
    def of(measure: str, **values: float) -> dict[str, str]:
        return {one.aqm: one.by for one in lost("drawn-0", measure, LIMITS[measure], values, 10.0)}

    # Two packets of 1514 B at 10 Mbit/s take 2.42 ms: 3.42 ms are allowed whatever others have.
    assert of("call", weir=3.4, cake=1.0, fq=9.0) == {"fq": "9.00 times"}
    assert of("call", weir=10.0, cake=9.0, fq=9.6) == {"weir": "1.11 times", "fq": "1.07 times"}
    assert of("grid_use", weir=0.95, cake=0.99, fq=0.96) == {"weir": "4.0%", "fq": "3.0%"}
    assert of("again", weir=0.0009, cake=0.0, fq=0.02) == {"fq": "2.00%"}, "a thousandth is nothing"
    assert of("hosts", weir=0.979, cake=1.0, fq=0.5) == {"weir": "0.021", "fq": "0.500"}
    assert of("hosts", weir=0.985, cake=1.0, fq=0.999) == {}, "0.98 is enough"


def test_a_testbed_in_the_quick_form_has_its_columns(tmp_path: Path) -> None:
    assert isinstance(GRID, Listed)
    few = replace(GRID, settings=tuple(one for one in GRID.settings if one.name in ("near", "two-way")))
    evidence, complete = reproduce(few, tmp_path, quick=True, jobs=1, watcher=Silent())
    assert complete
    assert evidence is not None
    assert evidence.settings == ["two-way", "near"]
    rows = {(row.setting, row.aqm): dict(zip(GRID.columns, row.cells, strict=True)) for row in table.rows(evidence)}
    assert {setting: row["grid_back"] != "-" for (setting, _), row in rows.items()} == {"two-way": True, "near": False}
    for (setting, aqm), row in rows.items():
        assert float(row["grid_use"].rstrip("%")) > 80, (setting, aqm)
        assert 0 < float(row["call"]) < 20, (setting, aqm)
    assert float(rows["near", "cake"]["again"].rstrip("%")) > 1, "CAKE drops, as it must without windows"
    assert rows["near", "weir"]["again"] == "0.0%"
