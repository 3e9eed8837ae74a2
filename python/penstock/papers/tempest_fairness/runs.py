"""The runs of `tempest-fairness`."""

from __future__ import annotations

from penstock.reproduce.tempest import Test

WEIGHTS = (1, 5, 10, 50, 100, 500, 1000)
OTHERS = 100  # number of flows of weight 1
FAIR = ("wf2q-plus", "drr", "qfq", "qfq-plus")

QFQ_B_WFI = 5.0  # "circa 5 packets"
AGGREGATE = 8  # M, the default of QFQ+ in the document's source [99], in Linux and here


def b_wfi_bound(alg: str, weight: int) -> float | None:
    """Worst-case B-WFI in packets of the flow of growing weight; none where section 4.3.3.2 gives no number."""
    total = OTHERS + weight
    if alg == "drr":  # the bound of its T-WFI times the flow's share of the link
        return weight + 1 + weight / total * OTHERS
    if alg == "qfq-plus":  # the bound of QFQ and the effect of aggregates of M classes
        return QFQ_B_WFI + 2 * (AGGREGATE - 1) * weight / total + 3
    return {"wf2q-plus": 1.0, "qfq": QFQ_B_WFI}.get(alg)


TESTS = tuple(Test(f"w-{w}", f"weight {w}", FAIR, {"flowsets": f"1::{OTHERS},{w}::1"}, OTHERS + 1) for w in WEIGHTS)
