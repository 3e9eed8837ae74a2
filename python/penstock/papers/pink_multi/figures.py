"""The figures of `pink-multi`."""

from __future__ import annotations

from typing import Any

from penstock.papers._shared import pink
from penstock.papers._shared.pink_figures import grid
from penstock.papers.pink_multi.columns import fairness, predicted_use, used
from penstock.papers.pink_multi.runs import REALLOCATIONS
from penstock.plots.kit import INK, Axes, Drawing, Figure, mark_level
from penstock.reproduce.results import Evidence, Outcome

_MODES = {"off": "#6b6b6b", "paper": "#d55e00", "max-min": "#0072b2"}
_MODE_MARKERS = {"off": "s", "paper": "^", "max-min": "o"}


def _modes(run: Evidence, corners: str) -> list[str]:
    return [mode for mode in REALLOCATIONS if f"{mode}{corners}" in run.settings]


def _reallocation(run: Evidence, corners: str, bad: dict[int, str]) -> Figure:
    modes = _modes(run, corners)
    figure, axes = grid(len(modes), len(modes), 3.0)
    for axis, mode in zip(axes, modes, strict=True):
        _bad_and_good(axis, run.runs("pink", setting=f"{mode}{corners}")[0], bad)
        axis.set_title(f"reallocation: {mode}", color=_MODES[mode])
    axes[0].set_ylim(0, None)
    mark_level(axes[: len(modes)], pink.PINK_C * 10, "c × rate")
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.supxlabel("time (s); one more flow every 25 s", fontsize=9.5, color=INK)
    axes[0].set_ylabel("goodput (Mbit/s)")
    return figure


def _bad_and_good(axis: Axes, outcome: Outcome, bad: dict[int, str]) -> None:
    series = outcome.series
    if series is None:
        return
    axis.plot(range(series.seconds), [v / 1e3 for v in series.total()], color=INK, linewidth=1.1, label="all together")
    for index, flow in enumerate(series.flows):
        inside = range(25 * index, series.seconds)
        values = [flow[k] / 1e3 for k in inside]
        if index in bad:
            tint = ("#d55e00", "#009e73")[index - 1]
            axis.plot(inside, values, color=tint, linewidth=2.0, label=bad[index], zorder=3)
        else:
            label = "the others" if index == 0 else None
            axis.plot(inside, values, color="#0072b2", linewidth=0.8, alpha=0.7, label=label)


def _corner_panels(ylabel: str) -> tuple[Figure, list[Axes]]:
    figure, axes = grid(2, 2, 3.0)
    for axis, title in zip(axes, ("one bad flow", "two bad flows"), strict=True):
        axis.set_title(title)
        axis.set_xlabel("number of flows")
        axis.set_xticks(range(1, 9))
    axes[0].set_ylabel(ylabel)
    return figure, axes


def _over_counts(run: Evidence, ylabel: str, measure: Any, limits: tuple[float, float], predicted: bool) -> Figure:
    """One line for each way to reallocate, over the number of flows."""
    figure, axes = _corner_panels(ylabel)
    counts = range(1, 9)
    for axis, corners in zip(axes, ("", "-two"), strict=True):
        for mode in _modes(run, corners):
            outcome = run.runs("pink", setting=f"{mode}{corners}")[0]
            style: dict[str, Any] = {"color": _MODES[mode], "marker": _MODE_MARKERS[mode], "linewidth": 1.6}
            axis.plot(counts, [measure(n)(outcome) or 0.0 for n in counts], label=mode, **style)
        if predicted:
            expected = [predicted_use(n, corners) for n in counts]
            axis.plot(counts, expected, color=INK, linewidth=1, linestyle=(0, (2, 2)), label="off, by arithmetic")
    axes[0].set_ylim(*limits)
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


FIGURES: dict[str, Drawing] = {
    "reallocation": Drawing(
        "What becomes of the share that a flow cannot use",
        "Flow 2 goes through a link of 2 Mbit/s that has a PINK of its own. Left, the DSL link's PINK keeps "
        "a full share for it; the others give what it cannot use to the rest.",
        lambda run: _reallocation(run, "", {1: "the bad flow"}),
    ),
    "corners": Drawing(
        "The same with two bad flows",
        "Flow 2 goes through a link of 2 Mbit/s, flow 3 through one of 0.5 Mbit/s, each with a PINK of its own.",
        lambda run: _reallocation(run, "-two", {1: "bad: 2 Mbit/s", 2: "worse: 0.5 Mbit/s"}),
    ),
    "utilization": Drawing(
        "Use of the DSL link",
        "Payload of all flows in the last ten seconds of each number of flows, as a part of c times the "
        "rate. The dotted line is what is left when a bad flow takes its corner's rate or its share, "
        "whichever is less.",
        lambda run: _over_counts(run, "goodput ÷ (c × rate)", used, (0.5, 1.05), predicted=True),
    ),
    "evenness": Drawing(
        "Fairness",
        "Jain's index of what flows get in each number of flows, each as a part of its max-min fair share. "
        "1 means that nobody could get more without taking it from somebody who has less.",
        lambda run: _over_counts(run, "Jain index of shares", fairness, (0.85, 1.01), predicted=False),
    ),
}
