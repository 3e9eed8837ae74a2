"""The runs of `pink-scale`."""

from __future__ import annotations

from penstock.reproduce.settings import Setting

COUNTS = (10, 100, 1_000, 10_000, 100_000)
PER_FLOW_BPS = 240_000  # two packets of 1500 B in 100 ms
ROUND_TRIP_S = 0.1
PACKETS = 400_000  # at least so many in a run, and 1.2 s


def bound_bytes(flows: int) -> float:
    """Returns b, the bandwidth-delay product of Theorem 1."""
    return flows * PER_FLOW_BPS / 8 * ROUND_TRIP_S


def _setting(flows: int) -> Setting:
    duration = max(1.2, PACKETS / (20 * flows))
    change = {
        "duration": f"{duration:g}s",
        "topology.rate": f"{flows * PER_FLOW_BPS}bit/s",
        "topology.limit": f"{round(4 * bound_bytes(flows))}B",  # so that PINK's bound limits the queue, not the buffer
    }
    return Setting(f"n-{flows}", f"{flows:,} flows", change=change, counts=(flows,), quick=flows in (10, 1_000, 10_000))


SETTINGS = tuple(_setting(flows) for flows in COUNTS)
