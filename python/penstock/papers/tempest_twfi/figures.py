"""The figures of `tempest-twfi`."""

from __future__ import annotations

from typing import Any

from penstock.papers._shared import schedulers
from penstock.papers._shared.tempest_figures import THEORY, legend, median, one, over
from penstock.papers.tempest_twfi.runs import WIRED, t_wfi_bound_ms
from penstock.plots.kit import LABELS, Drawing, Figure, colour
from penstock.reproduce.results import Evidence


def _good_t_wfi(summary: dict[str, Any]) -> float | None:
    return schedulers.good(summary, "t_wfi_ms")


def _twfi(run: Evidence) -> Figure:
    figure, axis = one()
    over(axis, run, ["hfs"], [(float(q), f"q-{q}") for q in schedulers.BUFFERS], _good_t_wfi)
    for alg in ("drr", "wf2q-plus"):
        level = median(run, alg, WIRED, _good_t_wfi)
        if level is not None:
            axis.axhline(level, color=colour(alg), linewidth=1.3, label=LABELS[alg])
            bound = t_wfi_bound_ms(alg, 20)
            axis.axhline(bound, color=colour(alg), label=f"bound, {LABELS[alg]}", **THEORY)
    axis.set_yscale("symlog", linthresh=10)  # values of packets which are early are negative
    axis.set(xlabel="Q (packets)", ylabel="T-WFI of weight 20, good stations (ms)")
    legend(axis)
    return figure


FIGURES: dict[str, Drawing] = {
    "tempest_twfi": Drawing(
        "How late a packet may be",
        "T-WFI of the flows of weight 20 whose stations lose at most a fifth: how much later a packet "
        "leaves than in a perfectly fair system. Dashed: the worst that theory allows without a second "
        "layer. Lower is better.",
        _twfi,
    ),
}
