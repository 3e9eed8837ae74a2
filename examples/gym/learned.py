"""A policy that train.py trained in penstock.gym, as a congestion control of its own.

It computes from ACKs what the agent observed, and decides at the first ACK after each interval.
"""

import math

import penstock

INTERVAL_S = 0.04
POLICY = (0.440, -0.037, -0.747, -0.346)  # the last line of train.py


class Learned(penstock.CongestionControl):
    """A linear policy of four weights, which multiplies the window by up to 2 or down to a half."""

    def __init__(self):
        self.decide_at, self.rtts, self.lost = 0.0, [], False

    def on_ack(self, ack):
        if ack.rtt_s is not None:
            self.rtts.append(ack.rtt_s)
        if self.rtts and ack.now_s >= self.decide_at:
            self.decide_at = ack.now_s + INTERVAL_S
            self.decide(sum(self.rtts) / len(self.rtts) / ack.min_rtt_s - 1)

    on_recovery_ack = on_ack

    def decide(self, waited):
        seen = (1, min(max(waited, 0), 3), self.lost, math.log2(self.cwnd / self.mss) / 5)
        action = math.tanh(sum(w * x for w, x in zip(POLICY, seen, strict=True)))
        self.cwnd = max(self.cwnd * 2**action, self.mss)
        self.ssthresh = self.cwnd
        self.rtts, self.lost = [], False

    def on_loss(self, loss):
        self.lost, self.ssthresh = True, self.cwnd

    def on_rto(self, loss):
        self.lost, self.cwnd, self.ssthresh = True, self.mss, self.mss

    def on_recovered(self, now_s):
        pass

    def on_idle(self, now_s):
        pass
