"""The runs of `cooperation`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.papers._shared.cooperation import GOOD, Flow
from penstock.reproduce.settings import Setting

WAYS = ("plain", "pink", "c2ml", "dybra", "c2ml-qrm", "pink-qrm")
DELAYS = tuple(5 + 16 * i for i in range(16))  # ms, one way, to the gateway


def _sixteen() -> list[Flow]:
    ends = [{"node": f"c{i}", "from": f"c{i}", "to": "far"} for i in range(16)]
    return [{"kind": "bulk", "start_spread": "2s", **end} for end in ends]


def _situations() -> Iterator[Setting]:
    even: dict[str, Any] = {"flows": _sixteen()}
    far = {f"topology.links.{i + 1}.delay": f"{delay}ms" for i, delay in enumerate(DELAYS)}
    yield Setting("clean", "16 nodes obey", WAYS, even, flows=16)
    yield Setting("rtts", "RTTs of 610 to 1090 ms", WAYS, {**even, **far}, flows=16)
    bad = range(GOOD, 16)
    changes = [
        {"link": f"c{i}-gw", "at": at, "rate": rate}
        for i in bad
        for at, rate in (("30s", "300kbit/s"), ("90s", "20Mbit/s"))
    ]
    special = [{"name": f"c{i}", "csi": f"c{i}-gw"} for i in bad]
    yield Setting(
        "channel",
        "four channels fall to 0.3 Mbit/s for 60 s",
        WAYS,
        {**even, "changes": changes, "cooperation.nodes": special},
        flows=16,
    )
    flows = _sixteen()
    for i in bad:
        flows[i]["tcp"] = {"c2ml": "off"}
    flows[15] = {"kind": "cbr", "rate": "30Mbit/s", "node": "c15", "from": "c15", "to": "far"}
    attack = {**even, "flows": flows, "topology.links.16.rate": "100Mbit/s"}
    yield Setting("attack", "three disobey, one floods", WAYS, attack, flows=16)


SETTINGS = tuple(_situations())
