"""Reads results of Flent, of its formats 1 to 4, and what its own command prints of them.

Source: Flent 2.3.0, `resultset.py` for the format, `combiners.py` and `formatters.py` for the numbers: of each series
the mean that the measuring program told, or else that of its raw values, or else that of its values in steps; the
median and the 99th percentile of raw values, or else of those in steps.
"""

from __future__ import annotations

import bz2
import gzip
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from penstock.flent.running import STEP_S, Measured, summed_up
from penstock.flent.tests import AVERAGE, CALL, DOWN, FAIRNESS, SUM, UP
from penstock.mistake import MistakeError

NEWEST = 4  # format
ENDINGS = (".flent.gz", ".flent", ".flnt", ".flent.bz2")
_MOST_BYTES = 1 << 30  # of an unpacked file
_TOGETHER = (AVERAGE, SUM, FAIRNESS)
_WITH_RATES = 4  # the first format whose raw values of UDP are in ms
_DELAY_S = 5.0  # of tests whose file does not say how long they are in all

Values = Sequence[float | None]


@dataclass(frozen=True)
class Statistics:
    """What Flent's command prints of a series; `None` for a series without values."""

    mean: float | None
    median: float | None
    p99: float | None
    points: int


@dataclass(frozen=True)
class Results:
    """A file of results."""

    path: Path
    test: str
    title: str
    begin_s: float  # time from the first value to the begin of the connections
    length_s: float
    xs: Sequence[float]
    series: Mapping[str, Values] = field(repr=False)
    meta: Mapping[str, Mapping[str, Any]] = field(repr=False)
    raw: Mapping[str, Sequence[Mapping[str, Any]]] = field(repr=False)

    @property
    def label(self) -> str:
        """The name of the file in a table."""
        return self.title or self.path.name

    def unit(self, name: str) -> str:
        """Returns the unit of a series; an empty text if the file does not say."""
        return str(self.meta.get(name, {}).get("UNITS") or "")

    def statistics(self, name: str) -> Statistics:
        """Returns what Flent's command prints of a series."""
        told = self.meta.get(name, {}).get("MEAN_VALUE")
        raw, steps = self._raw(name), [value for value in self.series[name] if value is not None]
        mean, points = (told, len(self.series[name])) if told else _of(np.mean, raw, steps)
        return Statistics(mean, _of(np.median, raw, steps)[0], _of(_p99, raw, steps)[0], points)

    def _raw(self, name: str) -> list[float]:
        """Returns the raw values of a series, which may be a part of those of another one."""
        key, part = name, "val"
        if key not in self.raw and "::" in key:
            key, part = name.rsplit("::", 1)
        return [row[part] for row in self.raw.get(key, ()) if row.get(part) is not None]

    def measured(self) -> Measured:
        """Returns the results as those of a run of ours. How many packets were dropped is not in the file."""
        series = {name: list(values) for name, values in self.series.items()}
        of = {way: [name for name in series if _is_stream(name, way)] for way in (UP, DOWN)}
        pings = [name for name in series if name.startswith("Ping") and not name.endswith(_TOGETHER)]
        on = [self.begin_s <= x < self.begin_s + self.length_s for x in self.xs]
        numbers = summed_up(series, of, pings, on, call=f"{CALL}::delay" in series)
        return Measured(list(self.xs), series, numbers, None, began_s=None, kernel="")


def at(xs: Sequence[float], series: Mapping[str, Values], others: Sequence[float]) -> dict[str, list[float | None]]:
    """Returns the values of all series, which they have at `xs`, that are nearest to other times.

    It is `None` where none is within a step.
    """
    if list(xs) == list(others) or not len(xs):
        return {name: list(values) if len(xs) else [None] * len(others) for name, values in series.items()}
    mine, wanted = np.array(xs, float), np.array(others, float)
    nearest = np.abs(mine[None, :] - wanted[:, None]).argmin(axis=1)
    near = np.abs(mine[nearest] - wanted) <= STEP_S
    return {
        name: [values[place] if is_near else None for place, is_near in zip(nearest, near, strict=True)]
        for name, values in series.items()
    }


def _of(statistic: Any, raw: Sequence[float], steps: Sequence[float]) -> tuple[float | None, int]:
    """Returns a statistic of raw values, or of those in steps if it is 0 or there are none; and of how many it is."""
    for values in (raw, steps):
        if values and (found := float(statistic(values))):
            return found, len(values)
    return (0.0, len(steps)) if steps else (None, 0)


def _p99(values: Sequence[float]) -> Any:
    return np.percentile(values, 99)


def _is_stream(name: str, way: str) -> bool:
    return name.startswith(f"TCP {way}") and not name.endswith(_TOGETHER)


def is_file(path: str | Path) -> bool:
    """Returns true for a name that files of Flent have."""
    return str(path).endswith(ENDINGS)


def read(path: Path) -> Results:
    """Reads a file; raises `MistakeError` if it is none of Flent's results, with the place and what is allowed."""
    try:
        tree = json.loads(_text(path))
    except (OSError, EOFError, zlib.error) as error:
        raise MistakeError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except (ValueError, RecursionError) as error:
        raise MistakeError(f"{path}: no results of Flent, which are JSON: {error}") from None
    return _results(path, tree)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(3)
    if start[:2] == b"\x1f\x8b":
        with gzip.open(path) as packed:
            data = packed.read(_MOST_BYTES + 1)
    elif start == b"BZh":
        with bz2.BZ2File(path) as squeezed:
            data = squeezed.read(_MOST_BYTES + 1)
    else:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise MistakeError(f"{path}: has more than {_MOST_BYTES} bytes; no results of Flent have so many")
    return data.decode()


def _results(path: Path, tree: Any) -> Results:
    version = tree.get("version", 1) if isinstance(tree, dict) else None
    if not isinstance(version, int) or not 1 <= version <= NEWEST:
        raise MistakeError(f"{path}: no results of Flent in the formats 1 to {NEWEST}")
    metadata = _mapping(path, tree, "metadata")
    meta = _mapping(path, metadata, "SERIES_META", {})
    raw = _mapping(
        path, tree, "raw_values", {name: one["RAW_VALUES"] for name, one in meta.items() if "RAW_VALUES" in one}
    )
    xs, series = tree.get("x_values"), _mapping(path, tree, "results")
    if (
        not _is_numbers(xs)
        or None in xs
        or not all(_is_numbers(one) and len(one) == len(xs) for one in series.values())
    ):
        raise MistakeError(f"{path}: `x_values` and each series of `results` must be equally many numbers")
    if not all(isinstance(rows, list) and all(isinstance(row, dict) for row in rows) for rows in raw.values()):
        raise MistakeError(f"{path}: each series of `raw_values` must be a list of tables")
    length = _seconds(metadata, "LENGTH", max(xs, default=0.0))
    total = _seconds(metadata, "TOTAL_LENGTH", length + 2 * _DELAY_S)
    return Results(
        path=path,
        test=str(metadata.get("NAME", "")),
        title=str(metadata.get("TITLE") or ""),
        begin_s=max(total - length, 0.0) / 2,
        length_s=length,
        xs=xs,
        series=series,
        meta=meta,
        raw=raw if version >= _WITH_RATES else _in_ms(raw),
    )


def _mapping(path: Path, tree: Mapping[str, Any], key: str, otherwise: Any = None) -> dict[str, Any]:
    found = tree.get(key, otherwise)
    if not isinstance(found, dict):
        raise MistakeError(f"{path}: `{key}` is missing, or no table; results of Flent have one")
    return found


def _is_numbers(values: Any) -> bool:
    plain = (int, float, type(None))
    return isinstance(values, list) and all(
        isinstance(one, plain) and not isinstance(one, bool) and (one is None or math.isfinite(one)) for one in values
    )


def _seconds(metadata: Mapping[str, Any], key: str, otherwise: float) -> float:
    found = metadata.get(key)
    return float(found) if isinstance(found, int | float) and math.isfinite(found) and found >= 0 else otherwise


def _in_ms(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Returns raw values of old formats in ms: of UDP they are round trips in a second, of HTTP seconds."""

    def told(name: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
        value = row.get("val")
        if not isinstance(value, int | float):
            return row
        if "UDP" in name and "dur" in row:
            return {**row, "val": 1000.0 / value if value else None}
        return {**row, "val": 1000.0 * value} if name == "HTTP latency" else row

    return {name: [told(name, row) for row in rows] for name, rows in raw.items()}
