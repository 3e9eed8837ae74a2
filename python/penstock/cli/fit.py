"""`claims fit`: infers parameters that a document does not say from all numbers of its tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli import show
from penstock.cli.progress import Bar
from penstock.mistake import MistakeError, lacking

if TYPE_CHECKING:
    from penstock.fitting import Fit, Fitted
    from penstock.fitting.evaluate import Runs
    from penstock.reproduce import Experiment

_OUT = Path("runs/fit")


@dataclass(frozen=True)
class Options:
    """The options of the command."""

    recover: int | None
    jobs: int | None
    to: Path | None
    json: bool


def command(experiment: Experiment | None, options: Options) -> None:
    """Fits all that an experiment declares, or tests its fits by recovery."""
    try:
        from penstock.fitting import declared
    except ModuleNotFoundError:
        raise lacking("scipy", "`penstock claims fit`") from None

    if experiment is None:
        raise MistakeError(f"`penstock claims fit` needs the name of an experiment: {', '.join(_declaring())}")
    fits = declared(experiment)
    try:
        if options.recover:
            _recover(fits, options.recover, options)
        else:
            _fit(fits, options)
    except KeyboardInterrupt:
        print("interrupted: finished runs are kept; repeat the command to continue", file=sys.stderr)
        raise typer.Exit(130) from None


def _declaring() -> list[str]:
    from penstock.fitting import declared
    from penstock.reproduce import EXPERIMENTS

    found = []
    for name, experiment in EXPERIMENTS.items():
        try:
            declared(experiment)
        except MistakeError:
            continue
        found.append(name)
    return found


def _fit(fits: tuple[Fit, ...], options: Options) -> None:
    from penstock import store
    from penstock.fitting import fitted, page

    found = [fitted(_runs(fit, options)) for fit in fits]
    for one in found:
        store.write(_home(one.fit) / "fitted.json", store.dump(one.to_json()))
        if not options.json:
            _show(one)
    if options.json:
        show.as_json([one.to_json() for one in found])
    if options.to:
        page.write(options.to, found)


def _recover(fits: tuple[Fit, ...], number: int, options: Options) -> None:
    from penstock.fitting import page, recovered

    found = [recovered(_runs(fit, options), number) for fit in fits]
    if options.json:
        show.as_json({one.fit.name: one.to_json() for one in found})
    else:
        show.table("Hidden values", page.RECOVERED, page.recoveries(found), left=2)
    if options.to:
        page.write_recovered(options.to, found)


def _home(fit: Fit) -> Path:
    return _OUT / fit.experiment.name / fit.name


def _runs(fit: Fit, options: Options) -> Runs:
    from penstock.fitting.evaluate import Runs

    return Runs(fit, _home(fit) / "runs", Bar(fit.name, options.json), options.jobs)


def _show(found: Fitted) -> None:
    from penstock.fitting import page

    show.table(found.fit.title, page.PARAMETERS, page.parameters(found), left=1)
    if found.alone:
        show.table("", page.ALONE, page.alone(found), left=1)
    show.table("", page.NUMBERS, page.numbers(found.numbers), left=1)
    show.line(page.sentence(found))
    show.line(page.held(found))
