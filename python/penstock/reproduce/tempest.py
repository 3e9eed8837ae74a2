"""Experiments of the kind `tempest`, whose runs test packet schedulers with `penstock tempest`.

A run consists of the flags of one test. Times depend on the machine, so claims compare ratios of times, and runs which
measure times are executed one at a time. All other results are the same on every machine.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from penstock import engine
from penstock.mistake import MistakeError
from penstock.reproduce.base import Case, Experiment, Own
from penstock.reproduce.variants import Variant
from penstock.scenario import Scenario

# Combinations of two schedulers by name: the scheduler of the flows, and that of the stations at the radio.
DOUBLE = {"hfs": ("qfq-plus", "qfq-plus"), "hfs-drr": ("qfq-plus", "drr")}
INTEGRATED = ("w2f2q",)
BELOW = "qfq-plus"  # the scheduler of stations below one of one's own
OF_DOUBLE, OF_INTEGRATED = ("qmac", "qcount", "wdistr", "flowsetsmac"), ("intgr_th",)


def mode_flags(name: str) -> dict[str, str]:
    """Returns the flags for the mode and the schedulers which a name stands for."""
    if name in DOUBLE:
        qos, mac = DOUBLE[name]
        return {"mode": "double", "qos": qos, "mac": mac}
    return {"mode": "integrated" if name in INTEGRATED else "single", "alg": name}


@dataclass(frozen=True)
class Test:
    """A setting of the experiment: the flags that several runs share."""

    name: str
    label: str
    aqms: tuple[str, ...]  # the schedulers
    flags: Mapping[str, str]
    flows: int  # number of flows that tables show
    quick: bool = True  # true if the quick form runs the test
    given: Mapping[str, str] = field(default_factory=dict)  # flags that a person gives, in place of all others


@dataclass(frozen=True)
class Changed(Variant):
    """A variant which changes flags, where the mode of the scheduler has them."""

    flags: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> dict[str, Any]:
        """Its flags too."""
        return {**super().keys, **{f"flags.{key}": value for key, value in self.flags.items()}}

    def apply(self, tree: dict[str, Any]) -> None:
        """Sets the flags of this variant, except those that the mode of the run does not have."""
        tree["tempest"].update(_of_mode(self.flags, tree["tempest"]["mode"]))


def _of_mode(flags: Mapping[str, str], mode: str) -> dict[str, str]:
    """Returns the flags without those that only other modes have."""
    foreign = (*(OF_DOUBLE if mode != "double" else ()), *(OF_INTEGRATED if mode != "integrated" else ()))
    return {key: value for key, value in flags.items() if key not in foreign}


@dataclass(frozen=True)
class Tempest(Experiment):
    """An experiment whose runs are tests times schedulers."""

    VARIANT: ClassVar[type[Variant]] = Changed

    tests: tuple[Test, ...] = ()
    shared: Mapping[str, str] = field(default_factory=dict)
    quick_flags: Mapping[str, str] = field(default_factory=dict)

    def cases(self, quick: bool, seeds: int) -> Iterator[Case]:
        """Yields the runs in the order of the tests."""
        for seed in range(1, seeds + 1):
            for test in self.tests:
                if test.quick or not quick:
                    yield from (Case(alg, test.flows, seed, setting=test.name) for alg in test.aqms)

    def variant_cases(self, seeds: int) -> Iterator[Case]:
        """Yields, for each variant, the runs of the quick form whose scheduler it has."""
        for variant in self.variants:
            for case in self.cases(True, seeds):
                if case.aqm in variant.aqms and variant.is_for(case.setting):
                    yield replace(case, variant=variant.name)

    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """Returns the flags of one run in a table `tempest`."""
        mode = self.mode(case)
        given = {**self.shared, **self.test(case.setting).flags, **(self.quick_flags if quick else {})}
        flags = _of_mode(given, mode["mode"])
        name = f"{self.name}-{case.setting}-{case.aqm}"
        return {"name": name, "tempest": {**flags, **mode, "seed": str(case.seed)}}

    def layers(self, name: str) -> dict[str, str]:
        """Returns the flags for the mode and the schedulers which a name of the experiment stands for."""
        return mode_flags(name)

    def mode(self, case: Case) -> dict[str, str]:
        """Returns the flags for the mode and the schedulers of a run.

        A scheduler of one's own is tested alone; where all others have two layers, its flows are above QFQ+.
        """
        if case.aqm not in self.own:
            return self.layers(case.aqm)
        path = self.own[case.aqm].path
        others = [self.layers(name)["mode"] for name in self.test(case.setting).aqms if name not in self.own]
        if set(others) == {"double"}:
            return {"mode": "double", "qos": path, "mac": BELOW}
        return {"mode": "single", "alg": path}

    def varied_tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """Returns the flags of one run, with those that a person gives in place of all others."""
        tree = super().varied_tree(case, quick)
        given = _of_mode(self.test(case.setting).given, tree["tempest"]["mode"])
        tree["tempest"] |= given
        return tree

    def be_own(self, tree: dict[str, Any], own: Own) -> None:
        """Leaves the flags as they are: `mode` has named the scheduler."""

    def test(self, name: str) -> Test:
        """Returns the test called `name`."""
        return next(test for test in self.tests if test.name == name)

    def with_linux(self, on: str, announce: bool = False) -> Experiment:  # noqa: ARG002 - as that of others
        """Raises `MistakeError`."""
        raise MistakeError(f"--on {on}: {self.name} tests packet schedulers, in which no host takes part")

    def run(
        self,
        scenario: Scenario,
        seed: int | None,
        *,
        on_progress: Callable[[float, float], None],
        stop: Callable[[], bool],
    ) -> engine.Result:
        """Tests the scheduler. `seed` is unused, since the flags have it, as is `stop`, since a run is short."""
        del seed, stop
        try:
            result = engine.tempest_result(scenario, tomllib.loads(scenario.text)["tempest"])
        except ValueError as error:  # a flag which a person gave
            raise MistakeError(f"{scenario.name}: {error}") from None
        on_progress(1.0, 1.0)
        return result

    @property
    def settings_in_order(self) -> tuple[str, ...]:
        """The names of the tests."""
        return tuple(test.name for test in self.tests)

    def label(self, setting: str) -> str:
        """Returns the name of a test in tables."""
        return self.test(setting).label

    @cached_property
    def template(self) -> dict[str, Any]:
        """The flags that all runs share."""
        return {"name": self.name, "tempest": dict(self.shared)}

    def cc_of(self, case: Case, quick: bool) -> str:
        """Returns an empty text, since there is no congestion control."""
        del case, quick
        return ""

    def duration_s(self, case: Case, quick: bool) -> float:
        """Returns 1, so that all runs advance the progress equally."""
        del case, quick
        return 1.0

    def extent(self, summaries: Sequence[Mapping[str, Any]]) -> str:
        """Returns the number of events of the runs as text."""
        events = sorted({int(summary["events"]) for summary in summaries})
        return f"{events[0]:,} events" if len(events) == 1 else f"{events[0]:,} to {events[-1]:,} events"


# Measures of one report.


def top(summary: Mapping[str, Any], key: str, most_loss: float = 1.0) -> float | None:
    """Returns the largest value of `key` among the flows of the largest weight whose loss is at most `most_loss`."""
    flows = summary["flows_detail"]
    most = max((flow["weight"] for flow in flows), default=0)
    chosen = [flow for flow in flows if flow["weight"] == most and (flow.get("loss") or 0.0) <= most_loss]
    return max((float(flow[key]) for flow in chosen if flow[key] is not None), default=None)


def value(summary: Mapping[str, Any], key: str) -> float | None:
    """Returns a number of the report, or of the worst of all flows; `None` if the report has neither."""
    found = summary[key] if key in summary else (summary["worst"] or {}).get(key)
    return None if found is None else float(found)
