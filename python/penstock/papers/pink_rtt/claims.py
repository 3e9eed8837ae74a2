"""The claims about the results of `pink-rtt`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import ALMOST_ALWAYS, CLOSE, CONSTANT
from penstock.fairness import jain
from penstock.papers._shared.pink_sharing_claims import limit_mbps, listed, mean_mbps, per_flow_mbps, unsteady
from penstock.papers.pink_rtt.columns import equal_shares_kbps
from penstock.reproduce import columns, sharing
from penstock.reproduce.results import Evidence, Outcome
from penstock.reproduce.seconds import series_of

END_S = 300.0  # duration of the paper's runs
BAR_S = 290.0  # "a time close to the optimal value": 8 % above 269 s, the optimum with headers

CLAIMS: list[Claim] = []
rtt = of(CLAIMS, "pink-rtt")
rtt_sum = of(CLAIMS, "pink-rtt", varies=False)


def _until_first_end(outcome: Outcome) -> range:
    """Returns the time with four flows: from the last join until the first flow is complete."""
    ends = [end for end in columns.ends_s(outcome) if end is not None]
    return range(80, int(min(ends, default=END_S)))


@rtt("6.2", "Figure 11", "degraded from 25 to 75 s only")
def droptail_suffers_from_joins(run: Evidence) -> Finding:
    """DropTail uses the link fully with one flow and from 75 s on, and less while flows join."""
    limit = limit_mbps(run)
    parts: list[Comparison] = []
    for outcome in run.runs("droptail"):
        alone = mean_mbps(outcome, range(5, 25))
        joining = mean_mbps(outcome, range(25, 75))
        later = mean_mbps(outcome, _until_first_end(outcome))
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
        rates = per_flow_mbps(outcome, _until_first_end(outcome))
        text = f"{aqm}: {listed(rates)} Mbit/s for 100 to 250 ms"
        parts.append(Comparison(max(rates) > min(rates) * (1 + 2 * sharing.WITHIN), text))
    return judge(parts[0].text if parts else "", parts)


def _short_round_trips_win(run: Evidence, aqm: str) -> Finding:
    parts: list[Comparison] = []
    for outcome in run.runs(aqm):
        rates = per_flow_mbps(outcome, _until_first_end(outcome))
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
        early, late = unsteady(green, range(5, 150)), unsteady(green, _second_half(green))
        parts.append(Comparison(early > CONSTANT, f"deviation of the total {early:.1%} of its mean before 150 s"))
        parts.append(Comparison(late < early, f"{late:.1%} after, {early:.1%} before 150 s"))
        fair = [jain(per_flow_mbps(o, _second_half(o))) for o in (green, codel)]
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
    limit = limit_mbps(run)
    parts: list[Comparison] = []
    for outcome in run.runs("pink"):
        end = int(columns.last_end_s(outcome) or run.duration_s)
        totals = series_of(outcome).total()[:end]
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
    series = series_of(outcome)
    for phase in sharing.phases(outcome):
        if phase.joined:
            shares = equal_shares_kbps(phase)
            for k in phase.judged:
                rates = listed([series.flows[i][k] / 1e3 for i in phase.active])
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
