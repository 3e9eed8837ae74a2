"""The reference architecture: responders, cells, MEOCs, satellites, headquarters.

Numbers of section 2.1.2.6: attaching to a cell takes 50 ms, and a round trip over it 10 to 15 ms; a cell carries 17 to
33 Mbit/s on average; a round trip over GEO takes at least 500 to 550 ms, over MEO 200 ms on average, over LEO less than
100 ms. Rates of backhauls are choices: GEO has the link of section 2.3.3; MEO has more than a cell, LEO less, as the
source says.

Bearers are those of section 2.1.2.2: dedicated ones for responders, a best-effort one for civilians; which class
identifiers they have is a choice. Between MEOCs a handover is one over S1 (2.1.2.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.architecture import orbit
from penstock.architecture.orbit import GEO, LEO, MEO, Orbit
from penstock.mistake import MistakeError

ATTACH_MS = 50
CELL_DELAY_MS = 6.25  # a round trip of 12.5 ms, the middle of 10 to 15
CELL_MBIT = 25.0  # the middle of 17 to 33
EOC, INTERNET = "eoc", "internet"
CALL, DATA, CIVILIAN = range(3)  # classes of flows
# Mission-critical voice, 80 kbit/s of G.711 with headers; mission-critical data; best effort.
BEARERS = "65:100kbit/s,70,9"


class ArchitectureError(MistakeError):
    """The network cannot be built as asked."""


@dataclass(frozen=True)
class Backhaul:
    """A satellite link."""

    name: str
    orbit: Orbit
    mbit: float


BACKHAULS = {
    "geo": Backhaul("geo", GEO, 20.0),
    "meo": Backhaul("meo", MEO, 100.0),
    "leo": Backhaul("leo", LEO, 10.0),
}


@dataclass(frozen=True)
class Meoc:
    """A vehicle with a cell: who is in it and what connects it."""

    backhaul: Backhaul = BACKHAULS["meo"]
    responders: int = 5
    civilians: int = 0
    cell_mbit: float = CELL_MBIT
    cell_aqm: dict[str, Any] = field(default_factory=lambda: {"name": "lte-bearers", "bearers": BEARERS})
    aqm: dict[str, Any] = field(default_factory=lambda: {"name": "droptail"})  # of the backhaul


@dataclass(frozen=True)
class Handover:
    """The responders of a MEOC move to another; MEOCs are numbered from 1."""

    at_s: float
    start: int
    end: int


def emergency_network(
    meocs: Sequence[Meoc] = (Meoc(),),
    duration_s: float = 60.0,
    seed: int = 1,
    bridge_mbit: float | None = None,
    handovers: Sequence[Handover] = (),
) -> dict[str, Any]:
    """A scenario of MEOCs around one EOC.

    Each responder sends a file to the EOC and takes part in a call with it; each civilian fetches pages from the
    internet behind it. They come one second after the other, and each attaches first. With `bridge_mbit`, neighbouring
    MEOCs are connected by a long-range cell of that rate (section 2.1.2.3). `handovers` move responders between cells.
    """
    if not meocs:
        raise ArchitectureError("an emergency network needs at least one MEOC")
    links, flows, changes = [_wire(EOC, INTERNET, 1000.0, 10.0)], [], []
    for number, meoc in enumerate(meocs, 1):
        links += _links(number, meoc)
        flows += _flows(number, meoc)
        changes += orbit.changes(_sky(number), meoc.backhaul.orbit, duration_s)
    if bridge_mbit is not None:
        links += [_wire(f"meoc{n}", f"meoc{n + 1}", bridge_mbit, CELL_DELAY_MS) for n in range(1, len(meocs))]
    scenario = {
        "name": "emergency-" + "-".join(sorted({meoc.backhaul.name for meoc in meocs})),
        "duration": f"{duration_s:g}s",
        "seed": seed,
        "topology": {"kind": "graph", "access_rate": "1Gbit/s", "access_delay": "0ms", "links": links},
        "flows": flows,
        "output": {"series": True},
    }
    more = {"changes": changes, "handovers": _handovers(handovers, meocs)}
    return scenario | {key: value for key, value in more.items() if value}


def _sky(number: int) -> str:
    return f"satellite{number}"


def _links(number: int, meoc: Meoc) -> list[dict[str, Any]]:
    if not meoc.backhaul.orbit.is_seen():
        raise ArchitectureError(
            f"meoc{number}: no satellite of the {meoc.backhaul.name} orbit is always above the horizon"
        )
    if meoc.responders + meoc.civilians < 1:
        raise ArchitectureError(f"meoc{number}: nobody is in its cell; give `responders` or `civilians`")
    up = orbit.delay(meoc.backhaul.orbit, 0.0)
    round_trip_s = 2 * (meoc.backhaul.orbit.delay_ms(0.0) + CELL_DELAY_MS) / 1e3
    cell = {"name": f"cell{number}", "a": f"ian{number}", "b": f"meoc{number}", "delay": f"{CELL_DELAY_MS:g}ms"}
    sky = {"name": _sky(number), "a": f"meoc{number}", "b": EOC, "delay": up}
    room = _limit(meoc.cell_mbit, round_trip_s)
    limits, ways = {"limit": room, "reverse_limit": room}, {"aqm": meoc.cell_aqm, "reverse_aqm": meoc.cell_aqm}
    return [
        {**cell, "rate": _mbit(meoc.cell_mbit), **limits, **ways},
        {**sky, "rate": _mbit(meoc.backhaul.mbit), "limit": _limit(meoc.backhaul.mbit, round_trip_s), "aqm": meoc.aqm},
    ]


def _wire(a: str, b: str, mbit: float, delay_ms: float) -> dict[str, Any]:
    return {"name": f"{a}-{b}", "a": a, "b": b, "rate": _mbit(mbit), "delay": f"{delay_ms:g}ms"}


def _flows(number: int, meoc: Meoc) -> list[dict[str, Any]]:
    here, attach = f"ian{number}", {"start": f"{ATTACH_MS}ms", "start_step": "1s"}
    flows: list[dict[str, Any]] = []
    if meoc.responders:
        each = {"count": meoc.responders, **attach}
        flows.append({"kind": "bulk", **each, "from": here, "to": EOC, "class": DATA})
        flows.append({"kind": "voip", **each, "from": here, "to": EOC, "class": CALL})
        flows.append({"kind": "voip", **each, "from": EOC, "to": here, "class": CALL})
    if meoc.civilians:
        pages = {"kind": "http", "size": "700kB", "idle": "5s", "from": INTERNET, "to": here}
        flows.append({**pages, "count": meoc.civilians, **attach, "class": CIVILIAN})
    return flows


def _handovers(handovers: Sequence[Handover], meocs: Sequence[Meoc]) -> list[dict[str, Any]]:
    """Each by the numbers of the responders' flows, which follow them from cell to cell."""
    numbers = iter(range(sum(3 * meoc.responders + meoc.civilians for meoc in meocs)))
    inside: dict[int, list[int]] = {}
    for number, meoc in enumerate(meocs, 1):
        inside[number] = [next(numbers) for _ in range(3 * meoc.responders)]
        [next(numbers) for _ in range(meoc.civilians)]
    made = []
    for one in sorted(handovers, key=lambda handover: handover.at_s):
        for end in (one.start, one.end):
            if end not in inside:
                raise ArchitectureError(f"a handover needs MEOCs 1 to {len(meocs)}; there is no MEOC {end}")
        if not inside[one.start]:
            raise ArchitectureError(f"no responder is in the cell of MEOC {one.start} at {one.at_s:g} s")
        where = {"from": f"ian{one.start}", "to": f"ian{one.end}"}
        made.append({"at": f"{one.at_s:g}s", **where, "procedure": "s1", "flows": sorted(inside[one.start])})
        inside[one.end], inside[one.start] = inside[one.end] + inside[one.start], []
    return made


def _mbit(mbit: float) -> str:
    return f"{round(mbit * 1e6)}bit/s"


def _limit(mbit: float, seconds: float) -> str:
    """One bandwidth-delay product, as in section 2.2.2.1."""
    return f"{max(15_000, round(mbit * 1e6 / 8 * seconds))}B"
