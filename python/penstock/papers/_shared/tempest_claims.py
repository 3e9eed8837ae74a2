"""What the claims on packet schedulers share: document 002, section 4.3.3, Figures 4.18 to 4.24.

The document's times are those of a machine of 2012. Only ratios of times taken in one experiment are compared, of the
schedulers alone where the harness would hide them. What an eye would read from a figure is a constant beside the
claims.
Figure 4.23 is read as Figure 4.12 of the same test, which says that it shows flows whose stations lose at most a fifth.
"""

from __future__ import annotations

from penstock.claims.entering import to_do
from penstock.claims.ledger import Comparison, Finding, judge
from penstock.reproduce import tempest
from penstock.reproduce.results import Evidence

TIMES = to_do(
    "the claim is about the processor time of programs: the document's are in C, which it does not give, on a "
    "processor of 2011, and those that are timed here are ours. With 1 to 32,000 flows, equal and mixed weights, "
    "smooth arrivals and bursts ours have other ratios"
)


def report(run: Evidence, alg: str, setting: str, key: str) -> float:
    """The median over seeds of a number of the report."""
    return run.median_or_zero(alg, setting, lambda outcome: tempest.value(outcome.summary, key))


def said(parts: list[Comparison]) -> Finding:
    """A finding that quotes its first comparisons."""
    return judge("; ".join(part.text for part in parts[:4]), parts)


# What a packet costs.


def ratio_of(run: Evidence, one: str, other: str, setting: str) -> float:
    """The time of a packet with one scheduler over that with the other."""
    return report(run, one, setting, "ns_per_packet") / report(run, other, setting, "ns_per_packet")
