"""Flow queueing with PIE, CoDel and Minstrel PIE: document 004, chapter 5.

The document leaves open how much the unresponsive stream sends over its link of 100 Mbit/s. Here it sends as much as
the link has, as on the document's other testbed (Table 4.9: 10 Mbit/s over 10 Mbit/s); variants say what other rates
give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.reproduce.base import Case
from penstock.reproduce.settings import Listed, Setting
from penstock.reproduce.variants import Variant

UPLOADS = (1, 4, 8, 12)
PHASES_S = ((25, 75), (125, 175), (225, 275))  # times in which the unresponsive stream is on
CONTROLS, CALL = "controls", "voip"

UDP_RATE = "100Mbit/s"


@dataclass(frozen=True)
class Altered(Variant):
    """A variant which may also change the stream whose rate is not known."""

    rate: str = ""

    @property
    def keys(self) -> dict[str, Any]:
        """The rate of the stream too."""
        return {**super().keys, **({"stream.rate": self.rate} if self.rate else {})}

    def apply(self, tree: dict[str, Any]) -> None:
        """Makes the change in a scenario."""
        super().apply(tree)
        for flow in tree["flows"]:
            if self.rate and flow.get("rate") == UDP_RATE:
                flow["rate"] = self.rate


@dataclass(frozen=True)
class Streaming(Listed):
    """Settings with streams that come and go."""

    VARIANT: ClassVar[type[Variant]] = Altered

    def in_subset(self, case: Case) -> bool:
        """All: a variant leaves the runs of other settings as they are."""
        return not case.variant

    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """As for any settings, without the streams that begin after a shorter run has ended."""
        tree = super().tree(case, quick)
        end_s = float(str(tree["duration"]).removesuffix("s"))
        tree["flows"] = [dict(flow) for flow in tree["flows"] if float(flow["start"].removesuffix("s")) < end_s]
        return tree


def stream(start_s: int, stop_s: int, rate: str, packet: str) -> dict[str, Any]:
    """An unresponsive stream of packets with so much payload."""
    return {"kind": "cbr", "rate": rate, "packet_size": packet, "start": f"{start_s}s", "stop": f"{stop_s}s"}


def _uploads(count: int) -> list[dict[str, Any]]:
    """`tcp_nup` with an unresponsive stream that comes and goes; 1470 B are iperf's."""
    tcp = {"kind": "bulk", "count": count, "start": "0s", "start_spread": "1s"}
    return [tcp, *(stream(start, stop, UDP_RATE, "1470B") for start, stop in PHASES_S)]


_TWO_CONTROLS: list[dict[str, Any]] = [
    {"kind": "bulk", "count": 2, "start": "0s", "start_spread": "1s"},
    {"kind": "bulk", "count": 2, "start": "0s", "start_spread": "1s", "tcp": {"cc": "bbr"}},
]
_WITH_A_CALL: list[dict[str, Any]] = [
    {"kind": "bulk", "count": 4, "start": "0s", "start_spread": "1s"},
    {"kind": "bulk", "count": 4, "start": "0s", "start_spread": "1s", "direction": "reverse"},
    {"kind": "voip", "start": "0s"},
]

SETTINGS = (  # the tests of section 5.2.3
    *(Setting(f"up-{n}", f"tcp_{n}up", change={"flows": _uploads(n)}) for n in UPLOADS),
    Setting(CONTROLS, "2 CUBIC, 2 BBR", change={"flows": _TWO_CONTROLS}),
    Setting(CALL, "VoIP, 4 TCP each way", change={"flows": _WITH_A_CALL, "duration": "100s"}),
)
