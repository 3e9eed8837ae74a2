"""What an experiment says, whatever it was read from."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock import worlds
from penstock.experiments.paths import put_all
from penstock.experiments.settings import Setting
from penstock.experiments.values import called, parts, shown
from penstock.mistake import MistakeError
from penstock.scenario import Scenario, to_toml, tree
from penstock.units import base, quantity

SETTING = "setting"  # what varies where an experiment has [[settings]]
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
        given = {path: value for path, value in self.settings.items() if value is not None}
        return ", ".join(f"{path}={shown(value)}" for path, value in given.items())


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
    situations: Mapping[str, Setting] = field(default_factory=dict)  # settings by name
    delays: bool = False  # keep the distributions of delays
    on: str = worlds.SIM  # the world in which it runs
    draw: Any = None  # how a report draws it; the engine only keeps it
    source: Path | None = field(default=None, compare=False)  # the file that it was read from

    @property
    def called(self) -> str:
        """The name of the experiment, else that of its scenario."""
        return self.name or self.scenario.name

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The keys that vary, in some setting at least."""
        if self.listed:
            return tuple(self.listed[0].settings)
        own = [path for one in self.situations.values() for path in one.vary]
        return tuple(dict.fromkeys([*(path for one in self.dimensions for path in one.paths), *own]))

    @cached_property
    def _grids(self) -> list[tuple[Dimension, ...]]:
        """What varies in each setting that is run."""
        first = self.dimensions[0] if self.dimensions and self.dimensions[0].paths == (SETTING,) else None
        if first is None:
            alone = next(iter(self.situations.values()), Setting(""))
            return [_in_setting(alone, self.dimensions)]
        rest = self.dimensions[1:]
        return [
            (replace(first, steps=((name,),)), *_in_setting(self.situations[name], rest)) for (name,) in first.steps
        ]

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.listed) or sum(math.prod(len(one.steps) for one in grid) for grid in self._grids)

    def _chosen(self) -> Iterator[dict[str, Any]]:
        """Yields the values of each point by path; `None` for a key that does not vary in its setting."""
        for grid in self._grids:
            paths = [path for dimension in grid for path in dimension.paths]
            for steps in itertools.product(*(dimension.steps for dimension in grid)):
                chosen = dict(zip(paths, itertools.chain(*steps), strict=True))
                yield {path: chosen.get(path) for path in self.paths}

    def points(self) -> Iterator[Point]:
        """Yields all points; the last dimension changes fastest."""
        if self.size > MOST_POINTS:
            raise MistakeError(f"the experiment has {self.size:,} points; at most {MOST_POINTS:,} are run")
        if self.listed:
            yield from self.listed
            return
        template = tree(self.scenario.text)
        copied = pickle.dumps(template)  # a copy is made ten times as fast as by deepcopy
        for index, settings in enumerate(self._chosen()):
            changes = self._changes(settings)
            if not changes or not template:  # a text that is not TOML is diagnosed by the simulator
                yield Point.of(index, settings, self.scenario, template)
                continue
            changed = pickle.loads(copied)
            put_all(changed, changes)
            yield Point.of(index, settings, replace(self.scenario, text=to_toml(changed)), changed)

    def _changes(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what settings change in the scenario: values what they change elsewhere, a named one its table,
        and each value its own key."""
        named = settings.get(SETTING, next(iter(self.situations), None))
        given = {path: parts(value) for path, value in settings.items() if path != SETTING and value is not None}
        return {
            **{path: value for _, changes in given.values() for path, value in changes.items()},
            **(self.situations[named].change if named is not None else {}),
            **{path: value for path, (value, _) in given.items()},
        }

    def described(self) -> dict[str, Any]:
        """Returns the experiment as JSON; `reading.from_json` is the reverse."""
        return {
            "name": self.called,
            "title": self.title,
            "scenario": {"text": self.scenario.text, "file": self.scenario.file},
            "source": str(self.source) if self.source else None,
            "vary": [
                {"keys": list(one.paths), "values": [list(step) for step in one.steps]} for one in self.dimensions
            ],
            "listed": [{"settings": dict(one.settings), "text": one.scenario.text} for one in self.listed],
            "seeds": list(self.seeds),
            "until": vars(self.until) if self.until else None,
            "measure": list(self.measure),
            "settings": {name: dict(one.change) for name, one in self.situations.items()},
            "rules": {name: one.rules for name, one in self.situations.items() if one.rules},
            "delays": self.delays,
            "draw": self.draw,
            **({} if self.on == worlds.SIM else {"on": self.on}),
        }


def _in_setting(setting: Setting, dimensions: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
    """Returns what varies in a setting: values of its own, and of the others those with which it runs."""
    own = {path: tuple((value,) for value in listed) for path, listed in setting.vary.items()}
    found = []
    for dimension in dimensions:
        steps = own.pop(dimension.paths[0], dimension.steps)
        for place, path in enumerate(dimension.paths):
            if path in setting.only:
                steps = tuple(step for step in steps if called(step[place]) in setting.only[path])
        found.append(replace(dimension, steps=steps))
    return (*found, *(Dimension((path,), steps) for path, steps in own.items()))
