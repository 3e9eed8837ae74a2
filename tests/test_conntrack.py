"""A readable twin of the connection table of crates/conntrack, and test vectors made with it.

`python tests/test_conntrack.py` writes the vectors. Each is a sequence of packets with what the table answers to each.
"""

from __future__ import annotations

import ipaddress
import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parent.parent / "crates" / "conntrack" / "tests" / "vectors.json"
WAYS = 8
KEYS = {"connections": (1, 2), "hosts": (3, 4)}
CONFIG: dict[str, Any] = {
    "entries": 16, "half_open": 16, "shown": 8, "hosts": 16, "others": 100, "quota": 12,
    "idle_ms": 60_000, "opening_ms": 10_000, "subscribers": [],
}  # fmt: skip
GAUGES = (
    "entries", "entries_most", "half_open", "half_open_most", "promoted", "promoted_unseen", "evicted_quota",
    "evicted_full", "replaced", "closed_fin", "closed_rst", "expired", "overwritten", "abandoned", "implausible",
)  # fmt: skip
MASK32, MASK64 = 2**32 - 1, 2**64 - 1


def siphash(key: tuple[int, int], data: bytes) -> int:
    """SipHash-2-4."""

    def rotl(x: int, b: int) -> int:
        return (x << b | x >> (64 - b)) & MASK64

    v0, v1 = key[0] ^ 0x736F6D6570736575, key[1] ^ 0x646F72616E646F6D
    v2, v3 = key[0] ^ 0x6C7967656E657261, key[1] ^ 0x7465646279746573

    def rounds(n: int) -> None:
        nonlocal v0, v1, v2, v3
        for _ in range(n):
            v0, v2 = (v0 + v1) & MASK64, (v2 + v3) & MASK64
            v1, v3 = rotl(v1, 13) ^ v0, rotl(v3, 16) ^ v2
            v0 = rotl(v0, 32)
            v2, v0 = (v2 + v1) & MASK64, (v0 + v3) & MASK64
            v1, v3 = rotl(v1, 17) ^ v2, rotl(v3, 21) ^ v0
            v2 = rotl(v2, 32)

    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 0xFF])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v3 ^= word
        rounds(2)
        v0 ^= word
    v2 ^= 0xFF
    rounds(4)
    return v0 ^ v1 ^ v2 ^ v3


def after(a: int, b: int) -> bool:
    """Whether `a` is after `b` in sequence space."""
    return 0 < (a - b) & MASK32 < 2**31


def signed(a: int) -> int:
    """A difference of sequence numbers as a signed number."""
    return ((a & MASK32) ^ 2**31) - 2**31


def farther(a: int, b: int) -> int:
    """The one of two sequence numbers that is farther on."""
    return b if after(b, a) else a


@dataclass
class Packet:
    """A packet of a vector. An end is (address, port); `inside` is 0 if the subscriber sends it, 1 otherwise."""

    ms: int
    source: tuple[str, int]
    to: tuple[str, int]
    flags: str  # of TCP: some of "SAFR"; "udp" for a datagram
    seq: int = 0
    ack: int = 0
    len: int = 0
    window: int = 65535
    scale: int | None = None
    mss: int | None = None
    inside: int = 0

    def row(self) -> list[Any]:
        """The packet as a row of the file."""
        ends = [f"{address} {port}" for address, port in (self.source, self.to)]
        rest = [self.flags, self.seq, self.ack, self.len, self.window, self.scale, self.mss, self.inside]
        return [self.ms, *ends, *rest]

    def ends(self) -> list[bytes]:
        """Both ends as 18 bytes: the address from the left, and the port."""
        return [
            ipaddress.ip_address(address).packed.ljust(16, b"\0") + port.to_bytes(2, "big")
            for address, port in (self.source, self.to)
        ]

    def key(self) -> bytes:
        """The key of the connection, and on which side its ends are."""
        version = ipaddress.ip_address(self.source[0]).version
        sides = 0x80 if self.side() == self.inside else 0
        return b"".join(sorted(self.ends())) + bytes([17 if self.flags == "udp" else 6, version | sides])

    def side(self) -> int:
        """0 if the packet comes from the lower end."""
        source, to = self.ends()
        return 0 if source <= to else 1

    def end(self) -> int:
        """The sequence number after the segment."""
        return (self.seq + self.len + ("F" in self.flags)) & MASK32

    def host(self) -> tuple[int, int]:
        """The version and the first (up to) 64 bits of the subscriber's address."""
        address = ipaddress.ip_address((self.source, self.to)[self.inside][0])
        return address.version, int(address) if address.version == 4 else int(address) >> 64


@dataclass
class Line:
    """What is known of a connection. Lists are for opener and other (half-open), or for low and high end (entries)."""

    hash: int
    used: int = 0
    flow: int | None = None
    # Half-open:
    stage: int = 0
    opener: int = 0
    isn: list[int] = field(default_factory=lambda: [0, 0])
    end: list[int] = field(default_factory=lambda: [0, 0])
    scale: list[int | None] = field(default_factory=lambda: [None, None])
    mss: list[int | None] = field(default_factory=lambda: [None, None])
    data: list[bool] = field(default_factory=lambda: [False, False])
    fins: list[bool] = field(default_factory=lambda: [False, False])
    since: int = 0
    repeated: bool = False
    times: list[int | None] = field(default_factory=lambda: [None, None])
    # Entries:
    owner: int = 0
    acked: list[int] = field(default_factory=lambda: [0, 0])
    edge: list[int] = field(default_factory=lambda: [0, 0])
    fin_end: list[int] = field(default_factory=lambda: [0, 0])
    reopens: bool = False

    def greet(self, role: int, packet: Packet) -> None:
        """Notes what a SYN says."""
        self.isn[role], self.end[role] = packet.seq, (packet.end() + 1) & MASK32
        self.scale[role], self.mss[role], self.data[role] = packet.scale, packet.mss or None, packet.len > 0


class Sets:
    """Lines in sets of eight; a hash selects two of them."""

    def __init__(self, lines: int) -> None:
        sets = 1
        while sets * WAYS < lines:
            sets *= 2
        self.sets: list[list[Line | None]] = [[None] * WAYS for _ in range(sets)]
        self.hand = 0

    def of(self, hash_: int) -> list[int]:
        """The sets of a hash."""
        first, second = hash_ % len(self.sets), (hash_ >> 24) % len(self.sets)
        return [first] if first == second else [first, second]

    def lines(self, sets: list[int]) -> list[Line]:
        """The lines of these sets, in order."""
        return [line for at in sets for line in self.sets[at] if line is not None]

    def find(self, hash_: int) -> Line | None:
        """The line with this hash."""
        return next((line for line in self.lines(self.of(hash_)) if line.hash == hash_), None)

    def put(self, line: Line) -> bool:
        """Puts a line into the emptier of its two sets; false if both are full."""
        best = max(self.of(line.hash), key=lambda at: self.sets[at].count(None))
        if None not in self.sets[best]:
            return False
        self.sets[best][self.sets[best].index(None)] = line
        return True

    def take(self, line: Line) -> None:
        """Removes a line."""
        for lines in self.sets:
            for way, other in enumerate(lines):
                if other is line:
                    lines[way] = None

    def count(self) -> int:
        """The number of lines in use."""
        return len(self.lines(list(range(len(self.sets)))))


class Table:
    """The connection table."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.entries, self.halves, self.hosts = (Sets(config[k]) for k in ("entries", "half_open", "hosts"))
        self.lines = len(self.entries.sets) * WAYS
        self.free: list[int] = []
        self.next = 0
        self.shown = 0
        self.turn = 0
        self.gauges = dict.fromkeys(GAUGES, 0)
        self.held: dict[int, int] = {}

    def ticks(self, ms: int) -> int:
        """A time or a span in ticks of 2^20 ns."""
        return ms * 1_000_000 >> 20

    # Indices and subscribers

    def index(self) -> tuple[int, bool]:
        """Takes an index; tells whether it was in use before."""
        if self.free:
            return self.free.pop(), True
        self.next += 1
        return self.next - 1, False

    def subscriber(self, host: tuple[int, int], now: int) -> int:
        """The number of the subscriber of a host."""
        version, bits = host
        hash_ = siphash(KEYS["hosts"], bytes([version]) + bits.to_bytes(8, "big"))
        line = self.hosts.find(hash_)
        if line is None:
            line = Line(hash_, flow=self.named(host))
            if not self.hosts.put(line):
                rivals = self.hosts.lines(self.hosts.of(hash_))
                idle = [line for line in rivals if line.flow or not self.held.get(self.place(line), 0)]
                if not idle:
                    return line.flow or 0
                self.hosts.take(max(idle, key=lambda other: now - other.used))
                self.hosts.put(line)
        line.used = now
        return line.flow or self.place(line)

    def named(self, host: tuple[int, int]) -> int:
        """The number of the named subscriber with the longest prefix that has the host; 0 if there is none."""
        version, bits = host
        address = ipaddress.ip_address(bits) if version == 4 else ipaddress.IPv6Address(bits << 64)
        found = [
            (network.prefixlen, number)
            for number, prefixes in enumerate((prefixes for _, prefixes in self.config["subscribers"]), 1)
            for network in map(ipaddress.ip_network, prefixes)
            if network.version == version and address in network
        ]
        return max(found)[1] if found else 0

    def place(self, line: Line) -> int:
        """The number of a host without a name: by its place."""
        at = next(i for i, lines in enumerate(self.hosts.sets) if any(other is line for other in lines))
        way = next(i for i, other in enumerate(self.hosts.sets[at]) if other is line)
        return 1 + len(self.config["subscribers"]) + at * WAYS + way

    # Freeing

    def limit(self, line: Line) -> int:
        """How long a half-open connection may be silent."""
        return self.ticks(self.config["idle_ms" if line.stage == 2 else "opening_ms"])

    def drop_entry(self, line: Line, why: str) -> None:
        """Frees an entry."""
        self.entries.take(line)
        assert line.flow is not None
        self.free.append(line.flow)
        self.held[line.owner] -= 1
        self.gauges[why] += 1

    def drop_half(self, line: Line, why: str) -> None:
        """Frees a half-open connection."""
        self.halves.take(line)
        if line.flow is not None:
            self.free.append(line.flow)
            self.shown -= 1
        self.gauges[why] += 1

    def sweep(self, now: int) -> None:
        """Looks at a set of each kind once in eight packets: frees an idle line, or moves on."""
        self.turn = (self.turn + 1) % 8
        if self.turn == 0:
            idle = self.ticks(self.config["idle_ms"])
            old = [line for line in self.entries.lines([self.entries.hand]) if now - line.used > idle]
            if old:
                self.drop_entry(old[0], "expired")
            else:
                self.entries.hand = (self.entries.hand + 1) % len(self.entries.sets)
        if self.turn != 4:
            return
        old = [line for line in self.halves.lines([self.halves.hand]) if now - line.used > self.limit(line)]
        if old:
            self.drop_half(old[0], "abandoned")
        else:
            self.halves.hand = (self.halves.hand + 1) % len(self.halves.sets)

    def entry(self, hash_: int, now: int) -> Line | None:
        """The live entry with this hash."""
        line = self.entries.find(hash_)
        if line is not None and now - line.used > self.ticks(self.config["idle_ms"]):
            self.drop_entry(line, "expired")
            return None
        return line

    def half(self, hash_: int, now: int) -> Line | None:
        """The live half-open connection with this hash."""
        line = self.halves.find(hash_)
        if line is not None and now - line.used > self.limit(line):
            self.drop_half(line, "abandoned")
            return None
        return line

    # Answers: state, index, whether it is shown, whether the index was that of another, owner, begin of an entry

    def see(self, packet: Packet) -> list[Any]:
        """Takes a packet."""
        now = self.ticks(packet.ms)
        self.sweep(now)
        hash_ = siphash(KEYS["connections"], packet.key())
        answer = self.answer(packet, hash_, now) or self.other(hash_)
        self.gauges["entries"], self.gauges["half_open"] = self.entries.count(), self.halves.count()
        for name in ("entries", "half_open"):
            self.gauges[name + "_most"] = max(self.gauges[name + "_most"], self.gauges[name])
        return answer

    def other(self, hash_: int) -> list[Any]:
        """The answer for what is not shown."""
        first = self.lines + self.config["shown"]
        return ["other", first + ((hash_ & MASK32) * self.config["others"] >> 32), False, False, None, None]

    def half_answer(self, line: Line, fresh: bool = False) -> list[Any]:
        """The answer for a half-open connection: it may have no index."""
        if line.flow is None:
            return ["half", self.other(line.hash)[1], False, False, None, None]
        return ["half", line.flow, True, fresh, None, None]

    def answer(self, packet: Packet, hash_: int, now: int) -> list[Any] | None:
        """The answer, or none for what has no connection."""
        if packet.flags == "udp":
            return None
        entry = self.entry(hash_, now)
        if "S" in packet.flags and "A" not in packet.flags and "R" not in packet.flags:
            if entry is not None:
                entry.reopens = True
            return self.on_syn(packet, hash_, now)
        if entry is None or entry.reopens:
            half = self.half(hash_, now)
            if half is not None:
                answer = self.on_half(packet, half, now, entry is not None)
                if answer is not None:
                    return answer
        return None if entry is None else self.on_entry(packet, entry, now)

    def on_syn(self, packet: Packet, hash_: int, now: int) -> list[Any]:
        """A SYN: of a new connection, or again of a known one."""
        line = self.half(hash_, now)
        if line is None:
            line = Line(hash_, now, opener=packet.side(), since=packet.ms)
            line.greet(0, packet)
            if not self.halves.put(line):
                rivals = self.halves.lines(self.halves.of(hash_))
                self.drop_half(max(rivals, key=lambda other: now - other.used), "overwritten")
                self.halves.put(line)
            used = False
            if self.shown < self.config["shown"]:
                line.flow, used = self.index()
                self.shown += 1
            return self.half_answer(line, used)
        role = packet.side() ^ line.opener
        line.used = now
        if role == 0 and packet.seq == line.isn[0]:
            if line.stage == 0:
                line.since, line.repeated = packet.ms, True
        elif role == 1 and line.stage == 0:
            line.greet(1, packet)
            line.stage, line.repeated = 1, True
        elif not (role == 1 and line.stage == 1 and packet.seq == line.isn[1]):
            again = Line(hash_, now, line.flow, opener=packet.side(), since=packet.ms)
            again.greet(0, packet)
            line.__dict__.update(again.__dict__)
            return self.half_answer(line, True)
        return self.half_answer(line)

    def on_half(self, packet: Packet, line: Line, now: int, is_entry: bool) -> list[Any] | None:
        """A segment with the key of a half-open connection."""
        answer = self.half_answer(line)
        answer[2] &= packet.len == 0
        step = self.step(packet, line)
        if step == "ignored":
            if is_entry:
                return None
            self.gauges["implausible"] += 1
        elif step == "noted":
            line.used = now
        elif step == "acknowledged":
            return self.promote(packet, line, now)
        else:
            self.drop_half(line, step)
        return answer

    def step(self, packet: Packet, line: Line) -> str:  # noqa: C901
        """What a segment means for a half-open connection."""
        role = packet.side() ^ line.opener
        known = [True, line.stage > 0]

        def sent(role: int, ack: int) -> bool:
            return known[role] and after(ack, line.isn[role]) and not after(ack, line.end[role])

        if "R" in packet.flags:
            answers = role == 1 and "A" in packet.flags and sent(0, packet.ack)
            return "closed_rst" if answers or (known[role] and packet.seq == line.end[role]) else "ignored"
        if "A" not in packet.flags or not sent(1 - role, packet.ack):
            return "ignored"
        if "S" in packet.flags:
            if role == 0 or line.stage == 2:
                return "ignored"
            again = line.stage == 1 and line.isn[1] == packet.seq
            if line.stage == 0 and not line.repeated:
                line.times[0] = packet.ms - line.since
            if not again:
                line.greet(1, packet)
            line.stage, line.since, line.repeated = 1, packet.ms, again
            return "noted"
        if not known[role] or (packet.seq - line.isn[role] - 1) & MASK32 >= 2**30:
            return "ignored"
        if role == 0 and line.stage == 1:
            line.stage, line.times[1] = 2, None if line.repeated else packet.ms - line.since
        line.end[role] = farther(line.end[role], packet.end())
        line.data[role] |= packet.len > 0
        line.fins[role] |= "F" in packet.flags
        if line.stage == 2 and line.data[1 - role] and after(packet.ack, (line.isn[1 - role] + 1) & MASK32):
            return "acknowledged"
        return "closed_fin" if all(line.fins) else "noted"

    def promote(self, packet: Packet, half: Line, now: int) -> list[Any]:
        """Data were acknowledged: the connection becomes an entry."""
        self.halves.take(half)
        old = self.entries.find(half.hash)
        if old is not None:
            self.drop_entry(old, "replaced")
        entry = Line(half.hash, now, half.flow, owner=self.subscriber(packet.host(), now), stage=2)
        self.make_room(entry, now)
        fresh = False
        ends = [[half.isn[r], half.end[r], half.scale[r], half.mss[r]] for r in (0, 1)]
        opening = [packet.side() == half.opener, *ends, *half.times]
        if half.flow is None:
            entry.flow, fresh = self.index()
            self.gauges["promoted_unseen"] += 1
        else:
            self.shown -= 1
        scaled = None not in half.scale
        for role, side in ((0, half.opener), (1, 1 - half.opener)):
            first, scale = (half.isn[role] + 1) & MASK32, half.scale[role]
            entry.acked[side], entry.end[side] = first, half.end[role]
            entry.edge[side] = farther(half.end[role], (first + 65535) & MASK32)
            entry.scale[side] = min(scale or 0, 14) if scaled else 0
            entry.fins[side], entry.fin_end[side] = half.fins[role], half.end[role]
        self.note(packet, entry)
        self.entries.put(entry)
        self.held[entry.owner] = self.held.get(entry.owner, 0) + 1
        self.gauges["promoted"] += 1
        return ["entry", entry.flow, True, fresh, entry.owner, opening]

    def make_room(self, entry: Line, now: int) -> None:
        """Frees a line for an entry: an idle one, its subscriber's own at the quota, else the least valuable."""
        for line in self.entries.lines(self.entries.of(entry.hash)):
            if now - line.used > self.ticks(self.config["idle_ms"]):
                self.drop_entry(line, "expired")
        first, sets = self.entries.of(entry.hash)[0], len(self.entries.sets)
        if self.held.get(entry.owner, 0) >= self.config["quota"]:
            for at in range(first, first + sets):
                own = [line for line in self.entries.lines([at % sets]) if line.owner == entry.owner]
                if own:
                    self.drop_entry(max(own, key=lambda line: now - line.used), "evicted_quota")
                    break
        rivals = self.entries.lines(self.entries.of(entry.hash))
        if len(rivals) == WAYS * len(self.entries.of(entry.hash)):
            least = max(rivals, key=lambda line: (self.held[line.owner], now - line.used))
            self.drop_entry(least, "evicted_full")

    def on_entry(self, packet: Packet, line: Line, now: int) -> list[Any]:
        """A segment with the key of an entry."""
        side = packet.side()
        answer = ["entry", line.flow, True, False, line.owner, None]
        if "R" in packet.flags:
            if packet.seq in (line.acked[side], line.end[side]):
                self.drop_entry(line, "closed_rst")
            else:
                self.gauges["implausible"] += 1
        elif "S" in packet.flags or "A" not in packet.flags or not self.credible(packet, line):
            self.gauges["implausible"] += 1
        else:
            self.note(packet, line)
            line.used = now
            if all(line.fins[s] and not after(line.fin_end[s], line.acked[s]) for s in (0, 1)):
                self.drop_entry(line, "closed_fin")
        return answer

    def credible(self, packet: Packet, line: Line) -> bool:
        """Whether a segment lies in its window and acknowledges no more than may have been sent."""
        side, other = packet.side(), 1 - packet.side()
        return (
            signed(packet.seq - line.acked[side]) >= -65536
            and not after(packet.end(), line.edge[side] + 1)
            and signed(packet.ack - line.acked[other]) >= -65536
            and not after(packet.ack, line.edge[other] + 1)
        )

    def note(self, packet: Packet, line: Line) -> None:
        """Moves the numbers of an entry on."""
        side, other = packet.side(), 1 - packet.side()
        line.end[side] = farther(line.end[side], packet.end())
        line.acked[other] = farther(line.acked[other], packet.ack)
        line.end[other] = farther(line.end[other], packet.ack)
        right = (packet.ack + (packet.window << (line.scale[side] or 0))) & MASK32
        line.edge[other] = farther(line.edge[other], right)
        if "F" in packet.flags:
            line.fins[side], line.fin_end[side] = True, packet.end()


# Vectors by hand. Each has packets, and what must be the states of their connections by the rules alone.

A, B, C = ("10.0.0.1", 1000), ("192.0.2.9", 80), ("10.0.0.2", 1000)


def _opening(ms: int, client: tuple[str, int] = A, server: tuple[str, int] = B, **more: Any) -> list[Packet]:
    """SYN, SYN-ACK, ACK, 100 bytes of the client and their acknowledgment, 10 ms apart, the client inside."""
    isn = more.get("isn", 1000)
    return [
        Packet(ms, client, server, "S", isn, scale=7, mss=1460, inside=0),
        Packet(ms + 10, server, client, "SA", 5000, isn + 1, scale=3, mss=1400, inside=1),
        Packet(ms + 20, client, server, "A", isn + 1, 5001, window=500, inside=0),
        Packet(ms + 30, client, server, "A", isn + 1, 5001, 100, window=500, inside=0),
        Packet(ms + 40, server, client, "A", 5001, isn + 101, window=1000, inside=1),
    ]


OPENED = ["half"] * 4 + ["entry"]


def _closing(ms: int) -> list[Packet]:
    """Both FINs and their acknowledgments."""
    return [
        Packet(ms, A, B, "FA", 1101, 5001, window=500),
        Packet(ms + 10, B, A, "FA", 5001, 1102, window=1000, inside=1),
        Packet(ms + 20, A, B, "A", 1102, 5002, window=500),
        Packet(ms + 30, A, B, "A", 1102, 5002, window=500),
    ]


def _rst(ms: int, seq: int, source: tuple[str, int] = A) -> Packet:
    return Packet(ms, source, B if source == A else A, "R", seq, inside=0 if source == A else 1)


def _segment(ms: int, seq: int, ack: int, length: int = 10) -> Packet:
    return Packet(ms, A, B, "A", seq, ack, length, window=500)


def _flood(ms: int, count: int) -> list[Packet]:
    return [Packet(ms, (f"203.0.113.{n}", n), B, "S", n, inside=1) for n in range(count)]


V6 = ("2001:db8:1:2::1", 5), ("2001:db8:9::1", 443)
NAMES = {"subscribers": [["house", ["10.0.0.0/8", "2001:db8:1::/48"]], ["cellar", ["10.0.0.2/32"]]]}
BY_HAND: list[tuple[str, dict[str, Any], list[Packet], list[str]]] = [
    ("data that are acknowledged make an entry", {}, _opening(0), OPENED),
    ("data of the other side do as well", {}, [*_opening(0)[:3],
        Packet(25, B, A, "A", 5001, 1001, 50, inside=1), Packet(30, A, B, "A", 1001, 5051)], OPENED),
    ("data within the SYN do as well", {}, [Packet(0, A, B, "S", 1000, 0, 100, scale=7, mss=1460),
        Packet(10, B, A, "SA", 5000, 1101, inside=1), Packet(20, A, B, "A", 1101, 5001),
        Packet(30, B, A, "A", 5001, 1101, inside=1)], ["half"] * 3 + ["entry"]),
    ("no entry without data", {}, [*_opening(0)[:3], Packet(40, B, A, "A", 5001, 1001, inside=1)], ["half"] * 4),
    ("an ACK of what was not sent proves nothing", {},
        [*_opening(0)[:4], Packet(40, B, A, "A", 5001, 9999, inside=1)], ["half"] * 5),
    ("who does not see the SYN-ACK does not get beyond it", {}, [*_opening(0)[:2],
        Packet(20, A, B, "A", 1001, 77, 100), Packet(30, B, A, "A", 5001, 1101, inside=1)], ["half"] * 4),
    ("nobody plays both ends from one side", {}, [Packet(**{**vars(p), "inside": 0}) for p in _opening(0)],
        ["half", "other", "half", "half", "other"]),
    ("a connection met in the middle has no entry", {}, _opening(0)[2:], ["other"] * 3),
    ("datagrams have no entry", {}, [Packet(n, A, ("192.0.2.9", n), "udp") for n in range(20)], ["other"] * 20),
    ("both FINs end it", {}, _opening(0) + _closing(100), [*OPENED, "entry", "entry", "entry", "other"]),
    ("one FIN does not", {}, [*_opening(0), _closing(100)[0], *_closing(100)[:1]], [*OPENED, "entry", "entry"]),
    ("the exact RST ends it", {}, [*_opening(0), _rst(50, 1101), _segment(60, 1101, 5001)],
        [*OPENED, "entry", "other"]),
    ("an RST beside it does not", {}, [*_opening(0), _rst(50, 1102), _rst(51, 5002, B), _segment(60, 1101, 5001)],
        [*OPENED, "entry", "entry", "entry"]),
    ("an RST answers a SYN", {}, [_opening(0)[0], Packet(10, B, A, "RA", 0, 1001, inside=1), *_opening(20)[1:2]],
        ["half", "half", "other"]),
    ("an RST that answers another SYN does not", {}, [_opening(0)[0], Packet(10, B, A, "RA", 0, 1000, inside=1),
        *_opening(20)[1:2]], ["half"] * 3),
    ("who is silent for long is forgotten", {}, [*_opening(0), _segment(70_000, 1101, 5001)], [*OPENED, "other"]),
    ("who is not is not", {}, [*_opening(0), _segment(50_000, 1101, 5001), _segment(100_000, 1111, 5001)],
        [*OPENED, "entry", "entry"]),
    ("what does not fit keeps nothing alive", {}, [*_opening(0), _segment(50_000, 900_000, 5001),
        _segment(51_000, 1101, 900_000), _segment(100_000, 1101, 5001)], [*OPENED, "entry", "entry", "other"]),
    ("a SYN without an answer is forgotten sooner", {}, [_opening(0)[0], *_opening(11_000)[1:2]], ["half", "other"]),
    ("a flood overwrites what is half-open and no entry", {}, [*_opening(0), _opening(50, C)[0], *_flood(60, 60),
        _segment(70, 1101, 5001), _opening(70, C)[1]], [*OPENED, "half"] + ["half"] * 60 + ["entry", "other"]),
    ("beyond the indices a begin is handed over", {}, _flood(0, 8) + _opening(10), ["half"] * 8 + OPENED),
    ("a SYN that comes again counts once", {}, [_opening(0)[0], *_opening(500)], ["half", *OPENED]),
    ("another connection takes the place of one with its key", {}, _opening(0) + _opening(1000, isn=700_000),
        [*OPENED, "half", "half", "half", "half", "entry"]),
    ("a forged SYN changes nothing", {}, [*_opening(0), _opening(50, isn=9)[0], _segment(60, 1101, 5001),
        Packet(70, B, A, "A", 5001, 1111, 30, window=1000, inside=1)], [*OPENED, "half", "entry", "entry"]),
    ("IPv6 by its /64", {}, _opening(0, *V6) + _opening(100, ("2001:db8:1:2::ffff", 6), V6[1]), OPENED * 2),
    ("named subscribers, the longest prefix first", NAMES, _opening(0) + _opening(100, C) + _opening(200, *V6),
        OPENED * 3),
    ("the quota takes one's own", {"quota": 3}, [p for n in range(5) for p in _opening(100 * n, ("10.0.0.1", n))]
        + [*_opening(600, C)], OPENED * 6),
    ("when all is full the one with most loses", {}, [p for n in range(12) for p in _opening(100 * n, ("10.0.0.1", n))]
        + [p for n in range(8) for p in _opening(5000 + 100 * n, ("10.0.0.2", n))], OPENED * 20),
]  # fmt: skip


def _script(draw: random.Random, begin: int) -> list[Packet]:  # noqa: C901
    """The life of a connection in which something may go wrong."""
    host = draw.choice(["10.0.0.1", "10.0.0.2", "10.0.1.3", "2001:db8:1:2::1", "2001:db8:3::1"])
    server = "2001:db8:9::1" if ":" in host else "192.0.2.9"
    client, ms = ((host, draw.randrange(1, 5)), (server, draw.choice([80, 443]))), draw.randrange(begin)
    inside = draw.choice([0, 1])
    isn = [draw.choice([draw.randrange(2**32), 2**32 - 50]) for _ in range(2)]
    scale = [draw.choice([None, 0, 7, 14, 200]) for _ in range(2)]
    seq, packets = [isn[0], isn[1]], []

    def send(role: int, flags: str, length: int = 0, **more: Any) -> None:
        nonlocal ms
        ms += draw.choice([1, 5, 40, 300, draw.randrange(1, 4000)])
        syn = {"scale": scale[role], "mss": draw.choice([None, 1460])} if "S" in flags else {}
        ack = seq[1 - role] if "A" in flags else 0
        values = {"seq": seq[role], "ack": ack, "len": length, "window": draw.choice([0, 100, 65535]), **syn, **more}
        packets.append(Packet(ms, client[role], client[1 - role], flags, **values, inside=inside ^ role))
        if not more:
            seq[role] = (seq[role] + length + ("F" in flags) + ("S" in flags)) & MASK32
        if draw.random() < 0.06:
            packets.append(packets[-1])

    ms += draw.choice([0, 0, 60_000])

    send(0, "S")
    if draw.random() < 0.75:
        send(1, "SA")
    if draw.random() < 0.9:
        send(0, "A")
    for _ in range(draw.randrange(8)):
        role, odd = draw.randrange(2), draw.random()
        if odd < 0.04:
            near = (seq[role] + draw.choice([-70_000, -1, 1, 70_000])) & MASK32
            send(role, draw.choice(["R", "RA", "A", "S", "FA", ""]), seq=draw.choice([near, draw.randrange(2**32)]))
        elif odd < 0.08:
            send(role, draw.choice(["FA", "RA", "A"]), ack=(seq[1 - role] + 100_000) & MASK32)
        else:
            send(role, "A", draw.choice([0, 1, 700]))
    end = draw.random()
    if end < 0.3:
        send(0, "FA")
        send(1, "FA")
        send(0, "A")
    elif end < 0.5:
        send(draw.randrange(2), "R")
    return packets


def _random(seed: int) -> tuple[str, dict[str, Any], list[Packet]]:
    draw = random.Random(seed)
    config = {
        "entries": draw.choice([8, 8, 16]),
        "half_open": draw.choice([8, 16]),
        "shown": draw.choice([0, 2, 8]),
        "idle_ms": draw.choice([20_000, 60_000]),
        "hosts": 8,
        "quota": draw.choice([2, 5, 32]),
        "subscribers": draw.choice([[], NAMES["subscribers"]]),
    }
    begin = draw.choice([1000, 30_000])
    packets = [packet for _ in range(draw.randrange(10, 40)) for packet in _script(draw, begin)]
    packets += [Packet(draw.randrange(30_000), A, ("192.0.2.9", n), "udp") for n in range(3)]
    return f"random {seed}", config, sorted(packets, key=lambda packet: packet.ms)


def _vector(name: str, config: dict[str, Any], packets: list[Packet]) -> dict[str, Any]:
    table = Table({**CONFIG, **config})
    rows = [[packet.row(), table.see(packet)] for packet in packets]
    return {"name": name, "config": table.config, "packets": rows, "gauges": table.gauges}


def vectors() -> list[dict[str, Any]]:
    """All vectors: those by hand, then random ones."""
    by_hand = [_vector(name, config, packets) for name, config, packets, _ in BY_HAND]
    return by_hand + [_vector(*_random(seed)) for seed in range(14)]


def _text() -> str:
    return "[\n" + ",\n".join(json.dumps(vector, separators=(",", ":")) for vector in vectors()) + "\n]\n"


def test_the_twin_does_what_the_rules_say() -> None:
    for name, config, packets, states in BY_HAND:
        answers = [answer for _, answer in _vector(name, config, packets)["packets"]]
        assert [answer[0] for answer in answers] == states, name


def test_an_index_has_one_connection_at_a_time() -> None:
    for vector in vectors():
        keys: dict[int, bytes] = {}
        for row, (state, flow, _, fresh, _, _) in vector["packets"]:
            key = repr(sorted(row[1:3])).encode()
            if state != "other" and flow < vector["config"]["entries"] + vector["config"]["shown"]:
                assert fresh or keys.get(flow, key) == key, (vector["name"], row)
                keys[flow] = key


def test_nobody_is_evicted_for_one_who_has_more() -> None:
    named = {vector["name"]: vector for vector in vectors()}
    last = named["when all is full the one with most loses"]
    assert last["gauges"]["evicted_full"] == 4 and last["gauges"]["evicted_quota"] == 0
    quota = named["the quota takes one's own"]["gauges"]
    assert (quota["evicted_quota"], quota["entries"]) == (2, 4)


def test_the_file_has_these_vectors() -> None:
    assert VECTORS.read_text() == _text()


if __name__ == "__main__":
    VECTORS.write_text(_text())
