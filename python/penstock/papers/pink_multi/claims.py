"""The claims about the results of `pink-multi`."""

from __future__ import annotations

import statistics

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, Kind, judge
from penstock.claims.words import CLOSE
from penstock.papers._shared import pink
from penstock.papers._shared.pink_sharing_claims import per_flow_mbps
from penstock.papers.pink_multi.columns import BAD_MBPS, predicted_use, used, with_flows
from penstock.papers.pink_multi.runs import REALLOCATIONS
from penstock.reproduce import columns, sharing
from penstock.reproduce.results import Evidence, Outcome, drops

REGAINED = 1 - CLOSE  # smallest goodput, as a share of c times the rate

CLAIMS: list[Claim] = []
multi = of(CLAIMS, "pink-multi")


def _multi_runs(run: Evidence, mode: str) -> list[Outcome]:
    return run.runs("pink", setting=mode)


def _used(outcome: Outcome, flows: int) -> float:
    return used(flows)(outcome) or 0.0


@multi("6.4", "Figure 20", "underused until five flows")
def loss_is_that_of_arithmetic(run: Evidence) -> Finding:
    """Without reallocation the link loses what the bad flow cannot use of its share: nothing from five flows on."""
    parts: list[Comparison] = []
    measured = []
    for outcome in _multi_runs(run, "off"):
        for n in range(2, 9):
            used, expected = _used(outcome, n), predicted_use(n)
            measured.append(f"{used:.1%}")
            text = f"{n} flows use {used:.1%} of c x rate, by arithmetic {expected:.1%}"
            parts.append(Comparison(abs(used - expected) <= CLOSE * expected, text))
    return judge(f"{', '.join(measured[:7])} of c x rate with 2 to 8 flows", parts)


def _regained(run: Evidence, mode: str) -> Finding:
    parts: list[Comparison] = []
    measured = []
    for outcome in _multi_runs(run, mode):
        for n in range(2, 9):
            used = _used(outcome, n)
            measured.append(f"{used:.1%}")
            parts.append(Comparison(used >= REGAINED, f"{n} flows use {used:.1%} of c x rate"))
    return judge(f"{', '.join(measured[:7])} of c x rate with 2 to 8 flows", parts)


@multi("6.4", "Figure 21", "exploited without waste")
def reallocation_uses_the_link(run: Evidence) -> Finding:
    """With the paper's reallocation the good flows use what the bad one cannot, from two flows on."""
    return _regained(run, "paper")


@multi("3.1", "eq. 2", "no waste of resources", Kind.OWN)
def max_min_uses_the_link(run: Evidence) -> Finding:
    """With max-min fair reallocation the good flows use what the bad one cannot, from two flows on."""
    return _regained(run, "max-min")


@multi("6.4", "Figures 20 and 21", "the same in both")
def bad_flow_keeps_its_rate(run: Evidence) -> Finding:
    """The bad flow gets its bottleneck with and without reallocation while fewer than five flows are there."""
    parts: list[Comparison] = []
    own = pink.PINK_C * BAD_MBPS
    for mode in ("paper", "max-min"):
        for off, on in zip(_multi_runs(run, "off"), _multi_runs(run, mode), strict=True):
            for n in (2, 3, 4):
                a, b = (_settled_mbps(outcome, n)[1] for outcome in (off, on))
                text = f"{n} flows: off {a:.2f}, {mode} {b:.2f} Mbit/s of {own:.2f}"
                parts.append(Comparison(max(abs(a - own), abs(b - own)) <= sharing.WITHIN * own, text))
    return judge("; ".join(part.text for part in parts[:3]), parts)


def _settled_mbps(outcome: Outcome, flows: int) -> list[float]:
    seconds = with_flows(outcome, flows).tail
    return per_flow_mbps(outcome, seconds)[:flows]


@multi("6.4", "Figures 20 and 21", "fairness restored from five flows on")
def five_flows_share_alike(run: Evidence) -> Finding:
    """With five flows or more all have equal shares, with reallocation as without."""
    parts: list[Comparison] = []
    furthest = 0.0
    for mode in REALLOCATIONS:
        for outcome in _multi_runs(run, mode):
            for n in range(5, 9):
                rates = _settled_mbps(outcome, n)
                share = pink.PINK_C * 10 / n
                worst = max(abs(rate - share) for rate in rates) / share
                furthest = max(furthest, worst)
                text = f"{mode}, {n} flows: furthest {worst:.1%} from the share"
                parts.append(Comparison(worst <= sharing.WITHIN, text))
    return judge(f"furthest {furthest:.1%} from the share", parts)


@multi("6.4", "in the text", "0")
def second_bottleneck_drops_nothing(run: Evidence) -> Finding:
    """Neither PINK drops a packet, whatever the reallocation."""
    parts: list[Comparison] = []
    for mode in run.settings:
        for outcome in _multi_runs(run, mode):
            count = drops(outcome.summary)
            parts.append(Comparison(count == 0, f"{mode}: {count:.0f} drops, longest queue {_longest(outcome)}"))
    return judge("; ".join(part.text for part in parts), parts)


def _longest(outcome: Outcome) -> str:
    return f"{columns.queue_max_kb(outcome):.0f} kB"


def _two_bad_flows(run: Evidence, mode: str) -> Finding:
    parts: list[Comparison] = []
    measured = []
    for outcome in _multi_runs(run, f"{mode}-two"):
        for n in range(4, 9):
            good = [rate for i, rate in enumerate(_settled_mbps(outcome, n)) if i not in (1, 2)]
            middle = statistics.fmean(good)
            spread = max(abs(rate - middle) for rate in good) / middle
            measured.append(f"{_used(outcome, n):.1%}")
            text = f"{n} flows: {_used(outcome, n):.1%} of c x rate, good ones within {spread:.1%} of their mean"
            parts.append(Comparison(_used(outcome, n) >= REGAINED and spread <= sharing.WITHIN, text))
    return judge(f"{', '.join(measured)} of c x rate with 4 to 8 flows", parts)


@multi("3.1", "eq. 2", "no waste of resources")
def two_bad_flows_with_the_papers_reallocation(run: Evidence) -> Finding:
    """With the paper's reallocation the good flows share alike what two bad ones cannot use."""
    return _two_bad_flows(run, "paper")


@multi("3.1", "eq. 2", "no waste of resources", Kind.OWN)
def two_bad_flows_with_max_min(run: Evidence) -> Finding:
    """With max-min fair reallocation the good flows share alike what two bad ones cannot use."""
    return _two_bad_flows(run, "max-min")
