"""Writes the pages of runs and experiments."""

from __future__ import annotations

from pathlib import Path

from penstock import columns, rundir, store
from penstock.adversary import breaking
from penstock.experiments import compare
from penstock.experiments import results as sweeps
from penstock.mistake import MistakeError
from penstock.report import run_page
from penstock.reproduce import results
from penstock.reproduce.results import Evidence

REPORT = rundir.REPORT
ANSWER = "answer.json"  # of `what-if`
REPLAY, PACKETS = "replay.json", "packets.parquet"  # of `replay --out`
SUITE = "suite.json"  # of `suite`
FLENT = "flent.json"  # of the tests of Flent


class ReportError(MistakeError):
    """The directory contains no results."""


def write_experiment(evidence: Evidence, out: Path, root: Path | None = None, command: str = "") -> Path:
    """Writes the figures and the page of an experiment into `out`, and returns the path of the page.

    Claims may need results of other experiments, which are read from `root`. A `command` is that of runs about which
    nobody claimed anything; they are not judged.
    """
    with store.as_written(out / results.RESULTS):
        return _write_experiment(evidence, out, root, command)


def _write_experiment(evidence: Evidence, out: Path, root: Path | None, command: str) -> Path:
    # Figures and claims load slowly, and the page of a run needs neither.
    from penstock import plots
    from penstock.claims import ledger
    from penstock.report import experiment_page

    figures = plots.reproduction(evidence)
    others = results.stored(root, []) if root else {}
    name = evidence.experiment.name
    entries = ledger({**others, name: evidence}, only=name) if not command else []
    drawn = {name: plots.svg(figure) for name, figure in figures.items()}
    page = experiment_page.page(evidence, entries, drawn, command)
    pictures = [plots.files(figure, out / "figures" / name) for name, figure in figures.items()]
    store.together({out / REPORT: page, **{path: data for one in pictures for path, data in one.items()}})
    return out / REPORT


def write_run(path: Path) -> Path:
    """Writes the page of a run directory from its files, and returns the path of the page."""
    with store.held(path):
        kept = rundir.read(path, tables=True)
        with store.as_written(path):
            page = run_page.of_directory(kept)
        store.write(path / REPORT, page)
    return path / REPORT


def write_sweep(path: Path) -> Path:
    """Writes the page of the directory of a finished sweep, and returns the path of the page."""
    from penstock.report import sweep_page

    store.write(path / REPORT, sweep_page.page(sweeps.load(path)))
    return path / REPORT


def write_compare(path: Path) -> Path:
    """Writes the page of the directory of a comparison, and returns the path of the page."""
    from penstock.report import compare_page

    with store.as_written(path / compare.FILE):
        felt = store.read_json(path / compare.FELT) if (path / compare.FELT).is_file() else []
        page = compare_page.page(store.read_json(path / compare.FILE), felt)
    store.write(path / REPORT, page)
    return path / REPORT


def write_break(path: Path) -> Path:
    """Writes the page of a directory that `verify break` wrote, and returns the path of the page."""
    from penstock.report import break_page

    store.write(path / REPORT, break_page.page(path))
    return path / REPORT


def write_suite(path: Path) -> Path:
    """Writes the page of a directory that `suite` wrote, and returns the path of the page."""
    from penstock.report import suite_page
    from penstock.suites import results as suites

    store.write(path / REPORT, suite_page.page(suites.read(path)))
    return path / REPORT


def write_flent(path: Path) -> Path:
    """Writes the page of a directory that a test of Flent wrote, and returns the path of the page."""
    from penstock.flent import results as flent
    from penstock.report import flent_page

    store.write(path / REPORT, flent_page.page(flent.read(path)))
    return path / REPORT


def write_what_if(path: Path) -> Path:
    """Writes the page of the directory of an answer of `what-if`, and returns the path of the page."""
    from penstock.report import what_if_page

    with store.as_written(path / ANSWER):
        answer = store.read_json(path / ANSWER)
        page = what_if_page.page(answer, f"penstock what-if {answer['capture']}")
    store.write(path / REPORT, page)
    return path / REPORT


def write_replay(path: Path) -> Path:
    """Writes the page of a directory that `replay --out` wrote, and returns the path of the page."""
    from penstock.report import replay_page

    with store.as_written(path / REPLAY):
        told = store.read_json(path / REPLAY)
        page = replay_page.page(told, columns.from_parquet(store.read(path / PACKETS)))
    store.write(path / REPORT, page)
    return path / REPORT


def remake(path: Path | None, root: Path = Path("runs")) -> Path:
    """Writes the page of a directory again, without `path` that of the newest results below `root`."""
    if path is None:
        path = _newest(root)
    if (path / results.RESULTS).is_file():
        evidence = results.load(path)
        if not evidence.published:
            raise ReportError(f"{path}: has runs that were not published; the command that made them makes their page")
        return write_experiment(evidence, path, path.parent)
    if (path / rundir.MANIFEST).is_file():
        return write_run(path)
    if sweeps.is_sweep(path):
        return write_sweep(path)
    if breaking.is_break(path):
        return write_break(path)
    by_file = {
        compare.FILE: write_compare,
        SUITE: write_suite,
        FLENT: write_flent,
        ANSWER: write_what_if,
        REPLAY: write_replay,
    }
    for file, write in by_file.items():
        if (path / file).is_file():
            return write(path)
    raise ReportError(f"{path}: holds neither {rundir.MANIFEST} nor {results.RESULTS}")


def _newest(root: Path) -> Path:
    found = [*root.glob(f"*/{rundir.MANIFEST}"), *root.glob(f"reproduce/*/{results.RESULTS}")]
    found = [file for file in found if not store.is_beside(file.parent)]
    if not found:
        raise ReportError(f"{root}: no results yet; `penstock run` and `penstock reproduce` write some")
    return max(found, key=lambda file: file.stat().st_mtime).parent


__all__ = [
    "ReportError",
    "remake",
    "write_break",
    "write_compare",
    "write_experiment",
    "write_flent",
    "write_replay",
    "write_run",
    "write_suite",
    "write_sweep",
    "write_what_if",
]
