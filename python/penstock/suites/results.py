"""Where the results of suites are, and how they are written and read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock import provenance, store, worlds
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean
from penstock.suites import bbr_draft, rfc7928, rfc9743, tcp_eval
from penstock.suites.judging import Judged
from penstock.suites.model import Suite

FORMAT = 1
FOUND = "suite.json"
SUITES: Mapping[str, Suite] = {one.SUITE.name: one.SUITE for one in (rfc7928, rfc9743, tcp_eval, bbr_draft)}


def suite(name: str) -> Suite:
    """Returns the suite of a name; raises `MistakeError` with a suggestion if there is none."""
    if name not in SUITES:
        raise MistakeError(f"there is no suite {name!r}; {did_you_mean(name, SUITES)}there are {', '.join(SUITES)}")
    return SUITES[name]


def default_path(
    name: str, algorithms: Sequence[str], quick: bool, on: str = worlds.SIM, root: Path = Path("runs/suites")
) -> Path:
    """Returns `runs/suites/NAME-ALGORITHMS`, with `-quick` for the quick form, and `-WORLD` for other worlds."""
    words = [re.sub(r"[^A-Za-z0-9.]+", "-", Path(one).name).strip("-.") for one in algorithms]
    return root / "-".join([name, *words, *["quick"] * quick, *[on] * (on != worlds.SIM)])[:120]


def write(judged: Judged) -> dict[str, Any]:
    """Stores what was found, and returns it."""
    found = {"format": FORMAT, **judged.to_json(), "versions": provenance.versions()}
    store.write(judged.path / FOUND, store.dump(found))
    return found


def read(path: Path) -> dict[str, Any]:
    """Reads what `write` stored."""
    with store.as_written(path / FOUND):
        found: dict[str, Any] = store.read_json(path / FOUND)
        store.newer(path / FOUND, found["format"], FORMAT)
        return found
