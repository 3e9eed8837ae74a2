"""The arguments of system calls in packetdrill's scripts: numbers, names, strings, lists and structures."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["ANY", "Fields", "GrammarError", "Value", "call_arguments", "names", "number"]

ANY = "..."


class GrammarError(ValueError):
    """A script that is not understood; the text says what is not."""


@dataclass(frozen=True)
class Fields:
    """A structure: fields with names, and those without in their order."""

    named: dict[str, Value] = field(default_factory=dict)
    plain: list[Value] = field(default_factory=list)


Value: TypeAlias = "int | str | list[Value] | Fields"

_TOKEN = re.compile(r"\s*(?:(\.\.\.)|(0x[0-9a-fA-F]+|\d+)|(\"[^\"]*\")|([A-Za-z_]\w*)|(.))", re.DOTALL)


class _Reader:
    """A cursor over the tokens of one call."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        found = _TOKEN.match(self.text, self.at)
        return "" if found is None else found.group(0).strip()

    def next(self) -> str:
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            raise GrammarError(f"{self.text[:40]!r} ends too early")
        self.at = found.end()
        return found.group(0).strip()

    def expect(self, token: str) -> None:
        got = self.next()
        if got != token:
            raise GrammarError(f"{got!r} where {token!r} belongs")

    def value(self) -> Value:
        first = self.operand()
        if not isinstance(first, int | str) or self.peek() != "|":
            return first
        words = [str(first)]
        while self.peek() == "|":
            self.next()
            words.append(str(self.operand()))
        return "|".join(words)

    def operand(self) -> Value:
        token = self.next()
        if token == "-":
            return -int(self.next(), 0)
        if token[0].isdigit():
            return int(token, 0)
        if token == "[":
            return self.items("]")
        if token == "{":
            return self.fields()
        if token == ANY or token[0] == '"':
            return token
        if not (token[0].isalpha() or token[0] == "_"):
            raise GrammarError(f"{token!r} is no value")
        if self.peek() == "(":  # htons(8080), inet_addr("..."), msg_iov(1)
            self.next()
            self.items(")")
        return token

    def items(self, end: str) -> list[Value]:
        values: list[Value] = []
        while self.peek() != end:
            values.append(self.value())
            if self.peek() == ",":
                self.next()
        self.next()
        return values

    def fields(self) -> Fields:
        fields = Fields()
        while self.peek() != "}":
            value = self.value()
            if self.peek() == "=":
                self.next()
                fields.named[str(value)] = self.value()
            else:
                fields.plain.append(value)
            if self.peek() == ",":
                self.next()
        self.next()
        return fields


def call_arguments(text: str) -> tuple[str, list[Value], str]:
    """Splits `name(arguments) rest`.

    Raises `GrammarError` if it is no call.
    """
    reader = _Reader(text)
    name = reader.next()
    reader.expect("(")
    return name, reader.items(")"), text[reader.at :]


def names(value: Value) -> set[str]:
    """Returns the names of a value that is an or of flags."""
    return set(value.split("|")) if isinstance(value, str) else set()


def number(value: Value) -> int:
    """Returns a number, also the only one of a list.

    Raises `GrammarError` for anything else.
    """
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, int):
        return value
    raise GrammarError(f"{value!r} is no number")
