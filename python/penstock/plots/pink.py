"""Figures of PINK's further experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from penstock.plots.style import CYCLE, FAINT, INK, LABELS, MARKERS, STYLE, box, colour, mark_level
from penstock.reproduce import columns, sharing
from penstock.reproduce.pink import (
    BURST_COUNTS,
    C_VALUES,
    FLOOD_FROM_S,
    FLOODS,
    MSS_BYTES,
    REALLOCATIONS,
    SAMPLINGS,
    SYN_BYTES,
    THEOREM_1_BYTES,
    UDP_SHARES,
)
from penstock.reproduce.results import Evidence, Outcome, drops, rtt_ms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MODES = {"off": "#6b6b6b", "paper": "#d55e00", "max-min": "#0072b2"}
_MODE_MARKERS = {"off": "s", "paper": "^", "max-min": "o"}


def _grid(count: int, across: int, height: float, *, sharey: bool = True) -> tuple[Figure, list[Axes]]:
    """Panels in rows of `across`; places that are left over stay empty."""
    down = -(-count // across)
    figure = Figure(figsize=(10, height * down), layout="constrained")
    axes = figure.subplots(down, across, sharex=True, sharey=sharey, squeeze=False)
    flat = [axis for row in axes for axis in row]
    for axis in flat[count:]:
        axis.set_axis_off()
    for axis in flat[max(0, count - across) : count]:
        axis.tick_params(labelbottom=True)
    return figure, flat


def _legend(axes: Sequence[Axes], used: int, **place: Any) -> None:
    """In the first empty panel, or right of the last."""
    handles, labels = axes[0].get_legend_handles_labels()
    if used < len(axes):
        axes[used].legend(handles, labels, loc="center left", **place)
    else:
        axes[used - 1].legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5), **place)


def _flow_lines(axis: Axes, outcome: Outcome, names: Sequence[str]) -> None:
    """Goodput of each flow over time, and of all together above them."""
    series = outcome.series
    if series is None:
        return
    seconds = range(series.seconds)
    axis.plot(seconds, [v / 1e3 for v in series.total()], color=INK, linewidth=0.9, label="all together")
    for index, (flow, name) in enumerate(zip(series.flows, names, strict=True)):
        active = [k for k in seconds if flow[k] > 0]
        inside = range(active[0], active[-1] + 1) if active else range(0)
        axis.plot(inside, [flow[k] / 1e3 for k in inside], color=CYCLE[index], linewidth=1.2, label=name)


def _time_panels(run: Evidence, aqms: Sequence[str], setting: str, names: Sequence[str], across: int) -> Figure:
    figure, axes = _grid(len(aqms), across, 2.5)
    for axis, aqm in zip(axes, aqms, strict=False):
        _flow_lines(axis, run.runs(aqm, setting=setting)[0], names)
        axis.set_title(LABELS.get(aqm, aqm), color=INK)
    # Seconds in which the gap after a loss is filled would press all others down.
    axes[0].set_ylim(0, 1.4 * run.experiment.goodput_limit_bps / 1e6)
    _legend(axes, len(aqms))
    figure.supxlabel("time (s)", fontsize=9.5, color=INK)
    figure.supylabel("goodput (Mbit/s)", fontsize=9.5, color=INK)
    return figure


_RTTS = ("100 ms", "150 ms", "200 ms", "250 ms")


def _rtt(run: Evidence) -> dict[str, Figure]:
    return {"shares": _time_panels(run, run.aqms, "", _RTTS, 3), "ends": _ends(run)}


def _ends(run: Evidence) -> Figure:
    """When each flow of each discipline was complete."""
    figure = Figure(figsize=(10, 0.5 * len(run.aqms) + 1.4), layout="constrained")
    axis = figure.subplots()
    for place, aqm in enumerate(run.aqms):
        outcome = run.runs(aqm)[0]
        axis.axhline(place, color=FAINT, linewidth=1, zorder=1)
        for flow, end in enumerate(columns.ends_s(outcome)):
            late = end is None
            at = run.duration_s if end is None else end
            axis.plot(at, place, "x" if late else "o", color=CYCLE[flow], markersize=8, markeredgewidth=2, zorder=3)
    for flow, name in enumerate(_RTTS):
        axis.plot([], [], "o", color=CYCLE[flow], label=name)
    axis.plot([], [], "x", color=INK, markeredgewidth=2, label="not by the end")
    axis.set_yticks(range(len(run.aqms)), [LABELS.get(aqm, aqm) for aqm in run.aqms])
    axis.set(xlabel="time at which all 80 MB of a flow had arrived (s)", ylim=(len(run.aqms) - 0.5, -0.5))
    axis.grid(False)
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _multi(run: Evidence) -> dict[str, Figure]:
    return {
        "reallocation": _reallocation(run, "", {1: "the bad flow"}),
        "corners": _reallocation(run, "-two", {1: "bad: 2 Mbit/s", 2: "worse: 0.5 Mbit/s"}),
        "utilization": _over_counts(run, "goodput ÷ (c × rate)", columns.used, (0.5, 1.05), predicted=True),
        "convergence": _convergence(run),
        "evenness": _over_counts(run, "Jain index of shares", columns.fairness, (0.85, 1.01), predicted=False),
    }


def _modes(run: Evidence, corners: str) -> list[str]:
    return [mode for mode in REALLOCATIONS if f"{mode}{corners}" in run.settings]


def _reallocation(run: Evidence, corners: str, bad: dict[int, str]) -> Figure:
    modes = _modes(run, corners)
    figure, axes = _grid(len(modes), len(modes), 3.0)
    for axis, mode in zip(axes, modes, strict=True):
        _bad_and_good(axis, run.runs("pink", setting=f"{mode}{corners}")[0], bad)
        axis.set_title(f"reallocation: {mode}", color=_MODES[mode])
    axes[0].set_ylim(0, None)
    mark_level(axes[: len(modes)], columns.PINK_C * 10, "c × rate")
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
    figure, axes = _grid(2, 2, 3.0)
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
            expected = [columns.predicted_use(n, corners) for n in counts]
            axis.plot(counts, expected, color=INK, linewidth=1, linestyle=(0, (2, 2)), label="off, by arithmetic")
    axes[0].set_ylim(*limits)
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _convergence(run: Evidence) -> Figure:
    figure, axes = _corner_panels("time until all flows are steady (s)")
    never = 15.0
    for axis, corners in zip(axes, ("", "-two"), strict=True):
        modes = _modes(run, corners)
        for offset, mode in enumerate(modes):
            outcome = run.runs("pink", setting=f"{mode}{corners}")[0]
            for phase in sharing.phases(outcome):
                took = sharing.converge_s(outcome.series, phase) if outcome.series else None
                at = len(phase.active) + 0.18 * (offset - (len(modes) - 1) / 2)
                mark = "x" if took is None else _MODE_MARKERS[mode]
                axis.plot(at, never if took is None else took, mark, color=_MODES[mode], markersize=6.5)
            axis.plot([], [], _MODE_MARKERS[mode], color=_MODES[mode], label=mode)
        axis.plot([], [], "x", color=INK, label="not in 15 s")
    axes[0].set_ylim(0, never + 2)
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _c(run: Evidence) -> dict[str, Figure]:
    return {"throughput": _c_throughput(run), "rtt_c": _c_rtt(run)}


def _c_values(run: Evidence, link: str) -> list[float]:
    return [c for c in C_VALUES if f"{link}-{c:.2f}" in run.settings]


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


def _ppdr(run: Evidence) -> dict[str, Figure]:
    names = [f"flow {i}" for i in range(1, 5)]
    far = ("700 ms", "750 ms", "800 ms", "850 ms")
    return {
        "joins": _time_panels(run, run.aqms, "joins", names, 2),
        "distances": _time_panels(run, run.aqms, "distances", far, 2),
        "completion": _completion(run),
    }


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


def _limits(run: Evidence) -> dict[str, Figure]:
    return {"segments": _segments(run), "udp": _udp(run), "bursts": _bursts(run)}


_WINDOWS = {"literal": ("#d55e00", "windows of eq. 1"), "dither": ("#cc79a7", "whole segments, the same mean")}


def _segments(run: Evidence) -> Figure:
    figure, axes = _grid(2, 2, 3.0)
    for axis, rule, title in zip(axes, ("strict", "minshall"), ("strict rule (RFC 9293)", "Linux's rule"), strict=True):
        sizes = [mss for mss in MSS_BYTES if f"segments-{mss}-{rule}-dither" in run.settings]
        for offset, (window, (tint, label)) in enumerate(_WINDOWS.items()):
            for place, mss in enumerate(sizes):
                cell = ("pink", 64, f"segments-{mss}-{rule}-{window}")
                part = (run.cell_value(cell, columns.goodput_all_mbps) or 0.0) / (columns.PINK_C * 10)
                at = place + 0.36 * (offset - 0.5)
                axis.bar(at, part, 0.32, color=tint, alpha=0.75, label=label if place == 0 else None)
                axis.annotate(f"{part:.2f}", (at, part), (0, 3), textcoords="offset points", ha="center", fontsize=8)
        axis.set_xticks(range(len(sizes)), [f"{mss} B" for mss in sizes])
        axis.set_title(title)
    axes[0].set(ylabel="goodput ÷ (c × rate)", ylim=(0, 1.2))
    axes[0].legend(loc="upper left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    return figure


def _udp(run: Evidence) -> Figure:
    figure, axes = _grid(2, 2, 3.0, sharey=False)
    shares = [s for s in UDP_SHARES if f"udp-{s * 100:.0f}-unknown" in run.settings]
    for told, tint, label in (("unknown", "#d55e00", "PINK not told"), ("reserved", "#0072b2", "reserved")):
        settings = [f"udp-{s * 100:.0f}-{told}" for s in shares]
        outcomes = [run.runs("pink", setting=setting)[0] for setting in settings if setting in run.settings]
        percent = [100 * s for s in shares][: len(outcomes)]
        style: dict[str, Any] = {"color": tint, "marker": "o", "linewidth": 1.6, "label": label}
        axes[0].plot(percent, [o.summary["bottlenecks"][0]["queue_delay_ms"]["p90"] for o in outcomes], **style)
        axes[1].plot(percent, [drops(o.summary) for o in outcomes], **style)
    for axis in axes:
        axis.set_xlabel("UDP, % of the link")
    axes[0].set(ylabel="queueing delay, p90 (ms)", ylim=(0, None))
    axes[1].set(ylabel="packets dropped", ylim=(0, None))
    axes[0].legend(loc="upper left")
    return figure


def _bursts(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axis = figure.subplots()
    counts = [n for n in BURST_COUNTS if ("pink", n, "bursts-literal") in run.cells]
    for window, (tint, label) in _WINDOWS.items():
        peaks = [run.cell_value(("pink", n, f"bursts-{window}"), columns.queue_max_kb) or 0.0 for n in counts]
        axis.plot(range(len(counts)), peaks, color=tint, marker="o", linewidth=1.6, label=label)
    axis.set_xticks(range(len(counts)), [str(n) for n in counts])
    axis.set(xlabel="number of flows that send their first window at once", ylabel="longest queue (kB)", ylim=(0, 150))
    mark_level([axis], THEOREM_1_BYTES / 1e3, "Theorem 1")
    axis.legend(loc="lower right")
    return figure


_COUNTED = {"off": "#d55e00", "after-drop": "#e69f00", "always": "#0072b2"}


def _flood(run: Evidence) -> dict[str, Figure]:
    return {"flood_time": _flood_time(run), "flood_cost": _flood_cost(run)}


def _flood_time(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axis = figure.subplots()
    for sampling, label in SAMPLINGS.items():
        outcome = run.runs("pink", setting=f"{sampling}-1000")[0]
        total = [kbps / 1e3 for kbps in outcome.series.total()] if outcome.series else []
        axis.plot(range(len(total)), total, color=_COUNTED[sampling], linewidth=1.6, label=label)
    axis.axvspan(FLOOD_FROM_S, run.duration_s, color=FAINT, alpha=0.5, linewidth=0, zorder=0)
    axis.set(xlabel="time (s); grey: the flood", ylabel="goodput (Mbit/s)", ylim=(0, None), xlim=(0, run.duration_s))
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _flood_cost(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axis = figure.subplots()
    counts = [n for n in (0, *FLOODS) if f"always-{n}" in run.settings]
    for offset, (sampling, label) in enumerate(SAMPLINGS.items()):
        for place, n in enumerate(counts):
            rate = run.cell_value(("pink", 8, f"{sampling}-{n}"), columns.goodput_all_mbps) or 0.0
            at = place + 0.26 * (offset - 1)
            axis.bar(at, rate, 0.24, color=_COUNTED[sampling], alpha=0.75, label=label if place == 0 else None)
    calm = run.cell_value(("pink", 8, "always-0"), columns.goodput_all_mbps) or 0.0
    for place, n in enumerate(counts):
        left = calm - n * SYN_BYTES * 8 / 1e6
        axis.plot([place - 0.4, place + 0.4], [left, left], color=INK, linewidth=1, linestyle=(0, (2, 2)))
    axis.set_xticks(range(len(counts)), [f"{n:,}" if n else "none" for n in counts])
    axis.set(xlabel="SYNs per second", ylabel="goodput (Mbit/s)", ylim=(0, None))
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


DRAWN: dict[str, Callable[[Evidence], dict[str, Figure]]] = {}


def _drawn(name: str, draw: Callable[[Evidence], dict[str, Figure]]) -> None:
    def styled(run: Evidence) -> dict[str, Figure]:
        with mpl.rc_context(STYLE):
            return draw(run)

    DRAWN[name] = styled


for _name, _draw in (
    ("pink-rtt", _rtt),
    ("pink-multi", _multi),
    ("pink-c", _c),
    ("pink-ppdr", _ppdr),
    ("pink-limits", _limits),
    ("pink-flood", _flood),
):
    _drawn(_name, _draw)
