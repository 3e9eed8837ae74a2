"""BBR, version 3: the pseudocode of draft-ietf-ccwg-bbr-06, function by function under the draft's names.

Units are segments and seconds. docs/algorithms/bbr3.md names what differs from the draft: the random numbers of
PickProbeWait() are SplitMix64 of the time, rounds are compared with segments, and a mark is a loss in its round.
"""

from __future__ import annotations

from math import floor, inf

from penstock.reference.cc import INITIAL_WINDOW, MSS, Ack, Control, LostSegment

STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT = "Startup", "Drain", "DOWN", "CRUISE", "REFILL", "UP", "ProbeRTT"
PROBE_BW = (DOWN, CRUISE, REFILL, UP)
INIT, REFILLING, STARTING, FEEDBACK, STOPPING = "INIT", "REFILLING", "STARTING", "FEEDBACK", "STOPPING"
GAINS = {  # the table of section 5.6.1: pacing and window
    STARTUP: (2.77, 2.0),
    DRAIN: (0.5, 2.0),
    DOWN: (0.90, 2.0),
    CRUISE: (1.0, 2.0),
    REFILL: (1.0, 2.0),
    UP: (1.25, 2.25),
    PROBE_RTT: (1.0, 0.5),
}
LOSS_THRESH, BETA, HEADROOM, MIN_PIPE_CWND = 0.02, 0.7, 0.15, 4
_MASK = 2**64 - 1


def split_mix(state: int) -> tuple[int, int]:
    """Returns the next state and number of SplitMix64."""
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return state, z ^ (z >> 31)


class RunningMax:
    """lib/win_minmax.c: the best three samples of a window of rounds."""

    def __init__(self) -> None:
        self.s = [(0, 0.0)] * 3

    def update(self, t: int, value: float, window: int) -> float:
        """minmax_running_max() and minmax_subwin_update()."""
        s, new = self.s, (t, value)
        if value >= s[0][1] or t - s[2][0] > window:
            self.s = [new] * 3
            return value
        if value >= s[1][1]:
            s[1] = s[2] = new
        elif value >= s[2][1]:
            s[2] = new
        dt = t - s[0][0]
        if dt > window:
            s[0], s[1], s[2] = s[1], s[2], new
            if t - s[0][0] > window:
                s[0], s[1], s[2] = s[1], s[2], new
        elif s[1][0] == s[0][0] and dt > window // 4:
            s[1] = s[2] = new
        elif s[2][0] == s[1][0] and dt > window // 2:
            s[2] = new
        return s[0][1]


class Bbr3(Control):
    """The window and the pacing rate of a model of the path, which losses bound."""

    follows = True

    def __init__(self) -> None:
        super().__init__()
        self.state, self.pacing_rate = STARTUP, None  # type: tuple[str, float | None]
        self.recovering = False
        self.recovery_delivered = inf
        self.delivered = 0.0
        self.max_bw_samples: dict[int, float] = {}
        self.max_bw = self.bw = 0.0
        self.bw_shortterm = self.inflight_shortterm = self.inflight_longterm = inf
        self.cycle_count = 0
        self.min_rtt = self.probe_rtt_min_delay = inf
        self.min_rtt_stamp = self.probe_rtt_min_stamp = 0
        self.probe_rtt_expired = False
        self.probe_rtt_done_stamp = 0
        self.probe_rtt_round_done = False
        self.limited_from, self.limited_until = inf, 0.0
        self.prior_cwnd = 0.0
        self.undo_state, self.undo = "", (0.0, 0.0, 0.0)
        self.extra_acked_filter, self.extra_acked = RunningMax(), 0.0
        self.extra_acked_interval_start, self.extra_acked_delivered = 0, 0.0
        self.full_bw, self.full_bw_count, self.full_bw_now, self.full_bw_reached = 0.0, 0, False, False
        self.probe_up_acked_per_inc, self.bw_probe_up_acked, self.bw_probe_up_rounds = inf, 0.0, 0
        self.rounds_since_probe_up = 0
        self.is_bw_probe_sample = self.prev_probe_too_high = self.prev_probe_precautionary = False
        self.ack_phase = INIT
        self.cycle_stamp, self.bw_probe_wait = 0, 0.0
        self.is_loss_in_round = self.loss_round_start = False
        self.bw_latest = self.inflight_latest = self.loss_round_delivered = 0.0
        self.lost_ranges = 0
        self.next_round_delivered, self.round_start, self.round_count, self.drain_start_round = 0.0, False, 0, 0

    def on_begin(self, now_ns: int, srtt_ns: int) -> None:
        """What OnInit() does with the time and C.srtt."""
        self.min_rtt = srtt_ns / 1e9 if srtt_ns else inf
        self.min_rtt_stamp = self.probe_rtt_min_stamp = self.extra_acked_interval_start = now_ns
        self.probe_rtt_min_delay = self.min_rtt
        self.pacing_rate = 2.77 * INITIAL_WINDOW / (srtt_ns / 1e9 if srtt_ns else 0.001)

    def on_ack(self, ack: Ack) -> None:
        """Without a sample: as slow start."""
        self.cwnd += min(ack.segments, 2)

    def on_delivered(self, ack: Ack) -> None:
        """UpdateOnACK()."""
        if ack.rate is None:
            self.on_ack(ack)
            return
        # RS, as the pseudocode has it.
        self.now, self.delivered, self.newly_acked = ack.now_ns, ack.delivered, ack.segments
        self.rs_prior_delivered = ack.rate.prior_delivered
        self.rs_delivered = ack.delivered - ack.rate.prior_delivered
        self.rs_rate = self.rs_delivered / (ack.rate.interval_ns / 1e9)
        self.rs_rtt, self.inflight = ack.rtt, ack.rate.flight
        self.rs_tx_in_flight, self.rs_lost = ack.rate.flight + ack.segments, ack.rate.lost_since
        self.rs_is_app_limited = self.limited_from <= ack.rate.prior_delivered <= self.limited_until
        self.update_model_and_state()
        self.set_pacing_rate(GAINS[self.state][0])
        self.set_cwnd()

    def update_model_and_state(self) -> None:
        """UpdateModelAndState()."""
        self.update_latest_delivery_signals()
        self.update_congestion_signals()
        self.update_ack_aggregation()
        self.check_full_bw_reached()
        self.check_startup_done()
        self.check_drain_done()
        self.update_probe_bw_cycle_phase()
        self.update_min_rtt()
        self.check_probe_rtt()
        if self.loss_round_start:  # AdvanceLatestDeliverySignals()
            self.bw_latest, self.inflight_latest = self.rs_rate, self.rs_delivered
        self.bw = min(self.max_bw, self.bw_shortterm)  # BoundBWForModel()

    # 5.3.1, 5.3.2: Startup and Drain

    def reset_full_bw(self) -> None:
        """ResetFullBW()."""
        self.full_bw, self.full_bw_count, self.full_bw_now = 0.0, 0, False

    def check_full_bw_reached(self) -> None:
        """CheckFullBWReached()."""
        if self.full_bw_now or not self.round_start or self.rs_is_app_limited:
            return
        if self.rs_rate >= self.full_bw * 1.25:
            self.reset_full_bw()
            self.full_bw = self.rs_rate
            return
        self.full_bw_count += 1
        self.full_bw_now = self.full_bw_count >= 3
        self.full_bw_reached |= self.full_bw_now

    def check_startup_done(self) -> None:
        """CheckStartupDone(), with CheckStartupHighLoss() of section 5.3.1.3."""
        if self.state == STARTUP and not self.full_bw_reached and self.recovering and self.loss_round_start:
            full_round = self.rs_prior_delivered >= self.recovery_delivered
            if full_round and self.lost_ranges >= 6 and self.is_inflight_too_high(self.rs_lost, self.rs_tx_in_flight):
                self.undo_state = STARTUP
                self.full_bw_now = self.full_bw_reached = True
                self.inflight_longterm = max(self.bdp(), self.inflight_latest)
        if self.loss_round_start:
            self.lost_ranges = 0
        if self.state == STARTUP and self.full_bw_reached:
            self.state, self.drain_start_round = DRAIN, self.round_count

    def check_drain_done(self) -> None:
        """CheckDrainDone()."""
        drained = self.state == DRAIN and self.inflight <= self.inflight_at(self.bw)
        if drained or (self.state == DRAIN and self.round_count > self.drain_start_round + 3):
            self.start_down()

    # 5.3.3: ProbeBW

    def is_time_to_probe_bw(self) -> bool:
        """IsTimeToProbeBW()."""
        elapsed = self.now > self.cycle_stamp + floor(self.bw_probe_wait * 1e9 + 0.5)
        reno = self.rounds_since_probe_up >= min(self.target_inflight(), 63)
        if elapsed or reno:
            self.start_refill()
        return elapsed or reno

    def target_inflight(self) -> float:
        """TargetInflight()."""
        return min(self.bdp(), self.cwnd)

    def start_down(self) -> None:
        """StartProbeBW_DOWN(), with PickProbeWait()."""
        self.is_loss_in_round, self.bw_latest, self.inflight_latest = False, 0.0, 0.0
        self.probe_up_acked_per_inc = inf
        state, number = split_mix(self.now)
        self.rounds_since_probe_up = number >> 63
        self.bw_probe_wait = 2 + (split_mix(state)[1] >> 11) / 2**53
        self.cycle_stamp, self.ack_phase = self.now, STOPPING
        self.next_round_delivered = self.delivered
        self.state = DOWN

    def start_refill(self) -> None:
        """StartProbeBW_REFILL()."""
        self.bw_shortterm = self.inflight_shortterm = inf
        self.bw_probe_up_rounds, self.bw_probe_up_acked = 0, 0.0
        self.prev_probe_precautionary = False
        self.ack_phase = REFILLING
        self.next_round_delivered = self.delivered
        self.state = REFILL

    def start_up(self) -> None:
        """StartProbeBW_UP()."""
        self.ack_phase = STARTING
        self.next_round_delivered = self.delivered
        self.reset_full_bw()
        self.full_bw, self.state = self.rs_rate, UP
        self.raise_slope()

    def update_probe_bw_cycle_phase(self) -> None:
        """UpdateProbeBWCyclePhase()."""
        if not self.full_bw_reached or self.adapt_long_term_model():
            return
        if self.state == DOWN:
            if not self.is_time_to_probe_bw() and self.is_time_to_cruise():
                self.state = CRUISE
        elif self.state == CRUISE:
            self.is_time_to_probe_bw()
        elif self.state == REFILL and self.round_start:
            self.is_bw_probe_sample = True
            self.start_up()
        elif self.state == UP and self.is_time_to_go_down():
            self.prev_probe_too_high = False
            self.start_down()

    def is_time_to_cruise(self) -> bool:
        """IsTimeToCruise()."""
        return self.inflight <= self.inflight_with_headroom() and self.inflight <= self.inflight_at(self.max_bw)

    def is_time_to_go_down(self) -> bool:
        """IsTimeToGoDown()."""
        if self.prev_probe_too_high and self.inflight >= self.inflight_longterm:
            self.prev_probe_precautionary = True
            return True
        if self.cwnd >= self.inflight_longterm:  # a script's window is always in full use
            self.reset_full_bw()
            self.full_bw = self.rs_rate
            return False
        return self.full_bw_now

    def inflight_with_headroom(self) -> float:
        """InflightWithHeadroom()."""
        if self.inflight_longterm == inf:
            return inf
        return max(self.inflight_longterm - max(1, HEADROOM * self.inflight_longterm), MIN_PIPE_CWND)

    def raise_slope(self) -> None:
        """RaiseInflightLongtermSlope()."""
        growth_this_round = 1 << self.bw_probe_up_rounds
        self.bw_probe_up_rounds = min(self.bw_probe_up_rounds + 1, 30)
        self.probe_up_acked_per_inc = max(self.cwnd / growth_this_round, 1)

    def probe_inflight_longterm_upward(self) -> None:
        """ProbeInflightLongtermUpward()."""
        if self.cwnd < self.inflight_longterm:
            return
        self.bw_probe_up_acked += self.newly_acked
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc:
            delta = floor(self.bw_probe_up_acked / self.probe_up_acked_per_inc)
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc
            self.inflight_longterm += delta
        if self.round_start:
            self.raise_slope()

    def adapt_long_term_model(self) -> bool:
        """AdaptLongTermModel()."""
        if self.ack_phase == STARTING and self.round_start:
            self.ack_phase = FEEDBACK
        if self.ack_phase == STOPPING and self.round_start:
            self.is_bw_probe_sample, self.ack_phase = False, INIT
            probing = self.state in PROBE_BW
            self.cycle_count += probing and not self.rs_is_app_limited  # AdvanceMaxBwFilter()
            if probing and self.prev_probe_precautionary and not self.prev_probe_too_high:
                self.start_refill()
                return True
        if not self.is_inflight_too_high(self.rs_lost, self.rs_tx_in_flight) and self.inflight_longterm != inf:
            self.inflight_longterm = max(self.inflight_longterm, self.rs_tx_in_flight)
            if self.state == UP:
                self.probe_inflight_longterm_upward()
        return False

    # 5.3.4: ProbeRTT

    def update_min_rtt(self) -> None:
        """UpdateMinRTT()."""
        self.probe_rtt_expired = self.now > self.probe_rtt_min_stamp + 5 * 10**9
        if self.rs_rtt and (self.rs_rtt < self.probe_rtt_min_delay or self.probe_rtt_expired):
            self.probe_rtt_min_delay, self.probe_rtt_min_stamp = self.rs_rtt, self.now
        if self.probe_rtt_min_delay < self.min_rtt or self.now > self.min_rtt_stamp + 10 * 10**9:
            self.min_rtt, self.min_rtt_stamp = self.probe_rtt_min_delay, self.probe_rtt_min_stamp

    def check_probe_rtt(self) -> None:
        """CheckProbeRTT(). A script has no idle times."""
        if self.state != PROBE_RTT and self.probe_rtt_expired:
            self.state = PROBE_RTT
            self.save_cwnd()
            self.probe_rtt_done_stamp, self.ack_phase = 0, STOPPING
            self.next_round_delivered = self.delivered
        if self.state == PROBE_RTT:
            self.handle_probe_rtt()

    def handle_probe_rtt(self) -> None:
        """HandleProbeRTT(), CheckProbeRTTDone() and ExitProbeRTT()."""
        if self.delivered > self.limited_until:  # MarkConnectionAppLimited()
            self.limited_from = self.delivered
        self.limited_until = self.delivered + self.inflight
        if self.probe_rtt_done_stamp == 0 and self.inflight <= self.probe_rtt_cwnd():
            self.probe_rtt_done_stamp = self.now + 200 * 10**6
            self.probe_rtt_round_done = False
            self.next_round_delivered = self.delivered
        elif self.probe_rtt_done_stamp != 0:
            self.probe_rtt_round_done |= self.round_start
            if self.probe_rtt_round_done and self.now > self.probe_rtt_done_stamp:
                self.probe_rtt_min_stamp = self.now
                self.cwnd = max(self.cwnd, self.prior_cwnd)
                self.bw_shortterm = self.inflight_shortterm = inf
                if self.full_bw_reached:
                    self.start_down()
                    self.state = CRUISE
                else:
                    self.state = STARTUP

    # 5.5: the model

    def update_congestion_signals(self) -> None:
        """UpdateMaxBw(), UpdateRound() and UpdateCongestionSignals()."""
        self.round_start = self.rs_prior_delivered >= self.next_round_delivered
        if self.round_start:
            self.next_round_delivered = self.delivered
            self.round_count += 1
            self.rounds_since_probe_up += 1
        if self.rs_rate > 0 and (self.rs_rate >= self.max_bw or not self.rs_is_app_limited):
            kept = {cycle: bw for cycle, bw in self.max_bw_samples.items() if cycle >= self.cycle_count - 1}
            kept[self.cycle_count] = max(kept.get(self.cycle_count, 0.0), self.rs_rate)
            self.max_bw_samples, self.max_bw = kept, max(kept.values())
        if not self.loss_round_start:
            return
        if self.state not in (STARTUP, REFILL, UP) and self.is_loss_in_round:  # AdaptLowerBoundsFromCongestion()
            if self.bw_shortterm == inf:
                self.bw_shortterm = self.max_bw
            if self.inflight_shortterm == inf:
                self.inflight_shortterm = self.cwnd
            self.bw_shortterm = max(self.bw_latest, BETA * self.bw_shortterm)
            self.inflight_shortterm = max(self.inflight_latest, BETA * self.inflight_shortterm)
        self.is_loss_in_round = False

    def update_latest_delivery_signals(self) -> None:
        """UpdateLatestDeliverySignals()."""
        self.bw_latest = max(self.bw_latest, self.rs_rate)
        self.inflight_latest = max(self.inflight_latest, self.rs_delivered)
        self.loss_round_start = self.rs_prior_delivered >= self.loss_round_delivered
        if self.loss_round_start:
            self.loss_round_delivered = self.delivered

    def update_ack_aggregation(self) -> None:
        """UpdateACKAggregation()."""
        expected = self.bw * (self.now - self.extra_acked_interval_start) / 1e9
        if self.extra_acked_delivered <= expected:
            self.extra_acked_delivered, self.extra_acked_interval_start, expected = 0.0, self.now, 0.0
        self.extra_acked_delivered += self.newly_acked
        extra = min(self.extra_acked_delivered - expected, self.cwnd)
        length = 10 if self.full_bw_reached else 1
        self.extra_acked = self.extra_acked_filter.update(self.round_count, extra, length)

    def is_inflight_too_high(self, lost: float, tx_in_flight: float) -> bool:
        """IsInflightTooHigh(), with SACK."""
        return lost > tx_in_flight * LOSS_THRESH

    def handle_inflight_too_high(self, tx_in_flight: float, app_limited: bool) -> None:
        """HandleInflightTooHigh()."""
        self.prev_probe_too_high, self.is_bw_probe_sample = True, False
        if not app_limited:
            self.inflight_longterm = max(tx_in_flight, self.target_inflight() * BETA)
        if self.state == UP:
            self.undo_state = UP
            self.start_down()

    def note_loss(self) -> None:
        """NoteLoss()."""
        if not self.is_loss_in_round:
            self.loss_round_delivered = self.delivered
            self.save_state_upon_loss()
        self.is_loss_in_round = True

    def on_lost(self, packet: LostSegment) -> None:
        """HandleLostPacket(), with InflightAtLoss()."""
        self.now = packet.now_ns
        self.delivered = packet.delivered
        self.note_loss()
        self.lost_ranges += 1
        if self.is_bw_probe_sample and self.is_inflight_too_high(packet.lost, packet.tx_in_flight):
            prev = packet.tx_in_flight - 1
            prefix = (LOSS_THRESH * prev - (packet.lost - 1)) / (1 - LOSS_THRESH)
            app_limited = self.limited_from <= packet.prior_delivered <= self.limited_until
            self.handle_inflight_too_high(prev + prefix, app_limited)

    def save_state_upon_loss(self) -> None:
        """SaveStateUponLoss()."""
        self.save_cwnd()
        self.undo_state = ""
        self.undo = (self.bw_shortterm, self.inflight_shortterm, self.inflight_longterm)

    # 5.6: the control parameters

    def bdp(self) -> float:
        """BBR.bdp."""
        return INITIAL_WINDOW if self.min_rtt == inf else self.bw * self.min_rtt

    def quantization_budget(self, cap: float) -> float:
        """QuantizationBudget(), with SetSendQuantum()."""
        quantum = max(min((self.pacing_rate or 0.0) * 0.001, 65536 / MSS), 2)
        return max(cap, 3 * quantum, MIN_PIPE_CWND) + (2 if self.state == UP else 0)

    def inflight_at(self, bw: float) -> float:
        """Inflight(bw, 1.0)."""
        return self.quantization_budget(INITIAL_WINDOW if self.min_rtt == inf else bw * self.min_rtt)

    def probe_rtt_cwnd(self) -> float:
        """ProbeRTTCwnd()."""
        return max(INITIAL_WINDOW if self.min_rtt == inf else 0.5 * self.bdp(), MIN_PIPE_CWND)

    def set_pacing_rate(self, gain: float) -> None:
        """SetPacingRateWithGain()."""
        rate = gain * self.bw * 99 / 100
        if self.full_bw_reached or self.pacing_rate is None or rate > self.pacing_rate:
            self.pacing_rate = rate

    def set_cwnd(self) -> None:
        """SetCwnd(), BoundCwndForProbeRTT() and BoundCwndForModel()."""
        gain = GAINS[self.state][1]
        multiple = INITIAL_WINDOW if self.min_rtt == inf else gain * self.bdp()
        max_inflight = self.quantization_budget(multiple + self.extra_acked)
        if self.full_bw_reached:
            self.cwnd = min(self.cwnd + self.newly_acked, max_inflight)
        elif self.cwnd < max_inflight or self.delivered < INITIAL_WINDOW:
            self.cwnd += self.newly_acked
        self.cwnd = max(self.cwnd, MIN_PIPE_CWND)
        if self.state == PROBE_RTT:
            self.cwnd = min(self.cwnd, self.probe_rtt_cwnd())
        cap = inf
        if self.state in PROBE_BW and self.state != CRUISE:
            cap = self.inflight_longterm
        elif self.state in (PROBE_RTT, CRUISE):
            cap = self.inflight_with_headroom()
        self.cwnd = min(self.cwnd, max(min(cap, self.inflight_shortterm), MIN_PIPE_CWND))

    def save_cwnd(self) -> None:
        """SaveCwnd()."""
        keeps = self.recovering or self.state == PROBE_RTT
        self.prior_cwnd = max(self.prior_cwnd, self.cwnd) if keeps else self.cwnd

    def on_loss(self, now: float, flight: float) -> None:
        """OnEnterFastRecovery()."""
        del now, flight
        self.ssthresh = max(int(self.cwnd * MSS) / MSS, 2)
        self.save_cwnd()
        self.save_state_upon_loss()
        self.recovering, self.recovery_delivered = True, self.delivered

    def on_ecn(self, now: float, flight: float) -> None:
        """Section 3.7: a mark is congestion."""
        self.now = round(now * 1e9)
        self.note_loss()
        if self.is_bw_probe_sample:
            self.handle_inflight_too_high(flight, False)
        self.on_recovered(now)

    def on_rto(self, now: float, flight: float) -> None:
        """OnEnterRTO()."""
        del now
        self.ssthresh = max(int(self.cwnd * MSS) / MSS, 2)
        self.save_cwnd()
        self.save_state_upon_loss()
        self.recovering, self.recovery_delivered = True, inf
        self.cwnd = flight + 1

    def on_recovered(self, now: float) -> None:
        """RestoreCwnd() at the end of a recovery."""
        del now
        if self.recovering:
            self.recovering, self.recovery_delivered = False, inf
            self.cwnd = max(self.cwnd, self.prior_cwnd)

    @property
    def pacing_bps(self) -> float | None:
        """Returns the pacing rate in bit/s."""
        return None if self.pacing_rate is None else self.pacing_rate * MSS * 8
