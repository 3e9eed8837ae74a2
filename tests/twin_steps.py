"""Compares a compiled element at a gateway and its readable twin: every window and every fate is the same with both.

The modules `test_twins_...` register elements and disciplines here. Trial `number` is always the same one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from conversations import Kind, World
from penstock import engine
from penstock.reference.ack import Answer, Gateway, Segment, Step, replay
from penstock.reference.link import CE, Limit
from penstock.reference.xoshiro import Xoshiro256PlusPlus
from twin_settings import TRACES

Make = Callable[[Limit, int, Callable[[], float]], Gateway]  # with the rate in bit/s and uniform numbers


@dataclass(frozen=True)
class Trial:
    """An element, how the compiled part is told to be the same, and what it sees: conversations, or given steps."""

    make: Make
    settings: list[str]
    sees: Kind | Callable[[random.Random, int], list[Step]]

    def play(self, r: random.Random, gateway: Gateway, rate_bps: int) -> tuple[list[Step], list[Answer]]:
        """Plays the trial to the twin."""
        if isinstance(self.sees, Kind):
            return World(r, self.sees, gateway, rate_bps).run()
        steps = self.sees(r, rate_bps)
        return steps, replay(gateway, steps, rate_bps)


SetUp = Callable[[random.Random], Trial]
PAIRS: dict[str, SetUp] = {}


def element(name: str) -> Callable[[SetUp], SetUp]:
    """Registers an element; what is after a slash tells several of one algorithm apart."""

    def register(setup: SetUp) -> SetUp:
        PAIRS[name] = setup
        return setup

    return register


def compare(name: str, number: int) -> Counter[str]:
    """Fails at the first segment that the two treat differently; returns how many had which fate or another window."""
    r = random.Random(f"{name}/{number}")
    rate_bps = r.choice([300_000, 4_000_000, 10_000_000, round(10 ** r.uniform(5.3, 8.5))])
    kind: Any = r.choice(["packets", "bytes"])
    limit: Limit = (kind, r.choice([5, 100, 1000]) * (1000 if kind == "bytes" else 1))
    trial, seed, algorithm = PAIRS[name](r), r.getrandbits(64), name.partition("/")[0]
    gateway = trial.make(limit, rate_bps, Xoshiro256PlusPlus(seed, f"replay/{algorithm}").uniform)
    steps, expected = trial.play(r, gateway, rate_bps)
    most = f"{limit[1]}{'p' if kind == 'packets' else 'B'}"
    answers, report = engine.replay_segments(steps, algorithm, f"{rate_bps}bit/s", most, trial.settings, seed)
    segments = [step for step in steps if isinstance(step, Segment)]
    counts: Counter[str] = Counter()
    for at, (segment, got, (window, fate)) in enumerate(zip(segments, answers, expected, strict=True)):
        twins = (window, None if fate is None else tuple(fate))
        where = f"{name} {number}, {' '.join(trial.settings)} at {rate_bps} bit/s, {most}: segment {at} {segment}"
        assert got == twins, f"{where}: compiled {got}, twin {twins}"
        counts["rewritten"] += window != segment.window
        if fate is not None:
            counts[fate.name] += 1
            counts["marked"] += fate.ecn == CE != segment.ecn
    told = gateway.report()
    compiled = {key: report[key] for key in told}
    assert compiled == told, f"{name} {number}, {' '.join(trial.settings)}: compiled {compiled}, twin {told}"
    return counts


def names(module: str) -> list[str]:
    """The elements that a module registered."""
    return [name for name, setup in PAIRS.items() if setup.__module__ == module]


def check(name: str, shows: tuple[str, ...]) -> None:
    """A quarter of the usual number of trials, in which all of `shows` happens."""
    seen = sum((compare(name, number) for number in range(max(TRACES // 4, 1))), Counter[str]())
    if TRACES >= 100:  # agreement about trials in which nothing happens would say little
        assert all(seen[kind] > 25 for kind in shows), seen
