"""The scenario of document 002, section 4.2.3.3, between hosts: what it says, and what its quick form tells."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from penstock.papers._shared.hfs import ALONE, FLOWS, KNOWING
from penstock.papers._shared.schedulers import losses
from penstock.papers.hfs_testbed.runs import RESERVED_BPS, arrives, least_of_good
from penstock.reproduce import EXPERIMENTS, Case
from penstock.units import number

TESTBED = EXPERIMENTS["hfs-testbed"]


def scenario(aqm: str, setting: str) -> dict[str, Any]:
    """A run, read back from its text."""
    return tomllib.loads(TESTBED.scenario(Case(aqm, FLOWS, 1, setting=setting), False).text)


def test_the_scenario_is_that_of_section_4_2_3_3() -> None:
    found = scenario("hfs", "q-100")
    topology, flows = found["topology"], found["flows"]
    assert topology["rate"] == "54Mbit/s"
    assert topology["stations"] == pytest.approx([10 ** (-4 * i / 19) for i in range(20)], rel=1e-8)
    assert topology["stations"] == pytest.approx(losses(), rel=1e-8)
    assert [flow["count"] for flow in flows] == [20, 20, 60]
    assert found["aqm"] == {
        "name": "hfs",
        "flows": 100,
        "weights": "20::20,10::20,1::60",
        "class_limit": "10p",
        "good_loss": 0.92,
        "buffer": "100p",
    }
    # Half of the time each flow sends; its mean is twice its part of the link by weight.
    means = [number(flow["rate"]) / 2 for flow in flows]
    assert means == pytest.approx([2 * 54e6 * weight / 660 for weight in (20, 10, 1)], rel=2e-3)
    assert pytest.approx(54e6 * 20 / 660) == RESERVED_BPS


def test_the_threshold_is_a_weight_of_80() -> None:
    knowing = scenario(KNOWING, ALONE)["aqm"]
    assert knowing["good_loss"] == pytest.approx(1 - 80 / 1000)
    assert "buffer" not in knowing


def test_measures_by_hand() -> None:
    assert arrives({"bottlenecks": [{"lost": 130, "packets_all": 1000}]}) == 0.87
    # Each gets what is reserved for it but what its station loses; one in good condition only 90 % of that, and one in
    # bad condition nothing.
    payload = RESERVED_BPS * 1472 / 1500
    flows = [{"goodput_bps": payload * (1 - loss)} for loss in losses()]
    flows[7]["goodput_bps"] *= 0.9
    flows[0]["goodput_bps"] = 0.0
    assert least_of_good({"flows": flows}, losses()) == pytest.approx(0.9)


def test_hosts_see_what_tempest_saw(verdicts: Any) -> None:
    found = verdicts("hfs-testbed")
    assert "not-run" not in found.values()
    assert found["without-a-buffer-hfs-delivers-what-its-first-scheduler-does"] == "holds"
    assert found["more-arrives-with-a-larger-buffer"] == "holds"
    assert found["from-a-hundred-packets-on-hfs-delivers-more-than-the-integrated-scheduler"] == "holds"
    assert found["flows-in-good-condition-get-what-is-reserved"] == "holds"
