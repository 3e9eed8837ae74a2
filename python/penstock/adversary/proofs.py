"""Small models of PINK's Theorem 1 and QRM's Theorem 2, and what an SMT solver (z3) says about them.

Two kinds of models (docs/results/adversary.md states their assumptions):

    induction   a system of states and steps; the solver shows that an invariant holds at first, that no step breaks it,
                and that it implies the bound: so it holds for ever. Amounts are real numbers, and delays are any
    slots       so many slots of time, written out; the solver finds a run in which the bound is violated, or shows that
                there is none. The link sends 1 in a slot, so a round trip of R slots is a product of R

A theorem that holds with one rule and not with another says which rule it needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import z3

PROVED, REFUTED, UNKNOWN = "proved", "counter-example", "unknown"
_PATIENCE_MS = 60_000


@dataclass(frozen=True)
class Answer:
    """What the solver says."""

    word: str
    seconds: float
    worst: Fraction | None = (
        None  # of a counter-example: the queue as a part of the product of rate and round trip time
    )
    trace: tuple[tuple[Fraction, ...], ...] = ()  # of a counter-example: rows as its model describes them


def _answer(claim: Callable[[z3.Solver], None], read: Callable[[z3.ModelRef], Answer]) -> Answer:
    """Asks for a counter-example to a claim, which adds its negation."""
    solver, begin = z3.Solver(), time.process_time()
    solver.set("timeout", _PATIENCE_MS)
    claim(solver)
    found = solver.check()
    seconds = time.process_time() - begin
    if found == z3.unsat:
        return Answer(PROVED, seconds)
    if found != z3.sat:
        return Answer(UNKNOWN, seconds)
    shown = read(solver.model())
    return Answer(REFUTED, seconds, shown.worst, shown.trace)


def _add(terms: Sequence[z3.BoolRef], solver: z3.Solver) -> None:
    solver.add(*terms)


def _number(model: z3.ModelRef, term: z3.ArithRef | float) -> Fraction:
    value = model.eval(z3.ToReal(term) if z3.is_int(term) else term, model_completion=True)
    return Fraction(value.numerator_as_long(), value.denominator_as_long())


# Induction.


@dataclass(frozen=True)
class System:
    """States and steps; `invariant` is what the induction is about, and `bound` what it has to imply."""

    begin: Sequence[z3.BoolRef]  # what holds in the first state
    legal: Sequence[z3.BoolRef]  # what holds of all that does not change
    step: Sequence[z3.BoolRef]  # between a state and the next
    invariant: z3.BoolRef
    after: z3.BoolRef  # the invariant of the next state
    bound: z3.BoolRef


def induction(system: System) -> Answer:
    """Proves the bound by induction. A counter-example is one of a step, which need not be reached."""
    claims = (
        [*system.begin, z3.Not(system.invariant)],
        [system.invariant, *system.step, z3.Not(system.after)],
        [system.invariant, z3.Not(system.bound)],
    )
    seconds = 0.0
    for claim in claims:
        found = _answer(partial(_add, [*system.legal, *claim]), lambda _: Answer(REFUTED, 0))
        seconds += found.seconds
        if found.word != PROVED:
            return Answer(found.word, seconds)
    return Answer(PROVED, seconds)


def _reals(name: str, count: int) -> list[z3.ArithRef]:
    return [z3.Real(f"{name}{place}") for place in range(count)]


@dataclass(frozen=True)
class _Flows:
    """What of each flow is on its way to the gateway, waits there, and is beyond it; its window; whether it counts."""

    coming: list[z3.ArithRef]
    waiting: list[z3.ArithRef]
    beyond: list[z3.ArithRef]
    window: list[z3.ArithRef]
    counts: list[z3.BoolRef]

    @classmethod
    def of(cls, count: int, mark: str) -> _Flows:
        names = ("coming", "waiting", "beyond", "window")
        coming, waiting, beyond, window = (_reals(f"{name}{mark}", count) for name in names)
        return cls(coming, waiting, beyond, window, [z3.Bool(f"counts{mark}{place}") for place in range(count)])

    def unacknowledged(self, flow: int) -> z3.ArithRef:
        return self.coming[flow] + self.waiting[flow] + self.beyond[flow]

    def share(self, flow: int, products: Sequence[z3.ArithRef]) -> z3.ArithRef:
        """Returns the product of a flow, divided by the number of flows that count."""
        number = z3.Sum([z3.If(one, 1, 0) for one in self.counts])
        found = products[flow]
        for count in range(2, len(products) + 1):
            found = z3.If(number == count, products[flow] / count, found)
        return found


def windows(flows: int, *, end_when_acknowledged: bool = True, factor: Fraction = Fraction(1)) -> System:
    """PINK with flows that were there from the beginning and may end, over paths of any delays.

    `factor` is c with headers. A flow counts until all that it sent is acknowledged, or else as long as it likes.
    """
    products = _reals("product", flows)
    now, then, sent = _Flows.of(flows, "_"), _Flows.of(flows, "'"), _reals("sent", flows)
    moved = [_reals(name, flows) for name in ("arrives", "leaves", "acknowledged")]
    step: list[z3.BoolRef] = [amount >= 0 for amounts in (sent, *moved) for amount in amounts]
    for i in range(flows):
        arrives, leaves, acknowledged = (amounts[i] for amounts in moved)
        step += [
            then.coming[i] == now.coming[i] + sent[i] - arrives,
            then.waiting[i] == now.waiting[i] + arrives - leaves,
            then.beyond[i] == now.beyond[i] + leaves - acknowledged,
            *(z3.And(amount >= 0) for amount in (then.coming[i], then.waiting[i], then.beyond[i])),
            z3.Implies(then.counts[i], now.counts[i]),
            z3.Or(then.window[i] == now.window[i], then.window[i] <= factor * now.share(i, products)),
            z3.Or(sent[i] == 0, z3.And(then.counts[i], then.unacknowledged(i) <= then.window[i])),
        ]
        if end_when_acknowledged:
            step.append(z3.Implies(z3.And(now.counts[i], z3.Not(then.counts[i])), then.unacknowledged(i) == 0))
    queue, number = z3.Sum(now.waiting), z3.Sum([z3.If(one, 1, 0) for one in now.counts])
    total = z3.Sum([z3.If(one, product, 0) for one, product in zip(now.counts, products, strict=True)])
    mean = [z3.Implies(number == count, queue <= total / count) for count in range(1, flows + 1)]
    begin = [now.unacknowledged(i) == 0 for i in range(flows)] + [now.window[i] == 0 for i in range(flows)]
    some = [amount[i] >= 0 for amount in (now.coming, now.waiting, now.beyond) for i in range(flows)]
    return System(
        [*begin, *some],
        [product >= 0 for product in products],
        step,
        _within(now, products),
        _within(then, products),
        z3.And(mean),
    )


def _within(flows: _Flows, products: Sequence[z3.ArithRef]) -> z3.BoolRef:
    """The invariant: a flow that counts has its share at most in the network, and one that ended has nothing."""
    held = []
    for i in range(len(products)):
        share = flows.share(i, products)
        amounts = (flows.coming[i], flows.waiting[i], flows.beyond[i])
        held += [amount >= 0 for amount in amounts]
        held.append(z3.If(flows.counts[i], flows.unacknowledged(i) <= share, flows.unacknowledged(i) == 0))
        held.append(z3.Implies(flows.counts[i], flows.window[i] <= share))
    return z3.And(held)


def buckets(
    nodes: int, *, granted: Fraction = Fraction(1), large: bool = False, room_for_packet: bool = False
) -> System:
    """QRM with buckets: nodes send anything at any time. `granted` is the sum of budgets as a part of the rate.

    `large`: an empty bucket takes any packet up to the largest. `room_for_packet`: the bound counts that packet for
    nodes whose product is smaller.
    """
    depths, largest = _reals("product", nodes), z3.Real("largest")
    level, after = _reals("level", nodes), _reals("level'", nodes)
    queue, then, carried = z3.Real("queue"), z3.Real("queue'"), z3.Real("carried")
    drained, size = _reals("drained", nodes), z3.Real("size")
    time_passes = z3.And(
        [carried * granted.numerator >= z3.Sum(drained) * granted.denominator, then == _less(queue, carried)]
        + [z3.And(one >= 0, new == _less(old, one)) for one, old, new in zip(drained, level, after, strict=True)]
    )
    arrivals = []
    for node in range(nodes):
        fits = level[node] + size <= depths[node]
        taken = z3.Or(fits, z3.And(level[node] == 0, size <= largest)) if large else fits
        rest = [after[other] == level[other] for other in range(nodes) if other != node]
        arrivals.append(z3.And(taken, size >= 0, after[node] == level[node] + size, then == queue + size, *rest))
    most = [z3.If(depth < largest, largest, depth) if large else depth for depth in depths]
    allowed = most if room_for_packet else depths

    def within(levels: Sequence[z3.ArithRef], waits: z3.ArithRef) -> z3.BoolRef:
        each = [z3.And(one >= 0, one <= end) for one, end in zip(levels, most, strict=True)]
        return z3.And(waits >= 0, waits <= z3.Sum(levels), *each)

    return System(
        [queue == 0, *(one == 0 for one in level)],
        [largest >= 0, *(depth >= 0 for depth in depths)],
        [z3.Or(time_passes, *arrivals)],
        within(level, queue),
        within(after, then),
        queue <= z3.Sum(allowed),
    )


def _less(amount: z3.ArithRef, by: z3.ArithRef) -> z3.ArithRef:
    return z3.If(amount > by, amount - by, 0)


# Time in slots, and events.


@dataclass(frozen=True)
class Rules:
    """Two flows, or one and several that join together, behind PINK.

    At first the first flow has its window and nothing is sent. Senders send what they like, up to their windows.
    """

    rtt: int = 4  # slots
    slots: int = 12
    ends: str = ""  # the first flow may end; it counts until its "fin", or until that is "acknowledged"
    joins: str = ""  # the others join; they count from their "syn" or from their first "data"
    joining: int = 1
    first: Fraction = Fraction(1)  # of its share: the window of a flow that joins, until its data is acknowledged
    measured: bool = False  # the round trip time of those that join is what their handshake took
    greedy: bool = False  # the first flow sends whatever its window allows, so that it always gets ACKs
    fifo: bool = True  # else the link serves in any order, so a proof is of more


class _Slots:
    """The formula of so many slots: `sent`, `left` and `windows` of both sides over time."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.sent = [[z3.Real(f"sent{i}_{t}") for t in range(rules.slots)] for i in range(2)]
        self.left = [[z3.Real(f"left{i}_{t}") for t in range(rules.slots)] for i in range(2)]
        self.end, self.syn, self.opened = z3.Int("end"), z3.Int("syn"), z3.Int("opened")
        self.product = z3.Real("product")  # of rate and the round trip time that the others measure
        self.made: list[z3.BoolRef] = [self.syn >= 0, self.end >= 0]
        self.queue = [self._all(self.sent, t) - self._all(self.left, t - 1) for t in range(rules.slots)]
        self._opens()
        before: list[z3.ArithRef] = [self.share(0, 0), z3.RealVal(0) if rules.joins else self.share(1, 0)]
        for t in range(rules.slots):
            before = [self._slot(flow, t, before[flow]) for flow in range(2)]
            self._link(t)

    def at(self, table: Sequence[Sequence[z3.ArithRef]], flow: int, t: int) -> z3.ArithRef:
        """Returns an entry; nothing is sent before the first slot."""
        return table[flow][t] if t >= 0 else z3.RealVal(0)

    def _all(self, table: Sequence[Sequence[z3.ArithRef]], t: int) -> z3.ArithRef:
        return self.at(table, 0, t) + self.at(table, 1, t)

    def acknowledged(self, flow: int, t: int) -> z3.ArithRef:
        return self.at(self.left, flow, t - self.rules.rtt)

    def counts(self, flow: int, t: int) -> z3.BoolRef:
        """True if the gateway counts a flow when it passes ACKs in slot t."""
        if flow == 0:
            ended = z3.BoolVal(False)
            if self.rules.ends:
                ended = z3.And(t > self.end)
            if self.rules.ends == "acknowledged":
                ended = z3.And(ended, self.acknowledged(0, t) == self.at(self.sent, 0, t - 1))
            return z3.Not(ended)
        if not self.rules.joins:
            return z3.BoolVal(True)
        return z3.And(t > self.syn) if self.rules.joins == "syn" else z3.And(self.at(self.sent, 1, t - 1) > 0)

    def share(self, flow: int, t: int) -> z3.ArithRef:
        """Returns what an ACK of a flow says in slot t: its product divided by the flows that count with itself."""
        others = self.rules.joining
        if flow == 0:
            return z3.If(self.counts(1, t), z3.Q(self.rules.rtt, 1 + others), z3.RealVal(self.rules.rtt))
        return z3.If(self.counts(0, t), self.product * others / (1 + others), self.product)

    def _opens(self) -> None:
        """The SYN of those that join waits behind what was sent; its answer comes a round trip after it has left."""
        rtt = self.rules.rtt
        if not self.rules.joins:
            self.made += [self.opened == 0, self.product == rtt]
            return
        cases = []
        for syn in range(self.rules.slots - rtt):
            for out in range(syn, self.rules.slots - rtt):
                before = self._all(self.sent, syn)
                waits = z3.And(
                    self._all(self.left, out) >= before, *[self._all(self.left, out - 1) < before] * (out > syn)
                )
                measured = rtt + out - syn if self.rules.measured else rtt
                cases.append(z3.And(self.syn == syn, self.opened == out + rtt, self.product == measured, waits))
        self.made.append(z3.Or(cases))

    def _slot(self, flow: int, t: int, before: z3.ArithRef) -> z3.ArithRef:
        """Adds what a flow may send in a slot; returns its window."""
        share, told = self.share(flow, t), self.acknowledged(flow, t) > self.acknowledged(flow, t - 1)
        window = z3.If(told, share, before)
        sent, earlier = self.sent[flow][t], self.at(self.sent, flow, t - 1)
        may = z3.BoolVal(True)
        if flow == 1 and self.rules.joins:
            first = share * z3.Q(self.rules.first.numerator, self.rules.first.denominator)
            window = z3.If(t == self.opened, first, window)
            may = t >= self.opened
        if flow == 0 and self.rules.ends:
            may = t <= self.end
        room = z3.And(may, sent <= self.acknowledged(flow, t) + window)
        self.made += [sent >= earlier, z3.Or(sent == earlier, room)]
        if flow == 0 and self.rules.greedy:
            self.made.append(sent >= self.acknowledged(flow, t) + window)
        return window

    def _link(self, t: int) -> None:
        """The link sends 1 in a slot, or what there is."""
        arrived, before, after = self._all(self.sent, t), self._all(self.left, t - 1), self._all(self.left, t)
        self.made.append(after == z3.If(arrived < before + 1, arrived, before + 1))
        for flow in range(2):
            left, earlier = self.left[flow][t], self.at(self.left, flow, t - 1)
            self.made += [left >= earlier, left <= self.sent[flow][t]]
        if self.rules.fifo:
            self.made.append(z3.Or([self._between(t, s) for s in range(t + 1)]))

    def _between(self, t: int, s: int) -> z3.BoolRef:
        """True if what left until slot t was sent until slot s, and all that was sent before has left."""
        ends = ((self.at(self.sent, flow, s - 1), self.left[flow][t], self.sent[flow][s]) for flow in range(2))
        return z3.And([z3.And(low <= left, left <= high) for low, left, high in ends])


def slotted(rules: Rules, bound: Fraction = Fraction(1)) -> Answer:
    """Looks for a run whose queue is above `bound` products. The trace has what both sent until each slot."""
    model = _Slots(rules)
    most = bound * rules.rtt

    def claim(solver: z3.Solver) -> None:
        solver.add(*model.made, z3.Or([queue > z3.Q(most.numerator, most.denominator) for queue in model.queue]))

    def read(found: z3.ModelRef) -> Answer:
        worst = max(_number(found, queue) for queue in model.queue) / rules.rtt
        rows = zip(*model.sent, strict=True)
        return Answer(REFUTED, 0, worst, tuple(tuple(_number(found, one) for one in row) for row in rows))

    return _answer(claim, read)


def counter(bound: Fraction = Fraction(1), events: int = 4) -> Answer:
    """QRM with the paper's counter and one node that has the whole link: looks for a queue above `bound` products.

    Time is in round trips, amounts in products. The trace has (time, amount) of each event.
    """
    at, size = _reals("at", events), _reals("size", events)
    made: list[z3.BoolRef] = [at[0] == 0, *(one > 0 for one in size)]
    opened, counted, queue = z3.RealVal(0), z3.RealVal(0), z3.RealVal(0)
    queues = []
    for place in range(events):
        if place:
            made.append(at[place] >= at[place - 1])
            again = at[place] >= opened + 1
            opened, counted = z3.If(again, at[place], opened), z3.If(again, 0, counted)
            queue = _less(queue, at[place] - at[place - 1])
        made.append(counted + size[place] <= 1)
        counted, queue = counted + size[place], queue + size[place]
        queues.append(queue)

    def claim(solver: z3.Solver) -> None:
        solver.add(*made, z3.Or([one > z3.Q(bound.numerator, bound.denominator) for one in queues]))

    def read(found: z3.ModelRef) -> Answer:
        rows = tuple((_number(found, when), _number(found, one)) for when, one in zip(at, size, strict=True))
        return Answer(REFUTED, 0, max(_number(found, one) for one in queues), rows)

    return _answer(claim, read)


# What is asked.


@dataclass(frozen=True)
class Case:
    """A claim about a model, what is expected of the solver, and how a counter-example is replayed."""

    theorem: str
    model: str  # its rules, in words
    bound: str
    expected: str
    ask: Callable[[], Answer]
    replay: str = ""  # the name of what `tools/measure/adversary-theorems` replays: a scenario of PINK, or "counter"


_PINK, _QRM = "PINK, 1", "QRM, 2"
_NINE = 9  # slots: more than two round trips


def _slots(model: str, rules: Rules, bound: Fraction, expected: str, replay: str = "") -> Case:
    text = f"queue <= {bound} BW RTT" if bound != 1 else "queue <= BW RTT"
    return Case(_PINK, model, text, expected, lambda: slotted(rules, bound), replay)


_FIN = Rules(ends="fin", slots=_NINE)
_ENDED = Rules(ends="acknowledged", slots=_NINE, fifo=False)
_BUSY = Rules(joins="syn", slots=12, greedy=True, fifo=False)
_PAUSES = Rules(joins="syn", slots=_NINE)
_HALF = Rules(joins="data", first=Fraction(1, 2), slots=_NINE)
_MEASURED = Rules(joins="syn", measured=True, joining=4, slots=12)

CASES: tuple[Case, ...] = (
    Case(
        _PINK,
        "four flows, any delays and paths; a flow may end, and counts until all its data is acknowledged",
        "queue <= BW times the mean RTT",
        PROVED,
        lambda: induction(windows(4)),
    ),
    _slots("one of two flows ends, and counts until its FIN", _FIN, Fraction(9, 8), REFUTED),
    _slots("the same; it counts until its FIN is acknowledged", _ENDED, Fraction(1), PROVED),
    _slots("a flow joins one that always sends, and counts from its SYN", _BUSY, Fraction(1), PROVED),
    _slots("a flow joins one that pauses, and counts from its SYN", _PAUSES, Fraction(11, 8), REFUTED, "pauses"),
    _slots("the same", replace(_PAUSES, fifo=False), Fraction(3, 2), PROVED),
    _slots(
        "a flow joins one that pauses, counts from its first data, and begins with half", _HALF, Fraction(1), REFUTED
    ),
    _slots("the same", replace(_HALF, fifo=False), Fraction(3, 2), PROVED),
    _slots("four flows join whose SYNs wait in the queue", _MEASURED, Fraction(3, 2), REFUTED, "measured"),
    Case(
        _QRM,
        "four nodes with buckets; any packets that fit, any budgets and round trips",
        "queue <= sum of BW_i RTT_i",
        PROVED,
        lambda: induction(buckets(4)),
    ),
    Case(
        _QRM,
        "the same, and an empty bucket takes any packet",
        "the same, with a largest packet where a product is smaller",
        PROVED,
        lambda: induction(buckets(4, large=True, room_for_packet=True)),
    ),
    Case(
        _QRM,
        "one node with the paper's counter, four events",
        "queue <= 19/10 BW RTT",
        REFUTED,
        lambda: counter(Fraction(19, 10)),
        "counter",
    ),
    Case(_QRM, "the same", "queue <= 2 BW RTT", PROVED, lambda: counter(Fraction(2))),
)
