"""Claims on Modified CoDel: thesis on bufferbloat (document 004), chapter 3.

The thesis shows most results as curves.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import ABOUT, COMPARABLE, FAR, SLIGHT
from penstock.papers.modified_codel.runs import TARGET_KB, TARGETS_MS, TESTBED, UDP_ON_S
from penstock.reproduce import columns
from penstock.reproduce.folder import numbers
from penstock.reproduce.results import Evidence, Outcome, drops
from penstock.reproduce.seconds import delays_ms, window_spread

MANY = 10  # flows: "an increase in the number of unresponsive flows"
OVERLOAD = 100  # streams: 64 Mbit/s for a link of 10
CODEL_TARGET_MS = 5.0
# Values by target, for CoDel and Modified CoDel.
PAPER_MBPS: dict[int, list[float]] = {int(target): pair for target, pair in numbers(__name__)["mbps"].items()}
PAPER_DROPS: dict[int, list[int]] = {int(target): pair for target, pair in numbers(__name__)["drops"].items()}
FIVE_S, SEGMENT_BITS = 200, 8000

CLAIMS: list[Claim] = []
codel = of(CLAIMS, "modified-codel", "004")
codel_sum = of(CLAIMS, "modified-codel", "004", varies=False)


def _queue_kb(run: Evidence, aqm: str, flows: int, setting: str) -> float:
    return run.value(aqm, flows, columns.mean_queue_kb, setting)


def _use(run: Evidence, aqm: str, flows: int, setting: str) -> float:
    return run.value(aqm, flows, columns.used_share, setting)


_KIND = {"tcp": "TCP flows", "udp": "streams"}


def _first_and_last(parts: list[Comparison]) -> str:
    return "; ".join(part.text for part in (parts[:1] + parts[-1:] if len(parts) > 1 else parts))


@codel("3.2.1", "Figure 3.4(a)", "the mean queue leaves its bounds")
def codel_queue_grows_with_streams(run: Evidence) -> Finding:
    """CoDel's mean queue grows with the number of unresponsive flows, and from ten on is beyond its target."""
    parts: list[Comparison] = []
    before = 0.0
    for n in run.counts(setting="udp"):
        queue = _queue_kb(run, "codel", n, "udp")
        text = f"{queue:.0f} kB with {n} streams"
        parts.append(Comparison(queue > before and (n < MANY or queue > TARGET_KB), text))
        before = queue
    return judge(_first_and_last(parts), parts)


@codel("3.2.2", "Figure 3.5(a)", "within bounds")
def modified_holds_the_queue(run: Evidence) -> Finding:
    """Modified CoDel keeps the mean queue within what its target allows, however many unresponsive flows there are."""
    parts: list[Comparison] = []
    for n in run.counts(setting="udp"):
        queue = _queue_kb(run, "modified-codel", n, "udp")
        parts.append(Comparison(queue <= TARGET_KB, f"{queue:.1f} kB with {n} streams, 5 ms are {TARGET_KB} kB"))
    return judge(_first_and_last(parts), parts)


@codel("3.2.2", "Figures 3.4(a) and 3.5(a)", "lower at every number of flows")
def modified_queue_is_shorter(run: Evidence) -> Finding:
    """Modified CoDel's mean queue is shorter than CoDel's, with any number of TCP flows or streams."""
    parts: list[Comparison] = []
    for setting in ("tcp", "udp"):
        for n in run.counts(setting=setting):
            ours, theirs = (_queue_kb(run, aqm, n, setting) for aqm in ("modified-codel", "codel"))
            text = f"{ours:.1f} kB after {theirs:.1f} with {n} {_KIND[setting]}"
            parts.append(Comparison(ours < theirs, text))
    return judge(_first_and_last(parts), parts)


@codel("3.4", "in the text", "limited scalability")
def modified_gives_way_to_many(run: Evidence) -> Finding:
    """Modified CoDel holds the queue for some number of unresponsive flows only: with the most it does not."""
    counts = run.counts(setting="udp")
    parts: list[Comparison] = []
    for n in counts[-1:]:
        queue = _queue_kb(run, "modified-codel", n, "udp")
        parts.append(Comparison(queue > TARGET_KB, f"{queue:.0f} kB with {n} streams, 5 ms are {TARGET_KB} kB"))
    return judge(_first_and_last(parts), parts)


@codel("3.4", "in the text", "likely better in extreme overload")
def pie_is_better_in_overload(run: Evidence) -> Finding:
    """With a hundred unresponsive flows and more, packets wait less with PIE than with CoDel."""
    parts: list[Comparison] = []
    for n in (n for n in run.counts(setting="udp") if n >= OVERLOAD):
        ours, theirs = (run.value(aqm, n, columns.delay_ms("mean"), "udp") for aqm in ("pie", "codel"))
        parts.append(Comparison(ours < theirs, f"{ours:.0f} ms, CoDel {theirs:.0f}, with {n} streams"))
    return judge(_first_and_last(parts), parts)


def _loss_of_use(run: Evidence, flows: int) -> float:
    return _use(run, "codel", flows, "tcp") - _use(run, "modified-codel", flows, "tcp")


@codel("3.2.2", "Figure 3.5(b)", "slight at first")
def modified_use_slightly_less(run: Evidence) -> Finding:
    """With any number of TCP flows Modified CoDel uses at most a tenth of the link less than CoDel."""
    parts: list[Comparison] = []
    for n in run.counts(setting="tcp"):
        ours, theirs = (_use(run, aqm, n, "tcp") for aqm in ("modified-codel", "codel"))
        parts.append(Comparison(ours >= theirs - SLIGHT, f"{ours:.1%} after {theirs:.1%} with {n} TCP flows"))
    return judge(_first_and_last(parts), parts)


@codel("3.2.2", "Figure 3.5(b)", "improves with the number of flows")
def modified_use_recovers(run: Evidence) -> Finding:
    """What Modified CoDel leaves unused, compared with CoDel, is less with the most TCP flows than with one."""
    counts = run.counts(setting="tcp")
    if len(counts) < 2:
        return judge("", [])
    first, last = _loss_of_use(run, counts[0]), _loss_of_use(run, counts[-1])
    text = f"{first:.1%} of the link less with {counts[0]}, {last:.1%} with {counts[-1]} TCP flows"
    return judge(text, [Comparison(last < first, text)])


# Five flows through half a megabit per second.


def _at_targets(run: Evidence, compare: Callable[[int, str], Comparison]) -> Finding:
    parts = [compare(t, f"five-{t}ms") for t in TARGETS_MS if run.counts("codel", setting=f"five-{t}ms")]
    return judge(_first_and_last(parts), parts)


# Each half of the modification alone, from the variants of this experiment.
_CASES = {"interval-30ms": "codel", "law-alone": "modified-codel"}


def _case_delay(run: Evidence, case: str, target: int) -> float | None:
    """The mean delay with one half of the modification; `None` where this variant was not run."""
    aqm, setting = _CASES[case], f"five-{target}ms"
    found = run.varied.get(case)
    return None if found is None else found.value(aqm, 5, columns.delay_ms("mean"), setting)


def _mean_delay(run: Evidence, aqm: str, target: int) -> float:
    return run.value(aqm, 5, columns.delay_ms("mean"), f"five-{target}ms")


def _half_delays_less(run: Evidence, case: str) -> Finding:
    parts: list[Comparison] = []
    for target in TARGETS_MS:
        ours = _case_delay(run, case, target)
        if ours is not None:
            theirs = _mean_delay(run, "codel", target)
            parts.append(Comparison(ours < theirs, f"{ours:.1f} ms after {theirs:.1f} at a target of {target} ms"))
    return judge(_first_and_last(parts), parts)


@codel("3.2.3", "Figure 3.6, by packets", "better at all four targets")
def a_shorter_interval_delays_less(run: Evidence) -> Finding:
    """With five TCP flows and any target, packets wait less with CoDel's interval of 30 ms."""
    return _half_delays_less(run, "interval-30ms")


@codel("3.2.4", "Figure 3.7, by packets", "better at all four targets")
def the_law_alone_delays_less(run: Evidence) -> Finding:
    """With five TCP flows and any target, packets wait less with the modified law and CoDel's interval."""
    return _half_delays_less(run, "law-alone")


@codel("3.2.4", "Figures 3.6 and 3.7, by packets", "less than the interval does")
def the_law_does_less_than_the_interval(run: Evidence) -> Finding:
    """The modified law alone shortens the delay by less than the interval of 30 ms alone does."""
    parts: list[Comparison] = []
    for target in TARGETS_MS:
        law, interval = (_case_delay(run, case, target) for case in ("law-alone", "interval-30ms"))
        if law is not None and interval is not None:
            parts.append(Comparison(law > interval, f"{law:.1f} and {interval:.1f} ms at a target of {target} ms"))
    return judge(_first_and_last(parts), parts)


@codel("3.2.5", "Figures 3.6 to 3.8, by packets", "more than either alone")
def both_do_more_than_either(run: Evidence) -> Finding:
    """With both changes packets wait less than with either alone, at every target."""
    parts: list[Comparison] = []
    for target in TARGETS_MS:
        halves = [_case_delay(run, case, target) for case in _CASES]
        known = [half for half in halves if half is not None]
        if len(known) == len(halves):
            both = _mean_delay(run, "modified-codel", target)
            text = f"{both:.1f} ms after {min(known):.1f} and {max(known):.1f} at a target of {target} ms"
            parts.append(Comparison(both < min(known), text))
    return judge(_first_and_last(parts), parts)


@codel("3.2.5", "Figure 3.8, by packets", "more often within the target")
def modified_delay_is_shorter(run: Evidence) -> Finding:
    """With five TCP flows and any target, packets wait less with Modified CoDel: in the mean and nine of ten."""

    def compare(target: int, setting: str) -> Comparison:
        mean, high = (
            [run.value(aqm, 5, columns.delay_ms(p), setting) for aqm in ("modified-codel", "codel")]
            for p in ("mean", "p90")
        )
        text = f"{mean[0]:.1f} ms after {mean[1]:.1f} at a target of {target} ms"
        return Comparison(mean[0] < mean[1] and high[0] <= high[1], text)

    return _at_targets(run, compare)


@codel("3.2.1", "Figure 3.3, by packets", "not controlled at any target")
def codel_misses_its_target(run: Evidence) -> Finding:
    """On half a megabit per second, CoDel does not hold the delay at its target, whatever it is."""

    def compare(target: int, setting: str) -> Comparison:
        median = run.value("codel", 5, columns.delay_ms("p50"), setting)
        return Comparison(median > target, f"median {median:.1f} ms at a target of {target} ms")

    return _at_targets(run, compare)


@codel("3.2.5", "Table 3.2, Figure 3.9", "0.41 after 0.58, 0.50 after 0.64, 0.63 after 0.76, 0.71 after 0.73")
def modified_windows_are_steadier(run: Evidence) -> Finding:
    """The windows of five TCP flows vary less with Modified CoDel, at every target."""

    def compare(target: int, setting: str) -> Comparison:
        ours, theirs = (run.cell_value((aqm, 5, setting), window_spread) or 0.0 for aqm in ("modified-codel", "codel"))
        return Comparison(ours < theirs, f"{ours:.3f} after {theirs:.3f} at a target of {target} ms")

    return _at_targets(run, compare)


def _goodput_mbps(run: Evidence, aqm: str, setting: str) -> float:
    return run.cell_value((aqm, 5, setting), columns.goodput_all_mbps) or 0.0


@codel("3.2.5", "Table 3.3, Figure 3.10", "0.370 after 0.363 to 0.393 after 0.402 Mbit/s")
def modified_throughput_is_similar(run: Evidence) -> Finding:
    """Modified CoDel's throughput is CoDel's within 5 %, at every target."""

    def compare(target: int, setting: str) -> Comparison:
        ours, theirs = (_goodput_mbps(run, aqm, setting) for aqm in ("modified-codel", "codel"))
        text = f"{ours:.3f} after {theirs:.3f} Mbit/s at a target of {target} ms"
        return Comparison(abs(ours / theirs - 1) <= COMPARABLE, text)

    return _at_targets(run, compare)


@codel("3.2.5", "Table 3.3", "0.36 to 0.41 Mbit/s")
def throughput_is_that_of_table_33(run: Evidence) -> Finding:
    """The throughput of both is that of Table 3.3 within 10 %."""
    parts: list[Comparison] = []
    for target, paper in PAPER_MBPS.items():
        for aqm, value in zip(("codel", "modified-codel"), paper, strict=True):
            ours = _goodput_mbps(run, aqm, f"five-{target}ms")
            text = f"{aqm}, target {target} ms: {ours:.3f}, in the thesis {value:.3f} Mbit/s"
            parts.append(Comparison(abs(ours / value - 1) <= ABOUT, text))
    return judge(_first_and_last(parts), parts)


@codel_sum("3.2.5", "Table 3.4", "eight counts of packets")
def counts_are_of_packets(run: Evidence) -> Finding:
    """The counts of Table 3.4 are counts of packets: not all of them are multiples of five."""
    del run
    counts = [count for both in PAPER_DROPS.values() for count in both]
    fives = sum(count % 5 == 0 for count in counts)
    text = f"{fives} of {len(counts)} are, of which the probability is 5^-{len(counts)} = {5.0 ** -len(counts):.1e}"
    return judge(text, [Comparison(fives < len(counts), text)])


@codel("3.2.5", "Table 3.4", "18 to 35 % fewer")
def modified_drops_less(run: Evidence) -> Finding:
    """Modified CoDel drops fewer packets than CoDel, at every target."""

    def compare(target: int, setting: str) -> Comparison:
        ours, theirs = (run.value(aqm, 5, drops, setting) for aqm in ("modified-codel", "codel"))
        return Comparison(ours < theirs, f"{ours:,.0f} after {theirs:,.0f} at a target of {target} ms")

    return _at_targets(run, compare)


@codel_sum("3.2.5", "Tables 3.3 and 3.4", "68,875 packets at 0.3625 Mbit/s")
def stated_drops(run: Evidence) -> Finding:
    """The drops of Table 3.4 are packets, and fewer than what Table 3.3 says was delivered in 200 s."""
    del run
    parts: list[Comparison] = []
    for target, dropped in PAPER_DROPS.items():
        delivered = PAPER_MBPS[target][0] * 1e6 * FIVE_S / SEGMENT_BITS
        text = f"{dropped[0]:,} dropped for {delivered:,.0f} delivered segments of 1000 B at a target of {target} ms"
        parts.append(Comparison(dropped[0] < delivered, text))
    return judge(parts[0].text, parts)


# The testbed of section 3.3.


def _median_delay(run: Evidence, aqm: str, name: str, udp: bool) -> float:
    def measure(outcome: Outcome) -> float:
        warmup = int(outcome.summary["warmup_s"])
        return statistics.median(v for k, v in enumerate(delays_ms(outcome)) if k >= warmup and (k in UDP_ON_S) == udp)

    return run.cell_value((aqm, 6, f"udp-{name}"), measure) or 0.0


_RATE = {"slow": "0.5 Mbit/s", "fast": "10 Mbit/s"}


@codel("3.3", "Figures 3.11(a) and 3.12(a)", "lower in both")
def modified_controls_udp_better(run: Evidence) -> Finding:
    """While UDP sends, the queue is shorter with Modified CoDel than with CoDel."""
    parts: list[Comparison] = []
    for name in TESTBED:
        ours, theirs = (_median_delay(run, aqm, name, udp=True) for aqm in ("modified-codel", "codel"))
        parts.append(Comparison(ours < theirs, f"{ours:.0f} ms after {theirs:.0f} at {_RATE[name]}"))
    return judge(_first_and_last(parts), parts)


@codel("3.3", "Figures 3.11(b) and 3.12(b)", "the same")
def modified_use_is_that_of_codel(run: Evidence) -> Finding:
    """With and without UDP, both use the link alike."""
    parts: list[Comparison] = []
    for name in TESTBED:
        ours, theirs = (_use(run, aqm, 6, f"udp-{name}") for aqm in ("modified-codel", "codel"))
        parts.append(Comparison(abs(ours - theirs) <= COMPARABLE, f"{ours:.1%} and {theirs:.1%} at {_RATE[name]}"))
    return judge(_first_and_last(parts), parts)


@codel("3.3", "Figure 3.11(a)", "never under target")
def codel_misses_its_target_on_a_slow_link(run: Evidence) -> Finding:
    """At 0.5 Mbit/s CoDel's delay is above its target with UDP and without."""
    values = {udp: _median_delay(run, "codel", "slow", udp) for udp in (False, True)}
    parts = [
        Comparison(
            value > CODEL_TARGET_MS, f"{value:.0f} ms {'with' if udp else 'without'} UDP, where one packet takes 24"
        )
        for udp, value in values.items()
    ]
    return judge(_first_and_last(parts), parts)


@codel("3.3", "Figure 3.12(a)", "well without UDP, not with it")
def codel_fails_with_udp_only(run: Evidence) -> Finding:
    """At 10 Mbit/s CoDel's queue is much longer while UDP sends than while it does not."""
    quiet, busy = (_median_delay(run, "codel", "fast", udp) for udp in (False, True))
    text = f"{busy:.0f} ms with UDP, {quiet:.0f} without"
    return judge(text, [Comparison(busy > FAR * quiet, text)])
