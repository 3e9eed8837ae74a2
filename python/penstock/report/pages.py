"""Writes HTML pages of runs and experiments from templates."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import jinja2

from penstock import plots, rundir, store
from penstock.claims import Verdict, ledger
from penstock.mistake import MistakeError
from penstock.report import run_page
from penstock.reproduce import columns, results
from penstock.reproduce.results import Evidence
from penstock.scenario import to_toml

REPORT = rundir.REPORT


class ReportError(MistakeError):
    """The directory contains no results."""


def write_experiment(evidence: Evidence, out: Path, root: Path | None = None) -> Path:
    """Writes the figures and the page of an experiment into `out`, and returns the path of the page.

    Claims may need results of other experiments, which are read from `root`.
    """
    with store.as_written(out / results.RESULTS):
        return _write_experiment(evidence, out, root)


def _write_experiment(evidence: Evidence, out: Path, root: Path | None) -> Path:
    figures = plots.reproduction(evidence)
    others = results.stored(root, []) if root else {}
    entries = ledger({**others, evidence.experiment.name: evidence}, only=evidence.experiment.name)
    claimed = [entry for entry in entries if entry.counts]
    counted = {verdict.value: sum(entry.verdict == verdict for entry in claimed) for verdict in Verdict}
    page = _page(
        "experiment.html.j2",
        title=evidence.experiment.title,
        experiment=evidence.experiment,
        evidence=evidence,
        counted=counted,
        claims=entries,
        figures=[
            _figure(figures[name], one.title, one.caption, evidence.experiment.figures[name])
            for name, one in plots.drawings(evidence.experiment).items()
        ],
        headings=columns.headings(evidence),
        rows=columns.rows(evidence),
        with_settings=any(evidence.settings),
        variants=_variants(evidence),
        labels=plots.LABELS,
        colours=plots.COLOURS,
        scenario=to_toml(evidence.experiment.template),
        command=_command(evidence),
        versions=evidence.versions,
    )
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


def remake(path: Path | None, root: Path = Path("runs")) -> Path:
    """Writes the page of a directory again, without `path` that of the newest results below `root`."""
    if path is None:
        path = _newest(root)
    if (path / results.RESULTS).is_file():
        return write_experiment(results.load(path), path, path.parent)
    if (path / rundir.MANIFEST).is_file():
        return write_run(path)
    raise ReportError(f"{path}: holds neither {rundir.MANIFEST} nor {results.RESULTS}")


def _newest(root: Path) -> Path:
    found = [*root.glob(f"*/{rundir.MANIFEST}"), *root.glob(f"reproduce/*/{results.RESULTS}")]
    found = [file for file in found if not store.is_beside(file.parent)]
    if not found:
        raise ReportError(f"{root}: no results yet; `penstock run` and `penstock reproduce` write some")
    return max(found, key=lambda file: file.stat().st_mtime).parent


def _command(evidence: Evidence) -> str:
    command = f"penstock reproduce {evidence.experiment.name}"
    command += " --quick" if evidence.quick else ""
    return command + (f" --seeds {len(evidence.seeds)}" if len(evidence.seeds) > 1 else "")


def _figure(figure: Any, title: str, caption: str, item: str) -> dict[str, str]:
    data = base64.b64encode(plots.svg(figure)).decode()
    return {"title": title, "caption": caption, "item": item, "src": f"data:image/svg+xml;base64,{data}"}


def _variants(run: Evidence) -> list[dict[str, Any]]:
    """Returns each variant with its rows of results, each beside the row of the published runs."""
    published = {(row.aqm, row.flows, row.setting): row for row in columns.rows(run)}
    tables = []
    for variant in run.experiment.variants:
        if variant.name not in run.varied:
            continue
        varied = columns.rows(run.varied[variant.name], run)
        pairs = [
            {"now": row, "before": published[row.aqm, row.flows, row.setting]}
            for row in varied
            if row.aqm in variant.aqms
        ]
        tables.append({"name": variant.name, "change": variant.change, "pairs": pairs})
    return tables


def _page(template: str, **values: Any) -> str:
    loader = jinja2.PackageLoader("penstock.report", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(verdicts=list(Verdict), **values)


__all__ = ["ReportError", "remake", "write_experiment", "write_run"]
