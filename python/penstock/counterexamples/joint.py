"""Searches readings of a document with which a claim that does not hold would: open keys, alone and jointly.

Each stated value of each open key is tried alone, then pairs of those that help some claim most. What makes a claim
hold is run again with drop-tail in the place of the discipline under test: a reading with which that holds too says
nothing of the discipline. One seed is searched. Trials are kept: the same command goes on where it was stopped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.adversary.space import Choices, Settings, Space
from penstock.adversary.trials import Trial, Trials
from penstock.claims.rows import Claim, Finding, Verdict
from penstock.counterexamples.judge import ClaimJudge, Made, Said
from penstock.counterexamples.search import affordable, judge_of
from penstock.experiments.interrupts import Stop
from penstock.reproduce import Experiment, Outcome, open_keys

SEED = 1
PAIRS = 12  # so many at least, whatever a trial costs
Row = dict[str, Any]


def search(
    experiment: Experiment,
    claims: Sequence[Claim],
    stop: Stop,
    *,
    trials: int | None = None,
    jobs: int | None = None,
    out: Path | None = None,
) -> dict[str, Row]:
    """Returns what was found for each claim that the first trial, as published, does not show; nothing if stopped."""
    with Trials(judge_of(experiment, claims), out, stop, jobs) as runner:
        first = runner.run([{}], (SEED,))
        if not first or first[0].refused:
            return {}
        space = runner.judge.space
        alone = [{}, *_alone(space)]
        count = trials or max(affordable(space, Made.of_trial(first[0]).events), len(alone) + PAIRS)
        known = runner.run(alone, (SEED,))
        chosen = [] if stop else list(itertools.islice(_pairs(known, range(len(claims))), max(0, count - len(alone))))
        known += runner.run(chosen, (SEED,)) if chosen else []
        if stop:
            return {}
    found = _Found(experiment, [trial for trial in known if not trial.refused], [gene.key for gene in space.genes])
    return {claim.id: row for place, claim in enumerate(claims) if (row := found.row(claim, place)) is not None}


def _alone(space: Space) -> Iterator[Settings]:
    for gene in space.genes:
        if isinstance(gene.values, Choices):
            yield from ({gene.key: value} for value in gene.values.values)


def _part(trial: Trial, place: int) -> float:
    """The part of the comparisons of a claim that agree; -1 if it cannot be judged."""
    said = Said.of_trial(trial, place)
    return -1.0 if said.verdict == Verdict.NOT_RUN.value else said.agree / max(1, said.of)


def _pairs(known: Sequence[Trial], places: Sequence[int]) -> Iterator[Settings]:
    """Yields two settings together, first those of which each helps some claim most."""
    plain, *single = (trial for trial in known if not trial.refused)

    def helps(trial: Trial) -> float:
        return max((_part(trial, place) - _part(plain, place) for place in places), default=0.0)

    order = sorted(single, key=helps, reverse=True)
    ranked = sorted(itertools.combinations(range(len(order)), 2), key=sum)
    for one, other in ((order[i].settings, order[j].settings) for i, j in ranked):
        if not one.keys() & other.keys():
            yield {**one, **other}


class _Found:
    """The trials of an experiment, and what they say of its claims."""

    def __init__(self, experiment: Experiment, trials: Sequence[Trial], keys: Sequence[str]) -> None:
        self._experiment, self._trials, self._keys = experiment, trials, keys
        self._kept: dict[tuple[str, bool], Sequence[Outcome]] = {}

    def row(self, claim: Claim, place: int) -> Row | None:
        """Returns what was found for a claim; `None` for one that the trials show as published, or do not cover."""
        judged = [(trial, Said.of_trial(trial, place)) for trial in self._trials]
        known = [(trial, said) for trial, said in judged if said.verdict != Verdict.NOT_RUN.value]
        if not known or known[0][0].settings or known[0][1].verdict == Verdict.HOLDS.value:
            return None
        holding = [one for one in known if one[1].verdict == Verdict.HOLDS.value]
        best = max(known, key=lambda one: (one[1].agree / max(1, one[1].of), -len(one[0].settings)))
        trial, said = next((one for one in holding if not self._droptail(claim, one[0].settings)), best)
        holds = said.verdict == Verdict.HOLDS.value
        return {
            "trials": len(known),
            "keys": list(self._keys),
            "holds": dict(trial.settings) if holds else None,
            "nearest": dict(trial.settings) if trial.settings and not holds else None,
            "agree": said.agree,
            "of": said.of,
            "measured": said.text,
            "droptail": self._droptail(claim, trial.settings) if holds else None,
        }

    def _droptail(self, claim: Claim, settings: Mapping[str, Any]) -> bool:
        """Tells whether a claim holds with drop-tail in the place of each discipline under test of which it speaks."""
        if not open_keys.under_test(self._experiment):
            return False
        one, other = (self._finding(claim, dict(settings), instead) for instead in (True, False))
        return one.verdict == Verdict.HOLDS and one.parts != other.parts

    def _finding(self, claim: Claim, settings: Settings, instead: bool) -> Finding:
        judge = ClaimJudge(Space("experiment", {}, (), ()), (), self._experiment, (claim,), instead)
        key = (repr(settings), instead)
        if key not in self._kept:
            self._kept[key] = judge.outcomes(settings, SEED)
        return judge.findings(settings, self._kept[key])[0]
