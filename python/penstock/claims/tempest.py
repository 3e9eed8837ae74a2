"""Claims on packet schedulers: document 002, section 4.3.3, Figures 4.18 to 4.24.

The document's times are those of a machine of 2012. Only ratios of times taken in one experiment are compared, of the
schedulers alone where the harness would hide them. What an eye would read from a figure is a constant below.
Figure 4.23 is read as Figure 4.12 of the same test, which says that it shows flows whose stations lose at most a fifth.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator
from dataclasses import replace

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.reproduce import tempest
from penstock.reproduce.results import Evidence

CLOSE = 1.5  # "close to": of times
FLAT = 2.0  # "constant": from 100 flows on, of whole times; the caches have their part in it
RISES = 1.3  # "grows": of the scheduler's time
MPPS = 40.0
OPTIMAL_PACKETS = 0.5  # "between 0 and 0.5 packets"
MORE_THAN_DOUBLE = 2.0
NEAR_90 = 0.05  # "close to 0.9"
NEAR_WF2Q = 0.25  # "close to the optimal ones": of the way from WF2Q+ to DRR
SMALL_Q = 10  # "small buffer size Q"
AROUND = 0.25  # "circa 8 ms", "circa 110 ms"
LARGE_Q = 100  # "higher than 100 packets"
HIGH = 0.9
TOP_WEIGHT = 20

CLAIMS: list[Claim] = []
time = of(CLAIMS, "tempest-time", "002")
growth = of(CLAIMS, "tempest-growth", "002")
fairness = of(CLAIMS, "tempest-fairness", "002")
t_wfi = of(CLAIMS, "tempest-twfi", "002")
throughput = of(CLAIMS, "tempest-throughput", "002")


def _report(run: Evidence, alg: str, setting: str, key: str) -> float:
    """The median over seeds of a number of the report."""
    return statistics.median(tempest.value(o.summary, key) or 0.0 for o in run.runs(alg, setting=setting))


def _top(run: Evidence, alg: str, setting: str, key: str) -> float:
    """The same of the flows of the largest weight."""
    return statistics.median(tempest.top(o.summary, key) or 0.0 for o in run.runs(alg, setting=setting))


def _said(parts: list[Comparison]) -> Finding:
    return judge("; ".join(part.text for part in parts[:4]), parts)


def _good(run: Evidence, alg: str, setting: str) -> float:
    """T-WFI of the heaviest flows that go to good stations."""
    return statistics.median(tempest.good(o.summary, "t_wfi_ms") or 0.0 for o in run.runs(alg, setting=setting))


# What a packet costs.


def _ratio(run: Evidence, one: str, other: str, setting: str) -> float:
    return _report(run, one, setting, "ns_per_packet") / _report(run, other, setting, "ns_per_packet")


def _close_to_drr(run: Evidence, pattern: str) -> Finding:
    settings = [setting for setting in run.settings if setting.startswith(pattern)]
    ratios = {setting: _ratio(run, "qfq-plus", "drr", setting) for setting in settings}
    return _said(
        [Comparison(r <= CLOSE, f"{setting}: QFQ+ takes {r:.2f} times DRR's") for setting, r in ratios.items()]
    )


@time("4.3.3.1", "Figure 4.18", "close to DRR")
def qfq_plus_costs_about_what_drr_does(run: Evidence) -> Finding:
    """With smooth arrivals a packet takes about as long with QFQ+ as with DRR."""
    return _close_to_drr(run, "smooth")


@time("4.3.3.1", "Figure 4.19", "close to DRR")
def so_it_does_with_bursts(run: Evidence) -> Finding:
    """With arrivals in bursts a packet takes about as long with QFQ+ as with DRR."""
    return _close_to_drr(run, "bursty")


@time("4.3.3.1", "Figure 4.18, 32k-w1", "faster than DRR")
def qfq_plus_overtakes_drr(run: Evidence) -> Finding:
    """With 32,000 flows of weight 1 and smooth arrivals QFQ+ takes less time than DRR."""
    ratio = _ratio(run, "qfq-plus", "drr", "smooth-32k-w1")
    return _said([Comparison(ratio < 1, f"QFQ+ takes {ratio:.2f} times DRR's")])


@time("4.3.2.4", "DRR, QFQ, QFQ+", "QFQ+ between DRR and QFQ")
def qfq_plus_is_faster_than_qfq(run: Evidence) -> Finding:
    """QFQ+ takes less time than QFQ."""
    ratios = {setting: _ratio(run, "qfq-plus", "qfq", setting) for setting in run.settings}
    return _said([Comparison(r < 1, f"{setting}: QFQ+ takes {r:.2f} times QFQ's") for setting, r in ratios.items()])


@time("4.3.3.1", "Figures 4.18 and 4.19", "WF2Q+ is the slowest")
def wf2q_plus_costs_most(run: Evidence) -> Finding:
    """WF2Q+ takes longer than DRR, QFQ and QFQ+."""
    parts = []
    for setting in run.settings:
        times = {alg: _report(run, alg, setting, "ns_per_packet") for alg in run.aqms}
        slowest = max(times, key=times.__getitem__)
        text = f"{setting}: " + ", ".join(f"{alg} {ns / times['drr']:.2f}" for alg, ns in times.items())
        parts.append(Comparison(slowest == "wf2q-plus", f"{text} times DRR's"))
    return _said(parts)


@time("4.3", "section 4.3", "40 Mpps and more")
def traffic_is_generated_at_40_mpps(run: Evidence) -> Finding:
    """The harness generates traffic at 40 million packets per second and more."""
    rates = {s: 1e3 / _report(run, "drr", s, "ns_harness") for s in run.settings if s.endswith("1k-w1")}
    return _said(
        [Comparison(r >= MPPS, f"{setting}: {r:.0f} Mpps without a scheduler") for setting, r in rates.items()]
    )


# Over the number of flows.


def _grows(run: Evidence, alg: str, key: str) -> float:
    """Times at 30,000 flows over those at 100."""
    return _report(run, alg, "n-30000", key) / _report(run, alg, "n-100", key)


@growth("4.3.3.1", "Figure 4.20", "constant")
def simple_schedulers_do_not_grow(run: Evidence) -> Finding:
    """The times of FIFO, DRR, KPS and QFQ+ do not depend on the number of flows."""
    ratios = {alg: _grows(run, alg, "ns_per_packet") for alg in ("fifo", "drr", "kps", "qfq-plus")}
    return _said([Comparison(r <= FLAT, f"{alg}: {r:.2f} times from 100 to 30,000 flows") for alg, r in ratios.items()])


@growth("4.3.3.1", "Figure 4.20", "O(log n)")
def wf2q_plus_grows(run: Evidence) -> Finding:
    """The time of WF2Q+ grows with the number of flows."""
    ratio = _grows(run, "wf2q-plus", "ns_scheduler")
    return _said([Comparison(ratio >= RISES, f"the scheduler takes {ratio:.2f} times from 100 to 30,000 flows")])


def _faster(run: Evidence, counts: tuple[int, ...], wf2q_wins: bool) -> Iterator[Comparison]:
    for n in counts:
        ratio = _ratio(run, "wf2q-plus", "kps", f"n-{n}")
        text = f"{n:,} flows: WF2Q+ takes {ratio:.2f} times KPS's"
        yield Comparison((ratio < 1) == wf2q_wins, text)


@growth("4.3.3.1", "Figure 4.20", "up to a few hundred flows")
def wf2q_plus_is_faster_than_kps_with_few_flows(run: Evidence) -> Finding:
    """With up to a hundred flows WF2Q+ takes less time than KPS, in spite of its complexity."""
    return _said([*_faster(run, (1, 3, 10, 30, 100), True)])


@growth("4.3.3.1", "Figure 4.20", "beyond a few hundred flows")
def kps_is_faster_with_many(run: Evidence) -> Finding:
    """With a thousand flows and more KPS takes less time than WF2Q+."""
    return _said([*_faster(run, (1000, 3000, 10000, 30000), False)])


# What is guaranteed. Beside B-WFI stands what it is over intervals that begin when the flow was idle. Either may begin
# when the flow is ahead of its share by 1 - phi, which a bound of one packet leaves out.


def _lag(run: Evidence, alg: str, weight: int) -> float:
    return _top(run, alg, f"w-{weight}", "lag_packets")


@fairness("4.3.3.2", "Figure 4.21", "below the bounds of theory")
def measured_b_wfi_is_below_theory(run: Evidence) -> Finding:
    """B-WFI of each scheduler stays below its theoretical bound for each weight."""
    parts = []
    for alg in run.aqms:
        for w in tempest.WEIGHTS:
            ours, bound = _top(run, alg, f"w-{w}", "b_wfi_packets"), tempest.b_wfi_bound(alg, w) or 0.0
            text = f"{alg}, weight {w}: {ours:.2f} of at most {bound:.1f} packets ({_lag(run, alg, w):.2f} since idle)"
            parts.append(Comparison(ours <= bound, text))
    return _said(parts)


@fairness("4.3.3.2", "Figure 4.21", "between 0 and 0.5 packets")
def wf2q_plus_and_qfq_are_near_the_optimum(run: Evidence) -> Finding:
    """B-WFI of WF2Q+ and QFQ is at most half a packet for each weight of the heavy flow."""
    parts = []
    for alg in ("wf2q-plus", "qfq"):
        for w in tempest.WEIGHTS:
            ours = _top(run, alg, f"w-{w}", "b_wfi_packets")
            text = f"{alg}, weight {w}: {ours:.2f} packets ({_lag(run, alg, w):.2f} since idle)"
            parts.append(Comparison(ours <= OPTIMAL_PACKETS, text))
    return _said(parts)


@fairness("4.3.3.2", "Figure 4.21", "under the bound of QFQ")
def qfq_plus_is_under_the_bound_of_qfq(run: Evidence) -> Finding:
    """B-WFI of QFQ+ is below the bound of QFQ, about 5 packets."""
    values = {w: _top(run, "qfq-plus", f"w-{w}", "b_wfi_packets") for w in tempest.WEIGHTS}
    return _said([Comparison(v < tempest.QFQ_B_WFI, f"weight {w}: {v:.2f} packets") for w, v in values.items()])


@fairness("4.3.3.2", "Figure 4.21", "DRR far above")
def drr_falls_behind_most(run: Evidence) -> Finding:
    """B-WFI of DRR is far above that of QFQ and QFQ+ when weights differ."""
    parts = []
    for w in tempest.WEIGHTS[1:]:
        drr = _top(run, "drr", f"w-{w}", "b_wfi_packets")
        for alg in ("qfq", "qfq-plus"):
            ours = _top(run, alg, f"w-{w}", "b_wfi_packets")
            text = f"weight {w}: DRR {drr:.2f}, {alg} {ours:.2f} packets"
            parts.append(Comparison(drr >= MORE_THAN_DOUBLE * ours, text))
    return _said(parts)


@fairness("4.3.3.2", "Figure 4.22", "DRR always highest")
def drr_delays_the_heavy_flow_most(run: Evidence) -> Finding:
    """The longest wait of the heavy flow is longer with DRR than with the others."""
    parts = []
    for w in tempest.WEIGHTS:
        waits = {alg: _top(run, alg, f"w-{w}", "max_delay_dequeues") for alg in run.aqms}
        text = f"weight {w}: " + ", ".join(f"{alg} {wait:,.0f}" for alg, wait in waits.items())
        parts.append(Comparison(all(waits["drr"] > wait for alg, wait in waits.items() if alg != "drr"), text))
    return _said(parts)


@fairness("4.3.3.2", "Figure 4.22", "more than double above 50")
def above_fifty_more_than_double(run: Evidence) -> Finding:
    """From weight 100 on the heavy flow waits more than twice as long with DRR as with QFQ and QFQ+."""
    parts = []
    for w in (w for w in tempest.WEIGHTS if w > 50):
        drr = _top(run, "drr", f"w-{w}", "max_delay_dequeues")
        for alg in ("qfq", "qfq-plus"):
            ratio = drr / _top(run, alg, f"w-{w}", "max_delay_dequeues")
            parts.append(Comparison(ratio > MORE_THAN_DOUBLE, f"weight {w}: {ratio:.2f} times that of {alg}"))
    return _said(parts)


@fairness("4.3.3.2", "Figure 4.22", "QFQ and QFQ+ before WF2Q+")
def qfq_and_qfq_plus_delay_least(run: Evidence) -> Finding:
    """The longest wait of the heavy flow is shorter with QFQ and QFQ+ than with WF2Q+ when its weight is large."""
    parts = []
    for w in (w for w in tempest.WEIGHTS if w > 50):
        exact = _top(run, "wf2q-plus", f"w-{w}", "max_delay_dequeues")
        for alg in ("qfq", "qfq-plus"):
            ours = _top(run, alg, f"w-{w}", "max_delay_dequeues")
            parts.append(Comparison(ours < exact, f"weight {w}: {alg} {ours:,.0f}, WF2Q+ {exact:,.0f} departures"))
    return _said(parts)


# The modular architecture.


def _below_bound(run: Evidence, alg: str) -> Finding:
    ours, bound = _good(run, alg, tempest.WIRED), tempest.t_wfi_bound_ms(alg, TOP_WEIGHT)
    return _said([Comparison(ours < bound, f"{ours:.1f} ms of at most {bound:.0f} ms")])


def _about(run: Evidence, alg: str, paper_ms: float) -> Finding:
    ours = _good(run, alg, tempest.WIRED)
    return _said([Comparison(abs(ours - paper_ms) <= AROUND * paper_ms, f"{ours:.1f} ms, the paper {paper_ms:g} ms")])


@t_wfi("4.3.3.2", "the bound of WF2Q+", "below 17 ms")
def wf2q_plus_is_below_its_bound(run: Evidence) -> Finding:
    """T-WFI of the heaviest flows with WF2Q+ is below what theory allows."""
    return _below_bound(run, "wf2q-plus")


@t_wfi("4.3.3.2", "the bound of DRR", "below 199 ms")
def drr_is_below_its_bound(run: Evidence) -> Finding:
    """T-WFI of the heaviest flows with DRR is below what theory allows."""
    return _below_bound(run, "drr")


@t_wfi("4.3.3.2", "Figure 4.23", "circa 8 ms")
def wf2q_plus_has_eight_milliseconds(run: Evidence) -> Finding:
    """T-WFI of the heaviest flows with WF2Q+ is about 8 ms."""
    return _about(run, "wf2q-plus", 8.0)


@t_wfi("4.3.3.2", "Figure 4.23", "circa 110 ms")
def drr_has_110_milliseconds(run: Evidence) -> Finding:
    """T-WFI of the heaviest flows with DRR is about 110 ms."""
    found = _about(run, "drr", 110.0)
    qmax = int(tempest.EMERGENCY["qmax"])
    most = tempest.waiting_bound_ms(qmax, TOP_WEIGHT)
    limit = f"with {qmax} packets in all, as Table 4.5 has it, no scheduler has more than {most:.1f} ms"
    return replace(found, measured=f"{found.measured}; {limit}")


@t_wfi("4.3.3.2", "Figure 4.23", "close to WF2Q+")
def with_a_small_buffer_hfs_is_near_wf2q_plus(run: Evidence) -> Finding:
    """With a small buffer between its layers T-WFI of HFS is close to that of WF2Q+."""
    exact, drr = (_good(run, alg, tempest.WIRED) for alg in ("wf2q-plus", "drr"))
    values = {q: _good(run, "hfs", f"q-{q}") for q in tempest.BUFFERS if q <= SMALL_Q}
    parts = []
    for q, ours in values.items():
        text = f"Q = {q}: {ours:.1f}, WF2Q+ {exact:.1f}, DRR {drr:.1f} ms"
        parts.append(Comparison(ours - exact <= NEAR_WF2Q * (drr - exact), text))
    return _said(parts)


@t_wfi("4.3.3.2", "Figure 4.23", "grows with Q, below DRR")
def hfs_stays_below_drr(run: Evidence) -> Finding:
    """T-WFI of HFS stays below that of DRR up to Q = 250."""
    drr = _good(run, "drr", tempest.WIRED)
    values = {q: _good(run, "hfs", f"q-{q}") for q in tempest.BUFFERS}
    return _said([Comparison(v < drr, f"Q = {q}: {v:.1f}, DRR {drr:.1f} ms") for q, v in values.items()])


@throughput("4.3.3.3", "Figure 4.24", "close to 0.9")
def the_integrated_scheduler_reaches_ninety_percent(run: Evidence) -> Finding:
    """The normalized throughput of W2F2Q is close to 0.9 with a threshold of 80 %."""
    ours = _report(run, "w2f2q", "integrated", "throughput")
    flows = run.runs("w2f2q", setting="integrated")[0].summary["flows_detail"]
    served = {flow["station"] for flow in flows if flow["packets"]}
    text = f"{ours:.3f}, with {len(served)} of {tempest.STATIONS} stations above the threshold"
    return _said([Comparison(abs(ours - HIGH) <= NEAR_90, text)])


@throughput("4.3.3.3", "Figure 4.24", "over 90 % when Q is higher than 100 packets")
def hfs_passes_ninety_percent(run: Evidence) -> Finding:
    """The normalized throughput of HFS is above 0.9 when its buffer holds more than 100 packets."""
    values = {q: _report(run, "hfs", f"q-{q}", "throughput") for q in tempest.BUFFERS if q > LARGE_Q}
    return _said([Comparison(v > HIGH, f"Q = {q}: {v:.3f}") for q, v in values.items()])


@throughput("4.3.3.3", "Figure 4.24", "rises with Q")
def a_larger_buffer_gives_hfs_more_throughput(run: Evidence) -> Finding:
    """The normalized throughput of HFS rises with the size of its buffer."""
    values = [(q, _report(run, "hfs", f"q-{q}", "throughput")) for q in tempest.BUFFERS]
    pairs = itertools.pairwise(values)
    return _said([Comparison(b >= a, f"Q = {p} to {q}: {a:.3f} to {b:.3f}") for (p, a), (q, b) in pairs])


@throughput("4.3.3.3", "Figure 4.24", "DRR beside the radio does not boost")
def drr_beside_the_radio_gives_less(run: Evidence) -> Finding:
    """With DRR in the second layer throughput is lower than with QFQ+, and a buffer raises it at most half as much."""
    blind = {alg: _report(run, alg, f"q-{tempest.BUFFERS[0]}", "throughput") for alg in ("hfs-drr", "hfs")}
    parts = []
    for q in (q for q in tempest.BUFFERS if q >= LARGE_Q):
        ours, hfs = (_report(run, alg, f"q-{q}", "throughput") for alg in blind)
        parts.append(Comparison(ours < hfs, f"Q = {q}: {ours:.3f} with DRR, {hfs:.3f} with QFQ+"))
        more, most = ours - blind["hfs-drr"], hfs - blind["hfs"]
        parts.append(Comparison(more <= most / 2, f"Q = {q}: up by {more:.3f} with DRR, by {most:.3f} with QFQ+"))
    return _said(parts)
