"""The claims about the results of `pink-sat`."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.claims import checks
from penstock.claims.entering import contradicts, of, said, unexplained
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import CHANCE, COMPARABLE, INDEX, SLIGHT
from penstock.papers._shared import pink_claims
from penstock.papers._shared.pink_claims import (
    GOODPUT,
    RTT,
    RTT10,
    RTT90,
    across,
    compare_crowds,
    counts,
    flat,
    order,
    spread,
    trend,
)
from penstock.reproduce.results import Evidence, worst_jain

# Variants are run at 4 and 64 flows; these two were searched at 4, 8, 16, 32 and 64 as well.
NARROWS = unexplained(
    ("tcp.min_rto", "tcp.ack_every_segment", "tcp.receive_buffer", "profile"),
    "as ns-3.37: from 0.50 to 0.69 Mbit/s between 32 and 64 flows; others widen more",
)
ARED_FALLS = unexplained(
    ("tcp.min_rto", "tcp.ack_every_segment", "tcp.receive_buffer", "profile"),
    "sockets of 131072 B: it falls up to 32 flows, 0.56 to 0.27, and rises to 0.40 at 64",
)

CLAIMS: list[Claim] = []
STATED_RTT = (
    "the links of Table 3 and Figure 6 take 706 ms both ways and sending 2.4 ms: nothing is left that makes 780; "
    "and 4.8 Mbit/s and 146 MB of the same testbed are more than its link of 4 Mbit/s carries"
)
sat = of(CLAIMS, "pink-sat")
sat_sum = of(CLAIMS, "pink-sat", varies=False)

sat("6.3.1", "Figure 15", "close to the limit")(pink_claims.pink_goodput_near_limit)

sat("6.3.1", "Figure 15", "a flat box")(pink_claims.pink_goodput_steady)


@sat("6.3.1", "Figure 15", "lowest, widest")
def ared_suffers_most(run: Evidence) -> Finding:
    """ARED has the lowest goodput on the satellite link, and the widest spread."""
    parts: list[Comparison] = []
    for n in counts(run):
        value, lowest = run.value("ared", n, GOODPUT), min(run.value(aqm, n, GOODPUT) for aqm in run.aqms)
        parts.append(Comparison(value == lowest, f"{value:.2f} Mbit/s at {n} flows, lowest of all {lowest:.2f}"))
        wide, widest = spread(run, "ared", n), max(spread(run, aqm, n) for aqm in run.aqms)
        parts.append(
            Comparison(wide == widest, f"p90 - p10 {wide:.2f} Mbit/s at {n} flows, widest of all {widest:.2f}")
        )
    return judge(across(run, "ared", GOODPUT, " Mbit/s"), parts)


@sat("6.3.1", "Figure 15", "rises, narrows", because=NARROWS)
def codel_goodput_rises(run: Evidence) -> Finding:
    """With more flows CoDel's goodput rises and varies less."""
    parts = [*trend(run, "codel", GOODPUT, "median goodput", 1)]
    spreads = [(f"{n} flows", spread(run, "codel", n)) for n in counts(run, "codel")]
    parts += checks.falls(spreads, "p90 - p10", " Mbit/s")
    return judge(across(run, "codel", GOODPUT, " Mbit/s"), parts)


@sat("6.3.1", "Figure 15", "comparable")
def green_like_codel(run: Evidence) -> Finding:
    """GREEN's goodput is comparable to CoDel's on the satellite link."""
    parts: list[Comparison] = []
    for n in counts(run, "green", "codel"):
        a, b = run.value("green", n, GOODPUT), run.value("codel", n, GOODPUT)
        parts.append(Comparison(abs(a - b) <= COMPARABLE * b, f"green {a:.2f}, codel {b:.2f} Mbit/s at {n} flows"))
    return judge(f"{across(run, 'green', GOODPUT, '')}; {across(run, 'codel', GOODPUT, ' Mbit/s')}", parts)


@sat("6.3.1", "Figure 15", "slightly below")
def droptail_near_limit_when_crowded(run: Evidence) -> Finding:
    """DropTail is only slightly below the limit with 32 or 64 flows."""
    limit = run.experiment.goodput_limit_bps / 1e6
    parts: list[Comparison] = []
    for n in [n for n in run.counts("droptail") if n >= 32]:
        value = run.value("droptail", n, GOODPUT)
        text = f"{value:.2f} Mbit/s at {n} flows, {value / limit:.1%} of {limit:.2f}"
        parts.append(Comparison(limit * (1 - SLIGHT) <= value <= limit * (1 + CHANCE), text))
    return judge(across(run, "droptail", GOODPUT, " Mbit/s"), parts)


def wider_on_satellite(evidence: Mapping[str, Evidence]) -> Finding:
    """Goodput varies more on the satellite link than on the DSL link, as a share of the limit."""
    runs = [evidence["pink-dsl"], evidence["pink-sat"]]
    parts: list[Comparison] = []
    for aqm in ("droptail", "ared", "codel", "green"):
        for n in sorted(set(counts(runs[0], aqm)) & set(counts(runs[1], aqm))):
            a, b = (spread(run, aqm, n) * 1e6 / run.experiment.goodput_limit_bps for run in runs)
            parts.append(Comparison(b > a, f"{aqm} at {n} flows: {a:.1%} of the limit on DSL, {b:.1%} on satellite"))
    wider = sum(part.holds for part in parts)
    return judge(f"wider in {wider} of {len(parts)} pairs", parts)


CLAIMS.append(
    Claim(
        "pink-sat.wider-on-satellite",
        "000",
        "6.3.1",
        "Figures 7, 15",
        said(wider_on_satellite),
        "wider boxes for almost all",
        ("pink-dsl", "pink-sat"),
        wider_on_satellite,
    )
)

sat("6.3.2", "Figure 16", "780 ms", because=contradicts(STATED_RTT))(pink_claims.smallest_rtt)

sat("6.3.2", "Figure 16", "longest at every count")(pink_claims.droptail_rtt_worst)

sat("6.3.2", "Figure 16", "very narrow boxes")(pink_claims.pink_rtt_at_base)


@sat("6.3.2", "Figure 16", "about the same")
def codel_ared_rtt_alike(run: Evidence) -> Finding:
    """CoDel and ARED have about the same RTTs, which grow and spread with the number of flows."""
    parts: list[Comparison] = []
    for n in counts(run, "codel", "ared"):
        a, b = run.value("codel", n, RTT), run.value("ared", n, RTT)
        parts.append(Comparison(abs(a - b) <= COMPARABLE * b, f"median at {n} flows: codel {a:.0f}, ared {b:.0f} ms"))
    for aqm in ("codel", "ared"):
        parts.extend(trend(run, aqm, RTT, "median RTT", 1))
        parts.extend(trend(run, aqm, lambda s: RTT90(s) - RTT10(s), "p90 - p10 of RTT", 1))
    return judge(f"{across(run, 'codel', RTT, '', 0)}; {across(run, 'ared', RTT, ' ms', 0)}", parts)


@sat("6.3.2", "Figure 16", "higher, growing")
def green_rtt_longest_but_droptail(run: Evidence) -> Finding:
    """GREEN's RTT is above that of ARED, CoDel and PINK, and grows."""
    parts = [p for other in ("ared", "codel", "pink") for p in order(run, "green", other, RTT, "median ms")]
    parts.extend(trend(run, "green", RTT, "median RTT", 1))
    return judge(across(run, "green", RTT, " ms", 0), parts)


@sat("6.3.2", "Figure 16", "almost constant")
def pink_rtt_constant(run: Evidence) -> Finding:
    """PINK's RTT hardly changes with the number of flows."""
    parts = [flat(run, "pink", RTT, "median RTT (ms)"), flat(run, "pink", RTT90, "p90 RTT (ms)")]
    return judge(across(run, "pink", RTT, " ms", 0), parts)


@sat("6.3.3", "Figure 17", "about 0.8")
def pink_fairness_constant(run: Evidence) -> Finding:
    """PINK's worst-case fairness is almost constant and close to 0.8."""
    parts = [flat(run, "pink", worst_jain, "worst Jain index")]
    for n in counts(run, "pink"):
        value = run.value("pink", n, worst_jain)
        parts.append(Comparison(abs(value - 0.8) <= INDEX, f"{value:.2f} at {n} flows"))
    return judge(across(run, "pink", worst_jain, ""), parts)


@sat("6.3.3", "Figure 17", "as on the DSL link")
def crowds_are_fairer_on_satellite(run: Evidence) -> Finding:
    """DropTail and GREEN are unfair with few flows and fairer with many."""
    return compare_crowds(run, ("droptail", "green"))


@sat("6.3.3", "Figure 17", "falls", because=ARED_FALLS)
def ared_fairness_falls(run: Evidence) -> Finding:
    """ARED's worst-case fairness falls with the number of flows."""
    return judge(across(run, "ared", worst_jain, ""), trend(run, "ared", worst_jain, "worst Jain index", -1))


sat("6.3.4", "Figure 18", "0")(pink_claims.pink_drops_nothing)

sat("6.3.4", "Figure 18", "about 10 %")(pink_claims.others_drop_more_when_crowded)

sat("6.3.4", "Figure 18", "close to 146 MB in 300 s")(pink_claims.pink_data_near_maximum)

sat_sum("6.3.4", "in the text", "146 MB")(pink_claims.stated_maximum)

sat_sum("6.3.1", "footnote 5", "4.8 Mbit/s")(pink_claims.stated_goodput_limit)
