"""What the tests of packet schedulers share: document 002, section 4.3.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.reproduce.columns import Column
from penstock.reproduce.tempest import DOUBLE, INTEGRATED, Changed, Test, top


def flows_in(text: str) -> int:
    """How many flows these sets have; `k` is a thousand."""
    return sum(int(part.split("::")[1].replace("k", "000")) for part in text.split(","))


STATIONS = 20
GOOD_LOSS = 0.2
BUFFERS = (1, 5, 10, 20, 50, 100, 150, 200, 250)
PACKET_MS = 1700 * 8 / 54e3


def over_q(*algs: str) -> tuple[Test, ...]:
    """Tests of these schedulers over the number of packets that the second layer holds."""
    return tuple(Test(f"q-{q}", f"Q = {q}", algs, {"qmac": str(q)}, 100) for q in BUFFERS)


# What the document leaves open and what its result hangs on. Losses that range "linearly from 10^0 to 10^-4" may do so
# in their exponent, as here, or in themselves. `-intgr_th 80` is a weight where section 4.3.2.6 defines it, a chance of
# 8 %, and a chance of 80 % in the text about Table 4.6. docs/algorithms/hfs.md has what speaks for which.
LAYERED = (*DOUBLE, "hfs-wf2q-plus")
SEE = ("drr", "wf2q-plus", "qfq-plus", *INTEGRATED, *LAYERED)
_LINEARLY = 'the text has losses "ranging linearly"'
_PERCENT = "the text about Table 4.6 has a chance of 80 %"
STEPS = Changed(
    "steps",
    "losses in equal steps from 1 to 0.0001",
    SEE,
    reading=True,
    because=_LINEARLY,
    flags={"ploss": "steps"},
)
CHANCE = Changed(
    "chance",
    "a threshold of 80 % to arrive",
    INTEGRATED,
    reading=True,
    because=_PERCENT,
    flags={"intgr_th": "80%"},
)
STEPS_CHANCE = Changed(
    "steps-chance",
    "losses in equal steps and a threshold of 80 % to arrive",
    SEE,
    reading=True,
    because=f"{_LINEARLY}, and {_PERCENT}",
    flags={"ploss": "steps", "intgr_th": "80%"},
)
BOTH = Changed(
    "both",
    "thresholds that count what waits in both layers",
    LAYERED,
    reading=True,
    because='section 4.3.2.6 counts "pending packets inside the controller" and names no layer',
    flags={"qcount": "both"},
)
DOUBLED = Changed("doubled", "weights of stations doubled from one to the next", LAYERED, flags={"wdistr": "2"})
TEN_EACH = Changed("ten-each", "ten packets of each flow waiting at most", SEE, flags={"qmax": "10n", "qsing": "1"})


def losses(law: str = "powers") -> list[float]:
    """Of each station, from 1 to 0.0001: in equal steps of the exponent, or in equal `steps`."""
    parts = [i / (STATIONS - 1) for i in range(STATIONS)]
    return [1 + (1e-4 - 1) * x for x in parts] if law == "steps" else [10 ** (-4 * x) for x in parts]


def good_throughput(law: str = "powers", threshold: float = 0.08) -> float:
    """What arrives when only stations above the threshold are served, each alike. A weight of 80 is 0.08."""
    good = [1 - loss for loss in losses(law) if 1 - loss > threshold]
    return sum(good) / len(good)


def blind_throughput(law: str = "powers") -> float:
    """What arrives when the channel is not looked at."""
    return sum(1 - loss for loss in losses(law)) / STATIONS


def good(summary: Mapping[str, Any], key: str) -> float | None:
    """The same of stations in "intermediate conditions" and better: at most a fifth is lost (section 4.2.5.2)."""
    return top(summary, key, most_loss=GOOD_LOSS)


COLUMNS = {
    "tempest_good_twfi": Column("T-WFI ms, top weight, good station", "{:.2f}", lambda o: good(o.summary, "t_wfi_ms")),
}
