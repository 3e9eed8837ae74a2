"""Claims of document 000 on PINK against other disciplines that are made of both testbeds, DSL and satellite.

The paper gives its results as figures, so most claims are orders and trends. Its figures begin with four flows: runs
with two are in our tables and figures, and no claim compares them.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.claims import checks
from penstock.claims.ledger import Comparison, Finding, judge
from penstock.claims.words import CLOSE, CONSTANT, FACTOR, RISE
from penstock.reproduce.results import (
    Evidence,
    Measure,
    delivered_mbytes,
    dropped_mbytes,
    drops,
    goodput_mbps,
    rtt_ms,
    worst_jain,
)
from penstock.reproduce.sweep import Sweep

GOODPUT, P10, P90 = goodput_mbps("p50"), goodput_mbps("p10"), goodput_mbps("p90")
RTT, RTT10, RTT90, RTT_MIN = rtt_ms("p50"), rtt_ms("p10"), rtt_ms("p90"), rtt_ms("min")


FIRST = 4  # flows; "varies from 4 up to 64"


def counts(run: Evidence, *aqms: str) -> list[int]:
    """The numbers of flows that the figures have, as far as they were run."""
    return [n for n in run.counts(*aqms) if n >= FIRST]


def curve(run: Evidence, aqm: str, measure: Measure) -> list[tuple[str, float]]:
    """The measure over the numbers of flows."""
    return [(f"{n} flows", run.value(aqm, n, measure)) for n in counts(run, aqm)]


def _sweep(run: Evidence) -> Sweep:
    assert isinstance(run.experiment, Sweep)
    return run.experiment


def across(run: Evidence, aqm: str, measure: Measure, unit: str, digits: int = 2) -> str:
    """The measure at every flow count, as text."""
    values = ", ".join(f"{run.value(aqm, n, measure):.{digits}f}" for n in counts(run, aqm))
    return f"{aqm} {values}{unit} at {', '.join(map(str, counts(run, aqm)))} flows"


def spread(run: Evidence, aqm: str, n: int) -> float:
    """From the 10th to the 90th percentile of the goodput, in Mbit/s."""
    return run.value(aqm, n, P90) - run.value(aqm, n, P10)


def trend(run: Evidence, aqm: str, measure: Measure, what: str, sign: int) -> Iterable[Comparison]:
    """The measure rises (`sign` 1) or falls (-1) from each flow count to the next."""
    return (checks.rises if sign > 0 else checks.falls)(curve(run, aqm, measure), f"{aqm} {what}")


def order(run: Evidence, better: str, worse: str, measure: Measure, what: str, by: float = 1.0) -> Iterable[Comparison]:
    """The measure of `better` is above that of `worse`, `by` at least this factor."""
    for n in counts(run, better, worse):
        a, b = run.value(better, n, measure), run.value(worse, n, measure)
        yield checks.above((better, a), (worse, b), f"{what} at {n} flows", by=by)


def flat(run: Evidence, aqm: str, measure: Measure, what: str) -> Comparison:
    """Whether the measure hardly changes with the number of flows."""
    return checks.constant(curve(run, aqm, measure), f"{aqm} {what}")


# Goodput.


def pink_goodput_near_limit(run: Evidence) -> Finding:
    """PINK's median goodput is close to what full frames can carry."""
    limit = run.experiment.goodput_limit_bps / 1e6
    parts: list[Comparison] = []
    for n in counts(run, "pink"):
        value = run.value("pink", n, GOODPUT)
        parts.append(
            Comparison(value >= limit * (1 - CLOSE), f"{value / limit:.1%} of {limit:.2f} Mbit/s at {n} flows")
        )
    return judge(across(run, "pink", GOODPUT, " Mbit/s"), parts)


def pink_goodput_steady(run: Evidence) -> Finding:
    """PINK's tenth and ninetieth percentile of goodput are almost the same."""
    parts: list[Comparison] = []
    for n in counts(run, "pink"):
        low, high = run.value("pink", n, P10), run.value("pink", n, P90)
        parts.append(Comparison(high - low <= CLOSE * high, f"{low:.2f} to {high:.2f} Mbit/s at {n} flows"))
    return judge(across(run, "pink", P10, " Mbit/s (p10)"), parts)


# Round trip time.


def smallest_rtt(run: Evidence) -> Finding:
    """The smallest RTT of any run is the stated one."""
    value = min(run.value(aqm, n, RTT_MIN) for aqm in run.aqms for n in run.counts(aqm))
    paper = run.experiment.paper["min_rtt_ms"]
    unloaded = _sweep(run).unloaded_rtt_ms
    text = f"{value:.1f} ms measured, {paper:g} ms stated; propagation and sending take {unloaded:.1f} ms"
    close = abs(value - paper) <= CLOSE * paper
    if not close:
        sending = _sweep(run).sending_ms
        text += f", of which sending is {sending:.1f}: it cannot make up for the {abs(paper - unloaded):.1f} ms between"
    return judge(f"{value:.1f} ms", [Comparison(close, text)])


def droptail_rtt_worst(run: Evidence) -> Finding:
    """DropTail's median RTT is the longest."""
    parts: list[Comparison] = []
    for other in (aqm for aqm in run.aqms if aqm != "droptail"):
        parts.extend(order(run, "droptail", other, RTT, "median ms"))
    return judge(across(run, "droptail", RTT, " ms", 0), parts)


def pink_rtt_at_base(run: Evidence) -> Finding:
    """PINK's RTTs lie together and close to the smallest possible."""
    parts: list[Comparison] = []
    for n in counts(run, "pink"):
        low, base, high = run.value("pink", n, RTT10), run.value("pink", n, RTT_MIN), run.value("pink", n, RTT90)
        parts.append(Comparison(high <= base * (1 + CLOSE), f"p90 {high:.1f} ms at {n} flows, smallest {base:.1f} ms"))
        parts.append(
            Comparison(high - low <= CONSTANT * base, f"p10 to p90 is {low:.1f} to {high:.1f} ms at {n} flows")
        )
    return judge(across(run, "pink", RTT90, " ms (p90)", 1), parts)


def compare_crowds(run: Evidence, aqms: tuple[str, ...]) -> Finding:
    """Whether each discipline is fairer with the most flows than with the fewest."""
    parts: list[Comparison] = []
    for aqm in aqms:
        least, most = counts(run, aqm)[0], counts(run, aqm)[-1]
        few, many = run.value(aqm, least, worst_jain), run.value(aqm, most, worst_jain)
        fairer = many > few * (1 + RISE)
        parts.append(Comparison(fairer, f"{aqm} {few:.2f} at {least}, {many:.2f} at {most} flows"))
    return judge("; ".join(part.text for part in parts), parts)


# Drops.


def pink_drops_nothing(run: Evidence) -> Finding:
    """PINK drops no packet at all."""
    parts: list[Comparison] = []
    total = 0.0
    for n in counts(run, "pink"):
        count = sum(run.values("pink", n, drops))
        total += count
        parts.append(Comparison(count == 0, f"{count:.0f} drops at {n} flows"))
    return judge(f"{total:.0f} drops in all runs", parts)


def others_drop_more_when_crowded(run: Evidence) -> Finding:
    """Without PINK the drops grow with the number of flows and come near a tenth of the goodput."""
    payload = run.experiment.payload_share
    parts: list[Comparison] = []
    shares = []
    for aqm in (aqm for aqm in run.aqms if aqm != "pink"):
        parts.extend(trend(run, aqm, drops, "number of drops", 1))
        n = counts(run, aqm)[-1]
        share = run.value(aqm, n, lambda s: dropped_mbytes(payload)(s) / delivered_mbytes(s))
        shares.append(f"{aqm} {share:.1%}")
        parts.append(
            Comparison(0.1 / FACTOR <= share <= 0.1 * FACTOR, f"{aqm} drops {share:.1%} of what arrives at {n} flows")
        )
    return judge(f"dropped to delivered with the most flows: {', '.join(shares)}", parts)


def pink_data_near_maximum(run: Evidence) -> Finding:
    """PINK carries close to all the data the link can carry in the time of the run."""
    limit = run.experiment.goodput_limit_bps * run.duration_s / 8e6
    parts: list[Comparison] = []
    for n in counts(run, "pink"):
        value = run.value("pink", n, delivered_mbytes)
        parts.append(Comparison(value >= limit * (1 - CLOSE), f"{value:.1f} of {limit:.1f} MB at {n} flows"))
    return judge(across(run, "pink", delivered_mbytes, " MB", 1), parts)


def stated_maximum(run: Evidence) -> Finding:
    """The most payload the link carries in 300 s, by the paper's own formula, is the stated value."""
    right = run.experiment.goodput_limit_bps * 300 / 8e6
    paper = run.experiment.paper["limit_mbytes"]
    text = (
        f"rate / 8 x 300 s x 1000 / 1052 is {right:.1f} MB, {abs(right - paper) / paper:.1%} from the stated {paper:g}"
    )
    binary = right * 1.024
    if abs(right - paper) > 0.005 * paper and abs(binary - paper) <= 0.005 * paper:
        text += f"; with 1024 for 1000 kbit/s it is {binary:.1f}"
    return judge(f"{right:.1f} MB", [Comparison(abs(right - paper) <= 0.005 * paper, text)])


def stated_goodput_limit(run: Evidence) -> Finding:
    """1000 B of payload in frames of 1052 B limit the goodput to the stated value."""
    stated_mbps = run.experiment.paper["goodput_mbps"]
    right = run.experiment.goodput_limit_bps / 1e6
    text = f"rate x 1000 / 1052 is {right:.2f} Mbit/s; stated is {stated_mbps:g}"
    more = right * (1 + 1e6 / run.experiment.rate_bps)
    if abs(right - stated_mbps) > 0.01 * stated_mbps and abs(more - stated_mbps) <= 0.01 * stated_mbps:
        text += f", which a link of 1 Mbit/s more has: {more:.2f}"
    return judge(f"{right:.2f} Mbit/s", [Comparison(abs(right - stated_mbps) <= 0.01 * stated_mbps, text)])
