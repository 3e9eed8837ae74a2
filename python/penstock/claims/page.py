"""Writes the ledger into a page of the documentation, with a table for each document."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from penstock import marked
from penstock.claims.ledger import Entry, Verdict, counted

TITLES = {
    "000": "How to avoid TCP congestion without dropping packets: an effective AQM called PINK (2017)",
    "001": "On the search of efficient AQM for large delay networks (2010)",
    "002": "Communication Networks for Public Protection and Disaster Relief Systems (dissertation)",
    "003": "Active queue management exploiting the rate information in TCP-IP networks (2018)",
    "004": "Mitigating the bufferbloat problem to reduce Internet transport latency (thesis, 2020)",
}
OTHERS = "Congestion controls: what their own documents say"
HEADINGS = ("verdict", "where", "claim", "the document", "here")


def write(page: Path, entries: Sequence[Entry]) -> None:
    """Replaces the text between the marks of the page by the ledger."""
    marked.replace(page, body(entries))


def body(entries: Sequence[Entry]) -> str:
    """Returns the Markdown of the ledger: numbers of verdicts, a table for each document, and what was run."""
    lines = [f"{len(entries)} claims: {counted(entries)}."]
    for title, some in groupby(sorted(entries, key=_place), key=lambda entry: TITLES.get(entry.document, OTHERS)):
        group = list(some)
        lines += ["", f"### {title}", "", f"{counted(group)}.", ""]
        lines += marked.table(HEADINGS, [_cells(entry) for entry in group])
    runs = sorted({scope for entry in entries for scope in entry.scope.split("; ") if scope})
    return "\n".join([*lines, "", "### What was run", "", *(f"- {run}" for run in runs)])


def _place(entry: Entry) -> tuple[bool, str]:
    return (entry.document not in TITLES, entry.document)


def _cells(entry: Entry) -> list[str]:
    known = entry.document in TITLES
    where = f"{entry.section}, {entry.item}" if known else f"{entry.document}, {entry.section}"
    here = entry.measured if entry.verdict == Verdict.HOLDS else entry.reason
    return [entry.verdict, where, entry.claim, entry.paper, here]
