"""The claims about the results of `qrm`."""

from __future__ import annotations

from penstock.claims import checks
from penstock.claims.entering import contradicts, of, unexplained
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.claims.words import ABOUT, CLOSE, FAIR, FULL
from penstock.papers._shared import nodes
from penstock.papers._shared.cooperation_claims import Value, value
from penstock.papers.qrm.runs import ATTACKED, ATTACKERS
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, Outcome

QUEUE_KB, RATE_BPS = 1805.0, 20e6  # Table 3.1
STATED_MS, UNLOADED_MS = 1800.0, 704.1  # Figure 3.8; without queueing
FULL_QUEUE_MS = UNLOADED_MS + QUEUE_KB * 8e6 / RATE_BPS
LONGEST = contradicts(
    f"the queue of Table 3.1 has {QUEUE_KB:.0f} kB, which take {QUEUE_KB * 8e6 / RATE_BPS:.0f} ms at 20 Mbit/s: with "
    f"{UNLOADED_MS:.0f} ms without queueing round trips of {FULL_QUEUE_MS:.0f} ms are the longest, and not 1.8 s"
)
BOUND_KB = 20e6 / 8 * 0.7041 / 1e3  # Theorem 2: 20 Mbit/s and the smallest round trip time
RTT_MOST = 800.0  # ms; the round trip time without queueing is 704 ms
OTHERS = tuple(aqm for aqm in ATTACKED if aqm != "qrm")

# Variants are run with 2 and 32 nodes; this was searched with 2, 4, 8, 16 and 32.
GROWS = unexplained(
    ("tcp.sack", "flows.0.start_spread"),
    "SACK and PRR: DropTail has 972, 1043, 1019, 1353 and 1359 kB with 2 to 32 nodes; RED grows but for a last step of "
    "0.5 %; with all nodes starting together GREEN has 457, 508, 600, 306 and 506",
)

CLAIMS: list[Claim] = []
at = of(CLAIMS, "qrm", "002")


def worst(run: Evidence, aqm: str, setting: str) -> float:
    """wcTxData, the median over seeds."""
    return value(run, aqm, setting, nodes.worst_good) or 0.0


def _there(run: Evidence, prefix: str) -> list[str]:
    return [setting for setting in run.settings if setting.startswith(prefix)]


@at("3.1.2", "Figure 3.3", "stable and fair")
def c2ml_fills_the_link(run: Evidence) -> Finding:
    """Five nodes that obey share the link evenly and use more of it than five plain TCPs."""
    ours, plain = (value(run, aqm, "five", nodes.goodput_good_mbps) or 0.0 for aqm in ("droptail", "plain"))
    jain = value(run, "droptail", "five", nodes.jain_good) or 0.0
    parts = [
        Comparison(ours > plain, f"{ours:.1f} Mbit/s, plain {plain:.1f}"),
        Comparison(jain >= FAIR, f"Jain {jain:.3f}"),
    ]
    return judge("; ".join(part.text for part in parts), parts)


@at("3.1.5.1", "Figure 3.7", "halved")
def one_attacker_halves_the_others(run: Evidence) -> Finding:
    """In a drop-tail queue one attacker of five takes about half of what the others have."""
    before, after = (value(run, "droptail", s, nodes.goodput_good_mbps) or 0.0 for s in ("five", "five-1"))
    share = after / 4 / (before / 5)
    text = f"a good node gets {share:.0%} of what it had"
    return judge(text, [Comparison(abs(share - 0.5) <= ABOUT * 0.5, text)])


@at("3.1.5.1", "Figures 3.8 and 3.12 to 3.14", "1805 kB, RTTs of up to 1.8 s", because=LONGEST)
def the_queue_fills(run: Evidence) -> Finding:
    """With one attacker drop tail and GREEN fill the queue, and round trips of good nodes are up to about 1.8 s."""
    parts = []
    for aqm in ("droptail", "green"):
        most, rtt = (value(run, aqm, "five-1", m) or 0.0 for m in (columns.queue_max_kb, nodes.rtt_good_ms))
        parts.append(Comparison(most >= FULL * QUEUE_KB, f"{aqm}: {most:.0f} of {QUEUE_KB:.0f} kB"))
        parts.append(Comparison(abs(rtt - STATED_MS) <= ABOUT * STATED_MS, f"{aqm}: {rtt:.0f} ms"))
    return judge("; ".join(part.text for part in parts), parts)


@at("3.1.5.1", "Figure 3.15", "4 Mbit/s each")
def qrm_holds_the_attacker(run: Evidence) -> Finding:
    """With QRM the attacker gets no more than its budget, and good nodes have what they had."""
    flows = run.runs("qrm", setting="five-1")[0].summary["flows"]
    most = max(float(flow["goodput_bps"]) for flow in flows[4:]) / 1e6
    before, after = (value(run, "qrm", s, nodes.goodput_good_mbps) or 0.0 for s in ("five", "five-1"))
    share = after / 4 / (before / 5)
    parts = [
        Comparison(most <= 4.0, f"attacker {most:.2f} Mbit/s of 4"),
        Comparison(share >= 1 - CLOSE, f"good nodes {share:.1%} of what they had"),
    ]
    return judge("; ".join(part.text for part in parts), parts)


@at("3.1.5.1", "Figure 3.16", "700 to 800 ms")
def round_trips_stay_short(run: Evidence) -> Finding:
    """With QRM the round trips of good nodes are 700 to 800 ms, to the 99th percentile."""
    rtt = value(run, "qrm", "five-1", nodes.rtt_good_ms) or 0.0
    return judge(f"{rtt:.0f} ms", [Comparison(rtt <= RTT_MOST, f"{rtt:.0f} ms")])


@at("3.1.5.2", "Figures 3.17 and 3.18", "the highest of all")
def qrm_is_best_with_one_attacker(run: Evidence) -> Finding:
    """With one attacker the worst good node gets more under QRM than under any other discipline."""
    parts = []
    for setting in _there(run, "one-"):
        ours = worst(run, "qrm", setting)
        for aqm in OTHERS:
            other = worst(run, aqm, setting)
            parts.append(Comparison(ours > other, f"{run.experiment.label(setting)}: {ours:.3f}, {aqm} {other:.3f}"))
    return judge(f"best in {sum(p.holds for p in parts)} of {len(parts)}", parts)


@at("3.1.5.3", "Figure 3.19", "close to 90 %")
def qrm_is_stable_with_many(run: Evidence) -> Finding:
    """With 1 to 16 attackers of 32 the worst good node gets close to 90 % of an even share, or more."""
    parts = [
        Comparison(got >= (1 - CLOSE) * 0.9, f"{a}: {got:.3f}")
        for a in ATTACKERS
        if f"many-{a}" in run.settings
        for got in [worst(run, "qrm", f"many-{a}")]
    ]
    return judge(", ".join(part.text for part in parts), parts)


@at("3.1.5.3", "Figure 3.19", "decrease")
def others_fall_with_many(run: Evidence) -> Finding:
    """CoDel, RED and GREEN give the worst good node less with 16 attackers than with one, and less than QRM."""
    parts = []
    for aqm in ("codel", "red", "green"):
        one, many = worst(run, aqm, "many-1"), worst(run, aqm, "many-16")
        parts.append(Comparison(many < one, f"{aqm}: {one:.3f}, then {many:.3f}"))
        parts.append(Comparison(many < worst(run, "qrm", "many-16"), f"{aqm}: {many:.3f}"))
    return judge("; ".join(part.text for part in parts[::2]), parts)


@at("3.1.4", "Theorem 2", "BW RTT")
def theorem_2(run: Evidence) -> Finding:
    """The queue is never longer than the bandwidth-delay product, whoever attacks."""
    parts = []
    for setting in run.settings:
        for outcome in run.runs("qrm", setting=setting):
            most = columns.queue_max_kb(outcome)
            parts.append(Comparison(most <= BOUND_KB, f"{run.experiment.label(setting)}: {most:.0f} kB"))
    longest = max((columns.queue_max_kb(o) for o in run.outcomes if o.case.aqm == "qrm"), default=0.0)
    return judge(f"{longest:.0f} kB at most, the bound is {BOUND_KB:.0f} kB", parts)


@at("3.1.5.4", "Figures 3.20 and 3.21", "mostly below half of it")
def the_queue_is_half_the_bound(run: Evidence) -> Finding:
    """With QRM and disguised attackers the longest queue is below half of the bound."""
    parts = [
        Comparison(most <= 0.5 * BOUND_KB, f"{run.experiment.label(setting)}: {most:.0f} kB")
        for setting in (*_there(run, "one-"), *_there(run, "many-"))
        for most in [value(run, "qrm", setting, columns.queue_max_kb) or 0.0]
    ]
    return judge(f"{sum(p.holds for p in parts)} of {len(parts)}", parts)


@at("3.1.3", "Figures 3.4 and 3.5", "blocked")
def floods_get_one_share_or_none(run: Evidence) -> Finding:
    """A flood of UDP costs good nodes nothing, whether its node is registered or not; nor do forged SYNs."""
    parts = []
    before = worst(run, "qrm", "five")
    for setting in ("flood", "syns", "stranger"):
        ours = worst(run, "qrm", setting)
        text = f"{run.experiment.label(setting)}: {ours:.3f}, {before:.3f} without"
        parts.append(Comparison(ours >= (1 - CLOSE) * before, text))
    return judge("; ".join(part.text for part in parts), parts)


# Figures 3.20 and 3.21.


def _queues(run: Evidence, aqm: str, prefix: str, measure: Value) -> list[tuple[str, float]]:
    return [(s.removeprefix(prefix), value(run, aqm, s, measure) or 0.0) for s in _there(run, prefix)]


def _mean_kb(outcome: Outcome) -> float:
    return columns.mean_queue_kb(outcome.summary)


@at("3.1.5.4", "Figure 3.20", "grows with DropTail, RED and GREEN", because=GROWS)
def queues_grow_with_the_nodes(run: Evidence) -> Finding:
    """With one attacker the mean queue of DropTail, RED and GREEN grows with the number of nodes."""
    aqms = ("droptail", "red", "green")
    parts = [p for a in aqms for p in checks.rises(_queues(run, a, "one-", _mean_kb), f"{a}, nodes:", " kB")]
    return checks.decide(parts)


@at("3.1.5.4", "Figure 3.20", "almost stable")
def codel_queue_is_stable_over_nodes(run: Evidence) -> Finding:
    """With one attacker CoDel's mean queue is almost stable over the number of nodes."""
    return checks.decide([checks.constant(_queues(run, "codel", "one-", _mean_kb), "codel", " kB")])


@at("3.1.5.4", "Figure 3.20", "reduces both with the number of nodes")
def qrm_queue_falls_with_the_nodes(run: Evidence) -> Finding:
    """With one attacker QRM's mean and longest queue fall with the number of nodes."""
    named: tuple[tuple[str, Value], ...] = (("mean", _mean_kb), ("longest", columns.queue_max_kb))
    parts = [p for what, m in named for p in checks.falls(_queues(run, "qrm", "one-", m), f"{what} queue", " kB")]
    return checks.decide(parts)


@at("3.1.5.4", "Figure 3.20", "the only one")
def only_qrm_reduces_the_queue(run: Evidence) -> Finding:
    """With the most nodes and one attacker QRM's mean queue is the shortest of all."""
    last = _there(run, "one-")[-1]
    ours = value(run, "qrm", last, _mean_kb) or 0.0
    others = {aqm: value(run, aqm, last, _mean_kb) or 0.0 for aqm in OTHERS}
    label = run.experiment.label(last)
    return checks.decide(checks.above((a, v), ("qrm", ours), label, " kB") for a, v in others.items())


@at("3.1.5.4", "Figure 3.21", "CoDel's grows, QRM's is stable")
def queues_with_many_attackers(run: Evidence) -> Finding:
    """With more attackers the mean queue of CoDel grows, and QRM's mean and longest queue are stable."""
    parts = list(checks.rises(_queues(run, "codel", "many-", _mean_kb), "codel, attackers:", " kB"))
    for what, measure in (("mean", _mean_kb), ("longest", columns.queue_max_kb)):
        parts.append(checks.constant(_queues(run, "qrm", "many-", measure), f"qrm, {what}", " kB"))
    return checks.decide(parts)
