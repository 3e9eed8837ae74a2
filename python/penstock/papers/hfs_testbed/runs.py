"""The runs of `hfs-testbed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.papers._shared.hfs import ALONE, FLOWS, KNOWING, WIRED
from penstock.papers._shared.schedulers import GOOD_LOSS, STATIONS
from penstock.reproduce.settings import Setting

LAYERED = ("double-drr", "hfs-drr", "hfs")
BUFFERS = (0, 25, 50, 100, 150, 250)
QUICK_BUFFERS = (0, 50, 100, 250)
CLASSES = {
    "aqm.flows": FLOWS,
    "aqm.weights": "20::20,10::20,1::60",
    "aqm.class_limit": "10p",
    "aqm.good_loss": 0.92,  # of W2F2Q: a weight of 80, analogical, as section 4.3.2.6 defines the threshold
}
HEAVIEST = range(STATIONS)  # the flows of weight 20, one for each station
RESERVED_BPS = 54e6 * 20 / (20 * 20 + 20 * 10 + 60)  # for each of them, in IP packets

SETTINGS = (
    Setting(ALONE, "no second layer", (*WIRED, KNOWING), CLASSES, flows=FLOWS),
    *(
        Setting(
            f"q-{q}", f"Q = {q}", LAYERED, {**CLASSES, "aqm.buffer": f"{q}p"}, quick=q in QUICK_BUFFERS, flows=FLOWS
        )
        for q in BUFFERS
    ),
)


def arrives(summary: Mapping[str, Any]) -> float:
    """The normalized throughput: the part of the sent packets that arrived."""
    [link] = summary["bottlenecks"]
    return 1 - float(link["lost"]) / float(link["packets_all"])


def least_of_good(summary: Mapping[str, Any], stations: list[float]) -> float:
    """The least that a flow of weight 20 to a station in good condition gets, as a part of what is reserved for it.

    What its station loses is not counted against it.
    """
    size = 1472 / 1500
    found = [(summary["flows"][flow], stations[flow]) for flow in HEAVIEST if stations[flow] <= GOOD_LOSS]
    return min(float(flow["goodput_bps"]) / (RESERVED_BPS * size * (1 - loss)) for flow, loss in found)
