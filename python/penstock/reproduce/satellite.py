"""Congestion controls over a satellite link: document 002, section 2.2.2."""

from __future__ import annotations

from typing import Any

from penstock.reproduce.settings import Listed, Setting
from penstock.reproduce.variants import Variant

DROPTAIL = ("droptail",)
STANDARD = "75kB"
STEP_S = 10.0
# In the order in which they begin, three seconds apart.
SIX = ("noordwijk", "cubic", "newreno", "hybla", "highspeed", "bic")
THREE = ("newreno", "cubic", "noordwijk")
SIX_SETTING = "six-large"
NAMES = {
    "newreno": "NewReno",
    "cubic": "CUBIC",
    "noordwijk": "Noordwijk",
    "hybla": "Hybla",
    "highspeed": "HighSpeed",
    "bic": "BIC",
}


def _burst(cc: str) -> dict[str, Any]:
    """Noordwijk's first burst has 20 segments; those of the others have a first window of 10."""
    return {"initial_window": 20} if cc == "noordwijk" else {}


def _six() -> list[dict[str, Any]]:
    """As the text has it, with the files of the experiment before."""
    transfer = {"kind": "transfer", "size": "5MB"}
    return [{**transfer, "start": f"{3 * i}s", "tcp": {"cc": cc, **_burst(cc)}} for i, cc in enumerate(SIX)]


def _three(cc: str, buffer: str) -> Setting:
    tcp = {f"tcp.{key}": value for key, value in {"cc": cc, **_burst(cc)}.items()}
    change = {**tcp, **({"topology.limit": STANDARD} if buffer == "standard" else {})}
    return Setting(f"{cc}-{buffer}", f"3 {NAMES[cc]}, {buffer} buffer", aqms=DROPTAIL, change=change)


TCP_SATELLITE = Listed(
    name="tcp-satellite",
    title="TCP over a satellite link",
    source="document 002, section 2.2.2",
    figures={
        "sat_three": "002, Figures 2.8, 2.10 and 2.11",
        "sat_six": "002, Figure 2.9",
    },
    columns=("last_end", "use_to_end", "jain", "rtt", "rtt90", "drops"),
    aqms=DROPTAIL,
    quick="nothing",
    variants=(
        Variant("slow-start", "slow start without a first threshold", DROPTAIL, tcp={"initial_ssthresh": "1000MB"}),
        Variant("sack", "SACK and PRR", DROPTAIL, tcp={"sack": True, "prr": True}),
        Variant(
            "buffers-128kB",
            "socket buffers of 131072 B",
            DROPTAIL,
            tcp={"receive_buffer": "131072B", "send_buffer": "131072B"},
        ),
        Variant(
            "one-way-bdp",
            "a standard buffer of rate times one-way delay",
            DROPTAIL,
            topology={"limit": "37500B"},
            settings=tuple(f"{cc}-standard" for cc in THREE),
        ),
    ),
    keeps_series=True,
    settings=(
        *(_three(cc, buffer) for cc in THREE for buffer in ("large", "standard")),
        Setting(
            SIX_SETTING,
            "6 controls, large buffer",
            aqms=DROPTAIL,
            change={"topology.rate": "2Mbit/s", "topology.access_rate": "2Mbit/s", "flows": _six()},
        ),
    ),
)
