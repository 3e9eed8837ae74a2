"""What is claimed of `dybra`."""

from __future__ import annotations

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import FAIR, LITTLE, MUCH
from penstock.papers._shared import nodes
from penstock.papers._shared.cooperation_claims import Value, value
from penstock.papers.dybra.runs import SCALE
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence

DYBRA_MB, PLAIN_MB = 140.0, 80.0  # 143.88 and 75.93
EMPTY = 0.05  # of the bandwidth-delay product: an almost empty queue
BDP_KB = 875.0

CLAIMS: list[Claim] = []
dybra = of(CLAIMS, "dybra", "002")


def of_mix(run: Evidence, aqm: str, measure: Value) -> float:
    """Of the ten clients with five controls."""
    return value(run, aqm, "mix", measure) or 0.0


@dybra("2.3.3", "in the text", "143.88 and 75.93 MB")
def dybra_fills_the_link(run: Evidence) -> Finding:
    """In 60 s DyBRA carries 140 MB or more, plain TCP less than 80 MB."""
    ours, plain = of_mix(run, "dybra", nodes.sent_mb), of_mix(run, "plain", nodes.sent_mb)
    parts = [
        Comparison(ours >= DYBRA_MB, f"DyBRA {ours:.1f} MB"),
        Comparison(plain < PLAIN_MB, f"plain {plain:.1f} MB"),
    ]
    return judge(f"{ours:.1f} and {plain:.1f} MB", parts)


@dybra("2.3.3", "in the text", "a significant drop")
def c2ml_alone_does_not_adapt(run: Evidence) -> Finding:
    """C²ML without DyBRA carries less: what bad channels leave goes to nobody."""
    ours, even = of_mix(run, "dybra", nodes.sent_mb), of_mix(run, "c2ml", nodes.sent_mb)
    return judge(
        f"{even:.1f} MB for {ours:.1f}", [Comparison(even * MUCH <= ours, f"{even:.1f} MB, DyBRA {ours:.1f} MB")]
    )


@dybra("2.3.3", "Figure 2.34", "negligible")
def dybra_keeps_the_queue_empty(run: Evidence) -> Finding:
    """The mean queue is at most 5 % of the bandwidth-delay product, and the longest never fills it."""
    mean = of_mix(run, "dybra", lambda o: columns.mean_queue_kb(o.summary))
    most = of_mix(run, "dybra", columns.queue_max_kb)
    parts = [
        Comparison(mean <= EMPTY * BDP_KB, f"mean {mean:.1f} kB, {mean / BDP_KB:.1%} of {BDP_KB:.0f} kB"),
        Comparison(most < BDP_KB, f"longest {most:.0f} kB"),
    ]
    return judge("; ".join(part.text for part in parts), parts)


@dybra("2.3.3", "Figure 2.36", "greatly improved")
def dybra_makes_friends(run: Evidence) -> Finding:
    """Five controls whose channels stay good are fairer to each other with DyBRA."""
    ours, plain = of_mix(run, "dybra", nodes.jain_good), of_mix(run, "plain", nodes.jain_good)
    parts = [
        Comparison(ours > plain, f"Jain {ours:.3f}, plain {plain:.3f}"),
        Comparison(ours >= FAIR, f"Jain {ours:.3f}"),
    ]
    return judge(parts[0].text, parts)


@dybra("2.3.3", "Figure 2.37", "1 to 2 orders of magnitude")
def dybra_scales(run: Evidence) -> Finding:
    """With CUBIC the mean queue is a tenth or less of the plain one."""
    parts = []
    for n in (n for n in SCALE if f"cubic-{n}" in run.settings):
        ours, plain = (
            value(run, aqm, f"cubic-{n}", lambda o: columns.mean_queue_kb(o.summary)) or 0.0
            for aqm in ("dybra", "plain")
        )
        parts.append(Comparison(ours <= LITTLE * plain, f"{n} clients: {ours:.1f} kB, plain {plain:.1f} kB"))
    return judge("; ".join(part.text for part in parts), parts)
