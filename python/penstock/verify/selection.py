"""Which cases a command runs: those of the fixed table, drawn paths, or some of both."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.verify import drawn
from penstock.verify.cases import CASES, QUICK, Case, chosen

QUICK_S = 10.0


@dataclass(frozen=True)
class Wanted:
    """What the options ask for; without any, the whole table and all drawn paths."""

    quick: bool = False
    only: tuple[str, ...] = ()
    paths: str | None = None
    draw: str | None = None
    control: str | None = None
    seconds: float | None = None

    @property
    def seed(self) -> str:
        """The seed of the drawn paths."""
        return self.draw or drawn.release_seed()


def cases(wanted: Wanted) -> list[Case]:
    """Returns the cases in the order in which they run."""
    return [*_fixed(wanted), *_drawn(wanted)]


def all_paths(wanted: Wanted) -> list[Case]:
    """Returns all drawn paths, whichever are to run now: a page shows what earlier pieces measured, too."""
    return _drawn(replace(wanted, only=(), paths=f"0-{drawn.NUMBER - 1}"))


def _fixed(wanted: Wanted) -> list[Case]:
    if wanted.paths not in (None, "none") and not wanted.only:
        return []
    seconds = wanted.seconds or (QUICK_S if wanted.quick else None)
    return _lasting(chosen(QUICK if wanted.quick and not wanted.only else CASES, wanted.only), seconds)


def _drawn(wanted: Wanted) -> list[Case]:
    nothing = wanted.paths is None and (wanted.quick or bool(wanted.only))
    numbers = drawn.numbers(wanted.paths or ("none" if nothing else f"0-{drawn.NUMBER - 1}"))
    found = [case for case in drawn.paths(wanted.seed) if case.number in numbers]
    if wanted.control:
        found = [replace(case, control=wanted.control) for case in found]
    return _lasting(found, wanted.seconds)


def _lasting(found: list[Case], seconds: float | None) -> list[Case]:
    return [replace(case, measured_s=seconds) for case in found] if seconds else found
