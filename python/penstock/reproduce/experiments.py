"""The experiments there are: the folders of `penstock.papers`, in the order of their documents and sections."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module, resources

from penstock.mistake import MistakeError
from penstock.reproduce import folder
from penstock.reproduce.base import Experiment
from penstock.reproduce.files import read

PAPERS = "penstock.papers"


class ExperimentError(MistakeError):
    """No such experiment."""


class Discovered(Mapping[str, Experiment]):
    """Experiments by name. A folder counts if it is a package with an `experiment.toml`.

    Folders are looked for on the search path of `penstock.papers`, so that one more entry of its `__path__` adds all
    experiments of another directory.
    """

    def __getitem__(self, name: str) -> Experiment:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    @staticmethod
    def _all() -> Mapping[str, Experiment]:
        return _found(tuple(import_module(PAPERS).__path__))


@cache
def _read(package: str, place: str) -> Experiment:
    """The experiment of a package, which is read once for each place on disk"""
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
    """The numbers of a document and its section; what belongs to no document comes last."""
    return not text, [int(number) for number in re.findall(r"\d+", text)]


EXPERIMENTS: Mapping[str, Experiment] = Discovered()


def find(name: str) -> Experiment:
    """The experiment of that name."""
    try:
        return EXPERIMENTS[name]
    except KeyError:
        raise ExperimentError(f"no experiment {name!r}; there are: {', '.join(EXPERIMENTS)}") from None


__all__ = ["EXPERIMENTS", "ExperimentError", "find"]
