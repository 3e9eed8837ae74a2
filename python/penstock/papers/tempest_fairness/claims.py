"""The claims about the results of `tempest-fairness`."""

from __future__ import annotations

from penstock.claims import checks
from penstock.claims.entering import contradicts, of
from penstock.claims.ledger import Claim, Comparison, Finding, Kind
from penstock.claims.words import FAR
from penstock.papers._shared.tempest_claims import said
from penstock.papers.tempest_fairness.runs import OTHERS, QFQ_B_WFI, WEIGHTS, b_wfi_bound
from penstock.reproduce import tempest
from penstock.reproduce.results import Evidence

OPTIMAL_PACKETS = 0.5  # "between 0 and 0.5 packets"

BY_DEFINITION = (
    "section 4.3.2 has B-WFI as the largest phi W - W_k over all intervals [t1, t2]: one that begins when the flow has "
    "just been served is ahead by 1 - phi, and the best scheduler may then leave it 1 behind, so that 2 - phi packets "
    "(1.95 at weight 5 of 105) keep the bound of 1 for intervals of a backlogged flow"
)

CLAIMS: list[Claim] = []
fairness = of(CLAIMS, "tempest-fairness", "002")


def _top(run: Evidence, alg: str, setting: str, key: str) -> float:
    """The same for the flows of the largest weight."""
    return run.median_or_zero(alg, setting, lambda outcome: tempest.top(outcome.summary, key))


# Guarantees. B-WFI is given also over intervals that begin when the flow was idle. Intervals of both kinds may begin
# when the flow is ahead of its share by 1 - phi, which a bound of one packet does not include.


def _lag(run: Evidence, alg: str, weight: int) -> float:
    return _top(run, alg, f"w-{weight}", "lag_packets")


@fairness("4.3.3.2", "Figure 4.21", "below the bounds of theory", because=contradicts(BY_DEFINITION))
def measured_b_wfi_is_below_theory(run: Evidence) -> Finding:
    """B-WFI of each scheduler stays below its theoretical bound for each weight."""
    parts = []
    for alg in run.aqms:
        for w in WEIGHTS:
            ours, bound = _top(run, alg, f"w-{w}", "b_wfi_packets"), b_wfi_bound(alg, w) or 0.0
            text = f"{alg}, weight {w}: {ours:.2f} of at most {bound:.1f} packets ({_lag(run, alg, w):.2f} since idle)"
            parts.append(Comparison(ours <= bound, text))
    return said(parts)


@fairness("4.3.3.2", "Figure 4.21", "between 0 and 0.5 packets", because=contradicts(BY_DEFINITION))
def wf2q_plus_and_qfq_are_near_the_optimum(run: Evidence) -> Finding:
    """B-WFI of WF2Q+ and QFQ is at most half a packet for each weight of the heavy flow."""
    parts = []
    for alg in ("wf2q-plus", "qfq"):
        for w in WEIGHTS:
            ours = _top(run, alg, f"w-{w}", "b_wfi_packets")
            text = f"{alg}, weight {w}: {ours:.2f} packets ({_lag(run, alg, w):.2f} since idle)"
            parts.append(Comparison(ours <= OPTIMAL_PACKETS, text))
    return said(parts)


@fairness("4.3.3.2", "Figure 4.21", "under the bound of QFQ")
def qfq_plus_is_under_the_bound_of_qfq(run: Evidence) -> Finding:
    """B-WFI of QFQ+ is below the bound of QFQ, about 5 packets."""
    values = {w: _top(run, "qfq-plus", f"w-{w}", "b_wfi_packets") for w in WEIGHTS}
    return said([Comparison(v < QFQ_B_WFI, f"weight {w}: {v:.2f} packets") for w, v in values.items()])


@fairness("4.3.3.2", "Figure 4.21", "DRR far above")
def drr_falls_behind_most(run: Evidence) -> Finding:
    """B-WFI of DRR is far above that of QFQ and QFQ+ when weights differ."""
    parts = []
    for w in WEIGHTS[1:]:
        drr = _top(run, "drr", f"w-{w}", "b_wfi_packets")
        for alg in ("qfq", "qfq-plus"):
            ours = _top(run, alg, f"w-{w}", "b_wfi_packets")
            text = f"weight {w}: DRR {drr:.2f}, {alg} {ours:.2f} packets"
            parts.append(Comparison(drr >= FAR * ours, text))
    return said(parts)


@fairness("4.3.3.2", "Figure 4.22", "DRR always highest")
def drr_delays_the_heavy_flow_most(run: Evidence) -> Finding:
    """The longest wait of the heavy flow is longer with DRR than with the others."""
    parts = []
    for w in WEIGHTS:
        waits = {alg: _top(run, alg, f"w-{w}", "max_delay_dequeues") for alg in run.aqms}
        text = f"weight {w}: " + ", ".join(f"{alg} {wait:,.0f}" for alg, wait in waits.items())
        parts.append(Comparison(all(waits["drr"] > wait for alg, wait in waits.items() if alg != "drr"), text))
    return said(parts)


@fairness("4.3.3.2", "Figure 4.22", "more than double above 50")
def above_fifty_more_than_double(run: Evidence) -> Finding:
    """From weight 100 on the heavy flow waits more than twice as long with DRR as with QFQ and QFQ+."""
    parts = []
    for w in (w for w in WEIGHTS if w > 50):
        drr = _top(run, "drr", f"w-{w}", "max_delay_dequeues")
        for alg in ("qfq", "qfq-plus"):
            ratio = drr / _top(run, alg, f"w-{w}", "max_delay_dequeues")
            parts.append(Comparison(ratio > FAR, f"weight {w}: {ratio:.2f} times that of {alg}"))
    return said(parts)


@fairness("4.3.3.2", "Figure 4.22", "QFQ and QFQ+ before WF2Q+")
def qfq_and_qfq_plus_delay_least(run: Evidence) -> Finding:
    """The longest wait of the heavy flow is shorter with QFQ and QFQ+ than with WF2Q+ when its weight is large."""
    parts = []
    for w in (w for w in WEIGHTS if w > 50):
        exact = _top(run, "wf2q-plus", f"w-{w}", "max_delay_dequeues")
        for alg in ("qfq", "qfq-plus"):
            ours = _top(run, alg, f"w-{w}", "max_delay_dequeues")
            parts.append(Comparison(ours < exact, f"weight {w}: {alg} {ours:,.0f}, WF2Q+ {exact:,.0f} departures"))
    return said(parts)


@fairness("4.3.2 and 4.3.3.2", "the definition of B-WFI", "1 packet", Kind.OWN)
def by_its_definition_b_wfi_reaches_two_less_the_share(run: Evidence) -> Finding:
    """By its definition the best B-WFI of equal packets is 2 - phi and not 1: WF2Q+ keeps it, and passes 1."""
    parts = []
    for w in WEIGHTS:
        ours, bound = _top(run, "wf2q-plus", f"w-{w}", "b_wfi_packets"), 2 - w / (OTHERS + w)
        parts.append(checks.at_most(ours, bound, f"weight {w}", " packets"))
    most = max(_top(run, "wf2q-plus", f"w-{w}", "b_wfi_packets") for w in WEIGHTS)
    parts.append(Comparison(most > 1, f"at most {most:.2f} packets at some weight, more than 1"))
    return checks.decide(parts)
