"""Several files that belong together, such as a page and the numbers behind it: all of them are replaced, or none.

All are written beside their places. Then a log, in one step, says that they count; then they are renamed one after
another. If a writer is killed meanwhile, whoever reads or writes the set next finishes its work (`finish`). If the
first of these renames fails, the log is removed, and the set stays the old one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from penstock.store import files, reading
from penstock.store.disk import here
from penstock.store.files import Content, explained
from penstock.store.locks import held, parents
from penstock.store.names import LOG, NEW, StoreError, beside, real


def together(contents: Mapping[Path, Content], *, alone: bool = False) -> None:
    """Writes the files; the first names the set, and the others stand in its directory or below.

    `alone` says that the caller holds a lock that keeps all other writers of the set away.
    """
    first = next(iter(contents))
    log = beside(first, LOG)
    with contextlib.nullcontext() if alone else held(first):
        _finish(first)
        places = {real(path): content for path, content in contents.items()}
        made: list[Path] = []
        try:
            for path, content in places.items():
                with explained(path):
                    if path.is_dir():
                        raise StoreError(f"{path}: is a directory; name a file")
                    parents(path)
                    made.append(beside(path, NEW))
                    with contextlib.suppress(FileNotFoundError):
                        here.disk.unlink(made[-1])  # of a killed writer
                    files.put(made[-1], content)
            files.write(log, reading.dump([os.path.relpath(path, first.parent) for path in places]))
            _finish(first)
        except BaseException:
            with contextlib.suppress(OSError):
                if not log.exists() or all(new.exists() for new in made):  # else some have their names already
                    _undo(log, made)
            raise


def _undo(log: Path, made: list[Path]) -> None:
    """Removes the log, so that nothing counts, and then what was written beside."""
    for path in (log, *made):
        if path.exists():
            here.disk.unlink(path)


def finish(first: Path, *, alone: bool = False) -> None:
    """Finishes what a killed writer of the set began to replace."""
    if beside(first, LOG).exists():
        with contextlib.nullcontext() if alone else held(first):
            _finish(first)


def _finish(first: Path) -> None:
    log = beside(first, LOG)
    if not log.exists():
        return
    names = reading.read_json(log)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise StoreError(f"{log}: is no list of files; remove it")
    with explained(first):
        for path in (first.parent / name for name in names):
            with contextlib.suppress(FileNotFoundError):  # this one was renamed already
                here.disk.replace(beside(path, NEW), path)
        for folder in {(first.parent / name).parent for name in names}:
            files.sync_names(folder)
        here.disk.unlink(log)
        files.sync_names(log.parent)
