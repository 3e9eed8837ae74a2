"""What the claims on cooperative control share."""

from __future__ import annotations

from collections.abc import Callable

from penstock.reproduce.results import Evidence, Outcome

Value = Callable[[Outcome], float | None]


def value(run: Evidence, aqm: str, setting: str, measure: Value, flows: int | None = None) -> float | None:
    """The median over seeds; nothing where a run has none."""
    return run.median(aqm, setting, measure, flows)
