"""Reads `experiment.toml`: an experiment as data."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from penstock.experiments import reading
from penstock.experiments import values as given_values
from penstock.experiments.model import SETTING
from penstock.experiments.settings import PUBLISHED
from penstock.experiments.settings import Setting as Situation
from penstock.mistake import MistakeError
from penstock.reproduce import folder
from penstock.reproduce.base import Experiment
from penstock.reproduce.settings import COUNT, DISCIPLINE, Listed, Setting
from penstock.reproduce.sweep import Sweep
from penstock.reproduce.tempest import Tempest, Test

KINDS: Mapping[str, type[Experiment]] = {"sweep": Sweep, "listed": Listed, "tempest": Tempest}
# The lists of tables in `experiment.toml`, with the class of their entries and the name of more entries in `runs.py`.
LISTS: Mapping[str, tuple[type | None, str]] = {
    "variants": (None, "VARIANTS"),  # None: the kind of the experiment says which class
    "tests": (Test, "TESTS"),
}

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
    """Returns what a file says that is one for `sweep` as well, by the attributes of an experiment.

    [experiment], [vary] and [[settings]] are those of any such file.
    """
    if "experiment" not in given:
        if given.get("kind") != "tempest":
            raise ExperimentFileError(
                f'{where}: there is no table [experiment]; only tests of packet schedulers, kind = "tempest", have none'
            )
        return given

    def defined(file: str, name: str) -> Any:
        return folder.defined(package, file.removesuffix(".py"), name, None)

    text, place = folder.text(package, folder.EXPERIMENT), folder.place(package, folder.EXPERIMENT)
    found = reading.read(text, place, defined)
    varied = {path: [step[0] for step in one.steps] for one in found.dimensions for path in one.paths[:1]}
    varied.pop(SETTING, None)
    disciplines = varied.pop(DISCIPLINE, [])
    aqms = [given_values.called(value) for value in disciplines]
    changes = zip(aqms, map(_changes, disciplines), strict=True)
    flat = {"title": found.title, "seeds": len(found.seeds), "aqms": aqms, "per_aqm": {n: c for n, c in changes if c}}
    if COUNT in varied:
        flat |= {"flows": varied.pop(COUNT), "kind": "sweep"}
    if varied:
        raise ExperimentFileError(
            f"{where}: {next(iter(varied))} varies; a reproduction varies {DISCIPLINE}, {COUNT} and settings"
        )
    settings = tuple(_setting(one, where) for one in found.situations.values())
    computed = given["experiment"].get("settings")
    if computed:  # those have more than a sweep can know
        file, _, name = computed.partition(":")
        rest = {one.name: one for one in defined(file, name)}
        settings = tuple(rest.get(one.name, one) for one in settings)
    return {**flat, **({"settings": settings} if settings else {}), **given.get(PUBLISHED, {})}


def _changes(discipline: Any) -> dict[str, Any]:
    """Returns what a discipline changes in the scenario, by path, beside its name in the table of results."""
    value, elsewhere = given_values.parts(discipline)
    table = value if isinstance(value, Mapping) else {"name": value}
    renamed = {DISCIPLINE: table["name"]} if table["name"] != given_values.called(discipline) else {}
    return {**renamed, **{f"aqm.{key}": item for key, item in table.items() if key != "name"}, **elsewhere}


def _setting(situation: Situation, where: str) -> Setting:
    """Returns a setting of a reproduction: it may name its disciplines and its numbers of flows."""
    for path, allowed in ((path, DISCIPLINE) for path in situation.only):
        if path != allowed:
            raise ExperimentFileError(f"{where}: settings: a reproduction has only {allowed} in `only`")
    for path in situation.vary:
        if path != COUNT:
            raise ExperimentFileError(f"{where}: settings: a reproduction has only {COUNT} in `vary`")
    own = {"aqms": situation.only.get(DISCIPLINE, ()), "counts": situation.vary.get(COUNT, ())}
    rest = {**own, **situation.published}
    about = {"name": situation.name, "label": situation.label, "change": situation.change}
    return _made(Setting, {**about, **{key: _frozen(value) for key, value in rest.items()}}, f"{where}: settings")


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
