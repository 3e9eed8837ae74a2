"""Claims, the verdicts that follow from their comparisons, and the list of all claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from penstock.reproduce.experiments import EXPERIMENTS
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
    OWN = "finding"  # what these runs show and no document says
    SET_UP = "set-up"  # a check that the set-up of our runs is what was meant; it says nothing of a result
    SCOPE = "scope"  # what a document says in prose about matters that nothing here computes


class Cause(StrEnum):
    """Why a claim does not hold."""

    PAPER = "paper against itself"  # numbers of the document exclude each other: the arithmetic is shown
    NOT_SAID = "not said"  # it hangs on what the document does not say: the search is shown
    OURS = "ours"  # something here is to be done
    OPEN = "open"


@dataclass(frozen=True)
class Because:
    """The cause why a claim does not hold, if it does not, with what shows it."""

    cause: Cause
    text: str


@dataclass(frozen=True)
class Comparison:
    """One part of a claim, which is true or false, with the numbers that decide it."""

    holds: bool
    text: str


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

    def to_json(self) -> dict[str, Any]:
        """Returns the row as `claims --json` prints it."""
        return asdict(self)

    @property
    def counts(self) -> bool:
        """True for a claim of a document."""
        return self.kind == Kind.CLAIM


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


def claims() -> list[Claim]:
    """Returns every claim whose experiments are known, in the order of documents and sections."""
    from penstock.claims.scope import OUT_OF_SCOPE

    everything = [claim for experiment in EXPERIMENTS.values() for claim in experiment.defined("claims", "CLAIMS", ())]
    decidable = [claim for claim in everything if EXPERIMENTS.keys() >= set(claim.needs)]
    return sorted([*decidable, *OUT_OF_SCOPE], key=lambda claim: (claim.document, claim.section))


def ledger(evidence: Mapping[str, Evidence], only: str | None = None) -> list[Entry]:
    """Judges every claim, or those that need the experiment `only`, by the results in `evidence`."""
    return [_entry(claim, evidence) for claim in claims() if only is None or only in claim.needs]


def counted(entries: Iterable[Entry]) -> str:
    """Returns the number of claims with each verdict, as text. Rows that are no claims are not counted."""
    verdicts = [entry.verdict for entry in entries if entry.counts]
    return ", ".join(f"{verdicts.count(v)} {v.value}" for v in Verdict if v in verdicts)


def causes(entries: Iterable[Entry]) -> str:
    """Returns why claims do not hold, with the number of each cause, as text."""
    found = [entry.cause for entry in entries if entry.counts and entry.cause]
    return ", ".join(f"{found.count(cause)} {cause.value}" for cause in Cause if cause in found)


def _entry(claim: Claim, evidence: Mapping[str, Evidence]) -> Entry:
    missing = [name for name in claim.needs if name not in evidence]
    if missing:
        commands = " and ".join(f"`penstock reproduce {name}`" for name in missing)
        finding = Finding(Verdict.NOT_RUN, "", f"no results: run {commands}")
        scope = ""
    else:
        from penstock.claims.why import explained

        try:
            finding = explained(claim, evidence)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            reason = f"the results cannot be judged: {type(error).__name__}: {error}"
            finding = Finding(Verdict.NOT_RUN, "", " ".join(reason.split()))
        scope = "; ".join(f"{name}: {evidence[name].scope()}" for name in claim.needs)
    if finding.verdict in (Verdict.PARTLY, Verdict.FAILS) and claim.because:
        finding = replace(finding, because=claim.because)
    about = (claim.id, claim.document, claim.section, claim.item, claim.claim, claim.paper)
    judged = (finding.measured, finding.verdict.value, finding.reason, scope, claim.kind.value, finding.seeds)
    because = finding.because if claim.kind == Kind.CLAIM else None
    return Entry(*about, *judged, *((because.cause.value, because.text) if because else ()))
