"""What chance does to a verdict: claims are judged in each seed alone, and numbers get their range over seeds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.claims.rows import Claim, Comparison, Finding, Verdict, judge
from penstock.reproduce.results import Evidence

NUMBER = re.compile(r"(?<![\w.,])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")


def over_seeds(claim: Claim, evidence: Mapping[str, Evidence], found: Finding) -> Finding:
    """Adds to a verdict, which is that of the medians, in how many seeds it holds, and the range of its numbers.

    What holds in the medians and in less than half of the seeds holds partly.
    """
    if found.verdict == Verdict.NOT_RUN or not claim.varies or not claim.needs:
        return found
    single = _single(claim, evidence)
    if not single:
        return found
    held = sum(one.verdict == Verdict.HOLDS for one in single)
    seeds = f"{held}/{len(single)}"
    if len(single) == 1:
        return replace(found, seeds=seeds)
    widened = judge(ranged(found.measured, [one.measured for one in single]), _parts(found, single))
    # A check may have added to what the comparisons say.
    reason = found.reason if widened.of != found.of or found.reason != _plain(found) else widened.reason
    widened = replace(widened, reason=reason, verdict=found.verdict, seeds=seeds)
    if found.verdict == Verdict.HOLDS and 2 * held < len(single):
        told = f"holds in the medians, but in {held} of {len(single)} seeds alone; {widened.reason}"
        return replace(widened, verdict=Verdict.PARTLY, reason=told)
    return widened


def _plain(found: Finding) -> str:
    return judge(found.measured, found.parts).reason


def _single(claim: Claim, evidence: Mapping[str, Evidence]) -> list[Finding]:
    """Judges each seed that all experiments of the claim have; a seed that does not cover the claim is left out."""
    common = sorted(set.intersection(*(set(evidence[name].seeds) for name in claim.needs)))
    chosen = common if any(evidence[name].random for name in claim.needs) else common[:1]
    found = [claim.check({name: evidence[name].by_seed[s] for name in claim.needs}) for s in chosen]
    return [one for one in found if one.verdict != Verdict.NOT_RUN]


def _parts(found: Finding, single: Sequence[Finding]) -> list[Comparison]:
    """The comparisons with the ranges of their numbers, if each seed has the same comparisons."""
    if any(len(one.parts) != len(found.parts) for one in single):
        return list(found.parts)
    return [
        replace(part, text=ranged(part.text, [one.parts[i].text for one in single]))
        for i, part in enumerate(found.parts)
    ]


def ranged(text: str, others: Sequence[str]) -> str:
    """Adds to each number of a text its least and largest value in other texts, which differ in numbers alone."""
    if any(NUMBER.sub("#", other) != NUMBER.sub("#", text) for other in others):
        return text
    columns = list(zip(*(NUMBER.findall(other) for other in others), strict=True))
    values = iter(columns)

    def with_range(match: re.Match[str]) -> str:
        seen = sorted(next(values), key=lambda number: float(number.replace(",", "")))
        return match[0] if seen[0] == seen[-1] else f"{match[0]} [{seen[0]} to {seen[-1]}]"

    return NUMBER.sub(with_range, text)
