"""What became of the rows of the ledger before it had one table of words: the old verdict, the new one, and why.

`baseline.json` keeps the verdicts of that ledger. A row keeps its id, whatever its text is now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

from penstock.claims.rows import Entry, Kind, Verdict

WORDS = "one meaning of each word"
TREND = "what stays where it is does not rise"
FROM_FOUR = "the figure begins with four flows"
ROOM = "the check got room to fail"
MEASURE = "the measure is the one that the text has"
TUNED = "nothing is judged by what it was tuned to"
WRITTEN = "eq. (3) of Boudi and Loudini 2018 is run as it is written"
RUNS = "the runs: the simulator as repaired since, and several seeds"
KINDS = {
    Kind.OTHER: "a claim of another paper or an RFC: not counted",
    Kind.OWN: "our own finding: not counted",
    Kind.SET_UP: "a check of our set-up: not counted",
}

# The rows whose check changed, by the rule that changed it.
RULES: Mapping[str, tuple[str, ...]] = {
    WORDS: (
        "c2ml.controls-are-friends",
        "c2ml.newreno-becomes-rtt-fair",
        "c2ml.three-nodes-share-evenly",
        "c2ml.worst-fairness-is-near-one",
        "dybra.c2ml-alone-does-not-adapt",
        "dybra.dybra-makes-friends",
        "ern.dropping-waits-least",
        "ern.ern-fairness-near-085",
        "ern.ern-leads-most-with-few-flows",
        "ern.red-is-unfair-on-a-fast-link",
        "fq-minstrel-pie.calls-have-the-same-jitter",
        "fq-minstrel-pie.fq-minstrel-pie-levels-controls",
        "fq-minstrel-pie.same-throughput-of-four-flows",
        "fq-minstrel-pie.same-throughput-of-one-flow",
        "fq-pie.calls-hardly-wait",
        "fq-pie.calls-have-little-jitter",
        "fq-pie.fq-pie-dips-and-recovers",
        "fq-pie.fq-pie-levels-controls",
        "fq-pie.pie-lets-tcp-collapse",
        "fq-pie.same-throughput-without-udp",
        "friendliness.compound-is-fair-to-reno",
        "friendliness.cubic-is-fair-to-reno-on-short-paths",
        "friendliness.dctcp-takes-more-than-reno-behind-marks",
        "friendliness.highspeed-is-fair-to-reno-with-small-windows",
        "friendliness.hybla-takes-more-than-reno-on-a-long-path",
        "friendliness.scalable-takes-more-than-reno",
        "friendliness.vegas-loses-against-reno",
        "hfs-mac.qfq-plus-gives-the-most-throughput",
        "hfs-time.hfs-costs-about-what-two-drr-do",
        "hfs-time.qfq-plus-beside-the-radio-costs-about-what-drr-does",
        "hfs.a-hundred-packets-give-ninety-percent",
        "lindrop.lindrop-fills-its-buffer",
        "lindrop.lindrop-queue-is-a-quarter",
        "lindrop.most-use-the-lan",
        "lindrop.nobody-uses-a-fifth-of-wan-300",
        "lindrop.wan-300-is-not-full-when-heavy",
        "minstrel-pie.delays-of-many-flows",
        "minstrel-pie.ellipses-lie-further-right",
        "minstrel-pie.fairness-of-tcp",
        "minstrel-pie.large-buffers-shorten-much",
        "minstrel-pie.minstrel-is-at-its-lower-bound-with-udp",
        "minstrel-pie.minstrel-uses-the-link-alike",
        "minstrel-pie.more-so-when-udp-is-alone",
        "minstrel-pie.more-tcp-changes-little",
        "minstrel-pie.pie-is-not-at-its-target-with-udp",
        "minstrel-pie.similar-at-any-congestion",
        "minstrel-pie.small-buffers-use-alike",
        "minstrel-pie.udp-alone-is-steady",
        "minstrel-pie.udp-fills-the-link",
        "minstrel-pie.udp-raises-delay-of-pie",
        "modified-codel.codel-fails-with-udp-only",
        "modified-codel.modified-use-is-that-of-codel",
        "pink-c.rtt-at-one",
        "pink-c.rtt-near-base-on-dsl",
        "pink-c.rtt-rises-only-near-the-end",
        "pink-c.rtt-steady-at-any-c",
        "pink-c.throughput-steady-at-any-c",
        "pink-dsl.codel-above-ared",
        "pink-dsl.others-drop-more-when-crowded",
        "pink-dsl.pink-rtt-at-base",
        "pink-ppdr.codel-slightly-before-droptail",
        "pink-sat.droptail-near-limit-when-crowded",
        "pink-sat.others-drop-more-when-crowded",
        "pink-sat.pink-fairness-constant",
        "pink-sat.pink-rtt-at-base",
        "qrm.c2ml-fills-the-link",
        "qrm.one-attacker-halves-the-others",
        "qrm.qrm-is-stable-with-many",
        "tcp-satellite.the-third-flow-is-penalized",
        "tempest-growth.wf2q-plus-grows",
        "tempest-throughput.the-integrated-scheduler-reaches-ninety-percent",
        "tempest-time.qfq-plus-costs-about-what-drr-does",
        "tempest-time.so-it-does-with-bursts",
        "tempest-twfi.drr-has-110-milliseconds",
        "tempest-twfi.wf2q-plus-has-eight-milliseconds",
    ),
    TREND: (
        "ern.marking-waits-less-on-faster-links",
        "ern.waiting-grows-with-flows",
        "hfs.guarantees-weaken-with-the-buffer",
        "hfs.throughput-grows-with-the-buffer",
        "lindrop.more-connections-use-more-of-the-lan",
        "lindrop.more-connections-use-more-of-the-wan",
        "pink-dsl.codel-rtt-rises",
        "pink-dsl.codel-spread-narrows",
        "pink-dsl.green-rtt-falls",
        "pink-dsl.pink-fairness-approaches-one",
        "pink-dsl.pink-goodput-floor-rises",
        "pink-sat.ared-fairness-falls",
        "pink-sat.codel-ared-rtt-alike",
        "pink-sat.codel-goodput-rises",
        "pink-sat.green-rtt-longest-but-droptail",
        "tempest-throughput.a-larger-buffer-gives-hfs-more-throughput",
    ),
    FROM_FOUR: (
        "pink-dsl.ared-rtt-below-codel",
        "pink-dsl.ared-unfair",
        "pink-dsl.codel-like-droptail",
        "pink-dsl.crowds-are-fairer",
        "pink-dsl.drop-shares-alike",
        "pink-dsl.droptail-rtt-worst",
        "pink-dsl.green-goodput-poor",
        "pink-dsl.pink-data-near-maximum",
        "pink-dsl.pink-drops-nothing",
        "pink-dsl.pink-goodput-highest",
        "pink-dsl.pink-goodput-near-limit",
        "pink-dsl.pink-goodput-steady",
        "pink-sat.ared-suffers-most",
        "pink-sat.crowds-are-fairer-on-satellite",
        "pink-sat.droptail-rtt-worst",
        "pink-sat.green-like-codel",
        "pink-sat.pink-data-near-maximum",
        "pink-sat.pink-drops-nothing",
        "pink-sat.pink-goodput-near-limit",
        "pink-sat.pink-goodput-steady",
        "pink-sat.pink-rtt-constant",
        "pink-sat.wider-on-satellite",
    ),
    ROOM: (
        "qrm.theorem-2",
        "tempest-twfi.drr-is-below-its-bound",
        "tempest-twfi.wf2q-plus-is-below-its-bound",
    ),
    MEASURE: ("dybra.dybra-keeps-the-queue-empty", "pink-multi.bad-flow-keeps-its-rate"),
    TUNED: ("dybra.dybra-fills-the-link",),
}
# Experiments whose set-up changed as a whole.
SET_UPS: Mapping[str, str] = {"ern": WRITTEN}


@cache
def baseline() -> Mapping[str, str]:
    """Returns the old verdicts by the ids of the rows."""
    text = resources.files("penstock.claims").joinpath("baseline.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def changed(entries: Sequence[Entry], same_runs: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yields id, old verdict, new one and the one thing that changed it, for each row whose verdict or kind changed.

    `same_runs` has the verdicts of the old checks on the new runs, as far as they are known: if they are the new ones,
    it was not the check.
    """
    old = baseline()
    rules = {name: rule for rule, names in RULES.items() for name in names}
    for entry in entries:
        if entry.id not in old or entry.verdict == Verdict.NOT_RUN:
            continue
        if not entry.counts:
            yield entry.id, old[entry.id], entry.verdict, KINDS[Kind(entry.kind)]
        elif entry.verdict != old[entry.id]:
            by_runs = same_runs.get(entry.id) == entry.verdict
            set_up = SET_UPS.get(entry.id.split(".", 1)[0], RUNS)
            yield entry.id, old[entry.id], entry.verdict, set_up if by_runs else rules.get(entry.id, set_up)
