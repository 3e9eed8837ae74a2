"""Westwood+: Grieco and Mascolo, CCR 34(2), 2004, with the filter of Linux's tcp_westwood.c."""

from __future__ import annotations

from penstock.reference.cc import Ack, Control


class Westwood(Control):
    """A loss leaves what the path carries without a queue.

    Linux measures in recovery as well; here a sample that is under way goes on until recovery is over.
    """

    def __init__(self) -> None:
        super().__init__()
        self.first: float | None = None  # f1
        self.bandwidth = 0.0  # f2, segments a second
        self.rtt_min: float | None = None
        self.since: tuple[float, float] | None = None  # when the sample began, and what was delivered then

    def on_ack(self, ack: Ack) -> None:
        """Measures, and grows as NewReno."""
        self.measure(ack)
        super().on_ack(ack)

    def measure(self, ack: Ack) -> None:
        """westwood_update_window() and westwood_filter()."""
        if ack.rtt:
            self.rtt_min = min(self.rtt_min or ack.rtt, ack.rtt)
        if self.since is None:
            self.since = (ack.now, ack.delivered)
            return
        began, delivered = self.since
        if ack.now - began < max(ack.srtt, 0.05) - 1e-12:
            return
        sample = (ack.delivered - delivered) / (ack.now - began)
        if self.first is None:
            self.first = self.bandwidth = sample
        else:
            self.first = (7 * self.first + sample) / 8
            self.bandwidth = (7 * self.bandwidth + self.first) / 8
        self.since = (ack.now, ack.delivered)

    def kept(self, flight: float) -> float:
        """BWE * RTT_min."""
        if self.first is None or self.rtt_min is None:
            return flight / 2
        return self.bandwidth * self.rtt_min

    def on_rto(self, now: float, flight: float) -> None:
        """The smallest round trip is measured anew: the path may be another."""
        super().on_rto(now, flight)
        self.rtt_min = None
