"""Document 002, sections 2.2, 2.3 and 3.1: scenarios are the document's, quick forms give what is promised."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from penstock.papers._shared.nodes import obedient
from penstock.papers.c2ml.runs import TCP_OPTIONS, short_transfers
from penstock.papers.qrm.claims import BOUND_KB
from penstock.reproduce import EXPERIMENTS, Case, Experiment, Listed

ALL_COOPERATION = [EXPERIMENTS[name] for name in ("c2ml", "qrm", "dybra", "cooperation")]
C2ML, QRM, DYBRA, _ = ALL_COOPERATION


def scenario(experiment: Experiment, case: Case, quick: bool = False) -> dict[str, Any]:
    """What a case runs, read back from its text."""
    return tomllib.loads(experiment.scenario(case, quick).text)


def test_section_2_2_2_1_has_300_ms_and_segments_of_500_bytes() -> None:
    tree = scenario(C2ML, Case("c2ml", 16, 1, setting="files-cubic"))
    topology = tree["topology"]
    assert (topology["rate"], topology["delay"], topology["limit"]) == ("2Mbit/s", "300ms", "4MB")
    assert (tree["tcp"]["mss"], tree["tcp"]["initial_window"], tree["tcp"]["c2ml"]) == ("500B", 10, "on")
    assert (tree["flows"][0]["size"], tree["flows"][0]["count"], tree["duration"]) == ("5MB", 16, "900s")
    assert tree["cooperation"] == {"link": "bottleneck"}


def test_without_c2ml_there_is_no_gateway_and_noordwijk_has_its_reference() -> None:
    tree = scenario(C2ML, Case("plain", 2, 1, setting="files-noordwijk"))
    assert "cooperation" not in tree and "c2ml" not in tree["tcp"]
    assert (tree["tcp"]["cc"], tree["tcp"]["initial_window"], tree["tcp"]["ack_every_segment"]) == (
        "noordwijk",
        20,
        True,
    )


def test_short_transfers_are_two_for_each_user_within_30_s() -> None:
    flows = short_transfers(32, 1.5, background=True)
    transfers = [flow for flow in flows if flow["kind"] == "transfer"]
    assert len(transfers) == 64 and {flow["size"] for flow in transfers} == {"1500kB"}
    assert all(0 <= float(flow["start"].removesuffix("s")) <= 30 for flow in transfers)
    assert 16 < len({flow["node"] for flow in transfers}) < 32, "drawn at random"
    assert flows[-1] == {"kind": "bulk", "count": 10, "node": "background"}
    assert short_transfers(32, 1.5, background=False) == transfers, "the same with every call"


def test_table_3_1_is_what_qrm_runs_in() -> None:
    tree = scenario(QRM, Case("qrm", 32, 1, setting="many-16"))
    topology = tree["topology"]
    assert (topology["rate"], topology["delay"], topology["limit"]) == ("20Mbit/s", "350ms", "1805kB")
    assert (topology["access_rate"], topology["access_delay"], tree["duration"]) == ("50Mbit/s", "1ms", "60s")
    assert [flow["count"] for flow in tree["flows"]] == [16, 16]
    assert [flow.get("tcp") for flow in tree["flows"]] == [None, {"c2ml": "off"}]
    assert tree["aqm"] == {"name": "qrm", "tolerance": 0.0}
    # 20 Mbit/s and 704.1 ms are 1760.25 kB; the link has room for more, and no invariant keeps the claim from failing.
    assert BOUND_KB < 1761 < 1805
    assert "invariants" not in tree
    assert obedient(Case("qrm", 32, 1, setting="many-16")) == 16


def test_half_of_the_clients_have_a_bad_time() -> None:
    tree = scenario(DYBRA, Case("dybra", 10, 1, setting="mix"))
    assert [flow["cc"] for flow in tree["flows"][:5]] == [flow["cc"] for flow in tree["flows"][5:]]
    assert len(tree["cooperation"]["nodes"]) == 5 and len(tree["changes"]) == 10
    bad = {change["link"] for change in tree["changes"]}
    assert bad == {node["csi"] for node in tree["cooperation"]["nodes"]}
    assert {(change["at"], change["rate"]) for change in tree["changes"]} == {("15s", "500kbit/s"), ("45s", "20Mbit/s")}
    assert tree["topology"]["links"][0]["limit"] == "875kB"


def test_section_2_3_3_has_the_tcp_of_ns_3_without_options_but_window_scaling() -> None:
    tcp = scenario(DYBRA, Case("plain", 10, 1, setting="mix"))["tcp"]
    assert (tcp["mss"], tcp["initial_window"], tcp["initial_ssthresh"]) == ("1000B", 10, "65535B")
    assert not any(tcp[option] for option in ("timestamps", "sack", "prr", "limited_transmit"))
    assert "receive_buffer" not in tcp, "143.88 MB are more than ten sockets of 128 kB can carry"


def test_what_section_2_2_4_4_leaves_open_is_run_in_every_combination() -> None:
    assert isinstance(C2ML, Listed)
    names = [setting.name for setting in C2ML.settings if setting.name.startswith("open-")]
    assert len(names) == 6 * 2 * 3 + len(TCP_OPTIONS)
    tree = scenario(C2ML, Case("plain", 64, 1, setting="open-noordwijk-standard-2"))
    assert (tree["tcp"]["cc"], tree["topology"]["rate"], tree["topology"]["limit"]) == ("noordwijk", "2Mbit/s", "150kB")
    assert tree["topology"]["access_rate"] == "2Mbit/s", "as in section 2.2.2.1"
    default = scenario(C2ML, Case("plain", 64, 1, setting="short-32-1.5"))
    assert (default["tcp"]["cc"], default["topology"]["rate"], default["topology"]["limit"]) == (
        "newreno",
        "4Mbit/s",
        "4MB",
    )


@pytest.mark.parametrize("experiment", ALL_COOPERATION, ids=lambda experiment: experiment.name)
def test_every_setting_is_a_scenario_of_its_own(experiment: Experiment) -> None:
    cases = list(experiment.cases(False, 1))
    assert len({experiment.scenario(case, False).text for case in cases}) == len(cases)


@pytest.mark.parametrize("experiment", ALL_COOPERATION, ids=lambda experiment: experiment.name)
def test_quick_forms_judge_every_claim_and_draw_every_figure(quick: Any, experiment: Experiment) -> None:
    printed, out = quick(experiment.name)
    assert len(printed["runs"]) == len(list(experiment.cases(quick=True, seeds=1)))
    assert all(claim["verdict"] != "not-run" and claim["reason"] for claim in printed["claims"])
    assert {file.stem for file in (out / "figures").glob("*.svg")} == experiment.figures.keys()


def test_c2ml_ends_transfers_on_time_and_keeps_the_queue_short(verdicts: Any) -> None:
    found = verdicts("c2ml")
    fair = ("worst-fairness-is-near-one", "newreno-becomes-rtt-fair", "three-nodes-share-evenly")
    alike = ("controls-behave-alike", "all-are-alike-with-the-same-receiver", "noordwijk-ends-a-little-sooner")
    short = ("noordwijk-halves-short-transfers", "bulk-flows-cost-one-budget", "table-2-7-needs-more-than-the-link-has")
    for claim in (*fair, *alike, *short, "cubic-ends-when-table-2-1-says", "queues-stay-short"):
        assert found[claim] == "holds", claim


def test_qrm_keeps_good_nodes_from_harm(verdicts: Any) -> None:
    found = verdicts("qrm")
    kept = ("theorem-2", "qrm-is-stable-with-many", "qrm-is-best-with-one-attacker", "floods-get-one-share-or-none")
    for claim in (*kept, "qrm-holds-the-attacker", "round-trips-stay-short"):
        assert found[claim] == "holds", claim


def test_dybra_hands_on_what_bad_channels_leave(verdicts: Any) -> None:
    found = verdicts("dybra")
    carried = ("dybra-fills-the-link", "c2ml-alone-does-not-adapt")
    for claim in (*carried, "dybra-makes-friends", "dybra-scales", "a-change-settles-in-n-steps"):
        assert found[claim] == "holds", claim


def test_pink_does_as_well_as_c2ml(verdicts: Any) -> None:
    found = verdicts("cooperation")
    attacked = ("pink-before-qrm-does-as-well-under-attack", "qrm-protects-both")
    for claim in ("pink-does-as-well-as-c2ml", *attacked, "dybra-uses-what-channels-leave"):
        assert found[claim] == "holds", claim
