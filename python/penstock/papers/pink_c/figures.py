"""The figures of `pink-c`."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.plots.kit import Axes, Drawing, Figure, box, colour, mark_level
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, rtt_ms


def _c_values(run: Evidence, link: str) -> list[float]:
    return [float(name.removeprefix(f"{link}-")) for name in run.settings if name.startswith(f"{link}-")]


def _c_axis(axis: Axes, values: Sequence[float], wide: bool) -> None:
    step = 1 if len(values) <= 12 or wide else 2
    axis.set_xticks(range(0, len(values), step), [f"{c:.2f}" for c in values[::step]])
    axis.set_xlim(-0.6, len(values) - 0.4)
    axis.set_xlabel("c")


def _c_throughput(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axis = figure.subplots()
    values = _c_values(run, "dsl")
    for place, c in enumerate(values):
        cell = ("pink", 4, f"dsl-{c:.2f}")
        parts = [run.cell_value(cell, columns.throughput_mbps(p, 20)) or 0.0 for p in (10, 50, 90)]
        box(axis, place, parts[0], parts[1], parts[2], colour("pink"))
    _c_axis(axis, values, wide=True)
    axis.set(ylabel="throughput on the DSL link (Mbit/s)", ylim=(8, 10.2))
    mark_level([axis], 9.5, "9.5")
    return figure


def _c_rtt(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots(1, 2, squeeze=False)[0]
    for axis, link, title in zip(axes, ("sat", "dsl"), ("satellite", "DSL"), strict=True):
        values = _c_values(run, link)
        for place, c in enumerate(values):
            parts = [run.value("pink", 4, rtt_ms(p), f"{link}-{c:.2f}") for p in ("p10", "p50", "p90")]
            box(axis, place, parts[0], parts[1], parts[2], colour("pink"))
        _c_axis(axis, values, wide=False)
        axis.set_title(title)
        smallest = min(run.value("pink", 4, rtt_ms("min"), f"{link}-{c:.2f}") for c in values)
        mark_level([axis], smallest, "base")
    axes[0].set_ylabel("round trip time (ms)")
    return figure


FIGURES: dict[str, Drawing] = {
    "throughput": Drawing(
        "Throughput over c",
        "With headers, of each second; a box spans the 10th to the 90th percentile, the thick line is the "
        "median. Windows count payload, so with 1000 B in 1052 B the link is full at c = 0.9506.",
        _c_throughput,
    ),
    "rtt_c": Drawing(
        "Round trip time over c",
        "Every sample of every flow. Above c = 0.9506 windows are larger than what the link carries in a "
        "round trip; what is too much waits in the queue.",
        _c_rtt,
    ),
}
