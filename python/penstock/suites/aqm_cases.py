"""The cases of RFC 7928, by its sections.

The bottleneck has 10 Mbit/s, the path 100 ms, and the buffer is the product of both (section 3.2). The numbers of flows
of section 8.2, the periods of varying congestion and the two rates of varying capacity are those of the evaluation
suite of ns-3 for this RFC (Deepak, Shravya and Tahiliani 2017).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock import engine
from penstock.adversary.subject import SUBJECT, Subject
from penstock.own import Library
from penstock.suites.model import Case
from penstock.suites.networks import MTU, bdp_bytes, bulk, call, dumbbell, rate, step, udp, video, web
from penstock.units import base_unit, quantity

RATE, RTT = 10.0, 100.0  # Mbit/s, ms
BUFFER = bdp_bytes(RATE, RTT)
LEDBAT = f"{Path(__file__).with_name('ledbat.py')}:Ledbat"
TAIL = "droptail"  # beside which every AQM is judged
# Flows for a packet of BDP and buffer which give about 0.1, 0.5 and 1 % of losses without an AQM (section 8.2).
LEVELS = {"mild": 0.036, "medium": 0.081, "heavy": 0.114}
ROUND_TRIPS = (5, 20, 50, 200, 500)  # ms, of the flow beside that of 100 ms (section 6.2)
_QUICK_ROUND_TRIPS = (20, 500)
BURSTS = {"I": (0, 0), "II": (0, 1), "III": (1, 0), "IV": (1, 1)}  # videos and bulk transfers (section 7.2)
SIZES = ("200B", "600B", "1400B")  # payloads of datagrams (section 4.4)
# Section 8.2.5: seconds in which the level holds; 8.2.6: seconds between two changes of the rate.
_VARYING = ((0, 20, "mild"), (20, 40, "medium"), (40, 60, "heavy"), (60, 80, "mild"), (80, 100, "heavy"))
PERIOD_S = 20
_SLOW = 10.0  # Mbit/s, after 100
WIDER = 2.0  # by which a parameter is multiplied and divided (section 8.3)


def flows_at(level: str) -> int:
    """Returns the number of flows of a level of congestion."""
    return math.floor(LEVELS[level] * (bdp_bytes(RATE, RTT) + BUFFER) / MTU + 1e-9)


def cases(quick: bool) -> list[Case]:
    """Returns the cases; the quick form has shorter ones."""
    seconds = 30 if quick else 100
    return [
        *_transports(seconds),
        *(_round_trips(other, seconds) for other in (_QUICK_ROUND_TRIPS if quick else ROUND_TRIPS)),
        *_bursts(seconds),
        *_levels(seconds),
        _varying(),
        *_capacity(quick),
        *_mixes(seconds),
        _in_a_row(seconds),
        *_interactions(seconds),
    ]


def _case(name: str, flows: Sequence[Mapping[str, Any]], seconds: int, **more: Any) -> Case:
    kept = {key: more.pop(key) for key in ("suits", "adapt") if key in more}
    tables = dumbbell(RATE, RTT, more.pop("buffer", BUFFER), flows, seconds=seconds, **{"aqm": SUBJECT, **more})
    return Case(name, tables, **kept)


def _transports(seconds: int) -> list[Case]:
    reno = {"cc": "newreno"}
    windows = [bulk("first", tcp={"initial_window": 3}), bulk("second", tcp={"initial_window": 10})]
    return [
        _case("friendly", [bulk(tcp={"initial_window": 3})], seconds, tcp=reno),
        _case("windows", windows, seconds, tcp=reno),
        _case("aggressive", [bulk()], seconds, tcp={"cc": "cubic"}),
        _case("unresponsive", [udp("udp", 1.5 * RATE)], seconds),
        _case("beside-udp", [bulk(), udp("udp", 0.8 * RATE)], seconds, tcp=reno),
        _case("lbe", [bulk("lbe", cc=LEDBAT)], seconds),
        _case("beside-lbe", [bulk(cc="newreno"), bulk("lbe", cc=LEDBAT)], seconds),
    ]


def _round_trips(other_ms: int, seconds: int) -> Case:
    """Two flows: one of 100 ms, one of another round trip time, over a bottleneck of 1 ms."""
    flows = [
        bulk("reference", access_delay=f"{RTT / 2 - 2:g}ms"),
        bulk("other", access_delay=f"{max(0.5, other_ms / 2 - 2):g}ms"),
    ]
    path = {"delay": "1ms", "access_delay": "1ms"}
    buffer = bdp_bytes(RATE, max(RTT, other_ms))
    more = {"topology": path, "tcp": {"cc": "newreno"}, "buffer": buffer}
    return _case(f"rtt-{other_ms}", flows, max(seconds, 60), **more)


def _bursts(seconds: int) -> list[Case]:
    found = []
    for name, (videos, bulks) in BURSTS.items():
        flows = [web("web", 5, max_size="150kB"), udp("cbr", 1.0)]
        flows += [video("video", 1.0)] * videos + [bulk()] * bulks
        found.append(_case(f"bursts-{name}", flows, seconds, tcp={"cc": "newreno"}))
    return found


def _levels(seconds: int) -> list[Case]:
    return [_case(name, [bulk(count=flows_at(name))], seconds, tcp={"cc": "newreno"}) for name in LEVELS]


def _varying() -> Case:
    mild, medium, heavy = (flows_at(name) for name in LEVELS)
    flows = [
        bulk("base", mild),
        bulk("medium", medium - mild, start="20s", stop="60s"),
        bulk("heavy", heavy - medium, start="40s", stop="60s"),
        bulk("again", heavy - mild, start="80s", stop="100s"),
    ]
    return _case("varying", flows, 100, tcp={"cc": "newreno"})


def _capacity(quick: bool) -> list[Case]:
    """Two flows; the rate changes between 100 and 10 Mbit/s every 20 s, or every 100 ms."""
    found = []
    for name, half_s in (("capacity-slow", PERIOD_S), ("capacity-fast", 0.1)):
        every = {"every": f"{2 * half_s:g}s"}
        changes = [step(half_s, rate=rate(_SLOW), **every), step(2 * half_s, rate=rate(100.0), **every)]
        seconds = 3 * PERIOD_S if name == "capacity-slow" else (10 if quick else 40)
        more = {"aqm": SUBJECT, "changes": changes, "tcp": {"cc": "newreno"}}
        tables = dumbbell(100.0, RTT, bdp_bytes(100.0, RTT), [bulk(count=2)], seconds=seconds, **more)
        found.append(Case(name, tables))
    return found


def _mixes(seconds: int) -> list[Case]:
    mix = [bulk(count=2), web("web", 3), udp("cbr", 0.5), video("video", 1.0), call(count=2)]
    both = [bulk(count=4), bulk("back", 4, direction="reverse")]
    reverse = {"reverse_aqm": SUBJECT, "reverse_limit": f"{round(BUFFER)}B"}
    return [
        _case("mix", mix, seconds, tcp={"cc": "cubic"}),
        _case("both-ways", both, seconds, tcp={"cc": "newreno"}, topology=reverse),
    ]


def _in_a_row(seconds: int) -> Case:
    """Three bottlenecks, each with the AQM; two flows cross all of them, two others each one alone."""
    hop = {"rate": rate(RATE), "delay": "15ms", "limit": f"{round(BUFFER)}B", "aqm": SUBJECT}
    topology = {"kind": "parking-lot", "access_rate": "1Gbit/s", "access_delay": "1ms", "hops": [hop] * 3}
    flows = [
        bulk("through", 2, **{"from": "r0", "to": "r3"}),
        *(bulk(f"hop{n}", 2, **{"from": f"r{n}", "to": f"r{n + 1}"}) for n in range(3)),
    ]
    tables = dumbbell(RATE, RTT, BUFFER, flows, seconds=seconds, tcp={"cc": "newreno"})
    return Case("in-a-row", {**tables, "topology": topology})


def _interactions(seconds: int) -> list[Case]:
    medium = flows_at("medium")
    ecn = {"cc": "newreno", "ecn": True}
    sizes = [udp(size, 0.4 * RATE, packet_size=size, start_spread="1s") for size in SIZES]
    scheduled = {"name": "fq", "per_flow": SUBJECT}
    flows = [bulk(count=4), call(count=2)]
    return [
        _case("ecn", [bulk(count=medium)], seconds, tcp=ecn, adapt=_marking),
        _case("sizes", sizes, seconds),
        _case("scheduled", flows, seconds, tcp={"cc": "newreno"}, aqm=scheduled, suits=_in_flow_queue),
        _case("alone", flows, seconds, tcp={"cc": "newreno"}),
    ]


def _marking(subject: Subject) -> Subject:
    """Returns an algorithm that marks, if a parameter says whether it does."""
    can = subject.parameters.get("ecn") is False
    return replace(subject, given={**subject.given, "ecn": True}) if can else subject


def _in_flow_queue(subject: Subject) -> str:
    kinds = {entry.name: entry.kind for entry in engine.entries()}
    kind = kinds.get(subject.name) or Library().kind(subject.name)
    refused = {
        "ack-path": "it edits ACKs and needs to see all flows",
        "flow-queueing": "it has a scheduler of its own",
        "scheduler": "it is a scheduler",
    }
    if subject.name in ("green", "dualpi2", "sfb", "choke"):
        return "it needs to see all flows"
    return refused.get(kind or "", "")


def variants(subject: Subject) -> dict[str, Subject]:
    """Returns the algorithm with each number of its parameters doubled and halved, by what they are called."""
    found = {}
    for name, default in {**_defaults(subject), **subject.given}.items():
        for factor in (1 / WIDER, WIDER):
            value = _scaled(default, factor)
            if value is not None and value != default:
                changed = Subject(subject.name, subject.kind, {**subject.given, name: value}, {}, subject.file)
                found[f"{subject} {name}={value}"] = changed
    return found


def _defaults(subject: Subject) -> Mapping[str, Any]:
    if ".py:" not in subject.name:
        return subject.parameters
    library = Library(subject.file)
    one = library.aqm(subject.name) or library.ack_path(subject.name)
    return {name: getattr(one.of, name, None) for name in library.parameters(subject.name)} if one else {}


def _scaled(value: Any, factor: float) -> Any:
    number = quantity(value)
    if isinstance(value, bool) or number is None or number[0] <= 0 or base_unit(value) not in ("", "s", "B", "bit/s"):
        return None
    if isinstance(value, int):
        return max(1, round(value * factor))
    return float(f"{value * factor:.6g}") if isinstance(value, float) else f"{number[0] * factor:.6g}{number[1]}"
