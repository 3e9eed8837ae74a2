"""DualPI2 as Linux 6.18 has it (net/sched/sch_dualpi2.c), without filters and GSO: whole numbers, rolls of chance.

Draws one random number for each roll, of which it takes the upper 32 bits; the second of two only if the first was low.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.reference.link import CE, ECT0, NOT_ECT, NS_PER_S, Arrival, Fate, Limit, Packet, serve
from penstock.reference.pie import Timed

U32 = 2**32 - 1


@dataclass(frozen=True)
class Params:
    """dualpi2_reset_default(). Gains are in 1/256 Hz, the weight in percent."""

    target_ns: int = 15_000_000
    tupdate_ns: int = 16_000_000
    alpha: int = 41
    beta: int = 819
    coupling: int = 2
    step_ns: int = 1_000_000
    step_packets: int | None = None
    min_qlen_step: int = 0
    drop_early: bool = False
    drop_overload: bool = True
    any_ect: bool = False
    memory_limit: int | None = None
    classic_weight: int = 10
    mtu: int = 1514


def scale(gain: int) -> int:
    """dualpi2_scale_alpha_beta(): for times in 64 ns and probabilities in 2^-32."""
    return (gain * U32 >> 2) // NS_PER_S


class LinuxDualPi2(Timed):
    """dualpi2_sched_data. `l` and `c` hold the packets; `queue` has as many as both together, in any order."""

    def __init__(self, limit: Limit, params: Params, uniform: Callable[[], float]) -> None:
        super().__init__(limit, params.tupdate_ns, params.tupdate_ns)
        self.params = params
        self.uniform = uniform
        self.l: deque[Packet] = deque()
        self.c: deque[Packet] = deque()
        self.stepped: set[int] = set()
        self.prob = 0
        self.last_qdelay = 0
        self.credit = self.first_credit = params.mtu * (2 * params.classic_weight - 100)
        kind, most = limit
        default = min(U32, most * 2 * params.mtu) if kind == "packets" else 2**63
        self.memory_limit = default if params.memory_limit is None else params.memory_limit

    def update(self) -> None:
        """calculate_probability()."""
        heads = [queue[0].since_ns for queue in (self.l, self.c) if queue]
        qdelay = self.clock.next_ns - min(heads) if heads else 0
        delta = (qdelay - self.params.target_ns) * scale(self.params.alpha)
        delta += (qdelay - self.last_qdelay) * scale(self.params.beta)
        self.last_qdelay = qdelay
        if delta > 0:
            prob = self.prob + (delta >> 6) & U32
            prob = U32 if prob < self.prob else prob
        else:
            prob = self.prob - (-delta >> 6) & U32
            prob = 0 if prob > self.prob else prob
        self.prob = prob if self.params.drop_overload else min(prob, U32 // self.params.coupling)

    def roll(self, prob: int) -> bool:
        """dualpi2_roll()."""
        return int(self.uniform() * 2**32) <= prob

    def must_drop(self, packet: Packet, in_l: bool) -> bool:
        """Marks the packet, or returns true if it is to be dropped."""
        if self.bytes < 2 * self.params.mtu:
            return False
        l_prob = self.prob * self.params.coupling
        overload = l_prob > U32
        if in_l and not overload:
            if self.roll(l_prob):
                packet.ecn = CE
            return False
        may = not in_l or self.params.drop_overload
        both = may and self.roll(self.prob) and self.roll(self.prob)
        if both and (overload or packet.ecn == NOT_ECT):
            return True
        if both or in_l:
            packet.ecn = CE
        return False

    def enqueue(self, packet: Packet, now_ns: int) -> None:
        """dualpi2_skb_classify() and dualpi2_enqueue_skb()."""
        self.run_timer(now_ns)
        in_l = bool(packet.ecn & 1) or (self.params.any_ect and packet.ecn == ECT0)
        if not self.has_room(packet) or self.bytes + packet.size > self.memory_limit:
            self.end(packet, "drop_overflow", now_ns)
            return
        if self.params.drop_early and self.must_drop(packet, in_l):
            self.end(packet, "drop_early", now_ns)
            return
        if in_l and len(self.l) >= self.params.min_qlen_step:
            self.stepped.add(packet.id)
        (self.l if in_l else self.c).append(packet)
        self.queue.append(packet)
        self.bytes += packet.size

    def step(self, packet: Packet, now_ns: int) -> None:
        """do_step_aqm(), for packets that are ECN-capable."""
        most = self.params.step_packets
        above = now_ns - packet.since_ns > self.params.step_ns if most is None else len(self.l) > most
        if packet.id in self.stepped and above:
            packet.ecn = CE

    def dequeue(self, now_ns: int) -> Packet | None:
        """dualpi2_qdisc_dequeue()."""
        self.run_timer(now_ns)
        while self.queue:
            in_l = bool(self.l) and (not self.c or self.credit <= 0)
            contended = bool(self.l and self.c)
            packet = (self.l if in_l else self.c).popleft()
            self.queue.pop()
            self.bytes -= packet.size
            if not self.params.drop_early and self.must_drop(packet, in_l):
                self.end(packet, "drop_dequeue", now_ns)
                continue
            if in_l:
                self.step(packet, now_ns)
            if contended:
                weight = self.params.classic_weight
                self.credit += packet.size * (weight if in_l else weight - 100)
            return packet
        self.credit = self.first_credit
        return None


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(LinuxDualPi2(limit, params, uniform), arrivals, rate_bps)
