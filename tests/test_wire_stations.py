"""`--on wire` with stations and classes: what emulators are told, and what becomes of packets for each station."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from conftest import on_wire as real
from penstock import engine, wire
from penstock.engine import ScenarioError
from penstock.scenario import Scenario
from penstock.wire import plan, routes

CELL = """\
duration = "6s"
[topology]
kind = "dumbbell"
rate = "4Mbit/s"
delay = "5ms"
stations = [0.0, 0.3, 1.0]
[aqm]
name = "double-drr"
flows = 3
stations = 3
buffer = "30p"
class_limit = "10p"
[[flows]]
kind = "cbr"
rate = "2Mbit/s"
packet_size = "972B"
count = 3
"""


def read(text: str) -> plan.Plan:
    return plan.read(Scenario(text, "cell.toml"), None, "wire", ["reno", "cubic"])


def test_emulators_are_told_of_stations_and_of_the_hosts_that_are_flows() -> None:
    found = read(CELL)
    assert found.numbers_flows and plan.config(found, 0)["link"]["stations"] == [0.0, 0.3, 1.0]
    assert not read(
        CELL.replace("stations = [0.0, 0.3, 1.0]\n", "").replace("double-drr", "fq-codel").split("flows = 3")[0]
        + CELL[CELL.index("[[flows]]") :]
    ).numbers_flows
    assert routes.numbered(found) == [{"address": f"10.200.0.{host}"} for host in (1, 2, 3)]


def test_a_flow_is_the_host_on_the_right_whoever_sends_and_whoever_shares_the_left() -> None:
    flows = """[[flows]]
kind = "bulk"
node = "a"
[[flows]]
kind = "bulk"
node = "a"
class = 7
[[flows]]
kind = "bulk"
direction = "reverse"
class = 0
"""
    found = read(CELL[: CELL.index("[[flows]]")] + flows)
    assert routes.numbered(found) == [
        {"address": "10.200.0.1"},
        {"address": "10.200.0.2", "class": 7},
        {"address": "10.200.0.3", "class": 0},
    ]
    left, right = zip(*(routes.addresses(found, flow) for flow in found.flows), strict=True)
    assert left[0] == left[1] and len(set(right)) == 3


def test_new_losses_come_at_their_times_and_channels_begin_with_the_run() -> None:
    moving = '{ technology = "wifi", near_m = 10, far_m = 50, period = "4s" }'
    steps = '[[changes]]\nlink = "bottleneck"\nat = "1s"\nevery = "2s"\nstations = [0.5, 0.5, 0.25]\n'
    found = read(CELL.replace("0.3, 1.0]", f"0.3, {moving}]") + steps)
    told = [(change.at_s, change.values["stations"]) for change in found.changes if "stations" in change.values]
    assert [at for at, _ in told] == [0.0, 1.0, 3.0, 5.0]
    assert told[0][1][2]["period"] == "4s"
    assert all(losses == [0.5, 0.5, 0.25] for _, losses in told[1:])
    assert not any("stations" in change.values for change in read(CELL).changes), "constant losses begin by themselves"


def test_states_that_no_emulator_follows_are_refused_at_their_key() -> None:
    fast = '{ good = 0, bad = 1, mean_good = "999us", mean_bad = "1s" }'
    with pytest.raises(ScenarioError, match="lasts 1 ms or more") as refused:
        read(CELL.replace("[0.0, 0.3, 1.0]", f"[0.0, 0.3, {fast}]"))
    assert "cell.toml:6:12\n" in str(refused.value)
    assert read(CELL.replace("[0.0, 0.3, 1.0]", f"[0.0, 0.3, {fast.replace('999us', '1ms')}]")).changes


def _arrived(summary: Mapping[str, Any]) -> list[int]:
    return [flow["delivered_bytes"] for flow in summary["flows"]]


@real
def test_packets_are_lost_with_the_loss_of_their_station() -> None:
    """Two thirds of what is offered fit, so each flow has a third of the link; its station gets what is not lost."""
    on_wire = wire.play(Scenario(CELL, "cell.toml")).summary
    simulated = engine.simulate(Scenario(CELL, "cell.toml")).summary
    link = on_wire["bottlenecks"][0]
    assert _arrived(on_wire)[2] == 0 and link["lost"] > 0
    for ours, theirs in zip(_arrived(on_wire)[:2], _arrived(simulated)[:2], strict=True):
        # About 1000 packets of a flow are sent: five standard deviations of the losses are 7 % of what arrives.
        assert math.isclose(ours, theirs, rel_tol=0.1), (on_wire["flows"], simulated["flows"])


@real
def test_a_change_of_the_stations_is_one_of_the_wire() -> None:
    swap = '[[changes]]\nlink = "bottleneck"\nat = "3s"\nstations = [1.0, 1.0, 0.0]\n'
    result = wire.play(Scenario(CELL + swap, "cell.toml"))
    first, _, last = _arrived(result.summary)
    assert first > 0 and last > 0
    rows = result.tables["flow_seconds"].to_pylist()
    after = {row["flow"]: row["goodput_bps"] for row in rows if row["t_s"] > 5.5}
    assert after[0] == 0 and after[2] > 0, rows


@real
def test_classes_are_those_of_the_scenario() -> None:
    """Strict priority: the class that comes first has all it wants, though its flow is the last of the file."""
    text = (
        CELL.split("stations = [")[0]
        + """\
[aqm]
name = "prio"
flows = 2
weights = "2::1,1::1"
[[flows]]
kind = "cbr"
rate = "6Mbit/s"
packet_size = "972B"
class = 1
[[flows]]
kind = "cbr"
rate = "3Mbit/s"
packet_size = "972B"
class = 0
"""
    )
    on_wire = _arrived(wire.play(Scenario(text, "cell.toml")).summary)
    simulated = _arrived(engine.simulate(Scenario(text, "cell.toml")).summary)
    assert simulated[1] > 2.5 * simulated[0]
    assert all(map(partial(math.isclose, rel_tol=0.05), on_wire, simulated)), (on_wire, simulated)
