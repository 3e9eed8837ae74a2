"""The vocabulary of checks: each function makes comparisons of numbers by the meanings of `words`.

A check of the ledger collects comparisons and hands them to `decide`. A row of a table is a few lines: its numbers, and
`close`, `about` or `table`; a curve is `rises` or `falls`; an order is `above` or `ordered`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from penstock.claims import words
from penstock.claims.rows import Comparison, Finding, judge

Series = Sequence[tuple[str, float]]  # values with the places where they were measured, in the order of the curve


def number(value: float) -> str:
    """Returns three digits of a value, or the whole part of a larger one."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def decide(parts: Iterable[Comparison], shown: int = 4) -> Finding:
    """Returns the verdict of comparisons; what was measured quotes the first of them."""
    listed = list(parts)
    return judge("; ".join(part.text for part in listed[:shown]), listed)


# One number.


def within(tolerance: float, value: float, paper: float, what: str, unit: str = "") -> Comparison:
    """The value is that of the document, give or take this part of it."""
    text = f"{what}: {number(value)} for {number(paper)}{unit}"
    return Comparison(abs(value - paper) <= tolerance * abs(paper), text, paper, value, what, unit.strip())


def close(value: float, paper: float, what: str, unit: str = "") -> Comparison:
    """The value is close to that of the document."""
    return within(words.CLOSE, value, paper, what, unit)


def about(value: float, paper: float, what: str, unit: str = "") -> Comparison:
    """The value is about that of the document."""
    return within(words.ABOUT, value, paper, what, unit)


def index(value: float, paper: float, what: str) -> Comparison:
    """Jain's index is that of the document's table."""
    text = f"{what}: {value:.2f} for {paper:.2f}"
    return Comparison(abs(value - paper) <= words.INDEX, text, paper, value, what)


def factor(value: float, paper: float, what: str, unit: str = "") -> Comparison:
    """The value is that of the document within a factor of two, as numbers of drops are compared."""
    text = f"{what}: {number(value)} for {number(paper)}{unit}"
    holds = paper / words.FACTOR <= value <= paper * words.FACTOR
    return Comparison(holds, text, paper, value, what, unit.strip())


def at_most(value: float, bound: float, what: str, unit: str = "") -> Comparison:
    """The value keeps a bound that the document gives."""
    return Comparison(value <= bound, f"{what}: {number(value)}{unit}, at most {number(bound)}")


def at_least(value: float, bound: float, what: str, unit: str = "") -> Comparison:
    """The value reaches a level that the document gives."""
    return Comparison(value >= bound, f"{what}: {number(value)}{unit}, at least {number(bound)}")


def table(tolerance: float, ours: Mapping[str, float], paper: Mapping[str, float], unit: str = "") -> list[Comparison]:
    """Numbers of a table: one comparison for each cell of the document that was run."""
    return [within(tolerance, ours[cell], said, cell, unit) for cell, said in paper.items() if cell in ours]


# Two numbers.


def above(more: tuple[str, float], less: tuple[str, float], what: str, unit: str = "", by: float = 1.0) -> Comparison:
    """One value is above another by more than `words.LESS`; or `by` at least a factor, `words.MUCH` or `words.FAR`."""
    (one, a), (other, b) = more, less
    text = f"{what}: {one} {number(a)}, {other} {number(b)}{unit}"
    return Comparison(a - b > words.LESS * abs(b) if by == 1.0 else a >= by * b, text)


def slightly_above(more: tuple[str, float], less: tuple[str, float], what: str, unit: str = "") -> Comparison:
    """One value is above another, and by a tenth of it at most."""
    (one, a), (other, b) = more, less
    text = f"{what}: {one} {number(a)}, {other} {number(b)}{unit}"
    return Comparison(b < a <= (1 + words.SLIGHT) * b, text)


def alike(one: tuple[str, float], other: tuple[str, float], what: str, unit: str = "") -> Comparison:
    """Two values are comparable."""
    (first, a), (second, b) = one, other
    text = f"{what}: {first} {number(a)}, {second} {number(b)}{unit}"
    return Comparison(abs(a - b) <= words.COMPARABLE * abs(b), text)


# Many.


def ordered(values: Series, what: str, unit: str = "") -> list[Comparison]:
    """Each value is above the next one: from the largest to the smallest, as the document lists them."""
    return [above(a, b, what, unit) for a, b in pairwise(values)]


def first_of(name: str, values: Mapping[str, float], what: str, unit: str = "") -> list[Comparison]:
    """The value of `name` is above all others."""
    return [above((name, values[name]), (other, v), what, unit) for other, v in values.items() if other != name]


def rises(values: Series, what: str, unit: str = "") -> list[Comparison]:
    """A curve rises: in all by more than `words.RISE`, and no step goes back by more than chance.

    A curve that stays where it is does not rise: then no step without a rise of its own counts.
    """
    return _trend(values, what, unit, 1)


def falls(values: Series, what: str, unit: str = "") -> list[Comparison]:
    """The reverse of `rises`."""
    return _trend(values, what, unit, -1)


def _trend(values: Series, what: str, unit: str, sign: int) -> list[Comparison]:
    if len(values) < 2:
        return []
    first, last = values[0], values[-1]
    whole = sign * (last[1] - first[1]) > words.RISE * abs(first[1])
    parts = []
    for (here, before), (there, after) in pairwise(values):
        step = sign * (after - before) / abs(before) if before else sign * after
        holds = step > words.CHANCE or (whole and step >= -words.CHANCE)
        text = f"{what} goes from {number(before)} at {here} to {number(after)}{unit} at {there}"
        parts.append(Comparison(holds, text))
    if len(values) > 2:
        parts.append(
            Comparison(whole, f"{what}: {number(first[1])} at {first[0]}, {number(last[1])}{unit} at {last[0]}")
        )
    return parts


def constant(values: Series, what: str, unit: str = "") -> Comparison:
    """A curve hardly changes: its range is a small part of its middle value."""
    inside = sorted(value for _, value in values)
    middle, span = inside[len(inside) // 2], inside[-1] - inside[0]
    text = f"{what} lies between {number(inside[0])} and {number(inside[-1])}{unit}"
    return Comparison(span <= words.CONSTANT * abs(middle), text)
