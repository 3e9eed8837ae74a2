"""RFC 7928: how to characterize an AQM. Cases by its sections, criteria, and what a simulator cannot judge.

The bottleneck has 10 Mbit/s, the path 100 ms, and the buffer is the product of both (section 3.2). The numbers of flows
of section 8.2, the periods of varying congestion and the two rates of varying capacity are those of the evaluation
suite of ns-3 for this RFC (Deepak, Shravya and Tahiliani 2017).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock import engine
from penstock.adversary.subject import SUBJECT, Subject
from penstock.experiments.values import base_unit, quantity
from penstock.suites.kept import Kept, settled_after
from penstock.suites.model import LEAST, MOST, Case, Criterion, Failed, Runs, Suite, Unjudged, Value
from penstock.suites.networks import MTU, bdp_bytes, bulk, call, dumbbell, rate, step, udp, video, web

RATE, RTT = 10.0, 100.0  # Mbit/s, ms
BUFFER = bdp_bytes(RATE, RTT)
TAIL = "droptail"  # beside which every AQM is judged
# Flows for a packet of BDP and buffer which give about 0.1, 0.5 and 1 % of losses without an AQM (section 8.2).
LEVELS = {"mild": 0.036, "medium": 0.081, "heavy": 0.114}
ROUND_TRIPS = (5, 20, 50, 200, 500)  # ms, of the flow beside that of 100 ms (section 6.2)
_QUICK_ROUND_TRIPS = (20, 500)
BURSTS = {"I": (0, 0), "II": (0, 1), "III": (1, 0), "IV": (1, 1)}  # videos and bulk transfers (section 7.2)
SIZES = ("200B", "600B", "1400B")  # payloads of datagrams (section 4.4)
# Section 8.2.5: seconds in which the level holds; 8.2.6: seconds between two changes of the rate.
_VARYING = ((0, 20, "mild"), (20, 40, "medium"), (40, 60, "heavy"), (60, 80, "mild"), (80, 100, "heavy"))
_PERIOD_S = 20
_SLOW = 10.0  # Mbit/s, after 100
WIDER = 2.0  # by which a parameter is multiplied and divided (section 8.3)

HALF_DELAY = 0.5
ONE_FLOW, MANY_FLOWS = 0.75, 0.9
_SETTLED_S, _SETTLED = 10.0, 2.0


def flows_at(level: str) -> int:
    """Returns the number of flows of a level of congestion."""
    return int(LEVELS[level] * (bdp_bytes(RATE, RTT) + BUFFER) / MTU)


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
    for name, half_s in (("capacity-slow", _PERIOD_S), ("capacity-fast", 0.1)):
        every = {"every": f"{2 * half_s:g}s"}
        changes = [step(half_s, rate=rate(_SLOW), **every), step(2 * half_s, rate=rate(100.0), **every)]
        seconds = 3 * _PERIOD_S if name == "capacity-slow" else (10 if quick else 40)
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
    kind = kinds.get(subject.name) or _own_kind(subject.name)
    refused = {
        "ack-path": "it edits ACKs and needs to see all flows",
        "flow-queueing": "it has a scheduler of its own",
        "scheduler": "it is a scheduler",
    }
    if subject.name in ("green", "dualpi2", "sfb", "choke"):
        return "it needs to see all flows"
    return refused.get(kind or "", "")


def _own_kind(name: str) -> str | None:
    from penstock.own import Library

    return Library().kind(name)


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
    from penstock.own import Library

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


# Values. Each takes the runs and the name of an algorithm.


def _delay(case: str) -> Value:
    return lambda runs, name: runs.median(case, name, lambda run: run.delay)


def _goodput(case: str) -> Value:
    return lambda runs, name: runs.median(case, name, lambda run: run.goodput) / 1e6


def _of(case: str, value: Any) -> Value:
    return lambda runs, name: runs.median(case, name, value)


def _part_of_tail(value: Value, part: float) -> Value:
    return lambda runs, _name: part * value(runs, TAIL)


def _share_by_rtt(case: str) -> Value:
    """The goodput of the flow that fares worse, as a part of its share if rates are as 1 / round trip time."""

    def worse(run: Kept) -> float:
        flows = [run.flows(role)[0] for role in ("reference", "other")]
        weights = [1 / flow["rtt_ms"]["mean"] for flow in flows]
        total = math.fsum(flow["goodput_bps"] for flow in flows)
        return float(min(f["goodput_bps"] / (total * w / sum(weights)) for f, w in zip(flows, weights, strict=True)))

    return _of(case, worse)


def _settles(case: str, begin_s: int, end_s: int) -> Value:
    """Seconds from `begin_s` until the delay falls below twice its mean in the last ten seconds before `end_s`."""

    def seconds(run: Kept) -> float:
        later = run.mean_delay(end_s - 10, end_s)
        return settled_after(run.delay_ms, begin_s, end_s, _SETTLED * max(later, 1.0))

    return _of(case, seconds)


def _through_rtt(run: Kept) -> float:
    return max(flow["rtt_ms"]["mean"] - flow["rtt_ms"]["min"] for flow in run.flows("through"))


def _loss_by_size(run: Kept) -> float:
    """The largest share of lost packets among the sizes, over the smallest."""
    sent = 0.4 * RATE * 1e6 / 8 * (run.summary["duration_s"] - 1)
    lost = [_lost(run.flows(size)[0], int(size.removesuffix("B")), sent) for size in SIZES]
    if min(lost) <= 0.001:
        raise Failed("almost nothing was lost")
    return max(lost) / min(lost)


def _lost(flow: Mapping[str, Any], payload: int, sent_bytes: float) -> float:
    return max(0.0, 1 - flow["delivered_bytes"] / (sent_bytes * payload / (payload + 28)))


def _drops_with_ecn(runs: Runs, name: str) -> float:
    if runs.median("ecn", name, lambda run: run.links[0]["marks"]) == 0:
        raise Failed("it marks nothing")
    return runs.median("ecn", name, lambda run: run.drop_share())


def _cost(runs: Runs, name: str) -> float:
    """CPU time of the events of a packet, over that with drop-tail: the smallest of the runs, which others disturb."""
    each = {
        one: min(run.cpu_s / run.links[0]["packets_all"] for run in runs.of("medium", one)) for one in (name, TAIL)
    }
    return each[name] / each[TAIL]


def criteria(subject: Subject) -> list[Criterion]:
    """Returns the criteria, in the order of the sections."""
    found: list[Criterion] = []
    for case, section, title, part in _JUDGED:
        found += _latency_and_goodput(case, section, title, part)
    return sorted([*found, *_OTHERS, *_of_parameters(subject)], key=lambda one: _order(one.section))


def _order(section: str) -> list[int]:
    return [int(part) for part in section.split(".")]


# Cases of which delay and goodput are judged, and the least part of the goodput of drop-tail.
_JUDGED = (
    ("friendly", "5.1.1", "a Reno flow", ONE_FLOW),
    ("windows", "5.1.2", "two Reno flows with initial windows of 3 and 10", ONE_FLOW),
    ("aggressive", "5.2", "a CUBIC flow", ONE_FLOW),
    ("mild", "8.2.2", "mild congestion", MANY_FLOWS),
    ("medium", "8.2.3", "medium congestion", MANY_FLOWS),
    ("heavy", "8.2.4", "heavy congestion", MANY_FLOWS),
    ("varying", "8.2.5", "varying congestion", MANY_FLOWS),
    ("capacity-slow", "8.2.6", "capacity that changes every 20 s", ONE_FLOW),
    ("capacity-fast", "8.2.6", "capacity that changes every 100 ms", ONE_FLOW),
    ("mix", "9.1", "a traffic mix", ONE_FLOW),
    ("both-ways", "9.2", "both directions", MANY_FLOWS),
)
_DELAY_ABOUT = (
    "Mean queueing delay. An AQM exists to lower it: at most half of that of drop-tail, whose buffer is the product of "
    "rate and round trip time."
)
_GOODPUT_ABOUT = {
    ONE_FLOW: "Payload delivered per second: at least 0.75 of what drop-tail delivers, which a Reno flow reaches without "
    "any queue, as its window goes from one half to the whole of the path.",
    MANY_FLOWS: "Payload delivered per second: at least 0.9 of what drop-tail delivers; of several flows not all halve "
    "at once.",
}


def _latency_and_goodput(case: str, section: str, title: str, part: float) -> list[Criterion]:
    delay, goodput = _delay(case), _goodput(case)
    return [
        Criterion(
            f"{case}.delay",
            section,
            f"{title}: delay",
            "ms",
            _DELAY_ABOUT,
            delay,
            MOST,
            _part_of_tail(delay, HALF_DELAY),
            (case,),
        ),
        Criterion(
            f"{case}.goodput",
            section,
            f"{title}: goodput",
            "Mbit/s",
            _GOODPUT_ABOUT[part],
            goodput,
            LEAST,
            _part_of_tail(goodput, part),
        ),
    ]


def _left_for_tcp(_runs: Runs, _name: str) -> float:
    return 0.5 * 0.2 * RATE


def _rtt_limit(case: str) -> Value:
    value = _share_by_rtt(case)
    return lambda runs, _name: min(0.5, value(runs, TAIL))


def _rtt_criteria() -> list[Criterion]:
    about = (
        "The goodput of the flow that fares worse, over its share if rates are as 1 / round trip time (as measured): at "
        "least 0.5, or what drop-tail gives."
    )
    return [
        Criterion(
            f"rtt-{other}.share",
            "6.2",
            f"round trips of 100 and {other} ms: share",
            "",
            about,
            _share_by_rtt(f"rtt-{other}"),
            LEAST,
            _rtt_limit(f"rtt-{other}"),
        )
        for other in ROUND_TRIPS
    ]


def _burst_criteria() -> list[Criterion]:
    found = []
    for name, (videos, bulks) in BURSTS.items():
        case = f"bursts-{name}"
        lost = _of(case, lambda run: 100 * run.drop_share())
        taken = _of(case, lambda run: run.transfer_ms("web"))
        traffic = "web, constant rate" + ", video" * videos + ", bulk" * bulks
        if not bulks:
            about = "Dropped packets on a link that is far from full: at most 0.5 % above drop-tail."
            limit = lambda runs, _name, lost=lost: lost(runs, TAIL) + 0.5  # noqa: E731
            found.append(Criterion(f"{case}.drops", "7.2", f"{traffic}: drops", "%", about, lost, MOST, limit))
        else:
            about = "90th percentile of the times of web transfers: at most that with drop-tail."
            limit = _part_of_tail(taken, 1.0)
            found.append(Criterion(f"{case}.web", "7.2", f"{traffic}: web", "ms", about, taken, MOST, limit))
    return found


def _more_than_tail(value: Value, more: float) -> Value:
    return lambda runs, _name: value(runs, TAIL) + more


_SPREAD = {level: _of(level, lambda run: run.spread_ms(10)) for level in LEVELS}
_MOS, _PLAYED = _of("mix", lambda run: run.mos("call")), _of("mix", lambda run: 100 * run.played("video"))
_MIX_WEB = _of("mix", lambda run: run.transfer_ms("web"))
_THROUGH = _of("in-a-row", lambda run: run.total("through") / 1e6)
_OTHERS = [
    Criterion(
        "unresponsive.delay",
        "5.3",
        "a UDP stream of 1.5 times the rate: delay",
        "ms",
        "Mean queueing delay of the last half of the run: at most half of that of drop-tail.",
        _of("unresponsive", lambda run: run.mean_delay(run.summary["duration_s"] / 2, run.summary["duration_s"])),
        MOST,
        _part_of_tail(
            _of("unresponsive", lambda run: run.mean_delay(run.summary["duration_s"] / 2, run.summary["duration_s"])),
            HALF_DELAY,
        ),
        ("unresponsive",),
    ),
    Criterion(
        "beside-udp.tcp",
        "5.3",
        "a Reno flow beside UDP of 0.8 of the rate: goodput",
        "Mbit/s",
        "Goodput of the Reno flow: at least half of what UDP leaves.",
        _of("beside-udp", lambda run: run.total("bulk") / 1e6),
        LEAST,
        _left_for_tcp,
        ("beside-udp",),
    ),
    *_rtt_criteria(),
    *_burst_criteria(),
    *(
        Criterion(
            f"{level}.spread",
            section,
            f"{level} congestion: standard deviation of the delay",
            "ms",
            "Of the means of seconds: at most that of drop-tail.",
            _SPREAD[level],
            MOST,
            _part_of_tail(_SPREAD[level], 1.0),
        )
        for level, section in (("mild", "8.2.2"), ("medium", "8.2.3"), ("heavy", "8.2.4"))
    ),
    Criterion(
        "varying.settles",
        "8.2.5",
        "from mild to heavy: time until the delay is steady",
        "s",
        "Seconds until the mean of a second, from its peak on, is below twice the mean of the last ten: at most 10.",
        _settles("varying", 80, 100),
        MOST,
        lambda _runs, _name: _SETTLED_S,
    ),
    Criterion(
        "capacity-slow.settles",
        "8.2.6",
        "from 100 to 10 Mbit/s: time until the delay is steady",
        "s",
        "Seconds until the mean of a second, from its peak on, is below twice the mean of the last ten: at most 10.",
        _settles("capacity-slow", _PERIOD_S, 2 * _PERIOD_S),
        MOST,
        lambda _runs, _name: _SETTLED_S,
    ),
    Criterion(
        "mix.call", "9.1", "a traffic mix: worst call", "MOS", "At least that with drop-tail, less a tenth.", _MOS,
        LEAST, _more_than_tail(_MOS, -0.1),
    ),
    Criterion(
        "mix.web", "9.1", "a traffic mix: web", "ms", "90th percentile of the times of transfers: at most that with "
        "drop-tail.", _MIX_WEB, MOST, _part_of_tail(_MIX_WEB, 1.0),
    ),
    Criterion(
        "mix.video", "9.1", "a traffic mix: frames played in time", "%", "At least those with drop-tail, less one of a "
        "hundred.", _PLAYED, LEAST, _more_than_tail(_PLAYED, -1.0),
    ),
    Criterion(
        "in-a-row.delay",
        "10",
        "three AQMs in a row: time in queues",
        "ms",
        "Mean round trip time of the flows over all three, above the smallest: at most half of that of drop-tail.",
        _of("in-a-row", _through_rtt),
        MOST,
        _part_of_tail(_of("in-a-row", _through_rtt), HALF_DELAY),
    ),
    Criterion(
        "in-a-row.through",
        "10",
        "three AQMs in a row: goodput of the flows over all",
        "Mbit/s",
        "At least half of that with drop-tail: a flow that meets three AQMs is dropped by each.",
        _THROUGH,
        LEAST,
        _part_of_tail(_THROUGH, 0.5),
    ),
    Criterion(
        "sizes.fair",
        "4.4",
        "packets of 200, 600 and 1400 B: largest over smallest share of losses",
        "",
        "Drops must not prefer a size (RFC 7141): at most 2.",
        _of("sizes", _loss_by_size),
        MOST,
        lambda _runs, _name: 2.0,
    ),
    Criterion(
        "ecn.drops",
        "4.5",
        "medium congestion with ECN: dropped packets",
        "%",
        "Marks take the place of drops: at most half of the drops without ECN.",
        lambda runs, name: 100 * _drops_with_ecn(runs, name),
        MOST,
        lambda runs, name: 50 * runs.median("medium", name, lambda run: run.drop_share()),
    ),
    Criterion(
        "ecn.delay",
        "4.5",
        "medium congestion with ECN: delay",
        "ms",
        "A mark must slow senders down as a drop does: at most 1.5 times the delay without ECN.",
        lambda runs, name: _delay("ecn")(runs, name) if _drops_with_ecn(runs, name) >= 0 else math.nan,
        MOST,
        lambda runs, name: 1.5 * _delay("medium")(runs, name),
    ),
    Criterion(
        "scheduled.call",
        "4.6",
        "in a queue for each flow: worst call",
        "MOS",
        "At least that of the AQM alone.",
        _of("scheduled", lambda run: run.mos("call")),
        LEAST,
        _of("alone", lambda run: run.mos("call")),
    ),
    Criterion(
        "scheduled.fair",
        "4.6",
        "in a queue for each flow: Jain's index",
        "",
        "Flow queueing shares the link equally, unless the AQM prevents it: at least 0.9.",
        _of("scheduled", lambda run: run.jain("bulk")),
        LEAST,
        lambda _runs, _name: 0.9,
    ),
    Criterion(
        "cost.time",
        "11",
        "CPU time of a packet in this simulator",
        "of drop-tail",
        "Network, TCP and discipline together; the smallest of the runs. It depends on the machine, and has no limit.",
        _cost,
    ),
]


def _of_parameters(subject: Subject) -> list[Criterion]:
    """Returns the criteria of section 8.3: the worst over doubled and halved parameters."""
    names = list(variants(subject))

    def worst(value: Value, of: Any) -> Value:
        def over(runs: Runs, name: str) -> float:
            base_value = value(runs, name)
            found = [value(runs, one) / base_value for one in _run_variants(runs, name)]
            return float(of(found))

        return over

    about = f"The worst over {len(names)} variants, each with one number of the parameters doubled or halved: "
    return [
        Criterion(
            "parameters.delay",
            "8.3",
            "sensitivity to parameters: delay",
            "of the default's",
            about + "at most 2.5 times the delay with the defaults.",
            worst(_delay("medium"), max),
            MOST,
            lambda _runs, _name: 2.5,
        ),
        Criterion(
            "parameters.goodput",
            "8.3",
            "sensitivity to parameters: goodput",
            "of the default's",
            about + "at least 0.8 of the goodput with the defaults.",
            worst(_goodput("medium"), min),
            LEAST,
            lambda _runs, _name: 0.8,
        ),
    ]


def _run_variants(runs: Runs, name: str) -> list[str]:
    """Returns the variants of an algorithm that could be run; a value may be one that the algorithm refuses."""
    found = [one for case, one in runs.found if case == "medium" and one.startswith(f"{name} ")]
    ran = [one for one in found if not any(run.error for run in runs.found["medium", one])]
    if not ran:
        raise Failed("it has no number among its parameters")
    return ran


UNJUDGED = (
    Unjudged("2.2", "flow start-up time", "the simulator's results have no time of the first packet of a flow"),
    Unjudged("2.4", "packet loss synchronization", "the results count the losses of a flow, and not their times"),
    Unjudged("4.3.2", "deployment comparison", "what can be deployed where is for people to say"),
    Unjudged("5.4", "less-than-best-effort transports", "there is no LEDBAT among the controls"),
    Unjudged("11", "cost in hardware, memory and registers", "only the CPU time in this simulator is measured"),
    Unjudged("12", "operator control", "whether an operator understands the controls is for people to say"),
)

SUITE = Suite(
    "rfc7928",
    "RFC 7928: characterization of AQMs",
    "RFC 7928",
    "discipline",
    (TAIL,),
    cases,
    criteria,
    UNJUDGED,
    (5, 2),
    "RFC 7928 gives no limits: these are Penstock's, each beside drop-tail on the same path or from theory, and each is "
    "told with its reason. A limit that is not met is a reason to look, not a judgement of the algorithm.",
    ("met", "not met"),
    variants=variants,
    variant_cases=("medium",),
)
