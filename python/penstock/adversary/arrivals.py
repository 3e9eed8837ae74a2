"""Theorems about packet schedulers before a link: packets of any size arrive at any time, also while another is sent.

The link sends a byte in each microsecond. A class k has the weight w_k, the largest packet L_k and the part phi_k of
all weights W; L is the largest packet of all. A slot of a class is w_k times the least power of two that is not below
1500 / w_k, in bytes.

    lateness of a packet   its end less its guaranteed finish: the later of its arrival and the guaranteed finish of the
                           packet before it, plus size / phi_k
    WFI of class k         how far it falls behind phi_k times the time, in any interval in which it has packets
    RFI of j and k         the largest difference of service / weight over any interval in which packets of both wait

    WF2Q+   lateness <= L, WFI <= 2 L_k + (L - 2 L_k) phi_k     Bennett and Zhang 1997, Theorem 4, over all intervals
    W2F2Q   the same                                            while channels are good
    KPS     lateness <= slot / phi_k + 1500,
            WFI <= 3 slots + 3000 phi_k                         after Karsten 2010 (crates/core/src/sched/kps.rs)
    QFQ     WFI <= 3 slots + 3000 phi_k                         Checconi, Rizzo, Valente 2013
    QFQ+    WFI <= 3 slots + 24,000 phi_k + 4500                Valente 2014, with aggregates of 8 classes
    DRR     RFI <= 1500 + 1500 / w_j + 1500 / w_k               Shreedhar and Varghese 1996, Theorem 3
            lateness <= (F - Q_k) (1 + L_k / Q_k) + sum of L    Lenzini, Mingozzi, Stea 2004; Q = 1500 w, F = 1500 W
    STFQ    RFI <= L_j / w_j + L_k / w_k                        Goyal, Vin, Cheng 1996, Theorem 1
            lateness <= sum of L of others + size - size / phi  the same, Theorem 4
"""

from __future__ import annotations

import csv
import io
import math
import random
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from penstock import engine
from penstock.adversary.theorem import Found, Input, Theorem, climb

LARGEST = 1500
_NS = 1000  # for a byte
_PACKETS = 250  # of a trial
_SIZES = (64, 200, 576, 1000, 1500, 1500)

Packet = tuple[int, int, int]  # time of arrival, class, size
Slice = tuple[int, int, int | None, list[bool]]  # begin, end, class on the link, whether packets of each class wait


class Trial:
    """What a scheduler did with arrivals."""

    def __init__(self, scheduler: str, weights: Sequence[int], arrivals: Sequence[Packet]) -> None:
        self.weights, self.total, self.arrivals = weights, sum(weights), arrivals
        self.largest = [max([size for _, cls, size in arrivals if cls == k], default=0) for k in range(len(weights))]
        self.begins = _sent(scheduler, weights, arrivals)
        self.slices = self._slices()

    def share(self, cls: int) -> float:
        """Returns phi."""
        return self.weights[cls] / self.total

    def lateness(self) -> list[tuple[int, int, float]]:
        """Returns class, size and lateness of each packet."""
        guaranteed, late = [0.0] * len(self.weights), []
        for (at, cls, size), begin in zip(self.arrivals, self.begins, strict=True):
            guaranteed[cls] = max(guaranteed[cls], at) + size / self.share(cls)
            late.append((cls, size, begin + size - guaranteed[cls]))
        return late

    def wfi(self) -> list[float]:
        """Returns the worst-case fairness index of each class."""

        def worst(k: int) -> float:
            share = self.share(k)
            return self._range(lambda on: share - (on == k), self._has(k))[0]

        return [worst(k) for k in self._all]

    def rfi(self) -> list[tuple[int, int, float]]:
        """Returns the largest difference of each pair of classes."""

        def worst(j: int, k: int) -> float:
            mine, other = self.weights[j], self.weights[k]
            return max(self._range(lambda on: (on == j) / mine - (on == k) / other, self._wait(j, k)))

        return [(j, k, worst(j, k)) for j in self._all for k in range(j)]

    @property
    def _all(self) -> range:
        return range(len(self.weights))

    def _has(self, k: int) -> Callable[[Slice], bool]:
        return lambda one: one[2] == k or one[3][k]

    def _wait(self, j: int, k: int) -> Callable[[Slice], bool]:
        return lambda one: one[3][j] and one[3][k]

    def _range(self, pace: Callable[[int | None], float], within: Callable[[Slice], bool]) -> tuple[float, float]:
        """The largest rise and the largest fall of a quantity of this pace over intervals within."""
        value, low, high, rise, fall = 0.0, 0.0, 0.0, 0.0, 0.0
        for one in self.slices:
            if not within(one):
                low = high = value
                continue
            value += pace(one[2]) * (one[1] - one[0])
            low, high = min(low, value), max(high, value)
            rise, fall = max(rise, value - low), max(fall, high - value)
        return rise, fall

    def _slices(self) -> list[Slice]:
        """The time between any two events. The link takes a packet before others arrive at the same instant.

        An empty slice at each event shows who had packets then.
        """
        begins = sorted(zip(self.begins, self.arrivals, strict=True))
        on_link = {begin: cls for begin, (_, cls, _) in begins}
        ends = {begin + size for begin, (_, _, size) in begins}
        arrive = [(at, cls) for at, cls, _ in self.arrivals]
        waiting, slices, before = [0] * len(self.weights), list[Slice](), 0
        on: int | None = None
        for at in sorted({*on_link, *ends, *(at for at, _ in arrive)}):
            slices.append((before, at, on, [count > 0 for count in waiting]))
            before = at
            if at in ends:
                on = None
            if at in on_link:
                on = on_link[at]
                waiting[on] -= 1
            slices.append((at, at, on, [count > 0 for count in waiting]))
            while arrive and arrive[0][0] == at:
                waiting[arrive.pop(0)[1]] += 1
        return slices


def _sent(scheduler: str, weights: Sequence[int], arrivals: Sequence[Packet]) -> list[int]:
    """Returns when the transmission of each packet began."""
    rows = "".join(f"{at * _NS},{cls},{size},0\n" for at, cls, size in arrivals)
    settings = [
        f"flows={len(weights)}",
        f"weights={','.join(f'{weight}::1' for weight in weights)}",
        "class_limit=100000p",
        f"max_packet={LARGEST}B",
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("t_ns,flow,size,ecn\n" + rows)
        file.flush()
        out = io.BytesIO()
        engine.replay(Path(file.name), scheduler, "8Mbit/s", "1000000p", settings, csv=out)
    return [int(row["t_fate_ns"]) // _NS for row in csv.DictReader(io.StringIO(out.getvalue().decode()))]


def slot(weight: int) -> float:
    """Returns the bytes of a slot of a class."""
    return float(weight * 2 ** math.ceil(math.log2(LARGEST / weight)))


def _lateness(bound: Callable[[Trial, int, int], float]) -> Callable[[Trial], float]:
    """Lateness may be negative; a bound may be so as well. Both are counted from the arrival of a packet alone."""

    def ratio(trial: Trial) -> float:
        alone = [size / trial.share(cls) for cls, size, _ in trial.lateness()]
        return max(
            (late + more) / (bound(trial, cls, size) + more)
            for (cls, size, late), more in zip(trial.lateness(), alone, strict=True)
        )

    return ratio


def _wfi(bound: Callable[[Trial, int], float]) -> Callable[[Trial], float]:
    return lambda trial: max(worst / bound(trial, k) for k, worst in enumerate(trial.wfi()) if trial.largest[k])


def _rfi(bound: Callable[[Trial, int, int], float]) -> Callable[[Trial], float]:
    return lambda trial: max(worst / (bound(trial, j, k) or 1.0) for j, k, worst in trial.rfi())


def _drawn(draws: random.Random) -> Input:
    palette = draws.choice([[1], [1, 2, 4, 8, 16], [1, 1, 3, 1000], range(1, 60)])
    return {
        "weights": tuple(draws.choice(palette) for _ in range(draws.randint(2, 8))),
        "load": draws.choice([0.3, 0.5, 0.7, 0.9, 1.0, 1.3, 2.0]),
        "bursts": draws.choice([(1,), (1, 1, 2, 5), (1, 1, 2, 5, 20, 60), (30,)]),
        "sizes": draws.choice([_SIZES, (LARGEST,), (40, LARGEST), tuple(range(1, LARGEST + 1))]),
        "seed": draws.randrange(10**6),
    }


def arrivals(
    weights: Sequence[int], load: float, bursts: Sequence[int], sizes: Sequence[int], seed: int
) -> list[Packet]:
    """Draws bursts of one class after another; gaps are exponential, and an hour of the load is what the link sends."""
    draws, made, at = random.Random(seed), list[Packet](), 0
    while len(made) < _PACKETS:
        cls, burst = draws.randrange(len(weights)), draws.choice(bursts)
        packets = [draws.choice(sizes) for _ in range(burst)]
        made += [(at, cls, size) for size in packets]
        at += round(draws.expovariate(load / sum(packets)))
    return made


def _text(drawn: Input) -> str:
    shown = dict(drawn)
    shown["sizes"] = "1 to 1500" if len(shown["sizes"]) == LARGEST else shown["sizes"]
    return ", ".join(f"{key} = {value}" for key, value in shown.items())


def _find(ratio: Callable[[Trial], float], scheduler: str, trials: int, seed: int) -> Found:
    def worst(drawn: Input) -> float:
        return ratio(Trial(scheduler, drawn["weights"], arrivals(**drawn)))

    most, found = climb(_drawn, worst, trials, random.Random(f"{scheduler}/arrivals/{seed}"))
    return most, _text(found)


def _theorem(scheduler: str, text: str, ratio: Callable[[Trial], float]) -> Theorem:
    return Theorem(scheduler, text, partial(_find, ratio))


def _all_intervals(trial: Trial, k: int) -> float:
    own, most, phi = trial.largest[k], max(trial.largest), trial.share(k)
    return own + (most - own) * phi + own * (1 - phi)


def _others(trial: Trial, cls: int, size: int) -> float:
    return sum(trial.largest) - trial.largest[cls] + size - size / trial.share(cls)


def _round(trial: Trial, cls: int, size: int) -> float:
    del size
    quantum = LARGEST * trial.weights[cls]
    return (LARGEST * trial.total - quantum) * (1 + trial.largest[cls] / quantum) + sum(trial.largest)


ARRIVALS = (
    _theorem("wf2q-plus", "lateness <= L", _lateness(lambda trial, *_: max(trial.largest))),
    _theorem("wf2q-plus", "WFI <= 2 L_k + (L - 2 L_k) phi", _wfi(_all_intervals)),
    _theorem("w2f2q", "lateness <= L", _lateness(lambda trial, *_: max(trial.largest))),
    _theorem("w2f2q", "WFI <= 2 L_k + (L - 2 L_k) phi", _wfi(_all_intervals)),
    _theorem(
        "kps",
        "lateness <= slot / phi + 1500",
        _lateness(lambda trial, k, _: slot(trial.weights[k]) / trial.share(k) + LARGEST),
    ),
    _theorem(
        "kps",
        "WFI <= 3 slots + 3000 phi",
        _wfi(lambda trial, k: 3 * slot(trial.weights[k]) + 2 * LARGEST * trial.share(k)),
    ),
    _theorem(
        "qfq",
        "WFI <= 3 slots + 3000 phi",
        _wfi(lambda trial, k: 3 * slot(trial.weights[k]) + 2 * LARGEST * trial.share(k)),
    ),
    _theorem(
        "qfq-plus",
        "WFI <= 3 slots + 24,000 phi + 4500",
        _wfi(lambda trial, k: 3 * slot(trial.weights[k]) + 16 * LARGEST * trial.share(k) + 3 * LARGEST),
    ),
    _theorem(
        "drr",
        "RFI <= 1500 (1 + 1 / w_j + 1 / w_k)",
        _rfi(lambda trial, j, k: LARGEST * (1 + 1 / trial.weights[j] + 1 / trial.weights[k])),
    ),
    _theorem("drr", "lateness <= (F - Q_k) (1 + L_k / Q_k) + sum of L", _lateness(_round)),
    _theorem(
        "stfq",
        "RFI <= L_j / w_j + L_k / w_k",
        _rfi(lambda trial, j, k: trial.largest[j] / trial.weights[j] + trial.largest[k] / trial.weights[k]),
    ),
    _theorem("stfq", "lateness <= L of others + size - size / phi", _lateness(_others)),
)
