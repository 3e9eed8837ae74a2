"""The claims about the results of `pink-limits`."""

from __future__ import annotations

from penstock.claims.entering import of, unsaid
from penstock.claims.ledger import Claim, Comparison, Finding, Kind, judge
from penstock.claims.words import ABOUT, CLOSE, FULL
from penstock.papers._shared import pink
from penstock.papers._shared.pink_limits_claims import NEAR_BASE_MS
from penstock.papers.pink_limits.runs import MSS_BYTES, THEOREM_1_BYTES
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, drops, rtt_ms

RULES = unsaid(
    "the rule of senders for a window that is no whole number of segments",
    "minshall senders",
    "the paper does not say what its senders do with a window that is no whole number of segments: with Minshall's "
    "rule, as in Linux, each of three segment sizes reaches c, and with the strict rule of RFC 9293 none does",
)

CLAIMS: list[Claim] = []
limits = of(CLAIMS, "pink-limits")


# Whole segments.


def _of_c(run: Evidence, setting: str) -> float:
    return (run.cell_value(("pink", 64, setting), columns.goodput_all_mbps) or 0.0) / (pink.PINK_C * 10)


def _segment_parts(run: Evidence, window: str, most: bool) -> list[Comparison]:
    parts: list[Comparison] = []
    for setting in (s for s in run.settings if s.startswith("segments") and s.endswith(window)):
        _, mss, rule, _ = setting.split("-")
        # The headers of small segments leave less than c for payload.
        room = min(1.0, int(mss) / (int(mss) + 52) / pink.PINK_C) if most else 1.0
        used = _of_c(run, setting)
        parts.append(Comparison(used >= FULL * room, f"{used:.1%} of c x rate with {mss} B, {rule} senders"))
    return parts


@limits("3", "eq. 1", "c of the link", because=RULES)
def windows_of_equation_1_use_the_link(run: Evidence) -> Finding:
    """64 flows with windows of eq. 1 use the link up to c, whatever the segment and the rule for short ones."""
    parts = _segment_parts(run, "literal", most=True)
    return judge("; ".join(part.text for part in parts), parts)


@limits("3", "eq. 1", "c of the link", Kind.OWN)
def windows_that_dither_use_the_link(run: Evidence) -> Finding:
    """64 flows with windows of whole segments whose mean is eq. 1 use the link up to c, whatever segment and rule."""
    parts = _segment_parts(run, "dither", most=True)
    return judge("; ".join(part.text for part in parts), parts)


@limits("3", "eq. 1", "1 / 1.36 of c", Kind.OWN)
def strict_senders_lose_the_fraction(run: Evidence) -> Finding:
    """A sender of whole segments only loses the part of eq. 1's window that fills none."""
    parts: list[Comparison] = []
    for mss in MSS_BYTES:
        setting = f"segments-{mss}-strict-literal"
        if setting in run.settings:
            rtt_s = run.value("pink", 64, rtt_ms("min"), setting) / 1e3
            segments = pink.PINK_C * run.experiment.rate_bps / 8 * rtt_s / 64 / mss
            expected, used = int(segments) / segments, _of_c(run, setting)
            text = f"{mss} B: {segments:.2f} segments, {int(segments)} sent: {expected:.1%} expected, {used:.1%} used"
            parts.append(Comparison(abs(used - expected) <= CLOSE * expected, text))
    return judge("; ".join(part.text for part in parts), parts)


# Traffic without a window.


def _udp(run: Evidence, told: str) -> list[str]:
    return [s for s in run.settings if s.startswith("udp") and s.endswith(told)]


@limits("4", "Theorem 1, proof", "an exclusive TCP queue", Kind.OWN)
def unknown_traffic_fills_the_queue(run: Evidence) -> Finding:
    """Traffic that obeys no window, and of which PINK is not told, makes a standing queue that grows with it."""
    parts: list[Comparison] = []
    before = 0.0
    for setting in _udp(run, "unknown"):
        delay = run.value("pink", 5, lambda s: float(s["bottlenecks"][0]["queue_delay_ms"]["p50"]), setting)
        parts.append(Comparison(delay > before + NEAR_BASE_MS, f"{run.experiment.label(setting)}: {delay:.0f} ms"))
        before = delay
    return judge("; ".join(part.text for part in parts), parts)


@limits("4", "Theorem 1", "0 drops, a short queue", Kind.OWN)
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


@limits("4", "Theorem 1", "the bound is reached", Kind.OWN)
def the_bound_is_tight(run: Evidence) -> Finding:
    """With windows of eq. 1 the worst case comes close to the bound: it cannot be lower."""
    parts: list[Comparison] = []
    for flows in run.counts("pink", setting="bursts-literal"):
        peak = run.cell_value(("pink", flows, "bursts-literal"), columns.queue_max_kb) or 0.0
        part = peak * 1e3 / THEOREM_1_BYTES
        parts.append(Comparison(part >= 1 - ABOUT, f"{part:.0%} of the bound with {flows} flows"))
    return judge("; ".join(part.text for part in parts), parts)
