"""The tables of `tools/layers.toml` as values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tools" / "layers.toml"


class LawError(Exception):
    """The file of the tables has a mistake."""


@dataclass(frozen=True)
class Crate:
    """A row of `[crates]`: which crates a crate may depend on, and what it contains."""

    may: frozenset[str]
    outside: frozenset[str]
    holds: str
    tests_may: frozenset[str] = frozenset()
    pure: bool = False


@dataclass(frozen=True)
class Part:
    """A row of `[modules.NAME]` or `[python]`: which modules with the same parent a module may name, and why."""

    may: frozenset[str]
    why: str


@dataclass(frozen=True)
class Count:
    """A row of `[counts]`: how many of a kind the rule allows, and how many there are while that is more."""

    most: int
    today: int | None = None


@dataclass(frozen=True)
class Law:
    """All tables of `tools/layers.toml`."""

    crates: Mapping[str, Crate]
    modules: Mapping[str, Mapping[str, Part]]
    python: Mapping[str, Part]
    homes: Mapping[str, frozenset[str]]
    dynamic: frozenset[tuple[str, str]]
    apart: tuple[tuple[str, str, str], ...]
    lints: frozenset[tuple[str, str]]
    circles: tuple[frozenset[str], ...]
    function_lines: int
    file_lines: int
    long_files: frozenset[str] = frozenset()
    store: str = ""  # the beginning of the paths of files that may change the disk
    writes: frozenset[tuple[str, str]] = frozenset()
    types: frozenset[str] = frozenset()  # types of the standard library that only `type_homes` may name
    type_homes: frozenset[str] = frozenset()
    types_known: frozenset[str] = frozenset()
    unsafe_homes: frozenset[str] = frozenset()  # the beginnings of the paths of files that may have `unsafe`
    counts: Mapping[str, Count] = field(default_factory=dict)


def read(file: Path = FILE) -> Law:
    """Reads the tables of a file."""
    return parse(file.read_text(encoding="utf-8"))


def parse(text: str) -> Law:
    """Reads the tables of a text."""
    table = tomllib.loads(text)
    return Law(
        crates={name: _crate(name, row) for name, row in table["crates"].items()},
        modules={crate: _parts(f"modules.{crate}", rows) for crate, rows in table["modules"].items()},
        python=_parts("python", table["python"]),
        homes={package: frozenset(_why("homes", package, row)["only"]) for package, row in table["homes"].items()},
        dynamic=_listed("dynamic", table.get("dynamic", []), "call"),
        apart=tuple((row["module"], row["from"], _why("apart", row["module"], row)["why"]) for row in table["apart"]),
        lints=_listed("lints", table.get("lints", []), "lint"),
        circles=tuple(frozenset(_why("circles", "", row)["members"]) for row in table.get("circles", [])),
        function_lines=table["lengths"]["function"],
        file_lines=table["lengths"]["file"],
        long_files=frozenset(table["lengths"].get("known", [])),
        store=_why("writes", "home", table["writes"])["home"],
        writes=_listed("writes", table["writes"].get("known", []), "call"),
        types=frozenset(_why("types", "names", table["types"])["names"]),
        type_homes=frozenset(table["types"]["only"]),
        types_known=frozenset(_why("types", row["file"], row)["file"] for row in table["types"].get("known", [])),
        unsafe_homes=frozenset(_why("unsafe", "only", table["unsafe"])["only"]),
        counts={name: _count(name, row) for name, row in table["counts"].items()},
    )


def _count(name: str, row: Mapping[str, Any]) -> Count:
    return Count(_why("counts", name, row)["most"], row.get("today"))


def _crate(name: str, row: Mapping[str, Any]) -> Crate:
    if not row.get("holds"):
        raise LawError(f"crates.{name}: say what it holds (`holds`)")
    return Crate(
        may=frozenset(row["may"]),
        outside=frozenset(row["outside"]),
        holds=row["holds"],
        tests_may=frozenset(row.get("tests-may", [])),
        pure=row.get("pure", False),
    )


def _parts(where: str, rows: Mapping[str, Any]) -> dict[str, Part]:
    return {name: Part(frozenset(row["may"]), _why(where, name, row)["why"]) for name, row in rows.items()}


def _listed(where: str, rows: list[dict[str, Any]], key: str) -> frozenset[tuple[str, str]]:
    """Returns exceptions: files, and what is allowed in each."""
    return frozenset((row["file"], row[key]) for row in rows if _why(where, row["file"], row))


def _why(where: str, name: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
    if not row.get("why"):
        raise LawError(f"{where}.{name}: a rule needs its reason (`why`)")
    return row
