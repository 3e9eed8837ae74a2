"""Claims of document 000 on PINK against other disciplines: sections 6.1 (DSL) and 6.3 (satellite).

The paper gives its results as figures, so most claims are orders and trends. Where it says "almost" or "close", the
tolerance used is a constant below and is part of what is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from penstock.claims.entering import of, said
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.reproduce import Sweep
from penstock.reproduce.results import (
    Evidence,
    Measure,
    delivered_mbytes,
    dropped_mbytes,
    drops,
    goodput_mbps,
    payload_per_packet,
    rtt_ms,
    worst_jain,
)

CLOSE = 0.03  # "close to", "almost identical": within 3 %
COMPARABLE = 0.05  # "comparable": within 5 %
POOR = 0.9  # "very poor" goodput: less than 90 % of the limit
FLAT = 0.05  # "stable", "constant" over flow counts: the range is within 5 % of the median
NOISE = 0.005  # a trend may go back by this share between neighbours
FAIR = 0.95  # "approaching 1"

CLAIMS: list[Claim] = []

GOODPUT, P10, P90 = goodput_mbps("p50"), goodput_mbps("p10"), goodput_mbps("p90")
RTT, RTT10, RTT90, RTT_MIN = rtt_ms("p50"), rtt_ms("p10"), rtt_ms("p90"), rtt_ms("min")


dsl, sat = of(CLAIMS, "pink-dsl"), of(CLAIMS, "pink-sat")
dsl_sum, sat_sum = of(CLAIMS, "pink-dsl", varies=False), of(CLAIMS, "pink-sat", varies=False)


def _sweep(run: Evidence) -> Sweep:
    assert isinstance(run.experiment, Sweep)
    return run.experiment


def _across(run: Evidence, aqm: str, measure: Measure, unit: str, digits: int = 2) -> str:
    """The measure at every flow count, as text."""
    values = ", ".join(f"{run.value(aqm, n, measure):.{digits}f}" for n in run.counts(aqm))
    return f"{aqm} {values}{unit} at {', '.join(map(str, run.counts(aqm)))} flows"


def _n(value: float) -> str:
    """Three digits, and all of a larger number's whole part."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _spread(run: Evidence, aqm: str, n: int) -> float:
    return run.value(aqm, n, P90) - run.value(aqm, n, P10)


def _trend(run: Evidence, aqm: str, measure: Measure, what: str, sign: int) -> Iterable[Comparison]:
    """The measure rises (`sign` 1) or falls (-1) from each flow count to the next."""
    for fewer, more in pairwise(run.counts(aqm)):
        before, after = run.value(aqm, fewer, measure), run.value(aqm, more, measure)
        yield Comparison(
            sign * (after - before) >= -NOISE * abs(before),
            f"{aqm} {what} goes from {_n(before)} at {fewer} to {_n(after)} at {more} flows",
        )


def _order(run: Evidence, better: str, worse: str, measure: Measure, what: str, slack: float) -> Iterable[Comparison]:
    """The measure of `better` is at least that of `worse`, less `slack` of it."""
    for n in run.counts(better, worse):
        a, b = run.value(better, n, measure), run.value(worse, n, measure)
        yield Comparison(a >= b * (1 - slack), f"{what} at {n} flows: {better} {_n(a)}, {worse} {_n(b)}")


def _flat(run: Evidence, aqm: str, measure: Measure, what: str) -> Comparison:
    values = sorted(run.value(aqm, n, measure) for n in run.counts(aqm))
    middle = values[len(values) // 2]
    share = (values[-1] - values[0]) / middle
    return Comparison(
        share <= FLAT, f"{aqm} {what} lies between {_n(values[0])} and {_n(values[-1])}, {share:.1%} of it"
    )


# Goodput.


@dsl("6.1.1", "Figure 7", "close to 9.5 Mbit/s")
@sat("6.3.1", "Figure 15", "close to the limit")
def pink_goodput_near_limit(run: Evidence) -> Finding:
    """PINK's median goodput is close to what full frames can carry."""
    limit = run.experiment.goodput_limit_bps / 1e6
    parts: list[Comparison] = []
    for n in run.counts("pink"):
        value = run.value("pink", n, GOODPUT)
        parts.append(
            Comparison(value >= limit * (1 - CLOSE), f"{value / limit:.1%} of {limit:.2f} Mbit/s at {n} flows")
        )
    return judge(_across(run, "pink", GOODPUT, " Mbit/s"), parts)


@dsl("6.1.1", "Figure 7", "a flat box")
@sat("6.3.1", "Figure 15", "a flat box")
def pink_goodput_steady(run: Evidence) -> Finding:
    """PINK's tenth and ninetieth percentile of goodput are almost the same."""
    parts: list[Comparison] = []
    for n in run.counts("pink"):
        low, high = run.value("pink", n, P10), run.value("pink", n, P90)
        parts.append(Comparison(high - low <= CLOSE * high, f"{low:.2f} to {high:.2f} Mbit/s at {n} flows"))
    return judge(_across(run, "pink", P10, " Mbit/s (p10)"), parts)


@dsl("6.1.1", "Figure 7", "rises from 4 to 64 flows")
def pink_goodput_floor_rises(run: Evidence) -> Finding:
    """The lower end of PINK's goodput rises with the number of flows."""
    return judge(_across(run, "pink", P10, " Mbit/s (p10)"), _trend(run, "pink", P10, "p10 goodput", 1))


@dsl("6.1.1", "Figure 7", "highest at every count")
def pink_goodput_highest(run: Evidence) -> Finding:
    """PINK's goodput is above that of DropTail and CoDel, and far above GREEN's."""
    parts = [
        part for other in ("droptail", "codel", "green") for part in _order(run, "pink", other, GOODPUT, "Mbit/s", 0)
    ]
    measured = f"{_across(run, 'pink', GOODPUT, '')}; median RTT {_across(run, 'pink', RTT, ' ms', 1)}"
    found = judge(measured, parts)
    # Windows that are no whole number of segments make senders send short ones, whose headers cost goodput.
    mean_payload = _across(run, "pink", payload_per_packet, " B of payload per packet", 0)
    return replace(found, reason=f"{found.reason}; {mean_payload}")


@dsl("6.1.1", "Figure 7", "CoDel above ARED")
def codel_above_ared(run: Evidence) -> Finding:
    """CoDel uses the link slightly better than ARED."""
    parts = _order(run, "codel", "ared", GOODPUT, "Mbit/s", 0)
    return judge(f"{_across(run, 'codel', GOODPUT, '')}; {_across(run, 'ared', GOODPUT, ' Mbit/s')}", parts)


@dsl("6.1.1", "Figure 7", "comparable")
def codel_like_droptail(run: Evidence) -> Finding:
    """CoDel's goodput is comparable to DropTail's."""
    parts = _order(run, "codel", "droptail", GOODPUT, "Mbit/s", COMPARABLE)
    return judge(f"{_across(run, 'codel', GOODPUT, '')}; {_across(run, 'droptail', GOODPUT, ' Mbit/s')}", parts)


@dsl("6.1.1", "Figure 7", "p10 and p90 approach each other")
def codel_spread_narrows(run: Evidence) -> Finding:
    """CoDel's goodput varies less from second to second when there are more flows."""
    parts: list[Comparison] = []
    for fewer, more in pairwise(run.counts("codel")):
        a, b = _spread(run, "codel", fewer), _spread(run, "codel", more)
        parts.append(Comparison(b <= a, f"p90 - p10 goes from {a:.2f} at {fewer} to {b:.2f} Mbit/s at {more} flows"))
    counts = run.counts("codel")
    return judge(", ".join(f"{_spread(run, 'codel', n):.2f}" for n in counts) + " Mbit/s (p90 - p10)", parts)


@dsl("6.1.1", "Figure 7", "lowest of all")
def green_goodput_poor(run: Evidence) -> Finding:
    """GREEN's goodput is very poor: far from the limit and the lowest of all."""
    limit = run.experiment.goodput_limit_bps / 1e6
    parts: list[Comparison] = []
    for n in run.counts():
        value, lowest = run.value("green", n, GOODPUT), min(run.value(aqm, n, GOODPUT) for aqm in run.aqms)
        text = f"{value:.2f} Mbit/s at {n} flows, lowest of all {lowest:.2f}, limit {limit:.2f}"
        parts.append(Comparison(value == lowest and value < POOR * limit, text))
    return judge(_across(run, "green", GOODPUT, " Mbit/s"), parts)


@sat("6.3.1", "Figure 15", "lowest, widest")
def ared_suffers_most(run: Evidence) -> Finding:
    """ARED has the lowest goodput on the satellite link, and the widest spread."""
    parts: list[Comparison] = []
    for n in run.counts():
        value, lowest = run.value("ared", n, GOODPUT), min(run.value(aqm, n, GOODPUT) for aqm in run.aqms)
        parts.append(Comparison(value == lowest, f"{value:.2f} Mbit/s at {n} flows, lowest of all {lowest:.2f}"))
        wide, widest = _spread(run, "ared", n), max(_spread(run, aqm, n) for aqm in run.aqms)
        parts.append(
            Comparison(wide == widest, f"p90 - p10 {wide:.2f} Mbit/s at {n} flows, widest of all {widest:.2f}")
        )
    return judge(_across(run, "ared", GOODPUT, " Mbit/s"), parts)


@sat("6.3.1", "Figure 15", "rises, narrows")
def codel_goodput_rises(run: Evidence) -> Finding:
    """With more flows CoDel's goodput rises and varies less."""
    parts = [*_trend(run, "codel", GOODPUT, "median goodput", 1)]
    for fewer, more in pairwise(run.counts("codel")):
        a, b = _spread(run, "codel", fewer), _spread(run, "codel", more)
        parts.append(Comparison(b <= a, f"p90 - p10 goes from {a:.2f} at {fewer} to {b:.2f} Mbit/s at {more} flows"))
    return judge(_across(run, "codel", GOODPUT, " Mbit/s"), parts)


@sat("6.3.1", "Figure 15", "comparable")
def green_like_codel(run: Evidence) -> Finding:
    """GREEN's goodput is comparable to CoDel's on the satellite link."""
    parts: list[Comparison] = []
    for n in run.counts("green", "codel"):
        a, b = run.value("green", n, GOODPUT), run.value("codel", n, GOODPUT)
        parts.append(Comparison(abs(a - b) <= COMPARABLE * b, f"green {a:.2f}, codel {b:.2f} Mbit/s at {n} flows"))
    return judge(f"{_across(run, 'green', GOODPUT, '')}; {_across(run, 'codel', GOODPUT, ' Mbit/s')}", parts)


@sat("6.3.1", "Figure 15", "slightly below")
def droptail_near_limit_when_crowded(run: Evidence) -> Finding:
    """DropTail is only slightly below the limit with 32 or 64 flows."""
    limit = run.experiment.goodput_limit_bps / 1e6
    parts: list[Comparison] = []
    for n in [n for n in run.counts("droptail") if n >= 32]:
        value = run.value("droptail", n, GOODPUT)
        text = f"{value:.2f} Mbit/s at {n} flows, {value / limit:.1%} of {limit:.2f}"
        parts.append(Comparison(limit * (1 - COMPARABLE) <= value <= limit * (1 + NOISE), text))
    return judge(_across(run, "droptail", GOODPUT, " Mbit/s"), parts)


def wider_on_satellite(evidence: Mapping[str, Evidence]) -> Finding:
    """Goodput varies more on the satellite link than on the DSL link, as a share of the limit."""
    runs = [evidence["pink-dsl"], evidence["pink-sat"]]
    parts: list[Comparison] = []
    for aqm in ("droptail", "ared", "codel", "green"):
        for n in sorted(set(runs[0].counts(aqm)) & set(runs[1].counts(aqm))):
            a, b = (_spread(run, aqm, n) * 1e6 / run.experiment.goodput_limit_bps for run in runs)
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


# Round trip time.


@dsl("6.1.2", "Figure 8", "107 ms")
@sat("6.3.2", "Figure 16", "780 ms")
def smallest_rtt(run: Evidence) -> Finding:
    """The smallest RTT of any run is the stated one."""
    value = min(run.value(aqm, n, RTT_MIN) for aqm in run.aqms for n in run.counts(aqm))
    paper = _sweep(run).paper_min_rtt_ms
    unloaded = _sweep(run).unloaded_rtt_ms
    text = f"{value:.1f} ms measured, {paper:g} ms stated; propagation and sending take {unloaded:.1f} ms"
    close = abs(value - paper) <= CLOSE * paper
    if not close:
        sending = _sweep(run).sending_ms
        text += f", of which sending is {sending:.1f}: it cannot make up for the {abs(paper - unloaded):.1f} ms between"
    return judge(f"{value:.1f} ms", [Comparison(close, text)])


@dsl("6.1.2", "Figure 8", "longest at every count")
@sat("6.3.2", "Figure 16", "longest at every count")
def droptail_rtt_worst(run: Evidence) -> Finding:
    """DropTail's median RTT is the longest."""
    parts: list[Comparison] = []
    for other in (aqm for aqm in run.aqms if aqm != "droptail"):
        parts.extend(_order(run, "droptail", other, RTT, "median ms", 0))
    return judge(_across(run, "droptail", RTT, " ms", 0), parts)


@dsl("6.1.2", "Figure 8", "p10, p50 and p90 rise")
def codel_rtt_rises(run: Evidence) -> Finding:
    """CoDel's percentiles of RTT rise with the number of flows."""
    named = ((RTT10, "p10 RTT"), (RTT, "median RTT"), (RTT90, "p90 RTT"))
    parts = [part for measure, what in named for part in _trend(run, "codel", measure, what, 1)]
    return judge(_across(run, "codel", RTT90, " ms (p90)", 0), parts)


@dsl("6.1.2", "Figure 8", "ARED below CoDel")
def ared_rtt_below_codel(run: Evidence) -> Finding:
    """ARED's RTT is below CoDel's and its median almost stable."""
    parts = [*_order(run, "codel", "ared", RTT90, "p90 ms", 0), _flat(run, "ared", RTT, "median RTT (ms)")]
    return judge(_across(run, "ared", RTT, " ms", 0), parts)


@dsl("6.1.2", "Figure 8", "p10, p50 and p90 fall")
def green_rtt_falls(run: Evidence) -> Finding:
    """GREEN's percentiles of RTT fall with the number of flows."""
    named = ((RTT10, "p10 RTT"), (RTT, "median RTT"), (RTT90, "p90 RTT"))
    parts = [part for measure, what in named for part in _trend(run, "green", measure, what, -1)]
    return judge(_across(run, "green", RTT, " ms", 0), parts)


@dsl("6.1.2", "Figure 8", "a flat box near 107 ms")
@sat("6.3.2", "Figure 16", "very narrow boxes")
def pink_rtt_at_base(run: Evidence) -> Finding:
    """PINK's RTTs lie together and close to the smallest possible."""
    parts: list[Comparison] = []
    for n in run.counts("pink"):
        low, base, high = run.value("pink", n, RTT10), run.value("pink", n, RTT_MIN), run.value("pink", n, RTT90)
        parts.append(Comparison(high <= base * 1.1, f"p90 {high:.1f} ms at {n} flows, smallest {base:.1f} ms"))
        parts.append(Comparison(high - low <= 0.1 * base, f"p10 to p90 is {low:.1f} to {high:.1f} ms at {n} flows"))
    return judge(_across(run, "pink", RTT90, " ms (p90)", 1), parts)


@sat("6.3.2", "Figure 16", "about the same")
def codel_ared_rtt_alike(run: Evidence) -> Finding:
    """CoDel and ARED have about the same RTTs, which grow and spread with the number of flows."""
    parts: list[Comparison] = []
    for n in run.counts("codel", "ared"):
        a, b = run.value("codel", n, RTT), run.value("ared", n, RTT)
        parts.append(Comparison(abs(a - b) <= COMPARABLE * b, f"median at {n} flows: codel {a:.0f}, ared {b:.0f} ms"))
    for aqm in ("codel", "ared"):
        parts.extend(_trend(run, aqm, RTT, "median RTT", 1))
        parts.extend(_trend(run, aqm, lambda s: RTT90(s) - RTT10(s), "p90 - p10 of RTT", 1))
    return judge(f"{_across(run, 'codel', RTT, '', 0)}; {_across(run, 'ared', RTT, ' ms', 0)}", parts)


@sat("6.3.2", "Figure 16", "higher, growing")
def green_rtt_longest_but_droptail(run: Evidence) -> Finding:
    """GREEN's RTT is above that of ARED, CoDel and PINK, and grows."""
    parts = [p for other in ("ared", "codel", "pink") for p in _order(run, "green", other, RTT, "median ms", 0)]
    parts.extend(_trend(run, "green", RTT, "median RTT", 1))
    return judge(_across(run, "green", RTT, " ms", 0), parts)


@sat("6.3.2", "Figure 16", "almost constant")
def pink_rtt_constant(run: Evidence) -> Finding:
    """PINK's RTT hardly changes with the number of flows."""
    parts = [_flat(run, "pink", RTT, "median RTT (ms)"), _flat(run, "pink", RTT90, "p90 RTT (ms)")]
    return judge(_across(run, "pink", RTT, " ms", 0), parts)


# Fairness.


@dsl("6.1.3", "Figure 9", "approaches 1")
def pink_fairness_approaches_one(run: Evidence) -> Finding:
    """PINK's worst-case fairness rises towards 1 with the number of flows."""
    counts = run.counts("pink")
    top = run.value("pink", counts[-1], worst_jain)
    parts = [*_trend(run, "pink", worst_jain, "worst Jain index", 1)]
    parts.append(Comparison(top >= FAIR, f"{top:.3f} at {counts[-1]} flows"))
    return judge(_across(run, "pink", worst_jain, ""), parts)


@sat("6.3.3", "Figure 17", "about 0.8")
def pink_fairness_constant(run: Evidence) -> Finding:
    """PINK's worst-case fairness is almost constant and close to 0.8."""
    parts = [_flat(run, "pink", worst_jain, "worst Jain index")]
    for n in run.counts("pink"):
        value = run.value("pink", n, worst_jain)
        parts.append(Comparison(abs(value - 0.8) <= 0.1, f"{value:.2f} at {n} flows"))
    return judge(_across(run, "pink", worst_jain, ""), parts)


@dsl("6.1.3", "Figure 9", "lowest of all")
def ared_unfair(run: Evidence) -> Finding:
    """ARED's worst-case fairness is the lowest, whatever the number of flows."""
    parts: list[Comparison] = []
    for other in (aqm for aqm in run.aqms if aqm != "ared"):
        parts.extend(_order(run, other, "ared", worst_jain, "worst Jain", 0))
    return judge(_across(run, "ared", worst_jain, ""), parts)


def _crowds_are_fairer(run: Evidence, aqms: tuple[str, ...]) -> Finding:
    parts: list[Comparison] = []
    for aqm in aqms:
        counts = run.counts(aqm)
        few, many = run.value(aqm, counts[0], worst_jain), run.value(aqm, counts[-1], worst_jain)
        parts.append(Comparison(many > few, f"{aqm} {few:.2f} at {counts[0]}, {many:.2f} at {counts[-1]} flows"))
    return judge("; ".join(part.text for part in parts), parts)


@dsl("6.1.3", "Figure 9", "rises from 4 to 64 flows")
def crowds_are_fairer(run: Evidence) -> Finding:
    """DropTail, GREEN and CoDel are unfair with few flows and fairer with many."""
    return _crowds_are_fairer(run, ("droptail", "green", "codel"))


@sat("6.3.3", "Figure 17", "as on the DSL link")
def crowds_are_fairer_on_satellite(run: Evidence) -> Finding:
    """DropTail and GREEN are unfair with few flows and fairer with many."""
    return _crowds_are_fairer(run, ("droptail", "green"))


@sat("6.3.3", "Figure 17", "falls")
def ared_fairness_falls(run: Evidence) -> Finding:
    """ARED's worst-case fairness falls with the number of flows."""
    return judge(_across(run, "ared", worst_jain, ""), _trend(run, "ared", worst_jain, "worst Jain index", -1))


# Drops.


@dsl("6.1.4", "Figure 10", "0")
@sat("6.3.4", "Figure 18", "0")
def pink_drops_nothing(run: Evidence) -> Finding:
    """PINK drops no packet at all."""
    parts: list[Comparison] = []
    total = 0.0
    for n in run.counts("pink"):
        count = sum(run.values("pink", n, drops))
        total += count
        parts.append(Comparison(count == 0, f"{count:.0f} drops at {n} flows"))
    return judge(f"{total:.0f} drops in all runs", parts)


@dsl("6.1.4", "Figure 10", "about 10 %")
@sat("6.3.4", "Figure 18", "about 10 %")
def others_drop_more_when_crowded(run: Evidence) -> Finding:
    """Without PINK the drops grow with the number of flows and come near a tenth of the goodput."""
    payload = run.experiment.payload_share
    parts: list[Comparison] = []
    shares = []
    for aqm in (aqm for aqm in run.aqms if aqm != "pink"):
        parts.extend(_trend(run, aqm, drops, "number of drops", 1))
        n = run.counts(aqm)[-1]
        share = run.value(aqm, n, lambda s: dropped_mbytes(payload)(s) / delivered_mbytes(s))
        shares.append(f"{aqm} {share:.1%}")
        parts.append(Comparison(0.05 <= share <= 0.15, f"{aqm} drops {share:.1%} of what arrives at {n} flows"))
    return judge(f"dropped to delivered with the most flows: {', '.join(shares)}", parts)


@dsl("6.1.4", "Figure 10", "about the same")
def drop_shares_alike(run: Evidence) -> Finding:
    """DropTail, ARED and CoDel drop about the same share of the data, within a factor of two."""
    payload = run.experiment.payload_share
    parts: list[Comparison] = []
    for n in run.counts("droptail", "ared", "codel"):
        shares = {
            aqm: run.value(aqm, n, lambda s: dropped_mbytes(payload)(s) / delivered_mbytes(s))
            for aqm in ("droptail", "ared", "codel")
        }
        text = f"at {n} flows " + ", ".join(f"{aqm} {share:.2%}" for aqm, share in shares.items())
        parts.append(Comparison(max(shares.values()) <= 2 * min(shares.values()), text))
    return judge(parts[-1].text if parts else "", parts)


@dsl("6.1.4", "Figure 10", "close to 356 MB in 300 s")
@sat("6.3.4", "Figure 18", "close to 146 MB in 300 s")
def pink_data_near_maximum(run: Evidence) -> Finding:
    """PINK carries close to all the data the link can carry in the time of the run."""
    limit = run.experiment.goodput_limit_bps * run.duration_s / 8e6
    parts: list[Comparison] = []
    for n in run.counts("pink"):
        value = run.value("pink", n, delivered_mbytes)
        parts.append(Comparison(value >= limit * (1 - CLOSE), f"{value:.1f} of {limit:.1f} MB at {n} flows"))
    return judge(_across(run, "pink", delivered_mbytes, " MB", 1), parts)


@dsl_sum("6.1.4", "in the text", "356 MB")
@sat_sum("6.3.4", "in the text", "146 MB")
def stated_maximum(run: Evidence) -> Finding:
    """The most payload the link carries in 300 s, by the paper's own formula, is the stated value."""
    right = run.experiment.goodput_limit_bps * 300 / 8e6
    paper = _sweep(run).paper_limit_mbytes
    text = (
        f"rate / 8 x 300 s x 1000 / 1052 is {right:.1f} MB, {abs(right - paper) / paper:.1%} from the stated {paper:g}"
    )
    return judge(f"{right:.1f} MB", [Comparison(abs(right - paper) <= 0.005 * paper, text)])


@dsl_sum("6.1.1", "footnote 3", "9.5 Mbit/s")
@sat_sum("6.3.1", "footnote 5", "4.8 Mbit/s")
def stated_goodput_limit(run: Evidence) -> Finding:
    """1000 B of payload in frames of 1052 B limit the goodput to the stated value."""
    stated_mbps = _sweep(run).paper_goodput_mbps
    right = run.experiment.goodput_limit_bps / 1e6
    text = f"rate x 1000 / 1052 is {right:.2f} Mbit/s; stated is {stated_mbps:g}"
    return judge(f"{right:.2f} Mbit/s", [Comparison(abs(right - stated_mbps) <= 0.01 * stated_mbps, text)])
