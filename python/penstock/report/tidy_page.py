"""The page of tidy tables."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.report import kit, tidy
from penstock.report.kit.model import Section, Tile
from penstock.report.tidy import Tidy


def table_page(
    title: str,
    lead: str,
    tables: Sequence[Tidy],
    *,
    titles: Sequence[str] = (),
    sections: Sequence[Section] = (),
    tiles: Sequence[Tile] = (),
    warnings: Sequence[str] = (),
    command: str = "",
    versions: dict[str, str] | None = None,
) -> str:
    """Returns the page of tidy tables, as of a sweep or a comparison: of each its charts or maps, and all its rows.

    `titles` are those of the tables, `sections` come before them.
    """
    named = [*titles, *(f"Table {i + 1}" if len(tables) > 1 else "Results" for i in range(len(titles), len(tables)))]
    drawn = [
        Section(name, [*tidy.parts(one), tidy.table(one, "All points")])
        for name, one in zip(named, tables, strict=True)
    ]
    return kit.page(
        title, lead, [*sections, *drawn], tiles=tiles, warnings=warnings, command=command, versions=versions
    )
