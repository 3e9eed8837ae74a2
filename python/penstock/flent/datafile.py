"""Results as files of Flent, format 4."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from penstock import store
from penstock.flent.running import DELAY_S, STEP_S, Measured, Setup, describe
from penstock.flent.tests import CALL, Test

FORMAT = 4
# Flent wants a time of the test. Where no time passes there is none, and equal runs give equal files: 2000-01-01.
_T0 = 946684800.0
_MARK = re.compile(r"[^A-Za-z0-9.]+")


def file_name(test: Test, title: str) -> str:
    """Returns the name that Flent would give the file, without the time."""
    return f"{test.name}.{_MARK.sub('_', title).strip('_')}.flent.gz"


def contents(test: Test, setup: Setup, title: str, measured: Measured, version: str) -> bytes:
    """Returns the compressed file. `version` made the run."""
    began = _began(measured)
    at = datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    by = (
        f"measured by Penstock {version} with Linux {measured.kernel}"
        if measured.kernel
        else f"simulated by Penstock {version}"
    )
    metadata: dict[str, Any] = {
        "NAME": test.name,
        "HOST": "net",
        "HOSTS": ["net"],
        "LOCAL_HOST": "home",
        "TIME": at,
        "T0": at,
        "TITLE": title,
        "NOTE": f"{by}: {describe(setup)}, seed {setup.seed}",
        "LENGTH": setup.seconds,
        "TOTAL_LENGTH": setup.total_s,
        "STEP_SIZE": STEP_S,
        "DELAY": DELAY_S,
        "IP_VERSION": 4,
        "FLENT_VERSION": "2.3.0",
        "TEST_PARAMETERS": dict(test.parameters),
        "DATA_FILENAME": file_name(test, title),
        "SERIES_META": {name: {"UNITS": _units(name)} for name in measured.series},
    }
    found = {
        "version": FORMAT,
        "metadata": metadata,
        "x_values": measured.xs,
        "results": measured.series,
        "raw_values": _raw_values(test, measured),
    }
    return gzip.compress(store.dump(found).encode(), mtime=0)


def _units(name: str) -> str:
    if name.endswith(("loss", "fairness")):
        return "count" if name.endswith("loss") else "Idx"
    if name.endswith("bitrate"):
        return "Kbits/s"
    return "Mbits/s" if name.startswith("TCP") else "ms"


def _raw_values(test: Test, measured: Measured) -> dict[str, list[dict[str, float]]]:
    """Returns the values with their times, of what was measured and not reckoned of others."""
    names = [*(one.series for one in test.streams), *test.pings]
    times = [_began(measured) + x for x in measured.xs]
    found = {name: _rows(times, {"val": measured.series[name]}) for name in names}
    if test.call:
        parts = {name.partition("::")[2]: values for name, values in measured.series.items()}
        found[CALL] = _rows(times, {"val": parts["bitrate"], **parts})
    return found


def _began(measured: Measured) -> float:
    return _T0 if measured.began_s is None else measured.began_s


def _rows(times: Sequence[float], columns: Mapping[str, Sequence[float | None]]) -> list[dict[str, float]]:
    rows = []
    for index, at in enumerate(times):
        told = {key: value for key, values in columns.items() if (value := values[index]) is not None}
        if told:
            rows.append({"t": at, **told})
    return rows
