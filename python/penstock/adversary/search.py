"""The search: which settings are tried next.

It begins with one key at a time. Then each generation has three kinds of trials: some drawn at random with few keys,
changes of the best of each kind so far, and proposals of CMA-ES, which follows the numbers of a good one.

"Kind" is the map of different failures (Mouret and Clune, "Illuminating search spaces by mapping elites", 2015): a cell
is the set of parts that are there and the size of the buffer, and it keeps its worst scenario. So a search returns many
ways to break, and one strong way does not hide the others.

All random numbers come from one seed, and generations do not depend on the number of processes: the same search has
the same trials, and a longer one begins with them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.adversary.space import BUFFER, Choices, Gene, Settings, Space
from penstock.adversary.trials import Trial

Genome = dict[str, float]  # places from 0 to 1 by key; keys that are not there are at their defaults
Cell = tuple[str, ...]

_GENERATION = 48  # trials
_DRAWN, _FOLLOWED = 10, 14  # of these; the rest are changes of the best
_SIGMA = 0.2  # first step of CMA-ES
_PATIENCE = 8  # generations of CMA-ES without a better one
_PER_KEY = 0.004  # what a key costs, as a margin: of two that break alike the smaller one is better
_FEW, _MANY = 0.75, 3.0  # products of a small and of a large buffer
_MOST_PARTS = 3
_BEST = 8  # of this many of the best cells, half of the changes begin


@dataclass(frozen=True)
class Elite:
    """The worst scenario of a cell."""

    genome: Genome
    trial: Trial
    value: float


@dataclass
class Archive:
    """For one goal: the worst scenario of each cell."""

    cells: dict[Cell, Elite] = field(default_factory=dict)
    curve: list[tuple[int, float]] = field(default_factory=list)  # number of trials and best margin, when it rose

    @property
    def first(self) -> int | None:
        """The number of the first trial that broke the goal."""
        return next((number for number, margin in self.curve if margin > 0), None)

    def take(self, cell: Cell, elite: Elite, margin: float, number: int) -> bool:
        """Keeps a scenario if it is the worst of its cell; returns true if it is."""
        if not self.curve or margin > self.curve[-1][1]:
            self.curve.append((number, margin))
        if cell in self.cells and self.cells[cell].value >= elite.value:
            return False
        self.cells[cell] = elite
        return True

    def ranked(self) -> list[Elite]:
        """The worst scenarios of all cells, the worst first."""
        return sorted(self.cells.values(), key=lambda one: -one.value)


def settings_of(space: Space, genome: Genome) -> Settings:
    """Returns the settings of places."""
    return space.normal({key: space.gene(key).values.at(place) for key, place in genome.items()})


def cell_of(space: Space, settings: Settings) -> Cell:
    """Returns the cell of settings on the map."""
    parts = [part.name for part in space.parts if settings.get(part.name)]
    size = settings.get(BUFFER, 1.0)
    word = "small buffer" if size < _FEW else "large buffer" if size > _MANY else "buffer"
    return (word, *(parts if len(parts) <= 2 else ["several"]))


class Search:
    """Proposes settings, generation by generation, and learns what became of them."""

    def __init__(self, space: Space, goals: int, seed: int) -> None:
        self.space = space
        self.archives = [Archive() for _ in range(goals)]
        self.trials = 0
        self.refused = 0
        self._random = np.random.default_rng(seed)
        self._followers: list[_Follower | None] = [None] * goals
        self._followed: list[set[Cell]] = [set() for _ in range(goals)]
        self._genes = {gene.key: gene for gene in space.genes}
        self._turn = 0

    def run(self, execute: Callable[[Sequence[Settings]], list[Trial]], more: Callable[[int], int]) -> None:
        """Searches until `more`, asked with the number of trials, allows none, or a trial is missing.

        `more` returns how many trials may be added.
        """
        for genomes in self._generations():
            allowed = more(self.trials)
            if allowed <= 0:
                return
            wanted = genomes[:allowed]
            found = execute([settings_of(self.space, genome) for genome in wanted])
            for genome, trial in zip(wanted, found, strict=False):
                self._learn(genome, trial)
            if len(found) < len(wanted):
                return
            self._told(wanted, found)

    def _generations(self) -> Iterator[list[Genome]]:
        alone = self._alone()
        for begin in range(0, len(alone), _GENERATION):
            yield alone[begin : begin + _GENERATION]
        while True:
            self._turn += 1
            drawn = [self._draw() for _ in range(_DRAWN)]
            followed = self._follow()
            changed = [self._change() for _ in range(_GENERATION - len(drawn) - len(followed))]
            yield followed + drawn + changed

    def _alone(self) -> list[Genome]:
        """Returns the defaults, and each key alone at both of its ends."""
        found: list[Genome] = [{}]
        for gene in self.space.genes:
            with_part = {gene.part: 0.5} if gene.part else {}
            if gene.is_part:
                found.append(with_part)
            elif isinstance(gene.values, Choices):
                count = len(gene.values.values)
                found += [{**with_part, gene.key: (place + 0.5) / count} for place in range(count)]
            else:
                found += [{**with_part, gene.key: place} for place in (0.0, 1.0)]
        return found

    def _learn(self, genome: Genome, trial: Trial) -> None:
        self.trials += 1
        if trial.refused:
            self.refused += 1
            return
        cell = cell_of(self.space, trial.settings)
        for archive, judged in zip(self.archives, trial.judged, strict=True):
            value = judged.margin - _PER_KEY * len(trial.settings)
            archive.take(cell, Elite(genome, trial, value), judged.margin, self.trials)

    # Trials at random.

    def _draw(self) -> Genome:
        """Draws a scenario: a few parts, and few keys of each."""
        parts = [gene for gene in self.space.genes if gene.is_part]
        count = min(int(self._random.geometric(0.5)), _MOST_PARTS, len(parts))
        chosen = {parts[i].key for i in self._random.permutation(len(parts))[:count]} if parts else set()
        genome: Genome = dict.fromkeys(sorted(chosen), 0.5)
        density = self._random.uniform(0.1, 0.8)
        for gene in self.space.genes:
            if not gene.is_part and (not gene.part or gene.part in chosen) and self._random.random() < density:
                genome[gene.key] = float(self._random.random())
        return genome

    # Changes of the best.

    def _change(self) -> Genome:
        """Returns a changed copy of one of the best scenarios of a goal."""
        archive = self.archives[int(self._random.integers(len(self.archives)))]
        ranked = archive.ranked()
        if not ranked:
            return self._draw()
        most = min(_BEST, len(ranked)) if self._random.random() < 0.5 else len(ranked)
        genome = dict(ranked[int(self._random.integers(most))].genome)
        if self._random.random() < 0.15:
            self._mix(genome, ranked[int(self._random.integers(len(ranked)))].genome)
        keys = [gene.key for gene in self.space.genes if not gene.part or gene.is_part or gene.part in genome]
        for _ in range(int(self._random.geometric(0.45))):
            self._mutate(genome, self._genes[keys[int(self._random.integers(len(keys)))]])
        return genome

    def _mix(self, genome: Genome, other: Genome) -> None:
        """Takes over the keys of another scenario, each with probability 1/2."""
        for key, place in other.items():
            if self._random.random() < 0.5:
                genome[key] = place
                if part := self._genes[key].part:
                    genome[part] = 0.5

    def _mutate(self, genome: Genome, gene: Gene) -> None:
        if gene.is_part:
            if genome.pop(gene.key, None) is None:
                genome[gene.key] = 0.5
        elif gene.key in genome and self._random.random() < 0.25:
            del genome[gene.key]
        elif gene.key in genome and self._random.random() < 0.7:
            genome[gene.key] = _reflected(genome[gene.key] + float(self._random.normal(0.0, 0.12)))
        else:
            genome[gene.key] = float(self._random.random())

    # CMA-ES.

    def _follow(self) -> list[Genome]:
        goal = self._turn % len(self.archives)
        follower = self._followers[goal]
        if follower is None or follower.done:
            follower = self._followers[goal] = self._new_follower(goal)
        return follower.ask() if follower else []

    def _new_follower(self, goal: int) -> _Follower | None:
        """Begins at the best scenario of a cell that was not followed yet; of all cells again once all were."""
        archive, before = self.archives[goal], self._followed[goal]
        ranked = sorted(archive.cells.items(), key=lambda item: -item[1].value)
        for _ in range(2):
            for cell, elite in ranked:
                numbers = [key for key in elite.genome if not isinstance(self._genes[key].values, Choices)]
                if cell not in before and len(numbers) > 1:
                    before.add(cell)
                    return _Follower(elite.genome, numbers, goal, self._random)
            before.clear()
        return None

    def _told(self, genomes: Sequence[Genome], found: Sequence[Trial]) -> None:
        results = {id(genome): trial for genome, trial in zip(genomes, found, strict=True)}
        for follower in self._followers:
            if follower is not None and follower.asked:
                follower.tell(results)


class _Follower:
    """CMA-ES over the numbers of one scenario; what is a choice, and what is there, stays as it is."""

    def __init__(self, genome: Genome, numbers: list[str], goal: int, random: np.random.Generator) -> None:
        import cma

        self._genome, self._numbers, self._goal = genome, numbers, goal
        self.asked: list[tuple[Genome, Any]] = []
        self._best, self._since = math.inf, 0
        start = [min(max(genome[key], 0.05), 0.95) for key in numbers]
        options = {
            "bounds": [0.0, 1.0],
            "popsize": _FOLLOWED,
            "verbose": -9,
            "seed": np.nan,  # it draws from our generator alone
            "randn": lambda *shape: random.standard_normal(shape),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._strategy: Any = cma.CMAEvolutionStrategy(start, _SIGMA, options)

    @property
    def done(self) -> bool:
        """True if it has converged, or found nothing better for a while."""
        return self._since > _PATIENCE or bool(self._strategy.stop())

    def ask(self) -> list[Genome]:
        """Returns the scenarios of the next generation."""
        points = self._strategy.ask()
        genomes = [{**self._genome, **dict(zip(self._numbers, map(float, one), strict=True))} for one in points]
        self.asked = list(zip(genomes, points, strict=True))
        return genomes

    def tell(self, results: dict[int, Trial]) -> None:
        """Learns what became of them."""
        asked, self.asked = self.asked, []
        if any(id(genome) not in results for genome, _ in asked):
            return
        costs = [self._cost(results[id(genome)]) for genome, _ in asked]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._strategy.tell([point for _, point in asked], costs)
        self._since = 0 if min(costs) < self._best - 1e-6 else self._since + 1
        self._best = min(self._best, *costs)

    def _cost(self, trial: Trial) -> float:
        return 2.0 if trial.refused else -trial.judged[self._goal].margin


def _reflected(place: float) -> float:
    """Returns a place mirrored at 0 and 1."""
    place = abs(place) % 2.0
    return 2.0 - place if place > 1.0 else place
