"""Claims on PINK under a flood of SYNs from forged sources (000, section 4)."""

from __future__ import annotations

from penstock.claims.entering import contradicts, of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import FAR, NEGLIGIBLE
from penstock.papers.pink_flood.runs import FLOODS, SYN_BYTES
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, drops

HARM = 1 / FAR  # a flood takes half of the goodput if less than this share is left

NO_DROP = (
    "by Theorem 1 windows of BW RTT / n keep the queue below BW RTT for any n: forged SYNs raise n, which makes "
    "windows smaller, so a flood makes no drop, and what begins with the first drop never begins"
)

CLAIMS: list[Claim] = []
flood = of(CLAIMS, "pink-flood")


def _goodput(run: Evidence, sampling: str, per_second: int) -> float:
    return run.cell_value(("pink", 8, f"{sampling}-{per_second}"), columns.goodput_all_mbps) or 0.0


def _floods(run: Evidence) -> list[int]:
    return [n for n in FLOODS if f"always-{n}" in run.settings]


def _costs_its_syns(run: Evidence, sampling: str) -> Finding:
    calm = _goodput(run, sampling, 0)
    parts: list[Comparison] = []
    for n in _floods(run):
        attacked, syns = _goodput(run, sampling, n), n * SYN_BYTES * 8 / 1e6
        text = f"{attacked:.2f} of {calm:.2f} Mbit/s with {n:,} SYNs per second, which take {syns:.2f}"
        parts.append(Comparison(attacked >= (1 - NEGLIGIBLE) * (calm - syns), text))
    return judge("; ".join(part.text for part in parts), parts)


@flood("4", "in the text", "general performance is maintained")
def who_transmits_is_counted(run: Evidence) -> Finding:
    """Where only flows that transmit count, a flood costs no more goodput than its SYNs take of the link and 1 %."""
    return _costs_its_syns(run, "always")


@flood("4", "in the text", "only when a packet drop occurs", because=contradicts(NO_DROP))
def sampling_after_a_drop(run: Evidence) -> Finding:
    """Where that begins with the first drop, a flood costs no more goodput than its SYNs take of the link and 1 %."""
    return _costs_its_syns(run, "after-drop")


@flood("4", "in the text", "not resilient")
def every_syn_counted_does_harm(run: Evidence) -> Finding:
    """Where every SYN counts, as in section 3, a flood of 1,000 SYNs per second and more takes half of the goodput."""
    calm = _goodput(run, "off", 0)
    parts: list[Comparison] = []
    for n in (n for n in _floods(run) if n >= 1000):
        attacked = _goodput(run, "off", n)
        text = f"{attacked:.2f} of {calm:.2f} Mbit/s with {n:,} SYNs per second"
        parts.append(Comparison(attacked < HARM * calm, text))
    return judge("; ".join(part.text for part in parts), parts)


@flood("4", "in the text", "some packet drops can be experienced", because=contradicts(NO_DROP))
def a_flood_makes_drops(run: Evidence) -> Finding:
    """Where every SYN counts, a flood makes packets be dropped."""
    parts: list[Comparison] = []
    for n in _floods(run):
        count = run.value("pink", 8, drops, f"off-{n}")
        parts.append(Comparison(count > 0, f"{count:,.0f} drops with {n:,} SYNs per second"))
    return judge("; ".join(part.text for part in parts), parts)


@flood("4", "Theorem 1", "0 drops")
def a_flood_makes_no_drops_where_who_transmits_counts(run: Evidence) -> Finding:
    """Where only flows that transmit count, nothing is dropped in a flood."""
    parts: list[Comparison] = []
    for n in _floods(run):
        count = run.value("pink", 8, drops, f"always-{n}")
        parts.append(Comparison(count == 0, f"{count:,.0f} drops with {n:,} SYNs per second"))
    return judge("; ".join(part.text for part in parts), parts)
