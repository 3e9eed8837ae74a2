"""Explains why a claim does not hold, by judging it again with the runs of each variant.

The verdict stays that of the published experiment. A variant with which the claim holds shows the assumption on which
the claim depends. A variant with which more comparisons are true explains a part of the difference. All other variants
are listed with their numbers. A variant for which something outside of the judged numbers speaks is a reading of the
document; if a claim holds as published and not with a reading, the reason mentions it. Variants have one seed and are
compared with the published runs of that seed: they say why, not whether.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.claims.rows import Because, Cause, Claim, Finding, Verdict
from penstock.claims.seeds import over_seeds
from penstock.reproduce.results import Evidence

SEARCH = 2  # so many variants that change the numbers are a search; one is a guess


@dataclass(frozen=True)
class _Trial:
    """The verdict on a claim with a variant, and that with the published runs of the same cells."""

    name: str
    change: str
    because: str  # what speaks for it as a reading; empty if it is none
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
    """Judges a claim. If it does not hold, the reason says what the variants show, and the finding has its cause."""
    found = over_seeds(claim, evidence, claim.check(evidence))
    if found.verdict in (Verdict.NOT_RUN, Verdict.OUT_OF_SCOPE):
        return found
    if not claim.varies:
        sum_alone = "a sum, which no run can change"
        if found.verdict == Verdict.HOLDS:
            return found
        return replace(found, reason=f"{found.reason}; {sum_alone}", because=Because(Cause.PAPER, found.reason))
    trials = list(_trials(claim, {name: evidence[name] for name in claim.needs}))
    if found.verdict == Verdict.HOLDS:
        why = _read_otherwise(trials)
    else:
        why = _why(trials, evidence[claim.needs[0]])
        found = replace(found, because=_cause(trials, found.seeds))
    return replace(found, reason=f"{found.reason}; {why}") if why else found


def _read_otherwise(trials: list[_Trial]) -> str:
    """Returns a text with the other readings of the document under which a claim does not hold; empty if none."""
    broken = [f"{t.change} {_numbers(t.found)}" for t in trials if t.because and not t.holds]
    return f"other readings of the document, with which it does not hold: {'; '.join(broken)}" if broken else ""


def _cause(trials: list[_Trial], seeds: str) -> Because:
    """Returns what the variants say of the cause, for a claim whose cause is not known otherwise."""
    if trials and trials[0].published.verdict == Verdict.HOLDS:
        return _by_chance(seeds)
    holding = [t for t in trials if t.holds and t.published.verdict != Verdict.HOLDS]
    moved = [t for t in trials if not t.same]
    read = [f"{t.change} ({t.because})" for t in holding if t.because]
    if read:
        return Because(Cause.NOT_SAID, f"the document can be read otherwise, and then it holds: {'; '.join(read)}")
    if holding:
        told = "; ".join(t.change for t in holding)
        return Because(Cause.NOT_SAID, f"it hangs on what the document does not say: it holds with {told}")
    if len(moved) >= SEARCH:
        told = "; ".join(t.change for t in moved)
        return Because(Cause.NOT_SAID, f"no reading that was tried reaches it, of {len(moved)} that move it: {told}")
    few = f"{len(moved) or 'no'} of {len(trials)} variants move it, which is no search"
    return Because(Cause.OPEN, few if trials else "no variant of these runs was run")


def _by_chance(seeds: str) -> Because:
    """The runs with which variants are compared show the claim: other seeds do not, or runs that have no variants."""
    held, _, of = seeds.partition("/")
    if of and int(held):
        told = f"chance: {seeds} seeds, each judged alone, show it, and the document does not say how many runs it has"
        return Because(Cause.NOT_SAID, told)
    return Because(Cause.OPEN, "it holds in the runs of which there are variants; in the others nothing was tried")


def _why(trials: list[_Trial], first: Evidence) -> str:
    if not trials:
        return ""
    subset = first.experiment.subset
    published = trials[0].published
    if published.verdict == Verdict.HOLDS:
        broken = [f"{t.name} ({t.found.agree} of {t.found.of})" for t in trials if not t.holds]
        not_so = f", though not with {', '.join(broken)}" if broken else ""
        where = f"at {subset} alone" if subset else "in the runs of the quick form"
        return f"{where}, where variants are run, it holds{not_so}"
    return f"{f'at {subset}, ' if subset else ''}1 seed: {'; '.join(_sentences(trials))}"


def _trials(claim: Claim, evidence: Mapping[str, Evidence]) -> Iterator[_Trial]:
    """Yields the verdicts with those variants that all experiments of the claim have."""
    if not all(run.variants for run in evidence.values()):
        return
    first = next(iter(evidence.values()))
    published = claim.check({name: run.subset() for name, run in evidence.items()})
    for variant in first.experiment.variants:
        if all(variant.name in run.varied for run in evidence.values()):
            found = claim.check({name: run.varied[variant.name] for name, run in evidence.items()})
            if Verdict.NOT_RUN not in (found.verdict, published.verdict):
                yield _Trial(variant.name, variant.change, variant.because, found, published)


def _sentences(trials: list[_Trial]) -> Iterator[str]:
    published = trials[0].published
    yield f"as published {_numbers(published)}"
    for trial in trials:
        if trial.holds:
            reading = f", a reading, since {trial.because}" if trial.because else ""
            yield f"with {trial.change} it holds ({trial.found.measured}){reading}"
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
