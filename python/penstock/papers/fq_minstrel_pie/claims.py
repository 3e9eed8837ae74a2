"""The claims about the results of `fq-minstrel-pie`."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import ABOUT, COMPARABLE, INDEX
from penstock.papers._shared import mixes
from penstock.papers._shared.flow_queueing import CALL, CONTROLS
from penstock.papers._shared.flow_queueing_claims import (
    NAMES,
    control_of,
    fair_beside_udp,
    has,
    levels,
    median,
    no_loss,
    rtt_of,
    same_indices,
    same_throughput,
    shorter_round_trips,
    spike,
    table,
    uploads,
)
from penstock.papers.fq_minstrel_pie.runs import MIXES
from penstock.reproduce.results import Evidence, Outcome
from penstock.reproduce.seconds import series_of

CLAIMS: list[Claim] = []
minstrel = of(CLAIMS, "fq-minstrel-pie", "004")


def _delay(measure: str) -> Callable[[Outcome], float | None]:
    return lambda outcome: mixes.call_delay_ms(outcome, measure)


# FQ-Minstrel PIE on the link of 10 Mbit/s.

OURS, THEIRS = "fq-minstrel-pie", "fq-pie"


def _less_delay(run: Evidence, setting: str) -> Finding:
    a, b = (median(run, aqm, setting, mixes.queue_delay_ms) for aqm in (OURS, THEIRS))
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
        index = median(run, aqm, setting, mixes.jain_on)
        tcp, udp = (median(run, aqm, setting, measure) for measure in (mixes.tcp_on_mbps, mixes.udp_on_mbps))
        parts.append(fair_beside_udp(run, aqm, setting))
        text = f"{NAMES[aqm]}: TCP {tcp:.2f}, UDP {udp:.2f} Mbit/s, index {index:.2f}"
        parts.append(Comparison(abs(index - 0.99) <= INDEX, text))
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
        value = median(run, aqm, "mix-5", mixes.tcp_on_mbps)
        parts.append(Comparison(abs(value - 8) <= ABOUT * 8, f"{NAMES[aqm]} {value:.2f} Mbit/s"))
    return judge("; ".join(part.text for part in parts), parts)


# On the link of 100 Mbit/s.


@minstrel("5.3.2", "Figure 5.16", "similar")
def same_throughput_of_one_flow(run: Evidence) -> Finding:
    """One TCP flow gets about the same with FQ-Minstrel PIE as with FQ-PIE."""
    return same_throughput(run, OURS, THEIRS, ["up-1"], on=True)


@minstrel("5.3.2", "Figure 5.17", "lower")
def round_trips_of_one_flow_are_shorter_still(run: Evidence) -> Finding:
    """Round trips of one TCP flow are shorter with FQ-Minstrel PIE than with FQ-PIE."""
    return shorter_round_trips(run, OURS, THEIRS, "up-1")


@minstrel("5.3.2", "Figure 5.18", "similar")
def same_throughput_of_four_flows(run: Evidence) -> Finding:
    """Four TCP flows get about the same with FQ-Minstrel PIE as with FQ-PIE."""
    return same_throughput(run, OURS, THEIRS, ["up-4"], on=True)


@minstrel("5.3.2", "Figure 5.19", "slightly better")
def round_trips_of_four_flows_rise_less(run: Evidence) -> Finding:
    """Round trips of four TCP flows rise less with FQ-Minstrel PIE than with FQ-PIE."""
    a, b = (median(run, aqm, "up-4", spike) for aqm in (OURS, THEIRS))
    text = f"p99 {a:.1f} ms above the median, FQ-PIE {b:.1f} ms"
    return judge(text, [Comparison(a < b, text)])


def _unsteady(outcome: Outcome) -> float:
    """Coefficient of variation of the goodput per second of all TCP flows together while UDP is on."""
    seconds = mixes.tcp_seconds_mbps(outcome, mixes.on_seconds(outcome))
    return statistics.pstdev(seconds) / statistics.fmean(seconds)


@minstrel("5.3.2", "Figure 5.20", "more consistent")
def throughput_of_twelve_flows_is_steadier(run: Evidence) -> Finding:
    """The throughput of twelve TCP flows beside UDP varies less with FQ-Minstrel PIE than with FQ-PIE."""
    a, b = (median(run, aqm, "up-12", _unsteady) for aqm in (OURS, THEIRS))
    text = f"deviation of {a:.2%} of the mean, FQ-PIE {b:.2%}"
    return judge(text, [Comparison(a < b, text)])


@minstrel("5.3.2", "Figure 5.21", "better control")
def round_trips_of_twelve_flows_are_shorter(run: Evidence) -> Finding:
    """Round trips of twelve TCP flows are shorter with FQ-Minstrel PIE than with FQ-PIE."""
    return shorter_round_trips(run, OURS, THEIRS, "up-12")


@minstrel("5.3.2", "Table 5.5", "within 0.01")
def fairness_is_not_affected(run: Evidence) -> Finding:
    """FQ-Minstrel PIE is as fair as FQ-PIE in the tests with UDP."""
    return same_indices(run, OURS, THEIRS, uploads(run))


@minstrel("5.3.2", "Table 5.5", "0.97, 0.99, 0.99, 0.96")
def indices_with_fq_minstrel_pie(run: Evidence) -> Finding:
    """Jain's index of 1, 4, 8 and 12 TCP flows and UDP with FQ-Minstrel PIE."""
    return table(run, OURS, {"up-1": 0.97, "up-4": 0.99, "up-8": 0.99, "up-12": 0.96})


@minstrel("5.3.2", "Figures 5.22 and 5.23, Table 5.5", "0.99")
def fq_minstrel_pie_levels_controls(run: Evidence) -> Finding:
    """FQ-Minstrel PIE gives CUBIC and BBR flows fair shares and similar round trips."""
    return levels(run, OURS)


def _swing(cc: str) -> Callable[[Outcome], float]:
    """Coefficient of variation of the goodput per second of a flow, as the mean over the flows of a control."""

    def of_outcome(outcome: Outcome) -> float:
        seconds = range(mixes.BEGIN_S, series_of(outcome).seconds)
        found = []
        for i, flow in enumerate(outcome.summary["flows"]):
            if control_of(flow) == cc:
                rates = [series_of(outcome).flows[i][k] for k in seconds]
                found.append(statistics.pstdev(rates) / statistics.fmean(rates))
        return statistics.fmean(found)

    return of_outcome


@minstrel("5.3.2", "Figure 5.22", "CUBIC less than BBR")
def bbr_swings_more(run: Evidence) -> Finding:
    """The throughput of CUBIC flows varies less than that of BBR flows."""
    cubic, bbr = (median(run, OURS, CONTROLS, _swing(cc)) for cc in ("cubic", "bbr"))
    text = f"seconds deviate by {cubic:.1%} of their mean with CUBIC, by {bbr:.1%} with BBR"
    return judge(text, [Comparison(cubic < bbr, text)])


@minstrel("5.3.2", "Figure 5.24", "fewer spikes")
def calls_wait_less(run: Evidence) -> Finding:
    """A call's queueing delay rises less often with FQ-Minstrel PIE than with FQ-PIE (mean and maximum)."""
    parts: list[Comparison] = []
    for measure in ("mean", "max"):  # the resolution of the percentiles is too coarse at 42 ms
        a, b = (median(run, aqm, CALL, _delay(measure)) for aqm in (OURS, THEIRS))
        parts.append(Comparison(a < b, f"{measure} {a:.3f} ms, FQ-PIE {b:.3f} ms"))
    # The target has no influence: a call has its own queue, which is empty when the next packet arrives.
    return judge("; ".join([*(part.text for part in parts), "sending a full packet takes 0.12 ms"]), parts)


@minstrel("5.3.2", "Figure 5.25", "the same")
def calls_have_the_same_jitter(run: Evidence) -> Finding:
    """A call's jitter is the same with FQ-Minstrel PIE as with FQ-PIE."""
    a, b = (median(run, aqm, CALL, mixes.call_jitter_ms) for aqm in (OURS, THEIRS))
    text = f"{a:.3f} ms, FQ-PIE {b:.3f} ms"
    return judge(text, [Comparison(abs(a - b) <= COMPARABLE * b, text)])


@minstrel("5.3.2", "Table 5.6", "0.00 %")
def calls_still_lose_nothing(run: Evidence) -> Finding:
    """A call loses nothing with FQ-PIE and with FQ-Minstrel PIE."""
    return no_loss(run, (THEIRS, OURS))


@minstrel("5.4", "in the text", "in all the tests")
def trade_off_is_better(run: Evidence) -> Finding:
    """FQ-Minstrel PIE has a better trade-off than FQ-PIE in all tests: no less TCP throughput, and less delay."""
    parts: list[Comparison] = []
    for setting in (*(f"mix-{n}" for n in MIXES), *uploads(run), CALL):
        if has(run, setting):
            rate, other_rate = (median(run, aqm, setting, _tcp_mbps) for aqm in (OURS, THEIRS))
            rtt, other_rtt = (median(run, aqm, setting, rtt_of("mean")) for aqm in (OURS, THEIRS))
            text = f"{setting}: {rate:.2f} Mbit/s and {rtt:.1f} ms, FQ-PIE {other_rate:.2f} and {other_rtt:.1f}"
            parts.append(Comparison(rate >= 0.99 * other_rate and rtt < other_rtt, text))
    return judge(f"better in {sum(part.holds for part in parts)} of {len(parts)} tests", parts)


def _tcp_mbps(outcome: Outcome) -> float:
    return statistics.fmean(mixes.tcp_seconds_mbps(outcome, range(mixes.BEGIN_S, series_of(outcome).seconds)))
