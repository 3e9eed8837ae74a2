"""Claims on how flows share a link under PINK: different round trips (000, 6.2), a second bottleneck (000, 6.4), an
emergency network (002, 3.2.4).

The documents show these results as curves over time. What an eye would read from them is a constant below.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.reproduce import columns, sharing
from penstock.reproduce.pink import REALLOCATIONS
from penstock.reproduce.results import Evidence, Outcome, drops
from penstock.reproduce.series import Series

CLOSE = 0.03  # "close to the optimal value": within 3 %
ALMOST_ALWAYS = 0.95  # of the seconds
STABLE = 0.05  # a stable total: its standard deviation is at most 5 % of its mean
END_S = 300.0  # of the paper's runs
BAR_S = 290.0  # "a time close to the optimal value": 269 s with headers, and 8 % on top
STARVED_KBPS = 50  # "a few kbps" for a whole second
GRAIN = 0.25  # three seconds hold four windows of 700 ms, one more or one less
POOR = 0.9  # "not able to fully exploit the channel"
REGAINED = 0.97  # of c times the rate

CLAIMS: list[Claim] = []
rtt, multi = of(CLAIMS, "pink-rtt"), of(CLAIMS, "pink-multi")
rtt_sum = of(CLAIMS, "pink-rtt", varies=False)
ppdr = of(CLAIMS, "pink-ppdr", "002")


def _series(outcome: Outcome) -> Series:
    if outcome.series is None:
        raise ValueError(f"{outcome.case} was stored without its series")
    return outcome.series


def _mean_mbps(outcome: Outcome, seconds: range) -> float:
    return sharing.mean_total(_series(outcome), seconds) / 1e3


def _limit_mbps(run: Evidence) -> float:
    return run.experiment.goodput_limit_bps / 1e6


def _until_first_end(outcome: Outcome) -> range:
    """From the last join until the first flow is through: four flows."""
    ends = [end for end in columns.ends_s(outcome) if end is not None]
    return range(80, int(min(ends, default=END_S)))


def _per_flow_mbps(outcome: Outcome, seconds: range) -> list[float]:
    return [sum(flow[k] for k in seconds) / len(seconds) / 1e3 for flow in _series(outcome).flows]


def _list(values: Sequence[float], digits: int = 2) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


def _unsteady(outcome: Outcome, seconds: range) -> float:
    totals = [_series(outcome).total()[k] for k in seconds]
    return statistics.pstdev(totals) / statistics.fmean(totals)


# Different round trip times.


@rtt("6.2", "Figure 11", "degraded from 25 to 75 s only")
def droptail_suffers_from_joins(run: Evidence) -> Finding:
    """DropTail uses the link fully with one flow and from 75 s on, and less while flows join."""
    limit = _limit_mbps(run)
    parts: list[Comparison] = []
    for outcome in run.runs("droptail"):
        alone = _mean_mbps(outcome, range(5, 25))
        joining = _mean_mbps(outcome, range(25, 75))
        later = _mean_mbps(outcome, _until_first_end(outcome))
        parts.append(Comparison(alone >= limit * (1 - CLOSE), f"{alone:.2f} of {limit:.2f} Mbit/s with one flow"))
        parts.append(Comparison(joining < later, f"{joining:.2f} while flows join, {later:.2f} Mbit/s after"))
        parts.append(Comparison(later >= limit * (1 - CLOSE), f"{later:.2f} of {limit:.2f} Mbit/s after the joins"))
    return judge("; ".join(part.text for part in parts[:3]), parts)


@rtt("6.2", "Figure 11", "no tendency with the round trip")
def droptail_unequal(run: Evidence) -> Finding:
    """DropTail gives the flows unequal shares."""
    return _unequal(run, "droptail")


def _unequal(run: Evidence, aqm: str) -> Finding:
    parts: list[Comparison] = []
    for outcome in run.runs(aqm):
        rates = _per_flow_mbps(outcome, _until_first_end(outcome))
        text = f"{aqm}: {_list(rates)} Mbit/s for 100 to 250 ms"
        parts.append(Comparison(max(rates) > min(rates) * (1 + 2 * sharing.WITHIN), text))
    return judge(parts[0].text if parts else "", parts)


def _short_round_trips_win(run: Evidence, aqm: str) -> Finding:
    parts: list[Comparison] = []
    for outcome in run.runs(aqm):
        rates = _per_flow_mbps(outcome, _until_first_end(outcome))
        for near, far in ((0, 1), (1, 2), (2, 3), (0, 3)):
            text = f"{_round_trip(near)} gets {rates[near]:.2f}, {_round_trip(far)} {rates[far]:.2f} Mbit/s"
            parts.append(Comparison(rates[near] > rates[far], text))
    return judge("; ".join(part.text for part in parts[-1:]), parts)


def _round_trip(flow: int) -> str:
    return f"{100 + 50 * flow} ms"


@rtt("6.2", "Figure 12", "100 ms above 250 ms")
def codel_favours_short_round_trips(run: Evidence) -> Finding:
    """CoDel gives more to flows with shorter round trips."""
    return _short_round_trips_win(run, "codel")


@rtt("6.2", "in the text", "as CoDel")
def ared_favours_short_round_trips(run: Evidence) -> Finding:
    """ARED gives more to flows with shorter round trips, as CoDel does."""
    return _short_round_trips_win(run, "ared")


@rtt("6.2", "Figure 12", "two of four in 300 s")
def codel_completes_two(run: Evidence) -> Finding:
    """Under CoDel two of the four transfers are complete after 300 s."""
    parts = [
        Comparison(done == 2, f"{done} of 4 are complete after {END_S:g} s")
        for done in (
            sum(end is not None and end <= END_S for end in columns.ends_s(outcome)) for outcome in run.runs("codel")
        )
    ]
    return judge(parts[0].text if parts else "", parts)


@rtt("6.2", "Figure 13", "first half swings, second half stable")
def green_calms_down(run: Evidence) -> Finding:
    """GREEN's throughput swings in the first half, and its flows share more alike than CoDel's in the second."""
    parts: list[Comparison] = []
    for green, codel in zip(run.runs("green"), run.runs("codel"), strict=True):
        early, late = _unsteady(green, range(5, 150)), _unsteady(green, _second_half(green))
        parts.append(Comparison(early > STABLE, f"deviation of the total {early:.1%} of its mean before 150 s"))
        parts.append(Comparison(late < early, f"{late:.1%} after, {early:.1%} before 150 s"))
        fair = [sharing.jain(_per_flow_mbps(o, _second_half(o))) for o in (green, codel)]
        parts.append(
            Comparison(fair[0] > fair[1], f"Jain's index after 150 s: green {fair[0]:.3f}, codel {fair[1]:.3f}")
        )
    return judge("; ".join(part.text for part in parts[:3]), parts)


def _second_half(outcome: Outcome) -> range:
    ends = [end for end in columns.ends_s(outcome) if end is not None]
    return range(150, max(160, int(min(ends, default=END_S))))


@rtt("6.2", "Figure 14", "almost always")
def pink_total_near_optimum(run: Evidence) -> Finding:
    """Under PINK the total is almost always close to the optimum, joins included, until the last flow ends."""
    limit = _limit_mbps(run)
    parts: list[Comparison] = []
    for outcome in run.runs("pink"):
        end = int(columns.last_end_s(outcome) or run.duration_s)
        totals = _series(outcome).total()[:end]
        near = sum(total / 1e3 >= limit * (1 - CLOSE) for total in totals) / len(totals)
        parts.append(Comparison(near >= ALMOST_ALWAYS, f"{near:.1%} of the seconds within 3 % of {limit:.2f} Mbit/s"))
    return judge(parts[0].text if parts else "", parts)


@rtt("6.2", "Figure 14", "always")
def pink_shares_alike(run: Evidence) -> Finding:
    """PINK's flows have equal shares from three round trips after a join on, whatever the round trip."""
    parts: list[Comparison] = []
    for outcome in run.runs("pink"):
        parts.extend(_shares_met(outcome))
    met = sum(part.holds for part in parts)
    return judge(f"all flows within 5 % in {met} of {len(parts)} seconds", parts)


def _shares_met(outcome: Outcome) -> Iterator[Comparison]:
    series = _series(outcome)
    for phase in sharing.phases(outcome):
        if phase.joined:
            shares = columns.equal_shares_kbps(phase)
            for k in phase.judged:
                rates = _list([series.flows[i][k] / 1e3 for i in phase.active])
                text = f"{k - phase.begin_s:.0f} s after the join at {phase.begin_s:.0f} s: {rates} Mbit/s"
                yield Comparison(sharing.met(series, phase, shares, k), f"{text}, share {shares[0] / 1e3:.2f}")


@rtt("6.2", "Figure 14", "before the end; close to 260 s")
def pink_completes_all(run: Evidence) -> Finding:
    """Under PINK all four transfers are complete in a time close to the optimum: before 290 s."""
    parts: list[Comparison] = []
    for outcome in run.runs("pink"):
        for flow, end in enumerate(columns.ends_s(outcome)):
            when = "not complete" if end is None else f"complete at {end:.1f} s"
            parts.append(Comparison(end is not None and end < BAR_S, f"{_round_trip(flow)} {when}"))
    return judge("; ".join(part.text for part in parts[:4]), parts)


@rtt("6.2", "Figures 11, 12, 14", "PINK first")
def others_complete_later(run: Evidence) -> Finding:
    """The other disciplines do not complete all four by 290 s, and PINK does so before each of them."""
    parts: list[Comparison] = []
    pink = [columns.last_end_s(outcome) for outcome in run.runs("pink")]
    for aqm in (aqm for aqm in run.aqms if aqm != "pink"):
        for outcome, ours in zip(run.runs(aqm), pink, strict=True):
            end = columns.last_end_s(outcome)
            when = "not all complete" if end is None else f"all complete at {end:.1f} s"
            later = end is None or (end >= BAR_S and ours is not None and end > ours)
            parts.append(Comparison(later, f"{aqm}: {when}"))
    return judge("; ".join(part.text for part in parts[:4]), parts)


@rtt_sum("6.2", "footnote 4", "260 s without overhead")
def stated_least_time(run: Evidence) -> Finding:
    """Sending 320 MB at 10 Mbit/s takes at least 260 s, overheads left out."""
    least = 4 * 80e6 * 8 / run.experiment.rate_bps
    framed = 4 * 80e6 * 8 / run.experiment.goodput_limit_bps
    text = f"320 MB x 8 / 10 Mbit/s is {least:.0f} s; with headers {framed:.1f} s"
    return judge(f"{least:.0f} s", [Comparison(abs(least - 260) <= 0.01 * 260, text)])


# A second bottleneck.


def _multi_runs(run: Evidence, mode: str) -> list[Outcome]:
    return run.runs("pink", setting=mode)


def _used(outcome: Outcome, flows: int) -> float:
    return columns.used(flows)(outcome) or 0.0


@multi("6.4", "Figure 20", "underused until five flows")
def loss_is_that_of_arithmetic(run: Evidence) -> Finding:
    """Without reallocation the link loses what the bad flow cannot use of its share: nothing from five flows on."""
    parts: list[Comparison] = []
    measured = []
    for outcome in _multi_runs(run, "off"):
        for n in range(2, 9):
            used, expected = _used(outcome, n), columns.predicted_use(n)
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


@multi("3.1", "eq. 2", "no waste of resources")
def max_min_uses_the_link(run: Evidence) -> Finding:
    """With max-min fair reallocation the good flows use what the bad one cannot, from two flows on."""
    return _regained(run, "max-min")


@multi("6.4", "Figures 20 and 21", "the same in both")
def bad_flow_keeps_its_rate(run: Evidence) -> Finding:
    """The bad flow gets the same with and without reallocation while fewer than five flows are there."""
    parts: list[Comparison] = []
    for mode in ("paper", "max-min"):
        for off, on in zip(_multi_runs(run, "off"), _multi_runs(run, mode), strict=True):
            for n in (2, 3, 4):
                a, b = (_settled_mbps(outcome, n)[1] for outcome in (off, on))
                parts.append(
                    Comparison(abs(a - b) <= sharing.WITHIN * a, f"{n} flows: off {a:.2f}, {mode} {b:.2f} Mbit/s")
                )
    return judge("; ".join(part.text for part in parts[:3]), parts)


def _settled_mbps(outcome: Outcome, flows: int) -> list[float]:
    seconds = columns.with_flows(outcome, flows).tail
    return _per_flow_mbps(outcome, seconds)[:flows]


@multi("6.4", "Figures 20 and 21", "fairness restored from five flows on")
def five_flows_share_alike(run: Evidence) -> Finding:
    """With five flows or more all have equal shares, with reallocation as without."""
    parts: list[Comparison] = []
    furthest = 0.0
    for mode in REALLOCATIONS:
        for outcome in _multi_runs(run, mode):
            for n in range(5, 9):
                rates = _settled_mbps(outcome, n)
                share = columns.PINK_C * 10 / n
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


@multi("3.1", "eq. 2", "no waste of resources")
def two_bad_flows_with_max_min(run: Evidence) -> Finding:
    """With max-min fair reallocation the good flows share alike what two bad ones cannot use."""
    return _two_bad_flows(run, "max-min")


# An emergency network.


def _four(run: Evidence, aqm: str, setting: str = "joins") -> list[Outcome]:
    return run.runs(aqm, 4, setting)


AFTER_JOINS = range(20, 100)


@ppdr("3.2.4.1", "Figures 3.25 and 3.26", "not fully used")
def codel_and_red_waste_the_satellite(run: Evidence) -> Finding:
    """CoDel and RED do not use the satellite link fully."""
    limit = _limit_mbps(run)
    parts: list[Comparison] = []
    for aqm in ("codel", "red"):
        for outcome in _four(run, aqm):
            value = _mean_mbps(outcome, AFTER_JOINS)
            parts.append(Comparison(value < POOR * limit, f"{aqm} {value:.2f} of {limit:.2f} Mbit/s after 20 s"))
    return judge("; ".join(part.text for part in parts), parts)


@ppdr("3.2.4.1", "Figure 3.25", "a few kbps at times")
def codel_starves_some_flow(run: Evidence) -> Finding:
    """Under CoDel the four flows find no balance: at times at least one of them gets a few kbit/s."""
    return _starves(run, "joins")


def _starves(run: Evidence, setting: str) -> Finding:
    parts: list[Comparison] = []
    for outcome in _four(run, "codel", setting):
        flows = _series(outcome).flows
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
        best = min(max(_per_flow_mbps(outcome, span)) for span in spans)
        parts.append(Comparison(best < 1.0, f"in the poorest 20 s the best flow gets {best:.2f} Mbit/s"))
    return judge(parts[0].text if parts else "", parts)


@ppdr("3.2.4.1", "Figure 3.27", "more used, unfair, swinging")
def droptail_uses_more_and_swings(run: Evidence) -> Finding:
    """DropTail uses the link better than CoDel and RED, but not alike and with drastic swings."""
    parts: list[Comparison] = []
    for outcome in _four(run, "droptail"):
        ours = _mean_mbps(outcome, AFTER_JOINS)
        for aqm in ("codel", "red"):
            other = statistics.median(_mean_mbps(o, AFTER_JOINS) for o in _four(run, aqm))
            parts.append(Comparison(ours > other, f"droptail {ours:.2f}, {aqm} {other:.2f} Mbit/s"))
        rates = _per_flow_mbps(outcome, AFTER_JOINS)
        parts.append(Comparison(max(rates) > 1.1 * min(rates), f"flows of {_list(rates)} Mbit/s"))
        swing = _unsteady(outcome, AFTER_JOINS)
        parts.append(Comparison(swing > 2 * STABLE, f"deviation of the total {swing:.0%} of its mean"))
    return judge("; ".join(part.text for part in parts[:4]), parts)


def _pink_at_share(run: Evidence, setting: str, seconds: range) -> Finding:
    share = columns.PINK_C * run.experiment.rate_bps / 4e6
    parts: list[Comparison] = []
    for outcome in _four(run, "pink", setting):
        for flow, rate in enumerate(_per_flow_mbps(outcome, seconds)):
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
    capacity = columns.PINK_C * run.experiment.rate_bps / 1e3
    parts: list[Comparison] = []
    for outcome in _four(run, "pink"):
        for phase in (phase for phase in sharing.phases(outcome) if phase.joined):
            share = capacity / len(phase.active) / 1e3
            rates = _per_flow_mbps(outcome, phase.whole[-3:])[: len(phase.active)]
            text = f"{len(phase.active)} flows get {_list(rates)} Mbit/s of {share:.2f} before the next"
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
        parts.append(Comparison(a < b, f"{n} files: codel {a:.0f}, droptail {b:.0f} s"))
    return judge("; ".join(part.text for part in parts), parts)
