"""Theorem 2 of QRM: legal inputs are budgets that add up to the link, round trip times, and any packets of any node.

    bytes that wait <= sum of BW_i RTT_i        Grazia 2016, section 3.1.4, with tolerance 0

A bucket that is empty has room for one packet, so a node with a smaller product counts for the largest packet.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock import engine
from penstock.adversary import subject
from penstock.adversary.theorem import Found, Input, Theorem, climb

_SYN, _ACK = 0x02, 0x10
_MS = 1_000_000  # ns
_BEGIN_NS = 2_000 * _MS  # of the data: handshakes are over and the queue is empty
_LARGEST = 1500  # bytes of a packet
_MOST = 80  # packets that a node sends in a burst
_GAPS = (0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0, 1.001, 1.1)  # between bursts, in round trips of node 0


@dataclass(frozen=True)
class Segment:
    """A segment at the gateway (`_penstock.Segment`)."""

    t_ns: int
    flow: int
    size: int
    flags: int = _ACK
    inbound: bool = False
    seq: int = 1
    ack: int = 1
    payload: int = 0
    window: int = 65535
    scale: int | None = None
    mss: int | None = None
    timestamps: tuple[int, int] | None = None
    ecn: int = 0


@dataclass(frozen=True)
class Node:
    """A node: what it was granted, and both halves of its round trip."""

    budget_bps: int
    wan_ns: int
    lan_ns: int

    @property
    def rtt_ns(self) -> int:
        """The whole round trip time."""
        return self.wan_ns + self.lan_ns

    @property
    def product_bytes(self) -> float:
        """Budget times round trip time."""
        return self.budget_bps * self.rtt_ns / 8e9


Packet = tuple[int, int, int]  # ns after the begin, node, bytes


def longest_queue(algorithm: str, nodes: Sequence[Node], packets: Sequence[Packet]) -> float:
    """Returns the most bytes that waited behind QRM before a link of all budgets; each flow is a node."""
    steps: list[Any] = []
    for place, node in enumerate(nodes):
        steps += [(0, "owner", place, place), (0, "budget", place, node.budget_bps)]
    hands = [segment for place, node in enumerate(nodes) for segment in _handshake(place, node)]
    data = [Segment(_BEGIN_NS + at, node, size, payload=size - 40) for at, node, size in packets]
    segments = sorted(hands, key=lambda one: one.t_ns) + data
    rate_bps = sum(node.budget_bps for node in nodes)
    name, settings = _taken(algorithm)
    answers, _ = engine.replay_segments([*steps, *segments], name, f"{rate_bps}bit/s", "1GB", settings)
    fates = [fate for segment, (_, fate) in zip(segments, answers, strict=True) if segment.t_ns >= _BEGIN_NS]
    accepted = [packet for packet, fate in zip(packets, fates, strict=True) if fate and fate[0] == "sent"]
    return max(_waiting(accepted, rate_bps), default=0.0)


@functools.cache
def _taken(algorithm: str) -> tuple[str, tuple[str, ...]]:
    """Returns the name and the settings of an algorithm. To look it up takes longer than a search's input does."""
    found = subject.find(algorithm)
    return found.name, tuple(f"{key}={value}" for key, value in found.given.items())


def replayed(events: Sequence[tuple[float, float]], account: str) -> float:
    """Returns the longest queue for events of one node, as times in round trips and amounts in products.

    It is a part of the product of rate and round trip time, 100,000 bytes.
    """
    node = Node(8_000_000, 75 * _MS, 25 * _MS)
    packets = [
        (round(at * node.rtt_ns), 0, size) for at, amount in events for size in _cut(round(amount * node.product_bytes))
    ]
    return longest_queue(f"qrm account={account} tolerance=0.0", [node], packets) / node.product_bytes


def _cut(size: int) -> Iterator[int]:
    """Cuts bytes into packets."""
    yield from [1000] * (size // 1000)
    if size % 1000 > 40:
        yield size % 1000


def _handshake(flow: int, node: Node) -> Iterator[Segment]:
    yield Segment(_MS, flow, 40, _SYN, seq=0, ack=0)
    yield Segment(_MS + node.wan_ns, flow, 40, _SYN | _ACK, inbound=True, seq=0)
    yield Segment(_MS + node.rtt_ns, flow, 40)


def _waiting(accepted: Sequence[Packet], rate_bps: int) -> Iterator[float]:
    """Yields the bytes that wait, with the one in transmission, behind each packet."""
    waits, before = 0.0, 0
    for at, _, size in accepted:
        waits = max(0.0, waits - (at - before) * rate_bps / 8e9) + size
        before = at
        yield waits


def _drawn(draws: random.Random) -> Input:
    bursts = draws.randint(2, 6)
    return {
        "nodes": draws.randint(1, 4),
        "budget": draws.choice([200_000, 1_000_000, 2_000_000]),
        "rtt_ms": draws.choice([20, 100, 400]),
        "uneven": draws.choice([False, False, True]),
        "size": draws.choice([200, 576, 1000, _LARGEST]),
        "bursts": tuple((draws.choice(_GAPS), draws.choice([1, 2, 1000])) for _ in range(bursts)),
        "seed": draws.randrange(10**6),
    }


def _laid_out(drawn: Input) -> tuple[list[Node], list[Packet]]:
    draws = random.Random(drawn["seed"])
    nodes = []
    for _ in range(drawn["nodes"]):
        part = draws.uniform(0.1, 1) if drawn["uneven"] else 1.0
        wan = round(drawn["rtt_ms"] * _MS * (draws.uniform(0.2, 1) if drawn["uneven"] else 1) * 0.75)
        nodes.append(Node(round(drawn["budget"] * part), wan, wan // 3))
    packets, at = [], 0
    for gap, most in drawn["bursts"]:
        at += round(gap * nodes[0].rtt_ns)
        for place, node in enumerate(nodes):
            fills = int(2 * node.product_bytes / drawn["size"]) + 2
            packets += [(at, place, drawn["size"])] * min(most, fills, _MOST)
    return nodes, packets


def _ratio(algorithm: str, drawn: Input) -> float:
    nodes, packets = _laid_out(drawn)
    return longest_queue(algorithm, nodes, packets) / sum(max(node.product_bytes, _LARGEST) for node in nodes)


def _find(algorithm: str, trials: int, seed: int) -> Found:
    worst, drawn = climb(_drawn, partial(_ratio, algorithm), trials, random.Random(f"{algorithm}/{seed}"))
    return worst, ", ".join(f"{key} = {value}" for key, value in drawn.items())


QRM = Theorem("qrm tolerance=0.0", "queue <= sum of BW_i RTT_i", _find)
