"""LEDBAT (RFC 6817), the less-than-best-effort transport of `suite rfc7928`.

Section 2.4.2, with Q the queueing delay above the smallest delay that was seen:

    off_target = (TARGET - Q) / TARGET
    cwnd += GAIN off_target acked MSS / cwnd,  at most flight + ALLOWED_INCREASE MSS,  at least MIN_CWND MSS
    loss:  cwnd = max(cwnd / 2, MIN_CWND MSS), once per round trip

DIFFERENCE: Q is that of round trips and not of one way, which a sender here does not know; nothing waits on the way
back of the cases. Pinned by `test_ledbat_follows_its_equations`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from penstock.own import CongestionControl

if TYPE_CHECKING:
    from penstock.own import Ack, Loss

GAIN, INIT_CWND, MIN_CWND, ALLOWED_INCREASE = 1.0, 2, 2, 1  # section 2.5
CURRENT_FILTER = 4  # newest samples, of which the smallest is the delay (section 2.4.2)


class Ledbat(CongestionControl):
    """Gives way as soon as the queue is longer than a target."""

    target_ms = 100.0  # the largest that section 2.5 allows

    def __init__(self) -> None:
        self.cwnd = INIT_CWND * self.mss
        self.ssthresh = self.cwnd  # no slow start
        self.samples: deque[float] = deque(maxlen=CURRENT_FILTER)

    def on_ack(self, ack: Ack) -> None:
        """Moves the window towards the target."""
        if ack.rtt_s is not None:
            self.samples.append(ack.rtt_s)
        if not self.samples:
            return
        target_s = self.target_ms / 1e3
        off_target = (target_s - (min(self.samples) - ack.min_rtt_s)) / target_s
        wanted = self.cwnd + GAIN * off_target * ack.acked * self.mss / self.cwnd
        most = ack.in_flight + ALLOWED_INCREASE * self.mss
        self.cwnd = self.ssthresh = max(min(wanted, most), MIN_CWND * self.mss)

    def on_loss(self, loss: Loss) -> None:  # noqa: ARG002 - the method has this argument
        """Halves the window."""
        self.ssthresh = max(self.cwnd / 2, MIN_CWND * self.mss)
