import penstock


class MyCc(penstock.CongestionControl):
    """Slow start until a queue forms, then one segment per round trip; a loss cuts the window by 30 %. Paced."""

    kept = 0.7

    def on_ack(self, ack):
        if ack.srtt_s > 1.25 * ack.min_rtt_s:
            self.ssthresh = min(self.ssthresh, self.cwnd)
        if not ack.cwnd_limited:
            return
        grown = min(ack.acked, 2 * self.mss)
        if self.cwnd < self.ssthresh:
            self.cwnd += grown
        else:
            self.cwnd += self.mss * grown / self.cwnd
        self.pacing_bps = 2 * 8 * self.cwnd / ack.srtt_s

    def on_loss(self, loss):
        self.ssthresh = max(self.kept * loss.in_flight, 2 * self.mss)
