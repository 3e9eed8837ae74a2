"""Suites: each criterion with an algorithm made to fail it, what is told and not told, and the command."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Command
from penstock import report
from penstock.adversary import subject
from penstock.mistake import MistakeError
from penstock.report.suite_page import ellipse
from penstock.suites import judging, results, rfc7928, rfc9743, tcp_eval
from penstock.suites.judging import Judged
from penstock.suites.kept import Kept, settled_after
from penstock.suites.model import Suite

BAD = Path(__file__).parent / "suites"
TWITCHY = "red min_threshold=1p max_threshold=3p max_probability=0.5 weight=0.9"


def own(kind: str, name: str) -> str:
    return f"{BAD / f'bad_{kind}.py'}:{name}"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suites")


def beyond(suite: Suite, out: Path, algorithm: str, only: Sequence[str] = ()) -> set[str]:
    """The criteria that tell that an algorithm is beyond their limit, with one seed in the quick form."""
    found = judging.judge(suite, [algorithm], out / suite.name, quick=True, seeds=1, only=only)
    return {one.criterion.id for one in found.findings if one.told[algorithm].verdict == suite.words[1]}


# An algorithm, the cases that it runs (none: all), and the criteria that it must fail.
FAILS_7928 = {
    "droptail": (
        "droptail",
        (),
        "sizes.fair friendly.delay windows.delay aggressive.delay unresponsive.delay mild.delay medium.delay heavy.delay "
        "varying.delay capacity-slow.delay capacity-fast.delay mix.delay both-ways.delay in-a-row.delay",
    ),
    "twitchy": (
        TWITCHY,
        (),
        "friendly.goodput windows.goodput beside-udp.tcp bursts-I.drops bursts-II.web bursts-III.drops "
        "bursts-IV.web mild.goodput medium.goodput heavy.goodput varying.goodput capacity-slow.goodput "
        "capacity-fast.goodput mix.goodput mix.call mix.web mix.video both-ways.goodput in-a-row.through",
    ),
    "naps": (
        own("aqms", "Naps"),
        ("mild", "medium", "heavy", "varying", "capacity-slow"),
        "mild.spread medium.spread heavy.spread varying.settles capacity-slow.settles",
    ),
    "grudge": (own("aqms", "Grudge"), ("rtt-20", "rtt-500"), "rtt-20.share rtt-500.share"),
    "forgiving": (own("aqms", "Forgiving"), ("ecn", "medium"), "ecn.delay ecn.drops"),
    "touchy": (own("aqms", "Touchy"), ("medium",), "parameters.delay parameters.goodput"),
    "moody": (own("aqms", "Moody"), ("scheduled",), "scheduled.fair"),
    "crowded": (own("aqms", "Crowded"), ("scheduled", "alone"), "scheduled.call"),
    "lossy": (own("aqms", "Lossy"), ("aggressive",), "aggressive.goodput"),
}


@pytest.mark.parametrize("name", FAILS_7928)
def test_an_aqm_made_to_fail_is_beyond_the_limit(name: str, out: Path) -> None:
    algorithm, only, expected = FAILS_7928[name]
    assert set(expected.split()) - beyond(rfc7928.SUITE, out, algorithm, only) == set()


def test_each_criterion_of_rfc7928_has_an_aqm_that_fails_it() -> None:
    failed = {one for _, _, expected in FAILS_7928.values() for one in expected.split()}
    alike = {f"rtt-{other}.share" for other in rfc7928.ROUND_TRIPS}  # the same code with other round trips
    wanted = {one.id for one in rfc7928.criteria(subject.find("codel")) if one.limit}
    assert wanted - alike == failed - alike
    assert len(failed & alike) == 2


def test_a_good_aqm_meets_what_bad_ones_fail(out: Path) -> None:
    """CoDel with several flows: neither its delay nor its goodput is beyond a limit, and it absorbs bursts."""
    assert not beyond(rfc7928.SUITE, out, "codel", ("mild", "medium", "heavy", "bursts-I", "bursts-III", "ecn", "sizes"))


FAILS_9743 = {
    "bbr": (
        "bbr",
        ("loss-30", *(f"shallow-{depth:g}" for depth in rfc9743.ABOVE), *(f"same-{n}" for n in rfc9743.SAME), "short",
         "pair-newreno-0.5", "pair-cubic-0.5", "real-time", "web-of-cubic", "queue-fq-codel", "queue-pie",
         "queue-dualpi2", "breaker", "onset", "path-10-50-0.25", "far"),
        "collapse.loss loss.shallow fairness.jain short.web harm.reno harm.cubic harm.delay harm.loss starvation.seconds "
        "real-time.video mixed.web queue-fq-codel.delay queue-pie.delay queue-dualpi2.delay breaker.drops onset.drops "
        "tail.drops far.completion queue-dualpi2.goodput",
    ),
    "vegas": ("vegas", ("swing", "outage", "incast"), "swing.goodput outage.recovers incast.completion"),
    "greedy": (
        own("controls", "Greedy"),
        ("blackout", "deaf", "pair-newreno-4", "radio", "web-of-ours", "real-time"),
        "mixed.drops real-time.call collapse.blackout starvation.feedback harm.reno starvation.seconds wireless.delay",
    ),
    "full": (own("controls", "Full"), ("other-path",), "path.delay"),
    "full and deep": (own("controls", "Full segments=1740"), ("deep",), "bufferbloat.delay"),
    "one segment": (own("controls", "Full segments=1"), ("thin",), "thin.completion"),
    "first come": (own("controls", "FirstCome"), ("late",), "fairness.late"),
    "resigned": (own("controls", "Resigned"), ("onset",), "onset.recovers"),
    "blind": (own("controls", "Blind"), ("queue-pie", "queue-pie-drops"), "ecn.reaction"),
    "never leaves start-up": (own("controls", "NeverLeaves"), ("shallow-0.5",), "loss.shallow"),
    "timid": (
        own("controls", "Timid"),
        ("short", "loss-0.001", "loss-0.01", "radio", "path-10-50-1", "queue-fq-codel", "queue-pie", "other-path",
         "cheated"),
        "cheated.share wireless.hundredth short.long wireless.thousandth wireless.goodput tail.use queue-fq-codel.goodput queue-pie.goodput path.goodput",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILS_9743)
def test_a_control_made_to_fail_is_worse(name: str, out: Path) -> None:
    algorithm, only, expected = FAILS_9743[name]
    assert set(expected.split()) - beyond(rfc9743.SUITE, out, algorithm, only) == set()


def test_each_criterion_of_rfc9743_has_a_control_that_fails_it() -> None:
    failed = {one for _, _, expected in FAILS_9743.values() for one in expected.split()}
    assert {one.id for one in rfc9743.criteria(subject.find("cubic"))} == failed


def test_reno_and_cubic_are_never_worse_than_themselves(out: Path) -> None:
    """They set the limits; BBR version 1, which is always beside them, is told by its version."""
    only = ("pair-newreno-0.5", "pair-cubic-0.5", "shallow-0.5", "deep")
    for name in rfc9743.STANDARD:
        assert not beyond(rfc9743.SUITE, out, name, only)
    assert rfc9743.SUITE.labels["bbr"] == "bbr (version 1)"
