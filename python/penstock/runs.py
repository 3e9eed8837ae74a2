"""Finds what commands wrote below `runs/`, and removes it, but no other files. Results of reproductions are kept."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from penstock import rundir, store
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

ROOT = Path("runs")
RESULTS = "results.json"  # the file of an experiment's results, which `penstock reproduce` writes
# Directories which one file tells, by their kind: this file, and patterns of all others that are written there.
_PAGE = "report.html"
_KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "sweep": ("sweep.json", ("*.parquet", "timing.json", _PAGE, "runs/*.segment")),
    "what-if": ("answer.json", ("scenario.toml", _PAGE)),
    "replay": ("replay.json", ("packets.parquet", _PAGE)),
}
REMOVED = ("run", *_KINDS)  # kinds that `prune` removes
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)")
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True)
class Found:
    """What a command wrote into a directory."""

    path: Path
    kind: str  # "run", "experiment" (of a document), "sweep", "what-if" or "replay"
    name: str
    scenario: str  # path of the scenario's file; empty if there is none
    seed: int | None  # None but for a run
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
    """Lists the directories of results at any depth below `root`, the newest first.

    Symbolic links below `root` are not followed. Directories inside of those that are found are not searched.
    """
    return sorted(_walk(root), key=lambda found: (-found.written_s, str(found.path)))


def _walk(root: Path) -> Iterator[Found]:
    if found := _of_run(root) or _of_experiment(root) or _of_kind(root):
        yield found
        return
    try:
        below = sorted(entry.path for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for path in map(Path, below):
        if not store.is_beside(path):
            yield from _walk(path)


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


def _of_kind(path: Path) -> Found | None:
    """Returns a sweep, an answer or a replay. A sweep was written when one of its files was: it may still grow."""
    kind = _kind(path)
    if kind is None:
        return None
    stored = rundir.read_json(path / _KINDS[kind][0])
    about = stored.get("experiment") if kind == "sweep" else stored
    about = about if isinstance(about, dict) else {}
    name = about.get("name") or about.get("trace") or about.get("capture") or path.name
    scenario = about["scenario"]["file"] if kind == "sweep" and isinstance(about.get("scenario"), dict) else ""
    versions = stored.get("versions")
    version = str(versions.get("penstock", "unknown")) if isinstance(versions, dict) else "unknown"
    written = max(file.lstat().st_mtime for file in path.rglob("*"))
    return Found(path, kind, str(name), str(scenario), None, written, version, _size(path))


def _kind(path: Path) -> str | None:
    """Returns the kind of a directory that one file tells; `None` if it has no such file, or if it cannot be read."""
    for kind, (file, _) in _KINDS.items():
        if (path / file).is_file() and not (path / file).is_symlink():
            try:
                return kind if isinstance(rundir.read_json(path / file), dict) else None
            except rundir.RunDirError:
                return None
    return None


def _manifest(path: Path) -> dict[str, Any] | None:
    """Returns the manifest of a run directory; `None` if `path` is not a run directory."""
    if (path / rundir.MANIFEST).is_symlink():
        return None
    try:
        return rundir.read_manifest(path)
    except rundir.RunDirError:
        return None


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
    """Lists the files in a directory of results which no command writes. A directory with such files is not removed."""
    kind = None if path.is_symlink() else _kind(path)
    if kind is not None and _manifest(path) is None:
        file, patterns = _KINDS[kind]
        inside = sorted(
            one.relative_to(path).as_posix() for one in path.rglob("*") if not one.is_dir() or one.is_symlink()
        )
        return [one for one in inside if not any(fnmatchcase(one, pattern) for pattern in (file, *patterns))]
    return [rundir.MANIFEST] if path.is_symlink() or _manifest(path) is None else rundir.foreign(path)


def remove(path: Path) -> None:
    """Removes a directory of results; raises `MistakeError` if it is none, or has files which no command writes."""
    if others := foreign(path):
        raise MistakeError(f"{path}: not removed: it is no run directory, or holds more than a run writes: {others[0]}")
    store.remove(path)
