"""Puts numbers and figures into the templates."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import jinja2

from penstock import plots, rundir
from penstock.claims import Verdict, ledger
from penstock.mistake import MistakeError
from penstock.reproduce import results
from penstock.reproduce.results import Evidence
from penstock.scenario import to_toml

REPORT = "report.html"

_CAPTIONS = {
    "goodput": (
        "Goodput",
        "Payload that reaches all receivers together in each second. A box spans the 10th to the 90th percentile, "
        "the thick line is the median, the dashed line the most that full frames can carry; a second in which the gap "
        "after a loss is filled can deliver more than the link carried in it. Higher and flatter is better.",
    ),
    "rtt": (
        "Round trip time",
        "Every sample of every flow. A box spans the 10th to the 90th percentile, the thick line is the median; what "
        "lies above the dashed line, the smallest sample of all runs, was spent in the queue. Lower and flatter is "
        "better.",
    ),
    "fairness": (
        "Fairness",
        "Jain's index of the flows' goodput in each second; shown is the worst second of a run after its warm-up. "
        "1 means that all flows get the same.",
    ),
    "data": (
        "Data carried and dropped",
        "Payload that arrived in the whole run, with the dropped payload in black on top of it. The number above a "
        "bar is the dropped payload in percent of what arrived, the dashed line the most that the link can carry.",
    ),
    "queue": ("Bottleneck", "Throughput with headers, and the longest queue of each second."),
}
_RUN_CAPTIONS = {
    "goodput": ("Goodput of the flows", "Payload that reaches a receiver in each second."),
    "queue": _CAPTIONS["queue"],
}


class ReportError(MistakeError):
    """There is nothing to report on."""


def write_experiment(evidence: Evidence, out: Path, root: Path | None = None) -> Path:
    """Writes figures and page of an experiment into its directory; claims may need others beside it in `root`."""
    figures = plots.reproduction(evidence)
    for name, figure in figures.items():
        plots.save(figure, out / "figures" / name)
    others = results.stored(root) if root else {}
    entries = ledger({**others, evidence.experiment.name: evidence}, only=evidence.experiment.name)
    counted = {verdict.value: sum(entry.verdict == verdict for entry in entries) for verdict in Verdict}
    page = _page(
        "experiment.html.j2",
        title=evidence.experiment.title,
        experiment=evidence.experiment,
        evidence=evidence,
        counted=counted,
        claims=entries,
        figures=[
            _figure(name, figure, _CAPTIONS, evidence.experiment.figures[name]) for name, figure in figures.items()
        ],
        rows=rows(evidence),
        variants=_variants(evidence),
        labels=plots.LABELS,
        colours=plots.COLOURS,
        scenario=to_toml(evidence.experiment.template),
        command=_command(evidence),
        versions=evidence.versions,
    )
    return _write(out, page)


def write_run(path: Path) -> Path:
    """Writes the page of a run directory from the files in it."""
    import pyarrow.parquet as pq

    manifest = rundir.read_manifest(path)
    tables = {file.stem: pq.read_table(file) for file in sorted(path.glob("*.parquet"))}
    summary = rundir.read_json(path / rundir.SUMMARY)
    figures = plots.single(tables, [b["name"] for b in summary["bottlenecks"]])
    page = _page(
        "run.html.j2",
        title=manifest.get("name", path.name),
        manifest=manifest,
        summary=summary,
        timing=rundir.read_json(path / rundir.TIMING),
        figures=[_figure(name, figure, _RUN_CAPTIONS, "") for name, figure in figures.items()],
        command=f"penstock rerun {path}",
        versions=manifest["versions"],
    )
    return _write(path, page)


def remake(path: Path | None, root: Path = Path("runs")) -> Path:
    """Makes the page of a directory again; without one, of the newest under `root`."""
    if path is None:
        path = _newest(root)
    if (path / results.RESULTS).is_file():
        return write_experiment(results.load(path), path, path.parent)
    if (path / rundir.MANIFEST).is_file():
        return write_run(path)
    raise ReportError(f"{path}: holds neither {rundir.MANIFEST} nor {results.RESULTS}")


def _newest(root: Path) -> Path:
    found = [*root.glob(f"*/{rundir.MANIFEST}"), *root.glob(f"reproduce/*/{results.RESULTS}")]
    if not found:
        raise ReportError(f"{root}: no results yet; `penstock run` and `penstock reproduce` write some")
    return max(found, key=lambda file: file.stat().st_mtime).parent


def _command(evidence: Evidence) -> str:
    command = f"penstock reproduce {evidence.experiment.name}"
    command += " --quick" if evidence.quick else ""
    return command + (f" --seeds {len(evidence.seeds)}" if len(evidence.seeds) > 1 else "")


def _figure(name: str, figure: Any, captions: dict[str, tuple[str, str]], item: str) -> dict[str, str]:
    title, caption = captions[name]
    data = base64.b64encode(plots.svg(figure)).decode()
    return {"title": title, "caption": caption, "item": item, "src": f"data:image/svg+xml;base64,{data}"}


def rows(run: Evidence) -> list[dict[str, Any]]:
    """The experiment in numbers, one row for each flow count and discipline."""
    return [_row(run, aqm, n) for n in run.counts() for aqm in run.aqms]


def _row(run: Evidence, aqm: str, n: int) -> dict[str, Any]:
    return {
        "aqm": aqm,
        "flows": n,
        "goodput": run.value(aqm, n, results.goodput_mbps("p50")),
        "rtt": run.value(aqm, n, results.rtt_ms("p50")),
        "rtt90": run.value(aqm, n, results.rtt_ms("p90")),
        "jain": run.value(aqm, n, results.worst_jain),
        "drops": run.value(aqm, n, results.drops),
        "delivered": run.value(aqm, n, results.delivered_mbytes),
    }


def _variants(run: Evidence) -> list[dict[str, Any]]:
    """Each variant with its rows, and beside each number what the published experiment gave."""
    tables = []
    for variant in run.experiment.variants:
        if variant.name not in run.varied:
            continue
        varied = run.varied[variant.name]
        pairs = [
            {"now": _row(varied, aqm, n), "before": _row(run, aqm, n)}
            for n in run.experiment.variant_flows
            for aqm in varied.aqms
            if aqm in variant.aqms
        ]
        tables.append({"name": variant.name, "change": variant.change, "pairs": pairs})
    return tables


def _page(template: str, **values: Any) -> str:
    loader = jinja2.PackageLoader("penstock.report", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(verdicts=list(Verdict), **values)


def _write(out: Path, page: str) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    (out / REPORT).write_text(page, encoding="utf-8")
    return out / REPORT


__all__ = ["ReportError", "remake", "rows", "write_experiment", "write_run"]
