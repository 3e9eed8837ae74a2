"""Settings: situations with names, listed in the file of an experiment or computed by a Python file beside it.

[[settings]]
name = "far"
change = { "topology.delay" = "100ms" }
only = { "aqm.name" = ["codel"] }          # of the values that vary, those with which it runs
vary = { "flows.0.count" = [1, 4] }        # values that a key has here instead of those of [vary]

[[settings]]                               # an entry for each value, whose name stands in braces
for = { ms = [20, 100] }
name = "delay-{ms}"
change = { "topology.delay" = "{ms}ms" }
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from penstock import own
from penstock.experiments import values
from penstock.experiments.places import AtError, at, known
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

TABLE = "settings"
PUBLISHED = "reproduction"  # the table with what only a published experiment has
KEYS = ("name", "label", "change", "only", "vary", "for", PUBLISHED)
_BRACES = re.compile(r"\{([A-Za-z_][\w.]*)(?::([^{}]*))?\}")
_BESIDE = re.compile(r"([^:]+\.py):([A-Za-z_]\w*)")

# Returns what a Python file beside the experiment defines under a name.
Defined = Callable[[str, str], Any]


class Like(Protocol):
    """What a Python file may list in place of tables."""

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def change(self) -> Mapping[str, Any]: ...
    @property
    def only(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def vary(self) -> Mapping[str, Sequence[Any]]: ...


@dataclass(frozen=True)
class Setting:
    """A situation with a name."""

    name: str
    label: str = ""
    change: Mapping[str, Any] = field(default_factory=dict)  # values of the scenario, by path
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)  # names of the values with which it runs, by key
    vary: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # values of keys that replace those of [vary]
    published: Mapping[str, Any] = field(default_factory=dict)  # what only a published experiment has

    @property
    def rules(self) -> dict[str, Any]:
        """What it says about that which varies, for JSON; empty if it runs with everything."""
        found = {"only": self.only, "vary": self.vary}
        return {name: {key: list(one) for key, one in rule.items()} for name, rule in found.items() if rule}

    def without(self, path: str) -> Setting:
        """The same, but what it says about the values of one key."""
        left = [{key: one for key, one in rule.items() if key != path} for rule in (self.only, self.vary)]
        return replace(self, only=left[0], vary=left[1])

    def also(self, path: str, name: str) -> Setting:
        """The same, which runs with one more value."""
        return replace(self, only={**self.only, path: [*self.only[path], name]}) if path in self.only else self


def beside(folder: Path) -> Defined:
    """Returns what finds names in the Python files of a folder."""

    def defined(file: str, name: str) -> Any:
        path = folder / file
        if not path.is_file():
            raise MistakeError(f"there is no file {path}")
        try:
            module = own.load(path)
        except MistakeError:
            raise
        except Exception as error:
            raise MistakeError(f"{path}: {type(error).__name__}: {error}") from error
        if not hasattr(module, name):
            raise MistakeError(f"{path} defines no {name}; {did_you_mean(name, list(vars(module)))}".rstrip("; "))
        return getattr(module, name)

    return defined


def computed(given: Any, defined: Defined) -> list[Any]:
    """Returns the settings of `settings = "runs.py:SETTINGS"`: tables, or objects with such attributes."""
    found = _BESIDE.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise AtError(
            'settings = "FILE.py:NAME" names a list in a Python file beside this one; [[settings]] are listed here',
            "experiment",
            TABLE,
        )
    listed = at(("experiment", TABLE), lambda: defined(found[1], found[2]))
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise AtError(f"{given} is no list of settings", "experiment", TABLE)
    return list(listed)


def settings(entries: Any, more: Sequence[Any] = ()) -> dict[str, Setting]:
    """Returns all settings by name: those of the file, then those that Python computed."""
    if not isinstance(entries, list):
        raise AtError("[[settings]] is a list of tables", TABLE)
    found: dict[str, Setting] = {}
    for entry in (*entries, *more):
        for one in _of(entry):
            if one.name in found:
                raise AtError(f"name = {one.name!r}: each of [[settings]] has a name of its own", TABLE, "name")
            found[one.name] = one
    return found


def _of(entry: Any) -> Iterator[Setting]:
    if isinstance(entry, Mapping):
        known(entry, KEYS, (TABLE,))
        for table in _each(entry):
            yield _one(table)
        return
    try:
        yield Setting(entry.name, entry.label, entry.change, entry.only, entry.vary)
    except AttributeError as error:
        raise AtError(f"{entry!r} is no table of a setting: {error}", "experiment", TABLE) from None


def _one(table: Mapping[str, Any]) -> Setting:
    name, label = table.get("name"), table.get("label", "")
    if not isinstance(name, str) or not name:
        raise AtError(f"name = {name!r}: each of [[settings]] has a name of its own", TABLE, "name")
    if not isinstance(label, str):
        raise AtError(f"label = {label!r} is no text", TABLE, "label")
    only, vary = (_tables(table, key, "is a table of keys that vary") for key in ("only", "vary"))
    for path, names in only.items():
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names) or not names:
            raise AtError(f'only: {path} has a list of names of its values, such as ["codel"]', TABLE, "only")
    return Setting(
        name,
        label,
        _tables(table, "change", 'is a table of keys of the scenario, { "topology.delay" = "100ms" }'),
        only,
        {path: at((TABLE, "vary"), values.from_table, item) for path, item in vary.items()},
        _tables(table, PUBLISHED, "is a table"),
    )


def _tables(table: Mapping[str, Any], key: str, what: str) -> dict[str, Any]:
    found = table.get(key, {})
    if not isinstance(found, Mapping):
        raise AtError(f"{key} {what}", TABLE, key)
    return dict(found)


def _each(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields an entry for each of its values, with these in the place of their names in braces."""
    if "for" not in entry:
        yield entry
        return
    rest = {key: item for key, item in entry.items() if key != "for"}
    named = _tables(entry, "for", "is a table of names and their values, { ms = [20, 100] }")
    listed = [at((TABLE, "for"), values.from_table, item) for item in named.values()]
    for chosen in itertools.product(*listed):
        yield _filled(rest, dict(zip(named, chosen, strict=True)))


def _filled(item: Any, chosen: Mapping[str, Any]) -> Any:
    """Returns a value with the chosen ones in the place of their names; "{c}" alone is the value itself."""
    if isinstance(item, Mapping):
        return {key: _filled(one, chosen) for key, one in item.items()}
    if isinstance(item, list):
        return [_filled(one, chosen) for one in item]
    if not isinstance(item, str):
        return item
    if (alone := _BRACES.fullmatch(item)) and alone[2] is None:
        return _looked_up(alone[1], chosen)
    return _BRACES.sub(lambda found: _written(found, chosen), item)


def _written(found: re.Match[str], chosen: Mapping[str, Any]) -> str:
    value, form = _looked_up(found[1], chosen), found[2] or ""
    try:
        return format(value, form) if form else values.shown(value)
    except (TypeError, ValueError) as error:
        raise AtError(f"{found[0]}: {error}", TABLE, "for") from None


def _looked_up(name: str, chosen: Mapping[str, Any]) -> Any:
    """Returns a value by its name; "size.rate" is the key `rate` of a value that is a table."""
    here: Any = chosen
    for key in name.split("."):
        if not isinstance(here, Mapping) or key not in here:
            there = list(here) if isinstance(here, Mapping) else []
            raise AtError(f"{{{name}}}: `for` has no {key!r}; {did_you_mean(key, there)}".rstrip("; "), TABLE, "for")
        here = here[key]
    return here
