"""The figures of `hfs-time`."""

from __future__ import annotations

from penstock.papers._shared import hfs
from penstock.papers._shared.hfs_figures import legend, levels, one, over_q, report
from penstock.plots.kit import Drawing, Figure
from penstock.reproduce.results import Evidence


def _time(run: Evidence) -> Figure:
    figure, axis = one("ns of the schedulers alone")
    over_q(axis, run, [alg for alg in run.aqms if alg in hfs.LAYERS], report("ns_scheduler"))
    levels(axis, run, ["drr", "wf2q-plus"], report("ns_scheduler"))
    axis.set_ylim(0, None)
    legend(axis)
    return figure


FIGURES: dict[str, Drawing] = {
    "hfs_time": Drawing(
        "What two layers cost",
        "Time of the schedulers for a packet, without the harness. Lines with marks have two layers, dashed "
        "ones one. Times of two machines cannot be compared, their ratios can.",
        _time,
    ),
}
