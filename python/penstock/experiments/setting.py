"""`--set KEY=VALUE`: changes single values of a scenario, and tells those that change nothing."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock import engine
from penstock.experiments import values
from penstock.experiments.model import SETTING, Experiment, Point
from penstock.experiments.paths import put_all
from penstock.mistake import MistakeError
from penstock.scenario import Scenario, to_toml, tree

_POINTS_TRIED = 200  # of an experiment, to find keys without effect


def read(given: Iterable[str]) -> dict[str, Any]:
    """Returns keys and values of `--set`."""
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key or "" in key.split("."):
            raise MistakeError(f"--set {text}: write KEY=VALUE, such as aqm.name=pie or topology.rate=5Mbit/s")
        if key in found:
            raise MistakeError(f"--set {key} is there twice; a key has one value")
        found[key] = _value(key, value)
    return found


def _value(key: str, text: str) -> Any:
    if not text:
        raise MistakeError(f"--set {key}= has no value; write {key}=VALUE, or {key}='\"\"' for an empty text")
    if text[0] in "[{\"'":
        try:
            return tomllib.loads(f"x = {text}")["x"]
        except tomllib.TOMLDecodeError as error:
            raise MistakeError(
                f"--set {key}={text}: {error}; write a text, a number or a list as in the file"
            ) from None
    several = values.from_text(text)
    if len(several) > 1:
        raise MistakeError(
            f"--set {key}={text}: a key has one value here; `penstock sweep FILE --vary {key}={text}` runs several"
        )
    return several[0]


def applied(scenario: Scenario, settings: Mapping[str, Any]) -> Scenario:
    """Returns the scenario with these values; raises the diagnosis of the simulator for what it does not allow."""
    tables = tree(scenario.text)
    if not settings or not tables:
        return scenario  # what is not TOML is diagnosed when it is run
    engine.check(scenario)
    changed = copy.deepcopy(tables)
    put_all(changed, settings)
    found = replace(scenario, text=to_toml(changed))
    label = ", ".join(f"{path}={values.shown(value)}" for path, value in settings.items())
    engine.check(found, f"{scenario.file} with {label}")
    return found


def applied_to(experiment: Experiment, settings: Mapping[str, Any]) -> Experiment:
    """Returns the experiment whose scenario has these values; what varies stands before them."""
    if not settings:
        return experiment
    for path in settings:
        if path == "seed":
            raise MistakeError("--set seed: the seeds of several runs are given by --seeds 3,7 or 1..20")
        if path in experiment.paths:
            raise MistakeError(f"--set {path}: this key varies already; give its values by --vary {path}=...")
    if experiment.listed:
        raise MistakeError("--set goes with a scenario or an experiment that varies keys, not with a list of scenarios")
    tables = copy.deepcopy(tree(experiment.scenario.text))
    put_all(tables, settings)
    return replace(experiment, scenario=replace(experiment.scenario, text=to_toml(tables)))


def without_effect(scenario: Scenario, settings: Mapping[str, Any]) -> list[str]:
    """Returns the keys without which the scenario, with all other settings, is the same."""
    whole = _resolved(applied(scenario, settings))
    found = []
    for path in settings:
        rest = {key: value for key, value in settings.items() if key != path}
        if _resolved(applied(scenario, rest)) == whole:
            found.append(path)
    return found


def told(keys: Sequence[str], option: str) -> str:
    """Returns what is said of keys without effect; nothing if there are none."""
    if not keys:
        return ""
    several = len(keys) > 1
    return (
        f"note: {option} {', '.join(keys)} {'have' if several else 'has'} no effect: the scenario is the same without "
        f"{'them' if several else 'it'} (it has the value already, or another key stands before, such as `cc` of each "
        "flow before tcp.cc)"
    )


def varies_nothing(experiment: Experiment) -> list[str]:
    """Returns the keys whose values all lead to the same scenarios."""
    several = [one for one in experiment.dimensions if len(one.steps) > 1 and one.paths != (SETTING,)]
    found = {path: True for one in several for path in one.paths}
    known: dict[tuple[str, str], str] = {}
    for number, point in enumerate(experiment.points()):
        if number >= _POINTS_TRIED or not any(found.values()):
            break
        text = _resolved_point(point)
        for one in several:
            rest = str([(path, value) for path, value in point.settings.items() if path not in one.paths])
            if known.setdefault((one.paths[0], rest), text) != text:
                found |= dict.fromkeys(one.paths, False)
    return [path for path, nothing in found.items() if nothing]


def _resolved(scenario: Scenario) -> str:
    return engine.before(scenario).resolved


def _resolved_point(point: Point) -> str:
    try:
        return _resolved(point.scenario)
    except Exception as error:  # a point that cannot be run is a row with its error
        return str(error)
