"""Judges every script below a directory: applicable or not, passed or why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from penstock.mistake import MistakeError
from penstock.suites.packetdrill.connection import Mismatch
from penstock.suites.packetdrill.known import KNOWN
from penstock.suites.packetdrill.player import Player
from penstock.suites.packetdrill.rule import unsuited
from penstock.suites.packetdrill.script import parse
from penstock.suites.packetdrill.values import GrammarError

__all__ = ["Judged", "judge", "sentence", "to_json"]


@dataclass(frozen=True)
class Judged:
    """The verdict of one script. `why` is what it needs, or where it differs; `known` is the sentence on a known
    difference."""

    script: str
    verdict: Literal["passed", "differs", "not applicable"]
    why: str = ""
    known: str = ""


def to_json(found: list[Judged]) -> dict[str, Any]:
    """Returns all verdicts and their numbers."""
    return {"scripts": [asdict(one) for one in found], "numbers": _numbers(found)}


def sentence(found: list[Judged]) -> str:
    """Returns what is to be said of all scripts."""
    numbers = _numbers(found)
    played = numbers["passed"] + numbers["differs"]
    share = f" ({100 * numbers['passed'] / played:.0f} %)" if played else ""
    return (
        f"{len(found)} scripts: {played} applicable, of which {numbers['passed']}{share} pass and {numbers['differs']} "
        f"differ; {numbers['not applicable']} are not applicable"
    )


def _numbers(found: list[Judged]) -> dict[str, int]:
    return {
        verdict: sum(one.verdict == verdict for one in found) for verdict in ("passed", "differs", "not applicable")
    }


def judge(directory: Path) -> Iterator[Judged]:
    """Judges the scripts below a directory in the order of their names.

    Raises `MistakeError` if there are none.
    """
    scripts = [directory] if directory.is_file() else sorted(directory.rglob("*.pkt"))
    if not scripts:
        raise MistakeError(f"{directory}: no scripts of packetdrill (*.pkt)")
    for path in scripts:
        name = path.name if path == directory else str(path.relative_to(directory))
        yield _judge(name, path.read_text(encoding="utf-8", errors="replace"))


def _judge(name: str, text: str) -> Judged:
    try:
        script = parse(text)
        needs = unsuited(script)
        if needs:
            return Judged(name, "not applicable", "; ".join(needs))
        Player(script).play()
    except GrammarError as error:
        return Judged(name, "not applicable", str(error))
    except Mismatch as mismatch:
        return Judged(name, "differs", str(mismatch), KNOWN.get(Path(name).stem, ""))
    return Judged(name, "passed")
