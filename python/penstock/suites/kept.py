"""What is kept of one run: its summary, and the seconds of its first queue and of its groups of flows."""

from __future__ import annotations

import json
import math
import statistics
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.engine import RawTables
from penstock.fairness import jain
from penstock.suites.failed import Failed

Seconds = Sequence[float | None]
_LINK = (
    "name",
    "utilization",
    "goodput_bps",
    "throughput_bps",
    "packets_all",
    "bytes_all",
    "drops_overflow",
    "drops_aqm",
    "marks",
    "lost",
    "queue_delay_ms",
)
_FLOW = (
    "goodput_bps",
    "delivered_bytes",
    "completion_s",
    "retransmits",
    "timeouts",
    "rtt_ms",
    "transfers",
    "voip",
    "video",
)


@dataclass(frozen=True)
class Kept:
    """One run."""

    summary: Mapping[str, Any] = field(default_factory=dict)
    roles: Sequence[tuple[str, int]] = ()  # role and number of flows of each entry of [[flows]]
    throughput_bps: Seconds = ()  # of the first queue in each second
    delay_ms: Seconds = ()  # mean delay in the first queue in each second; None if no packet left it
    goodput_bps: Mapping[str, Seconds] = field(default_factory=dict)  # of each group in each second
    cpu_s: float = 0.0
    error: str = ""
    disturbed: Sequence[str] = field(default_factory=list)  # how the machine disturbed a run in real time

    @classmethod
    def of(
        cls,
        summary: Mapping[str, Any],
        raw: RawTables,
        roles: Sequence[tuple[str, int]],
        cpu_s: float,
        disturbed: Sequence[str] = (),
    ) -> Kept:
        """Takes it from a run."""
        columns = {name: _columns(raw[name]) for name in ("queue_seconds", "flow_seconds")}
        queue, flows = columns["queue_seconds"], columns["flow_seconds"]
        first = queue["queue"] == 0
        small = {
            "links": [{key: link[key] for key in _LINK} for link in summary["bottlenecks"]],
            "flows": [{key: flow[key] for key in _FLOW if key in flow} for flow in summary["flows"]],
            "duration_s": summary["duration_s"],
        }
        delays = [None if math.isnan(one) else round(one, 4) for one in queue["queue_delay_ms_mean"][first].tolist()]
        throughput = [round(one) for one in queue["throughput_bps"][first].tolist()]
        goodput = _groups(flows, roles, len(delays))
        return cls(small, list(roles), throughput, delays, goodput, cpu_s, disturbed=list(disturbed))

    def packed(self) -> bytes:
        """Returns the run as a record."""
        return zlib.compress(json.dumps(vars(self), ensure_ascii=False).encode(), 1)

    @classmethod
    def unpacked(cls, data: bytes) -> Kept:
        """Returns the run of a record."""
        return cls(**json.loads(zlib.decompress(data)))

    @property
    def links(self) -> Sequence[Mapping[str, Any]]:
        """The measured queues of the summary."""
        found: Sequence[Mapping[str, Any]] = self.summary["links"]
        return found

    @property
    def delay(self) -> float:
        """Mean delay in the first queue, in ms."""
        found = self.links[0]["queue_delay_ms"]["mean"]
        if found is None:
            raise Failed("no packet left the queue")
        return float(found)

    @property
    def goodput(self) -> float:
        """Payload per second over the first link, in bit/s."""
        return float(self.links[0]["goodput_bps"])

    def drop_share(self, link: int = 0) -> float:
        """The dropped packets as a part of those that came to a queue."""
        one = self.links[link]
        dropped = one["drops_overflow"] + one["drops_aqm"]
        return share(dropped, dropped + one["packets_all"], "no packet came to the queue")

    def flows(self, role: str) -> list[Mapping[str, Any]]:
        """Returns the flows with this role."""
        found, first = [], 0
        for name, count in self.roles:
            if name == role:
                found += self.summary["flows"][first : first + count]
            first += count
        if not found:
            raise Failed(f"the case has no {role!r}")
        return found

    def goodputs(self, role: str) -> list[float]:
        """The goodput of each flow with this role, in bit/s."""
        found = [flow["goodput_bps"] for flow in self.flows(role)]
        if None in found:
            raise Failed("a flow never began")
        return found

    def total(self, role: str) -> float:
        """The goodputs of the flows with this role, added, in bit/s."""
        return math.fsum(self.goodputs(role))

    def jain(self, role: str) -> float:
        """Jain's index of the goodputs of the flows with this role."""
        found = jain(self.goodputs(role))
        if math.isnan(found):
            raise Failed("no flow delivered anything")
        return found

    def rtt_ms(self, role: str, key: str) -> list[float]:
        """A number of the round trip times of each flow with this role, in ms."""
        found = [flow["rtt_ms"][key] for flow in self.flows(role)]
        if None in found:
            raise Failed("a flow has no round trip")
        return found

    def transfer_ms(self, role: str) -> float:
        """The 90th percentile of the completion times of transfers, mean over the flows with this role."""
        flows = self.flows(role)
        if flows and "transfers" not in flows[0]:  # each flow of a hosted stack is one transfer
            done = [1e3 * flow["completion_s"] for flow in flows if flow["completion_s"] is not None]
            if len(done) < 2:
                raise Failed("no transfer was complete")
            return float(statistics.quantiles(done, n=10)[-1])
        taken = [flow["transfers"]["completion_ms"]["p90"] for flow in flows]
        if any(one is None for one in taken):
            raise Failed("no transfer was complete")
        return statistics.fmean(taken)

    def mos(self, role: str) -> float:
        """The mean opinion score of the worst call with this role."""
        found = [flow["voip"]["mos"] for flow in self.flows(role)]
        if None in found:
            raise Failed("a call has no packet")
        return float(min(found))

    def played(self, role: str) -> float:
        """The part of the frames of videos with this role that was played in time."""
        frames = [flow["video"]["frames"] for flow in self.flows(role)]
        played, sent = (sum(one[key] for one in frames) for key in ("played", "sent"))
        return share(played, sent, "no frame was sent")

    def mean_delay(self, begin_s: float, end_s: float) -> float:
        """Mean over seconds of the delay in the first queue, in ms, from `begin_s` to `end_s`."""
        return _mean(self.delay_ms[int(begin_s) : int(end_s)], "no packet left the queue")

    def mean_rate(self, begin_s: float, end_s: float, role: str = "") -> float:
        """Mean throughput of the link, or goodput of a role, in bit/s, from `begin_s` to `end_s`."""
        rates = self.goodput_bps[role] if role else self.throughput_bps
        return _mean(rates[int(begin_s) : int(end_s)], "the run ended before")

    def spread_ms(self, begin_s: float) -> float:
        """The standard deviation of the delays of seconds, from `begin_s` on, in ms."""
        known = [one for one in self.delay_ms[int(begin_s) :] if one is not None]
        if not known:
            raise Failed("no packet left the queue")
        return statistics.pstdev(known)


def settled_after(delays: Seconds, begin_s: int, end_s: int, most: float) -> float:
    """Returns how many seconds pass after `begin_s` until the delay, from its peak on, is at most `most`."""
    part = [0.0 if one is None else one for one in delays[begin_s:end_s]]
    peak = part.index(max(part[: len(part) // 2 + 1]))
    return float(next((second for second in range(peak, len(part)) if part[second] <= most), len(part)))


def _mean(values: Seconds, without: str) -> float:
    """Returns the mean of the values that there are; fails with a reason if there are none."""
    known = [one for one in values if one is not None]
    if not known:
        raise Failed(without)
    return statistics.fmean(known)


def share(part: float, whole: float, without: str) -> float:
    """Returns a part of a whole; fails with a reason if the whole is nothing."""
    if not whole:
        raise Failed(without)
    return float(part / whole)


def _columns(table: Mapping[str, tuple[str, bytes]]) -> dict[str, Any]:
    import numpy as np

    return {name: np.frombuffer(data, dtype) for name, (dtype, data) in table.items()}


def _groups(flows: Mapping[str, Any], roles: Sequence[tuple[str, int]], seconds: int) -> dict[str, list[float]]:
    """Returns the goodput of each role in each second."""
    import numpy as np

    numbers = np.cumsum([0, *(count for _, count in roles)])
    found: dict[str, Any] = {role: np.zeros(seconds) for role, _ in roles}
    place = np.minimum(np.ceil(flows["t_s"] - 1e-9).astype(int) - 1, seconds - 1)
    for (role, _), low, high in zip(roles, numbers, numbers[1:], strict=False):
        inside = (flows["flow"] >= low) & (flows["flow"] < high)
        np.add.at(found[role], place[inside], flows["goodput_bps"][inside])
    return {role: np.round(one).tolist() for role, one in found.items()}
