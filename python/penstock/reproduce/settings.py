"""Experiments of the kind `listed`, whose runs are settings times disciplines.

Each setting says what it changes in the scenario that all runs share.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from penstock.experiments.paths import put
from penstock.reproduce.base import Case, Experiment

DISCIPLINE, COUNT = "aqm.name", "flows.0.count"  # what tells published runs apart, beside the setting


@dataclass(frozen=True)
class Setting:
    """Runs that share one change of the scenario."""

    name: str
    label: str
    aqms: tuple[str, ...] = ()  # disciplines that are run; empty: all of the experiment
    # Values by path in the scenario, such as "topology.links.0.rate". "*" stands for every entry of a list, and "aqm."
    # for every queue discipline.
    change: Mapping[str, Any] = field(default_factory=dict)
    counts: tuple[int, ...] = ()  # numbers of flows that are run; empty: the scenario's number
    quick_counts: tuple[int, ...] = ()  # numbers of flows in the quick form; empty: all of `counts`
    quick: bool = True  # true if the quick form runs the setting
    flows: int = 0  # number of flows that tables show; 0: the number of flows in the scenario

    @property
    def only(self) -> Mapping[str, tuple[str, ...]]:
        """The disciplines, as [[settings]] of any experiment have them."""
        return {DISCIPLINE: self.aqms} if self.aqms else {}

    @property
    def vary(self) -> Mapping[str, tuple[int, ...]]:
        """The numbers of flows, as [[settings]] of any experiment have them."""
        return {COUNT: self.counts} if self.counts else {}


@dataclass(frozen=True)
class Listed(Experiment):
    """Settings times queue disciplines, and numbers of flows where a setting has several."""

    settings: tuple[Setting, ...] = ()
    quick_settings: tuple[str, ...] = ()  # patterns of the settings that the quick form runs; empty: all
    quick_change: Mapping[str, Any] = field(default_factory=dict)

    def cases(self, quick: bool, seeds: int) -> Iterator[Case]:
        """Yields the runs in the order of the settings."""
        for seed in range(1, seeds + 1):
            for setting in self.settings:
                if not quick or self._is_quick(setting):
                    for flows in self._counts(setting, quick):
                        for aqm in setting.aqms or self.aqms:
                            yield Case(aqm, flows, seed, setting=setting.name)

    def variant_cases(self, seeds: int) -> Iterator[Case]:
        """Yields, for each variant, the runs of the quick form whose discipline and setting it has."""
        for variant in self.variants:
            for case in self.cases(True, seeds):
                if case.aqm in variant.aqms and variant.is_for(case.setting):
                    yield Case(case.aqm, case.flows, case.seed, variant.name, case.setting)

    def in_subset(self, case: Case) -> bool:
        """Returns true if a variant has the case with any discipline, since claims compare disciplines."""
        return any((case.flows, case.setting) == (v.flows, v.setting) for v in self.variant_cases(seeds=1))

    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """Returns the template with the changes of the discipline, the setting and the quick form."""
        parts = (self.name, case.setting, case.aqm, str(case.flows))
        tree = self._copy(case, "-".join(part for part in parts if part))
        setting = self.setting(case.setting)
        changes = (self.per_aqm.get(case.aqm, {}), setting.change, self.quick_change if quick else {})
        for path, value in (item for change in changes for item in change.items()):
            put(tree, path, copy.deepcopy(value))  # a variant changes the tree in place
        if setting.counts:
            tree["flows"][0]["count"] = case.flows
        return tree

    def setting(self, name: str) -> Setting:
        """Returns the setting called `name`."""
        return next(setting for setting in self.settings if setting.name == name)

    @property
    def settings_in_order(self) -> tuple[str, ...]:
        """The names of the settings."""
        return tuple(setting.name for setting in self.settings)

    def label(self, setting: str) -> str:
        """Returns the name of a setting in tables."""
        return self.setting(setting).label

    def _is_quick(self, setting: Setting) -> bool:
        patterns = self.quick_settings or ("*",)
        return setting.quick and any(fnmatchcase(setting.name, pattern) for pattern in patterns)

    def _counts(self, setting: Setting, quick: bool) -> tuple[int, ...]:
        if setting.flows:
            return (setting.flows,)
        if not setting.counts:
            changed = copy.deepcopy(self.template)
            for path, value in setting.change.items():
                put(changed, path, copy.deepcopy(value))
            return (sum(int(entry.get("count", 1)) for entry in changed["flows"]),)
        return setting.quick_counts if quick and setting.quick_counts else setting.counts


__all__ = ["Listed", "Setting", "put"]
