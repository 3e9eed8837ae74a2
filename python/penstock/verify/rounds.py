"""`verify cc`: a control beside the windows of another program that was given the same rounds of ACKs.

A reference has the columns `round,t_us,cwnd_start,ssthresh,event,cwnd_end`. Each round acknowledges exactly
`cwnd_start` segments, one at a time and evenly spaced, the last one at the end of the round. There `loss` sets the
window to the threshold of the control, `rto` to one segment. The control is fed by the reference's own `cwnd_start`, so
that it gets the same ACKs whatever its own window is; windows are compared at the end of each round.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock import engine
from penstock.mistake import MistakeError

COLUMNS = ("round", "t_us", "cwnd_start", "ssthresh", "event", "cwnd_end")
_NAME = re.compile(r"(?:tcp_)?(?P<name>[a-z0-9_-]+?)(?:_rtt(?P<ms>\d+))?$")


@dataclass(frozen=True)
class Round:
    """One line of a reference; windows are in segments."""

    number: int
    t_us: int
    cwnd_start: int
    ssthresh: int
    event: str
    cwnd_end: int


@dataclass(frozen=True)
class Part:
    """A round after which the two differ."""

    round: int
    t_us: int
    reference: float
    here: float


@dataclass(frozen=True)
class Comparison:
    """How far a control is from the reference, in segments."""

    rounds: int
    equal: int
    within: int  # rounds whose windows differ by at most the tolerance
    tolerance: float
    thresholds_apart: int  # rounds that begin with another threshold, beyond the tolerance
    first: Part | None
    largest: Part | None

    @property
    def agrees(self) -> bool:
        """True if every window is within the tolerance."""
        return self.within == self.rounds

    def to_json(self) -> dict[str, Any]:
        """All numbers, with the verdict."""
        return {**asdict(self), "agrees": self.agrees}


def name_of(file: Path) -> str | None:
    """The name of a control in the name of a reference: `bic` in `tcp_bic_rtt100.csv`."""
    found = _NAME.match(file.name.split(".")[0])
    return found["name"] if found else None


def read(file: Path) -> list[Round]:
    """Reads a reference; raises `MistakeError` with the line of what is wrong."""
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            table = csv.DictReader(line for line in lines if not line.startswith("#"))
            missing = [column for column in COLUMNS if column not in (table.fieldnames or ())]
            if missing:
                raise MistakeError(f"{file}: line 1: no column {', '.join(missing)}; needed: {','.join(COLUMNS)}")
            rounds = [_round(file, table.line_num, row) for row in table]
    except OSError as error:
        raise MistakeError(f"{file}: {error.strerror}") from None
    if len(rounds) < 2:
        raise MistakeError(
            f"{file}: {len(rounds)} rounds; at least 2 are needed, from whose times the round trip follows"
        )
    return rounds


def _round(file: Path, line: int, row: dict[str, Any]) -> Round:
    try:
        numbers = {column: int(row[column]) for column in COLUMNS if column != "event"}
    except (TypeError, ValueError):
        raise MistakeError(f"{file}: line {line}: round, times and windows must be whole numbers") from None
    event = row["event"] or "-"
    if event not in ("-", "loss", "ecn", "rto"):
        raise MistakeError(f"{file}: line {line}: event is {event!r}; -, loss, ecn and rto are allowed")
    if not 0 < numbers["cwnd_start"] <= 1 << 24:
        raise MistakeError(f"{file}: line {line}: cwnd_start is {numbers['cwnd_start']}; 1 to {1 << 24} are allowed")
    numbers["number"] = numbers.pop("round")
    return Round(event=event, **numbers)


def compare(
    rounds: Sequence[Round], cc: str, settings: Sequence[str], rtt_us: int | None = None, tolerance: float = 1.0
) -> Comparison:
    """Gives the control the rounds and compares.

    Window and threshold of the beginning are those of the first round, unless `settings` has `initial_window` or
    `initial_ssthresh`; the round trip time is the time between the first two.
    """
    keys = {setting.split("=")[0].strip() for setting in settings}
    first = rounds[0]
    begin = [f"initial_window={first.cwnd_start}"] if "initial_window" not in keys else []
    if "initial_ssthresh" not in keys and first.ssthresh < 1 << 20:
        begin.append(f"initial_ssthresh={first.ssthresh}")
    rtt_us = rtt_us or rounds[1].t_us - first.t_us
    played = engine.replay_rounds(cc, rtt_us, [(r.t_us, r.cwnd_start, r.event) for r in rounds], [*begin, *settings])
    parts = [Part(r.number, r.t_us, r.cwnd_end, cwnd) for r, (cwnd, _) in zip(rounds, played, strict=True)]
    apart = [part for part in parts if part.here != part.reference]
    thresholds = zip(rounds[1:], played, strict=False)
    return Comparison(
        rounds=len(parts),
        equal=len(parts) - len(apart),
        within=sum(abs(part.here - part.reference) <= tolerance for part in parts),
        tolerance=tolerance,
        thresholds_apart=sum(abs((here or float("inf")) - r.ssthresh) > tolerance for r, (_, here) in thresholds),
        first=apart[0] if apart else None,
        largest=max(apart, key=lambda part: abs(part.here - part.reference), default=None),
    )
