"""What a suite is made of: cases that are run, criteria that judge them, and findings that tell what came out."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock import chance
from penstock.adversary.subject import Subject
from penstock.suites.failed import Failed as Failed

if TYPE_CHECKING:
    from penstock.scenario import Scenario
    from penstock.suites.kept import Kept

# Verdicts of all suites, beside the two words of each.
MEASURED, NOT_JUDGED = "measured", "not judged"
NOT_HERE = "not measured on this world"
MOST, LEAST = "at most", "at least"


@dataclass(frozen=True)
class Case:
    """One scenario of a suite: its tables, with the name SUBJECT where the algorithm stands.

    The keys `role` of its flows name the groups to criteria; a scenario has no such key.
    """

    name: str
    tables: Mapping[str, Any]
    suits: Callable[[Subject], str] = lambda _subject: ""  # why it cannot be run with an algorithm; empty: it can
    adapt: Callable[[Subject], Subject] = lambda subject: subject  # the algorithm as this case needs it
    driven: Callable[[Scenario, int], Kept] | None = None  # runs it with a seed, if it is not run from begin to end

    @property
    def roles(self) -> list[tuple[str, int]]:
        """The role of each entry of the flows, and the number of its flows."""
        flows: Sequence[Mapping[str, Any]] = self.tables["flows"]
        return [(str(flow.get("role", flow["kind"])), int(flow.get("count", 1))) for flow in flows]

    def scenario(self, subject: Subject) -> dict[str, Any]:
        """Returns the tables with the algorithm in its place."""
        flows = [{key: value for key, value in flow.items() if key != "role"} for flow in self.tables["flows"]]
        return self.adapt(subject).placed({**self.tables, "name": self.name.replace("/", "-"), "flows": flows})


@dataclass(frozen=True)
class Runs:
    """What is kept of all runs: by case and algorithm, one for each seed. Algorithms are called as they were typed.

    `refused` says why a case cannot be run with an algorithm in this world.
    """

    found: Mapping[tuple[str, str], Sequence[Kept]]
    refused: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def has(self, case: str, name: str) -> bool:
        """True if the case was run with the algorithm."""
        return (case, name) in self.found

    def of(self, case: str, name: str) -> Sequence[Kept]:
        """Returns the runs of a case; raises `NotRun` if there are none, and `Failed` if one of them failed."""
        runs = self.found.get((case, name))
        if (case, name) in self.refused:
            raise NotHere(self.refused[case, name])
        if runs is None:
            raise NotRun(case)
        for run in runs:
            if run.error:
                raise Failed(run.error.splitlines()[-1])
        return runs

    def samples(self, case: str, name: str) -> list[Kept]:
        """Returns the runs of a case, of which those that are equal but for their seeds count once."""
        return list({chance.mark(run.summary): run for run in self.of(case, name)}.values())

    def median(self, case: str, name: str, value: Callable[[Kept], float]) -> float:
        """Returns the median over the seeds of a value of a run."""
        return statistics.median(value(run) for run in self.of(case, name))


class NotHere(Failed):
    """The world in which the suite runs does not measure it."""


class NotRun(Failed):
    """The case with the name in the text is not run in this form of the suite, or not with this algorithm."""


Value = Callable[[Runs, str], float]


@dataclass(frozen=True)
class Criterion:
    """One number by which algorithms are judged, and the limit that makes a verdict of it."""

    id: str
    section: str  # of the document
    title: str
    unit: str
    about: str  # how it is measured, and why the limit is what it is
    value: Value
    sense: str = ""  # MOST or LEAST; empty: it is measured and has no limit
    limit: Value | None = None
    cases: tuple[str, ...] = ()  # those whose delay and goodput are drawn
    why: Callable[[Runs, str], str] = lambda _runs, _name: ""  # what it was that is beyond the limit
    only_sim: str = ""  # why other worlds than the simulator cannot measure it; empty: they can

    def meets(self, value: float, limit: float) -> bool:
        """True if a value is within the limit; a billionth of it is rounding."""
        slack = 1e-9 * max(abs(value), abs(limit))
        return value <= limit + slack if self.sense == MOST else value >= limit - slack


@dataclass(frozen=True)
class Told:
    """What a criterion tells of one algorithm."""

    verdict: str
    value: float | None = None
    limit: float | None = None
    reason: str = ""  # why it is not judged, or what is beyond the limit

    def to_json(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        return {"verdict": self.verdict, "value": self.value, "limit": self.limit, "reason": self.reason}


@dataclass(frozen=True)
class Finding:
    """A criterion with what it tells of each algorithm, and of those beside them."""

    criterion: Criterion
    told: Mapping[str, Told]

    @property
    def known(self) -> bool:
        """True if it tells anything."""
        return any(told.value is not None or told.reason for told in self.told.values())

    def to_json(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        one = self.criterion
        return {
            "id": one.id,
            "section": one.section,
            "title": one.title,
            "unit": one.unit,
            "about": one.about,
            "sense": one.sense,
            "algorithms": {name: told.to_json() for name, told in self.told.items()},
        }


@dataclass(frozen=True)
class Unjudged:
    """A part of the document that a simulator cannot judge, and why."""

    section: str
    title: str
    why: str


@dataclass(frozen=True)
class Suite:
    """A document, and what of it is run and judged."""

    name: str
    title: str
    document: str
    kind: str  # of the algorithms: "discipline" or "control"
    beside: tuple[str, ...]  # algorithms that are always run as well
    cases: Callable[[bool], Sequence[Case]]  # of the quick form, or of the full one
    criteria: Callable[[Subject], Sequence[Criterion]]  # of the algorithm that is judged
    unjudged: Sequence[Unjudged]
    seeds: tuple[int, int]  # in the full and in the quick form
    note: str  # what the limits are, and are not
    words: tuple[str, str]  # the verdict within the limit, and beyond it
    labels: Mapping[str, str] = field(
        default_factory=dict
    )  # what algorithms are called in tables, if not by their names
    variants: Callable[[Subject], Mapping[str, Subject]] = lambda _subject: {}
    variant_cases: tuple[str, ...] = ()  # cases that are run with the variants of an algorithm
    only_sim: str = ""  # why it cannot be run in other worlds than the simulator; empty: it can
    hosts: bool = False  # true: a hosted stack can stand in the place of a control
