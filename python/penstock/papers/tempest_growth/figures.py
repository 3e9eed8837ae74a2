"""The figures of `tempest-growth`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock.papers._shared.tempest_figures import THEORY, legend, one, over, report
from penstock.papers.tempest_growth.runs import COUNTS
from penstock.plots.kit import LIMIT, Drawing, Figure
from penstock.reproduce.results import Evidence


def fitted(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Returns a and b of the least-squares fit a + b log2(x)."""
    logs = [math.log2(x) for x in xs]
    mean_x, mean_y = sum(logs) / len(logs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in logs)
    b = sum((x - mean_x) * (y - mean_y) for x, y in zip(logs, ys, strict=True)) / spread if spread else 0.0
    return mean_y - b * mean_x, b


def _growth(run: Evidence) -> Figure:
    figure, axis = one()
    points = [(float(n), f"n-{n}") for n in COUNTS]
    drawn = over(axis, run, run.aqms, points, report("ns_scheduler"))
    xs, ys = drawn["wf2q-plus"]
    if len(xs) > 1:
        a, b = fitted(xs, ys)
        axis.plot(xs, [a + b * math.log2(x) for x in xs], color=LIMIT, label="a + b log₂ n", **THEORY)
    axis.set_xscale("log")
    axis.set(xlabel="number of flows", ylabel="ns of the scheduler alone", ylim=(0, None))
    legend(axis)
    return figure


FIGURES: dict[str, Drawing] = {
    "tempest_growth": Drawing(
        "Over the number of flows",
        "Time of the scheduler alone. Dashed: a + b log2(n), fitted to what WF²Q+ measured, as its "
        "complexity is O(log n). The others are O(1): what they rise by is what the caches hold no more.",
        _growth,
    ),
}
