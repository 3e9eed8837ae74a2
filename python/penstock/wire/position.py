"""Refusals with the line and the column of the key which cannot be: the place of a key in the text of a scenario."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.engine import ScenarioError

Path = Sequence[str | int]
# A name which no scenario has: a key that gets it is the one that is looked for, if its path is empty then.
_STRANGE = "penstock-was-here"
_STRING = r'"(?:[^"\\\n]|\\.)*"' + r"|'[^'\n]*'"
_VALUE = re.compile(rf"\s*=\s*({_STRING}|[^\s,\]}}#]+)")


def refuse(text: str, file: str, path: Path, message: str, world: str = "wire") -> ScenarioError:
    """Returns the error which says that a world cannot do what the text has at a path."""
    begin, end = find(text, path)
    line = text.count("\n", 0, begin) + 1
    first = text.rfind("\n", 0, begin) + 1
    whole = text[first : (text + "\n").index("\n", first)]
    column, width = begin - first, max(1, min(end, first + len(whole)) - begin)
    gap = " " * len(str(line))
    marked = f"{' ' * column}{'^' * width}"
    place = f"{gap}--> {file}:{line}:{column + 1}"
    said = f"error: --on {world}: {message}"
    return ScenarioError(f"{said}\n{place}\n{gap} |\n{line} | {whole}\n{gap} | {marked}\n{gap} |")


def find(text: str, path: Path) -> tuple[int, int]:
    """Returns the bounds of the value at a path; of the nearest table around it if the text does not have it."""
    for length in range(len(path), 0, -1):
        if (found := _find(text, path[:length])) is not None:
            return found
    return 0, 0


def _find(text: str, path: Path) -> tuple[int, int] | None:
    """Renames one occurrence after the other until the parser no longer finds the path: that one is its key."""
    tree = tomllib.loads(text)
    before = _size(tree, path)
    if before == 0:
        return None
    name = next(part for part in reversed(path) if isinstance(part, str))
    occurrences = [found.span() for found in _named(text, name)]
    if isinstance(path[-1], int):  # an entry of an array of tables: its heading has the same number
        headings = [found for found in occurrences if text[: found[0]].endswith("[[")]
        return headings[path[-1]] if path[-1] < len(headings) else None
    for begin, end in occurrences:
        renamed = f"{text[:begin]}{_STRANGE}{text[end:]}"
        if _size(_parsed(renamed), path, before) < before:
            value = _VALUE.match(text, end)
            return (value.start(1), value.end(1)) if value else (begin, end)
    return None


def _named(text: str, name: str) -> Iterator[re.Match[str]]:
    return re.finditer(rf"(?<![A-Za-z0-9_-]){re.escape(name)}(?![A-Za-z0-9_-])", text)


def _parsed(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _size(tree: Any, path: Path, otherwise: int = 0) -> int:
    """Returns how many entries the value at a path has, 1 if it is no list, 0 without it."""
    if tree is None:
        return otherwise
    here = tree
    for part in path:
        there = (
            part < len(here)
            if isinstance(part, int) and isinstance(here, list)
            else (isinstance(here, Mapping) and part in here)
        )
        if not there:
            return 0
        here = here[part]
    return max(len(here), 1) if isinstance(here, list) else 1
