"""Makes a finding small: fewer keys, rounder numbers, as long as it still breaks; and finds what mends it.

The keys are left out by delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input",
IEEE TSE 28(2), 2002), whose result has no key that can be left out alone. "Breaks" means with nearly all of several
seeds: what one seed shows by chance does not count. Seeds with equal runs are one (`penstock.chance`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.adversary.space import Choices, Settings, Space
from penstock.adversary.trials import Trial, breaking
from penstock.units import base

SEEDS = (1, 2, 3, 4, 5)
NEEDED = 4  # of these seeds, and the same part of the different runs that they give

Execute = Callable[[Sequence[Settings], Sequence[int]], list[Trial]]


@dataclass(frozen=True)
class Shrunk:
    """A scenario that breaks a goal, as small as it was made."""

    settings: Settings
    margin: float  # median over the seeds
    shown: float | None
    breaks: int  # in how many of the different runs
    runs: int  # of the shrinker, up to here
    of: int = len(SEEDS)  # how many different runs the seeds gave

    @property
    def is_broken(self) -> bool:
        """True if it breaks in nearly all different runs."""
        return enough(self.breaks, self.of)

    def to_json(self) -> dict[str, Any]:
        """Returns it as a JSON object."""
        told = {"settings": self.settings, "keys": len(self.settings), "margin": self.margin, "value": self.shown}
        return {**told, "breaks_with": self.breaks, "of_seeds": self.of}


def enough(breaks: int, of: int, needed: int = NEEDED, seeds: int = len(SEEDS)) -> bool:
    """True if of so many different runs a part breaks that is at least that of `needed` among `seeds`."""
    return breaks > 0 and breaks * seeds >= needed * of


def few(breaks: int, of: int, needed: int = NEEDED, seeds: int = len(SEEDS)) -> bool:
    """True if of so many different runs no more break than the seeds may that are not `needed`."""
    return breaks * seeds <= (seeds - needed) * of


def in_words(breaks: int, of: int) -> str:
    """Says in how many runs something is true, such as "4 of 5 seeds"; of one run only that there is one."""
    if of == 1:
        return f"{'the' if breaks else 'not in the'} one run that all seeds are"
    return f"{breaks} of {of} {'seeds' if of == len(SEEDS) else 'different runs'}"


@dataclass(frozen=True)
class Change:
    """One change of a finding, and what it does."""

    key: str
    before: Any
    after: Any
    breaks: int  # in how many different runs it breaks after the change
    margin: float
    shown: float | None

    def to_json(self) -> dict[str, Any]:
        """Returns the change as a JSON object."""
        named = {**vars(self), "value": self.shown}
        del named["shown"]
        return named


class Shrinker:
    """Shrinks the findings of one goal."""

    def __init__(
        self, space: Space, goal: int, execute: Execute, seeds: Sequence[int] = SEEDS, needed: int = NEEDED
    ) -> None:
        self._space, self._goal, self._execute = space, goal, execute
        self._seeds, self._needed = seeds, needed
        self.runs = 0

    def over_seeds(self, wanted: Sequence[Settings]) -> list[Shrunk]:
        """Runs settings with all seeds."""
        trials = self._execute(wanted, self._seeds)
        self.runs += len(wanted) * len(self._seeds)
        found = []
        for place, settings in enumerate(wanted):
            group = trials[place * len(self._seeds) : (place + 1) * len(self._seeds)]
            found.append(self._of(settings, group))
        return found

    def _of(self, settings: Settings, trials: Sequence[Trial]) -> Shrunk:
        known = [trial for trial in trials if not trial.refused]
        if len(known) < len(self._seeds):
            return Shrunk(settings, -1.0, None, 0, self.runs, len(self._seeds))
        ordered = sorted(known, key=lambda trial: trial.judged[self._goal].margin)
        middle = ordered[len(ordered) // 2]
        breaks, of = breaking(known, self._goal)
        return Shrunk(settings, middle.judged[self._goal].margin, middle.shown[self._goal], breaks, self.runs, of)

    def shrink(self, settings: Settings) -> Shrunk:
        """Returns the smallest settings that were found to break with nearly all seeds."""
        small = self._fewer(self._space.normal(settings))
        rounder = self._rounder(small)
        smallest = self._fewer(rounder) if rounder != small else small
        return self.over_seeds([smallest])[0]

    def _breaking(self, wanted: Sequence[Settings]) -> Settings | None:
        """Returns the first of these settings that breaks."""
        if not wanted:
            return None
        found = self.over_seeds(wanted)
        part = (self._needed, len(self._seeds))
        return next((one.settings for one in found if enough(one.breaks, one.of, *part)), None)

    def _fewer(self, settings: Settings) -> Settings:
        """Leaves out keys: first many at once, then each alone."""
        pieces = 2
        while len(settings) > 1:
            keys = list(settings)
            size = max(1, len(keys) // pieces)
            groups = [keys[begin : begin + size] for begin in range(0, len(keys), size)]
            kept = [self._without(settings, group) for group in groups]
            found = self._breaking([one for one in kept if one != settings])
            if found is not None:
                settings, pieces = found, max(pieces - 1, 2)
            elif size == 1:
                break
            else:
                pieces = min(len(keys), 2 * pieces)
        return settings

    def _without(self, settings: Settings, keys: Sequence[str]) -> Settings:
        return self._space.normal({key: value for key, value in settings.items() if key not in keys})

    def _rounder(self, settings: Settings) -> Settings:
        """Makes numbers round, and moves them to their defaults as far as it still breaks."""
        for key in list(settings):
            gene = self._space.gene(key)
            if key not in settings or gene.is_part or isinstance(gene.values, Choices):
                continue
            candidates = []
            here = gene.values.place(settings[key])
            if base(gene.default) is not None:
                there = gene.values.place(gene.default)
                candidates = [gene.values.at(there + part * (here - there), 1) for part in (0.25, 0.5, 0.75)]
            candidates.append(gene.values.at(here, 1))
            tried = [{**settings, key: value} for value in dict.fromkeys(candidates) if value != settings[key]]
            settings = self._breaking([self._space.normal(one) for one in tried]) or settings
        return settings

    def mending(self, small: Shrunk, rises: bool) -> list[Change]:
        """Returns single changes that mend, those that help most first: other choices, and steps to both sides.

        `rises` says that the quantity by which the goal is told is bad where it is large. A change that makes this
        quantity no better, and only leaves what else the sentence asks for, mends nothing.
        """
        settings = small.settings
        wanted: list[tuple[str, Any, Any, Settings]] = []
        for gene in self._space.genes:
            if gene.is_part or (gene.part and gene.part not in settings):
                continue
            before = settings.get(gene.key, gene.default)
            for after in self._others(gene, before):
                wanted.append((gene.key, before, after, self._space.normal({**settings, gene.key: after})))
        for key in settings:
            if self._space.gene(key).is_part:
                wanted.append((key, True, None, self._without(settings, [key])))
        found = self.over_seeds([one[3] for one in wanted])
        changes = [
            Change(key, before, after, one.breaks, one.margin, one.shown)
            for (key, before, after, _), one in zip(wanted, found, strict=True)
            if few(one.breaks, one.of, self._needed, len(self._seeds)) and _better(one.shown, small.shown, rises)
        ]
        return sorted(changes, key=lambda change: change.margin)

    @staticmethod
    def _others(gene: Any, before: Any) -> list[Any]:
        if isinstance(gene.values, Choices):
            others = [value for value in (*gene.values.values, gene.default) if value != before and value is not None]
            return list({str(value): value for value in others}.values())
        if base(before) is None:
            return []
        here = gene.values.place(before)
        return [value for part in (-0.25, 0.25) if (value := gene.values.at(min(max(here + part, 0), 1))) != before]


def _better(after: float | None, before: float | None, rises: bool) -> bool:
    if after is None or before is None:
        return False
    return after < before if rises else after > before
