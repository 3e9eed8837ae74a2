"""What the claims on flow queueing share: checks of `fq-pie` and `fq-minstrel-pie`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.claims.ledger import Comparison, Finding, judge
from penstock.claims.words import COMPARABLE, INDEX, LESS, SAME_INDEX, SHARE
from penstock.papers._shared import mixes
from penstock.papers._shared.flow_queueing import CALL, CONTROLS, UPLOADS
from penstock.reproduce.results import Evidence, Outcome
from penstock.reproduce.seconds import series_of

RESOLUTION_MS = 2.2  # of percentiles of round trips; their means are exact

NAMES = {"pie": "PIE", "fq-pie": "FQ-PIE", "fq-codel": "FQ-CoDel", "fq-minstrel-pie": "FQ-Minstrel PIE"}


def median(run: Evidence, aqm: str, setting: str, measure: Callable[[Outcome], float | None]) -> float:
    """The median over seeds."""
    return run.median_or_zero(aqm, setting, measure)


def rtt_of(percentile: str) -> Callable[[Outcome], float]:
    """Reads a percentile of the round trip times, in milliseconds."""
    return lambda outcome: float(outcome.summary["rtt_ms"][percentile])


def spike(outcome: Outcome) -> float:
    """How far the 99th percentile of the round trip times lies above the median, in milliseconds."""
    return rtt_of("p99")(outcome) - rtt_of("p50")(outcome)


def has(run: Evidence, setting: str) -> bool:
    """True if the setting was run."""
    return setting in run.settings


def uploads(run: Evidence) -> list[str]:
    """The settings with uploads that were run."""
    return [f"up-{n}" for n in UPLOADS if has(run, f"up-{n}")]


# TCP beside UDP.


def fair_part(outcome: Outcome) -> float:
    """What TCP gets of its fair part of all payload while UDP is on."""
    tcp, udp = mixes.tcp_on_mbps(outcome) or 0.0, mixes.udp_on_mbps(outcome) or 0.0
    flows = len(mixes.of_kind(outcome, "bulk"))
    return tcp / ((tcp + udp) * flows / (flows + 1))


def fair_beside_udp(run: Evidence, aqm: str, setting: str) -> Comparison:
    """Whether TCP gets its fair part of the link while the stream is on."""
    part = median(run, aqm, setting, fair_part)
    return Comparison(part >= 1 - SHARE, f"{setting}: TCP gets {part:.1%} of its fair part with {NAMES[aqm]}")


def same_throughput(run: Evidence, one: str, other: str, settings: Sequence[str], on: bool) -> Finding:
    """Whether TCP gets the same with two disciplines, while the stream is on or without it."""
    parts: list[Comparison] = []
    measures = [mixes.tcp_off_mbps, *([mixes.tcp_on_mbps] if on else [])]
    for setting in settings:
        for measure in measures:
            a, b = (median(run, aqm, setting, measure) for aqm in (one, other))
            when = "off" if measure is mixes.tcp_off_mbps else "on"
            text = f"{setting}, UDP {when}: {NAMES[one]} {a:.2f}, {NAMES[other]} {b:.2f} Mbit/s"
            parts.append(Comparison(abs(a - b) <= COMPARABLE * b, text))
    return judge("; ".join(part.text for part in parts[:4]), parts)


def shorter_round_trips(run: Evidence, one: str, other: str, setting: str) -> Finding:
    """The mean is shorter, and no percentile is longer by more than its resolution."""
    parts: list[Comparison] = []
    for measure, within in (("mean", None), ("p50", RESOLUTION_MS), ("p90", RESOLUTION_MS), ("p99", RESOLUTION_MS)):
        a, b = (median(run, aqm, setting, rtt_of(measure)) for aqm in (one, other))
        text = f"{setting}, {measure}: {NAMES[one]} {a:.1f}, {NAMES[other]} {b:.1f} ms"
        parts.append(Comparison(b - a > LESS * b if within is None else a < b + within, text))
    return judge("; ".join(part.text for part in parts), parts)


def table(run: Evidence, aqm: str, numbers: dict[str, float]) -> Finding:
    """Whether Jain's indices are those of one of the document's tables."""
    parts: list[Comparison] = []
    for setting, paper in numbers.items():
        if has(run, setting):
            ours = median(run, aqm, setting, mixes.jain_on)
            parts.append(Comparison(abs(ours - paper) <= INDEX, f"{setting}: {ours:.2f}, the paper {paper:.2f}"))
    return judge("; ".join(part.text for part in parts), parts)


def same_indices(run: Evidence, one: str, other: str, settings: Sequence[str]) -> Finding:
    """Whether Jain's indices with two disciplines are the same."""
    parts: list[Comparison] = []
    for setting in settings:
        a, b = (median(run, aqm, setting, mixes.jain_on) for aqm in (one, other))
        text = f"{setting}: {NAMES[one]} {a:.3f}, {NAMES[other]} {b:.3f}"
        parts.append(Comparison(abs(a - b) <= SAME_INDEX, text))
    return judge("; ".join(part.text for part in parts), parts)


# Two congestion controls.


def control_of(flow: Mapping[str, Any]) -> str:
    """The name of the control of a flow; hosts of Linux have theirs under names of their own."""
    return str(flow["cc"]).removesuffix("-linux")


def by_control(outcome: Outcome) -> dict[str, tuple[float, float]]:
    """Mean throughput and median round trip of the flows of each."""
    found: dict[str, list[tuple[float, float]]] = {}
    seconds = range(mixes.BEGIN_S, series_of(outcome).seconds)
    for i, flow in enumerate(outcome.summary["flows"]):
        found.setdefault(control_of(flow), []).append((mixes.mean_mbps(outcome, i, seconds), flow["rtt_ms"]["p50"]))
    return {cc: (statistics.fmean(r for r, _ in v), statistics.fmean(t for _, t in v)) for cc, v in found.items()}


def levels(run: Evidence, aqm: str) -> Finding:
    """Whether CUBIC and BBR get the same, with the same round trips."""
    parts: list[Comparison] = []
    for outcome in run.runs(aqm, setting=CONTROLS):
        (rate, rtt), (other_rate, other_rtt) = (by_control(outcome)[cc] for cc in ("cubic", "bbr"))
        text = f"CUBIC {rate:.1f}, BBR {other_rate:.1f} Mbit/s for each flow"
        parts.append(Comparison(abs(rate - other_rate) <= SHARE * (rate + other_rate) / 2, text))
        text = f"round trips of {rtt:.1f} and {other_rtt:.1f} ms"
        parts.append(Comparison(abs(rtt - other_rtt) <= COMPARABLE * rtt, text))
    return judge("; ".join(part.text for part in parts), parts)


def no_loss(run: Evidence, aqms: Sequence[str]) -> Finding:
    """Whether the calls lose no packet."""
    parts: list[Comparison] = []
    for aqm in aqms:
        value = median(run, aqm, CALL, mixes.call_loss)
        parts.append(Comparison(value < 0.00005, f"{NAMES[aqm]} {value:.2%}"))
    return judge("; ".join(part.text for part in parts), parts)
