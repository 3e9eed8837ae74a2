"""What the documents of the controls say of sharing with Reno, seen on a path of 10 Mbit/s and 100 ms."""

from __future__ import annotations

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import MOST, MUCH, SHARE
from penstock.papers.friendliness.runs import name_of, pair_of, share_of_first
from penstock.reproduce.results import Evidence

MORE = MUCH / (1 + MUCH)  # of both: clearly more than the other

CLAIMS: list[Claim] = []


def share(run: Evidence, queue: str, mine: str, other: str) -> float:
    """Share of payload of two flows of `mine` beside two flows of `other`, as the median over seeds."""
    setting = name_of(mine, other)
    first = run.value(queue, 4, share_of_first, setting)
    return first if pair_of(setting)[0] == mine else 1.0 - first


def _said(queue: str, mine: str, got: float) -> str:
    return f"{mine} {got:.0%} before {'CoDel' if queue == 'codel' else 'DropTail'}"


def _about_half(run: Evidence, mine: str, queues: tuple[str, ...]) -> Finding:
    found = [(queue, share(run, queue, mine, "newreno")) for queue in queues]
    parts = [Comparison(abs(got - 0.5) <= SHARE * 0.5, _said(queue, mine, got)) for queue, got in found]
    return judge("; ".join(part.text for part in parts), parts)


def _most(run: Evidence, mine: str, queues: tuple[str, ...]) -> Finding:
    found = [(queue, share(run, queue, mine, "newreno")) for queue in queues]
    parts = [Comparison(got >= MORE, _said(queue, mine, got)) for queue, got in found]
    return judge("; ".join(part.text for part in parts), parts)


_BOTH = ("droptail", "codel")


@of(CLAIMS, "friendliness", "RFC 9438")("4.3", "the Reno-friendly region", "fair")
def cubic_is_fair_to_reno_on_short_paths(run: Evidence) -> Finding:
    """Where windows are small CUBIC grows as Reno does, and both have about half."""
    return _about_half(run, "cubic", _BOTH)


@of(CLAIMS, "friendliness", "RFC 3649")("5", "Low_Window", "38 segments")
def highspeed_is_fair_to_reno_with_small_windows(run: Evidence) -> Finding:
    """Up to windows of 38 segments HighSpeed TCP is Reno: before CoDel, which keeps them below, both have half."""
    return _about_half(run, "highspeed", ("codel",))


@of(CLAIMS, "friendliness", "Tan et al. 2006")("the paper", "in the text", "TCP-fair")
def compound_is_fair_to_reno(run: Evidence) -> Finding:
    """Compound TCP gives way when a queue forms: beside Reno both have about half."""
    return _about_half(run, "compound", _BOTH)


@of(CLAIMS, "friendliness", "Mo et al. 1999")("the paper", "in the text", "Reno takes most")
def vegas_loses_against_reno(run: Evidence) -> Finding:
    """Before a drop-tail queue Vegas keeps out of the queue that Reno fills, and Reno takes most."""
    got = share(run, "droptail", "vegas", "newreno")
    return judge(_said("droptail", "vegas", got), [Comparison(got <= 1 - MOST, _said("droptail", "vegas", got))])


@of(CLAIMS, "friendliness", "Kelly 2003")("the paper", "legacy window", "above 16 segments")
def scalable_takes_more_than_reno(run: Evidence) -> Finding:
    """Above its legacy window of 16 segments Scalable TCP takes more than Reno."""
    return _most(run, "scalable", ("droptail",))


@of(CLAIMS, "friendliness", "Caini and Firrincieli 2004")("the paper", "RTT0 of 25 ms", "as on a short path")
def hybla_takes_more_than_reno_on_a_long_path(run: Evidence) -> Finding:
    """At four times its reference round trip Hybla grows as on a short path, and takes more than Reno."""
    return _most(run, "hybla", _BOTH)


@of(CLAIMS, "friendliness", "RFC 8257")("5", "coexistence", "a larger share")
def dctcp_takes_more_than_reno_behind_marks(run: Evidence) -> Finding:
    """Before a queue that marks DCTCP and drops Reno, DCTCP gains the larger share."""
    return _most(run, "dctcp", ("codel",))
