"""The queues of WEIR (docs/algorithms/weir.md): hosts and their flows take turns as in DRR++, and keep what is owed.

Segments that keep to their windows wait in one queue for all, which takes turns among the hosts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from penstock.reference.cobalt import Params
from penstock.reference.cobalt_linux import ROOTS, LinuxCobalt
from penstock.reference.link import CE, ECT1, NS_PER_S, Limit, Packet

PACKET = 1514  # the turn of a flow
LEAST_TURN, MOST_TURN = 300, 1514  # of a host
FLOOR_BPS = 100_000
SHALLOW_NS = 1_000_000
WHOLE = 1024

Way = Literal["common", "own", "crowd", "young", "judged"]


@dataclass(eq=False)
class Member:
    """One that takes turns. `owed` is the deficit of DRR, in bytes."""

    owed: int = 0
    round: int = 0
    here: bool = False


class Takes(Protocol):
    """Has turns."""

    member: Member


M = TypeVar("M", bound=Takes)


class Turns(Generic[M]):
    """Those who have not had their quantum in this round, and those who have."""

    def __init__(self) -> None:
        self.new: deque[M] = deque()
        self.old: deque[M] = deque()
        self.round = 1
        self.to_come = 0  # members of the old list whose turn in this round is still to come

    def come(self, one: M, quantum: int, least: int) -> None:
        """A member has something to send."""
        member = one.member
        if member.here:
            return
        away = (self.round - member.round) % 2**32  # one that comes from another host has been away for any number
        member.round, member.here = self.round, True
        member.owed = min(member.owed + max(quantum * away, least), quantum)
        self.new.append(one)

    def turn(self, quantum: Callable[[M], int]) -> M | None:
        """Whose turn it is."""
        while self.new:
            if self.new[0].member.owed > 0:
                return self.new[0]
            self.old.append(self.new.popleft())
            if len(self.old) == 1:
                self.to_come = 1
        while self.old:
            one = self.old[0]
            if one.member.owed > 0:
                return one
            one.member.owed += quantum(one)
            self.old.rotate(-1)
            self.had_turn()
            one.member.round = self.round
        return None

    def had_turn(self) -> None:
        """The round ends with the last one."""
        self.to_come = max(self.to_come - 1, 0)
        if self.to_come == 0:
            self.round += 1
            self.to_come = len(self.old)

    def leave(self, one: M) -> None:
        """The member whose turn it is has nothing more."""
        one.member.here = False
        if self.new and self.new[0] is one:
            self.new.popleft()
        else:
            self.old.popleft()
            self.had_turn()
        if not self.new and not self.old:
            self.round += 1
            self.to_come = 0


@dataclass(eq=False)
class Waiting:
    """A packet, and where it waits."""

    packet: Packet
    way: Way


@dataclass(eq=False)
class FlowQueue:
    """The queue of a flow."""

    cobalt: LinuxCobalt
    queue: deque[Waiting] = field(default_factory=deque)
    common: int = 0  # bytes in the common queue
    weight: int = 0  # its class
    member: Member = field(default_factory=Member)
    alone: Host | None = None  # the host that it is without a node
    host: Host | None = None

    def bytes(self) -> int:
        """Of its own queue."""
        return sum(one.packet.size for one in self.queue)


@dataclass(eq=False)
class Host:
    """A host, or the common queue."""

    member: Member = field(default_factory=Member)
    flows: Turns[FlowQueue] = field(default_factory=Turns)
    left_ns: int = 0  # when it had nothing more to send


class Queues:
    """All queues. `ended` is told of drops."""

    def __init__(
        self,
        limit: Limit,
        rate_bps: int,
        uniform: Callable[[], float],
        ended: Callable[[Packet, str, int], None],
        *,
        floor: bool,
    ) -> None:
        self.limit, self.rate_bps, self.uniform, self.ended = limit, rate_bps, uniform, ended
        self.floor_bps = FLOOR_BPS if floor else 0
        self.flows: dict[int, FlowQueue] = {}
        self.nodes: dict[int, Host] = {}
        self.owners: dict[int, int] = {}
        self.turns: Turns[Host] = Turns()
        self.common: deque[Waiting] = deque()
        self.common_host = Host()
        self.full = False  # there was no room for a packet that windows govern
        self.parts = WHOLE  # turns of the common queue, in 1024ths of those of a host
        self.classes: dict[int, list[FlowQueue]] = {}  # by the power of two in the bytes of their queues

    def set_rate(self, rate_bps: int) -> None:
        """Turns and parameters follow it."""
        self.rate_bps = rate_bps
        for flow in self.flows.values():
            flow.cobalt.set_rate(rate_bps)

    def quantum(self) -> int:
        """Of a host."""
        return min(max(self.rate_bps // 8 // 4096, LEAST_TURN), MOST_TURN)

    def shallow_ns(self) -> int:
        """The delay from which ECT(1) is marked."""
        return max(SHALLOW_NS, 2 * PACKET * 8 * NS_PER_S // self.rate_bps)

    def waiting(self) -> list[Waiting]:
        """All packets."""
        return [*self.common, *(one for flow in self.flows.values() for one in flow.queue)]

    def governed(self) -> int:
        """The bytes that windows govern and for which others wait."""
        return sum(one.packet.size for one in self.waiting() if one.way in ("common", "own"))

    def flow(self, number: int) -> FlowQueue:
        """The queue of a flow. COBALT begins as after a use: its first interval is a whole one."""
        if number not in self.flows:
            cobalt = LinuxCobalt(self.limit, Params(), self.rate_bps, self.uniform)
            cobalt.rec_inv_sqrt = ROOTS[0]
            self.flows[number] = FlowQueue(cobalt)
        return self.flows[number]

    def host(self, number: int, flow: FlowQueue) -> Host:
        """Its host, which changes only while it waits for no turn."""
        if not flow.member.here or flow.host is None:
            if (node := self.owners.get(number)) is not None:
                flow.host = self.nodes.setdefault(node, Host())
            else:
                flow.alone = flow.alone or Host()
                flow.host = flow.alone
        return flow.host

    def enqueue(self, packet: Packet, way: Way, most: int, now_ns: int) -> None:
        """Takes a packet in. Of a flow at most `most` bytes wait in the common queue."""
        flow = self.flow(packet.flow)
        if way == "common" and not flow.queue and flow.common + packet.size <= most:
            flow.common += packet.size
            self.common.append(Waiting(packet, way))
            self.turns.come(self.common_host, self.quantum(), 0)
        else:
            flow.queue.append(Waiting(packet, way))
            self.weigh(flow)
            self.come(packet.flow, flow, now_ns)
        while self.exceeds():
            self.shed(now_ns)

    def exceeds(self) -> bool:
        """There is no room."""
        kind, most = self.limit
        waiting = self.waiting()
        return (len(waiting) if kind == "packets" else sum(one.packet.size for one in waiting)) > most

    def come(self, number: int, flow: FlowQueue, now_ns: int) -> None:
        """A flow takes turns when none of it waits in the common queue."""
        if flow.common:
            return
        host = self.host(number, flow)
        host.flows.come(flow, PACKET, 0)
        least = min(self.floor_bps * (now_ns - host.left_ns) // (8 * NS_PER_S), MOST_TURN)
        self.turns.come(host, self.quantum(), least)

    def weigh(self, flow: FlowQueue) -> None:
        """Keeps the classes: who comes into one is its last."""
        before, flow.weight = flow.weight, flow.bytes().bit_length()
        if flow.weight != before:
            if before:
                self.classes[before].remove(flow)
            if flow.weight:
                self.classes.setdefault(flow.weight, []).append(flow)

    def shed(self, now_ns: int) -> None:
        """Drops a head: that of the last in the highest class, or of the common queue if its parts are fatter."""
        heaviest = max((size for size, flows in self.classes.items() if flows), default=0)
        common = sum(one.packet.size for one in self.common)
        if heaviest and (not common or self.classes[heaviest][-1].bytes() >= common * WHOLE // self.parts):
            flow = self.classes[heaviest][-1]
            dropped = flow.queue.popleft()
            self.weigh(flow)
            flow.cobalt.shed(now_ns)
        else:
            dropped = self.pop_common(now_ns)
        self.full = self.full or dropped.way not in ("judged", "young")
        self.ended(dropped.packet, "drop_overflow", now_ns)

    def pop_common(self, now_ns: int) -> Waiting:
        """The head of the common queue. With its last packet there, a flow goes on to take turns."""
        taken = self.common.popleft()
        flow = self.flows[taken.packet.flow]
        flow.common -= taken.packet.size
        if flow.queue:
            self.come(taken.packet.flow, flow, now_ns)
        return taken

    def dequeue(self, now_ns: int) -> tuple[Waiting, bool] | None:
        """The next packet, and whether nothing of its flow waits behind it in its queue."""

        def turn(host: Host) -> int:
            return self.quantum() * self.parts // WHOLE if host is self.common_host else self.quantum()

        while (host := self.turns.turn(turn)) is not None:
            if host is not self.common_host:
                left = self.next_of(host, now_ns)
            else:
                left = (self.pop_common(now_ns), False) if self.common else None
            if left is not None:
                host.member.owed -= left[0].packet.size
                return left
            host.left_ns = now_ns
            self.turns.leave(host)
        return None

    def next_of(self, host: Host, now_ns: int) -> tuple[Waiting, bool] | None:
        """The next packet of a host. What waits of a flow in the common queue goes before the rest of it."""
        while (flow := host.flows.turn(lambda _: PACKET)) is not None:
            if flow.common == 0:
                if (taken := self.head(flow, now_ns)) is not None:
                    flow.member.owed -= taken.packet.size
                    return taken, not flow.queue
                flow.cobalt.queue_empty(now_ns)
            host.flows.leave(flow)
        return None

    def head(self, flow: FlowQueue, now_ns: int) -> Waiting | None:
        """The first packet that may pass."""
        while flow.queue:
            taken = flow.queue.popleft()
            self.weigh(flow)
            if taken.way != "judged" or self.judge(flow, taken.packet, now_ns):
                return taken
            self.ended(taken.packet, "drop_dequeue", now_ns)
        return None

    def judge(self, flow: FlowQueue, packet: Packet, now_ns: int) -> bool:
        """COBALT, which does not drop the last packet, and the shallow threshold."""
        ecn = packet.ecn
        if flow.cobalt.should_drop(packet, now_ns) and flow.queue:
            packet.ecn = ecn
            return False
        if ecn == ECT1 and now_ns - packet.since_ns > self.shallow_ns():
            packet.ecn = CE
        return True
