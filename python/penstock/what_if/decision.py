"""The rule by which a discipline is advised: what both directions carry, and how long packets wait in either.

`carried` is the sum of the goodputs of both directions, each as a share of its rate; `worse` the longer of both 90th
percentiles of the queueing delay. All numbers are medians over seeds. What is near in either is what counts as the same
for `compare` (`experiments/verdict.py`).

1. A discipline that carries less than 95 % of what is carried now is left out, and so is one with a seed below 93 %.
2. Of the others those are *near* whose `worse` is within a tenth or 1.5 ms of the smallest.
3. Of the near ones those remain that carry within 3 % of the most; of these the one with the shortest delay in its own
   queue is the best.
4. It is recommended if `worse` falls by at least a fifth and 2 ms, if the delay of its own queue does so while `worse`
   does not rise, or if it carries at least 5 % more and `worse` does not rise. Otherwise the link is left as it is.

An advice stands if it holds with all senders that fit the capture nearly as well: with each of them it must not carry
less than 95 % of what is carried now without a shorter delay, and `worse` must be within a fifth or 3 ms of that of the
best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.experiments.verdict import CARRIED, DELAY
from penstock.what_if.outcome import Outcome

MAY_CARRY = 0.93  # of what is carried now
ALIKE = 0.97  # of the most that is carried
BETTER, BETTER_MS = 0.8, 2.0
MORE = 1.05
RISE, RISE_MS = 1.05, 0.5  # by which a delay may differ and count as the same
SAFE, SAFE_MS = 1.2, 3.0


@dataclass(frozen=True)
class Decision:
    """What the outcomes of one kind of senders say."""

    verdict: str  # "recommended" or "leave"
    best: Outcome
    because: list[str]


def _p90(one: Outcome) -> float:
    return one.delay_ms["p90"].median


def _shorter(before: float, after: float) -> bool:
    return after <= min(BETTER * before, before - BETTER_MS)


def _no_longer(before: float, after: float) -> bool:
    return after <= max(RISE * before, before + RISE_MS)


def allowed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Returns the outcomes that carry enough; the first is the link as it is, and is always among them."""
    now = outcomes[0].carried.median
    return [
        one
        for one in outcomes
        if one is outcomes[0] or (CARRIED.near(one.carried.median, now) and one.carried.low >= MAY_CARRY * now)
    ]


def best_of(outcomes: Sequence[Outcome]) -> Outcome:
    """Returns the best outcome by the rule above; the first is the link as it is."""
    able = allowed(outcomes)
    least = min(one.worse_ms.median for one in able)
    near = [one for one in able if DELAY.near(one.worse_ms.median, least)]
    most = max(one.carried.median for one in near)
    return min((one for one in near if one.carried.median >= ALIKE * most), key=_p90)


def decide(outcomes: Sequence[Outcome]) -> Decision:
    """Decides among outcomes, of which the first is the link as it is."""
    now, best = outcomes[0], best_of(outcomes)
    worse = _shorter(now.worse_ms.median, best.worse_ms.median)
    no_longer = _no_longer(now.worse_ms.median, best.worse_ms.median)
    own = _shorter(_p90(now), _p90(best)) and no_longer
    more = best.carried.median >= MORE * now.carried.median and no_longer
    if best is now or not (worse or own or more):
        because = [
            f"no candidate shortens the delay of {now.worse_ms.median:.1f} ms (p90, the longer of both directions) by "
            "a fifth and 2 ms, or carries 5 % more with no longer delay"
        ]
        return Decision("leave", now, [*because, *_costly(outcomes, now)])
    because = [
        f"the queueing delay falls from {_p90(now):.1f} to {_p90(best):.1f} ms (p90; {best.delay_ms['p90'].low:.1f} to "
        f"{best.delay_ms['p90'].high:.1f} over seeds), and that of the worse direction from "
        f"{now.worse_ms.median:.1f} to {best.worse_ms.median:.1f} ms",
        f"goodput goes from {now.goodput_bps.median / 1e6:.3g} to {best.goodput_bps.median / 1e6:.3g} Mbit/s"
        + _other_way(now, best)
        + f": together {best.carried.median / max(now.carried.median, 1e-9) - 1:+.1%} of what is carried",
    ]
    like = [
        one.discipline
        for one in allowed(outcomes)
        if one is not best
        and one.worse_ms.low <= best.worse_ms.high
        and one.delay_ms["p90"].low <= best.delay_ms["p90"].high
    ]
    if like:
        because.append(f"as good within the range of the seeds: {', '.join(like)}")
    return Decision("recommended", best, [*because, *_costly(outcomes, best)])


def _other_way(now: Outcome, best: Outcome) -> str:
    if not max(now.back_goodput_bps.median, best.back_goodput_bps.median):
        return ""
    then, there = now.back_goodput_bps.median / 1e6, best.back_goodput_bps.median / 1e6
    return f", and in the other direction from {then:.3g} to {there:.3g}"


def _costly(outcomes: Sequence[Outcome], best: Outcome) -> list[str]:
    """Names the disciplines with a shorter delay that cost too much; the first outcome is the link as it is."""
    able = allowed(outcomes)
    found = [one for one in outcomes if one not in able and one.worse_ms.median < best.worse_ms.median]
    losses = [1 - one.carried.median / max(outcomes[0].carried.median, 1e-9) for one in found]
    return [
        f"{one.discipline} has {_p90(one):.1f} ms, but costs {loss:.0%} of what both directions carry"
        for one, loss in zip(found, losses, strict=True)
    ]


def stands(discipline: str, outcomes: Sequence[Outcome]) -> bool:
    """Returns whether an advice holds for the outcomes of other senders; the first is the link as it is."""
    chosen = next((one for one in outcomes if one.discipline == discipline), outcomes[0])
    now, best = outcomes[0], best_of(outcomes)
    costs = (
        not CARRIED.near(chosen.carried.median, now.carried.median) and chosen.worse_ms.median >= now.worse_ms.median
    )
    least = best.worse_ms.median
    return not costs and chosen.worse_ms.median <= max(SAFE * least, least + SAFE_MS)


def is_sure(found: Decision, outcomes: Sequence[Outcome]) -> bool:
    """Returns whether an advice holds over all seeds: what is recommended waits less than now, or carries more."""
    now, best = outcomes[0], found.best
    if found.verdict == "recommended":
        shorter = best.worse_ms.high < now.worse_ms.low or best.delay_ms["p90"].high < now.delay_ms["p90"].low
        return shorter or best.carried.low > now.carried.high
    return True


__all__ = ["Decision", "allowed", "best_of", "decide", "is_sure", "stands"]
