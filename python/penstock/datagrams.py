"""Sources of datagrams and their receiver, a part of the program of hosts. It imports nothing of the package."""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import struct
from collections.abc import Callable
from typing import Any, Protocol

PORT = 5000
SO_RCVBUFFORCE = 33


class Hosts(Protocol):
    """What happens in one namespace."""

    ready: selectors.BaseSelector
    buffer: bytearray

    def now(self) -> float:
        """Returns the seconds since the begin of the run."""

    def at(self, due: float, work: Callable[[], None]) -> None:
        """Calls `work` at a time of the run."""


class Datagrams:
    """A source of datagrams, each of which begins with its number and the time at which it was sent."""

    def __init__(self, hosts: Hosts, flow: dict[str, Any]) -> None:
        self._hosts, self._flow = hosts, flow
        self._dice = random.Random(flow["seed"])
        self._sent, self._late, self._refused = 0, 0.0, 0
        self._firsts: list[int] = []  # of each frame of a video, the number of its first datagram
        self._socket = socket.socket(type=socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, flow["tos"])
        self._socket.bind((flow["from"], 0))
        self._socket.connect((flow["to"], PORT))
        self._socket.setblocking(False)
        self._wait(flow["start_s"], self.begin)

    def begin(self) -> None:
        """Begins at the start of the flow."""

    def _wait(self, due: float, work: Callable[[], None]) -> None:
        self._due = due
        if self._flow["stop_s"] is None or due < self._flow["stop_s"]:
            self._hosts.at(due, work)

    def _give(self, size: int) -> None:
        now = self._hosts.now()
        self._late = max(self._late, now - self._due)
        head = struct.pack("!Id", self._sent, now)[:size]
        try:
            self._socket.send(head + bytes(size - len(head)))
        except OSError:
            self._refused += 1
        self._sent += 1

    def sample(self) -> None:
        """A stream has no window."""

    def result(self) -> dict[str, Any]:
        """Returns how much was sent, and how late."""
        return {"sent": self._sent, "refused": self._refused, "late_s": self._late, "frames": self._firsts}


class UdpSender(Datagrams):
    """Datagrams at a constant rate, all the time or in on-times."""

    _off_at: float | None = None

    def begin(self) -> None:
        """Begins an on-time."""
        if self._flow["mean_on_s"]:
            self._off_at = self._due + self._dice.expovariate(1 / self._flow["mean_on_s"])
        self._send()

    def _send(self) -> None:
        size = int(self._dice.choices(self._flow["sizes"], self._flow["weights"])[0])
        self._give(size)
        due = self._due + (size + self._flow["headers"]) * 8 / self._flow["rate_bps"]
        if self._off_at is not None and due >= self._off_at:
            self._wait(self._off_at + self._dice.expovariate(1 / self._flow["mean_off_s"]), self.begin)
        else:
            self._wait(due, self._send)


class VideoSender(Datagrams):
    """Frames at a constant rate, each a burst of datagrams, with headers of 12 bytes."""

    def begin(self) -> None:
        """Sends a frame."""
        left = self._size(len(self._firsts))
        self._firsts.append(self._sent)
        while left > 0:
            body = min(left, self._flow["body"])
            left -= body
            self._give(12 + body)
        self._wait(self._flow["start_s"] + len(self._firsts) / self._flow["fps"], self.begin)

    def _size(self, number: int) -> int:
        mean, spread = self._flow["sizes"][number % self._flow["gop"] > 0], self._flow["spread"]
        return max(1, round(float(mean) * self._dice.lognormvariate(-(spread**2) / 2, spread)))


class UdpReceiver:
    """Counts datagrams, and notes how long each was on its way."""

    def __init__(self, hosts: Hosts, flow: dict[str, Any]) -> None:
        self._hosts, self._keeps = hosts, flow["keeps_delays"]
        self.bytes, self._packets = 0, 0
        self._delays: list[list[float]] = []
        self._known: set[int] = set()
        self._socket = socket.socket(type=socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, flow["window"])
        self._socket.bind((flow["to"], PORT))
        self._socket.setblocking(False)
        hosts.ready.register(self._socket, selectors.EVENT_READ, self._take)

    def _take(self, _: int) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while True:
                size = self._socket.recv_into(self._hosts.buffer)
                number, sent = struct.unpack_from("!Id", self._hosts.buffer)
                if number in self._known:
                    continue  # a link may deliver a datagram twice
                self._known.add(number)
                self.bytes += size
                self._packets += 1
                if self._keeps:
                    self._delays.append([number, sent, self._hosts.now() - sent])

    def sample(self) -> None:
        """Every datagram wakes the receiver."""

    def result(self) -> dict[str, Any]:
        """Returns what came."""
        return {"bytes": self.bytes, "packets": self._packets, "ended_s": None, "delays": self._delays}
