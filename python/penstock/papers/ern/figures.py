"""Figures of RED-ERN beside RED that marks and RED that drops."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from penstock.papers.ern.claims import FIXED_COUNT, FIXED_RATE, counts, grid, rates, value
from penstock.papers.ern.runs import OTHERS, TARGET_MS, THREE, ftp
from penstock.plots.kit import INK, LABELS, MARKERS, Axes, Drawing, Figure, colour
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, Outcome, drops

Measure = Callable[[Outcome], float | None]

_fair = columns.fairness_of("bulk")


def _over_target(outcome: Outcome) -> float:
    return columns.queue_delay_ms(outcome) - TARGET_MS


def _percent(outcome: Outcome) -> float | None:
    index = _fair(outcome)
    return None if index is None else 100 * index


def _use(outcome: Outcome) -> float:
    return 100 * columns.use(outcome)


_GENERAL: tuple[tuple[str, Measure], ...] = (
    ("fairness (%)", _percent),
    ("utilization (%)", _use),
    ("dropped packets (thousands)", lambda outcome: drops(outcome.summary) / 1e3),
    ("queueing time (ms)", columns.queue_delay_ms),
)


def _general(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 2.9), layout="constrained")
    axes: list[Axes] = list(figure.subplots(1, len(_GENERAL), squeeze=False)[0])
    for axis, (title, measure) in zip(axes, _GENERAL, strict=True):
        for place, aqm in enumerate(THREE):
            values = [value(run, aqm, setting, measure) for setting in grid(run)]
            middle, off = statistics.fmean(values), statistics.pstdev(values)
            axis.bar(place, middle, 0.62, color=colour(aqm), alpha=0.75)
            axis.errorbar(place, middle, [[min(off, middle)], [off]], color=INK, capsize=3, linewidth=1.1)
        axis.set_title(title)
        axis.set_xticks(range(len(THREE)), [LABELS[aqm].removeprefix("RED-") for aqm in THREE])
        axis.set_ylim(0, 105 if "%" in title else None)
    return figure


def _mixed(run: Evidence, kind: str, xlabel: str, more: Measure | None = None) -> Figure:
    numbers = [count for count in OTHERS if f"{kind}-{count}" in run.settings]
    return _pair(run, numbers, [f"{kind}-{count}" for count in numbers], xlabel, more)


def _pair(
    run: Evidence, numbers: Sequence[int], settings: Sequence[str], xlabel: str, more: Measure | None = None
) -> Figure:
    """Fairness and queueing time over numbers, after the use of the link where it is asked for."""
    panels: list[tuple[str, Measure]] = [("Jain index (%)", _percent), ("queueing time - 14 ms (ms)", _over_target)]
    if more:
        panels.insert(0, ("utilization (%)", more))
    figure = Figure(figsize=(10, 3.1), layout="constrained")
    axes: list[Axes] = list(figure.subplots(1, len(panels), squeeze=False)[0])
    for axis, (ylabel, measure) in zip(axes, panels, strict=True):
        for aqm in THREE:
            values = [value(run, aqm, setting, measure) for setting in settings]
            style: dict[str, Any] = {"color": colour(aqm), "marker": MARKERS[aqm], "label": LABELS[aqm]}
            axis.plot(range(len(numbers)), values, linewidth=2.2 if aqm == "red-ern" else 1.6, **style)
        axis.set_xticks(range(len(numbers)), [str(n) for n in numbers])
        axis.set_title(ylabel)
        axis.set_xlabel(xlabel)
        if "Jain" in ylabel:
            axis.set_ylim(0, 105)
        if "utilization" in ylabel:
            axis.set_ylim(None, 101)
    axes[-1].axhline(0, color=INK, linewidth=0.8)
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


FIGURES: dict[str, Drawing] = {
    "ern_general": Drawing(
        "All rates and numbers of flows",
        "Mean and standard deviation over all settings with bulk flows only.",
        _general,
    ),
    "ern_flows": Drawing(
        "Over the number of flows",
        "At 30 Mbit/s: Jain's index of what flows get in the whole run, and the mean queueing time less the "
        "target of 14 ms.",
        lambda run: _pair(run, counts(run), [ftp(FIXED_RATE, n) for n in counts(run)], "number of flows"),
    ),
    "ern_rates": Drawing(
        "Over the rate of the bottleneck",
        "With 200 flows: Jain's index of what flows get in the whole run, and the mean queueing time less "
        "the target of 14 ms.",
        lambda run: _pair(
            run, rates(run), [ftp(r, FIXED_COUNT) for r in rates(run)], "rate of the bottleneck (Mbit/s)"
        ),
    ),
    "ern_udp": Drawing(
        "Beside UDP flows",
        "50 bulk flows and so many UDP flows of 64 kbit/s at 25 Mbit/s: Jain's index of the bulk flows, and "
        "the mean queueing time less the target of 14 ms. From 400 on the UDP flows alone are more than the "
        "link carries.",
        lambda run: _mixed(run, "udp", "number of UDP flows"),
    ),
    "ern_http": Drawing(
        "Beside HTTP sessions",
        "20 bulk flows and so many sessions at 25 Mbit/s: use of the link, Jain's index of the bulk flows, "
        "and the mean queueing time less the target of 14 ms.",
        lambda run: _mixed(run, "http", "number of HTTP sessions", _use),
    ),
}
