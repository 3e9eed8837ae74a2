"""Theorems about packet schedulers: legal inputs are flows with weights and how their queues fill, in TEMPEST.

All packets have one size, so lags are in packets. phi_k is the weight of flow k divided by W, the sum of all weights.

    WF2Q+   B-WFI of flow k <= 2 - phi_k          Bennett and Zhang 1997, over all intervals (docs/reference/tempest.md)
            T-WFI of flow k <= 1 / phi_k          Bennett and Zhang 1997, Theorem 4: L_k / r_k + (L - L_k) / r
    QFQ     B-WFI of flow k <= 6 + 2 phi_k        Checconi, Rizzo, Valente 2013: 3 slots and 2 shares of a packet; in a
                                                  slot flow k is served at most 2 packets
            T-WFI of flow k <= 6 / phi_k + 2      the same, as time
    QFQ+    B-WFI of flow k <= 9 + 16 phi_k       Valente 2014: that of QFQ for an aggregate of 8 flows, and 3 packets
                                                  for DRR within it (crates/core/src/sched/qfq_plus.rs)
            T-WFI of flow k <= 9 / phi_k + 16     the same, as time
    DRR     RFI_jk <= W (1 + 1 / w_j + 1 / w_k)   Shreedhar and Varghese 1996: a quantum of w_k packets, and a packet of
                                                  each of both flows
    STFQ    RFI_jk <= W (1 / w_j + 1 / w_k)       Goyal, Vin, Cheng 1996, Theorem 1

The service lag of a flow is its B-WFI over the intervals that begin with a backlog, so the bounds hold for it too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from penstock import engine
from penstock.adversary.theorem import Found, Input, Theorem, climb

Flow = Mapping[str, Any]
Bound = Callable[[Flow, Sequence[Flow]], float]  # of a flow among all

_PACKETS = 4000  # enqueues and dequeues of a trial
_MOST_SETS, _MOST_FLOWS, _MOST_WEIGHT = 4, 6, 64


def _index(measure: str, of: Callable[[float], float]) -> tuple[str, Bound]:
    return measure, lambda flow, flows: of(flow["weight"] / sum(one["weight"] for one in flows))


def _relative(quanta: float) -> tuple[str, Bound]:
    def bound(flow: Flow, flows: Sequence[Flow]) -> float:
        others = [one["weight"] for one in flows if one is not flow]
        return float(sum(one["weight"] for one in flows) * (quanta + 1 / flow["weight"] + 1 / min(others)))

    return "rfi", bound


def _ratio(measure: str, bound: Bound, scheduler: str, flags: Input) -> float:
    report = engine.tempest({"alg": scheduler, "n": str(_PACKETS), "measure": "fairness", **flags})
    flows = report["flows_detail"]
    return max(float(flow[measure] or 0.0) / bound(flow, flows) for flow in flows)


def _find(of: tuple[str, Bound], scheduler: str, trials: int, seed: int) -> Found:
    ratio = partial(_ratio, *of, scheduler)
    worst, flags = climb(_drawn, ratio, trials, random.Random(f"{scheduler}/{seed}"))
    return worst, " ".join(f"-{key} {value}" for key, value in flags.items())


def _drawn(draws: random.Random) -> Input:
    sets = [(_weight(draws), draws.randint(1, _MOST_FLOWS)) for _ in range(draws.randint(1, _MOST_SETS))]
    if sum(count for _, count in sets) < 2:
        sets.append((_weight(draws), 1))
    flags = {
        "flowsets": ",".join(f"{weight}::{count}" for weight, count in sets),
        "burst": str(draws.choice([0, 0, 1, 2, 4])),
        "seed": str(draws.randrange(10**6)),
    }
    return flags | {"qmax": str(draws.choice([10, 30, 100, 300])), "qmin": str(draws.choice([0, 0, 3, 8]))}


def _weight(draws: random.Random) -> int:
    return round(math.exp(draws.uniform(0.0, math.log(_MOST_WEIGHT))))


def theorem(scheduler: str, text: str, of: tuple[str, Bound]) -> Theorem:
    """Returns the theorem that a measure of a scheduler has a bound."""
    return Theorem(scheduler, text, partial(_find, of))


def b_wfi(scheduler: str, text: str, of: Callable[[float], float]) -> Theorem:
    """Returns the theorem that a flow with a part phi of all weights has a B-WFI of at most `of(phi)` packets."""
    return theorem(scheduler, f"B-WFI <= {text}", _index("b_wfi_packets", of))


def t_wfi(scheduler: str, text: str, of: Callable[[float], float]) -> Theorem:
    """Returns the same for T-WFI, in transmission times of a packet."""
    return theorem(scheduler, f"T-WFI <= {text}", _index("t_wfi_packets", of))


LAGS = (
    b_wfi("wf2q-plus", "2 - phi", lambda phi: 2 - phi),
    t_wfi("wf2q-plus", "1 / phi", lambda phi: 1 / phi),
    b_wfi("qfq", "6 + 2 phi", lambda phi: 6 + 2 * phi),
    t_wfi("qfq", "6 / phi + 2", lambda phi: 6 / phi + 2),
    b_wfi("qfq-plus", "9 + 16 phi", lambda phi: 9 + 16 * phi),
    t_wfi("qfq-plus", "9 / phi + 16", lambda phi: 9 / phi + 16),
    theorem("drr", "RFI <= W (1 + 1 / w_j + 1 / w_k)", _relative(1)),
    theorem("stfq", "RFI <= W (1 / w_j + 1 / w_k)", _relative(0)),
)
