"""`verify fates`: a discipline beside the fates of packets in another program that was given the same arrivals.

A reference has the columns `id,t_arr_ns,flow,size,ecn_in,fate,t_fate_ns,ecn_out`; others are ignored. It may be
compressed (`.xz`, `.gz`). The arrivals are taken from it, so that no other file is needed.
"""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from penstock import engine, store
from penstock.mistake import MistakeError

COLUMNS = ("id", "t_arr_ns", "flow", "size", "ecn_in", "fate", "t_fate_ns", "ecn_out")
# The kernel's words for what is told here in others. `drop_deq_limit` makes room for an arrival.
_WORDS = {
    "drop_enq_aqm": "drop_early",
    "drop_enq_limit": "drop_overflow",
    "drop_deq_limit": "drop_overflow",
    "drop_deq_aqm": "drop_dequeue",
}
_FATES = {"sent", *_WORDS.values()}


@dataclass(frozen=True)
class Fate:
    """What became of a packet."""

    fate: str
    t_ns: int
    ecn: int


@dataclass(frozen=True)
class Packet:
    """One packet of a reference."""

    number: int
    t_ns: int
    flow: str
    size: str
    ecn: str
    fate: Fate


@dataclass(frozen=True)
class Part:
    """A packet that the reference and this program did not treat alike, with its fate in each of them."""

    id: int
    t_arr_ns: int
    reference: Fate
    here: Fate


@dataclass
class Comparison:
    """How far a discipline is from the reference."""

    packets: int
    apart: int = 0  # packets whose fate, time or ECN field differs
    fates_apart: int = 0
    times_apart: int = 0  # of packets with the same fate
    ecn_apart: int = 0  # of packets that are sent in both
    largest_ns: int = 0  # the largest difference of times of packets with the same fate
    first: Part | None = None
    largest: Part | None = None
    counts: dict[str, dict[str, int]] = field(default_factory=dict)  # packets of each fate: reference, here
    pairs: dict[str, int] = field(default_factory=dict)  # packets by both fates, "reference -> here"

    @property
    def agrees(self) -> bool:
        """True if every packet has the same fate at the same time, and the same ECN field."""
        return self.apart == 0

    def to_json(self) -> dict[str, Any]:
        """All numbers, with the verdict."""
        return {**asdict(self), "agrees": self.agrees}


def read(file: Path) -> list[Packet]:
    """Reads a reference; raises `MistakeError` with the line of what is wrong."""
    try:
        with _opened(file) as lines:
            table = csv.DictReader(line for line in lines if not line.startswith("#"))
            missing = [column for column in COLUMNS if column not in (table.fieldnames or ())]
            if missing:
                raise MistakeError(f"{file}: line 1: no column {', '.join(missing)}; needed: {','.join(COLUMNS)}")
            return list(_packets(file, table))
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise MistakeError(f"{file}: {getattr(error, 'strerror', None) or error}") from None


def _opened(file: Path) -> TextIO:
    if file.suffix == ".xz":
        return lzma.open(file, "rt", encoding="utf-8", newline="")
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8", newline="")
    return file.open(encoding="utf-8", newline="")


def _packets(file: Path, table: csv.DictReader[str]) -> Iterator[Packet]:
    for row in table:
        fate = _WORDS.get(row["fate"], row["fate"])
        if fate not in _FATES:
            allowed = ", ".join(sorted(_FATES | _WORDS.keys()))
            raise MistakeError(f"{file}: line {table.line_num}: fate is {row['fate']!r}; {allowed} are allowed")
        try:
            told = Fate(fate, int(row["t_fate_ns"]), int(row["ecn_out"]))
            yield Packet(int(row["id"]), int(row["t_arr_ns"]), row["flow"], row["size"], row["ecn_in"], told)
        except (TypeError, ValueError):
            raise MistakeError(f"{file}: line {table.line_num}: times, ids and ECN must be whole numbers") from None


def replayed(packets: Sequence[Packet], **replay: Any) -> list[Fate]:
    """Returns the fates of the same arrivals in the discipline; `replay` has the arguments of `engine.replay`."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory) / "arrivals.csv"
        rows = (f"{packet.t_ns},{packet.flow},{packet.size},{packet.ecn}\n" for packet in packets)
        store.write(trace, "t_ns,flow,size,ecn\n" + "".join(rows))
        engine.replay(trace, csv=out, **replay)
    lines = csv.DictReader(io.StringIO(out.getvalue().decode()))
    return [Fate(row["fate"], int(row["t_fate_ns"]), int(row["ecn_out"])) for row in lines]


def compare(packets: Sequence[Packet], here: Sequence[Fate], tolerance_ns: int = 0) -> Comparison:
    """Compares packet by packet; times may differ by `tolerance_ns`."""
    found = Comparison(len(packets))
    pairs: Counter[tuple[str, str]] = Counter()
    for packet, ours in zip(packets, here, strict=True):
        _one(found, packet, ours, tolerance_ns)
        pairs[packet.fate.fate, ours.fate] += 1
    for (theirs, ours_word), count in sorted(pairs.items()):
        found.pairs[f"{theirs} -> {ours_word}"] = count
        found.counts.setdefault(theirs, {"reference": 0, "here": 0})["reference"] += count
        found.counts.setdefault(ours_word, {"reference": 0, "here": 0})["here"] += count
    return found


def _one(found: Comparison, packet: Packet, ours: Fate, tolerance_ns: int) -> None:
    theirs = packet.fate
    part = Part(packet.number, packet.t_ns, theirs, ours)
    same_fate = theirs.fate == ours.fate
    off_ns = abs(theirs.t_ns - ours.t_ns) if same_fate else 0
    ecn = same_fate and ours.fate == "sent" and theirs.ecn != ours.ecn
    found.fates_apart += not same_fate
    found.times_apart += off_ns > tolerance_ns
    found.ecn_apart += ecn
    if off_ns > max(found.largest_ns, tolerance_ns):
        found.largest_ns, found.largest = off_ns, part
    if not same_fate or off_ns > tolerance_ns or ecn:
        found.apart += 1
        found.first = found.first or part
