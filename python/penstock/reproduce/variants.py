"""Assumptions that the paper leaves open or that decide a result, each changed alone in a few more runs.

The runs of an experiment give the verdicts. A variant only answers why a claim does not hold: if it holds with one
assumption changed, that assumption is the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from penstock.reproduce.paths import put


@dataclass(frozen=True)
class Variant:
    """One changed assumption."""

    name: str
    change: str  # reads well after "with"
    aqms: tuple[str, ...]  # those it can touch; the others keep their runs
    tcp: Mapping[str, Any] = field(default_factory=dict)
    aqm: Mapping[str, Any] = field(default_factory=dict)
    by_path: Mapping[str, Any] = field(default_factory=dict)
    settings: tuple[str, ...] = ()  # patterns of those it is run in, as "up-*"; none: all of the quick form
    topology: Mapping[str, Any] = field(default_factory=dict)
    reading: bool = False  # the document may mean this just as well: told beside claims that hold, too

    def is_for(self, setting: str) -> bool:
        """True where it is run."""
        return not self.settings or any(fnmatchcase(setting, pattern) for pattern in self.settings)

    def apply(self, tree: dict[str, Any]) -> None:
        """Makes the change in a scenario."""
        tree["tcp"].update(self.tcp)
        tree["topology"].update(self.topology)
        links = tree["topology"].get("links", ())
        for table in [tree["aqm"]] if "aqm" in tree else [link["aqm"] for link in links if "aqm" in link]:
            table.update(self.aqm)
        for path, value in self.by_path.items():
            put(tree, path, value)
