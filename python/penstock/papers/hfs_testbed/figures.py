"""The figures of `hfs-testbed`."""

from __future__ import annotations

from penstock.papers._shared import hfs
from penstock.papers._shared.hfs_figures import legend, levels, one, over_q
from penstock.papers.hfs_testbed.runs import LAYERED, arrives
from penstock.plots.kit import Drawing, Figure
from penstock.reproduce.results import Evidence


def _throughput(run: Evidence) -> Figure:
    figure, axis = one("packets that arrive")
    over_q(axis, run, LAYERED, arrives)
    levels(axis, run, (*hfs.WIRED, hfs.KNOWING), arrives)
    legend(axis)
    return figure


FIGURES: dict[str, Drawing] = {
    "hfs_testbed_throughput": Drawing(
        "What arrives of what hosts send, over the buffer",
        "Normalized throughput over 20 stations whose losses go from 1 to 0.0001, with a hundred streams of UDP. Lines "
        "with marks have a second layer that holds up to Q packets; dashed lines have none. Higher is better.",
        _throughput,
    ),
}
