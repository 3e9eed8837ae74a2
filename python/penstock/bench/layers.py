"""Compares the CPU time of HFS with that of double-DRR: two layers of QFQ+ and of DRR in TEMPEST."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from penstock import engine

BAR = 1.2  # largest allowed ratio to the time of double-DRR, both with the harness
BUFFER = 100  # number of packets between the layers

_ONES = {"flows": "1000", "qmax": "30n", "flowsmac": "20"}
_CASES: tuple[tuple[str, dict[str, str]], ...] = (
    ("1,000 flows of weight 1, equal stations", {**_ONES, "wdistr": "0"}),
    ("1,000 flows of weight 1, stations by loss", {**_ONES, "wdistr": "3"}),
    (
        "document 002, section 4.2.3: 100 flows, stations by loss",
        {"flowsets": "20::20,10::20,1::60", "qmax": "10n", "qmin": "0", "burst": "1", "qsing": "1", "flowsmac": "20"},
    ),
)
_LAYERS = {"hfs": "qfq-plus", "double-drr": "drr"}


@dataclass(frozen=True)
class Cost:
    """The times of one case: ns for an enqueue and a dequeue, with the harness."""

    case: str
    buffer: int
    double_drr_ns: float
    hfs_ns: float

    @property
    def ratio(self) -> float:
        """The time of HFS divided by that of double-DRR."""
        return self.hfs_ns / self.double_drr_ns

    def to_json(self) -> dict[str, Any]:
        """Returns the keys of the benchmark's JSON object."""
        return {**asdict(self), "ratio": self.ratio, "bar": BAR, "met": self.ratio <= BAR}


def measure(quick: bool, say: Callable[[str], None]) -> list[Cost]:
    """Measures every case. Both algorithms run in turn, and the fastest run of each counts."""
    say("two layers of schedulers")
    return [_cost(case, flags, quick) for case, flags in _CASES]


def _cost(case: str, flags: dict[str, str], quick: bool) -> Cost:
    length = {"n": "1M", "repeat": "1"} if quick else {"n": "10M", "repeat": "3"}
    best = dict.fromkeys(_LAYERS, float("inf"))
    for _ in range(1 if quick else 3):
        for name, layer in _LAYERS.items():
            layers = {"mode": "double", "qos": layer, "mac": layer, "qmac": str(BUFFER)}
            report = engine.tempest({**flags, **layers, **length, "measure": "time"})
            best[name] = min(best[name], report["ns_per_packet"])
    return Cost(case, BUFFER, best["double-drr"], best["hfs"])


COLUMNS = ("packets of", "Q", "double-drr ns", "hfs ns", "ratio", "bar", "met")


def cells(costs: list[Cost]) -> list[list[str]]:
    """Returns the rows of the table."""
    return [
        [
            cost.case,
            str(cost.buffer),
            f"{cost.double_drr_ns:.1f}",
            f"{cost.hfs_ns:.1f}",
            f"{cost.ratio:.2f}",
            f"{BAR:g}",
            "yes" if cost.ratio <= BAR else "no",
        ]
        for cost in costs
    ]
