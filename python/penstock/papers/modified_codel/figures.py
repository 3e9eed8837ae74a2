"""The figures of `modified-codel`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from penstock.papers._shared.bufferbloat_figures import legend_right, look, panels, queue_of
from penstock.papers.modified_codel.runs import TARGET_KB, TARGETS_MS, TESTBED
from penstock.plots.kit import FAINT, INK, MARKERS, Axes, Drawing, Figure, colour, mark_level
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, Measure
from penstock.reproduce.seconds import delays_ms, window_spread

_PAIR = ("codel", "modified-codel")
_SMOOTH_S = 5


def _over_counts(run: Evidence, measure: Measure, ylabel: str) -> tuple[Figure, list[Axes]]:
    figure, (axes,) = panels(1, 2, 3.3, sharey=True)
    for axis, setting, title in zip(axes, ("tcp", "udp"), ("TCP flows", "streams"), strict=True):
        counts = run.counts(setting=setting)
        for aqm in run.aqms:
            values = [run.value(aqm, n, measure, setting) for n in counts]
            axis.plot(range(len(counts)), values, marker=MARKERS.get(aqm, "o"), linewidth=1.6, **look(aqm))
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
    legend_right(axes[-1])
    return figure


def _window_spread(run: Evidence) -> Figure:
    figure, ((axis,),) = panels(1, 1, 3.2)
    targets = [t for t in TARGETS_MS if f"five-{t}ms" in run.settings]
    for offset, aqm in enumerate(run.aqms):
        heights = [run.cell_value((aqm, 5, f"five-{t}ms"), window_spread) or 0.0 for t in targets]
        places = [place + 0.2 * (offset - (len(run.aqms) - 1) / 2) for place in range(len(targets))]
        axis.bar(places, heights, 0.18, alpha=0.75, **look(aqm))
    axis.set_xticks(range(len(targets)), [f"{t} ms" for t in targets])
    axis.set(xlabel="target", ylabel="variance ÷ mean²")
    legend_right(axis)
    return figure


def _means(values: Sequence[float], of: int) -> tuple[list[float], list[float]]:
    starts = range(0, len(values) - of + 1, of)
    return [k + of / 2 for k in starts], [statistics.fmean(values[k : k + of]) for k in starts]


def _use_time(run: Evidence) -> Figure:
    figure, rows = panels(2, 2, 2.4, sharex=True, sharey=True)
    axes = [axis for row in rows for axis in row]
    for axis, target in zip(axes, TARGETS_MS, strict=True):
        for aqm in _PAIR:
            times, values = _means(queue_of(run.runs(aqm, setting=f"five-{target}ms")[0]), _SMOOTH_S)
            axis.plot(times, values, linewidth=1.3, **look(aqm))
        axis.set_title(f"target {target} ms")
    axes[0].set_ylim(440, 510)
    figure.supylabel("throughput (kbit/s)", fontsize=9.5, color=INK)
    figure.supxlabel("time (s)", fontsize=9.5, color=INK)
    axes[0].legend(loc="lower right", ncols=2)
    return figure


def _udp_comes(run: Evidence) -> Figure:
    figure, (above, below) = panels(2, 2, 2.5, sharex=True)
    titles = {"slow": "0.5 Mbit/s", "fast": "10 Mbit/s"}
    for top, bottom, (name, bps) in zip(above, below, TESTBED.items(), strict=True):
        for aqm in run.aqms:
            outcome = run.runs(aqm, setting=f"udp-{name}")[0]
            top.plot(delays_ms(outcome), linewidth=1.2, **look(aqm))
            bottom.plot([100 * 1e3 * kbps / bps for kbps in queue_of(outcome)], linewidth=1.2, color=colour(aqm))
        for axis in (top, bottom):
            axis.axvspan(26, 75, color=FAINT, alpha=0.5, zorder=0, linewidth=0)
        top.set(title=titles[name], yscale="log")
        bottom.set(ylim=(0, 108), xlabel="time (s)")
    above[0].set_ylabel("time in the queue (ms)")
    below[0].set_ylabel("link in use (%)")
    legend_right(above[-1])
    return figure


FIGURES: dict[str, Drawing] = {
    "queue_counts": Drawing(
        "Mean queue",
        "Bytes waiting at the bottleneck, as a mean over time. The dashed line is what 5 ms of the link "
        "carry. Left, the number of TCP flows is varied beside five streams, right the number of streams of "
        "640 kbit/s beside five TCP flows.",
        _queue_counts,
    ),
    "use_counts": Drawing(
        "Use of the link",
        "The same runs. With few flows the link has room: ACKs wait behind the reverse flows in a drop-tail queue.",
        _use_counts,
    ),
    "window_spread": Drawing(
        "How steady the windows are",
        "Variance of the congestion window of a flow, taken at the end of each second, over the square of "
        "its mean, for five flows through half a megabit per second.",
        _window_spread,
    ),
    "use_time": Drawing(
        "Throughput over time",
        "With headers, as means over five seconds, of five flows through half a megabit per second.",
        _use_time,
    ),
    "udp_comes": Drawing(
        "A UDP flow comes and goes",
        "Five TCP flows; a UDP flow of the link's rate sends in the shaded time. Top: how long packets "
        "waited, as a mean over each second. Bottom: what the link carried.",
        _udp_comes,
    ),
}
