"""Claims on Minstrel PIE: thesis on bufferbloat (document 004), chapter 4.

The thesis shows most results as curves.
"""

from __future__ import annotations

import statistics

from penstock.claims.entering import contradicts, of
from penstock.claims.ledger import Claim, Comparison, Finding, Kind, judge
from penstock.claims.words import ABOUT, CLOSE, COMPARABLE, FAIR, HALF, MUCH, NEGLIGIBLE, SAME_INDEX, SLIGHT
from penstock.papers.minstrel_pie.runs import BUFFERS, CONGESTION, HIGHEST_MS, LOWEST_MS, PIES
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, rtt_ms
from penstock.reproduce.seconds import after_warmup

_FLOWS = {"light": 5, "heavy": 50, "mix": 7, "one-each": 2, "udp-alone": 1} | {n: c for n, (c, _) in CONGESTION.items()}
_NAMES = {"pie": "PIE", "minstrel-pie": "Minstrel PIE", "droptail": "drop-tail"}

APART = contradicts(
    f"section 4.3.1 B has PIE around its reference of {HIGHEST_MS:g} ms and Minstrel PIE near the lower bound of its "
    f"own, {LOWEST_MS:g} ms, where enough TCP flows keep the link busy: {1 - LOWEST_MS / HIGHEST_MS:.0%} less, which "
    f"is not within {COMPARABLE:.0%}"
)

CLAIMS: list[Claim] = []
pie = of(CLAIMS, "minstrel-pie", "004")


def _delay(run: Evidence, aqm: str, setting: str, percentile: str = "mean") -> float:
    return run.value(aqm, _FLOWS[setting], columns.delay_ms(percentile), setting)


def _use(run: Evidence, aqm: str, setting: str) -> float:
    return run.value(aqm, _FLOWS[setting], columns.used_share, setting)


def _jain(run: Evidence, aqm: str, setting: str) -> float:
    return run.value(aqm, _FLOWS[setting], columns.jain_of_all, setting)


def _all(parts: list[Comparison]) -> Finding:
    return judge("; ".join(part.text for part in parts[:3]), parts)


@pie("4.1", "Figure 4.2(b)", "little change from 5 to 50 flows")
def more_tcp_changes_little(run: Evidence) -> Finding:
    """With PIE, 50 TCP flows instead of 5 change neither the delay nor the use of the link much."""
    (light, heavy), (use_5, use_50) = (
        [measure(run, "pie", load) for load in ("light", "heavy")] for measure in (_delay, _use)
    )
    parts = [
        Comparison(max(light, heavy) < MUCH * min(light, heavy), f"{heavy:.1f} ms with 50, {light:.1f} with 5"),
        Comparison(abs(use_5 - use_50) <= COMPARABLE, f"{use_50:.1%} of the link with 50, {use_5:.1%} with 5"),
    ]
    return _all(parts)


@pie("4.1", "Figures 4.2(b) and 4.8(a)", "a significant rise")
def udp_raises_delay_of_pie(run: Evidence) -> Finding:
    """With PIE, two UDP flows beside five TCP flows raise the delay far above that without them."""
    mix = _delay(run, "pie", "mix")
    parts = [
        Comparison(mix >= MUCH * without, f"{mix:.1f} ms with UDP, {without:.1f} with {_FLOWS[load]} TCP flows alone")
        for load, without in ((load, _delay(run, "pie", load)) for load in ("light", "heavy"))
    ]
    return _all(parts)


@pie("4.3.1 C", "Figure 4.8(a)", "not within 15 ms")
def pie_is_not_at_its_target_with_udp(run: Evidence) -> Finding:
    """With UDP, PIE does not keep the delay near its target of 15 ms."""
    median = _delay(run, "pie", "mix", "p50")
    text = f"median {median:.1f} ms"
    return judge(text, [Comparison(median > (1 + ABOUT) * HIGHEST_MS, text)])


@pie("4.3.1 C", "Figures 4.3(b) and 4.8(b)", "about 5 ms")
def minstrel_is_at_its_lower_bound_with_udp(run: Evidence) -> Finding:
    """With UDP, Minstrel PIE keeps the delay about the lower bound of its target."""
    median = _delay(run, "minstrel-pie", "mix", "p50")
    text = f"median {median:.1f} ms"
    return judge(text, [Comparison(abs(median - LOWEST_MS) <= ABOUT * LOWEST_MS, text)])


@pie("4.3.1", "Figures 4.4 to 4.10", "lower, more so with UDP")
def minstrel_delays_less(run: Evidence) -> Finding:
    """Packets wait less with Minstrel PIE than with PIE, with few or many TCP flows and with UDP."""
    parts: list[Comparison] = []
    for load in ("light", "heavy", "mix"):
        ours, theirs = (_delay(run, aqm, load) for aqm in ("minstrel-pie", "pie"))
        parts.append(Comparison(ours < theirs, f"{load}: {ours:.1f} ms after {theirs:.1f}"))
    return _all(parts)


@pie("4.3.1", "Figures 4.2, 4.3, 4.5, 4.7 and 4.9", "the same")
def minstrel_uses_the_link_alike(run: Evidence) -> Finding:
    """Minstrel PIE uses the link as PIE does, with few or many TCP flows and with UDP."""
    parts: list[Comparison] = []
    for load in ("light", "heavy", "mix"):
        ours, theirs = (_use(run, aqm, load) for aqm in ("minstrel-pie", "pie"))
        parts.append(Comparison(ours >= theirs - COMPARABLE, f"{load}: {ours:.1%} after {theirs:.1%}"))
    return _all(parts)


@pie("4.3.1 C", "Figure 4.9", "100 %")
def udp_fills_the_link(run: Evidence) -> Finding:
    """With UDP, the link is full with both."""
    return _all(
        [Comparison(use >= 1 - CLOSE, f"{_NAMES[a]}: {use:.1%}") for a in PIES for use in (_use(run, a, "mix"),)]
    )


@pie("4.3.1 B", "Figure 4.6", "15 ms; 5 to 15 ms")
def delays_of_many_flows(run: Evidence) -> Finding:
    """With 50 TCP flows PIE keeps the delay about 15 ms, Minstrel PIE between 5 and 15 ms and near the lower bound."""
    theirs, ours = (_delay(run, aqm, "heavy", "p50") for aqm in PIES)
    parts = [
        Comparison(abs(theirs - HIGHEST_MS) <= ABOUT * HIGHEST_MS, f"PIE: median {theirs:.1f} ms"),
        Comparison(abs(ours - LOWEST_MS) <= ABOUT * LOWEST_MS, f"Minstrel PIE: median {ours:.1f} ms"),
    ]
    return _all(parts)


@pie("4.3.1", "Tables 4.2 and 4.3", "0.98 to 0.99 with either")
def fairness_of_tcp(run: Evidence) -> Finding:
    """TCP flows share fairly with PIE, and with Minstrel PIE as fairly."""
    parts: list[Comparison] = []
    for load in ("light", "heavy"):
        theirs, ours = (_jain(run, aqm, load) for aqm in PIES)
        good = min(theirs, ours) >= FAIR and abs(ours - theirs) <= SAME_INDEX
        parts.append(Comparison(good, f"{load}: {ours:.3f}, PIE {theirs:.3f}"))
    return _all(parts)


@pie("4.3.1 A", "Table 4.2", "1.80 to 1.87 Mbit/s")
def throughput_of_table_42(run: Evidence) -> Finding:
    """Each of five TCP flows gets the throughput of Table 4.2, within a tenth."""
    parts: list[Comparison] = []
    for aqm in PIES:
        for outcome in run.runs(aqm, setting="light"):
            rates = sorted(flow["goodput_bps"] / 1e6 for flow in outcome.summary["flows"])
            text = f"{_NAMES[aqm]}: {rates[0]:.2f} to {rates[-1]:.2f} Mbit/s"
            parts.append(Comparison(rates[0] >= (1 - ABOUT) * 1.80 and rates[-1] <= (1 + ABOUT) * 1.87, text))
    return _all(parts)


@pie("4.3.1 C", "Table 4.4, eq. (4.1) with its n", "0.288 and 0.289")
def fairness_with_udp(run: Evidence) -> Finding:
    """Five TCP and two UDP flows have the index of Table 4.4, which is that of two flows of seven: eq. (4.1) with n."""
    parts = [
        Comparison(abs(value - 0.2885) <= SAME_INDEX, f"{_NAMES[aqm]}: {value:.3f}")
        for aqm, value in ((aqm, _jain(run, aqm, "mix")) for aqm in PIES)
    ]
    return _all(parts)


def _rates(run: Evidence, aqm: str, setting: str, kind: str) -> list[float]:
    return [
        flow["goodput_bps"] / 1e6
        for outcome in run.runs(aqm, setting=setting)
        for flow in outcome.summary["flows"]
        if flow["kind"] == kind
    ]


@pie("4.3.1 C", "Table 4.4", "0.006 to 0.020 and 4.73 to 4.79 Mbit/s")
def udp_takes_nearly_all(run: Evidence) -> Finding:
    """Of two UDP flows each gets nearly half of the link with either, and a TCP flow at most 0.02 Mbit/s."""
    parts: list[Comparison] = []
    for aqm in PIES:
        tcp, udp = (_rates(run, aqm, "mix", kind) for kind in ("bulk", "cbr"))
        parts.append(Comparison(max(tcp) <= 0.02, f"{_NAMES[aqm]}: TCP up to {max(tcp):.3f} Mbit/s"))
        parts.append(Comparison(min(udp) >= (1 - COMPARABLE) * 4.73, f"{_NAMES[aqm]}: UDP from {min(udp):.2f} Mbit/s"))
    return _all(parts)


@pie("4.3.1", "Figure 4.10", "a better trade-off, above all with UDP")
def ellipses_lie_further_right(run: Evidence) -> Finding:
    """In the plane of delay and goodput, Minstrel PIE delays less with comparable goodput, whatever the load."""
    parts: list[Comparison] = []
    for load in ("light", "heavy", "mix"):
        cells = [(aqm, _FLOWS[load], load) for aqm in PIES]
        theirs, ours = (run.cell_value(cell, columns.goodput_all_mbps) or 0.0 for cell in cells)
        shorter = _delay(run, "minstrel-pie", load) < _delay(run, "pie", load)
        text = f"{load}: {ours:.2f} after {theirs:.2f} Mbit/s"
        parts.append(Comparison(shorter and ours >= theirs * (1 - COMPARABLE), text))
    return _all(parts)


@pie("4.3.2 A", "Figure 4.11", "tighter in both")
def minstrel_is_tighter_with_one_udp(run: Evidence) -> Finding:
    """With a UDP flow of the link's rate, alone or beside one TCP flow, packets wait less with Minstrel PIE."""
    parts: list[Comparison] = []
    for load in ("one-each", "udp-alone"):
        ours, theirs = (_delay(run, aqm, load) for aqm in ("minstrel-pie", "pie"))
        parts.append(Comparison(ours < theirs, f"{load}: {ours:.1f} ms after {theirs:.1f}"))
    return _all(parts)


@pie("4.3.2 A", "Figure 4.11", "more so when alone")
def more_so_when_udp_is_alone(run: Evidence) -> Finding:
    """With UDP alone, Minstrel PIE shortens the delay by a larger part than with UDP and TCP."""
    beside, alone = (_delay(run, "minstrel-pie", load) / _delay(run, "pie", load) for load in ("one-each", "udp-alone"))
    text = f"{alone:.3f} of PIE's delay when alone, {beside:.3f} beside TCP"
    return judge(text, [Comparison(alone < (1 - CLOSE) * beside, text)])


@pie("4.3.2 A", "Figure 4.11(b)", "negligible variation")
def udp_alone_is_steady(run: Evidence) -> Finding:
    """With UDP alone, delay and goodput hardly vary from second to second."""
    parts: list[Comparison] = []
    for aqm in PIES:
        for outcome in run.runs(aqm, setting="udp-alone"):
            delays, rates = after_warmup(outcome)
            vary = statistics.pstdev(rates) / statistics.fmean(rates)
            text = f"{_NAMES[aqm]}: goodput varies by {vary:.2%}"
            parts.append(Comparison(vary <= NEGLIGIBLE, text))
            spread = statistics.pstdev(delays)
            parts.append(
                Comparison(spread <= NEGLIGIBLE * statistics.fmean(delays), f"{_NAMES[aqm]}: delay by {spread:.1f} ms")
            )
    return _all(parts)


@pie("4.3.2 A", "Table 4.7", "0.063 and 8.983; 0.074 and 9.171 Mbit/s; 0.50")
def one_tcp_against_one_udp(run: Evidence) -> Finding:
    """One TCP flow beside one UDP flow gets less than 0.1 Mbit/s, an index of 0.50, with both."""
    parts: list[Comparison] = []
    for aqm in PIES:
        index, tcp = _jain(run, aqm, "one-each"), max(_rates(run, aqm, "one-each", "bulk"))
        parts.append(Comparison(abs(index - 0.5) <= SAME_INDEX, f"{_NAMES[aqm]}: index {index:.3f}"))
        parts.append(Comparison(tcp <= 0.1, f"{_NAMES[aqm]}: TCP {tcp:.3f} Mbit/s"))
    return _all(parts)


@pie("4.3.2 B", "Table 4.8", "0.1, 0.5 and 1 %", Kind.SET_UP)
def drops_of_the_levels_of_congestion(run: Evidence) -> Finding:
    """With PIE, each level of congestion drops what it is said to, within a half."""
    parts: list[Comparison] = []
    for load, (flows, said) in CONGESTION.items():
        share = run.value("pie", flows, columns.drop_share, load)
        text = f"{load}, {flows} flows: {share:.2%} for {said:.1%}"
        parts.append(Comparison(abs(share / said - 1) <= HALF, text))
    return _all(parts)


@pie("4.3.2 B", "Figure 4.12", "similar", because=APART)
def similar_at_any_congestion(run: Evidence) -> Finding:
    """With TCP alone, at any level of congestion, delays and goodput are similar."""
    parts: list[Comparison] = []
    for load, (flows, _) in CONGESTION.items():
        theirs, ours = (_delay(run, aqm, load) for aqm in PIES)
        parts.append(Comparison(abs(ours - theirs) <= COMPARABLE * theirs, f"{load}: {ours:.1f} and {theirs:.1f} ms"))
        rates = [run.cell_value((aqm, flows, load), columns.goodput_all_mbps) or 0.0 for aqm in PIES]
        text = f"{load}: {rates[1]:.2f} and {rates[0]:.2f} Mbit/s"
        parts.append(Comparison(abs(rates[1] / rates[0] - 1) <= COMPARABLE, text))
    return _all(parts)


# Sizes of the buffer.

_LOADS = {"light": 5, "heavy": 50}


def _rtt(run: Evidence, aqm: str, packets: int, load: str) -> float:
    return run.value(aqm, _LOADS[load], rtt_ms("mean"), f"buffer-{packets}-{load}")


def _buffer_use(run: Evidence, aqm: str, packets: int, load: str) -> float:
    return run.value(aqm, _LOADS[load], columns.used_share, f"buffer-{packets}-{load}")


@pie("4.3.3 D", "Figures 4.19 and 4.20", "marginally less")
def small_buffers_shorten_little(run: Evidence) -> Finding:
    """With room for 15 packets, round trips are a little shorter than with drop-tail."""
    parts: list[Comparison] = []
    for load in _LOADS:
        tail = _rtt(run, "droptail", 15, load)
        for aqm in PIES:
            ours = _rtt(run, aqm, 15, load)
            text = f"{_NAMES[aqm]}, {load}: {ours:.1f} ms after {tail:.1f}"
            parts.append(Comparison((1 - SLIGHT) * tail <= ours < tail, text))
    return _all(parts)


@pie("4.3.3 D", "Figures 4.19 and 4.20", "significantly less")
def large_buffers_shorten_much(run: Evidence) -> Finding:
    """With room for 100 or 1000 packets, round trips are much shorter than with drop-tail."""
    parts: list[Comparison] = []
    for packets in BUFFERS[1:]:
        for load in _LOADS:
            tail = _rtt(run, "droptail", packets, load)
            for aqm in PIES:
                ours = _rtt(run, aqm, packets, load)
                text = f"{_NAMES[aqm]}, {load}, {packets} packets: {ours:.0f} ms after {tail:.0f}"
                parts.append(Comparison(ours * MUCH <= tail, text))
    return _all(parts)


@pie("4.3.3 D", "Figure 4.19", "similar")
def small_buffers_use_alike(run: Evidence) -> Finding:
    """With room for 15 packets and 5 flows, all three use the link alike."""
    tail = _buffer_use(run, "droptail", 15, "light")
    parts = [
        Comparison(abs(use - tail) <= COMPARABLE, f"{_NAMES[aqm]} {use:.1%}, drop-tail {tail:.1%}")
        for aqm, use in ((aqm, _buffer_use(run, aqm, 15, "light")) for aqm in PIES)
    ]
    return _all(parts)


@pie("4.3.3 D", "Figures 4.19 and 4.20", "better in all cases")
def pies_use_more_than_drop_tail(run: Evidence) -> Finding:
    """With 50 flows, or with room for 100 or 1000 packets, the two use more of the link than drop-tail."""
    parts: list[Comparison] = []
    for packets in BUFFERS:
        for load in _LOADS:
            if (packets, load) == (BUFFERS[0], "light"):
                continue
            tail = _buffer_use(run, "droptail", packets, load)
            for aqm in PIES:
                use = _buffer_use(run, aqm, packets, load)
                text = f"{_NAMES[aqm]}, {load}, {packets} packets: {use:.1%} after {tail:.1%}"
                parts.append(Comparison(use > tail, text))
    return _all(parts)
