"""Readable twins of congestion controls: plain Python, written from the sources and not from the compiled code.

    replay(Scalable(), events) -> the window and the threshold after each event, in segments

An event is (t_us, name, segments, rtt_us) as `penstock replay --cc` reads it: `ack` acknowledges so many segments and
tells a round trip time (0: none), `loss`, `ecn` and `rto` tell how many segments are in flight (0: a whole window), and
`recovered` ends what `loss` began. The window is always in use, and ACKs between a loss and the end of its recovery
reach only a control that measures.

A control sets its threshold at a loss and leaves the window to the endpoint, which sets it to the threshold when
recovery ends (RFC 5681 §3.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

MSS = 1448
INITIAL_WINDOW = 10

Event = tuple[int, str, int, int]


@dataclass(frozen=True)
class Ack:
    """The values of an acknowledgment, in segments and seconds."""

    now: float
    segments: float
    rtt: float  # round trip time; 0 without a sample
    srtt: float
    min_rtt: float  # smallest round trip time; 0 before the first sample
    flight: float  # segments in flight before this acknowledgment
    delivered: float  # segments delivered since the start, including this acknowledgment


class Control:
    """The base class: slow start, the reaction to a timeout, and limits that most controls share. Unit: segments."""

    keep = 0.5  # part of the flight size that remains after a loss
    # After a long recovery the flight size may exceed the window. A control which keeps most of the flight would never
    # reduce its window, so it uses the window instead.
    timeout_by_window = False

    def __init__(self) -> None:
        self.cwnd: float = INITIAL_WINDOW
        self.ssthresh = inf
        self.after_timeout = False

    def shown(self) -> float:
        """The window in segments, after rounding to whole bytes as an endpoint does."""
        return int(self.cwnd * MSS + 0.5) / MSS

    def on_ack(self, ack: Ack) -> None:
        """Grows by slow start below the threshold, and by congestion avoidance from the threshold on."""
        if self.cwnd < self.ssthresh:
            self.slow_start(ack)
        else:
            self.after_timeout = False
            # An acknowledgment counts for at most one window.
            self.avoid_congestion(ack, min(ack.segments, self.cwnd))

    def slow_start(self, ack: Ack) -> None:
        """RFC 3465 §2.2: L is 2, and 1 in the slow start after a timeout (§2.3)."""
        limit = 1 if self.after_timeout else 2
        self.cwnd += min(ack.segments, limit)

    def avoid_congestion(self, ack: Ack, segments: float) -> None:
        """Grows for so many segments acknowledged: RFC 5681 §3.1, one segment each round trip."""
        del ack
        self.cwnd += segments / self.cwnd

    def on_loss(self, now: float, flight: float) -> None:
        """RFC 5681 eq. (4) with this control's part of the flight."""
        del now
        self.after_timeout = False
        self.ssthresh = max(self.kept(flight), 2)

    def on_ecn(self, now: float, flight: float) -> None:
        """RFC 3168 §6.1.2: as for a loss, and nothing has to be sent again."""
        self.on_loss(now, flight)
        self.on_recovered(now)

    def kept(self, flight: float) -> float:
        """Returns the part of a flight that remains after a loss, in segments."""
        return self.keep * flight

    def on_recovered(self, now: float) -> None:
        """Sets the window to the threshold at the end of recovery."""
        del now
        self.cwnd = self.ssthresh

    def on_rto(self, now: float, flight: float) -> None:
        """Follows RFC 5681 §3.1."""
        self.on_loss(now, min(flight, self.cwnd) if self.timeout_by_window else flight)
        self.cwnd = 1
        self.after_timeout = True

    def on_recovery_ack(self, ack: Ack) -> None:
        """Called for acknowledgments during recovery, for controls which measure."""


class Round:
    """Counts round trips. One ends when all data sent after its first acknowledgment has been acknowledged.

    The window is always in use, so this is the flight before the first acknowledgment. Recovery stops the count.
    """

    def __init__(self) -> None:
        self.left: float | None = None

    def ends(self, ack: Ack) -> bool:
        """Returns true if this acknowledgment ends a round trip. The first one begins with the first acknowledgment."""
        ended = self.left is not None and self.left - ack.segments < 1e-6
        self.left = ack.flight if self.left is None or ended else self.left - ack.segments
        return ended


def replay(control: Control, events: Iterable[Event]) -> list[tuple[float, float]]:
    """Gives each event to the control as an endpoint does, and returns windows and thresholds in segments."""
    srtt_ns, min_ns, delivered, recovering = 0, 0, 0, False
    rows = []
    for t_us, name, segments, rtt_us in events:
        now = t_us / 1e6
        flight = segments if name != "ack" and segments else control.shown()
        if name == "ack":
            if rtt_us:
                rtt_ns = rtt_us * 1000
                srtt_ns = (7 * srtt_ns + rtt_ns) // 8 if srtt_ns else rtt_ns  # RFC 6298 §2.3
                min_ns = min(min_ns or rtt_ns, rtt_ns)
            delivered += segments
            ack = Ack(now, segments, rtt_us / 1e6, srtt_ns / 1e9, min_ns / 1e9, flight, delivered)
            (control.on_recovery_ack if recovering else control.on_ack)(ack)
        elif name == "loss":
            control.on_loss(now, flight)
            recovering = True
        elif name == "ecn":
            control.on_ecn(now, flight)
        elif name == "rto":
            control.on_rto(now, flight)
            recovering = False
        else:
            control.on_recovered(now)
            recovering = False
        rows.append((control.shown(), control.ssthresh))
    return rows
