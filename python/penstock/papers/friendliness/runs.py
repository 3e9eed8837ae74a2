"""Who shares with whom: two flows of each congestion control beside two of each other one.

No document has this experiment; its scenario is 10 Mbit/s and a round trip of 100 ms, before DropTail and before CoDel,
which marks what is ECN-capable.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from penstock.reproduce.base import Case
from penstock.reproduce.settings import Listed, Setting

CONTROLS = (
    "newreno",
    "cubic",
    "cubic-linux",
    "bic",
    "highspeed",
    "scalable",
    "hybla",
    "westwood",
    "compound",
    "vegas",
    "bbr",
    "noordwijk",
    "dctcp",
    "prague",
)
QUICK_CONTROLS = ("newreno", "cubic", "vegas", "highspeed", "hybla", "scalable", "dctcp", "compound")
# The quick form has the pairs that the claims are about.
QUICK_PAIRS = {("newreno", other) for other in QUICK_CONTROLS} | {("cubic", "cubic")}
QUEUES = ("droptail", "codel")
EACH = 2


@dataclass(frozen=True)
class Pairs(Listed):
    """Settings whose names contain two controls."""

    def cc_of(self, case: Case, quick: bool) -> str:
        """Both."""
        del quick
        return " and ".join(dict.fromkeys(pair_of(case.setting)))


def name_of(first: str, second: str) -> str:
    """Returns the setting of a pair of controls in either order."""
    first, second = sorted((first, second), key=CONTROLS.index)
    return f"{first}-{second}"


def pair_of(setting: str) -> tuple[str, str]:
    """Returns the two controls of a setting. The name of a control may contain a dash."""
    return next(pair for pair in combinations_with_replacement(CONTROLS, 2) if name_of(*pair) == setting)


def share_of_first(summary: dict[str, Any]) -> float:
    """Share of the first two flows in the payload of all four."""
    delivered = [float(flow["delivered_bytes"]) for flow in summary["flows"]]
    return sum(delivered[:EACH]) / max(1.0, sum(delivered))


def _flows(cc: str) -> dict[str, Any]:
    return {"kind": "bulk", "count": EACH, "start_spread": "1s", "cc": cc}


def _setting(first: str, second: str) -> Setting:
    return Setting(
        name_of(first, second),
        f"2 {first}, 2 {second}",
        aqms=QUEUES,
        change={"flows": [_flows(first), _flows(second)]},
        quick=(first, second) in QUICK_PAIRS,
    )


KIND = Pairs

SETTINGS = tuple(_setting(a, b) for a, b in combinations_with_replacement(CONTROLS, 2))
