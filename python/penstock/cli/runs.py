"""`runs`: lists, shows, repeats, exports, packs and removes stored results. The old verbs `rerun` and `report`, too."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli import completion, options, show
from penstock.cli.base import examples, group, old_name
from penstock.mistake import MistakeError

if TYPE_CHECKING:
    from penstock.rundir import Again
    from penstock.runs import Found

runs = group(
    "runs",
    "Show, repeat, export and remove the results of earlier runs.",
    "penstock runs list",
    "penstock runs show runs/home-1a2b3c4d",
    "penstock runs export runs/home-1a2b3c4d --csv --pdf",
    "penstock runs prune --older 30d --dry-run",
)
_DIFFERENCES_SHOWN = 20
_DIR = typer.Argument(
    help="A directory that `penstock run` wrote, or its name.", metavar="DIR", autocompletion=completion.runs
)
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def _size(size_bytes: int) -> str:
    return next((f"{size_bytes / of:.1f} {unit}" for of, unit in _UNITS if size_bytes >= of), f"{size_bytes} B")


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


@runs.command("list", epilog=examples("penstock runs list", "penstock runs list runs/reproduce --json"))
def list_(
    directory: Path = typer.Argument(Path("runs"), help="Where to look, at any depth.", metavar="[DIR]"),
    json: bool = typer.Option(False, "--json", help="Print a JSON list."),
) -> None:
    """List the results of runs, reproductions, sweeps, answers of `what-if` and replays, the newest first."""
    from penstock import runs as stored

    found = stored.find(directory)
    if json:
        show.as_json([one.to_json() for one in found])
    elif found:
        _print(found)
    else:
        print(f"{directory}: no runs yet; `penstock run` and `penstock reproduce` write some")


def _print(found: list[Found]) -> None:
    rows = [
        [
            str(one.path),
            one.kind,
            one.name,
            one.scenario or "-",
            "-" if one.seed is None else str(one.seed),
            _date(one.written_s),
            one.version,
            _size(one.size_bytes),
        ]
        for one in found
    ]
    show.table("", ("directory", "kind", "name", "scenario", "seed", "written", "version", "size"), rows, left=4)


@runs.command("show", epilog=examples("penstock runs show runs/home-1a2b3c4d"))
def show_(
    directory: Path = _DIR,
    json: bool = typer.Option(False, "--json", help="Print one JSON object: manifest, summary and timing."),
) -> None:
    """Print the tables of a run again, with its scenario and the versions of the programs that made it."""
    from penstock import rundir, store
    from penstock import runs as stored

    path = stored.locate(directory)
    kept = rundir.read(path)
    manifest, summary = kept.manifest, kept.summary
    if json:
        timing = kept.json(rundir.TIMING)
        show.as_json({"path": str(path), "manifest": manifest, "summary": summary, "timing": timing})
        return
    with store.as_written(path / rundir.SUMMARY):
        show.summary(summary)
    print(f"\nscenario: {manifest['file']}")
    for name, version in manifest["versions"].items():
        print(f"{name}: {version}")
    show.line(f"again: penstock runs rerun {path}")


@runs.command(
    "rerun", epilog=examples("penstock runs rerun runs/home-1a2b3c4d", "penstock runs rerun home-1a2b3c4d.zip --json")
)
@old_name("rerun", "runs rerun")
def rerun(
    directory: Path = typer.Argument(
        help="A directory that `penstock run` wrote, its name, or an archive of `runs pack`.",
        metavar="DIR|ARCHIVE",
        autocompletion=completion.runs,
    ),
    trust: bool = typer.Option(False, "--trust", help="Execute the run's own Python code without asking."),
    most: str = typer.Option("10min", metavar="TIME", help="Give up an archive whose run takes longer than this."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run a directory's scenario again and compare the summaries byte for byte.

    If they differ, the keys that differ are printed with both values. Before Python code of the run is executed, its
    path and its hash are shown, and you are asked; without a terminal --trust is needed. A run in an archive reads no
    file but those in it, and leaves none (`penstock docs strangers`).
    """
    from penstock import rundir
    from penstock import runs as stored
    from penstock.exports import pack

    given = stored.locate(directory)
    archive = given.is_file()
    with pack.unpacked(given) if archive else nullcontext(given) as path:
        permit = None if trust else _Permit(path, rundir.read_manifest(path)["versions"])
        again = _again(path, permit, archive, given, most)
    if again.changed:
        show.warn(f"warning: {path / rundir.SUMMARY} was changed after the run")
    if json:
        changed = {name: {"then": then, "now": now} for name, (then, now) in again.versions.items()}
        found = [one.to_json() for one in again.differences]
        show.as_json({"same": again.same, "versions_changed": changed, "differences": found})
    else:
        for name, (then, now) in again.versions.items():
            print(f"{name}: {then} then, {now} now")
        _print_comparison(again)
    if not again.same:
        raise typer.Exit(1)


def _again(path: Path, permit: _Permit | None, archive: bool, given: Path, most: str) -> Again:
    """Repeats the run of a directory; that of an archive is given up after some time."""
    from penstock import rundir
    from penstock import runs as stored
    from penstock.engine import Stopped

    end = time.monotonic() + stored.age_s(most)
    try:
        return rundir.rerun(path, permit, archive, lambda: archive and time.monotonic() > end)
    except Stopped:
        raise MistakeError(f"{given}: given up after {most} (--most): its run takes longer than that") from None


class _Permit:
    """Asks whether a file of Python code may be executed."""

    def __init__(self, path: Path, versions: dict[str, str]) -> None:
        self._path, self._versions = path, versions

    def __call__(self, name: str, where: Path, text: str) -> None:
        """Shows path and hash of the file; raises `MistakeError` unless a person agrees."""
        from penstock.provenance import sha256

        now, then = sha256(text), self._versions.get(name)
        changed = "as in the run" if now == then else f"in the run it was {then or 'not named'}"
        about = f"{where} (SHA-256 {now}; {changed})"
        if not sys.stdin.isatty():
            raise MistakeError(f"{self._path}: the run executes Python code, {about}: read it, then give --trust")
        print(f"the run executes Python code, and what this imports: {about}", file=sys.stderr)
        if not typer.confirm("execute it?", err=True):
            raise MistakeError(f"{self._path}: not repeated, because {where} was not to be executed")


def _print_comparison(again: Again) -> None:
    if again.same:
        print("same: summary.json is reproduced byte for byte")
        return
    if not again.differences:
        print("different: summary.json has the same values in another form")
        return
    print(f"different: summary.json has changed in {len(again.differences)} keys")
    for one in again.differences[:_DIFFERENCES_SHOWN]:
        print(f"  {one}")
    if len(again.differences) > _DIFFERENCES_SHOWN:
        print(f"  ... and {len(again.differences) - _DIFFERENCES_SHOWN} more; --json prints all")


@runs.command("report", epilog=examples("penstock runs report", "penstock runs report runs/home-1a2b3c4d"))
@old_name("report", "runs report")
def report(
    directory: Path | None = typer.Argument(
        None, help="Default: the newest results under runs/.", metavar="[DIR]", autocompletion=completion.runs
    ),
    browse: bool = options.OPEN,
) -> None:
    """Make the HTML page of a run or of an experiment again."""
    from penstock import report as pages
    from penstock import runs as stored

    page = pages.remake(stored.locate(directory) if directory else None)
    print(page)
    options.opened(page, browse)


@runs.command(
    "export",
    epilog=examples(
        "penstock runs export runs/home-1a2b3c4d --csv --latex",
        "penstock runs export runs/sweeps/home-1a2b3c4d --latex",
        "penstock runs export runs/home-1a2b3c4d --qlog --flows 0,3 --interval 20ms -o logs",
    ),
)
def export(
    directory: Path = typer.Argument(
        help="A directory that `penstock run` or `penstock sweep` wrote, or its name.", metavar="DIR"
    ),
    csv: bool = typer.Option(False, "--csv", help="Tables of bottlenecks, flows and seconds as CSV."),
    latex: bool = typer.Option(False, "--latex", help="Tables of bottlenecks and flows as LaTeX (booktabs)."),
    pdf: bool = typer.Option(False, "--pdf", help="Figures as PDF."),
    qlog: bool = typer.Option(False, "--qlog", help="A qlog file for each connection; the run is repeated for it."),
    flows: str = typer.Option("", help='With --qlog: numbers of flows, such as "0,3"; default: the first eight.'),
    interval: str = typer.Option("10ms", help="With --qlog: time between samples."),
    trust: bool = typer.Option(False, "--trust", help="With --qlog: execute the run's own Python code without asking."),
    out: Path | None = typer.Option(None, "-o", "--out", help="Directory of the files; default DIR-export."),
) -> None:
    """Write results in other formats: without an option as CSV, LaTeX and PDF; those of a sweep as CSV and LaTeX."""
    from penstock import rundir, store
    from penstock import runs as stored
    from penstock.cli.tcp_trace import numbers
    from penstock.experiments import results as sweeps
    from penstock.exports import run as exports
    from penstock.exports.sweep import files as sweep_files

    path = stored.locate(directory)
    wanted = {"csv": csv, "latex": latex, "pdf": pdf, "qlog": qlog}
    chosen = {name for name, given in wanted.items() if given}
    if sweeps.is_sweep(path):
        files = sweep_files(path, chosen)
    else:
        permit = None if trust else _Permit(path, rundir.read_manifest(path)["versions"])
        files = exports.files(path, chosen or set(exports.USUAL), numbers(flows), interval, permit)
    place = out or path.with_name(f"{path.name}-export")
    store.parents(place / "any")
    store.together({place / name: data for name, data in files.items()})
    for name in files:
        print(place / name)


@runs.command("pack", epilog=examples("penstock runs pack runs/home-1a2b3c4d", "penstock runs rerun home-1a2b3c4d.zip"))
def pack_(
    directory: Path = _DIR,
    out: Path | None = typer.Option(None, "-o", "--out", help="The archive; default NAME.zip in this directory."),
) -> None:
    """Write a run as one archive with hashes, which `runs rerun` takes on another machine."""
    from penstock import runs as stored
    from penstock import store
    from penstock.exports import pack

    path = stored.locate(directory)
    data = pack.archive(path)
    place = out or Path(f"{path.resolve().name}{pack.ENDING}")
    store.write(place, data)
    show.line(f"{place}: {_size(len(data))}, SHA-256 {store.sha256(data)}")


@runs.command(
    "prune", epilog=examples("penstock runs prune --older 30d --dry-run", "penstock runs prune --keep 20 --yes")
)
def prune(
    directory: Path = typer.Argument(Path("runs"), help="Where to look, at any depth.", metavar="[DIR]"),
    older: str = typer.Option("", metavar="AGE", help="Remove only runs that are older than this: 30d, 12h, 2w."),
    keep: int = typer.Option(0, min=0, metavar="N", help="Keep the N newest runs, whatever their age."),
    yes: bool = typer.Option(False, "--yes", help="Remove without asking."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Print what would be removed, and remove nothing."),
) -> None:
    """Remove runs, sweeps, answers of `what-if` and replays.

    Reproductions, and directories with files of yours in them, are kept.
    """
    from penstock import runs as stored
    from penstock import store

    before = time.time() - (stored.age_s(older) if older else 0.0)
    if not dry_run:
        store.clear_left(directory)
    listed = [one for one in stored.find(directory) if one.kind in stored.REMOVED]  # the newest first
    found = [one for one in listed[keep:] if one.written_s <= before]
    others = {one.path: names for one in found if (names := stored.foreign(one.path))}
    for path, names in others.items():
        print(f"kept: {path}, which contains files that no command writes: {', '.join(names[:3])}")
    gone = [one for one in found if one.path not in others]
    if not gone:
        print(f"{directory}: nothing to remove")
        return
    for one in gone:
        print(f"{one.path}  {_date(one.written_s)}  {_size(one.size_bytes)}")
    what = f"{len(gone)} director{'y' if len(gone) == 1 else 'ies'}, {_size(sum(one.size_bytes for one in gone))}"
    if dry_run:
        print(f"would be removed: {what}")
        return
    if not yes:
        typer.confirm(f"remove {what}?", abort=True)
    for one in gone:
        stored.remove(one.path)
    print(f"removed: {what}")
