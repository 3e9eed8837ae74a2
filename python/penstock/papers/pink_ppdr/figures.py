"""The figures of `pink-ppdr`."""

from __future__ import annotations

from typing import Any

from penstock.papers._shared.pink_figures import time_panels
from penstock.plots.kit import INK, LABELS, MARKERS, Drawing, Figure, colour
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence


def _completion(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    axis = figure.subplots()
    counts = run.counts(setting="files")
    for aqm in run.aqms:
        worst = [run.cell_value((aqm, n, "files"), columns.last_end_s) for n in counts]
        heights = [float("nan") if value is None else value for value in worst]
        style: dict[str, Any] = {"marker": MARKERS.get(aqm, "o"), "linewidth": 2.6 if aqm == "pink" else 1.6}
        axis.plot(range(len(counts)), heights, color=colour(aqm), label=LABELS.get(aqm, aqm), **style)
    least = [n * 5e6 * 8 / run.experiment.goodput_limit_bps for n in counts]
    axis.plot(range(len(counts)), least, color=INK, linewidth=1, linestyle=(0, (2, 2)), label="sending alone")
    axis.set_xticks(range(len(counts)), [str(n) for n in counts])
    axis.set(xlabel="number of files of 5 MB", ylabel="last one complete (s)", ylim=(0, None))
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


FIGURES: dict[str, Drawing] = {
    "joins": Drawing(
        "Four flows that come one after the other",
        "Payload of each flow in each second; dark: of all together. A new flow comes every 5 s. Seconds "
        "above the frame are those in which the gap after a loss is filled.",
        lambda run: time_panels(run, run.aqms, "joins", [f"flow {i}" for i in range(1, 5)], 2),
    ),
    "distances": Drawing(
        "Four flows to agencies at different distances",
        "Payload of each flow in each second; dark: of all together. All begin together. Seconds above the "
        "frame are those in which the gap after a loss is filled.",
        lambda run: time_panels(run, run.aqms, "distances", ("700 ms", "750 ms", "800 ms", "850 ms"), 2),
    ),
    "completion": Drawing(
        "The slowest file",
        "Time until the last of some files of 5 MB, all begun together, has arrived. The dotted line is the "
        "time that sending them takes on a link that is never idle.",
        _completion,
    ),
}
