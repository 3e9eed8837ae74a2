"""Figures of the experiments on Modified CoDel and Minstrel PIE."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from penstock.plots.style import FAINT, INK, LABELS, MARKERS, STYLE, box, colour, mark_level
from penstock.reproduce import columns
from penstock.reproduce.bufferbloat import (
    BUFFERS,
    CONGESTION,
    HIGHEST_MS,
    LOWEST_MS,
    PIES,
    TARGET_KB,
    TARGETS_MS,
    TESTBED,
)
from penstock.reproduce.results import Evidence, Measure, Outcome, rtt_ms
from penstock.reproduce.seconds import after_warmup, delays_ms, window_spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAIR = ("codel", "modified-codel")
_SMOOTH_S = 5


def _panels(down: int, across: int, height: float, **shared: Any) -> tuple[Figure, list[list[Axes]]]:
    figure = Figure(figsize=(10, height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, **shared)
    return figure, [list(row) for row in axes]


def _look(aqm: str) -> dict[str, Any]:
    return {"color": colour(aqm), "label": LABELS.get(aqm, aqm)}


def _legend_right(axis: Axes) -> None:
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _queue_of(outcome: Outcome) -> list[int]:
    """What the bottleneck carried in each second, kbit/s."""
    return [] if outcome.series is None else list(next(iter(outcome.series.queues.values())))


# Modified CoDel.


def _over_counts(run: Evidence, measure: Measure, ylabel: str) -> tuple[Figure, list[Axes]]:
    figure, (axes,) = _panels(1, 2, 3.3, sharey=True)
    for axis, setting, title in zip(axes, ("tcp", "udp"), ("TCP flows", "streams"), strict=True):
        counts = run.counts(setting=setting)
        for aqm in run.aqms:
            values = [run.value(aqm, n, measure, setting) for n in counts]
            axis.plot(range(len(counts)), values, marker=MARKERS.get(aqm, "o"), linewidth=1.6, **_look(aqm))
        axis.set_xticks(range(len(counts)), [str(n) for n in counts])
        axis.set_xlabel(f"number of {title}")
    axes[0].set_ylabel(ylabel)
    return figure, axes


def _queue_counts(run: Evidence) -> Figure:
    figure, axes = _over_counts(run, columns.mean_queue_kb, "mean queue (kB)")
    axes[0].set_yscale("log")
    mark_level(axes, TARGET_KB, "5 ms")
    axes[0].legend(loc="upper left", ncols=2)
    return figure


def _use_counts(run: Evidence) -> Figure:
    figure, axes = _over_counts(run, lambda summary: 100 * columns.used_share(summary), "link in use (%)")
    axes[0].set_ylim(0, 105)
    _legend_right(axes[-1])
    return figure


def _window_spread(run: Evidence) -> Figure:
    figure, ((axis,),) = _panels(1, 1, 3.2)
    targets = [t for t in TARGETS_MS if f"five-{t}ms" in run.settings]
    for offset, aqm in enumerate(run.aqms):
        heights = [run.cell_value((aqm, 5, f"five-{t}ms"), window_spread) or 0.0 for t in targets]
        places = [place + 0.2 * (offset - (len(run.aqms) - 1) / 2) for place in range(len(targets))]
        axis.bar(places, heights, 0.18, alpha=0.75, **_look(aqm))
    axis.set_xticks(range(len(targets)), [f"{t} ms" for t in targets])
    axis.set(xlabel="target", ylabel="variance ÷ mean²")
    _legend_right(axis)
    return figure


def _means(values: Sequence[float], of: int) -> tuple[list[float], list[float]]:
    starts = range(0, len(values) - of + 1, of)
    return [k + of / 2 for k in starts], [statistics.fmean(values[k : k + of]) for k in starts]


def _use_time(run: Evidence) -> Figure:
    figure, rows = _panels(2, 2, 2.4, sharex=True, sharey=True)
    axes = [axis for row in rows for axis in row]
    for axis, target in zip(axes, TARGETS_MS, strict=True):
        for aqm in _PAIR:
            times, values = _means(_queue_of(run.runs(aqm, setting=f"five-{target}ms")[0]), _SMOOTH_S)
            axis.plot(times, values, linewidth=1.3, **_look(aqm))
        axis.set_title(f"target {target} ms")
    axes[0].set_ylim(440, 510)
    figure.supylabel("throughput (kbit/s)", fontsize=9.5, color=INK)
    figure.supxlabel("time (s)", fontsize=9.5, color=INK)
    axes[0].legend(loc="lower right", ncols=2)
    return figure


def _udp_comes(run: Evidence) -> Figure:
    figure, (above, below) = _panels(2, 2, 2.5, sharex=True)
    titles = {"slow": "0.5 Mbit/s", "fast": "10 Mbit/s"}
    for top, bottom, (name, bps) in zip(above, below, TESTBED.items(), strict=True):
        for aqm in run.aqms:
            outcome = run.runs(aqm, setting=f"udp-{name}")[0]
            top.plot(delays_ms(outcome), linewidth=1.2, **_look(aqm))
            bottom.plot([100 * 1e3 * kbps / bps for kbps in _queue_of(outcome)], linewidth=1.2, color=colour(aqm))
        for axis in (top, bottom):
            axis.axvspan(26, 75, color=FAINT, alpha=0.5, zorder=0, linewidth=0)
        top.set(title=titles[name], yscale="log")
        bottom.set(ylim=(0, 108), xlabel="time (s)")
    above[0].set_ylabel("time in the queue (ms)")
    below[0].set_ylabel("link in use (%)")
    _legend_right(above[-1])
    return figure


def _modified_codel(run: Evidence) -> dict[str, Figure]:
    return {
        "queue_counts": _queue_counts(run),
        "use_counts": _use_counts(run),
        "window_spread": _window_spread(run),
        "use_time": _use_time(run),
        "udp_comes": _udp_comes(run),
    }


# Minstrel PIE.

_LOADS = {"light": "5 TCP flows", "heavy": "50 TCP flows", "mix": "5 TCP and 2 UDP flows"}
_SHARES = {"p10": 10, "p50": 50, "p90": 90, "p99": 99}


def _delay_cdf(run: Evidence) -> Figure:
    figure, (above, below) = _panels(2, 3, 2.6, sharex="row", sharey="row")
    for top, bottom, (load, title) in zip(above, below, _LOADS.items(), strict=True):
        for aqm in PIES:
            outcome = run.runs(aqm, setting=load)[0]
            delays = [columns.delay_ms(p)(outcome.summary) for p in _SHARES]
            top.plot(delays, list(_SHARES.values()), marker=MARKERS[aqm], markersize=4, linewidth=1.5, **_look(aqm))
            used = sorted(kbps / 100 for kbps in _queue_of(outcome)[int(outcome.summary["warmup_s"]) :])
            shares = [100 * (rank + 1) / len(used) for rank in range(len(used))]
            bottom.step(used, shares, where="post", linewidth=1.5, color=colour(aqm))
        top.set(title=title, xlabel="time in the queue (ms)", ylim=(0, 103))
        bottom.set(xlabel="link in use (%)", ylim=(0, 103))
    above[0].set(ylabel="packets (%)", xlim=(0, None))
    below[0].set_ylabel("seconds (%)")
    _legend_right(above[-1])
    return figure


def _over_time(run: Evidence, values: Callable[[Outcome], list[float]], ylabel: str) -> tuple[Figure, list[Axes]]:
    figure, (axes,) = _panels(1, 3, 3.0, sharey=True)
    for axis, (load, title) in zip(axes, _LOADS.items(), strict=True):
        for aqm in PIES:
            axis.plot(values(run.runs(aqm, setting=load)[0]), linewidth=1.3, **_look(aqm))
        axis.set(title=title, xlabel="time (s)")
    axes[0].set_ylabel(ylabel)
    return figure, axes


def _delay_time(run: Evidence) -> Figure:
    figure, axes = _over_time(run, delays_ms, "time in the queue (ms)")
    axes[0].set_yscale("log")
    mark_level(axes, HIGHEST_MS, "15 ms")
    mark_level(axes, LOWEST_MS, "5 ms")
    axes[0].legend(loc="upper right")
    return figure


def _link_time(run: Evidence) -> Figure:
    figure, axes = _over_time(run, lambda outcome: [kbps / 100 for kbps in _queue_of(outcome)], "link in use (%)")
    axes[0].set_ylim(0, 108)
    axes[0].legend(loc="lower right")
    return figure


def ellipse(delays: Sequence[float], rates: Sequence[float]) -> tuple[float, float, float]:
    """Full width, full height and angle in degrees of one standard deviation of points in the plane."""
    xx, yy = statistics.pvariance(delays), statistics.pvariance(rates)
    x, y = statistics.fmean(delays), statistics.fmean(rates)
    xy = statistics.fmean((a - x) * (b - y) for a, b in zip(delays, rates, strict=True))
    half, root = (xx + yy) / 2, math.hypot((xx - yy) / 2, xy)
    angle = math.degrees(0.5 * math.atan2(2 * xy, xx - yy))
    return 2 * math.sqrt(half + root), 2 * math.sqrt(max(0.0, half - root)), angle


def _ellipses(run: Evidence, loads: dict[str, str]) -> Figure:
    figure, (axes,) = _panels(1, len(loads), 3.1)
    for axis, (load, title) in zip(axes, loads.items(), strict=True):
        for aqm in PIES:
            delays, rates = after_warmup(run.runs(aqm, setting=load)[0])
            middle = (statistics.fmean(delays), statistics.fmean(rates))
            width, height, angle = ellipse(delays, rates)
            look: dict[str, Any] = {"color": colour(aqm), "alpha": 0.25, "linewidth": 1.2}
            axis.add_patch(Ellipse(middle, width, height, angle=angle, **look))
            axis.scatter(delays, rates, s=3, color=colour(aqm), alpha=0.25, linewidths=0)
            axis.plot(*middle, marker=MARKERS[aqm], color=colour(aqm), linestyle="none", label=LABELS[aqm])
        axis.set(title=title, xlabel="mean time in the queue (ms)", ylim=(7.5, 10.5))
        axis.set_xlim(40, 0)
    axes[0].set_ylabel("goodput (Mbit/s)")
    axes[0].legend(loc="lower left")
    return figure


def _buffers(run: Evidence) -> Figure:
    figure, (above, below) = _panels(2, 2, 2.7, sharey="row")
    loads = (("light", 5), ("heavy", 50))
    for top, bottom, (load, flows) in zip(above, below, loads, strict=True):
        for offset, aqm in enumerate(run.aqms):
            for place, packets in enumerate(BUFFERS):
                setting = f"buffer-{packets}-{load}"
                at = 3 * place + 0.7 * (offset - 1)
                parts = [run.value(aqm, flows, rtt_ms(p), setting) for p in ("p10", "p50", "p90")]
                box(top, at, parts[0], parts[1], parts[2], colour(aqm))
                used = 100 * run.value(aqm, flows, columns.used_share, setting)
                label = LABELS.get(aqm, aqm) if place == 0 else None
                bottom.bar(at, used, 0.56, color=colour(aqm), alpha=0.75, label=label)
        top.set(title=f"{flows} TCP flows", yscale="log")
        for axis in (top, bottom):
            axis.set_xticks([3 * place for place in range(len(BUFFERS))], [f"{b} packets" for b in BUFFERS])
    above[0].set_yticks([100, 200, 400, 800], ["100", "200", "400", "800"])
    above[0].minorticks_off()
    above[0].set_ylabel("round trip time (ms)")
    below[0].set(ylabel="link in use (%)", ylim=(90, 100.5))
    _legend_right(below[-1])
    return figure


def _minstrel_pie(run: Evidence) -> dict[str, Figure]:
    return {
        "delay_cdf": _delay_cdf(run),
        "delay_time": _delay_time(run),
        "link_time": _link_time(run),
        "ellipses": _ellipses(run, _LOADS),
        "ellipses_udp": _ellipses(run, {"one-each": "1 TCP and 1 UDP flow", "udp-alone": "1 UDP flow"}),
        "ellipses_congestion": _ellipses(run, {name: f"{name}: {n} TCP flows" for name, (n, _) in CONGESTION.items()}),
        "buffers": _buffers(run),
    }


DRAWN_BUFFERBLOAT: dict[str, Callable[[Evidence], dict[str, Figure]]] = {}


def _drawn(name: str, draw: Callable[[Evidence], dict[str, Figure]]) -> None:
    def styled(run: Evidence) -> dict[str, Figure]:
        with mpl.rc_context(STYLE):
            return draw(run)

    DRAWN_BUFFERBLOAT[name] = styled


_drawn("modified-codel", _modified_codel)
_drawn("minstrel-pie", _minstrel_pie)
