"""A run as one archive for a paper's artefact: the same bytes for the same directory, on every machine.

NAME/README.md       what it is, with which command it is repeated, and under which licence
NAME/SHA256SUMS      hashes of all other files, as `sha256sum -c` reads them
NAME/run/...         the run directory
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from penstock import rundir, store
from penstock.mistake import MistakeError

ENDING = ".zip"
_README, _SUMS, _RUN = "README.md", "SHA256SUMS", "run"
_OLDEST = (1980, 1, 1, 0, 0, 0)  # the first time that the format knows
_MOST_BYTES = 1 << 30  # of a run that is unpacked
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
    """Yields the run directory of an archive, for a while; raises `MistakeError` if it is none, or was changed."""
    files = _read(path)
    with TemporaryDirectory(prefix="penstock-") as folder:
        place = Path(folder) / _RUN
        with store.replacing(place) as new:
            for name, data in files.items():
                if name.parts[0] == _RUN:
                    new.put(Path(*name.parts[1:]), data)
        yield place


def _read(path: Path) -> dict[PurePosixPath, bytes]:
    """Returns the files of an archive without its first folder, each with the hash that `SHA256SUMS` gives."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(one.file_size for one in archive.infolist()) > _MOST_BYTES:
                raise MistakeError(f"{path}: holds more than {_MOST_BYTES >> 30} GiB")
            whole = {PurePosixPath(name): archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise MistakeError(f"{path}: no archive of `penstock runs pack`: {error}") from None
    files = {PurePosixPath(*name.parts[1:]): data for name, data in whole.items()}
    if any(".." in name.parts or name.is_absolute() for name in whole) or len({name.parts[0] for name in whole}) != 1:
        raise MistakeError(f"{path}: no archive of `penstock runs pack`: its files have no common folder")
    sums = files.pop(PurePosixPath(_SUMS), b"").decode("utf-8", "replace").splitlines()
    wanted = {PurePosixPath(line[66:]): line[:64] for line in sums}
    for name in files.keys() | wanted.keys():
        if name not in files or store.sha256(files[name]) != wanted.get(name):
            raise MistakeError(f"{path}: {name} is not that which was packed: it has another hash (SHA-256)")
    return files
