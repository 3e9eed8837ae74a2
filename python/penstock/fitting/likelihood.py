"""How well values of the parameters explain a table, and how sharply the table chooses them.

Residuals are in units of what is tolerated. Each is normal with the variance s^2 + t^2: s is what the surface misses,
and t is what the document's set-up differs in beyond the parameters, the same for all numbers and fitted with them. The
deviance, -2 log L, is as small as t allows. A parameter's profile is the least deviance with this parameter held; the
values whose profile is within a limit of the best are its interval. Errors of a surface are alike in all numbers at one
place, so that the quantile of chi squared would be too small: each point is left out and sought by the others, and the
limit is what 90 % of the points need to be found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import differential_evolution
from scipy.stats import chi2

from penstock.fitting.surface import Array, Surface

CONFIDENCE = 0.9
STEPS = 33  # places of a profile
_MANY, _FEW = 60, 15  # generations of a search
_MISFITS = np.concatenate([[0.0], np.geomspace(0.02, 30.0, 48)])


def deviance(residuals: Array, deviation: Array) -> tuple[Array, Array]:
    """Returns the deviance of each row of residuals, and the misfit t which makes it least."""
    variance = deviation[None, :] ** 2 + _MISFITS[:, None] ** 2
    terms = np.log(variance).sum(axis=1)[:, None] + (residuals**2 @ (1 / variance).T).T
    least = terms.argmin(axis=0)
    return terms[least, np.arange(len(residuals))], _MISFITS[least]


@dataclass(frozen=True)
class Profile:
    """The deviance of one parameter above the best, at places of its range, and its interval."""

    places: tuple[float, ...]
    above: tuple[float, ...]
    low: float
    high: float

    @property
    def bounded(self) -> tuple[bool, bool]:
        """Whether the table, and not the end of the range, bounds the interval below and above."""
        return self.low > 0.0, self.high < 1.0


@dataclass(frozen=True)
class Explained:
    """The place that explains a table best."""

    place: Array
    deviance: float
    misfit: float
    profiles: tuple[Profile, ...]


def limits(surface: Surface) -> list[float]:
    """Returns, for each parameter, how far above the best the profile is at the true value, in 90 % of the points."""
    count, size = surface.places.shape
    above = np.zeros((count, size))
    for point in range(count):
        rest, told = surface.without(point), surface.numbers[point]

        def at(places: Array, rest: Surface = rest, told: Array = told) -> Array:
            return deviance(rest(places) - told, rest.deviation)[0]

        held = [_least(at, size, {k: float(surface.places[point, k])}, _FEW)[1] for k in range(size)]
        least = min(_least(at, size, {}, _FEW)[1], *held)
        above[point] = np.array(held) - least
    rank = min(count, math.ceil(CONFIDENCE * (count + 1)))
    least_limit = float(chi2.ppf(CONFIDENCE, 1))
    return [max(least_limit, float(np.sort(above[:, k])[rank - 1])) for k in range(size)]


def explain(surface: Surface, said: Array, within: Sequence[float]) -> Explained:
    """Finds the place whose numbers are nearest to those said, and the profile of each parameter within its limit."""
    size = surface.places.shape[1]

    def at(places: Array) -> Array:
        return deviance(surface(places) - said, surface.deviation)[0]

    best, least = _least(at, size, {})
    held = [[_least(at, size, {k: float(p)}) for p in np.linspace(0, 1, STEPS)] for k in range(size)]
    for place, value in (one for profile in held for one in profile):
        if value < least:  # a profile may find what the search for the best has missed
            best, least = place, value
    profiles = tuple(_profile([v - least for _, v in one], limit) for one, limit in zip(held, within, strict=True))
    misfit = float(deviance(surface(best[None, :]) - said, surface.deviation)[1][0])
    return Explained(best, least, misfit, profiles)


def _least(at: Callable[[Array], Array], size: int, held: dict[int, float], rounds: int = _MANY) -> tuple[Array, float]:
    """Returns the place of the least deviance with some parameters held, and the deviance."""
    free = [k for k in range(size) if k not in held]

    def whole(some: Array) -> Array:
        places = np.empty((some.shape[1], size))
        for k, value in held.items():
            places[:, k] = value
        places[:, free] = some.T
        return places

    if not free:
        place = whole(np.empty((0, 1)))
        return place[0], float(at(place)[0])
    found = differential_evolution(
        lambda some: at(whole(some.reshape(len(free), -1))),
        [(0.0, 1.0)] * len(free),
        vectorized=True,
        updating="deferred",
        rng=np.random.default_rng(1),
        popsize=24,
        maxiter=rounds,
        polish=True,
    )
    place = whole(np.clip(found.x, 0, 1)[:, None])
    return place[0], float(at(place)[0])


def _profile(above: list[float], limit: float) -> Profile:
    places = np.linspace(0, 1, STEPS)
    within = [k for k, value in enumerate(above) if value <= limit]
    first, last = (within[0], within[-1]) if within else (int(np.argmin(above)),) * 2
    low = _crossing(places, above, first, first - 1, limit)
    high = _crossing(places, above, last, last + 1, limit)
    return Profile(tuple(places.tolist()), tuple(above), low, high)


def _crossing(places: Array, above: list[float], inside: int, outside: int, limit: float) -> float:
    """Returns where the profile passes the limit between two places; the end of the range if there is none outside."""
    if not 0 <= outside < len(above):
        return float(places[inside])
    share = (limit - above[inside]) / (above[outside] - above[inside])
    return float(places[inside] + min(max(share, 0.0), 1.0) * (places[outside] - places[inside]))
