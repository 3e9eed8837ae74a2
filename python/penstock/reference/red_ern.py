"""RED-ERN as document 003 (§III.B, §V) describes it, around the twin of RED.

Draws one random number for each packet that tells a rate whose probability lies strictly between 0 and 1; for packets
of flows that are not ERN-capable as RED does; none for others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference import red
from penstock.reference.link import CE, ECT1, NOT_ECT, Arrival, Fate, Limit, Packet, serve

BOUNDS_MS = [40, 80, 160, 320]
MS = 1_000_000
Sort = Literal["plain", "capable", "rate"]


@dataclass(frozen=True)
class Params:
    """RED's, in packets; and §III.B."""

    min_threshold: float = 5
    max_threshold: float = 15
    max_p: float = 0.1
    weight: float = 0.002
    mean_packet: int = 1000
    gentle: bool = True
    rate_weight: float = 0.02
    last_period_ns: int = 640 * MS
    by_ect1: bool = False
    ecn: bool = False
    over_max: Literal["drop", "mark", "linear"] = "drop"


def told(cwnd: int) -> int:
    """The window as 16 bits and a shift can tell it."""
    shift = 0
    while cwnd >> shift > 0xFFFF:
        shift += 1
    return cwnd >> shift << shift


class RedErn(red.Red):
    """RED for flows that are not ERN-capable; the others are judged on the packets that tell their rates."""

    def __init__(
        self,
        limit: Limit,
        params: Params,
        rate_bps: int,
        uniform: Callable[[], float],
        arrivals: Sequence[Arrival],
    ) -> None:
        plain = red.Params(
            min_threshold=params.min_threshold,
            max_threshold=params.max_threshold,
            max_p=params.max_p,
            weight=params.weight,
            mean_packet=params.mean_packet,
            gentle=params.gentle,
            ecn=params.ecn,
            over_max=params.over_max,
        )
        super().__init__(limit, plain, rate_bps, uniform)
        self.ern = params
        self.arrivals = arrivals
        self.fair_rate: float | None = None
        self.periods_ns = [*(bound * MS for bound in BOUNDS_MS), params.last_period_ns]
        self.update_at_ns = [0] * 5
        self.pb = [0.0] * 5

    def sort(self, arrival: Arrival) -> Sort:
        """§III.A by the bits, or §V by ECT(1) and the option behind ECT(1) and CE."""
        if self.ern.by_ect1:
            if arrival.rtt_ms and arrival.ecn in (ECT1, CE):
                return "rate"
            return "capable" if arrival.ecn == ECT1 else "plain"
        if not arrival.ern & 2:
            return "plain"
        return "rate" if arrival.ern & 1 and arrival.rtt_ms else "capable"

    def said(self, packet: Packet) -> tuple[Sort, int, int]:
        """What a packet is, and with a rate the window in bytes and the round trip time in ms."""
        arrival = self.arrivals[packet.id]
        return self.sort(arrival), arrival.cwnd, arrival.rtt_ms

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Follows §III.B of the source."""
        sort, cwnd, rtt_ms = self.said(packet)
        if sort == "plain":
            return super().judge_arrival(packet, now_ns)
        self.update_average(now_ns)
        if sort == "capable" or not self.happens(self.notify(cwnd, rtt_ms, now_ns)):
            return "pass"
        return "drop" if packet.ecn == NOT_ECT else "mark"

    def notify(self, cwnd: int, rtt_ms: int, now_ns: int) -> float:
        """pa of a packet with its flow's rate: eq. (3) when it is due, (4), (6)."""
        category = sum(rtt_ms >= bound for bound in BOUNDS_MS)
        if now_ns >= self.update_at_ns[category]:
            self.update_at_ns[category] = now_ns + self.periods_ns[category]
            self.pb[category] = self.red_probability()
        rate = told(cwnd) / rtt_ms
        weight = self.ern.rate_weight
        self.fair_rate = rate if self.fair_rate is None else self.fair_rate * (1 - weight) + rate * weight
        return self.pb[category] * (rate / self.fair_rate) if rate else 0.0

    def red_probability(self) -> float:
        """Returns RED's p_b for the average: 0 below the lower threshold, 1 above the hard limit."""
        if self.avg < self.params.min_threshold:
            return 0.0
        pb = self.before_count()
        return 1.0 if pb is None else pb


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(RedErn(limit, params, rate_bps, uniform, arrivals), arrivals, rate_bps)
