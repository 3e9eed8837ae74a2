"""The standing book in its short form: the present code against the worst that was found, and what is new on its own.

About 10 s of CPU time. `penstock verify break --all` searches anew, by `make nightly`; crates/sim/tests/invariants.rs
runs random scenarios of every algorithm.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import penstock as lab
import pytest
from penstock import engine
from penstock.adversary import breaking, space, standing, subject
from penstock.adversary.breaking import Budget, Plan
from penstock.adversary.trials import Judge

BOOK = json.loads((Path(__file__).resolve().parents[1] / "docs" / "results" / "book.json").read_text(encoding="utf-8"))
TRIED = {name: one for name, one in BOOK["algorithms"].items() if "findings" in one}
MOST_KEYS = 12
NEW_TRIALS = 48  # of an algorithm that is not in the book


def judge(name: str, goals: list[str]) -> Judge:
    """A judge of the scenarios of an algorithm in the space of the book."""
    found = subject.find(name)
    searched = space.standard(found.kind).of(found, hostile=False)
    return Judge(searched, tuple(standing.goals(goals, found.kind, ())))


def broken() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What the book has as broken: algorithm, property, and the finding."""
    for name, one in TRIED.items():
        yield from ((name, goal, finding) for goal, finding in one["findings"].items() if finding["broken"])


def test_the_worst_scenarios_are_small() -> None:
    assert max(len(finding["settings"]) for _, _, finding in broken()) <= MOST_KEYS
    assert sum(1 for _ in broken()) > 200


def test_the_present_code_against_the_book() -> None:
    """No result contradicts itself, and what breaks an algorithm breaks it still, but for what was mended since."""
    still, all_of_them = 0, 0
    for name, goal, finding in broken():
        done = judge(name, [goal, "impossible"]).trial(finding["settings"], 1)
        assert not done.refused, f"{name}, {goal}: {done.error}"
        assert not done.judged[1].true, f"{name}, {goal}: {done.error or 'the results contradict each other'}"
        still, all_of_them = still + done.judged[0].true, all_of_them + 1
    assert still > 0.9 * all_of_them, "most of the book is no longer so: write it anew"


@pytest.mark.parametrize("name", [one.name for one in engine.entries() if one.name not in BOOK["algorithms"]])
def test_what_is_not_in_the_book_yet_is_searched_for_a_while(name: str) -> None:
    judged = judge(name, ["impossible"])
    result = breaking.run(Plan(judged.space, judged.goals, Budget(NEW_TRIALS), 1, 1, ways=1, mends=False))
    assert result.timing["ran"] >= NEW_TRIALS / 2
    assert not result.broken


def test_a_scenario_of_the_book_gives_the_same_bytes_again() -> None:
    """Of each property one: from its file, as `penstock run` reads it."""
    seen = set()
    for name, goal, finding in broken():
        if goal in seen:
            continue
        seen.add(goal)
        text = judge(name, [goal]).space.text(finding["settings"], goal, 1)
        first, again = (lab.run(text) for _ in range(2))
        assert json.dumps(first.summary) == json.dumps(again.summary) and first.raw_tables == again.raw_tables
    assert len(seen) >= 8
