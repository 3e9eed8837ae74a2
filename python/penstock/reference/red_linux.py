"""RED as Linux 6.18 has it (include/net/red.h, net/sched/sch_red.c), with the idle table of iproute2 (tc/tc_red.c).

All in whole numbers. Draws one random number, of which it takes the upper 32 bits, for each mark between the thresholds
and for the first packet there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

from penstock.reference.link import NOT_ECT, Arrival, Fate, Fifo, Limit, Packet, serve

TICKS_PER_US = 15.625


@dataclass(frozen=True)
class Params:
    """Thresholds are in bytes; W is 2^-wlog."""

    qth_min: int = 5000
    qth_max: int = 15000
    wlog: int = 9
    max_p: float = 0.1
    mean_packet: int = 1000
    ecn: bool = False
    bandwidth_bps: int | None = None
    scell_log: int | None = None
    stab: tuple[int, ...] | None = None


def idle_table(wlog: int, mean_packet: int, rate_bps: int, cell: int | None = None) -> tuple[int, list[int]]:
    """Scell_log, unless it is `cell`, and Stab of tc, which counts in ticks of 64 ns."""
    xmit_ticks = mean_packet / (rate_bps / 8) * (TICKS_PER_US * 1_000_000)
    lw = -log(1 - 1 / (1 << wlog)) / xmit_ticks
    scell_log = 0
    while scell_log < 55 and 31 / lw / (1 << scell_log) >= 512:
        scell_log += 1
    scell_log = scell_log if cell is None else cell
    stab = [int(min(31.0, (i << scell_log) * lw)) for i in range(255)]
    return scell_log, [*stab, 31]


class LinuxRed(Fifo):
    """struct red_vars, beside the queue."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        super().__init__(limit)
        self.params = params
        self.uniform = uniform
        rate_bps = params.bandwidth_bps or rate_bps
        self.scell_log, self.stab = idle_table(params.wlog, params.mean_packet, rate_bps, params.scell_log)
        if params.stab is not None:
            self.stab = [*params.stab, *[params.stab[-1]] * (256 - len(params.stab))]
        max_p = min(2**32 - 1, int(params.max_p * 2**32))
        self.max_p_delta = max(1, max_p // max(1, params.qth_max - params.qth_min))
        self.qavg = 0
        self.qcount = -1
        self.q_r = 0
        self.idle_start_ns: int | None = 0
        self.found_idle = True
        self.now_ns = 0

    def average_after_idle(self, idle_ns: int) -> int:
        """Corresponds to red_calc_qavg_from_idle_time() in the source."""
        us_idle = min(idle_ns // 1000, 255 << self.scell_log)
        shift = self.stab[us_idle >> self.scell_log]
        if shift:
            return self.qavg >> shift
        fall = self.qavg * us_idle >> self.scell_log
        return self.qavg - fall if fall < self.qavg >> 1 else self.qavg >> 1

    def update_average(self, now_ns: int) -> None:
        """red_calc_qavg, and the end of an idle period."""
        self.found_idle = self.idle_start_ns is not None
        if self.idle_start_ns is not None:
            self.qavg = self.average_after_idle(now_ns - self.idle_start_ns)
        else:
            self.qavg += self.bytes - (self.qavg >> self.params.wlog)
        self.idle_start_ns = None

    def red_random(self) -> int:
        """A number below (qth_max - qth_min) / max_P."""
        return int(self.uniform() * 2**32) // self.max_p_delta

    def red_action(self) -> Literal["don't mark", "prob mark", "hard mark"]:
        """Corresponds to red_action() in the source."""
        wlog = self.params.wlog
        if self.qavg < self.params.qth_min << wlog:
            self.qcount = -1
            return "don't mark"
        if self.qavg >= self.params.qth_max << wlog:
            self.qcount = -1
            return "hard mark"
        self.qcount += 1
        if self.qcount:
            if (self.qavg - (self.params.qth_min << wlog) >> wlog) * self.qcount >= self.q_r:
                self.qcount = 0
                self.q_r = self.red_random()
                return "prob mark"
        else:
            self.q_r = self.red_random()
        return "don't mark"

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Corresponds to red_enqueue() in the source."""
        self.update_average(now_ns)
        self.now_ns = now_ns
        if self.red_action() == "don't mark":
            return "pass"
        if self.params.ecn and packet.ecn != NOT_ECT:
            return "mark"
        self.ask_again()
        return "drop"

    def overflowed(self) -> None:
        """Lets the link ask for a packet after an overflow."""
        self.ask_again()

    def ask_again(self) -> None:
        """Starts a new idle time if the queue was idle.

        After each arrival at a free link the kernel asks for a packet, and finds none if the arrival was dropped.
        """
        if self.found_idle:
            self.idle_start_ns = self.now_ns

    def dequeue(self, now_ns: int) -> Packet | None:
        """Corresponds to red_dequeue() in the source."""
        packet = self.pop()
        if packet is None and self.idle_start_ns is None:
            self.idle_start_ns = now_ns
        return packet


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(LinuxRed(limit, params, rate_bps, uniform), arrivals, rate_bps)
