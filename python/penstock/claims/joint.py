"""What the joint search of open keys found for claims that do not hold: `joint.json`, which `claims search` writes.

A reading that was found with one seed earns a cause and changes no verdict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

FILE = "joint.json"
# keys, trials, holds (the smallest settings with which it holds, or None), nearest (settings of the most comparisons
# that agree), agree, of, measured, droptail (with drop-tail in its place it holds as well)
Row = Mapping[str, Any]


@cache
def stored() -> Mapping[str, Row]:
    """Returns what was found, by the ids of claims."""
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return dict(json.loads(text)["rows"])
