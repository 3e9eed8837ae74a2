"""The page of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock import ecn, rundir
from penstock.report import groups, kit, network, run_charts, run_tables
from penstock.report.kit.model import Section
from penstock.scenario import tree

if TYPE_CHECKING:
    import pyarrow as pa


def of_directory(kept: rundir.Kept) -> str:
    """Returns the page of a run directory."""
    manifest = kept.manifest
    timing = kept.json(rundir.TIMING)
    return page(
        manifest.get("name", kept.path.name),
        kept.summary,
        kept.tables,
        kept.text(rundir.SCENARIO),
        kept.text(rundir.RESOLVED),
        command=f"penstock runs rerun {kept.path}",
        versions=manifest["versions"],
        note=f"{timing['cpu_s']:.2f} s of CPU time, {timing['wall_s']:.2f} s of elapsed time.",
    )


def page(
    title: str,
    summary: Mapping[str, Any],
    tables: Mapping[str, pa.Table],
    scenario: str,
    resolved: str,
    *,
    command: str = "",
    versions: dict[str, str] | None = None,
    note: str = "",
) -> str:
    """Returns the page of a run from its results."""
    full = tree(resolved)
    summary = {**summary, "flows": groups.directed(summary["flows"], full)}
    links = [link["name"] for link in full.get("topology", {}).get("links", [])] or ["bottleneck"]
    drawn = network.drawing(tree(scenario))
    warning = ecn.warning(summary)
    sections = [
        Section("Network", [drawn] if drawn else []),
        Section("Over time", run_charts.over_time(tables, summary, links)),
        Section("Distributions", run_charts.distributions(tables, summary, groups.hosts(full))),
        Section("Flows", [run_tables.by_kind(summary), *run_tables.applications(summary), run_tables.flows(summary)]),
        Section("Bottlenecks", run_tables.bottlenecks(summary)),
        Section("Protocols", run_tables.counters(summary)),
        Section("Scenario", [note] if note else [], code=_scenario(scenario, resolved)),
    ]
    return kit.page(
        title,
        f"{len(summary['flows'])} flows, {summary['duration_s']:g} s, seed {summary['seed']}.",
        sections,
        tiles=run_tables.tiles(summary),
        warnings=[f"{warning[0].upper()}{warning[1:]}."] if warning else [],
        command=command,
        versions=versions,
    )


def _scenario(scenario: str, resolved: str) -> list[tuple[str, str, bool]]:
    return [("As given", scenario, True), ("With all defaults", resolved, False)]
