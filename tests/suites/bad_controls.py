"""Congestion controls that are made to fail a criterion of RFC 9743."""

# mypy: ignore-errors
# ruff: noqa: ARG002 - the methods have these arguments

import penstock


class Greedy(penstock.CongestionControl):
    """Takes a window of 1500 segments, whatever happens: it starves others."""

    def __init__(self):
        self.cwnd = self.ssthresh = 1500.0 * self.mss

    def on_ack(self, ack):
        pass

    def on_loss(self, loss):
        pass

    def on_rto(self, loss):
        pass

    def on_idle(self, now_s):
        pass


class Full(penstock.CongestionControl):
    """Keeps a window with which the buffer is always full."""

    segments = 210

    def __init__(self):
        self.cwnd = self.ssthresh = float(self.segments * self.mss)

    def on_ack(self, ack):
        pass

    def on_loss(self, loss):
        pass


class NeverLeaves(penstock.CongestionControl):
    """Doubles its window in each round trip, and never leaves start-up."""

    def on_ack(self, ack):
        self.cwnd = min(self.cwnd + ack.acked, 2000.0 * self.mss)

    def on_loss(self, loss):
        pass


class Timid(penstock.CongestionControl):
    """Sends two segments in each round trip."""

    def __init__(self):
        self.cwnd = self.ssthresh = 2.0 * self.mss

    def on_ack(self, ack):
        pass


class FirstCome(Timid):
    """Takes the whole path if it is the first to come."""

    def on_ack(self, ack):
        if self.cwnd == 2.0 * self.mss:
            self.cwnd = self.ssthresh = (40.0 if ack.now_s < 10 else 2.5) * self.mss

    def on_loss(self, loss):
        pass


class Resigned(FirstCome):
    """Grows slowly up to the whole path, and gives up after the first loss."""

    resigned = False

    def on_ack(self, ack):
        super().on_ack(ack)
        if not self.resigned and self.cwnd < 160 * self.mss:
            self.cwnd += self.mss * ack.acked / self.cwnd

    def on_loss(self, loss):
        self.resigned = True
        self.cwnd = self.ssthresh = 2.1 * self.mss


class Blind(Full):
    """Gives way to losses and comes back fast, and does not see marks."""

    segments = 60

    def on_ack(self, ack):
        self.cwnd += 10 * self.mss * ack.acked / self.cwnd

    def on_loss(self, loss):
        self.cwnd = self.ssthresh = max(self.cwnd / 10, 2.0 * self.mss)

    def on_ecn(self, loss):
        pass

    def on_recovered(self, now_s):
        pass
