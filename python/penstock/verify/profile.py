"""A profile held against the simulator whose defaults it has: the same dumbbell in both, with nothing else said.

ns-3 runs with all attributes of its TCP and its disciplines as they are; here a scenario names the profile and sets
neither. A measure is met if the means over seeds are within `BARS` of each other. For one that is not, the same run is
made again with one thing changed here, which names the residue if the measure is then met.
"""

from __future__ import annotations

import json
import statistics
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import marked, ns3, store
from penstock.engine import simulate
from penstock.scenario import Scenario
from penstock.verify.compare import Watcher
from penstock.verify.digests import digest

PROFILE = "ns-3.37"
DISCIPLINES = ("droptail", "red", "ared", "codel", "pie")
FLOWS = (4, 16, 64)
SEEDS, DURATION_S, RATE_MBPS, LIMIT = 2, 15, 10, 200
MSS = 536  # of both, by default; the program is told it since it writes whole segments
BARS = {"goodput_mbps": 0.03, "queue_ms": 0.15, "drops": 0.15}
_WORDS = {"goodput_mbps": "goodput", "queue_ms": "delay", "drops": "drops"}
_DIGITS = {"goodput_mbps": 2, "queue_ms": 1, "drops": 0}
_VALUES = ns3.ROOT / "crates" / "sim" / "src" / "scenario" / "profiles.toml"
_PACKET_US = (MSS + 54) * 8 // RATE_MBPS


@dataclass(frozen=True)
class Change:
    """One thing changed here, to see whether a difference comes from it."""

    name: str
    about: str
    aqm: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by discipline
    tcp: Mapping[str, Any] = field(default_factory=dict)


CHANGES = (
    Change(
        "device",
        "the discipline looks away from one packet, as that of ns-3 does, whose device holds it",
        {
            "red": {"min_threshold": "6p", "max_threshold": "16p", "least_waiting": 3},
            "ared": {"least_waiting": 3},
            "codel": {"target": f"{5000 + _PACKET_US}us"},
            "pie": {"target": f"{15000 + _PACKET_US}us"},
        },
    ),
    Change("prr", "the window is halved at once, without proportional rate reduction", tcp={"prr": False}),
    Change("sack", "no selective acknowledgments", tcp={"prr": False, "sack": False}),
    Change("rack", "losses by time", tcp={"rack": True}),
)

Means = dict[str, float]


@dataclass(frozen=True)
class Cell:
    """One discipline with one number of flows."""

    aqm: str
    flows: int

    @property
    def name(self) -> str:
        """The name of the cell in files."""
        return f"{self.aqm}-{self.flows}"

    def tree(self, change: Change | None) -> dict[str, Any]:
        """Returns the scenario, with a change or as it is."""
        topology = {"kind": "dumbbell", "rate": f"{RATE_MBPS}Mbit/s", "delay": "45ms", "limit": f"{LIMIT + 1}p"}
        access = {"access_rate": "1Gbit/s", "access_delay": "2500us"}
        return {
            "profile": PROFILE,
            "duration": f"{DURATION_S}s",
            "topology": {**topology, **access},  # one packet more: ns-3's device holds one
            "aqm": {"name": self.aqm, **(change.aqm.get(self.aqm, {}) if change else {})},
            "tcp": {"cc": "newreno", **(change.tcp if change else {})},
            "flows": [{"kind": "bulk", "count": self.flows, "start_spread": "1s"}],
            "output": {"series": False},
        }

    def arguments(self, seed: int) -> list[str]:
        """Returns the options of the program for ns-3."""
        link = [f"--rate={RATE_MBPS}Mbps", "--delay=45ms", f"--limit={LIMIT}p"]
        access = ["--access-rate=1Gbps", "--access-delay=2500us"]
        flows = [f"--flows={self.flows}", "--start-spread=1s", f"--mss={MSS}", "--cc=newreno-acks"]
        run = [f"--duration={DURATION_S}s", f"--seed={seed}", "--own-defaults=true", "--measure=true"]
        return [f"--aqm={self.aqm}", *link, *access, *flows, *run]


CELLS = tuple(Cell(aqm, flows) for aqm in DISCIPLINES for flows in FLOWS)


@dataclass(frozen=True)
class Row:
    """What both programs measured, and what was tried where they differ."""

    cell: Cell
    here: Means
    there: Means
    tried: Mapping[str, Means]

    def off(self, measure: str, here: Means | None = None) -> float:
        """Returns by which part of ns-3's value ours is above it."""
        ours, theirs = (here or self.here)[measure], self.there[measure]
        return ours / theirs - 1 if theirs else 0.0 if ours == theirs else float("inf")

    def met(self, measure: str, here: Means | None = None) -> bool:
        """True if a measure is within its bar."""
        return abs(self.off(measure, here)) <= BARS[measure]

    def residue(self, measure: str) -> str:
        """Returns the change with which a measure is met, or `open`."""
        return next((name for name, means in self.tried.items() if self.met(measure, means)), "open")

    @property
    def missed(self) -> list[str]:
        """The measures beyond their bars."""
        return [measure for measure in BARS if not self.met(measure)]

    def to_json(self) -> dict[str, Any]:
        """Returns the row as it is printed and stored."""
        return {
            "discipline": self.cell.aqm,
            "flows": self.cell.flows,
            "penstock": self.here,
            "ns3": self.there,
            "residues": {measure: self.residue(measure) for measure in self.missed},
        }


def rows(program: Path, out: Path, watcher: Watcher, fresh: bool = False) -> list[Row]:
    """Runs all cells that are not stored in both programs, and returns their rows."""
    watcher.begin(len(CELLS), 0, 0.0)
    found = []
    for cell in CELLS:
        found.append(_row(program, out, cell, fresh))
        watcher.finished(cell.name, 0.0)
    return found


def _row(program: Path, out: Path, cell: Cell, fresh: bool) -> Row:
    file = out / f"{cell.name}.json"
    key = {"ns3": digest(program), "arguments": cell.arguments(0), "seeds": SEEDS}
    kept = store.read_json(file) if file.is_file() and not fresh else {}
    if kept.get("key") != key:
        kept = {"key": key, "means": _means([_peer(program, cell, seed) for seed in _seeds()])}
        store.write(file, store.dump(kept))
    here, there = _ours(cell, None), kept["means"]
    plain = Row(cell, here, there, {})
    tried: dict[str, Means] = {}
    left = set(plain.missed)
    for change in CHANGES:
        if left and (change.tcp or cell.aqm in change.aqm):
            tried[change.name] = _ours(cell, change)
            left -= {measure for measure in left if plain.met(measure, tried[change.name])}
    return Row(cell, here, there, tried)


def _seeds() -> range:
    return range(1, SEEDS + 1)


def _means(runs: Sequence[Means]) -> Means:
    return {measure: statistics.fmean(run[measure] for run in runs) for measure in BARS}


def _ours(cell: Cell, change: Change | None) -> Means:
    scenario = Scenario.load(cell.tree(change))
    return _means([_simulated(scenario, seed) for seed in _seeds()])


def _simulated(scenario: Scenario, seed: int) -> Means:
    summary = simulate(scenario, seed).summary
    queue = summary["bottlenecks"][0]
    delivered = sum(flow["delivered_bytes"] for flow in summary["flows"])
    return {
        "goodput_mbps": delivered * 8 / DURATION_S / 1e6,
        "queue_ms": queue["queue_delay_ms"]["mean"],
        "drops": queue["drops_overflow"] + queue["drops_aqm"],
    }


def _peer(program: Path, cell: Cell, seed: int) -> Means:
    run = ns3.told(program, cell.arguments(seed))
    return {"goodput_mbps": run.goodput_bps / 1e6, "queue_ms": run.queue_delay_ms, "drops": float(run.drops)}


HEADINGS = ("discipline", "flows", "Mbit/s", "delay ms", "drops", "beyond the bar")


def cells(row: Row) -> list[str]:
    """Returns the cells of a row: ours / ns-3's, and how far apart they are."""
    numbers = [f"{row.here[m]:.{_DIGITS[m]}f} / {row.there[m]:.{_DIGITS[m]}f} ({row.off(m):+.0%})" for m in BARS]
    beyond = ", ".join(f"{_WORDS[m]}: {row.residue(m)}" for m in row.missed) or "nothing"
    return [row.cell.aqm, str(row.cell.flows), *numbers, beyond]


def summary(found: Sequence[Row]) -> str:
    """Returns how many measures are within their bars, and what removes the others."""
    missed = [row.residue(measure) for row in found for measure in row.missed]
    of = len(found) * len(BARS)
    named = ", ".join(f"{name} {missed.count(name)}" for name in sorted(set(missed)))
    return f"{of - len(missed)} of {of} measures are within their bars" + (f"; of the others: {named}" if named else "")


def about() -> str:
    """Returns what the table is of."""
    return (
        f'Penstock with `profile = "{PROFILE}"` / ns-3 {ns3.installed_version()} as it comes: NewReno over '
        f"{RATE_MBPS} Mbit/s and 100 ms, {LIMIT} packets of room, means of {SEEDS} seeds of {DURATION_S} s. Bars: "
        "goodput 3 %, delay and drops 15 %."
    )


def keys() -> str:
    """Returns the Markdown of all profiles: their keys, the values, and where these were read."""
    lines: list[str] = []
    for profile, kinds in tomllib.loads(_VALUES.read_text(encoding="utf-8")).items():
        said = [(f"`tcp.{key}`", entry) for key, entry in kinds["tcp"].items()]
        for kind in ("cc", "aqm"):
            said += [(f"{name}: `{key}`", e) for name, of in kinds.get(kind, {}).items() for key, e in of.items()]
        rows = [[key, f"`{json.dumps(entry['is'])}`", _source(entry)] for key, entry in said]
        lines += [f"### {profile}", "", *marked.table(("key", "value", "read in"), rows), ""]
    return "\n".join(lines).rstrip()


def _source(entry: Mapping[str, Any]) -> str:
    return f"{entry['from']}, unconfirmed" if entry.get("unconfirmed") else str(entry["from"])


def write(page: Path, found: Sequence[Row]) -> None:
    """Writes the table and the keys of the profiles into the page."""
    lines = [about(), "", *marked.table(HEADINGS, [cells(row) for row in found]), "", summary(found) + "."]
    marked.replace(page, "\n".join(lines))
    marked.replace(page, keys(), "keys")


__all__ = ["HEADINGS", "PROFILE", "Row", "about", "cells", "keys", "rows", "summary", "write"]
