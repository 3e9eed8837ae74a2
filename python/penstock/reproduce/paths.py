"""Sets values in a scenario by their paths, such as "topology.links.0.rate"."""

from __future__ import annotations

from typing import Any

EVERY = "*"  # the part of a path that stands for every entry of a list


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """Sets the value at a path, and makes tables which are missing on the way.

    A path which begins with "aqm" means the disciplines of all links if the scenario has no table [aqm].
    """
    first, _, rest = path.partition(".")
    if first == "aqm" and "aqm" not in tree:
        for index, link in enumerate(tree["topology"]["links"]):
            if "aqm" in link:
                put(tree, f"topology.links.{index}.aqm.{rest}", value)
        return
    _put(tree, path.split("."), value)


def _put(here: Any, path: list[str], value: Any) -> None:
    key, *rest = path
    if key == EVERY:
        for index in range(len(here)):
            _put(here, [str(index), *rest], value)
    elif rest:
        _put(here[int(key)] if isinstance(here, list) else here.setdefault(key, {}), rest, value)
    else:
        here[int(key) if isinstance(here, list) else key] = value
