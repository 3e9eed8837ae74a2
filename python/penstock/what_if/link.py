"""What a capture says of its bottleneck: the rate, where the capture was taken, the queue over time, and its limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.spacing import Peak, peak
from penstock.what_if.streams import Samples

if TYPE_CHECKING:
    from penstock.what_if.streams import Floats, Stream

_WINDOW_S, _FULL = 0.25, 0.95  # a window is full if it has so much of what the link can send
_LONG_S = 1.0  # windows before a queue, in which its changes count little
_MANY = 20  # samples that make a stream known
_NEIGHBOURS = 9
_CLOSE_S = 0.1  # samples of different streams that are so close are of the same queue
_LEAST_S = 1e-4
NOTHING = Samples(np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Rate(Peak):
    """The rate of a link in bits per second, and what speaks for it."""

    full: float  # share of windows that are full

    @property
    def is_spacing(self) -> bool:
        """True if the packets come from the queue of a link with this rate."""
        return self.is_regular and self.full > 0


@dataclass(frozen=True)
class Queue:
    """The queueing delay that segments had, and the round trip of each stream without it."""

    delay: Samples = field(repr=False)
    base_s: tuple[float, ...]  # of each stream; 0 if it is not known
    at_home: bool  # the queue is in the half before the place of the capture, so the capture is behind the bottleneck
    spread_s: float  # how much the half with the queue changes
    other_spread_s: float  # how much the other half changes

    def quantile(self, q: float) -> float:
        """Returns a quantile of the delay in seconds."""
        return float(np.quantile(self.delay.x, q)) if len(self.delay) else 0.0


def spacing(t: Floats, size: Floats) -> Rate:
    """Finds the rate at which packets are spaced most often. A time may be that of a packet's begin or of its end."""
    gap = np.diff(t)
    best = max((peak(gap, bits) for bits in (8 * size[:-1], 8 * size[1:])), key=lambda one: one.spaced)
    return Rate(best.bps, best.spaced, best.faster, full_share(t, size, best.bps))


def full_share(t: Floats, size: Floats, bps: float) -> float:
    """Returns the share of windows in which a link of this rate was busy."""
    windows = int(t[-1] / _WINDOW_S) if len(t) else 0
    if not windows or bps <= 0:
        return 0.0
    sent = np.bincount((t / _WINDOW_S).astype(int), 8 * size)[:windows]
    return float((sent >= _FULL * bps * _WINDOW_S).mean())


def plateau(t: Floats, size: Floats, queue: Samples) -> Rate:
    """Finds the rate of a link behind the place of the capture: what passes in windows in which its queue is long."""
    windows = int(t[-1] / _LONG_S) if len(t) else 0
    if windows < 3 or not len(queue):
        return Rate(0.0, 0.0, 0.0, 0.0)
    sent = np.bincount((t / _LONG_S).astype(int), 8 * size, windows + 1)[:windows] / _LONG_S
    long = np.quantile(queue.x, 0.9) / 2
    place = np.minimum((queue.t / _LONG_S).astype(int), windows)
    least = np.full(windows + 1, np.inf)
    np.minimum.at(least, place, queue.x)
    busy = np.isfinite(least[:windows]) & (least[:windows] > long / 2)
    if busy.sum() < 3:
        return Rate(0.0, 0.0, 0.0, 0.0)
    return Rate(float(np.median(sent[busy])), 0.0, 0.0, float(busy.mean()))


def queue(streams: Sequence[Stream], t: Floats, size: Floats, rate: Rate, explained: bool = False) -> Queue:
    """Finds in which half of the round trips the queue is, its delay over time, and the round trips without it.

    `t` and `size` are those of all packets in the direction of the data. The half is that before the place of the
    capture if the packets have the spacing of a link, and else the one which changes more. With `explained` the half
    behind it changes for another reason: ACKs wait in the queue of the other direction, which is before the place, too.
    """
    halves = {True: [stream.home for stream in streams], False: [stream.away for stream in streams]}
    spread = {at_home: _spread(samples) for at_home, samples in halves.items()}
    at_home = rate.is_spacing or explained or spread[True] >= spread[False]
    idle = empty(t, size, rate)
    with_queue, without = halves[at_home], halves[not at_home]
    nothing = Samples(idle, np.zeros(len(idle))) if at_home else NOTHING
    least = _bases(with_queue, nothing)
    found = _steady(_above(with_queue, least, nothing))
    base = tuple(
        (lowest + float(rest.x.min())) if len(one) and len(rest) else 0.0
        for one, lowest, rest in zip(with_queue, least, without, strict=True)
    )
    delay = Samples(t, np.interp(t, found.t, found.x)) if len(found) else NOTHING
    return Queue(delay, base, at_home, spread[at_home], spread[not at_home])


def empty(t: Floats, size: Floats, rate: Rate) -> Floats:
    """Returns the times of packets that found the link idle: the packet before had left it."""
    if not rate.is_spacing:
        return np.zeros(0)
    needed = np.maximum(size[:-1], size[1:]) * 8 / rate.bps
    return t[1:][np.diff(t) > 1.05 * needed]


def _spread(samples: Sequence[Samples]) -> float:
    """Returns how much the times of all streams change, each above its least; weighted by their numbers."""
    above = [one.x - one.x.min() for one in samples if len(one)]
    return float(np.quantile(np.concatenate(above), 0.75)) if above else 0.0


def _bases(samples: Sequence[Samples], nothing: Samples) -> list[float]:
    """Returns the time of each stream without a queue.

    The least time of a stream is too long if the queue was never empty while it lasted. The stream whose times change
    most has seen the queue empty, or nearly; others are compared with it, and then with all that are known, at equal
    times.
    """
    least = [float(one.x.min()) if len(one) else 0.0 for one in samples]
    known = [index for index, one in enumerate(samples) if len(one) >= _MANY]
    if not known:
        return least
    best = max(known, key=lambda index: float(np.quantile(samples[index].x, 0.9)) - least[index])
    seen = _above([samples[best]], [least[best]], nothing)
    for index in known:
        if index != best:
            least[index] = _compared(samples[index], least[index], seen)
    seen = _above([samples[index] for index in known], [least[index] for index in known], nothing)
    for index, one in enumerate(samples):
        if len(one) and index not in known:
            least[index] = _compared(one, least[index], seen)
    return least


def _compared(one: Samples, least: float, seen: Samples) -> float:
    """Returns the time of a stream without the delay that was seen at the same times."""
    if len(seen) < 2:
        return least
    at = np.clip(np.searchsorted(seen.t, one.t), 1, len(seen) - 1)
    close = np.minimum(np.abs(seen.t[at] - one.t), np.abs(one.t - seen.t[at - 1])) < _CLOSE_S
    if not close.any():
        return least
    there = np.interp(one.t[close], seen.t, seen.x)
    return max(min(least, float(np.quantile(one.x[close] - there, 0.25))), _LEAST_S)


def _above(samples: Sequence[Samples], least: Sequence[float], nothing: Samples) -> Samples:
    """Returns the delays of all streams over time."""
    parts = [Samples(one.t, np.maximum(one.x - base, 0.0)) for one, base in zip(samples, least, strict=True)]
    t, x = (np.concatenate([getattr(one, name) for one in [*parts, nothing]]) for name in ("t", "x"))
    order = np.argsort(t, kind="stable")
    return Samples(t[order], x[order])


def _steady(samples: Samples) -> Samples:
    """Returns medians of neighbouring samples: a sender that had nothing to send makes one sample too long."""
    if len(samples) < _NEIGHBOURS:
        return samples
    windows = np.lib.stride_tricks.sliding_window_view(samples.x, _NEIGHBOURS)
    edge = _NEIGHBOURS // 2
    return Samples(samples.t[edge:-edge], np.median(windows, axis=1))
