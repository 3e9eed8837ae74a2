"""Dependencies between crates and on other packages, and the lints of the crates without input and output."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from layers import rust
from layers.law import Crate, Law

LINTS = ("clippy::disallowed_macros", "clippy::disallowed_methods", "clippy::disallowed_types")
DENIED = f"#![cfg_attr(not(test), deny({', '.join(LINTS)}))]"
OURS = "penstock-"
# The word, and a level of the lint that lets it pass.
UNSAFE = re.compile(r"\bunsafe\b|\b(?:allow|expect|warn)\s*\([^()]*\bunsafe_code\b")
LEVEL = re.compile(r"\b(?:allow|expect|warn)\s*\(([^()]*)\)")


def metadata(root: Path) -> list[dict[str, Any]]:
    """Returns the packages of a workspace from the output of `cargo metadata`."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"]
    found = json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True).stdout)
    packages: list[dict[str, Any]] = found["packages"]
    return packages


def wrong_dependencies(packages: list[dict[str, Any]], crates: Mapping[str, Crate]) -> Iterator[str]:
    """Returns the dependencies which the table does not allow, of any kind, name in the manifest and target."""
    for package in packages:
        name = package["name"].removeprefix(OURS)
        if name not in crates:
            yield f"[crates]: {name} is missing; say there whom it may know, and what it holds"
            continue
        yield from _wrong(name, crates[name], package["dependencies"])
    for name in sorted(set(crates) - {package["name"].removeprefix(OURS) for package in packages}):
        yield f"[crates]: there is no crate {name}; remove its row"


def _wrong(name: str, crate: Crate, dependencies: list[dict[str, Any]]) -> Iterator[str]:
    used: dict[str | None, set[str]] = {}
    for dependency in dependencies:
        used.setdefault(dependency["kind"], set()).add(dependency["name"])
    shipped = used.get(None, set()) | used.get("build", set())
    ours = {other.removeprefix(OURS) for other in shipped if other.startswith(OURS)}
    outside = {other for other in shipped if not other.startswith(OURS)}
    # A crate may name itself, to have features of its own in its tests.
    for_tests = {other.removeprefix(OURS) for other in used.get("dev", set()) if other.startswith(OURS)} - {name}
    for other in sorted(ours - crate.may):
        yield f"crate {name}: must not know {other}"
    for other in sorted(for_tests - crate.may - crate.tests_may):
        yield f"crate {name}: its tests must not know {other}"
    for other in sorted(outside - crate.outside):
        both = "`outside` and to docs/reference/dependencies.md"
        yield f"crate {name}: must not use {other}; if it has to, add it to {both}"
    for other in sorted((crate.may - ours) | (crate.outside - outside) | (crate.tests_may - for_tests)):
        yield f"[crates] {name}: does not need {other} any more; remove it"


def wrong_lints(
    sources: Mapping[str, str], crates: Mapping[str, Crate], allowed: frozenset[tuple[str, str]]
) -> Iterator[str]:
    """Returns pure crates whose lib.rs does not deny the lints, and exceptions from lints that are not listed.

    `sources` are the texts of all files below `src` of all crates by their paths, `core/src/lib.rs` for one.
    """
    pure = {name for name, crate in crates.items() if crate.pure}
    for name in sorted(pure):
        if DENIED not in sources.get(f"{name}/src/lib.rs", ""):
            yield f"crates/{name}/src/lib.rs: must have `{DENIED}`"
    found = set()
    for path, text in sources.items():
        if path.split("/")[0] not in pure:
            continue
        levels = [match[1] for match in LEVEL.finditer(rust.bare(text))]
        for lint in LINTS:
            groups = (lint, "clippy::all", "clippy::style", "warnings")
            if any(group in level for group in groups for level in levels):
                found.add((path, lint))
    for path, lint in sorted(found - allowed):
        yield f"crates/{path}: allows {lint}, and [[lints]] does not list it"
    for path, lint in sorted(allowed - found):
        yield f"[[lints]]: crates/{path} does not allow {lint} any more; remove the row"


def wrong_tricks(sources: Mapping[str, str]) -> Iterator[str]:
    """Returns uses of `#[path]` and `include!`, which bring in code that the syntax tree of a module does not show."""
    for path, text in sources.items():
        code = rust.bare(text)
        if re.search(r"#!?\[[^\]]*\bpath\s*=", code):
            yield f"crates/{path}: #[path] hides where a module is"
        if re.search(r"(?<!\w)include!\s*[(\[{]", code):
            yield f"crates/{path}: include! hides code from the layers"


def wrong_types(sources: Mapping[str, str], rules: Law) -> Iterator[str]:
    """Returns types that a file names although only other crates may, except in code for tests."""
    names = re.compile(rf"\b(?:{'|'.join(sorted(rules.types))})\b")
    found = set()
    for crate in sorted({path.split("/")[0] for path in sources} - rules.type_homes):
        files = {path.split("/src/", 1)[1]: text for path, text in sources.items() if path.startswith(f"{crate}/src/")}
        for file in rust.without_tests(files).values():
            path = f"{crate}/src/{file.name}"
            lines = list(rust.words(file, names))
            if path in rules.types_known and lines:
                found.add(path)
            elif lines:
                homes = ", ".join(sorted(rules.type_homes))
                yield from (f"crates/{path}:{line}: only {homes} may name {name}" for line, name in lines)
    for path in sorted(rules.types_known - found):
        yield f"[types]: crates/{path} names none of them any more; remove its row"


def wrong_unsafe(sources: Mapping[str, str], homes: frozenset[str]) -> Iterator[str]:
    """Returns `unsafe` in files that may not have it, and leave for it; `homes` are beginnings of paths.

    `sources` are the texts of all files of all crates by their paths, `core/src/lib.rs` for one. Tests count as well.
    """
    found = set()
    for path, text in sources.items():
        code = rust.bare(text)
        lines = [code.count("\n", 0, match.start()) + 1 for match in UNSAFE.finditer(code)]
        ours = {home for home in homes if path.startswith(home)}
        found |= ours if lines else set()
        if not ours:
            yield from (f"crates/{path}:{line}: only {', '.join(sorted(homes))} may have `unsafe`" for line in lines)
    for home in sorted(homes - found):
        yield f"[unsafe]: crates/{home} has none any more; remove it from `only`"


def wrong_manifests(manifests: Mapping[str, str]) -> Iterator[str]:
    """Returns crates that do not have the lints of the workspace, which deny `unsafe`."""
    for path, text in manifests.items():
        if tomllib.loads(text).get("lints") != {"workspace": True}:
            yield f"crates/{path}: must have the lints of the workspace, and no others"
