"""The figures of `qrm`."""

from __future__ import annotations

from collections.abc import Callable

from penstock.papers._shared import nodes
from penstock.papers._shared.cooperation_claims import value
from penstock.papers._shared.cooperation_figures import RIGHT, goodput, row
from penstock.papers.qrm.claims import BOUND_KB
from penstock.papers.qrm.runs import ATTACKED, ATTACKERS
from penstock.plots.kit import LABELS, MARKERS, Drawing, Figure, colour, mark_level
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, Outcome

Value = Callable[[Outcome], float | None]


def _over_attacks(run: Evidence, measure: Value, label: str, bound: float | None = None) -> Figure:
    figure, axes = row(2, ["one attacker", "32 nodes"], 3.2)
    kinds = (("one", (2, 4, 8, 16, 32), "number of nodes"), ("many", ATTACKERS, "number of attackers"))
    for axis, (kind, numbers, across) in zip(axes, kinds, strict=True):
        there = [n for n in numbers if f"{kind}-{n}" in run.settings]
        for aqm in ATTACKED:
            got = [value(run, aqm, f"{kind}-{n}", measure) or 0.0 for n in there]
            marker = MARKERS.get(aqm, "o")
            name = LABELS.get(aqm, aqm)
            axis.plot(range(len(there)), got, f"{marker}-", color=colour(aqm), label=name, markersize=5)
        axis.set_xticks(range(len(there)), [str(n) for n in there])
        axis.set(xlabel=across, ylim=(0, None))
    axes[0].set_ylabel(label)
    axes[-1].legend(**RIGHT)
    if bound is not None:
        mark_level(axes, bound, "")
    return figure


def _attacker(run: Evidence) -> Figure:
    shown = [aqm for aqm in ATTACKED if run.runs(aqm, setting="five-1")]
    figure, axes = row(len(shown), [LABELS.get(aqm, aqm) for aqm in shown])
    for axis, aqm in zip(axes, shown, strict=True):
        goodput(axis, run.runs(aqm, setting="five-1")[0], thick=(4,))
    axes[0].set_ylabel("goodput (Mbit/s)")
    return figure


FIGURES: dict[str, Drawing] = {
    "qrm_worst": Drawing(
        "What is left for the worst good node",
        "What the node with the least delivered, as a part of an even share of the link. Higher is better.",
        lambda run: _over_attacks(run, nodes.worst_good, "part of an even share"),
    ),
    "qrm_queue": Drawing(
        "Longest queue",
        "Of the same runs; the dashed line is the bound of Theorem 2.",
        lambda run: _over_attacks(run, columns.queue_max_kb, "longest queue (kB)", BOUND_KB),
    ),
    "qrm_seconds": Drawing(
        "One attacker among five nodes",
        "Payload of each second; good nodes thin, the attacker thick.",
        _attacker,
    ),
}
