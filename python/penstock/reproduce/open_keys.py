"""What documents leave open, as `open.toml` lists it: keys with their stated values, and why they are open.

Variants, the adversary and the joint search read this one list. A key that a document names is not on it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any

from penstock.experiments.paths import put
from penstock.reproduce.base import Case, Experiment, aqm_tables
from penstock.reproduce.variants import Variant

FILE = "open.toml"
DISCIPLINE = "aqm"
DROPTAIL = "droptail"
_UNSAID = "the document does not say it"


@dataclass(frozen=True)
class OpenKey:
    """A key of the set-up that a document leaves open."""

    key: str
    values: tuple[Any, ...]  # stated; a table sets several keys below `key`
    why: str  # why it is open
    source: str = ""  # where in the document
    aqms: tuple[str, ...] = ()  # the disciplines in whose runs it is open; empty: all
    also: tuple[str, ...] = ()  # keys that get the same value
    settings: tuple[str, ...] = ()  # patterns of the settings in whose runs it is open; empty: all

    @property
    def name(self) -> str:
        """The key, behind the disciplines to which it is limited."""
        return f"{', '.join(self.aqms)}: {self.key}" if self.aqms else self.key

    @property
    def in_scenario(self) -> bool:
        """False for flags of packet schedulers and the rate of a stream, which have places of their own."""
        return not self.key.startswith(("flags.", "stream."))

    def covers(self, key: str, value: Any, aqms: tuple[str, ...]) -> bool:
        """Tells whether a change is one of this key, to a stated value, and of its disciplines alone."""
        if self.aqms and not set(aqms) <= set(self.aqms):
            return False
        if key in (self.key, *self.also):
            return value in self.values
        below = key.removeprefix(f"{self.key}.")
        return below != key and any(isinstance(one, Mapping) and one.get(below) == value for one in self.values)


@cache
def tables() -> Mapping[str, Any]:
    """Returns the whole list."""
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return tomllib.loads(text)


def of(name: str) -> Mapping[str, Any]:
    """Returns what the list has of an experiment; nothing if it is not there."""
    found: Mapping[str, Any] = tables()["experiments"].get(name, {})
    return found


def under_test(experiment: Experiment) -> tuple[str, ...]:
    """Returns the disciplines that the document of an experiment is about."""
    return tuple(aqm for aqm in of(experiment.name).get("tests", ()) if aqm in experiment.aqms)


def plain(experiment: Experiment) -> str:
    """Returns the discipline that stands for drop-tail in an experiment."""
    return str(of(experiment.name).get("plain", DROPTAIL))


def stand_in(experiment: Experiment, case: Case) -> Case:
    """Returns the run with drop-tail that an experiment has beside another one; the same run if it has none."""
    other = replace(case, aqm=plain(experiment), variant="")
    there = {one.cell for quick in (True, False) for one in experiment.cases(quick, seeds=1)}
    changed = any(one.name == case.variant and other.aqm in one.aqms for one in experiment.variants)
    return replace(other, variant=case.variant if changed else "") if other.cell in there else case


def be_droptail(tree: dict[str, Any]) -> None:
    """Puts drop-tail, or FIFO for a packet scheduler, in the place of the disciplines of a scenario."""
    for table in aqm_tables(tree) if "tempest" not in tree else ():
        table.clear()
        table["name"] = DROPTAIL
    test = tree.get("tempest", {})
    test.update({key: "fifo" for key in ("alg", "qos", "mac") if key in test})


def general(name: str) -> Iterator[Mapping[str, Any]]:
    """Yields the keys of all experiments that are open in this one."""
    given = of(name)
    for key in tables()["keys"]:
        if key["name"] in given.get("more", ()) if key.get("only") else key["name"] not in given.get("said", ()):
            yield key


def own(name: str) -> Iterator[OpenKey]:
    """Yields the keys that are open in this experiment alone."""
    for one in of(name).get("open", ()):
        limits = {key: tuple(one[key]) for key in ("aqms", "settings") if key in one}
        yield OpenKey(one["key"], tuple(one["values"]), one["why"], one["source"], **limits)


def open_keys(name: str) -> tuple[OpenKey, ...]:
    """Returns all keys that the document of an experiment leaves open."""
    shared = (
        OpenKey(
            key["name"], tuple(key.get("values", ())), f"{_UNSAID}: {key['about']}", also=tuple(key.get("also", ()))
        )
        for key in general(name)
    )
    return (*own(name), *shared)


def read_by(experiment: Experiment, variant: Variant) -> tuple[OpenKey, ...]:
    """Returns the open keys that a variant sets to stated values; none if it changes anything else."""
    known = {one.name: one for one in experiment.variants}
    found: dict[str, OpenKey] = {}
    for part in (*(known[name] for name in variant.joint), variant):
        for key, value in part.keys.items():
            covering = [one for one in open_keys(experiment.name) if one.covers(key, value, part.aqms)]
            if part.because:  # the document itself speaks for it
                covering = [OpenKey(key, (value,), part.because)]
            if not covering:
                return ()
            found[covering[0].key] = covering[0]
    return tuple(found.values())


def apply(tree: dict[str, Any], case: Case, one: OpenKey, value: Any) -> None:
    """Sets an open key in the scenario of a run, if it is open there."""
    elsewhere = one.settings and not any(fnmatchcase(case.setting, pattern) for pattern in one.settings)
    if elsewhere or (one.aqms and case.aqm not in one.aqms):
        return
    first, _, below = one.key.partition(".")
    if first == DISCIPLINE:
        for table in aqm_tables(tree):
            table.update(value if isinstance(value, Mapping) else {below: value})
        return
    for path in (one.key, *one.also):
        changes = {f"{path}.{key}": v for key, v in value.items()} if isinstance(value, Mapping) else {path: value}
        for place, new in changes.items():
            put(tree, place, new)
