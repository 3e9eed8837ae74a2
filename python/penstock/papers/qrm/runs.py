"""The runs of `qrm`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.papers._shared.cooperation import Flow
from penstock.reproduce.settings import Setting

COOPERATION = {"link": "bottleneck"}

# QRM. Attackers are registered nodes whose TCP ignores its budget.
ATTACKED = ("droptail", "red", "codel", "green", "qrm")
DISGUISED: Flow = {"kind": "bulk", "start_spread": "2s", "tcp": {"c2ml": "off"}}
ATTACKERS = (1, 2, 4, 8, 16)


def _nodes(good: int, attackers: int) -> list[Flow]:
    flows: list[Flow] = [{"kind": "bulk", "count": good, "start_spread": "2s"}]
    return flows + ([{**DISGUISED, "count": attackers}] if attackers else [])


def _attacks() -> Iterator[Setting]:
    yield Setting("five", "five nodes obey", ("plain", "droptail", "qrm"), {"flows": _nodes(5, 0)})
    yield Setting("five-1", "one of five attacks", ATTACKED, {"flows": _nodes(4, 1)})
    for n in (2, 4, 8, 16, 32):
        quick = n in (2, 32)
        yield Setting(f"one-{n}", f"one of {n} attacks", ATTACKED, {"flows": _nodes(n - 1, 1)}, quick=quick, flows=n)
    for a in ATTACKERS:
        quick = a in (1, 16)
        yield Setting(f"many-{a}", f"{a} of 32 attack", ATTACKED, {"flows": _nodes(32 - a, a)}, quick=quick, flows=32)
    flood: Flow = {"kind": "cbr", "rate": "40Mbit/s", "node": "flood"}
    syns: Flow = {"kind": "synflood", "per_second": 20_000}
    stranger = {**COOPERATION, "nodes": [{"name": "flood", "lie": "silent"}]}
    for name, label, change in (
        ("flood", "UDP of twice the rate from a node", {"flows": [*_nodes(4, 0), flood]}),
        ("syns", "forged SYNs of half the rate", {"flows": [*_nodes(4, 0), syns]}),
        ("stranger", "the same UDP, not registered", {"flows": [*_nodes(4, 0), flood], "cooperation": stranger}),
    ):
        yield Setting(name, label, ("droptail", "codel", "qrm"), change, flows=5)


SETTINGS = tuple(_attacks())
