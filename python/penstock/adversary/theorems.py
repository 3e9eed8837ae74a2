"""Theorems about packet schedulers, and a search for legal inputs that violate them.

All packets have one size, so lags are in packets. phi_k is the weight of flow k divided by the sum of all weights.

    WF2Q+   B-WFI of flow k <= 2 - phi_k       Bennett and Zhang 1997, over all intervals (docs/tempest.md)
    QFQ     B-WFI of flow k <= 6 + 2 phi_k     Checconi, Rizzo, Valente 2013: 3 slots and 2 shares of a packet; in a
                                               slot flow k is served at most 2 packets
    DRR     RFI <= W (1 + 2 / least weight)    Shreedhar and Varghese 1996: a quantum of w_k packets, and a packet of
                                               each of both flows; W is the sum of all weights
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock import engine

Flags = dict[str, str]

_PACKETS = 4000  # enqueues and dequeues of a trial
_MOST_SETS, _MOST_FLOWS, _MOST_WEIGHT = 4, 6, 64
_KEPT = 8  # of this many of the worst inputs, half of the trials are changes


@dataclass(frozen=True)
class Theorem:
    """A bound of a scheduler."""

    scheduler: str
    bound: str
    ratio: Callable[[Mapping[str, Any]], float]  # the largest measured value as a part of its bound


@dataclass(frozen=True)
class Nearest:
    """The input that came nearest to a bound, or violates it."""

    theorem: Theorem
    ratio: float
    flags: Flags
    trials: int


def _wfi(bound: Callable[[float], float]) -> Callable[[Mapping[str, Any]], float]:
    def ratio(report: Mapping[str, Any]) -> float:
        flows = report["flows_detail"]
        total = sum(flow["weight"] for flow in flows)
        return max(float(flow["b_wfi_packets"]) / bound(flow["weight"] / total) for flow in flows)

    return ratio


def _rfi(report: Mapping[str, Any]) -> float:
    weights = [flow["weight"] for flow in report["flows_detail"]]
    return float((report["rfi"] or 0.0) / (sum(weights) * (1 + 2 / min(weights))))


THEOREMS: tuple[Theorem, ...] = (
    Theorem("wf2q-plus", "B-WFI <= 2 - phi", _wfi(lambda phi: 2 - phi)),
    Theorem("qfq", "B-WFI <= 6 + 2 phi", _wfi(lambda phi: 6 + 2 * phi)),
    Theorem("drr", "RFI <= W (1 + 2 / least weight)", _rfi),
)


def search(theorem: Theorem, trials: int, seed: int = 1) -> Nearest:
    """Returns the input that comes nearest to the bound, of so many: half drawn, half changes of the best so far."""
    draws = random.Random(f"{theorem.scheduler}/{seed}")
    best: list[tuple[float, Flags]] = []
    for number in range(trials):
        flags = _changed(draws.choice(best)[1], draws) if best and number % 2 else _drawn(draws)
        report = engine.tempest({"alg": theorem.scheduler, "n": str(_PACKETS), "measure": "fairness", **flags})
        best = sorted([*best, (theorem.ratio(report), flags)], key=lambda one: -one[0])[:_KEPT]
    return Nearest(theorem, *best[0], trials)


def _drawn(draws: random.Random) -> Flags:
    sets = [(_weight(draws), draws.randint(1, _MOST_FLOWS)) for _ in range(draws.randint(1, _MOST_SETS))]
    if sum(count for _, count in sets) < 2:
        sets.append((_weight(draws), 1))
    flags = {
        "flowsets": _written(sets),
        "burst": str(draws.choice([0, 0, 1, 2, 4])),
        "seed": str(draws.randrange(10**6)),
    }
    return flags | {"qmax": str(draws.choice([10, 30, 100, 300])), "qmin": str(draws.choice([0, 0, 3, 8]))}


def _weight(draws: random.Random) -> int:
    return round(math.exp(draws.uniform(0.0, math.log(_MOST_WEIGHT))))


def _written(sets: Sequence[tuple[int, int]]) -> str:
    return ",".join(f"{weight}::{count}" for weight, count in sets)


def _changed(flags: Flags, draws: random.Random) -> Flags:
    other = _drawn(draws)
    key = draws.choice(sorted(flags))
    return {**flags, key: other[key], "seed": other["seed"]}
