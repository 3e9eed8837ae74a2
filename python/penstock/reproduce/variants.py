"""Assumptions that the paper leaves open or that decide a result, each changed alone in a few more runs.

The runs of an experiment give the verdicts. A variant only answers why a claim does not hold: if it holds with one
assumption changed, that assumption is the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.reproduce.paths import put

ALL = ("droptail", "ared", "codel", "green", "pink")


@dataclass(frozen=True)
class Variant:
    """One changed assumption."""

    name: str
    change: str  # reads well after "with"
    aqms: tuple[str, ...] = ALL  # those it can touch; the others keep their runs
    tcp: Mapping[str, Any] = field(default_factory=dict)
    aqm: Mapping[str, Any] = field(default_factory=dict)
    by_path: Mapping[str, Any] = field(default_factory=dict)
    settings: tuple[str, ...] = ()  # those it is run in; none: all of the quick form
    topology: Mapping[str, Any] = field(default_factory=dict)
    reading: bool = False  # the document may mean this just as well: told beside claims that hold, too

    def apply(self, tree: dict[str, Any]) -> None:
        """Makes the change in a scenario."""
        tree["tcp"].update(self.tcp)
        tree["topology"].update(self.topology)
        links = tree["topology"].get("links", ())
        for table in [tree["aqm"]] if "aqm" in tree else [link["aqm"] for link in links if "aqm" in link]:
            table.update(self.aqm)
        for path, value in self.by_path.items():
            put(tree, path, value)


# A flow that loses its only segment is silent for the whole timeout, and the worst second shows it.
RTO_200MS = Variant("rto-200ms", "a timeout floor of 200 ms instead of 1 s", tcp={"min_rto": "200ms"})
# ns-3.24's default sizes of both sockets' buffers.
NS3_BUFFERS = Variant(
    "buffers-128kB", "socket buffers of 131072 B", tcp={"receive_buffer": "131072B", "send_buffer": "131072B"}
)
# From one segment, slow start needs several round trips to reach a share of 60 segments.
FIRST_WINDOW = Variant("first-window-10", "a first window of 10 segments instead of 1", tcp={"initial_window": 10})
# So large that nobody begins slowly: what is left of the time that a join takes is PINK's own.
NO_SLOW_START = Variant("no-slow-start", "a first window of 400 segments", aqms=("pink",), tcp={"initial_window": 400})
# A newcomer's bunches wait alone.
FLOW_QUEUES = Variant("flow-queues", "a queue for each flow behind PINK", aqms=("pink",), aqm={"queue": "fq"})
# What is left is PINK's own rule, without what senders do in slow start and what one queue makes of it.
FLOW_QUEUES_NO_SLOW_START = Variant(
    "flow-queues-no-slow-start",
    "a queue for each flow behind PINK and a first window of 400 segments",
    aqms=("pink",),
    tcp={"initial_window": 400},
    aqm={"queue": "fq"},
)
# ns-3.24's default segment.
NS3_SEGMENT = Variant("segment-536", "segments of 536 B instead of 1000", tcp={"mss": "536B"})
# Eq. 1 as it is: no dithering, no half first flight, no wait for others' cuts.
LITERAL = Variant("literal-windows", "PINK's windows as eq. 1 has them", aqms=("pink",), aqm={"window": "literal"})
# RFC 6675, 6937 and 6928.
MODERN = Variant(
    "modern-tcp", "SACK, PRR and a first window of 10", tcp={"sack": True, "prr": True, "initial_window": 10}
)

VARIANTS = (
    RTO_200MS,
    # ns-3's own default: every second segment at once, a single one after 200 ms.
    Variant(
        "ack-pairs",
        "delayed ACKs (every second segment, 200 ms)",
        tcp={"ack_every_segment": False, "delayed_ack_timeout": "200ms"},
    ),
    # Default c leaves room for headers: windows count payload, the link carries 1052 B for each 1000 B of it.
    Variant("no-pink-margin", "PINK's c = 1 instead of 0.95", aqms=("pink",), aqm={"c": 1.0}),
    # sqrt(3/2), which the law of TCP has for an ACK of every segment, as in these testbeds.
    Variant("green-c-ack-every-segment", "GREEN's c = 1.22 instead of 0.93", aqms=("green",), aqm={"c": 1.22}),
    NS3_BUFFERS,
)
