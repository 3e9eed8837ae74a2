"""RFC 7928: how to characterize an AQM. Criteria by its sections, and what a simulator cannot judge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from penstock.adversary.subject import Subject
from penstock.suites.aqm_cases import (
    BURSTS,
    LEVELS,
    PERIOD_S,
    RATE,
    ROUND_TRIPS,
    SIZES,
    TAIL,
    cases,
    variants,
)
from penstock.suites.kept import Kept, settled_after
from penstock.suites.model import LEAST, MOST, Criterion, Failed, Runs, Suite, Unjudged, Value

HALF_DELAY = 0.5
_ALMOST_NOTHING = 0.001  # of the packets
ONE_FLOW, MANY_FLOWS = 0.75, 0.9
_SETTLED_S, _SETTLED = 10.0, 2.0


# Values. Each takes the runs and the name of an algorithm.


def _delay(case: str) -> Value:
    return lambda runs, name: runs.median(case, name, lambda run: run.delay)


def _goodput(case: str) -> Value:
    return lambda runs, name: runs.median(case, name, lambda run: run.goodput) / 1e6


def _of(case: str, value: Any) -> Value:
    return lambda runs, name: runs.median(case, name, value)


def _part_of_tail(value: Value, part: float) -> Value:
    return lambda runs, _name: part * value(runs, TAIL)


def _more_than_tail(value: Value, more: float) -> Value:
    return lambda runs, _name: value(runs, TAIL) + more


def _share_by_rtt(case: str) -> Value:
    """The goodput of the flow that fares worse, as a part of its share if rates are as 1 / round trip time."""

    def worse(run: Kept) -> float:
        rates = [run.goodputs(role)[0] for role in ("reference", "other")]
        weights = [1 / run.rtt_ms(role, "mean")[0] for role in ("reference", "other")]
        total = math.fsum(rates)
        if not total:
            raise Failed("no flow delivered anything")
        return min(rate / (total * weight / sum(weights)) for rate, weight in zip(rates, weights, strict=True))

    return _of(case, worse)


def _settles(case: str, begin_s: int, end_s: int) -> Value:
    """Seconds from `begin_s` until the delay falls below twice its mean in the last ten seconds before `end_s`."""

    def seconds(run: Kept) -> float:
        later = run.mean_delay(end_s - 10, end_s)
        return settled_after(run.delay_ms, begin_s, end_s, _SETTLED * max(later, 1.0))

    return _of(case, seconds)


def _through_rtt(run: Kept) -> float:
    means, least = run.rtt_ms("through", "mean"), run.rtt_ms("through", "min")
    return max(mean - low for mean, low in zip(means, least, strict=True))


def _loss_by_size(run: Kept) -> float:
    """The largest share of lost packets among the sizes, over the smallest."""
    sent = 0.4 * RATE * 1e6 / 8 * (run.summary["duration_s"] - 1)
    lost = [_lost(run.flows(size)[0], int(size.removesuffix("B")), sent) for size in SIZES]
    if min(lost) <= _ALMOST_NOTHING:
        raise Failed("almost nothing was lost")
    return max(lost) / min(lost)


def _lost(flow: Mapping[str, Any], payload: int, sent_bytes: float) -> float:
    return float(max(0.0, 1 - flow["delivered_bytes"] / (sent_bytes * payload / (payload + 28))))


def _drops_with_ecn(runs: Runs, name: str) -> float:
    dropped = runs.median("ecn", name, lambda run: run.drop_share())
    if dropped <= _ALMOST_NOTHING:
        return 0.0  # nothing was to be marked
    if runs.median("ecn", name, lambda run: run.links[0]["marks"]) == 0:
        raise Failed("it marks nothing")
    return dropped


def _cost(runs: Runs, name: str) -> float:
    """CPU time of the events of a packet, over that with drop-tail: the smallest of the runs, which others disturb."""
    each = {one: min(run.cpu_s / run.links[0]["packets_all"] for run in runs.of("medium", one)) for one in (name, TAIL)}
    return float(each[name] / each[TAIL])


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
    ("lbe", "5.4", "a LEDBAT flow", ONE_FLOW),
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
    ONE_FLOW: "Payload delivered per second: at least 0.75 of what drop-tail delivers, which a Reno flow reaches "
    "without any queue, as its window goes from one half to the whole of the path.",
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
        "The goodput of the flow that fares worse, over its share if rates are as 1 / round trip time (as measured): "
        "at least 0.5, or what drop-tail gives."
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
            limit = _more_than_tail(lost, 0.5)
            found.append(Criterion(f"{case}.drops", "7.2", f"{traffic}: drops", "%", about, lost, MOST, limit))
        else:
            about = "90th percentile of the times of web transfers: at most that with drop-tail."
            limit = _part_of_tail(taken, 1.0)
            found.append(Criterion(f"{case}.web", "7.2", f"{traffic}: web", "ms", about, taken, MOST, limit))
    return found


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
    Criterion(
        "beside-lbe.share",
        "5.4",
        "a LEDBAT flow beside a Reno flow: its share",
        "%",
        "Of the goodput of both. LEDBAT yields to a queue longer than 100 ms: an AQM that keeps it shorter makes it an "
        "equal. There is no limit.",
        _of("beside-lbe", lambda run: 100 * run.total("lbe") / (run.total("lbe") + run.total("bulk"))),
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
        _settles("capacity-slow", PERIOD_S, 2 * PERIOD_S),
        MOST,
        lambda _runs, _name: _SETTLED_S,
    ),
    Criterion(
        "mix.call",
        "9.1",
        "a traffic mix: worst call",
        "MOS",
        "At least that with drop-tail, less a tenth.",
        _MOS,
        LEAST,
        _more_than_tail(_MOS, -0.1),
    ),
    Criterion(
        "mix.web",
        "9.1",
        "a traffic mix: web",
        "ms",
        "90th percentile of the times of transfers: at most that with drop-tail.",
        _MIX_WEB,
        MOST,
        _part_of_tail(_MIX_WEB, 1.0),
    ),
    Criterion(
        "mix.video",
        "9.1",
        "a traffic mix: frames played in time",
        "%",
        "At least those with drop-tail, less one of a hundred.",
        _PLAYED,
        LEAST,
        _more_than_tail(_PLAYED, -1.0),
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
        only_sim="the processor time is that of the simulator",
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
    "RFC 7928 gives no limits: these are Penstock's, each beside drop-tail on the same path or from theory, and each "
    "is told with its reason. A limit that is not met is a reason to look, not a judgement of the algorithm.",
    ("met", "not met"),
    variants=variants,
    variant_cases=("medium",),
)
