"""The measures of the comparison, which are taken by the same rules from the packets of both sides.

The files are those of `penstock-emulate --packets`, and captures of the simulator as CSV. Each line is a packet, with
the time at which it left the queue, its sojourn time, its flow, its size, and whether it was sent or dropped.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import columns

# Smallest size of a data packet, in bytes; smaller packets are ACKs.
_DATA_BYTES = 500
# Smallest number of intervals between congestion events from which a period is computed.
_LEAST_INTERVALS = 4


@dataclass(frozen=True)
class Measures:
    """The measures of one run, without its start-up phase."""

    goodput_mbps: float
    queue_mean_ms: float
    queue_p95_ms: float
    loss: float
    period_s: float | None
    """Mean time from one congestion event of a flow to its next."""
    drops: float = 0
    """How many packets the queue dropped."""

    def to_json(self) -> dict[str, Any]:
        """Returns the measures as they are stored."""
        return asdict(self)


@dataclass(frozen=True)
class Packets:
    """The data packets of one queue. Times are in seconds since the first of them left the queue."""

    t_s: npt.NDArray[np.float64]
    waited_ms: npt.NDArray[np.float64]
    flow: npt.NDArray[np.int64]
    dropped: npt.NDArray[np.bool_]

    @classmethod
    def read(cls, file: Path, queue: str) -> Packets:
        """Reads the data packets of one queue from a file."""
        import pyarrow as pa
        import pyarrow.compute as pc

        types = {"queue": pa.string(), "bytes": pa.int64(), "fate": pa.string()}
        table = columns.from_csv(file, types)
        table = table.filter((pc.field("queue") == queue) & (pc.field("bytes") >= _DATA_BYTES))
        t_ns, waited_ns, flow = (table[name].to_numpy().astype(np.int64) for name in ("t_ns", "waited_ns", "flow"))
        dropped = pc.starts_with(table["fate"], "drop").to_numpy().astype(np.bool_)
        return cls((t_ns - t_ns[:1].sum()) / 1e9, waited_ns / 1e6, flow, dropped)

    def between(self, begin_s: float, end_s: float) -> Packets:
        """Returns the packets that left the queue in this time."""
        inside = (self.t_s >= begin_s) & (self.t_s < end_s)
        return Packets(self.t_s[inside], self.waited_ms[inside], self.flow[inside], self.dropped[inside])


def measure(packets: Packets, goodput_mbps: float, rtt_ms: float) -> Measures:
    """Measures packets of the interval that counts; `rtt_ms` is the base round trip time."""
    waited = packets.waited_ms[~packets.dropped]
    mean = float(waited.mean()) if len(waited) else 0.0
    return Measures(
        goodput_mbps=goodput_mbps,
        queue_mean_ms=mean,
        queue_p95_ms=float(np.percentile(waited, 95)) if len(waited) else 0.0,
        loss=float(packets.dropped.mean()) if len(packets.dropped) else 0.0,
        period_s=period_s(packets, (rtt_ms + mean) / 1e3),
        drops=int(packets.dropped.sum()),
    )


def period_s(packets: Packets, rtt_s: float) -> float | None:
    """Returns the mean time between congestion events of the same flow, over all flows, in seconds.

    A sender detects a drop after a round trip, and reacts once for the whole window. So all drops of a flow within one
    and a half round trips after the first are one event.
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
    """Returns the median of each measure over the runs."""

    def of(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.median(known) if len(known) > len(values) / 2 else None

    return Measures(**{name: of([asdict(run)[name] for run in runs]) for name in asdict(runs[0])})  # type: ignore[arg-type]
