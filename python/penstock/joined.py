"""Frames of several segments in a capture: a network card was to split them (TSO), or the kernel had joined them (GRO).

A link carries segments. So each such frame is split at the segment size of its connection, and the segments are spread
at the rate of their link. `crates/trace/src/window.rs` does it; here is decided where and how far apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.headers import TCP, UDP, Capture
from penstock.spacing import peak

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]
    Choice = npt.NDArray[np.bool_]

_ETHERNET = 1500  # bytes that a packet has at most on most links
_JUMBO = range(8900, 9217)  # sizes of full packets on links with large ones
_HAS_TIMESTAMPS, _HAS_MSS = 1 << 9, 1 << 10
_STAMPS = 12  # bytes that timestamps take of each segment
_LEAST, _MOST = 500, 1460  # bytes of a segment that fills its packet
_SHARE = 0.5  # of joined frames that are whole numbers of segments
# Usual sizes, for connections of which only joined frames are there: Ethernet, PPPoE, tunnels; of UDP those of QUIC.
_TCP_SIZES = (1460, 1448, 1440, 1452, 1428, 1412, 1400, 1388, 1380, 1368, 1360, 1348)
_UDP_SIZES = (1472, 1452, 1200, 1232, 1250, 1252, 1350, 1392, 1400)
_WINDOW_S, _WINDOWS = 1.0, 5  # windows in which a busy direction carries what its link can, and how many at least
_BUSY = 0.9  # of the most that a window carried
_RECEIVED, _SENT = 1, 2
_NS, _MOST_NS = 1e9, 2**31 - 1


@dataclass(frozen=True)
class Cutting:
    """How the frames of a capture are split, as the reader takes it, and the rates at which segments are spread."""

    data: bytes
    rates_bps: tuple[float, ...]


def cutting(capture: Capture, less: Choice) -> Cutting | None:
    """Returns how joined frames are split; `None` if there are none. `less` tells the directions of packets apart."""
    import numpy as np

    if not len(capture) or int(capture.columns["size"].max()) <= _ETHERNET or not capture.has_hosts:
        return None
    payload = capture.column("payload")
    full = _full(capture)
    joined = (payload > full) & (full > 0)
    if not joined.any():
        return None
    spacing = np.zeros(len(capture), np.int64)
    rates = []
    for one in (False, True):
        mine = less == one
        if (joined & mine).any():
            bps, begins = _rate(capture, mine, joined, full)
            rates.append(bps)
            spacing[mine] = _spacings(capture, mine, joined, full, bps, begins)
    records = np.zeros((int(capture.columns["record"].max()) + 1, 2), "<i4")
    at = capture.columns["record"][joined]
    records[at, 0], records[at, 1] = full[joined], spacing[joined]
    return Cutting(records.tobytes(), tuple(rates))


def _full(capture: Capture) -> Numbers:
    """Returns for each packet the payload of a full packet in its direction of its flow; 0 where none is joined."""
    import numpy as np

    payload, size = capture.column("payload"), capture.column("size")
    side = 2 * capture.column("flow") + capture.column("back")
    found = np.zeros(len(capture), np.int64)
    order = np.argsort(side, kind="stable")
    ends = np.searchsorted(side[order], np.arange(2 * len(capture.flows) + 1))
    for one in np.unique(side[size > _ETHERNET]).tolist():
        at, flow = order[ends[one] : ends[one + 1]], capture.flows[one // 2]
        if flow.protocol in (TCP, UDP) and not _is_loopback(flow.source):
            both = order[ends[one - one % 2] : ends[one - one % 2 + 2]]
            found[at] = _full_of(capture, at, both, payload[at], flow.protocol == TCP)
    return found


def _full_of(capture: Capture, at: Numbers, both: Numbers, payload: Numbers, is_tcp: bool) -> int:
    """Returns the payload of a full packet: what was agreed, or else what explains the joined frames."""
    import numpy as np

    flags = capture.column("flags")
    stamps = _STAMPS * bool((flags[at] & _HAS_TIMESTAMPS > 0).any())
    agreed = flags[both] & _HAS_MSS > 0
    if is_tcp and agreed.any():
        return int(capture.column("mss")[both][agreed].min()) - stamps
    headers = int((capture.column("size")[at] - payload).min())
    if int(payload.max()) + headers in _JUMBO:
        return 0
    most = _ETHERNET - headers - stamps if is_tcp else _ETHERNET - headers
    large = payload[payload > most]
    single = payload[(payload >= _LEAST) & (payload <= most)]
    values, counts = np.unique(single, return_counts=True)
    often = [int(value) for value in values[np.argsort(-counts, kind="stable")][:4]]
    usual = [one for one in (_TCP_SIZES if is_tcp else _UDP_SIZES) if one <= most]
    whole = {one: float((large % one == 0).mean()) for one in [*often, *usual]}
    best = max(whole, key=lambda one: whole[one], default=0)
    return best if best and whole[best] >= _SHARE else int(most)


def _is_loopback(address: str | None) -> bool:
    return address is not None and (address.startswith("127.") or address == "::1")


def _rate(capture: Capture, mine: Choice, joined: Choice, full: Numbers) -> tuple[float, bool]:
    """Returns the rate at which packets of a direction are spaced, and whether times are those of the begin of frames.

    Joined frames of one flow that follow each other, without a packet of another, show it best; then all packets do.
    Without a regular spacing it is what the direction carried in its busiest windows.
    """
    import numpy as np

    passed = np.flatnonzero(mine & (capture.columns["dropped"] == 0))
    t, bits = capture.seconds[passed], (8 * _on_wire(capture, joined, full)[passed]).astype(np.float64)
    if len(t) < 2:
        return 0.0, True
    alone = (np.diff(capture.column("flow")[passed]) == 0) & joined[passed][1:] & joined[passed][:-1]
    gap, everything = np.diff(t).astype(np.float64), np.ones(len(t) - 1, bool)
    for pairs in (alone, everything):
        begin, end = peak(gap[pairs], bits[:-1][pairs]), peak(gap[pairs], bits[1:][pairs])
        best = begin if begin.spaced >= end.spaced else end
        if best.is_regular:
            return best.bps, best is begin
    width = min(_WINDOW_S, float(t[-1] - t[0]) / _WINDOWS)
    if width <= 0:
        return 0.0, True
    windows = np.bincount(((t - t[0]) / width).astype(int), bits)
    return float(np.median(windows[windows >= _BUSY * windows.max()])) / width, best is begin


def _on_wire(capture: Capture, joined: Choice, full: Numbers) -> Numbers:
    """Returns the bytes of packets with the headers of all their segments."""
    import numpy as np

    size, payload = capture.column("size"), capture.column("payload")
    parts = np.where(joined, -(-payload // np.maximum(full, 1)), 1)
    found: Numbers = size + (parts - 1) * (size - payload)
    return found


def _spacings(capture: Capture, mine: Choice, joined: Choice, full: Numbers, bps: float, begins: bool) -> Numbers:
    """Returns nanoseconds from one segment to the next, below zero for frames that have the time of their last segment.

    What was sent has the time of its first, what was received that of its last; where the capture does not say, it is
    `begins`. No segment comes before the frame before, or after the next frame of its flow.
    """
    import numpy as np

    at = np.flatnonzero(mine)
    size, payload = capture.column("size")[at], capture.column("payload")[at]
    segment = np.minimum(full[at], payload) + size - payload
    wanted = _NS * 8 * segment / bps if bps > 0 else np.zeros(len(at))
    way = capture.column("way")[at]
    backward = np.where(way == 0, not begins, way == _RECEIVED)
    before, after = _gaps(capture, at)
    parts = np.maximum(-(-payload // np.maximum(full[at], 1)), 1)
    room = np.where(backward, before, after) / parts
    spacing = np.minimum(np.minimum(wanted, room), _MOST_NS).astype(np.int64)
    return np.where(joined[at], np.where(backward, -spacing, spacing), 0)


def _gaps(capture: Capture, at: Numbers) -> tuple[Numbers, Numbers]:
    """Returns the nanoseconds since the packet before of the same flow, and those to the next, of a direction."""
    import numpy as np

    t = capture.column("t_ns")[at]
    order = np.argsort(capture.column("flow")[at], kind="stable")
    steps = np.diff(t[order])
    same = np.diff(capture.column("flow")[at][order]) == 0
    gap = np.where(same, steps, _MOST_NS)
    before, after = (np.full(len(at), _MOST_NS, np.int64) for _ in range(2))
    before[order[1:]], after[order[:-1]] = gap, gap
    return before, after
