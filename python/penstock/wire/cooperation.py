"""`[cooperation]` on the wire: which hosts have an agent, and what gateway and agents are told. `daemons` runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from penstock.scenario import to_toml
from penstock.units import number
from penstock.wire.position import Path

if TYPE_CHECKING:
    from penstock.wire.flow import Flow
    from penstock.wire.network import Link, Place

AT: Path = ("cooperation",)
ADDRESS = "10.79.0.1"  # of the gateway, on the loopback interface of its router
PORT = 7443
_MOST_NODES = 64
_LONGEST_LEASE_S, _LONGEST_ADVERTISE_S = 60.0, 5.0  # docs/hosts.md
# An agent starts as a process, and has a budget after a cookie and a handshake of QUIC, an invitation and a ticket.
_START_S, _TRIPS = 0.3, 4
_USABLE_EVERY = "1s"  # how often an agent asks for the rate of a link that changes; the shortest that it takes
# A node of the simulator without a ticket: the last class, and weight 1.
_CLASS, _WEIGHT = 3, 1
_BY_BUDGETS = ("qrm",)  # disciplines that wait for budgets, of which the gateway on the wire tells them nothing


class Reading(Protocol):
    """A scenario with its text, in which refusals find their place."""

    @property
    def world(self) -> str:
        """The name of the world."""

    @property
    def tree(self) -> dict[str, Any]:
        """The scenario with all its defaults."""

    @property
    def places(self) -> list[Place]:
        """Where links stand in the text."""

    def refuse(self, path: Path, message: str) -> Exception:
        """Returns the error for a key that the wire cannot do."""


@dataclass(frozen=True)
class Node:
    """A host with an agent: flows of one `node`, or one flow."""

    name: str  # of its cgroup, its files and its agent
    flows: tuple[int, ...]
    is_limited: bool  # false if its TCP ignores the budget (`c2ml = "off"`)
    usable: int | None = None  # the link whose rate is the most that it can use
    way_s: float = 0.0  # the delay to the gateway, one way
    share: tuple[str, ...] = ()  # options of the token that it enrols with
    announces: bool = False  # the rates of its connections

    @property
    def lead_s(self) -> float:
        """How long before its first flow its agent starts."""
        return _START_S + _TRIPS * 2 * self.way_s


@dataclass(frozen=True)
class Cooperation:
    """A gateway at the sending end of a link, and its nodes."""

    link: int
    router: str
    table: Mapping[str, Any]  # the table [c2ml] of the gateway, without its directory
    nodes: tuple[Node, ...]
    changing: frozenset[int]  # links whose rates change

    def node_of(self, flow: int) -> Node | None:
        """Returns the node of a flow; `None` for a flow that does not cross the gateway's link."""
        return next((node for node in self.nodes if flow in node.flows), None)


def read(reading: Reading, flows: Sequence[Flow], links: Sequence[Link]) -> Cooperation | None:
    """Reads `[cooperation]`; `None` without it. What the daemons cannot do is refused at its key."""
    told = reading.tree.get("cooperation")
    if told is None:
        return None
    if reading.world.startswith("jar"):
        raise reading.refuse(AT, "there is no gateway of [cooperation] in the jar: its kernel has no BPF")
    _check(reading, told)
    link = next(index for index, link in enumerate(links) if link.name == told["link"])
    _check_discipline(reading, links[link], link)
    nodes = _nodes(reading, flows, links, link)
    keys = [key for key in ("sharing", "lease", "advertise", "floors") if key in told]
    table = {"listen": f"{ADDRESS}:{PORT}", **{key: told[key] for key in keys}}
    changing = {one["link"] for one in reading.tree.get("changes", [])}
    numbers = frozenset(index for index, one in enumerate(links) if one.name in changing)
    return Cooperation(link, links[link].ends[0], table, nodes, numbers)


def _check(reading: Reading, told: Mapping[str, Any]) -> None:
    if told["literal"]:
        raise reading.refuse((*AT, "literal"), "the gateway has no literal form of its policies: literal = false")
    if "silent_from" in told:
        raise reading.refuse((*AT, "silent_from"), "the gateway on the wire serves until the end")
    for key, most in (("lease", _LONGEST_LEASE_S), ("advertise", _LONGEST_ADVERTISE_S)):
        if number(told[key]) > most:
            raise reading.refuse((*AT, key), f"{told[key]} is longer than real hosts believe: at most {most:g} s")
    for node in told.get("nodes", []):
        if "lie" in node:
            raise reading.refuse((*AT, "nodes"), f"agents do not lie: node {node['name']!r} has lie = {node['lie']!r}")


def _check_discipline(reading: Reading, link: Link, index: int) -> None:
    name = str(link.aqm[0]["name"])
    if name in _BY_BUDGETS:
        path = reading.places[index].aqm
        raise reading.refuse(
            (*path, "name"), f"the gateway on the wire tells no discipline of budgets, as {name} needs"
        )


def _nodes(reading: Reading, flows: Sequence[Flow], links: Sequence[Link], link: int) -> tuple[Node, ...]:
    hosts: dict[str, list[Flow]] = {}
    for flow in flows:
        if (link, False) in flow.path:
            hosts.setdefault(f"node {flow.node}" if flow.node is not None else f"flow {flow.id}", []).append(flow)
    if len(hosts) > _MOST_NODES:
        raise reading.refuse(("flows",), f"{len(hosts)} nodes with an agent; the wire has up to {_MOST_NODES}")
    special = {one["name"]: one for one in reading.tree["cooperation"].get("nodes", [])}
    return tuple(
        _node(reading, index, members, links, link, special.get(members[0].node, {}))
        for index, members in enumerate(hosts.values())
    )


def _node(
    reading: Reading, index: int, flows: Sequence[Flow], links: Sequence[Link], link: int, special: Mapping[str, Any]
) -> Node:
    if any(not flow.forward for flow in flows):
        raise reading.refuse(("flows",), "a node on the wire is the host on the left, which sends forward")
    if len({(flow.ends[0], flow.extra_s) for flow in flows}) > 1:
        raise reading.refuse(("flows",), f"the flows of node {flows[0].node!r} begin at different places")
    limited = {flow.tcp.is_limited for flow in flows if flow.tcp}
    if len(limited) > 1:
        raise reading.refuse(
            ("flows",), f"an agent holds all TCP of its host to the budget: node {flows[0].node!r} has one c2ml"
        )
    announcing = {flow.tcp.announces for flow in flows if flow.tcp}
    if len(announcing) > 1:
        raise reading.refuse(
            ("flows",), f"all TCP of a host with an agent announces, or none: node {flows[0].node!r} has one ern"
        )
    usable = [number for number, link in enumerate(links) if link.name == special.get("csi")]
    before = flows[0].path[: flows[0].path.index((link, False))]
    way_s = flows[0].extra_s + sum(number(links[crossed].table["delay"]) for crossed, _ in before)
    ids = tuple(flow.id for flow in flows)
    return Node(
        f"n{index}",
        ids,
        True in limited,
        usable[0] if usable else None,
        round(way_s, 9),
        _share(special),
        True in announcing,
    )


def _share(special: Mapping[str, Any]) -> tuple[str, ...]:
    options = ("--class", str(special.get("class", _CLASS)), "--weight", str(special.get("weight", _WEIGHT)))
    return (*options, "--floor", str(special["floor"])) if "floor" in special else options


def gateway_file(wanted: Cooperation, name: str, directory: str, rate_bps: float) -> str:
    """Returns the file of the gateway: budgets only, for an upload with the rate of the link."""
    rate = f"{rate_bps:.0f}bit/s"
    return to_toml({"name": name, "link": {"rate": rate}, "c2ml": {**wanted.table, "directory": directory}})


def agent_file(node: Node, name: str, directory: str, cgroup: str, usable: Mapping[str, Any]) -> str:
    """Returns the file of a node's agent."""
    how = {"cgroup": cgroup, "apply": "kernel" if node.is_limited else "nothing", **usable}
    return to_toml({"name": name, "gateways": [f"{ADDRESS}:{PORT}"], "directory": directory, **how})


def usable_keys(wanted: Cooperation, node: Node, links: Sequence[Link], file: str) -> dict[str, Any]:
    """Returns the keys by which an agent knows what its node can use; `file` has the rate if that changes."""
    if node.usable is None:
        return {}
    if node.usable in wanted.changing:
        return {"usable_command": ["cat", file], "usable_every": _USABLE_EVERY}
    return {"usable": f"{links[node.usable].rates_bps[0]:.0f}bit/s"}
