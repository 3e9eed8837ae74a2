"""Scenarios as text, which come from a file, a TOML text or a plain Python object.

Only the simulator interprets the text, so that there is one grammar with one set of messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock import own
from penstock.mistake import MistakeError

Source = str | Path | Mapping[str, Any]

MOST_BYTES = 16 * 2**20  # largest size of a scenario; traces of links are files of their own

_MOST_LEVELS = 100

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class SourceError(MistakeError):
    """The file of a scenario cannot be read, or an object cannot be written as TOML."""


@dataclass(frozen=True)
class Scenario:
    """The text of a scenario, and the name of its file for messages."""

    text: str
    file: str
    # Classes of algorithms which the object contained from which the text was written, by the names in the text.
    classes: Mapping[str, type] = field(default_factory=dict, compare=False)
    kept: str = field(default="", compare=False)  # directory with copies of the files that the text names; empty: none
    # It comes from a stranger, so that it may name no file but these copies.
    confined: bool = field(default=False, compare=False)
    permit: own.Permit | None = field(default=None, compare=False)  # is asked before a file with Python is executed

    @classmethod
    def load(cls, source: Source) -> Scenario:
        """Creates a scenario from a path, a TOML text with at least one line break, or a mapping."""
        if isinstance(source, Mapping):
            classes: dict[str, type] = {}
            return cls(to_toml(_named(source, classes)), "<python object>", classes)
        if isinstance(source, str) and "\n" in source:
            return cls(source, "<text>")
        path = Path(source)
        try:
            if (size := path.stat().st_size) > MOST_BYTES:
                raise SourceError(f"{path}: has {size} bytes; a scenario has at most {MOST_BYTES}")
            return cls(path.read_text(encoding="utf-8"), str(path))
        except UnicodeDecodeError as error:
            raise SourceError(f"{path}: not a scenario: byte {error.start} is not UTF-8 text") from None
        except OSError as error:
            raise SourceError(f"{path}: cannot be read: {error.strerror}") from None

    def library(self) -> own.Library:
        """Returns what finds the classes and reads the files that the text names, for one run."""
        return own.Library(self.file, self.classes, self.kept, self.confined, self.permit)

    @cached_property
    def _tree(self) -> dict[str, Any]:
        """The parsed text; empty if it is not valid TOML, which the simulator diagnoses."""
        return tree(self.text)

    @property
    def name(self) -> str:
        """The value of the key `name`, else the name of the file without its ending."""
        given = self._tree.get("name")
        return given if isinstance(given, str) else Path(self.file).stem.strip("<>") or "scenario"

    @property
    def wants_packets(self) -> bool:
        """True when `[output] pcapng` names bottlenecks."""
        output = self._tree.get("output")
        return isinstance(output, dict) and bool(output.get("pcapng"))


def tree(text: str) -> dict[str, Any]:
    """Returns the tables of a scenario; empty if it is not valid TOML, or nested too deeply."""
    import tomllib

    if any(map(_is_deep, text.splitlines())):
        return {}
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def _is_deep(line: str) -> bool:
    """Returns true for a key or a heading of more levels than the simulator takes; tomllib would need minutes."""
    key = line.partition("=")[0]
    return key.count(".") > _MOST_LEVELS and "," not in key


def _named(value: Any, classes: dict[str, type]) -> Any:
    """Returns `value` with every class replaced by its name, and adds the classes to `classes`."""
    if isinstance(value, type):
        name = own.name_of(value)
        if classes.setdefault(name, value) is not value:
            raise SourceError(f"two classes of this scenario are called {name}: give one of them another name")
        return name
    if isinstance(value, Mapping):
        return {key: _named(item, classes) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_named(item, classes) for item in value]
    return value


def to_toml(value: Mapping[str, Any]) -> str:
    """Returns a mapping as TOML text. It may hold strings, numbers, booleans, lists and tables."""
    lines: list[str] = []
    _write_table(lines, value, ())
    return "\n".join(lines) + "\n"


def _write_table(lines: list[str], table: Mapping[str, Any], path: tuple[str, ...]) -> None:
    nested = {key: item for key, item in table.items() if _is_table(item) or _is_array_of_tables(item)}
    lines.extend(f"{_key(key)} = {inline(item)}" for key, item in table.items() if key not in nested)
    for key, item in nested.items():
        here = (*path, key)
        heading = ".".join(_key(part) for part in here)
        for entry, brackets in [(item, "[{}]")] if _is_table(item) else [(entry, "[[{}]]") for entry in item]:
            lines.extend(["", brackets.format(heading)])
            _write_table(lines, entry, here)


def _is_table(item: object) -> bool:
    return isinstance(item, Mapping)


def _is_array_of_tables(item: object) -> bool:
    return isinstance(item, Sequence) and not isinstance(item, str) and bool(item) and all(map(_is_table, item))


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def inline(item: object) -> str:
    """Returns a value as TOML in one line."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str):
        return _string(item)
    if isinstance(item, int | float):
        return repr(item)
    if isinstance(item, Sequence) and not isinstance(item, bytes):
        return "[" + ", ".join(map(inline, item)) + "]"
    if isinstance(item, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {inline(value)}" for key, value in item.items()) + " }"
    raise SourceError(f"a scenario cannot hold {item!r}: write strings with units, numbers, true, false, lists, tables")
