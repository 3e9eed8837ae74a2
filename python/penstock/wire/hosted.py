"""The two ends of a hosted stack over real sockets, a part of the program of hosts."""

from __future__ import annotations

import selectors
import socket
from typing import Any

from penstock import _penstock
from penstock.datagrams import PORT, SO_RCVBUFFORCE, Hosts
from penstock.own import Library

_NS = 1e9
_ENDLESS = 1 << 62
_LARGEST = 1 << 16
_ECN = 3


class _End:
    """One end: it has a socket, and is woken when its stack wants it."""

    def __init__(self, hosts: Hosts, flow: dict[str, Any], *, server: bool) -> None:
        self._hosts, self._flow = hosts, flow
        self._stack = _penstock.Stack(flow["stack"], server, flow["id"], flow["seed"], Library())
        self._peer: Any = None if server else (flow["to"], PORT)
        self._tos = flow["tos"] & ~_ECN
        self._sent, self._sent_bytes, self._received, self._refused = 0, 0, 0, 0
        self._due: float | None = None
        self._socket = socket.socket(type=socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 22)
        self._socket.bind((flow["to"], PORT) if server else (flow["from"], 0))
        self._socket.setblocking(False)
        hosts.ready.register(self._socket, selectors.EVENT_READ, self._take)

    def _now(self) -> int:
        return max(0, round(self._hosts.now() * _NS))

    def _take(self, _: int) -> None:
        while True:
            try:
                data, about, _flags, peer = self._socket.recvmsg(_LARGEST, 64)
            except (BlockingIOError, ConnectionError):
                break
            tos = next((value[0] for level, kind, value in about if (level, kind) == (socket.SOL_IP, socket.IP_TOS)), 0)
            self._peer = self._peer or peer
            self._received += 1
            self._stack.receive(data, tos & _ECN, self._now())
        self._turn()

    def _work(self) -> None:
        """What the application does when something has happened."""

    def _turn(self) -> None:
        self._work()
        while self._peer and (given := self._stack.transmit(self._now())):
            datagram, ecn = given
            self._sent += 1
            self._sent_bytes += len(datagram)
            try:
                about = [(socket.SOL_IP, socket.IP_TOS, (self._tos | ecn).to_bytes(4, "little"))]
                self._socket.sendmsg([datagram], about, 0, self._peer)
            except OSError:
                self._refused += 1
        at = self._stack.deadline()
        if at is not None and (self._due is None or at / _NS < self._due):
            self._due = at / _NS
            self._hosts.at(self._due, self._wake)

    def _wake(self) -> None:
        self._due = None
        at = self._stack.deadline()
        if at is not None and at <= self._now():
            self._stack.wake(self._now())
        self._turn()

    def result(self) -> dict[str, Any]:
        """Returns what was counted."""
        return {
            "version": self._stack.version,
            "sent": self._sent,
            "sent_bytes": self._sent_bytes,
            "received": self._received,
            "refused": self._refused,
            "ended": self._stack.ended(),
        }


class StackSender(_End):
    """The client, which sends `size` bytes or as many as it can."""

    def __init__(self, hosts: Hosts, flow: dict[str, Any]) -> None:
        super().__init__(hosts, flow, server=False)
        self._left = _ENDLESS if flow["size"] is None else flow["size"]
        self._begun, self._closed, self._finished = False, False, False
        self._connected_s: float | None = None
        self._rtts: list[float] = []
        self._windows: list[list[float]] = []
        hosts.at(flow["start_s"], self._begin)
        if flow["stop_s"] is not None:
            hosts.at(flow["stop_s"], self._close)

    def _begin(self) -> None:
        self._begun = True
        self._turn()

    def _close(self) -> None:
        self._closed = True
        self._stack.close(self._now())
        self._turn()

    def _work(self) -> None:
        if not self._closed and not self._finished:
            self._left -= self._stack.write(self._left, self._now()) if self._left else 0
            if not self._left:
                self._finished = True
                self._stack.finish(self._now())
        if self._connected_s is None and self._stack.figures()[0]:
            self._connected_s = self._hosts.now()

    def sample(self) -> None:
        """Notes the window and the round trip time."""
        connected, window, trip, _lost = self._stack.figures()
        if self._begun and connected and not self._closed:
            self._windows.append([self._hosts.now(), window])
            if trip is not None:
                self._rtts.append(1e3 * trip)

    def result(self) -> dict[str, Any]:
        """Returns what was counted, with windows and round trip times."""
        told = {"connected_s": self._connected_s, "lost": self._stack.figures()[3]}
        return {**super().result(), **told, "rtts_ms": self._rtts, "windows": self._windows}


class StackReceiver(_End):
    """The server, which reads."""

    def __init__(self, hosts: Hosts, flow: dict[str, Any]) -> None:
        super().__init__(hosts, flow, server=True)
        self.bytes = 0
        self._ended_s: float | None = None

    def _work(self) -> None:
        self.bytes += self._stack.read(self._now())
        if self._ended_s is None and self._flow["size"] is not None and self.bytes >= self._flow["size"]:
            self._ended_s = self._hosts.now()

    def sample(self) -> None:
        """Every datagram wakes the receiver."""

    def result(self) -> dict[str, Any]:
        """Returns what came."""
        return {**super().result(), "bytes": self.bytes, "ended_s": self._ended_s}
