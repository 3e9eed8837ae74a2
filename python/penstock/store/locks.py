"""Locks: one writer at a time. A lock ends with its process, however that ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from penstock.store.disk import here
from penstock.store.names import LOCK, StoreError, beside, real

_WITHOUT = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP})  # the file system has no locks


class HeldError(StoreError):
    """Another command writes the place. The text says which."""


@contextlib.contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Holds the lock of a place while the block runs.

    If another process or thread has it, waits for it, or raises `HeldError`.
    """
    path = real(path)
    file = beside(path, LOCK)
    try:
        parents(path)
        descriptor = opened_alone(file, wait=wait, shown=path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        with contextlib.suppress(OSError):  # on a full disk nobody is told who has the lock
            here.disk.truncate(descriptor)
            here.disk.write(descriptor, memoryview(f"{os.getpid()} {_command()}".encode()))
        yield
    finally:
        with contextlib.suppress(OSError):
            here.disk.unlink(file)  # while it is locked: whoever waits for it notices that its name is gone
        os.close(descriptor)


def opened_alone(file: Path, *, wait: bool, shown: Path) -> int:
    """Opens a file, creates it if there is none, and locks it. Returns its descriptor; the lock ends when it is closed.

    If another one has the lock, waits for it, or raises `HeldError` about `shown`.
    """
    while True:
        descriptor = here.disk.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        try:
            _lock(descriptor, wait)
            if _is_still(file, descriptor):
                return descriptor
        except BlockingIOError:
            holder = os.read(descriptor, 200).decode(errors="replace")
            os.close(descriptor)
            raise HeldError(_told(shown, holder)) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def parents(path: Path) -> None:
    """Makes the directories above a place that are missing."""
    missing = [parent for parent in path.parents if not parent.exists()]
    for parent in reversed(missing):
        with contextlib.suppress(FileExistsError):
            here.disk.make(parent)


def _lock(descriptor: int, wait: bool) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in _WITHOUT:
            raise


def _is_still(file: Path, descriptor: int) -> bool:
    """Returns false if the name was removed or replaced before the lock was there."""
    try:
        return os.path.samestat(file.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _told(path: Path, holder: str) -> str:
    process, _, command = holder.partition(" ")
    who = f"process {process} ({command})" if command else "another process"
    return f"{path}: {who} is writing it; wait until it ends, or name another place"


def _command() -> str:
    return " ".join(["penstock", *sys.argv[1:]])[:150]
