"""The error queue of a socket: when Linux tells that bytes of a write left or were acknowledged.

Two things are told there: that memory of a write without copy is free again (MSG_ZEROCOPY), and at which times the
last byte of a
write left and was acknowledged (SO_TIMESTAMPING with SOF_TIMESTAMPING_OPT_ID).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from penstock.suites.packetdrill.values import Fields

__all__ = ["ErrorQueue", "Told"]

_STAMPS = {"SOF_TIMESTAMPING_TX_SCHED": "SCM_TSTAMP_SCHED", "SOF_TIMESTAMPING_TX_SOFTWARE": "SCM_TSTAMP_SND"}
_ACKED = "SOF_TIMESTAMPING_TX_ACK"


@dataclass(frozen=True)
class Told:
    """One message: of writes `first` to `last` without copy, or of the stamp `info` at a time in microseconds."""

    info: str = ""
    first: int = 0
    last: int = 0
    at_us: float = 0.0

    def differs(self, control: object, tolerance_us: int) -> str:
        """Returns what differs from the message that a script wants; nothing if it is that."""
        items = [item for item in control if isinstance(item, Fields)] if isinstance(control, list) else []
        for item in items:
            data = item.named.get("cmsg_data")
            wanted = data.named if isinstance(data, Fields) else {}
            if "ee_origin" in wanted:
                have = (self.info or 0 or self.first, self.last)
                if (wanted["ee_info"], wanted["ee_data"]) != have:
                    return f"ee_info, ee_data {have}"
            elif "scm_sec" in wanted:
                second, nanosecond = wanted["scm_sec"], wanted["scm_nsec"]
                at_us = int(str(second)) * 1e6 + int(str(nanosecond)) / 1e3
                if abs(at_us - self.at_us) > tolerance_us:
                    return f"a time stamp of {self.at_us / 1e6:.6f} s"
        return ""


@dataclass
class Write:
    """The end of a write in bytes of the stream, and what is to be told of it."""

    end: int
    number: int | None
    stamped: int | None
    left: bool = False


@dataclass
class ErrorQueue:
    """The messages of one socket, and the writes of which something is still to be told."""

    zerocopy: bool = False
    stamps: set[str] = field(default_factory=set)
    counted_from: int = 0
    number: int = 0
    writes: list[Write] = field(default_factory=list)
    messages: deque[Told] = field(default_factory=deque)
    woken: bool = False

    def wrote(self, end: int, without_copy: bool) -> None:
        """Notes a write up to `end`."""
        number = None
        if without_copy and self.zerocopy:
            number, self.number = self.number, self.number + 1
        stamped = end - self.counted_from - 1 if self.stamps else None
        if number is not None or stamped is not None:
            self.writes.append(Write(end, number, stamped))

    def moved(self, sent: int, acked: int, now_us: float) -> None:
        """Tells what became of writes when `sent` bytes have left and `acked` are acknowledged."""
        for write in self.writes:
            if write.stamped is not None and not write.left and sent >= write.end:
                write.left = True
                for flag, info in _STAMPS.items():
                    if flag in self.stamps:
                        self._tell(Told(info, 0, write.stamped, now_us))
        for write in [write for write in self.writes if write.end <= acked]:
            self.writes.remove(write)
            if write.stamped is not None and _ACKED in self.stamps:
                self._tell(Told("SCM_TSTAMP_ACK", 0, write.stamped, now_us))
            if write.number is not None:
                self._free(write.number)

    def _free(self, number: int) -> None:
        if self.messages and not self.messages[-1].info and self.messages[-1].last + 1 == number:
            self.messages[-1] = replace(self.messages[-1], last=number)
            self.woken = True
        else:
            self._tell(Told("", number, number))

    def _tell(self, told: Told) -> None:
        self.messages.append(told)
        self.woken = True
