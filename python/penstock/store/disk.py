"""The steps by which the store changes the disk, one method for each. No other module of the package changes it.

Tests put another `Disk` in place of `here.disk`, which fails or ends the process at any step.
"""

from __future__ import annotations

import errno
import os
from functools import cache
from pathlib import Path
from typing import Any

_EXCHANGE = 2  # RENAME_EXCHANGE of <linux/fs.h>
_AT_FDCWD = -100  # AT_FDCWD of <fcntl.h>
# What file systems answer that know no exchange, or no synchronization of directories.
UNKNOWN = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP})


class Disk:
    """The operating system."""

    def open(self, path: Path, flags: int) -> int:
        """Opens a file, and creates it if the flags say so."""
        return os.open(path, flags | os.O_CLOEXEC, 0o666)

    def write(self, descriptor: int, data: memoryview) -> int:
        """Writes the beginning of the data, at least a byte; returns how much."""
        return os.write(descriptor, data)

    def truncate(self, descriptor: int) -> None:
        """Empties an open file."""
        os.ftruncate(descriptor, 0)

    def sync(self, descriptor: int) -> None:
        """Returns when the content of a file, or the names in a directory, would survive a loss of power."""
        os.fsync(descriptor)

    def replace(self, old: Path, new: Path) -> None:
        """Gives a file or a directory another name. A file of that name, or an empty directory, is replaced."""
        old.replace(new)

    def exchange(self, one: Path, other: Path) -> None:
        """Exchanges two names in one step; raises an `OSError` of `UNKNOWN` where that is not possible."""
        call = _renameat2()
        if call is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(one))
        import ctypes

        if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(one), None, str(other))

    def link(self, old: Path, new: Path) -> None:
        """Gives a file a second name, which must be free."""
        os.link(old, new, follow_symlinks=False)

    def symlink(self, to: Path, path: Path) -> None:
        """Makes a symbolic link."""
        path.symlink_to(to)

    def make(self, path: Path) -> None:
        """Makes a directory."""
        path.mkdir()

    def unlink(self, path: Path) -> None:
        """Removes the name of a file."""
        path.unlink()

    def remove(self, path: Path) -> None:
        """Removes an empty directory."""
        path.rmdir()


class Here:
    """The disk that the store uses."""

    disk = Disk()


here = Here()


@cache
def _renameat2() -> Any:
    """Returns the function of the C library; `None` if it has none."""
    import ctypes  # takes as long to load as all of the store

    found = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return found
