"""Captures whose truth is known: the simulator writes them, and what-if must foretell what it would have measured."""

from __future__ import annotations

import statistics
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from penstock import engine, store
from penstock.experiments.verdict import CARRIED
from penstock.units import number
from penstock.what_if import answer, decision, model
from penstock.what_if.lines import BACK, ON, SPREAD, Line, later, lines
from penstock.what_if.outcome import Range

AS_IT_IS = "as it is"
DISCIPLINES = ("droptail", "fq-codel", "fq-pie", "fq-cobalt", "pink")

SEED = 1
# The true run is repeated with flows that begin so much later, and the same draws of everything else.
SHIFTS_MS = (0, 3, 7, 13, 22)

_INTERFACE, _PACKET, _NAME = 1, 6, 2  # types of blocks in pcapng, and the option with the name of an interface
_NANOSECONDS, _RAW_IP = 0xA1B23C4D, 101
_PRIVATE, _PUBLIC = bytes([192, 168]), bytes([20, 0])
_HOME = "home"
_LAN = {"name": "lan", "a": _HOME, "b": "gateway", "rate": "10Gbit/s", "delay": "1us", "limit": "10000p"}
_LAN |= {"reverse_limit": "10000p", "aqm": "droptail", "reverse_aqm": "droptail"}
_SENDS, _RECEIVES = "link", "lan-reverse"  # the queues whose packets the gateway's interface to the link sees

# Rate, one-way delay, limit of the queue and congestion control of each link.
LINKS: Mapping[str, tuple[int, str, str, str]] = {
    "dsl": (4_000_000, "15ms", "75kB", "cubic-linux"),
    "cable": (20_000_000, "8ms", "256kB", "newreno"),
    "fibre": (50_000_000, "3ms", "400kB", "cubic-linux"),
}
# Largest payload that a machine sends or receives as one, and how close its segments then are.
_JOINED_BYTES, _JOINED_NS = 60_000, 1_000_000
MIXES: Mapping[str, list[dict[str, Any]]] = {
    "one transfer": [{"kind": "bulk", "access_delay": "10ms", **ON, **SPREAD}],
    "four transfers": [
        {"kind": "bulk", "access_delay": f"{5 + 10 * n}ms", "start": f"{2 * n}s", **ON, **SPREAD} for n in range(4)
    ],
    "pages": [
        {"kind": "bulk", "access_delay": "12ms", **ON, **SPREAD},
        {"kind": "web", "load": 0.3, "mean_size": "40kB", "max_size": "1MB", "access_delay": "20ms", **ON},
    ],
    "many round trips": [
        {"kind": "bulk", "access_delay": f"{2 * 1.8**n:.0f}ms", "start": f"{n / 2}s", **ON, **SPREAD} for n in range(8)
    ],
    "both directions": [
        {"kind": "bulk", "count": 2, "access_delay": "8ms", **ON, **SPREAD},
        {"kind": "bulk", "count": 2, "access_delay": "15ms", "start": "5s", "stop": "25s", **BACK, **SPREAD},
        {"kind": "transfer", "size": "2MB", "start": "10s", "access_delay": "25ms", **ON, **SPREAD},
    ],
}
UNRESPONSIVE = {"calls": 0.0, "datagrams": 0.25}  # the share of the link that datagrams of constant rate ask for


@dataclass(frozen=True)
class Case:
    """A capture whose truth is known."""

    link: str
    mix: str
    unresponsive: str

    joined = False

    @property
    def name(self) -> str:
        """The name of the case."""
        return f"{self.link}, {self.mix}, {self.unresponsive}"

    def scenario(self, discipline: str = "", shift_ms: int = 0) -> dict[str, Any]:
        """Returns the true scenario under a discipline, or drop-tail, in which transfers begin so much later."""
        discipline = discipline or "droptail"
        rate, delay, limit, cc = LINKS[self.link]
        share = UNRESPONSIVE[self.unresponsive]
        steady = {"kind": "cbr", "rate": f"{round(share * rate)}bit/s", **ON, **SPREAD}
        link = {"a": "gateway", "b": "provider", "rate": f"{rate}bit/s", "delay": delay, "limit": limit, "name": "link"}
        link |= {"aqm": discipline, "reverse_aqm": "droptail", "reverse_limit": limit}
        return {
            "name": "truth",
            "duration": "30s",
            "topology": {"kind": "graph", "access_rate": "1Gbit/s", "access_delay": "1ms", "links": [link]},
            "tcp": {"cc": cc},
            "flows": [
                *(later(flow, shift_ms) for flow in MIXES[self.mix]),
                steady if share else {"kind": "voip", "count": 2, **ON},
            ],
            "output": {"series": False},
        }


def cases() -> Iterator[Case | Line]:
    """Returns the 66 cases: 30 of which each number is compared, and 36 lines on which advice is hard."""
    for link in LINKS:
        for mix in MIXES:
            for unresponsive in UNRESPONSIVE:
                yield Case(link, mix, unresponsive)
    yield from lines()


def capture(case: Case | Line, place: Path) -> None:
    """Simulates a case as it is, and writes what a capture at the gateway's interface to the link has: no more.

    Packets that the queue dropped are not in it. Packets from the provider come when they have crossed the link, which
    is when they begin to cross a fast one behind the gateway. The gateway's hosts have private addresses, those of the
    provider public ones.
    """
    with TemporaryDirectory(dir=place.parent) as folder:
        raw = Path(folder) / "raw.pcapng"
        engine.run(_with_home(case.scenario()), SEED, raw)
        frames = sorted(_frames(raw.read_bytes()), key=lambda frame: frame[0])
    store.write(place, _pcap(_joined(frames) if case.joined else frames))


def _with_home(tree: dict[str, Any]) -> dict[str, Any]:
    """Returns the scenario with the hosts of the gateway behind a link that is there to see when packets arrive."""
    topology = tree["topology"]
    ends = {"gateway": _HOME}
    flows = [{**flow, **{end: ends.get(flow[end], flow[end]) for end in ("from", "to")}} for flow in tree["flows"]]
    return {**tree, "topology": {**topology, "links": [*topology["links"], _LAN]}, "flows": flows}


def _joined(frames: Sequence[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Joins segments of a connection that follow each other closely, as network cards and the kernel do (TSO, GRO)."""
    found: list[tuple[int, int, bytes]] = []
    last: dict[bytes, int] = {}
    for t, size, header in frames:
        at = last.get(header[12:20] + header[20:24], -1)
        is_tcp, words = header[9] == 6, 20 + 4 * (header[32] >> 4) if header[9] == 6 else 0
        if is_tcp and size > words and at >= 0:
            before, length, first = found[at]
            begin, data = struct.unpack_from(">I", first, 24)[0], length - 20 - 4 * (first[32] >> 4)
            follows = struct.unpack_from(">I", header, 24)[0] == (begin + data) % 2**32
            joins = follows and t - before < _JOINED_NS and data + size - words <= _JOINED_BYTES
            if joins and first[33] == header[33]:
                # IP says in 16 bits how long the frame is.
                length += size - words
                found[at] = (t, length, first[:2] + struct.pack(">H", length) + first[4:])
                continue
        if is_tcp and size > words:
            last[header[12:20] + header[20:24]] = len(found)
        found.append((t, size, header))
    return sorted(found, key=lambda frame: frame[0])


def _frames(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yields time in nanoseconds, length and headers of each packet that passes the gateway's interface."""
    names: list[str] = []
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == _INTERFACE:
            names.append(_name(data[at + 16 : at + length - 4]))
        elif kind == _PACKET:
            interface, high, low, captured, size = struct.unpack_from("<IIIII", data, at + 8)
            after = at + 28 + -(-captured // 4) * 4
            if names[interface] in (_SENDS, _RECEIVES) and data[after + 4 : after + 9] != b"drop_":
                back = names[interface] == _RECEIVES
                yield high << 32 | low, size, _placed(data[at + 28 : at + 28 + captured], back)
        at += length


def _name(options: bytes) -> str:
    """Returns the name of an interface from its options."""
    at = 0
    while at < len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == _NAME:
            return options[at + 4 : at + 4 + length].decode()
        at += 4 + -(-length // 4) * 4
    return ""


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
    """What was foretold for one case, and what is true; goodput in bit/s and delay in ms (p90), by discipline.

    The discipline as it is has the name `AS_IT_IS` in what is true of both directions.
    """

    case: Case | Line
    verdict: str
    discipline: str
    because: tuple[str, ...]
    control: str
    true_goodput: dict[str, Range]
    true_delay: dict[str, Range]
    carried: dict[str, float]  # of both directions, each as a share of its rate
    worse: dict[str, float]  # the longer p90 delay of both directions in ms
    goodput: dict[str, Range]
    delay: dict[str, Range]

    @property
    def advice(self) -> str:
        """What the answer says to do; empty if it cannot tell."""
        return {"leave": AS_IT_IS, "recommended": self.discipline}.get(self.verdict, "")

    @property
    def best(self) -> str:
        """The discipline with the shortest delay that carries enough, of those that no other beats in both."""
        now = self.carried[AS_IT_IS]
        able = [name for name, of in self.carried.items() if CARRIED.near(of, now) and not self._beaten(name)]
        return min(able, key=lambda name: self.worse[name], default=AS_IT_IS)

    def _beaten(self, name: str) -> bool:
        return any(self.carried[n] > self.carried[name] and self.worse[n] < self.worse[name] for n in self.carried)

    @property
    def harms(self) -> bool:
        """True if the advice carries less by 5 % than the link as it is, and its delay is no shorter."""
        if not self.advice:
            return False
        less = not CARRIED.near(self.carried[self.advice], self.carried[AS_IT_IS])
        return less and self.worse[self.advice] >= self.worse[AS_IT_IS]

    @property
    def is_near(self) -> bool:
        """True if the delay of the advice is within a fifth or 3 ms of that of the best."""
        if not self.advice:
            return False
        least = self.worse[self.best]
        return self.worse[self.advice] <= max(decision.SAFE * least, least + decision.SAFE_MS)

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


def judge(case: Case | Line, place: Path) -> Row:
    """Asks about the capture of a case, which is written to `place`, and compares the answer with the truth."""
    capture(case, place)
    seen = model.observe(place)
    found = answer.ask(seen, DISCIPLINES)
    back = seen.uploads is False  # the answer is about the download
    outcomes = {one.discipline: one for one in found.outcomes}
    whole = outcomes if set(DISCIPLINES) <= set(outcomes) else {}
    true = {name: [_true(case, name, shift, back) for shift in SHIFTS_MS] for name in DISCIPLINES}
    now = [_true(case, "", shift, back) for shift in SHIFTS_MS]
    both = {AS_IT_IS: now, **{name: runs for name, runs in true.items() if name != "droptail"}}
    return Row(
        case,
        found.verdict,
        found.discipline,
        tuple(found.because),
        found.control,
        {name: Range.of([one.goodput_bps for one in runs]) for name, runs in true.items()},
        {name: Range.of([one.p90_ms for one in runs]) for name, runs in true.items()},
        {name: statistics.median(one.carried for one in runs) for name, runs in both.items()},
        {name: statistics.median(one.worse_ms for one in runs) for name, runs in both.items()},
        {name: whole[name].goodput_bps for name in DISCIPLINES if whole},
        {name: whole[name].delay_ms["p90"] for name in DISCIPLINES if whole},
    )


@dataclass(frozen=True)
class _Run:
    """What one true run has."""

    goodput_bps: float  # of the asked direction
    p90_ms: float
    carried: float
    worse_ms: float


def _true(case: Case | Line, discipline: str, shift_ms: int, back: bool) -> _Run:
    """Runs the truth with a discipline before the upload, or with `back` before the download."""
    tree = case.scenario("", shift_ms)
    [link] = tree["topology"]["links"]
    if discipline:
        link["reverse_aqm" if back else "aqm"] = discipline
    queues: list[dict[str, Any]] = engine.run(tree, SEED).summary["bottlenecks"]
    rates = (number(link["rate"]), number(link.get("reverse_rate", link["rate"])))
    return _Run(
        queues[back]["goodput_bps"],
        queues[back]["queue_delay_ms"]["p90"],
        sum(queue["goodput_bps"] / rate for queue, rate in zip(queues, rates, strict=True)),
        max(queue["queue_delay_ms"]["p90"] for queue in queues),
    )
