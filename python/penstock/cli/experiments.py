"""`reproduce` and `claims`: published experiments and what they are said to show."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from penstock.claims import Entry, Verdict, ledger, page
from penstock.cli import app, show
from penstock.cli.progress import Bar
from penstock.mistake import MistakeError
from penstock.reproduce import EXPERIMENTS, Evidence, Experiment
from penstock.reproduce import reproduce as run_experiment
from penstock.reproduce.experiments import find
from penstock.reproduce.results import home, stored

_NAMES = ", ".join(EXPERIMENTS)


@app.command()
def reproduce(
    name: str = typer.Argument(help=f"One of: {_NAMES}.", metavar="NAME"),
    quick: bool = typer.Option(False, "--quick", help="A few of the runs, and shorter ones."),
    seeds: int = typer.Option(1, min=1, help="Repetitions with seeds 1, 2, ...; figures show medians."),
    jobs: int | None = typer.Option(None, min=1, help="Runs at once; default: one per core."),
    out: Path | None = typer.Option(None, help="Directory of the results; default runs/reproduce/NAME."),
    fresh: bool = typer.Option(False, "--fresh", help="Run all again; otherwise runs of the same build are kept."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object with all runs, variants and claims."),
) -> None:
    """Run a published experiment again: figures, claims and a report."""
    experiment = find(name)
    path = out or home(name, quick)
    evidence, complete = _run(experiment, path, quick, seeds, jobs, fresh, quiet=json)
    if evidence is None:
        raise typer.Exit(130)
    from penstock import report as pages

    report = pages.write_experiment(evidence, path, path.parent)
    entries = ledger({**stored(path.parent), name: evidence}, only=name)
    if json:
        runs = [outcome.to_json() for outcome in evidence.outcomes]
        variants = [outcome.to_json() for outcome in evidence.variants]
        judged = [entry.to_json() for entry in entries]
        show.as_json({"name": name, "runs": runs, "variants": variants, "claims": judged})
    else:
        _print_evidence(evidence)
        show.claims(entries)
        show.console().print(f"report: {report}", soft_wrap=True)
    if not complete:
        print("interrupted: what was finished is kept; the same command goes on from there", file=sys.stderr)
        raise typer.Exit(130)


def _run(
    experiment: Experiment, out: Path, quick: bool, seeds: int, jobs: int | None, fresh: bool, quiet: bool
) -> tuple[Evidence | None, bool]:
    with Bar(experiment.name, quiet) as bar:
        return run_experiment(experiment, out, quick=quick, seeds=seeds, jobs=jobs, fresh=fresh, watcher=bar)


def _print_evidence(evidence: Evidence) -> None:
    from penstock.reproduce import columns

    settings = any(evidence.settings)
    keys = (["setting"] if settings else []) + ["flows", "discipline"]
    rows = [
        [*([evidence.experiment.label(row.setting)] if settings else []), str(row.flows), row.aqm, *row.cells]
        for row in columns.rows(evidence)
    ]
    title = f"{evidence.experiment.title}: {evidence.scope()}"
    show.table(title, [*keys, *columns.headings(evidence)], rows, left=len(keys))
    print()


@app.command()
def claims(
    run: bool = typer.Option(False, "--run", help="Run the experiments first, in their full form."),
    quick: bool = typer.Option(False, "--quick", help="With --run: in their quick form."),
    json: bool = typer.Option(False, "--json", help="Print a JSON list."),
    to: Path | None = typer.Option(None, "--page", help="Write the ledger into this page."),
    check: bool = typer.Option(False, "--check", help="Exit with 1 when a claim that was run fails."),
) -> None:
    """Print the ledger: every claim with the verdict that the newest runs give."""
    if quick and not run:
        raise MistakeError("--quick goes with --run")
    evidence = stored()
    if run:
        evidence |= {name: _run_for_ledger(EXPERIMENTS[name], quick, json) for name in EXPERIMENTS}
    entries: list[Entry] = ledger(evidence)
    if json:
        show.as_json([entry.to_json() for entry in entries])
    else:
        show.claims(entries)
    if to:
        page.write(to, entries)
    if check and any(entry.verdict == Verdict.FAILS for entry in entries):
        raise typer.Exit(1)


def _run_for_ledger(experiment: Experiment, quick: bool, quiet: bool) -> Evidence:
    out = home(experiment.name, quick)
    evidence, complete = _run(experiment, out, quick, 1, None, False, quiet)
    if evidence is None or not complete:
        raise typer.Exit(130)
    from penstock import report as pages

    pages.write_experiment(evidence, out, out.parent)
    return evidence
