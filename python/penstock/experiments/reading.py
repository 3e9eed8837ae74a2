"""Reads the file of an experiment. A mistake is told with its file, its line and what is allowed.

[experiment]
scenario = "home.toml"            # or a table [scenario] in this file
seeds = 10                        # seeds 1 to 10; or a list
until = "2%"                      # adds seeds until the interval of the first measure is this narrow
measure = ["rtt_p90_ms", "link.drops"]
zip = [["topology.rate", "topology.limit"]]

[vary]
"aqm.name" = ["codel", { name = "pie", target = "5ms" }]
"flows.0.count" = { from = 1, to = 64, points = 7, scale = "log" }

[[settings]]                      # situations with names; each runs with all that varies
name = "far"
change = { "topology.delay" = "100ms" }
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock import units, worlds
from penstock.experiments import measures, settings, values
from penstock.experiments.model import SETTING, Dimension, Experiment, Point, Until
from penstock.experiments.places import AtError, at, known, told
from penstock.experiments.settings import PUBLISHED, TABLE, Setting
from penstock.mistake import MistakeError
from penstock.scenario import Scenario
from penstock.suggest import did_you_mean

KEYS = ("name", "title", "scenario", "seeds", "until", "measure", "delays", "draw", "zip", "settings")
TABLES = ("experiment", "scenario", "vary", TABLE, PUBLISHED)
UNTIL_KEYS = ("part", "measure", "least", "most")
MOST_SEEDS = 100_000
_RANGE_OF_SEEDS = re.compile(r"(\d+)\.\.(\d+)")


class ExperimentFileError(MistakeError):
    """The file of an experiment contains a key or a value that is not allowed."""


def is_experiment(text: str) -> bool:
    """Returns true for the text of an experiment, false for that of a scenario."""
    return bool(re.search(r"^\s*\[\s*(experiment|vary)\s*\]", text, re.MULTILINE))


def load(source: str | Path | Mapping[str, Any]) -> Experiment:
    """Returns the experiment of a file, of a TOML text, or of a mapping; a scenario is one that varies nothing."""
    if isinstance(source, Mapping):
        if set(source) & {"experiment", "vary"}:
            return _of_tables(source, "<python object>", Path())
        return of_scenario(Scenario.load(source))
    scenario = Scenario.load(source)
    if not is_experiment(scenario.text):
        return of_scenario(scenario)
    return read(scenario.text, scenario.file)


def of_scenario(scenario: Scenario) -> Experiment:
    """Returns the experiment that varies nothing and has the seed of its scenario."""
    from penstock.scenario import tree

    seed = tree(scenario.text).get("seed", 1)
    good = isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**64
    return Experiment(scenario, seeds=(seed if good else 1,), source=Path(scenario.file))


def read(text: str, file: str, defined: settings.Defined | None = None) -> Experiment:
    """Reads the text of an experiment; `file` is for messages, and its directory for relative paths.

    `defined` finds the settings that a Python file beside it computes, if its module is not to be loaded anew.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExperimentFileError(f"{file}: {error}") from None
    try:
        return _of_tables(tables, file, Path(file).parent, defined)
    except AtError as error:
        raise ExperimentFileError(told(error, text, file)) from None


def _of_tables(
    tables: Mapping[str, Any], file: str, folder: Path, defined: settings.Defined | None = None
) -> Experiment:
    known(tables, TABLES, ())
    given = tables.get("experiment", {})
    if not isinstance(given, Mapping):
        raise AtError("`experiment` is a table", "experiment")
    known(given, KEYS, ("experiment",))
    base = of_scenario(_scenario(tables, given, file, folder))
    wanted = tuple(_texts(given, "measure"))
    more = settings.computed(given[TABLE], defined or settings.beside(folder)) if TABLE in given else []
    situations = settings.settings(tables.get(TABLE, []), more)
    dimensions = (*_named(situations), *zipped(_varied(tables.get("vary", {})), _zips(given)))
    _fit(situations, dimensions)
    for key in wanted:
        at(("experiment", "measure"), measures.find, key)
    return Experiment(
        base.scenario,
        name=_text(given, "name"),
        title=_text(given, "title"),
        dimensions=dimensions,
        situations=situations,
        seeds=at(("experiment", "seeds"), lambda: seeds(given["seeds"])) if "seeds" in given else base.seeds,
        until=at(("experiment", "until"), lambda: until(given["until"], wanted)) if "until" in given else None,
        measure=wanted,
        delays=_flag(given, "delays"),
        draw=given.get("draw"),
        source=Path(file),
    )


def _text(table: Mapping[str, Any], key: str) -> str:
    found = table.get(key, "")
    if not isinstance(found, str):
        raise AtError(f"{key} = {found!r} is no text", "experiment", key)
    return found


def _flag(table: Mapping[str, Any], key: str) -> bool:
    found = table.get(key, False)
    if not isinstance(found, bool):
        raise AtError(f"{key} = {found!r} is neither true nor false", "experiment", key)
    return found


def _texts(table: Mapping[str, Any], key: str) -> list[str]:
    found = table.get(key, [])
    listed = [found] if isinstance(found, str) else found
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise AtError(f'{key} is a list of names, such as ["rtt_p90_ms", "jain"]', "experiment", key)
    return listed


def _scenario(tables: Mapping[str, Any], given: Mapping[str, Any], file: str, folder: Path) -> Scenario:
    path, inline = given.get("scenario"), tables.get("scenario")
    if (path is None) == (inline is None):
        raise AtError('an experiment has either scenario = "FILE.toml" or a table [scenario]', "experiment", "scenario")
    if isinstance(inline, Mapping):
        made = Scenario.load(inline)
        return Scenario(made.text, file, made.classes)
    if not isinstance(path, str):
        raise AtError(f"scenario = {path!r} is no path of a file", "experiment", "scenario")
    found: Scenario = at(("experiment", "scenario"), lambda: Scenario.load(folder / path))
    if is_experiment(found.text):
        raise AtError(f"{path} is an experiment itself and no scenario", "experiment", "scenario")
    return found


def _varied(table: Any) -> list[Dimension]:
    if not isinstance(table, Mapping):
        raise AtError("[vary] is a table of keys of the scenario", "vary")
    found = []
    for path, item in _flat(table, ""):
        listed: list[Any] = at(("vary", path), values.given, item)
        found.append(Dimension((path,), tuple((value,) for value in listed)))
    return found


def _named(situations: Mapping[str, Setting]) -> list[Dimension]:
    return [Dimension((SETTING,), tuple((name,) for name in situations))] if len(situations) > 1 else []


def _fit(situations: Mapping[str, Setting], dimensions: Sequence[Dimension]) -> None:
    """Refuses settings that name values which do not vary, or keys that change together with others."""
    names = {
        path: [values.called(step[place]) for step in one.steps]
        for one in dimensions
        for place, path in enumerate(one.paths)
    }
    joined = {path for one in dimensions for path in one.paths if len(one.paths) > 1}
    for setting in situations.values():
        for path, wanted in setting.only.items():
            there = (
                [values.called(value) for value in setting.vary[path]] if path in setting.vary else names.get(path, [])
            )
            for name in wanted:
                if name not in there:
                    hint = f"{did_you_mean(name, there)}it has {', '.join(there)}" if there else "it does not vary"
                    raise AtError(f"{setting.name}: only: {path} has no value {name!r}; {hint}", TABLE, "only")
        for path in setting.vary:
            if path in joined:
                raise AtError(f"{setting.name}: {path} changes together with others (zip)", TABLE, "vary")


def _flat(table: Mapping[str, Any], above: str) -> list[tuple[str, Any]]:
    """Lists keys of [vary], which may be quoted ("aqm.name" = ...) or not (aqm.name = ...)."""
    found = []
    for key, item in table.items():
        path = f"{above}{key}"
        nested = isinstance(item, Mapping) and not set(item) & set(values.RANGE_KEYS)
        found += _flat(item, f"{path}.") if nested else [(path, item)]
    return found


def _zips(given: Mapping[str, Any]) -> list[list[str]]:
    found = given.get("zip", [])
    good = isinstance(found, list) and all(
        isinstance(group, list) and len(group) > 1 and all(isinstance(one, str) for one in group) for group in found
    )
    if not good:
        raise AtError(
            'zip is a list of groups of keys, such as [["topology.rate", "topology.limit"]]', "experiment", "zip"
        )
    return list(found)


def zipped(dimensions: Sequence[Dimension], groups: Sequence[Sequence[str]]) -> tuple[Dimension, ...]:
    """Returns the dimensions with each group of keys joined into one, whose values change together."""
    left = {dimension.paths[0]: dimension for dimension in dimensions}
    for group in groups:
        for path in group:
            if path not in left:
                there = f"these vary: {', '.join(left)}" if left else "no key varies"
                raise AtError(f"zip: {path!r} does not vary; {did_you_mean(path, left)}{there}", "experiment", "zip")
        columns = [left[path].steps for path in group]
        if len({len(steps) for steps in columns}) > 1:
            told = ", ".join(f"{path} has {len(steps)}" for path, steps in zip(group, columns, strict=True))
            raise AtError(f"zip: keys that change together have equally many values: {told}", "experiment", "zip")
        joined = tuple(tuple(step[0] for step in steps) for steps in zip(*columns, strict=True))
        first, *others = group
        left[first] = Dimension(tuple(group), joined)
        for path in others:
            del left[path]
    return tuple(left.values())


def seeds(given: Any) -> tuple[int, ...]:
    """Returns the seeds of `seeds = 5` (1 to 5), of a list, or of a text such as "5", "3,7" or "11..20"."""
    if isinstance(given, str):
        found = _RANGE_OF_SEEDS.fullmatch(given.strip())
        if found:
            given = list(range(int(found[1]), int(found[2]) + 1))
        else:
            parts = given.split(",")
            if not all(part.strip().isdigit() for part in parts):
                raise MistakeError(f"{given!r} are no seeds; write a number of seeds, a list 3,7 or a range 11..20")
            given = int(parts[0]) if len(parts) == 1 else [int(part) for part in parts]
    if isinstance(given, int) and not isinstance(given, bool):
        given = list(range(1, given + 1))
    good = isinstance(given, Sequence) and all(
        isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 2**64 for one in given
    )
    if not good or not 0 < len(given) <= MOST_SEEDS or len(set(given)) != len(given):
        raise MistakeError(
            f"{_told_seeds(given)} are no seeds; write a number of seeds from 1 to {MOST_SEEDS}, a list 3,7 of "
            "different whole numbers from 0 on, or a range 11..20"
        )
    return tuple(given)


def _told_seeds(given: Any) -> str:
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else None
    if listed is None:
        return repr(given)
    return ",".join(map(str, listed[:5])) + (",..." if len(listed) > 5 else "") if listed else "none"


def until(given: Any, wanted: Sequence[str] = ()) -> Until:
    """Returns the rule of `until = "2%"`, or of a table { part = "2%", measure = "...", least = 10, most = 1000 }."""
    table = given if isinstance(given, Mapping) else {"part": given}
    for key in table:
        if key not in UNTIL_KEYS:
            raise MistakeError(f"there is no {key!r}; {did_you_mean(key, UNTIL_KEYS)}it has {', '.join(UNTIL_KEYS)}")
    measure = measures.find(table.get("measure") or (wanted[0] if wanted else measures.DEFAULT[0])).key
    least, most = table.get("least", Until.least), table.get("most", Until.most)
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in (least, most)) or not 3 <= least <= most:
        raise MistakeError(f"least = {least!r} and most = {most!r}: whole numbers, least from 3 on and at most most")
    return Until(_part(table.get("part")), measure, least, most)


def _part(given: Any) -> float:
    found = units.quantity(given) if isinstance(given, str) else None
    part = found[0] / 100 if found and found[1] == "%" else given
    if isinstance(part, bool) or not isinstance(part, int | float) or not 0 < part < 1:
        raise MistakeError(f'{given!r} is no part of the mean; write a text such as "2%"')
    return float(part)


def from_json(stored: Mapping[str, Any]) -> Experiment:
    """The reverse of `Experiment.described`."""
    scenario = Scenario(stored["scenario"]["text"], stored["scenario"]["file"])
    dimensions = tuple(Dimension(tuple(one["keys"]), tuple(map(tuple, one["values"]))) for one in stored["vary"])
    rule = Until(**stored["until"]) if stored["until"] else None
    listed = tuple(
        Point.of(index, one["settings"], Scenario(one["text"], scenario.file))
        for index, one in enumerate(stored["listed"])
    )
    rest = (stored["name"], stored["title"], dimensions, tuple(stored["seeds"]), rule, tuple(stored["measure"]))
    rules = stored.get("rules", {})
    situations = {
        name: Setting(name, change=change, **rules.get(name, {})) for name, change in stored.get("settings", {}).items()
    }
    source = Path(stored["source"]) if stored.get("source") else None
    return Experiment(
        scenario,
        *rest,
        listed,
        situations,
        stored.get("delays", False),
        stored.get("on", worlds.SIM),
        stored["draw"],
        source,
    )
