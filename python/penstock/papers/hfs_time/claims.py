"""The claims about the results of `hfs-time`."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.claims.entering import of
from penstock.claims.entering import said as text_of
from penstock.claims.ledger import Claim, Comparison, Finding
from penstock.claims.words import COST, NEGLIGIBLE
from penstock.papers._shared.hfs_claims import ENOUGH, SLOT_MS, buffers, said, throughput, value
from penstock.papers._shared.tempest_claims import TIMES
from penstock.reproduce import tempest
from penstock.reproduce.results import Evidence

CLAIMS: list[Claim] = []
times = of(CLAIMS, "hfs-time", "002")


def _ns(run: Evidence, alg: str, setting: str) -> float:
    return value(run, alg, setting, lambda summary: tempest.value(summary, "ns_per_packet"))


def _ratios(run: Evidence, one: str, other: str) -> dict[int, float]:
    return {q: _ns(run, one, f"q-{q}") / _ns(run, other, f"q-{q}") for q in buffers(run)}


@times("4.2.4.2", "Figure 4.10", "QFQ+ close to DRR", because=TIMES)
def qfq_plus_beside_the_radio_costs_about_what_drr_does(run: Evidence) -> Finding:
    """Beside the radio QFQ+ takes about as long as DRR."""
    ratios = _ratios(run, "hfs", "hfs-drr")
    return said([Comparison(r <= COST, f"Q = {q}: {r:.2f} times") for q, r in ratios.items()])


@times("4.2.4.2", "Figure 4.10", "WF2Q+ above both", because=TIMES)
def wf2q_plus_beside_the_radio_costs_more(run: Evidence) -> Finding:
    """Beside the radio WF2Q+ takes longer than QFQ+."""
    ratios = {q: r for q, r in _ratios(run, "hfs-wf2q-plus", "hfs").items() if q > 0}
    return said([Comparison(r > 1, f"Q = {q}: {r:.2f} times") for q, r in ratios.items()])


@times("4.2.5.3", "Figure 4.13", "really close to double-DRR", because=TIMES)
def hfs_costs_about_what_two_drr_do(run: Evidence) -> Finding:
    """A packet takes about as long with HFS as with DRR in both layers."""
    ratios = _ratios(run, "hfs", "double-drr")
    return said([Comparison(r <= COST, f"Q = {q}: {r:.2f} times") for q, r in ratios.items()])


@times("4.2.5.3", "Figure 4.13", "much lower than the transmission time")
def a_packet_is_scheduled_faster_than_it_is_sent(run: Evidence) -> Finding:
    """The time that HFS needs for a packet is a small part of its transmission time at 54 Mbit/s."""
    values = {q: _ns(run, "hfs", f"q-{q}") for q in buffers(run)}
    sent_ns = SLOT_MS * 1e6
    return said(
        [Comparison(v < NEGLIGIBLE * sent_ns, f"Q = {q}: {v:.0f} of {sent_ns:,.0f} ns") for q, v in values.items()]
    )


# Energy: "lower/higher relative execution times imply also lower/higher relative energy consumptions".


def hfs_saves_energy(evidence: Mapping[str, Evidence]) -> Finding:
    """For a packet that arrives HFS spends less processor time, and so energy, than with DRR beside the radio."""
    times, results = evidence["hfs-time"], evidence["hfs"]
    parts = []
    for q in (q for q in buffers(results) if q >= ENOUGH and q in buffers(times)):
        spent = {a: _ns(times, a, f"q-{q}") / throughput(results, a, f"q-{q}") for a in ("hfs", "hfs-drr")}
        text = f"Q = {q}: {spent['hfs']:.0f} ns for each that arrives, {spent['hfs-drr']:.0f} with DRR"
        parts.append(Comparison(spent["hfs"] < spent["hfs-drr"], text))
    return said(parts)


CLAIMS.append(
    Claim(
        "hfs-time.hfs-saves-energy",
        "002",
        "4.2.5.4",
        "in the text",
        text_of(hfs_saves_energy),
        "reduces the energy consumption",
        ("hfs-time", "hfs"),
        hfs_saves_energy,
        because=TIMES,
    )
)
