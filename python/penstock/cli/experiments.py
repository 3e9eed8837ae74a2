"""`reproduce` and `claims`: runs published experiments and judges what their documents claim."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from penstock import ecn
from penstock.cli import completion, options, show, worlds
from penstock.cli.base import verb
from penstock.cli.progress import Bar
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

if TYPE_CHECKING:
    from penstock.claims import Entry
    from penstock.reproduce import Evidence, Experiment


FIT, BREAK = "fit", "break"
_DISTURBED_SHOWN = 5


class _NamesThem(TyperCommand):
    """Lists the names of the experiments at the end of the help; they are loaded only for the help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes the help with the names of the experiments after the examples."""
        from penstock.reproduce import EXPERIMENTS

        shown = self.epilog
        self.epilog = f"{shown}\n\nExperiments: {', '.join(EXPERIMENTS)}."
        super().format_help(ctx, formatter)
        self.epilog = shown


@verb(
    "reproduce",
    "penstock reproduce pink-dsl --quick",
    "penstock reproduce friendliness --seeds 3 --jobs 2",
    "penstock reproduce pink-dsl --quick --on jar",
    "penstock reproduce pink-dsl --with mine.py:Step",
    "penstock reproduce pink-dsl --with mine.py:Step --vary flows.0.count=1,4,256 --seeds 20",
    cls=_NamesThem,
)
def reproduce(
    name: str = typer.Argument(
        help="An experiment of `penstock list experiment`, or a folder that contains an experiment.toml.",
        metavar="NAME|FOLDER",
        autocompletion=completion.experiments,
    ),
    quick: bool = typer.Option(False, "--quick", help="Do fewer and shorter runs."),
    vary: list[str] = typer.Option(
        [],
        metavar="KEY=VALUES",
        help="Other values of a key, as for `sweep`; such runs are not judged. Repeatable.",
        autocompletion=completion.keys,
    ),
    seeds: int = options.first_seeds(1, 1000, "Number of seeds; figures show medians"),
    jobs: int | None = options.JOBS,
    variants: str | None = typer.Option(
        None,
        metavar="NAMES",
        help="Run only these variants, which ask why a claim does not hold: names with commas, or none; default: all.",
    ),
    own: list[str] = typer.Option(
        [], "--with", help="Add an algorithm of your own. Repeatable.", metavar="FILE.py:CLASS"
    ),
    on: worlds.On = "sim",
    out: Path | None = typer.Option(None, "-o", "--out", help="Directory of the results; default runs/reproduce/NAME."),
    fresh: bool = typer.Option(
        False, "--fresh", help="Run all again; otherwise finished runs of the same build are reused."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object with all runs, variants and claims."),
    browse: bool = options.OPEN,
) -> None:
    """Run a published experiment again: figures, claims and a report. On a kernel, with the hosts that Linux has."""
    from penstock.reproduce.own import with_own
    from penstock.reproduce.results import home

    if browse and (vary or _controls(own)):
        raise MistakeError("--open opens the page of published runs, which there is not with --vary and own controls")
    if vary or _controls(own):
        if on != "sim":
            raise MistakeError(f"--on {on} does not go with --vary and own controls: the published runs go there")
        _vary(_experiment(name), quick, vary, own, seeds, jobs, out, fresh, json)
        return
    experiment = with_own(_experiment(name), own)
    if on != "sim":
        experiment = experiment.with_linux(on)
        for why in dict.fromkeys(experiment.refused.values()):
            count = sum(one == why for one in experiment.refused.values())
            show.warn(f"left out: {count} of the runs: {why}")
    kernel = [] if on == "sim" else [on]
    label = "-".join([experiment.name, *kernel, *(["with", *experiment.aqms[-len(own) :]] if own else [])])
    path = out or home(label, quick)
    wanted = _wanted(experiment, variants)
    evidence, complete = _run(experiment, path, quick, seeds, jobs, fresh, quiet=json, variants=wanted)
    if evidence is None:
        raise typer.Exit(130)
    options.opened(_tell(evidence, path, json), browse)
    if not complete:
        print("interrupted: finished runs are kept; repeat the command to continue", file=sys.stderr)
        raise typer.Exit(130)


def _wanted(experiment: Experiment, given: str | None) -> list[str] | None:
    """Returns the names of the variants that are to be run, or `None` for all."""
    if given is None:
        return None
    names = [] if given == "none" else given.split(",")
    known = [variant.name for variant in experiment.variants]
    for name in names:
        if name not in known:
            raise MistakeError(
                f"--variants {given}: {experiment.name} has no variant {name!r}; {did_you_mean(name, known)}"
                f"there are {', '.join(['none', *known])}"
            )
    return names


def _controls(own: list[str]) -> list[str]:
    """Returns the congestion controls among own algorithms."""
    from penstock.own import Library

    return [name for name in own if Library().kind(name) == "cc"]


def _vary(
    experiment: Experiment,
    quick: bool,
    vary: list[str],
    own: list[str],
    seeds: int,
    jobs: int | None,
    out: Path | None,
    fresh: bool,
    json: bool,
) -> None:
    """Runs the experiment with other values or an own algorithm, as `sweep` does. Nothing is judged."""
    from penstock.cli import sweep
    from penstock.experiments import results
    from penstock.experiments.runner import How
    from penstock.reproduce import Tempest
    from penstock.reproduce.results import home
    from penstock.reproduce.varied import called, varied, varied_tests

    if isinstance(experiment, Tempest):
        tests = varied_tests(experiment, sweep.varied(vary), own)
        path = out or home(called(experiment.name, vary, own), quick)
        evidence, complete = _run(tests, path, quick, seeds, jobs, fresh, quiet=json)
        _tell_tests(evidence, path, complete, json)
        return
    given = varied(experiment, quick=quick, vary=sweep.varied(vary), own=own, seeds=seeds, measure=())
    sweep.execute(given, out or results.default_path(given), How(jobs), json)


def _tell_tests(evidence: Evidence | None, path: Path, complete: bool, json: bool) -> None:
    from penstock import report as pages

    if evidence is not None:
        report = pages.write_experiment(evidence, path, command=shlex.join(["penstock", *sys.argv[1:]]))
        if json:
            runs = [outcome.to_json() for outcome in evidence.outcomes]
            show.as_json({"name": evidence.experiment.name, "runs": runs, "path": str(path)})
        else:
            _print_evidence(evidence)
            show.line(f"report: {report}")
    if not complete or evidence is None:
        print("interrupted: finished runs are kept; repeat the command to continue", file=sys.stderr)
        raise typer.Exit(130)


def _experiment(name: str) -> Experiment:
    """Returns the experiment of a name, or of a folder if no installed experiment has the name."""
    from penstock.reproduce import EXPERIMENTS
    from penstock.reproduce.experiments import is_folder, open_folder

    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    if is_folder(Path(name)):
        return open_folder(Path(name))
    if Path(name).is_dir():
        raise MistakeError(f"{name}: this folder contains no experiment.toml")
    raise MistakeError(
        f"there is no experiment {name!r}; {did_you_mean(name, EXPERIMENTS)}there are {', '.join(EXPERIMENTS)}"
    )


def _tell(evidence: Evidence, path: Path, json: bool) -> Path:
    """Writes the report of an experiment, judges its claims, and prints both; returns the report."""
    from penstock import report as pages
    from penstock.claims import ledger

    name = evidence.experiment.name
    report = pages.write_experiment(evidence, path, path.parent)
    entries = ledger({**_stored(path.parent), name: evidence}, only=name)
    if json:
        runs = [outcome.to_json() for outcome in evidence.outcomes]
        variants = [outcome.to_json() for outcome in evidence.variants]
        judged = [entry.to_json() for entry in entries]
        show.as_json({"name": name, "runs": runs, "variants": variants, "claims": judged})
    else:
        _print_evidence(evidence)
        show.claims(entries)
        show.line(f"report: {report}")
    tell_disturbed(evidence)
    return report


def tell_disturbed(evidence: Evidence) -> None:
    """Warns of the runs which the machine disturbed."""
    found = evidence.disturbed
    if found:
        show.warn(f"warning: the machine disturbed {len(found)} runs: repeat them when it is idle, with --fresh")
    for case, by in list(found.items())[:_DISTURBED_SHOWN]:
        show.warn(f"  {case}: {', '.join(by)}")


def _run(
    experiment: Experiment,
    out: Path,
    quick: bool,
    seeds: int,
    jobs: int | None,
    fresh: bool,
    quiet: bool,
    variants: list[str] | None = None,
) -> tuple[Evidence | None, bool]:
    from penstock.reproduce import reproduce as run_experiment

    with Bar(experiment.name, quiet) as bar:
        done = run_experiment(
            experiment, out, quick=quick, seeds=seeds, jobs=jobs, fresh=fresh, variants=variants, watcher=bar
        )
    if done[0]:
        runs = (*done[0].outcomes, *done[0].variants)
        show.warn(ecn.warning_of([outcome.summary for outcome in runs]))
    return done


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


@verb(
    "claims",
    "penstock claims",
    "penstock claims pink-dsl",
    "penstock claims --run --quick --json",
    "penstock claims fit fq-pie --page docs/results/fit.md",
    "penstock claims fit lindrop --recover 20",
    "penstock claims break pink-multi --trials 40",
    "penstock claims break pink-multi.reallocation-uses-the-link --again",
)
def claims(
    wanted: str = typer.Argument(
        "",
        help="Id of a claim, or name of an experiment; default: all. `fit` infers what a paper does not say; `break` "
        "searches the run within the paper's set-up that contradicts a claim most.",
        metavar="[ID | fit PAPER | break ID]",
    ),
    paper: str = typer.Argument(
        "", help="With fit: an experiment that declares a fit. With break: an experiment or a claim.", metavar=""
    ),
    run: bool = typer.Option(False, "--run", help="First run the experiments, in their full form."),
    quick: bool = typer.Option(False, "--quick", help="With --run: run them in their quick form."),
    seeds: int | None = options.first_seeds(
        None, 1000, "With --run: number of seeds; default: what each experiment says; 1 with --quick"
    ),
    json: bool = typer.Option(False, "--json", help="Print a JSON list."),
    earlier: Path | None = typer.Option(
        None, hidden=True, help="With --page: what an earlier version prints with --json of the same results."
    ),
    to: Path | None = typer.Option(None, "--page", help="Write the ledger into this page, and its rows beside it."),
    source: Path | None = typer.Option(None, "--from", help="Read the rows that --page has written, not results."),
    check: bool = typer.Option(False, "--check", help="Exit with 1 when a claim that was run fails."),
    recover: int | None = typer.Option(
        None, min=1, help="With fit: fit so many tables made by the simulator with hidden values instead."
    ),
    trials: int | None = typer.Option(
        None, min=1, help="With break: number of trials; default: what a fixed number of events allows."
    ),
    again: bool = typer.Option(False, "--again", help="With break: run the stored counter-example of a claim again."),
    out: Path | None = typer.Option(
        None, "-o", "--out", help="With --again: write the scenarios of the runs into this directory."
    ),
    jobs: int | None = typer.Option(
        None, "-j", "--jobs", min=1, help="With fit, break: runs at once; default: one per core."
    ),
) -> None:
    """Print the ledger: every claim with the verdict that the newest runs give. With fit, infer what is not said.

    With break, search what contradicts a claim; a counter-example does not change a verdict.
    """
    if wanted == BREAK:
        from penstock.cli import counterexamples

        counterexamples.command(paper, counterexamples.Options(trials, jobs, again, out, json))
        return
    _only_with("penstock claims break", {"--trials": trials, "--again": again, "--out": out})
    if wanted == FIT:
        from penstock.cli import fit

        fit.command(_experiment(paper) if paper else None, fit.Options(recover, jobs, to, json))
        return
    _only_with("penstock claims fit PAPER", {f"`{paper}`": paper, "--recover": recover, "--jobs": jobs})
    _with_run(run, quick, seeds, source)
    if earlier and not to:
        raise MistakeError("--earlier goes with --page")
    entries, shown = _written(source, wanted) if source else _judged(wanted, run, quick, seeds, json)
    _show_ledger(entries, shown, json, to, earlier)
    if check and any(entry.verdict == "fails" and entry.counts for entry in shown):
        raise typer.Exit(1)


def _judged(wanted: str, run: bool, quick: bool, seeds: int | None, quiet: bool) -> tuple[list[Entry], list[Entry]]:
    """Returns the whole ledger, and the rows that are wanted. With `run`, the experiments of these are run first."""
    from penstock.claims import ledger

    evidence = _stored()
    shown = _chosen(ledger(evidence), wanted)
    if run:
        evidence |= {
            one.name: _run_for_ledger(one, quick, seeds or (1 if quick else one.seeds), quiet) for one in _needed(shown)
        }
    entries: list[Entry] = ledger(evidence)
    return entries, _chosen(entries, wanted)


def _with_run(run: bool, quick: bool, seeds: int | None, source: Path | None) -> None:
    if not run and (quick or seeds):
        raise MistakeError(f"{'--quick' if quick else '--seeds'} goes with --run")
    if source and run:
        raise MistakeError("--from goes without --run: it reads rows that are written")


def _written(source: Path, wanted: str) -> tuple[list[Entry], list[Entry]]:
    """Returns the rows of a file, and those that are wanted."""
    from penstock.claims import page

    entries = page.read(source)
    return entries, _chosen(entries, wanted)


def _show_ledger(entries: list[Entry], shown: list[Entry], json: bool, to: Path | None, earlier: Path | None) -> None:
    from penstock.claims import page

    if json:
        show.as_json([entry.to_json() for entry in shown])
    else:
        show.claims(shown)
    if to:
        page.write(to, entries, _verdicts(earlier))


def _only_with(command: str, given: Mapping[str, Any]) -> None:
    """Refuses what goes with another form of the command."""
    for name, value in given.items():
        if value:
            raise MistakeError(f"{name} goes with `{command}`")


def _stored(root: Path | None = None) -> dict[str, Evidence]:
    """Reads all stored results; names those that cannot be read, and leaves them out."""
    from penstock.reproduce.results import ROOT, stored

    broken: list[str] = []
    found = stored(root or ROOT, broken)
    for message in broken:
        show.warn(f"warning: left out: {message}")
    return found


def _verdicts(earlier: Path | None) -> dict[str, str]:
    """Reads verdicts by the ids of claims from what `claims --json` printed."""
    from json import loads

    try:
        return {row["id"]: row["verdict"] for row in loads(earlier.read_text(encoding="utf-8"))} if earlier else {}
    except (OSError, ValueError, TypeError, KeyError):
        raise MistakeError(f"{earlier}: not what `penstock claims --json` prints") from None


def _chosen(entries: list[Entry], wanted: str) -> list[Entry]:
    """Returns the claim whose id is `wanted`, or the claims of the experiment of this name; all if it is empty."""
    if not wanted:
        return entries
    found = [entry for entry in entries if wanted in (entry.id, entry.id.split(".", 1)[0])]
    if not found:
        known = {name: None for entry in entries for name in (entry.id, entry.id.split(".", 1)[0])}
        raise MistakeError(f"there is no claim {wanted!r}; {did_you_mean(wanted, known)}`penstock claims` lists them")
    return found


def _needed(entries: list[Entry]) -> list[Experiment]:
    """Returns the experiments whose results decide these claims."""
    from penstock.claims.ledger import claims as all_claims
    from penstock.reproduce import EXPERIMENTS

    ids = {entry.id for entry in entries}
    needed = {name for claim in all_claims() if claim.id in ids for name in claim.needs}
    return [experiment for name, experiment in EXPERIMENTS.items() if name in needed]


def _run_for_ledger(experiment: Experiment, quick: bool, seeds: int, quiet: bool) -> Evidence:
    from penstock import report as pages
    from penstock.reproduce.results import home

    out = home(experiment.name, quick)
    evidence, complete = _run(experiment, out, quick, seeds, None, False, quiet)
    if evidence is None or not complete:
        raise typer.Exit(130)
    pages.write_experiment(evidence, out, out.parent)
    return evidence
