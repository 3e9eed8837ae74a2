"""The claims about the results of `tempest-time`."""

from __future__ import annotations

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding
from penstock.claims.words import COST
from penstock.papers._shared.tempest_claims import TIMES, ratio_of, report, said
from penstock.reproduce.results import Evidence

MPPS = 40.0

CLAIMS: list[Claim] = []
time = of(CLAIMS, "tempest-time", "002")


def _close_to_drr(run: Evidence, pattern: str) -> Finding:
    settings = [setting for setting in run.settings if setting.startswith(pattern)]
    ratios = {setting: ratio_of(run, "qfq-plus", "drr", setting) for setting in settings}
    return said([Comparison(r <= COST, f"{setting}: QFQ+ takes {r:.2f} times DRR's") for setting, r in ratios.items()])


@time("4.3.3.1", "Figure 4.18", "close to DRR", because=TIMES)
def qfq_plus_costs_about_what_drr_does(run: Evidence) -> Finding:
    """With smooth arrivals a packet takes about as long with QFQ+ as with DRR."""
    return _close_to_drr(run, "smooth")


@time("4.3.3.1", "Figure 4.19", "close to DRR", because=TIMES)
def so_it_does_with_bursts(run: Evidence) -> Finding:
    """With arrivals in bursts a packet takes about as long with QFQ+ as with DRR."""
    return _close_to_drr(run, "bursty")


@time("4.3.3.1", "Figure 4.18, 32k-w1", "faster than DRR", because=TIMES)
def qfq_plus_overtakes_drr(run: Evidence) -> Finding:
    """With 32,000 flows of weight 1 and smooth arrivals QFQ+ takes less time than DRR."""
    ratio = ratio_of(run, "qfq-plus", "drr", "smooth-32k-w1")
    return said([Comparison(ratio < 1, f"QFQ+ takes {ratio:.2f} times DRR's")])


@time("4.3.2.4", "DRR, QFQ, QFQ+", "QFQ+ between DRR and QFQ", because=TIMES)
def qfq_plus_is_faster_than_qfq(run: Evidence) -> Finding:
    """QFQ+ takes less time than QFQ."""
    ratios = {setting: ratio_of(run, "qfq-plus", "qfq", setting) for setting in run.settings}
    return said([Comparison(r < 1, f"{setting}: QFQ+ takes {r:.2f} times QFQ's") for setting, r in ratios.items()])


@time("4.3.3.1", "Figures 4.18 and 4.19", "WF2Q+ is the slowest")
def wf2q_plus_costs_most(run: Evidence) -> Finding:
    """WF2Q+ takes longer than DRR, QFQ and QFQ+."""
    parts = []
    for setting in run.settings:
        times = {alg: report(run, alg, setting, "ns_per_packet") for alg in run.aqms}
        slowest = max(times, key=times.__getitem__)
        text = f"{setting}: " + ", ".join(f"{alg} {ns / times['drr']:.2f}" for alg, ns in times.items())
        parts.append(Comparison(slowest == "wf2q-plus", f"{text} times DRR's"))
    return said(parts)


@time("4.3", "section 4.3", "40 Mpps and more", because=TIMES)
def traffic_is_generated_at_40_mpps(run: Evidence) -> Finding:
    """The harness generates traffic at 40 million packets per second and more."""
    rates = {s: 1e3 / report(run, "drr", s, "ns_harness") for s in run.settings if s.endswith("1k-w1")}
    return said([Comparison(r >= MPPS, f"{setting}: {r:.0f} Mpps without a scheduler") for setting, r in rates.items()])
