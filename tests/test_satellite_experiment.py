"""Section 2.2.2 of document 002: the scenarios are those of the document, and the claims are decided."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from penstock.papers.tcp_satellite import measures
from penstock.reproduce import EXPERIMENTS, Case, Outcome, Series


def scenario(setting: str, flows: int) -> dict[str, Any]:
    """What a case runs, read back from its text."""
    return tomllib.loads(EXPERIMENTS["tcp-satellite"].scenario(Case("droptail", flows, 1, setting=setting), False).text)


def test_section_2_2_2_1_has_1_mbit_300_ms_and_two_buffers() -> None:
    large, standard = scenario("newreno-large", 3), scenario("cubic-standard", 3)
    assert (large["topology"]["rate"], large["topology"]["delay"], large["topology"]["limit"]) == (
        "1Mbit/s",
        "300ms",
        "4MB",
    )
    assert standard["topology"]["limit"] == "75kB"  # 1 Mbit/s x 600 ms
    assert (large["tcp"]["cc"], standard["tcp"]["cc"]) == ("newreno", "cubic")
    tcp = large["tcp"]
    assert (tcp["mss"], tcp["initial_window"], tcp["initial_ssthresh"]) == ("500B", 10, "5000B")


def test_figure_2_9_has_six_controls_three_seconds_apart() -> None:
    tree = scenario("six-large", 6)
    assert [flow["tcp"]["cc"] for flow in tree["flows"]] == [
        "noordwijk",
        "cubic",
        "newreno",
        "hybla",
        "highspeed",
        "bic",
    ]
    assert [flow["start"] for flow in tree["flows"]] == ["0s", "3s", "6s", "9s", "12s", "15s"]
    assert tree["topology"]["rate"] == "2Mbit/s"


def test_what_flows_share_is_counted_while_all_are_there() -> None:
    # The second begins after two seconds, the first ends after four.
    told = [{"start_s": 0.0, "completion_s": 4.0}, {"start_s": 2.0, "completion_s": None}]
    series = Series(((9, 9, 3, 3, 0), (0, 0, 1, 1, 9)), {})
    outcome = Outcome(Case("droptail", 2, 1), "newreno", {"flows": told, "duration_s": 5.0}, 0.0, series)
    assert measures.together(outcome) == range(2, 4)
    assert measures.rates_kbps(outcome, measures.together(outcome)) == [3, 1]
    assert measures.jain_together(outcome) == pytest.approx(16 / 20)


def test_every_claim_is_decided(quick: Any) -> None:
    printed, out = quick("tcp-satellite")
    assert len(printed["runs"]) == len(list(EXPERIMENTS["tcp-satellite"].cases(quick=True, seeds=1)))
    assert "not-run" not in {claim["verdict"] for claim in printed["claims"]}
    assert {file.stem for file in (out / "figures").glob("*.svg")} == EXPERIMENTS["tcp-satellite"].figures.keys()


def test_tcp_wastes_the_link_and_shares_it_badly(verdicts: Any) -> None:
    found = verdicts("tcp-satellite")
    for claim in ("slow-growth-wastes-the-link", "six-controls-are-unfair", "noordwijk-needs-a-large-buffer"):
        assert found[claim] == "holds", claim
    assert found["the-third-flow-loses-much"] == "fails"  # nothing is dropped in 4 MB
