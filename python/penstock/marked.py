"""Pages of the documentation in which a command writes the part between two marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.mistake import MistakeError

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def replace(page: Path, body: str) -> None:
    """Replaces the text between the marks of the page by `body`."""
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise MistakeError(f"{page}: cannot be read: {error.strerror}") from None
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise MistakeError(f"{page}: needs the lines {BEGIN} and {END} once each: the table is written between them")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{body}\n{END}{after}", encoding="utf-8")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = False) -> list[str]:
    """Returns the lines of a Markdown table; with `numbers`, all columns but the first are aligned to the right."""
    lines = [_line(headings), "|---|" + ("---:|" if numbers else "---|") * (len(headings) - 1)]
    return [*lines, *(_line([cell.replace("|", "\\|") for cell in row]) for row in rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
