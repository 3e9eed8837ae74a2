"""A theorem about an algorithm, and the search for the legal input that comes nearest to violating it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Input = dict[str, Any]
Found = tuple[float, str]  # the largest measured value as a part of its bound, and the input as a text

_KEPT = 8  # of this many of the worst inputs, half of the trials are changes


@dataclass(frozen=True)
class Theorem:
    """A bound of an algorithm."""

    algorithm: str  # with parameters as `verify break` takes them
    bound: str
    find: Callable[[str, int, int], Found]  # searches so many inputs of an algorithm, with a seed


@dataclass(frozen=True)
class Nearest:
    """The input that came nearest to a bound, or violates it."""

    theorem: Theorem
    ratio: float
    input: str
    trials: int


def search(theorem: Theorem, trials: int, seed: int = 1) -> Nearest:
    """Returns the input that comes nearest to the bound, of so many."""
    return Nearest(theorem, *theorem.find(theorem.algorithm, trials, seed), trials)


def climb(
    drawn: Callable[[random.Random], Input], ratio: Callable[[Input], float], trials: int, draws: random.Random
) -> tuple[float, Input]:
    """Returns the worst of so many inputs: half are drawn, half are changes of the worst so far.

    A change takes one key, and the seed if there is one, from a drawn input.
    """
    best: list[tuple[float, Input]] = []
    for number in range(trials):
        new = drawn(draws)
        if best and number % 2:
            old = draws.choice(best)[1]
            kept = {draws.choice(sorted(old)), "seed"}
            new = {key: new[key] if key in kept else value for key, value in old.items()}
        best = sorted([*best, (ratio(new), new)], key=lambda one: -one[0])[:_KEPT]
    return best[0]
