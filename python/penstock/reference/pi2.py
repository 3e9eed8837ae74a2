"""PI2 (De Schepper et al. 2016), around the delay estimators of PIE's twin.

Draws none with p' = 0; one random number for a scalable packet; for a classic one a second if the first is below p'.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.reference import pie
from penstock.reference.link import CE, ECT1, NOT_ECT, Arrival, Fate, Limit, Packet, serve


@dataclass(frozen=True)
class Params(pie.Params):
    """Table 1."""

    target_ns: int = 20_000_000
    tupdate_ns: int = 32_000_000
    alpha: float = 0.3125
    beta: float = 3.125
    coupling: float = 2.0


class Pi2(pie.Pie):
    """`drop_prob` is p'."""

    def __init__(self, limit: Limit, params: Params, uniform: Callable[[], float]) -> None:
        super().__init__(limit, params, uniform)
        self.coupling = params.coupling

    def update(self) -> None:
        """The controller, without PIE's heuristics."""
        qdelay = self.current_qdelay()
        p = self.params.alpha * (qdelay - self.target) + self.params.beta * (qdelay - self.qdelay_old)
        self.drop_prob = max(0.0, min(1.0, self.drop_prob + p))
        self.qdelay_old = qdelay

    def judge(self, packet: Packet) -> pie.Verdict:
        """p'^2 or k p', and overload."""
        if self.bytes <= 2 * self.params.mean_packet or self.drop_prob == 0:
            return "pass"
        overload = self.coupling * self.drop_prob >= 1
        if not self.params.ecn or packet.ecn == NOT_ECT:
            return "drop" if self.squared() else "pass"
        scalable = packet.ecn in (ECT1, CE)
        if overload:
            if self.squared():
                return "drop"
            return "mark" if scalable else "pass"
        marked = self.uniform() < self.coupling * self.drop_prob if scalable else self.squared()
        return "mark" if marked else "pass"

    def squared(self) -> bool:
        """True with probability p'^2."""
        return self.uniform() < self.drop_prob and self.uniform() < self.drop_prob


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(Pi2(limit, params, uniform), arrivals, rate_bps)
