"""The claims about the results of `fq-pie`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import COMPARABLE, FACTOR, FAR, INDEX, MOST, SAME_INDEX, SHARE, SLIGHT
from penstock.papers._shared import mixes
from penstock.papers._shared.flow_queueing import CALL, CONTROLS, UPLOADS
from penstock.papers._shared.flow_queueing_claims import (
    NAMES,
    RESOLUTION_MS,
    by_control,
    fair_beside_udp,
    fair_part,
    levels,
    median,
    no_loss,
    same_indices,
    same_throughput,
    shorter_round_trips,
    spike,
    table,
    uploads,
)
from penstock.reproduce.folder import numbers
from penstock.reproduce.results import Evidence, Outcome

DECLINE = 1 / FAR  # a sharp decline
DIP = 1 - SLIGHT  # a drop that one sees: a second below this part of what follows
AT_ONCE = 5  # at most so many seconds after UDP has begun
LOW_DELAY_MS, LOW_JITTER_MS = 1.0, 1.0  # "low" for a call
RISE_MS = 1.0  # more than a rounding error

PAPER = numbers(__name__)

CLAIMS: list[Claim] = []
pie = of(CLAIMS, "fq-pie", "004")


def _protects(run: Evidence, setting: str) -> Finding:
    """Flow queueing gives TCP its part while UDP is on; PIE does not."""
    parts = [fair_beside_udp(run, "fq-pie", setting)]
    with_pie = median(run, "pie", setting, fair_part)
    parts.append(Comparison(with_pie < 1 - SHARE, f"{setting}: {with_pie:.1%} with PIE"))
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


@pie("5.2.3", "Figure 5.4", "similar")
def same_throughput_without_udp(run: Evidence) -> Finding:
    """While UDP is off, TCP gets about the same with FQ-PIE as with PIE."""
    return same_throughput(run, "fq-pie", "pie", uploads(run), on=False)


@pie("5.2.3", "Figure 5.5", "lower")
def round_trips_of_one_flow_are_shorter(run: Evidence) -> Finding:
    """Round trips of one TCP flow are shorter with FQ-PIE than with PIE."""
    return shorter_round_trips(run, "fq-pie", "pie", "up-1")


@pie("5.2.3", "Figure 5.7", "as with one flow")
def round_trips_of_four_flows_are_shorter(run: Evidence) -> Finding:
    """Round trips of four TCP flows are shorter with FQ-PIE than with PIE."""
    return shorter_round_trips(run, "fq-pie", "pie", "up-4")


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
            parts.append(Comparison(during < DECLINE * before and after >= (1 - COMPARABLE) * before, text))
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
    parts = [Comparison(worst < DIP and later >= 1 - COMPARABLE, text) for worst, later, text in dips]
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Figure 5.8 (c)", "no drop")
def fq_codel_does_not_dip(run: Evidence) -> Finding:
    """With FQ-CoDel twelve TCP flows do not decline when UDP begins."""
    parts = [Comparison(worst >= DIP, text) for worst, _, text in _dips(run, "fq-codel", "up-12")]
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Figure 5.9", "more controlled than with PIE")
def round_trips_rise_less(run: Evidence) -> Finding:
    """Round trips of twelve TCP flows rise when UDP begins, and less with FQ-PIE than with PIE."""
    values = {aqm: median(run, aqm, "up-12", spike) for aqm in ("fq-pie", "pie")}
    texts = {aqm: f"{NAMES[aqm]}: p99 {value:.1f} ms above the median" for aqm, value in values.items()}
    parts = [Comparison(value > RISE_MS, texts[aqm]) for aqm, value in values.items()]
    parts.append(Comparison(values["fq-pie"] < values["pie"], "; ".join(texts.values())))
    return judge(parts[-1].text, parts)


@pie("5.2.3", "Figure 5.8 (a)", "uneven with PIE")
def pie_is_uneven_among_tcp(run: Evidence) -> Finding:
    """The twelve TCP flows share less evenly among themselves with PIE than with FQ-PIE."""
    a, b = (median(run, aqm, "up-12", mixes.tcp_jain) for aqm in ("pie", "fq-pie"))
    text = f"Jain's index of TCP alone: PIE {a:.3f}, FQ-PIE {b:.3f}"
    return judge(text, [Comparison(a < b - SAME_INDEX, text)])


def _indices(aqm: str) -> dict[str, float]:
    """Table 5.1, by the tests with UDP."""
    return {f"up-{count}": index for count, index in zip(UPLOADS, PAPER["jain"][aqm], strict=True)}


@pie("5.2.3", "Table 5.1", "0.94, 0.96, 0.74, 0.62")
def indices_with_pie(run: Evidence) -> Finding:
    """Jain's index of 1, 4, 8 and 12 TCP flows and UDP with PIE."""
    return table(run, "pie", _indices("pie"))


@pie("5.2.3", "Table 5.1", "0.98, 0.99, 0.99, 0.96")
def indices_with_fq_pie(run: Evidence) -> Finding:
    """Jain's index of 1, 4, 8 and 12 TCP flows and UDP with FQ-PIE."""
    return table(run, "fq-pie", _indices("fq-pie"))


@pie("5.2.3", "Table 5.1", "0.96, 0.99, 0.99, 0.97")
def indices_with_fq_codel(run: Evidence) -> Finding:
    """Jain's index of 1, 4, 8 and 12 TCP flows and UDP with FQ-CoDel."""
    return table(run, "fq-codel", _indices("fq-codel"))


@pie("5.2.3", "Table 5.1", "PIE last, in every test")
def pie_is_least_fair(run: Evidence) -> Finding:
    """PIE has the lowest index in every test with UDP."""
    parts: list[Comparison] = []
    for setting in uploads(run):
        values = {aqm: median(run, aqm, setting, mixes.jain_on) for aqm in run.aqms}
        text = f"{setting}: " + ", ".join(f"{NAMES[aqm]} {value:.2f}" for aqm, value in values.items())
        parts.append(Comparison(min(values, key=values.__getitem__) == "pie", text))
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Table 5.1", "within 0.02")
def fq_codel_is_as_fair(run: Evidence) -> Finding:
    """FQ-CoDel is as fair as FQ-PIE in the tests with UDP."""
    return same_indices(run, "fq-codel", "fq-pie", uploads(run))


@pie("5.2.3", "Figures 5.10 (b) and 5.11 (b)", "alike")
def fq_pie_levels_controls(run: Evidence) -> Finding:
    """FQ-PIE gives CUBIC and BBR flows fair shares and similar round trips."""
    return levels(run, "fq-pie")


def _rates(run: Evidence, aqm: str) -> tuple[float, float]:
    """Throughput of a CUBIC and of a BBR flow."""

    def rate(cc: str) -> float:
        return median(run, aqm, CONTROLS, lambda outcome: by_control(outcome)[cc][0])

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
    for aqm, paper in PAPER["controls"].items():
        ours = median(run, aqm, CONTROLS, mixes.jain_on)
        text = f"{NAMES[aqm]} {ours:.2f}, the paper {paper:.2f}"
        parts.append(Comparison(abs(ours - paper) <= INDEX, text))
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Figure 5.10 (c)", "more")
def bbr_gets_more_with_fq_codel(run: Evidence) -> Finding:
    """With FQ-CoDel the BBR flows get more than the CUBIC flows, which is not so with FQ-PIE."""
    parts: list[Comparison] = []
    for aqm, more in (("fq-codel", True), ("fq-pie", False)):
        cubic, bbr = _rates(run, aqm)
        text = f"{NAMES[aqm]}: BBR {bbr:.1f}, CUBIC {cubic:.1f} Mbit/s"
        parts.append(Comparison((bbr > (1 + SHARE) * cubic) == more, text))
    return judge("; ".join(part.text for part in parts), parts)


@pie("5.2.3", "Figure 5.11 (c)", "more")
def bbr_waits_longer_with_fq_codel(run: Evidence) -> Finding:
    """With FQ-CoDel the BBR flows have longer round trips than the CUBIC flows."""

    def rtt(cc: str) -> float:
        return median(run, "fq-codel", CONTROLS, lambda outcome: by_control(outcome)[cc][1])

    text = f"medians of BBR {rtt('bbr'):.1f}, of CUBIC {rtt('cubic'):.1f} ms"
    return judge(text, [Comparison(rtt("bbr") > rtt("cubic") + RESOLUTION_MS, text)])


# A call.


def _call_is_low(
    run: Evidence, aqms: Sequence[str], measure: Callable[[Outcome], float | None], most: float
) -> Finding:
    parts: list[Comparison] = []
    for aqm in aqms:
        value = median(run, aqm, CALL, measure)
        parts.append(Comparison(value <= most, f"{NAMES[aqm]} {value:.2f} ms"))
        with_pie = median(run, "pie", CALL, measure)
        text = f"PIE {with_pie:.2f} ms, {NAMES[aqm]} {value:.2f} ms"
        parts.append(Comparison(with_pie >= FAR * value, text))
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
    return no_loss(run, ("fq-pie", "fq-codel"))


@pie("5.2.3", "Table 5.2", "0.62 %")
def calls_lose_packets_with_pie(run: Evidence) -> Finding:
    """A call loses packets with PIE."""
    value = median(run, "pie", CALL, mixes.call_loss)
    text = f"{value:.2%}, the paper 0.62 %"
    return judge(text, [Comparison(0.0062 / FACTOR <= value <= 0.0062 * FACTOR, text)])
