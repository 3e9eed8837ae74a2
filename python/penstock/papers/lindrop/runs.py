"""LINDROP beside other disciplines on long paths: document 001, sections 3 and 4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.reproduce.settings import Setting

EIGHT = ("droptail", "red", "ared", "avq", "pi", "rem", "an-aqm", "lindrop")
SAME_BUFFER = "droptail-300"  # drop tail with LINDROP's buffer, which is not in the paper
NINE = ("droptail", SAME_BUFFER, *EIGHT[1:])
LIMIT = 300  # packets, of all but drop tail
NETWORKS = {"lan": ("LAN", "2ms"), "wan-100": ("WAN_100", "100ms"), "wan-300": ("WAN_300", "300ms")}
LOADS = {"low": 10, "moderate": 100, "heavy": 1000}
SENDERS, RECEIVERS = ("n1", "n2", "n3"), ("n4", "n5", "n6")
PATHS = tuple((a, b) for a in SENDERS for b in RECEIVERS)
# Arrivals per second of a short-lived flow, in the order of the loads: 28 transfers per second in total for each load.
WEB_PER_SECOND = {"low": 12.5, "moderate": 1.25, "heavy": 0.125}


def connections(load: str) -> list[dict[str, Any]]:
    """One flow of ten has small packets; a quarter of the others are short-lived; they use nine paths in turn."""
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
    """Three streams with packets of 1000 B, headers included, which use a tenth of the reverse direction."""
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
            change["output.series"] = name in OVER_TIME  # series of a thousand flows would take most of the storage
            yield Setting(name, f"{title}, {load}", aqms=NINE, change=change, flows=total)


STEPS_UP = (0.90, 0.95, 0.98, 0.99)  # n_pu
STEPS_DOWN = (1.01, 1.02, 1.05, 1.10)  # n_pd
TUNED_MAX = (150, 50)  # Figures 3 and 4
AVG_MAX = (10, 20, 30, 40, 50, 75, 100, 150, 200)  # Figure 5
_QUICK_MAX = (10, 30, 50, 100, 200)


def _tuning() -> Iterator[Setting]:
    """LINDROP alone in the LAN with low congestion. The paper shows these values only in figures."""
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


def _no_chance() -> Setting:
    """Ten flows that begin at once, and nothing that draws random numbers but the discipline."""
    flows = [{**flow, "start_spread": "0s"} for flow in connections("low") if flow["kind"] == "bulk"]
    return Setting("no-chance", "nothing random", ("red", "lindrop"), {"flows": flows, "output.series": False}, flows=8)


SETTINGS = (*_comparison(), *_tuning(), _no_chance())


# How the parameters of fit.toml are set that no path can name.


def _weigh(tree: dict[str, Any], weight: float) -> None:
    for link in tree["topology"]["links"]:
        if link.get("aqm", {}).get("name") == "lindrop":
            link["aqm"]["weight"] = float(f"{weight:.6g}")


def _window(tree: dict[str, Any], segments: float) -> None:
    """ns-2 counts windows in packets, whatever their size."""
    tree["tcp"]["receive_buffer"] = f"{round(segments) * 1448}B"
    for flow in tree["flows"]:
        if "tcp" in flow:
            size = int(str(flow["tcp"]["mss"]).removesuffix("B"))
            flow["tcp"] = {**flow["tcp"], "receive_buffer": f"{round(segments) * size}B"}


def _last(tree: dict[str, Any], _: float) -> None:
    """A short run has no time to warm up; nothing that is fitted leaves the beginning out."""
    tree["warmup"] = "0s"


def _browse(tree: dict[str, Any], share: float) -> None:
    for flow in tree["flows"]:
        if flow["kind"] == "web":
            flow["per_second"] = float(f"{flow['per_second'] * share:.6g}")


UNSAID = {"weight": _weigh, "window": _window, "duration": _last, "web": _browse}
