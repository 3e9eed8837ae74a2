"""Why a claim does not hold: it is judged again with the runs of each variant in place of the published ones.

The verdict stays that of the published experiment. A variant that makes the claim hold names the assumption that it
hangs on; one that makes it hold in more of its comparisons, a part of it. The rest is listed with its numbers, so that
nobody need try it again. Where a variant is another reading of the document, a claim that holds tells of it, too, if it
would not hold so. With one seed a comparison that is close may change sides by chance; more seeds tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.claims.ledger import Claim, Finding, Verdict
from penstock.reproduce.results import Evidence


@dataclass(frozen=True)
class _Trial:
    """A claim under one changed assumption, beside the same flow counts as published."""

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
        # Runs that end sooner have fewer comparisons.
        return self.found.agree * self.published.of > self.published.agree * self.found.of

    @property
    def same(self) -> bool:
        return (self.found.agree, self.found.measured) == (self.published.agree, self.published.measured)


def explained(claim: Claim, evidence: Mapping[str, Evidence]) -> Finding:
    """What the check finds; where the claim does not hold, with the reason that the variants give."""
    found = claim.check(evidence)
    if found.verdict == Verdict.NOT_RUN:
        return found
    if found.verdict == Verdict.HOLDS:
        why = _read_otherwise(claim, evidence) if claim.varies else ""
    else:
        why = _why(claim, evidence) if claim.varies else "a sum, which no run can change"
    return replace(found, reason=f"{found.reason}; {why}") if why else found


def _read_otherwise(claim: Claim, evidence: Mapping[str, Evidence]) -> str:
    """What a claim that holds hangs on: other readings of the document under which it does not."""
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
    """The variants that all experiments of the claim have."""
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
        # Where some variant gives the reason, the numbers of the others would only hide it.
        short = len(rest) < len(trials)
        texts = (trial.name if short else f"{trial.name} {_numbers(trial.found)}" for trial in changed)
        yield f"no better with {', '.join(texts)}"
    same = [trial.name for trial in rest if trial.same]
    if same:
        yield f"same numbers with {', '.join(same)}"


def _numbers(found: Finding) -> str:
    return f"{found.agree} of {found.of} ({found.measured})"
