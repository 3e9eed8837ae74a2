"""What may vary in an experiment, and the experiment with other values."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from penstock.adversary.space import Choices, Gene, Settings, Space
from penstock.claims.counterexample import BUFFER, VARIANT
from penstock.engine import tcp_defaults
from penstock.experiments.paths import put
from penstock.mistake import MistakeError
from penstock.reproduce import Case, Experiment, Sweep, Tempest, open_keys
from penstock.reproduce.base import aqm_tables
from penstock.scenario import Scenario, to_toml

SPREAD, COUNTS, ACCESS = "flows.*.start_spread", "flows.0.count", "topology.access_delay"
_SPREAD_KINDS = ("bulk", "transfer")
_TOGETHER = "0s"
_SIZE = re.compile(r"([\d.]+)(\w*)")


@cache
def _also() -> Mapping[str, tuple[str, ...]]:
    return {key["name"]: tuple(key.get("also", ())) for key in open_keys.tables()["keys"]}


def space_of(experiment: Experiment) -> Space:
    """Returns what the document of an experiment leaves open, as a space of the adversary."""
    given = open_keys.of(experiment.name)
    known = {variant.name for variant in experiment.variants}
    if unknown := [name for name in given.get("variants", ()) if name not in known]:
        raise MistakeError(f"{open_keys.FILE}: {experiment.name} has no variant {unknown[0]!r}")
    genes = [*_genes(experiment), *(_variant(name) for name in given.get("variants", ()))]
    return Space("experiment", {}, tuple(genes), ())


def _variant(name: str) -> Gene:
    return Gene(f"{VARIANT}{name}", Choices((True,)), False)


def _genes(experiment: Experiment) -> Iterator[Gene]:
    if isinstance(experiment, Tempest):
        return  # it has no scenario
    own = {one.name: one for one in open_keys.own(experiment.name) if one.in_scenario}
    for key in open_keys.general(experiment.name):
        more = own.pop(key["name"]).values if key["name"] in own else ()
        if values := tuple(dict.fromkeys((*_values(experiment, key), *more))):
            yield Gene(key["name"], Choices(values))
    for name, one in own.items():
        yield Gene(name, Choices(one.values))


def _values(experiment: Experiment, key: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of a key that are not the published one; none where the key has no place in the experiment."""
    name, template = key["name"], experiment.template
    if name == ACCESS:
        now = str(template["topology"].get("access_delay", "0ms"))
        return tuple(f"{float(now.removesuffix('ms')) + more:g}ms" for more in key["plus_ms"]) if "ms" in now else ()
    if name == COUNTS:
        return tuple(key["values"]) if isinstance(experiment, Sweep) else ()
    if name.startswith("tcp."):
        parameter = name.removeprefix("tcp.")
        now = template.get("tcp", {}).get(parameter, tcp_defaults().get(parameter))
        return tuple(value for value in key["values"] if value != now)
    return tuple(key["values"])


@dataclass(frozen=True)
class Form:
    """Which runs of an experiment a trial has, and how long they are."""

    quick: bool  # the runs of the quick form, else all
    shorter: bool  # as long as in the quick form, which is shorter than published


def form_of(experiment: Experiment) -> Form:
    """Returns the form of the runs of a trial."""
    given = open_keys.of(experiment.name)
    return Form(given.get("runs") == "quick", given.get("lasting") == "quick")


@dataclass(frozen=True)
class Altered:
    """An experiment with other values of what its document leaves open. All its runs have them alike."""

    experiment: Experiment
    settings: Settings
    form: Form
    instead: bool = False  # drop-tail is in the place of the disciplines under test

    @classmethod
    def of(cls, experiment: Experiment, settings: Settings) -> Altered:
        """Returns the experiment with these settings. What claims compute from a scenario follows them."""
        counts = settings.get(COUNTS)
        found = copy.copy(experiment)
        if counts and isinstance(experiment, Sweep):
            found = replace(experiment, flows=tuple(int(number) for number in counts.split(",")))
        template = copy.deepcopy(experiment.template)
        for key, value in settings.items():
            if key.startswith("tcp.") or key == ACCESS:
                for path in (key, *_also().get(key, ())):
                    put(template, path, value)
        found.__dict__["template"] = template  # where `cached_property` keeps it
        return cls(found, settings, form_of(experiment))

    def cases(self, seed: int) -> list[Case]:
        """Returns the runs of a seed."""
        return [replace(case, seed=seed) for case in self.experiment.cases(self.form.quick, 1)]

    def scenario(self, case: Case) -> Scenario:
        """Returns the scenario of a run."""
        tested = open_keys.under_test(self.experiment) if self.instead else ()
        if case.aqm in tested:
            case = open_keys.stand_in(self.experiment, case)
        tree = self.experiment.tree(case, self.form.shorter)
        variants = {variant.name: variant for variant in self.experiment.variants}
        for variant in variants.values():
            chosen = self.settings.get(f"{VARIANT}{variant.name}")
            if chosen and case.aqm in variant.aqms and variant.is_for(case.setting):
                for name in (*variant.joint, variant.name):
                    variants[name].apply(tree)
        for one in open_keys.own(self.experiment.name):
            if one.name in self.settings and one.in_scenario and one.key != SPREAD:
                open_keys.apply(tree, case, one, self.settings[one.name])
        if SPREAD in self.settings:
            _spread(tree, self.settings[SPREAD])
        if BUFFER in self.settings:
            _scale_queues(tree, self.settings[BUFFER])
        if case.aqm in tested:
            open_keys.be_droptail(tree)
        tree.pop("invariants", None)  # a run that contradicts a claim is to end
        return Scenario(to_toml(tree), f"{tree['name']}.toml")


def _spread(tree: dict[str, Any], spread: str) -> None:
    for flow in tree["flows"]:
        if flow.get("kind") in _SPREAD_KINDS and flow.get("start_spread", _TOGETHER) != spread:
            flow["start_spread"] = spread


def _scale_queues(tree: dict[str, Any], part: float) -> None:
    topology = tree["topology"]
    for place in [topology, *(link for link in topology.get("links", ()) if "aqm" in link)]:
        found = _SIZE.fullmatch(str(place.get("limit", "")))
        if found and (place is not topology or aqm_tables(tree)):
            size = float(found[1]) * part
            place["limit"] = f"{round(size) if found[2] in ('p', 'B') else f'{size:.4g}'}{found[2]}"
