"""Columns that only `pink-rtt` has."""

from __future__ import annotations

from penstock.papers._shared.pink import PINK_C
from penstock.reproduce import sharing
from penstock.reproduce.columns import Column
from penstock.reproduce.results import Outcome


def equal_shares_kbps(phase: sharing.Phase) -> list[float]:
    """The fair share of payload: c times the rate of the DSL link, divided by the number of flows."""
    return [PINK_C * 10e3 / len(phase.active)] * len(phase.active)


def met_share(outcome: Outcome) -> float | None:
    """Share of the seconds, from three round trips after a join on, in which every flow had its share."""
    if outcome.series is None:
        return None
    judged = [
        sharing.met(outcome.series, phase, equal_shares_kbps(phase), second)
        for phase in sharing.phases(outcome)
        if phase.joined
        for second in phase.judged
    ]
    return sum(judged) / len(judged)


COLUMNS = {
    "settled": Column("seconds shared alike", "{:.1%}", met_share),
}
