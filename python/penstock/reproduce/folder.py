"""The folder of an experiment: a Python package with an `experiment.toml` and other files, most of which are optional.

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
    """Returns the text of a file in a package."""
    return resources.files(package).joinpath(file).read_text(encoding="utf-8")


def place(package: str, file: str) -> str:
    """Returns the path of a file in a package."""
    return str(resources.files(package).joinpath(file))


def table(package: str, file: str) -> dict[str, Any]:
    """Reads a TOML file in a package."""
    return tomllib.loads(text(package, file))


def numbers(module: str) -> dict[str, Any]:
    """Reads `paper.toml`, the numbers of the document. A module of the folder calls `numbers(__name__)`."""
    return table(module.rpartition(".")[0], PAPER)


def defined(package: str, module: str, name: str, otherwise: Any) -> Any:
    """Returns what a module of the package defines as `name`; `otherwise` if there is no such module or name."""
    full = f"{package}.{module}"
    return getattr(import_module(full), name, otherwise) if find_spec(full) else otherwise
