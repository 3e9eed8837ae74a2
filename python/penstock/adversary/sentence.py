"""Sentences that say what counts as broken: "jain < 0.5", "subject_share < 0.2 and buffer_products < 1.5".

A sentence compares expressions over the names of `quantities`, joined by `and`, `or` and `not`; expressions have
numbers, + - * /, parentheses, min, max and abs. Python's parser reads it, and only these forms are taken from the tree:
nothing is executed.

A sentence is true or false, and has a margin from -1 to 1 that says how far it is from the other: of a < b it is
(b - a) / (|a| + |b|), of a == b the same if it is false and 1 if it is true, of `and` the least, of `or` the largest. A
search climbs along it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.adversary import quantities
from penstock.mistake import MistakeError

LONGEST = 1000  # characters
GRAMMAR = 'write a comparison of measures, such as "jain < 0.5 and link.drop_share > 0.1"'
FUNCTIONS: Mapping[str, Callable[..., float]] = {"min": min, "max": max, "abs": abs}

_LEAST = 1e-6  # what is true has at least this margin

Values = Mapping[str, float | None]


class SentenceError(MistakeError):
    """A sentence cannot be read."""


@dataclass(frozen=True)
class Judged:
    """What a sentence says of one run."""

    true: bool
    margin: float  # above zero if it is true, below if it is false, more so the farther from the other


UNKNOWN = Judged(False, -1.0)  # where a measure has no value


@dataclass(frozen=True)
class Sentence:
    """A sentence that was read."""

    text: str
    parts: tuple[str, ...]  # names of the groups of flows, which may stand before a measure

    @cached_property
    def _tree(self) -> ast.expr:
        if len(self.text) > LONGEST:
            raise SentenceError(f"a sentence has at most {LONGEST} characters; this one has {len(self.text)}")
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            place = getattr(error, "offset", None)
            where = f" at character {place}" if place else ""
            raise SentenceError(f"{self.text!r} cannot be read{where}; {GRAMMAR}") from None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities, in their order."""
        found: dict[str, None] = {}
        _Reader(self).names(self._tree, found)
        return tuple(found)

    @property
    def rises(self) -> bool:
        """True if the first quantity is bad where it is large."""
        first = next(node for node in ast.walk(self._tree) if isinstance(node, ast.Compare))
        left = any(isinstance(node, ast.Name | ast.Attribute) for node in ast.walk(first.left))
        return isinstance(first.ops[0], ast.Gt | ast.GtE) == left

    def judge(self, values: Values) -> Judged:
        """Says whether the sentence is true of these values."""
        found = _judge(self._tree, values)
        least = _LEAST if found.true else -_LEAST
        return Judged(found.true, max(found.margin, least) if found.true else min(found.margin, least))


def read(text: str, parts: tuple[str, ...] = ()) -> Sentence:
    """Reads a sentence; raises `SentenceError` if it is none, or has a name that is none."""
    sentence = Sentence(text, parts)
    if not sentence.names:
        raise SentenceError(f"{text!r} names no measure; {GRAMMAR}")
    return sentence


@dataclass(frozen=True)
class _Reader:
    """Checks every node of a sentence, and collects its names."""

    sentence: Sentence

    def names(self, node: ast.expr, found: dict[str, None]) -> None:
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self.names(value, found)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.names(node.operand, found)
        elif isinstance(node, ast.Compare):
            for operator in node.ops:
                if not isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq):
                    raise self._refused(node, "comparisons are < <= > >= == !=")
            for value in (node.left, *node.comparators):
                self._numbers(value, found)
        else:
            raise self._refused(node, GRAMMAR)

    def _numbers(self, node: ast.expr, found: dict[str, None]) -> None:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, int | float):
                raise self._refused(node, "only numbers can be compared; the name of a measure tells its unit")
        elif isinstance(node, ast.Name | ast.Attribute):
            name = self._name(node)
            quantities.check(name, self.sentence.parts)
            found[name] = None
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            self._numbers(node.operand, found)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            self._numbers(node.left, found)
            self._numbers(node.right, found)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            if node.keywords or not node.args or (len(node.args) < 2) != (node.func.id == "abs"):
                raise self._refused(node, "write min(a, b), max(a, b) or abs(a)")
            for value in node.args:
                self._numbers(value, found)
        else:
            raise self._refused(node, "expressions have numbers, names, + - * /, min, max and abs")

    def _name(self, node: ast.expr) -> str:
        name = _dotted(node)
        if not name:
            raise self._refused(node, GRAMMAR)
        return name

    def _refused(self, node: ast.expr, allowed: str) -> SentenceError:
        what = ast.get_source_segment(self.sentence.text.strip(), node) or self.sentence.text
        return SentenceError(f"{what!r} at character {node.col_offset + 1}: {allowed}")


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def _judge(node: ast.expr, values: Values) -> Judged:
    if isinstance(node, ast.BoolOp):
        found = [_judge(value, values) for value in node.values]
        if isinstance(node.op, ast.And):
            return Judged(all(one.true for one in found), min(one.margin for one in found))
        return Judged(any(one.true for one in found), max(one.margin for one in found))
    if isinstance(node, ast.UnaryOp):
        inner = _judge(node.operand, values)
        return inner if inner is UNKNOWN else Judged(not inner.true, -inner.margin)
    assert isinstance(node, ast.Compare)
    numbers = [_number(one, values) for one in (node.left, *node.comparators)]
    known = [number for number in numbers if number is not None and not math.isnan(number)]
    if len(known) < len(numbers):
        return UNKNOWN
    pairs = [_compare(op, a, b) for op, a, b in zip(node.ops, known, known[1:], strict=False)]
    return Judged(all(one.true for one in pairs), min(one.margin for one in pairs))


def _compare(operator: ast.cmpop, a: float, b: float) -> Judged:
    size = abs(a) + abs(b)
    apart = (b - a) / size if size and math.isfinite(size) else float(b > a) - float(b < a)
    if isinstance(operator, ast.Lt):
        return Judged(a < b, apart)
    if isinstance(operator, ast.LtE):
        return Judged(a <= b, apart)
    if isinstance(operator, ast.Gt):
        return Judged(a > b, -apart)
    if isinstance(operator, ast.GtE):
        return Judged(a >= b, -apart)
    if isinstance(operator, ast.Eq):
        return Judged(a == b, -abs(apart) if apart else 1.0)
    return Judged(a != b, 1.0 if apart else -_LEAST)


def _number(node: ast.expr, values: Values) -> float | None:
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type] # a number, which was checked
    if isinstance(node, ast.Name | ast.Attribute):
        return values.get(_dotted(node))
    if isinstance(node, ast.UnaryOp):
        inner = _number(node.operand, values)
        return None if inner is None else -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.Call):
        given = [_number(one, values) for one in node.args]
        known = [one for one in given if one is not None]
        return FUNCTIONS[_dotted(node.func)](*known) if len(known) == len(given) else None
    assert isinstance(node, ast.BinOp)
    a, b = _number(node.left, values), _number(node.right, values)
    return None if a is None or b is None else _calculated(node.op, a, b)


def _calculated(operator: ast.operator, a: float, b: float) -> float | None:
    if isinstance(operator, ast.Add):
        return a + b
    if isinstance(operator, ast.Sub):
        return a - b
    if isinstance(operator, ast.Mult):
        return a * b
    return a / b if b else None
