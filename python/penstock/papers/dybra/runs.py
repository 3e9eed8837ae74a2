"""The runs of `dybra`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate
from math import prod
from typing import Any

from penstock.papers._shared.cooperation import Flow
from penstock.reproduce.settings import Setting

DYBRA_CCS = ("newreno", "westwood", "highspeed", "cubic", "noordwijk")


def clients(n: int, ccs: tuple[str, ...]) -> dict[str, Any]:
    """Returns what `n` clients need, each with its link to the gateway; half of them turn bad for a time."""
    links: list[dict[str, Any]] = [
        {
            "name": "bottleneck",
            "a": "gw",
            "b": "far",
            "rate": "20Mbit/s",
            "delay": "350ms",
            "limit": "875kB",
            "aqm": {"name": "droptail"},
        }
    ]
    flows: list[Flow] = []
    changes: list[dict[str, Any]] = []
    special: list[dict[str, str]] = []
    order = [*range(0, n, 2), *range(1, n, 2)]  # nodes that stay good come first
    for i in order:
        node, cc = f"c{i}", ccs[i // 2 % len(ccs)]
        link = f"{node}-gw"
        links.append({"name": link, "a": node, "b": "gw", "rate": "20Mbit/s", "delay": "5ms", "limit": "100000p"})
        tcp = {"ack_every_segment": cc == "noordwijk"}
        flows.append({"kind": "bulk", "node": node, "from": node, "to": "far", "cc": cc, "tcp": tcp})
        if i % 2:
            changes += [
                {"link": link, "at": at, "rate": rate} for at, rate in (("15s", "500kbit/s"), ("45s", "20Mbit/s"))
            ]
            special.append({"name": node, "csi": link})
    return {"topology.links": links, "flows": flows, "changes": changes, "cooperation.nodes": special}


# Theorem 1: channels as in its proof, and one client that leaves.
LEFT_BY, LEAVES_S, RATE_BPS = 4, 30, 20e6
LEAVE = f"leave-{LEFT_BY}"


def channels(n: int) -> list[Fraction]:
    """The channels of n - 1 clients by eq. (2.3), as parts of the link: each binds only once the one before does."""
    return list(accumulate(Fraction(1, prod(range(n, n - k - 1, -1))) for k in range(n - 1)))


def leaving(n: int) -> dict[str, Any]:
    """Returns what `n` clients need, the first of which leaves."""
    change = clients(n, ("cubic",))
    bound = {f"c{k + 1}-gw": f"{int(part * int(RATE_BPS))}bit/s" for k, part in enumerate(channels(n))}
    links = [{**link, "rate": bound.get(link["name"], link["rate"])} for link in change["topology.links"]]
    flows = sorted(change["flows"], key=lambda flow: str(flow["node"]))
    flows[0] = {**flows[0], "stop": f"{LEAVES_S}s"}
    nodes = [{"name": name.removesuffix("-gw"), "csi": name} for name in bound]
    return {"topology.links": links, "flows": flows, "cooperation.nodes": nodes}


SCALE = (4, 10, 20, 40)


def _clients() -> Iterator[Setting]:
    yield Setting("mix", "ten clients, five controls", ("plain", "c2ml", "dybra"), clients(10, DYBRA_CCS), flows=10)
    for n in SCALE:
        quick = n in (4, 40)
        change = clients(n, ("cubic",))
        yield Setting(f"cubic-{n}", f"{n} clients, CUBIC", ("plain", "dybra"), change, quick=quick, flows=n)
    yield Setting(LEAVE, f"{LEFT_BY} clients, one leaves", ("dybra",), leaving(LEFT_BY), flows=LEFT_BY)


SETTINGS = tuple(_clients())
