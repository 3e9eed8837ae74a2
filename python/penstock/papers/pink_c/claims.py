"""The claims about the results of `pink-c`."""

from __future__ import annotations

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import CHANCE, CLOSE, COMPARABLE, CONSTANT, FULL
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, rtt_ms

CLAIMS: list[Claim] = []
c_of_pink = of(CLAIMS, "pink-c")


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
        parts.append(Comparison(high - low <= CONSTANT * middle, text))
    return judge(f"{parts[0].text}; {parts[-1].text}", parts)


@c_of_pink("6.5", "in the text", "small from 0.92 to 0.97")
def rtt_near_base_on_dsl(run: Evidence) -> Finding:
    """On the DSL link nine of ten round trips are comparable to the base up to c = 0.97."""
    base = _base(run, "dsl")
    parts: list[Comparison] = []
    for c in (c for c in _values(run, "dsl") if c <= 0.97):
        high = _rtt(run, "dsl", c, "p90")
        parts.append(Comparison(high <= (1 + COMPARABLE) * base, f"p90 {high:.1f} ms at c = {c:.2f}, base {base:.1f}"))
    return judge(parts[-1].text, parts)


@c_of_pink("6.5", "Figure 23", "narrow boxes")
def rtt_steady_at_any_c(run: Evidence) -> Finding:
    """On the satellite link the round trips of one c hardly differ, whatever c."""
    parts: list[Comparison] = []
    for c in _values(run, "sat"):
        low, middle, high = (_rtt(run, "sat", c, p) for p in ("p10", "p50", "p90"))
        parts.append(Comparison(high - low <= CONSTANT * middle, f"c = {c:.2f}: {low:.0f} to {high:.0f} ms"))
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
        parts.append(Comparison(middle <= base * (1 + CLOSE) if c <= full else middle > before * (1 + CHANCE), text))
        before = middle
    return judge(f"base {base:.0f}; {parts[-1].text}", parts)


@c_of_pink("6.5", "Figure 23", "810 ms after 780 ms")
def rtt_at_one(run: Evidence) -> Finding:
    """With c = 1 the satellite round trip is 810 ms where the smallest is 780: longer by 3.8 %."""
    base, last = _base(run, "sat"), _rtt(run, "sat", 1.0, "p50")
    ours, paper = last / base, 810 / 780
    text = f"{last:.0f} ms after {base:.0f} ms: longer by {ours - 1:.1%}"
    windows = f"windows of c = 1 need {1 / run.experiment.payload_share - 1:.1%} more than the link has"
    return judge(text, [Comparison(abs(ours / paper - 1) <= CLOSE, f"{text}; {windows}")])


@c_of_pink("6.5", "in the text", "0.92 to 0.97")
def good_from_092_to_097(run: Evidence) -> Finding:
    """Values of c from 0.92 to 0.97 use the link and keep round trips short, on both links."""
    parts: list[Comparison] = []
    for link, rate in (("dsl", 10.0), ("sat", 4.0)):
        base = _base(run, link)
        for c in (c for c in _values(run, link) if 0.92 <= c <= 0.97):
            use, high = _throughput(run, link, c) / rate, _rtt(run, link, c, "p90")
            text = f"{link}, c = {c:.2f}: {use:.1%} used, p90 {high / base - 1:.1%} above the base"
            parts.append(Comparison(use >= FULL and high <= base * (1 + COMPARABLE), text))
    return judge(f"{parts[0].text}; {parts[-1].text}", parts)
