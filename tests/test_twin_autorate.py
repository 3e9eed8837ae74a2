"""The twin of cake-autorate, which wrote the golden trace that the core replays.

`python tests/test_twin_autorate.py` writes it anew.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from penstock.reference.estimate.autorate import Event, Params, replay

FILE = Path(__file__).parents[1] / "crates/core/tests/golden/autorate.txt"
HEADER = """\
# cake-autorate with its published parameters, on random loads and delays, by the twin in
# python/penstock/reference/estimate/autorate.py.
#
# Every 200 ms both rates are told that were achieved, in kbit/s; otherwise a probe is answered, with both delays in
# microseconds. After each event: both rates in kbit/s, and whether probes are sent. First in, then out.
#
#  time_us event          in      out   rate_in rate_out probes
"""
SECONDS = 110
TICK, SPACING = 200_000, 50_000
GROWTH_US, FALL_US = range(8_000_000), range(8_000_000, 14_000_000)
REST_US = range(30_000_000, 92_000_000)


def events() -> Iterator[Event]:
    """Growth and cuts to all bounds, then random loads and delays, with lost answers, and a minute without load."""
    draw = random.Random(2026)
    load, queue, lost, answers = (0, 0), (0, 0), 0.05, 0
    for at in range(SPACING, SECONDS * 1_000_000, SPACING):
        if draw.random() < 0.02:
            load = draw.choice([0, 8, 1_000, 15_000, 20_000, 70_000]), draw.choice([0, 8, 3_000, 15_000, 34_000])
            queue = draw.choice([0, 0, 15_000, 32_000, 45_000, 400_000]), draw.choice([0, 0, 25_000, 32_000, 80_000])
            lost = draw.choice([0.05, 0.05, 0.05, 0.9])
        if at in GROWTH_US:
            load, queue, lost = (90_000, 40_000), (0, 0), 0.05
        if at in FALL_US:
            load, queue, lost = (90_000, 40_000), (100_000, 55_000), 0.05
        if at in REST_US:
            load, queue, lost = (1_000, 1_000), (0, 0), 0.9
        if at % TICK == 0:
            yield Event(at, "achieved", load)
        if draw.random() >= lost:
            base = 10_000 + 3_000 * (answers % 6)
            inward, outward = (base + draw.randrange(3_000) + int(draw.uniform(0.7, 1.3) * us) for us in queue)
            yield Event(at, "answer", (inward, outward))
            answers += 1


def written() -> str:
    """The golden trace."""
    rows = list(events())
    lines = []
    for row, (rate_in, rate_out, probes) in zip(rows, replay(rows, Params()), strict=True):
        told = f"{row.at_us:>10} {row.kind:<9} {row.both[0]:>7} {row.both[1]:>8}"
        lines.append(f"{told}   {rate_in:>7} {rate_out:>8} {'yes' if probes else 'no'}\n")
    return HEADER + "".join(lines)


def test_the_golden_trace_is_what_the_twin_says() -> None:
    assert FILE.read_text() == written()


def test_the_golden_trace_has_all_that_the_law_does() -> None:
    """Rates rise, fall and reach their bounds, and probes rest."""
    after = list(replay(events(), Params()))
    for way, bounds in enumerate([(5_000, 80_000), (5_000, 35_000)]):
        rates = [row[way] for row in after]
        assert (min(rates), max(rates)) == bounds
    assert {row[2] for row in after} == {True, False}


if __name__ == "__main__":
    FILE.write_text(written())
