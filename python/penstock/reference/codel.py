"""CoDel as RFC 8289 §5 writes it, and as the Linux kernel computes it: `dequeue` may drop several packets in one call.

Draws no random numbers. With `ecn`, a packet that can be marked is marked and sent where it would be dropped, and the
call ends there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

from penstock.reference.link import CE, NOT_ECT, Arrival, Fate, Fifo, Limit, Packet, serve


@dataclass(frozen=True)
class Params:
    """§4.3, §4.4 and §5.5.

    `linux`: the kernel's clock, square root and comparisons. `ends_when_empty`: since Linux 7.0 an empty queue ends a
    running interval.
    """

    target_ns: int = 5_000_000
    interval_ns: int = 100_000_000
    mtu: int = 1514
    ecn: bool = False
    linux: bool = False
    ends_when_empty: bool = False
    ce_threshold_ns: int | None = None
    ce_selector: int = 0
    ce_mask: int = 0


class CoDel(Fifo):
    """The queue and its state; a time of None stands for the RFC's 0."""

    def __init__(self, limit: Limit, params: Params) -> None:
        super().__init__(limit)
        self.params = params
        self.first_above_ns: int | None = None
        self.drop_next_ns = 0
        self.count = 0
        self.lastcount = 0
        self.dropping = False

    def control_law(self, t_ns: int) -> int:
        """Returns the time of the drop that follows the one at `t_ns`, rounded to the nearest nanosecond."""
        seconds = self.params.interval_ns / 1e9 / sqrt(self.count)
        return t_ns + int(seconds * 1e9 + 0.5)

    def look(self, now_ns: int) -> tuple[Packet | None, bool]:
        """Returns the next packet, and whether it may be dropped (dodequeue() in RFC 8289)."""
        packet = self.pop()
        if packet is None:
            self.first_above_ns = None
            return None, False
        if now_ns - packet.since_ns < self.params.target_ns or self.bytes <= self.params.mtu:
            self.first_above_ns = None
            return packet, False
        if self.first_above_ns is None:
            self.first_above_ns = now_ns + self.params.interval_ns
            return packet, False
        return packet, now_ns >= self.first_above_ns

    def dequeue(self, now_ns: int) -> Packet | None:
        """Returns the packet that is sent; drops others before it."""
        packet = self.passing(now_ns)
        return self.step(packet, now_ns - packet.since_ns if packet else 0, self.params.ce_threshold_ns)

    def passing(self, now_ns: int) -> Packet | None:
        """deque() in RFC 8289."""
        packet, may_drop = self.look(now_ns)
        if self.dropping:
            return self.go_on(packet, may_drop, now_ns)
        if packet is not None and may_drop:
            return self.enter(packet, now_ns)
        return packet

    def go_on(self, packet: Packet | None, may_drop: bool, now_ns: int) -> Packet | None:
        """Drops packets in the dropping state until the next drop is in the future, or until the state ends."""
        self.dropping = may_drop
        while self.dropping and packet is not None and now_ns >= self.drop_next_ns:
            self.count += 1
            if self.mark(packet):
                self.drop_next_ns = self.control_law(self.drop_next_ns)
                return packet
            self.end(packet, "drop_dequeue", now_ns)
            packet, self.dropping = self.look(now_ns)
            if self.dropping:
                self.drop_next_ns = self.control_law(self.drop_next_ns)
        return packet

    def enter(self, packet: Packet, now_ns: int) -> Packet | None:
        """Enters the dropping state: drops one packet, and resumes the former drop rate if it was in use recently."""
        sent: Packet | None = packet
        if not self.mark(packet):
            self.end(packet, "drop_dequeue", now_ns)
            sent, _ = self.look(now_ns)
        self.dropping = True
        delta = self.count - self.lastcount
        lately = now_ns - self.drop_next_ns < 16 * self.params.interval_ns
        self.count = delta if delta > 1 and lately else 1
        self.drop_next_ns = self.control_law(now_ns)
        self.lastcount = self.count
        return sent

    def mark(self, packet: Packet) -> bool:
        """Marks the packet instead of dropping it, if ECN is on and the packet can be marked; returns true if so."""
        if not self.params.ecn or packet.ecn == NOT_ECT:
            return False
        packet.ecn = CE
        return True

    def step(self, packet: Packet | None, waited: int, most: int | None) -> Packet | None:
        """The end of codel_dequeue(): marks a packet that goes out and waited longer than `ce_threshold`."""
        if packet is not None and most is not None and waited > most:
            selected = packet.ecn & self.params.ce_mask == self.params.ce_selector
            packet.ecn = CE if selected and packet.ecn != NOT_ECT else packet.ecn
        return packet


TICK_NS = 1024
U16, U64 = 2**16 - 1, 2**64 - 1


class Linux(CoDel):
    """The kernel's. Times are in ticks of 1024 ns; `rec_inv_sqrt` is 1 / sqrt(count) in 2^-16."""

    def __init__(self, limit: Limit, params: Params) -> None:
        super().__init__(limit, params)
        self.target = params.target_ns // TICK_NS
        self.interval = params.interval_ns // TICK_NS
        self.first_above: int | None = None
        self.drop_next = 0
        self.rec_inv_sqrt = 0
        self.others: Callable[[], int] = lambda: 0  # bytes in the other queues of a flow queue

    def shed(self, now_ns: int) -> None:
        """fq_codel_drop() counts what it drops."""
        del now_ns
        self.count += 1

    def newton_step(self) -> None:
        """codel_Newton_step(): 64 bits that overflow, cut to 16."""
        inv = self.rec_inv_sqrt << 16
        val = ((3 << 32) - self.count * (inv * inv >> 32) & U64) >> 2
        self.rec_inv_sqrt = (val * inv & U64) >> 31 >> 16 & U16

    def after(self, t: int) -> int:
        """Corresponds to codel_control_law() in the source."""
        return t + (self.interval * (self.rec_inv_sqrt << 16) >> 32)

    def should_drop(self, packet: Packet | None, now: int) -> bool:
        """codel_should_drop(). After, not at, the end of the interval."""
        if packet is None:
            self.first_above = None
            return False
        if now - packet.since_ns // TICK_NS < self.target or self.bytes + self.others() <= self.params.mtu:
            self.first_above = None
            return False
        if self.first_above is None:
            self.first_above = now + self.interval
            return False
        return now > self.first_above

    def dequeue(self, now_ns: int) -> Packet | None:
        """Corresponds to codel_dequeue() in the source."""
        packet, most = self.passing(now_ns), self.params.ce_threshold_ns
        waited = now_ns // TICK_NS - packet.since_ns // TICK_NS if packet else 0
        return self.step(packet, waited, None if most is None else most // TICK_NS)

    def passing(self, now_ns: int) -> Packet | None:
        """codel_dequeue() up to its label `end`."""
        packet, now = self.pop(), now_ns // TICK_NS
        if packet is None:
            self.dropping = False
            self.first_above = None if self.params.ends_when_empty else self.first_above
            return None
        drop = self.should_drop(packet, now)
        if not self.dropping:
            return self.begin(packet, now, now_ns) if drop else packet
        self.dropping = drop
        while packet is not None and self.dropping and now >= self.drop_next:
            self.count += 1
            self.newton_step()
            if self.mark(packet):
                self.drop_next = self.after(self.drop_next)
                return packet
            self.end(packet, "drop_dequeue", now_ns)
            packet = self.pop()
            self.dropping = self.should_drop(packet, now)
            if self.dropping:
                self.drop_next = self.after(self.drop_next)
        return packet

    def begin(self, packet: Packet, now: int, now_ns: int) -> Packet | None:
        """Enters the dropping state. Before it was ever entered (lastcount is 0), no drop was lately."""
        sent: Packet | None = packet
        if not self.mark(packet):
            self.end(packet, "drop_dequeue", now_ns)
            sent = self.pop()
            self.should_drop(sent, now)
        self.dropping = True
        delta = self.count - self.lastcount
        if delta > 1 and self.lastcount > 0 and now - self.drop_next < 16 * self.interval:
            self.count = delta
            self.newton_step()
        else:
            self.count = 1
            self.rec_inv_sqrt = U16
        self.lastcount = self.count
        self.drop_next = self.after(now)
        return sent


def make(limit: Limit, params: Params) -> CoDel:
    """Creates the queue of this algorithm."""
    return Linux(limit, params) if params.linux else CoDel(limit, params)


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    del uniform
    return serve(make(limit, params), arrivals, rate_bps)
