"""The figures of `tempest-fairness`."""

from __future__ import annotations

from penstock.papers._shared.tempest_figures import THEORY, Read, legend, one, over
from penstock.papers.tempest_fairness.runs import WEIGHTS, b_wfi_bound
from penstock.plots.kit import LABELS, Axes, Drawing, Figure, colour
from penstock.reproduce import tempest
from penstock.reproduce.results import Evidence


def _top(key: str) -> Read:
    return lambda summary: tempest.top(summary, key)


def _weights(run: Evidence, read: Read, label: str) -> tuple[Figure, Axes]:
    figure, axis = one()
    over(axis, run, run.aqms, [(float(w), f"w-{w}") for w in WEIGHTS], read)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set(xlabel="weight of the heavy flow beside 100 of weight 1", ylabel=label)
    return figure, axis


def _bwfi(run: Evidence) -> Figure:
    figure, axis = _weights(run, _top("b_wfi_packets"), "B-WFI of the heavy flow (packets)")
    for alg in run.aqms:
        bounds = [b_wfi_bound(alg, w) for w in WEIGHTS]
        known = [bound for bound in bounds if bound is not None]
        if len(known) == len(WEIGHTS):
            axis.plot(WEIGHTS, known, color=colour(alg), label=f"bound, {LABELS.get(alg, alg)}", **THEORY)
    legend(axis)
    return figure


def _delay(run: Evidence) -> Figure:
    figure, axis = _weights(run, _top("max_delay_dequeues"), "longest wait (departures)")
    legend(axis)
    return figure


FIGURES: dict[str, Drawing] = {
    "tempest_bwfi": Drawing(
        "How far a flow falls behind its share",
        "B-WFI of the flow of growing weight beside 100 flows of weight 1. Dashed: the worst that theory "
        "allows: 1 packet with WF²Q+, about 5 with QFQ, more with QFQ+ by what aggregates add, and with DRR "
        "what follows from its T-WFI. Lower is better.",
        _bwfi,
    ),
    "tempest_delay": Drawing(
        "The longest wait of the heavy flow",
        "In departures of any flow, of the flow of growing weight. It waits behind its own burst, too, "
        "which is as large as its weight.",
        _delay,
    ),
}
