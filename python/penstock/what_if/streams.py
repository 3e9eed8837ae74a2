"""The data of TCP connections in a capture: sizes, pauses, losses, and the two halves of their round trips.

A capture is taken at one place of the path. A round trip has two halves there: from a segment to its ACK (the half
beyond the place, `away`), and from an ACK to the segment that it lets the sender send (the half before it, `home`),
which timestamps tell (RFC 7323 section 3.2: a segment echoes the newest timestamp that its sender has received).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.capture import TCP, Capture, Flow

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Numbers = npt.NDArray[np.int64]
    Choice = npt.NDArray[np.bool_]

_SYN, _FIN, _RST, _ACK, _ECE = 2, 1, 4, 16, 64
_MARK, _CAPABLE = 3, (1, 2)  # of the ECN field: CE, and ECT(1) and ECT(0)
_HAS_TCP, _HAS_TIMESTAMPS, _HAS_MSS, _HAS_SCALE = 1 << 8, 1 << 9, 1 << 10, 1 << 11
_WRAP = 1 << 32
_SMALL = 500  # bytes; a connection without a larger segment has none that is full
_PAUSE_S = 1.0  # a sender that says nothing new for so long, with everything acknowledged, pauses


@dataclass(frozen=True)
class Samples:
    """Times at which something was measured, and what was measured, in seconds."""

    t: Floats
    x: Floats

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class Burst:
    """Data that a connection sends without a pause."""

    start_s: float  # its first segment passes the place of the capture
    end_s: float
    size_bytes: int
    is_complete: bool  # false if it was still sending at the end of the capture


@dataclass(frozen=True)
class Stream:
    """The data of one direction of a TCP connection."""

    flow: Flow
    index: int  # number of the flow
    less: bool  # the data goes in the direction with fewer bytes
    bursts: tuple[Burst, ...]
    size_bytes: int
    segments: int
    again: int  # segments that were sent again
    again_bytes: int
    twice: Floats = field(
        repr=False
    )  # when segments passed that came again though they had passed: lost behind the place
    capable: bool  # some of its packets are ECN-capable or marked
    marks: int  # packets with data that were marked before the place of the capture, or else echoes of marks
    mss: int
    segments_per_ack: float
    window_bytes: int  # the largest window that the receiver has advertised; 0 if it is not known
    has_begin: bool  # the handshake is in the capture
    opens: bool  # the sender of the data opened the connection
    syn_s: float  # time of the SYN, if it is there
    away: Samples = field(repr=False)
    home: Samples = field(repr=False)
    sent: Samples = field(repr=False)  # times and sizes of the packets with data
    lost: Floats = field(repr=False)  # times of segments sent again


def unwrapped(values: Numbers, base: int) -> Numbers:
    """Returns numbers that count modulo 2^32 as differences to `base`; neighbours are less than 2^31 apart."""
    if not len(values):
        return values
    steps = np.diff(values, prepend=base)
    return np.cumsum((steps + _WRAP // 2) % _WRAP - _WRAP // 2)


def streams(capture: Capture, less: Choice, least_bytes: int) -> Iterator[Stream]:
    """Finds the streams of a capture with at least so many bytes; `less` tells the directions of packets apart."""
    passed = np.flatnonzero(capture.columns["dropped"] == 0)
    flow = capture.column("flow")[passed]
    order = passed[np.argsort(flow, kind="stable")]
    ends = np.searchsorted(np.sort(flow), np.arange(len(capture.flows) + 1))
    seconds = capture.seconds
    for index, one in enumerate(capture.flows):
        at = order[ends[index] : ends[index + 1]]
        if one.protocol == TCP and len(at):
            rows = {name: column[at].astype(np.int64) for name, column in capture.columns.items()}
            rows["less"] = less[at].astype(np.int64)
            for back in (0, 1):
                found = _stream(one, index, seconds[at], rows, back, least_bytes, float(seconds[-1]))
                if found is not None:
                    yield found


def _stream(
    flow: Flow, index: int, t: Floats, rows: dict[str, Numbers], back: int, least_bytes: int, end_s: float
) -> Stream | None:
    is_tcp = rows["flags"] & _HAS_TCP > 0
    mine = is_tcp & (rows["back"] == back)
    data = np.flatnonzero(mine & ((rows["payload"] > 0) | (rows["flags"] & _SYN > 0)))
    if rows["payload"][data].sum() < max(least_bytes, 1):
        return None
    others = np.flatnonzero(is_tcp & (rows["back"] != back))
    syn = rows["flags"][data] & _SYN > 0
    base = int(rows["seq"][data[0]])
    begin = unwrapped(rows["seq"][data] + syn, base)
    end = begin + rows["payload"][data]
    before = np.maximum.accumulate(np.concatenate([[-_WRAP], end[:-1]]))
    again = (begin < before) & ~syn
    told = others[rows["flags"][others] & _ACK > 0]
    acked = np.maximum.accumulate(unwrapped(rows["ack"][told], base)) if len(told) else np.zeros(0, np.int64)
    new_bytes = int(end.max() - begin[~syn].min())
    closed = bool((rows["flags"][mine] & (_FIN | _RST) > 0).any())
    sent = data[~syn]
    mss = _mss(rows, mine, sent)
    parts = -(
        -rows["payload"][data] // mss
    )  # a frame may hold several segments, which the network card joins or splits
    handshake = np.flatnonzero(is_tcp & (rows["flags"] & _SYN > 0))
    return Stream(
        flow=flow,
        index=index,
        less=bool(rows["less"][sent].mean() > 0.5),
        bursts=_bursts(t[sent], begin[~syn], end[~syn], again[~syn], t[told], acked, closed, end_s),
        size_bytes=new_bytes,
        segments=int(parts.sum()),
        again=int(parts[again].sum()),
        again_bytes=int(rows["payload"][data][again].sum()),
        twice=_passed_before(t[data], begin, end, again),
        capable=bool(np.isin(rows["ecn"][sent], (*_CAPABLE, _MARK)).any()),
        marks=_marks(rows, sent, told),
        mss=mss,
        segments_per_ack=int(parts.sum()) / max(len(np.unique(acked[acked > begin[~syn].min()])), 1),
        window_bytes=_window(rows, others),
        has_begin=len(handshake) > 0,
        opens=len(handshake) > 0 and int(rows["back"][handshake[0]]) == back,
        syn_s=float(t[handshake[0]]) if len(handshake) else 0.0,
        away=_away(t[data], end, again, t[told], acked),
        home=_home(t, rows, others, data[~again]),
        sent=Samples(t[sent], rows["size"][sent].astype(float)),
        lost=t[data][again],
    )


def _passed_before(t: Floats, begin: Numbers, end: Numbers, again: Choice) -> Floats:
    """Returns when those segments first passed that passed again.

    What the queue before the place of the capture drops passes once, when it is sent again; what is lost behind it,
    twice.
    """
    new = np.flatnonzero(~again)
    order = new[np.argsort(begin[new], kind="stable")]
    found: list[float] = []
    repaired: dict[int, float] = {}
    for at in np.flatnonzero(again):
        place = int(np.searchsorted(begin[order], begin[at], "right")) - 1
        if place >= 0 and end[order[place]] > begin[at]:
            found.append(float(t[order[place]]))
        elif int(begin[at]) in repaired:
            found.append(repaired[int(begin[at])])
        repaired[int(begin[at])] = float(t[at])
    return np.array(found)


def _marks(rows: dict[str, Numbers], sent: Numbers, told: Numbers) -> int:
    """Returns the number of packets with marks; if none has one, that of ACKs which tell of marks."""
    marked = int((rows["ecn"][sent] == _MARK).sum())
    flags = rows["flags"][told]
    return marked or int((flags & _ECE > 0)[flags & _SYN == 0].sum())


def _mss(rows: dict[str, Numbers], mine: Choice, sent: Numbers) -> int:
    """Returns the bytes of a full segment: the largest that was sent, unless the network card was to split it."""
    largest = int(rows["payload"][sent].max())
    has = rows["flags"] & _HAS_MSS > 0
    agreed = int(rows["mss"][has].min()) if has.any() else 1460
    if _SMALL <= largest <= agreed:
        return largest
    stamped = bool((rows["flags"][mine] & _HAS_TIMESTAMPS > 0).any())
    return agreed - 12 * stamped


def _window(rows: dict[str, Numbers], others: Numbers) -> int:
    syn = others[rows["flags"][others] & _SYN > 0]
    if not len(syn):
        return 0
    shift = int(rows["window_scale"][syn[0]]) if rows["flags"][syn[0]] & _HAS_SCALE else 0
    plain = others[rows["flags"][others] & _SYN == 0]
    return int(rows["window"][plain].max()) << min(shift, 14) if len(plain) else 0


def _bursts(
    t: Floats, begin: Numbers, end: Numbers, again: Choice, t_ack: Floats, acked: Numbers, closed: bool, end_s: float
) -> tuple[Burst, ...]:
    """Splits data where the sender pauses."""
    highest = np.maximum.accumulate(end)
    gaps = np.flatnonzero((np.diff(t) > _PAUSE_S) & ~again[1:])
    starts = [0]
    for gap in gaps:
        last = np.searchsorted(t_ack, t[gap + 1], "left") - 1
        if not len(acked) or (last >= 0 and acked[last] >= highest[gap]):
            starts.append(int(gap) + 1)
    found = []
    for start, stop in zip(starts, [*starts[1:], len(t)], strict=True):
        size = int(highest[stop - 1] - (highest[start - 1] if start else begin.min()))
        is_last = stop == len(t)
        complete = not is_last or closed or t[-1] < end_s - _PAUSE_S
        if size > 0:
            found.append(Burst(float(t[start]), float(t[stop - 1]), size, complete))
    return tuple(found)


def _away(t: Floats, end: Numbers, again: Choice, t_ack: Floats, acked: Numbers) -> Samples:
    """Measures the time from a segment to its ACK. Segments that wait for others to be sent again do not count."""
    if not len(acked):
        return Samples(np.zeros(0), np.zeros(0))
    at = np.searchsorted(acked, end, "left")
    known = at < len(acked)
    answered = t_ack[np.minimum(at, len(acked) - 1)]
    resent = t[again]
    clean = np.searchsorted(resent, answered, "right") == np.searchsorted(resent, t, "left")
    last = acked[np.minimum(at, len(acked) - 1)] == end  # an ACK was not delayed after the last segment that it names
    good = known & clean & last & (answered > t)
    return Samples(t[good], (answered - t)[good])


def _home(t: Floats, rows: dict[str, Numbers], others: Numbers, data: Numbers) -> Samples:
    """Measures the time from an ACK to the first segment that echoes its timestamp."""
    stamped = others[rows["flags"][others] & _HAS_TIMESTAMPS > 0]
    echoing = data[(rows["flags"][data] & _HAS_TIMESTAMPS > 0) & (rows["flags"][data] & _ACK > 0)]
    if not len(stamped) or not len(echoing):
        return Samples(np.zeros(0), np.zeros(0))
    base = int(rows["tsval"][stamped[0]])
    value, echo = unwrapped(rows["tsval"][stamped], base), unwrapped(rows["tsecr"][echoing], base)
    first, new = _is_first(value), _is_first(echo)
    value, t_value, echo, t_echo = value[first], t[stamped][first], echo[new], t[echoing][new]
    at = np.minimum(np.searchsorted(value, echo), len(value) - 1)
    good = (value[at] == echo) & (t_echo >= t_value[at])
    return Samples(t_echo[good], (t_echo - t_value[at])[good])


def _is_first(values: Numbers) -> Choice:
    """Returns true for each value that is greater than all before."""
    before = np.maximum.accumulate(np.concatenate([[-_WRAP], values[:-1]]))
    return values > before
