"""What is not TCP in a capture: datagrams as pieces of constant rate, which do not react to the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.capture import TCP, UDP, Capture

if TYPE_CHECKING:
    from penstock.what_if.streams import Choice, Floats

QUIC_PORT = 443
_PAUSE_S = 1.0  # a longer gap ends a piece
_FEW = 5  # packets; fewer are left out, such as requests of names
_MANY = 20  # packets that show whether they are sent regularly
_BEGIN, _SOME = 200, 3000  # packets with which their period is found roughly, and finely
_IN_PHASE = 0.4
_UNEVEN = 0.3  # deviation of the rates of seconds, as a share of their mean, above which each second is a piece
_HEADERS = 28  # bytes of the headers of IPv4 and UDP
_SIZES = 4  # sizes of packets that a piece keeps


@dataclass(frozen=True)
class Piece:
    """Packets of one flow at a constant rate."""

    start_s: float
    stop_s: float
    bps: float  # of IP packets
    sizes: tuple[int, ...]  # payloads in bytes
    weights: tuple[int, ...]
    less: bool
    is_whole: bool  # the rate counts packets that were lost, too

    def flow(self, lost: float) -> dict[str, Any]:
        """Returns the piece as a flow of a scenario; `lost` is the share of packets that are missing."""
        mixed = {"packet_weights": list(self.weights)} if len(self.sizes) > 1 else {}
        sizes = [f"{size}B" for size in self.sizes]
        return {
            "kind": "cbr",
            "rate": f"{round(self.bps if self.is_whole else self.bps / (1 - lost))}bit/s",
            "packet_size": sizes if mixed else sizes[0],
            **mixed,
            "start": f"{self.start_s:.6f}s",
            "stop": f"{self.stop_s:.6f}s",
        }


def pieces(capture: Capture, less: Choice, waited: Callable[[Floats, bool], Floats]) -> Iterator[Piece]:
    """Finds the pieces of all flows that are not TCP. `waited` tells how long packets of a direction have waited."""
    passed = np.flatnonzero(capture.columns["dropped"] == 0)
    others = np.array([flow.protocol != TCP for flow in capture.flows], bool)
    passed = passed[others[capture.columns["flow"][passed]]]
    key = capture.column("flow")[passed] * 2 + less[passed]
    order = passed[np.argsort(key, kind="stable")]
    cuts = np.flatnonzero(np.diff(np.sort(key))) + 1
    for at in np.split(order, cuts):
        if len(at) >= _FEW:
            t, size = capture.seconds[at], capture.columns["size"][at].astype(float)
            yield from _of_flow(t, size, bool(less[at[0]]), waited)


def _of_flow(t: Floats, size: Floats, less: bool, waited: Callable[[Floats, bool], Floats]) -> Iterator[Piece]:
    for at in np.split(np.arange(len(t)), np.flatnonzero(np.diff(t) > _PAUSE_S) + 1):
        if len(at) < _FEW:
            continue
        for part in _even(t[at], size[at]):
            mine = t[at][part]
            yield _piece(mine, size[at][part], less, mine - waited(mine, less))


def _even(t: Floats, size: Floats) -> list[Any]:
    """Splits packets into seconds if their rate changes."""
    second = (t - t[0]).astype(int)
    rates = np.bincount(second, size)
    whole = rates[:-1] if len(rates) > 2 else rates
    if len(whole) < 3 or whole.std() <= _UNEVEN * whole.mean():
        return [np.arange(len(t))]
    return [part for part in np.split(np.arange(len(t)), np.flatnonzero(np.diff(second)) + 1) if len(part) > 1]


def _piece(t: Floats, size: Floats, less: bool, came: Floats) -> Piece:
    span = (t[-1] - t[0]) * len(t) / max(len(t) - 1, 1)
    found, counts = np.unique(size.astype(int), return_counts=True)
    if len(found) > _SIZES:
        cuts = np.quantile(size, [0.125, 0.375, 0.625, 0.875]).astype(int)
        found, counts = np.unique(cuts, return_counts=True)
    payloads = tuple(max(int(one) - _HEADERS, 1) for one in found)
    every = _every(came) if len(found) == 1 else None
    bps = float(found[0] * 8 / every) if every else float(size.sum() * 8 / max(span, 1e-3))
    return Piece(float(t[0]), float(t[0] + span), bps, payloads, tuple(map(int, counts)), less, every is not None)


def _every(t: Floats) -> float | None:
    """Returns the time between packets that are sent regularly, of which some may be missing; else `None`.

    It is the period with which the times are most in phase; missing packets do not change phases.
    """
    if len(t) < _MANY or (usual := float(np.median(np.diff(t)))) <= 0:
        return None
    first = t[:_BEGIN]
    rough = _period(first, usual * np.linspace(0.75, 1.25, 2 * _BEGIN))
    some = t[:_SOME]
    step = rough**2 / (some[-1] - some[0]) / 8
    width = rough**2 / (first[-1] - first[0])
    fine = _period(some, rough + np.arange(-width, width, step))
    return fine if _phase(some, fine) > _IN_PHASE else None


def _period(t: Floats, periods: Floats) -> float:
    return float(periods[int(np.argmax([_phase(t, period) for period in periods]))])


def _phase(t: Floats, period: float) -> float:
    """Returns how much times are in phase: 1 if all are multiples of the period, near 0 if they are random."""
    return float(np.abs(np.exp(2j * np.pi / period * t).mean()))


def quic_share(capture: Capture) -> float:
    """Returns the share of bytes that are QUIC, as far as ports tell."""
    quic = np.array(
        [one.protocol == UDP and QUIC_PORT in (one.source_port, one.destination_port) for one in capture.flows]
    )
    size = capture.column("size")
    return float(size[quic[capture.columns["flow"]]].sum() / size.sum()) if len(size) else 0.0
