"""Addresses of hosts and routes to them, as commands of `ip`. The paths are those of the simulator."""

from __future__ import annotations

from typing import Any

from penstock.wire import cooperation, network, tcp
from penstock.wire.flow import Flow
from penstock.wire.plan import Plan

_RIGHT, _LEFT = 200, 80  # second numbers of addresses: hosts on the right; those on the left, one block for each group
_BLOCK = 250


def spaces(plan: Plan) -> dict[str, str]:
    """Returns the namespaces of routers, by the names of routers."""
    own = (network.LEFT, network.RIGHT)
    return {name: name if name in own else f"router{at}" for at, name in enumerate(network.routers(plan.links))}


def far(group: int) -> str:
    """Returns the namespace of the hosts of a group which is behind an emulator of its own."""
    return f"far{group}"


def queue(link: int, way: int) -> str:
    """Returns the namespace of a queue of the kernel before a link, forward (0) or reverse (1)."""
    return f"queue{link}{'fr'[way]}"


def number_of_way(plan: Plan, group: int) -> int:
    """Returns the number of the emulator of a group; those of links come first."""
    return len(plan.links) + group - 1


def interfaces(number: int) -> tuple[str, str]:
    """Returns the names of both ends of an emulator."""
    return f"wire{number}l", f"wire{number}r"


def group(plan: Plan, flow: Flow) -> int:
    """Returns the number of the group of a flow's host on the left; 0 if the host is at its router."""
    return plan.groups.index((flow.ends[0], flow.extra_s)) + 1 if flow.extra_s else 0


def hosts(plan: Plan, flow: Flow) -> tuple[str, str]:
    """Returns the namespaces of the hosts of a flow, on the left and on the right."""
    named = spaces(plan)
    number = group(plan, flow)
    return (far(number) if number else named[flow.ends[0]]), named[flow.ends[1]]


def addresses(plan: Plan, flow: Flow) -> tuple[str, str]:
    """Returns the addresses of a flow on the left and on the right. Flows of a node share that on the left."""
    same = [one for one in plan.flows if flow.node is not None and one.node == flow.node]
    where = (flow.ends[0], flow.extra_s)
    host = min((one.id for one in same if (one.ends[0], one.extra_s) == where), default=flow.id)
    left = f"10.{_LEFT + group(plan, flow)}.{host // _BLOCK}.{host % _BLOCK + 1}"
    return left, f"10.{_RIGHT}.{flow.id // _BLOCK}.{flow.id % _BLOCK + 1}"


def numbered(plan: Plan) -> list[dict[str, Any]]:
    """Returns the hosts on the right with their classes, as emulators number flows: each flow has one of its own."""
    written = ({} if flow.class_ is None else {"class": flow.class_} for flow in plan.flows)
    return [{"address": addresses(plan, flow)[1], **class_} for flow, class_ in zip(plan.flows, written, strict=True)]


def commands(plan: Plan) -> dict[str, list[str]]:
    """Returns the lines of `ip -batch` for each namespace: addresses of hosts, and the routes to them on all paths."""
    names = [*spaces(plan).values(), *(far(number + 1) for number in range(len(plan.groups)))]
    lines: dict[str, list[str]] = {space: ["link set lo up"] for space in names}
    for flow in plan.flows:
        for space, line in _lines(plan, flow):
            lines[space].append(line)
    for space, line in (*_to_gateway(plan), *sorted(_without_offload(plan))):
        lines[space].append(line)
    return lines


def _without_offload(plan: Plan) -> set[tuple[str, str]]:
    """Lets hosts that announce send segment by segment: one that is cut repeats its rate in each part."""
    found = set()
    for flow in plan.flows:
        if flow.tcp and flow.tcp.announces:
            hops = _hops(plan, flow)
            space, out = hops[0][:2] if flow.forward else hops[-1][2:]
            found.add((space, f"link set dev {out} gso_max_segs 1"))
    return found


def _to_gateway(plan: Plan) -> list[tuple[str, str]]:
    """Returns the address of the gateway of budgets, and routes to it along the paths of its nodes' flows."""
    wanted = plan.cooperation
    if wanted is None:
        return []
    there = spaces(plan)[wanted.router]
    found = [(there, f"addr replace {cooperation.ADDRESS}/32 dev lo")]
    for node in wanted.nodes:
        flow = plan.flows[node.flows[0]]
        for place, (space, out, _, _) in enumerate(_hops(plan, flow)):
            if space == there:
                break
            own = f" src {addresses(plan, flow)[0]}" if place == 0 else ""
            found.append((space, f"route replace {cooperation.ADDRESS}/32 dev {out}{own}"))
    return found


def _lines(plan: Plan, flow: Flow) -> list[tuple[str, str]]:
    (left, right), (here, there) = addresses(plan, flow), hosts(plan, flow)
    hops = _hops(plan, flow)
    to_right = tcp.metrics(flow.tcp, flow.forward) if flow.tcp else []
    to_left = tcp.metrics(flow.tcp, not flow.forward) if flow.tcp else []
    found = [(here, f"addr replace {left}/32 dev lo"), (there, f"addr replace {right}/32 dev lo")]
    for place, (space, out, _, _) in enumerate(hops):
        own = ["src", left, *to_right] if place == 0 else []
        found.append((space, " ".join([f"route replace {right}/32 dev {out}", *own])))
    for place, (_, _, space, out) in enumerate(reversed(hops)):
        own = ["src", right, *to_left] if place == 0 else []
        found.append((space, " ".join([f"route replace {left}/32 dev {out}", *own])))
    return found


def _hops(plan: Plan, flow: Flow) -> list[tuple[str, str, str, str]]:
    """Returns for each emulator between both hosts, from the left: a namespace and interface, and those behind it."""
    named = spaces(plan)
    found = []
    if number := group(plan, flow):
        near, away = interfaces(number_of_way(plan, number))
        found.append((far(number), near, named[flow.ends[0]], away))
    for link, reverse in flow.from_left:
        ends = list(zip((named[end] for end in plan.links[link].ends), interfaces(link), strict=True))
        first, second = reversed(ends) if reverse else ends
        found.append((*first, *second))
    return found
