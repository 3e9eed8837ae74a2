"""Claims on the modular architecture and HFS: document 002, sections 4.1.3, 4.2.4 and 4.2.5.

The document shows curves and few numbers. What an eye would read from them is a constant below. Its setup can be read
in several ways: claims are judged by the one under which its numbers fit each other (docs/algorithms/hfs.md), and tell
what the others give.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from typing import Any

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.reproduce import hfs, tempest
from penstock.reproduce.results import Evidence

ENOUGH = 100  # packets: the recommended Q
SAME = 1e-9
ABOUT_90 = 0.05  # "close to 90 %"
NEAR_WF2Q = 0.25  # "close to the optimal ones": of the way from WF2Q+ to DRR, as in Figure 4.23
CLOSE_TIME = 1.2  # "a really close execution time"
OF_FLOW = ("packets", "max_delay_dequeues", "t_wfi_packets", "b_wfi_packets", "rfi")
RISES = 1e-3  # more than the arrivals' chance
NOISE = 0.02  # of a curve that rises
SLOT_MS = tempest.PACKET_MS

CLAIMS: list[Claim] = []
results = of(CLAIMS, "hfs", "002")
layers = of(CLAIMS, "hfs-mac", "002")
times = of(CLAIMS, "hfs-time", "002")

Read = Callable[[dict[str, Any]], float | None]


def _value(run: Evidence, alg: str, setting: str, read: Read) -> float:
    """The median over seeds."""
    return statistics.median(read(outcome.summary) or 0.0 for outcome in run.runs(alg, setting=setting))


def _throughput(run: Evidence, alg: str, setting: str) -> float:
    return _value(run, alg, setting, lambda summary: tempest.value(summary, "throughput"))


def _buffers(run: Evidence) -> list[int]:
    return [q for q in hfs.BUFFERS if f"q-{q}" in run.settings]


def _said(parts: list[Comparison]) -> Finding:
    return judge("; ".join(part.text for part in parts[:4]), parts)


# Throughput.


@results("4.1.3.2", "Figure 4.4, Q = 0", "identical")
def without_a_buffer_it_is_the_wired_scheduler(run: Evidence) -> Finding:
    """With Q = 0 the modular scheduler does what its scheduler of flows does alone, in throughput and for each flow."""
    ours, wired = _throughput(run, "hfs", "q-0"), _throughput(run, "qfq-plus", hfs.ALONE)
    parts = [Comparison(abs(ours - wired) <= SAME, f"Q = 0: {ours:.6f}, QFQ+ alone {wired:.6f}")]
    for layered, alone in zip(run.runs("hfs", setting="q-0"), run.runs("qfq-plus", setting=hfs.ALONE), strict=True):
        pairs = zip(layered.summary["flows_detail"], alone.summary["flows_detail"], strict=True)
        same = [all(one.get(key) == other.get(key) for key in OF_FLOW) for one, other in pairs]
        parts.append(Comparison(all(same), f"{sum(same)} of {len(same)} flows have the same packets, waits, indices"))
    return _said(parts)


@results("4.1.3.2", "Figure 4.4", "integrated above wired")
def the_integrated_scheduler_beats_the_wired_ones(run: Evidence) -> Finding:
    """The normalized throughput of the integrated scheduler is above that of wired ones."""
    knowing = _throughput(run, hfs.KNOWING, hfs.ALONE)
    values = {alg: _throughput(run, alg, hfs.ALONE) for alg in hfs.WIRED}
    return _said([Comparison(knowing > v, f"W2F2Q {knowing:.3f}, {alg} {v:.3f}") for alg, v in values.items()])


@results("4.1.3.2", "Figure 4.4", "grows with Q")
def throughput_grows_with_the_buffer(run: Evidence) -> Finding:
    """The normalized throughput of HFS grows with Q."""
    values = [(q, _throughput(run, "hfs", f"q-{q}")) for q in _buffers(run)]
    parts = [
        Comparison(b >= a - NOISE * a, f"Q = {p} to {q}: {a:.3f} to {b:.3f}")
        for (p, a), (q, b) in itertools.pairwise(values)
    ]
    (_, first), (_, last) = values[0], values[-1]
    parts.append(Comparison(last > first + RISES, f"from {first:.3f} to {last:.3f} in all"))
    return _said(parts)


@results("4.2.5.1", "Figure 4.11", "HFS above W2F2Q for Q >= 100")
def from_a_hundred_packets_on_hfs_beats_the_integrated_scheduler(run: Evidence) -> Finding:
    """From Q = 100 packets on the normalized throughput of HFS is above that of W2F2Q."""
    knowing = _throughput(run, hfs.KNOWING, hfs.ALONE)
    values = {q: _throughput(run, "hfs", f"q-{q}") for q in _buffers(run) if q >= ENOUGH}
    parts = [Comparison(v > knowing, f"Q = {q}: HFS {v:.3f}, W2F2Q {knowing:.3f}") for q, v in values.items()]
    losses = hfs.losses_of(run.runs("hfs", setting=f"q-{ENOUGH}")[0].summary)
    most = hfs.weighted_throughput("analogical", losses)
    limit = f"with packets for every station, weights (1 - p) * 1000 give {most:.3f} at most"
    return judge("; ".join([*(part.text for part in parts), limit]), parts)


@results("4.2.5.4", "Figure 4.11, Q = 100", "close to 90 %")
def a_hundred_packets_give_ninety_percent(run: Evidence) -> Finding:
    """With Q = 100 packets HFS has a normalized throughput close to 90 %."""
    ours = _throughput(run, "hfs", f"q-{ENOUGH}")
    return _said([Comparison(abs(ours - 0.9) <= ABOUT_90, f"Q = {ENOUGH}: {ours:.3f}")])


@results("4.3.3.3", "Figure 4.24, HFS*", "DRR does not boost")
def drr_beside_the_radio_boosts_less(run: Evidence) -> Finding:
    """With DRR beside the radio the throughput is lower than with QFQ+ there."""
    values = {q: [_throughput(run, alg, f"q-{q}") for alg in ("hfs-drr", "hfs")] for q in _buffers(run) if q >= ENOUGH}
    return _said([Comparison(a < b, f"Q = {q}: {a:.3f} with DRR, {b:.3f} with QFQ+") for q, (a, b) in values.items()])


# Guarantees.


def _twfi(run: Evidence, alg: str, setting: str) -> float:
    return _value(run, alg, setting, hfs.good_twfi_ms)


@results("4.2.5.2", "Figure 4.12", "below DRR")
def hfs_guarantees_more_than_drr(run: Evidence) -> Finding:
    """T-WFI of flows in good condition is lower with HFS than with DRR, whatever Q."""
    drr = _twfi(run, "drr", hfs.ALONE)
    values = {q: _twfi(run, "hfs", f"q-{q}") for q in _buffers(run)}
    return _said([Comparison(v < drr, f"Q = {q}: {v:.1f}, DRR {drr:.1f} ms") for q, v in values.items()])


@results("4.1.3.2", "Figures 4.5 and 4.12", "degrades with Q")
def guarantees_weaken_with_the_buffer(run: Evidence) -> Finding:
    """T-WFI of HFS rises with Q."""
    values = [(q, _twfi(run, "hfs", f"q-{q}")) for q in _buffers(run)]
    return _said(
        [
            Comparison(b >= a - SLOT_MS - SAME, f"Q = {p} to {q}: {a:.1f} to {b:.1f} ms")
            for (p, a), (q, b) in itertools.pairwise(values)
        ]
    )


@results("4.2.5.4", "Figure 4.12, Q = 100", "close to WF2Q+")
def a_hundred_packets_keep_the_guarantees(run: Evidence) -> Finding:
    """With Q = 100 packets T-WFI of HFS is close to that of WF2Q+."""
    exact, drr = (_twfi(run, alg, hfs.ALONE) for alg in ("wf2q-plus", "drr"))
    ours = _twfi(run, "hfs", f"q-{ENOUGH}")
    text = f"Q = {ENOUGH}: {ours:.1f}, WF2Q+ {exact:.1f}, DRR {drr:.1f} ms"
    return _said([Comparison(ours - exact <= NEAR_WF2Q * (drr - exact), text)])


# The scheduler beside the radio.


@layers("4.2.4.2", "Figure 4.8", "QFQ+ best, WF2Q+ close, DRR worst")
def qfq_plus_gives_the_most_throughput(run: Evidence) -> Finding:
    """Beside the radio QFQ+ gives the most throughput, WF2Q+ about as much, and DRR the least."""
    parts = []
    for q in (q for q in _buffers(run) if q >= ENOUGH):
        qfq, wf2q, drr = (_throughput(run, alg, f"q-{q}") for alg in ("hfs", "hfs-wf2q-plus", "hfs-drr"))
        text = f"Q = {q}: QFQ+ {qfq:.3f}, WF2Q+ {wf2q:.3f}, DRR {drr:.3f}"
        parts.append(Comparison(qfq >= wf2q - NOISE * wf2q and drr < min(qfq, wf2q), text))
    return _said(parts)


@layers("4.2.4.2", "Figure 4.9", "QFQ+ least")
def qfq_plus_delays_the_best_station_least(run: Evidence) -> Finding:
    """Packets of weight 20 to the best station wait least with QFQ+ beside the radio."""
    parts = []
    for q in (q for q in _buffers(run) if q >= ENOUGH):
        waits = {alg: _value(run, alg, f"q-{q}", hfs.best_delay) for alg in run.aqms}
        text = f"Q = {q}: " + ", ".join(f"{alg} {wait:,.0f}" for alg, wait in waits.items())
        parts.append(Comparison(waits["hfs"] <= min(waits.values()), text))
    return _said(parts)


# Time.


def _ns(run: Evidence, alg: str, setting: str) -> float:
    return _value(run, alg, setting, lambda summary: tempest.value(summary, "ns_per_packet"))


def _ratios(run: Evidence, one: str, other: str) -> dict[int, float]:
    return {q: _ns(run, one, f"q-{q}") / _ns(run, other, f"q-{q}") for q in _buffers(run)}


@times("4.2.4.2", "Figure 4.10", "QFQ+ close to DRR")
def qfq_plus_beside_the_radio_costs_about_what_drr_does(run: Evidence) -> Finding:
    """Beside the radio QFQ+ takes about as long as DRR."""
    ratios = _ratios(run, "hfs", "hfs-drr")
    return _said([Comparison(r <= CLOSE_TIME, f"Q = {q}: {r:.2f} times") for q, r in ratios.items()])


@times("4.2.4.2", "Figure 4.10", "WF2Q+ above both")
def wf2q_plus_beside_the_radio_costs_more(run: Evidence) -> Finding:
    """Beside the radio WF2Q+ takes longer than QFQ+."""
    ratios = {q: r for q, r in _ratios(run, "hfs-wf2q-plus", "hfs").items() if q > 0}
    return _said([Comparison(r > 1, f"Q = {q}: {r:.2f} times") for q, r in ratios.items()])


@times("4.2.5.3", "Figure 4.13", "really close to double-DRR")
def hfs_costs_about_what_two_drr_do(run: Evidence) -> Finding:
    """A packet takes at most a fifth longer with HFS than with DRR in both layers."""
    ratios = _ratios(run, "hfs", "double-drr")
    return _said([Comparison(r <= CLOSE_TIME, f"Q = {q}: {r:.2f} times") for q, r in ratios.items()])


@times("4.2.5.3", "Figure 4.13", "much lower than the transmission time")
def a_packet_is_scheduled_faster_than_it_is_sent(run: Evidence) -> Finding:
    """The time that HFS needs for a packet is a small part of its transmission time at 54 Mbit/s."""
    values = {q: _ns(run, "hfs", f"q-{q}") for q in _buffers(run)}
    sent_ns = SLOT_MS * 1e6
    return _said([Comparison(v < 0.01 * sent_ns, f"Q = {q}: {v:.0f} of {sent_ns:,.0f} ns") for q, v in values.items()])
