"""Sets values in a scenario by their paths, such as "topology.links.0.rate"."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from penstock.mistake import MistakeError

EVERY = "*"  # the part of a path that stands for every entry of a list
_NAME = ".name"
_ALGORITHMS = ("aqm", "reverse_aqm", "per_flow", "cc")  # tables with the name and the parameters of an algorithm


class PathError(MistakeError):
    """A path leads to no place of the scenario."""


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """Sets the value at a path, and makes tables which are missing on the way.

    A path which begins with "aqm" means the disciplines of all links if the scenario has no table [aqm].
    """
    first, _, rest = path.partition(".")
    links = tree.get("topology", {}).get("links") if first == "aqm" and "aqm" not in tree else None
    if links:
        for index, link in enumerate(links):
            if "aqm" in link:
                put(tree, f"topology.links.{index}.aqm{'.' if rest else ''}{rest}", value)
        return
    _put(tree, path.split("."), value, path)


def put_all(tree: dict[str, Any], settings: Mapping[str, Any]) -> None:
    """Sets several values, names of algorithms first: a new name drops the parameters of the former algorithm."""
    for path, value in sorted(settings.items(), key=lambda item: not _is_name(item[0])):
        if _is_name(path):
            named = {"name": value} if isinstance(value, str) else copy.deepcopy(value)  # or a table with parameters
            put(tree, path.removesuffix(_NAME), named)
        else:
            put(tree, path, copy.deepcopy(value))


def _is_name(path: str) -> bool:
    return path.endswith(_NAME) and path.removesuffix(_NAME).rpartition(".")[2] in _ALGORITHMS


def _put(here: Any, path: list[str], value: Any, whole: str) -> None:
    key, *rest = path
    if key == EVERY and isinstance(here, list):
        for index in range(len(here)):
            _put(here, [str(index), *rest], value, whole)
    elif isinstance(here, list):
        index = _index(here, key, whole)
        if rest:
            here[index] = _table(here[index], rest)
            _put(here[index], rest, value, whole)
        else:
            here[index] = value
    elif not isinstance(here, dict):
        raise PathError(f"{whole}: what is above {key!r} is a value, {here!r}, and no table")
    elif rest:
        here[key] = _table(here.get(key, {}), rest)
        _put(here[key], rest, value, whole)
    else:
        here[key] = value


def _table(found: Any, rest: list[str]) -> Any:
    """Returns the table of an algorithm that a scenario names alone: `aqm = "codel"` has parameters as well."""
    return {"name": found} if isinstance(found, str) and rest != [] else found


def _index(here: list[Any], key: str, whole: str) -> int:
    if key.isdigit() and int(key) < len(here):
        return int(key)
    last = len(here) - 1
    allowed = f'0 to {last}, or "*" for all' if last >= 0 else "none: the list is empty"
    raise PathError(f"{whole}: there is no entry {key!r} in this list; allowed are {allowed}")
