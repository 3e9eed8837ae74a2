"""Tests a fit: tables made by our own simulator with hidden values must give these values back.

The table of each draw has a seed that no point of the surface has, so chance is in it as in a document's. The intervals
of 90 % must contain the hidden values in about nine draws of ten, whatever the parameter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.fitting.declared import Fit, Unsaid
from penstock.fitting.evaluate import Asked, Runs
from penstock.fitting.fit import points, transformed, values
from penstock.fitting.likelihood import explain, limits
from penstock.fitting.surface import design

_SEED = 1000  # the first seed of tables with hidden values
_EDGE = 0.05  # hidden values keep this part of the range away from its ends, where no interval can be bounded


@dataclass(frozen=True)
class Draw:
    """The hidden value of a parameter in one draw, and what was found."""

    parameter: Unsaid
    hidden: float
    best: float
    low: float
    high: float

    @property
    def covered(self) -> bool:
        """True if the interval contains the hidden value."""
        return self.low <= self.hidden <= self.high


@dataclass(frozen=True)
class Recovery:
    """How well a fit recovers parameters: in each draw they are hidden, and fitted to numbers which they gave."""

    fit: Fit
    draws: tuple[tuple[Draw, ...], ...]  # for each table, its parameters

    def covered(self, parameter: int) -> int:
        """Returns in how many draws the interval contains the hidden value."""
        return sum(draw[parameter].covered for draw in self.draws)

    def width(self, parameter: int) -> float:
        """Returns the mean part of the range that the intervals take."""
        one = self.fit.parameters[parameter]
        return float(np.mean([one.place(d[parameter].high) - one.place(d[parameter].low) for d in self.draws]))

    def to_json(self) -> list[dict[str, Any]]:
        """Returns the result as it is printed and stored."""
        return [
            {"parameter": one.name, "covered": self.covered(k), "of": len(self.draws), "width": self.width(k)}
            | {"draws": [[d[k].hidden, d[k].best, d[k].low, d[k].high] for d in self.draws]}
            for k, one in enumerate(self.fit.parameters)
        ]


def recovered(runs: Runs, number: int, seed: int = 1) -> Recovery:
    """Makes so many tables with hidden values, and fits each."""
    fit = replace(runs.fit, change={**runs.fit.change, **runs.fit.recovery})
    runs = replace(runs, fit=fit)
    dice = np.random.default_rng(seed)
    places = _EDGE + (1 - 2 * _EDGE) * dice.random((number, len(fit.parameters)))
    surface = points(runs, design(fit.points, len(fit.parameters)))
    asked = [Asked(values(fit, place), _SEED + k) for k, place in enumerate(places)]
    within = limits(surface)
    tables = transformed(fit.told, runs.tables(asked, fit.told))
    draws = []
    for one, table in zip(asked, tables, strict=True):
        found = explain(surface, table, within)
        best = values(fit, found.place)
        assert one.values is not None
        draws.append(
            tuple(
                Draw(p, hidden, value, p.value(profile.low), p.value(profile.high))
                for p, hidden, value, profile in zip(fit.parameters, one.values, best, found.profiles, strict=True)
            )
        )
    return Recovery(fit, tuple(draws))
