"""What both sides are measured for, by the same rules from the same kind of file.

The files are those of `penstock-emulate --packets` and of a simulated capture as CSV: a line per packet, with the time
at which it left the queue, how long it was there, its flow, its size and whether it was sent or dropped.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

# Smaller packets are ACKs and the like.
_DATA_BYTES = 500
# Fewer intervals give no period to speak of.
_LEAST_INTERVALS = 4


@dataclass(frozen=True)
class Measures:
    """Of one run, after the start-up."""

    goodput_mbps: float
    queue_mean_ms: float
    queue_p95_ms: float
    loss: float
    period_s: float | None
    """Mean time from one congestion event of a flow to its next."""

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)


@dataclass(frozen=True)
class Packets:
    """The data packets of one queue; times are seconds since the first of them left it."""

    t_s: npt.NDArray[np.float64]
    waited_ms: npt.NDArray[np.float64]
    flow: npt.NDArray[np.int64]
    dropped: npt.NDArray[np.bool_]

    @classmethod
    def read(cls, file: Path, queue: str) -> Packets:
        """Those of one queue of the file."""
        rows: list[tuple[int, int, int, bool]] = []
        with file.open(encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                name, t_ns, waited_ns, flow, size, fate = line.rstrip("\n").split(",")
                if name == queue and int(size) >= _DATA_BYTES:
                    rows.append((int(t_ns), int(waited_ns), int(flow), fate.startswith("drop")))
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        t_ns_all = table[:, 0] - (table[0, 0] if rows else 0)
        return cls(t_ns_all / 1e9, table[:, 1] / 1e6, table[:, 2], table[:, 3].astype(np.bool_))

    def between(self, begin_s: float, end_s: float) -> Packets:
        """Those that left the queue in this time."""
        inside = (self.t_s >= begin_s) & (self.t_s < end_s)
        return Packets(self.t_s[inside], self.waited_ms[inside], self.flow[inside], self.dropped[inside])


def measure(packets: Packets, goodput_mbps: float, rtt_ms: float) -> Measures:
    """Of packets from the time that counts; `rtt_ms` is that of the path without its queue."""
    waited = packets.waited_ms[~packets.dropped]
    mean = float(waited.mean()) if len(waited) else 0.0
    return Measures(
        goodput_mbps=goodput_mbps,
        queue_mean_ms=mean,
        queue_p95_ms=float(np.percentile(waited, 95)) if len(waited) else 0.0,
        loss=float(packets.dropped.mean()) if len(packets.dropped) else 0.0,
        period_s=period_s(packets, (rtt_ms + mean) / 1e3),
    )


def period_s(packets: Packets, rtt_s: float) -> float | None:
    """Mean time between the congestion events of a flow; of all flows together.

    A sender learns of a drop a round trip later and then answers for the whole window, so the drops of a flow within
    one and a half round trips of the first are one event.
    """
    total, intervals = 0.0, 0
    for flow in np.unique(packets.flow):
        events: list[float] = []
        for t in packets.t_s[packets.dropped & (packets.flow == flow)]:
            if not events or t - events[-1] > 1.5 * rtt_s:
                events.append(float(t))
        if events:
            total += events[-1] - events[0]
            intervals += len(events) - 1
    return total / intervals if intervals >= _LEAST_INTERVALS else None


def median(runs: Sequence[Measures]) -> Measures:
    """Each number by itself."""

    def of(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.median(known) if len(known) > len(values) / 2 else None

    return Measures(**{name: of([asdict(run)[name] for run in runs]) for name in asdict(runs[0])})  # type: ignore[arg-type]
