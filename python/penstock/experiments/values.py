"""What varies: lists, ranges and logarithmic ranges of values, in files and in `--vary KEY=VALUES`.

1,4,256              these values
1..8                 each whole number
1..64:log7           seven values, each the same factor above the one before
10ms..100ms:lin10    ten values at equal distances
0.5..0.9:step0.1     from the first, at this distance, up to the last
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.mistake import MistakeError
from penstock.scenario import inline
from penstock.suggest import did_you_mean
from penstock.units import quantity, sizes_with

MOST = 100_000  # values of one key
GRAMMAR = 'a list "1,4,256", or a range "1..8", "1..64:log7", "10ms..100ms:lin10", "0.5..0.9:step0.1"'
RANGE_KEYS = ("from", "to", "step", "points", "scale")
SCALES = ("linear", "log")

_RANGE = re.compile(r"(.+?)\.\.(.+?)(?::([a-z]+)(.+))?")


class ValuesError(MistakeError):
    """Values are not in the grammar."""


def from_text(text: str) -> list[Any]:
    """Returns the values which a person typed behind `--vary KEY=`."""
    given = text.strip()
    if not given:
        raise ValuesError(f"there are no values; write {GRAMMAR}")
    if given[:1] in "[{\"'":
        return _toml(given if given[0] == "[" else f"[{given}]", text)
    if (found := _RANGE.fullmatch(given)) and quantity(found[1]) and quantity(found[2]):
        return _typed_range(found, text)
    values = [scalar(part.strip()) for part in given.split(",")]
    if "" in values:
        raise ValuesError(f"{text!r}: a value is missing; write {GRAMMAR}")
    return values


def _typed_range(found: re.Match[str], text: str) -> list[Any]:
    first, last, word, rest = found.groups()
    table: dict[str, Any] = {"from": scalar(first.strip()), "to": scalar(last.strip())}
    if word is None:
        if not all(isinstance(end, int) for end in table.values()):
            raise ValuesError(f"{text!r}: how many values? Write {first}..{last}:lin10, :log7 or :stepS")
        table["step"] = 1
    elif word == "step":
        table["step"] = scalar(rest.strip())
    elif word in ("log", "lin") and rest.strip().isdigit():
        table |= {"points": int(rest), "scale": "log" if word == "log" else "linear"}
    else:
        raise ValuesError(
            f"{text!r}: {did_you_mean(word, ('log', 'lin', 'step'))}a range is 1..64:log7, 10ms..100ms:lin10 or "
            "0.5..0.9:step0.1"
        )
    return from_range(table)


def typed(listed: Sequence[Any]) -> str:
    """Returns values as a person would type them behind `--vary KEY=`; `from_text` is the reverse."""
    plain = ",".join(map(shown, listed))
    try:
        if from_text(plain) == list(listed):
            return plain
    except ValuesError:
        pass
    return inline(listed)


def scalar(text: str) -> Any:
    """Returns a value that is typed without quotes: true, false, a number, else a text."""
    try:
        return tomllib.loads(f"x = {text}")["x"] if text[:1] not in "\"'[{" else text
    except tomllib.TOMLDecodeError:
        return text


def _toml(listed: str, text: str) -> list[Any]:
    try:
        found = tomllib.loads(f"x = {listed}")["x"]
    except tomllib.TOMLDecodeError as error:
        raise ValuesError(f"{text!r}: {error}; write {GRAMMAR}") from None
    return list(found)


def from_table(value: Any) -> list[Any]:
    """Returns the values which a key of `[vary]` has: a list, or a range with `from` and `to`."""
    if isinstance(value, Mapping):
        return from_range(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        if not value:
            raise ValuesError("the list is empty; give at least one value")
        return list(value)
    raise ValuesError(
        f"{value!r} is neither a list nor a range; write [1, 4, 256], {{ from = 1, to = 9, step = 2 }} or "
        '{ from = "1Mbit/s", to = "1Gbit/s", points = 7, scale = "log" }'
    )


def from_range(table: Mapping[str, Any]) -> list[Any]:
    """Returns the values of a range: `from`, `to`, and either `step`, or `points` with `scale` "linear" or "log"."""
    _check_keys(table)
    if ("step" in table) == ("points" in table):
        raise ValuesError("a range has either step or points")
    first, last, unit = _ends(table["from"], table["to"])
    if "step" in table:
        numbers = _steps(first, last, _in_unit(table["step"], unit, "step"))
    else:
        numbers = _points(first, last, table["points"], table.get("scale", "linear"))
    whole = not unit and all(
        isinstance(table[key], int) for key in ("from", "to", *(["step"] if "step" in table else []))
    )
    return list(dict.fromkeys(_written(number, unit, whole) for number in numbers))


def _check_keys(table: Mapping[str, Any]) -> None:
    for key in table:
        if key not in RANGE_KEYS:
            raise ValuesError(f"a range has no {key!r}; {did_you_mean(key, RANGE_KEYS)}it has {', '.join(RANGE_KEYS)}")
    for key in ("from", "to"):
        if key not in table:
            raise ValuesError(f"a range lacks {key!r}; it has {', '.join(RANGE_KEYS)}")


def _ends(first: Any, last: Any) -> tuple[float, float, str]:
    """Returns both ends of a range in one unit, that of the smaller end."""
    ends = quantity(first), quantity(last)
    if ends[0] is None or ends[1] is None:
        wrong = first if ends[0] is None else last
        raise ValuesError(f"{wrong!r} is no number with which a range can begin or end")
    unit = ends[0][1]
    return ends[0][0], _in_unit(last, unit, "to"), unit


def _in_unit(value: Any, unit: str, key: str) -> float:
    found = quantity(value)
    if found is None:
        raise ValuesError(f"{key} = {value!r} is no number")
    number, own = found
    if own == unit:
        return number
    sizes = sizes_with(unit)
    if own not in sizes:
        raise ValuesError(f"{key} = {value!r} has not the unit of from ({unit or 'none'})")
    return number * sizes[own] / sizes[unit]


def _steps(first: float, last: float, step: float) -> list[float]:
    if step == 0 or (last - first) / step < 0:
        raise ValuesError(f"step {step:g} does not lead from {first:g} to {last:g}")
    count = math.floor((last - first) / step * (1 + 1e-12) + 1e-9) + 1
    _check_count(count)
    return [first + index * step for index in range(count)]


def _points(first: float, last: float, points: Any, scale: Any) -> list[float]:
    if isinstance(points, bool) or not isinstance(points, int) or points < 2:
        raise ValuesError(f"points = {points!r}: write a whole number from 2 on")
    _check_count(points)
    if scale not in SCALES:
        raise ValuesError(f"scale = {scale!r}: {did_you_mean(str(scale), SCALES)}it is linear or log")
    if scale == "linear":
        return [first + (last - first) * index / (points - 1) for index in range(points)]
    if first <= 0 or last <= 0:
        raise ValuesError("a logarithmic range has both ends above zero")
    return [first * (last / first) ** (index / (points - 1)) for index in range(points)]


def _check_count(count: int) -> None:
    if count > MOST:
        raise ValuesError(f"{count} values of one key; at most {MOST} are run")


def _written(number: float, unit: str, whole: bool) -> Any:
    """Returns a value of a range as a scenario has it: four digits of values in between are enough to name them."""
    if whole:
        return round(number)
    rounded = float(f"{number:.6g}")
    if not unit:
        return rounded
    text = f"{rounded:.10f}".rstrip("0").rstrip(".") if abs(rounded) < 1e15 else f"{rounded:g}"
    return f"{text}{unit}"


# A value with a name and with changes of its own.


NAMED_KEYS = ("as", "value", "change")


def is_named(value: Any) -> bool:
    """Tells whether a value is a table { as = "...", value = ..., change = { ... } }."""
    return isinstance(value, Mapping) and "value" in value and "name" not in value


def given(item: Any) -> list[Any]:
    """Returns the values of a key of [vary], each of which may have a name and changes of its own."""
    listed = from_table(item)
    for value in listed:
        _check_named(value)
    return listed


def _check_named(value: Any) -> None:
    """Raises `ValuesError` if such a table has a key or a value that is not allowed."""
    if not isinstance(value, Mapping) or "name" in value or not set(value) & set(NAMED_KEYS):
        return
    for key in value:
        if key not in NAMED_KEYS:
            raise ValuesError(f"a value has no {key!r}; {did_you_mean(key, NAMED_KEYS)}it has {', '.join(NAMED_KEYS)}")
    good = isinstance(value.get("as", ""), str) and isinstance(value.get("change", {}), Mapping)
    if "value" not in value or not good:
        raise ValuesError('write { value = ..., as = "NAME", change = { KEY = ... } }; as and change may be left out')


def parts(value: Any) -> tuple[Any, Mapping[str, Any]]:
    """Returns what a value sets at its own key, and what it changes elsewhere."""
    return (value["value"], value.get("change", {})) if is_named(value) else (value, {})


def called(value: Any) -> str:
    """Returns the name of a value: that which it is given, that of an algorithm, else the value as it is shown."""
    if is_named(value):
        return str(value["as"]) if "as" in value else called(value["value"])
    return str(value["name"]) if isinstance(value, Mapping) and "name" in value else shown(value)


def shown(value: Any) -> str:
    """Returns a value of a setting as tables and labels show it; of an algorithm with parameters, its name first."""
    if value is None:
        return "-"
    if is_named(value):
        return str(value["as"]) if "as" in value else shown(value["value"])
    if isinstance(value, Mapping):
        rest = [f"{key}={shown(item)}" for key, item in value.items() if key != "name"]
        name = str(value.get("name", ""))
        return f"{name}({', '.join(rest)})" if rest and name else name or f"({', '.join(rest)})"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
