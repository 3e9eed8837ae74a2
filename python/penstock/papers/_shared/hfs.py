"""HFS and the modular wireless architecture in TEMPEST: document 002, sections 4.1.3 and 4.2.

Twenty stations whose losses go from 10^0 to 10^-4 share 54 Mbit/s; each has a flow of weight 20, one of weight 10 and
three of weight 1. A station is in good condition up to a loss of 20 %. What the document leaves open, and what it says
in two ways, is among the variants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.papers._shared.schedulers import BOTH, CHANCE, STATIONS, STEPS, STEPS_CHANCE, good
from penstock.reproduce.base import Case
from penstock.reproduce.columns import Column
from penstock.reproduce.tempest import Changed, Tempest, Test

# The scheduler of flows and that of stations.
LAYERS = {
    "hfs": ("qfq-plus", "qfq-plus"),
    "hfs-wf2q-plus": ("qfq-plus", "wf2q-plus"),
    "hfs-drr": ("qfq-plus", "drr"),
    "double-drr": ("drr", "drr"),
    "double-wf2q-plus": ("wf2q-plus", "wf2q-plus"),
}
WIRED, KNOWING = ("drr", "wf2q-plus", "qfq-plus"), "w2f2q"
BUFFERS = (0, 1, 10, 25, 50, 100, 150, 200, 250)
QUICK_BUFFERS = (0, 1, 50, 100, 250)
FLOWS = 5 * STATIONS
THRESHOLD = "80"  # of the weight of a station, as section 4.3.2.6 defines it
ALONE = "wire"  # the setting without a second layer


@dataclass(frozen=True)
class Modular(Tempest):
    """Schedulers over the buffer between their layers."""

    def layers(self, name: str) -> dict[str, str]:
        """The flags of a combination of two layers, of the scheduler that knows the channels, or of a wired one."""
        if name in LAYERS:
            qos, mac = LAYERS[name]
            return {"mode": "double", "qos": qos, "mac": mac}
        if name == KNOWING:
            return {"mode": "integrated", "alg": name, "intgr_th": THRESHOLD}
        return {"mode": "single", "alg": name}

    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """The flags of one run. A wired scheduler knows nothing of the stations, but packets are lost all the same."""
        mode = self.mode(case)
        flags = {**self.shared, **(self.quick_flags if quick else {}), "seed": str(case.seed), **mode}
        buffers = self.test(case.setting).flags if mode["mode"] == "double" else {}
        return {"name": f"{self.name}-{case.setting}-{case.aqm}", "tempest": {**flags, **buffers}}

    def in_subset(self, case: Case) -> bool:
        """True where some scheduler has a variant: claims compare it with the others."""
        return any((case.flows, case.setting) == (v.flows, v.setting) for v in self.variant_cases(seeds=1))


def tests(layered: tuple[str, ...], wired: tuple[str, ...]) -> tuple[Test, ...]:
    """Schedulers of two layers over the packets that the second holds, and those of one layer."""
    over_q = (Test(f"q-{q}", f"Q = {q}", layered, {"qmac": str(q)}, FLOWS, q in QUICK_BUFFERS) for q in BUFFERS)
    return (Test(ALONE, "no second layer", wired, {}, FLOWS), *over_q)


_LAYERED = tuple(LAYERS)
# How many packets wait decides what the second layer can do: see docs/algorithms/hfs.md. Thresholds of the controller
# count packets beyond the Q that it holds.
_ONE_EACH = {"qmax": str(FLOWS), "burst": "0"}
_FEW = {"qmax": "5", "burst": "0"}
_DOUBLED = {"wdistr": "2"}
_STEPS_DOUBLED = {**STEPS_CHANCE.flags, **_DOUBLED, **_FEW}
# W2F2Q's flows in "good state with weight equal to their own weight according to the weight distribution policy".
_BY_STATION = {"flowsets": ",".join(f"{max(1, round(1000 * (1 - 10 ** (-4 * i / 19))))}::1" for i in range(STATIONS))}
VARIANTS = (
    STEPS,
    CHANCE,
    STEPS_CHANCE,
    Changed(
        "by-station",
        "W2F2Q sharing by weights of stations",
        (KNOWING,),
        reading=True,
        because='section 4.1.3 has "their own weight according to the weight distribution policy"',
        flags=_BY_STATION,
    ),
    BOTH,
    Changed("exponential", "weights of stations doubled from place to place", _LAYERED, flags=_DOUBLED),
    Changed("one-each", "one packet of each flow waiting beyond Q instead of ten", _LAYERED, flags=_ONE_EACH),
    Changed("few", "five packets of all flows waiting beyond Q", _LAYERED, flags=_FEW),
    Changed(
        "steps-doubled",
        "losses in equal steps, a threshold of 80 % to arrive, doubled weights and these five packets",
        (KNOWING, *WIRED, *_LAYERED),
        flags=_STEPS_DOUBLED,
    ),
)


def good_twfi_ms(summary: Mapping[str, Any]) -> float | None:
    """The worst T-WFI of the heaviest flows to stations in good condition."""
    return good(summary, "t_wfi_ms")


def best_delay(summary: Mapping[str, Any]) -> float | None:
    """The longest wait in the heaviest flow to the station in the best condition, in departures."""
    flows = [flow for flow in summary["flows_detail"] if flow["station"] == STATIONS - 1]
    heaviest = max(flows, key=lambda flow: int(flow["weight"]), default=None)
    return None if heaviest is None else heaviest["max_delay_dequeues"]


COLUMNS = {
    "hfs_good_twfi": Column("T-WFI ms, good", "{:.2f}", lambda o: good_twfi_ms(o.summary)),
    "hfs_best_delay": Column("delay, best station", "{:,.0f}", lambda o: best_delay(o.summary)),
}
