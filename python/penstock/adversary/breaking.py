"""`verify break`: the search, the shrinking and the files of one algorithm.

break.json       what was looked for and found, without times: the same bytes for the same search
timing.json      trials, CPU time and wall time
GOAL/, GOAL-2/   for each way in which a goal breaks: the directory of a run of the smallest scenario, as `penstock run`
                 writes it
trials/          a record of each trial, by which a search goes on
report.html      the page
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock import engine, provenance, rundir, store
from penstock.adversary.search import Elite, Search, cell_of
from penstock.adversary.shrink import SEEDS, Change, Shrinker, Shrunk, in_words
from penstock.adversary.space import Settings, Space
from penstock.adversary.standing import Goal
from penstock.adversary.trials import Judge, Trials
from penstock.experiments.interrupts import Stop, stopping
from penstock.scenario import Scenario

FORMAT = 1
FOUND, TIMING = "break.json", "timing.json"
_ROWS = 24  # cells that the page shows


def word(goal: str) -> str:
    """Returns the name of a goal for files and directories."""
    return re.sub(r"[^A-Za-z0-9]+", "-", goal).strip("-")[:48] or "goal"


@dataclass(frozen=True)
class Budget:
    """How long a search may take: trials in all, or seconds of this call; the first that is reached counts."""

    trials: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Plan:
    """What is searched."""

    space: Space  # with the algorithm in its place
    goals: tuple[Goal, ...]
    budget: Budget
    seed: int = 1
    jobs: int | None = None
    out: Path | None = None
    ways: int = 3  # of each goal that breaks, so many different ways are made small
    candidates: int = 12  # cells whose worst scenario is tried with several seeds
    mends: bool = True  # whether it is searched what mends a way

    @property
    def judge(self) -> Judge:
        """What runs and judges the scenarios."""
        return Judge(self.space, self.goals)


@dataclass(frozen=True)
class Way:
    """One cell of the map: parts that are there, and the margin of the worst scenario."""

    cell: tuple[str, ...]
    margin: float
    shown: float | None
    settings: Settings


@dataclass(frozen=True)
class Breach:
    """One way in which a goal breaks, made small."""

    shrunk: Shrunk
    mends: tuple[Change, ...]
    scenario: Scenario
    word: str  # the name of its directory

    def to_json(self) -> dict[str, Any]:
        """Returns the way as a JSON object."""
        return {
            **self.shrunk.to_json(),
            "mends": [change.to_json() for change in self.mends],
            "directory": self.word,
            "scenario": self.scenario.text,
        }


@dataclass(frozen=True)
class Finding:
    """What was found for one goal."""

    goal: Goal
    ways: tuple[Way, ...]
    curve: tuple[tuple[int, float], ...]
    first: int | None  # number of the trial that broke first, with one seed
    worst: Shrunk | None = None  # over the seeds, before it was made small; None if nothing was tried
    breaches: tuple[Breach, ...] = ()  # the worst first

    @property
    def broken(self) -> bool:
        """True if the goal breaks with nearly all seeds."""
        return bool(self.breaches)

    def to_json(self) -> dict[str, Any]:
        """Returns the finding as a JSON object."""
        return {
            "goal": self.goal.name,
            "sentence": self.goal.sentence.text,
            "about": self.goal.about,
            "measure": self.goal.shown,
            "broken": self.broken,
            "first_trial": self.first,
            "worst": self.worst.to_json() if self.worst else None,
            "breaches": [breach.to_json() for breach in self.breaches],
            "ways": [{"cell": list(one.cell), "margin": one.margin, "value": one.shown} for one in self.ways],
            "curve": [list(point) for point in self.curve],
        }


@dataclass(frozen=True)
class Broken:
    """The result of a search."""

    plan: Plan
    findings: tuple[Finding, ...]
    trials: int
    refused: int
    interrupted: bool
    timing: dict[str, Any] = field(default_factory=dict)

    @property
    def broken(self) -> list[Finding]:
        """The goals that break."""
        return [finding for finding in self.findings if finding.broken]

    def to_json(self) -> dict[str, Any]:
        """Returns the result without times."""
        return {
            "format": FORMAT,
            "algorithm": str(self.plan.space.subject),
            "kind": self.plan.space.kind,
            "seed": self.plan.seed,
            "trials": self.trials,
            "refused": self.refused,
            "interrupted": self.interrupted,
            "findings": [finding.to_json() for finding in self.findings],
            "versions": provenance.versions(),
        }


@dataclass
class Watcher:
    """What is told while a search goes on."""

    told: Callable[[Search, Sequence[Goal], Budget, float], None] = lambda *_: None
    shrinking: Callable[[Goal], None] = lambda _: None


def default_path(plan: Plan, root: Path = Path("runs/break")) -> Path:
    """Returns `runs/break/NAME-HASH`: the same for the same algorithm, space, goals and seed."""
    assert plan.space.subject is not None
    made_of = f"{plan.judge.made_of}{plan.seed}"
    return root / f"{plan.space.subject.word}-{store.sha256(made_of.encode())[:8]}"


def is_break(path: Path) -> bool:
    """Returns true for the directory of a search."""
    return (path / FOUND).is_file()


def run(plan: Plan, watcher: Watcher | None = None) -> Broken:
    """Searches, shrinks, and writes the directory of `plan.out` if there is one. Ctrl-C keeps what is there."""
    watcher = watcher or Watcher()
    engine.check(plan.space.scenario_of({}), "the scenario of the space")
    begin = time.monotonic()
    with stopping() as stop, Trials(plan.judge, plan.out, stop, plan.jobs) as trials:
        known = trials.known
        search = _searched(plan, trials, stop, watcher, begin)
        searched_s, search_cpu = time.monotonic() - begin, trials.cpu_s
        ran = trials.ran
        findings = tuple(_finding(plan, place, search, trials, stop, watcher) for place in range(len(plan.goals)))
        timing = {
            "trials": search.trials,
            "ran": ran,
            "known": min(known, search.trials),
            "search_wall_s": round(searched_s, 3),
            "search_cpu_s": round(search_cpu, 3),
            "shrink_runs": trials.ran - ran,
            "cpu_s": round(trials.cpu_s, 3),
            "wall_s": round(time.monotonic() - begin, 3),
        }
        found = Broken(plan, findings, search.trials, search.refused, bool(stop), timing)
    if plan.out:
        _write(found, plan.out)
    return found


def _searched(plan: Plan, trials: Trials, stop: Stop, watcher: Watcher, begin: float) -> Search:
    search = Search(plan.space, len(plan.goals), plan.seed)
    trials.on_progress = lambda: watcher.told(search, plan.goals, plan.budget, time.monotonic() - begin)

    def more(done: int) -> int:
        budget = plan.budget
        if stop or (budget.seconds is not None and time.monotonic() - begin >= budget.seconds):
            return 0
        return 1 << 30 if budget.trials is None else budget.trials - done

    search.run(lambda wanted: trials.run(wanted), more)
    return search


def _finding(plan: Plan, place: int, search: Search, trials: Trials, stop: Stop, watcher: Watcher) -> Finding:
    goal, archive = plan.goals[place], search.archives[place]
    ranked = archive.ranked()
    ways = tuple(_way(plan, place, one) for one in ranked[:_ROWS])
    found = Finding(goal, ways, tuple(archive.curve), archive.first)
    if not ranked or stop:
        return found
    watcher.shrinking(goal)
    shrinker = Shrinker(plan.space, place, trials.run)
    over = shrinker.over_seeds([one.trial.settings for one in ranked[: plan.candidates]])
    over.sort(key=lambda one: (one.is_broken, one.margin), reverse=True)
    breaches: list[Breach] = []
    for candidate in over:
        if not candidate.is_broken or len(breaches) == plan.ways or stop:
            break
        if not any(_holds(candidate.settings, breach.shrunk.settings) for breach in breaches):
            breaches += _breach(plan, goal, shrinker, candidate, breaches)
    return replace(found, worst=over[0] if over else None, breaches=tuple(breaches))


def _way(plan: Plan, place: int, one: Elite) -> Way:
    trial = one.trial
    return Way(cell_of(plan.space, trial.settings), trial.judged[place].margin, trial.shown[place], trial.settings)


def _holds(settings: Settings, smaller: Settings) -> bool:
    """True if settings have all the keys of others: they most likely break for the same reason."""
    return smaller.keys() <= settings.keys()


def _breach(plan: Plan, goal: Goal, shrinker: Shrinker, candidate: Shrunk, before: Sequence[Breach]) -> list[Breach]:
    """Makes a way small; returns nothing if it is one that is known."""
    small = shrinker.shrink(candidate.settings)
    if any(_holds(small.settings, breach.shrunk.settings) for breach in before):
        return []
    mends = tuple(shrinker.mending(small, goal.sentence.rises) if plan.mends else ())
    name = word(goal.name) + (f"-{len(before) + 1}" if before else "")
    return [Breach(small, mends, scenario_of(plan, goal, small, name), name)]


def scenario_of(plan: Plan, goal: Goal, worst: Shrunk, ending: str) -> Scenario:
    """Returns the scenario of a finding as a file that says what it shows."""
    subject = plan.space.subject
    assert subject is not None
    name = f"{subject.word}-{ending}"
    shown = "no value" if worst.shown is None else f"{worst.shown:.4g}"
    keys = [f"#   {key} = {value}" for key, value in worst.settings.items()]
    head = [
        f"# {subject} breaks: {goal.sentence.text}",
        f"# {goal.shown} is {shown} (median of {len(SEEDS)} seeds; true in {in_words(worst.breaks, worst.of)}).",
        "# What differs from the defaults of the space:" if keys else "# All is as in the defaults of the space.",
        *keys,
    ]
    text = plan.space.text(worst.settings, name, SEEDS[0])
    return Scenario("\n".join(head) + "\n" + text, f"{name}.toml", subject.classes)


def _write(found: Broken, out: Path) -> None:
    for breach in [breach for finding in found.broken for breach in finding.breaches]:
        rundir.write(engine.simulate(breach.scenario), out / breach.word)
    store.together({out / FOUND: store.dump(found.to_json()), out / TIMING: store.dump(found.timing)})
