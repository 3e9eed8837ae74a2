"""The figures of `tempest-throughput`."""

from __future__ import annotations

from penstock.papers._shared import schedulers
from penstock.papers._shared.tempest_figures import legend, median, one, over, report
from penstock.plots.kit import LABELS, Drawing, Figure, colour, mark_level
from penstock.reproduce import tempest
from penstock.reproduce.results import Evidence


def _throughput(run: Evidence) -> Figure:
    figure, axis = one()
    algs = [alg for alg in run.aqms if alg in tempest.DOUBLE]
    over(axis, run, algs, [(float(q), f"q-{q}") for q in schedulers.BUFFERS], report("throughput"))
    if "steps" in run.varied:
        points = [(float(q), f"q-{q}") for q in schedulers.BUFFERS]
        over(axis, run.varied["steps"], ["hfs"], points, report("throughput"))
        axis.lines[-1].set(linestyle=":", marker="", label="HFS, losses in equal steps")
    level = median(run, "w2f2q", "integrated", report("throughput"))
    if level is not None:
        axis.axhline(level, color=colour("w2f2q"), linewidth=1.3, label=LABELS["w2f2q"])
    mark_level([axis], schedulers.good_throughput(), "")
    mark_level([axis], schedulers.blind_throughput(), "")
    axis.set(xlabel="Q (packets)", ylabel="normalized throughput", ylim=(0.4, 1.02))
    legend(axis)
    return figure


FIGURES: dict[str, Drawing] = {
    "tempest_throughput": Drawing(
        "What arrives of what is sent",
        "Normalized throughput over 20 stations whose losses go from 1 to 0.0001. Dashed: what stations "
        "above the threshold get if only these are served, and what is left if nobody looks at the channel. "
        "Higher is better.",
        _throughput,
    ),
}
