"""Test vectors of the allocation, made from its definition alone. `python tests/test_allocation.py` writes them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parent.parent / "crates" / "core" / "tests" / "allocation.json"
CLASSES = 3
Ask = dict[str, Any]


def _floor(ask: Ask) -> int:
    floor: int = ask["floor"] if ask["claim"] is None else min(ask["floor"], ask["claim"])
    return floor


def _at(ask: Ask, level: int) -> int:
    wanted: int = level * ask["weight"]
    return max(_floor(ask), wanted if ask["claim"] is None else min(ask["claim"], wanted))


def _level(capacity: int, asks: list[Ask]) -> tuple[int, int]:
    """The largest level at which all grants fit, found by halving, and what is used: all, if a claim is not met."""
    low, high = 0, capacity + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sum(_at(ask, middle) for ask in asks) <= capacity else (low, middle)
    met = all(ask["claim"] is not None and ask["claim"] <= ask["weight"] * low for ask in asks)
    return low, sum(ask["claim"] for ask in asks) if met else capacity


def _cut(capacity: int, asks: list[Ask]) -> list[int]:
    """Floors beyond the capacity: class by class, and in a class in proportion, to 24 bits."""
    parts, left = {}, capacity
    for number in range(CLASSES):
        floors = sum(_floor(ask) for ask in asks if ask["class"] == number)
        parts[number] = 2**24 if floors <= left else left * 2**24 // floors
        left = max(left - floors, 0)
    return [_floor(ask) * parts[ask["class"]] // 2**24 for ask in asks]


def allocate(capacity: int, reserve_percent: int, asks: list[Ask]) -> list[int]:
    """The rule, by its definition."""
    if sum(map(_floor, asks)) > capacity:
        return _cut(capacity, asks)
    levels, left = [], capacity
    for number in range(CLASSES):
        here = [ask for ask in asks if ask["class"] == number]
        below = [ask for ask in asks if ask["class"] > number]
        rest = left - sum(map(_floor, here + below))
        reserve = rest * reserve_percent // 100 if below else 0
        level, used = _level(left - sum(map(_floor, below)) - reserve, here)
        levels.append(level)
        left -= used if here else 0
    return [_at(ask, levels[ask["class"]]) for ask in asks]


def _ask(claim: int | None = None, weight: int = 1, floor: int = 0, class_: int = 0) -> Ask:
    return {"class": class_, "weight": weight, "floor": floor, "claim": claim}


# By hand: the names say what is shown, the last entry what each gets.
_BY_HAND: list[tuple[str, int, int, list[Ask], list[int]]] = [
    ("equal shares", 900, 0, [_ask(), _ask(), _ask()], [300, 300, 300]),
    ("shares are rounded down", 1000, 0, [_ask(), _ask(), _ask()], [333, 333, 333]),
    ("what one leaves goes to the others", 900, 0, [_ask(100), _ask(), _ask()], [100, 400, 400]),
    ("an idle member holds nothing", 900, 0, [_ask(0), _ask(0), _ask()], [0, 0, 900]),
    ("claims are met in order of size", 1000, 0, [_ask(600), _ask(100), _ask(350)], [550, 100, 350]),
    ("all claims are met", 1000, 0, [_ask(100), _ask(200)], [100, 200]),
    ("weights", 1000, 0, [_ask(weight=3), _ask(weight=1), _ask(100, weight=4)], [675, 225, 100]),
    ("a floor above the level", 1000, 0, [_ask(floor=600), _ask(), _ask()], [600, 200, 200]),
    ("a floor below the level changes nothing", 1000, 0, [_ask(floor=200), _ask()], [500, 500]),
    ("no floor beyond a claim", 1000, 0, [_ask(100, floor=600), _ask()], [100, 900]),
    ("floors beyond the capacity are cut", 1000, 0, [_ask(floor=1500), _ask(floor=500), _ask()], [750, 250, 0]),
    (
        "floors are cut class by class",
        1000,
        0,
        [_ask(floor=800), _ask(floor=400, class_=1), _ask(floor=9, class_=2)],
        [800, 200, 0],
    ),
    ("a floor of a lower class", 1000, 10, [_ask(), _ask(floor=300, class_=1), _ask(class_=1)], [630, 300, 70]),
    ("a floor of the class itself", 1000, 50, [_ask(floor=800), _ask(class_=1)], [900, 100]),
    ("floors between claims", 1000, 0, [_ask(100), _ask(floor=400), _ask(300), _ask()], [100, 400, 250, 250]),
    ("class 0 goes first", 1000, 10, [_ask(300), _ask(class_=1), _ask(class_=2)], [300, 630, 70]),
    ("a reserve for the classes below", 1000, 10, [_ask(), _ask(class_=1)], [900, 100]),
    ("no reserve without a class below", 1000, 10, [_ask(class_=2), _ask(class_=2)], [500, 500]),
    ("no member", 1000, 10, [], []),
    ("no capacity", 0, 10, [_ask(), _ask(5, floor=5)], [0, 0]),
]


def _random(seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    asks = [
        _ask(
            draw.choice([None, 0, draw.randrange(1, 5000), draw.randrange(1, 50)]),
            draw.choice([1, 1, 2, 3, 7]),
            draw.choice([0, 0, 0, draw.randrange(1, 800)]),
            draw.choice([0, 0, 1, 2]),
        )
        for _ in range(draw.randrange(1, 9))
    ]
    return {
        "name": f"random {seed}",
        "capacity": draw.choice([997, 10_000, 1_187_500]),
        "reserve_percent": 10,
        "asks": asks,
    }


def vectors() -> list[dict[str, Any]]:
    """All vectors: those by hand, then random ones with what the definition gives."""
    by_hand = [
        {"name": name, "capacity": capacity, "reserve_percent": reserve, "asks": asks, "grants": grants}
        for name, capacity, reserve, asks, grants in _BY_HAND
    ]
    drawn = [_random(seed) for seed in range(120)]
    return by_hand + [{**v, "grants": allocate(v["capacity"], v["reserve_percent"], v["asks"])} for v in drawn]


def _text() -> str:
    return "[\n" + ",\n".join(json.dumps(vector) for vector in vectors()) + "\n]\n"


def test_the_definition_gives_what_was_worked_out_by_hand() -> None:
    for name, capacity, reserve, asks, grants in _BY_HAND:
        assert allocate(capacity, reserve, asks) == grants, name


def test_the_file_has_these_vectors() -> None:
    assert VECTORS.read_text() == _text()


if __name__ == "__main__":
    VECTORS.write_text(_text())
