"""Values in a scenario by their path, as in "topology.links.0.rate"."""

from __future__ import annotations

from typing import Any


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """Sets the value at a path; one that leads to nothing is made, as far as tables go."""
    first, _, rest = path.partition(".")
    if first == "aqm" and "aqm" not in tree:
        for index, link in enumerate(tree["topology"]["links"]):
            if "aqm" in link:
                put(tree, f"topology.links.{index}.aqm.{rest}", value)
        return
    here: Any = tree
    *way, last = path.split(".")
    for key in way:
        here = here[int(key)] if isinstance(here, list) else here.setdefault(key, {})
    here[int(last) if isinstance(here, list) else last] = value
