"""Claims on FQ-PIE and FQ-Minstrel PIE: document 004, chapter 5.

The document shows curves over time and few numbers. What an eye would read from them is a constant below. Its tables of
Jain's index are read as those of the time in which UDP is on, since Tables 5.3 and 5.4 can be nothing else.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.reproduce import mixes
from penstock.reproduce.flow_queueing import CALL, CONTROLS, MIXES, UPLOADS
from penstock.reproduce.results import Evidence, Outcome

ALIKE = 0.10  # similar throughputs
FAIR = 0.10  # a fair share
JAIN_ALIKE = 0.05  # of indices from two testbeds
JAIN_SAME = 0.02  # of indices from one
DECLINE = 0.5  # a sharp decline: to less than half
DIP = 0.9  # a momentary drop: a second below nine tenths of what follows
AT_ONCE = 5  # seconds after UDP has begun
LOW_DELAY_MS, LOW_JITTER_MS = 1.0, 1.0  # "low": of a call
HIGHER = 3.0  # "significantly higher": three times
MOST = 0.75  # most of a link
RISE_MS = 1.0  # more than a rounding error
RESOLUTION_MS = 2.2  # of percentiles of round trips; their means are exact
TABLE_LOSS = 2.0  # losses agree within a factor of two

CLAIMS: list[Claim] = []
pie = of(CLAIMS, "fq-pie", "004")
minstrel = of(CLAIMS, "fq-minstrel-pie", "004")

NAMES = {"pie": "PIE", "fq-pie": "FQ-PIE", "fq-codel": "FQ-CoDel", "fq-minstrel-pie": "FQ-Minstrel PIE"}


def _value(run: Evidence, aqm: str, setting: str, measure: Callable[[Outcome], float | None]) -> float:
    """The median over seeds."""
    return statistics.median(measure(outcome) or 0.0 for outcome in run.runs(aqm, setting=setting))


def _rtt(percentile: str) -> Callable[[Outcome], float]:
    return lambda outcome: float(outcome.summary["rtt_ms"][percentile])


def _spike(outcome: Outcome) -> float:
    return _rtt("p99")(outcome) - _rtt("p50")(outcome)


def _delay(measure: str) -> Callable[[Outcome], float | None]:
    return lambda outcome: mixes.call_delay_ms(outcome, measure)


def _has(run: Evidence, setting: str) -> bool:
    return setting in run.settings


def _uploads(run: Evidence) -> list[str]:
    return [f"up-{n}" for n in UPLOADS if _has(run, f"up-{n}")]


# TCP beside UDP.


def _fair_part(outcome: Outcome) -> float:
    """What TCP gets of its fair part of all payload while UDP is on."""
    tcp, udp = mixes.tcp_on_mbps(outcome) or 0.0, mixes.udp_on_mbps(outcome) or 0.0
    flows = len(mixes.of_kind(outcome, "bulk"))
    return tcp / ((tcp + udp) * flows / (flows + 1))


def _fair_beside_udp(run: Evidence, aqm: str, setting: str) -> Comparison:
    part = _value(run, aqm, setting, _fair_part)
    return Comparison(part >= 1 - FAIR, f"{setting}: TCP gets {part:.1%} of its fair part with {NAMES[aqm]}")


def _protects(run: Evidence, setting: str) -> Finding:
    """Flow queueing gives TCP its part while UDP is on; PIE does not."""
    parts = [_fair_beside_udp(run, "fq-pie", setting)]
    with_pie = _value(run, "pie", setting, _fair_part)
    parts.append(Comparison(with_pie < 1 - FAIR, f"{setting}: {with_pie:.1%} with PIE"))
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Figure 5.4", "fair with FQ-PIE only")
def one_flow_has_its_share(run: Evidence) -> Finding:
    """One TCP flow has its fair share beside UDP with FQ-PIE, and not with PIE."""
    return _protects(run, "up-1")


@pie("5.2.3", "Figure 5.6", "as with one flow")
def four_flows_have_their_share(run: Evidence) -> Finding:
    """Four TCP flows have their fair share beside UDP with FQ-PIE, and not with PIE."""
    return _protects(run, "up-4")


@pie("5.2.3", "Figure 5.8", "fair with FQ-PIE only")
def twelve_flows_have_their_share(run: Evidence) -> Finding:
    """Twelve TCP flows have their fair share beside UDP with FQ-PIE, and not with PIE."""
    return _protects(run, "up-12")


def _same_throughput(run: Evidence, one: str, other: str, settings: Sequence[str], on: bool) -> Finding:
    parts: list[Comparison] = []
    measures = [mixes.tcp_off_mbps, *([mixes.tcp_on_mbps] if on else [])]
    for setting in settings:
        for measure in measures:
            a, b = (_value(run, aqm, setting, measure) for aqm in (one, other))
            when = "off" if measure is mixes.tcp_off_mbps else "on"
            text = f"{setting}, UDP {when}: {NAMES[one]} {a:.2f}, {NAMES[other]} {b:.2f} Mbit/s"
            parts.append(Comparison(abs(a - b) <= ALIKE * b, text))
    return judge("; ".join(part.text for part in parts[:4]), parts)


@pie("5.2.3", "Figure 5.4", "similar")
def same_throughput_without_udp(run: Evidence) -> Finding:
    """While UDP is off, TCP gets about the same with FQ-PIE as with PIE."""
    return _same_throughput(run, "fq-pie", "pie", _uploads(run), on=False)


def _shorter_round_trips(run: Evidence, one: str, other: str, setting: str) -> Finding:
    """The mean is shorter, and no percentile is longer by more than its resolution."""
    parts: list[Comparison] = []
    for measure, within in (("mean", 0.0), ("p50", RESOLUTION_MS), ("p90", RESOLUTION_MS), ("p99", RESOLUTION_MS)):
        a, b = (_value(run, aqm, setting, _rtt(measure)) for aqm in (one, other))
        text = f"{setting}, {measure}: {NAMES[one]} {a:.1f}, {NAMES[other]} {b:.1f} ms"
        parts.append(Comparison(a < b + within, text))
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Figure 5.5", "lower")
def round_trips_of_one_flow_are_shorter(run: Evidence) -> Finding:
    """Round trips of one TCP flow are shorter with FQ-PIE than with PIE."""
    return _shorter_round_trips(run, "fq-pie", "pie", "up-1")


@pie("5.2.3", "Figure 5.7", "as with one flow")
def round_trips_of_four_flows_are_shorter(run: Evidence) -> Finding:
    """Round trips of four TCP flows are shorter with FQ-PIE than with PIE."""
    return _shorter_round_trips(run, "fq-pie", "pie", "up-4")


def _before_and_during(outcome: Outcome, phase: range) -> tuple[float, float]:
    """TCP in the ten seconds before UDP begins and in the first ten with it."""
    spans = (range(phase.start - 10, phase.start), range(phase.start, phase.start + 10))
    before, during = (statistics.fmean(mixes.tcp_seconds_mbps(outcome, span)) for span in spans)
    return before, during


@pie("5.2.3", "Figure 5.8 (a)", "a sharp decline")
def pie_lets_tcp_collapse(run: Evidence) -> Finding:
    """With PIE the throughput of twelve TCP flows falls sharply each time UDP begins, and is restored when it ends."""
    parts: list[Comparison] = []
    for outcome in run.runs("pie", setting="up-12"):
        for phase in mixes.phases(outcome):
            before, during = _before_and_during(outcome, phase)
            after = max(mixes.tcp_seconds_mbps(outcome, range(phase.stop, phase.stop + mixes.RECOVERY_S)))
            text = f"from {phase.start} s: {before:.1f} to {during:.1f} Mbit/s, afterwards {after:.1f}"
            parts.append(Comparison(during < DECLINE * before and after >= (1 - ALIKE) * before, text))
    return judge("; ".join(part.text for part in parts), parts)


def _dips(run: Evidence, aqm: str, setting: str) -> list[tuple[float, float, str]]:
    """For each time that UDP begins: the worst second at once, and the worst ten seconds later; parts of the median."""
    found = []
    for outcome in run.runs(aqm, setting=setting):
        for phase in mixes.phases(outcome):
            seconds = mixes.tcp_seconds_mbps(outcome, phase)
            level = statistics.median(seconds)
            late = [statistics.fmean(seconds[k : k + 10]) for k in range(AT_ONCE, len(seconds) - 9)]
            worst, later = min(seconds[:AT_ONCE]) / level, min(late) / level
            text = f"{NAMES[aqm]}, from {phase.start} s: {worst:.0%} of {level:.1f} Mbit/s at once, then {later:.0%}"
            found.append((worst, later, text))
    return found


@pie("5.2.3", "Figure 5.8 (b)", "a momentary decline")
def fq_pie_dips_and_recovers(run: Evidence) -> Finding:
    """With FQ-PIE twelve TCP flows decline for a moment each time UDP begins, and then are stable."""
    dips = _dips(run, "fq-pie", "up-12")
    parts = [Comparison(worst < DIP and later >= 1 - ALIKE, text) for worst, later, text in dips]
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Figure 5.8 (c)", "no drop")
def fq_codel_does_not_dip(run: Evidence) -> Finding:
    """With FQ-CoDel twelve TCP flows do not decline when UDP begins."""
    parts = [Comparison(worst >= DIP, text) for worst, _, text in _dips(run, "fq-codel", "up-12")]
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Figure 5.9", "more controlled than with PIE")
def round_trips_rise_less(run: Evidence) -> Finding:
    """Round trips of twelve TCP flows rise when UDP begins, and less with FQ-PIE than with PIE."""
    values = {aqm: _value(run, aqm, "up-12", _spike) for aqm in ("fq-pie", "pie")}
    texts = {aqm: f"{NAMES[aqm]}: p99 {value:.1f} ms above the median" for aqm, value in values.items()}
    parts = [Comparison(value > RISE_MS, texts[aqm]) for aqm, value in values.items()]
    parts.append(Comparison(values["fq-pie"] < values["pie"], "; ".join(texts.values())))
    return judge(parts[-1].text, parts)


@pie("5.2.3", "Figure 5.8 (a)", "uneven with PIE")
def pie_is_uneven_among_tcp(run: Evidence) -> Finding:
    """The twelve TCP flows share less evenly among themselves with PIE than with FQ-PIE."""
    a, b = (_value(run, aqm, "up-12", mixes.tcp_jain) for aqm in ("pie", "fq-pie"))
    text = f"Jain's index of TCP alone: PIE {a:.3f}, FQ-PIE {b:.3f}"
    return judge(text, [Comparison(a < b - JAIN_SAME, text)])


def _table(run: Evidence, aqm: str, numbers: dict[str, float]) -> Finding:
    parts: list[Comparison] = []
    for setting, paper in numbers.items():
        if _has(run, setting):
            ours = _value(run, aqm, setting, mixes.jain_on)
            parts.append(Comparison(abs(ours - paper) <= JAIN_ALIKE, f"{setting}: {ours:.2f}, the paper {paper:.2f}"))
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Table 5.1", "0.94, 0.96, 0.74, 0.62")
def indices_with_pie(run: Evidence) -> Finding:
    """Jain's index of 1, 4, 8 and 12 TCP flows and UDP with PIE."""
    return _table(run, "pie", {"up-1": 0.94, "up-4": 0.96, "up-8": 0.74, "up-12": 0.62})


@pie("5.2.3", "Table 5.1", "0.98, 0.99, 0.99, 0.96")
def indices_with_fq_pie(run: Evidence) -> Finding:
    """Jain's index of 1, 4, 8 and 12 TCP flows and UDP with FQ-PIE."""
    return _table(run, "fq-pie", {"up-1": 0.98, "up-4": 0.99, "up-8": 0.99, "up-12": 0.96})


@pie("5.2.3", "Table 5.1", "0.96, 0.99, 0.99, 0.97")
def indices_with_fq_codel(run: Evidence) -> Finding:
    """Jain's index of 1, 4, 8 and 12 TCP flows and UDP with FQ-CoDel."""
    return _table(run, "fq-codel", {"up-1": 0.96, "up-4": 0.99, "up-8": 0.99, "up-12": 0.97})


@pie("5.2.3", "Table 5.1", "PIE last, in every test")
def pie_is_least_fair(run: Evidence) -> Finding:
    """PIE has the lowest index in every test with UDP."""
    parts: list[Comparison] = []
    for setting in _uploads(run):
        values = {aqm: _value(run, aqm, setting, mixes.jain_on) for aqm in run.aqms}
        text = f"{setting}: " + ", ".join(f"{NAMES[aqm]} {value:.2f}" for aqm, value in values.items())
        parts.append(Comparison(min(values, key=values.__getitem__) == "pie", text))
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Table 5.1", "within 0.02")
def fq_codel_is_as_fair(run: Evidence) -> Finding:
    """FQ-CoDel is as fair as FQ-PIE in the tests with UDP."""
    return _same_indices(run, "fq-codel", "fq-pie", _uploads(run))


def _same_indices(run: Evidence, one: str, other: str, settings: Sequence[str]) -> Finding:
    parts: list[Comparison] = []
    for setting in settings:
        a, b = (_value(run, aqm, setting, mixes.jain_on) for aqm in (one, other))
        text = f"{setting}: {NAMES[one]} {a:.3f}, {NAMES[other]} {b:.3f}"
        parts.append(Comparison(abs(a - b) <= JAIN_SAME, text))
    return judge("; ".join(part.text for part in parts), parts)


# Two congestion controls.


def _by_control(outcome: Outcome) -> dict[str, tuple[float, float]]:
    """Mean throughput and median round trip of the flows of each."""
    found: dict[str, list[tuple[float, float]]] = {}
    seconds = range(mixes.BEGIN_S, mixes.series(outcome).seconds)
    for i, flow in enumerate(outcome.summary["flows"]):
        found.setdefault(flow["cc"], []).append((mixes.mean_mbps(outcome, i, seconds), flow["rtt_ms"]["p50"]))
    return {cc: (statistics.fmean(r for r, _ in v), statistics.fmean(t for _, t in v)) for cc, v in found.items()}


def _levels(run: Evidence, aqm: str) -> Finding:
    parts: list[Comparison] = []
    for outcome in run.runs(aqm, setting=CONTROLS):
        (rate, rtt), (other_rate, other_rtt) = (_by_control(outcome)[cc] for cc in ("cubic", "bbr"))
        text = f"CUBIC {rate:.1f}, BBR {other_rate:.1f} Mbit/s for each flow"
        parts.append(Comparison(abs(rate - other_rate) <= FAIR * (rate + other_rate) / 2, text))
        text = f"round trips of {rtt:.1f} and {other_rtt:.1f} ms"
        parts.append(Comparison(abs(rtt - other_rtt) <= ALIKE * rtt, text))
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Figures 5.10 (b) and 5.11 (b)", "alike")
def fq_pie_levels_controls(run: Evidence) -> Finding:
    """FQ-PIE gives CUBIC and BBR flows fair shares and similar round trips."""
    return _levels(run, "fq-pie")


def _rates(run: Evidence, aqm: str) -> tuple[float, float]:
    """Throughput of a CUBIC and of a BBR flow."""

    def rate(cc: str) -> float:
        return _value(run, aqm, CONTROLS, lambda outcome: _by_control(outcome)[cc][0])

    return rate("cubic"), rate("bbr")


@pie("5.2.3", "Figure 5.10 (a)", "most")
def bbr_wins_with_pie(run: Evidence) -> Finding:
    """With PIE the BBR flows take most of the link from the CUBIC flows."""
    cubic, bbr = _rates(run, "pie")
    share = bbr / (cubic + bbr)
    text, rates = f"BBR gets {share:.0%}", f"BBR {bbr:.1f}, CUBIC {cubic:.1f} Mbit/s for each flow"
    return judge(rates, [Comparison(share > MOST, text), Comparison(bbr > cubic, rates)])


@pie("5.2.3", "Table 5.1", "0.56, 0.99, 0.93")
def indices_of_two_controls(run: Evidence) -> Finding:
    """Jain's index of two CUBIC and two BBR flows with PIE, FQ-PIE and FQ-CoDel."""
    parts: list[Comparison] = []
    for aqm, paper in (("pie", 0.56), ("fq-pie", 0.99), ("fq-codel", 0.93)):
        ours = _value(run, aqm, CONTROLS, mixes.jain_on)
        text = f"{NAMES[aqm]} {ours:.2f}, the paper {paper:.2f}"
        parts.append(Comparison(abs(ours - paper) <= JAIN_ALIKE, text))
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Figure 5.10 (c)", "more")
def bbr_gets_more_with_fq_codel(run: Evidence) -> Finding:
    """With FQ-CoDel the BBR flows get more than the CUBIC flows, which is not so with FQ-PIE."""
    parts: list[Comparison] = []
    for aqm, more in (("fq-codel", True), ("fq-pie", False)):
        cubic, bbr = _rates(run, aqm)
        text = f"{NAMES[aqm]}: BBR {bbr:.1f}, CUBIC {cubic:.1f} Mbit/s"
        parts.append(Comparison((bbr > (1 + FAIR) * cubic) == more, text))
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Figure 5.11 (c)", "more")
def bbr_waits_longer_with_fq_codel(run: Evidence) -> Finding:
    """With FQ-CoDel the BBR flows have longer round trips than the CUBIC flows."""

    def rtt(cc: str) -> float:
        return _value(run, "fq-codel", CONTROLS, lambda outcome: _by_control(outcome)[cc][1])

    text = f"medians of BBR {rtt('bbr'):.1f}, of CUBIC {rtt('cubic'):.1f} ms"
    return judge(text, [Comparison(rtt("bbr") > rtt("cubic") + RESOLUTION_MS, text)])


# A call.


def _call_is_low(
    run: Evidence, aqms: Sequence[str], measure: Callable[[Outcome], float | None], most: float
) -> Finding:
    parts: list[Comparison] = []
    for aqm in aqms:
        value = _value(run, aqm, CALL, measure)
        parts.append(Comparison(value <= most, f"{NAMES[aqm]} {value:.2f} ms"))
        with_pie = _value(run, "pie", CALL, measure)
        text = f"PIE {with_pie:.2f} ms, {NAMES[aqm]} {value:.2f} ms"
        parts.append(Comparison(with_pie >= HIGHER * value, text))
    return judge("; ".join(part.text for part in parts[1::2]), parts)


@pie("5.2.3", "Figure 5.12", "much higher with PIE")
def calls_hardly_wait(run: Evidence) -> Finding:
    """A call waits little with FQ-PIE and FQ-CoDel, and much longer with PIE (p90)."""
    return _call_is_low(run, ("fq-pie", "fq-codel"), mixes.call_delay_ms, LOW_DELAY_MS)


@pie("5.2.3", "Figure 5.13", "much higher with PIE")
def calls_have_little_jitter(run: Evidence) -> Finding:
    """A call's jitter is low with FQ-PIE and FQ-CoDel, and much higher with PIE."""
    return _call_is_low(run, ("fq-pie", "fq-codel"), mixes.call_jitter_ms, LOW_JITTER_MS)


@pie("5.2.3", "Table 5.2", "0.00 %")
def calls_lose_nothing(run: Evidence) -> Finding:
    """A call loses nothing with FQ-PIE and FQ-CoDel."""
    return _no_loss(run, ("fq-pie", "fq-codel"))


def _no_loss(run: Evidence, aqms: Sequence[str]) -> Finding:
    parts: list[Comparison] = []
    for aqm in aqms:
        value = _value(run, aqm, CALL, mixes.call_loss)
        parts.append(Comparison(value < 0.00005, f"{NAMES[aqm]} {value:.2%}"))
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Table 5.2", "0.62 %")
def calls_lose_packets_with_pie(run: Evidence) -> Finding:
    """A call loses packets with PIE."""
    value = _value(run, "pie", CALL, mixes.call_loss)
    text = f"{value:.2%}, the paper 0.62 %"
    return judge(text, [Comparison(0.0062 / TABLE_LOSS <= value <= 0.0062 * TABLE_LOSS, text)])


# FQ-Minstrel PIE on the link of 10 Mbit/s.

OURS, THEIRS = "fq-minstrel-pie", "fq-pie"


def _less_delay(run: Evidence, setting: str) -> Finding:
    a, b = (_value(run, aqm, setting, mixes.queue_delay_ms) for aqm in (OURS, THEIRS))
    text = f"{setting}: mean of all packets {a:.1f} ms, FQ-PIE {b:.1f} ms"
    return judge(text, [Comparison(a < b, text)])


@minstrel("5.3.1", "Figure 5.14 (a)", "less while UDP is on")
def delay_is_less_with_one_flow(run: Evidence) -> Finding:
    """With one TCP flow and UDP packets wait less with FQ-Minstrel PIE than with FQ-PIE."""
    return _less_delay(run, "mix-1")


@minstrel("5.3.1", "Figure 5.15 (a)", "less while UDP is on")
def delay_is_less_with_five_flows(run: Evidence) -> Finding:
    """With five TCP flows and UDP packets wait less with FQ-Minstrel PIE than with FQ-PIE."""
    return _less_delay(run, "mix-5")


def _both_fair(run: Evidence, setting: str) -> Finding:
    parts: list[Comparison] = []
    for aqm in (THEIRS, OURS):
        index = _value(run, aqm, setting, mixes.jain_on)
        tcp, udp = (_value(run, aqm, setting, measure) for measure in (mixes.tcp_on_mbps, mixes.udp_on_mbps))
        parts.append(_fair_beside_udp(run, aqm, setting))
        text = f"{NAMES[aqm]}: TCP {tcp:.2f}, UDP {udp:.2f} Mbit/s, index {index:.2f}"
        parts.append(Comparison(abs(index - 0.99) <= JAIN_ALIKE, text))
    return judge("; ".join(part.text for part in parts[1::2]), parts)


@minstrel("5.3.1", "Figure 5.14 (b), Table 5.3", "TCP 4.70, UDP 4.80; TCP 4.61, UDP 4.90; 0.99")
def one_flow_has_its_share_at_10(run: Evidence) -> Finding:
    """One TCP flow has its fair share beside UDP with FQ-PIE and with FQ-Minstrel PIE."""
    return _both_fair(run, "mix-1")


@minstrel("5.3.1", "Figure 5.15 (b), Table 5.4", "TCP 1.58 to 1.60, UDP 1.62 and 1.64; 0.99")
def five_flows_have_their_share_at_10(run: Evidence) -> Finding:
    """Five TCP flows have their fair share beside UDP with FQ-PIE and with FQ-Minstrel PIE."""
    return _both_fair(run, "mix-5")


@minstrel("5.3.1", "Figure 5.15 (b)", "around 8 Mbit/s")
def five_flows_get_eight(run: Evidence) -> Finding:
    """Five TCP flows get around 8 Mbit/s together while UDP is on."""
    parts: list[Comparison] = []
    for aqm in (THEIRS, OURS):
        value = _value(run, aqm, "mix-5", mixes.tcp_on_mbps)
        parts.append(Comparison(abs(value - 8) <= ALIKE * 8, f"{NAMES[aqm]} {value:.2f} Mbit/s"))
    return judge("; ".join(part.text for part in parts), parts)


# On the link of 100 Mbit/s.


@minstrel("5.3.2", "Figure 5.16", "similar")
def same_throughput_of_one_flow(run: Evidence) -> Finding:
    """One TCP flow gets about the same with FQ-Minstrel PIE as with FQ-PIE."""
    return _same_throughput(run, OURS, THEIRS, ["up-1"], on=True)


@minstrel("5.3.2", "Figure 5.17", "lower")
def round_trips_of_one_flow_are_shorter_still(run: Evidence) -> Finding:
    """Round trips of one TCP flow are shorter with FQ-Minstrel PIE than with FQ-PIE."""
    return _shorter_round_trips(run, OURS, THEIRS, "up-1")


@minstrel("5.3.2", "Figure 5.18", "similar")
def same_throughput_of_four_flows(run: Evidence) -> Finding:
    """Four TCP flows get about the same with FQ-Minstrel PIE as with FQ-PIE."""
    return _same_throughput(run, OURS, THEIRS, ["up-4"], on=True)


@minstrel("5.3.2", "Figure 5.19", "slightly better")
def round_trips_of_four_flows_rise_less(run: Evidence) -> Finding:
    """Round trips of four TCP flows rise less with FQ-Minstrel PIE than with FQ-PIE."""
    a, b = (_value(run, aqm, "up-4", _spike) for aqm in (OURS, THEIRS))
    text = f"p99 {a:.1f} ms above the median, FQ-PIE {b:.1f} ms"
    return judge(text, [Comparison(a < b, text)])


def _unsteady(outcome: Outcome) -> float:
    """Deviation of the seconds of all TCP flows together while UDP is on, as a part of their mean."""
    seconds = mixes.tcp_seconds_mbps(outcome, mixes.on_seconds(outcome))
    return statistics.pstdev(seconds) / statistics.fmean(seconds)


@minstrel("5.3.2", "Figure 5.20", "more consistent")
def throughput_of_twelve_flows_is_steadier(run: Evidence) -> Finding:
    """The throughput of twelve TCP flows beside UDP varies less with FQ-Minstrel PIE than with FQ-PIE."""
    a, b = (_value(run, aqm, "up-12", _unsteady) for aqm in (OURS, THEIRS))
    text = f"deviation of {a:.2%} of the mean, FQ-PIE {b:.2%}"
    return judge(text, [Comparison(a < b, text)])


@minstrel("5.3.2", "Figure 5.21", "better control")
def round_trips_of_twelve_flows_are_shorter(run: Evidence) -> Finding:
    """Round trips of twelve TCP flows are shorter with FQ-Minstrel PIE than with FQ-PIE."""
    return _shorter_round_trips(run, OURS, THEIRS, "up-12")


@minstrel("5.3.2", "Table 5.5", "within 0.01")
def fairness_is_not_affected(run: Evidence) -> Finding:
    """FQ-Minstrel PIE is as fair as FQ-PIE in the tests with UDP."""
    return _same_indices(run, OURS, THEIRS, _uploads(run))


@minstrel("5.3.2", "Table 5.5", "0.97, 0.99, 0.99, 0.96")
def indices_with_fq_minstrel_pie(run: Evidence) -> Finding:
    """Jain's index of 1, 4, 8 and 12 TCP flows and UDP with FQ-Minstrel PIE."""
    return _table(run, OURS, {"up-1": 0.97, "up-4": 0.99, "up-8": 0.99, "up-12": 0.96})


@minstrel("5.3.2", "Figures 5.22 and 5.23, Table 5.5", "0.99")
def fq_minstrel_pie_levels_controls(run: Evidence) -> Finding:
    """FQ-Minstrel PIE gives CUBIC and BBR flows fair shares and similar round trips."""
    return _levels(run, OURS)


def _swing(cc: str) -> Callable[[Outcome], float]:
    """Coefficient of variation of the seconds of a flow, the mean over the flows of a control."""

    def of_outcome(outcome: Outcome) -> float:
        seconds = range(mixes.BEGIN_S, mixes.series(outcome).seconds)
        found = []
        for i, flow in enumerate(outcome.summary["flows"]):
            if flow["cc"] == cc:
                rates = [mixes.series(outcome).flows[i][k] for k in seconds]
                found.append(statistics.pstdev(rates) / statistics.fmean(rates))
        return statistics.fmean(found)

    return of_outcome


@minstrel("5.3.2", "Figure 5.22", "CUBIC less than BBR")
def bbr_swings_more(run: Evidence) -> Finding:
    """The throughput of CUBIC flows varies less than that of BBR flows."""
    cubic, bbr = (_value(run, OURS, CONTROLS, _swing(cc)) for cc in ("cubic", "bbr"))
    text = f"seconds deviate by {cubic:.1%} of their mean with CUBIC, by {bbr:.1%} with BBR"
    return judge(text, [Comparison(cubic < bbr, text)])


@minstrel("5.3.2", "Figure 5.24", "fewer spikes")
def calls_wait_less(run: Evidence) -> Finding:
    """A call's queueing delay rises less often with FQ-Minstrel PIE than with FQ-PIE (mean and maximum)."""
    parts: list[Comparison] = []
    for measure in ("mean", "max"):  # percentiles of 42 ms are not fine enough
        a, b = (_value(run, aqm, CALL, _delay(measure)) for aqm in (OURS, THEIRS))
        parts.append(Comparison(a < b, f"{measure} {a:.3f} ms, FQ-PIE {b:.3f} ms"))
    # The target has no part in it: a call has a queue of its own, and that is empty when its next packet comes.
    return judge("; ".join([*(part.text for part in parts), "sending a full packet takes 0.12 ms"]), parts)


@minstrel("5.3.2", "Figure 5.25", "the same")
def calls_have_the_same_jitter(run: Evidence) -> Finding:
    """A call's jitter is the same with FQ-Minstrel PIE as with FQ-PIE."""
    a, b = (_value(run, aqm, CALL, mixes.call_jitter_ms) for aqm in (OURS, THEIRS))
    text = f"{a:.3f} ms, FQ-PIE {b:.3f} ms"
    return judge(text, [Comparison(abs(a - b) <= ALIKE * b, text)])


@minstrel("5.3.2", "Table 5.6", "0.00 %")
def calls_still_lose_nothing(run: Evidence) -> Finding:
    """A call loses nothing with FQ-PIE and with FQ-Minstrel PIE."""
    return _no_loss(run, (THEIRS, OURS))


@minstrel("5.4", "in the text", "in all the tests")
def trade_off_is_better(run: Evidence) -> Finding:
    """FQ-Minstrel PIE has a better trade-off than FQ-PIE in all tests: no less TCP throughput, and less delay."""
    parts: list[Comparison] = []
    for setting in (*(f"mix-{n}" for n in MIXES), *_uploads(run), CALL):
        if _has(run, setting):
            rate, other_rate = (_value(run, aqm, setting, _tcp_mbps) for aqm in (OURS, THEIRS))
            rtt, other_rtt = (_value(run, aqm, setting, _rtt("mean")) for aqm in (OURS, THEIRS))
            text = f"{setting}: {rate:.2f} Mbit/s and {rtt:.1f} ms, FQ-PIE {other_rate:.2f} and {other_rtt:.1f}"
            parts.append(Comparison(rate >= 0.99 * other_rate and rtt < other_rtt, text))
    return judge(f"better in {sum(part.holds for part in parts)} of {len(parts)} tests", parts)


def _tcp_mbps(outcome: Outcome) -> float:
    return statistics.fmean(mixes.tcp_seconds_mbps(outcome, range(mixes.BEGIN_S, mixes.series(outcome).seconds)))
