"""DualPI2 (RFC 9332, Appendix A), with Linux's weighted round robin.

Draws no random numbers: `recur` spaces signals evenly.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.reference.link import CE, ECT1, NOT_ECT, Arrival, Fate, Limit, Packet, serve
from penstock.reference.pie import Timed


@dataclass(frozen=True)
class Params:
    """A.1; alpha and beta in 1/s, the weight in percent."""

    target_ns: int
    tupdate_ns: int
    alpha: float
    beta: float
    coupling: float = 2.0
    min_th_ns: int = 800_000
    range_ns: int = 400_000
    th_len: int = 1
    classic_weight: int = 10
    mtu: int = 1514


@dataclass
class Class:
    """One of the two queues, and the count of `recur`."""

    queue: deque[Packet]
    count: float = 0.0

    def recur(self, likelihood: float) -> bool:
        """Returns true at a rate of `likelihood`, at even distances (A.1 of the source)."""
        self.count += likelihood
        if self.count > 1:
            self.count -= 1
            return True
        return False


class DualPi2(Timed):
    """`lq` and `cq` hold the packets; `queue` has as many as both together, in any order."""

    def __init__(self, limit: Limit, params: Params) -> None:
        super().__init__(limit, params.tupdate_ns, params.tupdate_ns)
        self.params = params
        self.lq, self.cq = Class(deque()), Class(deque())
        self.overload = Class(deque())
        self.base = 0.0
        self.prevq = 0.0
        self.reset_credit()

    def reset_credit(self) -> None:
        """Resets the credit of the round robin, with an advantage for the L queue."""
        self.credit = self.params.mtu * (2 * self.params.classic_weight - 100)

    def update(self) -> None:
        """dualpi2_update()."""
        heads = [q.queue[0].since_ns for q in (self.lq, self.cq) if q.queue]
        curq = (self.clock.next_ns - min(heads)) / 1e9 if heads else 0.0
        target = self.params.target_ns / 1e9
        step = self.params.alpha * (curq - target) + self.params.beta * (curq - self.prevq)
        self.base = max(0.0, min(1.0, self.base + step))
        self.prevq = curq

    def enqueue(self, packet: Packet, now_ns: int) -> None:
        """The classifier."""
        super().enqueue(packet, now_ns)
        if packet.id not in self.fates:
            (self.lq if packet.ecn in (ECT1, CE) else self.cq).queue.append(packet)

    def scheduler(self) -> Class:
        """Returns the queue whose turn it is. At least one packet waits."""
        if self.lq.queue and (not self.cq.queue or self.credit <= 0):
            return self.lq
        return self.cq

    def take(self, chosen: Class) -> Packet:
        """Removes and returns the head of a queue."""
        packet = chosen.queue.popleft()
        self.queue.pop()
        self.bytes -= packet.size
        return packet

    def dequeue(self, now_ns: int) -> Packet | None:
        """dualpi2_dequeue()."""
        self.run_timer(now_ns)
        sent = None
        while self.queue and sent is None:
            chosen, contended = self.scheduler(), bool(self.lq.queue and self.cq.queue)
            in_lq = len(self.lq.queue)
            packet = self.take(chosen)
            if self.dies(packet, chosen, now_ns - packet.since_ns, in_lq):
                self.end(packet, "drop_dequeue", now_ns)
                continue
            sent = packet
            if contended:
                weight = self.params.classic_weight
                self.credit += packet.size * (weight if chosen is self.lq else weight - 100)
        if not self.queue:
            self.reset_credit()
        return sent

    def dies(self, packet: Packet, chosen: Class, sojourn_ns: int, in_lq: int) -> bool:
        """Drops, marks or passes a packet at its departure; returns true if it is dropped."""
        p_c, p_cl = self.base * self.base, self.params.coupling * self.base
        if chosen is self.lq:
            if p_cl >= 1 and self.overload.recur(p_c):
                return True
            if chosen.recur(min(1.0, max(self.laqm(sojourn_ns, in_lq), p_cl))):
                packet.ecn = CE
            return False
        if not chosen.recur(p_c):
            return False
        if packet.ecn == NOT_ECT or p_cl >= 1:
            return True
        packet.ecn = CE
        return False

    def laqm(self, sojourn_ns: int, in_lq: int) -> float:
        """The ramp."""
        above = sojourn_ns - self.params.min_th_ns
        if in_lq <= self.params.th_len or above <= 0:
            return 0.0
        return 1.0 if above >= self.params.range_ns else (above / 1e9) / (self.params.range_ns / 1e9)


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    del uniform
    return serve(DualPi2(limit, params), arrivals, rate_bps)
