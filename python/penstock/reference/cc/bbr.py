"""BBR, version 1: draft-cardwell-iccrg-bbr-congestion-control-00, with Linux's tcp_bbr.c of 2016 for the details.

Names are those of tcp_bbr.c. Rates are in segments per second. docs/algorithms/bbr.md names what differs from Linux:
the first phase of ProbeBW comes from the clock, and without a rate sample the window opens as in slow start.
"""

from __future__ import annotations

from math import ceil, inf

from penstock.reference.cc import INITIAL_WINDOW, MSS, Ack, Control, Sample

STARTUP, DRAIN, PROBE_BW, PROBE_RTT = "STARTUP", "DRAIN", "PROBE_BW", "PROBE_RTT"
HIGH_GAIN = 2.885
CYCLE = (1.25, 0.75, 1, 1, 1, 1, 1, 1)
MIN_CWND = 4
MARGIN = 0.99
S, MS = 10**9, 10**6


class RunningMax:
    """lib/win_minmax.c: the best three samples of the last ten rounds."""

    def __init__(self) -> None:
        self.s = [(0, 0.0)] * 3

    def get(self) -> float:
        """Returns the largest."""
        return self.s[0][1]

    def update(self, t: int, value: float, window: int = 10) -> None:
        """minmax_running_max() and minmax_subwin_update()."""
        s, new = self.s, (t, value)
        if value >= s[0][1] or t - s[2][0] > window:
            self.s = [new] * 3
            return
        if value >= s[1][1]:
            s[1] = s[2] = new
        elif value >= s[2][1]:
            s[2] = new
        dt = t - s[0][0]
        if dt > window:
            s[0], s[1], s[2] = s[1], s[2], new
            if t - s[0][0] > window:
                s[0], s[1], s[2] = s[1], s[2], new
        elif s[1][0] == s[0][0] and dt > window / 4:
            s[1] = s[2] = new
        elif s[2][0] == s[1][0] and dt > window / 2:
            s[2] = new


class LongTerm:
    """bbr_lt_bw_sampling(): the rate of a policer."""

    def __init__(self) -> None:
        self.bw, self.use, self.rounds = 0.0, False, 0
        self.last: tuple[int, float, int] | None = None  # time, delivered and lost when the interval began

    def sample(self, ack: Ack, losses: int, lost: int, round_start: bool, mode: str) -> bool:
        """Returns true when the policer's rate was used for 48 rounds."""
        now = ack.now_ns, ack.delivered, lost
        if self.use:
            self.rounds += mode == PROBE_BW and round_start
            if self.rounds < 48:
                return False
            self.__dict__.update(LongTerm().__dict__)
            return True
        if self.last is None:
            if not losses:
                return False
            self.last, self.rounds = now, 0
        self.rounds += round_start
        if self.rounds > 16:
            self.__dict__.update(LongTerm().__dict__)
        elif self.rounds >= 4 and losses:
            began_ns, delivered, before = self.last
            delivered, t = ack.delivered - delivered, (ack.now_ns - began_ns) / S
            if delivered and (lost - before) * 256 >= 50 * delivered and t >= 0.001:
                self.interval_done(delivered / t, now)
        return False

    def interval_done(self, bw: float, now: tuple[int, float, int]) -> None:
        """bbr_lt_bw_interval_done()."""
        difference = abs(bw - self.bw)
        if self.bw and (difference <= self.bw / 8 or difference * MSS <= 4000 / 8):
            self.bw, self.use, self.rounds, self.last = (bw + self.bw) / 2, True, 0, None
        else:
            self.bw, self.last, self.rounds = bw, now, 0


class Bbr(Control):
    """The window and the pacing rate of a model of the path."""

    measures = True

    def __init__(self) -> None:
        super().__init__()
        self.mode = STARTUP
        self.bw_filter, self.lt = RunningMax(), LongTerm()
        self.pace: float | None = None  # segments per second
        self.min_rtt_ns: float = inf
        self.min_rtt_stamp = 0
        self.rtt_cnt, self.next_rtt_delivered, self.round_start = 0, 0.0, False
        self.full_bw, self.full_bw_cnt, self.full = 0.0, 0, False
        self.cycle_idx, self.cycle_mstamp = 0, 0
        self.probe_rtt_done_stamp: int | None = None
        self.probe_rtt_round_done = False
        self.app_limited = 0.0  # data sent before so much was delivered does not measure
        self.prior_cwnd = 0.0
        self.recovery = ""  # "entered" until the next ACK, then "Recovery", as long as it lasts
        self.conserves = False  # packet_conservation
        self.lost = 0

    def bw(self) -> float:
        """bbr_bw()."""
        return self.lt.bw if self.lt.use else self.bw_filter.get()

    def gains(self) -> tuple[float, float]:
        """Returns the gains of pace and window."""
        if self.mode == PROBE_BW:
            return (1.0 if self.lt.use else CYCLE[self.cycle_idx]), 2.0
        return {STARTUP: (HIGH_GAIN, HIGH_GAIN), DRAIN: (1 / HIGH_GAIN, HIGH_GAIN), PROBE_RTT: (1.0, 1.0)}[self.mode]

    def target_cwnd(self, bw: float, gain: float) -> float:
        """bbr_target_cwnd(): the BDP and three quanta, an even number of segments."""
        if self.min_rtt_ns == inf:
            return INITIAL_WINDOW
        return (ceil(gain * bw * self.min_rtt_ns / S) + 3 * self.tso_segs_goal() + 1) // 2 * 2

    def tso_segs_goal(self) -> int:
        """bbr_tso_segs_goal(): a millisecond of the pace, 64 kB at most; two segments from 1.2 Mbit/s on."""
        pace = (self.pace or 0.0) * MSS
        return max(int(min(pace / 1000, 65536)) // MSS, 1 if 8 * pace < 1.2e6 else 2)

    def on_ack(self, ack: Ack) -> None:
        """bbr_main()."""
        if ack.rate is None:
            self.cwnd += min(ack.segments, 2)
            return
        self.main(ack, ack.rate)

    def on_recovery_ack(self, ack: Ack) -> None:
        """The same in recovery."""
        if ack.rate is not None:
            self.main(ack, ack.rate)

    def main(self, ack: Ack, rs: Sample) -> None:
        """bbr_main()."""
        losses, self.lost = rs.lost - self.lost, rs.lost
        self.update_bw(ack, rs, losses)
        self.update_cycle_phase(ack, rs, losses)
        self.check_full_bw_reached()
        self.check_drain(ack, rs)
        self.update_min_rtt(ack, rs)
        self.set_pacing_rate(ack)
        self.set_cwnd(ack, rs, losses)

    def update_bw(self, ack: Ack, rs: Sample, losses: int) -> None:
        """bbr_update_bw()."""
        self.round_start = False
        if rs.interval_ns == 0 or ack.delivered <= rs.prior_delivered:
            return
        if rs.prior_delivered >= self.next_rtt_delivered:
            self.next_rtt_delivered = ack.delivered
            self.rtt_cnt += 1
            self.round_start = True
            self.conserves = False
        if self.lt.sample(ack, losses, rs.lost, self.round_start, self.mode):
            self.reset_probe_bw_mode(ack)
        bw = (ack.delivered - rs.prior_delivered) / (rs.interval_ns / S)
        limited = self.mode == PROBE_RTT or rs.prior_delivered <= self.app_limited
        if not limited or bw >= self.bw_filter.get():
            self.bw_filter.update(self.rtt_cnt, bw)

    def update_cycle_phase(self, ack: Ack, rs: Sample, losses: int) -> None:
        """bbr_update_cycle_phase() and bbr_is_next_cycle_phase()."""
        if self.mode != PROBE_BW:
            return
        full_length = ack.now_ns - self.cycle_mstamp > self.min_rtt_ns
        gain, flight, bw = self.gains()[0], rs.flight + ack.segments, self.bw_filter.get()
        if gain == 1:
            over = full_length
        elif gain > 1:
            over = full_length and (losses > 0 or flight >= self.target_cwnd(bw, gain))
        else:
            over = full_length or flight <= self.target_cwnd(bw, 1)
        if over:
            self.cycle_idx, self.cycle_mstamp = (self.cycle_idx + 1) % 8, ack.now_ns

    def check_full_bw_reached(self) -> None:
        """bbr_check_full_bw_reached()."""
        if self.full or not self.round_start:
            return
        if self.bw_filter.get() >= 1.25 * self.full_bw:
            self.full_bw, self.full_bw_cnt = self.bw_filter.get(), 0
            return
        self.full_bw_cnt += 1
        self.full = self.full_bw_cnt >= 3

    def check_drain(self, ack: Ack, rs: Sample) -> None:
        """bbr_check_drain()."""
        if self.mode == STARTUP and self.full:
            self.mode = DRAIN
        if self.mode == DRAIN and rs.flight <= self.target_cwnd(self.bw_filter.get(), 1):
            self.reset_probe_bw_mode(ack)

    def reset_probe_bw_mode(self, ack: Ack) -> None:
        """bbr_reset_probe_bw_mode(), with the microseconds of the clock in place of a random number."""
        self.mode, self.cycle_mstamp = PROBE_BW, ack.now_ns
        self.cycle_idx = (8 - ack.now_ns // 1000 % 7) % 8

    def save_cwnd(self) -> None:
        """bbr_save_cwnd(): the larger window in recovery and in ProbeRTT."""
        keeps = self.recovery or self.mode == PROBE_RTT
        self.prior_cwnd = max(self.prior_cwnd, self.cwnd) if keeps else self.cwnd

    def update_min_rtt(self, ack: Ack, rs: Sample) -> None:
        """bbr_update_min_rtt()."""
        expired = ack.now_ns - self.min_rtt_stamp > 10 * S
        if ack.rtt_ns and (ack.rtt_ns <= self.min_rtt_ns or expired):
            self.min_rtt_ns, self.min_rtt_stamp = ack.rtt_ns, ack.now_ns
        if expired and self.mode != PROBE_RTT:
            self.save_cwnd()
            self.mode, self.probe_rtt_done_stamp = PROBE_RTT, None
        if self.mode != PROBE_RTT:
            return
        self.app_limited = ack.delivered + rs.flight
        if self.probe_rtt_done_stamp is None:
            if rs.flight <= MIN_CWND:
                self.probe_rtt_done_stamp, self.probe_rtt_round_done = ack.now_ns + 200 * MS, False
                self.next_rtt_delivered = ack.delivered
            return
        self.probe_rtt_round_done |= self.round_start
        if self.probe_rtt_round_done and ack.now_ns > self.probe_rtt_done_stamp:
            self.min_rtt_stamp, self.cwnd = ack.now_ns, max(self.cwnd, self.prior_cwnd)
            if self.full:
                self.reset_probe_bw_mode(ack)
            else:
                self.mode = STARTUP

    def set_pacing_rate(self, ack: Ack) -> None:
        """bbr_set_pacing_rate() and bbr_init_pacing_rate_from_rtt()."""
        if self.pace is None and ack.srtt_ns:
            self.pace = MARGIN * HIGH_GAIN * self.cwnd / (ack.srtt_ns / S)
        rate = MARGIN * self.gains()[0] * self.bw()
        if rate > 0 and (self.full or self.pace is None or rate > self.pace):
            self.pace = rate

    def set_cwnd(self, ack: Ack, rs: Sample, losses: int) -> None:
        """bbr_set_cwnd() and bbr_set_cwnd_to_recover_or_restore()."""
        conserved = rs.flight + ack.segments
        if self.recovery:
            self.cwnd = max(self.cwnd - losses, 1)
        if self.recovery == "entered":
            self.recovery, self.conserves = "Recovery", True
            self.next_rtt_delivered = ack.delivered
            self.cwnd = conserved
        if self.conserves:
            self.cwnd = max(self.cwnd, conserved)
            return
        target = self.target_cwnd(self.bw(), self.gains()[1])
        if self.full:
            self.cwnd = min(self.cwnd + ack.segments, target)
        elif self.cwnd < target or ack.delivered < INITIAL_WINDOW:
            self.cwnd += ack.segments
        self.cwnd = max(self.cwnd, MIN_CWND)
        if self.mode == PROBE_RTT:
            self.cwnd = min(self.cwnd, MIN_CWND)

    def on_loss(self, now: float, flight: float) -> None:
        """bbr_ssthresh(): the window before."""
        del now, flight
        self.save_cwnd()
        self.ssthresh = max(self.cwnd, 2)
        self.recovery = "entered"

    def on_ecn(self, now: float, flight: float) -> None:
        """Version 1 has no answer to marks."""
        del flight
        self.on_recovered(now)

    def on_recovered(self, now: float) -> None:
        """Restores the window from before recovery."""
        del now
        self.recovery, self.conserves = "", False
        if self.mode != PROBE_RTT:
            self.cwnd, self.prior_cwnd = max(self.cwnd, self.prior_cwnd), 0.0

    def adopt(self, cwnd: float, ssthresh: float) -> None:
        """A model knows better; C²ML's ceiling limits what is shown."""

    def on_rto(self, now: float, flight: float) -> None:
        """bbr_set_state() with TCP_CA_Loss."""
        self.on_loss(now, flight)
        self.recovery, self.conserves = "", False
        self.cwnd = 1
        self.full_bw = 0.0

    @property
    def pacing_bps(self) -> float | None:
        """Returns the pacing rate in bit/s."""
        return None if self.pace is None else self.pace * MSS * 8
