"""Handovers of people between cells (section 2.1.2.4).

Handovers between terrestrial base stations use X2: seamless for calls, whose bearers have no acknowledgments, and
lossless for all other flows. Handovers from or to a MEOC use S1, since each MEOC has its own core network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.mistake import MistakeError

CALLS, DATA, PAGES = "calls", "data", "pages"
WHO = {"responders": (CALLS, DATA), "civilians": (PAGES,), "all": (CALLS, DATA, PAGES)}


class ArchitectureError(MistakeError):
    """The network cannot be built with these arguments."""


@dataclass(frozen=True)
class Handover:
    """A move of people between cells: "1" is the cell of the first MEOC, "t1" that of the first base station."""

    at_s: float
    start: str
    end: str
    who: str = "responders"


@dataclass
class Cell:
    """A cell: its node, and the numbers of the flows of the hosts in it."""

    router: str
    terrestrial: bool
    flows: dict[str, list[int]] = field(default_factory=lambda: {CALLS: [], DATA: [], PAGES: []})


def handovers(wanted: Sequence[Handover], cells: Mapping[str, Cell]) -> list[dict[str, Any]]:
    """Returns the `[[handovers]]` of a scenario, and updates the flows of the cells for each move."""
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
    """Returns the procedures of a handover between two cells, each with the kinds of flows that it moves."""
    if start.terrestrial and end.terrestrial:
        return {"x2-seamless": (CALLS,), "x2-lossless": (DATA, PAGES)}
    return {"s1": (CALLS, DATA, PAGES)}
