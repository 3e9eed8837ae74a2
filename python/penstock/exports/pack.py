"""A run as one archive for a paper's artefact: the same bytes for the same directory, on every machine.

NAME/README.md       what it is, with which command it is repeated, and under which licence
NAME/SHA256SUMS      hashes of all other files, as `sha256sum -c` reads them
NAME/run/...         the run directory
"""

from __future__ import annotations

import io
import signal
import struct
import sys
import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from penstock import rundir, store, testbed
from penstock.mistake import MistakeError

ENDING = ".zip"
_README, _SUMS, _RUN = "README.md", "SHA256SUMS", "run"
_OLDEST = (1980, 1, 1, 0, 0, 0)  # the first time that the format knows
# Bounds of an archive that somebody sent: all of them hold before a file of it is read.
MOST_FILES = 1000
MOST_BYTES = 1 << 29  # of all files together
MOST_RATIO = 50  # of their size and that of the archive; a table of a run compresses to a fifth
_FREE_BYTES = 1 << 20  # which may be more than that
_DEEPEST, _LONGEST = 12, 200  # parts of the path of a file, and bytes of a part
_KIND = "archive"  # in the name of the folder
# What reading a damaged archive raises.
_DAMAGES = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
    LookupError,
    OverflowError,
    OSError,
)
_MODE = 0o644 << 16


def archive(path: Path) -> bytes:
    """Returns the archive of a run directory; raises `RunDirError` if a file is not that which the run wrote."""
    kept = rundir.read(path, tables=True)
    name = path.resolve().name
    files = {rundir.MANIFEST: store.read(path / rundir.MANIFEST), **kept.files, **_own(path, kept.manifest)}
    inside = {f"{_RUN}/{file}": data for file, data in files.items()}
    inside[_README] = _readme(name, kept).encode()
    sums = "".join(f"{store.sha256(data)}  {file}\n" for file, data in sorted(inside.items()))
    return _zip({f"{name}/{file}": data for file, data in sorted({**inside, _SUMS: sums.encode()}.items())})


def _own(path: Path, manifest: dict[str, object]) -> dict[str, bytes]:
    """Returns the copies of files that the scenario names, and packets, each with the hash of the manifest."""
    hashes = manifest.get("files")
    found = {}
    for name, wanted in hashes.items() if isinstance(hashes, dict) else ():
        if (path / name).is_file() and not name.endswith(".parquet"):
            found[name] = store.read(path / name)
            if store.sha256(found[name]) != wanted:
                raise rundir.RunDirError(f"{path / name}: was changed after the run: it has another hash (SHA-256)")
    return found


def _readme(name: str, kept: rundir.Kept) -> str:
    manifest = kept.manifest
    versions = "\n".join(f"- {one}: `{version}`" for one, version in manifest["versions"].items())
    return f"""# {manifest.get("name", name)}

A run of Penstock: a simulation of a network with one scenario and the seed {manifest["seed"]}. To repeat it:

    penstock runs rerun {name}{ENDING}

prints `same` if it has the same results, byte for byte, and otherwise what differs. That needs the same version of
Penstock. `run/scenario.toml` is the scenario, `run/summary.json` has the results, and the Parquet files the values
by seconds. `sha256sum -c SHA256SUMS` checks all files.

{versions}

## Licence

Penstock is licensed under MIT or Apache-2.0, at your choice. The scenario, the files in `run/own/` and the results
belong to whoever wrote and ran them; add their licence here.
"""


def _zip(files: dict[str, bytes]) -> bytes:
    """Returns files as an archive without compression, whose bytes do not depend on a library's version."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as made:
        for name, data in files.items():
            about = zipfile.ZipInfo(name, _OLDEST)
            about.external_attr = _MODE
            about.create_system = 3
            made.writestr(about, data)
    return out.getvalue()


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Yields the run directory of an archive, for a while; raises `MistakeError` if it is none, or was changed.

    Nothing is written before all of the archive has been checked. The directory goes also if the command is ended; what
    one leaves that is killed, the next one removes.
    """
    files = _read(path)
    for left in testbed.leftovers():
        if f"-{_KIND}-" in left.name:
            testbed.remove(left)
    with _ended_in_order(), TemporaryDirectory(prefix=f"{testbed.mark(_KIND)}-") as folder:
        place = Path(folder) / _RUN
        with store.replacing(place) as new:
            for name, data in files.items():
                if name.parts[0] == _RUN:
                    new.put(Path(*name.parts[1:]), data)
        yield place


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Lets a signal that ends the command end this block as an exception does."""

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _read(path: Path) -> dict[PurePosixPath, bytes]:
    """Returns the files of an archive without its first folder, each with the hash that `SHA256SUMS` gives."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = _allowed(path, archive.infolist())
            whole = {name: archive.read(one) for name, one in names.items()}
    except MistakeError:
        raise
    except _DAMAGES as error:
        raise _none(path, str(error) or "it is damaged") from None
    if len({name.parts[0] for name in whole}) != 1:
        raise _none(path, "its files have no common folder")
    files = {PurePosixPath(*name.parts[1:]): data for name, data in whole.items()}
    sums = files.pop(PurePosixPath(_SUMS), b"").decode("utf-8", "replace").splitlines()
    wanted = {PurePosixPath(line[66:]): line[:64] for line in sums}
    for name in files.keys() | wanted.keys():
        if name not in files or store.sha256(files[name]) != wanted.get(name):
            raise MistakeError(f"{path}: {name} is not that which was packed: it has another hash (SHA-256)")
    return files


def _allowed(path: Path, listed: list[zipfile.ZipInfo]) -> dict[PurePosixPath, zipfile.ZipInfo]:
    """Returns the files of an archive by name; raises `MistakeError`, before anything is read, for what no run has."""
    if len(listed) > MOST_FILES:
        raise _none(path, f"it has {len(listed)} entries; at most {MOST_FILES} are read")
    size, packed = sum(one.file_size for one in listed), path.stat().st_size
    if size > MOST_BYTES:
        raise _none(path, f"its files have {size} bytes; at most {MOST_BYTES} are read")
    if size > MOST_RATIO * packed + _FREE_BYTES:
        raise _none(path, f"its {packed} bytes hold {size}; at most {MOST_RATIO} times its size is read")
    found: dict[PurePosixPath, zipfile.ZipInfo] = {}
    for one in listed:
        if one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _none(path, f"{one.filename!r} is compressed in another way than by store or deflate")
        if one.is_dir():
            continue
        name = _name(path, one.filename)
        if name in found:
            raise _none(path, f"{one.filename!r} is there twice")
        found[name] = one
    folders = {parent for name in found for parent in name.parents}
    if both := folders & found.keys():
        raise _none(path, f"{min(both)} is a file and a folder")
    return found


def _name(path: Path, given: str) -> PurePosixPath:
    """Returns the path of a file below the folder of an archive."""
    name = PurePosixPath(given)
    good = len(name.parts) in range(2, _DEEPEST + 1) and not name.is_absolute() and given.isprintable()
    longest = max((len(part.encode()) for part in name.parts), default=0)
    if not good or ".." in name.parts or "\\" in given or longest > _LONGEST:
        raise _none(path, f"the name {given[:80]!r} is not that of a file in its folder")
    return name


def _none(path: Path, why: str) -> MistakeError:
    return MistakeError(f"{path}: no archive of `penstock runs pack`: {why}")
