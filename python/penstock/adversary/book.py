"""The standing book: for every discipline and control, the worst that was found for each standing property."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import engine, marked, provenance, store
from penstock.adversary import breaking, standing
from penstock.adversary import space as spaces
from penstock.adversary import subject as subjects
from penstock.adversary.breaking import Breach, Broken, Budget, Finding, Plan, Watcher
from penstock.engine import ScenarioError
from penstock.mistake import MistakeError

_CANDIDATES = 3
_LATER = "not tried yet"
_PART = "a scheduler inside of other disciplines, and none of its own"
_TITLES = {"discipline": "Disciplines", "control": "Controls"}


@dataclass(frozen=True)
class Row:
    """One algorithm of the book."""

    name: str
    kind: str
    result: Broken | None = None
    reason: str = ""  # why it was not tried

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C ended its search."""
        return self.result is not None and self.result.interrupted

    def finding(self, name: str) -> Finding | None:
        """Returns what was found for a property."""
        findings = self.result.findings if self.result else ()
        return next((one for one in findings if one.goal.name == name), None)


def run(
    budget: Budget, seed: int, jobs: int | None, root: Path, watcher: Callable[[str], Watcher], only: Sequence[str] = ()
) -> list[Row]:
    """Searches for every algorithm, each with the budget, in directories below `root`; goes on where it ended."""
    rows: list[Row] = []
    entries = sorted(engine.entries(), key=lambda entry: entry.kind != "cc")
    for entry in [one for one in entries if not only or one.name in only]:
        kind = "control" if entry.kind == "cc" else "discipline"
        ended = rows and rows[-1].reason == _LATER
        row = Row(entry.name, kind, reason=_LATER) if ended else _row(entry.name, budget, seed, jobs, root, watcher)
        rows.append(Row(row.name, row.kind, reason=_LATER) if row.interrupted else row)
    return rows


def interrupted(rows: Sequence[Row]) -> bool:
    """True if Ctrl-C ended the book before its end."""
    return any(row.reason == _LATER for row in rows)


def _row(name: str, budget: Budget, seed: int, jobs: int | None, root: Path, watcher: Callable[[str], Watcher]) -> Row:
    subject = subjects.find(name)
    space = spaces.standard(subject.kind).of(subject, hostile=False)
    goals = tuple(standing.goals((), subject.kind, tuple(part.name for part in space.parts)))
    plan = Plan(space, goals, budget, seed, jobs, root / name, 1, _CANDIDATES, False)
    try:
        return Row(name, subject.kind, breaking.run(plan, watcher(name)))
    except (ScenarioError, MistakeError) as error:
        first = str(error).splitlines()[0].removeprefix("error: ")
        return Row(name, subject.kind, reason=_PART if first.startswith(f'no algorithm "{name}"') else first)


def overview(rows: Sequence[Row]) -> list[list[str]]:
    """Returns a row for each algorithm: what breaks, trials and CPU time."""
    return [
        [row.name, row.kind, row.reason, "-", "-"]
        if row.result is None
        else [
            row.name,
            row.kind,
            ", ".join(one.goal.name for one in row.result.broken) or "nothing",
            f"{row.result.trials:,}",
            f"{row.result.timing['cpu_s']:.1f}",
        ]
        for row in rows
    ]


def to_json(rows: Sequence[Row], budget: Budget, seed: int) -> dict[str, Any]:
    """Returns the book as a JSON object."""
    return {
        "format": breaking.FORMAT,
        "trials": budget.trials,
        "seconds": budget.seconds,
        "seed": seed,
        "cpu_s": _cpu_s(rows),
        "versions": provenance.versions(),
        "core_sha256": engine.core_fingerprint(),
        "algorithms": {
            row.name: {"kind": row.kind, "reason": row.reason}
            if row.result is None
            else {
                "kind": row.kind,
                "trials": row.result.trials,
                "findings": {one.goal.name: _of(one) for one in row.result.findings},
            }
            for row in rows
        },
    }


def _of(finding: Finding) -> dict[str, Any]:
    worst = finding.breaches[0].shrunk if finding.breaches else finding.worst
    return {"broken": finding.broken, "first_trial": finding.first, **(worst.to_json() if worst else {})}


def _cpu_s(rows: Sequence[Row]) -> float:
    return round(math.fsum(row.result.timing["cpu_s"] for row in rows if row.result), 1)


def write(page: Path, rows: Sequence[Row], budget: Budget, seed: int) -> None:
    """Writes the book between the marks of the page, and its numbers into a file beside it."""
    text = marked.replaced(page, {"table": "\n".join(_lines(rows, budget, seed))})
    store.together({page: text, page.with_suffix(".json"): store.rows(to_json(rows, budget, seed))})


def _lines(rows: Sequence[Row], budget: Budget, seed: int) -> list[str]:
    each = f"{budget.trials:,} trials" if budget.trials else f"{budget.seconds:g} s"
    lines = [f"{each} of each algorithm, seed {seed}; {_cpu_s(rows):,.0f} s of CPU time of the simulations in all.", ""]
    for kind, title in _TITLES.items():
        properties = standing.of_kind(kind)
        table = [
            [f"[{row.name}](#{row.name})", *(_short(row.finding(one.name)) for one in properties)]
            for row in rows
            if row.kind == kind and row.result
        ]
        lines += [f"## {title}", "", *marked.table(("", *(one.name for one in properties)), table, True), ""]
    for row in rows:
        lines += [*_section(row), ""]
    return lines[:-1]


def _short(finding: Finding | None) -> str:
    if finding is None:
        return "–"
    worst = finding.breaches[0].shrunk if finding.breaches else finding.worst
    value = "–" if worst is None or worst.shown is None else f"{worst.shown:.3g}"
    return f"**{value}**" if finding.broken else value


def _section(row: Row) -> list[str]:
    head = [f"### {row.name}", ""]
    if row.result is None:
        return [*head, "Not tried yet." if row.reason == _LATER else f"Not tried: {row.reason}."]
    told = [_told(finding, finding.breaches[0]) for finding in row.result.broken]
    held = [finding.goal.name for finding in row.result.findings if not finding.broken]
    ending = [f"Nothing was found against: {', '.join(held)}."] if held else []
    return [*head, *told, *([""] if told and ending else []), *ending]


def _told(finding: Finding, breach: Breach) -> str:
    keys = ", ".join(_key(key, value) for key, value in breach.shrunk.settings.items())
    value = "–" if breach.shrunk.shown is None else f"{breach.shrunk.shown:.3g}"
    with_ = keys or "the defaults"
    return f"- **{finding.goal.name}**: `{finding.goal.shown}` is {value} with {with_}"


def _key(key: str, value: Any) -> str:
    return f"`{key}`" if value is True and "." not in key else f"`{key} = {value}`"
