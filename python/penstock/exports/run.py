"""All files of a run in other formats."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import engine, plots, rundir, store, tcp_trace
from penstock.exports import qlog, tables
from penstock.mistake import MistakeError
from penstock.scenario import Scenario

if TYPE_CHECKING:
    from penstock.own import Permit

USUAL = ("csv", "latex", "pdf")  # logs need another run


def files(
    path: Path,
    kinds: Collection[str],
    flows: tuple[int, ...] = (),
    interval: str = "10ms",
    permit: Permit | None = None,
) -> dict[str, str | bytes]:
    """Returns the contents of files by their names. `flows` and `interval` are those of the logs.

    For logs the run is repeated; `permit` is asked before a file with Python code is executed.
    """
    kept = rundir.read(path, tables=True)
    made: dict[str, str | bytes] = {}
    with store.as_written(path):
        if "csv" in kinds:
            made |= tables.as_csv(kept.summary, kept.tables)
        if "latex" in kinds:
            made |= tables.as_latex(kept.summary)
        if "pdf" in kinds:
            names = [bottleneck["name"] for bottleneck in kept.summary["bottlenecks"]]
            figures = plots.single(kept.tables, names)
            if not figures and set(kinds) == {"pdf"}:
                raise MistakeError(f"{path}: no figures: the run has no tables by seconds ([output] series = false)")
            made |= {f"{name}.pdf": plots.pdf(figure) for name, figure in figures.items()}
    if "qlog" in kinds:
        made |= _logs(kept, flows, interval, permit)
    return made


def _logs(kept: rundir.Kept, flows: tuple[int, ...], interval: str, permit: Permit | None) -> dict[str, str | bytes]:
    manifest = kept.manifest
    source = Scenario(manifest["scenario"], manifest["file"], kept=str(kept.path / rundir.OWN), permit=permit)
    watch = engine.Watch(flows, interval)
    result = engine.simulate(source, manifest["seed"], watch=watch)
    if rundir.dump(result.summary).encode() != kept.files[rundir.SUMMARY]:
        raise MistakeError(
            f"{kept.path}: this version of Penstock has other results for the run, so its logs would be those of "
            "another run; `penstock runs rerun` prints what differs"
        )
    logs = qlog.files(result.summary, result.tables[tcp_trace.FLOWS], result.watched)
    return {name: json.dumps(log, allow_nan=False) + "\n" for name, log in logs.items()}
