"""Captures whose truth is known: the simulator writes them, and what-if must foretell what it would have measured."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from penstock import engine, store
from penstock.what_if import answer, model
from penstock.what_if.outcome import Range

DISCIPLINES = ("droptail", "fq-codel", "fq-pie", "fq-cobalt", "pink")

SEED = 1
# The true run is repeated with flows that begin so much later, and the same draws of everything else.
SHIFTS_MS = (0, 3, 7, 13, 22)

_PACKET = 6  # type of the block of a packet in pcapng
_NANOSECONDS, _RAW_IP = 0xA1B23C4D, 101
_PRIVATE, _PUBLIC = bytes([192, 168]), bytes([20, 0])

# Rate, one-way delay, limit of the queue and congestion control of each link.
LINKS: Mapping[str, tuple[int, str, str, str]] = {
    "dsl": (4_000_000, "15ms", "75kB", "cubic-linux"),
    "cable": (20_000_000, "8ms", "256kB", "newreno"),
    "fibre": (50_000_000, "3ms", "400kB", "cubic-linux"),
}
_ON = {"from": "gateway", "to": "provider"}
_BACK = {"from": "provider", "to": "gateway"}
_SPREAD = {"start_spread": "500ms"}
MIXES: Mapping[str, list[dict[str, Any]]] = {
    "one transfer": [{"kind": "bulk", "access_delay": "10ms", **_ON, **_SPREAD}],
    "four transfers": [
        {"kind": "bulk", "access_delay": f"{5 + 10 * n}ms", "start": f"{2 * n}s", **_ON, **_SPREAD} for n in range(4)
    ],
    "pages": [
        {"kind": "bulk", "access_delay": "12ms", **_ON, **_SPREAD},
        {"kind": "web", "load": 0.3, "mean_size": "40kB", "max_size": "1MB", "access_delay": "20ms", **_ON},
    ],
    "many round trips": [
        {"kind": "bulk", "access_delay": f"{2 * 1.8**n:.0f}ms", "start": f"{n / 2}s", **_ON, **_SPREAD}
        for n in range(8)
    ],
    "both directions": [
        {"kind": "bulk", "count": 2, "access_delay": "8ms", **_ON, **_SPREAD},
        {"kind": "bulk", "count": 2, "access_delay": "15ms", "start": "5s", "stop": "25s", **_BACK, **_SPREAD},
        {"kind": "transfer", "size": "2MB", "start": "10s", "access_delay": "25ms", **_ON, **_SPREAD},
    ],
}
UNRESPONSIVE = {"calls": 0.0, "datagrams": 0.25}  # the share of the link that datagrams of constant rate ask for


@dataclass(frozen=True)
class Case:
    """A capture whose truth is known."""

    link: str
    mix: str
    unresponsive: str

    @property
    def name(self) -> str:
        """The name of the case."""
        return f"{self.link}, {self.mix}, {self.unresponsive}"

    def scenario(self, discipline: str = "droptail", shift_ms: int = 0) -> dict[str, Any]:
        """Returns the true scenario under a discipline, in which transfers begin so much later."""
        rate, delay, limit, cc = LINKS[self.link]
        share = UNRESPONSIVE[self.unresponsive]
        steady = {"kind": "cbr", "rate": f"{round(share * rate)}bit/s", **_ON, **_SPREAD}
        link = {"a": "gateway", "b": "provider", "rate": f"{rate}bit/s", "delay": delay, "limit": limit, "name": "link"}
        link |= {"aqm": discipline, "reverse_aqm": "droptail", "reverse_limit": limit}
        return {
            "name": "truth",
            "duration": "30s",
            "topology": {"kind": "graph", "access_rate": "1Gbit/s", "access_delay": "1ms", "links": [link]},
            "tcp": {"cc": cc},
            "flows": [
                *(_later(flow, shift_ms) for flow in MIXES[self.mix]),
                steady if share else {"kind": "voip", "count": 2, **_ON},
            ],
            "output": {"series": False},
        }


def _later(flow: dict[str, Any], shift_ms: int) -> dict[str, Any]:
    if flow["kind"] not in ("bulk", "transfer"):
        return flow
    return flow | {"start": f"{1000 * float(str(flow.get('start', '0s')).removesuffix('s')) + shift_ms:g}ms"}


def cases() -> Iterator[Case]:
    """Returns the 30 cases."""
    for link in LINKS:
        for mix in MIXES:
            for unresponsive in UNRESPONSIVE:
                yield Case(link, mix, unresponsive)


def capture(case: Case, place: Path) -> None:
    """Simulates a case under drop-tail, and writes what a capture at the gateway's interface to the link has: no more.

    Packets that the queue dropped are not in it. Packets from the provider come when they have crossed the link. The
    gateway's hosts have private addresses, those of the provider public ones.
    """
    with TemporaryDirectory(dir=place.parent) as folder:
        raw = Path(folder) / "raw.pcapng"
        engine.run(case.scenario(), SEED, raw)
        frames = sorted(_frames(raw.read_bytes(), case), key=lambda frame: frame[0])
    store.write(place, _pcap(frames))


def _frames(data: bytes, case: Case) -> Iterator[tuple[int, int, bytes]]:
    """Yields time in nanoseconds, length and headers of each packet that passes the gateway's interface."""
    rate, delay_ns = LINKS[case.link][0], int(LINKS[case.link][1].removesuffix("ms")) * 10**6
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == _PACKET:
            interface, high, low, captured, size = struct.unpack_from("<IIIII", data, at + 8)
            after = at + 28 + -(-captured // 4) * 4
            if data[after + 4 : after + 9] != b"drop_":
                back = interface == 1
                t = (high << 32 | low) + (delay_ns + size * 8 * 10**9 // rate if back else 0)
                yield t, size, _placed(data[at + 28 : at + 28 + captured], back)
        at += length


def _placed(header: bytes, back: bool) -> bytes:
    """Returns the headers with the addresses of the two sides."""
    source, destination = (_PUBLIC, _PRIVATE) if back else (_PRIVATE, _PUBLIC)
    return header[:12] + source + header[14:16] + destination + header[18:]


def _pcap(frames: Sequence[tuple[int, int, bytes]]) -> bytes:
    parts = [struct.pack("<IHHiIII", _NANOSECONDS, 2, 4, 0, 0, 65_535, _RAW_IP)]
    for t, size, header in frames:
        parts += [struct.pack("<IIII", t // 10**9, t % 10**9, len(header), size), header]
    return b"".join(parts)


@dataclass(frozen=True)
class Row:
    """What was foretold for one case, and what is true; goodput in bit/s and delay in ms (p90), by discipline."""

    case: Case
    verdict: str
    because: tuple[str, ...]
    control: str
    true_goodput: dict[str, Range]
    true_delay: dict[str, Range]
    goodput: dict[str, Range]
    delay: dict[str, Range]

    @property
    def wrong(self) -> list[tuple[str, str]]:
        """The pairs of disciplines whose true ranges do not overlap, and which are foretold in the other order."""
        if not self.delay:
            return [("", "")]
        pairs = [(a, b) for a in DISCIPLINES for b in DISCIPLINES if self.true_delay[a].high < self.true_delay[b].low]
        return [(a, b) for a, b in pairs if self.delay[a].median >= self.delay[b].median]

    def errors(self, what: str) -> list[float]:
        """Returns the errors of the forecasts of `goodput` or `delay`, each as a share of what is true."""
        mine, true = (self.goodput, self.true_goodput) if what == "goodput" else (self.delay, self.true_delay)
        return [mine[name].median / max(true[name].median, 1e-9) - 1 for name in mine]


def judge(case: Case, place: Path) -> Row:
    """Asks about the capture of a case, which is written to `place`, and compares the answer with the truth."""
    capture(case, place)
    found = answer.ask(model.observe(place), DISCIPLINES)
    outcomes = {one.discipline: one for one in found.outcomes}
    whole = outcomes if len(outcomes) == len(DISCIPLINES) else {}
    true = {name: [_true(case, name, shift) for shift in SHIFTS_MS] for name in DISCIPLINES}
    return Row(
        case,
        found.verdict,
        tuple(found.because),
        found.control,
        {name: Range.of([one["goodput_bps"] for one in runs]) for name, runs in true.items()},
        {name: Range.of([one["queue_delay_ms"]["p90"] for one in runs]) for name, runs in true.items()},
        {name: one.goodput_bps for name, one in whole.items()},
        {name: one.delay_ms["p90"] for name, one in whole.items()},
    )


def _true(case: Case, discipline: str, shift_ms: int) -> dict[str, Any]:
    found: dict[str, Any] = engine.run(case.scenario(discipline, shift_ms), SEED).summary["bottlenecks"][0]
    return found
