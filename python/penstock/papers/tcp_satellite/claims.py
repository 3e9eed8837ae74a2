"""Claims on TCP over a satellite link: document 002, section 2.2.2.

The dissertation shows throughput over time and gives no numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.claims.entering import contradicts, of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import FAR, MUCH, NEGLIGIBLE, UNFAIR
from penstock.papers.tcp_satellite.measures import goodput_limit_kbps, jain_together, rates_kbps, together
from penstock.papers.tcp_satellite.runs import NAMES, SIX, SIX_SETTING, STEP_S
from penstock.reproduce.results import Evidence, Outcome

BEHIND = 1 / MUCH  # "penalized"
WASTE = 1 / FAR  # of the link: "a huge waste"
SEGMENTS = 10_000  # of a transfer: 5 MB in 500 B

# Section 2.2.2.1: a first threshold of 5000 B, a buffer of 4 MB, round trips of 600 ms. Section 2.2.2.2: three
# transfers of 5 MB on 1 Mbit/s, each 10 s after the other.
FLOWS, SEGMENT_B, THRESHOLD_B, BUFFER_B, ROUND_S, LINK_BPS = 3, 500, 5_000, 4_000_000, 0.6, 1e6
ALL_S = FLOWS * SEGMENTS * SEGMENT_B * 8 / LINK_BPS + (FLOWS - 1) * 10
GROWN_B = FLOWS * (THRESHOLD_B + SEGMENT_B * ALL_S / ROUND_S)
NO_LOSS = contradicts(
    f"above its threshold of {THRESHOLD_B} B a window grows by a segment of {SEGMENT_B} B in a round trip of "
    f"{1e3 * ROUND_S:.0f} ms: in the {ALL_S:.0f} s that three transfers of 5 MB take on 1 Mbit/s, three windows grow "
    f"to {GROWN_B / 1e3:.0f} kB in all, less than a tenth of the buffer of {BUFFER_B / 1e6:.0f} MB: nothing is lost"
)

CLAIMS: list[Claim] = []
sat = of(CLAIMS, "tcp-satellite", "002")


def _value(run: Evidence, setting: str, measure: Callable[[Outcome], float]) -> float:
    """The median over seeds."""
    return run.median_or_zero("droptail", setting, measure)


def _retransmits(flow: int) -> Callable[[Outcome], float]:
    return lambda outcome: float(outcome.summary["flows"][flow]["retransmits"])


def _all_retransmits(outcome: Outcome) -> float:
    return float(sum(flow["retransmits"] for flow in outcome.summary["flows"]))


def _last_end_s(outcome: Outcome) -> float:
    """When the last transfer was complete; the end of the run if it was not."""
    flows, end = outcome.summary["flows"], float(outcome.summary["duration_s"])
    return max(end if f["completion_s"] is None else f["start_s"] + f["completion_s"] for f in flows)


@sat("2.2.2.2", "Figure 2.8", "less than the other two")
def the_third_flow_is_penalized(run: Evidence) -> Finding:
    """Of three NewReno transfers with a large buffer, the last to begin gets clearly less while all are there."""
    parts: list[Comparison] = []
    for outcome in run.runs("droptail", setting="newreno-large"):
        first, second, third = rates_kbps(outcome, together(outcome))
        text = f"{first:.0f}, {second:.0f} and {third:.0f} kbit/s while all are there"
        parts.append(Comparison(third <= BEHIND * min(first, second), text))
    return judge(parts[0].text, parts)


@sat("2.2.2.2", "Figure 2.8", "a high number", because=NO_LOSS)
def the_third_flow_loses_much(run: Evidence) -> Finding:
    """The third NewReno flow loses many segments."""
    lost = _value(run, "newreno-large", _retransmits(2))
    text = f"{lost:.0f} segments of {SEGMENTS} were sent again"
    return judge(text, [Comparison(lost >= NEGLIGIBLE * SEGMENTS, text)])


@sat("2.2.2.2", "Figure 2.8", "a huge waste")
def slow_growth_wastes_the_link(run: Evidence) -> Finding:
    """While the first NewReno flow is alone, its window grows so slowly that most of the link is unused."""
    alone = range(int(STEP_S))

    def used(outcome: Outcome) -> float:
        return rates_kbps(outcome, alone)[0] / goodput_limit_kbps(outcome)

    share = _value(run, "newreno-large", used)
    text = f"{share:.0%} of the link in the first {STEP_S:.0f} s"
    return judge(text, [Comparison(share < WASTE, text)])


@sat("2.2.2.2", "Figure 2.9", "unfair")
def six_controls_are_unfair(run: Evidence) -> Finding:
    """Six controls do not share the link alike."""
    parts: list[Comparison] = []
    for outcome in run.runs("droptail", setting=SIX_SETTING):
        rates = rates_kbps(outcome, together(outcome))
        told = ", ".join(f"{NAMES[cc]} {rate:.0f}" for cc, rate in zip(SIX, rates, strict=True))
        index = jain_together(outcome)
        parts.append(Comparison(index < UNFAIR, f"Jain's index {index:.2f}: {told} kbit/s"))
    return judge(parts[0].text, parts)


@sat("2.2.2.3", "Figure 2.10", "poor")
def cubic_is_unfair_in_a_standard_buffer(run: Evidence) -> Finding:
    """Three CUBIC flows share poorly in a standard buffer: who is not hit by drops takes from who is."""
    index = _value(run, "cubic-standard", jain_together)
    drops = _value(run, "cubic-standard", _all_retransmits)
    shared, lost = f"Jain's index {index:.2f} while all are there", f"{drops:.0f} segments sent again"
    return judge(f"{shared}, {lost}", [Comparison(index < UNFAIR, shared), Comparison(drops > 0, lost)])


@sat("2.2.2.3", "Figure 2.11", "worse than CUBIC")
def noordwijk_is_worse_in_a_standard_buffer(run: Evidence) -> Finding:
    """In a standard buffer three Noordwijk flows lose more segments than CUBIC and take longer."""
    parts: list[Comparison] = []
    measures: tuple[tuple[str, Callable[[Outcome], float]], ...] = (
        ("segments sent again", _all_retransmits),
        ("s until the last is complete", _last_end_s),
    )
    for what, measure in measures:
        ours, theirs = (_value(run, f"{cc}-standard", measure) for cc in ("noordwijk", "cubic"))
        parts.append(Comparison(ours > theirs, f"Noordwijk {ours:.0f} {what}, CUBIC {theirs:.0f}"))
    return judge("; ".join(part.text for part in parts), parts)


@sat("2.2.2.3", "Figure 2.11", "no losses assumed")
def noordwijk_needs_a_large_buffer(run: Evidence) -> Finding:
    """Noordwijk relies on a queue that holds all it sends: it loses in a standard buffer and hardly in a large one."""
    large, standard = (_value(run, f"noordwijk-{buffer}", _all_retransmits) for buffer in ("large", "standard"))
    text = f"{large:.0f} segments sent again in a large buffer, {standard:.0f} in a standard one"
    return judge(text, [Comparison(large < NEGLIGIBLE * SEGMENTS <= standard, text)])
