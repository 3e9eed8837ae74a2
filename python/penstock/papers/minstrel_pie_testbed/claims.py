"""Claims on Minstrel PIE in a testbed: thesis on bufferbloat (document 004), section 4.3.3, parts A to C.

The thesis shows delays and throughputs as curves, and gives throughputs while UDP is on in tables.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from penstock.claims.entering import contradicts, of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import ABOUT, COMPARABLE, FAR, FULL, INDEX, MUCH
from penstock.papers._shared import mixes
from penstock.papers._shared.flow_queueing import PHASES_S
from penstock.papers.minstrel_pie_testbed.runs import HIGHEST_MS, LOWEST_MS, MARKED, PIES
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, Outcome
from penstock.reproduce.seconds import delays_ms

_NAMES = {"pie": "PIE", "minstrel-pie": "Minstrel PIE"}
_FLOWS = {"light": 5, "heavy": 50}
_BEGIN_S = PHASES_S[0][0]  # of UDP
_SETTLED_S = 5  # after UDP has begun

APART = contradicts(
    f"sections 4.3.1 A and B have PIE around its reference of {HIGHEST_MS:g} ms and Minstrel PIE on its way to the "
    f"lower bound of its own, {LOWEST_MS:g} ms, as long as TCP flows keep the link busy, which five do here: "
    f"{1 - LOWEST_MS / HIGHEST_MS:.0%} less in the end, which is not within {COMPARABLE:.0%}"
)
# Tables 4.14 and 4.15: throughputs of five TCP flows and UDP, in Mbit/s, and the index beside them.
FAIRNESS: Mapping[str, tuple[tuple[float, ...], float]] = {
    "Table 4.14, PIE": ((0.19, 0.16, 0.18, 0.18, 0.22, 8.50), 0.24),
    "Table 4.14, Minstrel PIE": ((0.17, 0.17, 0.18, 0.16, 0.17, 8.60), 0.24),
    "Table 4.15, PIE": ((0.32, 0.29, 0.30, 0.34, 0.31, 8.30), 0.28),
    "Table 4.15, Minstrel PIE": ((0.31, 0.30, 0.31, 0.32, 0.32, 8.32), 0.28),
}
CENT = 0.01  # an index of two digits, cut or rounded

CLAIMS: list[Claim] = []
testbed = of(CLAIMS, "minstrel-pie-testbed", "004")
sums = of(CLAIMS, "minstrel-pie-testbed", "004", varies=False)


def _all(parts: list[Comparison]) -> Finding:
    return judge("; ".join(part.text for part in parts), parts)


def _delay(run: Evidence, aqm: str, setting: str, percentile: str = "mean") -> float:
    return run.value(aqm, _FLOWS[setting], columns.delay_ms(percentile), setting)


# A, B: TCP alone.


@testbed("4.3.3 A", "Figure 4.13(a)", "similar", because=APART)
def delays_of_five_flows_are_similar(run: Evidence) -> Finding:
    """Packets of five TCP flows wait as long with Minstrel PIE as with PIE."""
    theirs, ours = (_delay(run, aqm, "light") for aqm in PIES)
    text = f"{ours:.1f} ms, PIE {theirs:.1f} ms"
    return _all([Comparison(abs(ours - theirs) <= COMPARABLE * theirs, text)])


@testbed("4.3.3 A", "Figure 4.13(b)", "similar")
def five_flows_use_the_link_alike(run: Evidence) -> Finding:
    """Five TCP flows use the link with Minstrel PIE as with PIE."""
    theirs, ours = (run.value(aqm, 5, columns.used_share, "light") for aqm in PIES)
    return _all([Comparison(abs(ours - theirs) <= COMPARABLE, f"{ours:.1%}, PIE {theirs:.1%}")])


def _fairness(run: Evidence, setting: str) -> Finding:
    found = ((aqm, run.value(aqm, _FLOWS[setting], columns.jain_of_all, setting)) for aqm in PIES)
    return _all([Comparison(abs(value - 0.99) <= INDEX, f"{_NAMES[aqm]} {value:.3f}") for aqm, value in found])


@testbed("4.3.3 A", "Table 4.10", "0.99 with either")
def fairness_of_five_flows(run: Evidence) -> Finding:
    """Five TCP flows have the index of Table 4.10 with either."""
    return _fairness(run, "light")


@testbed("4.3.3 A", "Table 4.10", "1.73 to 2.13 and 1.83 to 1.94 Mbit/s")
def throughputs_of_table_410(run: Evidence) -> Finding:
    """Each of five TCP flows gets a throughput of Table 4.10, within a tenth."""
    parts: list[Comparison] = []
    for aqm, low, high in zip(PIES, (1.73, 1.83), (2.13, 1.94), strict=True):
        for outcome in run.runs(aqm, setting="light"):
            rates = sorted(flow["goodput_bps"] / 1e6 for flow in outcome.summary["flows"])
            text = f"{_NAMES[aqm]}: {rates[0]:.2f} to {rates[-1]:.2f} Mbit/s"
            parts.append(Comparison(rates[0] >= (1 - ABOUT) * low and rates[-1] <= (1 + ABOUT) * high, text))
    return _all(parts)


@testbed("4.3.3 B", "Figure 4.14(a)", "around 15 ms; between 5 and 15 ms")
def delays_of_fifty_flows(run: Evidence) -> Finding:
    """With 50 TCP flows PIE keeps the delay around its target, Minstrel PIE between the bounds of its target."""
    theirs, ours = (_delay(run, aqm, "heavy", "p50") for aqm in PIES)
    parts = [
        Comparison(abs(theirs - HIGHEST_MS) <= ABOUT * HIGHEST_MS, f"PIE: median {theirs:.1f} ms"),
        Comparison((1 - ABOUT) * LOWEST_MS <= ours <= (1 + ABOUT) * HIGHEST_MS, f"Minstrel PIE: median {ours:.1f} ms"),
    ]
    return _all(parts)


@testbed("4.3.3 B", "Figure 4.14(b)", "fully utilized")
def fifty_flows_fill_the_link(run: Evidence) -> Finding:
    """50 TCP flows fill the link with either."""
    found = ((aqm, run.value(aqm, 50, columns.used_share, "heavy")) for aqm in PIES)
    return _all([Comparison(use >= FULL, f"{_NAMES[aqm]}: {use:.1%}") for aqm, use in found])


@testbed("4.3.3 B", "Table 4.11", "0.99 with either")
def fairness_of_fifty_flows(run: Evidence) -> Finding:
    """50 TCP flows have the index of Table 4.11 with either."""
    return _fairness(run, "heavy")


# C: a UDP flow of the link's rate from 25 to 75 s.


def _waited_ms(outcome: Outcome) -> float:
    """How long packets waited while UDP was on and its begin was over: the mean of the seconds."""
    delays = delays_ms(outcome)
    return statistics.fmean(delays[second] for second in mixes.on_seconds(outcome)[_SETTLED_S:])


def _highest_ms(outcome: Outcome) -> float:
    """The highest mean of a second at the begin of UDP."""
    delays = delays_ms(outcome)
    return max(delays[second] for second in mixes.on_seconds(outcome)[:_SETTLED_S])


def _tight(run: Evidence, setting: str) -> Finding:
    theirs, ours = (run.median_or_zero(aqm, setting, _waited_ms) for aqm in PIES)
    return _all([Comparison(ours * MUCH <= theirs, f"{ours:.1f} ms, PIE {theirs:.1f} ms")])


@testbed("4.3.3 C", "Figure 4.15(a)", "a tight control")
def one_flow_and_udp_wait_less(run: Evidence) -> Finding:
    """Beside one TCP flow and UDP, packets wait clearly less with Minstrel PIE than with PIE."""
    return _tight(run, "up-1")


@testbed("4.3.3 C", "Figure 4.17(a), section 4.4", "robust against unresponsive traffic")
def five_flows_and_udp_wait_less(run: Evidence) -> Finding:
    """Beside five TCP flows and UDP, packets wait clearly less with Minstrel PIE than with PIE."""
    return _tight(run, "up-5")


@testbed("4.3.3 C", "Figure 4.15(a)", "around 25 seconds")
def delays_leap_when_udp_begins(run: Evidence) -> Finding:
    """When UDP begins beside one TCP flow, the delay is far above what it is then, with either."""
    parts: list[Comparison] = []
    for aqm in PIES:
        peak, later = (run.median_or_zero(aqm, "up-1", measure) for measure in (_highest_ms, _waited_ms))
        parts.append(Comparison(peak >= FAR * later, f"{_NAMES[aqm]}: up to {peak:.1f} ms, then {later:.1f} ms"))
    return _all(parts)


def _before_mbps(outcome: Outcome) -> float:
    """What TCP gets in the seconds before UDP."""
    return statistics.fmean(mixes.tcp_seconds_mbps(outcome, (k for k in mixes.off_seconds(outcome) if k < _BEGIN_S)))


def _after_mbps(outcome: Outcome) -> float:
    """What TCP gets in the seconds after UDP in which it has recovered."""
    return statistics.fmean(mixes.tcp_seconds_mbps(outcome, (k for k in mixes.off_seconds(outcome) if k > _BEGIN_S)))


def _falls(run: Evidence, aqm: str, setting: str) -> Comparison:
    before, on = (run.median_or_zero(aqm, setting, measure) for measure in (_before_mbps, mixes.tcp_on_mbps))
    return Comparison(on * FAR <= before, f"{_NAMES[aqm]}: {before:.2f}, then {on:.2f} Mbit/s")


@testbed("4.3.3 C", "Figure 4.15(b)", "reduces significantly, and gets back to normal")
def one_flow_falls_and_recovers(run: Evidence) -> Finding:
    """One TCP flow has at most half while UDP is on, and what it had before when UDP is gone, with either."""
    parts: list[Comparison] = []
    for aqm in PIES:
        before, after = (run.median_or_zero(aqm, "up-1", measure) for measure in (_before_mbps, _after_mbps))
        parts.append(_falls(run, aqm, "up-1"))
        parts.append(Comparison(after >= (1 - COMPARABLE) * before, f"{after:.2f} Mbit/s after it"))
    return _all(parts)


@testbed("4.3.3 C", "Figure 4.17(b), Table 4.14", "0.93 and 0.85 Mbit/s together")
def five_flows_fall(run: Evidence) -> Finding:
    """Five TCP flows have at most half of what they have alone while UDP is on, with either."""
    return _all([_falls(run, aqm, "up-5") for aqm in PIES])


def _table(run: Evidence, setting: str, numbers: Mapping[str, tuple[float, float, float]]) -> Finding:
    """Compares throughputs of TCP together and of UDP, and Jain's index."""
    parts: list[Comparison] = []
    for aqm, (tcp, udp, index) in numbers.items():
        for what, told, measure in (("TCP", tcp, mixes.tcp_on_mbps), ("UDP", udp, mixes.udp_on_mbps)):
            ours = run.median_or_zero(aqm, setting, measure)
            text = f"{_NAMES[aqm]}: {what} {ours:.2f} Mbit/s, the paper {told:.2f}"
            parts.append(Comparison(abs(ours - told) <= ABOUT * told, text))
        ours = run.median_or_zero(aqm, setting, mixes.jain_on)
        parts.append(Comparison(abs(ours - index) <= INDEX, f"{_NAMES[aqm]}: index {ours:.2f}, the paper {index:.2f}"))
    return _all(parts)


@testbed("4.3.3 C", "Table 4.12", "TCP 0.083, UDP 9.60; TCP 0.064, UDP 9.61; 0.50")
def numbers_of_table_412(run: Evidence) -> Finding:
    """One TCP flow and UDP have the throughputs and the index of Table 4.12."""
    return _table(run, "up-1", {"pie": (0.083, 9.60, 0.50), "minstrel-pie": (0.064, 9.61, 0.50)})


@testbed("4.3.3 C", "Table 4.13", "TCP 0.13, UDP 9.54; TCP 0.11, UDP 9.56; 0.51")
def numbers_of_table_413(run: Evidence) -> Finding:
    """With ECN, one TCP flow and UDP have the throughputs and the index of Table 4.13."""
    return _table(run, f"up-1{MARKED}", {"pie": (0.13, 9.54, 0.51), "minstrel-pie": (0.11, 9.56, 0.51)})


@testbed("4.3.3 C", "Table 4.14", "TCP 0.16 to 0.22, UDP 8.50; TCP 0.16 to 0.18, UDP 8.60; 0.24")
def numbers_of_table_414(run: Evidence) -> Finding:
    """Five TCP flows and UDP have the throughputs and the index of Table 4.14."""
    numbers = {"pie": (0.19 + 0.16 + 0.18 + 0.18 + 0.22, 8.50, 0.24)}
    return _table(run, "up-5", numbers | {"minstrel-pie": (0.17 + 0.17 + 0.18 + 0.16 + 0.17, 8.60, 0.24)})


@testbed("4.3.3 C", "Table 4.15", "TCP 0.29 to 0.34, UDP 8.30; TCP 0.30 to 0.32, UDP 8.32; 0.28")
def numbers_of_table_415(run: Evidence) -> Finding:
    """With ECN, five TCP flows and UDP have the throughputs and the index of Table 4.15."""
    numbers = {"pie": (0.32 + 0.29 + 0.30 + 0.34 + 0.31, 8.30, 0.28)}
    return _table(run, f"up-5{MARKED}", numbers | {"minstrel-pie": (0.31 + 0.30 + 0.31 + 0.32 + 0.32, 8.32, 0.28)})


def _more_with_ecn(run: Evidence, setting: str, least: float) -> list[Comparison]:
    parts: list[Comparison] = []
    for aqm in PIES:
        without, marked = (run.median_or_zero(aqm, name, mixes.tcp_on_mbps) for name in (setting, setting + MARKED))
        text = f"{_NAMES[aqm]}: TCP {marked:.2f} Mbit/s with ECN, {without:.2f} without"
        parts.append(Comparison(marked > least * without, text))
    return parts


@testbed("4.3.3 C", "Figures 4.15(b) and 4.16(b)", "improves marginally, but still gets largely affected")
def ecn_helps_one_flow_a_little(run: Evidence) -> Finding:
    """While UDP is on, one TCP flow gets more with ECN than without, and still at most half of what it has alone."""
    parts = _more_with_ecn(run, "up-1", 1.0)
    for aqm in PIES:
        off, on = (run.median_or_zero(aqm, f"up-1{MARKED}", m) for m in (mixes.tcp_off_mbps, mixes.tcp_on_mbps))
        parts.append(Comparison(on * FAR <= off, f"{_NAMES[aqm]}: {on:.2f} Mbit/s with ECN, {off:.2f} without UDP"))
    return _all(parts)


@testbed("4.3.3 C", "Tables 4.14 and 4.15", "0.93 and 0.85 without, 1.56 with ECN")
def ecn_helps_five_flows(run: Evidence) -> Finding:
    """While UDP is on, five TCP flows get clearly more with ECN than without, with either."""
    return _all(_more_with_ecn(run, "up-5", MUCH))


@sums("4.3.3 C", "Tables 4.14 and 4.15", "0.24 and 0.28")
def indices_are_those_of_the_throughputs(run: Evidence) -> Finding:
    """The indices of Tables 4.14 and 4.15 are Jain's of the six throughputs beside them."""
    del run
    parts: list[Comparison] = []
    for row, (rates, said) in FAIRNESS.items():
        whole = sum(rates) ** 2 / sum(rate * rate for rate in rates)
        text = f"{row}: {said:.2f}; of six {whole / 6:.4f}, divided by five {whole / 5:.4f}"
        parts.append(Comparison(abs(whole / 6 - said) < CENT, text))
    return _all(parts)
