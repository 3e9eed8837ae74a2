"""Measures algorithms in Python: the examples of docs/your-own.md and built-in ones in the same scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from penstock import engine
from penstock.bench import cases
from penstock.scenario import Scenario, to_toml

EXAMPLES = cases.ROOT / "examples" / "own"
# Each example, the built-in algorithm that it replaces, where it is named, and the calls of Python for a packet: 1 for
# an ACK or a departure, 2 for an arrival and a departure.
_CASES = (
    ("my_cc.py:MyCc", "newreno", "cc", 1),
    ("my_aqm.py:MyAqm", "droptail", "aqm", 2),
    ("turns.py:Turns", "droptail", "aqm", 1),
    ("clamp.py:Clamp", "droptail", "aqm", 1),
)
COLUMNS = ("algorithm", "instead of", "packets", "ns/packet", "built in", "more per call", "calls per packet")

_TREE: dict[str, Any] = {
    "duration": "60s",
    "topology": {"kind": "dumbbell", "rate": "100Mbit/s", "delay": "10ms", "limit": "250kB"},
    "aqm": {"name": "droptail"},
    "tcp": {"cc": "newreno", "ack_every_segment": True},
    "flows": [{"kind": "bulk", "count": 2}],
    "output": {"series": False},
}


@dataclass(frozen=True)
class Cost:
    """The cost of one algorithm in Python, and that of a built-in one."""

    name: str
    instead_of: str
    packets: int
    ns_per_packet: float
    built_in_ns_per_packet: float
    calls_per_packet: int  # calls of Python

    @property
    def ns_per_call(self) -> float:
        """The additional time of a call compared with the built-in algorithm, in ns."""
        return (self.ns_per_packet - self.built_in_ns_per_packet) / self.calls_per_packet

    def to_json(self) -> dict[str, Any]:
        """Returns the cost as plain values for JSON."""
        return {**asdict(self), "ns_per_call": self.ns_per_call}


def measure(quick: bool, repeat: int, say: Callable[[str], None]) -> list[Cost]:
    """Runs the examples and the built-in algorithms in turn; the least CPU time of each counts."""
    say("algorithms in Python")
    duration = cases.shorter(_TREE["duration"]) if quick else _TREE["duration"]
    plain = {**_TREE, "duration": duration}
    trees = {"": plain, **{name: _with(plain, name, where) for name, _, where, _ in _CASES}}
    runs: dict[str, list[engine.Result]] = {name: [] for name in trees}
    for _ in range(repeat):
        for name, tree in trees.items():
            runs[name].append(engine.simulate(Scenario(to_toml(tree), str(EXAMPLES / "bench.toml"))))
    least = {name: _least(results) for name, results in runs.items()}
    base, _ = least[""]
    return [Cost(name, instead, least[name][1], least[name][0], base, calls) for name, instead, _, calls in _CASES]


def _with(plain: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    if where == "cc":
        return {**plain, "tcp": {**_TREE["tcp"], "cc": name}}
    more = {"flows": 2, "class_limit": "250kB"} if name.startswith("turns") else {}
    most = (
        {"most_kb": 1e6} if name.startswith("clamp") else {}
    )  # so that nothing is lowered and the traffic is the same
    return {**plain, "aqm": {"name": name, **more, **most}}


def _least(results: list[engine.Result]) -> tuple[float, int]:
    best = min(results, key=lambda result: result.cpu_s)
    packets = int(best.summary["bottlenecks"][0]["packets"])
    return best.cpu_s * 1e9 / max(1, packets), packets


def cells(costs: list[Cost]) -> list[list[str]]:
    """Returns the rows of the table."""
    return [
        [
            cost.name,
            cost.instead_of,
            f"{cost.packets:,}",
            f"{cost.ns_per_packet:,.0f}",
            f"{cost.built_in_ns_per_packet:,.0f}",
            f"{cost.ns_per_call:,.0f}",
            str(cost.calls_per_packet),
        ]
        for cost in costs
    ]
