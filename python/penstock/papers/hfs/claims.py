"""The claims about the results of `hfs`."""

from __future__ import annotations

import itertools

from penstock.claims import checks
from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import CLOSE, FACTOR, RISE
from penstock.papers._shared import hfs
from penstock.papers._shared.hfs_claims import ENOUGH, SLOT_MS, buffers, said, throughput, value
from penstock.papers.hfs.runs import losses_of, weighted_throughput
from penstock.reproduce.results import Evidence

SAME = 1e-9
OF_FLOW = ("packets", "max_delay_dequeues", "t_wfi_packets", "b_wfi_packets", "rfi")

CLAIMS: list[Claim] = []
results = of(CLAIMS, "hfs", "002")


# Throughput.


@results("4.1.3.2", "Figure 4.4, Q = 0", "identical")
def without_a_buffer_it_is_the_wired_scheduler(run: Evidence) -> Finding:
    """With Q = 0 the modular scheduler does what its scheduler of flows does alone, in throughput and for each flow."""
    ours, wired = throughput(run, "hfs", "q-0"), throughput(run, "qfq-plus", hfs.ALONE)
    parts = [Comparison(abs(ours - wired) <= SAME, f"Q = 0: {ours:.6f}, QFQ+ alone {wired:.6f}")]
    for layered, alone in zip(run.runs("hfs", setting="q-0"), run.runs("qfq-plus", setting=hfs.ALONE), strict=True):
        pairs = zip(layered.summary["flows_detail"], alone.summary["flows_detail"], strict=True)
        same = [all(one.get(key) == other.get(key) for key in OF_FLOW) for one, other in pairs]
        parts.append(Comparison(all(same), f"{sum(same)} of {len(same)} flows have the same packets, waits, indices"))
    return said(parts)


@results("4.1.3.2", "Figure 4.4", "integrated above wired")
def the_integrated_scheduler_beats_the_wired_ones(run: Evidence) -> Finding:
    """The normalized throughput of the integrated scheduler is above that of wired ones."""
    knowing = throughput(run, hfs.KNOWING, hfs.ALONE)
    values = {alg: throughput(run, alg, hfs.ALONE) for alg in hfs.WIRED}
    return said([Comparison(knowing > v, f"W2F2Q {knowing:.3f}, {alg} {v:.3f}") for alg, v in values.items()])


@results("4.1.3.2", "Figure 4.4", "grows with Q")
def throughput_grows_with_the_buffer(run: Evidence) -> Finding:
    """The normalized throughput of HFS grows with Q."""
    values = [(q, throughput(run, "hfs", f"q-{q}")) for q in buffers(run)]
    return said(checks.rises([(f"Q = {q}", v) for q, v in values], "throughput"))


@results("4.2.5.1", "Figure 4.11", "HFS above W2F2Q for Q >= 100")
def from_a_hundred_packets_on_hfs_beats_the_integrated_scheduler(run: Evidence) -> Finding:
    """From Q = 100 packets on the normalized throughput of HFS is above that of W2F2Q."""
    knowing = throughput(run, hfs.KNOWING, hfs.ALONE)
    values = {q: throughput(run, "hfs", f"q-{q}") for q in buffers(run) if q >= ENOUGH}
    parts = [Comparison(v > knowing, f"Q = {q}: HFS {v:.3f}, W2F2Q {knowing:.3f}") for q, v in values.items()]
    losses = losses_of(run.runs("hfs", setting=f"q-{ENOUGH}")[0].summary)
    most = weighted_throughput("analogical", losses)
    limit = f"with packets for every station, weights (1 - p) * 1000 give {most:.3f} at most"
    return judge("; ".join([*(part.text for part in parts), limit]), parts)


@results("4.2.5.4", "Figure 4.11, Q = 100", "close to 90 %")
def a_hundred_packets_give_ninety_percent(run: Evidence) -> Finding:
    """With Q = 100 packets HFS has a normalized throughput close to 90 %."""
    ours = throughput(run, "hfs", f"q-{ENOUGH}")
    return said([Comparison(abs(ours - 0.9) <= CLOSE * 0.9, f"Q = {ENOUGH}: {ours:.3f}")])


@results("4.3.3.3", "Figure 4.24, HFS*", "DRR does not boost")
def drr_beside_the_radio_boosts_less(run: Evidence) -> Finding:
    """With DRR beside the radio the throughput is lower than with QFQ+ there."""
    values = {q: [throughput(run, alg, f"q-{q}") for alg in ("hfs-drr", "hfs")] for q in buffers(run) if q >= ENOUGH}
    return said([Comparison(a < b, f"Q = {q}: {a:.3f} with DRR, {b:.3f} with QFQ+") for q, (a, b) in values.items()])


# Guarantees.


def _twfi(run: Evidence, alg: str, setting: str) -> float:
    return value(run, alg, setting, hfs.good_twfi_ms)


@results("4.2.5.2", "Figure 4.12", "below DRR")
def hfs_guarantees_more_than_drr(run: Evidence) -> Finding:
    """T-WFI of flows in good condition is lower with HFS than with DRR, whatever Q."""
    drr = _twfi(run, "drr", hfs.ALONE)
    values = {q: _twfi(run, "hfs", f"q-{q}") for q in buffers(run)}
    return said([Comparison(v < drr, f"Q = {q}: {v:.1f}, DRR {drr:.1f} ms") for q, v in values.items()])


@results("4.1.3.2", "Figures 4.5 and 4.12", "degrades with Q")
def guarantees_weaken_with_the_buffer(run: Evidence) -> Finding:
    """T-WFI of HFS rises with Q."""
    values = [(q, _twfi(run, "hfs", f"q-{q}")) for q in buffers(run)]
    (_, first), (_, last) = values[0], values[-1]
    rises = last > first * (1 + RISE)  # a step may go back by the slot of one packet, which times are counted in
    steps = [
        Comparison(rises and b >= a - SLOT_MS - SAME, f"Q = {p} to {q}: {a:.1f} to {b:.1f} ms")
        for (p, a), (q, b) in itertools.pairwise(values)
    ]
    return said([*steps, Comparison(rises, f"from {first:.1f} to {last:.1f} ms in all")])


@results("4.2.5.4", "Figure 4.12, Q = 100", "close to WF2Q+")
def a_hundred_packets_keep_the_guarantees(run: Evidence) -> Finding:
    """With Q = 100 packets T-WFI of HFS is close to that of WF2Q+."""
    exact, drr = (_twfi(run, alg, hfs.ALONE) for alg in ("wf2q-plus", "drr"))
    ours = _twfi(run, "hfs", f"q-{ENOUGH}")
    text = f"Q = {ENOUGH}: {ours:.1f}, WF2Q+ {exact:.1f}, DRR {drr:.1f} ms"
    return said([Comparison(ours <= FACTOR * exact, text)])
