"""Makes the HTML of a page."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import resources
from typing import Any

import jinja2

from penstock.report.kit import model
from penstock.report.kit.model import Section, Tile

# What a template calls each kind of part.
_KINDS = {
    model.Chart: "chart",
    model.Table: "table",
    model.Heat: "heat",
    model.Network: "network",
    model.Picture: "picture",
    model.Strip: "strip",
    str: "text",
}


def page(
    title: str,
    lead: str,
    sections: Sequence[Section],
    *,
    tiles: Sequence[Tile] = (),
    warnings: Sequence[str] = (),
    command: str = "",
    versions: dict[str, str] | None = None,
) -> str:
    """Returns a page as one HTML file. Equal arguments give equal bytes."""
    filled = [section for section in sections if section.parts or section.code or section.lead]
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            lead=lead,
            sections=filled,
            tiles=tiles,
            warnings=warnings,
            command=command,
            versions=versions or {},
            style=asset("uplot.min.css") + asset("kit.css"),
            script=asset("kit.js"),
            uplot=asset("uplot.min.js") if _has_charts(filled) else "",
            licence=asset("LICENSE-uplot"),
        )
    )


def fragment(lead: str, tables: Sequence[model.Table]) -> str:
    """Returns tables as HTML that stands in another page, such as a notebook."""
    return _environment().get_template("fragment.html.j2").render(lead=lead, tables=tables)


def _has_charts(sections: Sequence[Section]) -> bool:
    return any(isinstance(part, model.Chart) for section in sections for part in section.parts)


@functools.cache
def asset(name: str) -> str:
    """Returns a file that every page contains."""
    return resources.files("penstock.report.kit").joinpath("assets", name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("penstock.report.kit", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["number"] = lambda value: isinstance(value, int)
    environment.filters["kind"] = _kind
    return environment


def _kind(part: Any) -> str:
    return _KINDS[type(part)]
