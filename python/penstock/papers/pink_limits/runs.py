"""The runs of `pink-limits`."""

from __future__ import annotations

from typing import Any

from penstock.reproduce.settings import Setting

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


# The bound of Theorem 1 is BW x RTT: 10 Mbit/s times 105.8 ms of propagation and 0.9 ms of transmission.
THEOREM_1_BYTES = 133_350


def _burst_settings() -> tuple[Setting, ...]:
    return tuple(
        Setting(
            f"bursts-{window}",
            f"all first flights at once, {window} windows",
            change={
                "duration": "20s",
                "warmup": "5s",
                "topology.limit": "500kB",  # so that PINK's bound limits the queue, and not the buffer
                "topology.access_rate": "1Gbit/s",
                "tcp.initial_window": 200,  # no slow start: every flow fills its window at once
                "flows": [{"kind": "bulk", "count": 1}],
                "aqm.window": window,
                "invariants": {"max_queue": f"{THEOREM_1_BYTES}B", "no_drops": True},
            },
            counts=BURST_COUNTS,
            quick_counts=(2, 64),
        )
        for window in ("literal", "dither")
    )


SETTINGS = (*_segment_settings(), *_udp_settings(), *_burst_settings())
