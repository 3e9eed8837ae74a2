"""The matrix of congestion controls: the share of each control beside each other control."""

from __future__ import annotations

from penstock.papers.friendliness.runs import CONTROLS, name_of, pair_of, share_of_first
from penstock.plots.kit import INK, LABELS, Axes, Drawing, Figure, LinearSegmentedColormap
from penstock.reproduce.results import Evidence

_TITLES = {
    "newreno": "NewReno",
    "cubic": "CUBIC",
    "bic": "BIC",
    "highspeed": "HighSpeed",
    "scalable": "Scalable",
    "hybla": "Hybla",
    "westwood": "Westwood+",
    "cubic-linux": "CUBIC, Linux",
    "compound": "Compound",
    "vegas": "Vegas",
    "bbr": "BBR",
    "noordwijk": "Noordwijk",
    "dctcp": "DCTCP",
    "prague": "Prague",
}
# Blue gets less than half, vermilion more; both ends are safe for colour-blind readers.
_SHARES = LinearSegmentedColormap.from_list("shares", ["#0072b2", "#f7f7f7", "#d55e00"])


def _matrices(run: Evidence) -> Figure:
    """The heat map, with a panel for each queue."""
    shown = [cc for cc in CONTROLS if any(cc in pair_of(setting) for setting in run.settings)]
    figure = Figure(figsize=(13, 6.6), layout="constrained")
    axes = figure.subplots(1, len(run.aqms), squeeze=False)[0]
    for axis, queue in zip(axes, run.aqms, strict=True):
        _matrix(axis, run, queue, shown)
    figure.supxlabel("beside two flows of", fontsize=9.5, color=INK)
    axes[0].set_ylabel("share of two flows of")
    return figure


def _matrix(axis: Axes, run: Evidence, queue: str, shown: list[str]) -> None:
    values = [[_share(run, queue, mine, other) for other in shown] for mine in shown]
    axis.imshow(values, cmap=_SHARES, vmin=0, vmax=1)
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if value == value:  # true unless the pair was not run, which gives NaN
                tint = "white" if abs(value - 0.5) > 0.35 else INK
                axis.text(column, row, f"{100 * value:.0f}", ha="center", va="center", fontsize=8, color=tint)
    names = [_TITLES.get(cc, cc) for cc in shown]
    axis.set_xticks(range(len(shown)), names, rotation=55, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(shown)), names)
    axis.set_title(LABELS.get(queue, queue))
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)


def _share(run: Evidence, queue: str, mine: str, other: str) -> float:
    setting = name_of(mine, other)
    if not run.runs(queue, setting=setting):
        return float("nan")
    first = run.value(queue, 4, share_of_first, setting)
    return first if pair_of(setting)[0] == mine else 1.0 - first


FIGURES: dict[str, Drawing] = {
    "friendliness": Drawing(
        "Who shares with whom",
        "Two flows of the control at the left beside two of the control below: percent of the payload of "
        "all four that the two at the left got. 50 is a fair share; vermilion takes, blue gives way. CoDel "
        "marks what is ECN-capable, the flows of DCTCP and Prague; DropTail cannot mark.",
        _matrices,
    ),
}
