"""Where in a file a mistake is, so that it is told with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

T = TypeVar("T")


class AtError(MistakeError):
    """A mistake at a key of the file."""

    def __init__(self, message: str, *path: str) -> None:
        """`path` has the names of the table and of the key."""
        super().__init__(message)
        self.path = path


def known(table: Iterable[str], allowed: Sequence[str], where: tuple[str, ...]) -> None:
    """Raises `AtError` for a key of a table that is not allowed."""
    for key in table:
        if key not in allowed:
            what = f"[{where[-1]}] has no key" if where else "an experiment has no table"
            raise AtError(f"{what} {key!r}; {did_you_mean(key, allowed)}it has {', '.join(allowed)}", *where, key)


def at(path: tuple[str, ...], make: Callable[..., T], *given: object) -> T:
    """Returns what `make` returns for what is given; its mistakes are at `path`."""
    try:
        return make(*given)
    except AtError:
        raise
    except MistakeError as error:
        raise AtError(f"{path[-1]}: {error}", *path) from None


def told(error: AtError, text: str, file: str) -> str:
    """Returns a mistake with its place in the file, in the form of the messages about scenarios."""
    number = _line_of(text, error.path)
    if number is None:
        return f"error: {error}\n --> {file}"
    line = text.splitlines()[number - 1]
    gap = " " * len(str(number))
    return f"error: {error}\n{gap}--> {file}:{number}\n{gap} |\n{number} | {line}\n{gap} |"


def _line_of(text: str, path: tuple[str, ...]) -> int | None:
    """Returns the line of a key, or of its table if the key is not there; `None` if neither is."""
    table, key = (path[0], path[1]) if len(path) > 1 else ("", path[0] if path else "")
    here, of_table = "", None
    written = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]")
    for number, line in enumerate(text.splitlines(), 1):
        if heading := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line):
            here = heading[1]
            if here == (table or key):
                of_table = number
        elif written.match(line) and here == table:
            return number
    return of_table
