"""The claims about the results of `pink-ppdr`."""

from __future__ import annotations

import statistics

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import CONSTANT, POOR, SHARE, SLIGHT
from penstock.papers._shared import pink
from penstock.papers._shared.pink_sharing_claims import limit_mbps, listed, mean_mbps, per_flow_mbps, unsteady
from penstock.reproduce import columns, sharing
from penstock.reproduce.results import Evidence, Outcome
from penstock.reproduce.seconds import series_of

STARVED_KBPS = 50  # "a few kbps" for a whole second
GRAIN = 0.25  # three seconds contain four windows of 700 ms, or one more or less

CLAIMS: list[Claim] = []
ppdr = of(CLAIMS, "pink-ppdr", "002")


def _four(run: Evidence, aqm: str, setting: str = "joins") -> list[Outcome]:
    return run.runs(aqm, 4, setting)


AFTER_JOINS = range(20, 100)


@ppdr("3.2.4.1", "Figures 3.25 and 3.26", "not fully used")
def codel_and_red_waste_the_satellite(run: Evidence) -> Finding:
    """CoDel and RED do not use the satellite link fully."""
    limit = limit_mbps(run)
    parts: list[Comparison] = []
    for aqm in ("codel", "red"):
        for outcome in _four(run, aqm):
            value = mean_mbps(outcome, AFTER_JOINS)
            parts.append(Comparison(value < POOR * limit, f"{aqm} {value:.2f} of {limit:.2f} Mbit/s after 20 s"))
    return judge("; ".join(part.text for part in parts), parts)


@ppdr("3.2.4.1", "Figure 3.25", "a few kbps at times")
def codel_starves_some_flow(run: Evidence) -> Finding:
    """Under CoDel the four flows find no balance: at times at least one of them gets a few kbit/s."""
    return _starves(run, "joins")


def _starves(run: Evidence, setting: str) -> Finding:
    parts: list[Comparison] = []
    for outcome in _four(run, "codel", setting):
        flows = series_of(outcome).flows
        starved = sum(min(flow[k] for flow in flows) <= STARVED_KBPS for k in AFTER_JOINS)
        parts.append(
            Comparison(starved > 0, f"in {starved} of 80 seconds some flow gets at most {STARVED_KBPS} kbit/s")
        )
    return judge(parts[0].text if parts else "", parts)


@ppdr("3.2.4.1", "Figure 3.26", "40 to 60 s")
def red_leaves_all_below_their_share(run: Evidence) -> Finding:
    """Under RED all four flows are below 1 Mbit/s on average for 20 s together."""
    parts: list[Comparison] = []
    for outcome in _four(run, "red"):
        spans = [range(begin, begin + 20) for begin in range(20, 81)]
        best = min(max(per_flow_mbps(outcome, span)) for span in spans)
        parts.append(Comparison(best < 1.0, f"in the poorest 20 s the best flow gets {best:.2f} Mbit/s"))
    return judge(parts[0].text if parts else "", parts)


@ppdr("3.2.4.1", "Figure 3.27", "more used, unfair, swinging")
def droptail_uses_more_and_swings(run: Evidence) -> Finding:
    """DropTail uses the link better than CoDel and RED, but not alike and with drastic swings."""
    parts: list[Comparison] = []
    for outcome in _four(run, "droptail"):
        ours = mean_mbps(outcome, AFTER_JOINS)
        for aqm in ("codel", "red"):
            other = statistics.median(mean_mbps(o, AFTER_JOINS) for o in _four(run, aqm))
            parts.append(Comparison(ours > other, f"droptail {ours:.2f}, {aqm} {other:.2f} Mbit/s"))
        rates = per_flow_mbps(outcome, AFTER_JOINS)
        parts.append(Comparison(max(rates) > (1 + SHARE) * min(rates), f"flows of {listed(rates)} Mbit/s"))
        swing = unsteady(outcome, AFTER_JOINS)
        parts.append(Comparison(swing > 2 * CONSTANT, f"deviation of the total {swing:.0%} of its mean"))
    return judge("; ".join(part.text for part in parts[:4]), parts)


def _pink_at_share(run: Evidence, setting: str, seconds: range) -> Finding:
    share = pink.PINK_C * run.experiment.rate_bps / 4e6
    parts: list[Comparison] = []
    for outcome in _four(run, "pink", setting):
        for flow, rate in enumerate(per_flow_mbps(outcome, seconds)):
            text = f"flow {flow + 1} gets {rate:.2f} of {share:.2f} Mbit/s of payload"
            parts.append(Comparison(abs(rate - share) <= sharing.WITHIN * share, text))
    return judge("; ".join(part.text for part in parts[:4]), parts)


@ppdr("3.2.4.1", "Figure 3.28", "1 Mbit/s for each flow")
def pink_gives_each_its_share(run: Evidence) -> Finding:
    """Under PINK each of the four flows gets a steady quarter of the satellite link once all are there."""
    return _pink_at_share(run, "joins", range(30, 100))


@ppdr("3.2.4.1", "Figure 3.28", "immediately")
def pink_settles_before_the_next_join(run: Evidence) -> Finding:
    """Under PINK flows that join reach the new shares before the next one joins, 5 s later."""
    capacity = pink.PINK_C * run.experiment.rate_bps / 1e3
    parts: list[Comparison] = []
    for outcome in _four(run, "pink"):
        for phase in (phase for phase in sharing.phases(outcome) if phase.joined):
            share = capacity / len(phase.active) / 1e3
            rates = per_flow_mbps(outcome, phase.whole[-3:])[: len(phase.active)]
            text = f"{len(phase.active)} flows get {listed(rates)} Mbit/s of {share:.2f} before the next"
            parts.append(Comparison(all(abs(rate - share) <= GRAIN * share for rate in rates), text))
    return judge("; ".join(part.text for part in parts[:4]), parts)


@ppdr("3.2.4.2", "Figure 3.29", "no better than with equal round trips")
def codel_starves_at_distances(run: Evidence) -> Finding:
    """Under CoDel flows of 700 to 850 ms find no balance either: at times one gets a few kbit/s."""
    return _starves(run, "distances")


@ppdr("3.2.4.2", "Figure 3.30", "an optimal balance from the very beginning")
def pink_is_fair_over_distances(run: Evidence) -> Finding:
    """Under PINK flows of 700 to 850 ms get equal shares."""
    return _pink_at_share(run, "distances", range(15, 100))


def _slowest(run: Evidence, aqm: str, files: int) -> float:
    value = run.cell_value((aqm, files, "files"), columns.last_end_s)
    return float("inf") if value is None else value


@ppdr("3.2.4.3", "Figure 3.31", "lowest at every number")
def pink_completes_files_first(run: Evidence) -> Finding:
    """The slowest file is through earliest under PINK, whatever the number of files."""
    return _extreme(run, "pink", smallest=True)


@ppdr("3.2.4.3", "Figure 3.31", "highest at every number")
def red_completes_files_last(run: Evidence) -> Finding:
    """The slowest file is through latest under RED, whatever the number of files."""
    return _extreme(run, "red", smallest=False)


def _extreme(run: Evidence, aqm: str, smallest: bool) -> Finding:
    parts: list[Comparison] = []
    for n in run.counts(setting="files"):
        times = {other: _slowest(run, other, n) for other in run.aqms}
        edge = min(times.values()) if smallest else max(times.values())
        text = ", ".join(f"{other} {value:.0f}" for other, value in times.items())
        parts.append(Comparison(times[aqm] == edge, f"{n} files: {text} s"))
    return judge("; ".join(part.text for part in parts[-1:]), parts)


@ppdr("3.2.4.3", "Figure 3.31", "slightly better above 4 files")
def codel_slightly_before_droptail(run: Evidence) -> Finding:
    """With more than four files CoDel's slowest is through a little before DropTail's."""
    parts: list[Comparison] = []
    for n in [n for n in run.counts(setting="files") if n > 4]:
        a, b = _slowest(run, "codel", n), _slowest(run, "droptail", n)
        parts.append(Comparison((1 - SLIGHT) * b <= a < b, f"{n} files: codel {a:.0f}, droptail {b:.0f} s"))
    return judge("; ".join(part.text for part in parts), parts)
