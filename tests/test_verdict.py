"""The rule by which `compare` answers, on made-up samples."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from penstock.experiments import verdict
from penstock.experiments.verdict import ALIKE, BETTER, DEPENDS, OPEN, WORSE, Sample, answer, pair

ALIKE_IN_ALL = {"mos": 4.0, "page_ms": 500.0, "pages_came": 1.0, "carried": 0.9, "queue_ms": 20.0, "dropped": 0.01}
NOISE = (-1.0, 1.0, -0.5, 0.5, 0.0, -1.0, 1.0, -0.5, 0.5, 0.0)  # mean 0


def side(label: str, noise: float = 0.0, runs: int = 10, **values: Any) -> Sample:
    """A side whose runs have these values; `noise` is a part of them, by which seeds differ."""
    given = {**ALIKE_IN_ALL, **values}
    columns = {
        key: of if isinstance(of, list) else [of * (1 + noise * one) for one in NOISE] for key, of in given.items()
    }
    return Sample(label, columns, runs)


@pytest.mark.parametrize(
    ("values", "relation"),
    [
        ({}, ALIKE),
        ({"mos": 4.5}, BETTER),
        ({"mos": 3.5}, WORSE),
        ({"mos": 4.05}, ALIKE),  # nobody hears a twentieth
        ({"page_ms": 400.0}, BETTER),
        ({"page_ms": 530.0}, ALIKE),  # nobody sees 6 %
        ({"mos": 4.5, "page_ms": 900.0}, DEPENDS),
        ({"mos": 4.5, "carried": 0.4}, BETTER),  # what people feel counts first
        ({"carried": 0.4}, WORSE),
        ({"carried": 0.87}, ALIKE),
        ({"carried": 0.4, "queue_ms": 1.0}, WORSE),
        ({"queue_ms": 10.0, "dropped": 0.2}, BETTER),
        ({"queue_ms": 21.0}, ALIKE),
        ({"dropped": 0.2}, WORSE),
        ({"dropped": 0.012}, ALIKE),
    ],
)
def test_the_first_level_that_differs_decides(values: dict[str, Any], relation: str) -> None:
    first, other = side("a", noise=1e-4), side("b", **values)
    assert pair(first, other).relation == relation
    mirrored = {BETTER: WORSE, WORSE: BETTER}.get(relation, relation)
    assert pair(other, first).relation == mirrored, "whoever comes first"


def test_what_is_open_is_not_decided_by_what_counts_less() -> None:
    """MOS 4.0 and 4.4 on average, but a seed decides which call is better; that b carries half is sure."""
    first = side("a", mos=[3.0, 5.0] * 5)
    other = side("b", mos=[5.0, 3.8] * 5, carried=0.4)
    assert pair(first, other).relation == OPEN
    found = answer([first, other], "home")
    assert (found.verdict, found.best) == (verdict.CANNOT_TELL, ("a", "b"))
    assert found.sentence == "The runs cannot tell which of a and b serves home best."
    assert found.because[0].startswith("b beside a: calls MOS 4.40 instead of 4.00, difference ")


def test_a_difference_must_be_sure_and_must_count() -> None:
    draws = [0.3, 0.1, 0.5, 0.2, 0.4, 0.3, -0.2, 0.6, 0.3, 0.5]  # mean 0.3, sd 0.23: t = 4.1 of 3.25
    seeds: dict[str, Any] = {"mos": [4.0 + one for one in draws]}
    assert pair(side("a"), side("b", **seeds)).relation == BETTER
    three = [
        Sample(one.label, {key: values[:3] for key, values in one.values.items()}, 3)
        for one in (side("a"), side("b", **seeds))
    ]
    assert pair(three[0], three[1]).relation == OPEN, "t = 2.6 of 9.9 with three seeds"
    far: dict[str, Any] = {"mos": [4.0 + 0.2 * one for one in draws]}  # mean 0.06, which is sure, and less than 0.1
    assert pair(side("a"), side("b", **far)).relation == ALIKE


@pytest.mark.parametrize(("runs", "relation"), [(7, OPEN), (8, BETTER), (10, BETTER)])
def test_the_same_difference_in_eight_different_runs_is_sure(runs: int, relation: str) -> None:
    assert pair(side("a", runs=runs), side("b", runs=runs, mos=4.5)).relation == relation


def test_one_seed_has_no_best() -> None:
    alone = [Sample(label, {"mos": [mos], "carried": [0.9]}, 1) for label, mos in (("a", 1.2), ("b", 4.4))]
    found = answer(alone, "home")
    assert (found.verdict, found.best) == (verdict.CANNOT_TELL, ("a", "b"))
    assert found.sentence.endswith("serves home best: one seed has no interval; --seeds 10 gives one.")


def test_seeds_that_are_one_run_have_no_best() -> None:
    found = answer([side("a", runs=1), side("b", runs=1, mos=4.5)])
    assert (found.verdict, found.best, found.because) == (verdict.CANNOT_TELL, ("a", "b"), ())
    assert found.sentence.endswith("serves best: of each, all its seeds are one run, which has no interval.")
    one = answer([side("a"), side("b", runs=1, mos=4.5)])
    assert (one.verdict, one.because) == (verdict.CANNOT_TELL, ("b: all its seeds are one run, which has no interval",))
    third = answer([side("a"), side("b", runs=1, mos=4.5), side("c", mos=4.5)])
    assert (third.verdict, third.best) == (verdict.BEST, ("c",))
    assert third.sentence == "Of a and c, which can be judged: c serves best."


def test_a_side_whose_runs_failed_is_told() -> None:
    nothing = Sample("b", {key: [None] * 10 for key in ALIKE_IN_ALL}, 1)
    found = answer([side("a"), nothing], "home")
    assert found.sentence == "The runs cannot tell which of a and b serves home best: only one can be judged."
    assert found.because == ("b: 10 of its 10 runs failed",)
    assert answer([side("a"), nothing, side("c", mos=4.5)]).best == ("c",)


def test_where_nothing_was_delivered_there_is_no_best() -> None:
    nothing: dict[str, Any] = {"mos": 1.0, "carried": 0.0}
    found = answer([side("a", **nothing), side("b", queue_ms=1.0, **nothing)])
    assert (found.verdict, found.best) == (verdict.CANNOT_TELL, ("a", "b"))
    assert found.sentence.endswith("nothing was delivered.")
    only = answer([side("a"), side("b", carried=0.0)])
    assert (only.verdict, only.best) == (verdict.BEST, ("a",)), "on one side only, it loses"


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
def test_a_value_that_is_missing_leaves_it_open(missing: float | None) -> None:
    found = answer([side("a"), side("b", mos=[4.4] * 9 + [missing])])
    assert (found.verdict, found.best) == (verdict.CANNOT_TELL, ("a", "b"))
    assert found.because[0] == "b beside a: calls: b has none in 1 of 10 seeds"
    everywhere = answer([side("a", mos=[missing] * 10), side("b", mos=[missing] * 10, page_ms=300.0)])
    assert everywhere.best == ("b",), "without calls pages decide"
    assert "calls" not in " ".join((everywhere.sentence, *everywhere.because))


def test_what_only_one_side_has_leaves_it_open() -> None:
    values = {key: of for key, of in side("b").values.items() if key != "mos"}
    found = answer([side("a"), Sample("b", values, 10)])
    assert (found.verdict, found.because[0]) == (verdict.CANNOT_TELL, "b beside a: calls: b has none")


def test_several_that_are_alike_serve_best_together() -> None:
    found = answer([side("droptail", mos=2.0), side("fq-codel"), side("weir", mos=4.04)], "home")
    assert (found.verdict, found.best) == (verdict.CANNOT_TELL, ("fq-codel", "weir"))
    assert found.sentence == "fq-codel and weir serve home best; the runs cannot tell between them."
    assert found.because == (
        "no difference that counts: calls, pages, goodput, queue and drops",
        "droptail beside fq-codel: calls MOS 2.00 instead of 4.00",
    )


def test_of_five_one_may_be_best() -> None:
    found = answer([side("a"), side("b", mos=3.0), side("c", queue_ms=5.0), side("d", carried=0.5), side("e", mos=1.0)])
    assert (found.verdict, found.best, found.sentence) == (verdict.BEST, ("c",), "c serves best.")
    assert found.because[0] == "a beside c: queue 20 ms instead of 5 ms; calls, pages and goodput alike"
    assert [reason.split(" beside ")[0] for reason in found.because] == ["a", "b", "d", "e"]


def test_who_is_best_in_what_people_feel_may_depend() -> None:
    found = answer([side("fq-codel", page_ms=1000.0), side("codel", mos=2.4, page_ms=700.0), side("red", mos=2.4)])
    assert (found.verdict, found.best) == (DEPENDS, ("fq-codel", "red")), "pages are shorter with red than with codel"
    assert found.sentence.endswith("feel: fq-codel for calls; red for pages.")
    two = answer([side("fq-codel", page_ms=1000.0), side("codel", mos=2.4, page_ms=700.0)], "home")
    assert two.sentence == "None serves home best in all that people feel: fq-codel for calls; codel for pages."


def test_equal_sides_serve_equally_well() -> None:
    found = answer([side("a", noise=0.2), side("b", noise=0.2)], "home")
    assert (found.verdict, found.best) == (verdict.CANNOT_TELL, ("a", "b"))
    assert found.sentence == "a and b serve home equally well; the runs cannot tell between them."


def test_settings_are_kept_with_the_answer() -> None:
    found = answer([side("a"), side("b", mos=4.5)], "home", (("flows.0.count", "2"),)).to_json()
    assert found["settings"] == {"flows.0.count": "2"}
    assert (found["verdict"], found["best"]) == ("best", ["b"])


@pytest.mark.parametrize(("sides", "most"), [(2, 20), (5, 20)])
def test_equal_sides_are_seldom_told_apart(sides: int, most: int) -> None:
    """Of 400 comparisons of equal sides that differ by chance alone, at most 5 % name one that is behind."""
    draws, spreads = random.Random(20261130), {"mos": 0.3, "page_ms": 1.0, "carried": 0.3, "queue_ms": 1.0}
    wrong = 0
    for _ in range(400):
        drawn = [
            {key: [ALIKE_IN_ALL[key] * (1 + of * draws.gauss()) for _ in NOISE] for key, of in spreads.items()}
            for _ in range(sides)
        ]
        found = answer([Sample(str(place), values, 10) for place, values in enumerate(drawn)])
        wrong += len(found.best) < sides
    assert 0 < wrong <= most
