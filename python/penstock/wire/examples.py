"""The table of docs/wire.md: which of the examples run on the wire, and which line of the others does not."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.engine import ScenarioError
from penstock.scenario import Scenario
from penstock.wire import plan

FOLDER = Path(__file__).resolve().parents[3] / "examples"
_PLACE = re.compile(r":(\d+):(\d+)\n")


def table() -> str:
    """Returns the table in Markdown; it depends on the controls of this kernel."""
    lines = ["| example | on the wire |", "|---|---|"]
    for file in sorted(FOLDER.glob("*.toml")):
        lines.append(f"| {file.stem} | {_told(file)} |")
    return "\n".join(lines)


def _told(file: Path) -> str:
    try:
        found = plan.read(Scenario.load(file))
    except ScenarioError as error:
        text = str(error)
        place = _PLACE.search(text)
        line = f"line {place[1]}, column {place[2]}" if place else "line 1"
        return f"{line}: {text.splitlines()[0].removeprefix('error: --on wire: ')}"
    changes = f", {len(found.changes)} changes of the link" if found.changes else ""
    names = ", ".join(dict.fromkeys(found.links[link].aqm[reverse]["name"] for link, reverse in found.queues))
    return f"yes: {names}, {len(found.flows)} flows{changes}"
