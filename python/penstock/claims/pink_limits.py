"""Claims on PINK's parameter c (000, 6.5), and on where its guarantees hold and end (000, 3 and 4)."""

from __future__ import annotations

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.reproduce import columns
from penstock.reproduce.pink import MSS_BYTES, THEOREM_1_BYTES
from penstock.reproduce.results import Evidence, drops, rtt_ms

NARROW = 0.03  # a narrow box: p10 to p90 within 3 % of the median
NEAR_BASE_MS = 5.0
NEAR_BASE = 0.01  # "almost constant": within 1 % of the smallest
FULL_USE = 0.95  # of c times the rate
PREDICTED = 0.03  # arithmetic and run agree within 3 %

CLAIMS: list[Claim] = []
c_of_pink = of(CLAIMS, "pink-c")
limits = of(CLAIMS, "pink-limits")


def _values(run: Evidence, link: str) -> list[float]:
    return [float(setting.split("-")[1]) for setting in run.settings if setting.startswith(link)]


def _throughput(run: Evidence, link: str, c: float, percentile: float = 50) -> float:
    return run.cell_value(("pink", 4, f"{link}-{c:.2f}"), columns.throughput_mbps(percentile, 20)) or 0.0


def _rtt(run: Evidence, link: str, c: float, percentile: str) -> float:
    return run.value("pink", 4, rtt_ms(percentile), f"{link}-{c:.2f}")


def _base(run: Evidence, link: str) -> float:
    return min(_rtt(run, link, c, "min") for c in _values(run, link))


@c_of_pink("6.5", "Figure 22", "9.5 Mbit/s from c = 0.92")
def throughput_full_from_092(run: Evidence) -> Finding:
    """The throughput on the DSL link, with headers, is at least 9.5 Mbit/s from c = 0.92 on."""
    parts = [
        Comparison(value >= 9.5, f"{value:.2f} Mbit/s at c = {c:.2f}")
        for c, value in ((c, _throughput(run, "dsl", c)) for c in _values(run, "dsl") if c >= 0.92)
    ]
    return judge("; ".join(part.text for part in parts[:2]), parts)


@c_of_pink("6.5", "Figure 22", "narrow boxes")
def throughput_steady_at_any_c(run: Evidence) -> Finding:
    """The throughput on the DSL link hardly varies from second to second, whatever c."""
    parts: list[Comparison] = []
    for c in _values(run, "dsl"):
        low, middle, high = (_throughput(run, "dsl", c, p) for p in (10, 50, 90))
        text = f"c = {c:.2f}: {low:.2f} to {high:.2f} Mbit/s"
        parts.append(Comparison(high - low <= NARROW * middle, text))
    return judge(f"{parts[0].text}; {parts[-1].text}", parts)


@c_of_pink("6.5", "in the text", "small from 0.92 to 0.97")
def rtt_near_base_on_dsl(run: Evidence) -> Finding:
    """On the DSL link nine of ten round trips are within 5 ms of the base up to c = 0.97."""
    base = _base(run, "dsl")
    parts: list[Comparison] = []
    for c in (c for c in _values(run, "dsl") if c <= 0.97):
        high = _rtt(run, "dsl", c, "p90")
        parts.append(Comparison(high <= base + NEAR_BASE_MS, f"p90 {high:.1f} ms at c = {c:.2f}, base {base:.1f}"))
    return judge(parts[-1].text, parts)


@c_of_pink("6.5", "Figure 23", "narrow boxes")
def rtt_steady_at_any_c(run: Evidence) -> Finding:
    """On the satellite link the round trips of one c hardly differ, whatever c."""
    parts: list[Comparison] = []
    for c in _values(run, "sat"):
        low, middle, high = (_rtt(run, "sat", c, p) for p in ("p10", "p50", "p90"))
        parts.append(Comparison(high - low <= NARROW * middle, f"c = {c:.2f}: {low:.0f} to {high:.0f} ms"))
    return judge(f"{parts[0].text}; {parts[-1].text}", parts)


@c_of_pink("6.5", "Figure 23", "flat, then rising near 1")
def rtt_rises_only_near_the_end(run: Evidence) -> Finding:
    """On the satellite link the round trip stays at its base until the link is full, and rises from there on."""
    base, full = _base(run, "sat"), run.experiment.payload_share
    parts: list[Comparison] = []
    before = 0.0
    for c in _values(run, "sat"):
        middle = _rtt(run, "sat", c, "p50")
        text = f"median {middle:.0f} ms at c = {c:.2f}"
        parts.append(Comparison(middle <= base * (1 + NEAR_BASE) if c <= full else middle > before, text))
        before = middle
    return judge(f"base {base:.0f}; {parts[-1].text}", parts)


@c_of_pink("6.5", "Figure 23", "810 ms after 780 ms")
def rtt_at_one(run: Evidence) -> Finding:
    """With c = 1 the satellite round trip is 810 ms where the smallest is 780: longer by 3.8 %."""
    base, last = _base(run, "sat"), _rtt(run, "sat", 1.0, "p50")
    ours, paper = last / base, 810 / 780
    text = f"{last:.0f} ms after {base:.0f} ms: longer by {ours - 1:.1%}"
    windows = f"windows of c = 1 need {1 / run.experiment.payload_share - 1:.1%} more than the link has"
    return judge(text, [Comparison(abs(ours / paper - 1) <= 0.02, f"{text}; {windows}")])


@c_of_pink("6.5", "in the text", "0.92 to 0.97")
def good_from_092_to_097(run: Evidence) -> Finding:
    """Values of c from 0.92 to 0.97 use the link and keep round trips short, on both links."""
    parts: list[Comparison] = []
    for link, rate in (("dsl", 10.0), ("sat", 4.0)):
        base = _base(run, link)
        for c in (c for c in _values(run, link) if 0.92 <= c <= 0.97):
            use, high = _throughput(run, link, c) / rate, _rtt(run, link, c, "p90")
            text = f"{link}, c = {c:.2f}: {use:.1%} used, p90 {high / base - 1:.1%} above the base"
            parts.append(Comparison(use >= FULL_USE and high <= base * 1.05, text))
    return judge(f"{parts[0].text}; {parts[-1].text}", parts)


# Whole segments.


def _of_c(run: Evidence, setting: str) -> float:
    return (run.cell_value(("pink", 64, setting), columns.goodput_all_mbps) or 0.0) / (columns.PINK_C * 10)


def _segment_parts(run: Evidence, window: str, most: bool) -> list[Comparison]:
    parts: list[Comparison] = []
    for setting in (s for s in run.settings if s.startswith("segments") and s.endswith(window)):
        _, mss, rule, _ = setting.split("-")
        # The headers of small segments leave less than c for payload.
        room = min(1.0, int(mss) / (int(mss) + 52) / columns.PINK_C) if most else 1.0
        used = _of_c(run, setting)
        parts.append(Comparison(used >= FULL_USE * room, f"{used:.1%} of c x rate with {mss} B, {rule} senders"))
    return parts


@limits("3", "eq. 1", "c of the link")
def windows_of_equation_1_use_the_link(run: Evidence) -> Finding:
    """64 flows with windows of eq. 1 use the link up to c, whatever the segment and the rule for short ones."""
    parts = _segment_parts(run, "literal", most=True)
    return judge("; ".join(part.text for part in parts), parts)


@limits("3", "eq. 1", "c of the link")
def windows_that_dither_use_the_link(run: Evidence) -> Finding:
    """64 flows with windows of whole segments whose mean is eq. 1 use the link up to c, whatever segment and rule."""
    parts = _segment_parts(run, "dither", most=True)
    return judge("; ".join(part.text for part in parts), parts)


@limits("3", "eq. 1", "1 / 1.36 of c")
def strict_senders_lose_the_fraction(run: Evidence) -> Finding:
    """A sender of whole segments only loses the part of eq. 1's window that fills none."""
    parts: list[Comparison] = []
    for mss in MSS_BYTES:
        setting = f"segments-{mss}-strict-literal"
        if setting in run.settings:
            rtt_s = run.value("pink", 64, rtt_ms("min"), setting) / 1e3
            segments = columns.PINK_C * run.experiment.rate_bps / 8 * rtt_s / 64 / mss
            expected, used = int(segments) / segments, _of_c(run, setting)
            text = f"{mss} B: {segments:.2f} segments, {int(segments)} sent: {expected:.1%} expected, {used:.1%} used"
            parts.append(Comparison(abs(used - expected) <= PREDICTED * expected, text))
    return judge("; ".join(part.text for part in parts), parts)


# Traffic that obeys no window.


def _udp(run: Evidence, told: str) -> list[str]:
    return [s for s in run.settings if s.startswith("udp") and s.endswith(told)]


@limits("4", "Theorem 1, proof", "an exclusive TCP queue")
def unknown_traffic_fills_the_queue(run: Evidence) -> Finding:
    """Traffic that obeys no window, and of which PINK is not told, makes a standing queue that grows with it."""
    parts: list[Comparison] = []
    before = 0.0
    for setting in _udp(run, "unknown"):
        delay = run.value("pink", 5, lambda s: float(s["bottlenecks"][0]["queue_delay_ms"]["p50"]), setting)
        parts.append(Comparison(delay > before + NEAR_BASE_MS, f"{run.experiment.label(setting)}: {delay:.0f} ms"))
        before = delay
    return judge("; ".join(part.text for part in parts), parts)


@limits("4", "Theorem 1", "0 drops, a short queue")
def reserved_traffic_does_no_harm(run: Evidence) -> Finding:
    """With as much reserved as such traffic takes, nothing is dropped and the queue stays short."""
    parts: list[Comparison] = []
    for setting in _udp(run, "reserved"):
        delay = run.value("pink", 5, lambda s: float(s["bottlenecks"][0]["queue_delay_ms"]["p90"]), setting)
        count = run.value("pink", 5, drops, setting)
        text = f"{run.experiment.label(setting)}: {delay:.1f} ms (p90), {count:.0f} drops"
        parts.append(Comparison(count == 0 and delay <= NEAR_BASE_MS, text))
    return judge("; ".join(part.text for part in parts), parts)


# The worst case.


@limits("4", "Theorem 1", "BW x RTT")
def queue_stays_below_the_bound(run: Evidence) -> Finding:
    """The queue never exceeds BW x RTT, though all flows send their whole windows at once."""
    parts: list[Comparison] = []
    for aqm, flows, setting in run.cells:
        if setting.startswith("bursts"):
            peak = run.cell_value((aqm, flows, setting), columns.queue_max_kb) or 0.0
            bound = THEOREM_1_BYTES / 1e3
            text = f"{peak:.1f} of {bound:.1f} kB with {flows} flows, {setting.split('-')[1]} windows"
            parts.append(Comparison(0 < peak <= bound, text))
    return judge("; ".join(part.text for part in parts), parts)


@limits("4", "Theorem 1", "the bound is reached")
def the_bound_is_tight(run: Evidence) -> Finding:
    """With windows of eq. 1 the worst case comes close to the bound: it cannot be lower."""
    parts: list[Comparison] = []
    for flows in run.counts("pink", setting="bursts-literal"):
        peak = run.cell_value(("pink", flows, "bursts-literal"), columns.queue_max_kb) or 0.0
        part = peak * 1e3 / THEOREM_1_BYTES
        parts.append(Comparison(part >= 0.9, f"{part:.0%} of the bound with {flows} flows"))
    return judge("; ".join(part.text for part in parts), parts)
