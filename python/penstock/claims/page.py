"""Writes the ledger into a page of the documentation: a line for each claim, whose evidence is folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from penstock import marked
from penstock.claims import counterexample, words
from penstock.claims.changes import changed
from penstock.claims.ledger import causes, counted
from penstock.claims.rows import Entry, Kind, Verdict
from penstock.reproduce.experiments import EXPERIMENTS

TITLES = {
    "000": "How to avoid TCP congestion without dropping packets: an effective AQM called PINK (2017)",
    "001": "On the search of efficient AQM for large delay networks (2010)",
    "002": "Communication Networks for Public Protection and Disaster Relief Systems (dissertation)",
    "003": "Active queue management exploiting the rate information in TCP-IP networks (2018)",
    "004": "Mitigating the bufferbloat problem to reduce Internet transport latency (thesis, 2020)",
}
OTHERS = "Congestion controls: what their own documents say"
# Sections of rows that are no claims of a document, with what the first line of the page calls them.
BESIDE = {
    Kind.OWN: ("What these runs show and no document says", "findings of our own"),
    Kind.SET_UP: ("Checks of our set-ups", "checks of set-ups"),
    Kind.SCOPE: ("Out of scope", "rows out of scope"),
}
HEADINGS = ("verdict", "where", "claim, and what speaks for and against it", "the document")


def write(page: Path, entries: Sequence[Entry], same_runs: Mapping[str, str] | None = None) -> None:
    """Replaces the text between the marks of the page by the ledger.

    `same_runs` has what the earlier checks say of the same runs, by the ids of rows; with it changes of checks are told
    from changes of runs.
    """
    marked.replace(page, body(entries, same_runs))


def write_counterexamples(page: Path, rows: Mapping[str, counterexample.Row]) -> None:
    """Writes what the adversary found into the rows of a page that is there; all else stays."""
    lines = [counterexample.into_line(line, rows, _text) for line in marked.between(page, "table")]
    marked.replace(page, "\n".join(lines))


def first_line(entries: Sequence[Entry]) -> str:
    """Returns the numbers of the ledger: claims, verdicts, causes, and what is not counted."""
    claims = [entry for entry in entries if entry.counts]
    why = causes(entries)
    rest = [f"{sum(e.kind == kind for e in entries)} {name}" for kind, (_, name) in BESIDE.items()]
    line = f"{len(claims)} claims: {counted(entries)}."
    line += f" Of those that do not hold: {why}." if why else ""
    return f"{line} Not counted: {', '.join(rest)}."


def body(entries: Sequence[Entry], same_runs: Mapping[str, str] | None = None) -> str:
    """Returns the Markdown of the ledger: its numbers, a table for each document, and what was run."""
    lines = [first_line(entries)]
    claims = [entry for entry in entries if entry.counts]
    for title, some in groupby(sorted(claims, key=_place), key=lambda entry: TITLES.get(entry.document, OTHERS)):
        group = list(some)
        lines += ["", f"### {title}", "", f"{counted(group)}.", "", *_table(group)]
    for kind, (title, _) in BESIDE.items():
        lines += ["", f"### {title}", "", *_table([entry for entry in entries if entry.kind == kind])]
    lines += ["", "### What the words mean", "", *marked.table(("words", "meaning"), _words())]
    moved = [(f"`{name}`", old, new, why) for name, old, new, why in changed(entries, same_runs or {})]
    lines += ["", "### Changed since the ledger of one seed", ""]
    lines += marked.table(("row", "verdict then", "verdict now", "what changed it"), moved)
    runs = sorted({scope for entry in entries for scope in entry.scope.split("; ") if scope})
    return "\n".join([*lines, "", "### What was run", "", *(f"- {run}{_simulator(run)}" for run in runs)])


def _simulator(run: str) -> str:
    """With what the document measured: its defaults are a part of what it does not say."""
    experiment = EXPERIMENTS.get(run.split(":", 1)[0])
    return f"; the document's: {experiment.simulator}" if experiment and experiment.simulator else ""


def _words() -> Iterable[tuple[str, str]]:
    return ((meaning.words, meaning.means) for meaning in words.TABLE)


def _place(entry: Entry) -> tuple[bool, str]:
    return (entry.document not in TITLES, entry.document)


def _table(entries: Sequence[Entry]) -> list[str]:
    return marked.table(HEADINGS, [_cells(entry) for entry in entries])


def _cells(entry: Entry) -> list[str]:
    known = entry.document in TITLES
    where = f"{entry.section}, {entry.item}" if known else f"{entry.document}, {entry.section}"
    verdict = f"{entry.verdict} {entry.seeds}" if entry.seeds and not entry.seeds.endswith("/1") else entry.verdict
    return [verdict, where, _folded(entry), entry.paper]


def _folded(entry: Entry) -> str:
    """The claim, which opens to its evidence and to why it does not hold."""
    here = entry.measured if entry.verdict == Verdict.HOLDS else entry.reason
    cause = f" ({entry.cause})" if entry.cause else ""
    worst = counterexample.part(entry.id, entry.counterexample)
    cause_told = [f"**{entry.cause}**: {entry.because}"] if entry.cause else []
    parts = [f"`{entry.id}`", *cause_told, here, *([worst] if worst else [])]
    return f"<details><summary>{_text(entry.claim)}{cause}</summary>{'<br>'.join(map(_text, parts))}</details>"


def _text(value: str) -> str:
    """Text inside of HTML: a `<` of a comparison is no tag."""
    return value.replace("<", "&lt;")
