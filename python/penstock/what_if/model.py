"""From a capture to a scenario: what its link, its transfers and its datagrams are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    pieces: tuple[others.Piece, ...] = field(repr=False)
    less: bool  # the bottleneck is in the direction with fewer bytes
    goodput_bps: float
    quic: float
    cut_short: bool

    @property
    def loss(self) -> float:
        """The share of segments that were sent again."""
        return _loss(self.main)

    @property
    def limit_bytes(self) -> int:
        """The limit of the queue, if packets were lost; what fits into the largest delay."""
        return _limit(self.rate, self.queue)

    @property
    def back_limit(self) -> str:
        """The limit of the queue of the other direction; the simulator's if that has not lost packets in its queue."""
        lossy = _loss(self.back) > 0 and self.back_rate.full > 0
        return f"{_limit(self.back_rate, self.back_queue)}B" if lossy else "1000p"


def _loss(streams: Sequence[Stream]) -> float:
    segments = sum(stream.segments for stream in streams)
    return sum(stream.again for stream in streams) / segments if segments else 0.0


def _limit(rate: Rate, queue: Queue) -> int:
    return int(queue.quantile(0.999) * rate.bps / 8) + _PACKET


def observe(path: Path, rate_bps: float | None = None, direction: str = "") -> Observed:
    """Reads a capture. `rate_bps` is the rate of the link, if it is known, `direction` that which is asked about."""
    capture = captures.read(path)
    if len(capture) and not capture.has_hosts:
        raise MistakeError(f"{path}: a CSV file has no hosts and no headers; what-if needs a pcap or pcapng capture")
    found = captures.directions(capture)
    every = list(streams(capture, found.less, _SMALL)) if len(capture) else []
    sides = [_side(capture, found, every, less, rate_bps) for less in (False, True)]
    weights = [rate.full * queue.quantile(0.9) for rate, queue in sides]
    less = direction == "less" if direction else weights[1] > 2 * weights[0]
    rate, queue = sides[less]
    main = tuple(stream for stream in every if stream.less == less)
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
        back=tuple(stream for stream in every if stream.less != less),
        back_rate=sides[not less][0],
        back_queue=sides[not less][1],
        pieces=pieces,
        less=less,
        goodput_bps=_goodput(main, pieces, less, duration),
        quic=others.quic_share(capture),
        cut_short=capture.notes["cut_short"] is not None,
    )


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


def _side(
    capture: Capture, found: captures.Directions, every: Sequence[Stream], less: bool, rate_bps: float | None
) -> tuple[Rate, Queue]:
    """Returns rate and queue of the bottleneck of one direction."""
    passed = (capture.columns["dropped"] == 0) & (found.less == less)
    t, size = capture.seconds[passed], capture.columns["size"][passed].astype(float)
    mine = [stream for stream in every if stream.less == less]
    if len(t) < 2:
        return links.Rate(0.0, 0.0, 0.0, 0.0), links.Queue(links.NOTHING, (), True, 0.0, 0.0)
    rate = links.spacing(t, size)
    queue = links.queue(mine, t, size, rate)
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


def scenario(seen: Observed, limit: str | None = None, cc: str = "cubic-linux") -> dict[str, Any]:
    """Returns the scenario of a capture under drop-tail.

    The delay of the link is the least on the way beyond the place of the capture, as a gateway sees it; the rest of
    each round trip is at the sender.
    """
    bases = _bases(seen.main, seen.queue)
    known = [base for base in bases.values() if base > 0]
    beyond = [float(stream.away.x.min()) / 2 for stream in seen.main if len(stream.away)]
    delay_s = min([*beyond, *(base / 2 for base in known)], default=0.001)
    typical = float(np.median(known)) if known else 0.05
    flows: list[dict[str, Any]] = []
    for against, found in ((False, bases), (True, _bases(seen.back, seen.back_queue))):
        for stream in seen.back if against else seen.main:
            base = max(found[stream.index] or typical, 2 * delay_s)
            flows += _transfers(stream, base, delay_s, against)
    lost = seen.loss if seen.queue.at_home else 0.0
    for piece in seen.pieces:
        against = piece.less != seen.less
        flow = piece.flow(0.0 if against else lost)
        flows.append(flow | ({"direction": "reverse"} if against else {}))
    rate, back = round(seen.rate.bps), seen.back_rate
    uneven = back.is_spacing and abs(back.bps / rate - 1) > _SAME
    other = {"link": "bottleneck", "at": "0s", "direction": "reverse", "rate": f"{round(back.bps)}bit/s"}
    return {
        "name": f"what-if-{seen.path.stem}",
        "duration": f"{max(math.ceil(seen.duration_s * 1000) / 1000, 0.001):g}s",
        "topology": {
            "kind": "dumbbell",
            "rate": f"{rate}bit/s",
            "delay": _seconds(delay_s),
            "limit": limit or f"{seen.limit_bytes}B",
            "reverse_limit": seen.back_limit,
            "access_rate": f"{max(10 * rate, 100_000_000)}bit/s",
            "access_delay": "0s",
        },
        "aqm": {"name": "droptail"},
        "tcp": {"cc": cc},
        **({"changes": [other]} if uneven else {}),
        "flows": sorted(flows, key=lambda flow: float(flow.get("start", "0s")[:-1])),
        "output": {"series": False},
    }


def _bases(streams: Sequence[Stream], queue: Queue) -> dict[int, float]:
    return dict(zip([stream.index for stream in streams], queue.base_s, strict=True))


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
                },
                **({"direction": "reverse"} if against else {}),
            }
        )
    return found
