"""Scenarios beside kernels: the simulator, and the same scenario with the same hosts on a kernel, in a table."""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from penstock import marked, starters, worlds
from penstock.adversary import subject
from penstock.engine import Result, ScenarioError
from penstock.experiments import paths
from penstock.experiments.processes import Job, cores, run_all
from penstock.scenario import Scenario, to_toml, tree
from penstock.suites import results
from penstock.units import number

# The bars: goodput, the mean queueing delay as a part and in milliseconds, drops as a factor and in packets.
GOODPUT, DELAY, DELAY_MS, DROPS, DROPS_LEAST = 0.03, 0.10, 0.5, 1.5, 10
# Without chance a scenario is one course of many, which a packet more or less at the start decides. So the flows of
# each seed begin up to so much later than they would, on both sides at the same times.
SPREAD = "20ms"
_LEAST_USE = 0.05  # queues before links that are used less are left out
HEADINGS = ("scenario", "queue", "Mbit/s", "gap", "queue ms", "gap", "dropped %", "drops", "verdict")
# What `penstock new` writes: the kind, and what stands in the place of its discipline, or of the algorithm which a
# person is to write there. These are those with which its page and its experiment compare.
_WRITTEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "home": ("scenario", {}),
    **{f"home-{aqm}": ("scenario", {"aqm": {"name": aqm}}) for aqm in ("droptail", "fq-codel", "pie", "cake", "pink")},
    **{f"aqm-{aqm}": ("aqm", {"aqm": {"name": aqm}}) for aqm in ("droptail", "codel")},
    "ack-path-pink": ("ack-path", {"aqm": {"name": "pink"}}),
    "scheduler-drr": ("scheduler", {"aqm.name": "drr"}),
    "cc-bbr": ("cc", {"flows.0.cc": "bbr"}),
    **{f"experiment-{aqm}-near": ("experiment", {"aqm.name": aqm}) for aqm in ("droptail", "codel")},
    **{
        f"experiment-{aqm}-far": ("experiment", {"aqm.name": aqm, "topology.delay": "100ms"})
        for aqm in ("droptail", "codel")
    },
}
# Suites, with the algorithm that their cases have here: kernels have it, too.
SUITES = {"rfc7928": "codel", "rfc9743": "cubic", "tcp-eval": "newreno"}
# Of each queue: goodput, mean delay, drops as a part, use, and drops.
Numbers = dict[str, tuple[float, float, float, float, float]]


@dataclass(frozen=True)
class Row:
    """One queue of a scenario: the medians of both sides, over the seeds of the kernel."""

    scenario: str
    queue: str
    goodput_mbps: tuple[float, float]
    delay_ms: tuple[float, float]
    dropped: tuple[float, float]
    drops: tuple[float, float]
    ranges: tuple[tuple[float, float], ...]  # of the simulator's seeds: goodput, delay, drops
    disturbed: tuple[str, ...] = ()  # how the machine disturbed a run on the kernel

    @property
    def gaps(self) -> tuple[float, float]:
        """How far the simulator is from the kernel: goodput, delay."""
        return _gap(*self.goodput_mbps), _gap(*self.delay_ms)

    @property
    def missed(self) -> dict[str, bool]:
        """What is beyond its bar, and whether the simulator's seeds differ by as much."""
        ours, theirs = self.delay_ms
        goodput, delay = self.gaps
        found = {}
        if abs(goodput) > GOODPUT:
            found["goodput"] = self.ranges[0][0] <= self.goodput_mbps[1] <= self.ranges[0][1]
        if abs(delay) > DELAY and abs(ours - theirs) > DELAY_MS:
            found["delay"] = self.ranges[1][0] <= theirs <= self.ranges[1][1]
        fewer, more = sorted(self.drops)
        if more > DROPS * fewer and more - fewer > DROPS_LEAST:
            found["drops"] = self.ranges[2][0] <= self.drops[1] <= self.ranges[2][1]
        return found

    @property
    def verdict(self) -> str:
        """What the table says."""
        told = [f"{what} (seeds)" if of_seeds else what for what, of_seeds in self.missed.items()]
        verdict = f"apart: {', '.join(told)}" if told else "pass"
        return f"{verdict}; disturbed: {', '.join(self.disturbed)}" if self.disturbed else verdict

    def to_json(self) -> dict[str, Any]:
        """Returns the row as plain values."""
        return {**vars(self), "verdict": self.verdict}


@dataclass(frozen=True)
class Beside:
    """What was compared, and what a kernel cannot do."""

    on: str
    seeds: int
    kernel_seeds: int
    most_s: float
    rows: tuple[Row, ...]
    refused: dict[str, str]  # scenarios that the world refuses, with its words
    kernel: str

    @property
    def summary(self) -> str:
        """Counts what is within the bars."""
        good = sum("goodput" not in row.missed for row in self.rows)
        delay = sum("delay" not in row.missed for row in self.rows)
        drops = sum("drops" not in row.missed for row in self.rows)
        seeds = sum(all(row.missed.values()) and bool(row.missed) for row in self.rows)
        return (
            f"{len({row.scenario for row in self.rows})} scenarios, {len(self.rows)} queues: goodput within "
            f"{GOODPUT:.0%} in {good}, mean queueing delay within {DELAY:.0%} or {DELAY_MS} ms in {delay}, "
            f"drops within a factor of {DROPS} or {DROPS_LEAST} packets in {drops}; "
            f"{seeds} of the others no further apart than the seeds"
        )

    def to_json(self) -> dict[str, Any]:
        """Returns all of it as plain values."""
        return {**vars(self), "rows": [row.to_json() for row in self.rows], "summary": self.summary}


@dataclass(frozen=True)
class Told:
    """What a run tells: its numbers, and of a kernel its version and how the machine disturbed it."""

    numbers: Numbers
    kernel: str
    disturbed: tuple[str, ...]


@dataclass(frozen=True)
class Key:
    """A run: a scenario in a world with a seed."""

    name: str
    on: str
    seed: int

    def __str__(self) -> str:
        return f"{self.name} on {self.on}, seed {self.seed}"


def compare(
    scenarios: Sequence[Scenario],
    on: str,
    *,
    seeds: int = 5,
    kernel_seeds: int = 1,
    most_s: float = 30.0,
    jobs: int | None = None,
    tick: Callable[[str], None] = lambda _done: None,
) -> Beside | None:
    """Runs scenarios in the simulator and on a kernel, with hosts as Linux has them; `None` if Ctrl-C ended it.

    The simulator runs with `seeds` seeds, at least `kernel_seeds`, with which the kernel runs; `most_s` shortens long
    scenarios.
    """
    taken, refused = {}, {}
    stems = [Path(scenario.file).stem for scenario in scenarios]
    for scenario, stem in zip(scenarios, stems, strict=True):
        name = stem if stems.count(stem) == 1 else scenario.file
        hosts = comparable(worlds.linux_hosts(scenario), most_s)
        try:
            worlds.check(hosts, 1, on)
            taken[name] = hosts
        except ScenarioError as error:
            refused[name] = str(error).splitlines()[0].removeprefix(f"error: --on {on}: ")
    found: dict[tuple[str, str], dict[int, Numbers]] = {}
    disturbed: dict[str, set[str]] = {name: set() for name in taken}
    kernels: set[str] = set()

    def kept(job: Job[Key], told: Told) -> None:
        found.setdefault((job.key.name, job.key.on), {})[job.seed] = told.numbers
        disturbed[job.key.name].update(told.disturbed)
        kernels.update([told.kernel] if told.kernel else [])
        tick(str(job.key))

    seeds = max(seeds, kernel_seeds)
    for world, count, processes in ((worlds.SIM, seeds, jobs or cores()), (on, kernel_seeds, jobs or cores())):
        todo = [
            Job(Key(name, world, seed), hosts, seed) for name, hosts in taken.items() for seed in range(1, count + 1)
        ]
        at_once = worlds.at_once(world) or processes
        if not run_all(todo, at_once, numbers, kept, run=partial(run_in, world)):
            return None
    rows = [
        replace(row, disturbed=tuple(sorted(disturbed[name])))
        for name in taken
        for row in _rows(name, found[name, worlds.SIM], found[name, on])
    ]
    return Beside(on, seeds, kernel_seeds, most_s, tuple(rows), refused, ", ".join(sorted(kernels)))


def defaults() -> list[Scenario]:
    """Returns what `penstock new` writes, with algorithms of this project where those of a person are to stand."""

    def text(kind: str, changes: Mapping[str, Any]) -> str:
        written = tree(starters.scenario(kind, "mine"))
        for path, value in changes.items():
            paths.put(written, path, value)
        return to_toml(written)

    return [Scenario(text(kind, changes), f"{name}.toml") for name, (kind, changes) in _WRITTEN.items()]


def of_suite(name: str) -> list[Scenario]:
    """Returns the cases of a suite in its quick form, with the algorithm of `SUITES`."""
    algorithm = subject.find(SUITES[name])
    cases = results.suite(name).cases(True)
    return [Scenario(to_toml(case.scenario(algorithm)), f"{name}-{case.name}.toml") for case in cases]


def run_in(world: str, scenario: Scenario, seed: int, **given: Any) -> Result:
    """Runs a scenario in a world."""
    return worlds.run(scenario, seed, world, **given)


def comparable(scenario: Scenario, most_s: float) -> Scenario:
    """Returns a scenario of at most `most_s` seconds, whose flows begin within `SPREAD` where it says nothing of it."""
    tables = tomllib.loads(scenario.text)
    if number(tables["duration"]) > most_s:
        tables["duration"] = f"{most_s:g}s"
        if number(tables.get("warmup", "0s")) > most_s / 2:
            tables["warmup"] = f"{most_s / 2:g}s"
    for flow in tables.get("flows", []):
        flow.setdefault("start_spread", SPREAD)
    return replace(scenario, text=to_toml(tables))


def numbers(_job: Job[Key], result: Result) -> Told:
    """Returns what a comparison keeps of a run."""
    found = {}
    for queue in result.summary["bottlenecks"]:
        drops = queue["drops_overflow"] + queue["drops_aqm"]
        share = drops / ((drops + queue["packets_all"]) or math.nan)
        found[queue["name"]] = (
            queue["goodput_bps"] / 1e6,
            math.nan if queue["queue_delay_ms"]["mean"] is None else queue["queue_delay_ms"]["mean"],
            share,
            queue["utilization"],
            float(drops),
        )
    return Told(found, str(result.wire["kernel"]) if result.wire else "", worlds.disturbed_by(result))


def _rows(name: str, ours: Mapping[int, Numbers], theirs: Mapping[int, Numbers]) -> Iterable[Row]:
    """Compares medians over the seeds that both sides have: the starts of a seed are the same, its course may be."""
    for queue in ours[1]:
        if statistics.median(run[queue][3] for run in theirs.values()) < _LEAST_USE:
            continue

        def both(place: int, queue: str = queue) -> tuple[float, float]:
            return tuple(statistics.median(side[seed][queue][place] for seed in theirs) for side in (ours, theirs))  # type: ignore[return-value]

        def ends(place: int, queue: str = queue) -> tuple[float, float]:
            values = [run[queue][place] for run in ours.values()]
            return min(values), max(values)

        yield Row(name, queue, both(0), both(1), both(2), both(4), (ends(0), ends(1), ends(4)))


def cells(row: Row) -> list[str]:
    """Returns a row of the table: the kernel's number / the simulator's."""
    goodput, delay = row.gaps
    return [
        row.scenario,
        row.queue,
        f"{row.goodput_mbps[1]:.3g} / {row.goodput_mbps[0]:.3g}",
        f"{goodput:+.1%}",
        f"{row.delay_ms[1]:.2f} / {row.delay_ms[0]:.2f}",
        f"{delay:+.1%}",
        f"{row.dropped[1]:.2%} / {row.dropped[0]:.2%}".replace("%", ""),
        f"{row.drops[1]:.0f} / {row.drops[0]:.0f}",
        row.verdict,
    ]


def _gap(ours: float, theirs: float) -> float:
    """Returns how far a number is from the kernel's; beside zero any other is infinitely far."""
    return ours / theirs - 1 if theirs else 0.0 if ours == theirs else math.inf


def _part(on: str, part: str) -> str:
    """Returns the name of the part of a page that has the table of a world: a part of its own, or that of the world."""
    return "-".join(word for word in (part, on * (on != worlds.JAR)) if word) or "table"


def check(page: Path, on: str, part: str = "") -> Path:
    """Checks, before hours of runs, that the page has a part for this world; returns the file for its JSON."""
    name = _part(on, part)
    marked.between(page, name)
    ending = "" if name == "table" else f"-{name}"
    return page.with_name(f"{page.stem}{ending}.json")


def write(page: Path, found: Beside, part: str = "") -> None:
    """Writes the tables into their part of the page: each world has its own, and so has what `part` names."""
    about = (
        f"Linux {found.kernel.split('-')[0]}: kernel / simulator, the median of {found.kernel_seeds} and {found.seeds} "
        f"seeds, at most {found.most_s:g} s of each scenario."
    )
    lines = [about, "", *marked.table(HEADINGS, [cells(row) for row in found.rows]), "", f"{found.summary}."]
    refused = marked.table(("scenario", "why not"), [[name, why] for name, why in found.refused.items()])
    told = ["", "Not on this kernel:", "", *refused] if found.refused else []
    marked.replace(page, "\n".join([*lines, *told]), _part(found.on, part))
