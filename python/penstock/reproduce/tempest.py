"""Experiments whose runs are tests of packet schedulers, in TEMPEST, and no simulations.

A run's flags are those of `penstock tempest`. Times depend on the machine, so claims compare them as ratios, and such
runs go one at a time. Everything else is the same on every machine.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from penstock import engine
from penstock.reproduce.base import Case, Experiment
from penstock.reproduce.variants import Variant
from penstock.scenario import Scenario

# Names of what is not one scheduler alone: the guarantees' scheduler and the radio's.
DOUBLE = {"hfs": ("qfq-plus", "qfq-plus"), "hfs-drr": ("qfq-plus", "drr")}
INTEGRATED = ("w2f2q",)
OF_DOUBLE, OF_INTEGRATED = ("qmac", "qcount", "wdistr", "flowsetsmac"), ("intgr_th",)


def mode_flags(name: str) -> dict[str, str]:
    """The mode and the scheduler or schedulers of one name."""
    if name in DOUBLE:
        qos, mac = DOUBLE[name]
        return {"mode": "double", "qos": qos, "mac": mac}
    return {"mode": "integrated" if name in INTEGRATED else "single", "alg": name}


@dataclass(frozen=True)
class Test:
    """Runs that share flags."""

    name: str
    label: str
    aqms: tuple[str, ...]  # the schedulers
    flags: Mapping[str, str]
    flows: int  # what tables call the number of flows
    quick: bool = True  # part of the quick form


@dataclass(frozen=True)
class Changed(Variant):
    """Other flags for the schedulers of two layers or that see the channel."""

    flags: Mapping[str, str] = field(default_factory=dict)

    def apply(self, tree: dict[str, Any]) -> None:
        """Changes the flags that the mode has."""
        tree["tempest"].update(_of_mode(self.flags, tree["tempest"]["mode"]))


def _of_mode(flags: Mapping[str, str], mode: str) -> dict[str, str]:
    """Without the flags of other modes."""
    foreign = (*(OF_DOUBLE if mode != "double" else ()), *(OF_INTEGRATED if mode != "integrated" else ()))
    return {key: value for key, value in flags.items() if key not in foreign}


@dataclass(frozen=True)
class Tempest(Experiment):
    """Tests times schedulers."""

    VARIANT: ClassVar[type[Variant]] = Changed

    tests: tuple[Test, ...] = ()
    shared: Mapping[str, str] = field(default_factory=dict)
    quick_flags: Mapping[str, str] = field(default_factory=dict)

    def cases(self, quick: bool, seeds: int) -> Iterator[Case]:
        """All runs, in the order of the tests."""
        for seed in range(1, seeds + 1):
            for test in self.tests:
                if test.quick or not quick:
                    yield from (Case(alg, test.flows, seed, setting=test.name) for alg in test.aqms)

    def variant_cases(self, seeds: int) -> Iterator[Case]:
        """Each variant for every run of the quick form that it can touch."""
        for variant in self.variants:
            for case in self.cases(True, seeds):
                if case.aqm in variant.aqms:
                    yield replace(case, variant=variant.name)

    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """The flags of one run."""
        mode = mode_flags(case.aqm)
        given = {**self.shared, **self.test(case.setting).flags, **(self.quick_flags if quick else {})}
        flags = _of_mode(given, mode["mode"])
        name = f"{self.name}-{case.setting}-{case.aqm}"
        return {"name": name, "tempest": {**flags, **mode, "seed": str(case.seed)}}

    def test(self, name: str) -> Test:
        """The test of that name."""
        return next(test for test in self.tests if test.name == name)

    def run(
        self,
        scenario: Scenario,
        seed: int | None,
        *,
        on_progress: Callable[[float, float], None],
        stop: Callable[[], bool],
    ) -> engine.Result:
        """Tests the scheduler; the seed is among the flags, and a run is too short to be stopped."""
        del seed, stop
        result = engine.tempest_result(scenario, tomllib.loads(scenario.text)["tempest"])
        on_progress(1.0, 1.0)
        return result

    @property
    def settings_in_order(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(test.name for test in self.tests)

    def label(self, setting: str) -> str:
        """What a table calls it."""
        return self.test(setting).label

    @cached_property
    def template(self) -> dict[str, Any]:
        """The flags that all runs share."""
        return {"name": self.name, "tempest": dict(self.shared)}

    def cc_of(self, case: Case, quick: bool) -> str:
        """There is no congestion control."""
        del case, quick
        return ""

    def duration_s(self, case: Case, quick: bool) -> float:
        """A part of the progress: all runs count alike."""
        del case, quick
        return 1.0

    def extent(self, summaries: Sequence[Mapping[str, Any]]) -> str:
        """How many events each run had."""
        events = sorted({int(summary["events"]) for summary in summaries})
        return f"{events[0]:,} events" if len(events) == 1 else f"{events[0]:,} to {events[-1]:,} events"


# What is measured.


def top(summary: Mapping[str, Any], key: str, most_loss: float = 1.0) -> float | None:
    """The worst among the flows of the largest weight whose stations lose no more than this."""
    flows = summary["flows_detail"]
    most = max((flow["weight"] for flow in flows), default=0)
    chosen = [flow for flow in flows if flow["weight"] == most and (flow.get("loss") or 0.0) <= most_loss]
    return max((float(flow[key]) for flow in chosen if flow[key] is not None), default=None)


def value(summary: Mapping[str, Any], key: str) -> float | None:
    """A number of the report, or of the worst of all flows."""
    found = summary[key] if key in summary else (summary["worst"] or {}).get(key)
    return None if found is None else float(found)
