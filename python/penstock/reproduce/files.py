"""Reads `experiment.toml`: an experiment as data."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from penstock.experiments import reading
from penstock.experiments.model import PUBLISHED, SETTING
from penstock.mistake import MistakeError
from penstock.reproduce import folder
from penstock.reproduce.base import Experiment
from penstock.reproduce.settings import Listed, Setting
from penstock.reproduce.sweep import Sweep
from penstock.reproduce.tempest import Tempest, Test

KINDS: Mapping[str, type[Experiment]] = {"sweep": Sweep, "listed": Listed, "tempest": Tempest}
# The lists of tables in `experiment.toml`, with the class of their entries and the name of more entries in `runs.py`.
LISTS: Mapping[str, tuple[type | None, str]] = {
    "variants": (None, "VARIANTS"),  # None: the kind of the experiment says which class
    "settings": (Setting, "SETTINGS"),
    "tests": (Test, "TESTS"),
}

DISCIPLINE, COUNT = "aqm.name", "flows.0.count"  # what tells published runs apart, beside the setting

T = TypeVar("T")


class ExperimentFileError(MistakeError):
    """An `experiment.toml` contains a key or a value that is not allowed."""


def read(package: str, where: str = "") -> Experiment:
    """Reads the experiment of a package; messages call its file `where`, or by the name of the package."""
    where = where or f"{package.replace('.', '/')}/{folder.EXPERIMENT}"
    try:
        given = _flat(folder.table(package, folder.EXPERIMENT), package, where)
    except tomllib.TOMLDecodeError as error:
        raise ExperimentFileError(f"{where}: {error}") from None
    kind = _kind(package, given.pop("kind", "listed"), where)
    name = package.rpartition(".")[2].replace("_", "-")
    values: dict[str, Any] = {"name": name, "package": package, "variants": ()}
    for key, value in given.items():
        values[key] = value if key in LISTS else _frozen(value)
    for key, (of, more) in LISTS.items():
        listed = tuple(_entry(of or kind.VARIANT, entry, values, f"{where}: {key}") for entry in given.get(key, ()))
        found = (*listed, *folder.defined(package, "runs", more, ()))
        if found:
            values[key] = found
    if issubclass(kind, Listed) and "settings" not in values:
        values["settings"] = (Setting("", ""),)  # the scenario as it is
    return _made(kind, values, where)


def _flat(given: dict[str, Any], package: str, where: str) -> dict[str, Any]:
    """Returns the keys of a file that is one for `sweep` as well, in one table.

    [experiment], [vary] and [[settings]] are those of any such file.
    """
    if "experiment" not in given:
        return given
    found = reading.read(folder.text(package, folder.EXPERIMENT), folder.place(package, folder.EXPERIMENT))
    varied = {path: [step[0] for step in one.steps] for one in found.dimensions for path in one.paths[:1]}
    varied.pop(SETTING, None)
    tables = [value if isinstance(value, Mapping) else {"name": value} for value in varied.pop(DISCIPLINE, [])]
    flat = {"title": found.title, "seeds": len(found.seeds), "aqms": [table["name"] for table in tables]}
    parameters = {
        table["name"]: {f"aqm.{key}": value for key, value in table.items() if key != "name"} for table in tables
    }
    flat["per_aqm"] = {name: changes for name, changes in parameters.items() if changes}
    if COUNT in varied:
        flat |= {"flows": varied.pop(COUNT), "kind": "sweep"}
    if varied:
        raise ExperimentFileError(
            f"{where}: {next(iter(varied))} varies; a reproduction varies {DISCIPLINE}, {COUNT} and settings"
        )
    settings = {"settings": given["settings"]} if "settings" in given else {}
    return {**flat, **settings, **given.get(PUBLISHED, {})}


def _kind(package: str, named: str, where: str) -> type[Experiment]:
    if named not in KINDS:
        raise ExperimentFileError(f"{where}: no kind {named!r}; there are: {', '.join(KINDS)}")
    kind: type[Experiment] = folder.defined(package, "runs", "KIND", KINDS[named])
    return kind


def _entry(of: type, entry: Mapping[str, Any], experiment: Mapping[str, Any], where: str) -> Any:
    """Creates a variant, setting or test. It applies to all disciplines of the experiment unless it names some."""
    among = {"aqms": tuple(experiment.get("aqms", ()))}
    return _made(of, {**among, **{key: _frozen(value) for key, value in entry.items()}}, where)


def _made(of: Callable[..., T], values: Mapping[str, Any], where: str) -> T:
    known = [field.name for field in fields(of) if field.init]  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise ExperimentFileError(f"{where}: no key {key!r}; there are: {', '.join(known)}")
    try:
        return of(**values)
    except TypeError as error:
        raise ExperimentFileError(f"{where}: {error}") from None


def _frozen(value: Any) -> Any:
    """Returns a list as a tuple. Lists inside of tables are parts of scenarios and stay lists."""
    return tuple(value) if isinstance(value, list) else value
