"""The sockets of a script: what Linux does between the system calls of an application and its TCP.

Only the interface is made here: descriptors, blocking, the states that calls report. Data, segments and timers are
those of the
simulated TCP. A call returns what it returned, or `None` while it blocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.suites.packetdrill.connection import FIN, RST, SYN, Connection
from penstock.suites.packetdrill.errors import ErrorQueue
from penstock.suites.packetdrill.host import Host
from penstock.suites.packetdrill.ready import Epoll
from penstock.suites.packetdrill.script import Call, GrammarError, Packet
from penstock.suites.packetdrill.values import ANY, Fields, Value, names, number

__all__ = ["Outcome", "Sockets"]

_MSS = 1460  # of a path of 1500 bytes
_FRAGMENTS = 17  # pages of one packet (MAX_SKB_FRAGS)


@dataclass(frozen=True)
class Outcome:
    """What a call returned: a number, with an error if it is -1."""

    value: int
    error: str | None = None


OK = Outcome(0)


@dataclass
class Socket:
    """One socket."""

    nonblocking: bool = False
    mss: int = _MSS
    listens: bool = False
    bound: bool = False
    connection: Connection | None = None
    waiting: list[Connection] = field(default_factory=list)
    errors: ErrorQueue = field(default_factory=ErrorQueue)
    # Parts of the stream that may not share a segment with what comes before; the endpoint gets one after the other.
    # Each is a number of bytes, and whether it waits until everything before it is acknowledged (Nagle's algorithm).
    held: deque[tuple[int, bool]] = field(default_factory=deque)
    written: int = 0
    ends: bool = False
    delivered: int = 0


class Sockets:
    """All sockets of a script, and its connections."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.now = 0
        self.sockets: dict[int, Socket] = {}
        self.connections: list[Connection] = []
        self.epolls: dict[int, Epoll] = {}
        self.iss = 0
        self.tolerance_us = 4000
        self.calls: dict[str, Callable[[Call], Outcome | None]] = {
            name.removeprefix("_call_"): getattr(self, name) for name in dir(self) if name.startswith("_call_")
        }

    @property
    def current(self) -> Connection | None:
        """The connection that a packet of the script belongs to: the newest."""
        return self.connections[-1] if self.connections else None

    def arrive(self, packet: Packet) -> Connection:
        """Gives a segment to its connection, which a listener makes for a SYN.

        Raises `GrammarError` if there is no connection for it.
        """
        current = self.current
        opens = packet.flags & (SYN | RST | FIN) == SYN and not packet.flags & 0x10
        listener = next((socket for socket in self.sockets.values() if socket.listens), None)
        fresh = current is None or (current.opened and current.orphan) or current.endpoint.state == "closed"
        if opens and listener is not None and fresh:
            options = self.host.options(False, listener.mss)
            current = Connection(options, False, self.iss)
            current.mss = listener.mss
            self.connections.append(current)
            listener.waiting.append(current)
        if current is None:
            raise GrammarError("a packet without a socket for it")
        current.arrive(packet, self.now)
        return current

    def moved(self) -> bool:
        """Tells sockets what segments have changed; true if an endpoint was given more to send."""
        more = False
        for descriptor, socket in self.sockets.items():
            connection = socket.connection
            if connection is None:
                continue
            sent, acked = connection.sent_to, connection.endpoint.acked
            if socket.held and (acked if socket.held[0][1] else sent) >= connection.given:
                connection.write(socket.held.popleft()[0])
                more = True
            socket.errors.moved(sent, acked, self.now / 1000)
            arrived = connection.endpoint.delivered
            if socket.errors.woken or arrived > socket.delivered:
                socket.errors.woken, socket.delivered = False, arrived
                for epoll in self.epolls.values():
                    epoll.wake(descriptor)
        return more

    def call(self, call: Call) -> Outcome | None:
        """Makes a system call, also again while it blocks.

        Raises `GrammarError` for a call that is not known.
        """
        if call.name not in self.calls:
            raise GrammarError(f"no call {call.name}()")
        return self.calls[call.name](call)

    def _socket(self, call: Call) -> Socket:
        return self.sockets[number(call.arguments[0])]

    def _call_socket(self, call: Call) -> Outcome:
        descriptor = number(call.result)
        self.sockets[descriptor] = Socket(nonblocking="SOCK_NONBLOCK" in names(call.arguments[1]))
        return Outcome(descriptor)

    def _call_bind(self, call: Call) -> Outcome:
        self._socket(call).bound = True
        return OK

    def _call_listen(self, call: Call) -> Outcome:
        self._socket(call).listens = True
        return OK

    def _call_accept(self, call: Call) -> Outcome | None:
        listener = self._socket(call)
        ready = next((waiting for waiting in listener.waiting if waiting.opened), None)
        if ready is None:
            return Outcome(-1, "EAGAIN") if listener.nonblocking else None
        listener.waiting.remove(ready)
        descriptor = number(call.result)
        errors = ErrorQueue(zerocopy=listener.errors.zerocopy)
        self.sockets[descriptor] = Socket(mss=listener.mss, connection=ready, errors=errors)
        return Outcome(descriptor)

    def _call_connect(self, call: Call) -> Outcome | None:
        socket = self._socket(call)
        if socket.connection is None:
            socket.connection = Connection(self.host.options(True, socket.mss), True, self.iss)
            self.connections.append(socket.connection)
            socket.connection.mss = socket.mss
            socket.connection.endpoint.open()
            if socket.nonblocking:
                return Outcome(-1, "EINPROGRESS")
        if socket.connection.error:
            return Outcome(-1, self._take_error(socket.connection))
        return OK if socket.connection.established else None

    @staticmethod
    def _take_error(connection: Connection) -> str:
        error, connection.error = connection.error or "", ""
        return error

    def _call_fcntl(self, call: Call) -> Outcome:
        socket = self._socket(call)
        if names(call.arguments[1]) == {"F_GETFL"}:
            return Outcome(2 | (0x800 if socket.nonblocking else 0))
        socket.nonblocking = "O_NONBLOCK" in names(call.arguments[2])
        return OK

    def _call_setsockopt(self, call: Call) -> Outcome:
        socket, name = self._socket(call), call.arguments[2]
        if name == "TCP_MAXSEG":
            socket.mss = number(call.arguments[3])
        elif name == "SO_ZEROCOPY":
            socket.errors.zerocopy = number(call.arguments[3]) == 1
        elif name == "SO_TIMESTAMPING":
            given = call.arguments[3]
            socket.errors.stamps = names(given[0]) if isinstance(given, list) else set()
            socket.errors.counted_from = socket.written
        elif name not in (
            "TCP_INQ",
            "SO_REUSEADDR",
            "SO_SNDBUF",
            "TCP_NODELAY",
            "IP_MTU_DISCOVER",
            "IP_TOS",
            "SO_MARK",
        ):
            raise GrammarError(f"no option {name}")
        return OK

    def _call_getsockopt(self, call: Call) -> Outcome:
        socket, name = self._socket(call), call.arguments[2]
        connection = socket.connection
        if name == "SO_ERROR":
            return self._told(call, 0 if connection is None or not connection.error else 1)
        if name == "TCP_MAXSEG":
            return self._told(call, socket.mss if connection is None else connection.info()["tcpi_snd_mss"])
        raise GrammarError(f"no option {name}")

    @staticmethod
    def _told(call: Call, value: int, place: int = 3) -> Outcome:
        """Compares what a call writes for its caller."""
        wanted = number(call.arguments[place])
        return OK if wanted == value else Outcome(-1, f"[{value}] instead of [{wanted}]")

    def _call_read(self, call: Call) -> Outcome | None:
        return self._read(call, number(call.arguments[2]), set())

    def _call_recv(self, call: Call) -> Outcome | None:
        return self._read(call, number(call.arguments[2]), names(call.arguments[3]))

    _call_recvfrom = _call_recv

    def _call_recvmsg(self, call: Call) -> Outcome | None:
        message = call.arguments[1]
        if not isinstance(message, Fields):
            raise GrammarError("recvmsg() without a message")
        control = message.named.get("msg_control", [])
        if "MSG_ERRQUEUE" in names(call.arguments[2]):
            return self._error(call, control)
        outcome = self._read(call, _length(message), names(call.arguments[2]))
        connection = self._socket(call).connection
        if outcome is not None and connection is not None and isinstance(control, list):
            for item in control:
                if isinstance(item, Fields) and item.named.get("cmsg_type") == "TCP_CM_INQ":
                    unread = connection.unread + int(connection.endpoint.peer_finished and connection.unread == 0)
                    if item.named.get("cmsg_data") != unread:
                        return Outcome(-1, f"TCP_CM_INQ {unread}")
        return outcome

    def _error(self, call: Call, control: Value) -> Outcome:
        messages = self._socket(call).errors.messages
        if not messages:
            return Outcome(-1, "EAGAIN")
        differs = messages.popleft().differs(control, self.tolerance_us)
        return Outcome(-1, differs) if differs else OK

    def _read(self, call: Call, count: int, flags: set[str]) -> Outcome | None:
        socket = self._socket(call)
        if call.arguments[1] == "NULL":
            return Outcome(-1, "EFAULT")
        connection = socket.connection
        if connection is None:
            return Outcome(-1, "ENOTCONN")
        if connection.error:
            return Outcome(-1, self._take_error(connection))
        if connection.unread > 0:
            return Outcome(connection.read(count))
        if connection.endpoint.peer_finished or connection.no_reads or connection.endpoint.state == "closed":
            return OK
        return Outcome(-1, "EAGAIN") if socket.nonblocking or "MSG_DONTWAIT" in flags else None

    def _call_write(self, call: Call) -> Outcome | None:
        flags = names(call.arguments[3]) if len(call.arguments) > 3 else set()
        return self._write(call, number(call.arguments[2]), flags)

    _call_send = _call_write
    _call_sendto = _call_write

    def _call_sendmsg(self, call: Call) -> Outcome | None:
        message = call.arguments[1]
        if not isinstance(message, Fields):
            raise GrammarError("sendmsg() without a message")
        flags = names(call.arguments[2])
        outcome = self._write(
            call, _length(message, 0, _FRAGMENTS) if "MSG_ZEROCOPY" in flags else _length(message), flags
        )
        rest = _length(message, _FRAGMENTS)
        if "MSG_ZEROCOPY" not in flags or rest == 0 or outcome is None or outcome.error:
            return outcome
        # A packet holds no more pages than that; the next one is short, and waits.
        socket = self._socket(call)
        at = _FRAGMENTS
        while (part := _length(message, at, at + _FRAGMENTS)) > 0:
            socket.held.append((part, True))
            at += _FRAGMENTS
        socket.written += rest
        socket.errors.writes[-1].end = socket.written
        return Outcome(outcome.value + rest)

    def _call_sendfile(self, call: Call) -> Outcome | None:
        return self._write(call, number(call.arguments[3]), set())

    def _call_open(self, call: Call) -> Outcome:
        return Outcome(number(call.result))

    def _write(self, call: Call, count: int, flags: set[str]) -> Outcome | None:
        socket = self._socket(call)
        connection = socket.connection
        if connection is None or connection.closing:
            return Outcome(-1, "EPIPE")
        if call.arguments[1] == "NULL":
            return Outcome(-1, "EFAULT")
        if connection.error is not None:
            return Outcome(-1, self._take_error(connection) or "EPIPE")
        if count > 0:
            socket.written += count
            socket.errors.wrote(socket.written, "MSG_ZEROCOPY" in flags)
            self._give(socket, connection, count, ends="MSG_EOR" in flags)
        return Outcome(count)

    @staticmethod
    def _give(socket: Socket, connection: Connection, count: int, ends: bool) -> None:
        """Gives data to the endpoint, or holds it behind the end of a record that has not left."""
        if socket.ends and (socket.held or connection.sent_to < connection.given):
            socket.held.append((count, False))
        elif socket.held:
            last, waits = socket.held.pop()
            socket.held.append((last + count, waits))
        else:
            connection.write(count)
        socket.ends = ends

    def _call_epoll_create(self, call: Call) -> Outcome:
        descriptor = number(call.result)
        self.epolls[descriptor] = Epoll()
        return Outcome(descriptor)

    def _call_epoll_ctl(self, call: Call) -> Outcome:
        given = call.arguments[3]
        events = names(given.named["events"]) if isinstance(given, Fields) else set()
        self.epolls[number(call.arguments[0])].control(call.arguments[1], number(call.arguments[2]), events)
        return OK

    def _call_epoll_wait(self, call: Call) -> Outcome | None:
        epoll, wanted = self.epolls[number(call.arguments[0])], call.arguments[1]
        told = [ready for one, socket in self.sockets.items() if (ready := epoll.ready(one, self._state(socket)))]
        if not told:
            return OK if call.arguments[3] == 0 else None
        events = names(wanted.named["events"]) if isinstance(wanted, Fields) else set()
        return Outcome(1) if events == told[0] else Outcome(-1, "|".join(sorted(told[0])))

    @staticmethod
    def _state(socket: Socket) -> set[str]:
        """Returns what a socket is ready for."""
        state = {"EPOLLERR"} if socket.errors.messages else set()
        connection = socket.connection
        if connection is not None and connection.established:
            state |= {"EPOLLOUT"}
            if connection.unread > 0 or connection.endpoint.peer_finished:
                state |= {"EPOLLIN"}
        return state

    def _call_shutdown(self, call: Call) -> Outcome:
        connection = self._socket(call).connection
        if connection is None:
            return Outcome(-1, "ENOTCONN")
        how = names(call.arguments[1])
        connection.no_reads = connection.no_reads or bool(how & {"SHUT_RD", "SHUT_RDWR"})
        if how & {"SHUT_WR", "SHUT_RDWR"}:
            connection.shut()
        return OK

    def _call_ioctl(self, call: Call) -> Outcome:
        connection = self._socket(call).connection
        if connection is None or call.arguments[1] != "SIOCINQ":
            raise GrammarError(f"no ioctl {call.arguments[1]}")
        return self._told(call, connection.unread, 2)

    def _call_close(self, call: Call) -> Outcome:
        descriptor = number(call.arguments[0])
        if descriptor not in self.sockets:
            return OK  # a file or an epoll
        socket = self.sockets.pop(descriptor)
        for connection in [*socket.waiting, socket.connection]:
            if connection is not None:
                connection.close()
        return OK


def _length(message: Fields, begin: int = 0, end: int | None = None) -> int:
    """Returns the bytes of the parts of a message from `begin` to `end`."""
    parts = message.named.get("msg_iov", [])
    if not isinstance(parts, list):
        raise GrammarError("a message without parts")
    return sum(_part(part) for part in parts[begin:end])


def _part(part: Value) -> int:
    if not isinstance(part, Fields) or part.plain[0] != ANY:
        raise GrammarError("a part of a message is {..., BYTES}")
    return number(part.plain[1])
