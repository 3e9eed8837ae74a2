"""Two hundred scenarios drawn by a rule from the number of the release, so that another release has others.

rate            1 to 200 Mbit/s, even in its logarithm
round trip      2 to 600 ms, the same
queue           0.5, 1 or 2 products of the rate and the round trip, or of 100 ms if that is more; 64 kB at least
hosts           1 to 6, each with 1 to 16 transfers, even in its logarithm, of one control: CUBIC, NewReno, BBR, BBRv3,
                Prague, or QUIC with CUBIC or BBRv3; one host in four comes late, a second after the warm-up
other traffic   a call; in half of the scenarios a host with pages of 2 to 20 % of the link, a third of which are QUIC;
                in one of five a stream of UDP of 5 to 40 % of the link
time            20 s and 60 round trips, of which a third is warm-up
"""

from __future__ import annotations

import math
import random
from typing import Any

import penstock
from penstock.papers._shared.weir import ACCESS_MS, bed, bulk, call
from penstock.reproduce.settings import Listed, Setting

COUNT, QUICK = 200, 20
CONTROLS: tuple[dict[str, Any], ...] = (
    {"tcp": {"cc": "cubic"}},
    {"tcp": {"cc": "newreno"}},
    {"tcp": {"cc": "bbr"}},
    {"tcp": {"cc": "bbr3"}},
    {"tcp": {"cc": "prague"}},
    {"tcp": {"cc": "cubic"}, "opaque": True},
    {"tcp": {"cc": "bbr3"}, "opaque": True},
)
KIND = Listed


def even(r: random.Random, low: float, high: float) -> float:
    """Draws a number evenly in its logarithm."""
    return math.exp(r.uniform(math.log(low), math.log(high)))


def host(r: random.Random, name: str, seconds: int) -> tuple[dict[str, Any], str]:
    """Draws a host with transfers, and says what it is."""
    control, count = r.choice(CONTROLS), round(even(r, 1, 16))
    pauses = {"start": f"{seconds // 3 + 1}s", "start_spread": "100ms"} if r.random() < 0.25 else {}
    called = ("QUIC " if "opaque" in control else "") + str(control["tcp"]["cc"])
    return {**bulk(count, node=name, **control), **pauses}, f"{count} {called}{' late' if pauses else ''}"


def drawn(number: int, version: str) -> Setting:
    """Draws a scenario."""
    r = random.Random(f"weir {version} {number}")
    mbps, rtt_ms = round(even(r, 1, 200), 1), round(even(r, 2, 600), 1)
    queue = max(r.choice((0.5, 1, 2)) * mbps * 125 * max(rtt_ms, 100), 64_000)
    seconds = round(20 + 0.06 * rtt_ms)
    hosts = [host(r, "abcdef"[at], seconds) for at in range(r.randint(1, 6))]
    flows, said = [one for one, _ in hosts], [words for _, words in hosts]
    if r.random() < 0.5:
        pages = {"kind": "web", "load": round(r.uniform(0.02, 0.2), 3), "mean_size": "60kB", "max_size": "2MB"}
        quic = {"opaque": True} if r.random() < 1 / 3 else {}
        flows.append({**pages, **quic, "node": "pages"})
        said.append("QUIC pages" if quic else "pages")
    if r.random() < 0.2:
        flows.append({"kind": "cbr", "rate": f"{round(mbps * r.uniform(0.05, 0.4), 2)}Mbit/s", "node": "stream"})
        said.append("UDP")
    label = f"{mbps:g} Mbit/s, {rtt_ms:g} ms: {', '.join(said)}"
    link = (f"{mbps}Mbit/s", round(max(rtt_ms / 2 - 2 * ACCESS_MS, 0.0), 2), f"{round(queue)}B")
    flows.append(call(node="phone", start="1s"))
    quick = number < QUICK
    return bed(f"drawn-{number}", label, flows, link=link, seconds=seconds, warmup=seconds // 3, quick=quick)


SETTINGS = tuple(drawn(number, penstock.__version__) for number in range(COUNT))
