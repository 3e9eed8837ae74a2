"""Pages of the documentation in which a command writes the part between two marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.mistake import MistakeError

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def marks(name: str) -> tuple[str, str]:
    """Returns the two marks of a part of a page; most pages have one such part, the `table`."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def replace(page: Path, body: str, name: str = "table") -> None:
    """Replaces the text between the marks of this name in the page by `body`."""
    before, _, after = _split(page, name)
    begin, end = marks(name)
    page.write_text(f"{before}{begin}\n{body}\n{end}{after}", encoding="utf-8")


def between(page: Path, name: str) -> list[str]:
    """Returns the lines between the marks of this name in the page."""
    return _split(page, name)[1].strip("\n").split("\n")


def _split(page: Path, name: str) -> tuple[str, str, str]:
    begin, end = marks(name)
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise MistakeError(f"{page}: cannot be read: {error.strerror}") from None
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
