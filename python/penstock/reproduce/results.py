"""What an experiment gave, as it is stored and as claims and figures read it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock import rundir
from penstock.reproduce.experiments import EXPERIMENTS, Case, Experiment, find

FORMAT = 1
ROOT = Path("runs/reproduce")
RESULTS = "results.json"


@dataclass(frozen=True)
class Outcome:
    """One finished run."""

    case: Case
    cc: str
    summary: dict[str, Any]
    cpu_s: float

    def to_json(self) -> dict[str, Any]:
        """As `reproduce --json` prints it."""
        variant = {"variant": self.case.variant} if self.case.variant else {}
        return {
            **variant,
            "aqm": self.case.aqm,
            "flows": self.case.flows,
            "cc": self.cc,
            "seed": self.case.seed,
            "summary": self.summary,
            "cpu_s": self.cpu_s,
        }

    @classmethod
    def from_json(cls, run: dict[str, Any]) -> Outcome:
        """The reverse of `to_json`."""
        case = Case(run["aqm"], run["flows"], run["seed"], run.get("variant", ""))
        return cls(case, run["cc"], run["summary"], run["cpu_s"])


Measure = Callable[[dict[str, Any]], float]


@dataclass(frozen=True)
class Evidence:
    """All finished runs of one experiment."""

    experiment: Experiment
    quick: bool
    outcomes: tuple[Outcome, ...]
    versions: dict[str, str]
    variants: tuple[Outcome, ...] = ()

    @cached_property
    def _summaries(self) -> dict[tuple[str, int], list[dict[str, Any]]]:
        grouped: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for outcome in self.outcomes:
            grouped.setdefault((outcome.case.aqm, outcome.case.flows), []).append(outcome.summary)
        return grouped

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds that were run."""
        return sorted({outcome.case.seed for outcome in self.outcomes})

    @cached_property
    def aqms(self) -> list[str]:
        """Those with results, in the experiment's order."""
        have = {aqm for aqm, _ in self._summaries}
        return [aqm for aqm in self.experiment.aqms if aqm in have]

    @property
    def duration_s(self) -> float:
        """The simulated time of each run."""
        return float(self.outcomes[0].summary["duration_s"])

    def counts(self, *aqms: str) -> list[int]:
        """The numbers of flows for which all these disciplines have results."""
        wanted = set(aqms or self.aqms)
        numbers = sorted({flows for _, flows in self._summaries})
        return [n for n in numbers if all((aqm, n) in self._summaries for aqm in wanted)]

    def values(self, aqm: str, flows: int, measure: Measure) -> list[float]:
        """The measure of each seed."""
        return [measure(summary) for summary in self._summaries[aqm, flows]]

    def value(self, aqm: str, flows: int, measure: Measure) -> float:
        """The median over seeds."""
        return statistics.median(self.values(aqm, flows, measure))

    def at(self, counts: Iterable[int]) -> Evidence:
        """Only the runs with these numbers of flows."""
        wanted = set(counts)
        return replace(self, outcomes=tuple(o for o in self.outcomes if o.case.flows in wanted), variants=())

    @cached_property
    def varied(self) -> dict[str, Evidence]:
        """For each variant that was run to its end: the experiment at its flow counts, with its runs in their place."""
        found = {}
        for variant in self.experiment.variants:
            runs = tuple(o for o in self.variants if o.case.variant == variant.name)
            have = {(o.case.aqm, o.case.flows) for o in runs}
            counts = self.experiment.variant_flows
            touched = [aqm for aqm in self.aqms if aqm in variant.aqms]
            if have and all((aqm, n) in have and (aqm, n) in self._summaries for aqm in touched for n in counts):
                others = (o for o in self.at(counts).outcomes if o.case.aqm not in touched)
                found[variant.name] = replace(self, outcomes=(*others, *runs), variants=())
        return found

    def scope(self) -> str:
        """What these results cover, for people."""
        counts = ", ".join(map(str, self.counts()))
        seeds = "1 seed" if len(self.seeds) == 1 else f"{len(self.seeds)} seeds"
        return f"{counts} flows, {self.duration_s:g} s, {seeds}" + (" (quick)" if self.quick else "")

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "format": FORMAT,
            "name": self.experiment.name,
            "quick": self.quick,
            "versions": self.versions,
            "runs": [outcome.to_json() for outcome in self.outcomes],
            "variants": [outcome.to_json() for outcome in self.variants],
        }


def load(path: Path) -> Evidence:
    """Reads the results of a directory."""
    stored = rundir.read_json(path / RESULTS)
    try:
        outcomes = tuple(Outcome.from_json(run) for run in stored["runs"])
        if stored["format"] != FORMAT or not outcomes:
            raise rundir.RunDirError(f"{path / RESULTS}: not results of this version")
        variants = tuple(Outcome.from_json(run) for run in stored.get("variants", ()))
        return Evidence(find(stored["name"]), bool(stored["quick"]), outcomes, dict(stored["versions"]), variants)
    except (KeyError, TypeError) as error:
        raise rundir.RunDirError(f"{path / RESULTS}: not results of `penstock reproduce` ({error})") from None


def home(name: str, quick: bool, root: Path = ROOT) -> Path:
    """Where an experiment keeps its results; the quick form never replaces the full one."""
    return root / (f"{name}-quick" if quick else name)


def stored(root: Path = ROOT) -> dict[str, Evidence]:
    """The results at hand, the full form of an experiment before its quick form."""
    found = {}
    for name in EXPERIMENTS:
        for quick in (False, True):
            path = home(name, quick, root)
            if name not in found and (path / RESULTS).is_file():
                found[name] = load(path)
    return found


# What the figures and the claims measure, each from one summary.


def goodput_mbps(percentile: str) -> Measure:
    """Payload that arrived at all receivers within one second."""
    return lambda summary: float(summary["goodput_1s_bps"][percentile]) / 1e6


def rtt_ms(percentile: str) -> Measure:
    """Round trip time over the samples of all flows."""
    return lambda summary: float(summary["rtt_ms"][percentile])


def worst_jain(summary: dict[str, Any]) -> float:
    """The lowest of Jain's index over windows of one second."""
    return float(summary["jain"]["worst_1s"])


def drops(summary: dict[str, Any]) -> float:
    """Packets dropped at the bottleneck, for whatever reason."""
    return float(sum(b["drops_overflow"] + b["drops_aqm"] for b in summary["bottlenecks"]))


def delivered_mbytes(summary: dict[str, Any]) -> float:
    """Payload that arrived in the whole run."""
    return float(sum(flow["delivered_bytes"] for flow in summary["flows"])) / 1e6


def payload_per_packet(summary: dict[str, Any]) -> float:
    """Payload that arrived, in bytes, for each packet with payload that left the bottleneck."""
    packets = sum(int(b["packets"]) for b in summary["bottlenecks"])
    return delivered_mbytes(summary) * 1e6 / max(1, packets)


def dropped_mbytes(payload_share: float) -> Measure:
    """Payload of the dropped packets, nearly all of which are full."""
    return lambda summary: float(sum(b["dropped_bytes"] for b in summary["bottlenecks"])) * payload_share / 1e6
