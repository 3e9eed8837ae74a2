"""HFS and the modular wireless architecture in TEMPEST: document 002, sections 4.1.3 and 4.2.

Twenty stations whose losses go from 10^0 to 10^-4 share 54 Mbit/s; each has a flow of weight 20, one of weight 10 and
three of weight 1. A station is in good condition up to a loss of 20 %. What the document leaves open, and what it says
in two ways, is among the variants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.reproduce.base import Case
from penstock.reproduce.tempest import BOTH, CHANCE, STATIONS, STEPS, STEPS_CHANCE, Changed, Tempest, Test, good

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

    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """The flags of one run. A wired scheduler knows nothing of the stations, but packets are lost all the same."""
        flags = {**self.shared, **(self.quick_flags if quick else {}), "seed": str(case.seed)}
        if case.aqm in LAYERS:
            qos, mac = LAYERS[case.aqm]
            mode = {"mode": "double", "qos": qos, "mac": mac, **self.test(case.setting).flags}
        elif case.aqm == KNOWING:
            mode = {"mode": "integrated", "alg": case.aqm, "intgr_th": THRESHOLD}
        else:
            mode = {"mode": "single", "alg": case.aqm}
        return {"name": f"{self.name}-{case.setting}-{case.aqm}", "tempest": {**flags, **mode}}

    def in_subset(self, case: Case) -> bool:
        """True where some scheduler has a variant: claims compare it with the others."""
        return any((case.flows, case.setting) == (v.flows, v.setting) for v in self.variant_cases(seeds=1))


def _tests(layered: tuple[str, ...], wired: tuple[str, ...]) -> tuple[Test, ...]:
    over_q = (Test(f"q-{q}", f"Q = {q}", layered, {"qmac": str(q)}, FLOWS, q in QUICK_BUFFERS) for q in BUFFERS)
    return (Test(ALONE, "no second layer", wired, {}, FLOWS), *over_q)


# Section 4.2.3.1: flows go between no packet and ten; an empty flow may end the dequeue phase (4.2.3.2).
_CONTROLLER = {"n": "10M", "qmin": "0", "qmax": "10n", "burst": "1", "qsing": "1"}
_STATIONS = {"flowsets": "20::20,10::20,1::60", "flowsmac": str(STATIONS)}
_LAYERED = tuple(LAYERS)
# How many packets wait decides what the second layer can do: see docs/algorithms/hfs.md. Thresholds of the controller
# count packets beyond the Q that it holds.
_ONE_EACH = {"qmax": str(FLOWS), "burst": "0"}
_FEW = {"qmax": "5", "burst": "0"}
_DOUBLED = {"wdistr": "2"}
_STEPS_DOUBLED = {**STEPS_CHANCE.flags, **_DOUBLED, **_FEW}
# W2F2Q's flows in "good state with weight equal to their own weight according to the weight distribution policy".
_BY_STATION = {"flowsets": ",".join(f"{max(1, round(1000 * (1 - 10 ** (-4 * i / 19))))}::1" for i in range(STATIONS))}
_VARIANTS = (
    STEPS,
    CHANCE,
    STEPS_CHANCE,
    Changed("by-station", "W2F2Q sharing by weights of stations", (KNOWING,), reading=True, flags=_BY_STATION),
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

_OF_HFS = ("drr", "wf2q-plus", "qfq-plus", KNOWING, "hfs", "hfs-drr")
HFS = Modular(
    name="hfs",
    title="Throughput and guarantees of HFS over its buffer",
    source="document 002, sections 4.1.3.2 and 4.2.5",
    figures={"hfs_throughput": "002, Figures 4.4 and 4.11", "hfs_guarantees": "002, Figures 4.5 and 4.12"},
    columns=("tempest_throughput", "hfs_good_twfi", "tempest_top_twfi"),
    aqms=_OF_HFS,
    quick="most of the events, and four of nine buffers",
    variants=_VARIANTS,
    tests=_tests(("hfs", "hfs-drr"), (*WIRED, KNOWING)),
    shared={**_CONTROLLER, **_STATIONS, "measure": "fairness"},
    quick_flags={"n": "200k"},
)

_OF_LAYERS = ("hfs", "hfs-wf2q-plus", "hfs-drr")
HFS_LAYERS = Modular(
    name="hfs-mac",
    title="Which scheduler beside the radio",
    source="document 002, section 4.2.4.2",
    figures={"hfs_mac_throughput": "002, Figure 4.8", "hfs_mac_delay": "002, Figure 4.9"},
    columns=("tempest_throughput", "hfs_best_delay", "tempest_top_twfi"),
    aqms=_OF_LAYERS,
    quick="most of the events, and four of nine buffers",
    variants=_VARIANTS,
    tests=_tests(_OF_LAYERS, ())[1:],
    shared={**_CONTROLLER, **_STATIONS, "measure": "fairness"},
    quick_flags={"n": "200k"},
)

_TIMED = ("hfs", "hfs-wf2q-plus", "hfs-drr", "double-drr", "double-wf2q-plus")
HFS_TIME = Modular(
    name="hfs-time",
    title="What two layers cost",
    source="document 002, sections 4.2.4.2 and 4.2.5.3",
    figures={"hfs_time": "002, Figures 4.10 and 4.13"},
    columns=("tempest_ns", "tempest_harness", "tempest_alone"),
    aqms=(*_TIMED, *WIRED),
    quick="most of the events, and four of nine buffers",
    variants=(),
    one_at_a_time=True,
    tests=_tests(_TIMED, WIRED),
    shared={**_CONTROLLER, **_STATIONS, "measure": "time", "repeat": "5"},
    quick_flags={"n": "2M", "repeat": "3"},
)

ALL_HFS = (HFS, HFS_LAYERS, HFS_TIME)


# What theory says.


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


# What is measured.


def losses_of(summary: Mapping[str, Any]) -> list[float]:
    """Of the stations of a run."""
    found = {flow["station"]: float(flow["loss"]) for flow in summary["flows_detail"]}
    return [found[station] for station in sorted(found)]


def good_twfi_ms(summary: Mapping[str, Any]) -> float | None:
    """The worst T-WFI of the heaviest flows to stations in good condition."""
    return good(summary, "t_wfi_ms")


def best_delay(summary: Mapping[str, Any]) -> float | None:
    """The longest wait in the heaviest flow to the station in the best condition, in departures."""
    flows = [flow for flow in summary["flows_detail"] if flow["station"] == STATIONS - 1]
    heaviest = max(flows, key=lambda flow: int(flow["weight"]), default=None)
    return None if heaviest is None else heaviest["max_delay_dequeues"]
