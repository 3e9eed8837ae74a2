"""The reference architecture: responders, cells, MEOCs, satellites, headquarters.

Numbers of section 2.1.2.6: attaching to a cell takes 50 ms, and a round trip over it 10 to 15 ms; a cell carries 17 to
33 Mbit/s on average; a round trip over GEO takes at least 500 to 550 ms, over MEO 200 ms on average, over LEO less than
100 ms. Rates of backhauls are choices: GEO has the link of section 2.3.3; MEO has more than a cell, LEO less, as the
source says.

Bearers are those of section 2.1.2.2: dedicated ones for responders, a best-effort one for civilians; which class
identifiers they have is a choice. Terrestrial base stations that still work (2.1.2.3) stand in a star around their core
network; their delays are choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.architecture import moves, orbit
from penstock.architecture.moves import ArchitectureError, Cell, Handover
from penstock.architecture.orbit import GEO, LEO, MEO, Orbit

ATTACH_MS = 50
CELL_DELAY_MS = 6.25  # a round trip of 12.5 ms, the middle of 10 to 15
CELL_MBIT = 25.0  # the middle of 17 to 33
EOC, EPC, INTERNET = "eoc", "epc", "internet"
EPC_DELAY_MS, X2_DELAY_MS = 5.0, 2.0
CALL, DATA, CIVILIAN = range(3)  # classes of flows
# Mission-critical voice, 80 kbit/s of G.711 with headers; mission-critical data; best effort with a floor, as voice and
# text at least must be provided to people in distress.
BEARERS = "65:100kbit/s,70,9:100kbit/s"
# Conversational voice, and best effort for all else: a commercial network knows no responders.
PUBLIC_BEARERS = "1:100kbit/s,9,9"


@dataclass(frozen=True)
class Backhaul:
    """A satellite link between a MEOC and the EOC."""

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
    """A vehicle with an LTE cell: the number of people in it, and its backhaul."""

    backhaul: Backhaul = BACKHAULS["meo"]
    responders: int = 5
    civilians: int = 0
    cell_mbit: float = CELL_MBIT
    cell_aqm: dict[str, Any] = field(default_factory=lambda: {"name": "lte-bearers", "bearers": BEARERS})
    aqm: dict[str, Any] = field(default_factory=lambda: {"name": "droptail"})  # discipline of the backhaul


@dataclass(frozen=True)
class BaseStation:
    """A terrestrial base station that still works, and the number of people in its cell."""

    responders: int = 0
    civilians: int = 5
    cell_mbit: float = CELL_MBIT
    cell_aqm: dict[str, Any] = field(default_factory=lambda: {"name": "lte-bearers", "bearers": PUBLIC_BEARERS})


def emergency_network(
    meocs: Sequence[Meoc] = (Meoc(),),
    duration_s: float = 60.0,
    seed: int = 1,
    bridge_mbit: float | None = None,
    terrestrial: Sequence[BaseStation] = (),
    handovers: Sequence[Handover] = (),
) -> dict[str, Any]:
    """Returns the scenario of MEOCs connected with one EOC, and of terrestrial base stations if there are any.

    Each responder sends a file to the EOC and takes part in a call with it; each civilian fetches pages from the
    internet behind it. They arrive one second after another, and each attaches first. With `bridge_mbit`, neighbouring
    MEOCs are connected by a long-range cell of that rate (section 2.1.2.3). `handovers` move people between cells.
    """
    if not meocs:
        raise ArchitectureError("an emergency network needs at least one MEOC")
    people = _People()
    links = [_wire(EOC, INTERNET, 1000.0, 10.0)]
    changes: list[dict[str, Any]] = []
    for number, meoc in enumerate(meocs, 1):
        links += _links(number, meoc)
        people.come(f"{number}", Cell(f"ian{number}", terrestrial=False), meoc.responders, meoc.civilians)
        if not meoc.backhaul.orbit.is_fixed:
            changes.append({"link": _sky(number), "orbit": meoc.backhaul.orbit.keys()})
    if bridge_mbit is not None:
        links += [_wire(f"meoc{n}", f"meoc{n + 1}", bridge_mbit, CELL_DELAY_MS) for n in range(1, len(meocs))]
    for number, station in enumerate(terrestrial, 1):
        people.come(f"t{number}", Cell(f"town{number}", terrestrial=True), station.responders, station.civilians)
    links += _on_land(terrestrial)
    scenario = {
        "name": "emergency-" + "-".join(sorted({meoc.backhaul.name for meoc in meocs})),
        "duration": f"{duration_s:g}s",
        "seed": seed,
        "topology": {"kind": "graph", "access_rate": "1Gbit/s", "access_delay": "0ms", "links": links},
        "flows": people.flows,
        "output": {"series": True},
    }
    more = {"changes": changes, "handovers": moves.handovers(handovers, people.cells)}
    return scenario | {key: value for key, value in more.items() if value}


@dataclass
class _People:
    """The flows of all people, and the cells in which their hosts are."""

    flows: list[dict[str, Any]] = field(default_factory=list)
    cells: dict[str, Cell] = field(default_factory=dict)

    def come(self, name: str, cell: Cell, responders: int, civilians: int) -> None:
        """Adds responders and civilians, who attach to a cell."""
        if responders + civilians < 1:
            raise ArchitectureError(f"{cell.router}: nobody is in its cell; give `responders` or `civilians`")
        self.cells[name] = cell
        file = {"kind": "bulk", "from": cell.router, "to": EOC, "class": DATA}
        call = {"kind": "voip", "class": CALL}
        pages = {"kind": "http", "size": "700kB", "idle": "5s", "class": CIVILIAN}
        self._add(cell, moves.DATA, responders, file)
        self._add(cell, moves.CALLS, responders, {**call, "from": cell.router, "to": EOC})
        self._add(cell, moves.CALLS, responders, {**call, "from": EOC, "to": cell.router})
        self._add(cell, moves.PAGES, civilians, {**pages, "from": INTERNET, "to": cell.router})

    def _add(self, cell: Cell, kind: str, count: int, flow: dict[str, Any]) -> None:
        if count:
            first = sum(other["count"] for other in self.flows)
            cell.flows[kind] += range(first, first + count)
            self.flows.append({**flow, "count": count, "start": f"{ATTACH_MS}ms", "start_step": "1s"})


def _sky(number: int) -> str:
    return f"satellite{number}"


def _links(number: int, meoc: Meoc) -> list[dict[str, Any]]:
    if not meoc.backhaul.orbit.is_seen():
        raise ArchitectureError(
            f"meoc{number}: no satellite of the {meoc.backhaul.name} orbit is always above the horizon"
        )
    up = orbit.delay(meoc.backhaul.orbit, 0.0)
    round_trip_s = 2 * (meoc.backhaul.orbit.delay_ms(0.0) + CELL_DELAY_MS) / 1e3
    sky = {"name": _sky(number), "a": f"meoc{number}", "b": EOC, "delay": up}
    return [
        _cell(f"cell{number}", f"ian{number}", f"meoc{number}", meoc, round_trip_s),
        {**sky, "rate": _mbit(meoc.backhaul.mbit), "limit": _limit(meoc.backhaul.mbit, round_trip_s), "aqm": meoc.aqm},
    ]


def _on_land(stations: Sequence[BaseStation]) -> list[dict[str, Any]]:
    """Returns the links of the base stations: to their cells, to the core network, and to neighbours (X2)."""
    if not stations:
        return []
    round_trip_s = 2 * (CELL_DELAY_MS + EPC_DELAY_MS) / 1e3
    links = [_wire(EPC, INTERNET, 1000.0, 10.0)]
    for number, station in enumerate(stations, 1):
        links.append(_cell(f"land{number}", f"town{number}", f"enb{number}", station, round_trip_s))
        links.append(_wire(f"enb{number}", EPC, 1000.0, EPC_DELAY_MS))
    return links + [_wire(f"enb{n}", f"enb{n + 1}", 1000.0, X2_DELAY_MS) for n in range(1, len(stations))]


def _cell(name: str, where: str, base: str, owner: Meoc | BaseStation, round_trip_s: float) -> dict[str, Any]:
    room = _limit(owner.cell_mbit, round_trip_s)
    ends = {"name": name, "a": where, "b": base, "rate": _mbit(owner.cell_mbit), "delay": f"{CELL_DELAY_MS:g}ms"}
    return {**ends, "limit": room, "reverse_limit": room, "aqm": owner.cell_aqm, "reverse_aqm": owner.cell_aqm}


def _wire(a: str, b: str, mbit: float, delay_ms: float) -> dict[str, Any]:
    return {"name": f"{a}-{b}", "a": a, "b": b, "rate": _mbit(mbit), "delay": f"{delay_ms:g}ms"}


def _mbit(mbit: float) -> str:
    return f"{round(mbit * 1e6)}bit/s"


def _limit(mbit: float, seconds: float) -> str:
    """Returns one bandwidth-delay product as the limit of a queue, as in section 2.2.2.1."""
    return f"{max(15_000, round(mbit * 1e6 / 8 * seconds))}B"
