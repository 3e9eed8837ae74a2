"""RED-ERN whose gateway estimates the rates (document 003 §V), around the twins of RED-ERN and of the round trip time.

The document names passive estimation and gives no rule. This is the rule of docs/algorithms/red-ern.md:

    rtt  = WAN half, smoothed as RFC 6298 does + LAN half, the smallest
    cwnd = new bytes that passed in an interval * rtt / length of the interval

Where that page gives no number this twin has that of the code: times are whole nanoseconds, a threshold counts as
reached from half a segment below it on, and the window of an interval is rounded down to bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from penstock.reference.ack import ACK, SYN, Gateway, Segment, before
from penstock.reference.ack.rtt import Probe
from penstock.reference.link import NS_PER_S, Limit, Packet
from penstock.reference.red_ern import MS, Params, RedErn, Sort

LARGEST = 2**32 - 1
LONGEST_MS = 4095


class Rate:
    """What is measured of a flow; `probe` goes on from one connection to the next."""

    def __init__(self, probe: Probe | None = None) -> None:
        self.probe = probe or Probe()
        self.srtt_ns = 0  # of the WAN half
        self.last_ns = 0  # when data passed
        self.begun: tuple[int, int] | None = None  # when the interval began, and with which number
        self.window = 0  # of the last interval, in bytes
        self.threshold = 0  # at which slow start ends; 0 before a timeout
        self.segment = 0
        self.slow = True

    def rtt_ns(self) -> int | None:
        """Returns the round trip time of the sender."""
        wan, lan = self.probe.wan.shortest, self.probe.lan.shortest
        return None if wan is None or lan is None else (self.srtt_ns or wan) + lan

    def smooth(self, sample_ns: int) -> None:
        """RFC 6298 §2, with alpha = 1/8."""
        old_ns = self.srtt_ns
        self.srtt_ns = old_ns - old_ns // 8 + sample_ns // 8 if old_ns else sample_ns

    def slow_start(self, *, timeout: bool) -> None:
        """The sender has paused, or waited for a timeout (RFC 5681 eq. 4)."""
        least = 2 * self.segment
        if timeout:
            self.threshold = max(self.window // 2, least)
        self.slow = not (timeout and self.threshold == least)
        self.begun, self.window = None, 0

    def data(self, segment: Segment, newest: int | None) -> tuple[Sort, int, int]:
        """What a packet with data is; `newest` is the number after all that was sent before."""
        now_ns, new = segment.t_ns, newest is None or not before(segment.seq, newest)
        self.segment = max(self.segment, segment.payload)
        silent_ns, self.last_ns = now_ns - self.last_ns, now_ns
        rtt_ns = self.rtt_ns()
        if rtt_ns is None:
            return "plain", 0, 0
        if silent_ns > 2 * rtt_ns:
            self.slow_start(timeout=not new)
        if new and self.begun is None:
            self.begun = now_ns, segment.seq
        elif new and self.begun is not None and now_ns - self.begun[0] >= rtt_ns:
            self.measure(now_ns - self.begun[0], (segment.seq - self.begun[1]) % 2**32, rtt_ns)
            self.begun = now_ns, segment.seq
            rtt_ms = min(max((rtt_ns + MS // 2) // MS, 1), LONGEST_MS)
            return ("plain", 0, 0) if self.slow else ("rate", self.window, rtt_ms)
        return ("plain" if self.slow else "capable"), 0, 0

    def measure(self, took_ns: int, passed: int, rtt_ns: int) -> None:
        """Ends an interval. Slow start ends at the threshold, or when the window grows by a quarter at most."""
        earlier = self.window
        self.window = min(int(passed * (rtt_ns / NS_PER_S) / (took_ns / NS_PER_S)), LARGEST)
        if self.threshold and self.window + self.segment // 2 >= self.threshold:
            self.slow = False
        if earlier and self.window <= earlier + earlier // 4:
            self.slow = False


class Estimated(RedErn, Gateway):
    """RED-ERN that sees the segments of both directions. What a packet is was found when its segment was shown."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        super().__init__(limit, params, rate_bps, uniform, [])
        self.flows: defaultdict[int, Rate] = defaultdict(Rate)
        self.shown: tuple[Sort, int, int] = ("plain", 0, 0)

    def opened(self, segment: Segment) -> Rate:
        """Returns the state of the flow of a segment, which a SYN begins anew."""
        flow = self.flows[segment.flow]
        if segment.flags & SYN and not segment.flags & ACK:
            flow = self.flows[segment.flow] = Rate(flow.probe)
        return flow

    def outbound(self, segment: Segment) -> int:
        """Measures the LAN half, and what passes."""
        flow = self.opened(segment)
        newest = flow.probe.wan.newest
        flow.probe.show(segment)
        carries = segment.payload > 0 and not segment.flags & SYN
        self.shown = flow.data(segment, newest) if carries else ("plain", 0, 0)
        return segment.window

    def inbound(self, segment: Segment) -> int:
        """Measures the WAN half."""
        flow = self.opened(segment)
        sample_ns = flow.probe.show(segment)
        if sample_ns is not None:
            flow.smooth(sample_ns)
        return segment.window

    def told(self, name: str, index: int, value: int, now_ns: int) -> None:
        """Another connection has the number of this flow."""
        del value, now_ns
        if name == "flow-gone":
            self.flows.pop(index, None)

    def said(self, packet: Packet) -> tuple[Sort, int, int]:
        """What was found when the segment was shown."""
        del packet
        return self.shown
