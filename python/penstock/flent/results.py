"""Runs a test with several disciplines, and keeps what came out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from penstock import provenance, store, worlds
from penstock.adversary.subject import find
from penstock.flent import reading
from penstock.flent.datafile import contents, file_name
from penstock.flent.running import Measured, Setup, check, describe, measure
from penstock.flent.tests import Test
from penstock.mistake import MistakeError
from penstock.units import base, base_unit

FORMAT = 1
FOUND = "flent.json"


def setup(*, rate: str, rtt: str, limit: str, seconds: int, cc: str, ecn: bool, seed: int, on: str) -> Setup:
    """Reads a set-up from texts; raises `MistakeError` for one that is no rate, or no time."""
    given = Setup(limit=limit, seconds=seconds, cc=cc, ecn=ecn, seed=seed, on=on)
    rate_bps, rtt_s = _positive("--rate", rate, "bit/s"), _positive("--rtt", rtt, "s")
    return Setup(**{**asdict(given), "rate_bps": rate_bps, "rtt_s": rtt_s})


def _positive(option: str, text: str, unit: str) -> float:
    found = base(text)
    if found is None or base_unit(text) != unit or found <= 0:
        example = {"bit/s": "20Mbit/s", "s": "40ms"}[unit]
        raise MistakeError(f"{option} {text}: write a number above 0 with its unit, such as {example}")
    return found


def default_path(name: str, algorithms: Sequence[str], on: str = worlds.SIM, root: Path = Path("runs/suites")) -> Path:
    """Returns `runs/suites/NAME-ALGORITHMS`, with `-WORLD` for another world than the simulator."""
    words = [re.sub(r"[^A-Za-z0-9.]+", "-", Path(one).name).strip("-.") for one in algorithms]
    return root / "-".join([name, *words, *[on] * (on != worlds.SIM)])[:120]


def measure_all(
    test: Test,
    given: Setup,
    algorithms: Sequence[str],
    advanced: Callable[[float], None] = lambda _seconds: None,
) -> dict[str, Measured]:
    """Measures each discipline, one after the other; `advanced` is called with the seconds that have been run since.

    The name of a file of Flent stands for its results. Raises `ScenarioError` before the first if the world cannot run
    one of them.
    """
    files = {one: reading.read(Path(one)) for one in algorithms if reading.is_file(one)}
    for path, kept in files.items():
        if kept.test != test.name:
            raise MistakeError(f"{path}: has results of the test {kept.test!r}, and not of {test.name}")
    subjects = {str(subject): subject for subject in map(find, [one for one in algorithms if one not in files])}
    for name, subject in subjects.items():
        if subject.kind != "discipline":
            raise MistakeError(f"{name}: is a congestion control; give disciplines, and the control with --cc")
        check(test, given, subject)
    found = {name: measure(test, given, subject, advanced) for name, subject in subjects.items()}
    return found | {Path(path).name: kept.measured() for path, kept in files.items()}


def write(path: Path, test: Test, given: Setup, found: Mapping[str, Measured]) -> list[Path]:
    """Stores what was found, and a file of Flent for each discipline; returns the paths of these."""
    versions = provenance.versions()
    files = {}
    for name, one in found.items():
        if reading.is_file(name):
            continue  # results of others stay where they are
        files[path / file_name(test, name)] = contents(test, given, name, one, versions["penstock"])
    xs = next(iter(found.values())).xs
    series = {name: reading.at(one.xs, one.series, xs) for name, one in found.items()}
    told = {**to_json(test, given, found), "series": series, "xs": xs, "versions": versions}
    for file, data in files.items():
        store.write(file, data)
    store.write(path / FOUND, store.dump(told))
    return list(files)


def to_json(test: Test, given: Setup, found: Mapping[str, Measured]) -> dict[str, Any]:
    """Returns what `--json` prints."""
    numbers = {
        name: {**one.numbers, "drops": one.drops, **({"disturbed_by": list(one.disturbed)} if one.disturbed else {})}
        for name, one in found.items()
    }
    named = {"test": test.name, "title": test.title, "described": describe(given)}
    if kernel := next(iter(found.values())).kernel:
        named["kernel"] = kernel
    return {"format": FORMAT, **named, "setup": asdict(given), "disciplines": numbers}


def read(path: Path) -> dict[str, Any]:
    """Reads what `write` stored."""
    with store.as_written(path / FOUND):
        found: dict[str, Any] = store.read_json(path / FOUND)
        store.newer(path / FOUND, found["format"], FORMAT)
        return found
