"""PIE as RFC 8033 writes it (§4, §5, Appendices A and B), and as the Linux kernel computes it (`sch_pie.c`).

Draws one random number for each arrival that neither the safeguards pass nor the accumulated probability decides. An
update that is due at the time of an arrival or departure comes before it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference.link import NOT_ECT, Arrival, Clock, Fate, Fifo, Limit, Packet, serve

Verdict = Literal["pass", "mark", "drop"]

TIERS = [(0.000001, 2048), (0.00001, 512), (0.0001, 128), (0.001, 32), (0.01, 8), (0.1, 2)]


@dataclass(frozen=True)
class Params:
    """Appendix A. `by_rate`: the delay by Little's law; `linux`: the kernel's arithmetic."""

    target_ns: int = 15_000_000
    tupdate_ns: int = 15_000_000
    alpha: float = 0.125
    beta: float = 1.25
    max_burst_ns: int = 150_000_000
    mean_packet: int = 1000
    by_rate: bool = False
    dq_threshold: int = 16384
    derandomize: bool = True
    bytemode: bool = False
    high_delay_ns: int = 250_000_000
    ecn: bool = False
    ecn_threshold: float = 0.1
    linux: bool = False


class Timed(Fifo):
    """A queue with a timer. An algorithm overrides `update`, `judge` and `departed`."""

    def __init__(self, limit: Limit, first_ns: int, tupdate_ns: int) -> None:
        super().__init__(limit)
        self.clock = Clock(first_ns, tupdate_ns)

    def update(self) -> None:
        """Called when the timer expires: computes the probability."""

    def judge(self, packet: Packet) -> Verdict:
        """Judges an arrival."""
        del packet
        return "pass"

    def departed(self, packet: Packet, now_ns: int) -> None:
        """Called when a packet has left the queue."""

    def run_timer(self, now_ns: int) -> None:
        """Makes all updates which are due."""
        self.clock.run(self, self.update, now_ns)

    def judge_arrival(self, packet: Packet, now_ns: int) -> Verdict:
        """Runs the timer first, since an update which is due now comes before this event."""
        self.run_timer(now_ns)
        return self.judge(packet)

    def shed(self, now_ns: int) -> None:
        """Runs the timer first, since an update which is due now comes before this event."""
        self.run_timer(now_ns)
        self.overflowed()

    def dequeue(self, now_ns: int) -> Packet | None:
        """Runs the timer first, since an update which is due now comes before this event."""
        self.run_timer(now_ns)
        packet = self.pop()
        if packet is not None:
            self.departed(packet, now_ns)
        return packet


class Pie(Timed):
    """The RFC's. Delays are in seconds."""

    def __init__(self, limit: Limit, params: Params, uniform: Callable[[], float]) -> None:
        super().__init__(limit, params.tupdate_ns, params.tupdate_ns)
        self.params = params
        self.uniform = uniform
        self.target = params.target_ns / 1e9
        self.drop_prob = self.accu_prob = self.qdelay_old = 0.0
        self.burst_allowance_ns = 0
        self.last_sojourn = 0.0
        self.avg_dq_time = 0.0
        self.measurement_start_ns: int | None = None
        self.dq_count = 0

    def current_qdelay(self) -> float:
        """Follows §4.3 of the source."""
        if self.params.by_rate:
            return self.bytes * self.avg_dq_time / self.params.dq_threshold
        return self.last_sojourn

    def judge(self, packet: Packet) -> Verdict:
        """Corresponds to enque() in the source."""
        half = self.target / 2
        if self.drop_prob == 0 and self.current_qdelay() < half and self.qdelay_old < half:
            self.burst_allowance_ns = self.params.max_burst_ns
        if self.burst_allowance_ns > 0 or not self.drop_early(packet):
            return "pass"
        self.accu_prob = 0.0
        marks = self.params.ecn and packet.ecn != NOT_ECT and self.drop_prob < self.params.ecn_threshold
        return "mark" if marks else "drop"

    def overflowed(self) -> None:
        """A tail drop restarts the accumulation."""
        self.accu_prob = 0.0

    def drop_early(self, packet: Packet) -> bool:
        """Corresponds to drop_early() in the source."""
        params = self.params
        if self.qdelay_old < self.target / 2 and self.drop_prob < 0.2:
            return False
        if self.bytes <= 2 * params.mean_packet:
            return False
        p = self.drop_prob
        if params.bytemode and packet.size <= params.mean_packet:
            p = packet.size * p / params.mean_packet
        if params.derandomize:
            if self.drop_prob == 0:
                self.accu_prob = 0.0
            self.accu_prob += p
            if self.accu_prob < 0.85:
                return False
            if self.accu_prob >= 8.5:
                return True
        return self.uniform() < p

    def adapt_target(self, qdelay: float) -> None:
        """Leaves the target as it is; Minstrel PIE overrides this method."""

    def update(self) -> None:
        """Corresponds to calculate_drop_prob() in the source."""
        qdelay = self.current_qdelay()
        self.adapt_target(qdelay)
        p = self.params.alpha * (qdelay - self.target) + self.params.beta * (qdelay - self.qdelay_old)
        for below, divisor in TIERS:
            if self.drop_prob < below:
                p /= divisor
                break
        if self.drop_prob >= 0.1 and p > 0.02:
            p = 0.02
        if qdelay > self.params.high_delay_ns / 1e9:
            p += 0.02
        self.drop_prob += p
        if qdelay == 0 and self.qdelay_old == 0:
            self.drop_prob *= 0.98
        self.drop_prob = max(0.0, min(1.0, self.drop_prob))
        self.qdelay_old = qdelay
        self.burst_allowance_ns = max(0, self.burst_allowance_ns - self.params.tupdate_ns)

    def departed(self, packet: Packet, now_ns: int) -> None:
        """Corresponds to deque() in the source."""
        if self.params.by_rate:
            self.measure(packet.size, now_ns)
        else:
            self.last_sojourn = (now_ns - packet.since_ns) / 1e9 if self.queue else 0.0

    def measure(self, size: int, now_ns: int) -> None:
        """Departure rate estimation of §5.2."""
        threshold = self.params.dq_threshold
        if self.measurement_start_ns is not None:
            self.dq_count += size
            if self.dq_count >= threshold:
                dq_time = (now_ns - self.measurement_start_ns) / 1e9
                weight = threshold / 2**16
                if self.avg_dq_time == 0:
                    self.avg_dq_time = dq_time
                else:
                    self.avg_dq_time = dq_time * weight + self.avg_dq_time * (1 - weight)
                self.measurement_start_ns = None
        if self.bytes >= threshold and self.measurement_start_ns is None:
            self.measurement_start_ns = now_ns
            self.dq_count = 0


U32, U64 = 2**32 - 1, 2**64 - 1
MAX_PROB = 2**56 - 1
TICK_NS = 64
TICKS_PER_S = 10**9 // TICK_NS
MTU = 1514
QUEUE_THRESHOLD = 16384


def signed(value: int) -> int:
    """64 bits, read as a number with a sign."""
    value &= U64
    return value - 2**64 if value > 2**63 - 1 else value


class Linux(Timed):
    """The kernel's. Delays are in ticks of 64 ns, probabilities in 2^-56; sums are cut to 64 bits."""

    def __init__(self, limit: Limit, params: Params, uniform: Callable[[], float]) -> None:
        super().__init__(limit, 500_000_000, params.tupdate_ns)
        self.params = params
        self.uniform = uniform
        self.target = params.target_ns // TICK_NS
        self.alpha = int(params.alpha * 16) * (MAX_PROB // TICKS_PER_S) >> 4
        self.beta = int(params.beta * 16) * (MAX_PROB // TICKS_PER_S) >> 4
        self.qdelay = self.qdelay_old = self.prob = 0
        self.vars_init()

    def vars_init(self) -> None:
        """Corresponds to pie_vars_init() in the source."""
        self.burst_time = 150_000_000 // TICK_NS
        self.dq_tstamp: int | None = None
        self.dq_count: int | None = None
        self.accu_prob = 0
        self.avg_dq_rate = 0

    def judge(self, packet: Packet) -> Verdict:
        """Corresponds to pie_qdisc_enqueue() in the source."""
        if not self.drop_early(packet):
            return "pass"
        if self.params.ecn and self.prob <= MAX_PROB // 10 and packet.ecn != NOT_ECT:
            return "mark"
        self.accu_prob = 0
        return "drop"

    def overflowed(self) -> None:
        """A tail drop restarts the accumulation."""
        self.accu_prob = 0

    def drop_early(self, packet: Packet) -> bool:
        """pie_drop_early(). The random number has 53 bits where the kernel's has 56."""
        if self.burst_time > 0 or (self.qdelay < self.target // 2 and self.prob < MAX_PROB // 5):
            return False
        if self.bytes < 2 * MTU:
            return False
        small = self.params.bytemode and packet.size <= MTU
        prob = packet.size * (self.prob // MTU) if small else self.prob
        self.accu_prob = (self.accu_prob + prob) & U64 if prob else 0
        if self.accu_prob < MAX_PROB // 100 * 85:
            return False
        if self.accu_prob >= MAX_PROB // 2 * 17:
            return True
        if int(self.uniform() * 2**56) < prob:
            self.accu_prob = 0
            return True
        return False

    def departed(self, packet: Packet, now_ns: int) -> None:
        """Corresponds to pie_process_dequeue() in the source."""
        now = now_ns // TICK_NS
        if self.params.by_rate:
            self.measure(packet.size, now)
            return
        self.qdelay = now - packet.since_ns // TICK_NS if self.queue else 0
        if self.dq_tstamp is not None:
            self.reduce_burst(now - self.dq_tstamp & U32)
        self.dq_tstamp = now

    def measure(self, size: int, now: int) -> None:
        """The average rate, in 256 bytes per tick."""
        if self.bytes >= QUEUE_THRESHOLD and self.dq_count is None:
            self.dq_tstamp, self.dq_count = now, 0
        if self.dq_count is None or self.dq_tstamp is None:
            return
        self.dq_count += size
        dtime = now - self.dq_tstamp & U32
        if self.dq_count < QUEUE_THRESHOLD or dtime == 0:
            return
        count = (self.dq_count << 8 & U32) // dtime
        rate = self.avg_dq_rate
        self.avg_dq_rate = rate - (rate >> 3) + (count >> 3) if rate else count
        self.dq_tstamp, self.dq_count = now, 0 if self.bytes >= QUEUE_THRESHOLD else None
        self.reduce_burst(dtime)

    def reduce_burst(self, dtime: int) -> None:
        """Reduces the burst allowance by the time of departures."""
        self.burst_time = max(0, self.burst_time - dtime)

    def delays(self) -> tuple[int, int]:
        """Returns the queueing delay now and at the last update, in ticks."""
        if not self.params.by_rate:
            return self.qdelay, self.qdelay_old
        self.qdelay_old = self.qdelay
        qdelay = (self.bytes << 8 & U32) // self.avg_dq_rate if self.avg_dq_rate else 0
        return qdelay, self.qdelay_old

    def delta(self, qdelay: int, qdelay_old: int) -> int:
        """Returns the change of the probability at an update."""
        alpha, beta = self.alpha, self.beta
        if self.prob < MAX_PROB // 10:
            alpha, beta, power = alpha >> 1, beta >> 1, 100
            while self.prob < MAX_PROB // power and power <= 1_000_000:
                alpha, beta, power = alpha >> 2, beta >> 2, power * 10
        delta = signed(alpha * (qdelay - self.target) + beta * (qdelay - qdelay_old))
        if delta > MAX_PROB // 50 and self.prob >= MAX_PROB // 10:
            delta = MAX_PROB // 100 * 2
        if qdelay > 250_000_000 // TICK_NS:
            delta += MAX_PROB // 50
        return signed(delta)

    def update(self) -> None:
        """Corresponds to pie_calculate_probability() in the source."""
        qdelay, qdelay_old = self.delays()
        update_prob = qdelay != 0 or self.bytes == 0
        delta = self.delta(qdelay, qdelay_old)
        oldprob = self.prob
        self.prob = (oldprob + delta) & U64
        if delta > 0 and self.prob < oldprob:
            self.prob = MAX_PROB
            update_prob = False
        elif delta <= 0 and self.prob > oldprob:
            self.prob = 0
        if qdelay == 0 and qdelay_old == 0 and update_prob:
            self.prob -= self.prob // 64
        self.qdelay = qdelay
        calm = max(self.qdelay, self.qdelay_old) < self.target // 2
        if calm and self.prob == 0 and (not self.params.by_rate or self.avg_dq_rate > 0):
            self.vars_init()
        if not self.params.by_rate:
            self.qdelay_old = qdelay


def make(limit: Limit, params: Params, uniform: Callable[[], float]) -> Timed:
    """Creates the queue of this algorithm."""
    return Linux(limit, params, uniform) if params.linux else Pie(limit, params, uniform)


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(make(limit, params, uniform), arrivals, rate_bps)
