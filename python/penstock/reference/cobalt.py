"""COBALT as cake has it (sch_cake.c), alone in one queue, in floating point; `cobalt_linux` has the kernel's numbers.

Draws one random number for each packet that is looked at while BLUE's probability is above 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

from penstock.reference.link import CE, NOT_ECT, NS_PER_S, Arrival, Fate, Fifo, Limit, Packet, serve

U32, U64 = 2**32 - 1, 2**64 - 1


@dataclass(frozen=True)
class Params:
    """cake's; `freeze_ns` None is the target, `head_drop` None is what the arithmetic has."""

    target_ns: int = 5_000_000
    interval_ns: int = 100_000_000
    mtu: int = 1514
    ecn: bool = True
    freeze_ns: int | None = None
    increment: float = 1 / 256
    decrement: float = 1 / 4096
    head_drop: bool | None = None


def newton_step(inv: int, count: int) -> int:
    """cobalt_newton_step(), in 2^-32."""
    val = ((3 << 32) - count * (inv * inv >> 32) & U64) >> 2
    return (val * inv & U64) >> 31 & U32


class Cobalt(Fifo):
    """The queue and its state."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        super().__init__(limit)
        self.params = params
        self.uniform = uniform
        self.mtu_time = params.mtu * 8 * NS_PER_S // rate_bps
        self.target = max(params.target_ns, self.mtu_time * 3 // 2)
        self.interval = max(params.interval_ns + self.target - params.target_ns, 2 * self.target)
        self.freeze = self.target if params.freeze_ns is None else params.freeze_ns
        self.count = 0
        self.drop_next = 0
        self.dropping = False
        self.p_drop = 0.0
        self.blue_timer = 0
        self.idle = False
        self.now_ns = 0

    def after(self, t_ns: int) -> int:
        """Corresponds to cobalt_control() in the source."""
        seconds = self.interval / 1e9 / sqrt(max(1, self.count))
        return t_ns + int(seconds * 1e9 + 0.5)

    def enqueue(self, packet: Packet, now_ns: int) -> None:
        """Accepts or refuses the packet, or makes room at the head as cake_enqueue() does."""
        if not self.params.head_drop:
            super().enqueue(packet, now_ns)
            return
        self.judge_arrival(packet, now_ns)
        self.queue.append(packet)
        self.bytes += packet.size
        kind, most = self.limit
        while (len(self.queue) if kind == "packets" else self.bytes) > most:
            self.shed(now_ns)
            dropped = self.pop()
            assert dropped is not None
            self.end(dropped, "drop_overflow", now_ns)

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass"]:
        """Applies to the state what happens while the queue is empty; accepts every packet."""
        del packet
        self.now_ns = now_ns
        if self.idle and self.p_drop > 0:
            missed = (now_ns - self.blue_timer) // self.freeze
            self.p_drop = max(0.0, self.p_drop - missed * self.params.decrement)
            self.blue_timer += missed * self.freeze
        self.idle = False
        return "pass"

    def overflowed(self) -> None:
        """Counts the arrival that was just judged as dropped, since the queue is full."""
        self.shed(self.now_ns)

    def shed(self, now_ns: int) -> None:
        """Corresponds to cobalt_queue_full() in the source."""
        if now_ns - self.blue_timer > self.freeze:
            self.p_drop = min(1.0, self.p_drop + self.params.increment)
            self.blue_timer = now_ns
        self.dropping = True
        self.drop_next = now_ns
        self.count = max(1, self.count)

    def found_empty(self, now_ns: int) -> None:
        """Corresponds to cobalt_queue_empty() in the source."""
        self.idle = True
        if self.p_drop > 0 and now_ns - self.blue_timer > self.freeze:
            self.p_drop = max(0.0, self.p_drop - self.params.decrement)
            self.blue_timer = now_ns
        self.dropping = False
        if self.count and now_ns >= self.drop_next:
            self.count -= 1
            self.drop_next = self.after(self.drop_next)

    def should_drop(self, packet: Packet, now_ns: int) -> bool:
        """Corresponds to cobalt_should_drop() in the source."""
        sojourn = now_ns - packet.since_ns
        schedule = now_ns - self.drop_next
        next_due = self.count > 0 and schedule >= 0
        drop = False
        if sojourn > self.target and sojourn > 4 * self.mtu_time:
            if not self.dropping:
                self.dropping = True
                self.drop_next = self.after(now_ns)
            self.count = max(1, self.count)
        else:
            self.dropping = False
        if next_due and self.dropping:
            drop = not self.mark(packet)
            self.count += 1
            self.drop_next = self.after(self.drop_next)
            schedule = now_ns - self.drop_next
        else:
            while next_due:
                self.count -= 1
                self.drop_next = self.after(self.drop_next)
                schedule = now_ns - self.drop_next
                next_due = self.count > 0 and schedule >= 0
        if self.p_drop > 0 and self.uniform() < self.p_drop:
            drop = True
        if self.count == 0:
            self.drop_next = now_ns + self.interval
        elif schedule > 0 and not drop:
            self.drop_next = now_ns
        return drop

    def mark(self, packet: Packet) -> bool:
        """Marks the packet instead of dropping it, if ECN is on and the packet can be marked; returns true if so."""
        if not self.params.ecn or packet.ecn == NOT_ECT:
            return False
        packet.ecn = CE
        return True

    def dequeue(self, now_ns: int) -> Packet | None:
        """cake_dequeue(): the last packet is not dropped. One that BLUE drops is dropped as it came, not marked."""
        while (packet := self.pop()) is not None:
            ecn = packet.ecn
            if not self.should_drop(packet, now_ns) or not self.queue:
                return packet
            packet.ecn = ecn
            self.end(packet, "drop_dequeue", now_ns)
        self.found_empty(now_ns)
        return None


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(Cobalt(limit, params, rate_bps, uniform), arrivals, rate_bps)
