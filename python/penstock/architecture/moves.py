"""Who goes from cell to cell, and how: section 2.1.2.4.

Between terrestrial base stations over X2: calls seamless, as nothing is acknowledged on their bearers, and all else
lossless. Wherever a MEOC takes part over S1, as each MEOC has a core network of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.mistake import MistakeError

CALLS, DATA, PAGES = "calls", "data", "pages"
WHO = {"responders": (CALLS, DATA), "civilians": (PAGES,), "all": (CALLS, DATA, PAGES)}


class ArchitectureError(MistakeError):
    """The network cannot be built as asked."""


@dataclass(frozen=True)
class Handover:
    """People go from one cell to another: "1" is that of the first MEOC, "t1" that of the first base station."""

    at_s: float
    start: str
    end: str
    who: str = "responders"


@dataclass
class Cell:
    """Where hosts are, and the numbers of their flows."""

    router: str
    terrestrial: bool
    flows: dict[str, list[int]] = field(default_factory=lambda: {CALLS: [], DATA: [], PAGES: []})


def handovers(wanted: Sequence[Handover], cells: Mapping[str, Cell]) -> list[dict[str, Any]]:
    """The `[[handovers]]` of a scenario. People who have moved are in their new cells afterwards."""
    made = []
    for one in sorted(wanted, key=lambda handover: handover.at_s):
        for name in (one.start, one.end):
            if name not in cells:
                raise ArchitectureError(f"a handover cannot be from or to {name!r}; there are {', '.join(cells)}")
        if one.who not in WHO:
            raise ArchitectureError(f"{one.who!r} cannot move; there are {', '.join(WHO)}")
        start, end = cells[one.start], cells[one.end]
        moving = {kind: start.flows[kind] for kind in WHO[one.who] if start.flows[kind]}
        if not moving:
            raise ArchitectureError(f"no {one.who} are in cell {one.start} at {one.at_s:g} s")
        where = {"at": f"{one.at_s:g}s", "from": start.router, "to": end.router}
        for procedure, kinds in procedures(start, end).items():
            flows = sorted(number for kind in kinds for number in moving.get(kind, []))
            made += [{**where, "procedure": procedure, "flows": flows}] if flows else []
        for kind, numbers in moving.items():
            start.flows[kind] = []
            end.flows[kind] = end.flows[kind] + numbers
    return made


def procedures(start: Cell, end: Cell) -> dict[str, tuple[str, ...]]:
    """How which flows move."""
    if start.terrestrial and end.terrestrial:
        return {"x2-seamless": (CALLS,), "x2-lossless": (DATA, PAGES)}
    return {"s1": (CALLS, DATA, PAGES)}
