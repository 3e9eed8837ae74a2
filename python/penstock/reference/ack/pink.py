"""PINK: document 000 (Casoni, Grazia, Klapez, Patriciello 2017), §3 eq. (1), §3.1 eq. (2) and Figures 2 to 4, §4.

    B_i = floor(BW RTT_i c / n) + floor(BW_free RTT_i c / n_good)

`window="literal"`, `shrink="immediate"`, `reallocation="paper"` or `"off"` and `sampling="off"` are the paper's form.
`window="dither"` has whole segments, half a share in the first flight, and growth as ACKs arrive, and
`shrink="advance"` moves no right edge left, as docs/algorithms/pink.md states them.

The sources are silent about the resolution of numbers: a rate is in thousandths of a byte per second, the last data
of a flow are known within 250 ms, and a claim is in whole bytes per second. Eq. (2) is that of the page: it keeps
what bad flows can use, not BW_free, and RTT_i is that of a full segment over both halves.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from penstock.reference.ack import ACK, FIN, RST, SYN, Gateway, Segment, before
from penstock.reference.ack.rtt import Probe
from penstock.reference.link import NS_PER_S, Limit

MOST_WINDOW = 0xFFFF << 14
MS = 1_000_000
WRAP = 2**32
STEPS = 3  # segments by which windows differ from their mean


Reallocation = Literal["paper", "off", "demand"]
Shrink = Literal["immediate", "advance"]
Window = Literal["literal", "dither", "steady"]


@dataclass(frozen=True)
class Params:
    """The parameters of the page."""

    c: float = 0.95
    reserve_bps: int = 0
    reallocation: Reallocation = "paper"
    shrink: Shrink = "immediate"
    window: Window = "literal"
    sampling: Literal["always", "after-drop", "off"] = "off"
    idle_ns: int = 60 * NS_PER_S
    silent_ns: int = 3 * NS_PER_S


def after(a: int, b: int) -> bool:
    """A number of 32 bits is after another one."""
    return before(b, a)


def down(count: int, unit: int) -> int:
    """Whole units."""
    return count // unit * unit


def up(count: int, unit: int) -> int:
    """Whole units, rounded up."""
    return -(-count // unit) * unit


@dataclass(frozen=True)
class Given:
    """What decides the window of an ACK, in bytes; share and round trip time are `None` before they are known."""

    ack: int
    told: int  # the receiver's window
    full: int  # payload of a full segment
    unit: int  # of the window field
    share: int | None
    surplus: int
    rtt_ns: int | None


@dataclass
class Habits:
    """What sender and receiver did in this round and in the one before."""

    now: set[str] = field(default_factory=set)
    last: set[str] = field(default_factory=set)


@dataclass
class Flow:
    """A connection. `listed` is "silent" from its SYN to its first data, "busy" while it sends, "" otherwise."""

    number: int
    phase: Literal["unseen", "stranger", "opening", "open", "closed"] = "unseen"
    from_inside: bool = False
    isn: int = 0
    scale: int | None = None
    mss: int = 0
    probe: Probe = field(default_factory=Probe)
    listed: Literal["", "silent", "busy", "far", "quiet"] = ""
    small: bool = False  # the share was less than a segment at the last ACK
    last_ns: int = 0
    closed_ns: int = 0
    largest: int = 0
    fin_sent: bool = False
    known: bool = False
    claim: int | None = None  # bytes per second, while the flow is bad
    flight: Literal["none", "first", "later"] = "none"
    acked: int = 0
    edge: int = 0
    round_end: int = 0
    credit: int = 0
    habits: Habits = field(default_factory=Habits)
    grows: bool = False
    surplus: int = 0
    round_ns: int = 0  # when the round began

    def sends(self) -> bool:
        """It sends now."""
        return self.listed in ("busy", "far")

    def end(self) -> int | None:
        """The number after what was sent."""
        return self.probe.wan.newest

    def round_trip(self) -> int | None:
        """The whole round trip; its WAN half before it is known."""
        return self.probe.whole() or self.probe.wan.shortest

    def full(self, stamped: bool) -> int:
        """The payload of a full segment: the largest seen if it is near the MSS, or the MSS less the timestamps."""
        near = self.largest + 40 >= self.mss
        return max(self.largest if near else self.mss - 12 if stamped else self.mss, 48)

    def believes(self, segment: Segment) -> bool:
        """An ACK is of data that passed."""
        end = self.end()
        return bool(segment.flags & SYN) or not segment.flags & ACK or (end is not None and not after(segment.ack, end))

    def let_through(self, ack: int, window: int) -> None:
        """The rightmost edge."""
        if after((ack + window) % WRAP, self.edge):
            self.edge = (ack + window) % WRAP

    def pairs(self) -> bool:
        """Steps of two segments, for delayed ACKs."""
        rtt = self.round_trip()
        return "stretches" in self.habits.last and rtt is not None and rtt < 400 * MS


def in_units(flow: Flow, window: int, full: int, unit: int) -> int:
    """Returns a window of whole segments in units of the field, rounded down for a sender that would fill a rest."""
    less = down(window, unit)
    return less if "splits" in flow.habits.last and less >= full else up(window, unit)


class Pink(Gateway):
    """The queue, the flows, and what §4 counts."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int) -> None:
        super().__init__(limit)
        self.params, self.rate_bps = params, rate_bps
        self.capacity = self.payload(rate_bps - params.reserve_bps)
        self.flows: dict[int, Flow] = {}
        self.kept = 65536  # part of the opened flows that sent data, each with a weight of 1/64
        self.samples = params.sampling == "always"
        self.sampled_until = 0
        self.surplus_until = 0
        self.now_ns = 0
        self.count: defaultdict[str, int] = defaultdict(int)

    # Which flows count.

    def in_list(self, name: str) -> int:
        """The number of flows in this list."""
        return sum(flow.listed == name for flow in self.flows.values())

    def counts(self, flow: Flow) -> bool:
        """A flow that is in n."""
        return flow.listed != "" and (flow.listed != "silent" or not self.samples)

    def unlist(self, flow: Flow) -> bool:
        """The flow does not count any more."""
        was, flow.listed, flow.claim = flow.listed, "", None
        flow.surplus, flow.grows, flow.small = 0, False, False
        return was != ""

    def learn(self, sent: bool) -> None:
        """A flow sent its first data, or timed out without data."""
        self.kept = min(self.kept - self.kept // 64 + (1024 if sent else 0), 65536)

    def expire(self) -> None:
        """Timeouts."""
        timeouts = {"silent": self.params.silent_ns, "busy": self.params.idle_ns}
        for flow in self.flows.values():
            if self.params.sampling != "off" and flow.listed and self.now_ns - flow.last_ns > timeouts[flow.listed]:
                self.drop_out(flow)
        self.end_sampling()

    def drop_out(self, flow: Flow) -> None:
        """A flow sent nothing until its timeout."""
        if flow.listed == "silent":
            self.learn(sent=False)
        self.unlist(flow)
        self.count["expired"] += 1

    def end_sampling(self) -> None:
        """No drop for a while."""
        if self.params.sampling == "after-drop" and self.now_ns > self.sampled_until:
            self.samples = False

    def overflowed(self) -> None:
        """A drop begins a sampling period."""
        if self.params.sampling == "after-drop":
            self.sampled_until, self.samples = self.now_ns + self.params.idle_ns, True

    def close(self, flow: Flow) -> None:
        """FIN, RST, or another connection."""
        self.count["ended"] += self.unlist(flow)
        flow.phase, flow.closed_ns = "closed", self.now_ns

    def note_sending(self, flow: Flow) -> None:
        """Data passes."""
        if flow.listed == "busy" and self.now_ns - flow.last_ns < 250 * MS:
            return
        if flow.listed == "silent":
            self.learn(sent=True)
        elif flow.listed == "":
            self.count["woken"] += 1
        flow.listed, flow.last_ns = "busy", self.now_ns

    def told(self, name: str, index: int, value: int, now_ns: int) -> None:
        """Another connection has the number of this flow; one that sent nothing counts as timed out."""
        del value
        if name == "flow-gone" and index in self.flows:
            self.now_ns, flow = now_ns, self.flows.pop(index)
            if flow.listed == "silent":
                self.drop_out(flow)
            self.close(flow)

    # Connections.

    def arrive(self, segment: Segment) -> Flow | None:
        """Returns the flow of a segment; `None` if nothing more is to be done for it."""
        self.now_ns = segment.t_ns
        self.expire()
        flow = self.flows.setdefault(segment.flow, Flow(segment.flow))
        if segment.flags & RST:
            if flow.phase not in ("unseen", "closed"):
                if self.believes_rst(flow, segment):
                    self.close(flow)
                else:
                    self.count["implausible"] += 1
            return None
        if segment.flags & (SYN | ACK) == SYN:
            if (opened := self.syn(flow, segment)) is None:
                return None
            flow = opened
        if flow.phase == "unseen":
            flow.phase = "stranger"
            self.count["left_alone"] += 1
        elif flow.phase == "closed" and not self.reopens(flow, segment):
            if segment.inbound and segment.flags & ACK and flow.flight != "none" and flow.believes(segment):
                scale = 0 if segment.flags & SYN else flow.scale or 0
                flow.acked = segment.ack if after(segment.ack, flow.acked) else flow.acked
                flow.let_through(segment.ack, segment.window << scale)
            return None
        return flow

    def believes_rst(self, flow: Flow, segment: Segment) -> bool:
        """RFC 9293 §3.10.7: it refuses a SYN, or is within 2^20 of the data."""
        if flow.phase == "opening" and flow.from_inside == segment.inbound:
            return bool(segment.flags & ACK) and segment.ack == (flow.isn + 1) % WRAP
        end = flow.probe.lan.newest if segment.inbound else flow.probe.wan.newest
        return end is None or (segment.seq - end + 2**20) % WRAP <= 2**21

    def reopens(self, flow: Flow, segment: Segment) -> bool:
        """New data, more than a round trip after a credible end, in units of 4096 ns."""
        end, known = (segment.seq + segment.payload) % WRAP, flow.end()
        if segment.inbound or not segment.payload or (known is not None and not after(end, known)):
            return False
        rtt = flow.round_trip() or NS_PER_S
        if (self.now_ns >> 12) - (flow.closed_ns >> 12) <= rtt >> 12:
            return False
        flow.phase, flow.fin_sent = ("open" if flow.known else "stranger"), False
        return True

    def syn(self, flow: Flow, segment: Segment) -> Flow | None:
        """A SYN without ACK."""
        same_side = flow.from_inside != segment.inbound
        if flow.phase == "opening" and not same_side:
            self.answer(flow, segment)
        elif flow.phase == "opening" and flow.isn == segment.seq:
            pass
        elif flow.phase == "open" and same_side and flow.isn == segment.seq:
            return None
        elif flow.phase == "open" and flow.sends() and self.now_ns - flow.last_ns < NS_PER_S:
            self.count["implausible"] += 1
            return None
        else:
            self.close(flow)
            self.count["started"] += 1
            flow = Flow(flow.number, "opening", not segment.inbound, segment.seq, segment.scale, segment.mss or 0)
            flow.listed, flow.last_ns = "silent", self.now_ns
            self.flows[flow.number] = flow
        return flow

    def answer(self, flow: Flow, segment: Segment) -> None:
        """The other SYN: windows are scaled by both or by none (RFC 7323 §2.2)."""
        both = flow.scale is not None and segment.scale is not None
        far = segment.scale if flow.from_inside else flow.scale
        flow.scale = min(far or 0, 14) if both else None
        flow.mss = min(flow.mss or 65535, segment.mss or 65535)
        flow.mss = 536 if not flow.mss or flow.mss == 65535 else flow.mss
        flow.phase, flow.known = "open", True

    def answers(self, flow: Flow, segment: Segment) -> None:
        """A SYN-ACK of the side that did not open."""
        both = SYN | ACK
        if segment.flags & both == both and flow.phase == "opening" and flow.from_inside == segment.inbound:
            self.answer(flow, segment)

    def outbound(self, segment: Segment) -> int:
        """Data."""
        if (flow := self.arrive(segment)) is not None:
            end = flow.end()
            flow.probe.show(segment)
            self.answers(flow, segment)
            self.note_standing(flow, segment, end)
            if segment.payload:
                self.note_sending(flow)
                self.note_data(flow, segment)
            if segment.flags & FIN:
                flow.fin_sent = True
        return segment.window

    def note_standing(self, flow: Flow, segment: Segment, end: int | None) -> None:
        """A segment is about to be noted; `end` is that of the data before it."""

    def note_data(self, flow: Flow, segment: Segment) -> None:
        """The size of segments, and whether the sender splits them."""
        if segment.payload <= flow.mss:
            flow.largest = max(flow.largest, segment.payload)
        if segment.payload < flow.full(segment.timestamps is not None) and not segment.flags & FIN:
            flow.habits.now.add("splits")

    def inbound(self, segment: Segment) -> int:
        """ACKs."""
        if (flow := self.arrive(segment)) is None:
            return segment.window
        if flow.phase != "stranger" and not flow.believes(segment):
            self.count["implausible"] += 1
            return segment.window
        flow.probe.show(segment)
        self.answers(flow, segment)
        if not segment.flags & ACK:
            return segment.window
        if flow.fin_sent and flow.end() == segment.ack:
            self.close(flow)
        elif flow.phase == "open":
            return self.clamp(flow, segment)
        return segment.window

    # Shares.

    def payload(self, rate_bps: int) -> int:
        """The part c of a rate, in thousandths of a byte per second."""
        return rate_bps * int(self.params.c * 1e9 + 0.5) * 1000 // (8 * 10**9)

    def window_of(self, rate: int, rtt_ns: int, n: int) -> int:
        """What a rate in thousandths of a byte per second gives to each of n flows in a round trip."""
        return min(rate * rtt_ns // (NS_PER_S * 1000 * max(n, 1)), MOST_WINDOW)

    def level(self, flow: Flow, rtt_ns: int, full: int) -> int:
        """Eq. (2) for a flow as if it were good. One that does not count is taken as if it sent now."""
        del full
        others = [one for one in self.flows.values() if self.counts(one) and one is not flow]
        n, claims = len(others) + 1, [one.claim for one in others if one.claim is not None]
        n += self.expected(flow)
        if not claims:
            return self.window_of(self.capacity, rtt_ns, n)
        equal = self.capacity * len(claims) // n  # what bad flows hold at most
        return self.window_of(self.capacity - min(1000 * sum(claims), equal), rtt_ns, n - len(claims))

    def expected(self, flow: Flow) -> int:
        """How many flows may send at once with one that has not yet sent."""
        if self.counts(flow) or flow.flight == "later" or not self.samples:
            return 0
        return max(self.in_list("silent") * self.kept // 65536 - (flow.listed != ""), 0)

    def clamp(self, flow: Flow, segment: Segment) -> int:
        """Writes RCV.WND."""
        unit = 1 << (0 if segment.flags & SYN else flow.scale or 0)
        told, full = segment.window * unit, flow.full(segment.timestamps is not None)
        seen = flow.round_trip()
        if seen is None and flow.flight == "none" and flow.probe.wan.newest is not None:
            seen = self.now_ns - flow.probe.wan.since_ns  # at least
        rtt_ns = None if seen is None else seen + full * 8 * NS_PER_S // self.rate_bps
        share = None if rtt_ns is None else self.level(flow, rtt_ns, full)
        if rtt_ns is not None and share is not None:
            taken = self.taken(flow, rtt_ns)
            if not segment.flags & SYN:
                self.judge(flow, segment.ack, min(told, taken), share, full, rtt_ns)
            share = min(share, taken, self.allowance(flow, full, rtt_ns))
        surplus = self.note_surplus(flow, segment.ack, (share or 0) + STEPS * full, rtt_ns or 0)
        self.count["acks"] += 1
        small = share is not None and share < full
        self.count["below_one_segment"] += small
        flow.small = small and flow.listed != ""
        written = self.write(flow, Given(segment.ack, told, full, unit, share, surplus, rtt_ns))
        self.count["rewritten"] += written < told
        return written // unit if written < told else segment.window

    def taken(self, flow: Flow, rtt_ns: int) -> int:
        """Only QRM behind PINK refuses what is beyond a node's budget."""
        del flow, rtt_ns
        return MOST_WINDOW

    def allowance(self, flow: Flow, full: int, rtt_ns: int) -> int:
        """Only "demand" limits what flows may have besides."""
        del flow, full, rtt_ns
        return MOST_WINDOW

    def judge(self, flow: Flow, ack: int, told: int, share: int, full: int, rtt_ns: int) -> None:
        """Figures 2 to 4."""
        del ack, full
        if self.params.reallocation == "off" or flow.listed != "busy" or flow.flight != "later":
            return
        if told < share:
            flow.claim = min(told * NS_PER_S // max(rtt_ns, 1), WRAP - 1)
        elif told > share:
            flow.claim = None

    def write(self, flow: Flow, given: Given) -> int:
        """Returns the window in bytes."""
        ack, told, full, unit, share = given.ack, given.told, given.full, given.unit, given.share
        held = None if flow.flight == "none" else (flow.edge - flow.acked) % WRAP
        if held is None:
            self.begin(flow, ack, full)
        if after(ack, (flow.acked + full) % WRAP):
            flow.habits.now.add("stretches")
        newly = (ack - flow.acked) % WRAP if after(ack, flow.acked) else 0
        flow.acked = (flow.acked + newly) % WRAP
        flow.let_through(ack, 0)
        if told == 0:
            return 0
        if share is None and held is not None:
            share = held + newly // 2
        if share is None:
            flow.let_through(ack, told)
            return told
        granted = self.grant(flow, given, share, held)
        if self.params.window != "literal":
            free = max(share - given.surplus, 0) if given.surplus else None
            room = self.grow(flow, held, newly, granted, free, given)
            granted = min(granted, up(max(room, full), unit))
        return self.let(flow, given, granted)

    def begin(self, flow: Flow, ack: int, full: int) -> None:
        """The first window of a connection."""
        flow.flight, flow.acked, flow.edge, flow.round_end = "first", ack, ack, ack
        flow.credit = min((flow.number * 0x9E3779B9 % WRAP) * full >> 32, 32767)

    def grant(self, flow: Flow, given: Given, share: int, held: int | None) -> int:
        """Ends a round if it is over, and returns the window of this ACK."""
        del held
        self.end_round(flow, given.ack, STEPS * max(given.full, given.unit), share)
        return self.granted(flow, share, given.full, given.unit)

    def let(self, flow: Flow, given: Given, granted: int) -> int:
        """Returns the window to write: at most the receiver's; with "advance" the right edge does not move left."""
        if self.params.shrink == "advance" and after(flow.edge, given.ack):
            left = (flow.edge - given.ack) % WRAP
            granted = max(granted, down(left, given.unit) if 2 * given.unit > given.full else up(left, given.unit))
        written = min(granted, given.told)
        flow.let_through(given.ack, written)
        return written

    def end_round(self, flow: Flow, ack: int, most: int, due: int, *, settled: bool = False) -> bool:
        """A round ends with the ACK of data beyond its first edge; its error is carried over."""
        if not after(ack, flow.round_end):
            return False
        if flow.flight == "later" and not settled:
            given, bound = (flow.edge - flow.round_end) % WRAP, min(most, 32767)
            given -= WRAP if given >= WRAP // 2 else 0
            flow.credit = min(max(flow.credit + due - given, -bound), bound)
        flow.flight, flow.round_end, flow.round_ns = "later", flow.edge, self.now_ns
        flow.habits = Habits(last=flow.habits.now)
        return True

    def granted(self, flow: Flow, share: int, full: int, unit: int) -> int:
        """The window of this ACK: one segment at least."""
        if self.params.window == "literal":
            return down(share, unit) if down(share, unit) >= full else up(full, unit)
        due = (share // 2 if flow.flight == "first" else share) + flow.credit
        step = 2 * full if flow.pairs() and unit < full else max(full, unit)
        return in_units(flow, max(due // step * step, full), full, unit)

    # Growth.

    def note_surplus(self, flow: Flow, ack: int, allowed: int, rtt_ns: int) -> int:
        """Returns what others have in flight beyond their shares, in bytes per round trip."""
        end = flow.end()
        sent = (end - ack) % WRAP if end is not None and after(end, ack) else 0
        beyond = max(sent - allowed, 0)
        if not beyond and not any(one.surplus for one in self.flows.values()):
            return 0
        flow.surplus = min(beyond * NS_PER_S // max(rtt_ns, 1), WRAP - 1)
        if flow.surplus:
            self.surplus_until = max(self.surplus_until, self.now_ns + rtt_ns)
        if self.now_ns >= self.surplus_until:
            return 0
        others = sum(one.surplus for one in self.flows.values() if one is not flow)
        return self.window_of(others * 1000, rtt_ns, 1)

    def grow(
        self,
        flow: Flow,
        held: int | None,
        newly: int,
        wanted: int,
        free: int | None,
        given: Given,
    ) -> int:
        """Returns the window up to which this ACK may open."""
        full = given.full
        if held is None:
            return wanted if free is None else free
        target = min(wanted if free is None else min(free, wanted), given.told)
        steps = 0 if free is not None else STEPS * full * (1 if flow.grows else 2)
        grows = target > held + steps
        if grows and not flow.grows:
            flow.round_end, flow.round_ns = flow.edge, self.now_ns
        flow.grows = grows
        if not grows:
            return wanted if free is None else held
        burst = self.room(full, given.rtt_ns or 0) // (2 * sum(one.grows for one in self.flows.values()))
        left = max(min((flow.round_end - flow.acked) % WRAP + newly, held), 1)
        owed = max(max(target - (flow.edge - flow.round_end) % WRAP, 0) - left, 0)
        return held + min(newly * owed // left, owed, max(newly // 8, newly * burst // max(held, 1)))

    def room(self, full: int, rtt_ns: int) -> int:
        """The bandwidth-delay product, or the queue if that is smaller."""
        return min(self.queue_room(full), self.window_of(self.capacity, rtt_ns, 1))

    def queue_room(self, full: int) -> int:
        """The queue in bytes."""
        kind, most = self.limit
        return most * full if kind == "packets" else most

    def report(self) -> dict[str, int]:
        """The counters of the page."""
        names = ("started", "woken", "ended", "expired", "acks", "rewritten", "left_alone", "below_one_segment")
        counters = {name: self.count[name] for name in (*names, "implausible")}
        counters["active"] = sum(self.counts(flow) for flow in self.flows.values())
        counters["lacking"] = sum(flow.claim is not None for flow in self.flows.values())
        return counters
