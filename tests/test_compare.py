"""Comparisons: paired differences over the same seeds, and what is said of them."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import penstock
import pytest
from conftest import Command
from penstock.experiments import compare, reading, until
from penstock.experiments.adjusting import adjusted
from penstock.experiments.measures import MEASURES, find
from penstock.experiments.model import Until
from penstock.experiments.page import page
from penstock.experiments.statistics import Interval, mean, median, median_rank, student
from scipy.special import stdtrit

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture
def other(scenario: Path) -> Path:
    """The same scenario with another discipline."""
    path = scenario.with_name("other.toml")
    path.write_text(scenario.read_text().replace("droptail", "codel"))
    return path


def lines(found: dict[str, Any]) -> dict[str, Any]:
    """The lines by measure."""
    return {f"{line['part']}.{line['measure']}": line for line in found["lines"]}


def test_two_scenarios_are_compared_seed_by_seed(penstock: Command, scenario: Path, other: Path) -> None:
    done = penstock("compare", scenario, other, "--seeds", "4", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [side["label"] for side in found["sides"]] == ["small", "other"]
    line = lines(found)["run.rtt_p90_ms"]
    values = {}
    for name, file in (("a", scenario), ("b", other)):
        values[name] = [_alone(file, seed)["rtt_ms"]["p90"] for seed in range(1, 5)]
    differences = [b - a for a, b in zip(values["a"], values["b"], strict=True)]
    centre = sum(differences) / 4
    spread = math.sqrt(sum((d - centre) ** 2 for d in differences) / 3)
    [told] = line["differences"]
    assert told["mean"] == pytest.approx(centre)
    assert told["high"] - told["mean"] == pytest.approx(3.182446 * spread / 2)  # t with 3 degrees, from a table
    assert told["share"] == pytest.approx(centre / (sum(values["a"]) / 4))
    assert told["verdict"] == "better"
    again = penstock("compare", scenario, other, "--seeds", "4")
    assert again.stderr.count("4 of 4 runs are reused") == 2
    assert "better" in again.stdout


def _alone(file: Path, seed: int) -> dict[str, Any]:
    return penstock.run(file, seed=seed).summary


def _mean_of_alone(file: Path, seeds: int) -> float:
    return sum(float(_alone(file, seed)["rtt_ms"]["p90"]) for seed in range(1, seeds + 1)) / seeds


def test_a_scenario_beside_itself_shows_no_difference(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = penstock.compare(scenario, scenario, seeds=3).to_json()
    assert [side["label"] for side in found["sides"]] == ["small 1", "small 2"]
    assert {one["verdict"] for line in found["lines"] for one in line["differences"]} == {"the same in every seed"}


def test_values_of_one_key_are_compared_in_each_setting(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = adjusted(reading.load(scenario), vary={"flows.0.count": "1,2", "aqm.name": "droptail,codel,pie"}, seeds=3)
    found = penstock.compare(given, by="aqm.name", measure=["link.drops"])
    assert [side.label for side in found.sides] == ["droptail", "codel", "pie"]
    assert [line.settings for line in found.lines] == [(("flows.0.count", "1"),), (("flows.0.count", "2"),)]
    assert [len(line.differences) for line in found.lines] == [2, 2]
    assert json.loads((found.path / compare.FILE).read_text()) == found.to_json()


def test_runs_and_sweeps_are_compared_and_their_runs_are_reused(
    scenario: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, penstock: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    assert penstock("run", other, "--out", "kept").returncode == 0
    assert penstock("sweep", scenario, "--seeds", "3", "--out", "swept").returncode == 0
    first = penstock("compare", "swept", "kept")
    assert "3 of 3 runs are reused" in first.stderr
    assert "1 of 3 runs are reused" in first.stderr, "that of the run directory"
    done = penstock("compare", "swept", "kept", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [side["label"] for side in found["sides"]] == ["swept", "kept"]
    assert all(line["seeds"] == 3 for line in found["lines"])
    assert lines(found)["run.rtt_p90_ms"]["sides"][1]["mean"] == pytest.approx(_mean_of_alone(other, 3))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "one side only"),
        (("--vary", "aqm.name=pie"), "one value only"),
        (("--vary", "aqm.name=pie,codel", "--by", "aqm.nam"), "does not vary"),
        (("nothing.toml",), "cannot be read"),
    ],
)
def test_what_cannot_be_compared_is_told(penstock: Command, scenario: Path, words: tuple[str, ...], told: str) -> None:
    done = penstock("compare", scenario, *words)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr


@pytest.mark.parametrize(
    ("measure", "interval", "verdict"),
    [
        ("rtt_p90_ms", Interval(-2.0, -3.0, -1.0), compare.BETTER),
        ("rtt_p90_ms", Interval(2.0, 1.0, 3.0), compare.WORSE),
        ("goodput_bps", Interval(2.0, 1.0, 3.0), compare.BETTER),
        ("goodput_bps", Interval(-2.0, -3.0, -1.0), compare.WORSE),
        ("link.marks", Interval(2.0, 1.0, 3.0), compare.LARGER),
        ("link.marks", Interval(-2.0, -3.0, -1.0), compare.SMALLER),
        ("rtt_p90_ms", Interval(-2.0, -5.0, 1.0), compare.NOTHING),
        ("rtt_p90_ms", Interval(-2.0, math.nan, math.nan), compare.ONE_SEED),
    ],
)
def test_a_verdict_needs_an_interval_without_zero(measure: str, interval: Interval, verdict: str) -> None:
    assert compare._verdict(interval, find(measure), False) == verdict


def test_quantiles_are_those_of_published_tables() -> None:
    assert [round(student(n), 3) for n in (1, 4, 9, 30)] == [12.706, 2.776, 2.262, 2.042]
    # Ranks for the median at 95 %: Conover, Practical Nonparametric Statistics; from 6 values on.
    assert [student(n) for n in (1, 2, 3, 10, 99, 1000)] == pytest.approx(
        [float(stdtrit(n, 0.975)) for n in (1, 2, 3, 10, 99, 1000)], rel=1e-11
    )
    assert [median_rank(n) for n in (5, 6, 8, 9, 10, 15, 20, 30)] == [0, 1, 1, 2, 2, 4, 6, 10]


def test_intervals_of_a_sample_by_hand() -> None:
    values = [4.0, 1.0, 3.0, 2.0, 6.0, 5.0]
    found = mean(values)
    assert found.value == 3.5
    assert found.half_width == pytest.approx(2.570582 * math.sqrt(3.5) / math.sqrt(6))
    assert median(values) == Interval(3.5, 1.0, 6.0)
    assert math.isnan(median(values[:5]).low)
    assert mean([0.1] * 3) == Interval(0.1, 0.1, 0.1)


def test_the_rule_adds_as_many_seeds_as_stein_says() -> None:
    rule = Until(0.01, "jain")
    first = [98.0, 102.0] * 5  # mean 100, standard deviation 2 sqrt(10/9); t of 9 degrees 2.262157
    assert until.needed(rule, first) == math.ceil((2.262157 * 2 * math.sqrt(10 / 9) / 1) ** 2)
    assert until.needed(Until(0.5, "jain"), first) == 10
    assert until.needed(Until(1e-6, "jain", most=77), first) == 77
    assert until.needed(rule, [5.0] * 10) == 10
    assert until.needed(rule, [-1.0, 1.0] * 5) == 1000
    assert until.more((3, 7), 4) == (3, 7, 8, 9)


def test_intervals_of_the_rule_cover_the_mean() -> None:
    """A short form of `tools/until-coverage`. Of 2000 tries, 93.5 % is three deviations below 95 %."""
    draws, rule, covered = random.Random(20261123), Until(0.02, "jain"), 0
    for _ in range(2000):
        values = [draws.gauss(100, 4) for _ in range(10)]
        values += [draws.gauss(100, 4) for _ in range(until.needed(rule, values) - 10)]
        found = until.interval(values, 10)
        covered += found.low <= 100 <= found.high
    assert covered >= 0.935 * 2000


def test_the_page_of_measures_is_that_of_the_table() -> None:
    assert (DOCS / "measures.md").read_text(encoding="utf-8") == page(), "`tools/measures` writes the page"


def test_each_measure_is_in_some_summary_of_the_examples(scenario: Path) -> None:
    text = scenario.read_text() + (
        '\n[[flows]]\nkind = "transfer"\nsize = "20kB"\n[[flows]]\nkind = "voip"\n'
        '[[flows]]\nkind = "video"\nrate = "500kbit/s"\n[[flows]]\nkind = "web"\nper_second = 5\nmean_size = "5kB"\n'
    )
    summary = penstock.run(text).summary
    entries = {"run": [summary], "link": summary["bottlenecks"], "flows": summary["flows"]}
    for measure in MEASURES:
        values = [measure.of(entry) for entry in entries[measure.part]]
        assert any(value is not None for value in values), measure.key
