"""Finds run directories and experiments below `runs/`, and removes run directories, but no other files."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import rundir
from penstock.mistake import MistakeError
from penstock.own import kept_as
from penstock.suggest import did_you_mean

ROOT = Path("runs")
RESULTS = "results.json"  # the file of an experiment's results, which `penstock reproduce` writes
_WRITTEN = {
    rundir.MANIFEST,
    rundir.SCENARIO,
    rundir.RESOLVED,
    rundir.SUMMARY,
    rundir.TIMING,
    "report.html",
    "packets.pcapng",
}
_TABLE_MARK = b"penstock_table"  # in the metadata of each Parquet file that a run writes
_METADATA_BYTES = 1 << 16  # size of the end of a Parquet file that is searched for its metadata
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)")
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True)
class Found:
    """A run directory or the directory of an experiment."""

    path: Path
    kind: str  # "run" or "experiment"
    name: str
    scenario: str  # path of the scenario's file; empty for an experiment
    seed: int | None  # None for an experiment
    written_s: float  # when the results were written, in seconds since 1970
    version: str  # version of Penstock
    size_bytes: int  # total size of all files in the directory

    def to_json(self) -> dict[str, Any]:
        """Returns the entry as plain values."""
        return {
            "path": str(self.path),
            "kind": self.kind,
            "name": self.name,
            "scenario": self.scenario,
            "seed": self.seed,
            "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.written_s)),
            "version": self.version,
            "size_bytes": self.size_bytes,
        }


def find(root: Path = ROOT) -> list[Found]:
    """Lists the run directories and experiments at any depth below `root`, the newest first.

    Symbolic links below `root` are not followed. Directories inside a run directory or an experiment are not searched.
    """
    return sorted(_walk(root), key=lambda found: (-found.written_s, str(found.path)))


def _walk(root: Path) -> Iterator[Found]:
    if found := _of_run(root) or _of_experiment(root):
        yield found
        return
    try:
        below = sorted(entry.path for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for path in below:
        yield from _walk(Path(path))


def _of_run(path: Path) -> Found | None:
    manifest = _manifest(path)
    if manifest is None:
        return None
    name, seed = manifest.get("name", path.name), manifest["seed"]
    version = str(manifest["versions"].get("penstock", "unknown"))
    written = (path / rundir.MANIFEST).stat().st_mtime
    return Found(path, "run", str(name), str(manifest["file"]), seed, written, version, _size(path))


def _of_experiment(path: Path) -> Found | None:
    file = path / RESULTS
    if not file.is_file() or file.is_symlink():
        return None
    try:
        stored = rundir.read_json(file)
    except rundir.RunDirError:
        return None
    if not isinstance(stored, dict) or "runs" not in stored:
        return None
    versions = stored.get("versions", {})
    version = str(versions.get("penstock", "unknown")) if isinstance(versions, dict) else "unknown"
    name = str(stored.get("name", path.name))
    return Found(path, "experiment", name, "", None, file.stat().st_mtime, version, _size(path))


def _manifest(path: Path) -> dict[str, Any] | None:
    """Returns the manifest of a run directory; `None` if `path` is not a run directory."""
    if (path / rundir.MANIFEST).is_symlink():
        return None
    try:
        manifest = rundir.read_manifest(path)
    except (rundir.RunDirError, TypeError):
        return None
    return manifest if isinstance(manifest["versions"], dict) else None


def _size(path: Path) -> int:
    return sum(
        (Path(folder) / file).lstat().st_size for folder, _, files in os.walk(path, followlinks=False) for file in files
    )


def locate(given: Path, root: Path = ROOT) -> Path:
    """Returns the directory of a run from its path, or from its name below `root`."""
    if given.exists():
        return given
    if len(given.parts) == 1 and (root / given).is_dir():
        return root / given
    known = [path.name for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    meant = did_you_mean(given.name, known)
    raise MistakeError(f"{given}: there is no such directory; {meant}`penstock runs list` shows what there is")


def age_s(text: str) -> float:
    """Returns the seconds of a time such as `30d`, `12h`, `90min`, `2w`."""
    given = _AGE.fullmatch(text.strip())
    if given is None:
        raise MistakeError(f"{text!r} is no age; write a number with s, min, h, d or w, such as 30d")
    return float(given[1]) * _SECONDS[given[2]]


def foreign(path: Path) -> list[str]:
    """Lists the files in a run directory which no run writes. A directory with such files is not removed."""
    manifest = _manifest(path)
    if path.is_symlink() or manifest is None:
        return [rundir.MANIFEST]
    own = {Path(rundir.OWN) / kept_as(name) for name in manifest["versions"]}
    folders = {parent for file in own for parent in file.parents}
    return sorted(
        str(inside) for entry in path.rglob("*") if not _is_ours(entry, inside := entry.relative_to(path), own, folders)
    )


def _is_ours(entry: Path, inside: Path, own: set[Path], folders: set[Path]) -> bool:
    if entry.is_symlink():
        return False
    if entry.is_dir():
        return inside in folders
    if not entry.is_file():
        return False
    if inside in own:
        return True
    return len(inside.parts) == 1 and (inside.name in _WRITTEN or _is_table(entry))


def _is_table(file: Path) -> bool:
    if file.suffix != ".parquet":
        return False
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - _METADATA_BYTES))
        return _TABLE_MARK in opened.read()


def remove(path: Path) -> None:
    """Removes a run directory; raises `MistakeError` if it is none, or contains files which no run writes."""
    if others := foreign(path):
        raise MistakeError(f"{path}: not removed: it is no run directory, or holds more than a run writes: {others[0]}")
    shutil.rmtree(path)
