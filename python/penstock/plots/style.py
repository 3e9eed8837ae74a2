"""The style of all figures: colours which colour-blind readers can tell apart, the same one for each discipline."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from penstock import store

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# The palette of Okabe and Ito, whose colours are distinct for every common kind of colour blindness.
COLOURS = {
    "droptail": "#6b6b6b",
    "ared": "#d55e00",
    "codel": "#0072b2",
    "green": "#009e73",
    "red": "#e69f00",
    "pink": "#cc79a7",
    "droptail-300": "#a8a8a8",
    "avq": "#56b4e9",
    "pi": "#0072b2",
    "rem": "#009e73",
    "an-aqm": "#b8a600",
    "lindrop": "#cc79a7",
    "red-ern": "#0072b2",
    "red-ecn": "#e69f00",
    "red-drop": "#6b6b6b",
    "modified-codel": "#d55e00",
    "cobalt": "#009e73",
    "pie": "#56b4e9",
    "minstrel-pie": "#d55e00",
    "fq-pie": "#d55e00",
    "fq-codel": "#0072b2",
    "fq-minstrel-pie": "#009e73",
    "fifo": "#6b6b6b",
    "drr": "#e69f00",
    "wf2q-plus": "#0072b2",
    "kps": "#b8a600",
    "qfq": "#56b4e9",
    "qfq-plus": "#009e73",
    "hfs": "#cc79a7",
    "hfs-drr": "#d55e00",
    "w2f2q": "#6b6b6b",
    "plain": "#6b6b6b",
    "c2ml": "#0072b2",
    "dybra": "#009e73",
    "qrm": "#cc79a7",
    "c2ml-qrm": "#56b4e9",
    "pink-qrm": "#d55e00",
    "hfs-wf2q-plus": "#0072b2",
    "double-drr": "#e69f00",
    "double-wf2q-plus": "#56b4e9",
}
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#b8a600")
MARKERS = {"droptail": "s", "ared": "^", "codel": "D", "green": "v", "red": "<", "pink": "o"}
MARKERS |= {"red-ern": "o", "red-ecn": "^", "red-drop": "s"}
MARKERS |= {"modified-codel": "o", "cobalt": "^", "pie": "P", "minstrel-pie": "o"}
MARKERS |= {"fq-pie": "o", "fq-codel": "D", "fq-minstrel-pie": "v"}
LABELS = {"droptail": "DropTail", "ared": "ARED", "codel": "CoDel", "green": "GREEN", "red": "RED", "pink": "PINK"}
LABELS |= {"droptail-300": "DropTail 300", "avq": "AVQ", "pi": "PI", "rem": "REM", "an-aqm": "AN-AQM"}
LABELS |= {"lindrop": "LINDROP", "red-ern": "RED-ERN", "red-ecn": "RED-ECN", "red-drop": "RED-DROP"}
LABELS |= {"modified-codel": "Modified CoDel", "cobalt": "COBALT", "pie": "PIE", "minstrel-pie": "Minstrel PIE"}
LABELS |= {"plain": "plain TCP", "c2ml": "C²ML", "dybra": "C²ML + DyBRA", "qrm": "QRM"}
LABELS |= {"c2ml-qrm": "C²ML + QRM", "pink-qrm": "PINK + QRM"}
LABELS |= {"fq-pie": "FQ-PIE", "fq-codel": "FQ-CoDel", "fq-minstrel-pie": "FQ-Minstrel PIE"}
MARKERS |= {"weir": "o", "cake": "s"}
MARKERS |= {
    "fifo": "s",
    "drr": "^",
    "wf2q-plus": "D",
    "kps": "P",
    "qfq": "v",
    "qfq-plus": "o",
    "hfs": "o",
    "hfs-drr": "^",
    "hfs-wf2q-plus": "D",
    "double-drr": "v",
    "double-wf2q-plus": "s",
}
LABELS |= {"weir": "WEIR", "cake": "CAKE", "dualpi2": "DualPI2"}
LABELS |= {"fifo": "FIFO", "drr": "DRR", "wf2q-plus": "WF²Q+", "kps": "KPS", "qfq": "QFQ", "qfq-plus": "QFQ+"}
LABELS |= {"hfs": "HFS", "hfs-drr": "HFS*", "w2f2q": "W²F²Q"}
LABELS |= {"hfs-wf2q-plus": "QFQ+ over WF\u00b2Q+", "double-drr": "double DRR", "double-wf2q-plus": "double WF\u00b2Q+"}
INK, FAINT, LIMIT = "#222222", "#d9d9d9", "#8c2d04"

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e8e8e8",
    "grid.linewidth": 0.8,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "xtick.major.size": 0,
    "legend.frameon": False,
    "svg.hashsalt": "penstock",  # equal figures give equal files
    "svg.fonttype": "path",
    "pdf.fonttype": 42,  # letters that publishers accept
}


_CUT = "_cut"  # label of the strokes; a legend leaves out what begins so
_FAR = 0.3  # an axis that begins at this part of its end, or above, is marked


def colour(name: str) -> str:
    """Returns the colour of a discipline in all figures; one that has no colour in the table gets one by its name."""
    return COLOURS.get(name) or CYCLE[crc32(name.encode()) % len(CYCLE)]


def save(figure: Figure, path: Path) -> None:
    """Writes the figure to `path.png` and to `path.svg`."""
    store.together(files(figure, path))


def files(figure: Figure, path: Path) -> dict[Path, bytes]:
    """Returns what `save` writes: the content of each file."""
    return {path.with_suffix(f".{kind}"): _render(figure, kind) for kind in ("png", "svg")}


def svg(figure: Figure) -> bytes:
    """Returns the figure as SVG, for HTML pages."""
    return _render(figure, "svg")


def png(figure: Figure) -> bytes:
    """Returns the figure as the bytes of a PNG file."""
    return _render(figure, "png")


def pdf(figure: Figure) -> bytes:
    """Returns the figure as PDF, for print."""
    return _render(figure, "pdf")


def _render(figure: Figure, kind: str) -> bytes:
    out = io.BytesIO()
    for axis in figure.axes:
        reveal(axis)
        mark_cut(axis)
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {"Software": None})
    with mpl.rc_context(STYLE):
        figure.savefig(out, format=kind, dpi=160, metadata=metadata, facecolor="white")
    return out.getvalue()


def reveal(axis: Axes) -> None:
    """Dashes each line that would hide an earlier one, which then shows between its dashes."""
    drawn = [line for line in axis.lines if len(line.get_xydata()) > 2]  # type: ignore[arg-type]
    for place, line in enumerate(drawn):
        if line.get_linestyle() == "-" and any(_hides(line, other) for other in drawn[:place]):
            line.set_linestyle((0, (4, 4)))


def _hides(line: Line2D, other: Line2D) -> bool:
    """True if two lines are the same at most of their places, within a hundredth of the highest value."""
    ours, theirs = (np.asarray(one.get_xydata(), dtype=float) for one in (line, other))
    if ours.shape != theirs.shape or not np.array_equal(ours[:, 0], theirs[:, 0]):
        return False
    near = np.abs(ours[:, 1] - theirs[:, 1]) <= 0.01 * np.nanmax(np.abs((ours[:, 1], theirs[:, 1])))
    return bool(near.mean() > 0.5)


def mark_cut(axis: Axes) -> None:
    """Draws two strokes through the foot of a vertical axis that begins far above zero: heights are no proportions."""
    low, high = axis.get_ylim()
    done = any(line.get_label() == _CUT for line in axis.lines)
    if done or axis.get_yscale() != "linear" or not 0 < _FAR * high < low < high or not axis.yaxis.get_visible():
        return
    for up in (0.02, 0.05):
        axis.plot(
            (-0.012, 0.012), (up - 0.014, up + 0.014), color=INK, linewidth=0.9, clip_on=False, label=_CUT, zorder=5,
            transform=axis.transAxes,
        )  # fmt: skip


def mark_level(axes: Sequence[Axes], level: float, label: str) -> None:
    """Draws a dashed line at `level` in all panels, with a label beside the last."""
    for axis in axes:
        axis.axhline(level, color=LIMIT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1.5)
    beside: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "ha": "left", "va": "center"}
    here = (1.0, level)
    axes[-1].annotate(label, here, xycoords=("axes fraction", "data"), fontsize=8, color=LIMIT, **beside)


def box(axis: Axes, place: float, low: float, middle: float, high: float, tint: str) -> None:
    """Draws a box from `low` to `high` with a line at `middle`."""
    axis.bar(place, high - low, 0.56, low, color=tint, alpha=0.3, edgecolor=tint, linewidth=1.0, zorder=2)
    # The outline makes a box visible even if its ends coincide.
    axis.bar(place, high - low, 0.56, low, fill=False, edgecolor=tint, linewidth=1.0, zorder=2.5)
    axis.hlines(middle, place - 0.28, place + 0.28, color=tint, linewidth=2.2, zorder=3)
