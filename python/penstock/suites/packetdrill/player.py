"""Plays a script against the simulated TCP in virtual time, and compares.

Times, tolerances and what is compared follow packetdrill (`run.c`, `run_packet.c`). It differs in what the simulated
TCP does
not have:

- a flight may leave in other packets than those which Linux cuts late: segments in a row that leave at the same time
  count as
  one packet of the script, as with packetdrill's remote mode;
- PSH is not compared, because the simulated stream has no writes, nor are the padding and the order of options;
- a segment has three SACK blocks at most.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from penstock.suites.packetdrill import code
from penstock.suites.packetdrill.connection import FIN, PSH, SYN, Connection, Mismatch, Sent
from penstock.suites.packetdrill.host import Host
from penstock.suites.packetdrill.script import Call, Code, Command, Event, Packet, Script
from penstock.suites.packetdrill.sockets import Outcome, Sockets

__all__ = ["Player"]

_TOLERANCE_US = 4000
_TOLERANCE_PERCENT = 12.5
# How long a packet of the script is waited for beyond its time.
_PATIENCE_US = 2_000_000
_NEVER_US = 3_600_000_000
# A packet that a script lets arrive is always a little late: no round trip takes as long as another to the nanosecond.
_LATE_US = 10
# Values that code may use, as packetdrill defines them.
_NAMES = {
    "TCP_CA_Open": 0, "TCP_CA_Disorder": 1, "TCP_CA_CWR": 2, "TCP_CA_Recovery": 3, "TCP_CA_Loss": 4,
    "TCP_ESTABLISHED": 1, "TCP_SYN_SENT": 2, "TCP_SYN_RECV": 3, "TCP_FIN_WAIT1": 4, "TCP_FIN_WAIT2": 5,
    "TCP_TIME_WAIT": 6, "TCP_CLOSE": 7, "TCP_CLOSE_WAIT": 8, "TCP_LAST_ACK": 9, "TCP_LISTEN": 10, "TCP_CLOSING": 11,
}  # fmt: skip


class Player:
    """The play of one script."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.host = Host()
        for text in script.before:
            self.host.take(text)
        self.sockets = Sockets(self.host)
        self.sent: deque[Sent] = deque()
        self.now_us = 0.0
        self.before_us: int | None = None
        self.blocked: tuple[Event, Call, int | None] | None = None
        self.names: dict[str, Any] = dict(_NAMES)
        self.tolerance_us = int(script.options.get("tolerance_usecs", _TOLERANCE_US))
        self.sockets.tolerance_us = self.tolerance_us

    def play(self) -> None:
        """Plays all events.

        Raises `Mismatch` where the simulated TCP does something else, and `GrammarError` for what the player does not
        know.
        """
        for number, event in enumerate(self.script.events):
            try:
                self._event(number, event)
            except Mismatch as mismatch:
                raise Mismatch(f"line {event.line}: {mismatch}") from None
        if self.blocked is not None:
            self._finish_blocked()

    def _event(self, number: int, event: Event) -> None:
        start, end = self._times(event)
        match event.action:
            case Packet(inbound=False) as packet:
                self._expect(packet, event, start, end)
            case Packet() as packet:
                self._advance(start + _LATE_US)
                self._learn_iss(number)
                self._on(self.sockets.arrive(packet))
            case Call() as call:
                if self.blocked is not None:
                    self._finish_blocked()
                    start, end = max(start, round(self.now_us)), end
                self._advance(start)
                self._learn_iss(number)
                self._call(event, call, end)
            case Code(text):
                self._advance(start)
                self._run(text)
            case Command(text):
                self._advance(start)
                self.host.take(text)
        self.before_us = start

    def _times(self, event: Event) -> tuple[int, int | None]:
        """Returns the begin and the end of an event in microseconds."""
        when = event.when
        offset = round(self.now_us) if when.kind != "absolute" else 0
        return when.start + offset, None if when.end is None else when.end + offset

    def _learn_iss(self, number: int) -> None:
        """Gives the next connection the number of the SYN that the script expects."""
        for event in self.script.events[number:]:
            packet = event.action
            if isinstance(packet, Packet) and not packet.inbound and packet.flags & SYN:
                self.sockets.iss = packet.seq
                return

    def _advance(self, to_us: float) -> None:
        """Lets time pass, with all timers on the way."""
        while True:
            due = [(at, one) for one in self.sockets.connections if (at := one.endpoint.deadline()) is not None]
            at, connection = min(due, key=lambda pair: pair[0], default=(None, None))
            if at is None or connection is None or at > to_us * 1000:
                break
            self._pass(at / 1000)
            connection.endpoint.on_timer(round(self.now_us * 1000))
            self._on(connection)
        self._pass(to_us)
        self.sockets.now = round(self.now_us * 1000)

    def _pass(self, to_us: float) -> None:
        """Moves the time on while nothing happens."""
        for connection in self.sockets.connections:
            connection.elapse(to_us - self.now_us)
        self.now_us = max(self.now_us, to_us)

    def _on(self, connection: Connection) -> None:
        """Takes what a connection sends after something happened, and ends a call that waited for it."""
        self.sockets.now = round(self.now_us * 1000)
        self.sent.extend(connection.transmit(self.sockets.now))
        self._drain()
        if self.blocked is not None:
            _, call, end = self.blocked
            outcome = self.sockets.call(call)
            if outcome is not None:
                self.blocked = None
                self._returned(call, outcome)
                self._in_time("the end of the call", self.now_us, end or 0, end or 0)
                self._drain()

    def _drain(self) -> None:
        """Takes what all connections send, until none has more."""
        while True:
            for connection in self.sockets.connections:
                self.sent.extend(connection.transmit(self.sockets.now))
            if not self.sockets.moved():
                return

    def _call(self, event: Event, call: Call, end: int | None) -> None:
        outcome = self.sockets.call(call)
        self._drain()
        if outcome is not None:
            self._returned(call, outcome)
        elif call.blocks:
            self.blocked = (event, call, end)
        else:
            raise Mismatch(f"{call.name}() blocks")

    def _finish_blocked(self) -> None:
        """Waits for the call that blocks."""
        limit = self.now_us + _PATIENCE_US
        while self.blocked is not None:
            due = [at for one in self.sockets.connections if (at := one.endpoint.deadline()) is not None]
            if not due or min(due) > limit * 1000:
                raise Mismatch(f"{self.blocked[1].name}() of line {self.blocked[0].line} does not return")
            self._advance(min(due) / 1000)

    @staticmethod
    def _returned(call: Call, outcome: Outcome) -> None:
        wanted = call.result
        error = None if outcome.error in (None, call.error) else outcome.error
        if wanted != "..." and (outcome.value != wanted or error is not None or (call.error and not outcome.error)):
            got = f"{outcome.value} {outcome.error}" if outcome.error else str(outcome.value)
            raise Mismatch(f"{call.name}() returned {got}, not {wanted} {call.error or ''}".rstrip())

    def _run(self, text: str) -> None:
        """Runs the Python of a script with the state of the newest connection."""
        current = self.sockets.current
        if current is not None:
            self.names.update(current.info())
            self.names["tcpi_last_data_recv"] = (self.sockets.now - current.heard_at) // 1_000_000
        try:
            code.run(text, self.names)
        except code.Untrue as untrue:
            raise Mismatch(f"not true: {untrue}") from None
        except KeyError as missing:
            raise Mismatch(f"the code asks for what is not told: {missing}") from None

    def _expect(self, wanted: Packet, event: Event, start: int, end: int | None) -> None:
        """Waits for a packet and compares it."""
        anytime = event.when.kind == "any"
        limit = self.now_us + _NEVER_US if anytime else max(start, end or 0) + _PATIENCE_US
        got = self._next(limit)
        if got is None:
            raise Mismatch(f"nothing was sent: {_shown(wanted)} is missing")
        while got.length < wanted.length and (more := self._continues(got)) is not None:
            got = more
        self._compare(wanted, got)
        if not anytime:
            self._in_time(_shown(wanted), got.at / 1000, start, start if end is None else end)

    def _next(self, limit_us: float) -> Sent | None:
        while self.sent and self.sent[0].connection is not self.sockets.current:
            self.sent.popleft()  # of a connection that the script has left behind
        while not self.sent:
            due = [at for one in self.sockets.connections if (at := one.endpoint.deadline()) is not None]
            if not due or min(due) > limit_us * 1000:
                return None
            self._advance(min(due) / 1000)
        return self.sent.popleft()

    def _continues(self, got: Sent) -> Sent | None:
        """Joins a packet with the next one that left, if that continues it."""
        if not self.sent:
            return None
        more = self.sent[0]
        if (more.at, more.seq, more.ack) != (got.at, got.seq + got.length, got.ack) or more.ecn != got.ecn:
            return None
        self.sent.popleft()
        return replace(got, length=got.length + more.length, flags=got.flags | more.flags)

    def _compare(self, wanted: Packet, got: Sent) -> None:
        mask = 0x1FF & ~PSH
        pairs: list[tuple[str, object, object]] = [
            ("flags", got.flags & mask, wanted.flags & mask),
            ("numbers", (got.seq, got.length), (wanted.seq, wanted.length)),
            ("ack", got.ack if got.flags & 0x10 else 0, wanted.ack or 0),
        ]
        if wanted.window is not None:
            pairs.append(("window", got.window, wanted.window))
        if wanted.ecn is not None:
            pairs.append(("ecn", got.ecn, wanted.ecn))
        if wanted.ect:
            pairs.append(("ecn", got.ecn in (1, 2), True))
        for what, have, want in pairs:
            if have != want:
                raise Mismatch(f"{what}: sent {_shown(got)}, not {_shown(wanted)}")
        if wanted.options is not None:
            self._compare_options(wanted, got)

    def _compare_options(self, wanted: Packet, got: Sent) -> None:
        have: dict[str, tuple[object, ...]] = {}
        if got.syn is not None:
            mss, scale, sack = got.syn
            have["mss"] = (mss,)
            if scale is not None:
                have["wscale"] = (scale,)
            if sack:
                have["sackOK"] = ()
        if got.sacks:
            have["sack"] = tuple(edge for block in got.sacks for edge in block)
        if got.accecn is not None:
            have["ECN"] = _counters(*got.accecn)
        want = {option.kind: option.value for option in wanted.options or () if option.kind != "TS"}
        stamps = wanted.option("TS")
        if have != want or (stamps is None) != (got.timestamps is None):
            raise Mismatch(f"options: sent {_options(have, got)}, not {_options(want, wanted)}")
        if stamps is not None and got.timestamps is not None:
            self._compare_timestamps(int(stamps.value[0]), got)

    def _compare_timestamps(self, script: int, got: Sent) -> None:
        assert got.timestamps is not None
        clocks, live = got.connection.clocks, got.timestamps[0]
        clocks.learn(script, live)
        tick = int(self.script.options.get("tcp_ts_tick_usecs", "0").split()[0])
        if tick and clocks.first is not None:
            first_script, first_live = clocks.first
            means = first_script + (live - first_live) // 1000
            tolerance = max(self.tolerance_us, self.now_us * _TOLERANCE_PERCENT / 100)
            if abs(means - script) * tick > tolerance:
                raise Mismatch(f"timestamp {means}, not {script}")

    def _in_time(self, what: str, at_us: float, start: int, end: int) -> None:
        delta = 0 if self.before_us is None else start - self.before_us
        tolerance = max(self.tolerance_us, delta * _TOLERANCE_PERCENT / 100)
        if not start - tolerance <= at_us <= end + tolerance:
            until = "" if end == start else f" to {end / 1e6:.6f}"
            raise Mismatch(f"time: {what} at {at_us / 1e6:.6f} s, not {start / 1e6:.6f}{until}")


def _counters(ect1_first: bool, fields: list[int]) -> tuple[object, ...]:
    order = ("e1b", "ceb", "e0b") if ect1_first else ("e0b", "ceb", "e1b")
    return tuple(part for pair in zip(order, fields, strict=False) for part in pair)


def _shown(packet: Packet | Sent) -> str:
    letters = "".join(
        letter
        for letter, bit in zip("SFRP.EWA", (SYN, FIN, 4, PSH, 16, 0x40, 0x80, 0x100), strict=True)
        if packet.flags & bit
    )
    ecn = "" if packet.ecn is None else f"[{('noecn', 'ect1', 'ect0', 'ce')[packet.ecn]}] "
    window = "" if packet.window is None else f" win {packet.window}"
    numbers = f"{packet.seq}:{packet.seq + packet.length}({packet.length})"
    return f"{ecn}{letters or '-'} {numbers} ack {packet.ack or 0}{window}"


def _options(options: dict[str, tuple[object, ...]] | dict[str, tuple[int | str, ...]], packet: Packet | Sent) -> str:
    stamped = packet.timestamps is not None if isinstance(packet, Sent) else packet.option("TS") is not None
    shown = [" ".join(map(str, (kind, *value))) for kind, value in sorted(options.items())]
    return f"<{', '.join([*shown, *(['TS'] if stamped else [])])}>"
