"""The results of an experiment: how they are stored, and how claims and figures read them."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock import chance, rundir, store
from penstock.mistake import MistakeError
from penstock.reproduce.base import Case, Experiment
from penstock.reproduce.experiments import EXPERIMENTS, find
from penstock.reproduce.series import Series

FORMAT = 3  # format 2 has no hash
_OLDEST = 2
ROOT = Path("runs/reproduce")
RESULTS = "results.json"


@dataclass(frozen=True)
class Outcome:
    """One finished run."""

    case: Case
    cc: str
    summary: dict[str, Any]
    cpu_s: float
    series: Series | None = None  # None unless the experiment keeps series
    disturbed: tuple[str, ...] = ()  # how the machine disturbed a run in real time

    def to_json(self) -> dict[str, Any]:
        """Returns the run as `reproduce --json` prints it."""
        varied = {"setting": self.case.setting, "variant": self.case.variant}
        return {
            **{key: value for key, value in varied.items() if value},
            "aqm": self.case.aqm,
            "flows": self.case.flows,
            "cc": self.cc,
            "seed": self.case.seed,
            "summary": self.summary,
            "cpu_s": self.cpu_s,
            **({"disturbed": list(self.disturbed)} if self.disturbed else {}),
        }

    def to_store(self) -> dict[str, Any]:
        """Returns the run as it is stored: as printed, and its series."""
        return {**self.to_json(), **({"series": self.series.to_json()} if self.series else {})}

    @classmethod
    def from_json(cls, run: dict[str, Any]) -> Outcome:
        """Returns the outcome whose `to_store` gave `run`."""
        case = Case(run["aqm"], run["flows"], run["seed"], run.get("variant", ""), run.get("setting", ""))
        series = Series.from_json(run["series"]) if "series" in run else None
        disturbed = tuple(run.get("disturbed", ()))
        return cls(case, run["cc"], run["summary"], run["cpu_s"], series, disturbed)


Measure = Callable[[dict[str, Any]], float]


def known(value: float | None) -> float:
    """Returns a number of a summary; one that is missing is NaN, with which every comparison is false."""
    return math.nan if value is None else float(value)


def over_seeds(values: Iterable[float | None]) -> float | None:
    """Returns the median of the values of all seeds; `None` if there are none, or if one of them is missing."""
    given = list(values)
    there = [value for value in given if value is not None and not math.isnan(value)]
    return statistics.median(there) if there and len(there) == len(given) else None


class NotCoveredError(LookupError):
    """A check asked for runs which the evidence does not have."""


@dataclass(frozen=True)
class Evidence:
    """All finished runs of one experiment. Disciplines, settings and cells count only if they have results."""

    experiment: Experiment
    quick: bool
    outcomes: tuple[Outcome, ...]
    versions: dict[str, str]
    variants: tuple[Outcome, ...] = ()
    part: bool = False  # true for a part of the runs, with which variants are compared
    strict: bool = False  # true if asking for runs that are missing is an error; claims are judged so

    @cached_property
    def strictly(self) -> Evidence:
        """The same runs; a check that asks for others gets a `NotCoveredError` and not a zero."""
        return self if self.strict else replace(self, strict=True)

    @cached_property
    def by_seed(self) -> dict[int, Evidence]:
        """The runs of each seed."""
        found = {}
        for seed in self.seeds:
            outcomes, variants = (
                tuple(o for o in runs if o.case.seed == seed) for runs in (self.outcomes, self.variants)
            )
            found[seed] = replace(self, outcomes=outcomes, variants=variants)
        return found

    @property
    def published(self) -> bool:
        """True if all runs are of the experiment's own disciplines and settings."""
        known = {*self.experiment.aqms}, {*self.experiment.settings_in_order}
        return all(one.case.aqm in known[0] and one.case.setting in known[1] for one in self.outcomes)

    def _covered(self, found: bool, *cell: object) -> None:
        if self.strict and not found:
            named = ", ".join(str(part) for part in cell if part not in ("", None))
            raise NotCoveredError(f"no results of {named}")

    @cached_property
    def _cells(self) -> dict[tuple[str, int, str], list[Outcome]]:
        grouped: dict[tuple[str, int, str], list[Outcome]] = {}
        for outcome in self.outcomes:
            grouped.setdefault(outcome.case.cell, []).append(outcome)
        return grouped

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds with results, in ascending order."""
        return sorted({outcome.case.seed for outcome in self.outcomes})

    @property
    def disturbed(self) -> dict[Case, tuple[str, ...]]:
        """The runs in real time that the machine disturbed, and how."""
        return {one.case: one.disturbed for one in (*self.outcomes, *self.variants) if one.disturbed}

    @cached_property
    def random(self) -> bool:
        """True if some run differs from seed to seed; else more seeds than one say nothing more."""
        return any(chance.different(chance.mark(one.summary) for one in each) > 1 for each in self._cells.values())

    @cached_property
    def aqms(self) -> list[str]:
        """The disciplines with results, in the experiment's order."""
        have = {aqm for aqm, _, _ in self._cells}
        return [aqm for aqm in self.experiment.aqms if aqm in have]

    @cached_property
    def settings(self) -> list[str]:
        """The settings with results, in the experiment's order."""
        have = {setting for _, _, setting in self._cells}
        return [setting for setting in self.experiment.settings_in_order if setting in have]

    @property
    def cells(self) -> list[tuple[str, int, str]]:
        """Discipline, number of flows and setting of all results, as tables list them."""
        settings, aqms = self.experiment.settings_in_order, self.experiment.aqms
        return sorted(self._cells, key=lambda cell: (settings.index(cell[2]), cell[1], aqms.index(cell[0])))

    @property
    def duration_s(self) -> float:
        """The simulated time of each run, in seconds."""
        return float(self.outcomes[0].summary["duration_s"])

    def counts(self, *aqms: str, setting: str = "") -> list[int]:
        """Returns the numbers of flows for which all these disciplines have results; by default all of them."""
        wanted = set(aqms or self.aqms)
        numbers = sorted({flows for _, flows, _ in self._cells})
        return [n for n in numbers if all((aqm, n, setting) in self._cells for aqm in wanted)]

    def runs(self, aqm: str, flows: int | None = None, setting: str = "") -> list[Outcome]:
        """Returns the runs of all seeds, or an empty list. Without `flows`, the number of flows is arbitrary."""
        found = [
            outcome
            for (a, n, s), outcomes in self._cells.items()
            if (a, s) == (aqm, setting) and flows in (None, n)
            for outcome in outcomes
        ]
        self._covered(bool(found), aqm, flows, setting)
        return found

    def has(self, aqm: str, flows: int | None = None, setting: str = "") -> bool:
        """Tells whether there are such runs."""
        return any((a, s) == (aqm, setting) and flows in (None, n) for a, n, s in self._cells)

    def values(self, aqm: str, flows: int, measure: Measure, setting: str = "") -> list[float]:
        """Returns the measure of each seed."""
        self._covered((aqm, flows, setting) in self._cells, aqm, flows, setting)
        return [measure(outcome.summary) for outcome in self._cells[aqm, flows, setting]]

    def value(self, aqm: str, flows: int, measure: Measure, setting: str = "") -> float:
        """Returns the median of the measure over seeds."""
        return statistics.median(self.values(aqm, flows, measure, setting))

    def cell_value(self, cell: tuple[str, int, str], measure: Callable[[Outcome], float | None]) -> float | None:
        """Returns the median over seeds of a measure of whole outcomes; `None` if a seed has no value."""
        self._covered(cell in self._cells, *cell)
        return over_seeds(map(measure, self._cells[cell]))

    def median(
        self, aqm: str, setting: str, measure: Callable[[Outcome], float | None], flows: int | None = None
    ) -> float | None:
        """Returns the median over seeds in one setting; `None` if a seed has no value."""
        return over_seeds(map(measure, self.runs(aqm, flows, setting)))

    def median_or_zero(self, aqm: str, setting: str, measure: Callable[[Outcome], float | None]) -> float:
        """Returns the median over seeds in one setting, with 0 for each seed that has no value."""
        return over_seeds(measure(outcome) or 0.0 for outcome in self.runs(aqm, setting=setting)) or 0.0

    def of_others(self, aqm: str) -> tuple[Outcome, ...]:
        """Returns the runs of all disciplines but one."""
        return tuple(outcome for outcome in self.outcomes if outcome.case.aqm != aqm)

    def with_other(self, aqm: str, other: str) -> Evidence | None:
        """Puts the runs of another discipline in the place of those of `aqm`; `None` if it lacks some of them."""
        there = {(o.case.flows, o.case.setting, o.case.seed): o for o in self.outcomes if o.case.aqm == other}
        mine = [o for o in self.outcomes if o.case.aqm == aqm]
        found = [(o, there.get((o.case.flows, o.case.setting, o.case.seed))) for o in mine]
        if any(stand_in is None for _, stand_in in found):
            return None
        put = tuple(replace(stand_in, case=o.case) for o, stand_in in found if stand_in)
        return replace(self, outcomes=(*self.of_others(aqm), *put))

    def subset(self) -> Evidence:
        """Returns only the published runs with which variants are compared, of those seeds that variants have."""
        seeds = {o.case.seed for o in self.variants} or set(self.seeds)
        chosen = tuple(o for o in self.outcomes if o.case.seed in seeds and self.experiment.in_subset(o.case))
        return replace(self, outcomes=chosen, variants=(), part=True)

    @cached_property
    def varied(self) -> dict[str, Evidence]:
        """For each completed variant, by name: the subset of runs, with its runs in place of the published ones."""
        found = {}
        planned = list(self.experiment.variant_cases(seeds=1))
        for variant in self.experiment.variants:
            runs = tuple(o for o in self.variants if o.case.variant == variant.name)
            have = {outcome.case.cell for outcome in runs}
            wanted = {c.cell for c in planned if c.variant == variant.name and c.aqm in self.aqms}
            if have and wanted <= have and wanted <= self._cells.keys():
                others = (o for o in self.subset().outcomes if o.case.cell not in wanted)
                found[variant.name] = replace(self, outcomes=(*others, *runs), variants=(), part=True)
        return found

    def scope(self) -> str:
        """Returns a text that says what these results cover: numbers of flows, simulated time and seeds."""
        counts = ", ".join(map(str, sorted({flows for _, flows, _ in self._cells})))
        duration = self.experiment.extent([outcome.summary for outcome in self.outcomes])
        seeds = "1 seed" if len(self.seeds) == 1 else f"{len(self.seeds)} seeds"
        return f"{counts} flows, {duration}, {seeds}" + (" (quick)" if self.quick else "")

    def to_json(self) -> dict[str, Any]:
        """Returns the results as they are stored."""
        found = {
            "format": FORMAT,
            "name": self.experiment.name,
            "quick": self.quick,
            "versions": self.versions,
            "runs": [outcome.to_store() for outcome in self.outcomes],
            "variants": [outcome.to_store() for outcome in self.variants],
        }
        return {**found, "sha256": digest(found)}


def digest(value: Any) -> str:
    """Returns the hash of a value that is stored, by which a change of the file is noticed."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return store.sha256(text.encode())


def check_digest(stored: dict[str, Any], value: Any, path: Path) -> None:
    """Raises `StoreError` if a file has another hash than its values; files of format 2 may have none."""
    if stored.get("sha256", None if stored.get("format", 2) > 2 else digest(value)) != digest(value):
        raise store.StoreError(f"{path}: was changed after the run: its hash (SHA-256) is not that of its values")


class OtherVersionError(rundir.RunDirError):
    """Another version of Penstock stored these results in another format."""


def load(path: Path) -> Evidence:
    """Reads the results of a directory; raises `RunDirError` if there are none that can be read."""
    file = path / RESULTS
    stored = store.read_json(file)
    try:
        with store.as_written(file):
            store.newer(file, stored["format"], FORMAT)
            if stored["format"] < _OLDEST:
                raise OtherVersionError(f"{file}: not results of this version; reproduce them again")
            check_digest(stored, {key: value for key, value in stored.items() if key != "sha256"}, file)
            outcomes = tuple(Outcome.from_json(run) for run in stored["runs"])
            variants = tuple(Outcome.from_json(run) for run in stored.get("variants", ()))
            name, quick, versions = str(stored["name"]), bool(stored["quick"]), dict(stored["versions"])
    except rundir.RunDirError as error:
        if isinstance(error.__cause__, Exception):
            raise rundir.RunDirError(f"{file}: not results of `penstock reproduce` ({error.__cause__})") from None
        raise
    if not outcomes:
        raise rundir.RunDirError(f"{file}: no results")
    return Evidence(find(name), quick, outcomes, versions, variants)


def home(name: str, quick: bool, root: Path = ROOT) -> Path:
    """Returns the directory of an experiment's results. The quick form has its own and never replaces the full one."""
    return root / (f"{name}-quick" if quick else name)


def stored(root: Path = ROOT, broken: list[str] | None = None) -> dict[str, Evidence]:
    """Reads all stored results: of each experiment its full form, else its quick form. Skips earlier formats.

    Messages about results that cannot be read come into `broken`; without such a list, the first is raised.
    """
    found: dict[str, Evidence] = {}
    for name in EXPERIMENTS:
        for quick in (False, True):
            path = home(name, quick, root)
            if name not in found and (path / RESULTS).exists():
                try:
                    found[name] = load(path)
                except OtherVersionError:
                    pass
                except MistakeError as error:
                    if broken is None:
                        raise
                    broken.append(str(error))
    return found


# Measures for figures and claims. Each takes the summary of one run.


def goodput_mbps(percentile: str) -> Measure:
    """Returns the measure of a percentile over seconds: the goodput of all flows together, in Mbit/s."""
    return lambda summary: known(summary["goodput_1s_bps"][percentile]) / 1e6


def rtt_ms(percentile: str) -> Measure:
    """Returns the measure of a percentile of round trip times, over the samples of all flows, in ms."""
    return lambda summary: known(summary["rtt_ms"][percentile])


def worst_jain(summary: dict[str, Any]) -> float:
    """Returns the lowest of Jain's indices of all seconds."""
    return known(summary["jain"]["worst_1s"])


def drops(summary: dict[str, Any]) -> float:
    """Returns the number of packets that all bottlenecks dropped, early or for lack of room."""
    return float(sum(b["drops_overflow"] + b["drops_aqm"] for b in summary["bottlenecks"]))


def delivered_mbytes(summary: dict[str, Any]) -> float:
    """Returns the payload that all receivers got in the whole run, in MB."""
    return float(sum(flow["delivered_bytes"] for flow in summary["flows"])) / 1e6


def payload_per_packet(summary: dict[str, Any]) -> float:
    """Returns the delivered payload in bytes by data packets that left bottlenecks; NaN if none did."""
    packets = sum(int(b["packets"]) for b in summary["bottlenecks"])
    return delivered_mbytes(summary) * 1e6 / (packets or math.nan)


def dropped_mbytes(payload_share: float) -> Measure:
    """Returns the measure of the payload of dropped packets, in MB. It assumes that all of them are full."""
    return lambda summary: float(sum(b["dropped_bytes"] for b in summary["bottlenecks"])) * payload_share / 1e6
