"""The matrix of congestion controls: every pair is there, shares are what they are said to be."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from penstock.papers.friendliness.figures import _share
from penstock.papers.friendliness.runs import CONTROLS, name_of, pair_of, share_of_first
from penstock.reproduce import EXPERIMENTS, Case, load

FRIENDLINESS = EXPERIMENTS["friendliness"]
QUEUES = ("droptail", "codel")


def test_every_pair_of_its_controls() -> None:
    cases = list(FRIENDLINESS.cases(quick=False, seeds=1))
    assert len(cases) == len(QUEUES) * 14 * 15 // 2
    pairs = {frozenset(pair_of(case.setting)) for case in cases}
    assert pairs == {frozenset((a, b)) for a in CONTROLS for b in CONTROLS}


def test_two_flows_of_each_over_ten_megabit_and_a_tenth_of_a_second() -> None:
    for queue in QUEUES:
        tree = tomllib.loads(FRIENDLINESS.scenario(Case(queue, 4, 1, setting="cubic-bbr"), False).text)
        assert [(flow["cc"], flow["count"]) for flow in tree["flows"]] == [("cubic", 2), ("bbr", 2)]
        topology = tree["topology"]
        assert topology["rate"] == "10Mbit/s"
        assert 2 * (int(topology["delay"][:-2]) + 2 * int(topology["access_delay"][:-2])) == 100
        assert int(topology["limit"].removesuffix("kB")) * 1e3 == 10e6 / 8 * 0.1, "what the path holds"
        assert tree["aqm"] == ({"name": "codel", "ecn": True} if queue == "codel" else {"name": "droptail"})


def test_the_order_of_a_pair_does_not_matter() -> None:
    assert name_of("bbr", "newreno") == name_of("newreno", "bbr") == "newreno-bbr"


def test_a_share_by_hand() -> None:
    flows = [{"delivered_bytes": n} for n in (10, 20, 30, 40)]
    assert share_of_first({"flows": flows}) == 0.3
    assert share_of_first({"flows": [{"delivered_bytes": 0}] * 4}) == 0.0


def test_shares_mirror_each_other(quick: Any) -> None:
    evidence = load(quick("friendliness")[1])
    for queue in QUEUES:
        assert _share(evidence, queue, "vegas", "newreno") == pytest.approx(
            1 - _share(evidence, queue, "newreno", "vegas")
        )
    assert _share(evidence, "codel", "bbr", "vegas") != _share(evidence, "codel", "bbr", "vegas"), "not run: no number"


def test_equal_flows_share_about_equally(quick: Any) -> None:
    evidence = load(quick("friendliness")[1])
    for queue in QUEUES:
        for cc in ("newreno", "cubic"):
            assert 0.35 < _share(evidence, queue, cc, cc) < 0.65


def test_the_quick_form_decides_every_claim(quick: Any) -> None:
    printed, out = quick("friendliness")
    experiment = EXPERIMENTS["friendliness"]
    assert len(printed["runs"]) == len(list(experiment.cases(quick=True, seeds=1)))
    assert {claim["verdict"] for claim in printed["claims"]} <= {"holds", "partly", "fails"}
    assert {run["cc"] for run in printed["runs"] if run["setting"] == "newreno-cubic"} == {"newreno and cubic"}
    assert {run["cc"] for run in printed["runs"] if run["setting"] == "newreno-newreno"} == {"newreno"}
    assert (out / "figures" / "friendliness.svg").is_file()
    json.dumps(printed)
