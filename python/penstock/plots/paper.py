"""Figures for papers, of runs or of tidy tables: fonts embedded, as wide as a column, without a global state.

Each function takes runs - results, or run directories, alone, in a list, or by name in a mapping - or a tidy table, and
returns a figure of matplotlib. `figure.savefig("name.pdf")` writes it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import LogLocator, NullFormatter

from penstock.mistake import MistakeError
from penstock.plots.style import COLOURS, CYCLE, LABELS, STYLE
from penstock.plots.style import box as draw_box
from penstock.suggest import did_you_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Columns = Mapping[str, Sequence[Any]]
Width = Literal["column", "text"] | float

COLUMN, TEXT = 3.35, 6.95  # widths of a column and of the text of a page with two columns, in inches
PRINT: Any = STYLE | {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.3,
    "pdf.fonttype": 42,  # TrueType, which publishers ask for
    "ps.fonttype": 42,
    "savefig.bbox": "tight",
    "savefig.pad_inches": 0.02,
}
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 2)), (0, (3, 1)))
MARKS = ("o", "s", "^", "D", "v", "P", "<", ">")
_OVER_TIME = {
    "goodput": ("flow_seconds", "flow", "goodput_bps", 1e-6, "goodput (Mbit/s)"),
    "window": ("flow_seconds", "flow", "cwnd_bytes", 1e-3, "window (kB)"),
    "throughput": ("queue_seconds", "queue", "throughput_bps", 1e-6, "throughput (Mbit/s)"),
    "queue_delay": ("queue_seconds", "queue", "queue_delay_ms_mean", 1.0, "time in the queue (ms)"),
    "queue": ("queue_seconds", "queue", "queue_bytes_max", 1e-3, "longest queue (kB)"),
}
_DISTRIBUTIONS = {
    "queue_delay": ("queue_delays", "queue", "delay_ms", "packets", "time in the queue (ms)"),
    "rtt": ("round_trips", "flow", "rtt_ms", "samples", "round trip time (ms)"),
    "call_delay": ("call_delays", "flow", "delay_ms", "packets", "one-way delay of a call (ms)"),
    "call_score": ("call_scores", "flow", "mos", "parts", "MOS of ten seconds of a call"),
    "page_time": ("page_times", "flow", "took_ms", "pages", "time of a page (ms)"),
    "gap": ("gaps", "flow", "gap_ms", "gaps", "time without a call or a video (ms)"),
}
_QUANTILES = {
    "rtt": (("rtt_ms",), 1.0, "round trip time (ms)"),
    "goodput": (("goodput_1s_bps",), 1e-6, "goodput of all flows (Mbit/s)"),
    "queue_delay": (("bottlenecks", 0, "queue_delay_ms"), 1.0, "time in the queue (ms)"),
}


class PaperFigure(Figure):
    """A figure which is saved with the style it was drawn in, and which shows itself in a notebook."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Writes the figure, as `matplotlib.figure.Figure.savefig` does; equal figures give equal files."""
        kind = str(options.get("format") or Path(str(fname)).suffix.removeprefix("."))
        dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
        options.setdefault("metadata", dates.get(kind))
        options.setdefault("dpi", 300)
        with mpl.rc_context(PRINT):
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=160)
        return out.getvalue()


@dataclass(frozen=True)
class Run:
    """What a figure needs of a run."""

    name: str
    summary: Mapping[str, Any]
    tables: Mapping[str, Any]

    def columns(self, table: str) -> dict[str, Any]:
        """Returns the columns of a table as arrays; raises `MistakeError` if the run has no such table."""
        if table not in self.tables:
            held = ", ".join(self.tables) or "none; was the run made with `[output] series = false`?"
            raise MistakeError(f"{self.name}: no table {table!r}; there are: {held}")
        found = self.tables[table]
        return {name: found[name].to_numpy() for name in found.column_names}


def runs(source: Any) -> list[Run]:
    """Returns the runs of results, run directories, lists and mappings of them; of a sweep, a run for each point."""
    if hasattr(source, "distributions"):
        source = source.distributions()
    if isinstance(source, Mapping):
        return [_named(one, str(name)) for name, one in source.items()]
    if isinstance(source, str | Path) or hasattr(source, "summary"):
        return [_named(source)]
    if isinstance(source, Iterable):
        found = [_named(one) for one in source]
        if found:
            return found
    raise MistakeError(f"{source!r}: neither a result nor a run directory, nor several of them")


def _named(source: Any, name: str = "") -> Run:
    if isinstance(source, Run):
        return source
    if isinstance(source, str | Path):
        from penstock import rundir

        kept = rundir.read(Path(source), tables=True)
        return Run(name or str(kept.manifest.get("name", kept.path.name)), kept.summary, kept.tables)
    if hasattr(source, "summary") and hasattr(source, "tables"):
        return Run(name or str(source.summary.get("name", "run")), source.summary, source.tables)
    raise MistakeError(f"{source!r}: neither a result nor a run directory")


def _choice(what: str, of: str, known: Mapping[str, Any]) -> Any:
    if of not in known:
        raise MistakeError(f"{what}: no {of!r}; {did_you_mean(of, list(known))}it can be {', '.join(known)}")
    return known[of]


def new_figure(width: Width, height: float, rows: int = 1) -> tuple[PaperFigure, list[Axes]]:
    """Returns a figure of this width with so many plots below each other."""
    sizes = {"column": COLUMN, "text": TEXT}
    inches = sizes[width] if isinstance(width, str) else float(width)
    figure = PaperFigure(figsize=(inches, height), layout="constrained")
    return figure, list(figure.subplots(rows, 1, sharex=rows > 1, squeeze=False)[:, 0])


def _tint(name: str, index: int) -> str:
    return COLOURS.get(name) or CYCLE[index % len(CYCLE)]


def legend(axis: Axes, count: int) -> None:
    """Adds the names of several lines."""
    if count > 1:
        axis.legend(loc="best", handlelength=2.2)


def cdf(source: Any, of: str = "queue_delay", *, log: bool = True, width: Width = "column") -> PaperFigure:
    """Draws a distribution: a line for each run, and for each of its queues, groups or flows.

    It is of "queue_delay" or "rtt", or of what people feel: "call_delay", "call_score", "page_time" or "gap".

    Of a sweep that keeps delays there is a line for each point, of the packets of all its seeds.
    """
    table, key, value, count, label = _choice("cdf", of, _DISTRIBUTIONS)
    log = log and of != "call_score"
    with mpl.rc_context(PRINT):
        figure, (axis,) = new_figure(width, 2.2)
        index = 0
        for run in (found := runs(source)):
            columns = run.columns(table)
            parts = list(dict.fromkeys(columns[key].tolist()))
            for part in parts:
                rows = columns[key] == part
                xs, counts = np.maximum(columns[value][rows], 1e-2), columns[count][rows]
                name = _part(run, of, part, len(found) > 1, len(parts) > 1)
                style: Any = {"color": _tint(run.name, index), "linestyle": DASHES[index % len(DASHES)]}
                axis.step(xs, np.cumsum(counts) / counts.sum(), where="post", label=name, **style)
                index += 1
        axis.set(xlabel=label, ylabel="share", ylim=(0, 1), xscale="log" if log else "linear")
        if log:
            _log_ticks(axis)
        legend(axis, index)
    return figure


def _log_ticks(axis: Axes) -> None:
    """Names decades, or 1, 2 and 5 of each if there are few: the names of all minor ticks would hide each other."""
    low, high = axis.get_xlim()
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 200 * low else (1,)))
    axis.xaxis.set_major_formatter(lambda x, _place: f"{x:g}")
    axis.xaxis.set_minor_formatter(NullFormatter())


def _part(run: Run, of: str, part: int, several_runs: bool, several_parts: bool) -> str:
    flow = run.summary["flows"][part] if of != "queue_delay" else {}
    inside = f"{flow['kind']} {flow['cc']}".rstrip() if flow else run.summary["bottlenecks"][part]["name"]
    if of not in ("queue_delay", "rtt") and "id" in flow:  # those of a sweep are of all flows of a kind
        inside = f"flow {part} ({flow['kind']})"
    words = [LABELS.get(run.name, run.name)] if several_runs or not several_parts else []
    return ", ".join([*words, *([inside] if several_parts else [])])


def time_series(
    source: Any, of: str = "goodput", *, parts: Sequence[int] | None = None, width: Width = "column"
) -> PaperFigure:
    """Draws "goodput" or "window" of flows, or "throughput", "queue_delay" or "queue" of bottlenecks over time.

    `parts` are the numbers of the flows or bottlenecks; without it all are drawn.
    """
    table, key, value, scale, label = _choice("time_series", of, _OVER_TIME)
    with mpl.rc_context(PRINT):
        figure, (axis,) = new_figure(width, 2.0)
        index = 0
        for run in (found := runs(source)):
            columns = run.columns(table)
            numbers = [n for n in dict.fromkeys(columns[key].tolist()) if parts is None or n in parts]
            for number in numbers:
                rows = columns[key] == number
                name = f"flow {number}" if key == "flow" else run.summary["bottlenecks"][number]["name"]
                words = [run.name] if len(found) > 1 else []
                words += [name] if len(numbers) > 1 or not words else []
                style: Any = {"color": CYCLE[index % len(CYCLE)], "linestyle": DASHES[index // len(CYCLE) % 4]}
                axis.plot(columns["t_s"][rows], columns[value][rows] * scale, label=", ".join(words), **style)
                index += 1
        axis.set(xlabel="time (s)", ylabel=label, ylim=(0, None))
        legend(axis, index if index <= 12 else 0)
    return figure


def box(
    source: Any,
    of: str = "queue_delay",
    *,
    x: str = "",
    group: str = "",
    log: bool = False,
    width: Width = "column",
) -> PaperFigure:
    """Draws boxes from the 10th to the 90th percentile with a line at the median.

    Of runs: a box for each, of "queue_delay", "rtt" or "goodput". Of a tidy table: `of` is the column with values, and
    there is a box for each value of the column `x` and of the column `group`.
    """
    with mpl.rc_context(PRINT):
        figure, (axis,) = new_figure(width, 2.2)
        if x:
            _boxes_of_table(axis, _columns(source), of, x, group)
            axis.set(xlabel=x, ylabel=of)
        else:
            path, scale, label = _choice("box", of, _QUANTILES)
            found = runs(source)
            for place, run in enumerate(found):
                quantiles: Any = run.summary
                for step in path:
                    quantiles = quantiles[step]
                if quantiles["p50"] is not None:  # what was not measured has no box
                    low, middle, high = (scale * quantiles[key] for key in ("p10", "p50", "p90"))
                    draw_box(axis, place, low, middle, high, _tint(run.name, place))
            axis.set_xticks(range(len(found)), [LABELS.get(run.name, run.name) for run in found])
            axis.set(ylabel=label, ylim=(0, None))
        if log:
            axis.set_yscale("log")
    return figure


def _boxes_of_table(axis: Axes, columns: Columns, of: str, x: str, group: str) -> None:
    places = list(dict.fromkeys(columns[x]))
    groups = list(dict.fromkeys(columns[group])) if group else [None]
    step = 0.8 / len(groups)
    for index, one in enumerate(groups):
        for place, where in enumerate(places):
            rows = [
                i for i, value in enumerate(columns[x]) if value == where and (not group or columns[group][i] == one)
            ]
            if rows:
                low, middle, high = np.percentile([columns[of][i] for i in rows], (10, 50, 90))
                at = place + (index - (len(groups) - 1) / 2) * step
                axis.bar(at, high - low, 0.8 * step, low, color=_tint(str(one), index), alpha=0.35)
                axis.hlines(middle, at - 0.4 * step, at + 0.4 * step, color=_tint(str(one), index), linewidth=1.8)
        if group:
            axis.plot([], [], color=_tint(str(one), index), linewidth=4, label=LABELS.get(str(one), str(one)))
    axis.set_xticks(range(len(places)), [str(place) for place in places])
    legend(axis, len(groups))


def ellipse(source: Any, *, sigma: float = 1.0, width: Width = "column") -> PaperFigure:
    """Draws each run as an ellipse of throughput over time in the queue, of its seconds after the warm-up.

    The ellipse has the mean and `sigma` standard deviations of both, with their correlation; delay grows to the left,
    so that better is up and to the right.
    """
    with mpl.rc_context(PRINT):
        figure, (axis,) = new_figure(width, 2.4)
        for index, run in enumerate(runs(source)):
            columns = run.columns("queue_seconds")
            rows = (columns["queue"] == 0) & (columns["t_s"] > run.summary.get("warmup_s", 0))
            delay, rate = columns["queue_delay_ms_mean"][rows], columns["throughput_bps"][rows] / 1e6
            known = ~np.isnan(delay)
            tint = _tint(run.name, index)
            _ellipse(axis, delay[known], rate[known], sigma, tint)
            name = LABELS.get(run.name, run.name)
            style: Any = {"color": tint, "marker": MARKS[index % len(MARKS)], "linestyle": ""}
            axis.plot([delay[known].mean()], [rate[known].mean()], label=name, **style)
        axis.autoscale_view()
        axis.set(xlabel="time in the queue (ms), less to the right", ylabel="throughput (Mbit/s)")
        axis.invert_xaxis()
        axis.legend(loc="best")
    return figure


def _ellipse(axis: Axes, xs: Any, ys: Any, sigma: float, tint: str) -> None:
    if len(xs) < 2:
        return
    values, vectors = np.linalg.eigh(np.cov(xs, ys))
    large, small = (2 * sigma * np.sqrt(np.maximum(values[::-1], 0.0))).tolist()
    angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
    middle = (float(xs.mean()), float(ys.mean()))
    axis.add_patch(Ellipse(middle, large, small, angle=angle, facecolor=tint, edgecolor=tint, alpha=0.3))
    # A patch does not widen the axes by itself in every direction: these points do.
    spread = np.sqrt(np.diag(np.cov(xs, ys))) * sigma
    for sign in (-1, 1):
        axis.plot(middle[0] + sign * spread[0], middle[1] + sign * spread[1], alpha=0)


def heat_map(source: Any, x: str, y: str, value: str, *, log: bool = False, width: Width = "column") -> PaperFigure:
    """Draws a map of the column `value` of a tidy table over the columns `x` and `y`: the medians of its rows."""
    columns = _columns(source)
    across, down = (list(dict.fromkeys(columns[key])) for key in (x, y))
    cells = np.full((len(down), len(across)), np.nan)
    for i, lower in enumerate(down):
        for j, upper in enumerate(across):
            rows = [k for k, one in enumerate(columns[x]) if one == upper and columns[y][k] == lower]
            if rows:
                cells[i, j] = np.median([columns[value][k] for k in rows])
    with mpl.rc_context(PRINT):
        figure, (axis,) = new_figure(width, 2.4)
        shown = axis.imshow(cells, cmap="cividis", aspect="auto", origin="lower", norm="log" if log else "linear")
        axis.set_xticks(range(len(across)), [str(one) for one in across])
        axis.set_yticks(range(len(down)), [str(one) for one in down])
        axis.set(xlabel=x, ylabel=y)
        axis.grid(visible=False)
        figure.colorbar(shown, ax=axis, label=value)
    return figure


def sawtooth(source: Any, flow: int = 0, *, queue: int = 0, width: Width = "column") -> PaperFigure:
    """Draws the congestion window of a flow over time, and below it the time in a queue.

    A run with a trace (`watch=`) gives each sample, any other the value at the end of each second.
    """
    with mpl.rc_context(PRINT):
        figure, (above, below) = new_figure(width, 2.8, rows=2)
        for index, run in enumerate(found := runs(source)):
            style: Any = {"color": _tint(run.name, index), "label": run.name}
            traced = "tcp_trace" in run.tables
            windows = run.columns("tcp_trace" if traced else "flow_seconds")
            rows = windows["flow"] == flow
            if not rows.any():
                known = ", ".join(map(str, dict.fromkeys(windows["flow"].tolist())))
                raise MistakeError(f"{run.name}: no window of flow {flow}; there are those of {known}")
            above.plot(windows["t_s"][rows], windows["cwnd_bytes"][rows] / 1e3, **style)
            delays = run.columns("queue_seconds")
            rows = delays["queue"] == queue
            below.plot(delays["t_s"][rows], delays["queue_delay_ms_mean"][rows], **style)
        above.set(ylabel="window (kB)", ylim=(0, None))
        below.set(xlabel="time (s)", ylabel="time in the queue (ms)", ylim=(0, None))
        legend(above, len(found))
    return figure


def _columns(source: Any) -> Columns:
    """Returns the columns of a tidy table: of a mapping, a list of rows, a table of Arrow, or a frame."""
    if isinstance(source, Mapping):
        return source
    if hasattr(source, "to_pydict"):
        columns: Columns = source.to_pydict()
        return columns
    if hasattr(source, "to_dict"):
        frame: Columns = source.to_dict(orient="list")
        return frame
    rows = list(source)
    return {key: [row[key] for row in rows] for key in (rows[0] if rows else {})}
