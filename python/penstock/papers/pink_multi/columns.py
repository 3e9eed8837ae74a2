"""Columns that only `pink-multi` has."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from penstock.papers._shared.pink import PINK_C
from penstock.reproduce import sharing
from penstock.reproduce.columns import Column
from penstock.reproduce.results import Outcome

BAD_MBPS, WORSE_MBPS = 2.0, 0.5  # rates of the second bottlenecks of `pink-multi`


def corner_caps_mbps(setting: str) -> dict[int, float]:
    """In `pink-multi`: the flows that end behind a corner, and its rate."""
    return {1: BAD_MBPS, 2: WORSE_MBPS} if setting.endswith("-two") else {1: BAD_MBPS}


def shares_kbps(outcome: Outcome, phase: sharing.Phase) -> list[float]:
    """In `pink-multi`: max-min fair, with some flows held back by their corners."""
    corners = corner_caps_mbps(outcome.case.setting)
    return sharing.max_min(PINK_C * 10e3, [PINK_C * corners.get(i, 10.0) * 1e3 for i in phase.active])


def with_flows(outcome: Outcome, count: int) -> sharing.Phase:
    """The phase of `pink-multi` with so many flows."""
    return next(phase for phase in sharing.phases(outcome) if len(phase.active) == count)


def used(count: int) -> Callable[[Outcome], float | None]:
    """Payload on the DSL link with so many flows, settled, as a part of c times its rate."""

    def measure(outcome: Outcome) -> float | None:
        if outcome.series is None:
            return None
        return sharing.mean_total(outcome.series, with_flows(outcome, count).tail) / (PINK_C * 10e3)

    return measure


def predicted_use(flows: int, setting: str = "") -> float:
    """Part of c times the rate in use without reallocation: a bad flow takes what its corner or its share allows."""
    corners = corner_caps_mbps(setting)
    return sum(min(1.0 / flows, corners.get(i, 10.0) / 10.0) for i in range(flows))


def converge_joins_s(outcome: Outcome) -> float | None:
    """Median over the joins of the time until all flows are steady; nothing if most never are."""
    if outcome.series is None:
        return None
    times = [sharing.converge_s(outcome.series, phase) for phase in sharing.phases(outcome) if phase.joined]
    middle = statistics.median_high([float("inf") if t is None else t for t in times])
    return None if middle == float("inf") else middle


def fairness(count: int) -> Callable[[Outcome], float | None]:
    """Jain's index, each flow as a part of its max-min fair share."""

    def measure(outcome: Outcome) -> float | None:
        if outcome.series is None:
            return None
        phase = with_flows(outcome, count)
        return sharing.jain_of_shares(outcome.series, phase, shares_kbps(outcome, phase))

    return measure


COLUMNS = {
    "used_2": Column("c used, n=2", "{:.1%}", used(2)),
    "used_4": Column("c used, n=4", "{:.1%}", used(4)),
    "used_8": Column("c used, n=8", "{:.1%}", used(8)),
    "converge": Column("steady s", "{:.0f}", converge_joins_s),
    "fairness_4": Column("Jain, n=4", "{:.4f}", fairness(4)),
}
