"""`sweep`: runs a scenario over ranges of its keys, and over seeds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli import show
from penstock.cli.base import verb
from penstock.cli.progress import RunsBar
from penstock.cli.worlds import OnAny
from penstock.mistake import MistakeError

if TYPE_CHECKING:
    from penstock.experiments.model import Experiment
    from penstock.experiments.results import Sweep
    from penstock.experiments.runner import Done, How

_POINTS_SHOWN = 40
_FAILURES_SHOWN = 5


@verb(
    "sweep",
    "penstock sweep home.toml --vary aqm.name=codel,pie --vary flows.0.count=1..64:log7 --seeds 10",
    "penstock sweep experiment.toml --until 2%",
    "penstock sweep experiment.toml --dry-run",
    "penstock sweep home.toml --vary aqm.name=codel,pink --on jar",
    "penstock sweep experiment.toml --shard 1/16 --out /shared/results",
)
def sweep(
    file: Path = typer.Argument(
        help="A scenario, or an experiment; `penstock docs experiments` explains both.", metavar="FILE.toml"
    ),
    vary: list[str] = typer.Option(
        [], metavar="KEY=VALUES", help="A key of the scenario and its values: 1,4,256 or 1..64:log7 or 1ms..9ms:lin5."
    ),
    zipped: list[str] = typer.Option([], "--zip", metavar="KEY,KEY", help="Keys whose values change together."),
    seeds: str | None = typer.Option(None, help='Number of seeds, or seeds: "20", "3,7", "11..20".'),
    until: str | None = typer.Option(
        None, metavar="2%", help="Add seeds until the 95 % interval of the first measure is this narrow (+-)."
    ),
    measure: list[str] = typer.Option([], metavar="NAME", help="Measure of the table; `penstock docs measures`."),
    own: list[str] = typer.Option(
        [], "--with", metavar="FILE.py:Class", help="An algorithm of yours, beside the rest."
    ),
    delays: bool = typer.Option(False, "--delays", help="Keep the distributions of delays, added over seeds."),
    on: OnAny = "sim",
    jobs: int | None = typer.Option(None, "-j", "--jobs", min=1, help="Number of processes; default: one per core."),
    shard: str = typer.Option("", metavar="I/N", help="Run only part I of N, into a directory that all parts share."),
    dask: str = typer.Option("", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler."),
    array_script: str = typer.Option("", metavar="slurm[:TASKS]", help="Write an array job that runs the sweep."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Tell points, CPU time, disk and end; store nothing."),
    out: Path | None = typer.Option(
        None, "-o", "--out", help="Directory of the results; default runs/sweeps/NAME-HASH."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run a scenario over ranges of its keys and over seeds: medians and means with their intervals."""
    from penstock.experiments import reading, results
    from penstock.experiments.adjusting import adjusted

    experiment = adjusted(
        reading.load(file),
        vary=varied(vary),
        zipped=[[key.strip() for key in keys.split(",")] for keys in zipped],
        seeds=seeds,
        until=until,
        measure=measure,
        own=own,
        delays=delays,
        on=on,
    )
    path = out or results.default_path(experiment)
    how = _how(jobs, shard, dask)
    if array_script:
        _write_script(array_script, experiment, path)
    elif dry_run:
        _estimate(experiment, path, how, json)
    else:
        execute(experiment, path, how, json)


def varied(given: list[str]) -> dict[str, str]:
    """Returns keys and values of `--vary`."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, values = text.partition("=")
        if not equals or not key.strip():
            raise MistakeError(f"--vary {text}: write KEY=VALUES, such as flows.0.count=1,4,256")
        if key.strip() in found:
            raise MistakeError(f"--vary {key.strip()} is there twice; write all values into one")
        found[key.strip()] = values
    return found


def _how(jobs: int | None, shard: str, dask: str) -> How:
    from penstock.experiments.runner import How, Shard

    if not shard:
        return How(jobs, None, dask)
    number, slash, of = shard.partition("/")
    if not slash or not (number.isdigit() and of.isdigit()) or not 1 <= int(number) <= int(of):
        raise MistakeError(f"--shard {shard}: write I/N with I from 1 to N, such as 3/16")
    return How(jobs, Shard(int(number), int(of)), dask)


def _write_script(wanted: str, experiment: Experiment, path: Path) -> None:
    from penstock import store
    from penstock.experiments import scripts

    dropped = ("--array-script", "--out", "-o", "--jobs", "-j", "--shard", "--dask")
    words: list[str] = []
    given = iter(sys.argv[1:])
    for word in given:
        if word in dropped:
            next(given, None)
        elif not word.startswith(tuple(f"{one}=" for one in dropped)):
            words.append(word)
    text = scripts.script(wanted, experiment.called, ["penstock", *words, "--out", str(path)])
    place = scripts.place(experiment.called)
    store.write(place, text)
    show.line(f"sbatch {place}")


def _estimate(experiment: Experiment, path: Path, how: How, json: bool) -> None:
    from penstock.experiments.estimate import estimate
    from penstock.experiments.runner import Plan

    plan = Plan(experiment)
    plan.check()
    found = estimate(plan, path, how)
    if json:
        show.as_json({**found.to_json(), "end": found.end, "path": str(path)})
        return
    rows = [
        ["points", f"{found.points:,}"],
        ["runs", f"{found.runs:,}" + (", and more where intervals are wide" if found.adds_seeds else "")],
        ["finished already", f"{found.finished:,}"],
        ["CPU time of the rest", _time(found.cpu_s)],
        [f"takes with {found.jobs} processes", _time(found.wall_s)],
        ["ends about", found.end],
        ["disk", f"{found.disk_bytes / 1e6:.1f} MB in {path}"],
    ]
    show.table(experiment.called, ("", ""), rows, left=2, heads=False)
    if found.error:
        show.warn(f"warning: a run failed, and would be a row with its error: {found.error}")


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def execute(experiment: Experiment, path: Path, how: How, json: bool) -> None:
    """Runs what is not finished, and prints the table."""
    from penstock.experiments import runner

    with RunsBar(experiment.called, json) as bar:
        done = runner.run(experiment, path, how, bar)
    for message in done.died:
        show.warn(f"warning: {message}")
    if done.sweep is None:
        _tell_part(done, how, json)
        return
    if json:
        show.as_json(done.sweep.to_json())
    else:
        _print(done.sweep)
    tell_disturbed(done.sweep)
    _tell_failures(done.sweep)


def tell_disturbed(sweep: Sweep) -> None:
    """Warns of the runs which the machine disturbed."""
    if not sweep.disturbed:
        return
    show.warn(
        f"warning: the machine disturbed {len(sweep.disturbed)} runs of {sweep.experiment.called}: "
        "repeat them when it is idle"
    )
    for one in sweep.disturbed[:_FAILURES_SHOWN]:
        show.warn(f"  {one.point}, seed {one.seed}: {', '.join(one.by)}")


def _tell_part(done: Done, how: How, json: bool) -> None:
    if json:
        show.as_json({"path": str(done.path), "runs": done.runs, "finished": done.finished, "ran": done.ran})
    else:
        show.line(f"{done.finished:,} of {done.runs:,} runs are finished; {done.path} has what is there")
    if done.interrupted:
        show.warn("interrupted: what is finished is kept, and the same command goes on")
        raise typer.Exit(130)
    if how.shard is None:
        raise typer.Exit(1)


def _tell_failures(sweep: Sweep) -> None:
    if not sweep.failures:
        return
    show.warn(f"warning: {len(sweep.failures)} runs failed; results.parquet has their errors")
    for one in sweep.failures[:_FAILURES_SHOWN]:
        show.warn(f"  {one.point}, seed {one.seed}: {one.error.splitlines()[0]}")
    raise typer.Exit(1)


def _print(sweep: Sweep) -> None:
    """Prints a row for each point, with its measures over the seeds."""
    from penstock import report
    from penstock.experiments.overview import overview

    table = overview(sweep)
    show.table(table.title, table.columns, table.rows[:_POINTS_SHOWN], left=table.left)
    if len(table.rows) > _POINTS_SHOWN:
        show.line(f"... and {len(table.rows) - _POINTS_SHOWN} more rows", "dim")
    show.line(f"\n{table.note}", "dim")
    show.line(f"tables: {sweep.path}")
    show.line(f"report: {report.write_sweep(sweep.path)}")
