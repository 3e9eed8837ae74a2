"""Judges algorithms by a suite: runs what its criteria need, and says of each what it found."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import worlds
from penstock.adversary import subject as subjects
from penstock.adversary.subject import STACK, Subject
from penstock.engine import ScenarioError
from penstock.experiments.runner import Watcher
from penstock.mistake import MistakeError
from penstock.suites import hosted, running
from penstock.suites.model import (
    MEASURED,
    NOT_HERE,
    NOT_JUDGED,
    Case,
    Criterion,
    Failed,
    Finding,
    NotHere,
    NotRun,
    Runs,
    Suite,
    Told,
)
from penstock.suites.running import Wanted


@dataclass(frozen=True)
class Ellipse:
    """The runs of a case as points of delay (ms) and goodput (Mbit/s), as RFC 7928 §2.7 draws them.

    Runs that are equal but for their seeds are one point.
    """

    case: str
    title: str
    name: str  # of the algorithm
    points: Sequence[tuple[float, float]]

    @property
    def middle(self) -> tuple[float, float]:
        """The medians of delay and goodput."""
        return statistics.median(p[0] for p in self.points), statistics.median(p[1] for p in self.points)

    @property
    def covariance(self) -> tuple[float, float, float]:
        """Variance of the delay, covariance, variance of the goodput: those of the most likely Gaussian."""
        xs, ys = zip(*self.points, strict=True)
        mx, my, n = statistics.fmean(xs), statistics.fmean(ys), len(xs)
        pairs = list(zip(xs, ys, strict=True))
        return (
            sum((x - mx) ** 2 for x in xs) / n,
            sum((x - mx) * (y - my) for x, y in pairs) / n,
            sum((y - my) ** 2 for y in ys) / n,
        )

    def to_json(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        return {
            "case": self.case,
            "title": self.title,
            "algorithm": self.name,
            "points": [list(point) for point in self.points],
            "median": list(self.middle),
            "covariance": list(self.covariance),
        }


@dataclass(frozen=True)
class Disturbed:
    """A run in real time that the machine disturbed, and how."""

    case: str
    algorithm: str
    seed: int
    by: Sequence[str]


@dataclass(frozen=True)
class OneRun:
    """A case in which the seeds have no influence: all of them are one run, and the median is that run."""

    case: str
    algorithm: str


@dataclass(frozen=True)
class Judged:
    """What a suite found of some algorithms."""

    suite: Suite
    names: tuple[str, ...]  # the algorithms that were judged, as they were typed
    quick: bool
    seeds: int
    findings: Sequence[Finding]
    ellipses: Sequence[Ellipse]
    path: Path
    on: str = worlds.SIM
    disturbed: Sequence[Disturbed] = ()
    one_run: Sequence[OneRun] = ()

    @property
    def columns(self) -> list[str]:
        """The algorithms that were judged, and those beside them."""
        return list(dict.fromkeys([*self.names, *self.suite.beside]))

    def counted(self, name: str) -> Mapping[str, int]:
        """Returns how many criteria have which verdict."""
        return Counter(finding.told[name].verdict for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        return {
            "suite": self.suite.name,
            "document": self.suite.document,
            "quick": self.quick,
            "seeds": self.seeds,
            "algorithms": list(self.names),
            "beside": [name for name in self.columns if name not in self.names],
            "note": self.suite.note,
            "counted": {name: dict(self.counted(name)) for name in self.names},
            "findings": [finding.to_json() for finding in self.findings],
            "not_judged": [vars(one) for one in self.suite.unjudged],
            "ellipses": [one.to_json() for one in self.ellipses],
            "on": self.on,
            "disturbed": [vars(one) for one in self.disturbed],
            "one_run": [vars(one) for one in self.one_run],
        }


def judge(
    suite: Suite,
    algorithms: Sequence[str],
    out: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
    watcher: Watcher | None = None,
    only: Sequence[str] = (),
    on: str = worlds.SIM,
) -> Judged:
    """Runs the cases of a suite in a world with these algorithms and those beside them, and judges all of them.

    `only` names cases; criteria that need others are left out. Raises `MistakeError` if one is no algorithm of the
    suite's kind, or the suite cannot be run in this world; `ScenarioError` if an algorithm cannot be run there. What is
    finished in `out` is not run again.
    """
    if suite.only_sim and on != worlds.SIM:
        raise MistakeError(f"--on {on}: suite {suite.name}: {suite.only_sim}")
    found = {name: _subject(suite, name) for name in dict.fromkeys([*algorithms, *suite.beside])}
    cases = [case for case in suite.cases(quick) if not only or case.name in only]
    count = seeds or suite.seeds[quick]
    wanted, refused = _possible(_wanted(suite, cases, found, tuple(algorithms), on), algorithms, on)
    worlds.require(on)
    runs = Runs(running.run(wanted, count, out, jobs, watcher, on).found, refused)
    findings = _findings(suite, cases, found, runs, on)
    drawn = [one for finding in findings for one in _ellipses(finding.criterion, list(found), runs)]
    about = (tuple(dict.fromkeys(algorithms)), quick, count, findings, drawn, out, on, _disturbed(runs), _one_run(runs))
    return Judged(suite, *about)


def _possible(
    wanted: Sequence[Wanted], algorithms: Sequence[str], on: str
) -> tuple[list[Wanted], dict[tuple[str, str], str]]:
    """Returns what the world can run, and of the rest why it cannot.

    Raises the reason of the first case of an algorithm that is to be judged if none of its cases can be run.
    """
    if on not in worlds.KERNELS:
        return list(wanted), {}
    refused: dict[tuple[str, str], ScenarioError | MistakeError] = {}
    for one in wanted:
        try:
            worlds.check(one.scenario, 1, on)
        except (ScenarioError, MistakeError) as error:
            refused[one.case.name, one.name] = error
    possible = [one for one in wanted if (one.case.name, one.name) not in refused]
    for (_, name), reason in refused.items():
        if name in algorithms and all(one.name != name for one in possible):
            raise reason
    return possible, {key: _first_line(reason, on) for key, reason in refused.items()}


def _first_line(error: Exception, on: str) -> str:
    return str(error).splitlines()[0].removeprefix("error: ").removeprefix(f"--on {on}: ")


def _disturbed(runs: Runs) -> list[Disturbed]:
    return [
        Disturbed(case, name, seed, run.disturbed)
        for (case, name), each in runs.found.items()
        for seed, run in enumerate(each, 1)
        if run.disturbed
    ]


def _one_run(runs: Runs) -> list[OneRun]:
    return [
        OneRun(case, name)
        for (case, name), each in runs.found.items()
        if len(each) > 1 and not any(run.error for run in each) and len(runs.samples(case, name)) == 1
    ]


def _subject(suite: Suite, text: str) -> Subject:
    found = subjects.find(text)
    if found.kind == STACK and suite.kind == "control" and not suite.hosts:
        raise MistakeError(f"{text}: is a hosted stack; `suite {suite.name}` looks into controls of the simulated TCP")
    if found.kind != suite.kind and not (found.kind == STACK and suite.hosts):
        told = {"discipline": "a discipline", "control": "a congestion control", STACK: "a hosted stack"}
        raise MistakeError(f"{text}: is {told[found.kind]}; `suite {suite.name}` judges {told[suite.kind]}")
    return found


def _wanted(
    suite: Suite, cases: Sequence[Case], found: Mapping[str, Subject], algorithms: Sequence[str], on: str
) -> list[Wanted]:
    wanted = [
        Wanted.of(case, name, subject, on)
        for name, subject in found.items()
        for case in cases
        if not hosted.suits(case, subject)
    ]
    for name in dict.fromkeys(algorithms):
        for label, changed in suite.variants(found[name]).items():
            many = [Wanted.of(case, label, changed, on) for case in cases if case.name in suite.variant_cases]
            wanted += [one for one in many if _can_be_run(one, on)]
    return wanted


def _can_be_run(one: Wanted, on: str) -> bool:
    """True unless the algorithm refuses the value of a parameter."""
    try:
        worlds.check(one.scenario, 1, on)
    except (ScenarioError, MistakeError):
        return False
    return True


def _findings(suite: Suite, cases: Sequence[Case], found: Mapping[str, Subject], runs: Runs, on: str) -> list[Finding]:
    """Returns a finding for each criterion that tells anything of an algorithm."""
    by_id: dict[str, Finding] = {}
    refused = {(case.name, name): hosted.suits(case, subject) for case in cases for name, subject in found.items()}
    for name, subject in found.items():
        for one in suite.criteria(subject):
            told = by_id.setdefault(one.id, Finding(one, {})).told
            if one.only_sim and on != worlds.SIM:
                said = Told(NOT_HERE, reason=one.only_sim)
            else:
                said = _told(suite, one, runs, name, refused)
            by_id[one.id] = Finding(one, {**told, name: said})
    return [finding for finding in by_id.values() if finding.known]


def _told(suite: Suite, one: Criterion, runs: Runs, name: str, refused: Mapping[tuple[str, str], str]) -> Told:
    try:
        value = one.value(runs, name)
        if one.limit is None:
            return Told(MEASURED, value)
        limit = one.limit(runs, name)
    except NotHere as reason:
        return Told(NOT_HERE, reason=str(reason))
    except NotRun as case:
        return Told(NOT_JUDGED, reason=refused.get((str(case), name), ""))
    except Failed as reason:
        return Told(NOT_JUDGED, reason=str(reason))
    if one.meets(value, limit):
        return Told(suite.words[0], value, limit)
    return Told(suite.words[1], value, limit, one.why(runs, name))


def _ellipses(one: Criterion, names: Sequence[str], runs: Runs) -> list[Ellipse]:
    found = []
    for case in one.cases:
        for name in names:
            if runs.has(case, name) and not any(run.error for run in runs.found[case, name]):
                try:
                    points = [(run.delay, run.goodput / 1e6) for run in runs.samples(case, name)]
                except Failed:  # a run without a delay is no point
                    continue
                found.append(Ellipse(case, one.title.rpartition(":")[0], name, points))
    return found
