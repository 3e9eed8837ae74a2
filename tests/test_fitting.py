"""Inference of what documents do not say: declarations, surfaces, likelihood, and a short recovery of hidden values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.fitting import declared, recovered
from penstock.fitting.declared import Cell, Fit, Unsaid
from penstock.fitting.evaluate import Asked, Runs, _Key
from penstock.fitting.likelihood import deviance, explain, limits
from penstock.fitting.surface import Array, Surface, design
from penstock.mistake import MistakeError
from penstock.reproduce import EXPERIMENTS


class Quiet:
    """Counts runs."""

    def __init__(self) -> None:
        self.ran = 0

    def begin(self, *_: float) -> None:
        """Nothing is shown."""

    def advanced(self, _: float) -> None:
        """Nothing is shown."""

    def finished(self, *_: Any) -> None:
        """Counts."""
        self.ran += 1


def test_a_parameter_goes_along_its_scale() -> None:
    log = Unsaid("a", "", (0.01, 100), 1)
    assert log.value(0.5) == pytest.approx(1.0) and log.place(1.0) == pytest.approx(0.5)
    linear = Unsaid("b", "", (10, 20), 1, scale="linear", whole=True, unit="s", sets={"duration": "{}s"})
    assert linear.value(0.34) == 13 and linear.text(13) == "13 s"
    tree: dict[str, Any] = {}
    linear.put(tree, 13)
    assert tree == {"duration": "13s"}


def test_a_number_is_met_within_what_is_tolerated() -> None:
    rate = Cell("pie", "s", "m", 20.0, 0.1, "log", False)
    assert rate.met(22.0) and not rate.met(22.1) and rate.transformed(22.0) - rate.transformed(20.0) == pytest.approx(1)
    index = Cell("pie", "s", "m", 0.9, 0.05, "linear", False)
    assert index.met(0.851) and not index.met(0.84) and index.back(index.transformed(0.7)) == pytest.approx(0.7)


@pytest.mark.parametrize("name", ["fq-pie", "lindrop", "dybra", "tempest-twfi"])
def test_what_is_declared_can_be_run(name: str, tmp_path: Path) -> None:
    for fit in declared(EXPERIMENTS[name]):
        assert fit.told and fit.kept, "something is fitted, something is held out"
        names = {one.name for one in fit.parameters}
        functions = set(EXPERIMENTS[name].defined("runs", "UNSAID", {}))
        by_path = {one.name for one in fit.parameters if one.sets}
        assert names == functions | by_path, "each is set by a path or a function"
        for one in fit.parameters:
            assert one.range[0] <= one.published <= one.range[1]
        runs = Runs(fit, tmp_path, Quiet())
        at = tuple(one.value(0.3) for one in fit.parameters)
        texts = {_scenario(runs, cell, at) for cell in fit.told}
        assert not texts & {_scenario(runs, cell, None) for cell in fit.told}


def _scenario(runs: Runs, cell: Cell, at: tuple[float, ...] | None) -> str:
    return runs._scenario(_Key(cell.aqm, cell.setting, Asked(at, 1))).text


def test_an_experiment_without_a_declaration_says_so() -> None:
    with pytest.raises(MistakeError, match=r"hfs-mac declares nothing to fit: its folder has no fit\.toml"):
        declared(EXPERIMENTS["hfs-mac"])


def test_a_surface_predicts_what_it_has_not_seen_and_knows_its_error() -> None:
    places = design(40, 2)
    chance = np.random.default_rng(2).normal(0, 0.1, len(places))
    numbers = np.stack([np.sin(2 * places[:, 0]) + places[:, 1] ** 2, 3 * places[:, 1] + chance], axis=1)
    surface = Surface(places, numbers)
    probe = np.array([[0.3, 0.6], [0.8, 0.2]])
    exact = np.stack([np.sin(2 * probe[:, 0]) + probe[:, 1] ** 2, 3 * probe[:, 1]], axis=1)
    assert np.abs(surface(probe) - exact)[:, 0].max() < 0.02
    assert np.abs(surface(probe) - exact)[:, 1].max() < 0.15
    assert surface.deviation[0] < 0.03 and 0.07 < surface.deviation[1] < 0.16, surface.deviation


def test_the_deviance_is_that_of_the_normal_law() -> None:
    # Without a misfit: log s^2 + r^2 / s^2 for each number; s = 1, r = 0 and 0.5 leave no room for one.
    found, misfit = deviance(np.array([[0.0, 0.5], [3.0, -3.0]]), np.array([1.0, 1.0]))
    assert found[0] == pytest.approx(0.25) and misfit[0] == 0.0
    # r = 3 twice: the best variance is 9, so the misfit is sqrt(8), and the deviance 2 (log 9 + 1).
    assert misfit[1] == pytest.approx(math.sqrt(8), rel=0.1) and found[1] == pytest.approx(
        2 * (math.log(9) + 1), abs=0.02
    )


def curve(p: Array) -> Array:
    """Three numbers of which the second parameter decides none."""
    return np.stack([10 * p[:, 0], 6 * np.exp(p[:, 0]), -4 * p[:, 0] ** 2], axis=1)


def test_values_between_the_points_are_found_and_a_parameter_without_influence_is_left_open() -> None:
    places = design(48, 2)
    chance = np.random.default_rng(3).normal(0, 0.2, (len(places), 3))
    surface = Surface(places, curve(places) + chance)
    hidden = np.array([[0.37, 0.9]])
    within = limits(surface)
    found = explain(surface, curve(hidden)[0], within)
    assert found.place[0] == pytest.approx(0.37, abs=0.04)
    assert (
        found.profiles[0].low < 0.37 < found.profiles[0].high and found.profiles[0].high - found.profiles[0].low < 0.2
    )
    assert found.profiles[1].bounded == (False, False), "nothing depends on it"
    # A table that nothing explains has a misfit, which widens the interval.
    off = explain(surface, curve(hidden)[0] + np.array([12.0, -12.0, 12.0]), within)
    assert off.misfit > 3 > found.misfit
    assert off.profiles[0].high - off.profiles[0].low > found.profiles[0].high - found.profiles[0].low


def test_hidden_values_come_back(tmp_path: Path) -> None:
    """The short form of the recovery in docs/results/fit.md: the rate of UDP beside 1 and 4 flows, runs of 40 s."""
    (fit,) = declared(EXPERIMENTS["fq-pie"])
    few = tuple(cell for cell in fit.told if cell.aqm == "pie" and cell.setting in ("up-1", "up-4"))
    change = {"duration": "40s", "topology.rate": "20Mbit/s"}
    short = Fit(fit.name, "", fit.experiment, (_slower(fit.parameters[0]),), few, 9, quick=True, change=change)
    watcher = Quiet()
    found = recovered(Runs(short, tmp_path, watcher), 4)
    assert watcher.ran == (9 + 4) * 2
    assert found.covered(0) >= 3, found.to_json()
    assert found.width(0) < 0.9
    recovered(Runs(short, tmp_path, watcher), 4)
    assert watcher.ran == (9 + 4) * 2, "finished runs are kept"


def _slower(one: Unsaid) -> Unsaid:
    return Unsaid(one.name, one.about, (4, 80), 20)
