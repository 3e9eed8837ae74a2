"""`verify break`: the search, the shrinking and the files of one algorithm.

break.json       what was looked for and found, without times: the same bytes for the same search
timing.json      trials, CPU time and wall time
NAME/            for each goal that breaks: the directory of a run of the smallest scenario, as `penstock run` writes it
trials/          a record of each trial, by which a search goes on
report.html      the page
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import engine, provenance, rundir, store
from penstock.adversary import standing
from penstock.adversary.search import Search, cell_of
from penstock.adversary.shrink import NEEDED, SEEDS, Change, Shrinker, Shrunk
from penstock.adversary.space import Settings, Space
from penstock.adversary.standing import Goal
from penstock.adversary.trials import Judge, Trials
from penstock.experiments.interrupts import Stop, stopping
from penstock.scenario import Scenario

FORMAT = 1
FOUND, TIMING = "break.json", "timing.json"
_CANDIDATES = 12  # cells whose worst scenario is tried with several seeds
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
class Finding:
    """What was found for one goal."""

    goal: Goal
    worst: Shrunk | None  # over the seeds; None if nothing was tried
    ways: tuple[Way, ...]
    curve: tuple[tuple[int, float], ...]
    first: int | None  # number of the trial that broke first, with one seed
    mends: tuple[Change, ...] = ()
    scenario: Scenario | None = None

    @property
    def broken(self) -> bool:
        """True if the goal breaks with nearly all seeds."""
        return self.worst is not None and self.worst.breaks >= NEEDED

    @property
    def word(self) -> str:
        """The name for directories."""
        return word(self.goal.name)

    def to_json(self) -> dict[str, Any]:
        """Returns the finding as a JSON object."""
        worst = self.worst
        return {
            "goal": self.goal.name,
            "sentence": self.goal.sentence.text,
            "measure": self.goal.shown,
            "broken": self.broken,
            "first_trial": self.first,
            "worst": None
            if worst is None
            else {
                "settings": worst.settings,
                "keys": len(worst.settings),
                "margin": worst.margin,
                "value": worst.shown,
                "breaks_with": worst.breaks,
                "of_seeds": len(SEEDS),
            },
            "mends": [change.to_json() for change in self.mends],
            "ways": [{"cell": list(one.cell), "margin": one.margin, "value": one.shown} for one in self.ways],
            "curve": [list(point) for point in self.curve],
            "scenario": self.scenario.text if self.scenario else None,
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
    """Returns `runs/break/NAME-HASH`: the same for the same algorithm, space, goals and seed, so that a search goes on."""
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
    ways = [
        Way(
            cell_of(plan.space, one.trial.settings),
            one.trial.judged[place].margin,
            one.trial.shown[place],
            one.trial.settings,
        )
        for one in ranked[:_ROWS]
    ]
    first = next((number for number, margin in archive.curve if margin > 0), None)
    base = Finding(goal, None, tuple(ways), tuple(archive.curve), first)
    if not ranked or stop:
        return base
    watcher.shrinking(goal)
    shrinker = Shrinker(plan.space, place, trials.run)
    over = shrinker.over_seeds([one.trial.settings for one in ranked[:_CANDIDATES]])
    worst = max(over, key=lambda one: (one.breaks >= NEEDED, one.margin))
    mends: list[Change] = []
    if worst.breaks >= NEEDED and not stop:
        worst = shrinker.shrink(worst.settings)
        mends = shrinker.mending(worst.settings)
    scenario = scenario_of(plan, goal, worst)
    return Finding(goal, worst, base.ways, base.curve, first, tuple(mends), scenario)


def scenario_of(plan: Plan, goal: Goal, worst: Shrunk) -> Scenario:
    """Returns the scenario of a finding as a file that says what it shows."""
    subject = plan.space.subject
    assert subject is not None
    name = f"{subject.word}-{word(goal.name)}"
    shown = "no value" if worst.shown is None else f"{worst.shown:.4g}"
    keys = [f"#   {key} = {value}" for key, value in worst.settings.items()]
    verdict = "breaks" if worst.breaks >= NEEDED else "does not break"
    head = [
        f"# {subject} {verdict}: {goal.sentence.text}",
        f"# {goal.shown} is {shown} (median of {len(SEEDS)} seeds; true with {worst.breaks} of them).",
        "# What differs from the defaults of the space:" if keys else "# All is as in the defaults of the space.",
        *keys,
    ]
    text = plan.space.text(worst.settings, name, SEEDS[0])
    return Scenario("\n".join(head) + "\n" + text, f"{name}.toml", subject.classes)


def _write(found: Broken, out: Path) -> None:
    for finding in found.broken:
        assert finding.scenario is not None
        rundir.write(engine.simulate(finding.scenario), out / finding.word)
    store.together({out / FOUND: store.dump(found.to_json()), out / TIMING: store.dump(found.timing)})
