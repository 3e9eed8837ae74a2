"""The list of all claims, and the ledger: what results say of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.claims import counterexample, joint
from penstock.claims.rows import (
    JUDGED,
    Because,
    Cause,
    Claim,
    Comparison,
    Entry,
    Finding,
    Kind,
    Standing,
    Verdict,
    judge,
)
from penstock.claims.scope import OUT_OF_SCOPE
from penstock.claims.why import explained
from penstock.reproduce.experiments import EXPERIMENTS
from penstock.reproduce.results import Evidence

__all__ = [
    "Because",
    "Cause",
    "Claim",
    "Comparison",
    "Entry",
    "Finding",
    "Kind",
    "Verdict",
    "causes",
    "claims",
    "counted",
    "judge",
    "ledger",
]


def claims() -> list[Claim]:
    """Returns every claim whose experiments are known, in the order of documents and sections."""
    everything = [claim for experiment in EXPERIMENTS.values() for claim in experiment.defined("claims", "CLAIMS", ())]
    decidable = [claim for claim in everything if EXPERIMENTS.keys() >= set(claim.needs)]
    return sorted([*decidable, *OUT_OF_SCOPE], key=lambda claim: (claim.document, claim.section))


def ledger(
    evidence: Mapping[str, Evidence], only: str | None = None, searched: Mapping[str, joint.Row] | None = None
) -> list[Entry]:
    """Judges every claim, or those that need the experiment `only`, by the results in `evidence`.

    `searched` is what a joint search found in these experiments, by the ids of claims; by default what is stored, which
    is that of the experiments as published.
    """
    found = joint.stored() if searched is None else searched
    return [_entry(claim, evidence, found.get(claim.id)) for claim in claims() if only is None or only in claim.needs]


def counted(entries: Iterable[Entry]) -> str:
    """Returns the number of claims with each verdict, as text. Rows that are no claims are not counted."""
    verdicts = [entry.verdict for entry in entries if entry.counts]
    return ", ".join(f"{verdicts.count(v)} {v.value}" for v in Verdict if v in verdicts)


def causes(entries: Iterable[Entry]) -> str:
    """Returns why claims do not hold, with the number of each cause, as text."""
    found = [entry.cause for entry in entries if entry.counts and entry.cause]
    return ", ".join(f"{found.count(cause)} {cause.value}" for cause in Cause if cause in found)


def _entry(claim: Claim, evidence: Mapping[str, Evidence], search: joint.Row | None) -> Entry:
    missing = [name for name in claim.needs if name not in evidence]
    if missing:
        commands = " and ".join(f"`penstock reproduce {name}`" for name in missing)
        finding = Finding(Verdict.NOT_RUN, "", f"no results: run {commands}")
        scope = ""
    else:
        try:
            finding = explained(claim, evidence, search)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            reason = f"the results cannot be judged: {type(error).__name__}: {error}"
            finding = Finding(Verdict.NOT_RUN, "", " ".join(reason.split()))
        scope = "; ".join(f"{name}: {evidence[name].scope()}" for name in claim.needs)
    if finding.verdict in (Verdict.PARTLY, Verdict.FAILS) and claim.because and claim.because.earned(finding.parts):
        finding = replace(finding, because=claim.because)
    about = (claim.id, claim.document, claim.section, claim.item, claim.claim, claim.paper)
    judged = (finding.measured, finding.verdict.value, finding.reason, scope, claim.kind.value, finding.seeds)
    because = finding.because if claim.kind in JUDGED else None
    why = (because.cause.value, because.text) if because else ("", "")
    shown = (because.keys, because.nearest) if because else ((), "")
    found = counterexample.stored().get(claim.id)
    stands = _standing(claim, finding.verdict.value, found)
    return Entry(*about, *judged, *why, finding.parts, *shown, *stands, found)


def with_found(entries: Iterable[Entry], rows: Mapping[str, counterexample.Row]) -> list[Entry]:
    """Returns rows with what the adversary has found since; a verdict does not change."""
    known = {claim.id: claim for claim in claims()}
    there = [entry for entry in entries if entry.id in known]
    standing = [_standing(known[entry.id], entry.verdict, rows.get(entry.id)) for entry in there]
    return [
        replace(entry, standing=stands, condition=condition, counterexample=rows.get(entry.id))
        for entry, (stands, condition) in zip(there, standing, strict=True)
    ]


def _standing(claim: Claim, verdict: str, found: counterexample.Row | None) -> tuple[str, str]:
    """Returns what the adversary says of a claim that holds, and under what it does not."""
    if verdict != Verdict.HOLDS or claim.kind not in JUDGED:
        return "", ""
    kind = counterexample.kind(found)
    if found and kind == "contradicted":
        return Standing.CONDITIONAL.value, counterexample.condition(found)
    # Arithmetic that no run can change needs no search.
    searched = kind != "not searched" or not claim.varies
    return (Standing.STANDS if searched else Standing.NOT_SEARCHED).value, ""
