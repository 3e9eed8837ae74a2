"""Directories that are replaced as a whole: a reader sees the old one or the new one, and never a mixture.

The new one is made in `.NAME.penstock-new` beside the old one, synced, and exchanged with it in one step
(`renameat2`). Where the file system has no such step, the old one is first renamed to `.NAME.penstock-old`; if the
process is killed then, the next reader or writer gives it its name back (`settle`). What a killed writer left is
removed by the next one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.store import files
from penstock.store.disk import UNKNOWN, here
from penstock.store.files import Content, explained
from penstock.store.locks import held
from penstock.store.names import GONE, NEW, OLD, StoreError, beside, directory_place, is_beside, of

MOST_FOREIGN = 10_000  # number of files of others that are carried over to the new directory


class Directory:
    """A directory that is being made. Nobody reads it before it is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.hashes: dict[str, str] = {}  # SHA-256 of each file, by its path in the directory

    def put(self, name: str | Path, content: Content) -> None:
        """Writes a file."""
        data = content.encode() if isinstance(content, str) else content
        with explained(self.path / name):
            self._parents(Path(name))
            files.put(self.path / name, data)
        self.hashes[str(name)] = hashlib.sha256(data).hexdigest()

    def adopt(self, name: str | Path) -> None:
        """Enters a file which another writer put into the directory."""
        with (self.path / name).open("rb") as file:
            self.hashes[str(name)] = hashlib.file_digest(file, "sha256").hexdigest()

    def _parents(self, name: Path) -> None:
        for parent in reversed(name.parents[:-1]):
            if not (self.path / parent).is_dir():
                here.disk.make(self.path / parent)


Foreign = Callable[[Path], list[str]]


def _nothing(_: Path) -> list[str]:
    return []


@contextlib.contextmanager
def replacing(path: Path, foreign: Foreign = _nothing) -> Iterator[Directory]:
    """Yields a directory that takes the place of `path` at the end of the block, unless the block fails.

    Files of others in the old directory, which `foreign` lists, are in the new one as well; all else of it is removed.
    The lock of the place is held from the beginning: a second writer is told who has it, before it does any work.
    """
    place = directory_place(path)
    with held(place):
        new = beside(place, NEW)
        with explained(path):
            settle_held(place)
            here.disk.make(new)
        try:
            made = Directory(new)
            yield made
            with explained(path):
                if place.is_dir():
                    _carry(place, new, foreign(place), path)
                _sync(new)
                gone = _swapped(place, new)
        except BaseException:
            with contextlib.suppress(OSError):
                clear(new)
            raise
        with explained(path):
            files.sync_names(place.parent)  # before anything is removed
        with contextlib.suppress(OSError):  # the new one is in its place; the next writer removes what is left
            clear(gone)


def _swapped(place: Path, new: Path) -> Path:
    """Puts the new directory into its place; returns where the old one is then. If it fails, nothing has changed."""
    if not place.exists():
        here.disk.replace(new, place)
        return new
    try:
        here.disk.exchange(new, place)
    except OSError as error:
        if error.errno not in UNKNOWN:
            raise
        return _renamed(place, new)
    return new


def _renamed(place: Path, new: Path) -> Path:
    """The same in two steps; between them `settle` knows what to do."""
    old = beside(place, OLD)
    here.disk.replace(place, old)
    try:
        here.disk.replace(new, place)
    except OSError:
        here.disk.replace(old, place)
        raise
    return old


def settle(path: Path) -> None:
    """Gives an old directory its name back if a writer was killed between two renames. Readers call it."""
    place = Path(os.path.realpath(path))
    if not place.exists() and beside(place, OLD).is_dir():
        with contextlib.suppress(OSError, StoreError), held(place):
            settle_held(place)


def settle_held(place: Path) -> None:
    """The same for one who has the lock; also removes what a killed writer left."""
    old = beside(place, OLD)
    if old.is_dir() and not place.exists():
        here.disk.replace(old, place)
        files.sync_names(place.parent)
    new = beside(place, NEW)
    for left in (old, new, new.with_name(new.name + place.suffix), beside(place, GONE)):
        clear(left)


def remove(path: Path) -> None:
    """Removes a directory. It loses its name first, so that no reader sees a part of it."""
    with held(path):
        gone = beside(path, GONE)
        with explained(path):
            clear(gone)
            here.disk.replace(path, gone)
            files.sync_names(path.parent)
        with contextlib.suppress(OSError):
            clear(gone)


def clear_left(root: Path) -> None:
    """Removes what killed commands left anywhere below a directory, unless another one writes there now."""
    for place in sorted({of(path) for path in root.rglob(".*") if is_beside(path)}):
        with contextlib.suppress(OSError, StoreError), held(place):
            settle_held(place)


def clear(path: Path) -> None:
    """Removes a file, or a directory with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        for folder, directories, names in os.walk(path, topdown=False):
            for name in names:
                here.disk.unlink(Path(folder, name))
            for name in directories:
                below = Path(folder, name)
                here.disk.unlink(below) if below.is_symlink() else here.disk.remove(below)
        here.disk.remove(path)
    elif path.is_symlink() or path.exists():
        here.disk.unlink(path)


def _carry(old: Path, new: Path, foreign: list[str], shown: Path) -> None:
    """Gives the files of others a second name in the new directory. What the new one has itself is kept."""
    with contextlib.suppress(OSError):
        new.chmod(stat.S_IMODE(old.stat().st_mode))
    if len(foreign) > MOST_FOREIGN:
        raise StoreError(f"{shown}: holds {len(foreign)} files that no run writes; name a directory of its own")
    for name in foreign:
        source, target = old / name, new / name
        if target.exists() or target.is_symlink():
            continue
        for parent in reversed(target.relative_to(new).parents[:-1]):
            if not (new / parent).is_dir():
                here.disk.make(new / parent)
        if source.is_symlink():
            here.disk.symlink(source.readlink(), target)
        elif source.is_dir():
            here.disk.make(target)
        else:
            here.disk.link(source, target)


def _sync(new: Path) -> None:
    for folder, _, _ in os.walk(new, topdown=False):
        files.sync_names(Path(folder))
