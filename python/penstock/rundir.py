"""A run directory contains the input and the results of one run, and all that is needed to repeat it.

manifest.json   scenario, hashes, seed, versions, options of the command
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
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import provenance
from penstock.engine import Result, simulate
from penstock.mistake import MistakeError
from penstock.own import kept_as
from penstock.scenario import Scenario

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
MANIFEST, SCENARIO, RESOLVED, SUMMARY, TIMING = (
    "manifest.json",
    "scenario.toml",
    "resolved.toml",
    "summary.json",
    "timing.json",
)
OWN = "own"


class RunDirError(MistakeError):
    """The directory, or a file in it, was not written by a run."""


@dataclass(frozen=True)
class Again:
    """The result of repeating the run of a directory."""

    same: bool
    versions: dict[str, tuple[str, str]]  # by name, (then, now) of those that differ
    summary: dict[str, Any]
    differences: list[Difference]  # empty if the summaries have equal values


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
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", scenario.name).strip("-.") or "scenario"
    return root / f"{name}-{provenance.sha256(f'{scenario.text}{seed}')[:8]}"


def dump(value: Any) -> str:
    """Returns the JSON text of a value as all files have it: indented, and the same bytes for equal values."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write(result: Result, path: Path, options: Mapping[str, Any] | None = None) -> None:
    """Writes all files but the report. Files of an earlier run with these names are replaced.

    `options` are those of the command that made the run, for the manifest.
    """
    path.mkdir(parents=True, exist_ok=True)
    (path / SCENARIO).write_text(result.scenario.text, encoding="utf-8")
    (path / RESOLVED).write_text(result.resolved, encoding="utf-8")
    (path / SUMMARY).write_text(dump(result.summary), encoding="utf-8")
    (path / TIMING).write_text(dump({"cpu_s": result.cpu_s, "wall_s": result.wall_s}), encoding="utf-8")
    for name, table in result.tables.items():
        write_table(name, table, path)
    for name, text in result.own_files.items():
        copy = path / OWN / kept_as(name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8")
    # Last, so that a directory with a manifest is complete.
    (path / MANIFEST).write_text(dump(manifest(result, options)), encoding="utf-8")


def write_table(name: str, table: pa.Table, path: Path) -> None:
    """Writes `name.parquet` into the directory `path`."""
    import pyarrow.parquet as pq

    schema = table.schema.with_metadata({"penstock_format": str(FORMAT), "penstock_table": name})
    pq.write_table(table.cast(schema), path / f"{name}.parquet", compression="zstd")


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
    }


def read_json(path: Path) -> Any:
    """Reads a JSON file of a run directory; raises `RunDirError` if it cannot."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunDirError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise RunDirError(f"{path}: not JSON: {error}") from None


def read_manifest(path: Path) -> dict[str, Any]:
    """Reads the manifest of a run directory; raises `RunDirError` if there is none or if keys are missing."""
    if not (path / MANIFEST).is_file():
        raise RunDirError(f"{path}: not a run directory: it has no {MANIFEST} (one is written by `penstock run`)")
    found = read_json(path / MANIFEST)
    missing = [key for key in ("scenario", "file", "seed", "versions") if key not in found]
    if missing:
        raise RunDirError(f"{path / MANIFEST}: lacks {', '.join(missing)}")
    return dict(found)


def rerun(path: Path) -> Again:
    """Runs the scenario of a directory again, and compares the bytes of the summaries.

    What the first run recorded beside its summary, such as packets, is not recorded again: it does not change results.
    """
    then = read_manifest(path)
    kept = path / SUMMARY
    before = read_json(kept) if kept.is_file() else {}
    result = simulate(Scenario(then["scenario"], then["file"], kept=str(path / OWN)), then["seed"])
    now = _versions(result)
    changed = {
        name: (str(then["versions"].get(name, "unknown")), value)
        for name, value in now.items()
        if then["versions"].get(name) != value
    }
    same = kept.is_file() and kept.read_bytes() == dump(result.summary).encode()
    return Again(same, changed, result.summary, list(differences(before, result.summary)))
