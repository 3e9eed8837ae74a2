"""Records that are appended one after another, such as the results of thousands of runs: a file for each writer.

A record has a key of 32 bytes and a content. It is written in one step and never changed; a kill in the middle of a
write leaves a part of the last record, which readers leave out. Writing a record waits for no disk: `sync` lets all of
them survive a loss of power at once. A new writer begins a new file.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from penstock.store import files
from penstock.store.disk import here
from penstock.store.files import explained
from penstock.store.locks import held, parents
from penstock.store.names import StoreError

SUFFIX = ".segment"
KEY_BYTES = 32
_MAGIC = b"penstock-records-1\n"
_HEADER = struct.Struct(f"<II{KEY_BYTES}s")  # length of the content, CRC-32 of key and content, key


class Segment:
    """A file to which records are appended. Only its writer knows it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = here.disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        self._write(_MAGIC)

    def append(self, records: list[tuple[bytes, bytes]]) -> None:
        """Writes records, each a key and a content, in one step."""
        with explained(self.path):
            self._write(b"".join(_HEADER.pack(len(data), _sum(key, data), key) + data for key, data in records))

    def sync(self) -> None:
        """Lets all records survive a loss of power."""
        with explained(self.path):
            here.disk.sync(self._descriptor)

    def close(self) -> None:
        """Syncs and closes the file; removes it if it has no record."""
        try:
            if os.fstat(self._descriptor).st_size > len(_MAGIC):
                self.sync()
                files.sync_names(self.path.parent)
            else:
                here.disk.unlink(self.path)
        finally:
            os.close(self._descriptor)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[here.disk.write(self._descriptor, left) :]


@contextlib.contextmanager
def appending(directory: Path, writer: str) -> Iterator[Segment]:
    """Yields a new segment of `writer` in a directory, whose lock it holds: two cannot write under one name."""
    place = directory / writer
    with held(place):
        with explained(directory):
            parents(place)
            segment = Segment(directory / f"{writer}-{_next(directory, writer):04}{SUFFIX}")
        try:
            yield segment
        finally:
            with explained(segment.path):
                segment.close()


def _next(directory: Path, writer: str) -> int:
    taken = (path.stem.removeprefix(f"{writer}-") for path in directory.glob(f"{writer}-*{SUFFIX}"))
    return max((int(number) for number in taken if number.isdigit()), default=0) + 1


def records(directory: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yields key and content of all whole records in a directory. A key may come twice, with equal meaning."""
    if not directory.is_dir():
        return
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        yield from _of(path)


def _of(path: Path) -> Iterator[tuple[bytes, bytes]]:
    try:
        with path.open("rb") as file:
            if (first := file.read(len(_MAGIC))) != _MAGIC:
                if _MAGIC.startswith(first):  # its writer was killed at once
                    return
                raise StoreError(f"{path}: holds no records of this version; remove it")
            while len(header := file.read(_HEADER.size)) == _HEADER.size:
                length, total, key = _HEADER.unpack(header)
                data = file.read(length)
                if len(data) < length or _sum(key, data) != total:
                    return  # the write was cut off, or the rest is damaged: those runs are run again
                yield key, data
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from None


def _sum(key: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(key))
