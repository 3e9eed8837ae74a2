"""Theorem 1 of PINK: legal inputs are TCP flows, in whole runs.

    the paper's form    queue <= max(1, c h) BW RTT + 1 segment * n
    the default         queue <= 1.5 c h BW RTT + 2 segments * d + 2 steps * n

Casoni, Grazia, Klapez, Patriciello 2017, Theorem 1, and docs/algorithms/pink.md, which restates it for the default.
RTT is the round trip time without queues of the most distant flow, with the transmission of a full segment (PINK adds
it, and where it timed data adds it twice) and of the handshakes of all flows, which may wait behind each other. n flows
count, and d of them are at times idle. h is the part of headers: windows count payload. A segment for each flow: no
window is smaller. A step is two segments.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from penstock import engine
from penstock.adversary import space as spaces
from penstock.adversary import subject as subjects
from penstock.adversary.search import Search
from penstock.adversary.sentence import Judged
from penstock.adversary.space import Settings, base_rtt_s
from penstock.adversary.theorem import Found, Theorem
from penstock.adversary.trials import Trial
from penstock.engine import ScenarioError
from penstock.scenario import Scenario, to_toml
from penstock.units import base

_HEADERS = 52  # bytes of IP and TCP with timestamps
_SYN = 60  # bytes
_PAUSES = ("http",)  # kinds of flows that are at times idle

Tree = Mapping[str, Any]


def _product(tree: Tree) -> float:
    """Returns the rate of the link times the round trip time of the most distant flow, in bytes."""
    topology = tree["topology"]
    rate = base(topology["rate"]) or 0.0
    rtt_s = max(base_rtt_s(topology, flow.get("access_delay")) for flow in tree["flows"])
    return rate * rtt_s / 8 + 2 * _segment(tree) + _SYN * _count(tree)


def _segment(tree: Tree) -> float:
    return (base(tree["tcp"]["mss"]) or 0.0) + _HEADERS


def _payload(tree: Tree) -> float:
    """Returns c h: the part of the link that is granted, with headers."""
    c: float = tree["aqm"].get("c", 0.95)
    return c * _segment(tree) / (_segment(tree) - _HEADERS)


def _count(tree: Tree, kinds: Sequence[str] | None = None) -> int:
    return sum(flow.get("count", 1) for flow in tree["flows"] if kinds is None or flow["kind"] in kinds)


def paper_bound(tree: Tree) -> float:
    """Returns the bound of Theorem 1 in bytes."""
    return max(1.0, _payload(tree)) * _product(tree) + _segment(tree) * _count(tree)


def default_bound(tree: Tree) -> float:
    """Returns the bound of the default in bytes."""
    idle, all_of_them = _count(tree, _PAUSES), _count(tree)
    return 1.5 * _payload(tree) * _product(tree) + _segment(tree) * (2 * idle + 4 * all_of_them)


def is_legal(tree: Tree) -> bool:
    """True if no flow has a share below one segment, which no window can express."""
    return _product(tree) >= _segment(tree) * _count(tree)


def _part(scenario: Scenario, bound_bytes: float) -> float:
    """Returns the longest queue of a run as a part of a bound."""
    text, _, _ = engine.summarize(scenario, 1)
    return float(json.loads(text)["bottlenecks"][0]["queue_bytes"]["max"]) / bound_bytes


def _find(name: str, bound: Callable[[Tree], float], algorithm: str, trials: int, seed: int) -> Found:
    space = spaces.standard(name).of(subjects.find(algorithm))
    search = Search(space, 1, seed)

    def trial(settings: Settings) -> Trial:
        tree = space.tree(settings)
        if not is_legal(tree):
            return Trial(settings, 1, (), (), 0.0, "a share is below one segment")
        try:
            part = _part(space.scenario_of(settings), bound(tree))
        except ScenarioError as error:
            return Trial(settings, 1, (), (), 0.0, str(error))
        return Trial(settings, 1, (Judged(part > 1, part - 1),), (part,), 0.0)

    search.run(lambda wanted: [trial(one) for one in wanted], lambda done: trials - done)
    worst = max((one.trial for one in search.archives[0].cells.values()), key=lambda one: one.shown[0] or 0.0)
    return worst.shown[0] or 0.0, ", ".join(f"{key} = {value}" for key, value in worst.settings.items())


# The counter-examples of the solver (docs/results/adversary.md) in the simulator: a flow that pauses fills its window
# at 1.15 s. Others join: their first data comes at that time, or their SYNs come right behind it.
JOINS = {"pauses": "1.05s", "measured": "1.152s"}
_JOINING = """\
duration = "3s"
aqm = "SUBJECT"
[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "49.5ms"
limit = "100MB"
access_rate = "1Gbit/s"
access_delay = "250us"
[tcp]
cc = "newreno"
mss = "1000B"
initial_window = 1000
ack_every_segment = true
[[flows]]
kind = "http"
first = "1000B"
size = "112kB"
idle = "1s"
connection = "same"
[[flows]]
kind = "bulk"
count = 4
start = "0s"
"""


def replayed(case: str, algorithm: str) -> float:
    """Returns the longest queue of a counter-example, as a part of Theorem 1's bound."""
    tree = subjects.find(algorithm).placed(tomllib.loads(_JOINING))
    tree["flows"][1]["start"] = JOINS[case]
    scenario = Scenario(to_toml({"name": f"pink-{case}", **tree}), f"pink-{case}.toml")
    return _part(scenario, paper_bound(tree))


LITERAL = "pink window=literal shrink=immediate sampling=off reallocation=off"
PINK = (
    Theorem(LITERAL, "queue <= BW RTT", partial(_find, "pink-constant", paper_bound)),
    Theorem("pink", "queue <= 1.5 c BW RTT + ...", partial(_find, "pink-changing", default_bound)),
)
