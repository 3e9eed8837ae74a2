"""Rows of the ledger: claims, their verdicts, and the comparisons from which verdicts follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from penstock.reproduce.results import Evidence

_SHOWN = 3  # number of comparisons that a reason quotes; the others are only counted


class Verdict(StrEnum):
    """The verdict of runs on a claim."""

    HOLDS = "holds"
    PARTLY = "partly"
    FAILS = "fails"
    NOT_RUN = "not-run"
    OUT_OF_SCOPE = "out-of-scope"


class Kind(StrEnum):
    """What a row of the ledger is. Only claims of a document are counted."""

    CLAIM = "claim"
    OTHER = "other"  # a claim of an RFC or of another paper
    OWN = "finding"  # what these runs show and no document says
    SET_UP = "set-up"  # a check that the set-up of our runs is what was meant; it says nothing of a result
    SCOPE = "scope"  # what a document says in prose about matters that nothing here computes


DOCUMENTS = ("000", "001", "002", "003", "004")
JUDGED = (Kind.CLAIM, Kind.OTHER)  # claims with causes, which the adversary searches


class Standing(StrEnum):
    """What the adversary says of a claim that holds."""

    STANDS = "stands"
    CONDITIONAL = "conditional"  # a run within the document's own set-up contradicts it, in half of the seeds or more
    NOT_SEARCHED = "not searched"


class Cause(StrEnum):
    """Why a claim does not hold."""

    PAPER = "paper against itself"  # numbers of the document exclude each other: the arithmetic is shown
    NOT_SAID = "not said"  # it holds with a reading: keys that the document leaves open, at stated values
    CHANCE = "chance"  # seeds enough show that it holds in some runs and not in others
    OURS = "ours"  # it is about our code, or something here is to be done
    UNEXPLAINED = "unexplained"  # no reading that was searched reaches it; the keys and the nearest one are shown


@dataclass(frozen=True)
class Because:
    """The cause why a claim does not hold, if it does not, with what shows it."""

    cause: Cause
    text: str
    keys: tuple[str, ...] = ()  # open keys of the set-up that were searched
    nearest: str = ""  # the reading that comes nearest, with its numbers, where none reaches it
    reading: str = ""  # of a cause that a claim brings itself: the comparisons with this in their text all agree

    def earned(self, parts: tuple[Comparison, ...]) -> bool:
        """Tells whether the comparisons show this cause."""
        some = [part.holds for part in parts if self.reading in part.text]
        return not self.reading or (bool(some) and all(some))


@dataclass(frozen=True)
class Comparison:
    """One part of a claim, which is true or false, with the numbers that decide it."""

    holds: bool
    text: str
    # The number of the document and ours, if the part compares these two; then the place and the unit.
    said: float | None = None
    ours: float | None = None
    place: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Finding:
    """The result of a check."""

    verdict: Verdict
    measured: str
    reason: str
    agree: int = 0  # number of comparisons that are true
    of: int = 0  # number of all comparisons
    parts: tuple[Comparison, ...] = ()
    seeds: str = ""  # in how many seeds, judged alone, the claim holds: "4/5"; empty for calculations
    because: Because | None = None  # given if the claim does not hold


@dataclass(frozen=True)
class Claim:
    """One statement of a document."""

    id: str
    document: str
    section: str
    item: str  # figure, table, equation or theorem
    claim: str  # the statement in our words
    paper: str  # the number that the document gives
    needs: tuple[str, ...]  # names of the experiments whose results decide the claim
    check: Callable[[Mapping[str, Evidence]], Finding]
    varies: bool = True  # false for a claim about a calculation, which no run can change
    kind: Kind = Kind.CLAIM
    because: Because | None = None  # known cause, if it does not hold


@dataclass(frozen=True)
class Entry:
    """A row of the ledger: a claim with its verdict."""

    id: str
    document: str
    section: str
    item: str
    claim: str
    paper: str
    measured: str
    verdict: str
    reason: str
    scope: str
    kind: str = Kind.CLAIM.value
    seeds: str = ""
    cause: str = ""  # one of `Cause` if a claim does not hold
    because: str = ""  # the arithmetic, the search, or what is to be done
    parts: tuple[Comparison, ...] = ()  # the evidence
    searched: tuple[str, ...] = ()  # open keys that were searched for a reading with which it holds
    nearest: str = ""  # the nearest reading, where none holds
    standing: str = ""  # one of `Standing` if a claim holds
    condition: str = ""  # under what a conditional claim does not hold
    counterexample: Mapping[str, Any] | None = None  # the worst that the adversary found: docs/results/adversary.md

    def to_json(self) -> dict[str, Any]:
        """Returns the row as `claims --json` prints it."""
        return {key: value for key, value in asdict(self).items() if key != "parts"}

    @property
    def counts(self) -> bool:
        """True for a claim of one of the documents."""
        return self.kind == Kind.CLAIM

    @property
    def judged(self) -> bool:
        """True for a claim of a document or of another paper."""
        return self.kind in JUDGED


def judge(measured: str, comparisons: Iterable[Comparison]) -> Finding:
    """Returns the verdict `holds` if all comparisons are true, `fails` if none is, else `partly`.

    Without comparisons it is `not-run`. The reason quotes those comparisons that decide the verdict.
    """
    parts = tuple(comparisons)
    if not parts:
        return Finding(Verdict.NOT_RUN, "", "the results at hand do not cover this claim")
    against = [part.text for part in parts if not part.holds]
    counted = (len(parts) - len(against), len(parts))
    if not against:
        return Finding(Verdict.HOLDS, measured, _quote([part.text for part in parts]), *counted, parts)
    if len(against) == len(parts):
        return Finding(Verdict.FAILS, measured, _quote(against), *counted, parts)
    reason = f"{counted[0]} of {counted[1]} comparisons agree; against it: {_quote(against)}"
    return Finding(Verdict.PARTLY, measured, reason, *counted, parts)


def _quote(texts: list[str]) -> str:
    rest = len(texts) - _SHOWN
    return "; ".join(texts[:_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")
