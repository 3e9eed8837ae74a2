"""Flows of a kind together: what a table, a chart or an index of fairness may mix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock import fairness

Flow = Mapping[str, Any]


@dataclass(frozen=True)
class Group:
    """The flows of a kind of traffic with one congestion control."""

    kind: str
    cc: str  # empty without TCP
    flows: Sequence[Flow]
    back: bool = False  # they go against the flows of the first table of the scenario on the same path

    @property
    def label(self) -> str:
        """The name of the group in tables and charts."""
        return self.kind + self.told

    @property
    def told(self) -> str:
        """What distinguishes the group from others of its kind."""
        words = [word for word in (self.cc, "back" if self.back else "") if word]
        return f" ({', '.join(words)})" if words else ""

    @property
    def ids(self) -> list[int]:
        """The numbers of the flows."""
        return [int(flow["id"]) for flow in self.flows]

    @property
    def jain(self) -> float | None:
        """Jain's index of the flows' goodputs, each over the time it was active; `None` for fewer than two flows."""
        return jain(self.rates)

    @property
    def rates(self) -> list[float]:
        """The goodputs of the flows that began, in bit/s."""
        return [float(flow["goodput_bps"]) for flow in self.flows if flow["goodput_bps"] is not None]


def groups(flows: Sequence[Flow]) -> list[Group]:
    """Returns the groups in the order of their first flows. A flow with the key `back` goes against others."""
    found: dict[tuple[str, str, bool], list[Flow]] = {}
    for flow in flows:
        found.setdefault((flow["kind"], flow["cc"], flow.get("back", False)), []).append(flow)
    return [Group(kind, cc, members, back) for (kind, cc, back), members in found.items()]


def directed(flows: Sequence[Flow], scenario: Mapping[str, Any]) -> list[Flow]:
    """Returns the flows with the key `back`: whether they go against flows that the scenario names before them."""
    seen: set[tuple[str, str]] = set()
    back: list[bool] = []
    for group in scenario.get("flows", []):
        reverse = group.get("direction") == "reverse"
        start, end = group.get("from", "right" if reverse else "left"), group.get("to", "left" if reverse else "right")
        against = (end, start) in seen
        seen |= set() if against else {(start, end)}
        back += [against] * group.get("count", 1)
    if len(back) != len(flows):
        return list(flows)
    return [{**flow, "back": one} for flow, one in zip(flows, back, strict=True)]


def hosts(scenario: Mapping[str, Any]) -> dict[int, str]:
    """Returns the names of the hosts of flows, by the number of the flow, of flows whose host has a name."""
    of = [group.get("node") for group in scenario.get("flows", []) for _ in range(group.get("count", 1))]
    return {flow: str(name) for flow, name in enumerate(of) if name}


def kinds(flows: Sequence[Flow]) -> dict[str, list[Flow]]:
    """Returns the flows of each kind of traffic, in the order of their first flows."""
    found: dict[str, list[Flow]] = {}
    for flow in flows:
        found.setdefault(flow["kind"], []).append(flow)
    return found


def jain(rates: Sequence[float]) -> float | None:
    """Returns Jain's index; `None` for fewer than two rates, or if all are zero."""
    return fairness.jain(rates) if len(rates) > 1 and any(rates) else None
