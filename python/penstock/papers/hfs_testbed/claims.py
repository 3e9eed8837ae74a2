"""Claims on HFS between hosts: document 002, sections 4.1.3.2 and 4.2.5.

The document gives packets to schedulers in TEMPEST. Here hosts send them over a link to the same stations, so that a
kernel can play the runs.
"""

from __future__ import annotations

from penstock.claims import checks
from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding
from penstock.claims.words import CLOSE
from penstock.papers._shared import hfs
from penstock.papers._shared.hfs_claims import ENOUGH, buffers, said, value
from penstock.papers._shared.schedulers import losses
from penstock.papers.hfs_testbed.runs import arrives, least_of_good
from penstock.reproduce.results import Evidence

CLAIMS: list[Claim] = []
testbed = of(CLAIMS, "hfs-testbed", "002")


def _alone(run: Evidence, alg: str) -> float:
    return value(run, alg, hfs.ALONE, arrives)


def _over(run: Evidence, alg: str) -> dict[int, float]:
    return {q: value(run, alg, f"q-{q}", arrives) for q in buffers(run)}


@testbed("4.1.3.2", "Figure 4.4, Q = 0", "identical")
def without_a_buffer_hfs_delivers_what_its_first_scheduler_does(run: Evidence) -> Finding:
    """With Q = 0 as many packets of hosts arrive with HFS as with QFQ+ alone."""
    ours, wired = _over(run, "hfs")[0], _alone(run, "qfq-plus")
    return said([Comparison(abs(ours - wired) <= CLOSE * wired, f"Q = 0: {ours:.3f}, QFQ+ alone {wired:.3f}")])


@testbed("4.1.3.2", "Figure 4.4", "integrated above wired")
def the_integrated_scheduler_delivers_more_than_wired_ones(run: Evidence) -> Finding:
    """More packets of hosts arrive with the integrated scheduler than with wired ones."""
    knowing = _alone(run, hfs.KNOWING)
    values = {alg: _alone(run, alg) for alg in hfs.WIRED}
    return said([Comparison(knowing > v, f"W2F2Q {knowing:.3f}, {alg} {v:.3f}") for alg, v in values.items()])


@testbed("4.1.3.2", "Figure 4.4", "grows with Q")
def more_arrives_with_a_larger_buffer(run: Evidence) -> Finding:
    """The more packets the second layer of HFS holds, the more packets of hosts arrive."""
    return said(checks.rises([(f"Q = {q}", v) for q, v in _over(run, "hfs").items()], "throughput"))


@testbed("4.2.5.1", "Figure 4.11", "HFS above W2F2Q for Q >= 100")
def from_a_hundred_packets_on_hfs_delivers_more_than_the_integrated_scheduler(run: Evidence) -> Finding:
    """From Q = 100 packets on more packets of hosts arrive with HFS than with W2F2Q."""
    knowing = _alone(run, hfs.KNOWING)
    values = {q: v for q, v in _over(run, "hfs").items() if q >= ENOUGH}
    return said([Comparison(v > knowing, f"Q = {q}: HFS {v:.3f}, W2F2Q {knowing:.3f}") for q, v in values.items()])


@testbed("4.2.5.4", "Figure 4.11, Q = 100", "close to 90 %")
def a_hundred_packets_deliver_ninety_percent(run: Evidence) -> Finding:
    """With Q = 100 packets HFS delivers close to 90 % of the packets of hosts."""
    ours = _over(run, "hfs")[ENOUGH]
    return said([Comparison(abs(ours - 0.9) <= CLOSE * 0.9, f"Q = {ENOUGH}: {ours:.3f}")])


@testbed("4.3.3.3", "Figure 4.24, HFS*", "DRR does not boost")
def drr_beside_the_radio_delivers_less(run: Evidence) -> Finding:
    """With DRR beside the radio fewer packets of hosts arrive than with QFQ+ there."""
    pairs = zip(_over(run, "hfs-drr").items(), _over(run, "hfs").values(), strict=True)
    return said([Comparison(a < b, f"Q = {q}: {a:.3f} with DRR, {b:.3f}") for (q, a), b in pairs if q >= ENOUGH])


@testbed("4.2.5.3", "double-DRR", "high throughput")
def two_layers_deliver_more_than_one(run: Evidence) -> Finding:
    """With two layers of DRR more packets of hosts arrive than with one."""
    wired = _alone(run, "drr")
    values = {q: v for q, v in _over(run, "double-drr").items() if q >= ENOUGH}
    return said([Comparison(v > wired, f"Q = {q}: {v:.3f}, DRR alone {wired:.3f}") for q, v in values.items()])


@testbed("4.2.2, 4.2.5.4", "Theorem 7, Q = 100", "guarantees are preserved")
def flows_in_good_condition_get_what_is_reserved(run: Evidence) -> Finding:
    """With Q = 100 packets in HFS each flow of weight 20 whose station loses at most 20 % gets its reserved rate."""
    least = value(run, "hfs", f"q-{ENOUGH}", lambda summary: least_of_good(summary, losses()))
    return said([Comparison(least >= 1 - CLOSE, f"{least:.2f} of the reserved rate")])
