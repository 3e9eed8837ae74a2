"""Changes an experiment by what a command or a call adds to its file: keys that vary, seeds, measures, algorithms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock import worlds
from penstock.experiments import measures, reading, values
from penstock.experiments.model import SETTING, Dimension, Experiment
from penstock.experiments.tables import RESERVED
from penstock.mistake import MistakeError
from penstock.scenario import tree
from penstock.suggest import did_you_mean

AQM, CONTROL, PER_FLOW = "aqm", "tcp.cc", "per_flow"  # where algorithms stand in a scenario
# Parameters of a discipline with classes, which describe the classes and not the scheduler.
CLASSES = frozenset({"flows", "classify", "weights", "stations", "class_limit", "max_packet", "perturbation"})


def adjusted(
    experiment: Experiment,
    *,
    vary: Mapping[str, Any] | None = None,
    zipped: Iterable[Sequence[str]] = (),
    seeds: Any = None,
    until: Any = None,
    measure: Sequence[str] = (),
    own: Sequence[str] = (),
    delays: bool = False,
    on: str = worlds.SIM,
) -> Experiment:
    """Returns the experiment with these changes. A key that varies already gets the new values in place of the old."""
    dimensions = _varied(experiment.dimensions, vary or {})
    situations = dict(experiment.situations)
    for path in vary or {}:
        situations = {name: one.without(path) for name, one in situations.items()}
    for group in zipped:
        if len(group) < 2:
            raise MistakeError(f"--zip joins two keys or more; {', '.join(group)!r} is one")
    dimensions = reading.zipped(dimensions, list(zipped)) if zipped else dimensions
    keys = tuple(measures.find(key).key for key in measure) or experiment.measure
    found = replace(
        experiment,
        dimensions=dimensions,
        situations=situations,
        seeds=experiment.seeds if seeds is None else reading.seeds(seeds),
        measure=keys,
        until=experiment.until if until is None else reading.until(until, keys),
        delays=experiment.delays or delays,
        on=on,
    )
    for name in own:
        found = with_own(found, name)
    _check(found)
    return found


def _varied(dimensions: Sequence[Dimension], vary: Mapping[str, Any]) -> tuple[Dimension, ...]:
    new = {}
    for path, given in vary.items():
        try:
            found = values.from_text(given) if isinstance(given, str) else values.from_table(given)
        except MistakeError as error:
            raise MistakeError(f"{path}: {error}") from None
        new[path] = Dimension((path,), tuple((value,) for value in found))
    kept = []
    for dimension in dimensions:
        same = [path for path in dimension.paths if path in new]
        if same and len(dimension.paths) > 1:
            raise MistakeError(f"{same[0]} changes together with others in the file (zip); give all of them, and --zip")
        kept.append(new.pop(same[0]) if same else dimension)
    return (*kept, *new.values())


def _check(experiment: Experiment) -> None:
    paths = experiment.paths
    for dimension in experiment.dimensions:
        for name, *_ in dimension.steps if dimension.paths == (SETTING,) else ():
            if name not in experiment.situations:
                known = list(experiment.situations)
                raise MistakeError(f"there is no setting {name!r}; {did_you_mean(str(name), known)}{', '.join(known)}")
    for path in paths:
        if path == "seed":
            raise MistakeError("the key `seed` varies by seeds: `--seeds 20`, or `seeds = 20` in the file")
        if path in RESERVED or not path or "" in path.split("."):
            raise MistakeError(f"{path!r} is no key that can vary; write a path of the scenario, such as flows.0.count")
        if paths.count(path) > 1:
            raise MistakeError(f"{path} is there twice")


def with_own(experiment: Experiment, name: str) -> Experiment:
    """Returns the experiment with an own algorithm ("FILE.py:Class") as one more value beside those it has."""
    path, value = place(experiment, name)
    for at, dimension in enumerate(experiment.dimensions):
        if dimension.paths in ((path,), (f"{path}.name",)):
            plain = dimension.paths[0] != path and set(value) == {"name"}
            more = replace(dimension, steps=(*dimension.steps, (name if plain else value,)))
            dimensions = (*experiment.dimensions[:at], more, *experiment.dimensions[at + 1 :])
            situations = {key: one.also(dimension.paths[0], name) for key, one in experiment.situations.items()}
            return replace(experiment, dimensions=dimensions, situations=situations)
    one = Dimension((path,), ((_now(experiment, path),), (value,)))
    return replace(experiment, dimensions=(*experiment.dimensions, one))


def place(experiment: Experiment, name: str) -> tuple[str, dict[str, Any]]:
    """Returns where an own algorithm stands in the scenario, and what stands there.

    An AQM takes the place of the discipline, or in `fq` that of the AQM of each flow queue; a scheduler that of the
    discipline, whose classes it keeps; an element on the ACK path comes before the discipline.
    """
    found = kind(experiment, name)
    now = _now(experiment, AQM)
    table = {"name": now} if isinstance(now, str) else dict(now)
    if found == "cc":
        return CONTROL, {"name": name}
    if found == "aqm" and table["name"] == "fq" and not any(path.startswith(AQM) for path in experiment.paths):
        return f"{AQM}.{PER_FLOW}", {"name": name}
    if found == "scheduler":
        return AQM, {"name": name, **{key: item for key, item in table.items() if key in CLASSES}}
    return AQM, {"name": name, **({"queue": now} if found == "ack-path" else {})}


def kind(experiment: Experiment, name: str) -> str:
    """Returns the kind of a class, which its base class says: "cc", "aqm", "scheduler" or "ack-path"."""
    if ".py:" not in name:
        raise MistakeError(f"--with {name}: write FILE.py:Class")
    found = experiment.scenario.library().kind(name)
    if found is None:
        raise MistakeError(f"--with {name}: derives from none of penstock.Aqm, CongestionControl, Scheduler, AckPath")
    return found


def _now(experiment: Experiment, path: str) -> Any:
    """Returns the algorithm that the scenario has there."""
    found: Any = tree(experiment.scenario.text)
    if path.startswith(AQM) and AQM not in found:
        found = next((link for link in found.get("topology", {}).get("links", []) if AQM in link), {})
    for key in path.split("."):
        found = found.get(key, {}) if isinstance(found, Mapping) else {}
    return found or ("cubic" if path == CONTROL else "droptail")
