"""Reads `experiment.toml`: an experiment as data."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

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


T = TypeVar("T")


class ExperimentFileError(MistakeError):
    """An `experiment.toml` contains a key or a value that is not allowed."""


def read(package: str, where: str = "") -> Experiment:
    """Reads the experiment of a package; messages call its file `where`, or by the name of the package."""
    where = where or f"{package.replace('.', '/')}/{folder.EXPERIMENT}"
    try:
        given = folder.table(package, folder.EXPERIMENT)
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
    return _made(kind, values, where)


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
