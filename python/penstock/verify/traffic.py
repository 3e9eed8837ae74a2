"""Bulk TCP over the kernel's sockets: a sender and a receiver, each a program that prints one JSON object.

The file is run by its path and imports nothing of the package, so that it starts quickly:

    python -I traffic.py receive '{"address": "10.77.0.2", "port": 5201, "flows": 2, "limit_s": 40, "window": 1000000}'
    python -I traffic.py send    '{"address": "10.77.0.2", "port": 5201, "starts_s": [0, 0.05], "cc": "reno",
                                   "duration_s": 30, "buffer": 2000000}'

The receiver prints `listening` when it is ready, and exits when all connections have ended. Times are in seconds of
CLOCK_MONOTONIC.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import socket
import struct
import sys
import termios
import time
from typing import Any

SAMPLE_S = 0.1
_CHUNK = 1 << 16
# The receive window is the same from the first segment to the last: Linux acknowledges every segment at once while its
# window grows, and none at once while it shrinks. SO_RCVBUF counts half of the buffer, and half of the buffer is what a
# new connection has as window; with the first data the kernel learns how much of it is payload and would let the window
# grow, unless it is clamped then.
# The receiver is woken for so many bytes, and reads what there is whenever it takes a sample. Linux acknowledges at
# once as long as fewer bytes than these are unread, so that waking seldom delays no ACK.
_WAKE_BYTES = 1 << 15
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_TCP_WINDOW_CLAMP, _TCP_CONGESTION, _TCP_NOTSENT_LOWAT = 10, 13, 25
# The send buffer never is what limits a flow. Left alone it follows the congestion window, but not while more than that
# is outstanding, as in a long recovery without SACK, which then ends for want of data. So many bytes wait unsent.
_NOT_SENT_BYTES = 1 << 16
# struct tcp_info of <linux/tcp.h>: offsets of 32-bit fields.
_RTT_US, _SSTHRESH, _CWND, _RETRANSMITS = 68, 76, 80, 100


def main() -> None:
    """Runs the sender or the receiver, which the first argument selects."""
    work = {"send": send, "receive": receive}[sys.argv[1]]
    # Real-time priority, as the emulator has; without the right to it, the priority stays as it is.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    json.dump(work(json.loads(sys.argv[2])), sys.stdout)


def receive(wanted: dict[str, Any]) -> dict[str, Any]:
    """Counts the bytes of each connection. A row of `samples` is a time and the bytes of each connection until then."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, wanted["window"])
    listener.bind((wanted["address"], wanted["port"]))
    listener.listen(wanted["flows"])
    print("listening", flush=True)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ, None)
    buffer = bytearray(_CHUNK)
    counts: list[int] = []
    samples: list[list[float]] = []
    open_, end = 0, time.monotonic() + wanted["limit_s"]
    due = 0.0
    while (now := time.monotonic()) < end and (open_ or len(counts) < wanted["flows"]):
        if counts and now >= due:
            read = list(counts)
            for key in waiting.get_map().values():
                if key.data is not None:
                    read[key.data] += _unread(key.fileobj)
            samples.append([now, *read])
            due = max(due, now - SAMPLE_S) + SAMPLE_S
        for key, _ in waiting.select(max(due - now, 0) if counts else SAMPLE_S):
            if key.data is None:
                connection, _ = listener.accept()
                waiting.register(connection, selectors.EVENT_READ, len(counts))
                counts.append(0)
                open_ += 1
            elif got := _take(key.fileobj, buffer):
                if not counts[key.data]:
                    _settle(key.fileobj, wanted["window"])
                counts[key.data] += got
            else:
                waiting.unregister(key.fileobj)
                open_ -= 1
    return {"samples": samples, "bytes": counts}


def _settle(connection: Any, window: int) -> None:
    """Holds the window of a connection whose first data has come, and lets the receiver sleep longer."""
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_WINDOW_CLAMP, window)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _WAKE_BYTES)


def _take(connection: Any, buffer: bytearray) -> int:
    """Returns the number of bytes read, which there are; 0 at the end of the connection."""
    try:
        return int(connection.recv_into(buffer))
    except ConnectionError:
        return 0


def _unread(connection: Any) -> int:
    """Returns the number of bytes that have come in order and wait. To read them would make the kernel acknowledge."""
    return int.from_bytes(fcntl.ioctl(connection, termios.FIONREAD, bytes(4)), sys.byteorder)


def send(wanted: dict[str, Any]) -> dict[str, Any]:
    """Sends on each connection until the end. A row of `windows` is time, flow, cwnd, ssthresh, RTT in ms."""
    begin = time.monotonic()
    end = begin + wanted["duration_s"]
    starts = list(enumerate(wanted["starts_s"]))
    waiting = selectors.DefaultSelector()
    flows: dict[int, socket.socket] = {}
    windows: list[list[float]] = []
    data = bytes(_CHUNK)
    due = begin
    while (now := time.monotonic()) < end:
        while starts and now >= begin + starts[0][1]:
            flow, _ = starts.pop(0)
            flows[flow] = _connect(wanted)
            waiting.register(flows[flow], selectors.EVENT_WRITE)
        if now >= due:
            windows += [[now, flow, *_windows(connection)] for flow, connection in flows.items()]
            due = now + SAMPLE_S
        next_start = begin + starts[0][1] - now if starts else SAMPLE_S
        for key, _ in waiting.select(min(next_start, SAMPLE_S)):
            _give(key.fileobj, data)
    retransmits = [_info(connection, _RETRANSMITS) for connection in flows.values()]
    for connection in flows.values():
        # Unsent data is discarded: a reset ends both sides at once.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    return {"begin": begin, "windows": windows, "retransmits": retransmits}


def _connect(wanted: dict[str, Any]) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, wanted["cc"].encode())
    connection.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, wanted["buffer"])
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _NOT_SENT_BYTES)
    connection.setblocking(False)
    connection.connect_ex((wanted["address"], wanted["port"]))
    return connection


def _give(connection: Any, data: bytes) -> None:
    with contextlib.suppress(BlockingIOError):
        connection.send(data)


def _info(connection: socket.socket, offset: int) -> int:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, offset + 4)
    return int(struct.unpack_from("I", info, offset)[0])


def _windows(connection: socket.socket) -> tuple[int, int, float]:
    return _info(connection, _CWND), _info(connection, _SSTHRESH), _info(connection, _RTT_US) / 1e3


if __name__ == "__main__":
    main()
