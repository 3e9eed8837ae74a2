"""The figures of `pink-flood`."""

from __future__ import annotations

from penstock.papers.pink_flood.runs import FLOOD_FROM_S, FLOODS, SAMPLINGS, SYN_BYTES
from penstock.plots.kit import FAINT, INK, Drawing, Figure
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence

_COUNTED = {"off": "#d55e00", "after-drop": "#e69f00", "always": "#0072b2"}


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


FIGURES: dict[str, Drawing] = {
    "flood_time": Drawing(
        "Eight transfers in a flood",
        "Payload of all transfers together in each second, with 1,000 SYNs per second where the ground is grey.",
        _flood_time,
    ),
    "flood_cost": Drawing(
        "What a flood costs",
        "Payload of all transfers together while the flood lasts. The dashed lines are what is left of the "
        "goodput without a flood when the SYNs have taken theirs.",
        _flood_cost,
    ),
}
