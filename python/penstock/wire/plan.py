"""A scenario as what the wire is to do: links for emulators, flows for hosts, and a refusal of what neither can do."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from penstock import engine
from penstock.scenario import Scenario
from penstock.units import number
from penstock.wire import announcing, cooperation, kernel_queues, network, tcp
from penstock.wire.cooperation import Cooperation
from penstock.wire.flow import SESSIONS, Flow
from penstock.wire.kernel_queues import KernelQueue
from penstock.wire.network import Link, Step
from penstock.wire.position import Path, refuse

KINDS = ("bulk", "transfer", "cbr", "onoff", "voip", "video", "http", "web", "stack")
_REAL_TIME = ("wire", kernel_queues.WORLDS[0])
_IP_AND_UDP, _RTP_HEADER, _VOICE_BYTES, _VOICE_S = 28, 12, 160, 0.02
_MOST_FLOWS, _MOST_GROUPS, _MOST_LINKS = 2000, 64, 16
_MOST_TRANSFERS = 31_000  # each has a port of its own, below those which the kernel gives away
_LEAST_MTU = 1500
ROOM = "100000p"  # for what is never full

# Disciplines that do not use the rate of the link, so that it does not matter when they learn of a change.
_DEAF = ("droptail", "codel", "modified-codel", "fq-codel")
# Parts of a scenario that the wire has nothing for.
_PARTS = {
    "handovers": "hosts on the wire stay where they are: there are no [[handovers]]",
}
_PROFILE = "a profile of another simulator; the wire has the kernel's TCP"
_OF_HOSTS = "linux"  # begins the names of profiles that the kernel has
_ADVICE = dict.fromkeys(("scone", "reverse_scone"), "the emulator gives no advice; penstock-gateway does")
_WEIGHT = "the emulator does not know weights of flows"
_CODEPOINTS = 64
_MEANS = {"mean_good", "mean_bad"}  # of the states of a channel
_SHORTEST_S = 1e-3  # that the emulator follows
_CHANGES_WITH_TIME = {*_MEANS, "period"}  # keys of channels that do


@dataclass(frozen=True)
class Change:
    """New values of the link at a time of the run, as the emulator takes them."""

    at_s: float
    values: Mapping[str, Any]
    link: int = 0


@dataclass(frozen=True)
class Plan:
    """All that a run on the wire needs."""

    scenario: Scenario
    resolved: str
    seed: int
    duration_s: float
    empty: dict[str, Any]  # the summary of the simulator before anything has happened
    links: tuple[Link, ...]
    mtu: int
    flows: tuple[Flow, ...]
    sysctls: Mapping[str, str]
    changes: tuple[Change, ...] = ()
    link_changes: Any = None  # the table of the simulator
    groups: tuple[tuple[str, float], ...] = ()  # routers, and the delay before them of some of their hosts
    cooperation: Cooperation | None = None
    keeps_capture: bool = False  # a capture of the packets is wanted, with headers
    keeps_datagrams: bool = False  # a table of all datagrams is wanted
    kernel_queues: tuple[tuple[KernelQueue, KernelQueue], ...] = ()  # of each link in both directions; none on the wire

    @property
    def announces(self) -> bool:
        """True if hosts announce their rates."""
        return any(flow.tcp.announces for flow in self.flows if flow.tcp)

    @property
    def numbers_flows(self) -> bool:
        """True if a queue knows flows by their numbers in the scenario: by stations, by classes or by its index."""
        disciplines = [aqm for link in self.links for aqm in link.aqm]
        by_index = any(one.get("classify") == "index" or one["name"] == "lte-bearers" for one in disciplines)
        has_stations = any("stations" in link.table for link in self.links)
        return by_index or has_stations or any(flow.class_ is not None for flow in self.flows)

    @property
    def keeps_series(self) -> bool:
        """True if the tables by seconds are wanted."""
        return bool(tomllib.loads(self.resolved)["output"]["series"])

    @property
    def captured(self) -> list[str]:
        """The names of the queues that a capture has; empty for all."""
        return list(tomllib.loads(self.resolved)["output"].get("pcapng", []))

    @property
    def queues(self) -> list[Step]:
        """The queues of the summary, in its order."""
        found = [(link.queues[way], (at, bool(way))) for at, link in enumerate(self.links) for way in (0, 1)]
        return [step for _, step in sorted((number, step) for number, step in found if number is not None)]


class _Reading:
    """A scenario with its text, in which refusals find their place."""

    def __init__(self, scenario: Scenario, seed: int | None, world: str, controls: Sequence[str]) -> None:
        self.scenario, self.world, self.controls = scenario, world, controls
        self.has_tc = world in kernel_queues.WORLDS
        before = engine.before(scenario, seed)
        self.resolved, self.seed, self.empty = before.resolved, before.seed, before.summary
        self.paths, self.transfers = before.paths, before.transfers
        self.tree: dict[str, Any] = tomllib.loads(self.resolved)
        self.written: dict[str, Any] = tomllib.loads(scenario.text)
        self.is_dumbbell = self.tree["topology"]["kind"] == "dumbbell"
        self.places = network.places(self.tree, self.written)

    @cached_property
    def cannot_announce(self) -> str:
        """Why hosts cannot announce their rates; empty if they can."""
        return announcing.lacks(self.world)

    def refuse(self, path: Path, message: str) -> Exception:
        return refuse(self.scenario.text, self.scenario.file, path, message, self.world)


def read(
    scenario: Scenario,
    seed: int | None = None,
    world: str = "wire",
    controls: Sequence[str] | None = None,
    disciplines: Sequence[str] | None = None,
) -> Plan:
    """Plans a run; raises `ScenarioError` with line and column at the first key that the wire cannot do.

    `controls` are those of the kernel, by default of that of this machine, and `disciplines` the kinds of `tc` that it
    has, if that is known. `world` is the name of one that has a kernel.
    """
    reading = _Reading(scenario, seed, world, tcp.controls() if controls is None else controls)
    _check_parts(reading)
    specs = list(_specs(reading))
    if len(specs) > _MOST_FLOWS:
        raise reading.refuse(("flows",), f"{len(specs)} flows; the wire has addresses for {_MOST_FLOWS}")
    ways = [_access_s(reading.tree["topology"], spec) for _, spec in specs]
    # In a dumbbell the bottleneck has the delay that all flows have anyway, so that most need no emulator of their own.
    shared = min(ways, default=0.0) if reading.is_dumbbell else 0.0
    links = network.links(reading.tree, reading.empty, shared)
    flows = tuple(
        _flow(reading, id_, index, spec, way - shared)
        for id_, ((index, spec), way) in enumerate(zip(specs, ways, strict=True))
    )
    groups = tuple(sorted({(flow.ends[0], flow.extra_s) for flow in flows if flow.extra_s > 0}))
    if len(groups) > _MOST_GROUPS:
        raise reading.refuse(
            ("flows",), f"{len(groups)} places of hosts behind long access links; the wire has up to {_MOST_GROUPS}"
        )
    table, changes = _changes(reading, links, shared)
    return Plan(
        scenario=scenario,
        resolved=reading.resolved,
        seed=reading.seed,
        duration_s=number(reading.tree["duration"]),
        empty=reading.empty,
        links=links,
        mtu=max([_LEAST_MTU, *(flow.sends["packet"] for flow in flows)]),
        flows=flows,
        sysctls=tcp.sysctls([(flow.tcp, reading.refuse) for flow in flows if flow.tcp]),
        changes=changes,
        link_changes=table,
        groups=groups,
        cooperation=cooperation.read(reading, flows, links),
        kernel_queues=_kernel_queues(reading, links, disciplines) if reading.has_tc else (),
    )


def _kernel_queues(
    reading: _Reading, links: Sequence[Link], has: Sequence[str] | None
) -> tuple[tuple[KernelQueue, KernelQueue], ...]:
    def queue(link: Link, place: network.Place, way: int) -> KernelQueue:
        path, key = ((place.aqm, "limit"), (place.reverse_aqm, "reverse_limit"))[way]
        at = kernel_queues.Place(path, (*place.link, key), _at(reading.written, path))
        rate = link.rates_bps[way]
        in_real_time = reading.world == kernel_queues.WORLDS[0]
        return kernel_queues.queue(link.aqm[way], link.table[key], rate, at, has, reading.refuse, in_real_time)

    return tuple((queue(link, at, 0), queue(link, at, 1)) for link, at in zip(links, reading.places, strict=True))


def _check_parts(reading: _Reading) -> None:
    written, tree = reading.written, reading.tree
    for part, message in _PARTS.items():
        if part in written:
            raise reading.refuse((part,), message)
    _check_profiles(reading)
    if len(reading.places) > _MOST_LINKS:
        raise reading.refuse(
            reading.places[_MOST_LINKS].link, f"{len(reading.places)} links; the wire has up to {_MOST_LINKS} emulators"
        )
    topology = tree["topology"]
    for place, spec in zip(reading.places, topology.get("links", [topology]), strict=True):
        tables = [station for station in spec.get("stations", []) if isinstance(station, Mapping)]
        if any(number(table[key]) < _SHORTEST_S for table in tables for key in _MEANS & table.keys()):
            raise reading.refuse((*place.link, "stations"), "in real time a state of a channel lasts 1 ms or more")
        for key, message in _ADVICE.items():
            if key in spec:
                raise reading.refuse((*place.link, key), message)
        for key in _at(reading.written, place.link):
            if key not in network.KEYS | _ADVICE.keys():
                raise reading.refuse((*place.link, key), f"the emulator has no `{key}`")
        forward = tree if reading.is_dumbbell else spec
        _check_discipline(reading, place.aqm, forward.get("aqm", network.DROPTAIL))
        _check_discipline(reading, place.reverse_aqm, spec.get("reverse_aqm", network.DROPTAIL))
    _check_access(reading)


def _check_profiles(reading: _Reading) -> None:
    written = reading.written
    flows: list[Path] = [("flows", index, "tcp") for index in range(len(written.get("flows", [])))]
    for path in [(), ("tcp",), *flows]:
        if not str(_at(written, path).get("profile", _OF_HOSTS)).startswith(_OF_HOSTS):
            raise reading.refuse((*path, "profile"), _PROFILE)


def _check_access(reading: _Reading) -> None:
    topology = reading.tree["topology"]
    rates = [
        (number(spec["rate"]), number(spec.get("reverse_rate", spec["rate"])))
        for spec in topology.get("links", [topology])
    ]
    if any(number(topology["access_rate"]) < min(rates[link][way] for link, way in path) for path in reading.paths):
        raise reading.refuse(
            ("topology", "access_rate"), "hosts send as fast as they can: access links slower than the bottleneck"
        )


def _check_discipline(reading: _Reading, path: Path, discipline: Mapping[str, Any]) -> None:
    name = str(discipline.get("name", ""))
    if reading.has_tc:
        return  # `kernel_queues` knows what the kernel has
    if ".py:" in name:
        stem = PurePosixPath(name.partition(".py:")[0]).name.replace("_", "-")
        raise reading.refuse(
            (*path, "name"),
            "classes in Python do not run in the emulator: it has the built-in names. `penstock new aqm "
            f"{stem} --rust` writes a crate for yours, and in its folder `cargo run --release --features emulate --bin "
            f"{stem}-emulate -- --help` puts it before real packets (`penstock docs python-to-rust`)",
        )
    if name not in {entry.name for entry in engine.entries()}:
        raise reading.refuse((*path, "name"), "the emulator has only the built-in names, which `penstock list` shows")


def _at(tree: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Returns the table at a path; an empty one if there is none, or a name alone."""
    found: Any = tree
    for part in path:
        if isinstance(found, Mapping):
            found = found.get(part, {})
        else:
            found = found[part] if isinstance(found, list) and isinstance(part, int) else {}
    return found if isinstance(found, Mapping) else {}


def _specs(reading: _Reading) -> Any:
    for index, spec in enumerate(reading.tree.get("flows", [])):
        for _ in range(spec["count"]):
            yield index, spec


def _access_s(topology: Mapping[str, Any], spec: Mapping[str, Any]) -> float:
    """Returns the delay of both access links of a flow, one way."""
    usual = topology["access_delay"]
    return number(spec.get("access_delay", usual)) + number(usual)


def _flow(reading: _Reading, id_: int, index: int, spec: Mapping[str, Any], extra_s: float) -> Flow:
    at: Path = ("flows", index)
    written = reading.written["flows"][index]
    if "weight" in written:
        raise reading.refuse((*at, "weight"), _WEIGHT)
    class_ = _class(reading, at, written)
    kind = spec["kind"]
    if kind not in KINDS:
        raise reading.refuse((*at, "kind"), f"hosts on the wire have traffic of kind {', '.join(KINDS)}, and no {kind}")
    if kind == "stack" and reading.world not in _REAL_TIME:
        raise reading.refuse((*at, "kind"), f"a stack is hosted in real time: --on {' and '.join(_REAL_TIME)}")
    forward = spec.get("direction", "forward") == "forward"
    if not forward and "node" in written:
        raise reading.refuse((*at, "node"), "a node on the wire is the host on the left, which sends forward")
    settings = tcp.settings(spec, written, reading.written.get("tcp", {}), at, reading.refuse, reading.controls)
    if settings and settings.announces and reading.cannot_announce:
        raise reading.refuse(tcp.place_of("ern", written.get("tcp", {}), at), reading.cannot_announce)
    stop = number(spec["stop"]) if "stop" in spec else None
    sends = tcp.sends(spec, settings) if settings else _datagrams(spec, reading.seed * 1000 + id_)
    if kind in SESSIONS:
        sends = {**sends, **_transfers(reading, id_, index, spec)}
    start = float(reading.empty["flows"][id_]["start_s"])
    ends = (network.LEFT, network.RIGHT) if reading.is_dumbbell else (spec["from"], spec["to"])
    path = tuple(reading.paths[id_])
    if "node" in written and not reading.is_dumbbell and any(reverse for _, reverse in path):
        raise reading.refuse((*at, "node"), "a node on the wire is a host on the left of all links that it crosses")
    where = (round(extra_s, 9), written.get("node"), sends, ends, path)
    return Flow(id_, kind, forward, start, stop, *where, settings, class_)


def _class(reading: _Reading, at: Path, written: Mapping[str, Any]) -> int | None:
    """Returns the class of a flow; the kernel's disciplines read it in packets, as their codepoint."""
    found = int(written["class"]) if "class" in written else None
    if reading.has_tc and found is not None and found >= _CODEPOINTS:
        raise reading.refuse((*at, "class"), f"the kernel reads codepoints: a class is 0 to {_CODEPOINTS - 1}")
    return found


def _transfers(reading: _Reading, id_: int, index: int, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a session is told: the waits and sizes that the simulator draws with the same seed."""
    drawn = reading.transfers[id_]
    waits = spec["kind"] == "http"
    if len(drawn) > _MOST_TRANSFERS and not waits:
        raise reading.refuse(
            ("flows", index, "kind"), f"{len(drawn)} transfers; a flow on the wire has up to {_MOST_TRANSFERS}"
        )
    same = spec.get("connection") == "same"
    return {"over": "sessions", "transfers": drawn[:_MOST_TRANSFERS], "waits": waits, "same": same}


def _datagrams(spec: Mapping[str, Any], seed: int) -> dict[str, Any]:
    if spec["kind"] == "voip":
        payload = _VOICE_BYTES + _RTP_HEADER
        told = {"sizes": [payload], "weights": [1], "rate_bps": (payload + _IP_AND_UDP) * 8 / _VOICE_S}
        return {"over": "udp", **told, "headers": _IP_AND_UDP, **_spurts(spec)} | {
            "seed": seed,
            "packet": payload + _IP_AND_UDP,
            "keeps_delays": True,
        }
    if spec["kind"] == "video":
        return _video(spec, seed)
    if spec["kind"] == "stack":
        size = int(number(spec["size"])) if "size" in spec else None
        return {"over": "stack", "stack": spec["stack"], "size": size, "seed": seed, "packet": _LEAST_MTU}
    given = spec["packet_size"]
    sizes = [int(number(size)) for size in (given if isinstance(given, list) else [given])]
    return {
        "over": "udp",
        "sizes": sizes,
        "weights": spec.get("packet_weights", [1] * len(sizes)),
        "rate_bps": number(spec["rate"]),
        "headers": _IP_AND_UDP,
        **_spurts(spec),
        "seed": seed,
        "packet": max(sizes) + _IP_AND_UDP,
        "keeps_delays": False,
    }


def _spurts(spec: Mapping[str, Any]) -> dict[str, float | None]:
    """Returns the mean times for which a source sends and is silent, in seconds; `None` for one that always sends."""
    return {f"{key}_s": number(spec[key]) if key in spec else None for key in ("mean_on", "mean_off")}


def _video(spec: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Returns what a source of frames is told. Its packets carry what RTP would, in a header of 12 bytes."""
    [size] = [spec["packet_size"]] if not isinstance(spec["packet_size"], list) else spec["packet_size"]
    payload = int(number(size))
    mean = number(spec["rate"]) / 8 / spec["fps"]
    other = mean * spec["gop"] / (spec["i_frame_ratio"] + spec["gop"] - 1)
    return {
        "over": "video",
        "fps": spec["fps"],
        "gop": spec["gop"],
        "sizes": [other * spec["i_frame_ratio"], other],  # of the first frame of a group, and of the others
        "spread": spec["spread"],
        "body": payload - _RTP_HEADER,
        "deadline_s": number(spec["deadline"]),
        "seed": seed,
        "packet": payload + _IP_AND_UDP,
        "keeps_delays": True,
    }


def _changes(reading: _Reading, links: Sequence[Link], shared_s: float) -> tuple[Any, tuple[Change, ...]]:
    """Returns the table of changes which the simulator plays, and what the emulators are told of them."""
    changes = reading.tree.get("changes", [])
    for index, change in enumerate(changes):
        at: Path = ("changes", index)
        link = next(link for link in links if link.name == change["link"])
        deaf = reading.has_tc or all(aqm["name"] in _DEAF for aqm in link.aqm)
        if not change.get("told", True) and not deaf:
            raise reading.refuse((*at, "told"), "the emulator tells its discipline of each change")
        if number(change.get("tell_after", "0ms")) > 0 and not deaf:
            raise reading.refuse((*at, "tell_after"), "the emulator tells its discipline of a change at once")
    begun = _begun(links)
    if not changes:
        return None, tuple(begun)
    table = engine.link_changes(reading.scenario, reading.seed)
    rows = sorted(table.to_pylist() if table else [], key=lambda row: float(row["t_s"]))
    told = [*begun, *_told(reading, rows, shared_s), *_new_losses(changes, links, number(reading.tree["duration"]))]
    return table, tuple(sorted(told, key=lambda change: change.at_s))


def _begun(links: Sequence[Link]) -> list[Change]:
    """Returns the channels of stations which change with time, to let them begin with the run."""
    found = [(at, link.table.get("stations", [])) for at, link in enumerate(links)]
    return [
        Change(0.0, {"stations": stations}, at)
        for at, stations in found
        if any(isinstance(station, Mapping) and not _CHANGES_WITH_TIME.isdisjoint(station) for station in stations)
    ]


def _new_losses(changes: Sequence[Mapping[str, Any]], links: Sequence[Link], duration_s: float) -> Iterator[Change]:
    """Returns the steps which give stations other losses."""
    for change in changes:
        if "stations" in change:
            link = next(at for at, link in enumerate(links) if link.name == change["link"])
            at_s = number(change["at"])
            every_s = number(change["every"]) if "every" in change else math.inf
            times = max(math.ceil((duration_s - at_s) / every_s), 1) if at_s < duration_s else 0
            yield from (
                Change(at_s + n * every_s if n else at_s, {"stations": change["stations"]}, link) for n in range(times)
            )


def _told(reading: _Reading, rows: Sequence[Mapping[str, Any]], shared_s: float) -> list[Change]:
    found: list[Change] = []
    before: dict[tuple[int, int], Mapping[str, Any]] = {}
    for row in rows:
        way = int(row["link"]), int(row["reverse"])
        prefix = "reverse_" if row["reverse"] else ""
        last = before.get(way, {})
        before[way] = row
        values: dict[str, Any] = {}
        if row["rate_bps"] != last.get("rate_bps"):
            if not row["rate_bps"]:
                raise reading.refuse(
                    ("changes",), f"the rate is zero at {row['t_s']:g} s; the emulator's is at least 1 bit/s"
                )
            values[f"{prefix}rate"] = f"{row['rate_bps']:.0f}bit/s"
        if row["delay_s"] != last.get("delay_s"):
            values[f"{prefix}delay"] = f"{(row['delay_s'] + shared_s) * 1e9:.0f}ns"
        if row["loss"] != last.get("loss"):
            values[f"{prefix}loss"] = float(row["loss"])
        if values:
            found.append(Change(float(row["t_s"]), values, way[0]))
    return found


def config(plan: Plan, link: int) -> dict[str, Any]:
    """Returns the settings of the emulator for a link, without its ends."""
    wanted = plan.links[link]
    forward, reverse = wanted.aqm
    head = {"mtu": plan.mtu, "seed": plan.seed + link}
    if plan.kernel_queues:  # they decide; what they let go waits for the wire, and none of it is dropped
        table = {**wanted.table, "limit": ROOM, "reverse_limit": ROOM}
        return {**head, "link": table}
    return {**head, "link": wanted.table, "aqm": forward, "reverse_aqm": reverse}


def told(plan: Plan) -> dict[str, Any]:
    """Returns what `--check` prints of a plan."""
    names = {flow.tcp.control for flow in plan.flows if flow.tcp}
    return {
        "link": json.loads(json.dumps(plan.links[0].table)),
        "aqm": plan.links[0].aqm[0]["name"],
        "mtu": plan.mtu,
        "round_trips": len({(flow.from_left, flow.extra_s) for flow in plan.flows}),
        "flows": len(plan.flows),
        "controls": sorted(names),
        "changes": len(plan.changes),
        "duration_s": plan.duration_s,
        "links": {link.name: link.aqm[0]["name"] for link in plan.links},
        **(
            {"tc": [[queue.commands[0] for queue in ways] for ways in plan.kernel_queues]} if plan.kernel_queues else {}
        ),
        **({"agents": len(plan.cooperation.nodes)} if plan.cooperation else {}),
    }
