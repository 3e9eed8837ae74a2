"""Round trip times at a gateway, of one flow: the time from a segment to the first answer that proves its receipt.

The documents time data and its ACK (000 §3.2, 002 §3.1.3) and say that a gateway sees a part of the path. A sender's
round trip has two halves: WAN, from an outbound segment to its answer, and LAN, from an inbound one to its answer.
The smallest of each counts (RTT_i^min). At most one sample of each half is taken at a time; what was sent twice gives
none (Karn, RFC 6298 §3); timestamps are used if they are there (RFC 7323 §4).

The sources are silent about connections whose SYN was not seen: their first segment only tells where the numbers are.
"""

from __future__ import annotations

from penstock.reference.ack import ACK, FIN, RST, SYN, Segment, before


def later(newest: int | None, number: int) -> int:
    """Returns the later one of two numbers."""
    return number if newest is None or before(newest, number) else newest


class Half:
    """One half: `sent` shows its segments, `answered` those of the other direction."""

    def __init__(self) -> None:
        self.shortest: int | None = None
        self.sample: tuple[str, int] | None = None  # what proves the receipt: an "ack" or an "echo" of this number
        self.since_ns = 0  # when the last segment that could begin a sample was sent
        self.newest: int | None = None  # number after the newest byte
        self.newest_tsval: int | None = None

    def begin(self, kind: str, number: int, now_ns: int) -> None:
        """Begins a sample."""
        self.sample, self.since_ns = (kind, number), now_ns

    def sent(self, segment: Segment) -> None:
        """Begins a sample if this segment is new and none runs. Data that was sent before ends the sample that runs."""
        if segment.flags & SYN:
            return self.sent_syn(segment)
        end = (segment.seq + segment.payload + (1 if segment.flags & FIN else 0)) % 2**32
        known, self.newest = self.newest, later(self.newest, end)
        new = known is not None and end != segment.seq and before(known, end)
        if known is not None and end != segment.seq and before(segment.seq, known):
            self.sample, new = None, False
        if segment.timestamps is None:
            if new and self.sample is None:
                self.begin("ack", end, segment.t_ns)
            return None
        tsval, known_tsval = segment.timestamps[0], self.newest_tsval
        self.newest_tsval = later(known_tsval, tsval)
        if known_tsval is not None and before(known_tsval, tsval) and self.sample is None:
            self.begin("echo", tsval, segment.t_ns)
        return None

    def sent_syn(self, segment: Segment) -> None:
        """The answer of a SYN acknowledges it. A repeated SYN gives no sample, and neither does the first one."""
        first, after = self.newest is None, (segment.seq + 1) % 2**32
        self.newest = later(self.newest, after)
        self.newest_tsval = segment.timestamps[0] if segment.timestamps else None
        self.begin("ack", after, segment.t_ns)
        if not first:
            self.sample = None

    def answered(self, segment: Segment) -> int | None:
        """Ends the sample if this segment proves the receipt, and returns it."""
        if not segment.flags & ACK or self.sample is None:
            return None
        kind, number = self.sample
        told = segment.ack if kind == "ack" else segment.timestamps[1] if segment.timestamps else None
        if told is not None and not before(told, number):
            took_ns = max(segment.t_ns - self.since_ns, 1)
            self.shortest = took_ns if self.shortest is None else min(self.shortest, took_ns)
            self.sample = None
            return took_ns
        return None


class Probe:
    """Both halves."""

    def __init__(self) -> None:
        self.wan, self.lan = Half(), Half()

    def show(self, segment: Segment) -> int | None:
        """Takes a segment, and returns the sample that it ends.

        A SYN with another number begins another connection; RST may be anybody's.
        """
        if segment.flags & RST:
            return None
        this = self.lan if segment.inbound else self.wan
        opens = segment.flags & SYN and not segment.flags & ACK
        if opens and this.newest is not None and this.newest != (segment.seq + 1) % 2**32:
            self.wan, self.lan = Half(), Half()
        this, other = (self.lan, self.wan) if segment.inbound else (self.wan, self.lan)
        sample = other.answered(segment)
        this.sent(segment)
        return sample

    def whole(self) -> int | None:
        """Returns the round trip time of the sender, in ns."""
        if self.wan.shortest is None or self.lan.shortest is None:
            return None
        return self.wan.shortest + self.lan.shortest
