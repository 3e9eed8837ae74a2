"""What docs/algorithms/weir.md promises, on testbeds that end within a second."""

from __future__ import annotations

from typing import Any

import penstock
import pytest

PACKET_MS = 1.2  # 1500 B at 10 Mbit/s


def run(
    aqm: Any, flows: list[dict[str, Any]], rate: str = "10Mbit/s", delay: str = "19ms", **more: Any
) -> dict[str, Any]:
    topology = {"kind": "dumbbell", "rate": rate, "delay": delay, "limit": "250kB", "access_delay": "0.5ms"}
    scenario = {"duration": "20s", "warmup": "5s", "topology": topology, "tcp": {"profile": "linux"}, "seed": 1}
    discipline = {"name": aqm} if isinstance(aqm, str) else aqm
    return penstock.run({**scenario, "aqm": discipline, "flows": flows, **more}).summary


def bulk(count: int = 1, **keys: Any) -> dict[str, Any]:
    return {"kind": "bulk", "count": count, "start_spread": "1s", **keys}


CALL = {"kind": "voip", "start": "2s"}


def added(summary: dict[str, Any], path_ms: float = 20.0) -> float:
    """By how much a call is delayed beyond the path, in ms, 99th percentile."""
    slow = next(flow["voip"]["delay_ms"]["p99"] for flow in summary["flows"] if "voip" in flow)
    return float(slow) - path_ms


def drops(summary: dict[str, Any]) -> int:
    queue = summary["bottlenecks"][0]
    return int(queue["drops_overflow"]) + int(queue["drops_aqm"])


def test_hosts_have_the_same_whatever_their_number_of_connections() -> None:
    flows = [bulk(1, node="a"), bulk(4, node="b"), bulk(16, node="c"), {**CALL, "node": "d"}]
    summary = run("weir", flows, rate="20Mbit/s")
    rates = [flow["goodput_bps"] for flow in summary["flows"][:21]]
    hosts = [rates[0], sum(rates[1:5]), sum(rates[5:])]
    assert min(hosts) >= 0.94 * max(hosts), hosts
    assert drops(summary) == 0
    assert summary["bottlenecks"][0]["utilization"] >= 0.97
    connections = [sum(part) for part in ([rates[0]], rates[1:5])]
    without = run({"name": "weir", "without": ["hosts"]}, flows, rate="20Mbit/s")["flows"]
    assert without[0]["goodput_bps"] < 0.3 * connections[0], "by connections the first host has a part of 21"


@pytest.mark.parametrize("delay", ["1.5ms", "0.05ms"])
def test_a_host_with_more_flows_than_segments_has_no_more(delay: str) -> None:
    flows = [bulk(1, node="a"), bulk(16, node="b"), {**CALL, "node": "d"}]
    summary = run("weir", flows, delay=delay)
    rates = [flow["goodput_bps"] for flow in summary["flows"][:17]]
    assert 0.85 <= rates[0] / sum(rates[1:]) <= 1.18, rates
    assert drops(summary) == 0
    assert added(summary, float(delay[:-2]) + 1) <= 2 * PACKET_MS + 1


@pytest.mark.parametrize("count", [8, 64, 200])
def test_a_call_waits_for_two_packets_beside_any_number_of_flows(count: int) -> None:
    summary = run("weir", [bulk(count), CALL], delay="49ms")
    assert added(summary, 50.0) <= 2 * PACKET_MS + 1
    if count < 64:
        assert drops(summary) == 0


def test_tcp_loses_nothing_and_uses_a_long_path() -> None:
    summary = run("weir", [bulk(4), CALL], rate="4Mbit/s", delay="349ms", duration="120s", warmup="20s")
    assert drops(summary) == 0
    assert summary["bottlenecks"][0]["utilization"] >= 0.97


def test_short_transfers_are_as_quick_as_without_windows_and_lose_nothing() -> None:
    flows = [bulk(), {"kind": "web", "per_second": 60, "mean_size": "10kB", "max_size": "500kB"}, CALL]
    weir, fair = run("weir", flows, delay="49ms"), run("fq-codel", flows, delay="49ms")
    page = {
        name: found["flows"][1]["transfers"]["completion_ms"]["p50"] for name, found in (("weir", weir), ("fair", fair))
    }
    assert page["weir"] <= 1.05 * page["fair"]
    assert weir["bottlenecks"][0]["utilization"] >= fair["bottlenecks"][0]["utilization"]
    assert drops(weir) <= 0.001 * weir["bottlenecks"][0]["packets_all"]


def test_flows_whose_windows_nobody_can_write_have_short_queues() -> None:
    flows = [bulk(2, opaque=True), bulk(2), CALL]
    weir, cake, pink = (run(aqm, flows) for aqm in ("weir", "cake", {"name": "pink", "queue": "fq-others"}))
    trip = {id(found): [flow["rtt_ms"]["p90"] for flow in found["flows"][:4]] for found in (weir, cake, pink)}
    assert max(trip[id(weir)][:2]) <= 1.1 * max(trip[id(cake)][:2])
    assert max(trip[id(pink)][:2]) > 2 * max(trip[id(cake)][:2]), "what windows alone leave behind"
    assert drops(weir) <= drops(cake)
    report = weir["bottlenecks"][0]["algorithm"]
    assert report["started"] == 2, "an opaque flow shows no SYN"


def test_a_rate_that_nobody_tells_is_seen() -> None:
    change = {"link": "bottleneck", "at": "8s", "rate": "4Mbit/s", "told": False}
    waits = {}
    for name, aqm in (("with", "weir"), ("without", {"name": "weir", "without": ["pace"]})):
        waits[name] = run(aqm, [bulk(4), CALL], changes=[change])["bottlenecks"][0]["queue_delay_ms"]["p90"]
    assert waits["with"] < 15 < 40 < waits["without"], waits


def test_paths_of_several_lengths_leave_the_link_idle_no_more_than_with_cake() -> None:
    flows = [bulk(access_delay=f"{delay}ms") for delay in (0.5, 10, 25, 60, 120)]
    found = {
        name: run(aqm, flows, delay="3.5ms", duration="60s")["bottlenecks"][0]
        for name, aqm in (("weir", "weir"), ("cake", "cake"), ("fixed", {"name": "weir", "without": ["gain"]}))
    }
    use = {name: bottleneck["utilization"] for name, bottleneck in found.items()}
    assert use["weir"] >= 0.97 > 0.95 > use["fixed"], use
    assert found["weir"]["queue_delay_ms"]["p90"] < 25, "at most a fourth more is given out than the link holds"


def test_without_a_floor_a_call_waits_for_200_others() -> None:
    flows = [bulk(200), CALL]
    assert added(run({"name": "weir", "without": ["floor"]}, flows)) > 5 * added(run("weir", flows))


@pytest.mark.parametrize("part", ["windows", "hosts", "common", "others", "young"])
def test_each_part_does_something(part: str) -> None:
    web = {"kind": "web", "per_second": 10, "mean_size": "10kB", "max_size": "100kB"}
    flows = [bulk(60, node="a"), bulk(30), bulk(2, opaque=True), web, CALL]
    whole, less = run("weir", flows), run({"name": "weir", "without": [part]}, flows)
    assert whole["flows"] != less["flows"]


def test_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(penstock.ScenarioError, match="parts"):
        run({"name": "weir", "without": ["parts"]}, [bulk()])


def test_opaque_is_for_flows_of_tcp() -> None:
    with pytest.raises(penstock.ScenarioError, match="has no TCP"):
        run("weir", [{"kind": "cbr", "rate": "1Mbit/s", "opaque": True}])
