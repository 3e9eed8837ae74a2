"""Explains why a claim does not hold, by judging it again with the runs of each variant.

The verdict stays that of the published experiment. A cause is earned, and *unexplained* is the default. *Not said* has
a reading: a change of nothing but keys that the document leaves open (`reproduce/open.toml`), to values stated there,
with which the claim holds. If drop-tail in the place of the discipline under test holds with this reading too, or was
not run, the reading explains nothing. *Chance* has seeds enough: `by_chance`. A variant that changes what the document
states shows on what a claim depends, and earns no cause. Variants have one seed and are compared with the published
runs of that seed: they say why, not whether.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.claims import joint
from penstock.claims.counterexample import told
from penstock.claims.rows import Because, Cause, Claim, Finding, Verdict
from penstock.claims.seeds import over_seeds
from penstock.reproduce import open_keys
from penstock.reproduce.results import Evidence

SEEDS = 5  # so many seeds are enough to speak of chance
RARE = 0.1  # a claim that holds in a tenth of the runs would hold in so many seeds less often than this


@dataclass(frozen=True)
class _Trial:
    """The verdict on a claim with a variant, and that with the published runs of the same cells."""

    name: str
    change: str
    because: str  # what speaks for it as a reading; empty if it is none
    found: Finding
    published: Finding
    keys: tuple[str, ...] = ()  # that the document leaves open; empty if the variant changes anything else
    by_droptail: bool | None = False  # it holds as well with drop-tail in its discipline's place; `None`: not known

    @property
    def holds(self) -> bool:
        return self.found.verdict == Verdict.HOLDS

    @property
    def part(self) -> float:
        return self.found.agree / self.found.of if self.found.of else 0.0

    @property
    def helps(self) -> bool:
        # Parts are compared, since a variant whose runs end sooner may have fewer comparisons.
        return self.found.agree * self.published.of > self.published.agree * self.found.of

    @property
    def same(self) -> bool:
        return (self.found.agree, self.found.measured) == (self.published.agree, self.published.measured)


def explained(claim: Claim, evidence: Mapping[str, Evidence], search: joint.Row | None = None) -> Finding:
    """Judges a claim. If it does not hold, the reason says what the variants show, and the finding has its cause.

    `search` is what the joint search of open keys found for it in the experiment as published.
    """
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
        found = replace(found, because=_cause(trials, found.seeds, search))
    return replace(found, reason=f"{found.reason}; {why}") if why else found


def _read_otherwise(trials: list[_Trial]) -> str:
    """Returns a text with the other readings of the document under which a claim does not hold; empty if none."""
    broken = [f"{t.change} {_numbers(t.found)}" for t in trials if t.because and not t.holds]
    return f"other readings of the document, with which it does not hold: {'; '.join(broken)}" if broken else ""


def _cause(trials: list[_Trial], seeds: str, search: joint.Row | None = None) -> Because:
    """Returns the cause that variants, seeds and the joint search earn, for a claim that has none of its own."""
    if by_chance(seeds):
        what = f"{seeds} seeds, each judged alone, show it, and the document does not say how many runs it has"
        return Because(Cause.CHANCE, what)
    keys = tuple(dict.fromkeys((*(key for t in trials for key in t.keys), *(search["keys"] if search else ()))))
    # Where the runs with which variants are compared show it as published, a variant explains nothing.
    holding = [t for t in trials if t.keys and t.holds and t.published.verdict != Verdict.HOLDS]
    # The search runs what variants leave out: where it has their keys and nothing holds, they hold in a part alone.
    whole = set(search["keys"]) if search and search["holds"] is None else set()
    earned = [t for t in holding if t.by_droptail is False and not set(t.keys) <= whole]
    if earned:
        readings = "; ".join(f"{t.change} ({t.because or ', '.join(t.keys)})" for t in earned)
        return Because(Cause.NOT_SAID, f"it holds with a reading of the document: {readings}", keys)
    if search and search["holds"] and search["droptail"] is False:
        reading = f"{told(search['holds'])}: {search['measured']}"
        text = f"it holds with a reading that the joint search of {search['trials']} found: {reading}"
        return Because(Cause.NOT_SAID, text, keys)
    return Because(Cause.UNEXPLAINED, _unexplained(trials, holding, keys, search), keys, _nearest(trials, search))


def by_chance(seeds: str) -> bool:
    """Tells whether seeds, such as "2/5", are enough to say that a claim which does not hold hangs on chance.

    It holds in so many, each judged alone, that a claim which is true in a tenth of the runs would rarely do so.
    """
    held, _, of = seeds.partition("/")
    if not of or int(of) < SEEDS:
        return False
    count, n = int(held), int(of)
    fewer = sum(math.comb(n, k) * 0.1**k * 0.9 ** (n - k) for k in range(count))
    return 1 - fewer < RARE


def _unexplained(trials: list[_Trial], holding: list[_Trial], keys: tuple[str, ...], search: joint.Row | None) -> str:
    if not keys:
        return "no key that the document leaves open was searched"
    jointly = f", and in {search['trials']} set-ups of the joint search" if search else ""
    text = f"no reading that was searched reaches it; keys, each alone{jointly}: {', '.join(keys)}"
    if trials and trials[0].published.verdict == Verdict.HOLDS:
        text += "; it holds in the runs of which there are variants, and not in the others"
    for known, words in (
        (True, "and with drop-tail in its place as well"),
        (None, "drop-tail there was not run"),
        (False, "but not in the runs that variants leave out"),
    ):
        if some := [t.change for t in holding if t.by_droptail is known]:
            text += f"; with {'; '.join(some)} it holds, {words}"
    stated = [t.change for t in trials if t.holds and not t.keys and t.published.verdict != Verdict.HOLDS]
    return text + (f"; it holds with what the document has otherwise: {'; '.join(stated)}" if stated else "")


def _nearest(trials: list[_Trial], search: joint.Row | None) -> str:
    """Returns the reading with which most comparisons agree, with its numbers: the published one if none is nearer."""
    if not trials and not search:
        return ""
    moved = [t for t in trials if t.keys and not t.same and not t.holds and t.helps]
    best = max(moved, key=lambda t: t.part, default=None)
    published = trials[0].published if trials else None
    part = best.part if best else published.agree / max(1, published.of) if published else 0.0
    if search and search["nearest"] and search["agree"] > part * search["of"]:
        return f"{told(search['nearest'])}: {search['agree']} of {search['of']} ({search['measured']})"
    if best:
        return f"{best.change}: {_numbers(best.found)}"
    return f"as published: {_numbers(published)}" if published and published.verdict != Verdict.HOLDS else ""


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
    subset = {name: run.subset() for name, run in evidence.items()}
    published = claim.check(subset)
    tested = speaks_of(claim, subset)
    for variant in first.experiment.variants:
        if all(variant.name in run.varied for run in evidence.values()):
            runs = {name: run.varied[variant.name] for name, run in evidence.items()}
            found = claim.check(runs)
            if Verdict.NOT_RUN not in (found.verdict, published.verdict):
                keys = tuple(key.name for key in open_keys.read_by(first.experiment, variant))
                plain = _with_droptail(claim, runs, tested) if found.verdict == Verdict.HOLDS else False
                yield _Trial(variant.name, variant.change, variant.because, found, published, keys, plain)


def speaks_of(claim: Claim, evidence: Mapping[str, Evidence]) -> list[str]:
    """Returns the disciplines under test without whose runs the check says something else."""
    tested = dict.fromkeys(aqm for run in evidence.values() for aqm in open_keys.under_test(run.experiment))
    whole = claim.check(evidence)

    def without(aqm: str) -> Finding:
        left = {name: replace(run, outcomes=run.of_others(aqm)) for name, run in evidence.items()}
        return claim.check(left) if all(run.outcomes for run in left.values()) else Finding(Verdict.NOT_RUN, "", "")

    return [aqm for aqm in tested if (found := without(aqm)).parts != whole.parts or found.verdict != whole.verdict]


def _with_droptail(claim: Claim, evidence: Mapping[str, Evidence], tested: list[str]) -> bool | None:
    """Tells whether a claim holds with the runs of drop-tail in the place of a discipline; `None` if there are none."""
    known: bool | None = False
    for aqm in tested:
        runs = {name: run.with_other(aqm, open_keys.plain(run.experiment)) for name, run in evidence.items()}
        if not all(runs.values()):
            known = None
        elif claim.check({name: run for name, run in runs.items() if run}).verdict == Verdict.HOLDS:
            return True
    return known


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
