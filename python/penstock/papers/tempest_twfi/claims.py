"""The claims about the results of `tempest-twfi`."""

from __future__ import annotations

from dataclasses import replace

from penstock.claims.entering import contradicts, of, unexplained
from penstock.claims.ledger import Claim, Comparison, Finding
from penstock.claims.words import ABOUT, NEAR_BEST
from penstock.papers._shared import schedulers
from penstock.papers._shared.tempest_claims import said
from penstock.papers.tempest_twfi.runs import EMERGENCY, ROOM, ROOMY, WIRED, t_wfi_bound_ms, waiting_bound_ms
from penstock.reproduce.results import Evidence

SMALL_Q = 10  # "small buffer size Q"
TOP_WEIGHT = 20

OF_A_PACKET = unexplained(
    ("flags.burst", "flags.qmax", "flags.qmin", "flags.qsing"),
    "-5.5 to 3.3 ms with 300 packets in all, ten of each flow, bursts of 0 to 5 or 100 packets left over. T-WFI leaves "
    "out the packet itself, which takes 1700 B x 8 x 660 / 20 / 54 Mbit/s = 8.3 ms at the rate of its flow",
)
OF_300 = (
    "the 300 packets of Table 4.5 leave within 300 x 1700 B x 8 / 54 Mbit/s = 75.6 ms, and a flow of weight 20 of 660"
    " is owed 8.3 ms of it for a packet alone: no scheduler has more than 67.2 ms. 110 ms need 437 packets and more "
    "(docs/results/fit.md)"
)

CLAIMS: list[Claim] = []
t_wfi = of(CLAIMS, "tempest-twfi", "002")


def _good(run: Evidence, alg: str, setting: str) -> float:
    """T-WFI of the heaviest flows whose stations have good channels."""
    return run.median_or_zero(alg, setting, lambda outcome: schedulers.good(outcome.summary, "t_wfi_ms"))


def _below_bound(run: Evidence, alg: str) -> Finding:
    bound, parts = t_wfi_bound_ms(alg, TOP_WEIGHT), []
    for setting, packets in ((WIRED, int(EMERGENCY["qmax"])), (ROOMY, ROOM)):
        ours, most = _good(run, alg, setting), waiting_bound_ms(packets, TOP_WEIGHT)
        if most > bound:  # else no scheduler could break the bound
            parts.append(Comparison(ours < bound, f"{ours:.1f} ms of at most {bound:.0f} ms, {packets:,} waiting"))
    return said(parts)


def _about(run: Evidence, alg: str, paper_ms: float) -> Finding:
    ours = _good(run, alg, WIRED)
    return said([Comparison(abs(ours - paper_ms) <= ABOUT * paper_ms, f"{ours:.1f} ms, the paper {paper_ms:g} ms")])


@t_wfi("4.3.3.2", "the bound of WF2Q+", "below 17 ms")
def wf2q_plus_is_below_its_bound(run: Evidence) -> Finding:
    """T-WFI of the heaviest flows with WF2Q+ is below what theory allows."""
    return _below_bound(run, "wf2q-plus")


@t_wfi("4.3.3.2", "the bound of DRR", "below 199 ms")
def drr_is_below_its_bound(run: Evidence) -> Finding:
    """T-WFI of the heaviest flows with DRR is below what theory allows."""
    return _below_bound(run, "drr")


@t_wfi("4.3.3.2", "Figure 4.23", "circa 8 ms", because=OF_A_PACKET)
def wf2q_plus_has_eight_milliseconds(run: Evidence) -> Finding:
    """T-WFI of the heaviest flows with WF2Q+ is about 8 ms."""
    return _about(run, "wf2q-plus", 8.0)


@t_wfi("4.3.3.2", "Figure 4.23", "circa 110 ms", because=contradicts(OF_300))
def drr_has_110_milliseconds(run: Evidence) -> Finding:
    """T-WFI of the heaviest flows with DRR is about 110 ms."""
    found = _about(run, "drr", 110.0)
    qmax = int(EMERGENCY["qmax"])
    most = waiting_bound_ms(qmax, TOP_WEIGHT)
    limit = f"with {qmax} packets in all, as Table 4.5 has it, no scheduler has more than {most:.1f} ms"
    return replace(found, measured=f"{found.measured}; {limit}")


@t_wfi("4.3.3.2", "Figure 4.23", "close to WF2Q+")
def with_a_small_buffer_hfs_is_near_wf2q_plus(run: Evidence) -> Finding:
    """With a small buffer between its layers T-WFI of HFS is close to that of WF2Q+."""
    exact, drr = (_good(run, alg, WIRED) for alg in ("wf2q-plus", "drr"))
    values = {q: _good(run, "hfs", f"q-{q}") for q in schedulers.BUFFERS if q <= SMALL_Q}
    parts = []
    for q, ours in values.items():
        text = f"Q = {q}: {ours:.1f}, WF2Q+ {exact:.1f}, DRR {drr:.1f} ms"
        parts.append(Comparison(ours - exact <= NEAR_BEST * (drr - exact), text))
    return said(parts)


@t_wfi("4.3.3.2", "Figure 4.23", "grows with Q, below DRR")
def hfs_stays_below_drr(run: Evidence) -> Finding:
    """T-WFI of HFS stays below that of DRR up to Q = 250."""
    drr = _good(run, "drr", WIRED)
    values = {q: _good(run, "hfs", f"q-{q}") for q in schedulers.BUFFERS}
    return said([Comparison(v < drr, f"Q = {q}: {v:.1f}, DRR {drr:.1f} ms") for q, v in values.items()])
