"""COBALT as cake has it in Linux 6.18 (sch_cake.c), alone in one queue: whole numbers of nanoseconds and of 2^-32.

Draws one random number, of which it takes the upper 32 bits, for each packet that CoDel does not drop while BLUE's
probability is above 0.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from penstock.reference.cobalt import Params, newton_step
from penstock.reference.link import CE, NOT_ECT, NS_PER_S, Arrival, Fate, Fifo, Limit, Packet, serve

U32 = 2**32 - 1
LONG_AGO = -(2**62)  # the kernel's 0: before any time of a run


# inv_sqrt_cache: 2^32 / sqrt(count) for counts below 16, as eight Newton steps leave it.
ROOTS = (
    *(U32, U32, 3037000500, 2479700525, 2147483647, 1920767767, 1753413056, 1623345051),
    *(1518500250, 1431655765, 1358187914, 1294981364, 1239850263, 1191209601, 1147878294, 1108955788),
)


class LinuxCobalt(Fifo):
    """cobalt_params and cobalt_vars, beside the queue. `head_drop`: cake_enqueue() makes room at the head."""

    def __init__(
        self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float], *, head_drop: bool = True
    ) -> None:
        super().__init__(limit)
        self.params = params
        self.uniform = uniform
        self.head_drop = head_drop
        self.set_rate(rate_bps)
        self.p_inc, self.p_dec = (min(U32, int(p * 2**32)) for p in (params.increment, params.decrement))
        self.count = 0
        self.rec_inv_sqrt = 0
        self.drop_next = LONG_AGO
        self.blue_timer = LONG_AGO
        self.p_drop = 0
        self.dropping = False
        self.now_ns = 0

    def set_rate(self, rate_bps: int) -> None:
        """cake_set_rate()."""
        params = self.params
        self.mtu_time = self.packet_time(params.mtu, rate_bps)
        self.target = max(self.mtu_time * 3 // 2, params.target_ns)
        self.interval = max(params.interval_ns + self.target - params.target_ns, 2 * self.target)
        self.freeze = self.target if params.freeze_ns is None else params.freeze_ns

    def packet_time(self, mtu: int, rate_bps: int) -> int:
        """The time of a byte has 34 bits."""
        rate_ns, shift = (NS_PER_S << 34) // max(64, rate_bps // 8), 34
        while rate_ns >> 34:
            rate_ns >>= 1
            shift -= 1
        return mtu * rate_ns >> shift

    def invsqrt(self, count: int) -> None:
        """cobalt_invsqrt()."""
        self.count = count
        if count < 16:
            self.rec_inv_sqrt = ROOTS[count]
        else:
            self.rec_inv_sqrt = newton_step(self.rec_inv_sqrt, count)

    def control(self, t_ns: int) -> int:
        """cobalt_control()."""
        return t_ns + (self.interval * self.rec_inv_sqrt >> 32)

    def enqueue(self, packet: Packet, now_ns: int) -> None:
        """cake_enqueue(), or a queue that refuses what finds no room."""
        self.now_ns = now_ns
        if not self.head_drop:
            super().enqueue(packet, now_ns)
            return
        self.queue.append(packet)
        self.bytes += packet.size
        kind, most = self.limit
        while (len(self.queue) if kind == "packets" else self.bytes) > most:
            self.shed(now_ns)
            dropped = self.pop()
            assert dropped is not None
            self.end(dropped, "drop_overflow", now_ns)

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass"]:
        """Accepts every packet."""
        del packet
        self.now_ns = now_ns
        return "pass"

    def overflowed(self) -> None:
        """The queue refused the packet that came."""
        self.shed(self.now_ns)

    def shed(self, now_ns: int) -> None:
        """cobalt_queue_full()."""
        if now_ns - self.blue_timer > self.freeze:
            self.p_drop = min(U32, self.p_drop + self.p_inc)
            self.blue_timer = now_ns
        self.dropping = True
        self.drop_next = now_ns
        self.count = max(1, self.count)

    def queue_empty(self, now_ns: int) -> None:
        """cobalt_queue_empty()."""
        if self.p_drop and now_ns - self.blue_timer > self.freeze:
            self.p_drop = max(0, self.p_drop - self.p_dec)
            self.blue_timer = now_ns
        self.dropping = False
        if self.count and now_ns >= self.drop_next:
            self.invsqrt(self.count - 1)
            self.drop_next = self.control(self.drop_next)

    def should_drop(self, packet: Packet, now_ns: int) -> bool:
        """cobalt_should_drop()."""
        sojourn, schedule = now_ns - packet.since_ns, now_ns - self.drop_next
        next_due, drop = self.count > 0 and schedule >= 0, False
        if sojourn > self.target and sojourn > 4 * self.mtu_time:
            if not self.dropping:
                self.dropping = True
                self.drop_next = self.control(now_ns)
            self.count = max(1, self.count)
        else:
            self.dropping = False
        if next_due and self.dropping:
            drop = not (self.params.ecn and packet.ecn != NOT_ECT)
            packet.ecn = packet.ecn if drop else CE
            self.invsqrt(min(U32, self.count + 1))
            self.drop_next = self.control(self.drop_next)
            schedule = now_ns - self.drop_next
        else:
            while next_due:
                self.invsqrt(self.count - 1)
                self.drop_next = self.control(self.drop_next)
                schedule = now_ns - self.drop_next
                next_due = self.count > 0 and schedule >= 0
        if self.p_drop and not drop:
            drop = int(self.uniform() * 2**32) < self.p_drop
        if not self.count:
            self.drop_next = now_ns + self.interval
        elif schedule > 0 and not drop:
            self.drop_next = now_ns
        return drop

    def dequeue(self, now_ns: int) -> Packet | None:
        """cake_dequeue(): the last packet is not dropped. One that BLUE drops is dropped as it came, not marked."""
        while (packet := self.pop()) is not None:
            ecn = packet.ecn
            if not self.should_drop(packet, now_ns) or not self.queue:
                return packet
            packet.ecn = ecn
            self.end(packet, "drop_dequeue", now_ns)
        self.queue_empty(now_ns)
        return None


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    head_drop = params.head_drop is not False
    return serve(LinuxCobalt(limit, params, rate_bps, uniform, head_drop=head_drop), arrivals, rate_bps)
