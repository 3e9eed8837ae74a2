"""The runs of `tempest-twfi`."""

from __future__ import annotations

from penstock.papers._shared.schedulers import (
    BOTH,
    DOUBLED,
    PACKET_MS,
    SEE,
    STATIONS,
    STEPS,
    TEN_EACH,
    flows_in,
    over_q,
)
from penstock.reproduce.tempest import Changed, Test

EMERGENCY = {"qmin": "0", "qmax": "300", "flowsets": "20::20,10::20,1::60", "burst": "1", "flowsmac": str(STATIONS)}
WIRED = "wired"


# Theoretical bounds, in packets of equal size.


def weight_sum(sets: str) -> int:
    """The largest value of all flows."""
    return sum(int(part.split("::")[0] or 1) * flows_in(part) for part in sets.split(","))


def t_wfi_bound_ms(alg: str, weight: int, sets: str = EMERGENCY["flowsets"]) -> float:
    """Worst-case T-WFI of a flow of this weight, as section 4.3.3.2 has it; the least weight is 1."""
    total = weight_sum(sets)
    if alg == "drr":
        return (total + total / weight + flows_in(sets) - 1) * PACKET_MS
    return 2 * total / weight * PACKET_MS


def waiting_bound_ms(qmax: int, weight: int, sets: str = EMERGENCY["flowsets"]) -> float:
    """Bound of the T-WFI of one layer if each dequeue phase empties the queue: a packet waits for `qmax` at most."""
    return (qmax - weight_sum(sets) / weight) * PACKET_MS


# With the 300 packets of Table 4.5 no scheduler has more than 67 ms, so a bound of 199 ms could not be broken.
ROOMY, ROOM = "roomy", 3000
TESTS = (
    Test(WIRED, "no second layer", ("drr", "wf2q-plus"), {}, 100),
    Test(ROOMY, f"no second layer, room for {ROOM} packets", ("drr", "wf2q-plus"), {"qmax": str(ROOM)}, 100),
    *over_q("hfs"),
)

VARIANTS = (
    DOUBLED,
    STEPS,
    BOTH,
    TEN_EACH,
    Changed("smooth", "smooth arrivals", SEE, flags={"burst": "0"}),
    Changed("long-bursts", "bursts of up to five packets for each unit of weight", SEE, flags={"burst": "5"}),
    Changed("never-empty", "100 packets left when arrivals begin", SEE, flags={"qmin": "100"}),
)
