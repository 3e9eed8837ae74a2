"""WEIR, as docs/algorithms/weir.md states it: hosts first, windows for TCP, fair queues with an AQM for the rest.

PINK's default form gives the windows, of shares among hosts; what no window governs is measured as it leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from penstock.reference.ack import Segment
from penstock.reference.ack.pink import MS, WRAP, Flow, Given, Params, after, up
from penstock.reference.ack.pink_default import DefaultPink
from penstock.reference.ack.weir_turns import WHOLE, Queues, Way
from penstock.reference.link import NS_PER_S, Limit, Packet

C = 1.005
MEASURED_NS, SILENT_NS = 100 * MS, 200 * MS
YOUNG, PART = 32 << 10, 4
HEADERS = 28  # a claim of payload is one part in so many more on the link
PACE_NS, DIFFERS = 20 * MS, 16
MTU = 1500
TWO_PACKETS = 2 * 1514
NODES = 1 << 20  # nodes with a higher number are not known
ONE = 1 << 16  # the gain is in such parts
REST_NS = 60 * NS_PER_S  # for which nothing more is given out after an overflow
PARTS = ("hosts", "windows", "common", "others", "young", "floor", "pace", "gain")

Claim = int | Literal["all"]  # what is claimed of the link, in bytes per second


@dataclass
class Traffic:
    """What is known of a flow beside its windows: what it claims, and what left of it."""

    window: Claim | None = None  # by its windows
    rest: Claim | None = None  # by what no window governs
    looked_at: bool = False
    since_ns: int = 0
    last_ns: int = 0
    rest_ns: int = 0  # when a packet left last that no window governs
    patience_ns: int = 0
    emptied: bool = False
    young: int | None = None  # the first acknowledgment number of a young connection
    granted: int = 0
    allowed: int | None = None

    def claims(self) -> list[Claim]:
        """Both, without what is not claimed."""
        return [claim for claim in (self.window, self.rest) if claim is not None]


@dataclass
class Pace:
    """The link as departures show it."""

    last: tuple[int, int] | None = None  # time and size of the last departure, if it left packets behind
    bytes: int = 0
    busy_ns: int = 0

    def departed(self, size: int, now_ns: int, rate_bps: int, *, waits: bool) -> int | None:
        """Returns another rate."""
        if self.last is not None:
            self.bytes, self.busy_ns = self.bytes + self.last[1], self.busy_ns + now_ns - self.last[0]
        self.last = (now_ns, size) if waits else None
        if self.busy_ns < PACE_NS:
            return None
        seen = self.bytes * 8 * NS_PER_S // self.busy_ns
        self.bytes = self.busy_ns = 0
        return seen if seen and abs(seen - rate_bps) > rate_bps // DIFFERS else None


@dataclass
class Gain:
    """By how much more than the link is given out, so that it is not idle."""

    part: int = ONE
    since_ns: int = 0
    idle_ns: int = 0
    least: int | None = None  # bytes left behind by a departure
    empty_ns: int | None = None
    rests_ns: int = 0  # until when it is one

    def overflow(self, now_ns: int) -> None:
        """There was no room for data that windows govern."""
        self.part, self.rests_ns = ONE, now_ns + REST_NS

    def busy(self, waits: int, now_ns: int, *, wanted: bool) -> None:
        """A packet leaves."""
        self.least = waits if self.least is None else min(self.least, waits)
        if self.empty_ns is not None:
            paused_ns, self.empty_ns = now_ns - self.empty_ns, None
            self.idle_ns += paused_ns
            if paused_ns >= MEASURED_NS:
                self.since_ns, self.idle_ns = now_ns, 0
        if now_ns - self.since_ns < MEASURED_NS:
            return
        idle = self.idle_ns * ONE // (now_ns - self.since_ns)
        if wanted and idle > ONE // 128 and now_ns >= self.rests_ns:
            self.part += idle // 2
        else:
            self.part -= ONE // 64 if self.least > TWO_PACKETS else ONE // 256
        self.part = min(max(self.part, ONE), ONE // 4 * 5)
        self.since_ns, self.idle_ns, self.least = now_ns, 0, None


@dataclass
class Others:
    """What no window governs and does not wait for its turn, in bytes, and in thousandths of a byte per second."""

    bytes: int = 0
    since_ns: int = 0
    before: int = 0
    taken: int = 0

    def meter(self, now_ns: int) -> None:
        """The mean of two measurements."""
        took_ns = now_ns - self.since_ns
        if took_ns >= MEASURED_NS:
            rate = int(self.bytes * 1000.0 / (took_ns / NS_PER_S))
            self.taken, self.before = (rate + self.before) // 2, rate
            self.bytes, self.since_ns = 0, now_ns


def left_by(capacity: int, claims: list[Claim], more: int) -> tuple[int, int]:
    """What those share who can use whatever they get, and their number: `more`, and those with the claim "all".

    The others have what they claim, and an equal part each at most.
    """
    least = [claim for claim in claims if claim != "all"]
    n = len(claims) + more
    return capacity - min(1000 * sum(least), capacity * len(least) // max(n, 1)), n - len(least)


class Weir(DefaultPink):
    """The windows, the shares of hosts, and the queues. `without` names parts that are left out."""

    def __init__(
        self, limit: Limit, rate_bps: int, uniform: Callable[[], float], without: frozenset[str] = frozenset()
    ) -> None:
        params = Params(c=C, reallocation="demand", shrink="advance", window="steady", sampling="always")
        super().__init__(limit, params, rate_bps)
        self.without = without
        self.traffic: dict[int, Traffic] = {}
        self.nodes: dict[int, int] = {}
        self.others, self.pace, self.paced_bps, self.gain = Others(), Pace(), rate_bps, Gain()
        self.looked_at: list[int] = []
        self.look_next = 0
        self.header = 0  # of the last segment with data
        self.standing: tuple[Way, int, int] | None = None  # of the segment that was shown, its window and payload
        self.queues = Queues(limit, rate_bps, uniform, self.end, floor="floor" not in without)

    def told(self, name: str, index: int, value: int, now_ns: int) -> None:
        """Who owns a flow, or a rate."""
        super().told(name, index, value, now_ns)
        if name == "rate":
            self.pace, self.paced_bps = Pace(), value
            self.set_rate(value)
        if name == "owner" and "hosts" not in self.without:
            self.nodes.pop(index, None)
            if value < NODES:
                self.nodes[index] = value
            self.queues.owners = self.nodes

    def set_rate(self, rate_bps: int) -> None:
        """What follows from the rate."""
        self.rate_bps, self.capacity = rate_bps, self.payload(rate_bps)
        self.queues.set_rate(rate_bps)

    def of(self, number: int) -> Traffic:
        """The traffic of a flow."""
        return self.traffic.setdefault(number, Traffic())

    # Claims.

    def note_wants(self, flow: Flow) -> None:
        """What an open connection that sends can use of windows. A young one claims nothing."""
        one = self.of(flow.number)
        if not flow.listed or flow.listed == "silent" or flow.phase != "open" or one.young is not None:
            one.window = None
        else:
            one.window = "all" if flow.claim is None else min(flow.claim + flow.claim // HEADERS, WRAP - 1)

    def set_claim(self, flow: Flow, claim: int | None) -> None:
        """The host of the flow claims as much more."""
        super().set_claim(flow, claim)
        self.note_wants(flow)

    def unlist(self, flow: Flow) -> bool:
        """A flow that does not count claims nothing."""
        was = super().unlist(flow)
        self.note_wants(flow)
        return was

    def note_sending(self, flow: Flow) -> None:
        """A flow begins to count."""
        was = flow.listed
        super().note_sending(flow)
        if was in ("", "silent"):
            self.note_wants(flow)

    def hosts(self) -> dict[int, list[Claim]]:
        """The claims of each host that has any. A flow without a node is a host, with a number below 0."""
        found: dict[int, list[Claim]] = {}
        for number, one in self.traffic.items():
            if claims := one.claims():
                found.setdefault(self.nodes.get(number, -1 - number), []).extend(claims)
        return found

    def level(self, flow: Flow, rtt_ns: int, full: int) -> int:
        """Max-min among hosts, and of that among the flows of the host, as if this flow could use what it gets."""
        one = self.of(flow.number)
        was, one.window = one.window, None
        hosts = self.hosts()
        one.window = was
        own = hosts.pop(self.nodes.get(flow.number, -1 - flow.number), [])
        sums: list[Claim] = ["all" if "all" in claims else sum(claims) for claims in hosts.values()]  # type: ignore[arg-type]
        capacity = self.capacity - min(self.others.taken, self.capacity // 4 * 3)
        rate, n = left_by(capacity * self.gain.part // ONE, sums, 1 + self.expected(flow))
        rate, n = left_by(rate // max(n, 1), own, 1)
        return self.window_of(rate * full // (full + self.header), rtt_ns, n)

    def governed(self) -> int:
        """How many hosts' turns all flows with windows have, in 1024ths."""
        found: dict[int, int] = {}
        for number, one in self.traffic.items():
            if one.window is not None:
                node = self.nodes.get(number, -1 - number)
                found[node] = found.get(node, 0) + 1
        return sum(WHOLE * count // len(self.hosts()[node]) for node, count in found.items())

    # Young connections.

    def begin(self, flow: Flow, ack: int, full: int) -> None:
        """A connection is young from its first window on."""
        one, edge = self.of(flow.number), flow.edge
        super().begin(flow, ack, full)
        one.young = None if "young" in self.without else ack
        one.allowed = edge if 1 <= (edge - ack) % WRAP <= 65535 else None
        self.note_wants(flow)

    def close(self, flow: Flow) -> None:
        """It has ended."""
        super().close(flow)
        one = self.of(flow.number)
        one.young, one.granted = None, 0

    def young_window(self, flow: Flow, given: Given, granted: int) -> int:
        """A fourth of what young connections have left of their room, if that is more than the share."""
        one = self.of(flow.number)
        if one.young is None:
            return granted
        one.granted = 0
        left = YOUNG - (given.ack - one.young) % WRAP
        if left <= 0:
            one.young = one.rest = None
            self.note_wants(flow)
            return granted
        room = min(self.queue_room(given.full) // 2, self.rate_bps * MEASURED_NS // (8 * NS_PER_S))
        free = max(room - sum(other.granted for other in self.traffic.values()), 0)
        window = up(min(left, free // PART) // given.full * given.full, given.unit)
        if window > granted:
            one.granted = granted = window
        return granted

    def allowance(self, flow: Flow, full: int, rtt_ns: int) -> int:
        """Who was idle may send ten segments at once, or an eighth of the queue."""
        return max(super().allowance(flow, full, rtt_ns), min(10 * full, self.queue_room(full) // 8))

    # What passes.

    def note_standing(self, flow: Flow, segment: Segment, end: int | None) -> None:
        """How a segment stands to its window."""
        one, now = self.of(flow.number), flow.end()
        if one.allowed is not None and now is not None and after(now, one.allowed):
            one.allowed = None
        self.standing = (self.stands(flow, one, segment, end), (flow.edge - flow.acked) % WRAP, segment.payload)

    def stands(self, flow: Flow, one: Traffic, segment: Segment, end: int | None) -> Way:
        """New data within the window that has rounds are for the common queue."""
        now, payload = flow.end(), segment.payload
        if flow.phase not in ("open", "opening") or (not payload and flow.phase == "open"):
            return "judged"
        if payload and one.young is not None:
            return "young"
        if flow.flight == "none" or not payload:
            return "own"
        if now is not None and after(now, flow.edge) and now != end and one.allowed is None:
            return "judged"
        if flow.flight != "later" or now == end or flow.claim is not None:
            return "own"
        return "crowd" if flow.small and self.of_a_crowd(flow) else "common"

    def of_a_crowd(self, flow: Flow) -> bool:
        """The host has more than one claim."""
        return len(self.hosts().get(self.nodes.get(flow.number, -1 - flow.number), [])) > 1

    def outbound(self, segment: Segment) -> int:
        """Data."""
        return segment.window if "windows" in self.without else super().outbound(segment)

    def inbound(self, segment: Segment) -> int:
        """ACKs."""
        return segment.window if "windows" in self.without else super().inbound(segment)

    def waits(self) -> bool:
        """Any packet waits."""
        return bool(self.queues.waiting())

    def enqueue(self, packet: Packet, now_ns: int) -> None:
        """Where a packet waits."""
        (way, window, payload), self.standing = self.standing or ("judged", 0, 0), None
        if payload:
            self.header = packet.size - payload
        if way == "common" and "common" in self.without:
            way = "own"
        self.queues.parts = max(self.governed(), WHOLE)
        self.queues.full = False
        self.queues.enqueue(packet, way, 2 * window + MTU, now_ns)
        if self.queues.full:
            self.gain.overflow(now_ns)

    def dequeue(self, now_ns: int) -> Packet | None:
        """What leaves shows the rate of the link, and what no window governs."""
        if (left := self.queues.dequeue(now_ns)) is None:
            self.pace.last = None
            if self.gain.empty_ns is None and "gain" not in self.without:
                self.gain.empty_ns = now_ns
            return None
        (packet, way), last = (left[0].packet, left[0].way), left[1]
        seen = self.pace.departed(packet.size, now_ns, self.paced_bps, waits=self.waits())
        if seen is not None:
            self.paced_bps = seen
            if "pace" not in self.without:
                self.set_rate(seen)
        self.note_left(packet, now_ns, last=last, free=way in ("judged", "young") and "others" not in self.without)
        self.backlog += self.queues.governed() - self.backlog // 16
        return packet

    def note_left(self, packet: Packet, now_ns: int, *, last: bool, free: bool) -> None:
        """Measures a packet that left."""
        claims = self.hosts().values()
        wanted = any("all" in one for one in claims) and any(one.window is not None for one in self.traffic.values())
        self.gain.busy(sum(one.packet.size for one in self.queues.waiting()), now_ns, wanted=wanted)
        self.others.meter(now_ns)
        self.look_at_one(now_ns)
        one = self.of(packet.flow)
        again = self.passes(packet.flow, one, now_ns)
        if free:
            self.measure(one, packet.size, now_ns, last=last)
        elif again and (flow := self.flows.get(packet.flow)) is not None:
            one.patience_ns = max(2 * (flow.round_trip() or 0), SILENT_NS)
            self.note_wants(flow)

    def passes(self, number: int, one: Traffic, now_ns: int) -> bool:
        """Returns true if the flow was silent before."""
        one.last_ns = now_ns
        if one.looked_at:
            return one.window is None
        one.looked_at, one.since_ns, one.patience_ns = True, now_ns, SILENT_NS
        self.looked_at.append(number)
        return True

    def measure(self, one: Traffic, size: int, now_ns: int, *, last: bool) -> None:
        """Who always had packets waiting for a measurement can use more; of all others the bytes count."""
        if now_ns - one.rest_ns > SILENT_NS:
            one.since_ns, one.emptied = now_ns, last
        one.rest_ns = now_ns
        one.emptied |= last
        if one.rest is None:
            self.others.bytes += size
        if now_ns - one.since_ns >= MEASURED_NS:
            one.rest = None if one.emptied else "all"
            one.since_ns, one.emptied = now_ns, last

    def look_at_one(self, now_ns: int) -> None:
        """Looks at the next of those who sent: who is silent claims nothing."""
        if self.look_next >= len(self.looked_at):
            self.look_next = 0
            return
        one = self.of(self.looked_at[self.look_next])
        if now_ns - one.rest_ns > SILENT_NS:
            one.rest = None
        if now_ns - one.last_ns <= one.patience_ns:
            self.look_next += 1
            return
        one.looked_at, one.window, one.rest = False, None, None
        self.looked_at[self.look_next] = self.looked_at[-1]
        self.looked_at.pop()

    def report(self) -> dict[str, int]:
        """With the rate in force."""
        return super().report() | {"rate_bps": self.rate_bps}
