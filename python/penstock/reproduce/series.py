"""The seconds of a run: what each flow and each queue carried in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.engine import Result


@dataclass(frozen=True)
class Series:
    """Whole kbit/s and bytes; entry `k` is the mean over the second that begins at `k`."""

    flows: tuple[tuple[int, ...], ...]  # payload that arrived, by flow
    queues: Mapping[str, tuple[int, ...]]  # all that was sent, by name of the bottleneck
    longest: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # most bytes that waited in each second

    @property
    def seconds(self) -> int:
        """How many."""
        return len(self.flows[0])

    def total(self) -> list[int]:
        """Payload of all flows together."""
        return [sum(second) for second in zip(*self.flows, strict=True)]

    @classmethod
    def of(cls, result: Result) -> Series:
        """From the tables of a run."""
        seconds = int(result.summary["duration_s"])
        flows = [[0] * seconds for _ in result.summary["flows"]]
        table = result.tables["flow_seconds"]
        for end_s, flow, bps in zip(*(table[name].to_pylist() for name in table.column_names), strict=True):
            flows[flow][round(end_s) - 1] = round(bps / 1e3)
        names = [bottleneck["name"] for bottleneck in result.summary["bottlenecks"]]
        queues = {name: [0] * seconds for name in names}
        longest = {name: [0] * seconds for name in names}
        table = result.tables["queue_seconds"]
        columns = (table[name].to_pylist() for name in ("t_s", "queue", "throughput_bps", "queue_bytes_max"))
        for end_s, queue, bps, most in zip(*columns, strict=True):
            queues[names[queue]][round(end_s) - 1] = round(bps / 1e3)
            longest[names[queue]][round(end_s) - 1] = most
        return cls(tuple(map(tuple, flows)), _frozen(queues), _frozen(longest))

    def to_json(self) -> dict[str, Any]:
        """One line of text for each flow and queue."""
        return {
            "flows_kbps": [" ".join(map(str, values)) for values in self.flows],
            "queues_kbps": {name: " ".join(map(str, values)) for name, values in self.queues.items()},
            "longest_bytes": {name: " ".join(map(str, values)) for name, values in self.longest.items()},
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Series:
        """The reverse of `to_json`."""
        flows = tuple(tuple(map(int, line.split())) for line in stored["flows_kbps"])
        queues, longest = (
            {name: tuple(map(int, line.split())) for name, line in stored[key].items()}
            for key in ("queues_kbps", "longest_bytes")
        )
        return cls(flows, queues, longest)


def _frozen(lists: dict[str, list[int]]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(values) for name, values in lists.items()}
