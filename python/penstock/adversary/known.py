"""Weaknesses that the literature or our own history knows, which the adversary must find again without being told.

Each is an algorithm and a sentence; the space is that of this release, so that nothing says where to look. A finding is
the known one if the smallest scenario has the cause: `known` says so of its settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.adversary import space as spaces
from penstock.adversary import standing
from penstock.adversary import subject as subjects
from penstock.adversary.breaking import Breach, Broken, Budget, Plan
from penstock.adversary.shrink import SEEDS, few
from penstock.adversary.space import Settings
from penstock.adversary.trials import breaking

_WAYS = 5  # so many ways of each search are made small: the known one need not be the worst
_CELLS = 40  # and so many cells of the map are tried with several seeds
_STREAMS = ("udp", "onoff", "bursts")
_OTHERS = ("late", "leaving", "distant")


@dataclass(frozen=True)
class Known:
    """One known weakness."""

    name: str
    algorithm: str
    sentence: str
    about: str
    source: str
    known: Callable[[Settings], bool]
    space: str = ""  # a space of its own; empty: that of this release
    without: str = ""  # the algorithm without the weakness, for which the scenario must not break
    trials: int = 400  # of the search
    switch: str = ""  # how the behaviour of that time is had today

    def plan(self, budget: Budget | None = None, jobs: int | None = None) -> Plan:
        """Returns the search for it."""
        subject = subjects.find(self.algorithm)
        read = spaces.standard(self.space or subject.kind)
        space = read.of(subject, hostile=False)
        goals = standing.goals([self.sentence], subject.kind, tuple(part.name for part in space.parts))
        return Plan(
            space, tuple(goals), budget or Budget(self.trials), 1, jobs, ways=_WAYS, candidates=_CELLS, mends=False
        )

    def breach(self, result: Broken) -> Breach | None:
        """Returns the way that is the known one; `None` if the search did not find it."""
        breaches = [breach for finding in result.findings for breach in finding.breaches]
        known = (breach for breach in breaches if self.known(breach.shrunk.settings))
        return next((breach for breach in known if self._is_cause(breach.shrunk.settings)), None)

    def _is_cause(self, settings: Settings) -> bool:
        """True if the scenario does not break the algorithm without the weakness, as far as there is one."""
        if not self.without:
            return True
        judge = replace(self, algorithm=self.without).plan().judge
        return few(*breaking((judge.trial(settings, seed) for seed in SEEDS), 0))


def _has(parts: Sequence[str]) -> Callable[[Settings], bool]:
    return lambda settings: any(settings.get(part) for part in parts)


KNOWN: tuple[Known, ...] = (
    Known(
        "bbr-small-buffer",
        "bbr",
        "needless_drops > 0.05 and flows_long == 1 and unresponsive_bps == 0 and link.lost == 0",
        "BBR (version 1) loses many packets where the buffer is below 1.5 products of rate and round trip time",
        "Hock, Bless, Zitterbart, ICNP 2017; Cao and others, IMC 2019",
        lambda settings: settings.get("buffer", 2.0) <= 1.5,
        trials=800,
    ),
    Known(
        "bbr-late-cubic",
        "bbr",
        "others_share_lowest < 0.2 and buffer_products >= 4 and unresponsive_bps == 0",
        "BBR (version 1) leaves a late flow of another control nearly nothing",
        "Hock, Bless, Zitterbart, ICNP 2017; Ware and others, IMC 2019",
        _has(_OTHERS),
    ),
    Known(
        "shrew",
        "newreno",
        "subject_share < 0.2 and subject.timeouts > 5 and unresponsive_bps < 0.2 * rate_bps and link.lost == 0",
        "bursts at intervals near the retransmission timeout stop a TCP flow at a small mean rate (the shrew)",
        "Kuzmanovic and Knightly, SIGCOMM 2003",
        lambda settings: bool(settings.get("bursts")) and not settings.get("moved") and not settings.get("step"),
        trials=1000,
    ),
    Known(
        "codel-unresponsive",
        "codel",
        "link.queue_delay_p50_ms > 50",
        "CoDel reacts slowly to many flows that do not react themselves",
        "RFC 8289 section 7; Patil 2020",
        _has(_STREAMS),
    ),
    Known(
        "pie-burst-allowance",
        "pie",
        "link.queue_delay_p99_ms > 150 and link.drops_aqm < 0.01 * link.packets",
        "PIE's burst allowance lets bursts after idle times wait for several times the target",
        "RFC 8033 section 4.4",
        _has(("bursts", "onoff", "web")),
        without="pie max_burst=0ms",
    ),
    Known(
        "step-lost-syn",
        "newreno",
        "ecn_lost > 0 and subject_share_lowest < 0.1",
        "behind a step that marks, a flow whose first SYN is lost goes on without ECN and starves",
        "RFC 3168 section 6.1.1; own history",
        lambda _settings: True,
        space="step",
        without="dctcp",
        switch="a control whose SYNs are not ECN-capable stands for DCTCP of that time",
    ),
    Known(
        "pink-idle",
        "pink sampling=off reallocation=off",
        "use_late < 0.5",
        "connections that are idle keep their shares of a link with PINK",
        "own history",
        _has(("idle",)),
        without="pink",
        switch="sampling = off and reallocation = off: the rules of that time",
    ),
    Known(
        "fq-pie-tail-drop",
        "fq-pie overflow=arrival",
        "share_lowest < 0.3",
        "FQ-PIE that drops the arrival when there is no room lets a stream that does not react take the buffer",
        "own history; Linux sch_fq_pie",
        _has(_STREAMS),
        without="fq-pie",
    ),
    Known(
        "vegas-beside-reno",
        "vegas",
        "subject_share < 0.2 and unresponsive_bps == 0 and others_share > 1",
        "Vegas gives way to controls that fill the queue",
        "Mo and others, INFOCOM 1999",
        _has(_OTHERS),
    ),
)


def by_name() -> Mapping[str, Known]:
    """Returns the weaknesses by name."""
    return {one.name: one for one in KNOWN}
