"""The page of a replay: what a discipline did to the packets of a trace, which came as they were recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.report import kit
from penstock.report.kit.model import Axis, Cell, Chart, Line, Section, Table, Tile
from penstock.report.run_charts import LEAST_MS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

OPEN_LOOP = (
    "A replay is open loop: the arrivals are those of the trace, and senders do not react to drops, marks and delays. "
    "On a link the traffic would have been another. penstock what-if simulates senders that react."
)
_BINS = 600  # at most so many places of a chart over time
_PLACES = 300  # of a distribution
_FEW = 6  # so many flows have a distribution of their own, those with the most bytes
_TIME, _TOGETHER = Axis("time", "s"), "time"
_SENT, _DROPS = "sent", {"drop_early": "by the discipline, on arrival", "drop_overflow": "no room"}
_AT_HEAD = "drop_dequeue"
_WIDTHS = tuple(factor * 10.0**power for power in range(-6, 7) for factor in (1, 2, 5))  # of a bin, in s

Packets = dict[str, "npt.NDArray[Any]"]


def page(told: Mapping[str, Any], table: pa.Table) -> str:
    """Returns the page from `replay.json` and the table of all packets."""
    packets: Packets = {name: table[name].to_numpy() for name in table.column_names if name != "fate"}
    packets["fate"] = table["fate"].to_numpy(zero_copy_only=False).astype(str)
    summary, link = told["summary"], told["link"]
    sections = [
        Section("Over time", list(_over_time(packets, link["rate"]))),
        Section("Distributions", list(_distributions(packets))),
        Section("Flows", [_flows(packets)]),
        Section("The replay", [_about(told)]),
    ]
    name = told["trace"]
    return kit.page(
        f"Replay of {name} through {link['aqm']}",
        f"{summary['packets']:,} packets in {summary['duration_s']:g} s before a link of {link['rate']} with a "
        f"queue of {link['limit']}.",
        sections,
        tiles=_tiles(summary),
        warnings=[OPEN_LOOP, *told["warnings"]],
        command=told["command"],
        versions=told["versions"],
    )


def _tiles(summary: Mapping[str, Any]) -> list[Tile]:
    dropped = sum(summary[key] for key in (*_DROPS, _AT_HEAD))
    sojourn = summary["sojourn_ms"]
    return [
        Tile(f"{summary['sent']:,}", "packets sent"),
        *([Tile(f"{dropped / came:.2%}", f"dropped ({dropped:,} packets)")] if (came := summary["packets"]) else []),
        Tile(f"{summary['marked']:,}", "marked CE"),
        *(
            Tile(f"{sojourn[key]:.2f} ms", f"time in the queue, {told}")
            for key, told in (("p50", "median"), ("p99", "p99"))
            if sojourn[key] is not None
        ),
        *([Tile(f"{use:.1%}", "of the link is used")] if (use := summary["utilization"]) is not None else []),
    ]


def _over_time(packets: Packets, rate: str) -> Iterator[Chart]:
    """Yields the charts over time, which share their range."""
    import numpy as np

    arrived, left = packets["t_arr_ns"] / 1e9, packets["t_fate_ns"] / 1e9
    sent = packets["fate"] == _SENT
    if not len(arrived):
        return
    width = _width(float(max(arrived.max(), left.max())))
    count = int(max(arrived.max(), left.max()) / width) + 1
    xs = [width * (index + 1) for index in range(count)]

    def summed(times: npt.NDArray[Any], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.bincount((times / width).astype(int), values, count)

    size = packets["size"] * 8 / 1e6 / width
    rates = [
        Line("arrive", list(summed(arrived, size)), 1, xs),
        Line("leave", list(summed(left[sent], size[sent])), 0, xs),
    ]
    told = f"Bits that arrive at the queue and that leave it, in parts of {width:g} s; the link has {rate}."
    yield Chart("Arrivals and departures", told, _TIME, Axis("rate", "Mbit/s", zero=True), rates, (), _TOGETHER)
    yield _delay(left[sent], packets["sojourn_ns"][sent] / 1e6, width, count, xs)
    yield _length(packets, width, count, xs)
    lines = [
        Line(name, list(summed(left[packets["fate"] == fate], np.ones((packets["fate"] == fate).sum()))), place, xs)
        for place, (fate, name) in enumerate([*_DROPS.items(), (_AT_HEAD, "by the discipline, at the head")])
        if (packets["fate"] == fate).any()
    ]
    if lines:
        told = f"Packets that were dropped in {width:g} s, by the reason."
        yield Chart("Drops", told, _TIME, Axis("drops", "packets", zero=True), lines, (), _TOGETHER)


def _width(duration_s: float) -> float:
    return next((width for width in _WIDTHS if duration_s / width <= _BINS), _WIDTHS[-1])


def _delay(left: npt.NDArray[Any], ms: npt.NDArray[Any], width: float, count: int, xs: Sequence[float]) -> Chart:
    """Returns the times in the queue: the median of each part, and the range from the least to the longest."""
    import numpy as np

    order = np.lexsort((ms, left // width))
    values, ends = ms[order], np.cumsum(np.bincount((left / width).astype(int), minlength=count))
    begins = np.concatenate(([0], ends[:-1]))
    pairs = [(int(begin), int(end)) for begin, end in zip(begins, ends, strict=True)]
    low, middle, high = (
        [float(values[begin + part * (end - begin - 1) // 2]) if end > begin else None for begin, end in pairs]
        for part in (0, 1, 2)
    )
    told = f"Of packets that leave in {width:g} s the median, and the range from the shortest time to the longest."
    line = Line("median, shortest to longest", middle, 0, xs, low, high, style="band")
    axis = Axis("time in the queue", "ms", zero=True)
    return Chart("Time in the queue", told, _TIME, axis, [line], (), _TOGETHER)


def _length(packets: Packets, width: float, count: int, xs: Sequence[float]) -> Chart:
    """Returns the longest queue of each part: packets that came in, and have not left or been dropped at the head."""
    import numpy as np

    inside = (packets["fate"] == _SENT) | (packets["fate"] == _AT_HEAD)
    times = np.concatenate((packets["t_arr_ns"][inside], packets["t_fate_ns"][inside]))
    steps = np.concatenate((np.ones(inside.sum()), -np.ones(inside.sum())))
    order = np.lexsort((steps, times))  # at equal times packets leave before others come
    lengths, places = np.cumsum(steps[order]), (times[order] / 1e9 / width).astype(int)
    most = np.zeros(count)
    np.maximum.at(most, places, lengths)
    told = f"The most packets that waited at any time of each {width:g} s."
    axis = Axis("longest queue", "packets", zero=True)
    return Chart("Longest queue", told, _TIME, axis, [Line("packets", list(most), 0, xs)], (), _TOGETHER)


def _distributions(packets: Packets) -> Iterator[Chart]:
    sent = packets["fate"] == _SENT
    if not sent.any():
        return
    lines = [_cdf("all", packets["sojourn_ns"][sent], 0)]
    flows = [flow for flow, _ in _largest(packets)]
    if len(flows) > 1:
        of = [(flow, packets["sojourn_ns"][sent & (packets["flow"] == flow)]) for flow in flows[:_FEW]]
        lines += [_cdf(f"flow {flow}", ns, 1 + place) for place, (flow, ns) in enumerate(of) if len(ns)]
    told = (
        "The share of packets that were sent which waited no longer than this. Flows are those with the most bytes; "
        "times below 0.01 ms stand there."
    )
    share, axis = Axis("share", "", low=0.0, high=1.0), Axis("time in the queue", "ms", log=True)
    yield Chart("Distribution of the time in the queue", told, axis, share, lines)


def _cdf(name: str, ns: npt.NDArray[np.int64], colour: int) -> Line:
    import numpy as np

    shares = np.linspace(0, 1, min(_PLACES, len(ns) + 1))[1:]
    ordered = np.sort(ns)
    xs = [max(LEAST_MS, float(ordered[max(0, int(np.ceil(one * len(ns))) - 1)]) / 1e6) for one in shares]
    return Line(name, list(shares), colour, xs, style="step")


def _largest(packets: Packets) -> list[tuple[int, int]]:
    """Returns the flows with their bytes, those with the most first."""
    import numpy as np

    flows, places = np.unique(packets["flow"], return_inverse=True)
    sizes = np.bincount(places, packets["size"])
    return sorted(((int(flow), int(size)) for flow, size in zip(flows, sizes, strict=True)), key=lambda one: -one[1])


def _flows(packets: Packets) -> Table:
    import numpy as np

    rows = []
    for flow, size in _largest(packets):
        of_flow = packets["flow"] == flow
        sent = of_flow & (packets["fate"] == _SENT)
        count, dropped = int(of_flow.sum()), int((of_flow & ~sent).sum())
        ms = packets["sojourn_ns"][sent] / 1e6
        delays = [float(one) for one in np.quantile(ms, (0.5, 0.9, 0.99), method="inverted_cdf")] if len(ms) else []
        told = [Cell(f"{one:.2f}", one) for one in delays] or [Cell("–")] * 3
        numbers = [
            Cell(f"{count:,}", count),
            Cell(f"{size / 1e3:,.1f}", size),
            Cell(f"{dropped / count:.2%}", dropped / count),
        ]
        rows.append([Cell(str(flow), flow), *numbers, *told])
    heads = ("Flow", "Packets", "kB", "Dropped", "ms p50", "ms p90", "ms p99")
    return Table("Flows", heads, rows, 1, "Times in the queue are those of packets that were sent.")


def _about(told: Mapping[str, Any]) -> Table:
    link, summary = told["link"], told["summary"]
    rows = [
        ["trace", told["trace"]],
        ["discipline", " ".join([link["aqm"], *told["settings"]])],
        ["link", f"{link['rate']}, a queue of {link['limit']}"],
        ["left out", f"{summary['left_out']:,} packets"],
        [
            "dropped",
            ", ".join(f"{summary[key]:,} {name}" for key, name in (*_DROPS.items(), (_AT_HEAD, "at the head"))),
        ],
    ]
    if both := summary["directions"]:
        rows.append(["directions", f"told apart {both['told_apart']}; replayed: {both['replayed']}"])
    return Table("", ("What", "Value"), rows, 2)
