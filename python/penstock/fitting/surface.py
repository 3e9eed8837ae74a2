"""A smooth surface through the numbers of some runs, which predicts those of values that were not run."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.interpolate import RBFInterpolator
from scipy.stats import qmc

Array = np.ndarray[Any, np.dtype[np.float64]]

_SMOOTHINGS = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def design(points: int, parameters: int) -> Array:
    """Returns places which fill the unit cube evenly, always the same: a Latin hypercube of low discrepancy."""
    cube = qmc.LatinHypercube(parameters, optimization="random-cd", rng=np.random.default_rng(1))
    places: Array = cube.random(points)
    return places


class Surface:
    """Thin plate splines, one for each number, as smooth as leaving out one point after another finds best."""

    def __init__(self, places: Array, numbers: Array) -> None:
        errors = {smoothing: _left_out(places, numbers, smoothing) for smoothing in _SMOOTHINGS}
        best = [min(_SMOOTHINGS, key=lambda s: float(errors[s][:, k].std())) for k in range(numbers.shape[1])]
        # What a prediction misses: how far runs wander between the points, and what chance does to a run.
        self.deviation: Array = np.array([np.sqrt(np.mean(errors[s][:, k] ** 2)) for k, s in enumerate(best)])
        self.places, self.numbers, self._smoothings = places, numbers, best
        self._draw()

    def _draw(self) -> None:
        """Numbers of the same smoothing are one spline, which costs as much as that of one number."""
        groups = {s: [k for k, one in enumerate(self._smoothings) if one == s] for s in sorted(set(self._smoothings))}
        self._splines = [(some, _spline(self.places, self.numbers[:, some], s)) for s, some in groups.items()]

    def without(self, point: int) -> Surface:
        """Returns the surface through all other points, equally smooth."""
        others = np.arange(len(self.places)) != point
        made = copy.copy(self)
        made.places, made.numbers = self.places[others], self.numbers[others]
        made._draw()
        return made

    def __call__(self, places: Array) -> Array:
        """Returns the numbers at places, one row for each."""
        found: Array = np.empty((len(places), self.numbers.shape[1]))
        for some, spline in self._splines:
            found[:, some] = spline(places)
        return found


def _spline(places: Array, numbers: Array, smoothing: float) -> RBFInterpolator:
    return RBFInterpolator(places, numbers, smoothing=smoothing, kernel="thin_plate_spline")


def _left_out(places: Array, numbers: Array, smoothing: float) -> Array:
    """Returns by how much each point is missed by the surface through all others."""
    rows = []
    for out in range(len(places)):
        others = np.arange(len(places)) != out
        spline = _spline(places[others], numbers[others], smoothing)
        rows.append(spline(places[out : out + 1])[0] - numbers[out])
    return np.array(rows)
