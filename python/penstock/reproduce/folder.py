"""The folder of an experiment: a Python package with `experiment.toml` and whatever else the experiment needs.

| file | what it holds |
|---|---|
| `experiment.toml` | title, source, figures, columns, disciplines, runs and variants; always there |
| `scenario.toml` | the scenario that all runs share; experiments of the kind `tempest` have none |
| `paper.toml` | numbers that the document gives |
| `runs.py` | runs and variants that are computed: `SETTINGS`, `TESTS`, `VARIANTS`, or a class of experiments, `KIND` |
| `columns.py` | columns of the table of results that only this experiment has: `COLUMNS` |
| `claims.py` | what the document claims: `CLAIMS` |
| `figures.py` | figures with their captions: `FIGURES` |
"""

from __future__ import annotations

import tomllib
from importlib import import_module, resources
from importlib.util import find_spec
from typing import Any

EXPERIMENT, SCENARIO, PAPER = "experiment.toml", "scenario.toml", "paper.toml"


def text(package: str, file: str) -> str:
    """The text of a file in the folder."""
    return resources.files(package).joinpath(file).read_text(encoding="utf-8")


def table(package: str, file: str) -> dict[str, Any]:
    """A TOML file of the folder."""
    return tomllib.loads(text(package, file))


def numbers(module: str) -> dict[str, Any]:
    """The numbers that the document gives, for a module of the folder: `numbers(__name__)`."""
    return table(module.rpartition(".")[0], PAPER)


def defined(package: str, module: str, name: str, otherwise: Any) -> Any:
    """What a module of the folder defines under a name; `otherwise` if there is no such module or name."""
    full = f"{package}.{module}"
    return getattr(import_module(full), name, otherwise) if find_spec(full) else otherwise
