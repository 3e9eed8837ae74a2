"""Variants: assumptions which the document leaves open, or which decide a result, are changed, one or several at once.

The runs of an experiment give the verdicts. A variant only answers why a claim does not hold: if it holds with one
assumption changed, that assumption is the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from penstock.experiments.paths import put


@dataclass(frozen=True)
class Variant:
    """The change of one assumption."""

    name: str
    change: str  # description that can follow the word "with"
    aqms: tuple[str, ...]  # disciplines that the change affects; the published runs stand for the others
    tcp: Mapping[str, Any] = field(default_factory=dict)
    aqm: Mapping[str, Any] = field(default_factory=dict)
    by_path: Mapping[str, Any] = field(default_factory=dict)
    settings: tuple[
        str, ...
    ] = ()  # patterns of the settings it is run in, such as "up-*"; empty: all of the quick form
    topology: Mapping[str, Any] = field(default_factory=dict)
    # True if the document may mean this, too. Claims that hold then mention it if they would not.
    reading: bool = False
    because: str = ""  # what speaks for a reading, outside of the numbers that are judged
    joint: tuple[str, ...] = ()  # names of variants whose changes are made before its own: several assumptions at once

    def __post_init__(self) -> None:
        """Refuses a reading for which nothing speaks: any wish about a result would be one."""
        if self.reading != bool(self.because):
            raise TypeError(f"variant {self.name!r}: `reading` and `because`, what speaks for it, go together")

    def is_for(self, setting: str) -> bool:
        """Returns true if the variant is run in a setting."""
        return not self.settings or any(fnmatchcase(setting, pattern) for pattern in self.settings)

    @property
    def keys(self) -> dict[str, Any]:
        """What it sets itself, without its joint variants, by path."""
        tables = {"tcp": self.tcp, "aqm": self.aqm, "topology": self.topology}
        named = {f"{table}.{key}": value for table, values in tables.items() for key, value in values.items()}
        return {**named, **self.by_path}

    def apply(self, tree: dict[str, Any]) -> None:
        """Changes a scenario, which is a tree of tables."""
        tree.setdefault("tcp", {}).update(self.tcp)
        tree["topology"].update(self.topology)
        links = tree["topology"].get("links", ())
        for table in [tree["aqm"]] if "aqm" in tree else [link["aqm"] for link in links if "aqm" in link]:
            table.update(self.aqm)
        for path, value in self.by_path.items():
            put(tree, path, value)
