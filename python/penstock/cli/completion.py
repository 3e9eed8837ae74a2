"""What a shell completes: keys of scenarios with their values, and the names of what there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

_NAMED = ("aqm.name", "reverse_aqm.name", "cc", "cc.name")  # ends of keys whose values are names of algorithms

_DEEPEST = 4  # levels of tables; deeper ones are written in a file


def keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completes KEY= of `--set` and `--vary`, and names of algorithms behind it."""
    key, equals, value = incomplete.partition("=")
    if equals:
        *before, last = value.split(",")
        kept = ",".join([*before, ""]) if before else ""
        return [f"{key}={kept}{name}" for name in _values(key) if name.startswith(last)]
    return sorted(f"{path}=" for path in set(_paths(_file(ctx))) if path.startswith(key))


def _values(key: str) -> list[str]:
    if not key.endswith(_NAMED):
        return []
    return controls("") if key.endswith(("cc", "cc.name")) else disciplines("")


def _file(ctx: typer.Context) -> dict[str, Any]:
    """Returns the tables of the scenario that the command names, if it can be read."""
    from penstock.scenario import tree

    path = next((Path(word) for word in ctx.args if word.endswith(".toml") and Path(word).is_file()), None)
    return tree(path.read_text(encoding="utf-8", errors="replace")) if path else {}


def _paths(tables: Mapping[str, Any]) -> Iterator[str]:
    """Yields the keys that the schema allows, with the entries that the lists of the scenario have."""
    from penstock import engine

    schema = engine.scenario_schema()
    yield from _below(schema, schema.get("$defs", {}), tables, "")
    yield "aqm.name"


def _below(
    schema: Mapping[str, Any], known: Mapping[str, Any], here: Any, prefix: str, depth: int = 0
) -> Iterator[str]:
    schema = known.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    for form in ("oneOf", "anyOf", "allOf"):
        for one in schema.get(form, ()):
            if _fits(one, here):
                yield from _below(one, known, here, prefix, depth)
    if depth > _DEEPEST:
        return
    for name, one in schema.get("properties", {}).items():
        yield from _part(one, known, here.get(name, {}) if isinstance(here, Mapping) else {}, f"{prefix}{name}", depth)
    if "items" in schema:
        count = len(here) if isinstance(here, list) and here else 1
        for index in range(count):
            entry = here[index] if isinstance(here, list) and here else {}
            yield from _below(schema["items"], known, entry, f"{prefix}{index}.", depth + 1)


def _fits(form: Mapping[str, Any], here: Any) -> bool:
    """Returns false for the table of another algorithm or kind than that which stands in the scenario."""
    told = {"name": here} if isinstance(here, str) else here
    return not isinstance(told, Mapping) or all(
        one.get("const", told.get(name)) == told.get(name)
        for name, one in form.get("properties", {}).items()
        if isinstance(one, Mapping)
    )


def _part(one: Any, known: Mapping[str, Any], here: Any, path: str, depth: int) -> Iterator[str]:
    below = list(_below(one, known, here, f"{path}.", depth + 1)) if isinstance(one, Mapping) else []
    yield from below
    if not below:
        yield path


def disciplines(incomplete: str) -> list[str]:
    """Completes names of disciplines."""
    return _algorithms(incomplete, lambda kind: kind != "cc")


def controls(incomplete: str) -> list[str]:
    """Completes names of congestion controls."""
    return _algorithms(incomplete, lambda kind: kind == "cc")


def algorithms(incomplete: str) -> list[str]:
    """Completes names of algorithms of all kinds."""
    return _algorithms(incomplete, lambda _kind: True)


def _algorithms(incomplete: str, wanted: Any) -> list[str]:
    from penstock import engine

    return _beginning(incomplete, [one.name for one in engine.entries() if wanted(one.kind)])


def measures(incomplete: str) -> list[str]:
    """Completes names of measures."""
    from penstock.experiments.measures import BY_KEY

    return _beginning(incomplete, BY_KEY)


def experiments(incomplete: str) -> list[str]:
    """Completes names of published experiments."""
    from penstock.reproduce import EXPERIMENTS

    return _beginning(incomplete, EXPERIMENTS)


def worlds(incomplete: str) -> list[str]:
    """Completes names of worlds."""
    from penstock.worlds import NAMES

    return _beginning(incomplete, NAMES)


def pages(incomplete: str) -> list[str]:
    """Completes names of pages of the documentation, and of algorithms that have one."""
    from penstock import manual

    return _beginning(incomplete, [*manual.pages(), *(page.short for page in manual.pages().values())])


def examples(incomplete: str) -> list[str]:
    """Completes names of example scenarios."""
    from penstock import manual

    return _beginning(incomplete, [path.stem for path in manual.EXAMPLES.glob("*.toml")])


def runs(incomplete: str) -> list[str]:
    """Completes directories of results below runs/."""
    from penstock.runs import ROOT, find

    found = [str(one.path) for one in find(ROOT)] if ROOT.is_dir() else []
    return _beginning(incomplete, [*found, *(Path(one).name for one in found if "/" not in incomplete)])


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})
