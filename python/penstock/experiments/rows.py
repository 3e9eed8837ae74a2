"""The rows of one run: one for the run, one for each entry of [[flows]], one for each measured link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from penstock.experiments.measures import BY_PART, FLOWS, LINK, RUN

_KEYS = tuple(dict.fromkeys(measure.only for measure in BY_PART[FLOWS]))  # keys of flows that some measures need


class Row(NamedTuple):
    """What a row is about, and the numbers of the measures of its part, in their order."""

    part: str
    name: str  # of a group its place in the scenario and its kind, of a link its name; empty for the run
    values: list[float | None]


def rows(summary: Mapping[str, Any], sizes: Sequence[int]) -> Iterator[Row]:
    """Yields the rows of a summary; `sizes` are those of the groups of flows."""
    has_tcp = any(flow["cc"] for flow in summary["flows"])
    run = [measure.of(summary) if has_tcp or "rtt" not in measure.name else None for measure in BY_PART[RUN]]
    yield Row(RUN, "", run)
    for name, flows in _groups(summary["flows"], sizes):
        having = {key: [flow for flow in flows if not key or flow.get(key)] for key in _KEYS}
        yield Row(FLOWS, name, [measure.of_group(having[measure.only]) for measure in BY_PART[FLOWS]])
    for link in summary["bottlenecks"]:
        yield Row(LINK, link["name"], [measure.of(link) for measure in BY_PART[LINK]])


def _groups(
    flows: Sequence[Mapping[str, Any]], sizes: Sequence[int]
) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    if sum(sizes) != len(flows):  # not the flows of the file alone
        sizes = [len(flows)]
    first = 0
    for index, size in enumerate(sizes):
        group = flows[first : first + size]
        first += size
        if group:
            yield f"{index} {group[0]['kind']}", group
