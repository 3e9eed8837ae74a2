"""A result as a few tables, for notebooks: without script, in the notebook's own colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.report import run_tables
from penstock.report.kit import fragment
from penstock.report.kit.model import Table


def html(name: str, summary: Mapping[str, Any]) -> str:
    """Returns the tables of the bottlenecks, of the kinds of flows and of applications."""
    lead = f"{name}: {len(summary['flows'])} flows, {summary['duration_s']:g} s, seed {summary['seed']}"
    kinds = run_tables.by_kind(summary)
    tables = [*run_tables.bottlenecks(summary)[:2], Table(kinds.title, kinds.columns, kinds.rows, kinds.left)]
    return fragment(lead, [*tables, *run_tables.applications(summary)])
