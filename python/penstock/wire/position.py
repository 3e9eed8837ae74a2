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
_VALUE = re.compile(rf"\s*({_STRING}|[^\s,\]}}#]+)")


def refuse(text: str, file: str, path: Path, message: str) -> ScenarioError:
    """Returns the error which says that the wire cannot do what the text has at a path."""
    begin, end = find(text, path)
    line = text.count("\n", 0, begin) + 1
    first = text.rfind("\n", 0, begin) + 1
    whole = text[first : (text + "\n").index("\n", first)]
    column, width = begin - first, max(1, min(end, first + len(whole)) - begin)
    gap = " " * len(str(line))
    marked = f"{' ' * column}{'^' * width}"
    place = f"{gap}--> {file}:{line}:{column + 1}"
    return ScenarioError(f"--on wire: {message}\n{place}\n{gap} |\n{line} | {whole}\n{gap} | {marked}\n{gap} |")


def find(text: str, path: Path) -> tuple[int, int]:
    """Returns the bounds of the value at a path; of the nearest table around it if the text does not have it."""
    for length in range(len(path), 0, -1):
        if (found := _find(text, path[:length])) is not None:
            return found
    return 0, 0


def _find(text: str, path: Path) -> tuple[int, int] | None:
    """Renames one occurrence after the other until the parser no longer finds the path: that one is its key."""
    names = [str(part) for part in path if isinstance(part, str)]
    tree = tomllib.loads(text)
    if not names or not _has(tree, path):
        return None
    occurrences = list(_occurrences(text, names[-1]))
    for begin, end in occurrences:
        if _gone(text, begin, end, path):
            value = _VALUE.match(text, end + 1) if _is_assigned(text, end) else None
            return (value.start(1), value.end(1)) if value else (begin, end)
    # An entry of an array of tables: the place of its number among the headings.
    if isinstance(path[-1], int):
        headings = [found for found in occurrences if text[: found[0]].endswith("[[")]
        return headings[path[-1]] if path[-1] < len(headings) else None
    return None


def _occurrences(text: str, name: str) -> Iterator[tuple[int, int]]:
    for found in re.finditer(rf"(?<![A-Za-z0-9_-]){re.escape(name)}(?![A-Za-z0-9_-])", text):
        yield found.span()


def _is_assigned(text: str, end: int) -> bool:
    return re.match(r"\s*=", text[end:]) is not None and text[end:].lstrip(" \t").startswith("=")


def _gone(text: str, begin: int, end: int, path: Path) -> bool:
    try:
        tree = tomllib.loads(f"{text[:begin]}{_STRANGE}{text[end:]}")
    except tomllib.TOMLDecodeError:
        return False
    return not _has(tree, path) and _STRANGE in _keys(tree)


def _has(tree: Any, path: Path) -> bool:
    here = tree
    for part in path:
        if isinstance(part, int):
            if not isinstance(here, list) or part >= len(here):
                return False
        elif not isinstance(here, Mapping) or part not in here:
            return False
        here = here[part]
    return True


def _keys(tree: Any) -> Iterator[str]:
    if isinstance(tree, Mapping):
        yield from tree
    for inner in tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ():
        yield from _keys(inner)
