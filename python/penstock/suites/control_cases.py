"""The cases of RFC 9743, by its sections. Where nothing else is said the path has 20 Mbit/s, 50 ms and drop-tail."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.adversary.subject import SUBJECT
from penstock.suites.model import Case
from penstock.suites.networks import bdp_bytes, bulk, call, dumbbell, rate, step, udp, video, web

STANDARD = ("newreno", "cubic")  # RFC 5681 and RFC 9438
RATE, RTT = 20.0, 50.0  # Mbit/s and ms
ABOVE, BELOW = (0.2, 0.5, 1.0), (0.5, 1.0, 4.0)  # buffers in products of rate and round trip time
RATES, ROUND_TRIPS, DEPTHS = (1.0, 10.0, 100.0), (10.0, 50.0, 200.0), (0.25, 1.0, 4.0)
_QUICK_GRID = ((10.0,), (50.0,), DEPTHS)
SAME = (2, 8, 32)
QUEUES: Mapping[str, Any] = {
    "fq-codel": {"name": "fq-codel"},
    "pie": {"name": "pie", "ecn": True},
    "dualpi2": {"name": "dualpi2"},
}
BLACK_S, SECONDS = 20, 60  # when feedback stops, and the length of most runs
OUTAGE_S = 5
_OURS: dict[str, Any] = {"cc": SUBJECT}


def cases(quick: bool) -> list[Case]:
    """Returns the cases."""
    return [*_alone(), *_mixed(), *_general(quick), *_special()]


def _case(name: str, flows: Sequence[Mapping[str, Any]], depth: float = 1.0, **more: Any) -> Case:
    """Returns a case of `SECONDS` on the usual path; `depth` is that of the buffer in products."""
    mbit, rtt = more.pop("rate", RATE), more.pop("rtt", RTT)
    aqm = more.pop("aqm", "droptail")
    seconds = more.pop("seconds", SECONDS)
    tables = dumbbell(mbit, rtt, depth * bdp_bytes(mbit, rtt), flows, seconds=seconds, aqm=aqm, **more)
    return Case(name, tables)


def ours(count: int = 1, **more: Any) -> dict[str, Any]:
    """Returns long flows with the control that is judged."""
    return bulk("ours", count, **{**_OURS, **more})


def _alone() -> list[Case]:
    gone = [step(BLACK_S, loss=1.0, direction="forward")]
    late = [ours(4), bulk("late", start="30s", **_OURS)]
    return [
        _case("blackout", [ours()], changes=gone),
        _case("loss-30", [ours()], topology={"loss": 0.3}),
        _case("deep", [ours()], depth=20.0),
        *(_case(f"shallow-{depth:g}", [ours(8)], depth=depth) for depth in ABOVE),
        *(_case(f"same-{count}", [ours(count)]) for count in SAME),
        _case("late", late),
        _case("short", [ours(2), web("web", 4, **_OURS)]),
    ]


def _mixed() -> list[Case]:
    deaf = [step(BLACK_S, loss=1.0, direction="reverse")]
    pairs = [
        _case(f"pair-{victim}-{depth:g}", [ours(2), bulk("victim", 2, cc=victim)], depth=depth)
        for victim in STANDARD
        for depth in BELOW
    ]
    return [
        *pairs,
        _case("deaf", [ours()], changes=deaf),
        _case("real-time", [ours(2), call(count=2), video("video", 1.0)]),
        _case("web-of-cubic", [ours(2), web("web", 4, cc="cubic")]),
        _case("web-of-ours", [bulk("long", 2, cc="cubic"), web("web", 4, **_OURS)]),
    ]


def _general(quick: bool) -> list[Case]:
    axes = _QUICK_GRID if quick else (RATES, ROUND_TRIPS, DEPTHS)
    grid = [
        _case(grid_name(*place), [ours()], place[2], rate=place[0], rtt=place[1], seconds=30)
        for place in itertools.product(*axes)
    ]
    states = [
        {"rate": rate(mbit), "loss": loss, "lasts": lasts} for mbit, loss, lasts in ((20, 0.0, "4s"), (4, 0.01, "2s"))
    ]
    return [
        *grid,
        *(_case(f"loss-{loss:g}", [ours()], topology={"loss": loss}) for loss in (0.001, 0.01)),
        _case("reordering", [ours()], topology={"reorder": {"share": 0.01, "by": "5ms"}}),
        _case("radio", [ours()], changes=[{"link": "bottleneck", "states": states}]),
    ]


def grid_name(mbit: float, rtt: float, depth: float) -> str:
    """Returns the name of a case of the grid over rates, round trip times and buffers."""
    return f"path-{mbit:g}-{rtt:g}-{depth:g}"


def _special() -> list[Case]:
    ecn = {"ecn": True}
    swing = [step(10, delay="73ms", every="20s"), step(20, delay="23ms", every="20s")]
    other = [step(BLACK_S, rate=rate(5.0), delay="60ms"), step(2 * BLACK_S, rate=rate(RATE), delay="23ms")]
    outage = [step(BLACK_S, loss=1.0), step(BLACK_S + OUTAGE_S, loss=0.0)]
    onset = udp("udp", 0.75 * RATE, start=f"{BLACK_S}s", stop=f"{2 * BLACK_S}s")
    thin = {"rate": 0.064, "rtt": 500.0}
    incast = {"role": "ours", "kind": "transfer", "size": "64kB", "count": 32, "start_spread": "1ms", **_OURS}
    cheat = bulk("cheat", tcp={"optimistic_ack": "100kB"}, **_OURS)
    return [
        *(_case(f"queue-{name}", [ours(4)], 4.0, aqm=aqm, tcp=ecn) for name, aqm in QUEUES.items()),
        _case("queue-pie-drops", [ours(4)], 4.0, aqm="pie"),
        _case("breaker", [ours(20)], rate=1.0, rtt=100.0),
        _case("swing", [ours()], changes=swing),
        _case("thin", [_transfer("20kB")], 3.0, seconds=120, **thin),
        _case("far", [_transfer("10MB")], rate=RATE, rtt=600.0),
        _case("cheated", [ours(3), cheat]),
        _case("onset", [ours(), onset]),
        _case("outage", [ours()], changes=outage),
        _case("other-path", [ours()], 2.0, changes=other),
        _case("incast", [incast], 8.0, rate=1000.0, rtt=0.2, seconds=10, tcp={"min_rto": "10ms"}),
    ]


def _transfer(size: str) -> dict[str, Any]:
    return {"role": "ours", "kind": "transfer", "size": size, **_OURS}
