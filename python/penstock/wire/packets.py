"""The packets of a queue on the wire, as `penstock-emulate --packets` wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from penstock import columns, store

# Smaller packets are handshakes and acknowledgments.
_DATA_BYTES = 100

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Queue:
    """The packets that left one queue within the run. Times are in seconds since its begin."""

    left_s: Floats
    waited_ms: Floats  # of the packets that were sent
    sent_s: Floats
    sent_sizes: npt.NDArray[np.int64]
    events: int
    data_packets: int
    dropped_bytes: int
    changes_s: Floats  # times at which the number of waiting bytes changes
    waiting: Floats  # that number from then on
    duration_s: float

    @classmethod
    def read(cls, file: Path, queue: str, zero_s: float, duration_s: float) -> Queue:
        """Reads the packets of one queue; the run began at `zero_s` by the clock of the file."""
        import pyarrow as pa
        import pyarrow.compute as pc

        types = {"queue": pa.string(), "fate": pa.string(), "bytes": pa.int64()}
        table = columns.from_csv(file, types)
        table = table.filter(pc.field("queue") == queue)
        left, waited = (table[name].to_numpy().astype(float) / 1e9 for name in ("t_ns", "waited_ns"))
        left = left - zero_s
        inside = (left >= 0) & (left < duration_s)
        left, waited = left[inside], waited[inside]
        sizes = table["bytes"].to_numpy()[inside]
        fates = np.array(table["fate"].to_pylist(), dtype=object)[inside]
        sent = fates == "sent"
        # Packets that were refused on arrival never waited.
        stayed = sent | (fates == "drop_dequeue")
        changes, waiting = _waiting(left[stayed], waited[stayed], sizes[stayed])
        return cls(
            left_s=left,
            waited_ms=waited[sent] * 1e3,
            sent_s=left[sent],
            sent_sizes=sizes[sent],
            events=len(left),
            data_packets=int((sizes[sent] > _DATA_BYTES).sum()),
            dropped_bytes=int(sizes[~sent].sum()),
            changes_s=changes,
            waiting=waiting,
            duration_s=duration_s,
        )

    @property
    def sent_packets(self) -> int:
        """The number of packets sent."""
        return len(self.sent_s)

    @property
    def sent_bytes(self) -> int:
        """Their bytes."""
        return int(self.sent_sizes.sum())

    @property
    def mean_bytes(self) -> float:
        """The mean of the waiting bytes over time."""
        return self._mean(0.0, self.duration_s)

    @property
    def most_bytes(self) -> int:
        """The largest number of waiting bytes."""
        return int(self.waiting.max(initial=0))

    def _mean(self, begin: float, end: float) -> float:
        inside = (self.changes_s > begin) & (self.changes_s < end)
        times = np.concatenate([[begin], self.changes_s[inside], [end]])
        before = np.searchsorted(self.changes_s, begin, side="right")
        first = self.waiting[before - 1] if before else 0.0
        values = np.concatenate([[first], self.waiting[inside]])
        return float((values * np.diff(times)).sum() / max(end - begin, 1e-9))

    def second(self, begin: float, end: float) -> tuple[float, int, float, float]:
        """Returns throughput, largest and mean number of waiting bytes, and mean delay of one second."""
        inside = (self.sent_s >= begin) & (self.sent_s < end)
        waiting = self.waiting[(self.changes_s >= begin) & (self.changes_s < end)]
        delay = float(self.waited_ms[inside].mean()) if inside.any() else float("nan")
        bps = float(self.sent_sizes[inside].sum()) * 8 / (end - begin)
        return bps, int(waiting.max(initial=0)), self._mean(begin, end), delay


def dropped_on_arrival(file: Path, queue: str, count: int) -> None:
    """Writes into a file that so many packets of a queue were dropped for want of room when they came.

    The emulator takes packets which the kernel dropped as dropped from the queue, at the time when that shows. Those
    are chosen that found most packets when they came.
    """
    head, *lines = file.read_text(encoding="ascii").splitlines()
    rows = [line.split(",") for line in lines]
    places = [place for place, row in enumerate(rows) if row[0] == queue]
    left = np.array([int(rows[place][1]) for place in places])
    came = left - np.array([int(rows[place][2]) for place in places])
    sent = np.array([rows[place][5] == "sent" for place in places], bool)
    lost = [at for at, place in enumerate(places) if rows[place][5] == "drop_dequeue"]
    found = np.searchsorted(np.sort(came[sent]), came[lost]) - np.searchsorted(np.sort(left[sent]), came[lost])
    for at in np.argsort(-found, kind="stable")[:count]:
        row = rows[places[lost[at]]]
        rows[places[lost[at]]] = [row[0], str(came[lost[at]]), "0", row[3], row[4], "drop_overflow"]
    store.write(file, "\n".join([head, *(",".join(row) for row in rows), ""]))


def joined(links: Sequence[tuple[str, Path, float]]) -> bytes:
    """Returns the packets of links (name, file, begin of the run by the clock of the file) as one file.

    That of a single link is the emulator's. Of several, a queue has the name of its link, and times count from
    the begin of the run.
    """
    if len(links) == 1:
        return links[0][1].read_bytes()
    rows: list[tuple[int, str]] = []
    head = ""
    for name, file, zero_s in links:
        names = {"forward": name, "reverse": f"{name}-reverse"}
        head, *lines = file.read_text(encoding="ascii").splitlines()
        for line in lines:
            queue, t_ns, rest = line.split(",", 2)
            at = int(t_ns) - round(zero_s * 1e9)
            rows.append((at, f"{names[queue]},{at},{rest}"))
    rows.sort(key=lambda row: row[0])
    return "\n".join([head, *(line for _, line in rows), ""]).encode()


def _waiting(left: Floats, waited: Floats, sizes: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Returns when the number of waiting bytes changes, and to what. A packet that did not wait changes nothing."""
    kept = waited > 0
    times = np.concatenate([left[kept] - waited[kept], left[kept]])
    steps = np.concatenate([sizes[kept], -sizes[kept]])
    order = np.argsort(times, kind="stable")
    return times[order], np.cumsum(steps[order]).astype(float)
