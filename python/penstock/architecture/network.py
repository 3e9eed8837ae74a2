"""The reference architecture: responders, cells, MEOCs, satellites, headquarters.

Numbers of section 2.1.2.6: attaching to a cell takes 50 ms, and a round trip over it 10 to 15 ms; a cell carries 17 to
33 Mbit/s on average; a round trip over GEO takes at least 500 to 550 ms, over MEO 200 ms on average, over LEO less than
100 ms. Rates of backhauls are choices: GEO has the link of section 2.3.3; MEO has more than a cell, LEO less, as the
source says.
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
    aqm: dict[str, Any] = field(default_factory=lambda: {"name": "droptail"})


def emergency_network(
    meocs: Sequence[Meoc] = (Meoc(),), duration_s: float = 60.0, seed: int = 1, bridge_mbit: float | None = None
) -> dict[str, Any]:
    """A scenario of MEOCs around one EOC.

    Each responder sends a file to the EOC and takes part in a call with it; each civilian fetches pages from the
    internet behind it. They come one second after the other, and each attaches first. With `bridge_mbit`, neighbouring
    MEOCs are connected by a long-range cell of that rate (section 2.1.2.3).
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
    return {**scenario, "changes": changes} if changes else scenario


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
    return [
        {**cell, "rate": _mbit(meoc.cell_mbit), "limit": _limit(meoc.cell_mbit, round_trip_s), "aqm": meoc.aqm},
        {**sky, "rate": _mbit(meoc.backhaul.mbit), "limit": _limit(meoc.backhaul.mbit, round_trip_s), "aqm": meoc.aqm},
    ]


def _wire(a: str, b: str, mbit: float, delay_ms: float) -> dict[str, Any]:
    return {"name": f"{a}-{b}", "a": a, "b": b, "rate": _mbit(mbit), "delay": f"{delay_ms:g}ms"}


def _flows(number: int, meoc: Meoc) -> list[dict[str, Any]]:
    here, attach = f"ian{number}", {"start": f"{ATTACH_MS}ms", "start_step": "1s"}
    flows: list[dict[str, Any]] = []
    if meoc.responders:
        flows.append({"kind": "bulk", "count": meoc.responders, **attach, "from": here, "to": EOC})
        flows.append({"kind": "voip", "count": meoc.responders, **attach, "from": here, "to": EOC})
    if meoc.civilians:
        pages = {"kind": "http", "size": "700kB", "idle": "5s", "from": INTERNET, "to": here}
        flows.append({**pages, "count": meoc.civilians, **attach})
    return flows


def _mbit(mbit: float) -> str:
    return f"{round(mbit * 1e6)}bit/s"


def _limit(mbit: float, seconds: float) -> str:
    """One bandwidth-delay product, as in section 2.2.2.1."""
    return f"{max(15_000, round(mbit * 1e6 / 8 * seconds))}B"
