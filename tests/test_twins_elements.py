"""Compiled elements on the ACK path and their readable twins: every window and every fate of random conversations.

Trial `number` of an element is always the same one. `PENSTOCK_TWIN_TRACES` says for how many times a quarter.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from conversations import Kind, World
from penstock import engine
from penstock.reference import green
from penstock.reference.ack import qrm
from penstock.reference.ack import Fact, Gateway, Segment
from penstock.reference.link import CE, Limit
from penstock.reference.xoshiro import Xoshiro256PlusPlus
from twin_settings import MS, TRACES, coin, written

Make = Callable[[Limit, int, Callable[[], float]], Gateway]  # with the rate in bit/s and uniform numbers


@dataclass(frozen=True)
class Trial:
    """An element, how the compiled part is told to be the same, and the conversations."""

    make: Make
    settings: list[str]
    kind: Kind


PAIRS: dict[str, Callable[[random.Random], Trial]] = {}


def element(name: str) -> Callable[[Callable[[random.Random], Trial]], Callable[[random.Random], Trial]]:
    """Registers an element; what is after a slash tells several of one algorithm apart."""

    def register(setup: Callable[[random.Random], Trial]) -> Callable[[random.Random], Trial]:
        PAIRS[name] = setup
        return setup

    return register


@element("green")
def green_trial(r: random.Random) -> Trial:
    """Constants and windows small and large."""
    params = green.Params(
        c=r.choice([0.93, 1.22, r.uniform(0.01, 2)]),
        window_ns=r.choice([1, 100, 1000, 5000]) * MS,
        rtt_ns=r.choice([1, 100, 700]) * MS,
        ecn=coin(r),
    )
    settings = written(c=params.c, window=f"{params.window_ns}ns", rtt=f"{params.rtt_ns}ns", ecn=params.ecn)
    facts = lambda r, flow: [(0, "flow-gone", flow, 0)] if coin(r) else []
    return Trial(lambda limit, rate, uniform: green.Green(limit, params, rate, uniform), settings, Kind(facts=facts))


@element("qrm")
def qrm_trial(r: random.Random) -> Trial:
    """Both accounts; budgets that a gateway told, takes away and changes, or even parts; nodes with several flows."""
    params = qrm.Params(
        tolerance=r.choice([0, 0.05, r.uniform(0, 10)]),
        slack=r.choice([0, 4500, 100_000]),
        window=coin(r),
        rtt_ns=r.choice([1, 100, 700]) * MS,
        max_lan_ns=r.choice([1, 5, 500]) * MS,
        syn_rate=r.choice([1, 2, 100]),
        idle_ns=r.choice([20, 1000, 10_000]) * MS,
    )
    settings = written(
        tolerance=params.tolerance,
        slack=f"{params.slack}B",
        account="window" if params.window else "bucket",
        rtt=f"{params.rtt_ns}ns",
        max_lan=f"{params.max_lan_ns}ns",
        syn_rate=params.syn_rate,
        idle=f"{params.idle_ns}ns",
    )
    owners, budgets, nodes = coin(r), coin(r), r.choice([2, 4])

    def facts(r: random.Random, flow: int) -> list[Fact]:
        told: list[Fact] = [(0, "flow-gone", flow, 0)] if r.random() < 0.3 else []
        node = r.randrange(nodes) if owners else flow
        if owners and r.random() < 0.9:
            told.append((0, "owner", flow, node))
        if budgets and r.random() < 0.8:
            told.append((0, "budget", r.choice([node, node, r.randrange(nodes)]), r.choice([0, *[round(10 ** r.uniform(5, 8)) for _ in range(5)]])))
        return told if r.random() < 0.9 else [*told, (0, "gone", node, 0)]

    return Trial(lambda limit, rate, _: qrm.Qrm(limit, params, rate), settings, Kind(facts=facts, flows=r.choice([3, 8])))


def compare(name: str, number: int, seen: Counter[str] | None = None) -> Counter[str]:
    """Fails at the first segment that the two treat differently; returns how many had which fate or another window."""
    r = random.Random(f"{name}/{number}")
    rate_bps = r.choice([300_000, 4_000_000, 10_000_000, round(10 ** r.uniform(5.3, 8.5))])
    kind: Any = r.choice(["packets", "bytes"])
    limit: Limit = (kind, r.choice([5, 100, 1000]) * (1000 if kind == "bytes" else 1))
    trial, seed, algorithm = PAIRS[name](r), r.getrandbits(64), name.partition("/")[0]
    gateway = trial.make(limit, rate_bps, Xoshiro256PlusPlus(seed, f"replay/{algorithm}").uniform)
    steps, expected = World(r, trial.kind, gateway, rate_bps).run()
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
    assert {key: report[key] for key in told} == told, f"{name} {number}, {' '.join(trial.settings)}"
    return counts


SHOWS = {"green": ("sent", "drop_early", "drop_overflow", "marked"), "qrm": ("sent", "drop_early", "drop_overflow")}


@pytest.mark.parametrize("name", PAIRS)
def test_an_element_and_its_twin_treat_every_segment_alike(name: str) -> None:
    seen = sum((compare(name, number) for number in range(max(TRACES // 4, 1))), Counter[str]())
    if TRACES >= 100:  # agreement about trials in which nothing happens would say little
        assert all(seen[kind] > 100 for kind in SHOWS[name.partition("/")[0]]), seen
