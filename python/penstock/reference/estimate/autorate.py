"""cake-autorate of August 2026, with one-way delays: README and INSTALLATION of github.com/lynxthecat/cake-autorate.

Numbers are whole ones, as in the source: microseconds, kbit/s, percent, thousandths. Quotients are rounded towards 0.
The directions are in and out, in this order. Reflectors answer in turn and are never replaced.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

FIRST_BASELINE_US = 100_000
MILLION = 1_000_000


class Event(NamedTuple):
    """Both achieved rates in kbit/s, or both delays of an answer in microseconds."""

    at_us: int
    kind: Literal["achieved", "answer"]
    both: tuple[int, int]


@dataclass(frozen=True)
class Params:
    """The parameters of `defaults.sh`, in kbit/s, microseconds, millionths for baselines, and thousandths for rates."""

    base: tuple[int, int] = (20_000, 20_000)
    lowest: tuple[int, int] = (5_000, 5_000)
    highest: tuple[int, int] = (80_000, 35_000)
    pingers: int = 6
    ping_interval: int = 50_000
    max_adjust_up_thr: int = 10_000
    delay_thr: int = 30_000
    max_adjust_down_thr: int = 60_000
    window: int = 6
    detection_thr: int = 3
    baseline_increase: int = 1_000
    baseline_decrease: int = 900_000
    min_down: int = 990
    max_down: int = 750
    min_up: int = 1_000
    max_up: int = 1_040
    decay_down: int = 990
    decay_up: int = 1_010
    high_load_percent: int = 75
    bufferbloat_refractory: int = 300_000
    decay_refractory: int = 1_000_000
    active: int = 2_000
    sleep_after: int = 60_000_000
    stall_pings: int = 5
    stalled: int = 10
    packet_bits: int = 12_000


def divided(numerator: int, denominator: int) -> int:
    """A quotient rounded towards zero."""
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


class Shaper:
    """The shaper of one direction."""

    def __init__(self, way: int, params: Params) -> None:
        self.params = params
        self.base, self.lowest, self.highest = params.base[way], params.lowest[way], params.highest[way]
        self.rate = self.base
        self.achieved = 0
        self.updated = False
        self.load: Literal["idle", "low", "high"] = "idle"
        self.deltas = deque([0] * params.window, maxlen=params.window)
        self.delayed = deque([False] * params.window, maxlen=params.window)
        self.last_bufferbloat = 0
        self.last_decay = 0

    def compensated(self, threshold: int) -> int:
        """A threshold, and what a full packet takes at the present rate."""
        return threshold + 1000 * self.params.packet_bits // self.rate

    def measure(self, achieved: int) -> None:
        """Takes the achieved rate."""
        self.achieved, self.updated = achieved, True
        if 100 * achieved // self.rate > self.params.high_load_percent:
            self.load = "high"
        else:
            self.load = "low" if achieved > self.params.active else "idle"

    def scaled(self, begin: int, end: int) -> int:
        """How far the mean delta is on the way from the threshold of delays to another one, in thousandths."""
        average = divided(sum(self.deltas), len(self.deltas))
        if begin == end:
            return 1000
        return max(0, min(1000, divided(1000 * (average - begin), end - begin)))

    def answer(self, delta: int, now: int) -> None:
        """Takes the delta of an answer and changes the rate."""
        p = self.params
        threshold = self.compensated(p.delay_thr)
        self.deltas.append(delta)
        self.delayed.append(delta > threshold)
        rested = now > self.last_bufferbloat + p.bufferbloat_refractory
        if sum(self.delayed) >= p.detection_thr:
            if rested:
                part = self.scaled(threshold, self.compensated(p.max_adjust_down_thr))
                self.rate = self.rate * (1000 * p.min_down - part * (p.min_down - p.max_down)) // MILLION
                self.last_bufferbloat = self.last_decay = now
        elif self.load == "high":
            if rested and self.updated:
                part = self.scaled(threshold, self.compensated(p.max_adjust_up_thr))
                self.rate = self.rate * (1000 * p.min_up + part * (p.max_up - p.min_up)) // MILLION
                self.last_decay, self.updated = now, False
        elif now > self.last_decay + p.decay_refractory:
            if self.rate > self.base:
                self.rate = max(self.base, self.rate * p.decay_down // 1000)
            else:
                self.rate = min(self.base, self.rate * p.decay_up // 1000)
            self.last_decay = now
        self.rate = max(self.lowest, min(self.highest, self.rate))


class Autorate:
    """Both directions."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.shapers = [Shaper(way, params) for way in range(2)]
        self.baselines = [[FIRST_BASELINE_US] * 2 for _ in range(params.pingers)]
        self.answers = 0
        self.answered = 0
        self.idle_since: int | None = None
        self.state: Literal["running", "idle", "stall"] = "running"

    def achieved(self, both: tuple[int, int], now: int) -> None:
        """Takes both achieved rates."""
        p = self.params
        for shaper, achieved in zip(self.shapers, both, strict=True):
            shaper.measure(achieved)
        if self.state == "idle":
            if max(both) > p.active:
                self.state, self.answered = "running", now + 2 * p.ping_interval * p.pingers
        elif self.state == "stall":
            if min(both) > p.stalled:
                self.state = "running"
        elif now - self.answered > p.stall_pings * p.ping_interval and min(both) <= p.stalled:
            self.state = "stall"

    def answer(self, delays: tuple[int, int], now: int) -> None:
        """Takes an answer of the reflector whose turn it is."""
        p = self.params
        baselines = self.baselines[self.answers % p.pingers]
        self.answers += 1
        if self.state == "idle":
            return
        self.answered = now
        if self.state == "stall":
            self.state = "running"
            return
        for way, delay in enumerate(delays):
            alpha = p.baseline_increase if delay >= baselines[way] else p.baseline_decrease
            baselines[way] = (alpha * delay + (MILLION - alpha) * baselines[way]) // MILLION
            self.shapers[way].answer(delay - baselines[way], now)
        self.rest(now)

    def rest(self, now: int) -> None:
        """Stops the probes after a time without load."""
        if any(shaper.load != "idle" for shaper in self.shapers):
            self.idle_since = None
            return
        if self.idle_since is None:
            self.idle_since = now
        if now - self.idle_since > self.params.sleep_after:
            self.state, self.idle_since = "idle", None


def replay(events: Iterable[Event], params: Params) -> Iterator[tuple[int, int, bool]]:
    """Yields both rates in kbit/s after each event, and whether probes are sent."""
    law = Autorate(params)
    for event in events:
        take = law.achieved if event.kind == "achieved" else law.answer
        take(event.both, event.at_us)
        yield law.shapers[0].rate, law.shapers[1].rate, law.state != "idle"
