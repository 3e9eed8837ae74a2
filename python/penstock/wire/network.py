"""The network of a scenario as emulators see it: routers, the links between them, and where hosts are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.units import number
from penstock.wire.position import Path

LEFT, RIGHT = "left", "right"  # the routers of a dumbbell
_KEPT = ("rate", "limit", "reverse_limit")
_REVERSE = ("reverse_rate", "reverse_delay")  # of links that have them
# What links add to packets.
LAYER = frozenset(way + key for way in ("", "reverse_") for key in ("link_layer", "overhead", "mpu", "framing"))
# What links do to packets besides queueing, transmitting, delaying and losing them.
IMPAIRMENTS = frozenset(
    way + key
    for way in ("", "reverse_")
    for key in ("police", "aggregate", "reorder", "jitter", "duplicate", "gilbert")
)
# The keys of links, and of the topology, which the wire has. Others are refused: each new one, until it is here.
KEYS = frozenset(
    {"kind", "hops", "links", "access_rate", "access_delay", "name", "a", "b", "bottleneck", "aqm", "reverse_aqm"}
    | {*_KEPT, *_REVERSE, *LAYER, *IMPAIRMENTS, "delay", "loss", "stations"}
)
DROPTAIL = {"name": "droptail"}

# One direction of a link on the path of a flow: the link's index, and whether its second end comes first.
Step = tuple[int, bool]


@dataclass(frozen=True)
class Link:
    """A link between two routers, with a queue at each end."""

    name: str
    ends: tuple[str, str]
    table: Mapping[str, Any]  # the table [link] of the emulator
    aqm: tuple[Mapping[str, Any], Mapping[str, Any]]
    queues: tuple[int | None, int | None]  # numbers of both queues in the summary; None for one that is not in it

    @property
    def rates_bps(self) -> tuple[float, float]:
        """The rates of both directions at the start, forward first."""
        return number(self.table["rate"]), number(self.table.get("reverse_rate", self.table["rate"]))

    @property
    def delays_s(self) -> tuple[float, float]:
        """The delays of both directions at the start, forward first."""
        return number(self.table["delay"]), number(self.table.get("reverse_delay", self.table["delay"]))


@dataclass(frozen=True)
class Place:
    """Where a link stands in a scenario: its table, and those of its disciplines."""

    link: Path
    aqm: Path
    reverse_aqm: Path


def places(tree: Mapping[str, Any], written: Mapping[str, Any]) -> list[Place]:
    """Returns where each link stands in the text."""
    if tree["topology"]["kind"] == "dumbbell":
        return [Place(("topology",), ("aqm",), ("topology", "reverse_aqm"))]
    key = "hops" if "hops" in written["topology"] else "links"
    at: list[Path] = [("topology", key, index) for index in range(len(tree["topology"]["links"]))]
    return [Place(path, (*path, "aqm"), (*path, "reverse_aqm")) for path in at]


def links(tree: Mapping[str, Any], empty: Mapping[str, Any], shared_s: float) -> tuple[Link, ...]:
    """Returns the links. Each has the delay that all flows have on their access links, `shared_s`, besides its own."""
    topology = tree["topology"]
    numbers = {one["name"]: index for index, one in enumerate(empty["bottlenecks"])}
    if topology["kind"] == "dumbbell":
        specs = [{**topology, "a": LEFT, "b": RIGHT, "name": "bottleneck", "aqm": tree.get("aqm", DROPTAIL)}]
    else:
        specs = topology["links"]
    return tuple(_link(spec, numbers, shared_s) for spec in specs)


def _link(spec: Mapping[str, Any], numbers: Mapping[str, int], shared_s: float) -> Link:
    name = spec["name"]

    def delayed(key: str) -> str:
        return f"{(number(spec[key]) + shared_s) * 1e9:.0f}ns"

    table = {**{key: spec[key] for key in _KEPT}, "delay": delayed("delay"), "loss": float(spec.get("loss", 0.0))}
    table |= {"reverse_rate": spec["reverse_rate"]} if "reverse_rate" in spec else {}
    table |= {"reverse_delay": delayed("reverse_delay")} if "reverse_delay" in spec else {}
    table |= {key: spec[key] for key in sorted((LAYER | IMPAIRMENTS) & spec.keys())}
    table |= {"stations": spec["stations"]} if spec.get("stations") else {}
    aqm = (spec.get("aqm", DROPTAIL), spec.get("reverse_aqm", DROPTAIL))
    return Link(name, (spec["a"], spec["b"]), table, aqm, (numbers.get(name), numbers.get(f"{name}-reverse")))


def routers(of: Sequence[Link]) -> list[str]:
    """Lists the routers, each once, in the order of the links."""
    return list(dict.fromkeys(end for link in of for end in link.ends))


def back(path: Sequence[Step]) -> tuple[Step, ...]:
    """Returns a path in the opposite direction."""
    return tuple((link, not reverse) for link, reverse in reversed(path))
