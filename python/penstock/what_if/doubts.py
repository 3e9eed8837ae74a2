"""Why a capture does not decide: each reason is one sentence that says what is missing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.what_if.model import Observed
    from penstock.what_if.outcome import Outcome

LEAST_S = 5.0  # a shorter capture shows no more than how flows begin
MOST_QUIC, SOME_QUIC = 0.5, 0.1
LEAST_FULL = 0.05  # share of the time in which the link is full
_FEW = 10  # samples of round trips
# What the simulation of the capture may differ from the capture.
DELAY, GOODPUT = 1.4, 1.15
# What one direction may differ: with traffic both ways behind full queues little decides which of them has more.
ONE_WAY, BOTH_WAYS = 1.4, 1.25
_SOME = 0.1  # of its rate: traffic of the other direction that counts
_IDLE = 1e-3
LOSSES, MANY_LOST = 4.0, 0.005  # a factor, and a difference of shares, if both are exceeded
# Datagrams that take so much of the rate in so many of the seconds fill the link.
_FILL, _SECONDS = 0.85, 0.2
_SHORT_S = 0.002  # a delay is compared above this


def of_capture(seen: Observed) -> Iterator[str]:
    """Yields why a capture does not decide, before anything is simulated."""
    if seen.duration_s < LEAST_S:
        yield f"it is {seen.duration_s:.1f} s long; {LEAST_S:.0f} s are the least, and a minute is better"
    if seen.quic > MOST_QUIC:
        yield (
            f"{seen.quic:.0%} of its bytes are QUIC, whose acknowledgments are encrypted: neither round trips nor "
            "losses can be read from it"
        )
    elif not seen.main:
        yield "it has no TCP connection with more than 3 kB of data"
    elif not any(len(stream.away) for stream in seen.main):
        yield "it has one direction only: the acknowledgments of its data are missing, and with them all round trips"
    elif seen.rate.full < LEAST_FULL:
        yield from _not_full(seen)
    elif seen.queue.at_home and (share := filled(seen)) > _SECONDS:
        yield (
            f"datagrams fill the link in {share:.0%} of the time: how many more were sent, and dropped before the "
            "place of the capture, is not in it"
        )
    elif sum(len(half) for stream in seen.main for half in (stream.home,)) < _FEW and not _beyond(seen):
        yield (
            "its connections have no timestamps (RFC 7323), so the time that packets waited before they came to the "
            "place of the capture cannot be read"
        )
    elif not seen.rate.is_spacing and seen.queue.other_spread_s > seen.queue.spread_s / 2:
        yield (
            f"both halves of the round trips change, by {seen.queue.spread_s * 1e3:.0f} and "
            f"{seen.queue.other_spread_s * 1e3:.0f} ms, and packets have not the spacing of a link: whether it was "
            "taken before or behind the bottleneck is open"
        )


def filled(seen: Observed) -> float:
    """Returns the share of seconds in which datagrams alone nearly fill the link."""
    seconds = max(int(seen.duration_s), 1)
    bits = [0.0] * seconds
    for piece in seen.pieces:
        if piece.less == seen.less:
            for second in range(int(piece.start_s), min(math.ceil(piece.stop_s), seconds)):
                bits[second] += piece.bps * (min(piece.stop_s, second + 1) - max(piece.start_s, second))
    return sum(one >= _FILL * seen.rate.bps for one in bits) / seconds


def marked(seen: Observed) -> str:
    """Returns why a capture with marks of ECN does not decide."""
    return (
        f"{seen.marks} of its packets carry marks of ECN, or tell of them: a discipline is in place already, and none "
        "of those that were tried behaves as the capture"
    )


def _beyond(seen: Observed) -> bool:
    return not seen.queue.at_home


def _not_full(seen: Observed) -> Iterator[str]:
    if seen.rate.bps <= 0:
        yield (
            "no link is seen to be full: packets have not its spacing, and no queue stays; give --rate, or record "
            "while the link is busy"
        )
    else:
        yield (
            f"the link of {seen.rate.bps / 1e6:.3g} Mbit/s is full in {seen.rate.full:.0%} of the time only: there is "
            "hardly a queue that a discipline could manage; record while the link is busy"
        )


def of_model(seen: Observed, as_it_is: Outcome) -> Iterator[str]:
    """Yields why the simulation under drop-tail is not what the capture shows."""
    for name, quantile in (("p50", 0.5), ("p90", 0.9)):
        there, here = seen.queue.quantile(quantile), as_it_is.delay_ms[name].median / 1e3
        if name == "p90" and apart(there, here) > math.log(DELAY):
            yield (
                f"the simulation of the capture as it is has a queueing delay of {here * 1e3:.0f} ms ({name}) and the "
                f"capture {there * 1e3:.0f} ms: the queue is not drop-tail, or its flows are not what they seem"
            )
    there, here = seen.carried, as_it_is.carried.median
    both = seen.back_goodput_bps > _SOME * seen.back_bps
    if abs(math.log(max(there, _IDLE) / max(here, _IDLE))) > math.log(BOTH_WAYS if both else GOODPUT):
        yield (
            f"the simulation of the capture as it is carries {here:.2f}, as the sum of both directions' shares of "
            f"their rates, and the capture {there:.2f}: its flows are not what they seem"
        )
    there, here = seen.goodput_bps, as_it_is.goodput_bps.median
    if abs(math.log(max(there, 1) / max(here, 1))) > math.log(ONE_WAY):
        yield (
            f"the simulation of the capture as it is carries {here / 1e6:.3g} Mbit/s and the capture {there / 1e6:.3g} "
            "Mbit/s: its flows are not what they seem"
        )
    yield from _of_the_rest(seen, as_it_is)


def _of_the_rest(seen: Observed, as_it_is: Outcome) -> Iterator[str]:
    """Yields whether as much is lost as in the capture."""
    there, here = seen.loss, as_it_is.sent_again.median
    if abs(there - here) > MANY_LOST and not 1 / LOSSES < (there + 1e-4) / (here + 1e-4) < LOSSES:
        yield (
            f"the simulation of the capture as it is sends {here:.2%} of its segments again and the capture "
            f"{there:.2%}: its senders are not what they seem"
        )


def apart(one: float, other: float) -> float:
    """Returns how far two delays in seconds are apart, as a logarithm; short ones are equal."""
    return abs(math.log(max(one, _SHORT_S) / max(other, _SHORT_S)))


def notes(seen: Observed) -> Sequence[str]:
    """Returns what a reader of the answer must know, though it decides nothing."""
    found = []
    if seen.cut_short:
        found.append("the capture was cut short; what is whole was read")
    if seen.how:
        found.append(f"directions are told apart {seen.how}; the bottleneck is in that with {_bytes(seen)} bytes")
    if SOME_QUIC < seen.quic <= MOST_QUIC:
        found.append(f"{seen.quic:.0%} of the bytes are QUIC; they are sent as recorded and do not react")
    if seen.loss == 0:
        found.append("no packet was lost, so the limit of the queue is a guess: at least what waited")
    return found


def _bytes(seen: Observed) -> str:
    return "fewer" if seen.less else "more"
