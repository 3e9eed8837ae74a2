"""The runs of `emergency`: networks of `penstock.architecture`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from penstock.architecture import BACKHAULS, BaseStation, Handover, Meoc, emergency_network
from penstock.architecture.network import CALL, CIVILIAN, EOC, INTERNET
from penstock.reproduce.settings import Setting

Tree = dict[str, Any]
ORBITS = ("geo", "meo", "leo")
HOPS = (1, 2, 3, 4, 5, 6)  # relays from the vehicle into a building
FILE_MBIT = 20.0  # the rate of every backhaul where files are compared: that of section 2.3.3
PASSAGE_S, FILE_S, MOVE_S, BUSY_S = 2701, 120, 60, 60  # the first is a passage of an O3b satellite
MOVE_AT_S = 30
FLOORED = 20  # civilians in the busy cell, each with a guaranteed rate for a call


def _call(a: str, b: str, of: int = CALL) -> list[Tree]:
    """A call in both directions."""
    return [{"kind": "voip", "class": of, "from": x, "to": y, "start": "50ms"} for x, y in ((a, b), (b, a))]


def _with(network: Tree, flows: list[Tree]) -> Tree:
    return {**network, "flows": flows}


def _orbit(name: str) -> Tree:
    """Calls over the satellite alone, and from a responder to a host in the internet."""
    network = emergency_network([Meoc(BACKHAULS[name], responders=1)], PASSAGE_S)
    return _with(network, [*_call("meoc1", EOC), *_call("ian1", INTERNET)])


def _file(name: str) -> Tree:
    """One CUBIC sender in a cell; all backhauls have the same rate."""
    sky = replace(BACKHAULS[name], mbit=FILE_MBIT)
    network = emergency_network([Meoc(sky, responders=1)], FILE_S)
    return _with(network, [flow for flow in network["flows"] if flow["kind"] == "bulk"])


def _busy(**cell: Any) -> Tree:
    """Five responders send files and have calls; civilians load pages and have calls of their own."""
    network = emergency_network([Meoc(BACKHAULS["meo"], responders=5, civilians=FLOORED, **cell)], BUSY_S)
    calls = [{**flow, "count": FLOORED} for flow in _call("ian1", INTERNET, CIVILIAN)]
    return _with(network, [*network["flows"], *calls])


def _calm() -> Tree:
    """The same responders with nothing but their calls."""
    network = emergency_network([Meoc(BACKHAULS["meo"], responders=5)], BUSY_S)
    return _with(network, [flow for flow in network["flows"] if flow["kind"] == "voip"])


def _x2(moves: bool) -> Tree:
    """Two base stations that still work; a responder moves from the one to the other."""
    stations = [BaseStation(responders=1, civilians=0), BaseStation()]
    moved = [Handover(MOVE_AT_S, "t1", "t2")] if moves else []
    network = emergency_network([Meoc()], MOVE_S, terrestrial=stations, handovers=moved)
    return _responder(network, "town1")


def _s1(orbit: str, moves: bool) -> Tree:
    """Two vehicles with a satellite each; a responder moves from the one to the other."""
    vehicles = [Meoc(BACKHAULS[orbit], responders=1), Meoc(BACKHAULS[orbit], responders=1)]
    moved = [Handover(MOVE_AT_S, "1", "2")] if moves else []
    network = emergency_network(vehicles, MOVE_S, handovers=moved)
    return _responder(network, "ian1")


def _responder(network: Tree, cell: str) -> Tree:
    """The call and the file of who moves; the window of the file is small, so that no queue drops.

    Numbers in `handovers` are those of flows, so the flows of all others stay and begin at the end.
    """
    flows = []
    for flow in network["flows"]:
        mine = cell in (flow["from"], flow["to"])
        window = {"tcp": {"receive_buffer": "64kB"}} if flow["kind"] == "bulk" else {}
        flows.append({**flow, **window} if mine else {**flow, "start": f"{MOVE_S - 1}s"})
    return _with(network, flows)


def _between(bridge: bool) -> Tree:
    """A call between responders of two vehicles with a satellite each, which a long-range cell may connect."""
    vehicles = [Meoc(BACKHAULS["geo"], responders=1), Meoc(BACKHAULS["geo"], responders=1)]
    network = emergency_network(vehicles, 30, bridge_mbit=10.0 if bridge else None)
    return _with(network, _call("ian1", "ian2"))


def _chain(orbit: str, hops: int) -> Tree:
    """A call from inside a building, over a chain of terminals that act as bridges; a file goes along."""
    network = emergency_network([Meoc(BACKHAULS[orbit], responders=1)], 30)
    cell = network["topology"]["links"][1]
    relays = [{**cell, "name": f"relay{n}", "a": _inside(n), "b": _inside(n - 1)} for n in range(1, hops + 1)]
    network["topology"]["links"] += relays
    upload = {"kind": "bulk", "class": 1, "from": _inside(hops), "to": "meoc1", "start": "50ms"}
    return _with(network, [*_call(_inside(hops), EOC), upload])


def _inside(hop: int) -> str:
    return f"inside{hop}" if hop else "ian1"


NETWORKS: Mapping[str, tuple[str, Callable[[], Tree]]] = {
    **{f"orbit-{name}": (f"{name.upper()}, calls", partial(_orbit, name)) for name in ORBITS},
    **{f"file-{name}": (f"{name.upper()}, a file by CUBIC", partial(_file, name)) for name in ORBITS},
    "busy": ("a busy cell", _busy),
    "one-queue": ("a busy cell without bearers", partial(_busy, cell_aqm={"name": "droptail"})),
    "calm": ("calls alone in a cell", _calm),
    "x2": ("a move by X2", partial(_x2, True)),
    "x2-stays": ("no move, on land", partial(_x2, False)),
    "s1-meo": ("a move by S1, MEO", partial(_s1, "meo", True)),
    "s1-meo-stays": ("no move, MEO", partial(_s1, "meo", False)),
    "s1-geo": ("a move by S1, GEO", partial(_s1, "geo", True)),
    "s1-geo-stays": ("no move, GEO", partial(_s1, "geo", False)),
    "apart": ("two vehicles, by satellite", partial(_between, False)),
    "bridge": ("two vehicles, a bridge", partial(_between, True)),
    **{f"chain-meo-{n}": (f"MEO, {n} relays", partial(_chain, "meo", n)) for n in HOPS},
    **{f"chain-geo-{n}": (f"GEO, {n} relays", partial(_chain, "geo", n)) for n in HOPS},
}


def _setting(name: str, label: str, network: Tree) -> Setting:
    """What the network of a setting says and the scenario does not: links, flows, orbits, handovers, duration."""
    change: Tree = {key: network[key] for key in ("duration", "flows", "changes", "handovers") if key in network}
    change["topology.links"] = network["topology"]["links"]
    return Setting(name, label, change=change, flows=sum(int(flow.get("count", 1)) for flow in network["flows"]))


SETTINGS = tuple(_setting(name, label, build()) for name, (label, build) in NETWORKS.items())
