"""The figures of `pink-limits`."""

from __future__ import annotations

from typing import Any

from penstock.papers._shared import pink
from penstock.papers._shared.pink_figures import grid
from penstock.papers.pink_limits.runs import BURST_COUNTS, MSS_BYTES, THEOREM_1_BYTES, UDP_SHARES
from penstock.plots.kit import Drawing, Figure, mark_level
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, drops

_WINDOWS = {"literal": ("#d55e00", "windows of eq. 1"), "dither": ("#cc79a7", "whole segments, the same mean")}


def _segments(run: Evidence) -> Figure:
    figure, axes = grid(2, 2, 3.0)
    for axis, rule, title in zip(axes, ("strict", "minshall"), ("strict rule (RFC 9293)", "Linux's rule"), strict=True):
        sizes = [mss for mss in MSS_BYTES if f"segments-{mss}-{rule}-dither" in run.settings]
        for offset, (window, (tint, label)) in enumerate(_WINDOWS.items()):
            for place, mss in enumerate(sizes):
                cell = ("pink", 64, f"segments-{mss}-{rule}-{window}")
                part = (run.cell_value(cell, columns.goodput_all_mbps) or 0.0) / (pink.PINK_C * 10)
                at = place + 0.36 * (offset - 0.5)
                axis.bar(at, part, 0.32, color=tint, alpha=0.75, label=label if place == 0 else None)
                axis.annotate(f"{part:.2f}", (at, part), (0, 3), textcoords="offset points", ha="center", fontsize=8)
        axis.set_xticks(range(len(sizes)), [f"{mss} B" for mss in sizes])
        axis.set_title(title)
    axes[0].set(ylabel="goodput ÷ (c × rate)", ylim=(0, 1.2))
    axes[0].legend(loc="upper left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    return figure


def _udp(run: Evidence) -> Figure:
    figure, axes = grid(2, 2, 3.0, sharey=False)
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


FIGURES: dict[str, Drawing] = {
    "segments": Drawing(
        "Segments that do not divide a share",
        "64 flows. A share of 1.45 segments is one segment for a sender that sends whole ones only: 31 % of "
        "the share is lost. Windows that alternate between one and two segments give it all.",
        _segments,
    ),
    "udp": Drawing(
        "Traffic that obeys no window",
        "Four TCP flows and one UDP stream of constant rate. PINK shares out the whole link unless it is "
        "told what to leave; then the stream finds its room and the queue stays short.",
        _udp,
    ),
    "bursts": Drawing(
        "The worst case of Theorem 1",
        "All flows send their whole first window in the same instant; the invariant max_queue stops a run "
        "that exceeds the bandwidth-delay product.",
        _bursts,
    ),
}
