"""Runs one scenario in both programs, in turn, and keeps the least CPU time of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import engine, ns3
from penstock.bench.cases import Case

AT_LEAST_S, MOST_RUNS = 0.1, 20  # least CPU time and largest number of Penstock's runs in a turn


@dataclass(frozen=True)
class Row:
    """The cost of one scenario in both programs."""

    name: str
    flows: int
    duration_s: float
    packets: int
    events: int
    utilization: float
    drops: int
    cpu_s: float
    peer: ns3.Run | None
    peer_failure: str | None

    @property
    def ns_per_packet(self) -> float:
        """CPU time per data segment, in ns."""
        return self.cpu_s * 1e9 / max(self.packets, 1)

    @property
    def ratio(self) -> float | None:
        """The cost per packet of ns-3 divided by that of Penstock; `None` if one of them has no result."""
        if self.peer is None or not self.peer.packets or not self.ns_per_packet:
            return None
        return self.peer.ns_per_packet / self.ns_per_packet

    def to_json(self) -> dict[str, Any]:
        """Returns the row as plain values for JSON."""
        peer = self.peer
        return {
            "name": self.name,
            "flows": self.flows,
            "duration_s": self.duration_s,
            "packets": self.packets,
            "events": self.events,
            "utilization": self.utilization,
            "drops": self.drops,
            "cpu_s": self.cpu_s,
            "ns_per_packet": self.ns_per_packet,
            "peer": f"ns-3 {peer.version}" if peer else None,
            "peer_build": peer.build if peer else None,
            "peer_packets": peer.packets if peer else None,
            "peer_events": peer.events if peer else None,
            "peer_utilization": peer.utilization if peer else None,
            "peer_drops": peer.drops if peer else None,
            "peer_cpu_s": peer.cpu_s if peer else None,
            "peer_ns_per_packet": peer.ns_per_packet if peer else None,
            "ratio": self.ratio,
            "peer_failure": self.peer_failure,
        }


def measure(case: Case, program: Path | None, repeat: int, say: Callable[[str], None]) -> Row:
    """Runs both programs in turn, so that disturbances of the machine affect both, and keeps the least times."""
    ours: list[engine.Result] = []
    theirs: list[ns3.Run] = []
    failure: str | None = None
    for turn in range(1, repeat + 1):
        say(f"{case.name}, {turn} of {repeat}: Penstock, {case.duration_s:g} s simulated")
        ours.append(_fastest(case))
        if program is None or not case.with_peer or failure:
            continue
        say(f"{case.name}, {turn} of {repeat}: ns-3")
        try:
            theirs.append(ns3.run(program, case.tree))
        except ns3.PeerError as error:
            failure = str(error)
            say(f"{case.name}: ns-3: {failure}")
    least = min(ours, key=lambda result: result.cpu_s)
    peer = min(theirs, key=lambda run: run.cpu_s) if theirs and not failure else None
    return row(case, least.summary, least.cpu_s, peer, failure)


def _fastest(case: Case) -> engine.Result:
    """Returns the fastest of runs which together take at least `AT_LEAST_S`, since one short run may be disturbed."""
    runs = [engine.run(case.tree)]
    while sum(run.cpu_s for run in runs) < AT_LEAST_S and len(runs) < MOST_RUNS:
        runs.append(engine.run(case.tree))
    return min(runs, key=lambda run: run.cpu_s)


def row(case: Case, summary: dict[str, Any], cpu_s: float, peer: ns3.Run | None, failure: str | None) -> Row:
    """Creates a row of the table from the summary of a run."""
    bottleneck = summary["bottlenecks"][0]
    return Row(
        name=case.name,
        flows=len(summary["flows"]),
        duration_s=summary["duration_s"],
        packets=bottleneck["packets"],
        events=summary["events"],
        utilization=bottleneck["utilization"],
        drops=bottleneck["drops_overflow"] + bottleneck["drops_aqm"],
        cpu_s=cpu_s,
        peer=peer,
        peer_failure=failure,
    )
