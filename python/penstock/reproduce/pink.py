"""PINK's further experiments: documents 000 (sections 3 to 6) and 002 (section 3.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.reproduce.settings import Listed, Setting
from penstock.reproduce.variants import (
    ALL,
    FIRST_WINDOW,
    FLOW_QUEUES,
    FLOW_QUEUES_NO_SLOW_START,
    LITERAL,
    MODERN,
    NO_SLOW_START,
    NS3_BUFFERS,
    NS3_SEGMENT,
    RTO_200MS,
    Variant,
)

FIVE = ALL
RTT_STEP_MS = 50
JOIN_STEP_S = 25.0

PINK_RTT = Listed(
    name="pink-rtt",
    title="PINK with round trips of 100 to 250 ms",
    source="document 000, section 6.2",
    figures={
        "shares": "Figures 11 to 14",
        "ends": "",
    },
    columns=("last_end", "ended", "settled", "rtt90", "drops", "delivered"),
    aqms=FIVE,
    quick="nothing",
    variants=(
        FIRST_WINDOW,
        NO_SLOW_START,
        FLOW_QUEUES,
        FLOW_QUEUES_NO_SLOW_START,
        LITERAL,
        RTO_200MS,
        NS3_BUFFERS,
        MODERN,
    ),
    keeps_series=True,
    settings=(Setting("", "", aqms=FIVE),),
)

REALLOCATIONS = ("off", "paper", "max-min")
# Flow 3 ends behind 0.5 Mbit/s, as flow 2 does behind 2 Mbit/s.
_TWO_CORNERS: list[dict[str, Any]] = [
    {"kind": "bulk", "start": f"{25 * i}s", "from": "local", "to": {1: "corner", 2: "nook"}.get(i, "remote")}
    for i in range(8)
]

PINK_MULTI = Listed(
    name="pink-multi",
    title="PINK with a second bottleneck",
    source="document 000, sections 3.1 and 6.4",
    figures={"reallocation": "Figures 20 and 21", "corners": "", "utilization": "", "convergence": "", "evenness": ""},
    columns=("used_2", "used_4", "used_8", "converge", "fairness_4", "drops", "queue_max"),
    aqms=("pink",),
    quick="nothing",
    variants=(FIRST_WINDOW, LITERAL),
    keeps_series=True,
    settings=(
        *(Setting(mode, f"one bad flow, {mode}", change={"aqm.reallocation": mode}) for mode in REALLOCATIONS),
        *(
            Setting(f"{mode}-two", f"two bad flows, {mode}", change={"aqm.reallocation": mode, "flows": _TWO_CORNERS})
            for mode in REALLOCATIONS
        ),
    ),
)

SATELLITE: dict[str, Any] = {  # Table 3
    "topology.rate": "4Mbit/s",
    "topology.delay": "350ms",
    "topology.limit": "350kB",
    "warmup": "20s",
}
C_VALUES = tuple(round(0.80 + 0.01 * step, 2) for step in range(21))
C_QUICK = (0.80, 0.90, 0.92, 0.95, 0.97, 1.00)


def _c_settings() -> tuple[Setting, ...]:
    return tuple(
        Setting(f"{link}-{c:.2f}", f"{title}, c = {c:.2f}", change={**change, "aqm.c": c}, quick=c in C_QUICK)
        for link, title, change in (("dsl", "DSL", {}), ("sat", "satellite", SATELLITE))
        for c in C_VALUES
    )


PINK_C = Listed(
    name="pink-c",
    title="PINK's parameter c",
    source="document 000, section 6.5",
    figures={"throughput": "Figure 22", "rtt_c": "Figure 23"},
    columns=("throughput", "goodput", "rtt_min", "rtt", "rtt90", "drops"),
    aqms=("pink",),
    quick="values of c between the deciding ones, and runs of 60 s",
    variants=(),
    keeps_series=True,
    settings=_c_settings(),
    quick_change={"duration": "60s"},
)

PPDR_AQMS = ("codel", "red", "droptail", "pink")
AGENCIES = ("eoc", "fire-brigade", "police-station", "hospital")


def _to_agencies() -> list[dict[str, Any]]:
    """Flows of 700, 750, 800 and 850 ms, each with the 20 ms of the client links besides."""
    return [{"kind": "bulk", "from": "meoc", "to": agency} for agency in AGENCIES]


_FILES: list[dict[str, Any]] = [{"kind": "transfer", "size": "5MB", "count": 1, "from": "meoc", "to": "eoc"}]


def _for_ppdr(*variants: Variant) -> tuple[Variant, ...]:
    return tuple(replace(variant, aqms=PPDR_AQMS) for variant in variants)


PINK_PPDR = Listed(
    name="pink-ppdr",
    title="PINK in an emergency network",
    source="document 002, section 3.2",
    figures={
        "joins": "002, Figures 3.25 to 3.28",
        "distances": "002, Figures 3.29 and 3.30",
        "completion": "002, Figure 3.31",
    },
    columns=("use_to_end", "jain_mean", "jain", "rtt90", "last_end", "drops"),
    aqms=PPDR_AQMS,
    quick="numbers of files but 2, 8 and 32",
    variants=(*_for_ppdr(FIRST_WINDOW, RTO_200MS, NS3_BUFFERS, NS3_SEGMENT, MODERN), NO_SLOW_START),
    keeps_series=True,
    settings=(
        Setting("joins", "4 flows, 5 s apart", aqms=PPDR_AQMS),
        Setting("distances", "4 flows of 700 to 850 ms", aqms=PPDR_AQMS, change={"flows": _to_agencies()}),
        Setting(
            "files",
            "5 MB each",
            aqms=PPDR_AQMS,
            change={"flows": _FILES, "duration": "900s"},
            counts=(2, 4, 8, 16, 32),
            quick_counts=(2, 8, 32),
        ),
    ),
)

MSS_BYTES = (536, 1000, 1448)
UDP_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
BURST_COUNTS = (2, 4, 8, 16, 32, 64)


def _segment_settings() -> tuple[Setting, ...]:
    return tuple(
        Setting(
            f"segments-{mss}-{rule}-{window}",
            f"{mss} B, {rule} senders, {window} windows",
            change={"tcp.mss": f"{mss}B", "tcp.silly_window": rule, "aqm.window": window},
            counts=(64,),
            quick=mss == 1448 and rule == "strict",
        )
        for mss in MSS_BYTES
        for rule in ("strict", "minshall")
        for window in ("literal", "dither")
    )


def _udp_flows(share: float) -> list[dict[str, Any]]:
    """Four TCP flows and, ten seconds later, a stream that takes this share of the link with its headers."""
    payload_bps = share * 10e6 * 1000 / 1028
    return [
        {"kind": "bulk", "count": 4, "start_spread": "1s"},
        {"kind": "cbr", "rate": f"{payload_bps:.0f}bit/s", "packet_size": "1000B", "start": "10s"},
    ]


def _udp_settings() -> tuple[Setting, ...]:
    return tuple(
        Setting(
            f"udp-{share:.0%}-{told}".replace("%", ""),
            f"UDP at {share:.0%} of the link, {label}",
            change={
                "flows": _udp_flows(share),
                "warmup": "15s",
                **({"aqm.reserve": f"{share * 10:g}Mbit/s"} if told == "reserved" else {}),
            },
            quick=share in (0.1, 0.5),
        )
        for share in UDP_SHARES
        for told, label in (("unknown", "PINK not told"), ("reserved", "reserved"))
    )


# Theorem 1 allows BW x RTT: 10 Mbit/s times 105.8 ms of propagation and 0.9 ms of sending on the bottleneck.
THEOREM_1_BYTES = 133_350


def _burst_settings() -> tuple[Setting, ...]:
    return tuple(
        Setting(
            f"bursts-{window}",
            f"all first flights at once, {window} windows",
            change={
                "duration": "20s",
                "warmup": "5s",
                "topology.limit": "500kB",  # so that the bound, and not the room, is what holds
                "topology.access_rate": "1Gbit/s",
                "tcp.initial_window": 200,  # nobody begins slowly: every window is filled at once
                "flows": [{"kind": "bulk", "count": 1}],
                "aqm.window": window,
                "invariants": {"max_queue": f"{THEOREM_1_BYTES}B", "no_drops": True},
            },
            counts=BURST_COUNTS,
            quick_counts=(2, 64),
        )
        for window in ("literal", "dither")
    )


PINK_LIMITS = Listed(
    name="pink-limits",
    title="Where PINK's promise ends",
    source="document 000, sections 3 and 4",
    figures={"segments": "", "udp": "", "bursts": "Theorem 1"},
    columns=("use", "goodput_all", "rtt90", "jain", "drops", "queue_max"),
    aqms=("pink",),
    quick="half of the settings",
    variants=(),
    keeps_series=False,
    settings=(*_segment_settings(), *_udp_settings(), *_burst_settings()),
)

# SYNs per second; each takes 52 B of the link. The flood begins when the transfers are under way.
FLOODS = (100, 1000, 10_000)
FLOOD_FROM_S = 5  # the warm-up: what is measured is the flood
SYN_BYTES = 52
SAMPLINGS = {"off": "every SYN counts", "after-drop": "SYNs count until a drop", "always": "who transmits counts"}


def _flood_setting(sampling: str, per_second: int) -> Setting:
    flood = {"kind": "synflood", "per_second": per_second, "start": f"{FLOOD_FROM_S}s"}
    transfers = {"kind": "bulk", "count": 8}
    return Setting(
        f"{sampling}-{per_second}",
        f"{SAMPLINGS[sampling]}, {f'{per_second:,} SYNs per second' if per_second else 'no flood'}",
        change={"aqm.sampling": sampling, "flows": [transfers, flood] if per_second else [transfers]},
        quick=per_second in (0, 1000),
        flows=8,
    )


PINK_FLOOD = Listed(
    name="pink-flood",
    title="PINK under a flood of SYNs",
    source="document 000, section 4",
    figures={"flood_time": "", "flood_cost": ""},
    columns=("goodput_all", "rtt90", "jain", "drops", "queue_max"),
    aqms=("pink",),
    quick="floods but that of 1,000 SYNs per second",
    variants=(),
    keeps_series=True,
    settings=tuple(_flood_setting(sampling, n) for sampling in SAMPLINGS for n in (0, *FLOODS)),
)

ALL_PINK = (PINK_RTT, PINK_MULTI, PINK_C, PINK_PPDR, PINK_LIMITS, PINK_FLOOD)
