"""Explains why a claim does not hold, by judging it again with the runs of each variant.

The verdict stays that of the published experiment. A variant with which the claim holds shows the assumption on which
the claim depends. A variant with which more comparisons are true explains a part of the difference. All other variants
are listed with their numbers. A variant may also be another reading of the document; if a claim holds as published and
not with this reading, the reason mentions it. With one seed a close comparison may be decided by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.claims.ledger import Claim, Finding, Verdict
from penstock.reproduce.results import Evidence


@dataclass(frozen=True)
class _Trial:
    """The verdict on a claim with a variant, and that with the published runs of the same cells."""

    name: str
    change: str
    reading: bool
    found: Finding
    published: Finding

    @property
    def holds(self) -> bool:
        return self.found.verdict == Verdict.HOLDS

    @property
    def helps(self) -> bool:
        # Parts are compared, since a variant whose runs end sooner may have fewer comparisons.
        return self.found.agree * self.published.of > self.published.agree * self.found.of

    @property
    def same(self) -> bool:
        return (self.found.agree, self.found.measured) == (self.published.agree, self.published.measured)


def explained(claim: Claim, evidence: Mapping[str, Evidence]) -> Finding:
    """Judges a claim. If it does not hold, the reason says what the variants show."""
    found = claim.check(evidence)
    if found.verdict == Verdict.NOT_RUN:
        return found
    if found.verdict == Verdict.HOLDS:
        why = _read_otherwise(claim, evidence) if claim.varies else ""
    else:
        why = _why(claim, evidence) if claim.varies else "a sum, which no run can change"
    return replace(found, reason=f"{found.reason}; {why}") if why else found


def _read_otherwise(claim: Claim, evidence: Mapping[str, Evidence]) -> str:
    """Returns a text with the other readings of the document under which a claim does not hold; empty if none."""
    trials = _trials(claim, {name: evidence[name] for name in claim.needs})
    broken = [f"{t.change} {_numbers(t.found)}" for t in trials if t.reading and not t.holds]
    return f"other readings of the document, with which it does not hold: {'; '.join(broken)}" if broken else ""


def _why(claim: Claim, evidence: Mapping[str, Evidence]) -> str:
    trials = list(_trials(claim, {name: evidence[name] for name in claim.needs}))
    if not trials:
        return ""
    first = evidence[claim.needs[0]]
    subset = first.experiment.subset
    seeds = "1 seed" if len(first.seeds) == 1 else f"{len(first.seeds)} seeds"
    published = trials[0].published
    if published.verdict == Verdict.HOLDS:
        broken = [f"{t.name} ({t.found.agree} of {t.found.of})" for t in trials if not t.holds]
        not_so = f", though not with {', '.join(broken)}" if broken else ""
        where = f"at {subset} alone" if subset else "in the runs of the quick form"
        return f"{where}, where variants are run, it holds{not_so}"
    return f"{f'at {subset}, ' if subset else ''}{seeds}: {'; '.join(_sentences(trials))}"


def _trials(claim: Claim, evidence: Mapping[str, Evidence]) -> Iterator[_Trial]:
    """Yields the verdicts with those variants that all experiments of the claim have."""
    first = evidence[claim.needs[0]]
    published = claim.check({name: run.subset() for name, run in evidence.items()})
    for variant in first.experiment.variants:
        if all(variant.name in run.varied for run in evidence.values()):
            found = claim.check({name: run.varied[variant.name] for name, run in evidence.items()})
            if Verdict.NOT_RUN not in (found.verdict, published.verdict):
                yield _Trial(variant.name, variant.change, variant.reading, found, published)


def _sentences(trials: list[_Trial]) -> Iterator[str]:
    published = trials[0].published
    yield f"as published {_numbers(published)}"
    for trial in trials:
        if trial.holds:
            yield f"with {trial.change} it holds ({trial.found.measured})"
    for trial in trials:
        if trial.helps and not trial.holds:
            yield f"better but still not with {trial.change}: {_numbers(trial.found)}"
    rest = [trial for trial in trials if not (trial.holds or trial.helps)]
    if len(rest) == len(trials):
        yield "the variants tried do not change it"
    changed = [trial for trial in rest if not trial.same]
    if changed:
        # If some variant explains the difference, the others are only named, without numbers.
        short = len(rest) < len(trials)
        texts = (trial.name if short else f"{trial.name} {_numbers(trial.found)}" for trial in changed)
        yield f"no better with {', '.join(texts)}"
    same = [trial.name for trial in rest if trial.same]
    if same:
        yield f"same numbers with {', '.join(same)}"


def _numbers(found: Finding) -> str:
    return f"{found.agree} of {found.of} ({found.measured})"
