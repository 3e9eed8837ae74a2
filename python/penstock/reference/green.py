"""GREEN: Feng, Kapadia, Thulasidasan, GLOBECOM 2002, eq. (1) and (2); document 000 §2 for the packet size.

    p_i = (N MSS c / (L RTT_i))^2

The source is silent about the sampling window: N is the larger of the numbers of flows that sent in the last whole
window and in this one, MSS the largest packet of both. It takes the round trip time as known; here it is that of the
gateway's `Probe`, and `rtt_ns` before both halves are known. Draws one random number for each arrival whose
probability is below 1.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from penstock.reference.ack import Gateway, Segment
from penstock.reference.ack.rtt import Probe
from penstock.reference.link import NOT_ECT, Limit, Packet


@dataclass(frozen=True)
class Params:
    """`c` of the paper; the times are in ns."""

    c: float = 0.93
    window_ns: int = 1_000_000_000
    rtt_ns: int = 100_000_000
    ecn: bool = False


class Green(Gateway):
    """The queue, the flows and the sizes of each window, and the round trip time of each flow."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        super().__init__(limit)
        self.params, self.rate_bps, self.uniform = params, rate_bps, uniform
        self.flows: defaultdict[int, set[int]] = defaultdict(set)
        self.largest: defaultdict[int, int] = defaultdict(int)
        self.probes: defaultdict[int, Probe] = defaultdict(Probe)

    def inbound(self, segment: Segment) -> int:
        """Measures."""
        self.probes[segment.flow].show(segment)
        return segment.window

    def outbound(self, segment: Segment) -> int:
        """Measures."""
        self.probes[segment.flow].show(segment)
        return segment.window

    def told(self, name: str, index: int, value: int, now_ns: int) -> None:
        """Another connection has the number of this flow."""
        del value, now_ns
        if name == "flow-gone":
            self.probes.pop(index, None)

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Eq. (2)."""
        this = now_ns // self.params.window_ns
        self.flows[this].add(packet.flow)
        self.largest[this] = max(self.largest[this], packet.size)
        n = max(len(self.flows[this - 1]), len(self.flows[this]))
        mss_bits = 8 * max(self.largest[this - 1], self.largest[this])
        rtt_ns = self.probes[packet.flow].whole() or self.params.rtt_ns
        root = n * mss_bits * self.params.c / (self.rate_bps * (rtt_ns / 1e9))
        p = root * root
        if p < 1 and self.uniform() >= p:
            return "pass"
        return "mark" if self.params.ecn and packet.ecn != NOT_ECT else "drop"
