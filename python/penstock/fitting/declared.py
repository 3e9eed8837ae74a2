"""Reads `fit.toml`: which parameters a document does not say, in which ranges they may lie, and which numbers tell."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from penstock.experiments.paths import put
from penstock.mistake import MistakeError
from penstock.reproduce import Experiment
from penstock.reproduce.folder import table, text

FILE = "fit.toml"
T = TypeVar("T")


@dataclass(frozen=True)
class Unsaid:
    """A parameter that the document does not say."""

    name: str
    about: str
    range: tuple[float, float]
    published: float  # the value of the published experiment
    sets: Mapping[str, str] = field(default_factory=dict)  # texts by paths in the scenario; "{}" is the value
    unit: str = ""  # how pages write it, after the value
    factor: float = 1.0  # what the value is multiplied by where it is set
    scale: str = "log"  # or "linear": along which it is searched
    whole: bool = False

    def __post_init__(self) -> None:
        """Refuses a range in which nothing can be searched."""
        low, high = self.range
        if not low < high or (self.scale == "log" and low <= 0) or self.scale not in ("log", "linear"):
            raise TypeError(f'parameter {self.name!r}: a range is two rising numbers, above 0 on the scale "log"')

    def value(self, place: float) -> float:
        """Returns the value at a place from 0 to 1 in the range."""
        low, high = self.range
        value = low + place * (high - low) if self.scale == "linear" else low * (high / low) ** place
        return round(value) if self.whole else value

    def place(self, value: float) -> float:
        """Returns the place of a value."""
        low, high = self.range
        if self.scale == "linear":
            return (value - low) / (high - low)
        return math.log(value / low) / math.log(high / low)

    def text(self, value: float) -> str:
        """Returns the value as pages write it."""
        shown = f"{value:,.0f}" if self.whole or abs(value) >= 100 else f"{value:.3g}"
        return f"{shown} {self.unit}".strip()

    def put(self, tree: dict[str, Any], value: float) -> None:
        """Sets the value in a scenario."""
        number = value * self.factor
        whole = self.whole or (self.factor != 1 and number == round(number))
        given = round(number) if whole else number
        for path, form in self.sets.items():
            put(tree, path, given if form == "{}" else form.format(given if whole else f"{number:.9g}"))


@dataclass(frozen=True)
class Row:
    """Numbers of the document: one discipline in some settings."""

    numbers: str  # their path in paper.toml
    settings: tuple[str, ...]
    aqm: str
    measure: str  # the name of a column
    within: float  # a number is met within this part of it, or within this much on the scale "linear"
    scale: str = "log"
    held_out: tuple[str, ...] = ()  # settings whose numbers the fit never sees


@dataclass(frozen=True)
class Cell:
    """One number of the document."""

    aqm: str
    setting: str
    measure: str
    said: float
    within: float
    scale: str
    held_out: bool

    @property
    def name(self) -> str:
        """The number's name in tables."""
        return f"{self.aqm}, {self.setting}: {self.measure}"

    def transformed(self, value: float) -> float:
        """Returns a value in units of what is tolerated; differences of these are what a fit makes small."""
        if self.scale == "linear":
            return value / self.within
        return math.log(max(value, 1e-3)) / math.log1p(self.within)

    def back(self, transformed: float) -> float:
        """Returns the value of a transformed one."""
        return transformed * self.within if self.scale == "linear" else math.exp(transformed * math.log1p(self.within))

    def met(self, value: float) -> bool:
        """True if the value is that of the document."""
        return abs(value - self.said) <= self.within * (1 if self.scale == "linear" else abs(self.said))


@dataclass(frozen=True)
class Fit:
    """Parameters fitted to numbers."""

    name: str
    title: str
    experiment: Experiment
    parameters: tuple[Unsaid, ...]
    cells: tuple[Cell, ...]
    points: int  # number of runs of the table from which the surface between them is computed
    seeds: int = 3  # of the tables that are compared with the document in the end
    quick: bool = False  # the quick form of the experiment
    change: Mapping[str, Any] = field(default_factory=dict)  # what all runs change, by path
    recovery: Mapping[str, Any] = field(default_factory=dict)  # what recovery changes besides, so that it is cheaper
    says: str = ""  # what follows from the result, in words of a person who looked at it

    @property
    def told(self) -> tuple[Cell, ...]:
        """The numbers that the fit sees."""
        return tuple(cell for cell in self.cells if not cell.held_out)

    @property
    def kept(self) -> tuple[Cell, ...]:
        """The numbers that it never sees."""
        return tuple(cell for cell in self.cells if cell.held_out)


def declared(experiment: Experiment) -> tuple[Fit, ...]:
    """Returns the fits of an experiment; raises `MistakeError` if it declares none, or one that cannot be."""
    where = f"{experiment.package.replace('.', '/')}/{FILE}"
    try:
        text(experiment.package, FILE)
    except (FileNotFoundError, OSError):
        raise MistakeError(f"{experiment.name} declares nothing to fit: its folder has no {FILE}") from None
    try:
        given = table(experiment.package, FILE)
        return tuple(_fit(experiment, one) for one in given["fits"])
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise MistakeError(f"{where}: {error}") from None


def _fit(experiment: Experiment, given: dict[str, Any]) -> Fit:
    parameters = tuple(_made(Unsaid, one) for one in given.pop("parameters"))
    rows = [_made(Row, one) for one in given.pop("rows")]
    cells = tuple(cell for row in rows for cell in _cells(experiment, row))
    return _made(Fit, {**given, "experiment": experiment, "parameters": parameters, "cells": cells})


def _made(kind: Callable[..., T], given: Mapping[str, Any]) -> T:
    """Makes a dataclass of a table, whose lists become tuples; an unknown key is refused with those that exist."""
    known = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    unknown = [key for key in given if key not in known]
    if unknown:
        raise TypeError(f"unknown key {unknown[0]!r}; there are: {', '.join(known)}")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in given.items()})


def _cells(experiment: Experiment, row: Row) -> list[Cell]:
    said: Any = experiment.paper
    for key in row.numbers.split("."):
        said = said[key]
    numbers: Sequence[float] = said
    if len(numbers) != len(row.settings):
        raise ValueError(f"{row.numbers}: {len(numbers)} numbers for {len(row.settings)} settings")
    return [
        Cell(row.aqm, setting, row.measure, number, row.within, row.scale, setting in row.held_out)
        for setting, number in zip(row.settings, numbers, strict=True)
    ]
