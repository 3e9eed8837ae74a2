"""What an experiment says, whatever it was read from."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock.experiments.paths import put_all
from penstock.experiments.values import base, quantity
from penstock.mistake import MistakeError
from penstock.scenario import Scenario, to_toml, tree

SETTING = "setting"  # what varies where an experiment has [[settings]]
PUBLISHED = "reproduction"  # the table of a file with what only a published experiment has
MOST_POINTS = 1_000_000


@dataclass(frozen=True)
class Dimension:
    """One thing that varies: a key over its values, or several keys whose values change together."""

    paths: tuple[str, ...]
    steps: tuple[tuple[Any, ...], ...]  # for each step, the value of each path


@dataclass(frozen=True)
class Until:
    """Seeds are added until the half width of the 95 % interval is at most a part of the mean."""

    part: float
    measure: str
    least: int = 10  # seeds of the first stage
    most: int = 1000  # seeds at which a point is given up


@dataclass(frozen=True)
class Facts:
    """What the engine must know of a scenario, so that it is not parsed again."""

    duration_s: float
    groups: tuple[int, ...]  # number of flows of each entry of [[flows]]
    texts: frozenset[str]  # texts that may name a file

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Facts:
        """Takes them from the tables of a scenario; what is wrong there, the simulator diagnoses."""
        entries = tables.get("flows", [])
        counts = [entry.get("count", 1) for entry in entries if isinstance(entry, Mapping)]
        groups = tuple(count if isinstance(count, int) else 1 for count in counts)
        return cls(base(tables.get("duration")) or 0.0, groups, frozenset(_texts(tables)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if "." in value and quantity(value) is None:
            yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


@dataclass(frozen=True)
class Point:
    """One scenario of an experiment, which is run with every seed."""

    index: int
    settings: Mapping[str, Any]  # the values of what varies, by path
    scenario: Scenario
    facts: Facts

    @classmethod
    def of(
        cls, index: int, settings: Mapping[str, Any], scenario: Scenario, tables: Mapping[str, Any] | None = None
    ) -> Point:
        """Makes a point; `tables` are those of the scenario, if they are known."""
        return cls(index, settings, scenario, Facts.of(tree(scenario.text) if tables is None else tables))

    @property
    def label(self) -> str:
        """What tells the point from the others, such as "flows.0.count=4, aqm.name=codel"."""
        return ", ".join(f"{path}={shown(value)}" for path, value in self.settings.items())


@dataclass(frozen=True)
class Experiment:
    """A scenario, what varies, what is measured, how often, and how it is drawn."""

    scenario: Scenario
    name: str = ""
    title: str = ""
    dimensions: tuple[Dimension, ...] = ()
    seeds: tuple[int, ...] = (1,)
    until: Until | None = None
    measure: tuple[str, ...] = ()
    listed: tuple[Point, ...] = ()  # points that are no product; what varies is then empty
    situations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # what a setting changes, by its name
    delays: bool = False  # keep the distributions of delays
    draw: Any = None  # how a report draws it; the engine only keeps it
    source: Path | None = field(default=None, compare=False)  # the file that it was read from

    @property
    def called(self) -> str:
        """The name of the experiment, else that of its scenario."""
        return self.name or self.scenario.name

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The keys that vary."""
        if self.listed:
            return tuple(self.listed[0].settings)
        return tuple(path for dimension in self.dimensions for path in dimension.paths)

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.listed) or math.prod(len(dimension.steps) for dimension in self.dimensions)

    def points(self) -> Iterator[Point]:
        """Yields all points; the last dimension changes fastest."""
        if self.size > MOST_POINTS:
            raise MistakeError(f"the experiment has {self.size:,} points; at most {MOST_POINTS:,} are run")
        if self.listed:
            yield from self.listed
            return
        template = tree(self.scenario.text)
        copied = pickle.dumps(template)  # a copy is made ten times as fast as by deepcopy
        steps = itertools.product(*(dimension.steps for dimension in self.dimensions))
        for index, chosen in enumerate(steps):
            settings = dict(zip(self.paths, itertools.chain(*chosen), strict=True))
            changes = self._changes(settings)
            if not changes or not template:  # a text that is not TOML is diagnosed by the simulator
                yield Point.of(index, settings, self.scenario, template)
                continue
            changed = pickle.loads(copied)
            put_all(changed, changes)
            yield Point.of(index, settings, replace(self.scenario, text=to_toml(changed)), changed)

    def _changes(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what settings change in the scenario: a named one its table, and a value its own key."""
        named = settings.get(SETTING, next(iter(self.situations), None))
        return {
            **(self.situations[named] if named is not None else {}),
            **{path: value for path, value in settings.items() if path != SETTING},
        }

    def described(self) -> dict[str, Any]:
        """Returns the experiment as JSON; `reading.from_json` is the reverse."""
        return {
            "name": self.called,
            "title": self.title,
            "scenario": {"text": self.scenario.text, "file": self.scenario.file},
            "vary": [
                {"keys": list(one.paths), "values": [list(step) for step in one.steps]} for one in self.dimensions
            ],
            "listed": [{"settings": dict(one.settings), "text": one.scenario.text} for one in self.listed],
            "seeds": list(self.seeds),
            "until": vars(self.until) if self.until else None,
            "measure": list(self.measure),
            "settings": {name: dict(change) for name, change in self.situations.items()},
            "delays": self.delays,
            "draw": self.draw,
        }


def shown(value: Any) -> str:
    """Returns a value of a setting as tables and labels show it; of an algorithm with parameters, its name first."""
    if isinstance(value, Mapping):
        rest = [f"{key}={shown(item)}" for key, item in value.items() if key != "name"]
        name = str(value.get("name", ""))
        return f"{name}({', '.join(rest)})" if rest and name else name or f"({', '.join(rest)})"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
