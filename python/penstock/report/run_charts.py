"""The charts of a run, from its tables."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.experiments.delays import CALL_DELAYS, CALL_SCORES, GAPS, PAGE_TIMES, SOURCES, Source
from penstock.report.groups import Group, groups, kinds
from penstock.report.kit.model import Axis, Chart, Line

if TYPE_CHECKING:
    import pyarrow as pa

Tables = Mapping[str, "pa.Table"]
Columns = dict[str, list[Any]]

FEW = 8  # so many flows have a line each; of more, the range and the median are drawn
POINTS = 1200  # a longer series is drawn as means of equal parts
LEAST_MS = 0.01  # where shorter times stand in distributions
TIME = Axis("time", "s")
TOGETHER = "time"

_LINKS = {"rate_bps": ("Rate", "rate", "Mbit/s", 1e-6), "delay_s": ("Delay", "one-way delay", "ms", 1e3)}
_LINKS["loss"] = ("Loss", "loss", "", 1.0)


def over_time(tables: Tables, summary: Mapping[str, Any], links: Sequence[str]) -> list[Chart]:
    """Returns the charts over time, which share their range."""
    charts = [*flows(tables, summary), *queues(tables, summary), *windows(tables, summary)]
    return [*charts, *link_changes(tables, links, float(summary["duration_s"]))]


def flows(tables: Tables, summary: Mapping[str, Any]) -> list[Chart]:
    """Returns the goodput over time, one chart for each kind of traffic: a call is not drawn among bulk flows."""
    seconds = _by_flow(tables, "goodput_bps", 1e-6)
    charts = []
    for kind, members in kinds(summary["flows"]).items():
        lines = _lines(groups(members), seconds)
        if any(value for line in lines for value in line.ys):
            read = f"Payload of {kind} flows that reaches a receiver in each second. {_told(members)}"
            unit, scaled = _readable(lines)
            charts.append(
                Chart(f"Goodput of {kind} flows", read, TIME, Axis("goodput", unit, zero=True), scaled, (), TOGETHER)
            )
    return charts


def windows(tables: Tables, summary: Mapping[str, Any]) -> list[Chart]:
    """Returns the congestion windows at the ends of seconds, of TCP flows that last."""
    sizes = _by_flow(tables, "cwnd_bytes", 1e-3)
    members = [flow for flow in summary["flows"] if flow["cc"] and any(sizes.get(flow["id"], ((), ()))[1])]
    lines = _lines(groups(members), sizes)
    read = "The congestion window of a sender at the end of each second; `penstock run --trace tcp` samples finer. "
    read += _told(members)
    chart = Chart("Congestion windows", read, TIME, Axis("window", "kB", zero=True), lines, (), TOGETHER)
    return [chart] if lines else []


def queues(tables: Tables, summary: Mapping[str, Any]) -> list[Chart]:
    """Returns throughput, waiting time and length of the queue over time, a line for each bottleneck."""
    columns = _columns(tables, "queue_seconds")
    if not columns:
        return []
    shown = [
        ("Throughput of the bottlenecks", "throughput_bps", Axis("throughput", "Mbit/s", zero=True), 1e-6),
        ("Time in the queue", "queue_delay_ms_mean", Axis("time in the queue", "ms", zero=True), 1.0),
        ("Longest queue", "queue_bytes_max", Axis("longest queue", "kB", zero=True), 1e-3),
    ]
    reads = (
        "Bits that leave each link, headers included.",
        "How long packets waited that left in a second, on average. Short spikes are smoothed: the distribution below "
        "has every packet.",
        "The most that waited at any time of each second.",
    )
    names = [bottleneck["name"] for bottleneck in summary["bottlenecks"]]
    charts = []
    for (title, key, axis, scale), read in zip(shown, reads, strict=True):
        lines = []
        for index, name in enumerate(names):
            rows = [i for i, queue in enumerate(columns["queue"]) if queue == index]
            xs, ys = _thin([columns["t_s"][i] for i in rows], [_scale(columns[key][i], scale) for i in rows])
            lines.append(Line(name, ys, index, xs))
        charts.append(Chart(title, read, TIME, axis, lines, (), TOGETHER))
    return charts


def link_changes(tables: Tables, names: Sequence[str], duration_s: float) -> list[Chart]:
    """Returns what became of rate, delay and loss of links, as far as they change."""
    columns = _columns(tables, "link_changes")
    if not columns:
        return []
    ways: dict[tuple[int, int], list[int]] = {}
    for row, way in enumerate(zip(columns["link"], columns["reverse"], strict=True)):
        ways.setdefault(way, []).append(row)
    charts = []
    for key, (title, label, unit, scale) in _LINKS.items():
        lines: list[Line] = []
        for (link, reverse), rows in ways.items():
            values = [columns[key][row] * scale for row in rows]
            if len(set(values)) > 1 and not (reverse and _same(columns, key, rows, ways.get((link, 0)))):
                both = not reverse and _same(columns, key, rows, ways.get((link, 1)))
                name = names[link] + ("" if both else ", back" if reverse else ", forth")
                xs = [*(columns["t_s"][row] for row in rows), duration_s]
                lines.append(Line(name, [*values, values[-1]], len(lines), xs, style="step"))
        if lines:
            read = (
                "A value holds until the next. Of more than 10,000 changes of a link every second is kept, or fourth."
            )
            axis = Axis(label, unit, zero=key != "delay_s")
            charts.append(Chart(f"{title} of links that change", read, TIME, axis, lines, (), TOGETHER))
    return charts


def _same(columns: Columns, key: str, rows: Sequence[int], others: Sequence[int] | None) -> bool:
    if others is None:
        return False
    return [(columns["t_s"][i], columns[key][i]) for i in rows] == [
        (columns["t_s"][i], columns[key][i]) for i in others
    ]


# What people feel, by the parts of `experiments/delays.py`: title, of what a curve tells the share, and the axis.
FELT = {
    CALL_DELAYS: ("Delay of calls", "packets of a call that took at most this", Axis("one-way delay", "ms", log=True)),
    CALL_SCORES: ("Scores of calls", "parts of ten seconds of a call with at most this score", Axis("MOS")),
    PAGE_TIMES: ("Times of pages", "pages that took at most this", Axis("time", "ms", log=True)),
    GAPS: (
        "Gaps of calls and videos",
        "times between packets of a call, or between frames of a video that are played; long ones are heard and seen",
        Axis("gap", "ms", log=True),
    ),
}
SHARE = Axis("share", "", low=0.0, high=1.0)


def distributions(tables: Tables, summary: Mapping[str, Any], hosts: Mapping[int, str] | None = None) -> list[Chart]:
    """Returns the distributions: of times in the queues, of round trips, and of what people feel.

    `hosts` are those of flows by number, where the scenario names them.
    """
    names = [bottleneck["name"] for bottleneck in summary["bottlenecks"]]
    of_flow = {group.ids[0]: group.label for group in groups(summary["flows"])}
    delays = _cdf(tables, "queue_delays", ("queue", "delay_ms", "packets"), dict(enumerate(names)))
    trips = _cdf(tables, "round_trips", ("flow", "rtt_ms", "samples"), of_flow)
    read = (
        "The share of {} up to each time. A steep curve far to the left is best; where it is high but not yet at 1, a "
        "few wait long. Steps of the curve are at most 2 % wide; times below 0.01 ms stand there."
    )
    charts = []
    if delays:
        axis = Axis("time in the queue", "ms", log=True)
        told = read.format("packets that waited no longer than this, at each bottleneck,")
        charts.append(Chart("Distribution of the time in the queue", told, axis, SHARE, delays))
    if trips:
        axis = Axis("round trip time", "ms", log=True)
        told = read.format("round trips, as senders measured them, of flows of one kind and control")
        charts.append(Chart("Distribution of round trip times", told, axis, SHARE, trips))
    return [*felt(tables, summary, hosts or {}), *charts]


def felt(tables: Tables, summary: Mapping[str, Any], hosts: Mapping[int, str]) -> list[Chart]:
    """Returns the distributions of what people feel: of each flow, of many those of each host or kind together."""
    charts = []
    for part, (title, what, axis) in FELT.items():
        source = SOURCES[part]
        columns = _columns(tables, source.table)
        ids = list(dict.fromkeys(columns.get("flow", ())))
        several = len(ids) > FEW
        of = {
            flow: hosts.get(flow) or (summary["flows"][flow]["kind"] if several else _flow_name(summary, flow))
            for flow in ids
        }
        lines = [
            _curve(name, [row for row, flow in enumerate(columns["flow"]) if of[flow] == name], columns, source, c)
            for c, name in enumerate(dict.fromkeys(of.values()))
        ]
        if lines:
            charts.append(Chart(title, f"The share of {what}.", axis, SHARE, lines))
    return charts


def _flow_name(summary: Mapping[str, Any], flow: int) -> str:
    return f"flow {flow} ({summary['flows'][flow]['kind']})"


def _curve(name: str, rows: Sequence[int], columns: Columns, source: Source, colour: int) -> Line:
    """Returns the cumulative curve of rows of several flows together."""
    counts: dict[float, int] = {}
    for row in rows:
        value = max(columns[source.value][row], LEAST_MS)
        counts[value] = counts.get(value, 0) + columns[source.count][row]
    xs, total = sorted(counts), sum(counts.values())
    shares = [share / total for share in itertools.accumulate(counts[x] for x in xs)]
    return Line(name, shares, colour, xs, style="step")


def _cdf(tables: Tables, table: str, keys: tuple[str, str, str], names: Mapping[int, str]) -> list[Line]:
    columns = _columns(tables, table)
    lines: list[Line] = []
    if not columns:
        return lines
    of, ms, count = (columns[key] for key in keys)
    for index, name in names.items():
        rows = [row for row, one in enumerate(of) if one == index]
        total = sum(count[row] for row in rows)
        if not total:
            continue
        xs, ys, seen = [], [], 0
        for row in rows:
            seen += count[row]
            xs.append(max(ms[row], LEAST_MS))
            ys.append(seen / total)
        lines.append(Line(name, ys, len(lines), xs, style="step"))
    return lines


# Lines of flows.

Values = Sequence[float | None]
Series = Mapping[int, tuple[Sequence[float], Sequence[float]]]  # times and values of each flow, by its number


def _lines(of: Sequence[Group], series: Series) -> list[Line]:
    """Returns a line for each flow if they are few, else of each group its median and its range."""
    if sum(len(group.flows) for group in of) <= FEW:
        named = [(flow, group) for group in of for flow in group.flows if flow["id"] in series]
        named.sort(key=lambda one: one[0]["id"])
        lines = []
        for index, (flow, group) in enumerate(named):
            xs, ys = _thin(*series[flow["id"]])
            lines.append(Line(f"flow {flow['id']}{group.told}", ys, index, xs))
        return lines
    found = (_band(group, index, series) for index, group in enumerate(of))
    return [line for lines in found for line in lines]


def _band(group: Group, index: int, series: Series) -> list[Line]:
    """Returns the range from the 10th to the 90th percentile of a group of flows, and their median."""
    by_time: dict[float, list[float]] = {}
    for flow in group.ids:
        for t, value in zip(*series.get(flow, ((), ())), strict=True):
            by_time.setdefault(t, []).append(value)
    if not by_time:
        return []
    xs = sorted(by_time)
    parts = ([_quantile(by_time[t], q) for t in xs] for q in (0.1, 0.5, 0.9))
    (times, low), (_, middle), (_, high) = (_thin(xs, values) for values in parts)
    count = f"{len(group.flows)} x {group.label}"
    return [Line(f"{count}: median, p10 to p90", middle, index, times, low, high, style="band")]


def _quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[max(1, math.ceil(q * len(ordered))) - 1]


def _told(members: Sequence[Any]) -> str:
    if len(members) <= FEW:
        return "Each flow has a line."
    return "The line is the median flow of a group, the filled range goes from its 10th to its 90th percentile."


def _readable(lines: Sequence[Line]) -> tuple[str, list[Line]]:
    """Returns lines in kbit/s if all values are small, else in Mbit/s."""
    top = max((value or 0.0 for line in lines for value in line.high or line.ys), default=0.0)
    if top >= 1:
        return "Mbit/s", list(lines)
    return "kbit/s", [_scaled(line, 1e3) for line in lines]


def _scaled(line: Line, by: float) -> Line:
    low, middle, high = (values and [_scale(v, by) for v in values] for values in (line.low, line.ys, line.high))
    return Line(line.name, middle or [], line.colour, line.xs, low, high, line.style)


def _by_flow(tables: Tables, key: str, scale: float) -> Series:
    columns = _columns(tables, "flow_seconds")
    found: dict[int, tuple[list[float], list[float]]] = {}
    for t, flow, value in zip(*(columns.get(name, ()) for name in ("t_s", "flow", key)), strict=True):
        if value is None:  # a flow without a window
            continue
        times, values = found.setdefault(flow, ([], []))
        times.append(t)
        values.append(scale * value)
    return found


def _scale(value: float | None, scale: float) -> float | None:
    return None if value is None else scale * value


def _columns(tables: Tables, name: str) -> Columns:
    table = tables.get(name)
    return {} if table is None or not table.num_rows else table.to_pydict()


def _thin(xs: Sequence[float], ys: Values) -> tuple[list[float], list[float | None]]:
    """Returns a series of at most `POINTS` values, each the mean of those that there are of as many values."""
    size = -(-len(xs) // POINTS) or 1
    if size == 1:
        return list(xs), list(ys)

    def mean(values: Values) -> float | None:
        known = [value for value in values if value is not None and not math.isnan(value)]
        return statistics.fmean(known) if known else None

    parts = range(0, len(xs), size)
    return [xs[min(i + size, len(xs)) - 1] for i in parts], [mean(ys[i : i + size]) for i in parts]
