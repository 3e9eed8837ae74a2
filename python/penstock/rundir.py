"""A run directory contains the input and the results of one run, and all that is needed to repeat it.

manifest.json   scenario, hashes of all files, seed, versions, options of the command
scenario.toml   the text of the scenario
resolved.toml   the scenario with every default written out
summary.json    the results; the same bytes for the same scenario, seed and core
timing.json     CPU time and wall time, which differ from run to run
*.parquet       per-second tables
report.html     a page with figures and tables
own/            copies of the files that the scenario names: Python, recorded traces
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import columns, provenance, store, worlds
from penstock.engine import Result, simulate, solve
from penstock.own import Permit, kept_as
from penstock.scenario import Scenario
from penstock.store import dump, read_json

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["dump", "read_json"]

# Format 1 has no hashes of tables, of the timing and of own files.
FORMAT = 2
TABLE_FORMAT = 1
MANIFEST, SCENARIO, RESOLVED, SUMMARY, TIMING, REPORT, PACKETS = (
    "manifest.json",
    "scenario.toml",
    "resolved.toml",
    "summary.json",
    "timing.json",
    "report.html",
    "packets.pcapng",
)
OWN = "own"
TRACE = "tcp_trace.png"  # the picture of `run --trace tcp`, whose directory has no manifest
_WRITTEN = {MANIFEST, SCENARIO, RESOLVED, SUMMARY, TIMING, REPORT, PACKETS, TRACE}
_HASHES = {SCENARIO: "scenario_sha256", RESOLVED: "resolved_sha256", SUMMARY: "summary_sha256"}  # keys of format 1
_READ = (SUMMARY, TIMING, SCENARIO, RESOLVED)  # what `read` reads beside the manifest
_TABLE_MARK = b"penstock_table"  # in the metadata of each Parquet file that a run writes
_METADATA_BYTES = 1 << 16  # size of the end of a Parquet file that is searched for its metadata
_ATTEMPTS = 5  # how often a directory is read that is replaced meanwhile

# The directory, or a file in it, was not written by a run, or not left as it was written.
RunDirError = store.StoreError


@dataclass(frozen=True)
class Kept:
    """The files of a run directory, all of one run: each has the hash that the manifest gives."""

    path: Path
    manifest: dict[str, Any]
    files: Mapping[str, bytes]

    @property
    def summary(self) -> dict[str, Any]:
        """The results."""
        return _object(self.json(SUMMARY), self.path / SUMMARY)

    def json(self, name: str) -> Any:
        """Returns the value of a JSON file."""
        return store.parsed(self.files[name], self.path / name)

    def text(self, name: str) -> str:
        """Returns the text of a file."""
        return store.text(self.files[name], self.path / name)

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The tables, if they were read, by name."""
        found = {}
        for name, data in self.files.items():
            if name.endswith(".parquet"):
                with store.as_written(self.path / name):
                    found[Path(name).stem] = columns.from_parquet(data)
        return found


@dataclass(frozen=True)
class Again:
    """The result of repeating the run of a directory."""

    same: bool
    versions: dict[str, tuple[str, str]]  # by name, (then, now) of those that differ
    summary: dict[str, Any]
    differences: list[Difference]  # empty if the summaries have equal values
    changed: bool = False  # true if the stored summary is not that which the run wrote


@dataclass(frozen=True)
class Difference:
    """A key of the summary whose value differs; `None` stands for a missing value."""

    key: str  # such as `flows[0].goodput_bps`
    then: Any
    now: Any

    @property
    def by(self) -> float | None:
        """The change as a fraction of the earlier number; `None` if there is none."""
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (self.then, self.now))
        return (self.now - self.then) / abs(self.then) if numbers and self.then else None

    def __str__(self) -> str:
        then, now = ("missing" if one is None else json.dumps(one, ensure_ascii=False) for one in (self.then, self.now))
        change = "" if self.by is None else f" ({self.now - self.then:+.6g}, {100 * self.by:+.3g} %)"
        return f"{self.key}: {then} then, {now} now{change}"

    def to_json(self) -> dict[str, Any]:
        """Returns the difference as a JSON object."""
        return {"key": self.key, "then": self.then, "now": self.now, "by": self.by}


def differences(then: Any, now: Any, key: str = "") -> Iterator[Difference]:
    """Compares two values of summaries, and whatever they contain."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in [*then, *(name for name in now if name not in then)]:
            yield from differences(then.get(name), now.get(name), f"{key}.{name}".lstrip("."))
    elif isinstance(then, list) and isinstance(now, list):
        for index in range(max(len(then), len(now))):
            before, after = (values[index] if index < len(values) else None for values in (then, now))
            yield from differences(before, after, f"{key}[{index}]")
    elif then != now or type(then) is not type(now):
        yield Difference(key, then, now)


def default_path(scenario: Scenario, seed: int | None, root: Path = Path("runs")) -> Path:
    """Returns `runs/<name>-<hash of scenario and seed>`, so that equal runs have the same directory."""
    name = store.file_name(scenario.name) or "scenario"
    return root / f"{name}-{provenance.sha256(f'{scenario.text}{seed}')[:8]}"


def replacing(path: Path) -> AbstractContextManager[store.Directory]:
    """Yields the directory that takes the place of `path` when the block ends; see `store.replacing`."""
    return store.replacing(path, foreign)


def write(result: Result, path: Path, options: Mapping[str, Any] | None = None) -> None:
    """Writes a run directory without its report in place of that of an earlier run. Files of others in it are kept.

    `options` are those of the command that made the run, for the manifest.
    """
    with replacing(path) as new:
        fill(new, result, options)


def fill(new: store.Directory, result: Result, options: Mapping[str, Any] | None = None) -> None:
    """Writes all files but the report into a new directory."""
    new.put(SCENARIO, result.scenario.text)
    new.put(RESOLVED, result.resolved)
    new.put(SUMMARY, dump(result.summary))
    new.put(TIMING, dump({"cpu_s": result.cpu_s, "wall_s": result.wall_s}))
    for name, table in result.tables.items():
        new.put(f"{name}.parquet", table_bytes(name, table))
    for name, text in result.own_files.items():
        new.put(Path(OWN) / kept_as(name), text)
    new.put(MANIFEST, dump({**manifest(result, options), "files": dict(new.hashes)}))


def table_bytes(name: str, table: pa.Table) -> bytes:
    """Returns a table as the bytes of `name.parquet`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    marked = table.replace_schema_metadata({"penstock_format": str(TABLE_FORMAT), "penstock_table": name})
    out = pa.BufferOutputStream()
    pq.write_table(marked, out, compression="zstd")
    return bytes(out.getvalue())


def foreign(path: Path) -> list[str]:
    """Lists what is in a directory and was not written by a run: paths in the directory, sorted."""
    try:
        own = {Path(OWN) / kept_as(name) for name in read_manifest(path)["versions"]}
    except RunDirError:
        own = set()
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
    if inside in own or store.is_beside(entry):
        return True
    return len(inside.parts) == 1 and (inside.name in _WRITTEN or _is_table(entry))


def _is_table(file: Path) -> bool:
    if file.suffix != ".parquet":
        return False
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - _METADATA_BYTES))
        return _TABLE_MARK in opened.read()


def _versions(result: Result) -> dict[str, str]:
    """Returns the versions of the programs, and the hashes of the files that the scenario names."""
    return {**provenance.versions(), **{name: provenance.sha256(text) for name, text in result.own_files.items()}}


def manifest(result: Result, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns what is needed to repeat the run, and to see what has changed since."""
    text = result.scenario.text
    return {
        "format": FORMAT,
        "name": result.scenario.name,
        "file": result.scenario.file,
        "seed": result.seed,
        "options": dict(options or {}),
        "scenario": text,
        "scenario_sha256": provenance.sha256(text),
        "resolved": result.resolved,
        "resolved_sha256": provenance.sha256(result.resolved),
        "summary_sha256": provenance.sha256(dump(result.summary)),
        "versions": _versions(result),
        **({} if result.wire is None else {"wire": dict(result.wire)}),
    }


def read_manifest(path: Path) -> dict[str, Any]:
    """Reads the manifest of a run directory; raises `RunDirError` if there is none or if keys are missing."""
    store.settle(path)
    file = path / MANIFEST
    if not file.exists():
        raise RunDirError(f"{path}: not a run directory: it has no {MANIFEST} (one is written by `penstock run`)")
    found = _object(read_json(file), file)
    missing = [key for key in ("scenario", "file", "seed", "versions") if key not in found]
    if missing:
        raise RunDirError(f"{file}: lacks {', '.join(missing)}")
    store.newer(file, found.get("format"), FORMAT)
    _check(found, file)
    return found


def _object(value: Any, file: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RunDirError(f"{file}: holds no JSON object")
    return value


def _check(manifest: dict[str, Any], file: Path) -> None:
    """Raises `RunDirError` if a value of the manifest has another type, or the scenario another hash."""
    texts = ("scenario", "file", "name", "resolved", *_HASHES.values())
    wrong = [key for key in texts if key in manifest and not isinstance(manifest[key], str)]
    if isinstance(manifest["seed"], bool) or not isinstance(manifest["seed"], int) or not 0 <= manifest["seed"] < 2**64:
        wrong.append("seed")
    wrong += [key for key in ("options", "wire") if not isinstance(manifest.get(key, {}), dict)]
    wrong += [key for key in ("versions", "files") if not _is_texts(manifest.get(key, {}))]
    for name in manifest.get("files", {}) if not wrong else ():
        if Path(name).is_absolute() or ".." in Path(name).parts or not Path(name).parts:
            raise RunDirError(f"{file}: names a file {name!r} that is not in the directory")
    if manifest["format"] > 1 and "files" not in manifest:
        raise RunDirError(f"{file}: lacks files")
    if wrong:
        raise RunDirError(f"{file}: {wrong[0]} is not what a run writes there")
    for key in ("scenario", "resolved"):
        wanted = manifest.get(f"{key}_sha256")
        if key in manifest and wanted and provenance.sha256(manifest[key]) != wanted:
            raise RunDirError(f"{file}: {key} is not that of the run: it has another hash (SHA-256)")


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _hashes(manifest: dict[str, Any]) -> dict[str, str]:
    """Returns the hashes of files that the manifest gives."""
    first = {name: manifest[key] for name, key in _HASHES.items() if key in manifest}
    return {**first, **manifest.get("files", {})}


def read(path: Path, *, tables: bool = False) -> Kept:
    """Reads a run directory; raises `RunDirError` if one of its files is not that which the run wrote."""
    for attempt in range(1, _ATTEMPTS + 1):
        before = _identity(path)
        try:
            return _read(path, tables)
        except RunDirError:
            if attempt == _ATTEMPTS or _identity(path) == before:  # else another command has replaced the directory
                raise
    raise AssertionError


def _identity(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _read(path: Path, tables: bool) -> Kept:
    manifest = read_manifest(path)
    hashes = _hashes(manifest)
    listed = hashes if manifest["format"] > 1 else [file.name for file in sorted(path.glob("*.parquet"))]
    names = [*_READ, *(name for name in listed if tables and name.endswith(".parquet"))]
    return Kept(path, manifest, {name: _checked(path, name, hashes) for name in names})


def _checked(path: Path, name: str, hashes: Mapping[str, str]) -> bytes:
    data = store.read(path / name)
    if name in hashes and store.sha256(data) != hashes[name]:
        raise RunDirError(f"{path / name}: was changed after the run: its hash (SHA-256) is not that in {MANIFEST}")
    return data


def rerun(
    path: Path, permit: Permit | None = None, confined: bool = False, stop: Callable[[], bool] = lambda: False
) -> Again:
    """Runs the scenario of a directory again, and compares the bytes of the summaries.

    What the first run recorded beside its summary, such as packets, is not recorded again: it does not change results.
    `permit` is asked before a file with Python code is executed; with `confined`, no file is read but the copies in the
    directory. A simulation ends with `Stopped` when `stop` returns true.
    """
    then = read_manifest(path)
    hashes = _hashes(then)
    data = store.read(path / SUMMARY)
    before = _object(store.parsed(data, path / SUMMARY), path / SUMMARY)
    for name in _own(then):
        if (path / name).exists():
            _checked(path, name, hashes)
    scenario = Scenario(then["scenario"], then["file"], kept=str(path / OWN), confined=confined, permit=permit)
    world = then.get("options", {}).get("on")
    if world in worlds.KERNELS and world != worlds.JAR:
        raise RunDirError(
            f"{path}: was played on real kernels, which never repeat to the byte: `penstock run {path / SCENARIO} --on "
            f"{world}` plays it again, and `penstock compare` compares the two"
        )
    if world == worlds.JAR:
        result = worlds.run(scenario, then["seed"], world)
    else:
        seed = then["seed"]
        result = solve(scenario, seed) if world == worlds.FLUID else simulate(scenario, seed, stop=stop)
    now = _versions(result)
    changed = {
        name: (str(then["versions"].get(name, "unknown")), value)
        for name, value in now.items()
        if then["versions"].get(name) != value
    }
    if result.wire and (before_kernel := then["wire"]["kernel"]) != result.wire["kernel"]:
        changed["kernel"] = (before_kernel, result.wire["kernel"])
    same = data == dump(result.summary).encode()
    others = SUMMARY in hashes and store.sha256(data) != hashes[SUMMARY]
    return Again(same, changed, result.summary, list(differences(before, result.summary)), others)


def _own(manifest: dict[str, Any]) -> list[str]:
    """Returns the paths of the copies of own files in the directory."""
    return [name for name in manifest.get("files", {}) if Path(name).parts[:1] == (OWN,)]
