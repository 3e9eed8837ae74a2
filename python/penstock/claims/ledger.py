"""Claims, the verdicts that follow from their comparisons, and the list of all claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Finding:
    """The result of a check."""

    verdict: Verdict
    measured: str
    reason: str
    agree: int = 0  # number of comparisons that are true
    of: int = 0  # number of all comparisons


@dataclass(frozen=True)
class Comparison:
    """One part of a claim, which is true or false, with the numbers that decide it."""

    holds: bool
    text: str


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

    def to_json(self) -> dict[str, Any]:
        """Returns the row as `claims --json` prints it."""
        return asdict(self)


def judge(measured: str, comparisons: Iterable[Comparison]) -> Finding:
    """Returns the verdict `holds` if all comparisons are true, `fails` if none is, else `partly`.

    Without comparisons it is `not-run`. The reason quotes those comparisons that decide the verdict.
    """
    parts = list(comparisons)
    if not parts:
        return Finding(Verdict.NOT_RUN, "", "the results at hand do not cover this claim")
    against = [part.text for part in parts if not part.holds]
    counted = (len(parts) - len(against), len(parts))
    if not against:
        return Finding(Verdict.HOLDS, measured, _quote([part.text for part in parts]), *counted)
    if len(against) == len(parts):
        return Finding(Verdict.FAILS, measured, _quote(against), *counted)
    reason = f"{counted[0]} of {counted[1]} comparisons agree; against it: {_quote(against)}"
    return Finding(Verdict.PARTLY, measured, reason, *counted)


def _quote(texts: list[str]) -> str:
    rest = len(texts) - _SHOWN
    return "; ".join(texts[:_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")


def claims() -> list[Claim]:
    """Returns every claim whose experiments are known, in the order of documents and sections."""
    everything = [claim for experiment in EXPERIMENTS.values() for claim in experiment.defined("claims", "CLAIMS", ())]
    decidable = (claim for claim in everything if EXPERIMENTS.keys() >= set(claim.needs))
    return sorted(decidable, key=lambda claim: (claim.document, claim.section))


def ledger(evidence: Mapping[str, Evidence], only: str | None = None) -> list[Entry]:
    """Judges every claim, or those that need the experiment `only`, by the results in `evidence`."""
    return [_entry(claim, evidence) for claim in claims() if only is None or only in claim.needs]


def counted(entries: Iterable[Entry]) -> str:
    """Returns the number of claims with each verdict, as text."""
    verdicts = [entry.verdict for entry in entries]
    return ", ".join(f"{verdicts.count(v)} {v.value}" for v in Verdict if v in verdicts)


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
    about = (claim.id, claim.document, claim.section, claim.item, claim.claim, claim.paper)
    return Entry(*about, finding.measured, finding.verdict.value, finding.reason, scope)
