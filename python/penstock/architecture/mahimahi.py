"""Recorded links in the form of Mahimahi: each line is a millisecond at which one packet of 1500 B can go.

The simulator's links have a rate that changes, and no list of chances. A trace becomes the rates at which as many
packets go in each stretch of at least `bin_ms`. A stretch without a chance joins the next that has one, so a link never
stands still for longer than the trace does. Like the original, the trace begins again when it ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.mistake import MistakeError

PACKET_BITS = 1500 * 8


class TraceFormatError(MistakeError):
    """The file is not a trace of Mahimahi."""


def read(path: Path) -> list[int]:
    """The milliseconds of a trace, in order."""
    chances = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        if not line.strip().isdecimal():
            raise TraceFormatError(f"{path}:{number}: {line.strip()!r} is not a whole number of milliseconds")
        chances.append(int(line))
        if len(chances) > 1 and chances[-1] < chances[-2]:
            raise TraceFormatError(f"{path}:{number}: {chances[-1]} ms comes before {chances[-2]} ms")
    if not chances or not chances[-1]:
        raise TraceFormatError(f"{path}: needs a packet later than 0 ms")
    return chances


def rates(chances: list[int], bin_ms: int = 100) -> list[tuple[int, int]]:
    """Milliseconds and, from there on, bits per second."""
    made: list[tuple[int, int]] = []
    begin, packets = 0, 0
    for index, at in enumerate(chances):
        packets += 1
        last = index == len(chances) - 1
        # A stretch ends with a packet, and all packets of one millisecond belong to it.
        if last or (at - begin >= bin_ms and chances[index + 1] > at):
            made.append((begin, packets * PACKET_BITS * 1000 // (at - begin)))
            begin, packets = at, 0
    return made


def changes(link: str, path: Path, bin_ms: int = 100, direction: str = "both") -> list[dict[str, Any]]:
    """The `[[changes]]` that give a link the rates of a trace, again and again. Its discipline is told of each."""
    chances = read(path)
    every = f"{chances[-1]}ms"
    return [
        {"link": link, "at": f"{at}ms", "every": every, "direction": direction, "rate": f"{bps}bit/s"}
        for at, bps in rates(chances, bin_ms)
    ]
