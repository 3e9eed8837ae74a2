"""The base class of experiments: their cases, the scenario of each case, and how results are presented."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from penstock import worlds
from penstock.engine import Result, ScenarioError, tcp_defaults
from penstock.reproduce import folder
from penstock.reproduce.series import Series
from penstock.reproduce.variants import Variant
from penstock.scenario import Scenario, to_toml

HEADER_BYTES = 52  # IPv4 20, TCP 20, timestamps 12


@dataclass(frozen=True, order=True)
class Case:
    """One run of an experiment."""

    aqm: str
    flows: int
    seed: int
    variant: str = ""  # name of the variant; empty: the experiment as published
    setting: str = ""  # name of the setting; empty if the experiment has no settings

    def __str__(self) -> str:
        parts = (self.setting, self.aqm, f"{self.flows} flows", f"seed {self.seed}", self.variant)
        return ", ".join(part for part in parts if part)

    @property
    def cell(self) -> tuple[str, int, str]:
        """Discipline, number of flows and setting, which cases that differ only in seed or variant have in common."""
        return self.aqm, self.flows, self.setting


@dataclass(frozen=True)
class Own:
    """A discipline of one's own that was added to an experiment."""

    path: str  # its name in scenarios
    digest: str  # hash of its file
    parameters: frozenset[str]  # keys that it has; it gets no other parameters of the experiment's disciplines


@dataclass(frozen=True)
class Experiment(ABC):
    """A published experiment: a set of runs, its figures, and the columns of its table of results."""

    VARIANT: ClassVar[type[Variant]] = Variant  # class of the variants in `experiment.toml`

    name: str
    package: str  # name of the Python package that is the experiment's folder
    title: str
    source: str
    simulator: str = ""  # with which the document measured, as far as it says
    place: str = ""  # document and section, by whose numbers lists of experiments are sorted
    figures: Mapping[str, str] = field(default_factory=dict)  # figures of the document, by names of our figures
    pictures: Mapping[str, str] = field(default_factory=dict)  # our figures, by names of pictures of the documentation
    columns: tuple[str, ...] = ()  # names of the columns of the table of results
    aqms: tuple[str, ...] = ()  # names of the disciplines
    quick: str = "nothing"  # what the quick form leaves out, in words
    variants: tuple[Variant, ...] = ()
    keeps_series: bool = False  # true if figures or claims need per-second series of the runs
    # Changes of every scenario with a discipline, by path. A change of "aqm.name" gives one discipline several names.
    per_aqm: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seeds: int = 1  # number of seeds that decide the claims of the ledger
    own: Mapping[str, Own] = field(default_factory=dict)  # disciplines of one's own, by their names in `aqms`
    linux: str = ""  # the world in which it runs with the hosts of Linux; empty: as published, in the simulator
    linux_announces: bool = False  # true if these hosts announce rates; else RED-ERN estimates them
    # Runs that this world cannot do, by discipline, number of flows and setting, with its words; they are left out.
    refused: Mapping[tuple[str, int, str], str] = field(default_factory=dict)
    one_at_a_time: bool = False  # true if runs measure CPU time, so that parallel runs would disturb each other

    @abstractmethod
    def cases(self, quick: bool, seeds: int) -> Iterator[Case]:
        """Yields the published runs for seeds 1 to `seeds`."""

    @abstractmethod
    def variant_cases(self, seeds: int) -> Iterator[Case]:
        """Yields the runs of all variants for seeds 1 to `seeds`."""

    @abstractmethod
    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """Returns the scenario of one published run as a tree of tables; the variant of `case` is ignored."""

    def run(
        self,
        scenario: Scenario,
        seed: int | None,
        *,
        on_progress: Callable[[float, float], None],
        stop: Callable[[], bool],
    ) -> Result:
        """Executes one run."""
        return worlds.run(scenario, seed, self.linux or worlds.SIM, on_progress=on_progress, stop=stop)

    def series_of(self, result: Result) -> Series | None:
        """Returns the series of a run if the experiment keeps them and the scenario of the run has them."""
        return Series.of(result) if self.keeps_series and "flow_seconds" in result.tables else None

    def with_linux(self, on: str, announce: bool = False) -> Experiment:
        """Returns the experiment with the hosts of Linux, without its variants, in a world: a kernel or the simulator.

        With `announce` senders announce rates where they do so in the document; else RED-ERN estimates them.
        Runs that the world cannot do are `refused`. If it can do none, `ScenarioError` has the line of the first.
        """
        where = "with hosts as Linux has them" if on == worlds.SIM else f"on a Linux kernel ({on})"
        where += " that announce rates" * announce
        found = replace(self, linux=on, linux_announces=announce, title=f"{self.title}, {where}", variants=())
        if on not in worlds.KERNELS:
            return found
        refused: dict[tuple[str, int, str], str] = {}
        cells = {case.cell: case for quick in (True, False) for case in found.cases(quick, seeds=1)}
        for cell, case in cells.items():
            try:
                worlds.check(found.scenario(case, quick=False), case.seed, on)
            except ScenarioError as error:
                refused[cell] = str(error).splitlines()[0].removeprefix(f"error: --on {on}: ")
                if len(refused) == len(cells):
                    raise
        return replace(found, refused=refused)

    def extent(self, summaries: Sequence[Mapping[str, Any]]) -> str:
        """Returns the simulated time of the runs as text."""
        times = sorted({float(summary["duration_s"]) for summary in summaries})
        return f"{times[0]:g} s" if len(times) == 1 else f"{times[0]:g} to {times[-1]:g} s"

    @property
    def settings_in_order(self) -> tuple[str, ...]:
        """The names of the settings, in the order of tables."""
        return ("",)

    def label(self, setting: str) -> str:
        """Returns the name of a setting in tables."""
        return setting

    def in_subset(self, case: Case) -> bool:
        """Returns true for the published runs with which variants are compared."""
        return any(case.cell == varied.cell for varied in self.variant_cases(seeds=1))

    @property
    def subset(self) -> str:
        """Describes the runs with which variants are compared, to be put after "at"; empty if these are all runs."""
        return ""

    @cached_property
    def template(self) -> dict[str, Any]:
        """The scenario that all cases share, as a tree of tables."""
        return folder.table(self.package, folder.SCENARIO)

    @cached_property
    def paper(self) -> dict[str, Any]:
        """The numbers that the document gives, from `paper.toml`."""
        return folder.table(self.package, folder.PAPER)

    def defined(self, module: str, name: str, otherwise: Any) -> Any:
        """Returns what a module of the experiment's folder defines under `name`; `otherwise` if it defines nothing."""
        return folder.defined(self.package, module, name, otherwise)

    @property
    def cc(self) -> str:
        """The name of the congestion control of all flows."""
        return control_name(self.template)

    def cc_of(self, case: Case, quick: bool) -> str:
        """Returns the name of the congestion control of one run, which a setting or a variant may change."""
        return control_name(self.varied_tree(case, quick))

    @property
    def mss_bytes(self) -> int:
        """The payload of a full segment, in bytes."""
        text = str(tcp_key(self.template, "mss"))
        number, factor = (text.removesuffix("kB"), 1000) if text.endswith("kB") else (text.removesuffix("B"), 1)
        return round(float(number) * factor)

    @property
    def payload_share(self) -> float:
        """The payload of a full segment as a part of its packet, from 0 to 1."""
        return self.mss_bytes / (self.mss_bytes + HEADER_BYTES)

    @cached_property
    def rate_bps(self) -> float:
        """The rate of the first bottleneck, in bits per second."""
        topology = self.template["topology"]
        text = topology["rate"] if "rate" in topology else topology["links"][0]["rate"]
        return float(text.removesuffix("Mbit/s")) * 1e6

    @property
    def goodput_limit_bps(self) -> float:
        """The highest goodput that the first bottleneck can carry, in bits per second."""
        return self.rate_bps * self.payload_share

    def varied_tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """Returns the scenario of one run as a tree of tables, with the change of its variant."""
        tree = self.tree(case, quick)
        known = {variant.name: variant for variant in self.variants}
        if case.variant in known:
            tree["name"] += f"-{case.variant}"
            for name in (*known[case.variant].joint, case.variant):
                known[name].apply(tree)
        if case.aqm in self.own:
            self.be_own(tree, self.own[case.aqm])
        return tree

    def be_own(self, tree: dict[str, Any], own: Own) -> None:
        """Puts a discipline of one's own into a scenario, in place of that which has its name."""
        for table in aqm_tables(tree):
            for key in table.keys() - own.parameters:
                del table[key]
            table["name"] = own.path

    def scenario(self, case: Case, quick: bool) -> Scenario:
        """Returns the scenario of one run."""
        tree = self.varied_tree(case, quick)
        found = Scenario(to_toml(tree), f"{tree['name']}.toml")
        return worlds.linux_hosts(found, self.linux_announces) if self.linux else found

    def duration_s(self, case: Case, quick: bool) -> float:
        """Returns the simulated time of one run, in seconds."""
        return float(str(self.varied_tree(case, quick)["duration"]).removesuffix("s"))

    def _copy(self, case: Case, name: str) -> dict[str, Any]:
        """Returns a copy of the template with the discipline and the seed of a case, called `name`."""
        tree = copy.deepcopy(self.template)
        tree["name"] = name
        tree["seed"] = case.seed
        for table in aqm_tables(tree):
            table.clear()
            table["name"] = case.aqm
        return tree


def tcp_key(tree: Mapping[str, Any], key: str) -> Any:
    """Returns the value of a key of `[tcp]` in a scenario; the simulator's default if the scenario does not have it."""
    return tree.get("tcp", {}).get(key, tcp_defaults()[key])


def control_name(tree: Mapping[str, Any]) -> str:
    """Returns the name of the congestion control in `[tcp]`, which is a name, or a table of a name and parameters."""
    control = tcp_key(tree, "cc")
    return str(control["name"] if isinstance(control, Mapping) else control)


def aqm_tables(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the tables of all disciplines in a scenario: both directions of a dumbbell, or each link that has one."""
    if "aqm" in tree:
        back = tree["topology"].get("reverse_aqm")
        return [tree["aqm"], *([] if back is None else [back])]
    return [link["aqm"] for link in tree["topology"].get("links", ()) if "aqm" in link]
