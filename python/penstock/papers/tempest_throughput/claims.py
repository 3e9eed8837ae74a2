"""The claims about the results of `tempest-throughput`."""

from __future__ import annotations

from penstock.claims import checks
from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding
from penstock.claims.words import CLOSE
from penstock.papers._shared import schedulers
from penstock.papers._shared.tempest_claims import report, said
from penstock.reproduce.results import Evidence

LARGE_Q = 100  # "higher than 100 packets"
NINETY = 0.9

CLAIMS: list[Claim] = []
throughput = of(CLAIMS, "tempest-throughput", "002")


@throughput("4.3.3.3", "Figure 4.24", "close to 0.9")
def the_integrated_scheduler_reaches_ninety_percent(run: Evidence) -> Finding:
    """The normalized throughput of W2F2Q is close to 0.9 with a threshold of 80 %."""
    ours = report(run, "w2f2q", "integrated", "throughput")
    flows = run.runs("w2f2q", setting="integrated")[0].summary["flows_detail"]
    served = {flow["station"] for flow in flows if flow["packets"]}
    text = f"{ours:.3f}, with {len(served)} of {schedulers.STATIONS} stations above the threshold"
    return said([Comparison(abs(ours - NINETY) <= CLOSE * NINETY, text)])


@throughput("4.3.3.3", "Figure 4.24", "over 90 % when Q is higher than 100 packets")
def hfs_passes_ninety_percent(run: Evidence) -> Finding:
    """The normalized throughput of HFS is above 0.9 when its buffer holds more than 100 packets."""
    values = {q: report(run, "hfs", f"q-{q}", "throughput") for q in schedulers.BUFFERS if q > LARGE_Q}
    return said([Comparison(v > NINETY, f"Q = {q}: {v:.3f}") for q, v in values.items()])


@throughput("4.3.3.3", "Figure 4.24", "rises with Q")
def a_larger_buffer_gives_hfs_more_throughput(run: Evidence) -> Finding:
    """The normalized throughput of HFS rises with the size of its buffer."""
    values = [(q, report(run, "hfs", f"q-{q}", "throughput")) for q in schedulers.BUFFERS]
    return said(checks.rises([(f"Q = {q}", v) for q, v in values], "throughput"))


@throughput("4.3.3.3", "Figure 4.24", "DRR beside the radio does not boost")
def drr_beside_the_radio_gives_less(run: Evidence) -> Finding:
    """With DRR in the second layer throughput is lower than with QFQ+, and a buffer raises it at most half as much."""
    blind = {alg: report(run, alg, f"q-{schedulers.BUFFERS[0]}", "throughput") for alg in ("hfs-drr", "hfs")}
    parts = []
    for q in (q for q in schedulers.BUFFERS if q >= LARGE_Q):
        ours, hfs = (report(run, alg, f"q-{q}", "throughput") for alg in blind)
        parts.append(Comparison(ours < hfs, f"Q = {q}: {ours:.3f} with DRR, {hfs:.3f} with QFQ+"))
        more, most = ours - blind["hfs-drr"], hfs - blind["hfs"]
        parts.append(Comparison(more <= most / 2, f"Q = {q}: up by {more:.3f} with DRR, by {most:.3f} with QFQ+"))
    return said(parts)
