"""Published experiments with the hosts of Linux, with the simulator in the place of a kernel."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from penstock import worlds
from penstock.engine import ScenarioError
from penstock.mistake import MistakeError
from penstock.reproduce import EXPERIMENTS
from penstock.reproduce.runner import reproduce
from penstock.scenario import Scenario


class Quiet:
    def begin(self, runs: int, reused: int, simulated_s: float) -> None: ...

    def advanced(self, seconds: float) -> None: ...

    def finished(self, label: str, cpu_s: float) -> None: ...


def refuses(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    def check(scenario: Scenario, _seed: int, on: str) -> None:
        if word in scenario.text:
            raise ScenarioError(f"error: --on {on}: no {word} here\n --> {scenario.file}:1:1")

    monkeypatch.setattr(worlds, "check", check)


def test_hosts_are_those_of_linux_in_every_run() -> None:
    linux = EXPERIMENTS["pink-dsl"].with_linux(worlds.SIM)
    case = next(iter(linux.cases(quick=True, seeds=1)))
    table = tomllib.loads(linux.scenario(case, quick=True).text)["tcp"]
    assert table["cc"] == {"name": "newreno", "compat": "linux"}
    assert "prr" not in table
    assert table["without_sack"] == "linux"
    assert not list(linux.variant_cases(1))


def test_runs_that_a_kernel_cannot_do_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refuses(monkeypatch, '"green"')
    linux = EXPERIMENTS["pink-sat"].with_linux(worlds.JAR)
    assert set(linux.refused.values()) == {'no "green" here'}
    assert {aqm for aqm, _, _ in linux.refused} == {"green"}

    def run(scenario: Scenario, seed: int, on: str, **given: Any) -> Any:
        from penstock import engine

        assert on == worlds.JAR
        return engine.simulate(scenario, seed, **given)

    monkeypatch.setattr(worlds, "run", run)
    monkeypatch.setattr(worlds, "fingerprint", lambda on: f"kernel of {on}")
    evidence, complete = reproduce(linux, tmp_path / "out", quick=True, jobs=2, variants=(), watcher=Quiet())
    assert complete
    assert evidence is not None
    assert {outcome.case.aqm for outcome in evidence.outcomes} == {"droptail", "ared", "codel", "pink"}


def test_an_experiment_that_no_kernel_can_do_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refuses(monkeypatch, "topology")
    with pytest.raises(ScenarioError, match="no topology here"):
        EXPERIMENTS["pink-sat"].with_linux(worlds.JAR)
    with pytest.raises(MistakeError, match="no host takes part"):
        EXPERIMENTS["hfs"].with_linux(worlds.JAR)


def test_hosts_of_linux_announce_their_rates_if_they_are_told_to() -> None:
    published, linux = EXPERIMENTS["ern"], EXPERIMENTS["ern"].with_linux(worlds.SIM, announce=True)
    for case in linux.cases(quick=True, seeds=1):
        before, tree = (tomllib.loads(one.scenario(case, quick=True).text) for one in (published, linux))
        assert tree["tcp"].get("ern") == before["tcp"].get("ern") == (True if case.aqm == "red-ern" else None)
        assert tree["aqm"] == before["aqm"]


def test_where_no_host_announces_its_rate_it_is_estimated() -> None:
    published, linux = EXPERIMENTS["ern"], EXPERIMENTS["ern"].with_linux(worlds.SIM)
    for case in linux.cases(quick=True, seeds=1):
        before, tree = (tomllib.loads(one.scenario(case, quick=True).text) for one in (published, linux))
        assert "ern" not in tree["tcp"]
        assert before["aqm"].get("rates") is None
        assert tree["aqm"].get("rates") == ("estimated" if case.aqm == "red-ern" else None)
