"""The figures of `hfs-mac`."""

from __future__ import annotations

from penstock.papers._shared import hfs
from penstock.papers._shared.hfs_figures import legend, one, over_q, throughput
from penstock.plots.kit import Drawing, Figure
from penstock.reproduce.results import Evidence


def _delay(run: Evidence) -> Figure:
    figure, axis = one("longest wait (departures)")
    over_q(axis, run, run.aqms, hfs.best_delay)
    axis.set_ylim(0, None)
    legend(axis)
    return figure


FIGURES: dict[str, Drawing] = {
    "hfs_mac_throughput": Drawing(
        "Which scheduler beside the radio: throughput",
        "Normalized throughput with QFQ+ in the layer of guarantees and each scheduler in the other, over "
        "the packets that this one holds. Higher is better.",
        throughput,
    ),
    "hfs_mac_delay": Drawing(
        "Which scheduler beside the radio: delay",
        "The longest wait of a packet of weight 20 to the station in the best condition, in departures, "
        "from its arrival in the first layer. Lower is better.",
        _delay,
    ),
}
