"""The figures of `minstrel-pie`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from penstock.papers._shared.bufferbloat_figures import legend_right, look, panels, queue_of
from penstock.papers.minstrel_pie.runs import BUFFERS, CONGESTION, HIGHEST_MS, LOWEST_MS, PIES
from penstock.plots.kit import LABELS, MARKERS, Axes, Drawing, Ellipse, Figure, box, colour, mark_level
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, Outcome, rtt_ms
from penstock.reproduce.seconds import after_warmup, delays_ms

_LOADS = {"light": "5 TCP flows", "heavy": "50 TCP flows", "mix": "5 TCP and 2 UDP flows"}
_SHARES = {"p10": 10, "p50": 50, "p90": 90, "p99": 99}


def _delay_cdf(run: Evidence) -> Figure:
    figure, (above, below) = panels(2, 3, 2.6, sharex="row", sharey="row")
    for top, bottom, (load, title) in zip(above, below, _LOADS.items(), strict=True):
        for aqm in PIES:
            outcome = run.runs(aqm, setting=load)[0]
            delays = [columns.delay_ms(p)(outcome.summary) for p in _SHARES]
            top.plot(delays, list(_SHARES.values()), marker=MARKERS[aqm], markersize=4, linewidth=1.5, **look(aqm))
            used = sorted(kbps / 100 for kbps in queue_of(outcome)[int(outcome.summary["warmup_s"]) :])
            shares = [100 * (rank + 1) / len(used) for rank in range(len(used))]
            bottom.step(used, shares, where="post", linewidth=1.5, color=colour(aqm))
        top.set(title=title, xlabel="time in the queue (ms)", ylim=(0, 103))
        bottom.set(xlabel="link in use (%)", ylim=(0, 103))
    above[0].set(ylabel="packets (%)", xlim=(0, None))
    below[0].set_ylabel("seconds (%)")
    legend_right(above[-1])
    return figure


def _over_time(run: Evidence, values: Callable[[Outcome], list[float]], ylabel: str) -> tuple[Figure, list[Axes]]:
    figure, (axes,) = panels(1, 3, 3.0, sharey=True)
    for axis, (load, title) in zip(axes, _LOADS.items(), strict=True):
        for aqm in PIES:
            axis.plot(values(run.runs(aqm, setting=load)[0]), linewidth=1.3, **look(aqm))
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
    figure, axes = _over_time(run, lambda outcome: [kbps / 100 for kbps in queue_of(outcome)], "link in use (%)")
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
    figure, (axes,) = panels(1, len(loads), 3.1)
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
    figure, (above, below) = panels(2, 2, 2.7, sharey="row")
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
    legend_right(below[-1])
    return figure


FIGURES: dict[str, Drawing] = {
    "delay_cdf": Drawing(
        "Delay and use of the link, as distributions",
        "Top: share of packets that waited no longer, from its 10th, 50th, 90th and 99th percentile. "
        "Bottom: share of seconds in which the link carried no more.",
        _delay_cdf,
    ),
    "delay_time": Drawing(
        "Delay over time",
        "How long packets waited, as a mean over each second. The dashed lines are the bounds of Minstrel "
        "PIE's target; PIE's is the upper one.",
        _delay_time,
    ),
    "link_time": Drawing(
        "Use of the link over time",
        "What the link carried in each second, as a part of its rate.",
        _link_time,
    ),
    "ellipses": Drawing(
        "Goodput against delay",
        "An ellipse holds one standard deviation of the seconds of a run around their mean, as RFC 7928 "
        "draws them; the delay is the mean of a second's packets. Delay grows to the left: higher and "
        "further right is better.",
        lambda run: _ellipses(run, _LOADS),
    ),
    "ellipses_udp": Drawing(
        "Goodput against delay with one UDP flow",
        "As above; UDP sends more than the link carries.",
        lambda run: _ellipses(run, {"one-each": "1 TCP and 1 UDP flow", "udp-alone": "1 UDP flow"}),
    ),
    "ellipses_congestion": Drawing(
        "Goodput against delay at three levels of congestion",
        "As above, with as many TCP flows as the law of TCP needs for drops of 0.1, 0.5 and 1 %.",
        lambda run: _ellipses(run, {name: f"{name}: {n} TCP flows" for name, (n, _) in CONGESTION.items()}),
    ),
    "buffers": Drawing(
        "Sizes of the buffer",
        "Top: round trip times, from the 10th to the 90th percentile with a line at the median, on a "
        "logarithmic scale. Bottom: use of the link. CUBIC senders.",
        _buffers,
    ),
}
