"""How flows which start and end share a link: fair shares, and how soon and how closely flows reach them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.fairness import jain
from penstock.reproduce.results import Outcome
from penstock.reproduce.series import Series

WITHIN = 0.05  # a share is met in a second whose goodput differs from it by at most this part
STEADY = 0.10  # a flow is steady from when its goodput differs from its final mean by at most this part
ROUND_TRIPS = 3  # time which flows have to react to a new flow, in round trips


@dataclass(frozen=True)
class Phase:
    """A time in which no flow starts or ends."""

    begin_s: float
    end_s: float
    active: tuple[int, ...]
    joined: bool  # true if the phase begins with the start of a flow
    grace_s: float  # `ROUND_TRIPS` times the longest round trip time of the active flows

    @property
    def judged(self) -> range:
        """The whole seconds of the phase that begin after `grace_s`."""
        return range(math.ceil(self.begin_s + self.grace_s), math.floor(self.end_s))

    @property
    def whole(self) -> range:
        """All whole seconds of the phase."""
        return range(math.ceil(self.begin_s), math.floor(self.end_s))

    @property
    def tail(self) -> range:
        """The last ten judged seconds, in which even slow flows have reached their final rates."""
        return range(max(self.judged.start, self.judged.stop - 10), self.judged.stop)


def phases(outcome: Outcome) -> list[Phase]:
    """Returns the phases of a run in which at least one flow is active."""
    end_of_run = float(outcome.summary["duration_s"])
    spans = [_span(flow, end_of_run) for flow in outcome.summary["flows"]]
    starts = {start for start, _ in spans}
    times = sorted(starts | {end for _, end in spans} | {end_of_run})
    found = []
    for begin, end in pairwise(times):
        active = tuple(i for i, (start, stop) in enumerate(spans) if start <= begin and end <= stop)
        if active:
            grace_ms = ROUND_TRIPS * max(outcome.summary["flows"][i]["rtt_ms"]["min"] or 0.0 for i in active)
            found.append(Phase(begin, end, active, begin in starts, grace_ms / 1e3))
    return found


def _span(flow: dict[str, Any], end_of_run: float) -> tuple[float, float]:
    start = float(flow["start_s"])
    return start, end_of_run if flow["completion_s"] is None else start + float(flow["completion_s"])


def max_min(capacity: float, caps: Sequence[float]) -> list[float]:
    """Returns max-min fair shares: none exceeds its cap, and what one flow cannot use is divided among the others."""
    shares = [0.0] * len(caps)
    left = capacity
    for rank, index in enumerate(sorted(range(len(caps)), key=caps.__getitem__)):
        shares[index] = min(caps[index], left / (len(caps) - rank))
        left -= shares[index]
    return shares


def met(series: Series, phase: Phase, shares: Sequence[float], second: int) -> bool:
    """Returns true if the goodput of each active flow in this second differs from its share by at most `WITHIN`."""
    rates = (series.flows[i][second] for i in phase.active)
    return all(abs(rate - share) <= WITHIN * share for rate, share in zip(rates, shares, strict=True))


def settle_s(series: Series, phase: Phase, shares: Sequence[float]) -> float | None:
    """From the begin of a phase until all shares are met in every second that is left; nothing if never."""
    last_miss = max((k for k in phase.whole if not met(series, phase, shares, k)), default=phase.whole.start - 1)
    return None if last_miss == phase.whole.stop - 1 else last_miss + 1 - phase.begin_s


def converge_s(series: Series, phase: Phase) -> float | None:
    """Returns the seconds from the start of a phase until every flow stays within `STEADY` of its final mean.

    `None` means that some flow does not.
    """
    tail = phase.tail
    levels = [sum(series.flows[i][k] for k in tail) / len(tail) for i in phase.active]

    def near(second: int) -> bool:
        rates = (series.flows[i][second] for i in phase.active)
        return all(abs(rate - level) <= STEADY * level for rate, level in zip(rates, levels, strict=True))

    last_miss = max((k for k in phase.whole if not near(k)), default=phase.whole.start - 1)
    return None if last_miss >= tail.start else last_miss + 1 - phase.begin_s


def mean_total(series: Series, seconds: Iterable[int]) -> float:
    """Returns the mean goodput of all flows together over these seconds, in kbit/s."""
    totals = [sum(flow[k] for flow in series.flows) for k in seconds]
    return sum(totals) / len(totals)


def jain_of_shares(series: Series, phase: Phase, shares: Sequence[float]) -> float:
    """Returns Jain's index of the goodputs in the judged seconds, each divided by the flow's share."""
    seconds = phase.judged
    means = [sum(series.flows[i][k] for k in seconds) / len(seconds) for i in phase.active]
    return jain([mean / share for mean, share in zip(means, shares, strict=True)])
