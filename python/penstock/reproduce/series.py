"""Per-second series of a run: rates of flows and queues, lengths of queues, sojourn times and windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.engine import Result


@dataclass(frozen=True)
class Series:
    """Series in whole kbit/s, bytes and microseconds. Entry `k` is for the second that begins at `k` seconds.

    The part of a second with which a run may end has no entry.
    """

    # Series of flows are in the order of their numbers, those of bottlenecks have their names.
    flows: tuple[tuple[int, ...], ...]  # goodput of each flow, in kbit/s
    queues: Mapping[str, tuple[int, ...]]  # throughput of each bottleneck with headers, in kbit/s
    longest: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # largest queue in each second, in bytes
    waited_us: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # mean sojourn time; 0 if no packet left
    waiting: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # mean queue in each second, in bytes
    windows: tuple[tuple[int, ...], ...] = ()  # congestion window of each flow at the end of each second, in bytes

    @property
    def seconds(self) -> int:
        """The number of seconds."""
        return len(self.flows[0])

    def total(self) -> list[int]:
        """Returns the goodput of all flows together, in kbit/s for each second."""
        return [sum(second) for second in zip(*self.flows, strict=True)]

    @classmethod
    def of(cls, result: Result) -> Series:
        """Creates the series from the tables of a run."""
        seconds = int(result.summary["duration_s"])
        flows, windows = ([[0] * seconds for _ in result.summary["flows"]] for _ in range(2))
        for end_s, flow, bps, cwnd in _rows(result, "flow_seconds", "t_s", "flow", "goodput_bps", "cwnd_bytes"):
            flows[flow][round(end_s) - 1] = round(bps / 1e3)
            windows[flow][round(end_s) - 1] = cwnd or 0
        names = [bottleneck["name"] for bottleneck in result.summary["bottlenecks"]]
        queues, longest, waited, waiting = ({name: [0] * seconds for name in names} for _ in range(4))
        columns = ("t_s", "queue", "throughput_bps", "queue_bytes_max", "queue_delay_ms_mean", "queue_bytes_mean")
        for end_s, queue, bps, most, delay_ms, mean in _rows(result, "queue_seconds", *columns):
            second = round(end_s) - 1
            queues[names[queue]][second] = round(bps / 1e3)
            longest[names[queue]][second] = most
            waiting[names[queue]][second] = round(mean)
            waited[names[queue]][second] = 0 if delay_ms is None else round(1e3 * delay_ms)
        by_flow = [tuple(map(tuple, values)) for values in (flows, windows)]
        by_queue = [_frozen(values) for values in (queues, longest, waited, waiting)]
        return cls(by_flow[0], by_queue[0], by_queue[1], by_queue[2], by_queue[3], by_flow[1])

    def to_json(self) -> dict[str, Any]:
        """Returns the series as lines of numbers, one for each flow or bottleneck."""
        return {
            "flows_kbps": _lines(self.flows),
            "windows_bytes": _lines(self.windows),
            "queues_kbps": _named_lines(self.queues),
            "longest_bytes": _named_lines(self.longest),
            "waited_us": _named_lines(self.waited_us),
            "waiting_bytes": _named_lines(self.waiting),
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Series:
        """The reverse of `to_json`."""
        flows, windows = (tuple(map(_numbers, stored[key])) for key in ("flows_kbps", "windows_bytes"))
        by_name = [
            {name: _numbers(line) for name, line in stored[key].items()}
            for key in ("queues_kbps", "longest_bytes", "waited_us", "waiting_bytes")
        ]
        return cls(flows, by_name[0], by_name[1], by_name[2], by_name[3], windows)


def _rows(result: Result, table: str, *columns: str) -> Iterable[tuple[Any, ...]]:
    """Yields the rows of whole seconds."""
    rows = zip(*(result.tables[table][name].to_pylist() for name in columns), strict=True)
    return (row for row in rows if row[0] == int(row[0]))  # the first column is the end of the second


def _lines(values: Iterable[tuple[int, ...]]) -> list[str]:
    return [" ".join(map(str, line)) for line in values]


def _named_lines(values: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    return dict(zip(values, _lines(values.values()), strict=True))


def _numbers(line: str) -> tuple[int, ...]:
    return tuple(map(int, line.split()))


def _frozen(lists: dict[str, list[int]]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(values) for name, values in lists.items()}
