"""What every experiment is: cases, a scenario for each, and what is told of the results."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from penstock.engine import Result, simulate
from penstock.reproduce import folder
from penstock.reproduce.variants import Variant
from penstock.scenario import Scenario, to_toml

HEADER_BYTES = 52  # IPv4 20, TCP 20, timestamps 12


@dataclass(frozen=True, order=True)
class Case:
    """One run of an experiment."""

    aqm: str
    flows: int
    seed: int
    variant: str = ""  # none: the experiment as published
    setting: str = ""  # what is varied besides, in the experiment's own words

    def __str__(self) -> str:
        parts = (self.setting, self.aqm, f"{self.flows} flows", f"seed {self.seed}", self.variant)
        return ", ".join(part for part in parts if part)

    @property
    def cell(self) -> tuple[str, int, str]:
        """What cases that differ only in seed or variant have in common."""
        return self.aqm, self.flows, self.setting


@dataclass(frozen=True)
class Experiment(ABC):
    """A published experiment: runs that differ in little, and what is said to be seen in them."""

    VARIANT: ClassVar[type[Variant]] = Variant  # the class of its variants

    name: str
    package: str  # its folder
    title: str
    source: str
    place: str = ""  # document and section: lists have experiments in the order of the numbers in it
    figures: Mapping[str, str] = field(default_factory=dict)  # our figure: the paper's
    pictures: Mapping[str, str] = field(default_factory=dict)  # picture of the documentation: our figure
    columns: tuple[str, ...] = ()  # of the table of results
    aqms: tuple[str, ...] = ()
    quick: str = "nothing"  # what the quick form leaves out
    variants: tuple[Variant, ...] = ()
    keeps_series: bool = False  # figures or claims need the seconds of the runs
    one_at_a_time: bool = False  # runs measure the machine and would disturb each other

    @abstractmethod
    def cases(self, quick: bool, seeds: int) -> Iterator[Case]:
        """All runs."""

    @abstractmethod
    def variant_cases(self, seeds: int) -> Iterator[Case]:
        """The runs with one assumption changed."""

    @abstractmethod
    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """The scenario of one run as published, as a tree."""

    def run(
        self,
        scenario: Scenario,
        seed: int | None,
        *,
        on_progress: Callable[[float, float], None],
        stop: Callable[[], bool],
    ) -> Result:
        """Does one run."""
        return simulate(scenario, seed, on_progress=on_progress, stop=stop)

    def extent(self, summaries: Sequence[Mapping[str, Any]]) -> str:
        """How long the runs were, for people."""
        times = sorted({float(summary["duration_s"]) for summary in summaries})
        return f"{times[0]:g} s" if len(times) == 1 else f"{times[0]:g} to {times[-1]:g} s"

    @property
    def settings_in_order(self) -> tuple[str, ...]:
        """The settings as tables list them."""
        return ("",)

    def label(self, setting: str) -> str:
        """A setting for people."""
        return setting

    def in_subset(self, case: Case) -> bool:
        """True for the published runs that variants are compared with."""
        return any(case.cell == varied.cell for varied in self.variant_cases(seeds=1))

    @property
    def subset(self) -> str:
        """Those runs for people, after "at"; empty when they are all."""
        return ""

    @cached_property
    def template(self) -> dict[str, Any]:
        """The scenario file that all cases share."""
        return folder.table(self.package, folder.SCENARIO)

    @cached_property
    def paper(self) -> dict[str, Any]:
        """Numbers that the document gives."""
        return folder.table(self.package, folder.PAPER)

    def defined(self, module: str, name: str, otherwise: Any) -> Any:
        """What a module of the experiment's folder defines; `otherwise` if it does not."""
        return folder.defined(self.package, module, name, otherwise)

    @property
    def cc(self) -> str:
        """The congestion control of all flows."""
        return str(self.template["tcp"]["cc"])

    def cc_of(self, case: Case, quick: bool) -> str:
        """The congestion control of one run, which a setting or a variant may change."""
        return str(self.varied_tree(case, quick)["tcp"]["cc"])

    @property
    def mss_bytes(self) -> int:
        """The payload of a full segment."""
        return int(self.template["tcp"]["mss"].removesuffix("B"))

    @property
    def payload_share(self) -> float:
        """How much of a full frame is payload."""
        return self.mss_bytes / (self.mss_bytes + HEADER_BYTES)

    @cached_property
    def rate_bps(self) -> float:
        """The rate of the bottleneck, or of the first where there are several."""
        topology = self.template["topology"]
        text = topology["rate"] if "rate" in topology else topology["links"][0]["rate"]
        return float(text.removesuffix("Mbit/s")) * 1e6

    @property
    def goodput_limit_bps(self) -> float:
        """The most payload the bottleneck can carry."""
        return self.rate_bps * self.payload_share

    def varied_tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """The scenario of one run, with the change of its variant."""
        tree = self.tree(case, quick)
        for variant in self.variants:
            if variant.name == case.variant:
                tree["name"] += f"-{variant.name}"
                variant.apply(tree)
        return tree

    def scenario(self, case: Case, quick: bool) -> Scenario:
        """The scenario of one run, as text."""
        tree = self.varied_tree(case, quick)
        return Scenario(to_toml(tree), f"{tree['name']}.toml")

    def duration_s(self, case: Case, quick: bool) -> float:
        """The simulated time of one run."""
        return float(str(self.varied_tree(case, quick)["duration"]).removesuffix("s"))

    def _copy(self, case: Case, name: str) -> dict[str, Any]:
        """The template with the queue discipline and the seed of a case."""
        tree = copy.deepcopy(self.template)
        tree["name"] = name
        tree["seed"] = case.seed
        for table in aqm_tables(tree):
            table.clear()
            table["name"] = case.aqm
        return tree


def aqm_tables(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The queue disciplines that a scenario names: of the dumbbell, both ways, or of each link that has one."""
    if "aqm" in tree:
        back = tree["topology"].get("reverse_aqm")
        return [tree["aqm"], *([] if back is None else [back])]
    return [link["aqm"] for link in tree["topology"].get("links", ()) if "aqm" in link]
