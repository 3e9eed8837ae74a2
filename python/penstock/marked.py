"""Pages of the documentation in which a command writes the part between two marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from penstock import store
from penstock.mistake import MistakeError

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def marks(name: str) -> tuple[str, str]:
    """Returns the two marks of a part of a page; most pages have one such part, the `table`."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def replace(page: Path, body: str, name: str = "table") -> None:
    """Replaces the text between the marks of this name in the page by `body`."""
    with store.held(page):
        store.write(page, replaced(page, {name: body}))


def replaced(page: Path, bodies: Mapping[str, str]) -> str:
    """Returns the text of the page with new texts between its marks, by the names of the marks."""
    text = store.read_text(page)
    for name, body in bodies.items():
        before, _, after = _split(text, page, name)
        begin, end = marks(name)
        text = f"{before}{begin}\n{body}\n{end}{after}"
    return text


def between(page: Path, name: str) -> list[str]:
    """Returns the lines between the marks of this name in the page."""
    return _split(store.read_text(page), page, name)[1].strip("\n").split("\n")


def _split(text: str, page: Path, name: str) -> tuple[str, str, str]:
    begin, end = marks(name)
    if text.count(begin) != 1 or text.count(end) != 1:
        raise MistakeError(f"{page}: needs the lines {begin} and {end} once each: the {name} is written between them")
    before, rest = text.split(begin)
    inside, after = rest.split(end)
    return before, inside, after


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = False) -> list[str]:
    """Returns the lines of a Markdown table; with `numbers`, all columns but the first are aligned to the right."""
    lines = [_line(headings), "|---|" + ("---:|" if numbers else "---|") * (len(headings) - 1)]
    return [*lines, *(_line([cell.replace("|", "\\|") for cell in row]) for row in rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
