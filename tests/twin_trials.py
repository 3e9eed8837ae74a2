"""Compares a compiled discipline and its readable twin: every packet of a random trace has the same fate with both.

The modules `test_twins_...` register the twins of their families here. Trace `number` of an algorithm is always the
same.
"""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock import engine
from penstock.reference import Arrival, Fate, Limit, fq
from penstock.reference.link import CE, NS_PER_S, Fifo
from penstock.reference.xoshiro import Xoshiro256PlusPlus
from twin_settings import MS, TRACES

Twin = Callable[..., list[Fate]]  # arrivals, rate, limit, parameters, uniform numbers and perhaps bits
Setup = tuple[Any, list[str]]
SetUp = Callable[[random.Random], Setup]
Maker = Callable[[int, Callable[[], float]], Fifo]


@dataclass(frozen=True)
class Pair:
    """A twin, and how trials of it are set up."""

    setup: SetUp
    replay: Twin
    drop: str  # what an AQM's drop is called
    draws: bool  # it draws random numbers
    marks: bool
    bits: bool  # it draws whole 64 bits as well
    tells: Callable[[random.Random, list[Arrival]], list[Arrival]] | None  # what its packets tell


PAIRS: dict[str, Pair] = {}


def twin(
    name: str,
    replay: Twin,
    *,
    drop: str = "drop_early",
    draws: bool = False,
    marks: bool = True,
    bits: bool = False,
    tells: Callable[[random.Random, list[Arrival]], list[Arrival]] | None = None,
) -> Callable[[SetUp], SetUp]:
    """Registers a setup for the algorithm of this name; what is after a slash tells several of one algorithm apart."""

    def register(setup: SetUp) -> SetUp:
        PAIRS[name] = Pair(setup, replay, drop, draws, marks, bits, tells)
        return setup

    return register


@dataclass(frozen=True)
class Trial:
    """Arrivals and a queue, said to both: `params` to the twin, `settings` to the compiled part.

    What stands in `name` after a slash tells apart trials of one algorithm.
    """

    name: str
    seed: int
    rate_bps: int
    limit: Limit
    params: Any
    settings: list[str]
    arrivals: list[Arrival]

    @property
    def algorithm(self) -> str:
        """The name in the registry."""
        return self.name.partition("/")[0]

    def twin(self, seed: int) -> list[Fate]:
        """The fates by the twin, with the random numbers of `seed`."""
        stream, pair = Xoshiro256PlusPlus(seed, f"replay/{self.algorithm}"), PAIRS[self.name]
        more = {"bits": stream.bits} if pair.bits else {}
        params = self.params
        if isinstance(params, fq.Params) and not any(said.startswith("perturbation=") for said in self.settings):
            params = replace(params, key=stream.branch("hash").bits() >> 11)
        return pair.replay(self.arrivals, self.rate_bps, self.limit, params, stream.uniform, **more)

    def compiled(self, file: Path) -> list[Fate]:
        """The fates by the compiled part, which reads the trace from `file`."""
        rows = "".join(",".join(map(str, arrival)) + "\n" for arrival in self.arrivals)
        file.write_text("t_ns,flow,size,ecn,ern,ern_cwnd,ern_rtt_ms\n" + rows)
        kind, most = self.limit
        limit = f"{most}{'p' if kind == 'packets' else 'B'}"
        out = io.BytesIO()
        engine.replay(file, self.algorithm, f"{self.rate_bps}bit/s", limit, self.settings, self.seed, out)
        lines = [line.split(",") for line in out.getvalue().decode().splitlines()]
        fate, t_ns, ecn = (lines[0].index(column) for column in ("fate", "t_fate_ns", "ecn_out"))
        return [Fate(line[fate], int(line[t_ns]), int(line[ecn])) for line in lines[1:]]


def some_arrivals(r: random.Random, rate_bps: int) -> list[Arrival]:
    """Phases of several loads, with bursts at one instant, gaps from a packet's time to seconds, all ECN fields."""
    usual, gaps = r.choice([0.5, 0.95, 1.1, 1.5, 3.0]), r.choice([0, 0.001, 0.01])
    load, t_ns, arrivals = usual, r.choice([0, NS_PER_S]), []
    for _ in range(r.choice([50, 1500, 4000])):
        if r.random() < 0.01:
            load = r.choice([0.05, usual, 2 * usual])
        if r.random() < gaps:
            t_ns += r.choice([MS, 100 * MS, NS_PER_S])
        size = r.choice([40, 100, 500, 1000, 1500, 1500, r.randint(1, 9000)])
        gap_ns = size * 8 * NS_PER_S / rate_bps / load
        # A third comes at the pace of the link, so that arrivals and departures meet at one instant.
        pace = r.randrange(6)
        t_ns += round(gap_ns if pace < 2 else r.expovariate(1 / gap_ns)) if pace < 5 else 0
        arrivals.append(Arrival(t_ns, r.randrange(8), size, r.choice([0, 0, 1, 2, 3])))
    return arrivals


def trial(name: str, number: int) -> Trial:
    """The trial of this number."""
    r = random.Random(f"{name}/{number}")
    rate_bps = r.choice([200_000, 1_000_000, 3_333_333, 10_000_000, round(10 ** r.uniform(5, 9))])
    in_packets: Limit = ("packets", r.choice([1, 20, 100, 1000]))
    in_bytes: Limit = ("bytes", r.choice([9000, 100_000, 1_000_000]))
    limit = r.choice([in_packets, in_bytes])
    params, settings = PAIRS[name].setup(r)
    seed, arrivals = r.getrandbits(64), some_arrivals(r, rate_bps)
    if tells := PAIRS[name].tells:
        arrivals = tells(r, arrivals)
    return Trial(name, seed, rate_bps, limit, params, settings, arrivals)


def first_difference(one: Trial, got: list[Fate], expected: list[Fate]) -> str:
    """What a person needs to follow it by hand."""
    pairs = zip(got, expected, strict=False)
    at = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(got), len(expected)))
    setup = f"{one.name} seed {one.seed} at {one.rate_bps} bit/s, limit {one.limit}, {' '.join(one.settings)}"
    return f"{setup}: packet {at} is {got[at : at + 1]}, by the twin {expected[at : at + 1]}"


def compare(name: str, number: int, file: Path) -> Counter[str]:
    """How many packets of this trial had which fate; fails if the twin gives one another. `file` is for the trace."""
    one = trial(name, number)
    got, expected = one.compiled(file), one.twin(one.seed)
    assert len(got) == len(one.arrivals)
    assert got == expected, f"trace {number}: {first_difference(one, got, expected)}"
    seen: Counter[str] = Counter()
    for fate, arrival in zip(got, one.arrivals, strict=True):
        seen[fate.name] += 1
        seen["marked"] += fate.ecn == CE != arrival.ecn
    return seen


def names(module: str) -> list[str]:
    """The twins that a module registered."""
    return [name for name, pair in PAIRS.items() if pair.setup.__module__ == module]


def check_fates(name: str, directory: Path) -> None:
    """Every packet has the fate that the twin gives it."""
    seen = sum((compare(name, number, directory / "trace.csv") for number in range(TRACES)), Counter[str]())
    # Agreement about traces on which nothing happens would say little.
    if TRACES >= 100:
        for kind in ("sent", *(["marked"] if PAIRS[name].marks else []), "drop_overflow", PAIRS[name].drop):
            assert seen[kind] > 1000, seen


def check_draws(name: str, directory: Path) -> None:
    """The random numbers are those of the seed: with those of another one the twin is told apart."""
    differ = 0
    for number in range(30):
        one = trial(name, number)
        differ += one.compiled(directory / "trace.csv") != one.twin(one.seed ^ 1)
    assert differ >= 5
