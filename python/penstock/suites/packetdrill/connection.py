"""One simulated connection of a script: its endpoint, what its socket knows, and numbers as the script writes them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from penstock.engine import Endpoint
from penstock.suites.packetdrill.script import Packet

__all__ = ["Connection", "Mismatch", "Sent"]

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
STATES = {"closed": 7, "listen": 10, "syn-sent": 2, "syn-received": 3, "established": 1}


class Mismatch(Exception):  # noqa: N818 - it is the verdict of a script, not an error
    """The simulated TCP does not do what the script says; the text says where they differ."""


@dataclass(frozen=True)
class Sent:
    """A segment that the endpoint sent, and when, in nanoseconds."""

    at: int
    connection: Connection
    flags: int
    seq: int
    length: int
    ack: int
    window: int
    ecn: int
    syn: tuple[int, int | None, bool] | None
    timestamps: tuple[int, int] | None
    sacks: list[tuple[int, int]]
    accecn: tuple[bool, list[int]] | None


@dataclass
class Clocks:
    """Timestamps: those of the script beside those of the endpoint, in microseconds, and the first of both."""

    known: dict[int, int] = field(default_factory=dict)
    first: tuple[int, int] | None = None

    def learn(self, script: int, live: int) -> None:
        self.known[script] = live
        self.first = self.first or (script, live)


class Connection:
    """An endpoint with the state of its socket. Sequence numbers of both sides are those of the script."""

    def __init__(self, options: dict[str, Any], client: bool, iss: int) -> None:
        self.endpoint = Endpoint(json.dumps(options), client, iss)
        self.client = client
        self.clocks = Clocks()
        self.taken = 0
        self.by_hand = False
        self.closing = False
        self.no_reads = False
        self.orphan = False
        self.error: str | None = None
        self.opened = False
        self.heard_at = 0
        self.iss = iss
        # Bytes that the endpoint was given, and that have left it.
        self.given = 0
        self.sent_to = 0
        # Microseconds for which there was something to send, and for which only the peer's window held it back.
        self.busy_us = 0.0
        self.limited_us = 0.0
        self.mss = 0

    @property
    def unread(self) -> int:
        """Bytes that the application has not read."""
        return self.endpoint.delivered - self.taken

    @property
    def established(self) -> bool:
        """True once the handshake is complete."""
        return self.opened or self.endpoint.state == "established"

    def state(self) -> int:
        """Returns the state as `TCP_INFO` tells it."""
        endpoint = self.endpoint
        if endpoint.state != "established":
            return STATES[endpoint.state]
        ours = 2 if self.closing and endpoint.all_acked else 1 if self.closing else 0
        if endpoint.peer_finished:
            # CLOSE_WAIT, LAST_ACK (or CLOSING), and TIME_WAIT or CLOSED
            return (8, 9, 7)[ours]
        return (1, 4, 5)[ours]

    def arrive(self, packet: Packet, now: int) -> None:
        """Gives the endpoint a segment of the script."""
        options = {option.kind: option.value for option in packet.options or ()}
        syn = timestamps = accecn = None
        if packet.flags & SYN:
            mss, scale = options.get("mss"), options.get("wscale")
            syn = (int(mss[0]) if mss else 0, int(scale[0]) if scale else None, "sackOK" in options)
        if "TS" in options:
            val, ecr = (int(value) for value in options["TS"])
            timestamps = (val, self._echo(ecr, packet))
        edges = [int(edge) for edge in options.get("sack", ())]
        sacks = list(zip(edges[::2], edges[1::2], strict=True))
        if "ECN" in options:
            fields = options["ECN"]
            accecn = (fields[0] == "e1b", [int(count) for count in fields[1::2]])
        if packet.length:
            self.heard_at = now
        window, ack = packet.window or 0, packet.ack or 0
        seq, length, ecn = packet.seq, packet.length, packet.ecn or 0
        self.endpoint.arrive(now, packet.flags, seq, length, ack, window, ecn, syn, timestamps, sacks, accecn)
        if not self.by_hand and self.endpoint.state in ("syn-received", "established"):
            self.endpoint.read_by_hand()
            self.by_hand = True
        if not self.opened and self.endpoint.state == "established":
            self.opened, self.heard_at = True, now
        if packet.flags & RST and self.endpoint.state == "closed" and self.error is None:
            self.error = "ECONNREFUSED" if not self.opened else "EPIPE" if self.endpoint.peer_finished else "ECONNRESET"

    def _echo(self, ecr: int, packet: Packet) -> int:
        """Returns the timestamp of the endpoint that one of the script means."""
        if not packet.flags & ACK:
            return 0
        if ecr in self.clocks.known:
            return self.clocks.known[ecr]
        if self.clocks.first is None:
            raise Mismatch(f"the echo {ecr} is of no timestamp that was sent")
        script, live = self.clocks.first
        return live + (ecr - script) * 1000

    def transmit(self, now: int) -> list[Sent]:
        """Takes all segments that the endpoint sends now."""
        sent = []
        while (segment := self.endpoint.transmit(now)) is not None:
            sent.append(Sent(now, self, *segment))
            self.sent_to = max(self.sent_to, sent[-1].seq + sent[-1].length - self.iss - 1)
        return sent

    def read(self, count: int) -> int:
        """Reads up to `count` bytes."""
        count = min(count, self.unread)
        self.taken += count
        self.endpoint.read(count)
        return count

    def write(self, count: int) -> None:
        """Writes `count` bytes."""
        self.given += count
        self.endpoint.write(count)

    def shut(self) -> None:
        """Closes the sending direction."""
        if not self.closing:
            self.closing = True
            self.endpoint.close()

    def close(self) -> None:
        """Closes the socket: with a reset if data was not read."""
        self.orphan = True
        state = self.endpoint.state
        if state == "syn-sent":
            self.endpoint.abort()
            self.transmit(0)  # Linux says nothing to a peer that has not answered
        elif state != "closed" and self.unread > 0:
            self.endpoint.abort()
        elif state != "closed":
            self.shut()

    def info(self) -> dict[str, int]:
        """Returns the fields of `TCP_INFO`."""
        told = {f"tcpi_{name}": value for name, value in json.loads(self.endpoint.info()).items()}
        return {
            **told,
            "tcpi_state": self.state(),
            "tcpi_advmss": self.mss,
            "tcpi_busy_time": round(self.busy_us),
            "tcpi_rwnd_limited": round(self.limited_us),
            "tcpi_sndbuf_limited": 0,
        }

    def elapse(self, us: float) -> None:
        """Counts the time in which nothing happened."""
        if us > 0 and self.given > self.endpoint.acked:
            told = json.loads(self.endpoint.info())
            self.busy_us += us if told["busy"] else 0
            self.limited_us += us if told["window_limited"] else 0
