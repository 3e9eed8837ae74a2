"""Fits the parameters that a document does not say to all numbers of its tables at once, and says what comes of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.fitting.declared import Cell, Fit, Unsaid
from penstock.fitting.evaluate import Asked, Numbers, Runs, Values
from penstock.fitting.likelihood import Explained, explain, limits
from penstock.fitting.surface import Array, Surface, design

ROUNDS = 2  # so often the best place is run, added to the points, and sought again


@dataclass(frozen=True)
class Number:
    """One number of the document beside ours."""

    cell: Cell
    published: float  # with the set-up as it is published
    best: float  # with the best values

    @property
    def met(self) -> bool:
        """True if the best values meet it."""
        return self.cell.met(self.best)


@dataclass(frozen=True)
class Found:
    """One parameter with its best value and its interval."""

    parameter: Unsaid
    value: float
    low: float
    high: float
    bounded: tuple[bool, bool]

    @property
    def covered(self) -> float:
        """The part of the range which the interval takes: near 1 the table says nothing of the parameter."""
        return self.parameter.place(self.high) - self.parameter.place(self.low)


@dataclass(frozen=True)
class Alone:
    """The ranges of the only fitted parameter in which one number of the document is met."""

    cell: Cell
    ranges: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Fitted:
    """What the search has found."""

    fit: Fit
    parameters: tuple[Found, ...]
    numbers: tuple[Number, ...]
    misfit: float  # of the set-up beyond the parameters, in units of what is tolerated
    alone: tuple[Alone, ...]  # with one parameter: the values which each number alone allows

    @property
    def told(self) -> list[Number]:
        """The numbers that were fitted."""
        return [number for number in self.numbers if not number.cell.held_out]

    @property
    def kept(self) -> list[Number]:
        """The numbers that were held out."""
        return [number for number in self.numbers if number.cell.held_out]

    @property
    def explains(self) -> bool:
        """True if the best values meet every fitted number."""
        return all(number.met for number in self.told)

    @property
    def published_explains(self) -> bool:
        """True if the set-up as published here does."""
        return all(number.cell.met(number.published) for number in self.told)

    def to_json(self) -> dict[str, Any]:
        """Returns the result as it is printed and stored."""
        return {
            "experiment": self.fit.experiment.name,
            "fit": self.fit.name,
            "explains": self.explains,
            "misfit": self.misfit,
            "parameters": [
                {"name": one.parameter.name, "value": one.value, "low": one.low, "high": one.high}
                | {"range": list(one.parameter.range), "published": one.parameter.published}
                | {"bounded": list(one.bounded), "covered": one.covered}
                for one in self.parameters
            ],
            "numbers": [
                {"number": one.cell.name, "document": one.cell.said, "published": one.published, "best": one.best}
                | {"met": one.met, "held_out": one.cell.held_out}
                for one in self.numbers
            ],
            "alone": [{"number": one.cell.name, "ranges": [list(r) for r in one.ranges]} for one in self.alone],
        }


def values(fit: Fit, place: Array) -> Values:
    """Returns the values of the parameters at a place of the unit cube."""
    return tuple(one.value(float(p)) for one, p in zip(fit.parameters, place, strict=True))


def transformed(cells: Sequence[Cell], numbers: Sequence[Numbers]) -> Array:
    """Returns tables in units of what is tolerated."""
    return np.array([[c.transformed(value) for c, value in zip(cells, row, strict=True)] for row in numbers])


def said(cells: Sequence[Cell]) -> Array:
    """Returns the document's numbers in units of what is tolerated."""
    return np.array([cell.transformed(cell.said) for cell in cells])


def points(runs: Runs, places: Array) -> Surface:
    """Runs the tables at some places and returns the surface through their numbers."""
    asked = [Asked(values(runs.fit, place), 1) for place in places]
    return Surface(places, transformed(runs.fit.told, runs.tables(asked, runs.fit.told)))


def fitted(runs: Runs) -> Fitted:
    """Fits the parameters; raises `KeyboardInterrupt` if it is interrupted, with all finished runs stored."""
    fit = runs.fit
    places = design(fit.points, len(fit.parameters))
    for _ in range(ROUNDS):
        surface = points(runs, places)
        found = explain(surface, said(fit.told), [math.inf] * len(fit.parameters))
        places = np.vstack([places, found.place[None, :]])
    surface = points(runs, places)
    found = explain(surface, said(fit.told), limits(surface))
    best = values(fit, found.place)
    published, ours = (_medians(runs, one) for one in (None, best))
    numbers = tuple(Number(c, p, b) for c, p, b in zip(fit.cells, published, ours, strict=True))
    alone = tuple(_alone(surface, fit)) if len(fit.parameters) == 1 else ()
    return Fitted(fit, tuple(_parameters(fit, found, best)), numbers, found.misfit, alone)


def _medians(runs: Runs, at: Values | None) -> Numbers:
    tables = runs.tables([Asked(at, seed) for seed in range(1, runs.fit.seeds + 1)], runs.fit.cells)
    return [statistics.median(column) for column in zip(*tables, strict=True)]


def _parameters(fit: Fit, found: Explained, best: Values) -> list[Found]:
    return [
        Found(one, value, one.value(profile.low), one.value(profile.high), profile.bounded)
        for one, value, profile in zip(fit.parameters, best, found.profiles, strict=True)
    ]


def _alone(surface: Surface, fit: Fit) -> list[Alone]:
    """Returns, for each number, the values of the only parameter with which the surface meets it."""
    places = np.linspace(0, 1, 401)
    met = np.abs(surface(places[:, None]) - said(fit.told)) <= 1.0
    value = fit.parameters[0].value
    found = []
    for k, cell in enumerate(fit.told):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], met[:, k], [False]]).astype(int))).reshape(-1, 2)
        ends = tuple((value(float(places[a])), value(float(places[b - 1]))) for a, b in edges)
        found.append(Alone(cell, ends))
    return found
