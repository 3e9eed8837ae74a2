"""Runs an experiment with values of the parameters that its document does not say. Finished runs are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock import provenance, store
from penstock.engine import Result, core_fingerprint
from penstock.experiments.paths import put
from penstock.experiments.processes import Job, cores, run_all
from penstock.fitting.declared import Cell, Fit
from penstock.mistake import MistakeError
from penstock.reproduce import columns
from penstock.reproduce.base import Case
from penstock.reproduce.results import Outcome
from penstock.reproduce.runner import Watcher
from penstock.scenario import Scenario, to_toml

Values = tuple[float, ...]
Numbers = list[float]  # one for each cell


@dataclass(frozen=True)
class Asked:
    """A table to be computed: values of the parameters (none: the published set-up), and a seed."""

    values: Values | None
    seed: int


@dataclass(frozen=True)
class _Key:
    aqm: str
    setting: str
    asked: Asked

    def __str__(self) -> str:
        return f"{self.setting}, {self.aqm}"


@dataclass(frozen=True)
class Runs:
    """The runs of a fit, and where they are stored."""

    fit: Fit
    out: Path
    watcher: Watcher
    jobs: int | None = None

    def tables(self, asked: Sequence[Asked], cells: Sequence[Cell]) -> list[Numbers]:
        """Returns the numbers of the cells for each of these, in their order; raises `KeyboardInterrupt`."""
        pairs = dict.fromkeys((cell.aqm, cell.setting) for cell in cells)
        keys = [_Key(aqm, setting, one) for one in dict.fromkeys(asked) for aqm, setting in pairs]
        scenarios = {key: self._scenario(key) for key in keys}
        found = {key: kept for key in keys if (kept := self._kept(scenarios[key])) is not None}
        todo = [Job(key, scenarios[key], key.asked.seed) for key in keys if key not in found]
        self.watcher.begin(len(keys), len(found), 0.0)

        def measured(job: Job[_Key], result: Result) -> tuple[dict[str, float], float]:
            return self._measured(job.key, result), result.cpu_s

        def keep(job: Job[_Key], kept: tuple[dict[str, float], float]) -> None:
            found[job.key], cpu_s = kept
            store.write(self._file(job.scenario), store.dump(found[job.key]))
            self.watcher.finished(str(job.key), cpu_s)

        if not run_all(todo, self.jobs or cores(), measured, keep, run=self.fit.experiment.run):
            raise KeyboardInterrupt
        return [[found[_Key(c.aqm, c.setting, one)][c.measure] for c in cells] for one in asked]

    def _scenario(self, key: _Key) -> Scenario:
        fit, experiment = self.fit, self.fit.experiment
        tree = experiment.tree(self._case(key), fit.quick)
        for path, value in fit.change.items():
            put(tree, path, value)
        for parameter, value in zip(fit.parameters, key.asked.values or (), strict=key.asked.values is not None):
            parameter.put(tree, value)
            changed = experiment.defined("runs", "UNSAID", {}).get(parameter.name)
            if changed:
                changed(tree, value)
        return Scenario(to_toml(tree), f"{tree['name']}.toml")

    def _case(self, key: _Key) -> Case:
        for case in self.fit.experiment.cases(quick=False, seeds=1):
            if (case.aqm, case.setting) == (key.aqm, key.setting):
                return Case(case.aqm, case.flows, key.asked.seed, setting=case.setting)
        raise MistakeError(f"{self.fit.experiment.name} has no run of {key.aqm} in {key.setting}")

    def _measured(self, key: _Key, result: Result) -> dict[str, float]:
        experiment = self.fit.experiment
        series = experiment.series_of(result)
        outcome = Outcome(self._case(key), experiment.cc, result.summary, result.cpu_s, series)
        known = {**columns.COLUMNS, **experiment.defined("columns", "COLUMNS", {})}
        wanted = {cell.measure for cell in self.fit.cells if (cell.aqm, cell.setting) == (key.aqm, key.setting)}
        values = {name: known[name].measure(outcome) for name in sorted(wanted)}
        return {name: float("nan") if value is None else float(value) for name, value in values.items()}

    def _file(self, scenario: Scenario) -> Path:
        measures = sorted({cell.measure for cell in self.fit.cells})
        key = provenance.sha256(f"{scenario.text}\0{core_fingerprint()}\0{measures}")
        return self.out / f"{key[:32]}.json"

    def _kept(self, scenario: Scenario) -> dict[str, float] | None:
        file = self._file(scenario)
        if not file.is_file():
            return None
        kept: dict[str, float] = store.read_json(file)
        return kept
