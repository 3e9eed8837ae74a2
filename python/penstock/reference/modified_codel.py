"""Modified CoDel (thesis 004 §3.2.2, Algorithm 5), around the twin of CoDel. Draws no random numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.reference import codel
from penstock.reference.link import Arrival, Fate, Limit, serve


@dataclass(frozen=True)
class Params(codel.Params):
    """Algorithm 5."""

    interval_ns: int = 30_000_000


class ModifiedCoDel(codel.CoDel):
    """CoDel with another control law."""

    def control_law(self, t_ns: int) -> int:
        """When the drop after `t_ns` is due, to the nearest nanosecond."""
        seconds = self.params.interval_ns / 1e9 / self.count
        return t_ns + int(seconds * 1e9 + 0.5)


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    del uniform
    return serve(ModifiedCoDel(limit, params), arrivals, rate_bps)
