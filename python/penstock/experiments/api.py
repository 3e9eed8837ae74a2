"""`penstock.sweep` and `penstock.compare`: experiments from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock import worlds
from penstock.experiments import compare as comparing
from penstock.experiments import reading, results, runner, setting
from penstock.experiments.adjusting import adjusted
from penstock.experiments.compare import Comparison
from penstock.experiments.model import Experiment
from penstock.experiments.results import Sweep
from penstock.experiments.runner import How, Watcher
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

Source = str | Path | Mapping[str, Any] | Experiment


class InterruptedSweepError(KeyboardInterrupt):
    """A sweep was interrupted. What is finished is kept: the same call goes on."""


def experiment(source: Source) -> Experiment:
    """Returns the experiment of a file, of a TOML text, of a mapping, or of a scenario in any of these forms."""
    return source if isinstance(source, Experiment) else reading.load(source)


def _world(on: str) -> str:
    if on not in worlds.NAMES:
        raise MistakeError(f"on={on!r}: {did_you_mean(on, worlds.NAMES)}there are {', '.join(worlds.NAMES)}")
    return on


def sweep(
    source: Source,
    *,
    vary: Mapping[str, Any] | None = None,
    zipped: Iterable[Sequence[str]] = (),
    seeds: int | Sequence[int] | str | None = None,
    until: str | float | Mapping[str, Any] | None = None,
    measure: Sequence[str] = (),
    own: Sequence[str] = (),
    delays: bool = False,
    out: str | Path | None = None,
    jobs: int | None = None,
    dask: str = "",
    on: str = worlds.SIM,
    watcher: Watcher | None = None,
) -> Sweep:
    """Runs a scenario or an experiment over what varies, and returns the results; what is finished is not run again.

    `vary` has lists, ranges (`{"from": 1, "to": 64, "points": 7, "scale": "log"}`) or the texts of `--vary` by keys of
    the scenario. `seeds` is a number of seeds, a list, or a text such as "11..20". With `delays` the distributions of
    delays are kept. `out` is the directory of the results; without it they are in runs/sweeps/. `on` is the world, as
    for `penstock.run`. Raises `ScenarioError` if no point can be run; a point that fails is a row.
    """
    changes: dict[str, Any] = {"vary": vary, "zipped": zipped, "seeds": seeds, "until": until, "measure": measure}
    wanted = adjusted(experiment(source), **changes, own=own, delays=delays, on=_world(on))
    path = Path(out) if out else results.default_path(wanted)
    done = runner.run(wanted, path, How(jobs, dask=dask), watcher)
    if done.sweep is None:
        raise InterruptedSweepError(f"{done.finished} of {done.runs} runs are finished; the same call goes on")
    return done.sweep


def compare(
    *items: Source,
    vary: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    seeds: int | Sequence[int] | str | None = None,
    measure: Sequence[str] = (),
    by: str = "",
    own: Sequence[str] = (),
    jobs: int | None = None,
    dask: str = "",
    on: str = worlds.SIM,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
    command: str = "",
) -> Comparison:
    """Runs what is not run yet, and tells which is better and by how much.

    Each item is a scenario, an experiment, or the directory of a run or a sweep. All have the same seeds (by
    default 10). `settings` are values that the scenarios get by key before. Of one item, the values of the key `by` are
    compared, or of the first key that varies. Scenarios and experiments run in the world `on`. `out` is the directory
    of what was found; without it it is in runs/compare/. `command` is what makes the same again on a terminal.
    """
    world = _world(on)
    found = []
    for label, one, path in comparing.items(items):
        if settings and path:
            raise MistakeError(f"--set changes scenarios, and {path} holds results; name the scenario itself")
        wanted = setting.applied_to(one, settings or {})
        found.append((label, adjusted(wanted, vary=vary, own=own, on=one.on if path else world), path))
    given: dict[str, Any] = {"seeds": seeds, "measure": measure, "by": by, "command": command}
    place = Path(out) if out else None
    return comparing.compare(found, **given, how=How(jobs, dask=dask), watcher=watcher, out=place)
