"""Captures of several links as one: the blocks that `penstock-emulate --pcapng` wrote, in the order of time."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_NAME = 2  # option of the block of an interface
_WAYS = ("forward", "reverse")


def joined(links: Sequence[tuple[str, Path]], wanted: Collection[str]) -> bytes:
    """Returns the packets of links (name, file) as one capture, in which a queue has the name that it has in summaries.

    If any are `wanted`, it has only those. The times are the emulator's: those of the calendar.
    """
    numbers: list[dict[int, int]] = []
    heads: list[bytes] = []
    for name, file in links:
        kept: dict[int, int] = {}
        for at, (way, description) in enumerate(zip(_WAYS, _described(file), strict=True)):
            queue = name if way == "forward" else f"{name}-reverse"
            if not wanted or queue in wanted:
                kept[at] = len(heads)
                heads.append(_named(description, queue))
        numbers.append(kept)
    out = bytearray(_begin(links[0][1]))
    for head in heads:
        out += _block(_INTERFACE, head)
    files = [_packets(file, kept) for (_, file), kept in zip(links, numbers, strict=True)]
    for _, body in heapq.merge(*files, key=lambda packet: packet[0]):
        out += _block(_PACKET, body)
    return bytes(out)


def _blocks(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yields type and body of each block."""
    with file.open("rb") as source:
        while head := source.read(8):
            kind, length = struct.unpack("<II", head)
            body = source.read(length - 8)
            yield kind, body[:-4]


def _block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def _begin(file: Path) -> bytes:
    return next(_block(kind, body) for kind, body in _blocks(file) if kind == _SECTION)


def _described(file: Path) -> list[bytes]:
    """Returns the bodies of the blocks of both interfaces, which stand before all packets."""
    found: list[bytes] = []
    for kind, body in _blocks(file):
        if kind == _INTERFACE:
            found.append(body)
        if len(found) == len(_WAYS):
            break
    return found


def _named(description: bytes, queue: str) -> bytes:
    """Returns the body of an interface with another name."""
    kept, at = description[:8], 8
    while at + 4 <= len(description):
        code, length = struct.unpack_from("<HH", description, at)
        end = at + 4 + (length + 3) // 4 * 4
        option = description[at:end]
        if code == _NAME:
            name = queue.encode()
            option = struct.pack("<HH", _NAME, len(name)) + name + bytes(-len(name) % 4)
        kept, at = kept + option, end
    return kept


def _packets(file: Path, numbers: dict[int, int]) -> Iterator[tuple[int, bytes]]:
    """Yields time and body of each packet of the interfaces that have a new number."""
    for kind, body in _blocks(file):
        if kind == _PACKET:
            interface, high, low = struct.unpack_from("<III", body)
            if interface in numbers:
                yield high << 32 | low, struct.pack("<I", numbers[interface]) + body[4:]
