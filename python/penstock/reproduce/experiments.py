"""The experiments. Each is one scenario file beside this one, and what is varied in it."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

from penstock.mistake import MistakeError
from penstock.reproduce.variants import ALL, VARIANTS, Variant
from penstock.scenario import Scenario, to_toml

AQMS = ALL
HEADER_BYTES = 52  # IPv4 20, TCP 20, timestamps 12


class ExperimentError(MistakeError):
    """No such experiment."""


@dataclass(frozen=True, order=True)
class Case:
    """One run of an experiment."""

    aqm: str
    flows: int
    seed: int
    variant: str = ""  # none: the experiment as published

    def __str__(self) -> str:
        text = f"{self.aqm}, {self.flows} flows, seed {self.seed}"
        return f"{text}, {self.variant}" if self.variant else text


@dataclass(frozen=True)
class Experiment:
    """A published comparison of queue disciplines over the number of flows."""

    name: str
    title: str
    source: str
    figures: dict[str, str]  # our figure: the paper's
    rate_bps: float
    paper_min_rtt_ms: float
    paper_goodput_mbps: float
    paper_limit_mbytes: float
    aqms: tuple[str, ...] = AQMS
    flows: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    quick_flows: tuple[int, ...] = (4, 64)
    quick_duration: str = "60s"
    cc: str = "newreno"
    variants: tuple[Variant, ...] = VARIANTS
    variant_flows: tuple[int, ...] = (4, 64)

    @cached_property
    def template(self) -> dict[str, Any]:
        """The scenario file that all cases share."""
        text = resources.files("penstock.reproduce").joinpath(f"{self.name}.toml").read_text(encoding="utf-8")
        return tomllib.loads(text)

    @property
    def mss_bytes(self) -> int:
        """The payload of a full segment."""
        return int(self.template["tcp"]["mss"].removesuffix("B"))

    @property
    def payload_share(self) -> float:
        """How much of a full frame is payload."""
        return self.mss_bytes / (self.mss_bytes + HEADER_BYTES)

    @property
    def goodput_limit_bps(self) -> float:
        """The most payload the bottleneck can carry."""
        return self.rate_bps * self.payload_share

    @property
    def sending_ms(self) -> float:
        """Sending a full segment and its ACK over the three links, in milliseconds."""
        access_bps = float(self.template["topology"]["access_rate"].removesuffix("Mbit/s")) * 1e6
        bits = 8 * (self.mss_bytes + 2 * HEADER_BYTES)
        return 1e3 * bits * (1 / self.rate_bps + 2 / access_bps)

    @property
    def unloaded_rtt_ms(self) -> float:
        """Propagation and sending, in milliseconds."""
        topology = self.template["topology"]
        delay_ms, access_ms = (float(topology[key].removesuffix("ms")) for key in ("delay", "access_delay"))
        return 2 * delay_ms + 4 * access_ms + self.sending_ms

    def cases(self, quick: bool, seeds: int) -> Iterator[Case]:
        """All runs, longest first within a seed so that the cores stay busy to the end."""
        counts = self.quick_flows if quick else self.flows
        for seed in range(1, seeds + 1):
            for flows in sorted(counts, reverse=True):
                for aqm in self.aqms:
                    yield Case(aqm, flows, seed)

    def variant_cases(self, seeds: int) -> Iterator[Case]:
        """The runs with one assumption changed, longest first within a seed."""
        for seed in range(1, seeds + 1):
            for flows in sorted(self.variant_flows, reverse=True):
                for variant in self.variants:
                    for aqm in self.aqms:
                        if aqm in variant.aqms:
                            yield Case(aqm, flows, seed, variant.name)

    def scenario(self, case: Case, quick: bool) -> Scenario:
        """The scenario of one run."""
        tree = copy.deepcopy(self.template)
        tree["name"] = f"{self.name}-{case.aqm}-{case.flows}"
        tree["seed"] = case.seed
        tree["aqm"] = {"name": case.aqm}
        tree["flows"][0]["count"] = case.flows
        if quick:
            tree["duration"] = self.quick_duration
        for variant in self.variants:
            if variant.name == case.variant:
                tree["name"] += f"-{variant.name}"
                variant.apply(tree)
        return Scenario(to_toml(tree), f"{tree['name']}.toml")


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            name="pink-dsl",
            title="PINK on a DSL link",
            source="document 000, section 6.1, Table 2",
            figures={"goodput": "Figure 7", "rtt": "Figure 8", "fairness": "Figure 9", "data": "Figure 10"},
            rate_bps=10e6,
            paper_min_rtt_ms=107.0,
            paper_goodput_mbps=9.5,
            paper_limit_mbytes=356.0,
        ),
        Experiment(
            name="pink-sat",
            title="PINK on a satellite link",
            source="document 000, section 6.3, Table 3",
            figures={"goodput": "Figure 15", "rtt": "Figure 16", "fairness": "Figure 17", "data": "Figure 18"},
            rate_bps=4e6,
            paper_min_rtt_ms=780.0,
            paper_goodput_mbps=4.8,
            paper_limit_mbytes=146.0,
        ),
    )
}


def find(name: str) -> Experiment:
    """The experiment of that name."""
    try:
        return EXPERIMENTS[name]
    except KeyError:
        raise ExperimentError(f"no experiment {name!r}; there are: {', '.join(EXPERIMENTS)}") from None
