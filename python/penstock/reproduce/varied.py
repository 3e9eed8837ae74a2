"""A published experiment with more than was published: other values of a key, an algorithm of one's own.

It becomes an experiment like any other (`penstock.experiments`), whose points are the published runs with these
changes. Nobody claimed anything about them, so they are not judged.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.experiments import adjusting, values
from penstock.experiments.model import SETTING, Point
from penstock.experiments.model import Experiment as Varied
from penstock.experiments.paths import put_all
from penstock.mistake import MistakeError
from penstock.reproduce.base import Case, Experiment
from penstock.reproduce.own import with_own
from penstock.reproduce.settings import COUNT, DISCIPLINE
from penstock.reproduce.tempest import Tempest
from penstock.scenario import Scenario, to_toml

MEASURES = ("goodput_bps", "rtt_p50_ms", "rtt_p90_ms", "jain", "link.drop_share")


def varied(
    experiment: Experiment,
    *,
    quick: bool,
    vary: Mapping[str, Any],
    own: Sequence[str],
    seeds: Any,
    measure: Sequence[str],
) -> Varied:
    """Returns the experiment with values of keys, and with own algorithms beside the published ones."""
    first = experiment.scenario(next(experiment.cases(quick, 1)), quick)
    base = Varied(first, name=experiment.name, title=experiment.title, measure=MEASURES)
    changes = adjusting.adjusted(base, vary=vary, seeds=seeds, measure=measure)
    kinds = {name: adjusting.kind(base, name) for name in own}
    disciplines = [name for name, kind in kinds.items() if kind != "cc"]
    controls = [name for name, kind in kinds.items() if kind == "cc"]
    points = tuple(_points(with_own(experiment, disciplines), quick, changes, controls))
    return replace(changes, scenario=first, dimensions=(), listed=points)


def varied_tests(experiment: Tempest, vary: Mapping[str, Any], own: Sequence[str]) -> Tempest:
    """Returns tests of packet schedulers with other values of flags, and with own schedulers beside the published ones.

    Each test is done with each combination of values. There are no figures and no variants of such runs.
    """
    listed = {}
    for flag, given in vary.items():
        try:
            listed[flag] = values.from_text(given) if isinstance(given, str) else values.from_table(given)
        except MistakeError as error:
            raise MistakeError(f"{flag}: {error}") from None
    found = with_own(experiment, own)
    assert isinstance(found, Tempest)  # it is changed, and stays what it is
    tests = []
    for test, chosen in itertools.product(found.tests, itertools.product(*listed.values())):
        flags = {flag: str(value) for flag, value in zip(listed, chosen, strict=True)}
        told = [f"{flag}={value}" for flag, value in flags.items()]
        tests.append(
            replace(test, name="-".join([test.name, *told]), label=", ".join([test.label, *told]), given=flags)
        )
    return replace(found, tests=tuple(tests), figures={}, pictures={}, variants=())


def called(name: str, vary: Sequence[str], own: Sequence[str]) -> str:
    """Returns the name under which such tests are stored: the same for the same values and algorithms."""
    digest = hashlib.sha256("\0".join([*vary, "", *own]).encode()).hexdigest()
    return f"{name}-varied-{digest[:8]}"


def _points(experiment: Experiment, quick: bool, changes: Varied, controls: Sequence[str]) -> Iterator[Point]:
    """Yields each scenario once: published runs that a change makes alike are one."""
    seen: dict[str, None] = {}
    for case in _cases(experiment, quick):
        for control in ("", *controls):
            for chosen in itertools.product(*(dimension.steps for dimension in changes.dimensions)):
                chosen_values = dict(zip(changes.paths, itertools.chain(*chosen), strict=True))
                tree = {**experiment.varied_tree(case, quick), "name": experiment.name}
                put_all(tree, {**({"tcp.cc.name": control} if control else {}), **chosen_values})
                text = to_toml(tree)
                if text not in seen:
                    seen[text] = None
                    settings = {**_settings(experiment, case), **_control(experiment, case, quick, control, controls)}
                    scenario = Scenario(text, f"{experiment.name}.toml")
                    yield Point.of(len(seen) - 1, {**settings, **chosen_values}, scenario, tree)


def _cases(experiment: Experiment, quick: bool) -> list[Case]:
    """Returns the runs of one seed, those of each setting and number of flows together."""
    found = sorted(experiment.cases(quick, 1), key=lambda case: experiment.settings_in_order.index(case.setting))
    places = list(dict.fromkeys((case.setting, case.flows) for case in found))
    return sorted(found, key=lambda case: (places.index((case.setting, case.flows)), experiment.aqms.index(case.aqm)))


def _settings(experiment: Experiment, case: Case) -> dict[str, Any]:
    several = len(experiment.settings_in_order) > 1
    return {**({SETTING: case.setting} if several else {}), DISCIPLINE: case.aqm, COUNT: case.flows}


def _control(experiment: Experiment, case: Case, quick: bool, control: str, controls: Sequence[str]) -> dict[str, Any]:
    return {adjusting.CONTROL: control or experiment.cc_of(case, quick)} if controls else {}
