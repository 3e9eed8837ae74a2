"""Tables and panels as lines of text, with styles on a terminal.

`rich` does this too, but it takes longer to load, and to lay out `penstock list`, than all other work of that command.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "1;36"}
_GAP = "  "
# Columns of the lines in a file or a pipe, which is enough for the tables.
_WIDE = 140
# A column of words is not made narrower than this.
_NARROWEST = 12


class Styled(NamedTuple):
    """A text with the name of a style, which is in effect only on a terminal."""

    text: str
    style: str


Cell = str | Styled


def is_terminal() -> bool:
    """True if stdout is a terminal that shows styles."""
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def styled(text: str, style: str) -> str:
    """Returns the text with the codes of a style if stdout is a terminal."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style and text and is_terminal() else text


def panel(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Returns a box with a title around names and what they mean."""
    width = min(shutil.get_terminal_size().columns, 160)
    first = max(len(name) for name, _ in rows)
    room = max(width - first - 6, _NARROWEST)
    lines = [styled(f"╭─ {title} ".ljust(width - 1, "─") + "╮", "dim")]
    side = styled("│", "dim")
    for name, about in rows:
        for index, part in enumerate(textwrap.wrap(about, room) or [""]):
            shown = styled(name.ljust(first), "cyan") if index == 0 else " " * first
            lines.append(f"{side} {shown}  {part.ljust(room)} {side}")
    return [*lines, styled("╰" + "─" * (width - 2) + "╯", "dim")]


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], left: int = 1, heads: bool = True
) -> list[str]:
    """Returns the lines of a table. The first `left` columns are text, the others numbers; `heads` shows the names."""
    cells = [[cell if isinstance(cell, Styled) else Styled(cell, "") for cell in row] for row in rows]
    if heads:
        cells.insert(0, [Styled(column, "dim") for column in columns])
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE
    widths = _widths([[len(cell.text) for cell in row] for row in cells], left, room)
    lines = [styled(title, "bold")] if title else []
    for row in cells:
        lines += _row(row, widths, left)
    return lines


def _widths(lengths: list[list[int]], left: int, room: int) -> list[int]:
    """Returns the width of each column. If there is not enough room, the widest columns of words lose."""
    widths = [max(column) for column in zip(*lengths, strict=True)]
    words = range(min(left + 1, len(widths)))
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - room
    while excess > 0 and words:
        widest = max(words, key=lambda index: widths[index])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
        excess -= 1
    return widths


def _row(row: Sequence[Styled], widths: Sequence[int], left: int) -> list[str]:
    """Returns the lines of a row, in which cells that are too long continue on the next line."""
    wrapped = [
        textwrap.wrap(cell.text, width, break_on_hyphens=False) if len(cell.text) > width else [cell.text]
        for cell, width in zip(row, widths, strict=True)
    ]
    lines = []
    for line in range(max(map(len, wrapped))):
        parts = []
        for index, (cell, texts, width) in enumerate(zip(row, wrapped, widths, strict=True)):
            text = texts[line] if line < len(texts) else ""
            pad = " " * (width - len(text))
            shown = styled(text, cell.style)
            parts.append(shown + pad if index < left else pad + shown)
        lines.append(_GAP.join(parts).rstrip())
    return lines
