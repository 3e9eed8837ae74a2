"""The seconds of a run: what each flow and each queue carried in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.engine import Result


@dataclass(frozen=True)
class Series:
    """Whole kbit/s; entry `k` is the mean over the second that begins at `k`."""

    flows: tuple[tuple[int, ...], ...]  # payload that arrived, by flow
    queues: Mapping[str, tuple[int, ...]]  # all that was sent, by name of the bottleneck

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
        queues = {bottleneck["name"]: [0] * seconds for bottleneck in result.summary["bottlenecks"]}
        names = list(queues)
        table = result.tables["queue_seconds"]
        columns = (table[name].to_pylist() for name in ("t_s", "queue", "throughput_bps"))
        for end_s, queue, bps in zip(*columns, strict=True):
            queues[names[queue]][round(end_s) - 1] = round(bps / 1e3)
        return cls(tuple(map(tuple, flows)), {name: tuple(values) for name, values in queues.items()})

    def to_json(self) -> dict[str, Any]:
        """One line of text for each flow and queue."""
        return {
            "flows_kbps": [" ".join(map(str, values)) for values in self.flows],
            "queues_kbps": {name: " ".join(map(str, values)) for name, values in self.queues.items()},
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Series:
        """The reverse of `to_json`."""
        flows = tuple(tuple(map(int, line.split())) for line in stored["flows_kbps"])
        queues = {name: tuple(map(int, line.split())) for name, line in stored["queues_kbps"].items()}
        return cls(flows, queues)
