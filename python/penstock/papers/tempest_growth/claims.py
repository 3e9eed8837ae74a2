"""The claims about the results of `tempest-growth`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding
from penstock.claims.words import CONSTANT_COST, MUCH
from penstock.papers._shared.tempest_claims import TIMES, ratio_of, report, said
from penstock.reproduce.results import Evidence

CLAIMS: list[Claim] = []
growth = of(CLAIMS, "tempest-growth", "002")


def _grows(run: Evidence, alg: str, key: str) -> float:
    """Ratios of the times with 30,000 flows and with 100."""
    return report(run, alg, "n-30000", key) / report(run, alg, "n-100", key)


@growth("4.3.3.1", "Figure 4.20", "constant")
def simple_schedulers_do_not_grow(run: Evidence) -> Finding:
    """The times of FIFO, DRR, KPS and QFQ+ do not depend on the number of flows."""
    ratios = {alg: _grows(run, alg, "ns_per_packet") for alg in ("fifo", "drr", "kps", "qfq-plus")}
    return said(
        [Comparison(r <= CONSTANT_COST, f"{alg}: {r:.2f} times from 100 to 30,000 flows") for alg, r in ratios.items()]
    )


@growth("4.3.3.1", "Figure 4.20", "O(log n)")
def wf2q_plus_grows(run: Evidence) -> Finding:
    """The time of WF2Q+ grows with the number of flows."""
    ratio = _grows(run, "wf2q-plus", "ns_scheduler")
    return said([Comparison(ratio >= MUCH, f"the scheduler takes {ratio:.2f} times from 100 to 30,000 flows")])


def _faster(run: Evidence, counts: tuple[int, ...], wf2q_wins: bool) -> Iterator[Comparison]:
    for n in counts:
        ratio = ratio_of(run, "wf2q-plus", "kps", f"n-{n}")
        text = f"{n:,} flows: WF2Q+ takes {ratio:.2f} times KPS's"
        yield Comparison((ratio < 1) == wf2q_wins, text)


@growth("4.3.3.1", "Figure 4.20", "up to a few hundred flows", because=TIMES)
def wf2q_plus_is_faster_than_kps_with_few_flows(run: Evidence) -> Finding:
    """With up to a hundred flows WF2Q+ takes less time than KPS, in spite of its complexity."""
    return said([*_faster(run, (1, 3, 10, 30, 100), True)])


@growth("4.3.3.1", "Figure 4.20", "beyond a few hundred flows")
def kps_is_faster_with_many(run: Evidence) -> Finding:
    """With a thousand flows and more KPS takes less time than WF2Q+."""
    return said([*_faster(run, (1000, 3000, 10000, 30000), False)])
