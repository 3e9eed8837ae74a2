"""The hosts of one namespace: senders and receivers of real packets. It prints one JSON object at its end.

The file is run by its path and imports little, so that it starts quickly:

    python -I traffic.py HOSTS.json

`HOSTS.json` lists what is sent and what is received there, and names the file which says when the run begins: a time
of CLOCK_MONOTONIC, in seconds. The program prints `listening` when it is ready for it. All times that it prints are
seconds since the begin of the run.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import json
import os
import resource
import selectors
import socket
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from penstock.agent import Agent
from penstock.datagrams import PORT, SO_RCVBUFFORCE, UdpReceiver, UdpSender, VideoSender

SAMPLE_S = 0.1
_CHUNK = 1 << 16
# As in penstock/verify/traffic.py, which says why: a window that neither grows nor shrinks, and no late ACKs.
_WAKE_BYTES = 1 << 15
_NOT_SENT_BYTES = 1 << 16
_SO_SNDBUFFORCE, _TCP_WINDOW_CLAMP, _TCP_CONGESTION, _TCP_NOTSENT_LOWAT = 32, 10, 13, 25
# struct tcp_info of <linux/tcp.h>: offsets of its fields.
_OPTIONS, _RTT_US, _CWND, _SENT_AGAIN, _LEAST_RTT_US, _TIMEOUTS = 5, 68, 80, 100, 148, 240
_OPTION_ECN = 8
_ALL_ACKED = (5, 6, 7)  # states of TCP in which even the FIN is acknowledged: FIN_WAIT2, TIME_WAIT, CLOSE
# Controls with a part for receivers: that of DCTCP tells of each mark, and other ones repeat the first until CWR comes.
_RECEIVED = ("dctcp",)
_COUNTERS = {"resent": ("I", _SENT_AGAIN), "timeouts": ("H", _TIMEOUTS)}
# Transfer n of a session leaves from this port plus n, so that its receiver knows which it is. Other connections have
# ports above these.
_FIRST_PORT, _MOST_TRANSFERS = 1024, 31_000
_MOST_WAITING = 1024
_NOTHING = memoryview(bytes(_CHUNK))
_NEWS = struct.Struct("!IId")  # flow, number of the transfer, when its last byte came


class Hosts:
    """All that happens in one namespace, on one thread: a queue of what is due, and sockets that are ready."""

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.ready = selectors.DefaultSelector()
        self.buffer = bytearray(_CHUNK)
        # What senders do when their receiver has the last byte of a transfer, by flow.
        self.news: dict[int, Callable[[int, float], None]] = {}
        self.flow_ended: Callable[[], None] = lambda: None  # what is done when a flow has no more to send
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._timer = Timer()
        self.ready.register(self._timer.fd, selectors.EVENT_READ, lambda _: self._timer.clear())

    def now(self) -> float:
        """Returns the seconds since the begin of the run."""
        return time.monotonic() - self.begin

    def at(self, due: float, work: Callable[[], None]) -> None:
        """Calls `work` at a time of the run."""
        self._number += 1
        heapq.heappush(self._due, (due, self._number, work))

    def hear(self, path: str) -> None:
        """Listens to receivers, which are in other namespaces and reach this file."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        self.ready.register(listener, selectors.EVENT_READ, lambda _: self._hear(listener.accept()[0]))

    def _hear(self, teller: socket.socket) -> None:
        def read(_: int) -> None:
            if said := teller.recv(_NEWS.size, socket.MSG_WAITALL):
                flow, number, at = _NEWS.unpack(said)
                self.news[flow](number, at)
            else:
                self.ready.unregister(teller)

        self.ready.register(teller, selectors.EVENT_READ, read)

    def run(self, end: float) -> None:
        """Does what is due and what sockets ask for, until the end."""
        while (now := self.now()) < end:
            while self._due and self._due[0][0] <= now:
                heapq.heappop(self._due)[2]()
            self._timer.set(self.begin + min(end, self._due[0][0] if self._due else end))
            for key, mask in self.ready.select(max(end - now, 0)):
                key.data(mask)


class Timer:
    """A timer that is precise to microseconds; `epoll` alone counts milliseconds."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")

    def set(self, at: float) -> None:
        """Lets the timer fire at a time of CLOCK_MONOTONIC."""
        whole = max(int(at * 1e9), 1)
        value = struct.pack("qqqq", 0, 0, whole // 10**9, whole % 10**9)
        self._libc.timerfd_settime(self.fd, 1, value, None)

    def clear(self) -> None:
        """Reads how often the timer has fired."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 8)


class TcpSender:
    """One connection that sends without end, or `size` bytes."""

    def __init__(self, hosts: Hosts, flow: dict[str, Any]) -> None:
        self._hosts, self._flow, self._left = hosts, flow, flow["size"]
        self._socket: socket.socket | None = None
        self._error: str | None = None
        self._is_finished, self._is_over = False, False
        self.rtts: list[float] = []
        self.windows: list[list[float]] = []
        hosts.at(flow["start_s"], self._connect)
        if flow["stop_s"] is not None:
            hosts.at(flow["stop_s"], self._finish)

    def _connect(self) -> None:
        self._socket = _connected(self._flow, 0)
        self._hosts.ready.register(self._socket, selectors.EVENT_WRITE, self._give)

    def _give(self, _: int) -> None:
        assert self._socket is not None
        try:
            sent = self._socket.send(_NOTHING[: _CHUNK if self._left is None else self._left])
        except BlockingIOError:
            return
        except OSError as error:
            self._error = str(error)
            self._hosts.ready.unregister(self._socket)
            return
        if self._left is not None:
            self._left -= sent
            if not self._left:
                self._finish()

    def _finish(self) -> None:
        self._is_finished = True
        if self._socket is not None and self._socket in self._hosts.ready.get_map():
            self._hosts.ready.unregister(self._socket)
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def sample(self) -> None:
        """Notes the smoothed round trip time and the window."""
        if self._socket is None:
            return
        info = _info(self._socket)
        rtt = _field("I", info, _RTT_US)
        if rtt:
            self.rtts.append(rtt / 1e3)
        self.windows.append([round(self._hosts.now(), 4), (_field("I", info, _CWND) or 0) * self._flow["mss"]])
        if not self._is_over and (self._error or (self._is_finished and info[0] in _ALL_ACKED)):
            self._is_over = True
            self._hosts.flow_ended()

    def result(self) -> dict[str, Any]:
        """Returns what the kernel counted of the connection."""
        found: dict[str, Any] = {"error": self._error, "rtts_ms": self.rtts, "windows": self.windows}
        if self._socket is None:
            return {**found, "resent": 0, "timeouts": 0}
        info = _info(self._socket)
        least = _field("I", info, _LEAST_RTT_US)
        # Unsent data is discarded: a reset ends both sides at once.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()
        return {
            **found,
            "ecn": bool(info[_OPTIONS] & _OPTION_ECN),
            "resent": _field("I", info, _SENT_AGAIN),
            "timeouts": _field("H", info, _TIMEOUTS),
            "least_rtt_ms": None if least in (None, 0xFFFFFFFF) else least / 1e3,
        }


class Connection:
    """One connection of a session, which sends what it is given."""

    def __init__(self, session: Sessions, number: int) -> None:
        self._session, self._hosts = session, session.hosts
        self.socket = _connected(session.flow, _FIRST_PORT + number)
        self._left, self._closes = 0, False

    def give(self, size: int, last: bool) -> None:
        """Sends a transfer; the `last` one closes the connection."""
        self._left, self._closes = self._left + size, last
        self._watch(selectors.EVENT_WRITE)

    def close(self) -> None:
        """Closes the connection when all is sent."""
        self._closes = True
        self._watch(selectors.EVENT_WRITE)

    def _watch(self, events: int) -> None:
        known = self.socket in self._hosts.ready.get_map()
        (self._hosts.ready.modify if known else self._hosts.ready.register)(self.socket, events, self._go_on)

    def _go_on(self, mask: int) -> None:
        try:
            if mask & selectors.EVENT_READ:
                self._end(failed=bool(self.socket.recv(1)))
                return
            # The last segment carries the FIN, as in the simulator.
            more = socket.MSG_MORE if self._closes else 0
            self._left -= self.socket.send(_NOTHING[: min(self._left, _CHUNK)], more) if self._left else 0
        except BlockingIOError:
            return
        except OSError:
            self._end(failed=True)
            return
        if not self._left:
            if self._closes:
                self.socket.shutdown(socket.SHUT_WR)
            self._watch(selectors.EVENT_READ)

    def _end(self, failed: bool) -> None:
        self._hosts.ready.unregister(self.socket)
        self._session.over(self, failed)


class Sessions:
    """Transfers over connections of their own or over one: at the times of `web`, or after each other as in `http`."""

    def __init__(self, hosts: Hosts, flow: dict[str, Any]) -> None:
        self.hosts, self.flow = hosts, flow
        self._coming = iter(flow["transfers"])
        self._begun: list[list[float | None]] = []  # of each transfer: size, begin, arrival of its last byte
        self._open: dict[Connection, int] = {}  # connections, with the number of their last transfer
        self._failed, self._connections, self._with_ecn = 0, 0, 0
        self._counted = {"resent": 0, "timeouts": 0}
        self._least: int | None = None
        self.rtts: list[float] = []
        hosts.news[flow["id"]] = self._arrived
        self._plan_next(flow["start_s"])

    def _plan_next(self, since: float) -> None:
        wait, size = next(self._coming, (None, 0))
        if wait is not None and since + wait < self._stop:
            self.hosts.at(since + wait, lambda: self._begin(since + wait, size))
        elif self.flow["same"]:
            for connection in self._open:
                connection.close()

    @property
    def _stop(self) -> float:
        stop = self.flow["stop_s"]
        return float("inf") if stop is None else float(stop)

    def _begin(self, due: float, size: int) -> None:
        number = len(self._begun)
        self._begun.append([size, self.hosts.now(), None])
        connection = next(iter(self._open), None) if self.flow["same"] else None
        if connection is None:
            connection = Connection(self, number)
            self._connections += 1
        self._open[connection] = number
        connection.give(size, last=not self.flow["same"])
        if not self.flow["waits"]:
            self._plan_next(due)

    def _arrived(self, number: int, at: float) -> None:
        """The receiver has the last byte of a transfer. The simulator's client knows it at once, too."""
        self._begun[number][2] = at
        if self.flow["waits"]:
            self._plan_next(at)

    def over(self, connection: Connection, failed: bool) -> None:
        """Counts what the kernel knows of a connection, and closes it."""
        number = self._open.pop(connection)
        unfinished = failed and self._begun[number][2] is None
        self._failed += unfinished
        self._count(connection.socket)
        connection.socket.close()
        if unfinished and self.flow["waits"]:
            self._plan_next(self.hosts.now())

    def _count(self, connection: socket.socket) -> None:
        info = _info(connection)
        self._note_rtt(info)
        self._with_ecn += bool(info[_OPTIONS] & _OPTION_ECN)
        for key, (form, offset) in _COUNTERS.items():
            self._counted[key] += _field(form, info, offset) or 0
        least = _field("I", info, _LEAST_RTT_US)
        if least not in (None, 0xFFFFFFFF):
            self._least = least if self._least is None else min(self._least, least)

    def _note_rtt(self, info: bytes) -> None:
        if rtt := _field("I", info, _RTT_US):
            self.rtts.append(rtt / 1e3)

    def sample(self) -> None:
        """Notes the smoothed round trip times of open connections."""
        for connection in self._open:
            self._note_rtt(_info(connection.socket))

    def result(self) -> dict[str, Any]:
        """Returns the transfers, and what the kernel counted of all connections."""
        for connection in self._open:
            self._count(connection.socket)
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.socket.close()
        return {
            **self._counted,
            "error": f"more than {_MOST_TRANSFERS} transfers" if len(self._begun) >= _MOST_TRANSFERS else None,
            "rtts_ms": self.rtts,
            "least_rtt_ms": None if self._least is None else self._least / 1e3,
            "connections": self._connections,
            "with_ecn": self._with_ecn,
            "failed": self._failed,
            "transfers": self._begun,
        }


class SessionsReceiver:
    """Counts what comes over the connections of a session, and tells its sender when a transfer has come."""

    def __init__(self, hosts: Hosts, flow: dict[str, Any]) -> None:
        self._hosts, self._flow = hosts, flow
        self.bytes = 0
        self._last = 0.0
        self._news: socket.socket | None = None
        self._listener = _listening(flow, _MOST_WAITING)
        hosts.ready.register(self._listener, selectors.EVENT_READ, self._accept)

    def _accept(self, _: int) -> None:
        connection, (_address, port) = self._listener.accept()
        connection.setblocking(False)
        came = [port - _FIRST_PORT, 0]  # the number of the transfer that comes, and how much of it has
        self._hosts.ready.register(connection, selectors.EVENT_READ, lambda _: self._take(connection, came))

    def _take(self, connection: socket.socket, came: list[int]) -> None:
        try:
            while got := connection.recv_into(self._hosts.buffer):
                self._last = self._hosts.now()
                self.bytes += got
                came[1] += got
                self._note(came)
        except BlockingIOError:
            return
        except OSError:
            pass  # a reset ends it as well
        self._hosts.ready.unregister(connection)
        connection.close()

    def _note(self, came: list[int]) -> None:
        while came[0] < len(self._flow["transfers"]) and came[1] >= self._flow["transfers"][came[0]][1]:
            self._tell(came[0])
            came[:] = [came[0] + 1, came[1] - self._flow["transfers"][came[0]][1]]

    def _tell(self, number: int) -> None:
        if self._news is None:
            self._news = socket.socket(socket.AF_UNIX)
            self._news.connect(self._flow["news"])
        self._news.sendall(_NEWS.pack(self._flow["id"], number, self._last))

    def sample(self) -> None:
        """Every segment wakes the receiver."""

    def result(self) -> dict[str, Any]:
        """Returns the number of bytes, and when the last of them came."""
        return {"bytes": self.bytes, "ended_s": None, "last_s": self._last}


class TcpReceiver:
    """Counts what comes over one connection."""

    def __init__(self, hosts: Hosts, flow: dict[str, Any]) -> None:
        self._hosts, self._flow = hosts, flow
        self._taken = 0
        self._ended: float | None = None
        self._connection: socket.socket | None = None
        self._listener = _listening(flow, 1)
        hosts.ready.register(self._listener, selectors.EVENT_READ, self._accept)

    @property
    def bytes(self) -> int:
        """What has come in order. What waits is counted unread: a read would make the kernel acknowledge."""
        if self._connection is None:
            return 0
        return self._taken + int.from_bytes(fcntl.ioctl(self._connection, termios.FIONREAD, bytes(4)), sys.byteorder)

    def _accept(self, _: int) -> None:
        self._connection, _address = self._listener.accept()
        self._connection.setblocking(False)
        self._hosts.ready.register(self._connection, selectors.EVENT_READ, self._take)

    def _take(self, _: int) -> None:
        assert self._connection is not None
        ends = self._read()
        if ends:
            self._hosts.ready.unregister(self._connection)
        elif self._taken:
            self._hold()
            # The last bytes of a transfer wake the receiver even if the FIN behind them is lost.
            wake = min(self._left or _WAKE_BYTES, _WAKE_BYTES)
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wake)
        if self._ended is None and (ends or self._left == 0):
            self._ended = self._hosts.now()

    @property
    def _left(self) -> int | None:
        """What is still to come of a transfer; `None` if there is no end."""
        return None if self._flow["size"] is None else max(self._flow["size"] - self._taken, 0)

    def _read(self) -> bool:
        """Reads all that is there; returns true at the end of the connection."""
        assert self._connection is not None
        try:
            while got := self._connection.recv_into(self._hosts.buffer):
                self._taken += got
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def _hold(self) -> None:
        """Holds a fixed window. A segment larger than all before lets it grow again (`tcp_measure_rcv_mss`)."""
        assert self._connection is not None
        if self._flow["window"] is None:
            return
        with contextlib.suppress(OSError):
            self._connection.setsockopt(socket.IPPROTO_TCP, _TCP_WINDOW_CLAMP, self._flow["window"])

    def sample(self) -> None:
        """Reads nothing."""
        if self._taken and self._ended is None:
            self._hold()

    def result(self) -> dict[str, Any]:
        """Returns the number of bytes, and when the last of a transfer came."""
        return {"bytes": self.bytes, "ended_s": self._ended}


def _connected(flow: dict[str, Any], port: int) -> socket.socket:
    """Returns the socket of a connection to the receiver of a flow, which begins its handshake; port 0 is any."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1 if port else 0)  # sessions of a node have the same ports
    made.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, flow["cc"].encode())
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, flow["max_segment"])
    made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, flow["tos"])
    # Twice this, with what the kernel needs beside the data; left alone it would not grow in a long recovery.
    made.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, flow["buffer"])
    made.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _NOT_SENT_BYTES)
    made.setblocking(False)
    made.bind((flow["from"], port))
    made.connect_ex((flow["to"], PORT))
    return made


def _listening(flow: dict[str, Any], waiting: int) -> socket.socket:
    """Returns the socket at which a receiver accepts connections."""
    made = socket.socket()
    if flow["cc"] in _RECEIVED:
        made.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, flow["cc"].encode())
    if flow["window"] is not None:
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, flow["window"])
    made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, flow["tos"])  # the connections have it from here
    made.bind((flow["to"], PORT))
    made.listen(waiting)
    return made


def _info(connection: socket.socket) -> bytes:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)


def _field(form: str, info: bytes, offset: int) -> int | None:
    """Returns a field of `tcp_info`; `None` if this kernel does not have it."""
    return int(struct.unpack_from(form, info, offset)[0]) if len(info) >= offset + struct.calcsize(form) else None


def _begin(file: Path) -> float:
    """Waits for the file which says when the run begins."""
    while True:
        with contextlib.suppress(OSError, ValueError):
            return float(file.read_text(encoding="ascii"))
        time.sleep(0.005)


def main() -> None:
    """Plays the hosts which the file describes."""
    wanted = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    # Real-time priority, as the emulator has; without the right to it, the priority stays as it is.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    hosts = Hosts(time.monotonic())
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    if wanted["cgroup"]:  # sockets belong to the cgroup in which they are made
        Path(wanted["cgroup"], "cgroup.procs").write_text("0", encoding="ascii")
    hosts.hear(wanted["news"])
    agent = Agent(hosts, wanted) if wanted["agent"] else None
    if any(flow["over"] == "stack" for flow in (*wanted["receive"], *wanted["send"])):
        _host_stacks()
    receivers = {flow["id"]: _RECEIVERS[flow["over"]](hosts, flow) for flow in wanted["receive"]}
    print("listening", flush=True)
    hosts.begin = _begin(Path(wanted["begin"]))
    senders = {flow["id"]: _SENDERS[flow["over"]](hosts, flow) for flow in wanted["send"]}
    found = _played(hosts, senders, receivers, wanted["duration_s"])
    if agent is not None:
        found["agent"] = agent.result()
    json.dump(found, sys.stdout)


_SENDERS: dict[str, Any] = {"tcp": TcpSender, "udp": UdpSender, "video": VideoSender, "sessions": Sessions}
_RECEIVERS: dict[str, Any] = {
    "tcp": TcpReceiver,
    "udp": UdpReceiver,
    "video": UdpReceiver,
    "sessions": SessionsReceiver,
}


def _host_stacks() -> None:
    """Adds the ends of hosted stacks, which need the compiled module."""
    from penstock.wire.hosted import StackReceiver, StackSender

    _SENDERS["stack"], _RECEIVERS["stack"] = StackSender, StackReceiver


def _played(
    hosts: Hosts,
    senders: dict[int, Any],
    receivers: dict[int, Any],
    end: float,
) -> dict[str, Any]:
    """Plays until the end, and returns what hosts counted in all and at the end of each second."""
    seconds: list[list[Any]] = []

    def sample(number: int) -> None:
        for one in (*senders.values(), *receivers.values()):
            one.sample()
        if number % round(1 / SAMPLE_S) == 0:
            seconds.append([hosts.now(), {flow: one.bytes for flow, one in receivers.items()}])
        hosts.at((number + 1) * SAMPLE_S, lambda: sample(number + 1))

    hosts.at(0.0, lambda: sample(0))
    hosts.run(end)
    for one in (*senders.values(), *receivers.values()):
        one.sample()
    seconds.append([hosts.now(), {flow: one.bytes for flow, one in receivers.items()}])
    return {
        "sent": {flow: one.result() for flow, one in senders.items()},
        "received": {flow: one.result() for flow, one in receivers.items()},
        "seconds": seconds,
    }


if __name__ == "__main__":
    main()
