"""The disciplines of the kernel (`tc`) as queues of links: which of ours it has, and with which words.

`KINDS` is the table. A parameter of ours becomes an option of `tc`, or the kernel has one value for it, and another
that is written in the scenario is refused.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.jar import qdiscs
from penstock.mistake import MistakeError
from penstock.units import number
from penstock.wire.position import Path

Words = list[str]
Refuse = Callable[[Path, str], Exception]

WORLDS = ("tc", "jar-tc")  # in which queues are the kernel's; the first in real time
INTERFACE = "out"  # `penstock-emulate --through` makes it
SHAPER, CLASS, QUEUE, INNER = "1:", "1:1", "2:", "3:"
# What the emulator tells apart while it is away; docs/reference/emulate.md.
_MOST_PACKETS = 60_000
# On a machine in real time the shaper may make up for being late by so much; in virtual time nothing is late.
CATCH_UP_S = 1e-3


def _time(word: str) -> Callable[[Any], Words]:
    return lambda value: [word, f"{number(value) * 1e6:.0f}us"]


def _size(word: str) -> Callable[[Any], Words]:
    return lambda value: [word, f"{number(value):.0f}"]


def _count(word: str) -> Callable[[Any], Words]:
    return lambda value: [word, str(value)]


def _one_of(words: Mapping[Any, str]) -> Callable[[Any], Words]:
    return lambda value: [words[value]]


def _part(word: str, of: int, most: int) -> Callable[[Any], Words]:
    """An option that counts in parts of one, as many as `of`."""

    def told(value: float) -> Words:
        count = round(value * of)
        if abs(count - value * of) > 1e-9 or not 0 <= count <= most:
            raise ValueError(f"the kernel takes multiples of 1/{of} from 0 to {most / of:g}")
        return [word, str(count)]

    return told


_ECN = _one_of({True: "ecn", False: "noecn"})


@dataclass(frozen=True)
class Kind:
    """A discipline of the kernel."""

    name: str
    drops: str  # how it drops, most of all: "overflow", "early" (both on arrival) or "dequeue"
    options: Mapping[str, Callable[[Any], Words]] = field(default_factory=dict)
    has: Mapping[str, Any] = field(default_factory=dict)  # values that cannot be set; `None` for one without a name
    limit: str = "p"  # how it counts its limit: in packets ("p"), in both ("pB"), or not at all ("")


_CODEL: dict[str, Callable[[Any], Words]] = {
    "target": _time("target"),
    "interval": _time("interval"),
    "ecn": _ECN,
    "ce_threshold": _time("ce_threshold"),
}
_CODEL_HAS = {"mtu": None, "ce_threshold_mask": 0, "ce_threshold_selector": 0}
_PIE: dict[str, Callable[[Any], Words]] = {
    "target": _time("target"),
    "tupdate": _time("tupdate"),
    "alpha": _part("alpha", 16, 32),
    "beta": _part("beta", 16, 32),
    "ecn": _ECN,
    "bytemode": _one_of({True: "bytemode", False: "nobytemode"}),
    "estimator": _one_of({"timestamps": "no_dq_rate_estimator", "departure-rate": "dq_rate_estimator"}),
}
# include/net/pie.h, sch_pie.c: QUEUE_THRESHOLD, MAX_PROB / 10, 250 ms, 150 ms.
_PIE_HAS = {
    "mean_packet": None,
    "derandomize": True,
    "dq_threshold": "16.384kB",
    "high_delay": "250ms",
    "max_burst": "150ms",
}
_QUEUES: dict[str, Callable[[Any], Words]] = {
    "flows": _count("flows"),
    "quantum": _size("quantum"),
    "memory_limit": _size("memory_limit"),
}
_QUEUES_HAVE = {"perturbation": None, "ways": 1}

KINDS: dict[str, Kind] = {
    "droptail": Kind("pfifo", "overflow", limit="pB"),  # bfifo for a limit in bytes
    "red": Kind("red", "early", limit="pB"),  # its options are those of `_red`
    "codel": Kind("codel", "dequeue", _CODEL, _CODEL_HAS),
    "fq-codel": Kind(
        "fq_codel",
        "dequeue",
        {**_CODEL, **_QUEUES, "drop_batch": _count("drop_batch")},
        {**_CODEL_HAS, **_QUEUES_HAVE, "overflow": "fattest"},
    ),
    "pie": Kind("pie", "early", _PIE, {**_PIE_HAS, "ecn_threshold": 0.1}),
    "fq-pie": Kind(
        "fq_pie",
        "early",
        {**_PIE, **_QUEUES, "ecn_threshold": _part("ecn_prob", 100, 100)},
        {**_PIE_HAS, **_QUEUES_HAVE, "overflow": "arrival", "drop_batch": None},
    ),
    "cake": Kind(
        "cake",
        "dequeue",
        {
            "bandwidth": lambda value: ["bandwidth", f"{number(value):.0f}bit"],
            "rtt": _time("rtt"),
            "tins": lambda value: [str(value)],
            "isolation": lambda value: [str(value)],
            "framing": _one_of({"none": "noatm", "atm": "atm", "ptm": "ptm"}),
            "ack_filter": _one_of({"no": "no-ack-filter", "yes": "ack-filter", "aggressive": "ack-filter-aggressive"}),
            "ingress": _one_of({True: "ingress", False: "egress"}),
            "memory_limit": _size("memlimit"),
            "overhead": lambda value: ["overhead", str(value)] if value else [],
            "mpu": lambda value: ["mpu", str(value)] if value else [],
            "wash": lambda value: ["wash"] if value else [],
        },
        {"target": None, "mtu": None, "perturbation": None},
        limit="",
    ),
}
# With this key a discipline of ours has the kernel's rules, which is what it has there anyway.
_RULES = "compat"


@dataclass(frozen=True)
class KernelQueue:
    """A queue of the kernel behind a shaper, as lines of `tc -batch`."""

    kind: str
    drops: str
    commands: tuple[str, ...]  # that make the queue below the shaper
    catch_up_s: float

    def lines(self, rate_bps: float, mtu: int) -> list[str]:
        """Returns the lines that make shaper and queue; sizes of packets count from the IP header."""
        return [
            f"qdisc add dev {INTERFACE} root handle {SHAPER} htb default 1",
            self.shaped("add", rate_bps, mtu),
            *self.commands,
        ]

    def shaped(self, verb: str, rate_bps: float, mtu: int) -> str:
        """Returns the line that adds the shaper's class, or changes it to another rate."""
        burst = max(round(rate_bps / 8 * self.catch_up_s), 1)
        return (
            f"class {verb} dev {INTERFACE} parent {SHAPER} classid {CLASS} htb rate {rate_bps:.0f}bit "
            f"burst {burst} cburst {burst} quantum {mtu}"
        )


@dataclass(frozen=True)
class Place:
    """Where a discipline and its limit stand in a scenario, and what is written there."""

    aqm: Path
    limit: Path
    written: Mapping[str, Any]


def queue(
    discipline: Mapping[str, Any],
    limit: str,
    rate_bps: float,
    place: Place,
    has: Sequence[str] | None,
    refuse: Refuse,
    in_real_time: bool,
) -> KernelQueue:
    """Returns a discipline of ours as one of the kernel; raises what `refuse` makes of what the kernel cannot do.

    `has` are the kinds that the kernel has; `None` if that is not known.
    """
    name = str(discipline["name"])
    kind = KINDS.get(name)
    if kind is None:
        raise refuse((*place.aqm, "name"), f"{name} is no discipline of Linux; there are {', '.join(KINDS)}")
    told = "bfifo" if kind.name == "pfifo" and not limit.endswith("p") else kind.name
    for needed in (told, "htb"):
        if has is not None and needed not in has:
            raise refuse(
                (*place.aqm, "name"),
                f"this kernel has no {needed}; it has {', '.join(has) or 'no disciplines'} (`modprobe sch_{needed}` "
                f"may add it, `tc qdisc add dev lo root {needed}` tells; the kernel of tools/pack/jar has it: "
                "--on jar-tc)",
            )
    words = _limit(kind, limit, place, refuse)
    inner: list[str] = []
    if name == "red":
        words, inner = _red(discipline, limit, rate_bps, place, refuse)
    else:
        words += _options(kind, discipline, place, refuse)
    line = f"qdisc add dev {INTERFACE} parent {CLASS} handle {QUEUE} {' '.join([told, *words])}"
    return KernelQueue(told, kind.drops, (line, *inner), CATCH_UP_S if in_real_time else 0.0)


def _limit(kind: Kind, limit: str, place: Place, refuse: Refuse) -> Words:
    if limit.endswith("p") and number(limit) > _MOST_PACKETS:
        raise refuse(place.limit, f"a queue of the kernel has at most {_MOST_PACKETS} packets here")
    if not kind.limit:
        return []
    if not limit.endswith("p") and "B" not in kind.limit:
        raise refuse(place.limit, f"the kernel counts the limit of {kind.name} in packets")
    return ["limit", f"{number(limit):.0f}"]


def _options(kind: Kind, discipline: Mapping[str, Any], place: Place, refuse: Refuse) -> Words:
    _check_fixed(kind.name, kind.has, place, refuse)
    words: Words = []
    for key, value in discipline.items():
        if key in kind.options:
            try:
                words += kind.options[key](value)
            except (KeyError, ValueError) as error:
                raise refuse((*place.aqm, key), str(error)) from None
        elif key not in ("name", _RULES, *kind.has):
            raise refuse((*place.aqm, key), f"the kernel's {kind.name} has no {key}")
    return words


def _check_fixed(name: str, has: Mapping[str, Any], place: Place, refuse: Refuse) -> None:
    for key, value in has.items():
        if key in place.written and (value is None or not _same(place.written[key], value)):
            own = "a value of its own" if value is None else json.dumps(value)
            raise refuse((*place.aqm, key), f"{key} cannot be set in the kernel's {name}, which has {own}")


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(number(one) == number(other))
    except ValueError:
        return bool(one == other)


# What `tc` computes for the kernel's RED. Other keys that it lacks are not taken beside compat = "linux" anyway.
_RED_HAS = {"scell_log": None, "stab": None}
_MOST_BURST = 1_000_000


def _red(
    discipline: Mapping[str, Any], limit: str, rate_bps: float, place: Place, refuse: Refuse
) -> tuple[Words, list[str]]:
    """Returns the words of RED, and the line of the queue below it, which counts its limit."""
    if discipline.get(_RULES) != "linux":
        raise refuse((*place.aqm, "name"), 'the kernel\'s RED counts bytes and is not gentle: write compat = "linux"')
    _check_fixed("red", _RED_HAS, place, refuse)
    packet = number(discipline["mean_packet"])
    low, high = (
        number(discipline[key]) * (packet if discipline[key].endswith("p") else 1)
        for key in ("min_threshold", "max_threshold")
    )
    weight = float(discipline["weight"])
    burst = next((n for n in _bursts(low / packet) if _wlog(low / packet, n) == _nearest(weight)), None)
    if burst is None:
        raise refuse(
            (*place.aqm, "weight"), f"tc has no burst that gives the weight {weight:g} with this min_threshold"
        )
    in_packets = limit.endswith("p")
    most = number(limit) * (packet if in_packets else 1)
    shaped = number(discipline["bandwidth"]) if discipline.get("bandwidth") else rate_bps
    words = [
        *("limit", f"{max(most, high + 1):.0f}", "min", f"{low:.0f}", "max", f"{high:.0f}", "avpkt", f"{packet:.0f}"),
        *("burst", str(burst), "probability", f"{discipline['max_probability']:g}", "bandwidth", f"{shaped:.0f}bit"),
        *(["ecn"] if discipline["ecn"] else []),
    ]
    fifo = "pfifo" if in_packets else "bfifo"
    return words, [f"qdisc add dev {INTERFACE} parent {QUEUE}1 handle {INNER} {fifo} limit {number(limit):.0f}"]


def _bursts(low: float) -> Any:
    """Numbers of packets that are tried, each a little larger than the one before."""
    burst = max(int(low), 1)
    while burst < _MOST_BURST:
        yield burst
        burst += max(burst // 64, 1)


def _nearest(weight: float) -> int:
    """Returns Wlog as the simulator has it with compat = "linux": the least n with weight >= 2^-(n + 1/2)."""
    return next((n for n in range(1, 32) if weight >= 2 ** -(n + 0.5)), 31)


def _wlog(low: float, burst: int) -> int | None:
    """Returns the Wlog that `tc` derives from a burst: tc_red_eval_ewma of iproute2, with qmin in mean packets."""
    most = burst + 1 - low
    if most < 1:
        return None
    weights = ((log, 2.0**-log) for log in range(1, 32))
    return next((log for log, w in weights if most <= (1 - (1 - w) ** burst) / w), None)


def kinds() -> list[str] | None:
    """Returns the kinds that the kernel of this machine has; `None` if that cannot be tried."""
    return qdiscs.tried(["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--net"])


def require() -> None:
    """Raises `MistakeError` without `tc`."""
    if shutil.which("tc") is None:
        raise MistakeError("--on tc needs tc: apt-get install iproute2")


def counted(kind: str, listed: str) -> dict[str, int]:
    """Returns the drops of a queue as the emulator's report has them, from `tc -s -j qdisc show`.

    The kernel counts all drops; which of them were for want of room is in numbers of the discipline.
    """
    found = {entry.get("handle"): entry for entry in json.loads(listed)}
    entry = found[QUEUE]
    total = int(entry["drops"])
    if kind in ("pfifo", "bfifo"):
        return _dropped(overflow=total)
    if kind in ("codel", "fq_codel"):
        overflow = int(entry["drop_overlimit"])
        return _dropped(overflow=overflow, dequeue=total - overflow)
    if kind in ("pie", "fq_pie"):
        overflow = int(entry["overlimit"])
        return _dropped(overflow=overflow, early=total - overflow)
    if kind == "red":
        early = int(entry["early"])
        return _dropped(overflow=total - early, early=early)
    return _dropped(dequeue=total)


def _dropped(early: int = 0, overflow: int = 0, dequeue: int = 0) -> dict[str, int]:
    return {"early": early, "forced": 0, "overflow": overflow, "dequeue": dequeue}
