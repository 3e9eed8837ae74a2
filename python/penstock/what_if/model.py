"""From a capture to a scenario: what its link, its transfers and its datagrams are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import capture as captures
from penstock.mistake import MistakeError
from penstock.what_if import link as links
from penstock.what_if import others
from penstock.what_if.streams import Stream, streams

if TYPE_CHECKING:
    from penstock.capture import Capture
    from penstock.what_if.link import Queue, Rate
    from penstock.what_if.streams import Floats

_SMALL = 3000  # bytes; streams with less are left out, such as requests
_PACKET = 1500
_SAME = 0.05  # rates of the two directions that differ by less are the same
_SPREAD = "5ms"  # within which seeds let flows begin
_DELAYED = 1.3  # segments for each ACK above which a receiver delays them
_MOST_WINDOW = 6_000_000  # bytes; the simulator's own
_PEAK_S = 0.25  # over which a direction that is never full shows what it can carry at least
_SPACED = 0.9  # share of bytes at one spacing above which a direction with few large packets shows a rate
_FEW_LOST = 0.002  # share of segments that are lost behind the queue, above which the model has such losses
_SOME_LOST, _LOSSY = 10, 0.005  # segments and share of one stream above which it has such losses
_TOGETHER_S, _MOST_TOGETHER = 0.1, 2
_SHORT = 0.5  # of a long queue: what is lost while it is shorter was not dropped by a full queue
# Hosts of a flow, unless it says otherwise.
LINUX: Mapping[str, Any] = {"profile": "linux"}
LEFT, RIGHT = "left", "right"
# The class of each stream, and the losses of the classes.
_Losses = tuple[dict[int, int], list[float]]


@dataclass(frozen=True)
class Observed:
    """What a capture holds, and what follows from it."""

    path: Path
    duration_s: float
    packets: int
    how: str  # how its directions were told apart
    rate: Rate
    queue: Queue
    main: tuple[Stream, ...] = field(repr=False)  # streams in the direction of the bottleneck
    back: tuple[Stream, ...] = field(repr=False)
    back_rate: Rate
    back_queue: Queue
    back_peak_bps: float  # the most that the other direction carried in a quarter of a second
    pieces: tuple[others.Piece, ...] = field(repr=False)
    less: bool  # the bottleneck is in the direction with fewer bytes
    uploads: bool | None  # the bottleneck is in the direction from private addresses to public ones; `None` if open
    goodput_bps: float
    back_goodput_bps: float
    quic: float
    cut_short: bool
    read: str  # what was read, and what was left out or changed

    @property
    def loss(self) -> float:
        """The share of segments that were sent again."""
        return _loss(self.main)

    @property
    def lost_behind(self) -> float:
        """The share of segments that were lost, and not in the queue."""
        return _lost_behind(self.main, self.queue)

    @property
    def back_lost_behind(self) -> float:
        """The same of the other direction."""
        return _lost_behind(self.back, self.back_queue)

    def lost_of(self, stream: Stream) -> int:
        """Returns the number of segments of a stream in the asked direction that were lost, and not in the queue."""
        return _lost_of(stream, self.queue)

    @property
    def marks(self) -> int:
        """The number of marks of ECN that a discipline has made in the asked direction."""
        return sum(stream.marks for stream in self.main)

    @property
    def limit_bytes(self) -> int:
        """The limit of the queue, if packets were lost; what fits into the largest delay."""
        return _limit(self.rate.bps, self.queue)

    @property
    def back_bps(self) -> float:
        """The rate of the other direction: its spacing, or without one the most that it carried, if that is more."""
        if self.back_rate.is_regular or (self.back_rate.spaced > _SPACED and self.back_rate.bps > 0):
            return self.back_rate.bps
        return max(self.back_peak_bps, self.rate.bps)

    @property
    def carried(self) -> float:
        """The goodputs of both directions, each as a share of its rate, together."""
        return self.goodput_bps / max(self.rate.bps, 1) + self.back_goodput_bps / max(self.back_bps, 1)

    @property
    def back_limit(self) -> str:
        """The limit of the queue of the other direction; the simulator's if that has not lost packets in its queue.

        A link that releases packets in bursts has no regular spacing, and packets wait for the burst as well: what fits
        into the largest delay is a little too much then, and far less than a queue without a limit.
        """
        lossy = sum(stream.again - len(stream.twice) for stream in self.back) > 0
        return f"{_limit(self.back_bps, self.back_queue)}B" if lossy and self.back_queue.at_home else "1000p"


def _loss(streams: Sequence[Stream]) -> float:
    segments = sum(stream.segments for stream in streams)
    return sum(stream.again for stream in streams) / segments if segments else 0.0


def _lost_behind(streams: Sequence[Stream], queue: Queue) -> float:
    segments = sum(stream.segments for stream in streams)
    return sum(_lost_of(stream, queue) for stream in streams) / segments if segments else 0.0


def _lost_of(stream: Stream, queue: Queue) -> int:
    """Returns the number of segments of a stream that were lost, and not in its queue.

    Behind the queue that is what passed before it was sent again; before it, what was lost while the queue was short.
    Of many at one time few count: a timeout after lost ACKs sends all again, although nothing is lost.
    """
    twice = stream.twice
    if not queue.at_home and len(twice) and len(queue.delay):
        waits = np.interp(twice, queue.delay.t, queue.delay.x)
        twice = twice[waits < _SHORT * queue.quantile(0.99)]
    together = np.bincount((twice / _TOGETHER_S).astype(int)) if len(twice) else np.zeros(0, int)
    return int(np.minimum(together, _MOST_TOGETHER).sum())


def _is_lossy(streams: Sequence[Stream], queue: Queue) -> bool:
    """Returns whether losses behind the queue count, of all streams together or of one."""
    if _lost_behind(streams, queue) >= _FEW_LOST:
        return True
    lost = [(_lost_of(stream, queue), stream.segments) for stream in streams]
    return any(count >= _SOME_LOST and count >= _LOSSY * segments for count, segments in lost)


def _limit(bps: float, queue: Queue) -> int:
    return int(queue.quantile(0.999) * bps / 8) + _PACKET


def observe(path: Path, rate_bps: float | None = None, direction: str = "") -> Observed:
    """Reads a capture. `rate_bps` is the rate of the link, if it is known, `direction` that which is asked about."""
    capture = captures.read(path)
    if len(capture) and not capture.has_hosts:
        raise MistakeError(f"{path}: a CSV file has no hosts and no headers; what-if needs a pcap or pcapng capture")
    found = captures.directions(capture)
    every = list(streams(capture, found.less, _SMALL)) if len(capture) else []
    sides = _sides(capture, found, every, rate_bps)
    weights = [rate.full * queue.quantile(0.9) for rate, queue in sides]
    less = direction == "less" if direction else weights[1] > 2 * weights[0]
    rate, queue = sides[less]
    main = tuple(stream for stream in every if stream.less == less)
    back = tuple(stream for stream in every if stream.less != less)
    pieces = tuple(others.pieces(capture, found.less, _waited(sides))) if len(capture) else ()
    duration = float(capture.seconds[-1]) if len(capture) else 0.0
    return Observed(
        path=path,
        duration_s=duration,
        packets=len(capture),
        how=found.how,
        rate=rate,
        queue=queue,
        main=main,
        back=back,
        back_rate=sides[not less][0],
        back_queue=sides[not less][1],
        back_peak_bps=_peak(capture, found.less != less),
        pieces=pieces,
        less=less,
        uploads=_uploads(capture, found.less == less),
        goodput_bps=_goodput(main, pieces, less, duration),
        back_goodput_bps=_goodput(back, pieces, not less, duration),
        quic=others.quic_share(capture),
        cut_short=capture.notes["cut_short"] is not None,
        read=captures.told(capture),
    )


def _peak(capture: Capture, mine: Any) -> float:
    if not len(capture):
        return 0.0
    windows = np.bincount(
        (capture.seconds[mine] / _PEAK_S).astype(int), 8 * capture.columns["size"][mine].astype(float)
    )
    return float(windows.max(initial=0.0)) / _PEAK_S


def _uploads(capture: Capture, mine: Any) -> bool | None:
    """Returns whether the packets of a direction go from private addresses to public ones; `None` if neither way."""
    if not len(capture) or not mine.any():
        return None

    out = np.array(
        [captures.is_private(flow.source) and not captures.is_private(flow.destination) for flow in capture.flows]
    )
    home = np.array(
        [captures.is_private(flow.destination) and not captures.is_private(flow.source) for flow in capture.flows]
    )
    flow, against = capture.column("flow")[mine], capture.column("back")[mine] == 1
    leaves, comes = np.where(against, home[flow], out[flow]), np.where(against, out[flow], home[flow])
    most = 0.9
    return True if leaves.mean() > most else False if comes.mean() > most else None


def _waited(sides: Sequence[tuple[Rate, Queue]]) -> Callable[[Floats, bool], Floats]:
    """Returns a function that tells how long packets of a direction waited before they were captured."""

    def waited(t: Floats, less: bool) -> Floats:
        queue = sides[less][1]
        return np.interp(t, queue.delay.t, queue.delay.x) if queue.at_home and len(queue.delay) else np.zeros(len(t))

    return waited


def _goodput(main: Sequence[Stream], pieces: Sequence[others.Piece], less: bool, duration: float) -> float:
    tcp = sum(8 * stream.size_bytes for stream in main)
    rest = 0.0
    for piece in pieces:
        if piece.less == less:
            size = float(np.average(piece.sizes, weights=piece.weights))
            rest += piece.bps * (piece.stop_s - piece.start_s) * size / (size + 28)
    return (tcp + rest) / duration if duration else 0.0


def _sides(
    capture: Capture, found: captures.Directions, every: Sequence[Stream], rate_bps: float | None
) -> list[tuple[Rate, Queue]]:
    """Returns rate and queue of both directions, that with more bytes first."""
    sides = [_side(capture, found, every, less, rate_bps, False) for less in (False, True)]
    for less in (False, True):
        (_, queue), (other, behind) = sides[less], sides[not less]
        # The queue of the other direction is before the place of the capture: ACKs of this one wait in it.
        if other.is_spacing and behind.at_home and not queue.at_home:
            sides[less] = _side(capture, found, every, less, rate_bps, True)
    return sides


def _side(
    capture: Capture,
    found: captures.Directions,
    every: Sequence[Stream],
    less: bool,
    rate_bps: float | None,
    explained: bool,
) -> tuple[Rate, Queue]:
    """Returns rate and queue of the bottleneck of one direction."""
    passed = (capture.columns["dropped"] == 0) & (found.less == less)
    t, size = capture.seconds[passed], capture.columns["size"][passed].astype(float)
    mine = [stream for stream in every if stream.less == less]
    if len(t) < 2:
        return links.Rate(0.0, 0.0, 0.0, 0.0), links.Queue(links.NOTHING, (), True, 0.0, 0.0)
    rate = links.spacing(t, size)
    queue = links.queue(mine, t, size, rate, explained)
    if not (rate.is_spacing and queue.at_home):
        new = _without_repeats(mine, t, size)
        busy = links.plateau(t, new, queue.delay)
        rate = busy if busy.bps > 0 or not rate.is_regular else rate
    if rate_bps is not None:
        rate = links.Rate(rate_bps, rate.spaced, rate.faster, links.full_share(t, size, rate_bps))
    return rate, queue


def _without_repeats(mine: Sequence[Stream], t: Any, size: Any) -> Any:
    """Returns the sizes without those of segments that are sent again, which the link before had dropped."""
    new = size.copy()
    for stream in mine:
        share = stream.again_bytes / max(stream.again, 1)
        np.subtract.at(new, np.minimum(np.searchsorted(t, stream.lost), len(t) - 1), share)
    return np.maximum(new, 0.0)


def scenario(
    seen: Observed,
    limit: str | None = None,
    tcp: Mapping[str, Any] = LINUX,
    in_place: Mapping[str, Any] | None = None,
    back_in_place: str = "droptail",
) -> dict[str, Any]:
    """Returns the scenario of a capture, with hosts of `tcp`, under drop-tail or the discipline that is `in_place`.

    `back_in_place` is the discipline of the other direction.

    The delay of the link is the least on the way beyond the place of the capture, as a gateway sees it; the rest of
    each round trip is at the sender.
    """
    bases = _bases(seen.main, seen.queue)
    known = [base for base in bases.values() if base > 0]
    beyond = [float(stream.away.x.min()) / 2 for stream in seen.main if len(stream.away)]
    delay_s = min([*beyond, *(base / 2 for base in known)], default=0.001)
    typical = float(np.median(known)) if known else 0.05
    losses = _losses(seen)
    flows = _flows(seen, bases, delay_s, typical, losses)
    rate, back = round(seen.rate.bps), round(seen.back_bps)
    uneven = rate > 0 and abs(back / rate - 1) > _SAME
    bottleneck = {
        "name": "bottleneck",
        "a": LEFT,
        "b": RIGHT,
        "rate": f"{rate}bit/s",
        **({"reverse_rate": f"{back}bit/s"} if uneven else {}),
        "delay": _seconds(delay_s),
        "limit": limit or ("1000p" if in_place else f"{seen.limit_bytes}B"),
        "reverse_limit": seen.back_limit if back_in_place == "droptail" else "1000p",
        "aqm": dict(in_place or {"name": "droptail"}),
        "reverse_aqm": {"name": back_in_place},
        **({"stations": losses[1]} if losses else {}),
    }
    lossy = {"link": "bottleneck", "at": "0s", "direction": "reverse", "loss": round(seen.back_lost_behind, 4)}
    return {
        "name": f"what-if-{seen.path.stem}",
        "duration": f"{max(math.ceil(seen.duration_s * 1000) / 1000, 0.001):g}s",
        "topology": {
            "kind": "graph",
            "access_rate": f"{max(10 * rate, 10 * back, 100_000_000)}bit/s",
            "access_delay": "0s",
            "links": [bottleneck],
        },
        "tcp": dict(tcp),
        **({"changes": [lossy]} if _is_lossy(seen.back, seen.back_queue) else {}),
        "flows": sorted(flows, key=lambda flow: float(flow.get("start", "0s")[:-1])),
        "output": {"series": False},
    }


def _flows(
    seen: Observed, bases: Mapping[int, float], delay_s: float, typical_s: float, losses: _Losses | None
) -> list[dict[str, Any]]:
    """Returns the flows of both directions; `bases` are the round trips of those in the asked one."""
    flows: list[dict[str, Any]] = []
    for against, found in ((False, bases), (True, _bases(seen.back, seen.back_queue))):
        for stream in seen.back if against else seen.main:
            base = max(found[stream.index] or typical_s, 2 * delay_s)
            of_station = {"class": losses[0][stream.index]} if losses and not against else {}
            flows += [flow | of_station for flow in _transfers(stream, base, delay_s, against)]
    lost = max(seen.loss - seen.lost_behind, 0.0) if seen.queue.at_home else 0.0
    for piece in seen.pieces:
        against = piece.less != seen.less
        flow = piece.flow(0.0 if against else lost)
        steady = {"class": len(losses[1]) - 1} if losses and not against else {}
        flows.append(flow | _ends(against) | steady)
    return flows


def with_discipline(scenario: Mapping[str, Any], discipline: str) -> dict[str, Any]:
    """Returns the scenario of a capture with another discipline in the asked direction."""
    topology = scenario["topology"]
    [link] = topology["links"]
    return {**scenario, "topology": {**topology, "links": [{**link, "aqm": {"name": discipline}}]}}


def _losses(seen: Observed) -> _Losses | None:
    """Returns the class of each stream, and the losses of the classes behind the queue; `None` if there are hardly any.

    Each stream has its own; datagrams, of which nobody knows, have the mean.
    """
    if not _is_lossy(seen.main, seen.queue):
        return None
    shares = [round(seen.lost_of(stream) / max(stream.segments, 1), 4) for stream in seen.main]
    return {stream.index: at for at, stream in enumerate(seen.main)}, [*shares, round(seen.lost_behind, 4)]


def _bases(streams: Sequence[Stream], queue: Queue) -> dict[int, float]:
    return dict(zip([stream.index for stream in streams], queue.base_s, strict=True))


def _ends(against: bool) -> dict[str, str]:
    return {"from": RIGHT, "to": LEFT} if against else {"from": LEFT, "to": RIGHT}


def _seconds(value: float) -> str:
    return f"{value:.6f}s"


def _transfers(stream: Stream, base_s: float, delay_s: float, against: bool) -> list[dict[str, Any]]:
    """Returns a flow for each burst of a stream. Who sends it opens it, and its first data comes a round trip later."""
    found = []
    for number, burst in enumerate(stream.bursts):
        if number == 0 and stream.has_begin and stream.opens:
            start = stream.syn_s - base_s / 2
        else:
            start = burst.start_s - 1.5 * base_s
        is_first = number == 0 and not stream.has_begin
        kind = {"kind": "transfer", "size": f"{burst.size_bytes}B"} if burst.is_complete else {"kind": "bulk"}
        window = stream.window_bytes
        found.append(
            {
                **kind,
                "start": _seconds(0.0 if is_first else max(start, 0.0)),
                "start_spread": _SPREAD,
                "access_delay": _seconds(base_s / 2 - delay_s),
                "tcp": {
                    "mss": f"{stream.mss}B",
                    "ack_every_segment": stream.segments_per_ack < _DELAYED,
                    **({"receive_buffer": f"{window}B"} if 0 < window < _MOST_WINDOW else {}),
                    **({"ecn": True} if stream.capable else {}),
                },
                **_ends(against),
            }
        )
    return found
