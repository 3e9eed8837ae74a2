"""PINK's default form, `window="steady"` and `reallocation="demand"`, as docs/algorithms/pink.md states it.

`PinkBeforeQrm` is the same in front of QRM: the flows of a node share its budget as all flows share the link. No
document has these rules. The numbers that the page does not give are named here: `FARTHEST` to `WEIGHT`. Times of
measurements are in units of 4096 ns, and times of rounds in units of 2^18 ns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.reference.ack import FIN, Segment
from penstock.reference.ack.pink import MOST_WINDOW, MS, STEPS, WRAP, Flow, Given, Params, Pink, after, in_units, up
from penstock.reference.ack.qrm import Params as QrmParams
from penstock.reference.ack.qrm import Qrm
from penstock.reference.link import NS_PER_S, Limit, Packet

PAUSE_NS, LONG_PAUSE_NS, FAR_NS = NS_PER_S, 4 * NS_PER_S, 250 * MS
LONG_NS = 400 * MS  # from this round trip time on, delayed ACKs do not matter
COARSE = 3  # a unit of the window field is coarse if it is more than this part of a segment
FARTHEST = 1.5  # steps after which a flow steps by its own account
RANGE, MEMORY, FORGET = 4, 16, 16  # segments owed to all, segments remembered, part forgotten with a round
CROWDED = 3  # part of the product, or of the queue, that makes a queue long
BORNE, BORNE_COARSE, WEIGHT = 3, 2, 16  # packets whose wait is made up for, and the weight of the mean of what waits


@dataclass
class Interval:
    """A measurement of what a flow uses, from an ACK on."""

    since: int  # in units of 4096 ns
    acked: int
    edge: int  # before that ACK
    ours: bool  # PINK wrote the window
    filled: bool | None = None  # the sender filled its window; not known at first


def stride(flow: Flow, given: Given) -> int:
    """Returns the bytes of one step: the units that hold a segment if they are coarse and the sender fills them."""
    coarse = 3 * given.unit > 2 * given.full
    fills = "splits" in flow.habits.last or given.unit > given.full
    return up(given.full, given.unit) if coarse and fills else given.full


def units(ns: int) -> int:
    """Units of 4096 ns."""
    return ns >> 12


class DefaultPink(Pink):
    """PINK that measures what flows use ("demand") or steps them together ("steady"), or both."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int) -> None:
        super().__init__(limit, params, rate_bps)
        self.demands = params.reallocation == "demand"
        self.used: dict[int, int] = {}  # bytes per second that a flow was measured to use, or claimed
        self.intervals: dict[int, Interval] = {}
        self.short: set[int] = set()  # the last segment was short although there was room: nothing more to send
        self.splitters: set[int] = set()
        self.held: set[int] = set()  # PINK's window limits the flow
        self.asleep: set[int] = set()  # open, idle, and in no list
        self.owed = 0  # to all flows, and not settled by a step
        self.backlog = 0  # mean of what waits, times `WEIGHT`

    # Which flows count.

    def set_claim(self, flow: Flow, claim: int | None) -> None:
        """Good, or bad with a claim."""
        flow.claim = claim
        if claim is not None:
            self.used[flow.number] = claim

    def forget(self, number: int) -> None:
        """Another connection."""
        self.used.pop(number, None)
        self.intervals.pop(number, None)
        for marks in (self.short, self.splitters, self.held, self.asleep):
            marks.discard(number)

    def syn(self, flow: Flow, segment: Segment) -> Flow | None:
        """Another connection knows nothing of the one before."""
        opened = super().syn(flow, segment)
        if opened is not None and opened is not flow:
            self.forget(flow.number)
        return opened

    def told(self, name: str, index: int, value: int, now_ns: int) -> None:
        """The number passes on."""
        super().told(name, index, value, now_ns)
        if name == "flow-gone":
            self.forget(index)

    def close(self, flow: Flow) -> None:
        """An end ends measurements."""
        super().close(flow)
        self.asleep.discard(flow.number)
        self.intervals.pop(flow.number, None)

    def expire(self) -> None:
        """With "demand" a flow that sent nothing for a pause is quiet: it counts, and claims nothing."""
        if not self.demands:
            return super().expire()
        off, flows = self.params.sampling == "off", list(self.flows.values())
        for flow in flows:
            if flow.listed == "silent" and not off and self.now_ns - flow.last_ns > self.params.silent_ns:
                self.drop_out(flow)
        for flow in flows:
            pause_ns = {"busy": PAUSE_NS, "far": LONG_PAUSE_NS}.get(flow.listed)
            if pause_ns is not None and self.now_ns - flow.last_ns > pause_ns:
                flow.listed, flow.last_ns = "quiet", self.now_ns
                self.set_claim(flow, 0)
        for flow in flows:
            quiet = flow.listed == "quiet" and not off
            if quiet and self.now_ns - flow.last_ns > max(self.params.idle_ns - PAUSE_NS, 0):
                self.drop_out(flow)
                if flow.phase == "open":
                    self.asleep.add(flow.number)
        return self.end_sampling()

    def note_sending(self, flow: Flow) -> None:
        """Data passes."""
        if not self.demands:
            return super().note_sending(flow)
        if flow.sends() and self.now_ns - flow.last_ns < 250 * MS:
            return None
        rtt_ns = flow.round_trip()
        if flow.listed == "quiet":
            self.intervals.pop(flow.number, None)
        elif flow.listed == "silent":
            self.learn(sent=True)
        elif flow.listed == "":
            if flow.flight == "later":
                self.begin_anew(flow)
            self.asleep.discard(flow.number)
            self.count["woken"] += 1
        flow.listed, flow.last_ns = ("far" if rtt_ns is not None and rtt_ns >= FAR_NS else "busy"), self.now_ns
        return None

    # What flows use.

    def wants_less(self, flow: Flow) -> bool:
        """It cannot use its share."""
        return flow.claim is not None

    def is_done(self, flow: Flow, ack: int) -> bool:
        """All is acknowledged, and the last segment was a short one, or a FIN follows."""
        end, ended = flow.end(), flow.fin_sent
        return (ended or flow.number in self.short) and end is not None and (end - ended) % WRAP == ack

    def note_data(self, flow: Flow, segment: Segment) -> None:
        """What a segment says about its sender's needs."""
        super().note_data(flow, segment)
        stamped, number = segment.timestamps is not None, flow.number
        full, end = flow.full(stamped), (segment.seq + segment.payload) % WRAP
        short = segment.payload < full
        if short and not segment.flags & FIN:
            self.splitters.add(number)
        room = (flow.edge - end + WRAP // 2) % WRAP - WRAP // 2
        (self.short.add if short and room >= flow.mss // 2 else self.short.discard)(number)
        if not self.demands:
            return
        self.look(flow, segment, full)
        if self.wants_less(flow) and self.is_held(flow, full):
            self.wake(flow)
            self.begin_anew(flow)
        sent, rtt_ns = flow.end(), flow.round_trip()
        alone = flow.flight == "first" and flow.sends() and number in self.short and not self.wants_less(flow)
        if alone and rtt_ns is not None and sent is not None:
            rtt_ns += full * 8 * NS_PER_S // self.rate_bps
            self.set_claim(flow, min((sent - flow.acked) % WRAP * NS_PER_S // rtt_ns, WRAP - 1))

    def begin_anew(self, flow: Flow) -> None:
        """Nothing is owed for a pause."""
        self.intervals.pop(flow.number, None)
        flow.flight, flow.round_end, flow.credit = "first", flow.acked, 0

    def wake(self, flow: Flow) -> None:
        """It filled its window, so it can use more."""
        self.set_claim(flow, None)

    def is_held(self, flow: Flow, full: int) -> bool:
        """It sent all that PINK's window lets it send."""
        end = flow.end()
        return flow.number in self.held and after(((flow.acked if end is None else end) + full) % WRAP, flow.edge)

    def look(self, flow: Flow, segment: Segment, full: int) -> None:
        """The first data that an ACK lets go, a LAN half later, begin where the sender had stopped."""
        interval, lan = self.intervals.get(flow.number), flow.probe.lan.shortest
        if interval is None or interval.filled is not None or lan is None:
            return
        elapsed = units(self.now_ns) - interval.since
        if elapsed < units(lan) or flow.end() != (segment.seq + segment.payload) % WRAP:
            return
        filled = after((segment.seq + full) % WRAP, interval.edge)
        late = min(lan // 2 + MS, (flow.round_trip() or 0) // 16)
        if filled or elapsed >= units(lan + late):
            interval.filled = filled

    def judge(self, flow: Flow, ack: int, told: int, share: int, full: int, rtt_ns: int) -> None:
        """Good, or bad with what it used and an eighth more."""
        if not self.demands:
            return super().judge(flow, ack, told, share, full, rtt_ns)
        if not flow.sends():
            return None
        if self.by_budget(flow, share, full, rtt_ns):
            self.intervals.pop(flow.number, None)
        elif not self.wants_less(flow) and self.is_done(flow, ack):
            self.intervals.pop(flow.number, None)
            self.set_claim(flow, min((ack - flow.acked) % WRAP * NS_PER_S // rtt_ns, WRAP - 1))
        elif flow.flight == "later":
            self.judge_by_use(flow, share, full, rtt_ns)
        return None

    def judge_by_use(self, flow: Flow, share: int, full: int, rtt_ns: int) -> None:
        """At the end of an interval, a round trip and a quarter long at least."""
        if (interval := self.intervals.get(flow.number)) is None:
            return
        elapsed, round_trip = units(self.now_ns) - interval.since, max(units(rtt_ns), 1)
        if elapsed < round_trip + round_trip // 4 or (interval.filled is None and elapsed < 4 * round_trip):
            return
        used = min((flow.acked - interval.acked) % WRAP * NS_PER_S // (elapsed << 12), WRAP - 1)
        before = self.used.get(flow.number, 0)
        grew = used * 4 > (before + min(full * NS_PER_S // rtt_ns, WRAP - 1)) * 5
        claim = min(used + used // 8, WRAP - 1)
        first = before == 0 and flow.claim is None
        taken = self.taken(flow, rtt_ns)
        enough = self.window_of(claim * 1000, rtt_ns, 1) >= min(share, taken)
        if not ((interval.filled and interval.ours) or grew or first or enough):
            self.set_claim(flow, claim)
        elif taken < share:
            self.hold_back(flow, min(taken * NS_PER_S // rtt_ns, WRAP - 1))
        else:
            self.set_claim(flow, None)
            self.used[flow.number] = used
        del self.intervals[flow.number]

    def by_budget(self, flow: Flow, share: int, full: int, rtt_ns: int) -> bool:
        """Without budgets of nodes what a flow uses decides."""
        del flow, share, full, rtt_ns
        return False

    def hold_back(self, flow: Flow, claim: int) -> None:
        """The budget of its node leaves a flow no more, though it could use its part of that."""
        self.set_claim(flow, claim)

    def allowance(self, flow: Flow, full: int, rtt_ns: int) -> int:
        """What a flow that leaves its share may send: its claim, and a part of half of the product."""
        if not self.demands or not self.wants_less(flow):
            return MOST_WINDOW
        k = sum(one.claim is not None for one in self.flows.values()) + len(self.asleep)
        part = self.room(full, rtt_ns) // (2 * max(k, 1) * (k + 1))
        return max(self.window_of(1000 * self.used.get(flow.number, 0), rtt_ns, 1) + part, 2 * full)

    # Windows.

    def write(self, flow: Flow, given: Given) -> int:
        """Writes, and begins a measurement."""
        edge = flow.edge
        self.by_share = False
        written = super().write(flow, given)
        ours = written < given.told and (self.by_share or not self.wants_less(flow))
        (self.held.add if ours else self.held.discard)(flow.number)
        if self.demands and flow.number not in self.intervals and flow.flight == "later":
            self.intervals[flow.number] = Interval(units(self.now_ns), flow.acked, edge, ours)
        return written

    def grant(self, flow: Flow, given: Given, share: int, held: int | None) -> int:
        """Steps, if windows are steady."""
        if self.params.window != "steady":
            granted = super().grant(flow, given, share, held)
        elif (stepped := self.steady(flow, given, share, held)) is not None:
            granted = stepped
        else:
            granted = self.granted(flow, share, given.full, given.unit)
        self.by_share = granted < given.told
        return granted

    def is_coarse(self, given: Given) -> bool:
        """Whole segments cannot be written nearly."""
        return COARSE * given.unit > given.full

    def lately(self) -> int:
        """Bytes that waited lately."""
        return self.backlog // WEIGHT

    def dequeue(self, now_ns: int) -> Packet | None:
        """Returns the head of the queue, and adds the backlog behind it to the average."""
        packet = super().dequeue(now_ns)
        if packet is not None:
            self.backlog += self.bytes - self.backlog // WEIGHT
        return packet

    def due(self, flow: Flow, share: int, given: Given) -> int:
        """What the rate of the share gives in the time of the round, less the wait here beyond what is borne.

        In the round of a first flight, before which the flow may have waited, it is the share.
        """
        if given.rtt_ns is None or flow.flight == "first":
            return share
        rtt_ns = max(given.rtt_ns, 1)
        borne = BORNE_COARSE if self.is_coarse(given) else BORNE
        wait_ns = max(self.lately() - borne * given.full, 0) * 8 * NS_PER_S // self.rate_bps
        took_ns = ((self.now_ns >> 18) - (flow.round_ns >> 18)) % 2**16 << 18
        took_ns = min(max(took_ns - wait_ns, rtt_ns // 2), 4 * rtt_ns) if took_ns > wait_ns else rtt_ns // 2
        return share * ((took_ns + rtt_ns) // 2 if rtt_ns >= LONG_NS else took_ns) // rtt_ns

    def steady(self, flow: Flow, given: Given, share: int, held: int | None) -> int | None:
        """Returns the window next to that before; `None` if the flow does not step."""
        lacks = self.wants_less(flow)
        owed, due = flow.credit, self.due(flow, share, given)
        full = stride(flow, given)
        # One step beyond what is due, a flow steps up if a step and a half is owed to it.
        most = max(STEPS * max(given.full, given.unit), 5 * full * (1 + flow.pairs()) // 2)
        ended = self.end_round(flow, given.ack, most, due, settled=flow.grows or lacks)
        if held is None or lacks or flow.flight != "later":
            return None
        full, pairs = stride(flow, given), flow.pairs()
        few = pairs and share < 2 * full
        step = 2 * full if pairs and not few else full
        current = max((held + step // 2) // step, 1) * step
        if self.lately() > self.room(given.full, given.rtt_ns or 0) // CROWDED:
            window = max(share // step, 1) * step
        elif ended:
            window = self.stepped(flow, share if few else due, step, current, full, few=few)
        elif current + 2 * step >= share and current <= share + share // 8 + step:
            window = current
        else:
            window = max((share + step // 2) // step, 1) * step
        window = min(window, 2 * full) if few else window
        if ended:
            owed = self.owed + flow.credit - owed + current - window
            self.owed = min(max(owed - int(owed / FORGET), -MEMORY * full), MEMORY * full)
        return in_units(flow, window, full, given.unit)

    def stepped(self, flow: Flow, due: int, step: int, current: int, full: int, *, few: bool) -> int:
        """up if due + credit - window >= r 3/2 step; down if <= -(1 - r) 3/2 step. r is in parts of 1024."""
        lower = max(due // step, 1) * step
        least, most = (step, 2 * step) if few else (max(lower - step, step), lower + 2 * step)
        current = min(max(current, least), most)
        r = min(max(512 - int(self.owed * 1024 / (RANGE * full)), 0), 1024)
        up_at = int(FARTHEST * step * (r if current <= lower else 1024)) // 1024
        down_at = int(FARTHEST * step * (1024 - r if current >= lower + step else 1024)) // 1024
        owed = due + flow.credit - current
        if owed >= up_at:
            return min(current + step, most)
        return max(current - step, least) if owed <= -down_at else current

    def let(self, flow: Flow, given: Given, granted: int) -> int:
        """No tails for senders that split; and who has nothing more to send may lose its edge."""
        if self.params.window == "steady" and not self.is_coarse(given) and not flow.grows:
            granted = self.without_tail(flow, given, granted)
        granted = self.young_window(flow, given, granted)
        if not (self.demands and flow.claim is not None and self.is_done(flow, given.ack)):
            return super().let(flow, given, granted)
        written = min(granted, given.told)
        flow.edge = given.ack
        flow.let_through(given.ack, written)
        return written

    def young_window(self, flow: Flow, given: Given, granted: int) -> int:
        """Only WEIR treats young connections otherwise."""
        del flow, given
        return granted

    def without_tail(self, flow: Flow, given: Given, granted: int) -> int:
        """A tail is less than half a segment."""
        right, rtt_ns = (given.ack + granted) % WRAP, flow.round_trip()
        end = given.ack if flow.end() is None else flow.end()
        far = rtt_ns is None or rtt_ns >= LONG_NS
        if given.unit == 1 or far or flow.number not in self.splitters or end is None or not after(right, end):
            return granted
        tail = (right - end) % WRAP % given.full
        less = max(granted - up(tail, given.unit), 0)
        return granted if tail == 0 or 2 * tail >= given.full or less < given.full else less


class PinkBeforeQrm(DefaultPink):
    """PINK in front of QRM (`queue="qrm"`), with "demand"."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int) -> None:
        super().__init__(limit, params, rate_bps)
        self.qrm = Qrm(limit, QrmParams(slack=3 * 1500), rate_bps)
        self.nodes: dict[int, int] = {}
        self.claims: dict[int, int] = {}  # of flows that cannot use their part of their node's budget
        self.budget_bps: int | None = None  # of the node whose ACK passes

    def told(self, name: str, index: int, value: int, now_ns: int) -> None:
        """PINK hears of owners too."""
        super().told(name, index, value, now_ns)
        self.qrm.told(name, index, value, now_ns)
        if name == "owner":
            self.nodes[index] = value

    def outbound(self, segment: Segment) -> int:
        """Both see it."""
        window = super().outbound(segment)
        self.qrm.outbound(segment)
        return window

    def inbound(self, segment: Segment) -> int:
        """QRM tells the budget first."""
        self.budget_bps = self.qrm.budget_of(segment.flow)
        window = super().inbound(segment)
        self.qrm.inbound(segment)
        return window

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """QRM refuses."""
        return self.qrm.judge_arrival(packet, now_ns)

    def unlist(self, flow: Flow) -> bool:
        """A flow that stops has no claim."""
        self.claims.pop(flow.number, None)
        return super().unlist(flow)

    def set_claim(self, flow: Flow, claim: int | None) -> None:
        """A claim on the link is one on the node's budget."""
        super().set_claim(flow, claim)
        self.claims.pop(flow.number, None)
        if claim is not None:
            self.claims[flow.number] = claim

    def hold_back(self, flow: Flow, claim: int) -> None:
        """It can use its part of the budget."""
        super().hold_back(flow, claim)
        self.claims.pop(flow.number, None)

    def wants_less(self, flow: Flow) -> bool:
        """Not because of the budget of its node."""
        return flow.claim is not None and not (flow.number in self.nodes and flow.number not in self.claims)

    def wake(self, flow: Flow) -> None:
        """Whether the budget lets it shows with the next ACK: until then it claims no more of the link."""
        if flow.number in self.nodes:
            self.hold_back(flow, self.used.get(flow.number, 0))
        else:
            super().wake(flow)

    def by_budget(self, flow: Flow, share: int, full: int, rtt_ns: int) -> bool:
        """A flow that is the only one to use its node's budget, which its level exceeds but for a segment, keeps it."""
        taken = self.taken(flow, rtt_ns)
        held_back = flow.number in self.nodes and taken < min(MOST_WINDOW, share + full)
        own = held_back and self.part(flow)[1] == 1
        woke = flow.claim is not None and not self.wants_less(flow)
        if flow.flight == "later" and (own or woke):
            if held_back:
                self.hold_back(flow, min(taken * NS_PER_S // rtt_ns, WRAP - 1))
            else:
                self.set_claim(flow, None)
        return own

    def taken(self, flow: Flow, rtt_ns: int) -> int:
        """The flow's part of its node's budget."""
        if self.budget_bps is None:
            return MOST_WINDOW
        budget, users = self.part(flow)
        return self.window_of(budget, rtt_ns, users)

    def part(self, flow: Flow) -> tuple[int, int]:
        """What the flows of the node that could use it share, and their number: max-min."""
        budget, node = max(self.payload(self.budget_bps or 0), 1), self.nodes.get(flow.number)
        if node is None:
            return budget, 1
        others = [
            one
            for one in self.flows.values()
            if one is not flow and self.nodes.get(one.number) == node and one.listed not in ("", "silent")
        ]
        n, claims = len(others) + 1, [self.claims[one.number] for one in others if one.number in self.claims]
        if claims:
            budget -= min(1000 * sum(claims), budget * len(claims) // n)
        return budget, n - len(claims)
