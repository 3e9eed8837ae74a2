"""Claims of document 003 on RED-ERN beside RED that marks (ECN) and RED that drops."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from itertools import pairwise

from penstock.claims import checks
from penstock.claims.entering import contradicts, of
from penstock.claims.ledger import Claim, Comparison, Finding, Kind, judge
from penstock.claims.words import ABOUT, CHANCE, FULL, HALF, HIGH, INDEX, MUCH
from penstock.papers.ern.runs import COUNTS, OTHERS, RATES, TARGET_MS, THREE, ftp
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, Outcome, drops

ERN, ECN, DROP = THREE
NEAR_MS = HALF * TARGET_MS  # a queueing time held
SHORT_MS = (1 + HALF) * TARGET_MS  # a low queueing time: up to the delay at the upper threshold
FIXED_RATE, FIXED_COUNT = 30, 200  # of Figures 5 and 6

MARKED = "all-marked"  # the reading in which RED-ERN and RED-ECN only mark

SLOW_START = contradicts(
    "sections II and IV.E drop packets in slow start; the figures come out only if they are marked, as IV.A and "
    'IV.B have it (RED-ERN "can only mark"): the finding ern.slow-start-must-be-dropped-and-must-not has the runs'
)
Value = Callable[[Outcome], float | None]

CLAIMS: list[Claim] = []
at = of(CLAIMS, "ern", "003")


def value(run: Evidence, aqm: str, setting: str, measure: Value) -> float:
    """The median over seeds."""
    return run.median_or_zero(aqm, setting, measure)


def fairness(run: Evidence, aqm: str, setting: str) -> float:
    """Jain's index of the bulk flows."""
    return value(run, aqm, setting, columns.fairness_of("bulk"))


def waiting(run: Evidence, aqm: str, setting: str) -> float:
    """The mean time in the queue."""
    return value(run, aqm, setting, columns.queue_delay_ms)


def counts(run: Evidence) -> list[int]:
    """The numbers of flows at 30 Mbit/s that have results."""
    return [count for count in COUNTS if ftp(FIXED_RATE, count) in run.settings]


def rates(run: Evidence) -> list[int]:
    """The rates with 200 flows that have results."""
    return [rate for rate in RATES if ftp(rate, FIXED_COUNT) in run.settings]


def grid(run: Evidence) -> list[str]:
    """All settings with bulk flows only and without the link of 1 Mbit/s."""
    return [setting for setting in run.settings if setting.startswith("ftp-")]


def mean(run: Evidence, aqm: str, measure: Value) -> float:
    """Over the grid, as Figure 4 has it."""
    return statistics.fmean([value(run, aqm, setting, measure) for setting in grid(run)])


def _others(run: Evidence, kind: str) -> list[tuple[int, str]]:
    return [(count, f"{kind}-{count}") for count in OTHERS if f"{kind}-{count}" in run.settings]


def _name(aqm: str) -> str:
    return aqm.upper()


# A. General results.


@at("IV.A", "Figure 4 (a)", "above by 6 and 10 %", because=SLOW_START)
def ern_is_fairest_on_average(run: Evidence) -> Finding:
    """Averaged over rates and numbers of flows RED-ERN is fairer than RED-ECN by about 6 % and RED-DROP by 10 %."""
    ours = mean(run, ERN, columns.fairness_of("bulk"))
    parts: list[Comparison] = []
    for other, gain in ((ECN, 0.06), (DROP, 0.10)):
        theirs = mean(run, other, columns.fairness_of("bulk"))
        text = f"{_name(ERN)} {ours:.3f}, {_name(other)} {theirs:.3f}: {ours / theirs - 1:+.0%}"
        parts.append(Comparison(ours >= theirs * (1 + gain), text))
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.A", "Figure 4 (b)", "nearly optimal")
def all_use_the_link(run: Evidence) -> Finding:
    """Averaged over rates and numbers of flows all three use nearly all of the link."""
    parts = [
        Comparison(used >= FULL, f"{_name(aqm)} {used:.1%}")
        for aqm, used in ((aqm, mean(run, aqm, columns.use)) for aqm in THREE)
    ]
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.A", "Figure 4 (c)", "2.5 and 2 times fewer")
def ern_drops_less(run: Evidence) -> Finding:
    """RED-ERN drops 2.5 times fewer packets than RED-DROP and 2 times fewer than RED-ECN."""
    lost = {aqm: mean(run, aqm, lambda outcome: drops(outcome.summary)) for aqm in THREE}
    parts: list[Comparison] = []
    for other, factor in ((DROP, 2.5), (ECN, 2.0)):
        text = f"{_name(ERN)} {lost[ERN]:,.0f}, {_name(other)} {lost[other]:,.0f} in a run"
        parts.append(Comparison(lost[ERN] * factor <= lost[other], text))
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.A", "Figure 4 (d)", "a great gap")
def dropping_waits_least(run: Evidence) -> Finding:
    """Averaged over rates and numbers of flows packets wait much less with RED-DROP than with the other two."""
    ours = mean(run, DROP, columns.queue_delay_ms)
    parts: list[Comparison] = []
    for other in (ERN, ECN):
        theirs = mean(run, other, columns.queue_delay_ms)
        text = f"{_name(DROP)} {ours:.1f} ms, {_name(other)} {theirs:.1f} ms"
        parts.append(Comparison(theirs >= MUCH * ours, text))
    return judge("; ".join(part.text for part in parts), parts)


# B. The number of flows, at 30 Mbit/s.


@at("IV.B", "Figure 5 (a)", "in the vicinity of 85 %", because=SLOW_START)
def ern_fairness_near_085(run: Evidence) -> Finding:
    """At 30 Mbit/s RED-ERN's index of fairness is near 85 % with any number of flows."""
    parts = [
        Comparison(abs(index - 0.85) <= ABOUT * 0.85, f"{index:.2f} with {count} flows")
        for count, index in ((count, fairness(run, ERN, ftp(FIXED_RATE, count))) for count in counts(run))
    ]
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.B", "Figure 5 (a)", "up to 20 %")
def ern_leads_most_with_few_flows(run: Evidence) -> Finding:
    """At 30 Mbit/s with 50 flows RED-ERN's index of fairness is 20 points above the others'."""
    setting = ftp(FIXED_RATE, 50)
    ours = fairness(run, ERN, setting)
    parts: list[Comparison] = []
    for other in (ECN, DROP):
        theirs = fairness(run, other, setting)
        parts.append(Comparison(ours - theirs >= 0.20 - INDEX, f"{_name(ERN)} {ours:.2f}, {_name(other)} {theirs:.2f}"))
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.B", "Figure 5 (a)", "4 to 8 %", because=SLOW_START)
def the_lead_shrinks_with_flows(run: Evidence) -> Finding:
    """At 30 Mbit/s with 800 flows RED-ERN is still fairer, but by less than 10 points."""
    setting = ftp(FIXED_RATE, 800)
    ours = fairness(run, ERN, setting)
    parts: list[Comparison] = []
    for other in (ECN, DROP):
        theirs = fairness(run, other, setting)
        text = f"{_name(ERN)} {ours:.2f}, {_name(other)} {theirs:.2f}"
        parts.append(Comparison(0 < ours - theirs <= 0.10, text))
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.B", "Figure 5 (b)", "rising lines")
def waiting_grows_with_flows(run: Evidence) -> Finding:
    """At 30 Mbit/s queueing time grows with the number of flows, for all three."""
    parts: list[Comparison] = []
    for aqm in THREE:
        values = [waiting(run, aqm, ftp(FIXED_RATE, count)) for count in counts(run)]
        rising = all(b > a * (1 + CHANCE) for a, b in pairwise(values))
        parts.append(Comparison(rising, f"{_name(aqm)} {', '.join(f'{v:.1f}' for v in values)} ms"))
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.B", "Figure 5 (b)", "14 ms for RED-DROP only")
def only_dropping_holds_the_target(run: Evidence) -> Finding:
    """At 30 Mbit/s with 800 flows RED-DROP holds its 14 ms within half; RED-ECN and RED-ERN do not."""
    setting = ftp(FIXED_RATE, 800)
    parts: list[Comparison] = []
    for aqm in THREE:
        got = waiting(run, aqm, setting)
        held = abs(got - TARGET_MS) <= NEAR_MS
        parts.append(Comparison(held == (aqm == DROP), f"{_name(aqm)} {got:.1f} ms"))
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.B", "in the text", "the queue overflows", because=SLOW_START)
def marking_overflows_the_queue(run: Evidence) -> Finding:
    """At 30 Mbit/s with 800 flows the queue overflows with RED-ECN and RED-ERN."""
    setting = ftp(FIXED_RATE, 800)
    parts: list[Comparison] = []
    for aqm in (ERN, ECN):
        lost = value(run, aqm, setting, lambda o: float(o.summary["bottlenecks"][0]["drops_overflow"]))
        longest = value(run, aqm, setting, columns.queue_max_kb)
        parts.append(Comparison(lost > 0, f"{_name(aqm)} {lost:,.0f} for want of room, longest {longest:.0f} kB"))
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.B", "in the text", "26 %")
def dropping_starves_many_flows(run: Evidence) -> Finding:
    """With 800 flows on 1 Mbit/s RED-DROP's index of fairness is that of the text."""
    return checks.decide([checks.index(fairness(run, DROP, "starved"), 0.26, _name(DROP))])


@at("IV.B", "in the text", "above 75 %")
def marking_does_not_starve(run: Evidence) -> Finding:
    """With 800 flows on 1 Mbit/s RED-ECN's and RED-ERN's index of fairness is above 75 %."""
    parts = [
        Comparison(index > 0.75, f"{_name(aqm)} {index:.2f}")
        for aqm, index in ((aqm, fairness(run, aqm, "starved")) for aqm in (ERN, ECN))
    ]
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.B", "Figure 5 (b)", "ERN robust, ECN not")
def ern_holds_the_target_longer_than_ecn(run: Evidence) -> Finding:
    """At 30 Mbit/s with up to 200 flows RED-ERN's queueing time is closer to 14 ms than RED-ECN's."""
    parts: list[Comparison] = []
    for count in (count for count in counts(run) if count <= 200):
        ours, theirs = (waiting(run, aqm, ftp(FIXED_RATE, count)) for aqm in (ERN, ECN))
        text = f"{count} flows: {_name(ERN)} {ours:.1f} ms, {_name(ECN)} {theirs:.1f} ms"
        parts.append(Comparison(abs(ours - TARGET_MS) < abs(theirs - TARGET_MS), text))
    return judge("; ".join(part.text for part in parts), parts)


def _slow_start(run: Evidence, setting: str) -> list[Comparison]:
    """Whether RED-ERN is unfair where packets in slow start are dropped, and fair where they are marked."""
    marked = run.varied.get(MARKED)
    if marked is None or setting not in run.settings:
        return []
    dropped, told = (fairness(one, ERN, setting) for one in (run, marked))
    where = f"{setting.split('-')[2]} flows at {setting.split('-')[1]} Mbit/s"
    return [
        Comparison(dropped < HIGH - INDEX, f"{where}, slow start dropped: {dropped:.2f}"),
        Comparison(told >= HIGH, f"{where}, slow start marked: {told:.2f}"),
    ]


@at("II, IV.B", "Figures 5 (a) and 6 (a), in the text", "dropped, and 85 %", Kind.OWN)
def slow_start_must_be_dropped_and_must_not(run: Evidence) -> Finding:
    """Slow start is to be dropped (II, IV.E): then RED-ERN starves flows; marked, it is as fair as in the figures."""
    parts = [part for setting in (ftp(5, FIXED_COUNT), ftp(FIXED_RATE, 800)) for part in _slow_start(run, setting)]
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.E", "in the text", "RED-ERN drops what RED-ECN marks", Kind.OWN)
def what_is_done_to_slow_start_does_not_matter_beside_http(run: Evidence) -> Finding:
    """Beside HTTP sessions RED-ERN's packets wait about as long whether slow start is dropped or marked."""
    marked = run.varied.get(MARKED)
    parts = [
        checks.alike(("dropped", waiting(run, ERN, s)), ("marked", waiting(marked, ERN, s)), f"{count} sessions", " ms")
        for count, s in _others(run, "http")
        if marked is not None and s in marked.settings
    ]
    return checks.decide(parts)


# C. The rate, with 200 flows.


@at("IV.C", "Figure 6 (a)", "high at 5 Mbit/s", because=SLOW_START)
def all_are_fair_on_a_slow_link(run: Evidence) -> Finding:
    """With 200 flows on 5 Mbit/s all three have a high index of fairness."""
    parts = [
        Comparison(index >= HIGH, f"{_name(aqm)} {index:.2f}")
        for aqm, index in ((aqm, fairness(run, aqm, ftp(5, FIXED_COUNT))) for aqm in THREE)
    ]
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.C", "Figure 6 (a)", "in the vicinity of 60 %")
def red_is_unfair_on_a_fast_link(run: Evidence) -> Finding:
    """With 200 flows on 50 Mbit/s the index of RED-ECN and RED-DROP falls to about 60 %."""
    parts: list[Comparison] = []
    for aqm in (ECN, DROP):
        slow, fast = (fairness(run, aqm, ftp(rate, FIXED_COUNT)) for rate in (5, 50))
        text = f"{_name(aqm)} {fast:.2f} after {slow:.2f}"
        parts.append(Comparison(fast < slow and abs(fast - 0.6) <= ABOUT * 0.6, text))
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.C", "Figure 6 (a)", "above 80 %", because=SLOW_START)
def ern_is_fair_at_any_rate(run: Evidence) -> Finding:
    """With 200 flows RED-ERN's index of fairness is above 80 % at any rate."""
    parts = [
        Comparison(index > HIGH, f"{index:.2f} at {rate} Mbit/s")
        for rate, index in ((rate, fairness(run, ERN, ftp(rate, FIXED_COUNT))) for rate in rates(run))
    ]
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.C", "Figure 6 (b)", "falling lines")
def marking_waits_less_on_faster_links(run: Evidence) -> Finding:
    """With 200 flows RED-ERN's and RED-ECN's queueing times fall with the rate."""
    parts: list[Comparison] = []
    for aqm in (ERN, ECN):
        values = [waiting(run, aqm, ftp(rate, FIXED_COUNT)) for rate in rates(run)]
        falling = all(b < a * (1 - CHANCE) for a, b in pairwise(values))
        parts.append(Comparison(falling, f"{_name(aqm)} {', '.join(f'{v:.1f}' for v in values)} ms"))
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.C", "Figure 6 (b)", "controlled at any rate")
def dropping_holds_the_target_at_any_rate(run: Evidence) -> Finding:
    """With 200 flows RED-DROP holds its 14 ms within half, at any rate."""
    parts = [
        Comparison(abs(got - TARGET_MS) <= NEAR_MS, f"{got:.1f} ms at {rate} Mbit/s")
        for rate, got in ((rate, waiting(run, DROP, ftp(rate, FIXED_COUNT))) for rate in rates(run))
    ]
    return judge("; ".join(part.text for part in parts), parts)


# D. UDP flows, and E. HTTP flows.


def _each(run: Evidence, kind: str, aqms: Iterable[str], measure: Value, text: str) -> list[tuple[float, str]]:
    return [
        (got, f"{_name(aqm)} {text.format(got)} with {count}")
        for count, setting in _others(run, kind)
        for aqm in aqms
        for got in (value(run, aqm, setting, measure),)
    ]


@at("IV.D", "Figure 7 (a)", "high", because=SLOW_START)
def ern_is_fair_beside_udp(run: Evidence) -> Finding:
    """Beside 200 to 800 UDP flows RED-ERN keeps a high fairness among 50 FTP flows."""
    found = _each(run, "udp", (ERN,), columns.fairness_of("bulk"), "{:.2f}")
    parts = [Comparison(got >= HIGH, text) for got, text in found]
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.D", "in the text", "96 to 99 %")
def udp_flows_share_alike(run: Evidence) -> Finding:
    """Among UDP flows the index of fairness is at least 96 %, for all three."""
    found = _each(run, "udp", THREE, columns.fairness_of("cbr"), "{:.3f}")
    parts = [Comparison(got >= 0.96, text) for got, text in found]
    return judge("; ".join(part.text for part in parts[:3]), parts)


@at("IV.D", "Figure 7 (b)", "low, slightly impacted")
def udp_does_not_fill_the_queue(run: Evidence) -> Finding:
    """Beside UDP flows, which are dropped, all three keep queueing times low."""
    found = _each(run, "udp", THREE, columns.queue_delay_ms, "{:.1f} ms")
    parts = [Comparison(got <= SHORT_MS, text) for got, text in found]
    return judge("; ".join(part.text for part in parts), parts)


def _beside_http(run: Evidence, measure: Value, text: str) -> Finding:
    parts: list[Comparison] = []
    for count, setting in _others(run, "http"):
        ours = value(run, ERN, setting, measure)
        for other in (ECN, DROP):
            theirs = value(run, other, setting, measure)
            said = f"{count} sessions: {_name(ERN)} {text.format(ours)}, {_name(other)} {text.format(theirs)}"
            parts.append(Comparison(ours > theirs, said))
    return judge("; ".join(part.text for part in parts), parts)


@at("IV.E", "Figure 8 (a)", "by up to 13 and 5 %")
def ern_uses_more_beside_http(run: Evidence) -> Finding:
    """Beside HTTP sessions RED-ERN uses more of the link than the other two."""
    return _beside_http(run, columns.use, "{:.1%}")


@at("IV.E", "Figure 8 (b)", "by 10 %")
def ern_is_fairer_beside_http(run: Evidence) -> Finding:
    """Beside HTTP sessions RED-ERN is fairer among FTP flows than the other two."""
    return _beside_http(run, columns.fairness_of("bulk"), "{:.2f}")


@at("IV.E", "Figure 8 (c)", "low, not for RED-ECN")
def ecn_waits_longer_beside_http(run: Evidence) -> Finding:
    """Beside HTTP sessions RED-DROP and RED-ERN keep queueing times low, and RED-ECN does not."""
    found = _each(run, "http", THREE, columns.queue_delay_ms, "{:.1f} ms")
    parts = [Comparison((got <= SHORT_MS) != text.startswith(_name(ECN)), text) for got, text in found]
    return judge("; ".join(part.text for part in parts), parts)
