"""The testbeds of `weir-grid`: what a link meets, and what people notice of it.

QUIC is CUBIC whose window nobody can write (`opaque = true`); `quick` testbeds are short ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.papers._shared.weir import Flow, bed, bulk, call
from penstock.reproduce.base import Case
from penstock.reproduce.settings import Listed

QUICK = ("weir", "fq-codel", "cake")  # of the quick form and of the picture
RATES = str(Path(__file__).with_name("rates.csv"))


@dataclass(frozen=True)
class Grid(Listed):
    """Testbeds with a form that is short."""

    def cases(self, quick: bool, seeds: int) -> Iterator[Case]:
        """Yields the runs; those of the quick form are of WEIR and of what is usually advised."""
        return (case for case in super().cases(quick, seeds) if not quick or case.aqm in QUICK)

    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """Returns the scenario of a run; the quick form is a fourth of it."""
        tree = super().tree(case, quick)
        if quick:
            for key in ("duration", "warmup"):
                tree[key] = f"{max(int(tree[key][:-1]) // 4, 2)}s"
        return tree


KIND = Grid


def web(per_second: float, mean: str, most: str, **keys: Any) -> Flow:
    """Pages."""
    return {"kind": "web", "per_second": per_second, "mean_size": mean, "max_size": most, **keys}


def udp(rate: str) -> Flow:
    """Packets that heed nothing."""
    return {"kind": "cbr", "rate": rate, "start": "3s"}


def home(opaque: bool = False) -> list[Flow]:
    """A household: uploads, a film, pages, two calls, a camera, and things that say a word now and then."""
    quic = {"opaque": True} if opaque else {}
    film = {"kind": "http", "size": "300kB", "first": "1kB", "idle": "3s", "connection": "same", "count": 5, **quic}
    things = {"kind": "http", "size": "2kB", "idle": "8s", "connection": "same", "count": 30}
    return [
        bulk(2, node="pc"),
        bulk(node="tv", tcp={"cc": "bbr3"}, **quic),
        call(node="phone"),
        call(node="phone2", talk_spurts=True),
        web(2, "60kB", "2MB", node="tablet", **quic),
        {**film, "node": "laptop"},
        {**things, "node": "things"},
        {"kind": "video", "rate": "1Mbit/s", "node": "camera"},
    ]


def cell(told: bool) -> dict[str, Any]:
    """A rate that changes ten times a second, as rates.csv has it."""
    return {"changes": [{"link": "bottleneck", "direction": "forward", "table": RATES, "told": told}]}


NEAR = ("10Mbit/s", 19.0, "200kB")
SATELLITE = ("4Mbit/s", 349.0, "700kB")
CELL = ("10Mbit/s", 24.0, "300kB")
CELL_FLOWS = [bulk(4), web(1, "60kB", "1MB"), call()]
MIXED = [bulk(2, tcp={"cc": control}) for control in ("cubic", "newreno", "bbr", "bbr3")]
L4S = [bulk(2, tcp={"cc": "cubic", "ecn": True}), bulk(2, tcp={"cc": "prague"})]
PATHS = [bulk(access_delay=f"{delay}ms") for delay in (0.5, 10, 25, 60, 120)]

SETTINGS = (
    *(bed(f"dsl-{n}", f"DSL, {n} transfers", [bulk(n), call()], quick=n < 200) for n in (2, 8, 32, 64, 200)),
    bed("sat-4", "satellite, 4 transfers", [bulk(4), call(start="10s")], link=SATELLITE, seconds=120, warmup=20),
    bed("sat-32", "satellite, 32 transfers", [bulk(32), call(start="10s")], link=SATELLITE, seconds=120, warmup=20),
    bed("home-20", "household, 20 Mbit/s", home(), link=("20Mbit/s", 14, "250kB"), seconds=60),
    bed("home-5", "household, 5 Mbit/s", home(), link=("5Mbit/s", 14, "125kB"), seconds=60),
    bed("home-quic", "household with QUIC, 20 Mbit/s", home(opaque=True), link=("20Mbit/s", 14, "250kB"), seconds=60),
    bed("shorts", "many short transfers", [bulk(), web(60, "10kB", "500kB"), call()]),
    bed(
        "hosts",
        "hosts with 1, 4 and 16 transfers",
        [bulk(count, node=node) for node, count in (("a", 1), ("b", 4), ("c", 16))] + [call(node="d")],
        link=("20Mbit/s", 19, "250kB"),
        seconds=60,
    ),
    bed(
        "two-way",
        "both directions",
        [bulk(4), bulk(4, direction="reverse"), call()],
        seconds=60,
        warmup=15,
    ),
    bed("rtts", "round trips of 10 to 250 ms", [*PATHS, call()], link=("10Mbit/s", 3.5, "250kB"), seconds=60),
    bed("near", "2 ms", [bulk(2), call()], link=("10Mbit/s", 0.05, "250kB"), more={"topology.access_delay": "0.45ms"}),
    bed("controls", "CUBIC, NewReno, BBR, BBRv3", [*MIXED, call()], link=NEAR, seconds=60),
    bed("l4s", "CUBIC and Prague, 40 Mbit/s", [*L4S, call()], link=("40Mbit/s", 9, "500kB"), seconds=60, quick=False),
    bed("quic-2", "2 QUIC, 2 TCP", [bulk(2, opaque=True), bulk(2), call()], link=NEAR),
    bed("quic-8", "8 QUIC, 2 TCP", [bulk(8, opaque=True), bulk(2), call()], link=NEAR),
    bed("udp-half", "UDP at half of the link", [bulk(4), udp("5Mbit/s"), call()], link=NEAR),
    bed("udp-flood", "UDP at twice the link", [bulk(4), udp("20Mbit/s"), call()], link=NEAR),
    bed("cell-told", "a cell, rate told", CELL_FLOWS, link=CELL, seconds=110, quick=False, more=cell(told=True)),
    bed("cell-untold", "a cell, rate not told", CELL_FLOWS, link=CELL, seconds=110, more=cell(told=False)),
    bed(
        "giga",
        "100 transfers, 1 Gbit/s",
        [bulk(100), call(start="1s")],
        link=("1Gbit/s", 9, "2500kB"),
        seconds=10,
        warmup=2,
        quick=False,
        more={"topology.access_rate": "10Gbit/s"},
    ),
)
