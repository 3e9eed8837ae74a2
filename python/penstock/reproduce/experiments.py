"""All known experiments: the folders of `penstock.papers` in the order of documents, then folders opened by path."""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module, resources
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from penstock.mistake import MistakeError
from penstock.reproduce import folder
from penstock.reproduce.base import Experiment
from penstock.reproduce.files import read

PAPERS = "penstock.papers"


# Experiments by name whose folders were opened by their paths in this process.
_OPENED: dict[str, Experiment] = {}


class ExperimentError(MistakeError):
    """There is no such experiment, or the folder cannot be one."""


class Discovered(Mapping[str, Experiment]):
    """Maps names to experiments. An experiment is a package that contains an `experiment.toml`.

    The search path of `penstock.papers` lists the directories which are searched. One more entry in its `__path__` adds
    all experiments of another directory; `open_folder` adds a single one.
    """

    def __getitem__(self, name: str) -> Experiment:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    @staticmethod
    def _all() -> Mapping[str, Experiment]:
        return {**_found(tuple(import_module(PAPERS).__path__)), **_OPENED}


@cache
def _read(package: str, place: str) -> Experiment:
    """Reads the experiment of a package, once for each place on disk."""
    del place
    return read(package)


@cache
def _found(paths: tuple[str, ...]) -> Mapping[str, Experiment]:
    packages = [f"{PAPERS}.{info.name}" for info in pkgutil.iter_modules(paths) if info.ispkg]
    files = {package: resources.files(package).joinpath(folder.EXPERIMENT) for package in packages}
    experiments = [_read(package, str(file)) for package, file in files.items() if file.is_file()]
    ordered = sorted(experiments, key=lambda experiment: (_place(experiment.place), experiment.name))
    return {experiment.name: experiment for experiment in ordered}


def _place(text: str) -> tuple[bool, list[int]]:
    """Returns the key by which lists are sorted: numbers of document and section; experiments without one come last."""
    return not text, [int(number) for number in re.findall(r"\d+", text)]


EXPERIMENTS: Mapping[str, Experiment] = Discovered()


def find(name: str) -> Experiment:
    """Returns the experiment called `name`; raises `ExperimentError` if there is none."""
    try:
        return EXPERIMENTS[name]
    except KeyError:
        raise ExperimentError(f"no experiment {name!r}; there are: {', '.join(EXPERIMENTS)}") from None


def is_folder(path: Path) -> bool:
    """Tells whether a directory contains an `experiment.toml`."""
    return (path / folder.EXPERIMENT).is_file()


def open_folder(path: Path) -> Experiment:
    """Reads the experiment in a directory anywhere on disk and adds it to `EXPERIMENTS`.

    The directory becomes the package `penstock.papers.NAME` of this process. It needs no `__init__.py`, and its name
    may contain dashes. Raises `ExperimentError` if an installed experiment has the name, or if no package can have it.
    """
    path = path.resolve()
    module, file = path.name.replace("-", "_"), path / folder.EXPERIMENT
    if not re.fullmatch(r"[A-Za-z]\w*", module):
        raise ExperimentError(f"{path}: the name of the folder must be a letter, then letters, digits, `-` and `_`")
    package, name = f"{PAPERS}.{module}", module.replace("_", "-")
    if name in EXPERIMENTS and name not in _OPENED:
        if Path(str(resources.files(package).joinpath(folder.EXPERIMENT))).resolve() == file:
            return EXPERIMENTS[name]
        raise ExperimentError(f"{path}: {name} is the name of an installed experiment; rename the folder")
    for loaded in [one for one in sys.modules if one == package or one.startswith(f"{package}.")]:
        del sys.modules[loaded]
    # An `__init__.py` is only named here, so that the package has a place for its files. It is never run.
    spec = spec_from_file_location(package, path / "__init__.py", submodule_search_locations=[str(path)])
    assert spec is not None  # the ending of the file has a loader
    sys.modules[package] = module_from_spec(spec)
    _OPENED[name] = read(package, str(file))
    return _OPENED[name]


__all__ = ["EXPERIMENTS", "ExperimentError", "find", "is_folder", "open_folder"]
