"""Writes the ledger: its rows into a file of data, and what they come to, with a line for each, into a page.

The data have everything of a row (`penstock claims ID --from docs/results/ledger.json` shows it), so the page can be
written again from them without a run. The page has first what counts, then what became of each document, then the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from penstock import marked, store
from penstock.claims import counterexample, words
from penstock.claims.changes import changed
from penstock.claims.ledger import causes, counted, with_found
from penstock.claims.rows import DOCUMENTS, Cause, Entry, Kind, Standing, Verdict
from penstock.reproduce.experiments import EXPERIMENTS

TITLES = {
    "000": "How to avoid TCP congestion without dropping packets: an effective AQM called PINK (2017)",
    "001": "On the search of efficient AQM for large delay networks (2010)",
    "002": "Communication Networks for Public Protection and Disaster Relief Systems (dissertation)",
    "003": "Active queue management exploiting the rate information in TCP-IP networks (2018)",
    "004": "Mitigating the bufferbloat problem to reduce Internet transport latency (thesis, 2020)",
}
PROMISES = {
    "000": "PINK fills the link, drops nothing, keeps round trips short and shares evenly, with hosts unchanged",
    "001": "LINDROP has a shorter queue than six others on long paths, and as much throughput",
    "002": "budgets and schedulers on satellite links (C²ML, DyBRA, QRM, HFS): short queues, even shares, full links",
    "003": "RED-ERN, which knows the rates of senders, is fairer than RED with drops or marks, at the same use",
    "004": "Modified CoDel and (FQ-)Minstrel PIE keep delays short where traffic does not react, at the same use",
}
# Sections of rows that are no claims of a document, with what the first lines of the page call them.
BESIDE = {
    Kind.OTHER: ("What other papers and RFCs say", "claims of other papers and RFCs"),
    Kind.OWN: ("What these runs show and no document says", "findings of our own"),
    Kind.SET_UP: ("Checks of our set-ups", "checks of set-ups"),
    Kind.SCOPE: ("Out of scope", "rows out of scope"),
}
HEADINGS = ("verdict", "where", "claim", "the document", "measured", "why not, or under what not")
LINUX = "ledger-linux.md"
ELSEWHERE = "counterexample"  # what has a file of its own
_LONGEST = 160  # characters of a cell of the page; the data have all of it


def write(page: Path, entries: Sequence[Entry], same_runs: Mapping[str, str] | None = None) -> None:
    """Writes the rows beside the page, and replaces the text between its marks.

    `same_runs` has what the earlier checks say of the same runs, by the ids of rows; with it changes of checks are told
    from changes of runs.
    """
    rows = [{key: value for key, value in entry.to_json().items() if value and key != ELSEWHERE} for entry in entries]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    store.write(data_of(page), f'{{"format": 1, "rows": [\n{lines}\n]}}\n')
    marked.replace(page, body(entries, same_runs, _on_linux(page)))


def data_of(page: Path) -> Path:
    """Returns the file with the rows of a page."""
    return page.with_suffix(".json")


def read(file: Path) -> list[Entry]:
    """Reads the rows that `write` has written, with what the adversary has found since."""
    known = {
        one.name: () if one.name == "searched" else "" for one in fields(Entry) if one.name not in ("parts", ELSEWHERE)
    }
    stored = store.read_json(file)
    with store.as_written(file):
        rows = [Entry(**{key: _whole(row.get(key, empty)) for key, empty in known.items()}) for row in stored["rows"]]
    return with_found(rows, counterexample.stored())


def _whole(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _on_linux(page: Path) -> frozenset[str]:
    """The rows that have a verdict on a Linux kernel, which the page beside this one has."""
    beside = page.with_name(LINUX)
    lines = marked.between(beside, "table")[2:] if beside.is_file() else []
    return frozenset(line.split("`")[1] for line in lines if line.count("`") > 1)


def first_lines(entries: Sequence[Entry], linux: frozenset[str] = frozenset()) -> list[str]:
    """Returns the numbers of the ledger: what stands, what does not and why, and what is not counted."""
    claims = [entry for entry in entries if entry.counts]
    held = [sum(entry.standing == one for entry in claims) for one in Standing]
    beside = [f"{sum(e.kind == kind for e in entries)} {name}" for kind, (_, name) in BESIDE.items()]
    return [
        f"- {len(claims)} claims of the documents: {counted(claims)}.",
        f"- Of those that hold, {held[0]} stand their adversary, {held[1]} are conditional (a run within the "
        f"document's own set-up contradicts them), {held[2]} were not searched.",
        f"- Of those that do not hold: {causes(claims) or 'none'}.",
        f"- {sum(entry.id in linux for entry in claims)} have a [verdict on a Linux kernel]({LINUX}) as well.",
        f"- Not counted: {', '.join(beside)}.",
    ]


def body(
    entries: Sequence[Entry], same_runs: Mapping[str, str] | None = None, linux: frozenset[str] = frozenset()
) -> str:
    """Returns the Markdown of the ledger: its numbers, a line for each document, the rows, and what was run."""
    lines = [*first_lines(entries, linux), "", *marked.table(*_documents(entries))]
    for document in DOCUMENTS:
        group = [entry for entry in entries if entry.counts and entry.document == document]
        lines += ["", f"### {TITLES[document]}", "", *_table(group)]
    for kind, (title, _) in BESIDE.items():
        lines += ["", f"### {title}", "", *_table([entry for entry in entries if entry.kind == kind])]
    lines += ["", "### What the words mean", "", *marked.table(("words", "meaning"), _words())]
    moved = [(f"`{name}`", old, new, why) for name, old, new, why in changed(entries, same_runs or {})]
    lines += ["", "### Changed since the ledger of one seed", ""]
    lines += marked.table(("row", "verdict then", "verdict now", "what changed it"), moved)
    runs = sorted({scope for entry in entries for scope in entry.scope.split("; ") if scope})
    return "\n".join([*lines, "", "### What was run", "", *(f"- {run}{_simulator(run)}" for run in runs)])


def _documents(entries: Sequence[Entry]) -> tuple[tuple[str, ...], list[list[str]]]:
    """The table of what each document promised, what stands, and why the rest does not."""
    rows = []
    for document in DOCUMENTS:
        group = [entry for entry in entries if entry.counts and entry.document == document]
        held = [str(sum(entry.standing == one for entry in group)) for one in Standing]
        open_ = sum(entry.verdict in (Verdict.PARTLY, Verdict.FAILS) for entry in group)
        why = [str(sum(entry.cause == cause for entry in group)) for cause in Cause]
        rows.append([document, PROMISES[document], str(len(group)), *held, str(open_), *why])
    whole = ["all", "", *(str(sum(int(row[i]) for row in rows)) for i in range(2, len(rows[0])))]
    headings = ("document", "what it promises", "claims", *Standing, "partly or fails", *Cause)
    return headings, [*rows, whole]


def _simulator(run: str) -> str:
    """With what the document measured: its defaults are a part of what it does not say."""
    experiment = EXPERIMENTS.get(run.split(":", 1)[0])
    return f"; the document's: {experiment.simulator}" if experiment and experiment.simulator else ""


def _words() -> Iterable[tuple[str, str]]:
    return ((meaning.words, meaning.means) for meaning in words.TABLE)


def _table(entries: Sequence[Entry]) -> list[str]:
    return marked.table(HEADINGS, [_cells(entry) for entry in entries])


def _cells(entry: Entry) -> list[str]:
    known = entry.document in TITLES
    where = f"{entry.section}, {entry.item}" if known else f"{entry.document}, {entry.section}"
    verdict = Standing.CONDITIONAL.value if entry.condition else entry.verdict
    seeds = f" {entry.seeds}" if entry.seeds and not entry.seeds.endswith("/1") else ""
    told = " ".join(_text(part) for part in _why(entry))
    shown = _text(_short(entry.measured or entry.reason))
    return [f"{verdict}{seeds}", where, f"{_text(entry.claim)} `{entry.id}`", entry.paper, shown, told]


def _why(entry: Entry) -> Iterator[str]:
    """Under what a claim does not hold, or its cause with what shows it."""
    if entry.condition:
        yield f"{entry.condition}; `penstock claims break {entry.id} --again`"
    elif entry.standing == Standing.NOT_SEARCHED:
        yield Standing.NOT_SEARCHED.value
    elif entry.cause == Cause.UNEXPLAINED:
        keys = ", ".join(entry.searched) or "no key"
        yield f"*{entry.cause}*; searched: {keys}"
        if entry.nearest:
            yield f"; nearest: {_short(entry.nearest)}"
    elif entry.cause:
        yield f"*{entry.cause}*: {_short(entry.because)}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} …"


def _text(value: str) -> str:
    """Text inside of Markdown: a `<` of a comparison is no tag."""
    return value.replace("<", "&lt;")
