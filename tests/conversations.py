"""Made-up TCP conversations that pass a gateway, for comparison of elements with their readable twins.

Senders obey the windows that the twin writes, so that a conversation goes on as it would behind the element: the
steps are made while the twin plays them. Whatever the twin writes, the compiled part then gets the same steps.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.reference.ack import ACK, FIN, RST, SYN, Answer, Fact, Gateway, Player, Segment, Step
from penstock.reference.link import Packet

MS = 1_000_000
WRAP = 2**32
HEADERS = 52

Event = tuple[int, int, Callable[[], None]]


@dataclass
class Kind:
    """How conversations are drawn."""

    flows: int = 6
    steps: int = 500
    facts: Callable[[random.Random, int], list[Fact]] = lambda _r, _flow: []  # told before a flow opens
    ecn: tuple[int, ...] = (0, 2)  # of data
    unseen: float = 0.0  # part of the connections whose handshake is not shown; they send what they like


@dataclass
class Flow:
    """A connection whose data goes outbound, with the state of its two ends."""

    number: int
    from_inside: bool
    mss: int
    wan_ns: int
    lan_ns: int
    scale_inside: int | None
    scale_outside: int | None
    timestamps: bool
    room: int  # of the receiver, in bytes
    obeys: bool
    every: int  # segments per ACK
    most: int  # segments in flight, at most
    left: int  # bytes that the application still has
    pauses: bool
    isn_inside: int
    isn_outside: int
    una: int = 0  # these are counted from the first byte of data
    nxt: int = 0
    sent: int = 0
    edge: int = 0
    received: int = 0
    unacked: int = 0
    closed: bool = False
    scale: int = 0
    last_tsval: dict[bool, int] = field(default_factory=dict)


class World:
    """All conversations of a trial."""

    def __init__(self, r: random.Random, kind: Kind, gateway: Gateway, rate_bps: int) -> None:
        self.r, self.kind, self.rate_bps = r, kind, rate_bps
        self.player = Player(gateway, rate_bps)
        self.steps: list[Step] = []
        self.events: list[Event] = []
        self.now_ns = r.choice([0, 3_000 * MS])
        self.losses = r.choice([0.0, 0.0, 0.01, 0.1])
        self.noise = r.choice([0.0, 0.0, 0.02])
        self.silent = r.choice([0.1, 0.1, 0.7])  # part of the connections that never send
        self.waiting: dict[int, tuple[Flow, Segment]] = {}
        self.count = 0
        end = gateway.end

        def ended(packet: Packet, name: str, now_ns: int) -> None:
            end(packet, name, now_ns)
            self.left_queue(packet.id, name, now_ns)

        gateway.end = ended  # type: ignore[method-assign]

    def at(self, t_ns: int, act: Callable[[], None]) -> None:
        """Does something later."""
        self.count += 1
        heapq.heappush(self.events, (max(t_ns, self.now_ns), self.count, act))

    def run(self) -> tuple[list[Step], list[Answer]]:
        """Returns the steps, and what became of each segment."""
        for number in range(self.kind.flows):
            begin_ns = self.now_ns + self.r.choice([0, self.r.randrange(1, 400 * MS), self.r.randrange(1, 5_000 * MS)])
            self.at(begin_ns, lambda number=number: self.open(number))  # type: ignore[misc]
        while self.events and len(self.steps) < self.kind.steps:
            link = self.player.link
            if link.free_at is not None and link.free_at <= self.events[0][0]:
                link.take(link.free_at)
                continue
            self.now_ns, _, act = heapq.heappop(self.events)
            act()
        return self.steps, self.player.answers()

    def tell(self, fact: Fact) -> None:
        """Tells a fact now."""
        step = (self.now_ns, *fact[1:])
        self.steps.append(step)
        self.player.step(step)

    def open(self, number: int) -> None:
        """Opens a connection with this number."""
        r = self.r
        for fact in self.kind.facts(r, number):
            self.tell(fact)
        near = r.choice([0, WRAP - 3_000, WRAP // 2 - 3_000, r.randrange(WRAP)])
        flow = Flow(
            number,
            from_inside=r.random() < 0.6,
            mss=r.choice([100, 536, 1000, 1448, 1448]),
            wan_ns=r.choice([1, 20, 80, 600]) * MS + r.randrange(MS),
            lan_ns=r.choice([0, 1, 10]) * MS + r.randrange(1, MS),
            scale_inside=r.choice([None, 0, 2, 7, 14]),
            scale_outside=r.choice([None, 0, 2, 7, 7, 10, 14]),
            timestamps=r.random() < 0.5,
            room=r.choice([4_000, 65_000, 1_000_000, 4_000_000]),
            obeys=r.random() < 0.85,
            every=r.choice([1, 2, 2]),
            most=r.choice([2, 10, 40]),
            left=r.choice([0, 300, 20_000, 10**6, 10**9]),
            pauses=r.random() < 0.4,
            isn_inside=near,
            isn_outside=r.randrange(WRAP),
        )
        if flow.scale_inside is not None and flow.scale_outside is not None:
            flow.scale = flow.scale_outside
        if self.kind.unseen and r.random() < self.kind.unseen:
            flow.obeys, flow.most, flow.left = False, r.choice([10, 100]), r.choice([3_000, 10**9])
            self.at(self.now_ns, lambda: self.send(flow))
            return
        if flow.from_inside:
            self.hello(flow, False, SYN)
            self.at(self.now_ns + flow.wan_ns, lambda: self.hello(flow, True, SYN | ACK))
            after_ns = flow.wan_ns + flow.lan_ns
        else:
            self.hello(flow, True, SYN)
            self.at(self.now_ns + flow.lan_ns, lambda: self.hello(flow, False, SYN | ACK))
            after_ns = flow.lan_ns + flow.wan_ns
            self.at(self.now_ns + after_ns, lambda: self.acknowledge(flow))
        if r.random() >= self.silent:
            self.at(self.now_ns + after_ns, lambda: self.begin(flow))

    def hello(self, flow: Flow, inbound: bool, flags: int) -> None:
        """A SYN or its answer, perhaps twice."""
        isn = flow.isn_outside if inbound else flow.isn_inside
        other = flow.isn_inside if inbound else flow.isn_outside
        scale, mss = (flow.scale_outside if inbound else flow.scale_inside), self.r.choice([None, flow.mss, flow.mss])
        window = min(flow.room, 65535)
        for _ in range(2 if self.r.random() < 0.05 else 1):
            ack = (other + 1) % WRAP if flags & ACK else 0
            left = self.show(flow, inbound, flags, isn, ack, 0, window, scale, mss)
            if inbound and left is not None:
                flow.edge = max(flow.edge, left)

    def begin(self, flow: Flow) -> None:
        """The ACK of the handshake, and the first flight."""
        if flow.from_inside:
            self.send_empty(flow)
        self.send(flow)

    def show(
        self,
        flow: Flow,
        inbound: bool,
        flags: int,
        seq: int,
        ack: int,
        payload: int,
        window: int,
        scale: int | None = None,
        mss: int | None = None,
    ) -> int | None:
        """Shows a segment to the twin."""
        stamps = None
        if flow.timestamps:
            tsval = (self.now_ns // MS + flow.isn_inside + (77 if inbound else 0)) % WRAP
            stamps = (tsval, flow.last_tsval.get(not inbound, 0))
            flow.last_tsval[inbound] = tsval
        ecn = self.r.choice(self.kind.ecn) if payload else 0
        size = payload + (HEADERS if stamps else 40)
        segment = Segment(
            self.now_ns, inbound, flow.number, flags, seq, ack, payload, window, scale, mss, stamps, size, ecn
        )
        self.steps.append(segment)
        if not inbound:
            self.waiting[self.player.packets] = (flow, segment)
        return self.player.step(segment)

    def send_empty(self, flow: Flow) -> None:
        """An outbound ACK without data."""
        seq, ack = (flow.isn_inside + 1 + flow.nxt) % WRAP, (flow.isn_outside + 1) % WRAP
        self.show(flow, False, ACK, seq, ack, 0, 65535)

    def send(self, flow: Flow) -> None:
        """Sends what windows allow, and perhaps a short segment that fills the window."""
        sent = 0
        while not flow.closed and flow.left + flow.sent > flow.nxt and flow.nxt - flow.una < flow.most * flow.mss:
            size = min(flow.mss, flow.left + flow.sent - flow.nxt)
            if flow.obeys and flow.nxt + size > flow.edge:
                size = flow.edge - flow.nxt if self.r.random() < 0.3 else 0
            if size <= 0:
                break
            self.at(self.now_ns + sent * 1000, lambda at=flow.nxt, size=size: self.data(flow, at, size))  # type: ignore[misc]
            flow.nxt += size
            fresh = max(flow.nxt - flow.sent, 0)
            flow.sent, flow.left = flow.sent + fresh, flow.left - fresh
            sent += 1
        if sent:
            self.at(self.now_ns + 1_500 * MS, lambda una=flow.una: self.timeout(flow, una))  # type: ignore[misc]
        elif flow.left == 0 and flow.una == flow.nxt and not flow.closed:
            self.finish(flow)

    def data(self, flow: Flow, at: int, size: int) -> None:
        """One segment of data."""
        seq, ack = (flow.isn_inside + 1 + at) % WRAP, (flow.isn_outside + 1) % WRAP
        self.show(flow, False, ACK, seq, ack, size, 65535)

    def finish(self, flow: Flow) -> None:
        """Nothing is left: a pause and more, a FIN, an RST, or nothing at all."""
        flow.closed, what = True, self.r.random()
        if flow.pauses or what < 0.2:
            pause_ns = self.r.choice([5, 200, 1_200, 8_000, 70_000]) * MS
            self.at(self.now_ns + pause_ns, lambda: self.more(flow))
        elif what < 0.8:
            seq, ack = (flow.isn_inside + 1 + flow.nxt) % WRAP, (flow.isn_outside + 1) % WRAP
            self.show(flow, False, (RST if what > 0.7 else FIN) | ACK, seq, ack, 0, 65535)
            if what < 0.6:
                again_ns = self.r.choice([300, 3_000]) * MS
                self.at(self.now_ns + again_ns, lambda: self.open(flow.number))

    def more(self, flow: Flow) -> None:
        """The application has more to send."""
        flow.closed, flow.left = False, self.r.choice([100, 3_000, 50_000])
        self.send(flow)

    def timeout(self, flow: Flow, una: int) -> None:
        """Sends again from the first byte that is not acknowledged."""
        if flow.una == una < flow.nxt and not flow.closed:
            flow.nxt = una
            self.send(flow)

    def left_queue(self, number: int, name: str, now_ns: int) -> None:
        """An outbound segment reaches the receiver, or is lost."""
        flow, segment = self.waiting.pop(number)
        if name != "sent" or segment.flags & (SYN | RST) or self.r.random() < self.losses:
            return
        if segment.flags & FIN:
            self.at(now_ns + flow.wan_ns, lambda: self.acknowledge(flow, fin=True))
        elif segment.payload:
            at = (segment.seq - flow.isn_inside - 1) % WRAP
            in_order = at == flow.received % WRAP
            if in_order:
                flow.received += segment.payload
                flow.unacked += 1
            if not in_order or flow.unacked >= flow.every:
                self.at(now_ns + flow.wan_ns, lambda: self.acknowledge(flow))
            else:
                self.at(now_ns + flow.wan_ns + 40 * MS, lambda: self.acknowledge(flow) if flow.unacked else None)

    def acknowledge(self, flow: Flow, *, fin: bool = False) -> None:
        """An ACK passes inbound; its sender's data follows after the LAN half."""
        r, acked = self.r, flow.received
        flow.unacked = 0
        if r.random() < self.losses:
            return
        room = flow.room if r.random() < 0.9 else flow.room // r.choice([2, 50, 1000])
        window = min(room >> flow.scale, 65535)
        ack = (flow.isn_inside + 1 + acked + fin) % WRAP
        if r.random() < self.noise:
            ack, window = (
                r.choice([(ack + 5000) % WRAP, (ack - 2000) % WRAP, r.randrange(WRAP)]),
                r.choice([0, 1, window]),
            )
        left = self.show(
            flow, True, ACK | (FIN if fin and r.random() < 0.5 else 0), (flow.isn_outside + 1) % WRAP, ack, 0, window
        )
        flow.una = max(flow.una, acked)
        flow.nxt = max(flow.nxt, flow.una)
        flow.edge = max(flow.edge, acked + ((left or 0) << flow.scale))
        late_ns = r.choice([0, 0, 0, r.randrange(4 * MS)])
        self.at(self.now_ns + flow.lan_ns + late_ns, lambda: self.send(flow))
