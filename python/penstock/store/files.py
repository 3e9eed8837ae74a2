"""Files: a reader sees the old content or the new one, whatever happens to the writer, and when."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from penstock.store.disk import UNKNOWN, here
from penstock.store.locks import opened_alone, parents
from penstock.store.names import NEW, StoreError, beside, is_special, real

Content = str | bytes


def write(path: Path, content: Content) -> None:
    """Writes a file as a whole: beside it, then in its place. A second writer waits for the first."""
    with explained(path):
        path = real(path)
        if is_special(path):
            path.write_bytes(_bytes(content))
            return
        if path.is_dir():
            raise StoreError(f"{path}: is a directory; name a file")
        parents(path)
        new = beside(path, NEW)
        descriptor = opened_alone(new, wait=True, shown=path)
        try:
            here.disk.truncate(descriptor)
            _fill(descriptor, content)
            _same_mode(descriptor, path)
            here.disk.replace(new, path)
        except BaseException:
            with contextlib.suppress(OSError):
                here.disk.unlink(new)
            raise
        finally:
            os.close(descriptor)
        sync_names(path.parent)


def create(path: Path, content: Content) -> None:
    """Writes a file as a whole; raises `FileExistsError` if the name is taken, also by a link to nothing."""
    with explained(path):
        new = beside(path, NEW)
        descriptor = opened_alone(new, wait=True, shown=path)
        try:
            here.disk.truncate(descriptor)
            _fill(descriptor, content)
            _link_or_put(new, path, content)
        finally:
            with contextlib.suppress(OSError):
                here.disk.unlink(new)
            os.close(descriptor)
        sync_names(path.parent)


def tidy(path: Path) -> None:
    """Removes what a `create` that was ended left beside its file."""
    with explained(path):
        new = beside(path, NEW)
        if new.exists():
            descriptor = opened_alone(new, wait=True, shown=path)
            try:
                here.disk.unlink(new)
            finally:
                os.close(descriptor)


def _link_or_put(new: Path, path: Path, content: Content) -> None:
    """Gives the file its name; writes it there on file systems without second names."""
    try:
        here.disk.link(new, path)
    except OSError as error:
        if error.errno not in UNKNOWN | {errno.EPERM}:
            raise
        put(path, content)


def put(path: Path, content: Content) -> None:
    """Writes a new file inside of a directory that nobody reads yet."""
    descriptor = here.disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        _fill(descriptor, content)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def receiving(path: Path) -> Iterator[Path]:
    """Yields the place beside `path` where another writer, such as the simulator, puts a file.

    At the end of the block it gets the name `path`, or is removed if the block failed. It has the ending of `path`.
    """
    path = real(path)
    if is_special(path):
        yield path
        return
    if path.is_dir():
        raise StoreError(f"{path}: is a directory; name a file")
    new = beside(path, NEW)
    with explained(path):
        lock = opened_alone(new, wait=False, shown=path)
    written = new.with_name(new.name + path.suffix)
    try:
        yield written
        with explained(path):
            adopt(written, path)
    except BaseException:
        with contextlib.suppress(OSError):
            here.disk.unlink(written)
        raise
    finally:
        with contextlib.suppress(OSError):
            here.disk.unlink(new)
        os.close(lock)


def adopt(written: Path, path: Path) -> None:
    """Moves a complete file, which another program wrote on the same file system, to its place."""
    sync(written)
    here.disk.replace(written, path)
    sync_names(path.parent)


def sync(path: Path) -> None:
    """Lets the content of a file survive a loss of power."""
    descriptor = here.disk.open(path, os.O_RDONLY)
    try:
        here.disk.sync(descriptor)
    finally:
        os.close(descriptor)


def sync_names(directory: Path) -> None:
    """Lets the names in a directory survive a loss of power, on file systems that can do this."""
    descriptor = here.disk.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        here.disk.sync(descriptor)
    except OSError as error:
        if error.errno not in UNKNOWN:
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Lets errors of the operating system name `path` and not a name beside it."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error


def _fill(descriptor: int, content: Content) -> None:
    left = memoryview(_bytes(content))
    while left:
        left = left[here.disk.write(descriptor, left) :]
    here.disk.sync(descriptor)


def _same_mode(descriptor: int, path: Path) -> None:
    """Gives the new file the rights of the one which it replaces."""
    with contextlib.suppress(OSError):
        os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))


def _bytes(content: Content) -> bytes:
    return content.encode() if isinstance(content, str) else content
