"""What the adversary found against each claim within the set-up of its document: `counterexamples.json`, in words.

A counter-example does not change a verdict. It stands beside it. `tools/measure/ledger-counterexamples` writes the
file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

FILE = "counterexamples.json"
VARIANT, BUFFER = "variant.", "buffer"
Row = Mapping[str, Any]


@cache
def stored() -> Mapping[str, Row]:
    """Returns what was found, by the ids of claims."""
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return dict(json.loads(text)["rows"])


def kind(row: Row | None) -> str:
    """Returns what the search says of a row that holds: `stands`, `contradicted`, `few` seeds, or `not searched`."""
    if not row or row.get("not_searched") or not row["trials"]:
        return "not searched"
    if row["changed"] is None:
        return "stands"
    breaks, of = map(int, row["seeds"].split("/"))
    return "contradicted" if row["changed"] and 2 * breaks >= of else "few"


def condition(row: Row) -> str:
    """Returns under what a row that is contradicted does not hold."""
    return f"not with {told(row['changed'])}"


def told(changed: Row) -> str:
    """Returns the keys that were changed, with their values."""
    return ", ".join(_told(key, value) for key, value in changed.items()) or "nothing"


def _told(key: str, value: Any) -> str:
    if key.startswith(VARIANT):
        return f"the variant {key.removeprefix(VARIANT)}"
    if key == BUFFER:
        return f"queues of {value:g} times the size"
    return f"{key} = {str(value).lower() if isinstance(value, bool) else value}"


def sentence(row: Row) -> str:
    """Returns what was found against a claim, in words."""
    if why := row.get("not_searched"):
        return f"not searched: {why}"
    if not row["trials"]:
        return "not searched: the fewer or shorter runs of the trials do not show it as published"
    trials = f"{row['trials']} trials"
    if row["changed"] is None:
        return f"none found in {trials}"
    if not row["changed"] and row["seeds"].startswith("1/") and row["seeds"] != "1/1":
        return f"in {trials} only seed {row['seed']} as published contradicts it: {row['measured']}"
    with_what = f"with {told(row['changed'])}" if row["changed"] else "as published"
    breaks, of = row["seeds"].split("/")
    seeds = f"seed {row['seed']}" if of == "1" else f"{breaks} of {of} seeds"
    return f"of {trials} the worst is {with_what}: {row['verdict']} in {seeds}: {row['measured']}"
