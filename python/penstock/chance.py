"""Whether chance had a part in runs: the one place that says which runs with different seeds are one run.

A run is a function of its scenario and its seed. If nothing in the scenario is left to chance, all seeds give the same
run: they are one sample, and nothing follows from it about what other runs would be. So equal runs count once wherever
an interval or a verdict depends on the number of runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

_OWN = ("name", "seed")  # what a summary says of its run, and not of what happened there
SPREAD = 'start_spread = "5ms"'
_KEY = f"{SPREAD} in each [[flows]] gives it one: flows then begin up to 5 ms later, by the seed"
_EQUATIONS = "--on fluid solves equations, in which no seed stands"


def of_chance(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what chance can change in the summary of a run."""
    return {key: value for key, value in summary.items() if key not in _OWN}


def mark(summary: Mapping[str, Any]) -> bytes:
    """Returns a short text which runs have in common if, and only if, they are one run but for their seeds."""
    text = json.dumps(of_chance(summary), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def different(marks: Iterable[Hashable]) -> int:
    """Returns the number of samples among runs, of which equal ones count once."""
    return len(set(marks))


def none_told(seeds: int, of: str = "", on: str = "") -> str:
    """Says that seeds made no difference, and what would. `of` names what has one run only, `on` is its world."""
    told = f"{of}: " if of else ""
    key = _EQUATIONS if on == "fluid" else _KEY
    return f"{told}the seed has no influence: {seeds} seeds are one run, which has no interval; {key}"
