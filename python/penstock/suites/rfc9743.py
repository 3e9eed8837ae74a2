"""RFC 9743: criteria for new congestion controls. Numbers of a control beside those of Reno, CUBIC and BBR.

The RFC gives no limits; it asks whether a control could do more harm than the standardized ones (section 5.2). So each
number stands beside those of Reno and CUBIC on the same paths and seeds; the verdict says if it is worse than both.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from penstock.adversary.subject import Subject
from penstock.suites.control_cases import (
    ABOVE,
    BELOW,
    BLACK_S,
    DEPTHS,
    OUTAGE_S,
    QUEUES,
    RATE,
    RATES,
    ROUND_TRIPS,
    RTT,
    SAME,
    SECONDS,
    STANDARD,
    cases,
    grid_name,
)
from penstock.suites.kept import Kept, share
from penstock.suites.model import LEAST, MOST, Criterion, Failed, NotRun, Runs, Suite, Unjudged, Value
from penstock.suites.networks import MTU

BESIDE = (*STANDARD, "bbr", "bbr3")
MARGIN = 0.25  # by which a number may be worse than the worse of the standardized controls
# Numbers which the buffer or a scale bounds: one that is a quarter beyond that of CUBIC could not be.
_BOUNDED = {"bufferbloat.delay": 0.1, "harm.delay": 0.1, "path.delay": 0.1, "real-time.call": 0.05}
_STARVED = 0.05  # of the fair share: less in a second is starvation

# Values.


def _of(case: str, value: Callable[[Kept], float]) -> Value:
    return lambda runs, name: runs.median(case, name, value)


def _over(names: Sequence[str], pick: Callable[[list[float]], float], value: Callable[[str], Value]) -> Value:
    """The worst over several cases, of those which are run."""

    def worst(runs: Runs, name: str) -> float:
        ran = [case for case in names if runs.has(case, name) or (case, name) in runs.refused]
        if not ran:
            raise NotRun(names[0])
        return float(pick([value(case)(runs, name) for case in ran]))

    return worst


def _beside(value: Value, sense: str, margin: float, slack: float) -> Value:
    """The worse of the standardized controls, with the margin; `slack` for numbers near zero."""

    def limit(runs: Runs, _name: str) -> float:
        standard = [value(runs, name) for name in STANDARD]
        return (1 + margin) * max(standard) + slack if sense == MOST else (1 - margin) * min(standard) - slack

    return limit


def _packets(begin_s: int, end_s: int) -> Callable[[Kept], float]:
    return lambda run: run.mean_rate(begin_s, end_s) * (end_s - begin_s) / 8 / MTU


def _victims_part(case: str) -> Value:
    """The goodput of the others, as a part of what they get beside their own kind in the same place."""
    victim = case.split("-")[1]

    def part(runs: Runs, name: str) -> float:
        alone = runs.median(case, victim, lambda run: run.total("victim"))
        return runs.median(case, name, lambda run: run.total("victim")) / alone

    return part


def _victims_wait(case: str) -> Value:
    """The time of the others in queues: mean above smallest round trip time, over that beside their own kind."""
    victim = case.split("-")[1]

    def wait(run: Kept) -> float:
        return max(run.rtt_ms("victim", "mean")) - RTT

    return lambda runs, name: runs.median(case, name, wait) / runs.median(case, victim, wait)


def _victims_losses(run: Kept) -> float:
    flows = run.flows("victim")
    sent = sum(flow["delivered_bytes"] for flow in flows) / MTU
    return float(100 * sum(flow["retransmits"] for flow in flows) / max(1.0, sent))


def _starved(run: Kept) -> float:
    """The most seconds in a row, after the first five, in which the others get less than 5 % of their fair share."""
    longest = now = 0
    for got in run.goodput_bps["victim"][5:]:
        now = now + 1 if (got or 0.0) < _STARVED * RATE * 1e6 / 2 else 0
        longest = max(longest, now)
    return float(longest)


def _late_share(run: Kept) -> float:
    """What the flow that comes last gets in the last 15 s, as a part of a fifth of the link."""
    late, early = run.mean_rate(SECONDS - 15, SECONDS, "late"), run.mean_rate(SECONDS - 15, SECONDS, "ours")
    return share(5 * late, late + early, "no flow delivered anything in the last 15 s")


def _honest_share(run: Kept) -> float:
    return run.total("ours") / (0.75 * RATE * 1e6)


def _completion(run: Kept) -> float:
    taken = [flow["completion_s"] for flow in run.flows("ours")]
    return float(max(run.summary["duration_s"] if one is None else one for one in taken))


def _recovers(case: str, at_s: int) -> Value:
    """Seconds after `at_s` until the goodput of a second is 80 % of its mean from the 10th to the 20th second."""

    def seconds(run: Kept) -> float:
        before = run.mean_rate(10, BLACK_S, "ours")
        after = run.goodput_bps["ours"][at_s:]
        return float(next((n for n, got in enumerate(after) if (got or 0.0) >= 0.8 * before), len(after)))

    return _of(case, seconds)


def _marked(runs: Runs, name: str) -> float:
    """The delay under PIE with ECN, over that under PIE which drops: a control that ignores marks has more."""
    if runs.median("queue-pie", name, lambda run: run.links[0]["marks"]) == 0:
        raise Failed("no packet was marked: the control does not use ECN")
    return _delay("queue-pie")(runs, name) / _delay("queue-pie-drops")(runs, name)


def _delay(case: str) -> Value:
    return _of(case, lambda run: run.delay)


def _goodput(case: str) -> Value:
    return _of(case, lambda run: run.goodput / 1e6)


def _use(case: str) -> Value:
    return _of(case, lambda run: 100 * run.links[0]["utilization"])


def _drops(case: str) -> Value:
    return _of(case, lambda run: 100 * run.drop_share())


def _jain(case: str) -> Value:
    return _of(case, lambda run: run.jain("ours"))


_GRID = tuple(itertools.starmap(grid_name, itertools.product(RATES, ROUND_TRIPS, DEPTHS)))
_SHALLOW = tuple(f"shallow-{depth:g}" for depth in ABOVE)
_PAIRS = {victim: tuple(f"pair-{victim}-{depth:g}" for depth in BELOW) for victim in STANDARD}
_ALL_PAIRS = tuple(itertools.chain(*_PAIRS.values()))
_QUEUES = tuple(f"queue-{name}" for name in QUEUES)
_FROM, _TO = 2 * BLACK_S, 3 * BLACK_S
# Section, name, title, unit, how it is measured, the value, its sense, and how much more is allowed in its unit.
_ROWS: tuple[tuple[str, str, str, str, str, Value, str, float], ...] = (
    (
        "5.1.1",
        "collapse.blackout",
        "no packet arrives any more: packets sent in 20 s",
        "",
        "All packets are lost from the 20th second on; what is sent from the 40th to the 60th.",
        _of("blackout", _packets(_FROM, _TO)),
        MOST,
        10.0,
    ),
    (
        "5.1.1",
        "collapse.loss",
        "30 % of the packets are lost: use of the link",
        "%",
        "Part of the link that is used although almost a third of all packets is lost.",
        _use("loss-30"),
        MOST,
        10.0,
    ),
    (
        "5.1.2",
        "bufferbloat.delay",
        "a buffer of twenty products: delay",
        "ms",
        "Mean queueing delay of one flow.",
        _delay("deep"),
        MOST,
        5.0,
    ),
    (
        "5.1.3",
        "loss.shallow",
        "eight flows, buffers of 0.2 to 1 product: drops",
        "%",
        "Dropped packets; the worst of three buffers.",
        _over(_SHALLOW, max, _drops),
        MOST,
        0.5,
    ),
    (
        "5.1.4",
        "fairness.jain",
        "2, 8 and 32 flows: Jain's index",
        "",
        "The worst of the three.",
        _over([f"same-{count}" for count in SAME], min, _jain),
        LEAST,
        0.0,
    ),
    (
        "5.1.4",
        "fairness.late",
        "a fifth flow that comes 30 s later: share",
        "of a fifth",
        "Its part of the goodput in the last 15 of 60 s, over a fifth.",
        _of("late", _late_share),
        LEAST,
        0.0,
    ),
    (
        "5.1.5",
        "short.web",
        "web beside two long flows, all of the control: transfers",
        "ms",
        "90th percentile of the times of transfers.",
        _of("short", lambda run: run.transfer_ms("web")),
        MOST,
        0.0,
    ),
    (
        "5.1.5",
        "short.long",
        "web beside two long flows, all of the control: long flows",
        "Mbit/s",
        "Goodput of the long flows.",
        _of("short", lambda run: run.total("ours") / 1e6),
        LEAST,
        0.0,
    ),
    (
        "5.2.1",
        "harm.reno",
        "two flows of Reno beside two of the control: goodput",
        "of their own",
        "Goodput of the Reno flows, over what they get beside two more Reno flows; the worst of three buffers.",
        _over(_PAIRS["newreno"], min, _victims_part),
        LEAST,
        0.0,
    ),
    (
        "5.2.1",
        "harm.cubic",
        "two flows of CUBIC beside two of the control: goodput",
        "of their own",
        "Goodput of the CUBIC flows, over what they get beside two more CUBIC flows; the worst of three buffers.",
        _over(_PAIRS["cubic"], min, _victims_part),
        LEAST,
        0.0,
    ),
    (
        "5.2.1",
        "harm.delay",
        "Reno or CUBIC beside the control: time in queues",
        "of their own",
        "Mean round trip time of the others above 50 ms, over that beside their own kind; the worst of six.",
        _over(_ALL_PAIRS, max, _victims_wait),
        MOST,
        0.0,
    ),
    (
        "5.2.1",
        "harm.loss",
        "Reno or CUBIC beside the control: what they send again",
        "%",
        "Retransmitted packets of the others; the worst of six.",
        _over(_ALL_PAIRS, max, lambda case: _of(case, _victims_losses)),
        MOST,
        0.5,
    ),
    (
        "5.2",
        "starvation.seconds",
        "Reno or CUBIC beside the control: starved",
        "s",
        "The most seconds in a row in which the others together get less than 5 % of their share; the worst of six.",
        _over(_ALL_PAIRS, max, lambda case: _of(case, _starved)),
        MOST,
        2.0,
    ),
    (
        "5.2",
        "starvation.feedback",
        "no ACK arrives any more: packets sent in 20 s",
        "",
        "All ACKs are lost from the 20th second on; what is sent from the 40th to the 60th.",
        _of("deaf", _packets(_FROM, _TO)),
        MOST,
        10.0,
    ),
    (
        "5.2.2",
        "real-time.call",
        "calls beside two flows: worst call",
        "MOS",
        "Mean opinion score.",
        _of("real-time", lambda run: run.mos("call")),
        LEAST,
        0.0,
    ),
    (
        "5.2.2",
        "real-time.video",
        "a video beside two flows: frames in time",
        "%",
        "Frames that are played in time.",
        _of("real-time", lambda run: 100 * run.played("video")),
        LEAST,
        0.0,
    ),
    (
        "5.2.3",
        "mixed.web",
        "web of CUBIC beside two long flows: transfers",
        "ms",
        "90th percentile of the times of transfers.",
        _of("web-of-cubic", lambda run: run.transfer_ms("web")),
        MOST,
        0.0,
    ),
    (
        "5.2.3",
        "mixed.drops",
        "web of the control beside two long flows of CUBIC: drops",
        "%",
        "Dropped packets of all flows.",
        _drops("web-of-ours"),
        MOST,
        0.5,
    ),
    (
        "6.1",
        "tail.use",
        "drop-tail, 1 to 100 Mbit/s, 10 to 200 ms, 0.25 to 4 products: use",
        "%",
        "Use of the link by one flow; the worst of 27 paths.",
        _over(_GRID, min, _use),
        LEAST,
        0.0,
    ),
    (
        "6.1",
        "tail.drops",
        "the same paths: drops",
        "%",
        "Dropped packets; the worst of 27 paths.",
        _over(_GRID, max, _drops),
        MOST,
        0.5,
    ),
    (
        "6.4",
        "wireless.thousandth",
        "a thousandth of the packets is lost: goodput",
        "Mbit/s",
        "Of one flow.",
        _goodput("loss-0.001"),
        LEAST,
        0.0,
    ),
    (
        "6.4",
        "wireless.hundredth",
        "a hundredth of the packets is lost: goodput",
        "Mbit/s",
        "Of one flow.",
        _goodput("loss-0.01"),
        LEAST,
        0.0,
    ),
    (
        "6.4",
        "wireless.goodput",
        "a radio link of 20 or 4 Mbit/s: goodput",
        "Mbit/s",
        "Of one flow; the states last 4 and 2 s in the mean.",
        _goodput("radio"),
        LEAST,
        0.0,
    ),
    ("6.4", "wireless.delay", "a radio link of 20 or 4 Mbit/s: delay", "ms", "Mean.", _delay("radio"), MOST, 5.0),
    (
        "7.6",
        "reordering.goodput",
        "a hundredth of the packets is 5 ms late: goodput",
        "Mbit/s",
        "Of one flow.",
        _goodput("reordering"),
        LEAST,
        0.0,
    ),
    *(
        (
            "7.1",
            f"{case}.{what}",
            f"four flows behind {case.removeprefix('queue-')}: {what}",
            unit,
            "With ECN.",
            value(case),
            sense,
            slack,
        )
        for case in _QUEUES
        for what, unit, value, sense, slack in (
            ("goodput", "Mbit/s", _goodput, LEAST, 0.0),
            ("delay", "ms", _delay, MOST, 2.0),
        )
    ),
    (
        "7.1",
        "ecn.reaction",
        "four flows behind pie: delay with ECN over delay without",
        "",
        "A control that ignores marks has more delay with ECN.",
        _marked,
        MOST,
        0.25,
    ),
    (
        "7.1.1",
        "breaker.drops",
        "20 flows on 1 Mbit/s: drops",
        "%",
        "Circuit breakers look at the part that is lost.",
        _drops("breaker"),
        MOST,
        1.0,
    ),
    (
        "7.2",
        "swing.goodput",
        "the delay changes between 50 and 150 ms: goodput",
        "Mbit/s",
        "Round trip time of the path, every 10 s.",
        _goodput("swing"),
        LEAST,
        0.0,
    ),
    (
        "7.3",
        "thin.completion",
        "64 kbit/s, 500 ms: time of 20 kB",
        "s",
        "Of one transfer.",
        _of("thin", _completion),
        MOST,
        0.0,
    ),
    (
        "7.4",
        "far.completion",
        "20 Mbit/s, 600 ms: time of 10 MB",
        "s",
        "Of one transfer.",
        _of("far", _completion),
        MOST,
        0.0,
    ),
    (
        "7.5",
        "cheated.share",
        "a receiver that acknowledges 100 kB ahead: goodput of the others",
        "of 3/4",
        "Of three honest flows, over three quarters of the link.",
        _of("cheated", _honest_share),
        LEAST,
        0.0,
    ),
    (
        "7.7",
        "onset.drops",
        "UDP of 75 % of the link comes and goes: drops",
        "%",
        "From all packets.",
        _drops("onset"),
        MOST,
        0.5,
    ),
    (
        "7.7",
        "onset.recovers",
        "UDP of 75 % of the link goes: time until the goodput is back",
        "s",
        "Until a second has 80 % of the goodput before.",
        _recovers("onset", _FROM),
        MOST,
        2.0,
    ),
    (
        "7.7",
        "outage.recovers",
        "an outage of 5 s: time until the goodput is back",
        "s",
        "Until a second has 80 % of the goodput before.",
        _recovers("outage", BLACK_S + OUTAGE_S),
        MOST,
        2.0,
    ),
    (
        "7.7.1",
        "path.goodput",
        "to 5 Mbit/s and 124 ms, and back 20 s later: goodput after",
        "Mbit/s",
        "In the 20 s after the way back.",
        _of("other-path", lambda run: run.mean_rate(_FROM, _TO, "ours") / 1e6),
        LEAST,
        0.0,
    ),
    (
        "7.7.1",
        "path.delay",
        "to 5 Mbit/s and 124 ms: delay",
        "ms",
        "Mean of the 20 s on the slower path.",
        _of("other-path", lambda run: run.mean_delay(BLACK_S, _FROM)),
        MOST,
        5.0,
    ),
    (
        "7.9",
        "incast.completion",
        "32 transfers of 64 kB at once, 1 Gbit/s, 0.2 ms: the last",
        "s",
        "Time until all are complete.",
        _of("incast", _completion),
        MOST,
        0.01,
    ),
)


def criteria(_subject: Subject) -> list[Criterion]:
    """Returns the criteria, in the order of the sections."""
    return [_criterion(*row) for row in _ROWS]


def _criterion(
    section: str, name: str, title: str, unit: str, about: str, value: Value, sense: str, slack: float
) -> Criterion:
    margin = _BOUNDED.get(name, MARGIN)
    rule = f"At most {1 + margin:g} times the larger" if sense == MOST else f"At least {1 - margin:g} times the smaller"
    more = f", and {slack:g} {unit or 'more'}".rstrip() if slack else ""
    limit = _beside(value, sense, margin, slack)
    drawn = {"bufferbloat.delay": ("deep",), "wireless.goodput": ("radio",)}.get(name, ())
    if section == "7.1" and name.endswith(".delay"):
        drawn = (name.removesuffix(".delay"),)
    return Criterion(
        name, section, title, unit, f"{about} {rule} number of Reno and CUBIC{more}.", value, sense, limit, drawn
    )


UNJUDGED = (
    Unjudged("3", "statements in the abstract: consensus, environments that are not recommended", "texts for people"),
    Unjudged("5.3.1", "differences with congestion control principles", "an explanation by the authors"),
    Unjudged("5.3.2", "incremental deployment", "equipment of the Internet is not in the simulator"),
    Unjudged("6.2", "tunnel behaviour", "the simulator has no encapsulation"),
    Unjudged("6.3", "wired paths", "they are the paths of 6.1"),
    Unjudged("6.4", "jitter of media access and link-layer retransmission", "the simulator has no such link"),
    Unjudged("7.3", "power and CPU of IoT nodes", "the simulator measures neither"),
    Unjudged("7.5", "outside attackers", "only a receiver that misbehaves is simulated"),
    Unjudged("7.8", "multipath transport", "the simulator's TCP has one path"),
)

SUITE = Suite(
    "rfc9743",
    "RFC 9743: criteria for congestion controls",
    "RFC 9743 (BCP 133)",
    "control",
    BESIDE,
    cases,
    criteria,
    UNJUDGED,
    (3, 1),
    "RFC 9743 gives no limits and no pass. `no worse` and `worse` compare with Reno (RFC 5681) and CUBIC (RFC 9438) on "
    f"the same paths with the same seeds: worse is a number more than {MARGIN:.0%} beyond the worse of the two (10% "
    "for delays that a buffer bounds, 5% for opinion scores). A control that is worse in one number may be better in "
    "others: the numbers are the result. `bbr` is version 1, `bbr3` version 3.",
    ("no worse", "worse"),
    {"bbr": "bbr (version 1)", "bbr3": "bbr3 (version 3)"},
    hosts=True,
)
