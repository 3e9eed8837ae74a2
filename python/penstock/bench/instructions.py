"""Counts instructions per packet with callgrind. Unlike times, these do not depend on the load of the machine.

A scenario runs for two durations. The difference of the counts, divided by that of the packets, does not contain the
start of the program, the reading of the scenario and the building of the network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import store
from penstock.bench import cases
from penstock.scenario import to_toml

SCENARIO = "dsl-64"
_DURATIONS = ("10s", "30s")
_BUILD = ("build", "--release", "--locked", "--quiet", "--package", "penstock-sim", "--example", "run")


@dataclass(frozen=True)
class Count:
    """Costs which do not depend on the speed of the processor."""

    scenario: str
    per_packet: float
    bytes_per_flow: int


class _NotCountedError(Exception):
    pass


def count(say: Callable[[str], None]) -> Count | str:
    """Returns the counts, or the reason why they cannot be counted."""
    missing = [tool for tool in ("cargo", "valgrind") if shutil.which(tool) is None]
    if missing:
        return f"no {' and no '.join(missing)} in PATH"
    say(f"{SCENARIO}: counting instructions")
    try:
        _run(["cargo", *_BUILD])
        short, long = (_counted(duration) for duration in _DURATIONS)
    except _NotCountedError as error:
        return str(error)
    return between(short, long)


Counted = tuple[int, dict[str, Any]]


def between(short: Counted, long: Counted) -> Count:
    """Returns the additional costs of the longer run per additional packet."""
    packets = _packets(long[1]) - _packets(short[1])
    return Count(SCENARIO, (long[0] - short[0]) / max(packets, 1), long[1]["bytes_per_flow"])


def _packets(summary: dict[str, Any]) -> int:
    packets: int = summary["bottlenecks"][0]["packets"]
    return packets


def _counted(duration: str) -> Counted:
    program = Path(os.environ.get("CARGO_TARGET_DIR", cases.ROOT / "target")) / "release" / "examples" / "run"
    with tempfile.TemporaryDirectory() as directory:
        scenario, profile = Path(directory, "scenario.toml"), Path(directory, "callgrind.out")
        store.write(scenario, to_toml({**cases.tree(SCENARIO), "duration": duration}))
        printed = _run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", str(program), str(scenario)])
        return total(profile.read_text(encoding="utf-8", errors="replace")), json.loads(printed)


def total(profile: str) -> int:
    """Returns the total of a callgrind file."""
    found = re.search(r"^(?:totals|summary): ([0-9]+)", profile, re.MULTILINE)
    if found is None:
        raise _NotCountedError("callgrind wrote no total")
    return int(found[1])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, cwd=cases.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise _NotCountedError(f"{command[0]} failed: {lines[-1] if lines else done.returncode}")
    return done.stdout
