"""Plays ladders (`crates/sim/tests/ladders`) against the TCP of a kernel, and tells where it does something else.

    python -I kernel_ladders.py DIRECTORY

`wanted.json` in the directory has `ladders`, the text of a file, and `accurate`, the value of `tcp_ecn` that stands for
Accurate ECN. Into the directory goes `recorded.json`: `kernel`, its version, and `differences` by title, or `error`.
Each ladder has a network namespace with a TUN device, behind which a script is the peer. All are played at once, by the
clock. The file imports nothing of the package, so that it also runs where only files are, as in a jar.

Of the segments that a ladder names, times and sizes are not compared, and of Accurate ECN's option what it tells, not
how often and in which order: RFC 9768 leaves these open. What the kernel sent besides is a difference as well, which
begins with `+`; what it did not send begins with `-`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

KERNEL, PEER, PORT = "10.9.0.1", "10.9.0.2", 4711
PEER_ISS = 0xFFFFFFFA  # near the wrap, as in the player for endpoints
MSS = 1000
OPTION = 12  # bytes of Accurate ECN's option, which the kernel takes from the payload
LATE_S = 0.1  # after its time, a segment that is due is awaited for so long
FLAGS = "FSRP.UEWA"  # from the lowest bit on
ECN = ("notect", "ect1", "ect0", "ce")
STATES = {1: "established", 7: "closed"}
SYN, ACK = 2, 16
IPV4 = Path("/proc/sys/net/ipv4")
NEWNET, TUNSETIFF, TUN_NO_PI = 0x40000000, 0x400454CA, 0x1001
ACCECN = {172: "accecn0", 174: "accecn1"}


def checksum(of: bytes) -> int:
    """The checksum of the Internet (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{(len(of) + 1) // 2}H", of + b"\0" * (len(of) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def read_segment(text: str) -> dict[str, Any]:
    """Reads a segment in the notation of ladders; what is not named is not there."""
    letters, span, *words = text.split()
    start, end = (int(number) for number in span.split(":"))
    found: dict[str, Any] = {"flags": sum(1 << FLAGS.index(letter) for letter in letters if letter != "-")}
    found |= {"start": start, "end": end, "sack": []}
    while words:
        word = words.pop(0)
        if word in ECN:
            found["ecn"] = word
        elif word == "sackok":
            found[word] = True
        elif word == "sack":
            while words and "-" in words[0]:
                found["sack"].append([int(edge) for edge in words.pop(0).split("-")])
        elif word in ("accecn0", "accecn1"):
            found["accecn"] = [word, [int(field) for field in words.pop(0).split("/") if field != "-"]]
        elif word == "ts":
            found["ts"] = int(words.pop(0).split(":")[0])
        else:
            found[word] = int(words.pop(0))
    return found


def shown(segment: dict[str, Any]) -> str:
    """Writes a segment in the notation of ladders, without what is in SYNs alone."""
    letters = "".join(letter for bit, letter in enumerate(FLAGS) if segment["flags"] >> bit & 1)
    words = [letters or "-", f"{segment['start']}:{segment['end']}"]
    if segment["flags"] & ACK and "ack" in segment:
        words.append(f"ack {segment['ack']}")
    if segment["sack"]:
        words.append("sack " + " ".join(f"{a}-{b}" for a, b in segment["sack"]))
    if "accecn" in segment:
        words.append(f"{segment['accecn'][0]} {'/'.join(map(str, segment['accecn'][1])) or '-'}")
    if "ecn" in segment:
        words.append(segment["ecn"])
    return " ".join(words)


def counters(segment: dict[str, Any]) -> dict[str, int]:
    """Returns the bytes by ECN field that the option of a segment tells."""
    name, fields = segment.get("accecn", ["accecn0", []])
    order = ("ect0", "ce", "ect1") if name == "accecn0" else ("ect1", "ce", "ect0")
    return dict(zip(order, fields, strict=False))


def is_as(wanted: dict[str, Any], got: dict[str, Any], told: dict[str, int]) -> bool:
    """True if a segment is the one that a ladder names, and says no more than it after the counters that were told."""
    push = 0 if wanted["flags"] & 8 else 8
    keys = ["start", "end", "sack", *(key for key in ("ack", "ecn") if key in wanted)]
    return (
        wanted["flags"] == got["flags"] & ~push
        and all(wanted[key] == got[key] for key in keys)
        and told | counters(wanted) == told | counters(got)
    )


class Wire:
    """The peer: packets to and from the kernel through a TUN device."""

    def __init__(self, mss: int) -> None:
        self.mss = mss
        self.tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.tun, TUNSETIFF, struct.pack("16sH22x", b"peer", TUN_NO_PI))
        self.kernel_iss = 0
        self.kernel_port = PORT
        self.newest = 0  # the kernel's latest timestamp

    def receive(self) -> dict[str, Any] | None:
        """Takes the next TCP segment of the kernel, if one waits."""
        while True:
            try:
                packet = os.read(self.tun, 2048)
            except BlockingIOError:
                return None
            if packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_TCP:
                return self._parsed(packet)

    def _parsed(self, packet: bytes) -> dict[str, Any]:
        tcp = packet[(packet[0] & 15) * 4 :]
        self.kernel_port, _, seq, ack, bits = struct.unpack("!HHIIH", tcp[:14])
        header, flags = (bits >> 12) * 4, bits & 0x1FF
        if flags & SYN:
            self.kernel_iss = seq
        start = (seq - self.kernel_iss) & 0xFFFFFFFF
        found: dict[str, Any] = {"flags": flags, "start": start, "end": start + len(tcp) - header, "sack": []}
        found |= {"ack": (ack - PEER_ISS) & 0xFFFFFFFF, "ecn": ECN[packet[1] & 3]}
        options = tcp[20:header]
        while options and options[0]:
            if options[0] == 1:
                options = options[1:]
                continue
            kind, value = options[0], options[2 : options[1]]
            options = options[options[1] :]
            if kind == 5:
                edges = [(edge - PEER_ISS) & 0xFFFFFFFF for edge in struct.unpack(f"!{len(value) // 4}I", value)]
                found["sack"] = [list(pair) for pair in zip(edges[::2], edges[1::2], strict=True)]
            elif kind == 8:
                self.newest = struct.unpack("!I", value[:4])[0]
            elif kind in ACCECN:
                counters = [int.from_bytes(value[at : at + 3], "big") for at in range(0, len(value), 3)]
                found["accecn"] = [ACCECN[kind], counters]
        return found

    def send(self, segment: dict[str, Any]) -> None:
        """Sends a segment to the kernel."""
        options = b""
        if segment["flags"] & SYN:
            options += struct.pack("!BBH", 2, 4, self.mss) + (b"\4\2" if "sackok" in segment else b"")
        if "ts" in segment:
            options += struct.pack("!BBII", 8, 10, segment["ts"], self.newest)
        if segment["sack"]:
            edges = [self.kernel_iss + edge & 0xFFFFFFFF for pair in segment["sack"] for edge in pair]
            options += struct.pack(f"!BB{len(edges)}I", 5, 2 + 4 * len(edges), *edges)
        if "accecn" in segment:
            name, counters = segment["accecn"]
            kind = next(kind for kind, known in ACCECN.items() if known == name)
            options += bytes([kind, 2 + 3 * len(counters)]) + b"".join(one.to_bytes(3, "big") for one in counters)
        options += b"\1" * (-len(options) % 4)
        payload = bytes(segment["end"] - segment["start"])
        seq = PEER_ISS + segment["start"] & 0xFFFFFFFF
        ack = self.kernel_iss + segment["ack"] & 0xFFFFFFFF if "ack" in segment else 0
        bits = (20 + len(options)) // 4 << 12 | segment["flags"]
        ends = [socket.inet_aton(end) for end in (PEER, KERNEL)]
        window = segment.get("win", 65535)
        tcp = bytearray(
            struct.pack("!HHIIHHHH", PORT, self.kernel_port, seq, ack, bits, window, 0, 0) + options + payload
        )
        tcp[16:18] = checksum(b"".join(ends) + struct.pack("!HH", socket.IPPROTO_TCP, len(tcp)) + tcp).to_bytes(
            2, "big"
        )
        ecn = ECN.index(segment.get("ecn", "notect"))
        ip = bytearray(struct.pack("!BBHHHBBH", 0x45, ecn, 20 + len(tcp), 0, 0x4000, 64, socket.IPPROTO_TCP, 0))
        ip += b"".join(ends)
        ip[10:12] = checksum(bytes(ip)).to_bytes(2, "big")
        os.write(self.tun, bytes(ip + tcp))


def read_settings(line: str) -> dict[str, str]:
    """Reads the settings of a ladder; the parameters of a control are none of them."""
    plain = re.sub(r"\{.*?\}", "{}", line.removeprefix("tcp "))
    return dict(one.split(" = ") for one in plain.split(", "))


class Ladder:
    """One ladder against the kernel of this namespace."""

    def __init__(self, lines: list[str], accurate: int) -> None:
        settings = read_settings(lines[0])
        self.settings = settings
        self.is_client = lines[1] == "client"
        answered = any(" < " in line and "accecn" in line for line in lines)
        self.wire = Wire(MSS + OPTION * answered)
        configure(settings, accurate)
        self.sent: list[dict[str, Any]] = []
        self.differences: list[str] = []
        self.told = {"ect0": 1, "ce": 0, "ect1": 1}  # by the options so far
        self.waiting = 0  # bytes that the application could not write yet
        self.socket: socket.socket | None = None
        self.listener = socket.socket()
        self.listener.setblocking(False)
        self.listener.bind((KERNEL, PORT))
        if not self.is_client:
            self.listener.listen()
        self.begin = time.monotonic()
        for line in lines[2:]:
            self.step(line)
        self.differences += [f"+ {shown(extra)}" for extra in self.sent]

    def step(self, line: str) -> None:
        """Does what a line says."""
        at, operation, *rest = line.split(None, 2)
        due = float(at.removesuffix("ms")) / 1e3
        text = rest[0] if rest else ""
        self.advance(due)
        if operation == "<":
            self.wire.send(read_segment(text))
        elif operation == ">":
            self.expect(read_segment(text))
        elif operation == "open":
            self.socket = self.listener
            if self.socket.connect_ex((PEER, PORT)) not in (0, errno.EINPROGRESS):
                raise OSError("the kernel does not connect")
        elif operation == "connect":
            self.connect(due, due + float(text.removesuffix("ms")) / 1e3)
            return
        elif operation == "quiet":
            self.differences += [f"+ {shown(extra)}" for extra in self.sent]
            self.sent.clear()
        elif operation == "write":
            self.waiting += int(text)
        elif operation in ("cwnd", "ssthresh", "state"):
            self.look(operation, text)
        else:
            raise ValueError(f"no operation {operation!r}")
        self.advance(due)

    def connect(self, begin: float, end: float) -> None:
        """A handshake of the kernel with the peer, which answers at `end`; nothing of it is compared."""
        self.step(f"{begin * 1e3}ms open")
        self.advance(end)
        ecn = "E" * (self.settings.get("ecn") == "true")
        sack = " sackok" * (self.settings.get("sack") != "false")
        self.wire.send(read_segment(f"S.{ecn} 0:0 ack 1 mss {MSS}{sack}"))
        self.advance(end + 0.001)
        self.sent.clear()

    def advance(self, due: float) -> None:
        """Lets the kernel work until a time, or for what it does at once."""
        while True:
            ahead = self.begin + due - time.monotonic()
            if not select.select([self.wire.tun], [], [], max(ahead, 0))[0] and ahead <= 0:
                self.application()
                while segment := self.wire.receive():
                    self.sent.append(segment)
                return
            self.application()
            while segment := self.wire.receive():
                self.sent.append(segment)
            if self.waiting and ahead > 0:
                time.sleep(0.001)

    def application(self) -> None:
        """Accepts, and writes what waits. ACKs are delayed from the first on, as by the endpoint."""
        with contextlib.suppress(OSError):
            if self.socket is None and not self.is_client:
                self.socket = self.listener.accept()[0]
                self.socket.setblocking(False)
        if self.socket is None:
            return
        with contextlib.suppress(OSError):
            if self.state() == "established":  # before, it would delay the ACK of the SYN-ACK
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            if self.waiting:
                self.waiting -= self.socket.send(bytes(self.waiting))

    def expect(self, wanted: dict[str, Any]) -> None:
        """Takes the segment that is due; where another comes in its place, both are a difference."""
        until = time.monotonic() + LATE_S
        while True:
            for place, got in enumerate(self.sent):
                if is_as(wanted, got, self.told):
                    self.told |= counters(wanted)
                    self.differences += [f"+ {shown(extra)}" for extra in self.sent[:place]]
                    del self.sent[: place + 1]
                    return
            if time.monotonic() >= until:
                break
            select.select([self.wire.tun], [], [], 0.01)
            self.advance(0)
        self.differences.append(f"- {shown(wanted)}")

    def look(self, what: str, wanted: str) -> None:
        """Compares what the socket says of itself."""
        if what == "state":
            got = self.state()
        else:
            segments = struct.unpack("24I", self.information()[8:])[17 if what == "ssthresh" else 18]
            got = str(2**64 - 1 if segments >= 0x7FFFFFFF else segments * MSS)
        if got != wanted:
            self.differences.append(f"{what} {got} for {wanted}")

    def information(self) -> bytes:
        """The first part of `struct tcp_info`."""
        assert self.socket is not None
        return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)

    def state(self) -> str:
        """The state of the connection; one that was never accepted is closed."""
        number = 7 if self.socket is None else self.information()[0]
        return STATES.get(number, f"{number}")


def configure(settings: dict[str, str], accurate: int) -> None:
    """Sets up the kernel of this namespace."""
    told = {
        "tcp_ecn": 0 if settings.get("ecn") != "true" else accurate if settings.get("accurate_ecn") == "true" else 1,
        "tcp_ecn_option": 1,  # where it is due, as the endpoint; 2 sends it always
        "tcp_timestamps": 0 if settings.get("timestamps") == "false" else 1,
        "tcp_sack": 0 if settings.get("sack") == "false" else 1,
        "tcp_congestion_control": "reno",
    }
    if settings.get("accurate_ecn") != "true":
        del told["tcp_ecn_option"]  # Linux has it since 6.18
    for name, value in told.items():
        (IPV4 / name).write_text(f"{value}", encoding="ascii")
    window = settings.get("initial_window", "10")
    for command in (
        f"ip address add {KERNEL} peer {PEER} dev peer",
        "ip link set peer up",
        f"ip route replace {PEER} dev peer src {KERNEL} initcwnd {window}",
    ):
        subprocess.run(command.split(), check=True)


def apart() -> None:
    """Gives this process a network of its own."""
    if ctypes.CDLL(None, use_errno=True).unshare(NEWNET):
        raise OSError(ctypes.get_errno(), "no network namespace")


def lacks(accurate: int) -> str | None:
    """Tells what is missing for ladders here, in a process of its own."""
    try:
        apart()
        Wire(MSS)
    except OSError as error:
        return f"a namespace with a TUN device needs root: {error}"
    if not accurate:
        return None
    try:
        (IPV4 / "tcp_ecn_option").read_text(encoding="ascii")
        (IPV4 / "tcp_ecn").write_text(f"{accurate}", encoding="ascii")
    except OSError:
        return f"Linux {os.uname().release} takes no tcp_ecn={accurate} for Accurate ECN"
    return None


def in_child(task: Callable[[], Any]) -> int:
    """Does something in a child; returns the file from which its result can be read, as JSON."""
    out, into = os.pipe()
    if os.fork() == 0:
        try:
            told = task()
        except Exception:
            told = [f"failed: {traceback.format_exc()}"]
        with os.fdopen(into, "w", encoding="utf-8") as pipe:
            json.dump(told, pipe)
        os._exit(0)
    os.close(into)
    return out


def result(out: int) -> Any:
    """Returns what a child found."""
    with os.fdopen(out, encoding="utf-8") as pipe:
        told = json.load(pipe)
    os.wait()
    return told


def play(lines: list[str], accurate: int) -> list[str]:
    """Plays a ladder in a network of its own; returns the differences."""
    apart()
    return Ladder(lines, accurate).differences


def main(directory: Path) -> None:
    """Plays the ladders of a directory, each in a process."""
    wanted = json.loads((directory / "wanted.json").read_text(encoding="utf-8"))
    accurate = wanted["accurate"]
    ladders = {}
    for block in wanted["ladders"].split("\n== ")[1:]:
        title, *lines = (line.partition("#")[0].strip() for line in block.splitlines())
        ladders[title] = [line for line in lines if line]
    found: dict[str, Any] = {"kernel": os.uname().release}
    if missing := result(in_child(lambda: lacks(accurate))):
        found["error"] = missing
    else:
        children = {title: in_child(functools.partial(play, lines, accurate)) for title, lines in ladders.items()}
        found["differences"] = {title: result(out) for title, out in children.items()}
    (directory / "recorded.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
