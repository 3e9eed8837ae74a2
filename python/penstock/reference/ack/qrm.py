"""QRM: document 002 (Grazia, Modena 2016), §3.1.3, Figures 3.4 and 3.5. No node sends more than its budget.

    accept a packet of node i   while   BYTE_OF(i) / MIN_RTT_OF(i) < BW_i (1 + tolerance)          Figure 3.5

`window` counts as the figure does: the bytes since a timer of one round trip began. Otherwise the account is a bucket
that drains at BW_i, because the timer lets a node send its share twice around a reset (docs/algorithms/qrm.md). Bytes
are counted as the time that they take at BW_i, in whole ns.

The source is silent about, and docs/algorithms/qrm.md states: the limit of SYNs ("trivial checks"), the round trip
time of a node that has not been measured, `slack`, even parts of the link without a gateway, or of the rate that a
gateway tells for nodes without a budget, who measures (one flow
of a node at a time: the newest that opened, but not before the last one is measured), and the largest LAN half that
counts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from penstock.reference.ack import SYN, Gateway, Segment
from penstock.reference.ack.rtt import Probe
from penstock.reference.link import NS_PER_S, Limit, Packet


@dataclass(frozen=True)
class Params:
    """The parameters of docs/algorithms/qrm.md, in bytes and ns."""

    tolerance: float = 0.05
    slack: int = 0
    window: bool = False
    rtt_ns: int = 100_000_000
    max_lan_ns: int = 500_000_000
    syn_rate: int = 100
    idle_ns: int = 10 * NS_PER_S


@dataclass
class Syns:
    """A second's SYNs may come at once."""

    due_ns: int = 0

    def passes(self, per_second: int, now_ns: int) -> bool:
        """Returns true if another SYN may pass."""
        due_ns = max(self.due_ns, now_ns) + NS_PER_S // per_second
        if due_ns - now_ns > NS_PER_S:
            return False
        self.due_ns = due_ns
        return True


@dataclass
class Node:
    """A node of the white list, or one that sends."""

    budget_bps: int | None = None
    probe: Probe = field(default_factory=Probe)
    measured: int | None = None  # the flow that the probe follows
    rtt_ns: int | None = None
    sends: bool = False  # lately; without a told budget
    sent_ns: int = 0
    syns: Syns = field(default_factory=Syns)
    since_ns: int = 0  # the bucket is empty at this time, or the timer began
    bytes: int = 0  # since the timer began


class Qrm(Gateway):
    """The queue, the nodes, and the owners of flows; without told owners each flow is a node."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int) -> None:
        super().__init__(limit)
        self.params, self.rate_bps = params, rate_bps
        self.owners: dict[int, int] | None = None
        self.nodes: defaultdict[int, Node] = defaultdict(Node)
        self.has_gateway = False
        self.rest_bps: int | None = None  # told, for nodes without a budget
        self.strangers = Syns()
        self.syn = False
        self.refused = {"over_budget": 0, "unlisted": 0, "syns": 0}

    def owner(self, flow: int) -> int | None:
        """Returns the node of a flow."""
        return flow if self.owners is None else self.owners.get(flow)

    def told(self, name: str, index: int, value: int, now_ns: int) -> None:
        """Receives a fact: owner or budget of a flow, what others share, who left, or whose number is used anew."""
        if name == "owner":
            self.owners = (self.owners or {}) | {index: value}
        elif name == "budget":
            self.has_gateway, node = True, self.nodes[index]
            if node.budget_bps is None:
                node.since_ns, node.bytes = now_ns, 0
            node.budget_bps = value or None
            node.sends &= node.budget_bps is None
        elif name == "rest":
            self.has_gateway, self.rest_bps = True, value
        elif name == "gone" or self.owners is None:
            self.nodes.pop(index, None)
        elif (owner := self.owners.pop(index, None)) is not None and self.nodes[owner].measured == index:
            self.nodes[owner].measured, self.nodes[owner].probe = None, Probe()

    def budget(self, node: Node) -> int | None:
        """Returns BW_i: what the gateway granted, or an even part of what nodes without a grant share."""
        shared_bps = self.shared_bps()
        if node.budget_bps is not None or shared_bps is None:
            return node.budget_bps
        return shared_bps // sum(one.sends for one in self.nodes.values())

    def shared_bps(self) -> int | None:
        """Returns what nodes without a grant share: the link, or what a gateway says."""
        return self.rest_bps if self.has_gateway else self.rate_bps

    def budget_of(self, flow: int) -> int | None:
        """The rate to which the node of a flow is held; of one that does not send yet, the part that it would have."""
        owner = self.owner(flow)
        node = self.nodes[owner] if owner is not None else Node()
        shared_bps = self.shared_bps()
        if node.budget_bps is not None or shared_bps is None:
            return node.budget_bps
        n = sum(one.sends for one in self.nodes.values())
        return shared_bps // (n if node.sends else n + 1)

    def inbound(self, segment: Segment) -> int:
        """TRACKRCV."""
        self.track(segment)
        return segment.window

    def outbound(self, segment: Segment) -> int:
        """TRACKSENT, also of what is refused afterwards."""
        self.syn = bool(segment.flags & SYN)
        self.track(segment)
        return segment.window

    def track(self, segment: Segment) -> None:
        """Measures the smallest round trip time of a node."""
        owner = self.owner(segment.flow)
        if owner is None:
            return
        node = self.nodes[owner]
        free = node.rtt_ns is None or node.probe.whole() is not None
        if segment.flags & SYN and segment.flow != node.measured and free:
            node.measured, node.probe = segment.flow, Probe()
        if segment.flow == node.measured:
            node.probe.show(segment)
            wan, lan = node.probe.wan.shortest, node.probe.lan.shortest
            if wan is not None and lan is not None:
                rtt_ns = wan + min(lan, self.params.max_lan_ns)
                node.rtt_ns = rtt_ns if node.rtt_ns is None else min(node.rtt_ns, rtt_ns)

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """DOOUTENQUEUE."""
        why = self.refuses(packet, now_ns)
        if why is None:
            return "pass"
        self.refused[why] += 1
        return "drop"

    def refuses(self, packet: Packet, now_ns: int) -> str | None:
        """Returns why a packet is refused; `None` if it passes."""
        owner = self.owner(packet.flow)
        shares = self.shared_bps() is not None
        allowed = owner is not None and (shares or self.nodes[owner].budget_bps is not None)
        if self.syn:
            known = owner is not None and (self.owners is not None or (self.has_gateway and allowed))
            syns = self.nodes[owner].syns if known and owner is not None else self.strangers
            return None if syns.passes(self.params.syn_rate, now_ns) else "syns"
        if owner is None or not allowed:
            return "unlisted"
        node = self.nodes[owner]
        if node.budget_bps is None:
            for one in self.nodes.values():
                one.sends &= now_ns - one.sent_ns <= self.params.idle_ns
            node.sends, node.sent_ns = True, now_ns
        return None if self.fits(node, packet.size, now_ns) else "over_budget"

    def fits(self, node: Node, size: int, now_ns: int) -> bool:
        """Figure 3.5, or the bucket."""
        budget_bps = self.budget(node)
        assert budget_bps is not None
        rtt_ns = self.params.rtt_ns if node.rtt_ns is None else node.rtt_ns
        if self.params.window:
            if node.bytes == 0 or now_ns >= node.since_ns + rtt_ns:
                node.since_ns, node.bytes = now_ns, 0
            most = budget_bps * rtt_ns // (8 * NS_PER_S) * (1 + self.params.tolerance) + self.params.slack
            if node.bytes >= most:
                return False
            node.bytes += size
            return True

        def takes(count: int) -> int:
            return count * 8 * NS_PER_S // budget_bps

        most_ns = rtt_ns + int(rtt_ns * self.params.tolerance) + takes(self.params.slack)
        empty_ns = max(node.since_ns, now_ns) + takes(size)
        if empty_ns - now_ns > max(most_ns, takes(size)):  # an empty bucket has room for any packet
            return False
        node.since_ns = empty_ns
        return True

    def report(self) -> dict[str, int]:
        """Returns the packets refused, by reason."""
        return self.refused
