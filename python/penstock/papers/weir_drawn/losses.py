"""Where a discipline is worse than the better of the two others, beyond what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from penstock.papers.weir_drawn.columns import COLUMNS
from penstock.reproduce.results import Evidence
from penstock.reproduce.settings import Listed, Setting

PACKET_BITS = 8 * 1514


@dataclass(frozen=True)
class Limit:
    """What is allowed of a measure beside the best value of the others, on a link of these Mbit/s."""

    name: str
    words: str  # what is allowed
    text: Callable[[float], str]
    least_is_best: bool
    allowed: Callable[[float, float], float]


def packets_ms(mbps: float, count: float) -> float:
    """Returns the time of so many packets."""
    return count * PACKET_BITS / mbps / 1000


LIMITS = {
    "call": Limit(
        "a call waits, ms",
        "5 %, and up to two packets and 1 ms in any case",
        "{:.1f}".format,
        True,
        lambda best, mbps: max(1.05 * best, packets_ms(mbps, 2) + 1),
    ),
    "web": Limit("a page takes, ms", "5 %", "{:.0f}".format, True, lambda best, _: 1.05 * best),
    "grid_use": Limit("link in use", "3 %", "{:.1%}".format, False, lambda best, _: 0.97 * best),
    "again": Limit(
        "TCP and QUIC sent again",
        "10 %, and up to one segment in a thousand in any case",
        "{:.2%}".format,
        True,
        lambda best, _: max(1.1 * best, 0.001),
    ),
    "grid_queue": Limit(
        "queue, ms",
        "10 %, and up to four packets and 3 ms in any case",
        "{:.1f}".format,
        True,
        lambda best, mbps: max(1.1 * best, packets_ms(mbps, 4) + 3),
    ),
    "hosts": Limit(
        "Jain of hosts",
        "0.01, and down to 0.98 in any case",
        "{:.3f}".format,
        False,
        lambda best, _: min(best - 0.01, 0.98),
    ),
}


@dataclass(frozen=True)
class Loss:
    """A measure of a discipline in a scenario that is beyond what is allowed."""

    setting: str
    measure: str
    aqm: str
    values: dict[str, float]
    by: str


def losses(evidence: Evidence) -> list[Loss]:
    """Returns all losses of all disciplines."""
    found: list[Loss] = []
    for setting in evidence.settings:
        for measure, limit in LIMITS.items():
            values = {aqm: evidence.median(aqm, setting, COLUMNS[measure].measure) for aqm in evidence.aqms}
            known = {aqm: math.nan if value is None else value for aqm, value in values.items()}
            if not any(map(math.isnan, known.values())):
                found += lost(setting, measure, limit, known, rate_mbps(evidence, setting))
    return found


def lost(setting: str, measure: str, limit: Limit, values: dict[str, float], mbps: float) -> list[Loss]:
    """Returns the disciplines that are beyond what the best of the others allows."""
    found, best_of = [], min if limit.least_is_best else max
    for aqm, value in values.items():
        best = best_of(other for name, other in values.items() if name != aqm)
        allowed = limit.allowed(best, mbps)
        if value > allowed if limit.least_is_best else value < allowed:
            by = f"{value / best:.2f} times" if best and limit.least_is_best else limit.text(abs(value - best))
            found.append(Loss(setting, measure, aqm, values, by))
    return found


def rate_mbps(evidence: Evidence, setting: str) -> float:
    """Returns the rate of the link of a scenario."""
    assert isinstance(evidence.experiment, Listed)
    chosen: Setting = evidence.experiment.setting(setting)
    return float(str(chosen.change["topology.rate"]).removesuffix("Mbit/s"))
