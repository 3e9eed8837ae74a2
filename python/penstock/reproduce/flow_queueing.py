"""Flow queueing with PIE, CoDel and Minstrel PIE: document 004, chapter 5.

The document leaves open how much the unresponsive stream sends over its link of 100 Mbit/s. Here it sends as much as
the link has, as on the document's other testbed (Table 4.9: 10 Mbit/s over 10 Mbit/s); variants say what other rates
give.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.reproduce.base import Case
from penstock.reproduce.settings import Listed, Setting, put
from penstock.reproduce.variants import Variant

UPLOADS = (1, 4, 8, 12)
MIXES = (1, 5)
PHASES_S = ((25, 75), (125, 175), (225, 275))  # in which the unresponsive stream is on
CONTROLS, CALL = "controls", "voip"

UDP_RATE = "100Mbit/s"
PIE_LIMIT = "1000p"  # Linux's default; that of fq_pie and fq_codel, 10240, is in the scenario file


@dataclass(frozen=True)
class Altered(Variant):
    """A variant of some settings only, which may also change links or the stream whose rate is not known."""

    within: tuple[str, ...] = ("up", "mix")  # how the names of its settings begin
    topology: Mapping[str, Any] = field(default_factory=dict)
    rate: str = ""

    def apply(self, tree: dict[str, Any]) -> None:
        """Makes the change in a scenario."""
        super().apply(tree)
        tree["topology"].update(self.topology)
        for flow in tree["flows"]:
            if self.rate and flow.get("rate") == UDP_RATE:
                flow["rate"] = self.rate


@dataclass(frozen=True)
class Tests(Listed):
    """Settings whose disciplines have Linux's default limits."""

    def variant_cases(self, seeds: int) -> Iterator[Case]:
        """Each variant for the settings it is about."""
        within = {variant.name: variant.within for variant in self.variants if isinstance(variant, Altered)}
        for case in super().variant_cases(seeds):
            if case.setting.startswith(within[case.variant]):
                yield case

    def in_subset(self, case: Case) -> bool:
        """All: a variant leaves the runs of other settings as they are."""
        return not case.variant

    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """As for any settings, with PIE's own limit, and no streams that begin after a shorter run has ended."""
        tree = super().tree(case, quick)
        if case.aqm == "pie":
            put(tree, "topology.limit", PIE_LIMIT)
        end_s = float(str(tree["duration"]).removesuffix("s"))
        tree["flows"] = [dict(flow) for flow in tree["flows"] if float(flow["start"].removesuffix("s")) < end_s]
        return tree


def _stream(start_s: int, stop_s: int, rate: str, packet: str) -> dict[str, Any]:
    return {"kind": "cbr", "rate": rate, "packet_size": packet, "start": f"{start_s}s", "stop": f"{stop_s}s"}


def _uploads(count: int) -> list[dict[str, Any]]:
    """`tcp_nup` with an unresponsive stream that comes and goes; 1470 B are iperf's."""
    tcp = {"kind": "bulk", "count": count, "start": "0s", "start_spread": "1s"}
    return [tcp, *(_stream(start, stop, UDP_RATE, "1470B") for start, stop in PHASES_S)]


def _mix(count: int) -> dict[str, Any]:
    """Table 4.9; its delays are taken as parts of the round trip, 100 ms together."""
    tcp = {"kind": "bulk", "count": count, "start": "1s"}
    return {
        "duration": "100s",
        "topology.rate": "10Mbit/s",
        "topology.delay": "40ms",
        "topology.limit": "200p",
        "topology.access_rate": "100Mbit/s",
        "topology.access_delay": "5ms",
        "tcp.mss": "948B",  # 1000 B with headers
        "flows": [tcp, _stream(*PHASES_S[0], "10Mbit/s", "972B")],
    }


_TWO_CONTROLS: list[dict[str, Any]] = [
    {"kind": "bulk", "count": 2, "start": "0s", "start_spread": "1s"},
    {"kind": "bulk", "count": 2, "start": "0s", "start_spread": "1s", "tcp": {"cc": "bbr"}},
]
_WITH_A_CALL: list[dict[str, Any]] = [
    {"kind": "bulk", "count": 4, "start": "0s", "start_spread": "1s"},
    {"kind": "bulk", "count": 4, "start": "0s", "start_spread": "1s", "direction": "reverse"},
    {"kind": "voip", "start": "0s"},
]


_ONE_WAY = {"delay": "80ms", "access_delay": "10ms"}


def _settings(aqms: tuple[str, ...]) -> tuple[Setting, ...]:
    """The tests of section 5.2.3."""
    return (
        *(Setting(f"up-{n}", f"tcp_{n}up", aqms=aqms, change={"flows": _uploads(n)}) for n in UPLOADS),
        Setting(CONTROLS, "2 CUBIC, 2 BBR", aqms=aqms, change={"flows": _TWO_CONTROLS}),
        Setting(CALL, "VoIP, 4 TCP each way", aqms=aqms, change={"flows": _WITH_A_CALL, "duration": "100s"}),
    )


def _variants(aqms: tuple[str, ...]) -> tuple[Variant, ...]:
    pies = tuple(aqm for aqm in aqms if aqm.endswith("pie"))
    linux = tuple(aqm for aqm in pies if aqm != "fq-minstrel-pie")
    queues = tuple(aqm for aqm in aqms if aqm != "pie")
    return (
        *(
            Altered(f"udp-{mbps}", f"UDP at {mbps} Mbit/s", aqms, within=("up",), rate=f"{mbps}Mbit/s")
            for mbps in (28, 400)
        ),
        Altered("departure-rate", "the delay by Little's law", pies, aqm={"estimator": "departure-rate"}),
        Altered("linux", "Linux's arithmetic", linux, aqm={"compat": "linux"}),
        Altered("newreno", "NewReno instead of CUBIC", queues, within=("up",), tcp={"cc": "newreno"}),
        Altered("limit-1000p", "1000 packets of room", queues, topology={"limit": "1000p"}),
    )


PIE_AQMS = ("pie", "fq-pie", "fq-codel")
FQ_PIE = Tests(
    name="fq-pie",
    title="FQ-PIE beside PIE and FQ-CoDel",
    source="document 004, section 5.2.3",
    figures={
        "fq_throughput": "004, Figures 5.4, 5.6 and 5.8",
        "fq_rtt": "004, Figures 5.5, 5.7 and 5.9",
        "fq_controls": "004, Figures 5.10 and 5.11",
        "fq_fairness": "004, Table 5.1",
        "fq_call": "004, Figures 5.12 and 5.13, Table 5.2",
    },
    columns=("tcp_off", "tcp_on", "udp_on", "jain_on", "rtt", "rtt99", "call_delay", "call_jitter", "call_loss"),
    aqms=PIE_AQMS,
    quick="the second and third time that UDP is on",
    variants=_variants(PIE_AQMS),
    keeps_series=True,
    settings=_settings(PIE_AQMS),
    quick_change={"duration": "100s"},
)

MINSTREL_AQMS = ("fq-pie", "fq-minstrel-pie")
FQ_MINSTREL_PIE = Tests(
    name="fq-minstrel-pie",
    title="FQ-Minstrel PIE beside FQ-PIE",
    source="document 004, section 5.3",
    figures={
        "fq_mix": "004, Figures 5.14 and 5.15, Tables 5.3 and 5.4",
        "fq_throughput": "004, Figures 5.16, 5.18 and 5.20",
        "fq_rtt": "004, Figures 5.17, 5.19 and 5.21",
        "fq_controls": "004, Figures 5.22 and 5.23",
        "fq_fairness": "004, Table 5.5",
        "fq_call": "004, Figures 5.24 and 5.25, Table 5.6",
    },
    columns=("tcp_off", "tcp_on", "udp_on", "jain_on", "rtt", "rtt99", "delay_mean", "call_delay", "call_loss"),
    aqms=MINSTREL_AQMS,
    quick="the second and third time that UDP is on",
    variants=(
        *_variants(MINSTREL_AQMS),
        Altered("target-5ms", "the target held at its least", ("fq-minstrel-pie",), aqm={"target": "5ms"}),
        Altered("rtt-200ms", "Table 4.9's delays one way", MINSTREL_AQMS, within=("mix",), topology=_ONE_WAY),
    ),
    keeps_series=True,
    settings=(
        *(Setting(f"mix-{n}", f"{n} TCP, 1 UDP, 10 Mbit/s", MINSTREL_AQMS, _mix(n)) for n in MIXES),
        *_settings(MINSTREL_AQMS),
    ),
    quick_change={"duration": "100s"},
)

ALL_FLOW_QUEUEING = (FQ_PIE, FQ_MINSTREL_PIE)
