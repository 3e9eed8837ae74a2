"""Theorems: no legal input violates them, broken algorithms are found, and the solver refutes models that are wrong.

The searches and the solver take about 15 s of CPU time together: they are the only tests of whole theorems of PINK.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from penstock.adversary import arrivals, lags, policing, proofs, windows
from penstock.adversary.policing import Node, longest_queue
from penstock.adversary.proofs import CASES, PROVED, REFUTED, Case, Rules, buckets, induction, slotted
from penstock.adversary.theorem import Theorem, climb, search
from penstock.adversary.theorems import THEOREMS

# For each theorem an algorithm for which it does not hold: a scheduler without what the bound is due to, a counter in
# place of a bucket, and PINK that takes the link for twice as fast as it is.
BROKEN = {
    "wf2q-plus": "stfq",  # without eligible times
    "w2f2q": "stfq",
    "kps": "drr",
    "qfq": "drr",
    "qfq-plus": "fifo",
    "drr": "fifo",
    "stfq": "drr",
    "qrm": "qrm account=window tolerance=0.0",
    "pink": "rate=20Mbit/s",
}
FEW = {"qrm": 60, "pink": 25}  # inputs that cost more


def named(theorem: Theorem) -> str:
    return f"{theorem.algorithm}: {theorem.bound}"


@pytest.mark.parametrize("theorem", THEOREMS, ids=named)
def test_no_input_violates_a_theorem_and_a_broken_algorithm_is_found(theorem: Theorem) -> None:
    name = theorem.algorithm.split()[0]
    at_a_link = theorem in arrivals.ARRIVALS
    inputs = 40 if at_a_link else FEW.get(name, 200)
    assert 0.2 < search(theorem, inputs).ratio <= 1 + 1e-9
    broken = f"{theorem.algorithm} {BROKEN[name]}" if name == "pink" else BROKEN[name]
    if at_a_link and broken == "fifo":  # which is no discipline
        broken = "prio"
    assert search(replace(theorem, algorithm=broken), inputs).ratio > 1.2


def test_packets_that_come_during_a_transmission_by_hand() -> None:
    """Weights 1 and 3. A packet of 1500 of class 0 comes at 0; 900 of class 0 and 1000 of class 1 come at 500.

    The link sends 1500, 1000 and 900. Guaranteed finishes are 6000, 500 + 4000 / 3, and 6000 + 3600. The share of class
    0 is a quarter: it has packets until 3400 and has had 1500 at 1500; at 2500 it is 1000 / 4 behind that.
    """
    trial = arrivals.Trial("wf2q-plus", [1, 3], [(0, 0, 1500), (500, 0, 900), (500, 1, 1000)])
    assert trial.begins == [0, 2500, 1500]
    late = trial.lateness()
    assert [(cls, size) for cls, size, _ in late] == [(0, 1500), (0, 900), (1, 1000)]
    assert [round(lateness, 3) for *_, lateness in late] == [-4500, -6200, 666.667]
    assert trial.wfi() == [250, 750]
    # Both wait from 500 to 1500, in which class 0 alone is served.
    assert trial.rfi() == [(1, 0, 1000)]


def test_a_bound_that_is_too_small_is_violated() -> None:
    """The B-WFI of WF2Q+ over all intervals is not one packet (docs/reference/tempest.md)."""
    assert search(lags.b_wfi("wf2q-plus", "1", lambda _phi: 1.0), 300).ratio > 1


def test_the_search_climbs() -> None:
    """Half of the inputs are changes of one key of the worst: 400 find what 400 draws of 6 numbers do not."""

    def drawn(draws: random.Random) -> dict[str, int]:
        return {key: draws.randrange(8) for key in "abcdef"}

    def ratio(one: dict[str, int]) -> float:
        return sum(value == 7 for value in one.values()) / 6

    assert climb(drawn, ratio, 400, random.Random(1))[0] == 1


def test_a_counter_lets_a_node_send_twice_its_product() -> None:
    """By hand: 8 Mbit/s times 100 ms are 100 kB. A packet starts the counter; 99 kB at 99 ms, 100 kB at 100 ms pass."""
    node = Node(8_000_000, 75_000_000, 25_000_000)
    packets = [(0, 0, 1000), *[(99_000_000, 0, 1000)] * 99, *[(100_000_000, 0, 1000)] * 100]
    assert longest_queue("qrm account=window tolerance=0.0", [node], packets) == 99_000 - 1_000 + 100_000
    assert longest_queue("qrm tolerance=0.0", [node], packets) <= 100_000


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.theorem}: {case.model}, {case.bound}")
def test_the_solver_says_what_is_written(case: Case) -> None:
    assert case.ask().word == case.expected


@pytest.mark.parametrize(
    "broken",
    [
        proofs.windows(2, factor=Fraction(21, 20)),
        proofs.windows(2, end_when_acknowledged=False),
        buckets(2, granted=Fraction(21, 20)),
        buckets(2, large=True),
    ],
    ids=["windows that are too large", "ends at the FIN", "budgets beyond the link", "packets beyond a bucket"],
)
def test_an_induction_of_a_model_that_is_wrong_fails(broken: proofs.System) -> None:
    assert induction(broken).word == REFUTED


def test_proofs_about_slots_are_tight() -> None:
    """The bounds that were proved are nearly reached, so the models have runs that fill the queue."""
    ended, joins = Rules(ends="acknowledged", slots=9), Rules(joins="syn", slots=9)
    assert slotted(ended, Fraction(15, 16)).word == REFUTED
    assert slotted(joins, Fraction(23, 16)).word == REFUTED
    assert slotted(replace(joins, first=Fraction(2)), Fraction(3, 2)).word == REFUTED
    assert slotted(replace(joins, joining=3, fifo=False), Fraction(7, 4)).word == PROVED  # 1 + m / (m + 1)


@pytest.mark.parametrize(("case", "least"), [("pauses", 1.5), ("measured", 1.4)])
def test_counter_examples_happen_in_the_simulator(case: str, least: float) -> None:
    """Both counter-examples break the paper's form. The default stays within Theorem 1."""
    assert windows.replayed(case, windows.LITERAL) > least
    assert windows.replayed(case, "pink") < 1


def test_the_packets_of_the_solver_make_the_queue_that_it_says() -> None:
    """The model and QRM agree, to a packet of a hundred."""
    found = proofs.counter(Fraction(19, 10))
    events = [(float(at), float(amount)) for at, amount in found.trace]
    assert found.worst is not None
    assert policing.replayed(events, "window") == pytest.approx(float(found.worst), abs=0.02)
    assert policing.replayed(events, "bucket") <= 1
