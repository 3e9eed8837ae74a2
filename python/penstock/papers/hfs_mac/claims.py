"""The claims about the results of `hfs-mac`."""

from __future__ import annotations

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding
from penstock.claims.words import CLOSE
from penstock.papers._shared import hfs
from penstock.papers._shared.hfs_claims import ENOUGH, buffers, said, throughput, value
from penstock.reproduce.results import Evidence

CLAIMS: list[Claim] = []
layers = of(CLAIMS, "hfs-mac", "002")


@layers("4.2.4.2", "Figure 4.8", "QFQ+ best, WF2Q+ close, DRR worst")
def qfq_plus_gives_the_most_throughput(run: Evidence) -> Finding:
    """Beside the radio QFQ+ gives the most throughput, WF2Q+ about as much, and DRR the least."""
    parts = []
    for q in (q for q in buffers(run) if q >= ENOUGH):
        qfq, wf2q, drr = (throughput(run, alg, f"q-{q}") for alg in ("hfs", "hfs-wf2q-plus", "hfs-drr"))
        text = f"Q = {q}: QFQ+ {qfq:.3f}, WF2Q+ {wf2q:.3f}, DRR {drr:.3f}"
        parts.append(Comparison(qfq >= (1 - CLOSE) * wf2q and drr < min(qfq, wf2q), text))
    return said(parts)


@layers("4.2.4.2", "Figure 4.9", "QFQ+ least")
def qfq_plus_delays_the_best_station_least(run: Evidence) -> Finding:
    """Packets of weight 20 to the best station wait least with QFQ+ beside the radio."""
    parts = []
    for q in (q for q in buffers(run) if q >= ENOUGH):
        waits = {alg: value(run, alg, f"q-{q}", hfs.best_delay) for alg in run.aqms}
        text = f"Q = {q}: " + ", ".join(f"{alg} {wait:,.0f}" for alg, wait in waits.items())
        parts.append(Comparison(waits["hfs"] <= min(waits.values()), text))
    return said(parts)
