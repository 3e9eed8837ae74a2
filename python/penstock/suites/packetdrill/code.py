"""The Python of scripts: assertions about the state of a connection, assignments, and prints, which are left out.

The code is read as a tree and evaluated here, so that a script cannot do anything else.
"""

from __future__ import annotations

import ast
import operator
import textwrap
from collections.abc import Callable
from typing import Any

from penstock.suites.packetdrill.values import GrammarError

__all__ = ["Untrue", "run"]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}
_CALLED: dict[str, Callable[..., Any]] = {"abs": abs, "int": int, "max": max, "min": min}


class Untrue(Exception):  # noqa: N818 - what a script says is not so
    """An assertion that does not hold; the text is the assertion with the values of its names."""


def run(text: str, names: dict[str, Any]) -> None:
    """Runs the code of a script; assignments go to `names`.

    Raises `Untrue` for an assertion that does not hold, `KeyError` for a name that is not known, and `GrammarError`
    for what is not
    understood.
    """
    source = textwrap.dedent(text.replace("\\\n", " ")).strip()
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise GrammarError(f"not Python: {error.msg}") from None
    for statement in tree.body:
        match statement:
            case ast.Assert(test=test):
                if not _value(test, names):
                    known = sorted({node.id for node in ast.walk(test) if isinstance(node, ast.Name)})
                    told = ", ".join(f"{name} is {names[name]}" for name in known if name.startswith("tcpi_"))
                    raise Untrue(f"{ast.unparse(test)}: {told}")
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names[name] = _value(value, names)
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
                continue
            case other:
                raise GrammarError(f"{ast.unparse(other)!r} in code")


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [_value(part, names) for part in parts]
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, names) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_value(part, names) for part in parts)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, names), _value(right, names))
        case ast.UnaryOp(op=one, operand=operand) if type(one) in _UNARY:
            return _UNARY[type(one)](_value(operand, names))
        case ast.Compare():
            return _compared(node, names)
        case ast.Call(func=ast.Name(id=name), args=given) if name in _CALLED:
            return _CALLED[name](*(_value(one, names) for one in given))
    raise GrammarError(f"{ast.unparse(node)!r} in code")


def _compared(node: ast.Compare, names: dict[str, Any]) -> bool:
    parts = [_value(part, names) for part in (node.left, *node.comparators)]
    for op, left, right in zip(node.ops, parts, parts[1:], strict=False):
        if type(op) not in _COMPARED:
            raise GrammarError(f"{ast.unparse(node)!r} in code")
        if not _COMPARED[type(op)](left, right):
            return False
    return True
