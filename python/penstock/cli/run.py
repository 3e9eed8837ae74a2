"""`run`, `rerun`, `report`: one scenario and its directory."""

from __future__ import annotations

import contextlib
from pathlib import Path

import typer

from penstock import rundir
from penstock.cli import app, show
from penstock.cli.progress import Bar
from penstock.engine import Result, simulate
from penstock.scenario import Scenario

PACKETS = "packets.pcapng"


@app.command()
def run(
    scenario: Path = typer.Argument(help="A scenario file, see docs/scenarios.md.", metavar="FILE.toml"),
    seed: int | None = typer.Option(None, min=0, max=2**64 - 1, help="Replaces the scenario's seed."),
    out: Path | None = typer.Option(None, help="Directory of the results; default runs/NAME-HASH."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object; write a directory only with --out."),
    pcapng: Path | None = typer.Option(None, help="Write the bottlenecks' packets with the reason of each drop."),
) -> None:
    """Run a scenario: tables on the terminal, everything else in a directory."""
    source = Scenario.load(scenario)
    path = out or (None if json else rundir.default_path(source, seed))
    if path:
        path.mkdir(parents=True, exist_ok=True)
        if source.wants_packets and pcapng is None:
            pcapng = path / PACKETS
    result = _run_or_clean_up(source, seed, pcapng, path, quiet=json)
    page = _write(result, path) if path else None
    if json:
        show.as_json({**result.summary, "cpu_s": result.cpu_s})
        return
    show.summary(result.summary)
    speed = result.summary["events"] / max(result.cpu_s, 1e-9) / 1e6
    show.console().print(f"{result.cpu_s:.2f} s of CPU time, {speed:.1f} million events per second", style="dim")
    show.console().print(f"report: {page}", soft_wrap=True)


def _run_or_clean_up(source: Scenario, seed: int | None, pcapng: Path | None, path: Path | None, quiet: bool) -> Result:
    """A run that does not come to its end leaves no empty directory behind."""
    last = 0.0
    with Bar(source.name, quiet) as bar:

        def on_progress(now_s: float, duration_s: float) -> None:
            nonlocal last
            if not last:
                bar.begin(1, 0, duration_s)
            bar.advanced(now_s - last)
            last = now_s

        try:
            return simulate(source, seed, pcapng, on_progress=on_progress)
        except BaseException:
            if path:
                with contextlib.suppress(OSError):
                    path.rmdir()
            raise


def _write(result: Result, path: Path) -> Path:
    from penstock import report as pages

    rundir.write(result, path)
    return pages.write_run(path)


@app.command()
def rerun(
    directory: Path = typer.Argument(help="A directory that `penstock run` wrote.", metavar="DIR"),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run a directory's scenario again and compare the summaries byte for byte."""
    again = rundir.rerun(directory)
    if json:
        changed = {name: {"then": then, "now": now} for name, (then, now) in again.versions.items()}
        show.as_json({"same": again.same, "versions_changed": changed})
    else:
        for name, (then, now) in again.versions.items():
            print(f"{name}: {then} then, {now} now")
        print("same: summary.json is reproduced byte for byte" if again.same else "different: summary.json has changed")
    if not again.same:
        raise typer.Exit(1)


@app.command()
def report(
    directory: Path | None = typer.Argument(None, help="Default: the newest results under runs/.", metavar="[DIR]"),
) -> None:
    """Make the HTML page of a run or of an experiment again."""
    from penstock import report as pages

    print(pages.remake(directory))
