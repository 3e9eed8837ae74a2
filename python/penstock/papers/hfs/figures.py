"""The figures of `hfs`."""

from __future__ import annotations

from penstock.papers._shared import hfs
from penstock.papers._shared.hfs_figures import legend, levels, one, over_q, throughput
from penstock.plots.kit import Drawing, Figure
from penstock.reproduce.results import Evidence


def _guarantees(run: Evidence) -> Figure:
    figure, axis = one("T-WFI in good condition (ms)")
    over_q(axis, run, ["hfs"], hfs.good_twfi_ms)
    levels(axis, run, ["drr", "wf2q-plus"], hfs.good_twfi_ms)
    axis.set_yscale("symlog", linthresh=1)
    legend(axis)
    return figure


FIGURES: dict[str, Drawing] = {
    "hfs_throughput": Drawing(
        "What arrives of what is sent, over the buffer",
        "Normalized throughput over 20 stations whose losses go from 1 to 0.0001. Lines with marks have a "
        "second layer that holds up to Q packets; dashed lines have none. Thin lines: HFS with one "
        "assumption changed. Dotted: what stations above the threshold get if only these are served, and "
        "what is left if nobody looks at the channel. Higher is better.",
        throughput,
    ),
    "hfs_guarantees": Drawing(
        "How late a packet may be, over the buffer",
        "T-WFI of the flows of weight 20 to stations that lose at most 20 %: how much later a packet leaves "
        "than in a perfectly fair system. Dashed: one layer. Below 0 no packet is ever late. Lower is "
        "better.",
        _guarantees,
    ),
}
