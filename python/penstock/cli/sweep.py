"""`sweep`: runs a scenario over ranges of its keys, and over seeds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from penstock.cli import options, show
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
    "penstock sweep home.toml --vary aqm.name=codel,pie --set topology.rate=5Mbit/s --open",
    "penstock sweep experiment.toml --until 2%",
    "penstock sweep experiment.toml --dry-run",
    "penstock sweep home.toml --vary aqm.name=codel,pink --on jar",
    "penstock sweep experiment.toml --shard 1/16 --out /shared/results",
)
def sweep(
    file: Path = typer.Argument(
        help="A scenario, or an experiment; `penstock docs experiments` explains both. `-` is standard input.",
        metavar="FILE.toml|-",
    ),
    vary: list[str] = options.VARY,
    settings: list[str] = options.SET,
    stack: list[str] = options.STACK,
    zipped: list[str] = typer.Option([], "--zip", metavar="KEY,KEY", help="Keys whose values change together."),
    seeds: str | None = options.SEEDS,
    until: str | None = typer.Option(
        None, metavar="2%", help="Add seeds until the 95 % interval of the first measure is this narrow (+-)."
    ),
    measure: list[str] = options.MEASURE,
    own: list[str] = options.WITH,
    delays: bool = typer.Option(False, "--delays", help="Keep the distributions of delays, added over seeds."),
    on: OnAny = "sim",
    jobs: int | None = options.JOBS,
    shard: str = typer.Option("", metavar="I/N", help="Run only part I of N, into a directory that all parts share."),
    dask: str = typer.Option("", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler."),
    array_script: str = typer.Option("", metavar="slurm[:TASKS]", help="Write an array job that runs the sweep."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Tell points, CPU time, disk and end; store nothing."),
    out: Path | None = typer.Option(
        None, "-o", "--out", help="Directory of the results; default runs/sweeps/NAME-HASH."
    ),
    json: bool = options.JSON,
    browse: bool = options.OPEN,
) -> None:
    """Run a scenario over ranges of its keys and over seeds: medians and means with their intervals."""
    from penstock.experiments import results, setting
    from penstock.experiments.adjusting import adjusted

    options.hosting(stack)
    source = setting.applied_to(_experiment(file), setting.read(settings))
    experiment = adjusted(
        source,
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
        execute(experiment, path, how, json, browse)


def _experiment(file: Path) -> Experiment:
    """Returns the experiment of a file, or of standard input for `-`."""
    from penstock.experiments import reading

    if str(file) != options.STDIN:
        return reading.load(file)
    source = options.scenario(file)
    return reading.read(source.text, source.file) if reading.is_experiment(source.text) else reading.of_scenario(source)


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


def execute(experiment: Experiment, path: Path, how: How, json: bool, browse: bool = False) -> None:
    """Runs what is not finished, and prints the table."""
    from penstock.experiments import runner, setting

    runner.Plan(experiment).check()
    show.warn(setting.told(setting.varies_nothing(experiment), "--vary"))
    before = _held(path)
    with RunsBar(experiment.called, json) as bar:
        done = runner.run(experiment, path, how, bar)
    for message in done.died:
        show.warn(f"warning: {message}")
    if done.sweep is None:
        _tell_part(done, how, json)
        return
    show.warn(_replaced(before, done))
    if json:
        show.as_json(done.sweep.to_json())
    else:
        _print(done.sweep)
    if browse:
        from penstock import report

        options.opened(report.write_sweep(done.sweep.path), True)
    tell_disturbed(done.sweep)
    tell_failures(done.sweep)


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


def tell_failures(sweep: Sweep) -> None:
    """Warns of the runs that failed, and then ends with 1."""
    if not sweep.failures:
        return
    show.warn(f"warning: {len(sweep.failures)} runs failed; results.parquet has their errors")
    seeds: dict[tuple[str, str], list[int]] = {}
    for one in sweep.failures:
        seeds.setdefault((one.point, one.error.splitlines()[0]), []).append(one.seed)
    for (point, error), failed in list(seeds.items())[:_FAILURES_SHOWN]:
        which = f"seed {failed[0]}" if len(failed) == 1 else f"{len(failed)} seeds"
        show.warn(f"  {point}{', ' * bool(point)}{which}: {error}")
    raise typer.Exit(1)


def _held(path: Path) -> dict[str, Any] | None:
    """Returns what the tables in a directory are of, if a sweep was finished there."""
    from penstock import store
    from penstock.experiments import results

    if not results.is_sweep(path):
        return None
    try:
        found = store.read_json(path / results.SWEEP)
    except store.StoreError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("experiment"), dict) else None


def _replaced(before: dict[str, Any] | None, done: Done) -> str:
    """Says that the tables of a larger or of another sweep were in the directory; nothing if these have all of it."""
    if before is None or done.sweep is None:
        return ""
    was, now = before["experiment"], done.sweep.experiment.described()
    if was.get("scenario") == now["scenario"] and _within(was, now):
        return ""
    seeds = was.get("seeds") or []
    varied = ", ".join(key for one in was.get("vary") or () for key in one["keys"]) or "nothing"
    return (
        f"note: {done.path} held the tables of another sweep ({before.get('runs')} runs; it varied {varied}; "
        f"{len(seeds)} seeds), which those of this one ({done.runs} runs) have replaced; the runs of both are kept "
        "there, and the other command makes its tables again without running them"
    )


def _within(was: dict[str, Any], now: dict[str, Any]) -> bool:
    """Returns true if a sweep has all points and seeds of an earlier one."""
    if was.get("settings") != now["settings"] or was.get("listed") != now["listed"]:
        return False
    values = {tuple(one["keys"]): one["values"] for one in now["vary"]}
    steps = all(
        all(step in values.get(tuple(one["keys"]), ()) for step in one["values"]) for one in was.get("vary") or ()
    )
    return steps and set(was.get("seeds") or ()) <= set(now["seeds"])


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
