"""Claims of document 000 on what PINK costs: Corollaries 2 and 3."""

from __future__ import annotations

from penstock.claims import checks
from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding
from penstock.claims.words import CONSTANT_COST
from penstock.papers.pink_scale.columns import bound_used, known_flows, packet_ns
from penstock.reproduce.results import Evidence

CLAIMS: list[Claim] = []
at = of(CLAIMS, "pink-scale")


def _settings(run: Evidence) -> list[tuple[str, int]]:
    return [(setting, int(setting.removeprefix("n-"))) for setting in run.settings]


@at("4", "Corollary 2", "O(b)")
def space_is_linear(run: Evidence) -> Finding:
    """From 10 to 100,000 flows the queue is within b, the bandwidth-delay product, and each flow has one record."""
    parts: list[Comparison] = []
    for setting, flows in _settings(run):
        cell = ("pink", flows, setting)
        queue, records = run.cell_value(cell, bound_used) or 0.0, run.cell_value(cell, known_flows) or 0.0
        parts.append(checks.at_most(queue, 1.0, f"{flows:,} flows", " of b"))
        parts.append(Comparison(records == flows, f"{flows:,} flows: {records:,.0f} records"))
    return checks.decide(sorted(parts, key=lambda part: part.holds))


@at("4", "Corollary 3", "O(1)")
def time_is_constant(run: Evidence) -> Finding:
    """From 10 to 100,000 flows a packet takes at most twice the processor time, beside the same runs with drop-tail."""
    ratio = {
        flows: (run.cell_value(("pink", flows, setting), packet_ns) or 0.0)
        / (run.cell_value(("droptail", flows, setting), packet_ns) or 1.0)
        for setting, flows in _settings(run)
    }
    least = ratio[min(ratio)]
    return checks.decide(
        [
            Comparison(
                value <= CONSTANT_COST * least, f"{flows:,} flows: {value:.2f} times drop-tail's, {least:.2f} with 10"
            )
            for flows, value in ratio.items()
            if value is not least
        ],
        shown=len(ratio),
    )
