"""The language of packetdrill's scripts: events with their times, packets, system calls, commands and code.

Source: the grammar in `gtests/net/packetdrill/parser.y` and `lexer.l` of google/packetdrill. What TCP over IPv4 needs
of it is
read; the rest is a `GrammarError`, which the rule of what is applicable turns into a reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from penstock.suites.packetdrill.values import GrammarError, Value, call_arguments

__all__ = ["Call", "Code", "Command", "Event", "GrammarError", "Option", "Packet", "Script", "When", "parse"]

_FLAGS = {"F": 0x01, "S": 0x02, "R": 0x04, "P": 0x08, ".": 0x10, "U": 0x20, "E": 0x40, "W": 0x80, "A": 0x100}
_ECN = {"noecn": 0, "ect1": 1, "ect0": 2, "ce": 3}


@dataclass(frozen=True)
class When:
    """The time of an event in microseconds; `end` is that of a range, or of a call that blocks."""

    kind: Literal["absolute", "relative", "any"]
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class Option:
    """One TCP option; `value` is what the option holds, in the order of the script."""

    kind: str
    value: tuple[int | str, ...] = ()


@dataclass(frozen=True)
class Packet:
    """A TCP segment. A field that the script leaves out is `None`; without `options` they are not looked at."""

    inbound: bool
    flags: int
    seq: int
    length: int
    ack: int | None = None
    window: int | None = None
    ecn: int | None = None
    ect: bool = False
    options: tuple[Option, ...] | None = ()

    def option(self, kind: str) -> Option | None:
        """Returns the option of this kind."""
        return next((option for option in self.options or () if option.kind == kind), None)


@dataclass(frozen=True)
class Call:
    """A system call with its arguments and what it must return."""

    name: str
    arguments: list[Value]
    result: Value
    error: str | None
    blocks: bool


@dataclass(frozen=True)
class Command:
    """A line for a shell."""

    text: str


@dataclass(frozen=True)
class Code:
    """Lines of Python, which see `tcpi_...`."""

    text: str


@dataclass(frozen=True)
class Event:
    """What happens, or must happen, at a time."""

    line: int
    when: When
    action: Packet | Call | Command | Code


@dataclass
class Script:
    """A script: options of the program, commands before the first event, events, and commands after the last."""

    options: dict[str, str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(`[^`]*`|%\{.*?\}%|\"[^\"\n]*\")", re.DOTALL)
_NUMBER = r"\d+(?:\.\d*)?|\.\d+"
_TIME = re.compile(
    rf"^[ \t]*(?:(?P<any>\*)|(?P<plus>\+)?[ \t]*(?P<start>{_NUMBER})"
    rf"(?:[ \t]*~[ \t]*\+?(?P<until>{_NUMBER})|[ \t]*\.\.\.[ \t]*(?P<ends>{_NUMBER}))?)[ \t]*(?=[<>`%a-z_\x01])"
)
_HELD = re.compile("\x01(\\d+)\x01")


def parse(text: str) -> Script:
    """Reads a script.

    Raises `GrammarError` with the line where the text is not understood.
    """
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        kept = found.group(1)
        lines = "\n" * found.group(0).count("\n")
        if kept is None or kept.startswith('"'):
            return kept or lines
        held.append(kept)
        return f"\x01{len(held) - 1}\x01{lines}"

    lines = _COMMENT.sub(hold, text).split("\n")
    script = Script()
    for number, block in _blocks(lines):
        try:
            _take(script, number, block, held)
        except GrammarError as error:
            raise GrammarError(f"line {number}: {error}") from None
    return script


def _blocks(lines: list[str]) -> list[tuple[int, str]]:
    """Joins the lines of each option, command and event."""
    blocks: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        begins = text.startswith("--") or _TIME.match(line) or (text.startswith("\x01") and not _goes_on(blocks))
        if begins or not blocks:
            blocks.append((number, text))
        else:
            blocks[-1] = (blocks[-1][0], f"{blocks[-1][1]} {text}")
    return blocks


def _goes_on(blocks: list[tuple[int, str]]) -> bool:
    """True if the last block is an event whose action is still to come."""
    return bool(blocks) and re.fullmatch(rf"[+*~.\d\s]+|\+?({_NUMBER})", blocks[-1][1]) is not None


def _take(script: Script, number: int, block: str, held: list[str]) -> None:
    if block.startswith("--"):
        name, _, value = block[2:].partition("=")
        script.options[name.strip()] = value.strip()
        return
    alone = _HELD.fullmatch(block)
    if alone:
        (script.after if script.events else script.before).append(held[int(alone.group(1))].strip("`"))
        return
    time = _TIME.match(block)
    if time is None:
        raise GrammarError(f"no time before {block[:40]!r}")
    blocking = time.group("ends") is not None
    action = _action(block[time.end() :].strip(), held, blocking)
    script.events.append(Event(number, _when(time), action))


def _when(time: re.Match[str]) -> When:
    if time.group("any"):
        return When("any")
    kind: Literal["absolute", "relative"] = "relative" if time.group("plus") else "absolute"
    end = time.group("until") or time.group("ends")
    return When(kind, _us(time.group("start")), None if end is None else _us(end))


def _us(seconds: str) -> int:
    return round(float(seconds) * 1e6)


def _action(text: str, held: list[str], blocking: bool) -> Packet | Call | Command | Code:
    if text[0] in "<>":
        return _packet(text)
    found = _HELD.fullmatch(text)
    if found:
        kept = held[int(found.group(1))]
        return Command(kept.strip("`")) if kept.startswith("`") else Code(kept[2:-2])
    name, arguments, rest = call_arguments(text)
    result, error = _result(rest)
    return Call(name, arguments, result, error, blocking)


def _result(text: str) -> tuple[Value, str | None]:
    found = re.match(r"^=\s*(-?\w+|\.\.\.)\s*([A-Z]\w*)?\s*(\(.*\))?$", text.strip())
    if found is None:
        raise GrammarError(f"no result in {text!r}")
    word = found.group(1)
    value: Value = int(word, 0) if re.fullmatch(r"-?(\d+|0x[0-9a-fA-F]+)", word) else word
    return value, found.group(2)


_PACKET = re.compile(
    r"^(?P<way>[<>])\s*(?:[\[(](?P<ip>[^\])]*)[\])]\s*)?(?P<flags>[A-Z]*[.\d]*[A-Z]*\.?|-)\s+"
    r"(?P<start>\d+)\s*:\s*(?P<end>\d+)\s*\(\s*(?P<length>\d+)\s*\)"
    r"(?:\s+ack\s+(?P<ack>\d+))?(?:\s+win\s+(?P<win>\d+))?(?:\s+urg\s+\d+)?\s*(?:<(?P<options>[^>]*)>)?$"
)


def _packet(text: str) -> Packet:
    found = _PACKET.match(text)
    if found is None:
        raise GrammarError(f"not a TCP packet: {text!r}")
    options = found.group("options")
    ip = [word.strip() for word in (found.group("ip") or "").split(",") if word.strip()]
    known = [word for word in ip if word not in _ECN and word != "ect01"]
    if known:
        raise GrammarError(f"fields of IP: {', '.join(known)}")
    number = {name: found.group(name) for name in ("ack", "win")}
    return Packet(
        inbound=found.group("way") == "<",
        flags=_flags(found.group("flags")),
        seq=int(found.group("start")),
        length=int(found.group("length")),
        ack=None if number["ack"] is None else int(number["ack"]),
        window=None if number["win"] is None else int(number["win"]),
        ecn=next((_ECN[word] for word in ip if word in _ECN), None),
        ect="ect01" in ip,
        options=() if options is None else _options(options),
    )


def _flags(text: str) -> int:
    flags = 0
    for letter in text.replace("-", ""):
        if letter.isdigit():
            ace = int(letter)
            flags |= (0x100 if ace & 4 else 0) | (0x80 if ace & 2 else 0) | (0x40 if ace & 1 else 0)
        elif letter in _FLAGS:
            flags |= _FLAGS[letter]
        else:
            raise GrammarError(f"no flag {letter!r}")
    return flags


def _options(text: str) -> tuple[Option, ...] | None:
    if text.strip() == "...":
        return None
    options = [_option(part.split()) for part in text.split(",")]
    return tuple(option for option in options if option.kind.lower() not in ("nop", "eol"))


def _option(words: list[str]) -> Option:
    match words:
        case ["mss" | "wscale" as kind, value]:
            return Option(kind, (int(value),))
        case ["TS", "val", val, "ecr", ecr]:
            return Option("TS", (int(val), int(ecr)))
        case ["sack", *blocks]:
            return Option("sack", tuple(int(edge) for block in blocks for edge in block.split(":")))
        case ["ECN", *fields]:
            return Option("ECN", tuple(int(word) if word.isdigit() else word for word in fields))
        case [kind, *rest]:
            return Option(kind, tuple(rest))
    raise GrammarError("an empty option")
