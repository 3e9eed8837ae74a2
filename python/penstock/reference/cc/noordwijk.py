"""Noordwijk: Roseti and Kristiansen, 2008; details of the author's code for ns-3 (`tcp-noordwijk.cc`: ACCE,
TrainReceived, RateAdjustment, RateTracking, RoundTxTime), and document 002 §2.2.3.3 with C²ML.

The burst sizes of that code are in bytes and its times in whole micro- or milliseconds; here they are segments and
ns. Its recovery is not comparable: docs/algorithms/noordwijk.md names what differs (three duplicate ACKs, T0 after a
loss, trains after a recovery, at most 16 trains). The part of a burst that was not sent yet when the burst is made
smaller is sent.
"""

from __future__ import annotations

from collections import deque

from penstock.reference.cc import INITIAL_WINDOW, Ack, Control

MS = 1_000_000
S = 1000 * MS
BURST_MIN, STAB, BETA_NS = 3, 2, 200 * MS
MOST_TRAINS = 16


class Noordwijk(Control):
    """A timer sends bursts; the trains of their ACKs are measured. Times are in ns."""

    def __init__(self) -> None:
        super().__init__()
        self.b0, self.t0 = INITIAL_WINDOW, 500 * MS
        self.burst, self.timer = self.b0, self.t0
        self.next_burst_ns: int | None = 0
        self.retransmitted = 0
        self.granted: tuple[int, int] | None = None  # bit/s, and the bytes of a segment on the wire
        self.delta = 0
        self.trains = 0
        self.before: float = 0  # flight before the latest burst
        self.acked_since: float = 0
        self.forget()

    def forget(self) -> None:
        """Forgets the bursts in flight and their trains."""
        self.history: deque[float] = deque()
        self.acked, self.first_ns, self.rtts = 0, 0, list[int]()
        self.unsent: float = 0  # part of the latest burst that is not sent yet

    def transmitted(self, segments: float) -> None:
        """m_bytesTransmitted: what was sent since the latest burst, if anything, is its size."""
        if segments > 0 and self.history:
            self.history[-1] -= max(self.unsent - segments, 0)

    def on_burst(self, now_ns: int, flight: float) -> None:
        """CallSendPendingData(): what was sent again counts."""
        self.transmitted(flight + self.acked_since - self.before)
        self.before, self.acked_since = flight, 0
        size = max(self.burst - self.retransmitted, 0)
        self.retransmitted = max(self.retransmitted - self.burst, 0)
        self.cwnd, self.unsent = flight + size, size
        if size and len(self.history) == MOST_TRAINS:
            self.history[-1] += size
        elif size:
            self.history.append(size)
        self.next_burst_ns = now_ns + max(self.timer, 1000)

    def on_ack(self, ack: Ack) -> None:
        """ACCE(), for each segment that is acknowledged."""
        self.cwnd = max(self.cwnd - ack.segments, 0)
        self.acked_since += ack.segments
        for _ in range(int(ack.segments)):
            if not self.history:
                return
            if not self.acked:
                self.first_ns, self.rtts = ack.now_ns, []
            self.acked += 1
            self.rtts += [ack.rtt_ns] if ack.rtt_ns else []
            if self.acked == self.history[0]:
                self.acked = 0
                self.train(self.history.popleft(), ack.now_ns - self.first_ns)

    def train(self, size: float, dispersion: int) -> None:
        """TrainReceived(): the end of a train."""
        delta = int(dispersion // size)
        if delta and (size == self.b0 or not self.delta):
            self.delta = delta
        self.trains = (self.trains + 1) % STAB
        variation = max(self.rtts, default=0) - min(self.rtts, default=0)
        if self.trains or not dispersion or not variation:
            return
        if variation > BETA_NS:  # rate adjustment
            self.burst = -(-self.burst * dispersion // (dispersion + variation))
            self.timer = (1 if self.burst > BURST_MIN else 2) * self.b0 * self.delta
        else:  # rate tracking
            self.burst += -(-max(self.b0 - self.burst, 0) // 2)
            self.timer = self.b0 * self.delta
        self.timer = self.timer or self.t0
        while self.timer > S:  # RoundTxTime()
            self.timer, self.burst = self.timer // 2, -(-self.burst // 2)
        self.burst = max(self.burst, BURST_MIN)
        self.keep_budget()

    def takes(self, burst: int) -> int:
        """TX_TMR = 8 MSS BURST / BW."""
        assert self.granted is not None
        rate_bps, frame = self.granted
        return burst * frame * 8 * S // rate_bps

    def keep_budget(self) -> None:
        """TX_TMR is not shorter than a burst takes."""
        if self.granted:
            self.timer = max(self.timer, self.takes(self.burst))

    def limit(self, rate_bps: int | None, frame: int) -> None:
        """BURST = BW TX_TMR / (8 MSS) with a timer of 50 ms."""
        if rate_bps is None:
            self.granted, self.b0, self.t0 = None, INITIAL_WINDOW, 500 * MS
        else:
            self.granted = rate_bps, frame
            self.b0 = max(rate_bps * 50 * MS // (8 * S) // frame, BURST_MIN)
            self.t0 = self.takes(self.b0)
        self.burst, self.timer = self.b0, self.t0
        self.ssthresh = max(self.ssthresh, self.burst)

    def restore(self) -> None:
        """B0 and T0 again. The threshold is what recovery may keep in flight."""
        self.burst, self.timer = self.b0, self.t0
        self.keep_budget()
        self.ssthresh = max(self.burst, 2)
        self.retransmitted += 1

    def on_loss(self, now: float, flight: float) -> None:
        """DupAck()."""
        del now, flight
        self.restore()

    def on_recovered(self, now: float) -> None:
        """The next burst goes at its time."""
        del now
        self.cwnd = 0
        self.forget()

    def on_rto(self, now: float, flight: float) -> None:
        """Retransmit(): T0 is doubled."""
        del now, flight
        self.t0 = 2 * self.t0 if 2 * self.t0 <= S else 900 * MS
        self.restore()
        self.cwnd = 1
        self.forget()
