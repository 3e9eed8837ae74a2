"""Readable twins of congestion controls: plain Python, written from the sources and not from the compiled code.

    replay(Scalable(), events) -> the window and the threshold after each event, in segments

An event is (t_us, name, segments, rtt_us) as `penstock replay --cc` reads it: `ack` acknowledges so many segments and
tells a round trip time (0: none), `loss`, `ecn` and `rto` tell how many segments are in flight (0: a whole window),
and `recovered` ends what `loss` began. The window is always in use, and ACKs between a loss and the end of its
recovery reach only a control that measures. A burst that is due begins before the event. `handshake` (with a round
trip time) and `budget` (in the place of segments: the rate in bit/s, 0 for none) are for C²ML.

A control sets its threshold at a loss and leaves the window to the endpoint, which sets it to the threshold when
recovery ends (RFC 5681 §3.2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Protocol

MSS = 1448
INITIAL_WINDOW = 10

Event = tuple[int, str, int, int]


@dataclass(frozen=True)
class Sample:
    """A rate sample: what was delivered since `prior_delivered`, in segments, took so long."""

    prior_delivered: float
    interval_ns: int
    flight: float  # segments in flight after this acknowledgment
    lost: int  # segments lost since the start
    lost_since: int = 0  # segments lost since `prior_delivered`


@dataclass(frozen=True)
class LostSegment:
    """A lost segment, for a control that follows segments; it was sent as the last round trip began."""

    now_ns: int
    delivered: float  # segments delivered since the start
    prior_delivered: float  # the same when it was sent
    tx_in_flight: float  # segments in flight when it was sent
    lost: int  # segments lost since it was sent, with it


@dataclass(frozen=True)
class Ack:
    """The values of an acknowledgment, in segments and ns; a property without the unit in its name is in seconds."""

    now_ns: int
    segments: float
    rtt_ns: int  # round trip time; 0 without a sample
    srtt_ns: int
    min_rtt_ns: int  # smallest round trip time; 0 before the first sample
    flight: float  # segments in flight before this acknowledgment
    delivered: float  # segments delivered since the start, including this acknowledgment
    rate: Sample | None = None  # for a control that measures

    @property
    def now(self) -> float:
        """The time."""
        return self.now_ns / 1e9

    @property
    def rtt(self) -> float:
        """Round trip time; 0 without a sample."""
        return self.rtt_ns / 1e9

    @property
    def srtt(self) -> float:
        """Smoothed round trip time."""
        return self.srtt_ns / 1e9

    @property
    def min_rtt(self) -> float:
        """Smallest round trip time; 0 before the first sample."""
        return self.min_rtt_ns / 1e9


class Replayed(Protocol):
    """What `replay` calls: a control, or one with a budget."""

    measures: bool
    follows: bool

    def shown(self) -> float: ...
    @property
    def ssthresh(self) -> float: ...
    @property
    def pacing_bps(self) -> float | None: ...
    @property
    def next_burst_ns(self) -> int | None: ...
    def on_burst(self, now_ns: int, flight: float) -> None: ...
    def on_ack(self, ack: Ack) -> None: ...
    def on_recovery_ack(self, ack: Ack) -> None: ...
    def on_begin(self, now_ns: int, srtt_ns: int) -> None: ...
    def on_delivered(self, ack: Ack) -> None: ...
    def on_lost(self, packet: LostSegment) -> None: ...
    def on_loss(self, now: float, flight: float) -> None: ...
    def on_ecn(self, now: float, flight: float) -> None: ...
    def on_recovered(self, now: float) -> None: ...
    def on_rto(self, now: float, flight: float) -> None: ...
    def handshake(self, rtt_ns: int) -> None: ...
    def budget(self, rate_bps: int | None) -> None: ...


class Control:
    """The base class: slow start, the reaction to a timeout, and limits that most controls share. Unit: segments."""

    keep = 0.5  # part of the flight size that remains after a loss
    # After a long recovery the flight size may exceed the window. A control which keeps most of the flight would never
    # reduce its window, so it uses the window instead.
    timeout_by_window = False
    measures = False  # it wants rate samples, and acknowledgments in recovery
    follows = False  # it wants to know of each segment, delivered or lost
    next_burst_ns: int | None = None  # for a control that sends bursts: when the next one is due

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

    def on_begin(self, now_ns: int, srtt_ns: int) -> None:
        """The first data is sent; for controls which follow segments."""

    def on_delivered(self, ack: Ack) -> None:
        """Called for each acknowledgment, for controls which follow segments."""

    def on_lost(self, packet: LostSegment) -> None:
        """Called for each lost segment, for controls which follow segments."""

    @property
    def pacing_bps(self) -> float | None:
        """Returns the pacing rate in bit/s; `None` for a control that does not pace."""
        return None

    def on_burst(self, now_ns: int, flight: float) -> None:
        """A burst begins."""

    def adopt(self, cwnd: float, ssthresh: float) -> None:
        """C²ML: takes this window, and a threshold of two segments at least."""
        self.cwnd, self.ssthresh = cwnd, max(ssthresh, 2)

    def limit(self, rate_bps: int | None, frame: int) -> None:
        """C²ML: bursts of segments of `frame` bytes on the wire have this rate at most."""

    def handshake(self, rtt_ns: int) -> None:
        """Only C²ML needs it."""

    def budget(self, rate_bps: int | None) -> None:
        """Only C²ML keeps to it."""


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


class Endpoint:
    """What an endpoint knows: round trip times, what was delivered and lost, and what bursts have in flight."""

    def __init__(self) -> None:
        self.srtt_ns = self.min_rtt_ns = 0
        self.delivered = self.lost = 0
        self.recovering = False
        self.bursts = 0.0
        self.history: deque[tuple[int, int, int]] = deque()  # deliveries of the last round trip, and losses until then
        self.begun = False

    def ack(self, now_ns: int, segments: int, rtt_ns: int, flight: float) -> Ack:
        """Takes an acknowledgment."""
        if rtt_ns:
            self.srtt_ns = (7 * self.srtt_ns + rtt_ns) // 8 if self.srtt_ns else rtt_ns  # RFC 6298 §2.3
            self.min_rtt_ns = min(self.min_rtt_ns or rtt_ns, rtt_ns)
        self.delivered += segments
        self.bursts = max(self.bursts - segments, 0)
        rate = self.rate(now_ns, max(flight - segments, 0))
        return Ack(now_ns, segments, rtt_ns, self.srtt_ns, self.min_rtt_ns, flight, self.delivered, rate)

    def rate(self, now_ns: int, flight: float) -> Sample | None:
        """Returns the sample since the last delivery that is at least a round trip old."""
        while len(self.history) > 1 and now_ns - self.history[1][0] >= self.srtt_ns:
            self.history.popleft()
        first = self.history[0] if self.history else None
        self.history.append((now_ns, self.delivered, self.lost))
        if first is None or first[0] == now_ns:
            return None
        return Sample(first[1], now_ns - first[0], flight, self.lost, self.lost - first[2])

    def lose(self, now_ns: int, flight: float) -> LostSegment:
        """Loses a segment."""
        self.lost += 1
        _, prior_delivered, before = self.history[0] if self.history else (0, 0, 0)
        return LostSegment(now_ns, self.delivered, prior_delivered, flight, self.lost - before)


def replay(control: Replayed, events: Iterable[Event]) -> list[tuple[float, float, float | None]]:
    """Gives each event to the control. Returns windows and thresholds in segments, and paces in bit/s."""
    endpoint = Endpoint()
    rows = []
    for event in events:
        now_ns = event[0] * 1000
        if control.next_burst_ns is not None and control.next_burst_ns <= now_ns:
            control.on_burst(now_ns, endpoint.bursts)
            endpoint.bursts = control.shown()
        tell(control, endpoint, event)
        rows.append((control.shown(), control.ssthresh, control.pacing_bps))
    return rows


def acknowledge(control: Replayed, endpoint: Endpoint, ack: Ack) -> None:
    """Gives an acknowledgment to the control in the form that it wants."""
    if control.follows:
        if not endpoint.begun:
            control.on_begin(ack.now_ns, ack.srtt_ns)
            endpoint.begun = True
        control.on_delivered(ack)
    elif not endpoint.recovering:
        control.on_ack(ack)
    elif control.measures:
        control.on_recovery_ack(ack)


def tell(control: Replayed, endpoint: Endpoint, event: Event) -> None:
    """Gives one event to the control."""
    t_us, name, segments, rtt_us = event
    now = t_us / 1e6
    flight = segments if name != "ack" and segments else control.shown()
    match name:
        case "ack":
            acknowledge(control, endpoint, endpoint.ack(t_us * 1000, segments, rtt_us * 1000, flight))
        case "loss":
            control.on_loss(now, flight)
        case "ecn":
            control.on_ecn(now, flight)
        case "rto":
            control.on_rto(now, 0 if control.follows else flight)
        case "recovered":
            control.on_recovered(now)
        case "handshake":
            control.handshake(rtt_us * 1000)
        case "budget":
            control.budget(segments or None)
    if name in ("loss", "rto"):
        control.on_lost(endpoint.lose(t_us * 1000, flight))
    endpoint.recovering = name == "loss" or (endpoint.recovering and name not in ("rto", "recovered"))
