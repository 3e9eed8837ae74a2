"""The runs of `hfs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.papers._shared.hfs import KNOWING, VARIANTS, WIRED, Modular, tests

# Theoretical bounds.


def weights(policy: str, losses: Sequence[float]) -> list[float]:
    """Of the stations; losses fall from the first to the last."""
    places = range(1, len(losses) + 1)
    return {
        "constant": [1.0 for _ in losses],
        "linear": [float(i) for i in places],
        "exponential": [2.0**i for i in places],
        "analogical": [(1 - loss) * 1000 for loss in losses],
    }[policy]


def weighted_throughput(policy: str, losses: Sequence[float]) -> float:
    """What arrives when every station always has packets in the second layer, and is served by its weight."""
    shares = weights(policy, losses)
    return sum(w * (1 - loss) for w, loss in zip(shares, losses, strict=True)) / sum(shares)


# Measurements.


def losses_of(summary: Mapping[str, Any]) -> list[float]:
    """Of the stations of a run."""
    found = {flow["station"]: float(flow["loss"]) for flow in summary["flows_detail"]}
    return [found[station] for station in sorted(found)]


KIND = Modular

TESTS = tests(("hfs", "hfs-drr"), (*WIRED, KNOWING))

__all__ = ["KIND", "TESTS", "VARIANTS", "losses_of", "weighted_throughput"]
