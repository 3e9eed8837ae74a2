"""The figures of `dybra`."""

from __future__ import annotations

from penstock.papers._shared import nodes
from penstock.papers._shared.cooperation_claims import value
from penstock.papers._shared.cooperation_figures import RIGHT, row
from penstock.papers.dybra.runs import SCALE
from penstock.plots.kit import CYCLE, LABELS, Drawing, Figure, colour
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence
from penstock.reproduce.seconds import series_of


def _seconds(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2, squeeze=False)[0]
    for way in run.experiment.aqms:
        series = series_of(run.runs(way, setting="mix")[0])
        left.plot([v / 1e3 for v in series.queues["bottleneck"]], color=colour(way), label=LABELS[way])
        right.plot([v / 1e3 for v in series.longest["bottleneck"]], color=colour(way), label=LABELS[way])
    left.set(xlabel="time (s)", ylabel="throughput (Mbit/s)", ylim=(0, None))
    right.set(xlabel="time (s)", ylabel="longest queue (kB)", ylim=(0, None))
    right.legend(**RIGHT)
    return figure


def _good_channels(run: Evidence) -> Figure:
    figure, axes = row(2, ["plain TCP", "C²ML + DyBRA"])
    for axis, way in zip(axes, ("plain", "dybra"), strict=True):
        outcome = run.runs(way, setting="mix")[0]
        for flow in range(nodes.obedient(outcome.case)):
            kbps = series_of(outcome).flows[flow]
            cc = outcome.summary["flows"][flow]["cc"]
            axis.plot([v / 1e3 for v in kbps], color=CYCLE[flow], label=cc, linewidth=1.2)
        axis.set(xlabel="time (s)", ylim=(0, None))
    axes[0].set_ylabel("goodput (Mbit/s)")
    axes[-1].legend(**RIGHT)
    return figure


def _scale(run: Evidence) -> Figure:
    figure = Figure(figsize=(6, 3.0), layout="constrained")
    axis = figure.subplots()
    there = [n for n in SCALE if f"cubic-{n}" in run.settings]
    for way in ("plain", "dybra"):
        got = [value(run, way, f"cubic-{n}", lambda o: columns.mean_queue_kb(o.summary)) or 0.0 for n in there]
        axis.plot(range(len(there)), got, "o-", color=colour(way), label=LABELS[way])
    axis.set_xticks(range(len(there)), [str(n) for n in there])
    axis.set(xlabel="number of clients", ylabel="mean queue (kB)", yscale="log")
    axis.legend(**RIGHT)
    return figure


FIGURES: dict[str, Drawing] = {
    "dybra_seconds": Drawing(
        "Ten clients, half of which have a bad channel from 15 to 45 s",
        "Left: what the bottleneck carried in each second. Right: the longest queue of each second.",
        _seconds,
    ),
    "dybra_friends": Drawing(
        "Controls whose channels stay good",
        "Payload of each second.",
        _good_channels,
    ),
    "dybra_scale": Drawing(
        "Queue and number of clients",
        "The mean over the run, on a logarithmic scale.",
        _scale,
    ),
}
