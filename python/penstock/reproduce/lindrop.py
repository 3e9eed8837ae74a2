"""LINDROP beside other disciplines on long paths: document 001, sections 3 and 4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.reproduce.settings import Listed, Setting
from penstock.reproduce.variants import Variant

EIGHT = ("droptail", "red", "ared", "avq", "pi", "rem", "an-aqm", "lindrop")
SAME_BUFFER = "droptail-300"  # drop tail with LINDROP's buffer, which the paper does not have
NINE = ("droptail", SAME_BUFFER, *EIGHT[1:])
LIMIT = 300  # packets, of all but drop tail
NETWORKS = {"lan": ("LAN", "2ms"), "wan-100": ("WAN_100", "100ms"), "wan-300": ("WAN_300", "300ms")}
LOADS = {"low": 10, "moderate": 100, "heavy": 1000}
SENDERS, RECEIVERS = ("n1", "n2", "n3"), ("n4", "n5", "n6")
PATHS = tuple((a, b) for a in SENDERS for b in RECEIVERS)

# Table 2. Packets are of 1500 B, but for one flow in ten. ARED's thresholds follow from its target: 50 and 150 packets
# of 1500 B are those of 12 ms at 100 Mbit/s. What the table leaves open is as in ns-2: RED's wait, AVQ without dropped
# arrivals.
TABLE_2: dict[str, dict[str, Any]] = {
    "droptail": {"topology.links.0.limit": "100p"},
    SAME_BUFFER: {"aqm.name": "droptail"},
    "red": {"aqm.min_threshold": "50p", "aqm.max_threshold": "150p", "aqm.mean_packet": "1500B", "aqm.wait": True},
    "ared": {"aqm.target": "12ms", "aqm.mean_packet": "1500B"},
    "avq": {"aqm.gamma": 0.98, "aqm.adapt_on_drop": False, "aqm.mean_packet": "1500B"},
    "pi": {"aqm.reference": "100p"},
    "rem": {"aqm.target": "100p", "aqm.mean_packet": "1500B"},
    "an-aqm": {"aqm.target_ratio": 0.3, "aqm.mean_packet": "1500B"},
    "lindrop": {
        "aqm.avg_min": 0,
        "aqm.avg_max": 50,
        "aqm.n_pu": 0.98,
        "aqm.n_pd": 1.05,
        "aqm.mean_packet": "1500B",
    },
}
# Per short-lived flow, in the order of the loads: 28 transfers a second in all, whatever the load.
WEB_PER_SECOND = {"low": 12.5, "moderate": 1.25, "heavy": 0.125}


def connections(load: str) -> list[dict[str, Any]]:
    """One tenth of small packets; of the others a quarter short-lived; dealt to nine paths in turn; UDP backward."""
    total = LOADS[load]
    small = total // 10
    web = (total - small) // 4
    bulk = total - small - web
    kinds: tuple[tuple[int, dict[str, Any]], ...] = (
        (bulk, {"kind": "bulk", "start_spread": "1s"}),
        (small, {"kind": "bulk", "start_spread": "1s", "tcp": {"mss": "484B"}}),
        (web, {"kind": "web", "per_second": WEB_PER_SECOND[load]}),
    )
    return [*_dealt(kinds), *_backward()]


def _dealt(kinds: tuple[tuple[int, dict[str, Any]], ...]) -> Iterator[dict[str, Any]]:
    begin = 0
    for number, flow in kinds:
        for place, (sender, receiver) in enumerate(PATHS):
            count = sum(1 for i in range(begin, begin + number) if i % len(PATHS) == place)
            if count:
                yield {**flow, "count": count, "from": sender, "to": receiver}
        begin += number


def _backward() -> list[dict[str, Any]]:
    """A tenth of the way back, in three streams of packets of 1000 B with headers."""
    return [
        {"kind": "cbr", "rate": "3333333bit/s", "packet_size": "972B", "from": receiver, "to": sender}
        for sender, receiver in zip(SENDERS, RECEIVERS, strict=True)
    ]


OVER_TIME = ("lan-moderate", "wan-100-low", "wan-300-moderate")  # Figures 6 to 8


def _comparison() -> Iterator[Setting]:
    for network, (title, delay) in NETWORKS.items():
        for load, total in LOADS.items():
            name = f"{network}-{load}"
            change: dict[str, Any] = {"topology.links.0.delay": delay, "flows": connections(load)}
            change["output.series"] = (
                name in OVER_TIME
            )  # the seconds of a thousand flows would be all there is to store
            yield Setting(name, f"{title}, {load}", aqms=NINE, change=change, flows=total)


STEPS_UP = (0.90, 0.95, 0.98, 0.99)  # n_pu
STEPS_DOWN = (1.01, 1.02, 1.05, 1.10)  # n_pd
TUNED_MAX = (150, 50)  # Figures 3 and 4
AVG_MAX = (10, 20, 30, 40, 50, 75, 100, 150, 200)  # Figure 5
_QUICK_MAX = (10, 30, 50, 100, 200)


def _tuning() -> Iterator[Setting]:
    """LINDROP alone, LAN and low congestion. The paper's figures do not tell their values in the text."""
    flows = connections("low")
    for most in TUNED_MAX:
        for up in STEPS_UP:
            for down in STEPS_DOWN:
                change: dict[str, Any] = {"flows": flows, "aqm.avg_max": most, "aqm.n_pu": up, "aqm.n_pd": down}
                change["output.series"] = False
                label = f"avg_max {most}, n_pu {up:.2f}, n_pd {down:.2f}"
                quick = up in (0.90, 0.98) and down in (1.01, 1.05)
                yield Setting(f"steps-{most}-{up:.2f}-{down:.2f}", label, ("lindrop",), change, quick=quick, flows=10)
    for most in AVG_MAX:
        change = {"flows": flows, "aqm.avg_max": most, "output.series": False}
        yield Setting(f"max-{most}", f"avg_max {most}", ("lindrop",), change, quick=most in _QUICK_MAX, flows=10)


_COMPARED = tuple(setting.name for setting in _comparison())

LINDROP = Listed(
    name="lindrop",
    title="LINDROP on long paths",
    source="document 001, sections 3 and 4",
    figures={
        "delay_throughput": "Tables 3 and 4",
        "delay_queue": "Table 5",
        "queue_time": "Figures 6 to 8",
        "delay_drops": "",
        "lindrop_steps": "Figures 3 and 4",
        "lindrop_max": "Figure 5",
    },
    columns=("throughput_all", "queue_packets", "queue_swing", "drops", "own_drops"),
    aqms=NINE,
    quick="half of the values of LINDROP's parameters, and runs of 12 s instead of 200 s",
    variants=(
        Variant(
            "level-steps",
            "LINDROP's n_pd = 1.02, so that a step down and a step up cancel",
            aqms=("lindrop",),
            aqm={"n_pd": 1.02},
            settings=_COMPARED,
        ),
        Variant(
            "falling-steps",
            "LINDROP's n_pd = 1.005: steps down outweigh as many steps up",
            aqms=("lindrop",),
            aqm={"n_pd": 1.005},
            settings=_COMPARED,
        ),
        Variant(
            "less-web",
            "one short transfer in 8 s of all flows together instead of 25 each second",
            aqms=NINE,
            by_path={f"flows.{place}.per_second": 0.0625 for place in (8, 9)},
            settings=tuple(f"{network}-low" for network in NETWORKS),
        ),
        # The paper does not say how long it ran; with 800 ms of round trip the beginning counts.
        Variant(
            "runs-20s",
            "runs of 20 s, most of which is the beginning",
            aqms=NINE,
            by_path={"duration": "20s", "warmup": "4s"},
            settings=("wan-300-heavy",),
        ),
        Variant(
            "avq-learns-from-drops",
            "AVQ's capacity adapted by dropped arrivals too, as its own paper has it",
            aqms=("avq",),
            aqm={"adapt_on_drop": True},
            settings=_COMPARED[:3],
        ),
    ),
    keeps_series=True,
    settings=(*_comparison(), *_tuning()),
    per_aqm=TABLE_2,
    quick_change={"duration": "12s", "warmup": "4s"},
)
