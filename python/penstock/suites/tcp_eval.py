"""The TCP evaluation suite (draft-irtf-iccrg-tcpeval-01): its basic scenarios, and delay over throughput by buffer.

The nine paths, the links and their buffers are those of section 4, the buffers of the access link those of section 5.1.
The draft drives them with Tmix and traces of a campus. Here transfers begin as a Poisson process, with sizes after
Pareto, at the same offered loads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.adversary.subject import SUBJECT, Subject
from penstock.suites.kept import Kept
from penstock.suites.model import Case, Criterion, Suite, Unjudged, Value
from penstock.suites.networks import bdp_bytes, dumbbell, ms, rate, step

LOADS = (0.60, 0.85, 1.10)  # moderate, high, overload (section 4.2)
_LEFT, _RIGHT = (0.0, 12.0, 25.0), (2.0, 37.0, 75.0)  # ms, one way: edge links (section 4.1)
_CENTRE = ((0.01, 0.01, 0.1), (0.01, 0.1, 0.1))  # ms: edge links of the data centre (section 4.4.1)
BUFFERS = (0.1, 0.2, 0.5, 1.0, 2.0)  # parts of the product of the access link at 100 ms (section 5.1.1)
_MEAN_BYTES = 50_000
_STANDARD = "newreno"


@dataclass(frozen=True)
class Link:
    """A central link of section 4.4."""

    name: str
    section: str
    title: str
    mbit: float
    delay_ms: float  # one way
    buffer_ms: float
    seconds: tuple[int, int]  # simulated in the full and in the quick form
    edges: tuple[tuple[float, ...], tuple[float, ...]] = (_LEFT, _RIGHT)
    back_mbit: float = 0.0  # of the reverse direction, if it differs
    back_buffer_ms: float = 0.0


LINKS = (
    Link("data-centre", "4.4.1", "data centre, 1 Gbit/s", 1000.0, 0.0, 10.0, (10, 3), _CENTRE),
    Link("access", "4.4.2", "access link, 100 Mbit/s", 100.0, 2.0, 100.0, (60, 15)),
    Link("trans-oceanic", "4.4.3", "trans-oceanic link, 1 Gbit/s", 1000.0, 65.0, 100.0, (20, 6)),
    Link("satellite", "4.4.4", "geostationary satellite, 40 and 4 Mbit/s", 40.0, 300.0, 100.0, (100, 40),
         back_mbit=4.0, back_buffer_ms=1000.0),
    Link("dial-up", "4.4.6", "dial-up link, 64 kbit/s", 0.064, 5.0, 1250.0, (600, 200)),
)  # fmt: skip
_ACCESS = LINKS[1]


def cases(quick: bool) -> list[Case]:
    """Returns the cases: each link with three loads, and the access link with five buffers."""
    basic = [_case(link, load, quick) for link in LINKS for load in LOADS]
    product = 1e3 * bdp_bytes(_ACCESS.mbit, 100.0) * 8 / (_ACCESS.mbit * 1e6)
    return [*basic, *(_case(_ACCESS, LOADS[1], quick, buffer, buffer * product) for buffer in BUFFERS)]


def _case(link: Link, load: float, quick: bool, part: float = 0.0, buffer_ms: float = 0.0) -> Case:
    """Returns a case: the offered load is shared by nine paths; transfers go over the central link."""
    buffer = bdp_bytes(link.mbit, buffer_ms or link.buffer_ms)
    topology: dict[str, Any] = {"delay": ms(link.delay_ms or 0.001), "access_delay": "0ms", "access_rate": "1Gbit/s"}
    if link.mbit >= 1000:
        topology["access_rate"] = "10Gbit/s"
    if link.back_buffer_ms:
        topology["reverse_limit"] = f"{round(bdp_bytes(link.back_mbit, link.back_buffer_ms))}B"
    elif not part:
        topology["reverse_limit"] = f"{max(3000, round(buffer))}B"
    each = load * link.mbit * 1e6 / 8 / _MEAN_BYTES / 9
    flows = [
        {"role": f"path{n}", "kind": "web", "per_second": each, "mean_size": "50kB", "access_delay": ms(left + right)}
        for n, (left, right) in enumerate((a, b) for a in link.edges[0] for b in link.edges[1])
    ]
    changes = [step(0, rate=rate(link.back_mbit), direction="reverse")] if link.back_mbit else []
    more: dict[str, Any] = {"aqm": "droptail", "tcp": {"cc": SUBJECT}, **({"changes": changes} if changes else {})}
    tables = dumbbell(link.mbit, 100.0, buffer, flows, seconds=link.seconds[quick], topology=topology, **more)
    return Case(_name(link, load, part), tables)


def _name(link: Link, load: float, part: float = 0.0) -> str:
    return f"{link.name}-{load:.0%}".replace("%", "") + (f"-buffer-{part:g}" if part else "")


_MEASURED: tuple[tuple[str, str, Callable[[Kept], float]], ...] = (
    ("use of the link", "%", lambda run: 100 * run.links[0]["utilization"]),
    ("drops", "%", lambda run: 100 * run.drop_share()),
    ("delay", "ms", lambda run: run.delay),
)


def criteria(_subject: Subject) -> list[Criterion]:
    """Returns what the draft measures of each scenario (sections 4.5 and 5.1.3); it has no limits."""
    found = []
    for link in LINKS:
        for load in LOADS:
            found += _measured(_name(link, load), link.section, f"{link.title}, load {load:.0%}")
    for part in BUFFERS:
        title = f"{_ACCESS.title}, load {LOADS[1]:.0%}, buffer {part:.0%} of the product"
        found += _measured(_name(_ACCESS, LOADS[1], part), "5.1", title)
    return found


def _measured(case: str, section: str, title: str) -> list[Criterion]:
    return [
        Criterion(
            f"{case}.{what.split()[0]}", section, f"{title}: {what}", unit, _ABOUT[what], _of(case, value),
            cases=(case,) if what == "delay" else (),
        )
        for what, unit, value in _MEASURED
    ]  # fmt: skip


_ABOUT = {
    "use of the link": "The aggregate link utilization.",
    "drops": "The average packet drop rate.",
    "delay": "The average queueing delay.",
}


def _of(case: str, value: Callable[[Kept], float]) -> Value:
    return lambda runs, name: runs.median(case, name, value)


UNJUDGED = (
    Unjudged("2.2", "Tmix and its traces", "the traces are not in this package; transfers follow Poisson and Pareto"),
    Unjudged("4.4.5", "wireless LAN", "the simulator has no shared medium of 802.11"),
    Unjudged("5.2", "ramp-up time", "not in this version"),
    Unjudged("5.3", "transients", "not in this version; `suite rfc9743` has changes of the path and of the load"),
    Unjudged("6.1", "impact on standard TCP", "not in this version; `suite rfc9743` has it"),
    Unjudged("6.2", "intra-protocol and inter-RTT fairness", "not in this version"),
    Unjudged("6.3", "multiple bottlenecks", "not in this version"),
)

SUITE = Suite(
    "tcp-eval",
    "The TCP evaluation suite",
    "draft-irtf-iccrg-tcpeval-01",
    "control",
    (_STANDARD,),
    cases,
    criteria,
    UNJUDGED,
    (3, 1),
    "The draft has no limits: compare the numbers with those of standard TCP (newreno), which are beside them.",
    ("met", "not met"),
)
