"""Claims of document 001 on LINDROP and seven other disciplines on long paths."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from itertools import pairwise

from penstock.claims import checks
from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, Kind, judge
from penstock.claims.words import ABOUT, CLOSE, FAR, HALF, LITTLE, NEGLIGIBLE
from penstock.papers.lindrop.runs import EIGHT, LIMIT, LOADS, NETWORKS, PATHS, SAME_BUFFER
from penstock.reproduce import columns, seconds
from penstock.reproduce.folder import numbers
from penstock.reproduce.results import Evidence, Outcome

PAPER = numbers(__name__)
Table = dict[str, dict[str, tuple[float, float, float]]]
THROUGHPUT: Table = PAPER["throughput_mbps"]
QUEUE: Table = PAPER["queue_packets"]
FULL_LINK = 100.0  # Mbit/s
OWN = 0.5  # smallest share of drops that a discipline decides on if it is in effect

Value = Callable[[Outcome], float | None]

CLAIMS: list[Claim] = []
sums = of(CLAIMS, "lindrop", "001", varies=False)
at = of(CLAIMS, "lindrop", "001")


def value(run: Evidence, aqm: str, setting: str, measure: Value = columns.throughput_all_mbps) -> float:
    """The median over seeds; by default the throughput."""
    return run.median_or_zero(aqm, setting, measure)


def queue(run: Evidence, aqm: str, setting: str) -> float:
    """The mean queue in packets."""
    return value(run, aqm, setting, columns.queue_packets)


def _settings(run: Evidence, networks: Iterable[str] = NETWORKS, loads: Iterable[str] = LOADS) -> list[str]:
    wanted = [f"{network}-{load}" for network in networks for load in loads]
    return [setting for setting in wanted if setting in run.settings]


def _named(setting: str) -> str:
    network, load = setting.rsplit("-", 1)
    return f"{NETWORKS[network][0]} {load}"


def _ms(text: str) -> float:
    return float(text.removesuffix("ms"))


def _delays_ms(run: Evidence) -> list[float]:
    """Round trips of the nine paths without the bottleneck."""
    links = run.experiment.template["topology"]["links"]
    to_router = {link["a"] if link["b"] in ("ra", "rb") else link["b"]: _ms(link["delay"]) for link in links[1:]}
    return [2 * (to_router[sender] + to_router[receiver]) for sender, receiver in PATHS]


@sums("4.2", "in the text", "100 ms", Kind.SET_UP)
def mean_round_trip_is_100_ms(run: Evidence) -> Finding:
    """The mean round trip of all paths is 100 ms without the bottleneck."""
    mean = statistics.fmean(_delays_ms(run))
    return judge(f"{mean:.1f} ms", [Comparison(abs(mean - 100) <= 1, f"{mean:.1f} ms over nine paths")])


@sums("4.2", "in the text", "300 and 700 ms")
def longest_round_trips(run: Evidence) -> Finding:
    """The longest round trips are 300 ms in WAN_100 and 700 ms in WAN_300."""
    delays = _delays_ms(run)
    parts: list[Comparison] = []
    for title, both_ways, paper in (("WAN_100", 200, 300), ("WAN_300", 600, 700)):
        longest, mean = max(delays) + both_ways, statistics.fmean(delays) + both_ways
        text = f"{title}: the longest is {longest:.0f} ms; {mean:.0f} ms is the mean"
        parts.append(Comparison(abs(longest - paper) <= 0.02 * paper, text))
    return judge("; ".join(part.text for part in parts), parts)


@at("4.2", "Table 2", "around 100 packets")
def aqms_hold_100_packets(run: Evidence) -> Finding:
    """In the LAN all disciplines but drop tail hold the queue around 100 packets."""
    parts = [
        Comparison(abs(q - 100) <= HALF * 100, f"{aqm} {q:.0f} in {_named(setting)}")
        for setting in _settings(run, ("lan",), ("moderate", "heavy"))
        for aqm, q in ((aqm, queue(run, aqm, setting)) for aqm in EIGHT[1:])
    ]
    return judge(f"{parts[0].text} to {parts[-1].text}" if parts else "", parts)


def _table(run: Evidence, paper: dict[str, dict[str, tuple[float, float, float]]], ours: Value, near: float) -> Finding:
    parts: list[Comparison] = []
    for network, rows in paper.items():
        for aqm, cells in rows.items():
            for load, said in zip(LOADS, cells, strict=True):
                setting = f"{network}-{load}"
                if setting in run.settings:
                    got = value(run, aqm, setting, ours)
                    text = f"{aqm} {got:.1f} for {said:.1f} in {_named(setting)}"
                    place = f"{aqm}, {_named(setting)}"
                    parts.append(Comparison(abs(got - said) <= near * said, text, said, got, place))
    met = sum(part.holds for part in parts)
    return judge(f"{met} of {len(parts)} numbers within {near:.0%}", parts)


@at("4.3", "Table 3", "24 numbers")
def table_3(run: Evidence) -> Finding:
    """The throughputs in the LAN are those of Table 3, within 10 %."""
    return _table(run, {"lan": THROUGHPUT["lan"]}, columns.throughput_all_mbps, ABOUT)


@at("4.4", "Table 4", "48 numbers")
def table_4(run: Evidence) -> Finding:
    """The throughputs in WAN_100 and WAN_300 are those of Table 4, within 10 %."""
    wan = {network: THROUGHPUT[network] for network in ("wan-100", "wan-300")}
    return _table(run, wan, columns.throughput_all_mbps, ABOUT)


@at("4.4", "Table 5", "48 numbers")
def table_5(run: Evidence) -> Finding:
    """The mean queues in WAN_100 and WAN_300 are those of Table 5, within 50 %."""
    return _table(run, QUEUE, columns.queue_packets, HALF)


@at("4.3", "Table 3", "about 90 % and more")
def most_use_the_lan(run: Evidence) -> Finding:
    """With 10 connections in the LAN all disciplines but AVQ use about 90 % of the link or more."""
    parts = [
        Comparison(used >= 90 * (1 - CLOSE), f"{aqm} {used:.1f} %")
        for aqm, used in ((aqm, value(run, aqm, "lan-low")) for aqm in EIGHT if aqm != "avq")
    ]
    return judge(", ".join(part.text for part in parts), parts)


@at("4.3", "Table 3", "75 %")
def avq_is_the_exception(run: Evidence) -> Finding:
    """With 10 connections in the LAN AVQ uses less of the link than any other discipline, and less than 90 %."""
    avq = value(run, "avq", "lan-low")
    parts = [Comparison(avq < 90, f"avq {avq:.1f} %")]
    for aqm in (aqm for aqm in EIGHT if aqm != "avq"):
        used = value(run, aqm, "lan-low")
        parts.append(Comparison(avq < used, f"avq {avq:.1f} %, {aqm} {used:.1f} %"))
    return judge(parts[0].text, parts)


def _rising(run: Evidence, networks: Iterable[str], what: Callable[[Evidence, str, str], float]) -> list[Comparison]:
    parts: list[Comparison] = []
    for network in networks:
        for aqm in EIGHT:
            values = [what(run, aqm, f"{network}-{load}") for load in LOADS]
            text = f"{aqm} in {NETWORKS[network][0]} {', '.join(f'{v:.1f}' for v in values)}"
            rises = checks.rises(list(zip(LOADS, values, strict=True)), aqm)
            parts.append(Comparison(all(part.holds for part in rises), text))
    return parts


@at("4.3", "Table 3", "rising rows")
def more_connections_use_more_of_the_lan(run: Evidence) -> Finding:
    """In the LAN throughput grows with the number of connections, for every discipline."""
    parts = _rising(run, ("lan",), value)
    return judge(parts[-1].text, parts)


@at("4.4", "Table 4", "rising rows")
def more_connections_use_more_of_the_wan(run: Evidence) -> Finding:
    """In WAN_100 and WAN_300 throughput grows with the number of connections, for every discipline."""
    parts = _rising(run, ("wan-100", "wan-300"), value)
    return judge(parts[-1].text, parts)


@at("4.3", "Table 3", "0.34 and 0.07 Mbit/s")
def lan_differences_vanish(run: Evidence) -> Finding:
    """With 100 and 1000 connections in the LAN all disciplines have nearly the same throughput."""
    parts: list[Comparison] = []
    for setting in _settings(run, ("lan",), ("moderate", "heavy")):
        values = {aqm: value(run, aqm, setting) for aqm in EIGHT}
        low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
        text = f"{_named(setting)}: {low} {values[low]:.2f} to {high} {values[high]:.2f}"
        parts.append(Comparison(values[high] - values[low] <= NEGLIGIBLE * FULL_LINK, text))
    return judge("; ".join(part.text for part in parts), parts)


@at("4.4", "Table 4", "20 %")
def nobody_uses_a_fifth_of_wan_300(run: Evidence) -> Finding:
    """With 10 connections in WAN_300 no discipline uses much more than 20 % of the link."""
    parts = [
        Comparison(used <= 20 * (1 + CLOSE), f"{aqm} {used:.1f} %")
        for aqm, used in ((aqm, value(run, aqm, "wan-300-low")) for aqm in EIGHT)
    ]
    return judge(", ".join(part.text for part in parts), parts)


BEST_IN_WAN_100 = ("ared", "avq", "rem", "lindrop")


@at("4.4", "Table 4", "60 to 64 after 33 to 41 Mbit/s")
def four_lead_in_wan_100(run: Evidence) -> Finding:
    """With 10 connections in WAN_100 each of ARED, AVQ, REM and LINDROP has more throughput than all the others."""
    others = [aqm for aqm in EIGHT if aqm not in BEST_IN_WAN_100]
    best = max(others, key=lambda aqm: value(run, aqm, "wan-100-low"))
    level = value(run, best, "wan-100-low")
    parts = [
        Comparison(got > level, f"{aqm} {got:.1f}, {best} {level:.1f} Mbit/s")
        for aqm, got in ((aqm, value(run, aqm, "wan-100-low")) for aqm in BEST_IN_WAN_100)
    ]
    return judge("; ".join(part.text for part in parts), parts)


@at("4.4", "Table 4", "5 after 31 Mbit/s")
def differences_shrink_with_delay(run: Evidence) -> Finding:
    """With 10 connections disciplines differ less in WAN_300 than in WAN_100."""
    near, far = ([value(run, aqm, f"{network}-low") for aqm in EIGHT] for network in ("wan-100", "wan-300"))
    spans = [max(values) - min(values) for values in (near, far)]
    text = f"{spans[1]:.1f} after {spans[0]:.1f} Mbit/s between the best and the worst"
    return judge(text, [Comparison(spans[1] < spans[0], text)])


@at("4.4", "Table 4", "80 to 91 %")
def wan_300_is_not_full_when_heavy(run: Evidence) -> Finding:
    """With 1000 connections in WAN_300 the link is in use for 80 to 90 % only."""
    parts = [
        Comparison(80 * (1 - CLOSE) <= used <= 91 * (1 + CLOSE), f"{aqm} {used:.1f} %")
        for aqm, used in ((aqm, value(run, aqm, "wan-300-heavy")) for aqm in EIGHT)
    ]
    return judge(", ".join(part.text for part in parts), parts)


def _against_best(run: Evidence, settings: Iterable[str], ahead: float) -> list[Comparison]:
    """Whether LINDROP's throughput is that of the best other discipline, times this."""
    parts: list[Comparison] = []
    for setting in settings:
        ours = value(run, "lindrop", setting)
        other, best = max((value(run, aqm, setting), aqm) for aqm in EIGHT if aqm != "lindrop")
        text = f"{_named(setting)}: lindrop {ours:.2f}, {best} {other:.2f} Mbit/s"
        parts.append(Comparison(ours >= other * ahead, text))
    return parts


@at("4.4", "Table 4", "highest in 4 columns")
def lindrop_leads_with_many_connections(run: Evidence) -> Finding:
    """With 100 and 1000 connections LINDROP has the highest throughput in WAN_100 and WAN_300."""
    parts = _against_best(run, _settings(run, ("wan-100", "wan-300"), ("moderate", "heavy")), 1.0)
    return judge("; ".join(part.text for part in parts), parts)


@at("4.4", "Table 4", "up to 5 %")
def lindrop_leads_by_up_to_5_percent(run: Evidence) -> Finding:
    """With 100 or 1000 connections LINDROP is, somewhere in the WANs, about 5 % better than any other discipline."""
    parts = _against_best(run, _settings(run, ("wan-100", "wan-300"), ("moderate", "heavy")), 1.04)
    best = [part for part in parts if part.holds]
    texts = "; ".join(part.text for part in parts)
    return judge(texts, [Comparison(bool(best), texts)])


@at("4.4", "in the text", "20.00, 66.74, 90.89 Mbit/s")
def lindrop_leads_in_wan_300(run: Evidence) -> Finding:
    """In WAN_300 LINDROP uses most of the link, whatever the load (Table 4 itself has ARED at 20.09 when low)."""
    parts = _against_best(run, _settings(run, ("wan-300",)), 1.0)
    return judge("; ".join(part.text for part in parts), parts)


@at("4.4", "Table 5", "rising rows")
def lindrop_queue_grows_with_load(run: Evidence) -> Finding:
    """LINDROP's queue is short with 10 connections only and grows with their number."""
    parts: list[Comparison] = []
    for network in ("wan-100", "wan-300"):
        low, moderate, heavy = (queue(run, "lindrop", f"{network}-{load}") for load in LOADS)
        text = f"{NETWORKS[network][0]}: {low:.0f}, {moderate:.0f}, {heavy:.0f} packets"
        parts.append(Comparison(low < LITTLE * LIMIT and low < moderate < heavy, text))
    return judge("; ".join(part.text for part in parts), parts)


@at("4.4", "Figure 6", "low in low congestion only")
def lindrop_queue_is_not_short_in_the_lan(run: Evidence) -> Finding:
    """In the LAN with 100 connections LINDROP's queue is at least twice what it is with 10."""
    low, moderate = (queue(run, "lindrop", f"lan-{load}") for load in ("low", "moderate"))
    text = f"{moderate:.1f} packets with 100 connections, {low:.1f} with 10"
    return judge(text, [Comparison(moderate >= FAR * low, text)])


def _unsteady(outcome: Outcome) -> float:
    """How far the queue of a second is from the mean: the standard deviation after the warm-up, in packets."""
    return statistics.pstdev(seconds.queue_packets(outcome)[int(outcome.summary["warmup_s"]) :])


@at("5", "Figure 7", "short and stable")
def lindrop_queue_is_stable_when_low(run: Evidence) -> Finding:
    """With 10 connections in WAN_100 LINDROP's queue varies less over time than ARED's, AVQ's and REM's."""
    ours = value(run, "lindrop", "wan-100-low", _unsteady)
    parts: list[Comparison] = []
    for aqm in ("ared", "avq", "rem"):
        other = value(run, aqm, "wan-100-low", _unsteady)
        parts.append(Comparison(ours < other, f"by {ours:.1f} packets, {aqm} by {other:.1f}"))
    return judge("; ".join(part.text for part in parts), parts)


@at("4.4", "Table 5, Figure 7", "a quarter: 5.4 after 19 to 20 packets")
def lindrop_queue_is_a_quarter(run: Evidence) -> Finding:
    """With 10 connections in WAN_100 LINDROP's queue is four times shorter than ARED's, AVQ's and REM's."""
    ours = queue(run, "lindrop", "wan-100-low")
    parts: list[Comparison] = []
    for aqm in ("ared", "avq", "rem"):
        other = queue(run, aqm, "wan-100-low")
        parts.append(Comparison(other >= 4 * (1 - ABOUT) * ours, f"lindrop {ours:.1f}, {aqm} {other:.1f} packets"))
    return judge("; ".join(part.text for part in parts), parts)


@at("4.4", "Table 5", "283 of 300 packets")
def lindrop_fills_its_buffer(run: Evidence) -> Finding:
    """With 1000 connections in WAN_100 LINDROP's buffer is nearly full all the time."""
    ours = queue(run, "lindrop", "wan-100-heavy")
    text = f"{ours:.0f} of {LIMIT} packets"
    return judge(text, [Comparison(abs(ours - 283) <= ABOUT * 283, text)])


@at("4.4", "Figure 8, in the text", "smaller (but 1.38 after 0.37 to 0.68 packets in Table 5)")
def lindrop_queue_is_shorter_in_wan_300(run: Evidence) -> Finding:
    """In WAN_300 LINDROP's queue is shorter than those of disciplines with less throughput."""
    parts: list[Comparison] = []
    for setting in _settings(run, ("wan-300",)):
        ours, most = queue(run, "lindrop", setting), value(run, "lindrop", setting)
        for aqm in (aqm for aqm in EIGHT[1:] if aqm != "lindrop" and value(run, aqm, setting) < most):
            other = queue(run, aqm, setting)
            parts.append(Comparison(ours < other, f"{_named(setting)}: lindrop {ours:.1f}, {aqm} {other:.1f} packets"))
    return judge(parts[0].text if parts else "", parts)


@at("5", "in the text", "99, 60, 20 Mbit/s")
def delay_costs_throughput(run: Evidence) -> Finding:
    """The longer the delay, the less of the link is used, with any discipline and most of all with few connections."""
    parts: list[Comparison] = []
    for load in LOADS:
        for aqm in EIGHT:
            lan, near, far = (value(run, aqm, f"{network}-{load}") for network in NETWORKS)
            text = f"{aqm}, {load}: {lan:.1f}, {near:.1f}, {far:.1f} Mbit/s"
            parts.append(Comparison(lan > near > far, text))
    return judge(parts[0].text, parts)


# LINDROP's parameters: section 3.


def _tuned(run: Evidence, prefix: str) -> list[str]:
    return [setting for setting in run.settings if setting.startswith(prefix)]


@at("3", "Figure 5", "30 to 50 packets")
def avg_max_of_30_to_50_is_best(run: Evidence) -> Finding:
    """LINDROP's throughput in the LAN with 10 connections is best with avg_max from 30 to 50 packets."""
    got = {float(setting.split("-")[1]): value(run, "lindrop", setting) for setting in _tuned(run, "max-")}
    if not got:
        return judge("", [])
    inside = max((most for most in got if 30 <= most <= 50), key=got.__getitem__)
    parts = [
        Comparison(got[inside] >= other, f"{got[inside]:.2f} {_share(run, inside)}, {other:.2f} {_share(run, most)}")
        for most, other in got.items()
        if not 30 <= most <= 50
    ]
    return judge("; ".join(part.text for part in parts), parts)


def _share(run: Evidence, most: float) -> str:
    """The fewer drops LINDROP decides on, the more it is drop tail: that is why small values do well."""
    own = value(run, "lindrop", f"max-{most:.0f}", columns.own_drops)
    return f"Mbit/s with {most:.0f} ({own:.0%} of the drops its own)"


@at("3", "Figure 5", "the queue is less stable")
def higher_avg_max_swings_more(run: Evidence) -> Finding:
    """With a higher avg_max LINDROP's queue swings more."""
    swing = {
        float(setting.split("-")[1]): value(run, "lindrop", setting, columns.queue_swing_ms)
        for setting in _tuned(run, "max-")
    }
    parts = [
        Comparison(far > near, f"{near:.1f} ms with {a:.0f}, {far:.1f} ms with {b:.0f}")
        for (a, near), (b, far) in pairwise(swing.items())
        if a >= 30
    ]
    return judge("; ".join(part.text for part in parts), parts)


@at("3", "Figures 3 and 4", "less influence with 50")
def lower_avg_max_leaves_steps_less_influence(run: Evidence) -> Finding:
    """With avg_max = 50 LINDROP's throughput depends less on n_pu and n_pd than with 150."""
    spans: list[float] = []
    worst: list[str] = []
    for most in (150, 50):
        values = {setting: value(run, "lindrop", setting) for setting in _tuned(run, f"steps-{most}-")}
        if not values:
            return judge("", [])
        least = min(values, key=values.__getitem__)
        up, down = map(float, least.split("-")[2:])
        worst.append(f"with {most} the worst is {values[least]:.1f} Mbit/s at n_pu {up:.2f}, n_pd {down:.2f}")
        spans.append(max(values.values()) - values[least])
    text = f"{spans[1]:.1f} Mbit/s between the best and the worst with 50, {spans[0]:.1f} with 150"
    told = f"{text}; {'; '.join(worst)}: there LINDROP drops far too much, whatever avg_max"
    return judge(text, [Comparison(spans[1] < spans[0], told)])


# A comparison that the paper does not make: it gave drop tail 100 packets and LINDROP 300.


@at("4.2", "Table 2, added", "not in the paper", Kind.OWN)
def lindrop_beats_drop_tail_of_its_size(run: Evidence) -> Finding:
    """LINDROP's throughput is above that of drop tail with the same 300 packets, by more than 1 %."""
    parts: list[Comparison] = []
    for setting in _settings(run, ("wan-100", "wan-300")):
        ours, plain = value(run, "lindrop", setting), value(run, SAME_BUFFER, setting)
        text = f"{_named(setting)}: lindrop {ours:.1f}, drop tail {plain:.1f} Mbit/s"
        parts.append(Comparison(ours > plain * (1 + NEGLIGIBLE), text))
    return judge("; ".join(part.text for part in parts), parts)


@at("3", "Algorithm 1, added", "not in the paper", Kind.OWN)
def lindrop_decides_on_drops(run: Evidence) -> Finding:
    """LINDROP itself decides on at least half of the drops; else it is drop tail (n_pu x n_pd = 1.03 widens gaps)."""
    parts: list[Comparison] = []
    for setting in _settings(run):
        share = value(run, "lindrop", setting, columns.own_drops)
        parts.append(Comparison(share >= OWN, f"{_named(setting)}: {share:.1%}"))
    return judge("; ".join(part.text for part in parts), parts)


@at("3", "Algorithm 1", "no random numbers")
def lindrop_draws_no_random_numbers(run: Evidence) -> Finding:
    """Where nothing else is random, LINDROP does the same whatever the seed; RED, which draws, does not."""
    if len(run.seeds) < 2:
        return judge("", [])
    parts: list[Comparison] = []
    for aqm, same in (("lindrop", True), ("red", False)):
        drops = [outcome.summary["bottlenecks"][0] for outcome in run.runs(aqm, setting="no-chance")]
        alike = all(one == drops[0] for one in drops)
        parts.append(Comparison(alike == same, f"{aqm}: {'equal' if alike else 'different'} with {len(drops)} seeds"))
    return checks.decide(parts)
