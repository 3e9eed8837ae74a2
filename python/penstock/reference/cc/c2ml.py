"""C²ML: document 002 (Grazia, Modena 2016), §2.2.3.3, eq. (2.1), (2.2), Figure 2.13, around any control.

`literal` is the figure: ssThres = BW RTT / 8 with the current round trip time, and a new budget halves. Otherwise, as
docs/algorithms/c2ml.md says, the budget is a rate on the wire in whole segments, RTT the smallest one, and a new
budget only moves the window into [ssThres/2, ssThres]. A message that repeats the budget says nothing new. The source
is silent about a budget that goes: the control goes on as it is.
"""

from __future__ import annotations

from penstock.reference.cc import MSS, Ack, Control, LostSegment

HEADERS = 52


class C2ml:
    """A control with a ceiling."""

    follows = False

    def __init__(self, control: Control, *, literal: bool) -> None:
        self.control, self.literal = control, literal
        self.measures = control.measures
        self.frame = MSS if literal else MSS + HEADERS
        self.budget_bps: int | None = None
        self.rtt_ns: int | None = None

    def ceiling(self) -> float | None:
        """Eq. (2.1) in segments; a segment at least."""
        if self.budget_bps is None or self.rtt_ns is None or self.control.next_burst_ns is not None:
            return None
        carried = self.budget_bps * self.rtt_ns // (8 * 10**9)
        return max(carried / MSS if self.literal else carried // self.frame, 1)

    def handshake(self, rtt_ns: int) -> None:
        """The first round trip time."""
        self.rtt_ns = rtt_ns
        self.begin()

    def budget(self, rate_bps: int | None) -> None:
        """HANDLEMESSAGE."""
        if rate_bps != self.budget_bps:
            self.budget_bps = rate_bps
            self.control.limit(rate_bps, self.frame)
            self.begin()

    def begin(self) -> None:
        """CWnd = ssThres / 2, eq. (2.2)."""
        if (ceiling := self.ceiling()) is not None:
            half = max(int(ceiling * MSS) // 2 / MSS, 1)
            own = self.control.cwnd
            self.control.adopt(half if self.literal else min(max(own, half), ceiling), ceiling)

    def shown(self) -> float:
        """The window, never above the ceiling."""
        ceiling = self.ceiling()
        return self.control.shown() if ceiling is None else min(self.control.shown(), ceiling)

    @property
    def ssthresh(self) -> float:
        """The control's threshold."""
        return self.control.ssthresh

    @property
    def pacing_bps(self) -> float | None:
        """The control's pacing rate, never above the budget."""
        own, most = self.control.pacing_bps, self.budget_bps
        return own if own is None or most is None else min(own, most)

    @property
    def next_burst_ns(self) -> int | None:
        """When the control sends a burst."""
        return self.control.next_burst_ns

    def on_burst(self, now_ns: int, flight: float) -> None:
        """Passed on."""
        self.control.on_burst(now_ns, flight)

    def on_begin(self, now_ns: int, srtt_ns: int) -> None:
        """Passed on."""
        self.control.on_begin(now_ns, srtt_ns)

    def on_delivered(self, ack: Ack) -> None:
        """Passed on."""
        self.control.on_delivered(ack)

    def on_lost(self, packet: LostSegment) -> None:
        """Passed on."""
        self.control.on_lost(packet)

    def on_ack(self, ack: Ack) -> None:
        """ACKRCV."""
        self.rtt_ns = (ack.rtt_ns or ack.srtt_ns) if self.literal else ack.min_rtt_ns
        if (ceiling := self.ceiling()) is not None:
            self.control.adopt(self.control.cwnd, ceiling)
        self.control.on_ack(ack)
        if ceiling is not None and self.control.cwnd > ceiling:
            self.control.adopt(ceiling, ceiling)

    def on_recovery_ack(self, ack: Ack) -> None:
        """Passed on."""
        self.control.on_recovery_ack(ack)

    def on_loss(self, now: float, flight: float) -> None:
        """Passed on."""
        self.control.on_loss(now, flight)

    def on_ecn(self, now: float, flight: float) -> None:
        """Passed on."""
        self.control.on_ecn(now, flight)

    def on_recovered(self, now: float) -> None:
        """Passed on."""
        self.control.on_recovered(now)

    def on_rto(self, now: float, flight: float) -> None:
        """Passed on."""
        self.control.on_rto(now, flight)
