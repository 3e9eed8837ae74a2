"""SFB as Feng, Kandlur, Saha and Shin wrote it in 2001, with the limit of a bin and the penalty box's bucket of Linux.

Two sets of bins, of which one is in use; the other is warmed up before the hashes change. `bits` gives 64 random bits:
for the two keys at the first arrival, and for a new key at each change of hashes. `uniform` is asked for each arrival
whose least probability lies strictly between 0 and 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference.link import NOT_ECT, NS_PER_S, Arrival, Fate, Fifo, Limit, Packet, serve

U64 = 2**64 - 1


@dataclass(frozen=True)
class Params:
    """The numbers of Linux's sch_sfb."""

    levels: int = 8
    bins: int = 16
    bin_size: int = 20
    bin_limit: int = 25
    increment: float = 0.001
    decrement: float = 1 / 6000
    rehash_ns: int = 600 * NS_PER_S
    warmup_ns: int = 60 * NS_PER_S
    penalty_rate: float = 10.0
    penalty_burst: int = 20
    ecn: bool = False


@dataclass
class Bin:
    """A bin: its probability, and the number of its packets that wait."""

    p: float = 0.0
    queued: int = 0


class Bins:
    """L levels of N bins."""

    def __init__(self, params: Params, key: int) -> None:
        self.params, self.key = params, key
        self.levels = [[Bin() for _ in range(params.bins)] for _ in range(params.levels)]

    def of(self, flow: int) -> list[Bin]:
        """A flow's bin in each level: consecutive bits of the finalizer of MurmurHash3."""
        h = flow ^ self.key
        h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & U64
        h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & U64
        h = max(h ^ h >> 33, 1)
        found = []
        for level in self.levels:
            h, place = divmod(h, self.params.bins)
            found.append(level[place])
        return found

    def renew(self, key: int) -> None:
        """Sets another key for the hashes. Packets that wait stay counted in their bins."""
        self.key = key
        for level in self.levels:
            for one in level:
                one.p = 0.0


class Sfb(Fifo):
    """The queue with two sets of bins. Each packet that waits is stored with the bins in which it is counted."""

    def __init__(self, limit: Limit, params: Params, bits: Callable[[], int], uniform: Callable[[], float]) -> None:
        super().__init__(limit)
        self.params, self.bits, self.uniform = params, bits, uniform
        self.sets: list[Bins] = []  # the set in use, then the next one
        self.since_ns = self.filled_ns = 0
        self.tokens = float(params.penalty_burst)
        self.counted: dict[int, list[Bin]] = {}

    def warms_up(self, now_ns: int) -> bool:
        """Changes the hashes if `rehash_ns` has passed; returns true while the next set is warmed up."""
        if not self.sets:
            self.sets = [Bins(self.params, self.bits()), Bins(self.params, self.bits())]
            self.since_ns = now_ns
            return False
        age_ns, rehash_ns = now_ns - self.since_ns, self.params.rehash_ns
        if rehash_ns and age_ns >= rehash_ns:
            self.sets[0].renew(self.bits())
            self.sets.reverse()
            self.since_ns = now_ns
            return False
        return rehash_ns > 0 and age_ns >= rehash_ns - self.params.warmup_ns

    def update(self, bins: list[Bin]) -> float:
        """Updates the probabilities of the bins, and returns the smallest."""
        for one in bins:
            if one.queued == 0:
                one.p = max(one.p - self.params.decrement, 0.0)
            elif one.queued >= self.params.bin_size:
                one.p = min(one.p + self.params.increment, 1.0)
        return min(one.p for one in bins)

    def passes_box(self, now_ns: int) -> bool:
        """Returns true if a packet of a non-responsive flow passes: the penalty box has a token bucket."""
        earned = self.params.penalty_rate * ((now_ns - self.filled_ns) / NS_PER_S)
        self.tokens, self.filled_ns = min(self.tokens + earned, float(self.params.penalty_burst)), now_ns
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Judges a packet by the least probability of its bins."""
        warming = self.warms_up(now_ns)
        bins = self.sets[0].of(packet.flow)
        p_min = self.update(bins)
        verdict: Literal["pass", "mark", "drop"] = "pass"
        if min(one.queued for one in bins) >= self.params.bin_limit:
            return "drop"
        if p_min >= 1:
            if warming:
                others = self.sets[1].of(packet.flow)
                self.update(others)
                bins = bins + others
            if not self.passes_box(now_ns):
                return "drop"
        elif p_min > 0 and self.uniform() < p_min:
            if not self.params.ecn or packet.ecn == NOT_ECT:
                return "drop"
            verdict = "mark"
        self.counted[packet.id] = bins
        return verdict

    def enqueue(self, packet: Packet, now_ns: int) -> None:
        """Counts an accepted packet in its bins."""
        super().enqueue(packet, now_ns)
        if self.queue and self.queue[-1] is packet:
            for one in self.counted[packet.id]:
                one.queued += 1

    def pop(self) -> Packet | None:
        """Removes a packet that leaves from the counts of its bins."""
        packet = super().pop()
        if packet is not None:
            for one in self.counted.pop(packet.id):
                one.queued -= 1
        return packet


def replay(
    arrivals: Sequence[Arrival],
    rate_bps: int,
    limit: Limit,
    params: Params,
    uniform: Callable[[], float],
    bits: Callable[[], int],
) -> list[Fate]:
    """Returns the fate of each packet. The number of a flow is hashed."""
    return serve(Sfb(limit, params, bits, uniform), arrivals, rate_bps)
