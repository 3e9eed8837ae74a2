"""Packet schedulers and their readable twins serve random traces in the same order; the best of them follows GPS.

Trace `number` of a scheduler is always the same one. `PENSTOCK_TWIN_TRACES` says how many there are of each.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from penstock import engine
from penstock.reference.sched import Event, Scheduler, replay
from penstock.reference.sched.drr import Drr
from penstock.reference.sched.gps import finish_times
from penstock.reference.sched.kps import Kps
from penstock.reference.sched.qfq import Qfq
from penstock.reference.sched.qfq_plus import QfqPlus
from penstock.reference.sched.stfq import Stfq
from penstock.reference.sched.w2f2q import W2f2q
from penstock.reference.sched.wf2q_plus import Wf2qPlus

TRACES = int(os.environ.get("PENSTOCK_TWIN_TRACES", "100"))

Make = Callable[[Sequence[int], int, random.Random], tuple[Scheduler, dict[str, Any]]]


def plain(twin: Callable[[Sequence[int], int], Scheduler]) -> Make:
    """Without parameters."""
    return lambda weights, largest, _: (twin(weights, largest), {})


def drr(weights: Sequence[int], largest: int, r: random.Random) -> tuple[Scheduler, dict[str, Any]]:
    """Quanta below and above the largest packet; turns that end at once and, as in Linux, at the next look."""
    most = (1 << 31) // max(weights)  # a turn has to fit 31 bits
    quantum = min(most, r.choice([largest, r.randint(1, largest), r.randint(1, 3 * largest)]))
    linux = r.random() < 0.5
    compat = "linux" if linux else "source"
    return Drr(weights, largest, quantum, linux=linux), {"quantum": f"{quantum}B", "compat": compat}


def qfq_plus(weights: Sequence[int], largest: int, r: random.Random) -> tuple[Scheduler, dict[str, Any]]:
    """Aggregates of one and of several."""
    most = r.choice([1, 2, 3, 8])
    return QfqPlus(weights, largest, most), {"aggregate": most}


def w2f2q(weights: Sequence[int], largest: int, r: random.Random) -> tuple[Scheduler, dict[str, Any]]:
    """Bounds from one packet to many."""
    lag, lead = (r.choice([largest, r.randint(largest, 16 * largest), 64 * largest]) for _ in range(2))
    return W2f2q(weights, largest, lag, lead), {"lag": f"{lag}B", "lead": f"{lead}B"}


def with_channels(it: Trial, r: random.Random) -> Trial:
    """Channels of some classes turn bad and good between the events; in the end all are good."""
    classes = range(len(it.weights))
    changes = r.choice([0.02, 0.1, 0.5])
    events: list[Event] = []
    for event in it.events:
        if r.random() < changes:
            events.append(("channel", r.choice(classes), r.randint(0, 1)))
        events.append(event)
    events += [("channel", cls, 1) for cls in classes]
    return Trial(it.weights, it.largest, events)


def wf2q_plus(weights: Sequence[int], largest: int, r: random.Random) -> tuple[Scheduler, dict[str, Any]]:
    """V that counts packets as they are sent, and at once."""
    at_once = r.random() < 0.3
    return Wf2qPlus(weights, largest, at_once=at_once), {"compat": "dummynet" if at_once else "source"}


TWINS: dict[str, Make] = {
    "drr": drr,
    "stfq": plain(Stfq),
    "wf2q-plus": wf2q_plus,
    "kps": plain(Kps),
    "qfq": plain(Qfq),
    "qfq-plus": qfq_plus,
    "w2f2q": w2f2q,
}


@dataclass(frozen=True)
class Trial:
    """Classes, and what happens to them."""

    weights: list[int]
    largest: int
    events: list[Event]


def trial(r: random.Random, most_classes: int = 100) -> Trial:
    """Weights equal, alike or wild; sizes equal or not; bursts of arrivals and of departures, so that classes come and
    go, stay backlogged, or are all idle at once.
    """
    classes = r.choice([1, 2, 3, 8, r.randint(4, most_classes)])
    palette = r.choice([[1], [1, 2, 8], [20, 10, 1], [1, 3, 7, 1000], list(range(1, 60)), [1, 1 << 20]])
    weights = [r.choice(palette) for _ in range(classes)]
    largest = r.choice([1500, 1700, 2048, 9000])
    sizes = r.choice([[largest], [40, largest], range(1, largest + 1)])
    events: list[Event] = []
    for _ in range(r.randint(5, 30)):
        if r.random() < 0.5:
            few = r.sample(range(classes), r.randint(1, classes))
            events += [("arrive", r.choice(few), r.choice(sizes)) for _ in range(r.randint(1, 30))]
        else:
            events += [("depart", 0, 0)] * r.randint(1, 30)
        for _ in range(r.randint(0, 10)):
            arrives = r.random() < 0.5
            if arrives and r.random() < 0.7:
                events.append(("progress", 0, r.randint(0, largest)))
            events.append(("arrive", r.randrange(classes), r.choice(sizes)) if arrives else ("depart", 0, 0))
    return Trial(weights, largest, events)


@pytest.mark.parametrize("name", TWINS)
def test_the_twin_serves_in_the_same_order(name: str) -> None:
    for number in range(TRACES):
        r = random.Random(f"{name}/{number}")
        it = with_channels(trial(r), r) if name == "w2f2q" else trial(r)
        twin, settings = TWINS[name](it.weights, it.largest, r)
        compiled = engine.schedule(name, it.weights, it.events, it.largest, **settings)
        assert replay(twin, it.events) == compiled, f"trace {number} with {settings}, weights {it.weights}"


def test_the_traces_have_all_kinds_of_moments() -> None:
    """Else twins could agree on nothing: departures from empty queues, classes that wait while others are served."""
    empty = overtaken = 0
    for number in range(20):
        it = trial(random.Random(f"wf2q-plus/{number}"))
        order = replay(Wf2qPlus(it.weights, it.largest), it.events)
        empty += order.count(-1)
        served = [packet for packet in order if packet >= 0]
        overtaken += sum(a > b for a, b in itertools.pairwise(served))
    assert empty > 100
    assert overtaken > 100


@pytest.mark.parametrize("number", range(20))
def test_wf2q_plus_is_one_packet_from_the_fluid_system(number: int) -> None:
    """Bennett and Zhang 1996, Theorem 1, for WF²Q: no packet leaves later than in GPS by more than the largest packet.

    WF²Q+ has the same bound while all classes are backlogged, when its clock is that of GPS.
    """
    r = random.Random(f"gps/{number}")
    weights = [r.choice([1, 2, 5, 9]) for _ in range(r.randint(2, 8))]
    arrivals = [(cls, r.randint(40, 1500)) for _ in range(40) for cls in range(len(weights))]
    order = engine.schedule("wf2q-plus", weights, [("arrive", cls, size) for cls, size in arrivals])
    fluid = finish_times(weights, [(Fraction(0), cls, size) for cls, size in arrivals])
    first_gone = min(
        max(at for at, (c, _) in zip(fluid, arrivals, strict=True) if c == cls) for cls in range(len(weights))
    )
    now, checked = 0, 0
    for packet in order:
        now += arrivals[packet][1]
        if fluid[packet] <= first_gone:
            assert now <= fluid[packet] + 1500
            checked += 1
    assert checked > 30


def test_gps_by_hand() -> None:
    """Weights 1 and 3, a packet of 3 each at 0, one of 2 for class 0 at 4.

    Until 4 class 1 gets 3/4: its 3 bytes are gone at 4. Class 0 has had 1; its 2 left are gone at 6, the next at 8.
    """
    arrivals = [(Fraction(0), 0, 3), (Fraction(0), 1, 3), (Fraction(4), 0, 2)]
    assert finish_times([1, 3], arrivals) == [6, 4, 8]


def test_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match="known: fifo, prio, drr"):
        engine.schedule("wfq", [1], [])
    with pytest.raises(ValueError, match="weight: 0 must be 1 to"):
        engine.schedule("drr", [1, 0], [])
    with pytest.raises(ValueError, match="quantum: must be"):
        engine.schedule("drr", [1], [], quantum="0B")
    with pytest.raises(ValueError, match="refused: Size"):
        engine.schedule("fifo", [1], [("arrive", 0, 1501)])
    with pytest.raises(ValueError, match="arrive, depart, progress, weight or channel"):
        engine.schedule("fifo", [1], [("leave", 0, 0)])
