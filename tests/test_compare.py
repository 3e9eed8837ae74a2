"""Comparisons: paired differences over the same seeds, and what is said of them."""

from __future__ import annotations

import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
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
from penstock.experiments.statistics import (
    Interval,
    mean,
    median,
    median_level,
    median_rank,
    student,
    with_ends,
    with_half,
)
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
        # t of nine degrees is 2.262157 at 95 % and 3.249836 at 99 %, which is 1.437 times as wide.
        ("rtt_p90_ms", Interval(-2.0, -3.38, -0.62), compare.BETTER),
        ("rtt_p90_ms", Interval(-2.0, -3.40, -0.60), compare.MORE_SEEDS),
    ],
)
def test_a_verdict_needs_an_interval_without_zero(measure: str, interval: Interval, verdict: str) -> None:
    assert compare._verdict(interval, find(measure), 10) == verdict


@pytest.mark.parametrize(
    ("pairs", "samples", "verdict"),
    [
        ([(1.0, 2.0)], 1, compare.ONE_SEED),
        ([(1.0, 1.0)] * 3, 1, compare.SAME),
        ([(1.0, 1.0), (2.0, 2.0)], 2, compare.SAME),
        ([(9.657, 9.653)] * 10, 1, compare.NO_CHANCE),
        ([(10.0, 8.0)] * 10, 10, compare.ALIKE),
    ],
)
def test_without_an_interval_nothing_is_better(pairs: list[tuple[float, float]], samples: int, verdict: str) -> None:
    first, other = zip(*pairs, strict=True)
    found = compare.difference("b", find("goodput_bps"), first, other, samples)
    assert (found.verdict, found.interval.known) == (verdict, False)
    assert found.interval.value == pytest.approx(other[0] - first[0])


def test_quantiles_are_those_of_published_tables() -> None:
    assert [round(student(n), 3) for n in (1, 4, 9, 30)] == [12.706, 2.776, 2.262, 2.042]
    assert [round(student(n, 0.99), 3) for n in (1, 4, 9, 30)] == [63.657, 4.604, 3.250, 2.750]
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
    alone = mean([0.1] * 3)
    assert (alone.value, alone.known) == (0.1, False), "equal values leave nothing to estimate a width from"
    # Runs that are equal count once: three samples among four seeds, by hand with t of two degrees.
    twice = mean([1.0, 1.0, 2.0, 4.0], samples=3)
    assert twice.value == 2.0
    assert twice.half_width == pytest.approx(4.302653 * math.sqrt(2.0) / math.sqrt(3))
    assert not mean([1.0, 1.0, 2.0, 4.0], samples=1).known
    assert not median(values, samples=5).known


def test_the_level_of_ranks_is_told() -> None:
    assert [round(median_level(n), 5) for n in (6, 8, 9, 10)] == [0.96875, 0.99219, 0.96094, 0.97852]  # Conover
    assert math.isnan(median_level(5))


@pytest.mark.parametrize(
    ("interval", "half", "ends"),
    [
        (Interval(308.5, 308.42, 308.61), "308.500 ±0.095", "308.500 [308.420, 308.610]"),
        (Interval(9.65712, 9.65700, 9.65724), "9.65712 ±0.00012", "9.65712 [9.65700, 9.65724]"),
        (Interval(38.4567, 26.4, 50.5), "38 ±12", "38 [26, 50]"),
        (Interval(12345.6, 11000.0, 13691.2), "12346 ±1346", "12346 [11000, 13691]"),
        (Interval(0.25, math.nan, math.nan), "0.25", "0.25"),
    ],
)
def test_digits_follow_the_width(interval: Interval, half: str, ends: str) -> None:
    assert (with_half(interval), with_ends(interval)) == (half, ends)


def test_an_interval_as_it_is_written_contains_its_estimate() -> None:
    draws = random.Random(39)
    for _ in range(3000):
        scale = 10 ** draws.uniform(-5, 8)
        values = [scale * (1 + 10 ** draws.uniform(-6, 0) * draws.gauss()) for _ in range(draws.randint(6, 30))]
        told, low, high = re.fullmatch(r"(\S+) \[(\S+), (\S+)\]", with_ends(median(values))).groups()  # type: ignore[union-attr]
        assert float(low) <= float(told) <= float(high), values
        value, half = with_half(mean(values)).split(" ±")
        assert len(value.partition(".")[2]) == len(half.partition(".")[2])
        assert float(half) > 0


MIRROR = """\
duration = "10s"
[topology]
kind = "dumbbell"
rate = "20Mbit/s"
delay = "20ms"
limit = "1000p"
reverse_limit = "1000p"
[[flows]]
kind = "bulk"
count = 2
[[flows]]
kind = "bulk"
count = 2
direction = "reverse"
"""


def test_seeds_without_influence_have_no_interval_and_no_verdict(penstock: Command, tmp_path: Path) -> None:
    file = tmp_path / "mirror.toml"
    file.write_text(MIRROR)
    words = ("compare", file, "--vary", "aqm.name=droptail,codel", "--seeds", "4")
    told = penstock(*words).stdout
    assert told.count('start_spread = "5ms"') == 1
    assert "±" not in told
    assert "Student" not in told
    assert not re.search(r"\b(better|worse|higher|lower)\b", told)
    found = json.loads(penstock(*words, "--json").stdout)
    assert "start_spread" in found["chance"]
    assert {tuple(line["samples"]) for line in found["lines"]} == {(1, 1)}
    assert {one["low"] for line in found["lines"] for one in (*line["sides"], *line["differences"])} == {None}
    verdicts = {one["verdict"] for line in found["lines"] for one in line["differences"]}
    assert verdicts <= {compare.NO_CHANCE, compare.SAME}
    assert compare.NO_CHANCE in verdicts
    # With a spread of starts the same command has intervals, and says nothing of chance.
    file.write_text(MIRROR.replace("count = 2", 'count = 2\nstart_spread = "5ms"'))
    spread = json.loads(penstock(*words, "--json").stdout)
    assert "chance" not in spread
    assert {tuple(line["samples"]) for line in spread["lines"]} == {(4, 4)}
    assert "±" in penstock(*words).stdout


def test_a_side_without_chance_is_one_sample_beside_one_that_has_it(penstock: Command, tmp_path: Path) -> None:
    """PIE draws random numbers, drop-tail does not: its run is one of many that starts a bit apart would give."""
    file = tmp_path / "mirror.toml"
    file.write_text(MIRROR)
    found = json.loads(penstock("compare", file, "--vary", "aqm.name=droptail,pie", "--seeds", "4", "--json").stdout)
    assert found["chance"].startswith("droptail: ")
    assert {tuple(line["samples"]) for line in found["lines"]} == {(1, 4)}
    line = next(one for one in found["lines"] if one["measure"] == "goodput_bps" and one["part"] == "run")
    assert line["sides"][0]["low"] is None
    assert line["sides"][1]["low"] is not None
    assert line["differences"][0]["low"] is None
    assert line["differences"][0]["verdict"] in (compare.NO_CHANCE, compare.SAME)


CALL = """
[[flows]]
kind = "voip"
"""


def test_the_terminal_has_an_answer_in_80_columns_and_a_page(penstock: Command, scenario: Path) -> None:
    scenario.write_text(scenario.read_text() + CALL)
    names = ("droptail", "fq-codel", "fq-codel quantum='1000B'", "codel")
    words = ("compare", scenario, "--vary", f"aqm={','.join(_aqm(name) for name in names)}", "--seeds", "4")
    done = penstock(*words, "--out", "here")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "report: here/report.html"
    assert any("better" in line for line in lines)
    found = json.loads((scenario.parent / "here" / "compare.json").read_text())
    [answer] = found["answers"]
    assert re.sub(r"\s+", " ", answer["sentence"]) in re.sub(r"\s+", " ", done.stdout)
    page = (scenario.parent / "here" / "report.html").read_text()
    assert answer["sentence"] in page
    assert all(one["key"] in ("mos", "carried", "queue_ms", "dropped") for one in found["judged"][0]["quantities"])
    assert found["command"].startswith("penstock compare ")
    assert penstock("runs", "report", "here").returncode == 0
    assert (scenario.parent / "here" / "report.html").read_text() == page


def _aqm(text: str) -> str:
    name, *rest = text.split()
    return '{name="' + name + '"' + "".join(f",{one}" for one in rest) + "}"


def test_an_earlier_comparison_has_a_page_without_an_answer(penstock: Command, scenario: Path, other: Path) -> None:
    assert penstock("compare", scenario, other, "--seeds", "2", "--out", "here").returncode == 0
    directory = scenario.parent / "here"
    told = json.loads((directory / "compare.json").read_text())
    (directory / "compare.json").write_text(
        json.dumps({key: value for key, value in told.items() if key not in ("answers", "judged", "command")})
    )
    (directory / "felt.json").unlink()
    assert penstock("runs", "report", "here").returncode == 0
    assert "All measures" in (directory / "report.html").read_text()


def test_nothing_is_replaced_in_silence(penstock: Command, scenario: Path, other: Path) -> None:
    words = ("compare", scenario, other, "--out", "here")
    assert penstock(*words, "--seeds", "2").stderr.count("note:") == 0
    assert (
        penstock(*words, "--seeds", "3").stderr.count("note: here held another comparison (small, other; 2 seeds") == 1
    )
    again = penstock(*words, "--seeds", "3")
    assert "note:" not in again.stderr
    assert penstock("run", scenario, "--out", "run").returncode == 0
    before = (scenario.parent / "run" / "report.html").read_bytes()
    refused = penstock("compare", scenario, other, "--seeds", "2", "--out", "run")
    assert refused.returncode == 2
    assert "holds something else" in refused.stderr
    assert (scenario.parent / "run" / "report.html").read_bytes() == before


def test_a_side_that_fails_is_told_with_its_error(penstock: Command, scenario: Path) -> None:
    done = penstock("compare", scenario, "--vary", "aqm.name=droptail,codell", "--seeds", "3")
    assert done.returncode == 1
    assert "only one can be judged" in done.stdout.replace("\n", " ")
    assert "codell: 3 of its 3 runs failed" in done.stdout
    assert "seed has no influence" not in done.stdout, "of runs that failed nothing is known"
    assert "aqm.name=codell, 3 seeds: " in done.stderr


def test_an_interrupted_comparison_keeps_what_is_finished(tmp_path: Path, scenario: Path) -> None:
    """Ctrl-C is a signal to the whole group of processes."""
    scenario.write_text(scenario.read_text().replace('"5s"', '"200s"'))
    words = [
        sys.executable,
        "-m",
        "penstock",
        "compare",
        str(scenario),
        "--vary",
        "aqm.name=codel,pie",
        "--seeds",
        "200",
    ]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    runs = tmp_path / "runs" / "sweeps"
    until_it(
        lambda: any(file.stat().st_size for file in runs.rglob("*") if file.is_file()) or process.poll() is not None
    )
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "interrupted: what is finished is kept" in told
    assert "Traceback" not in told
    assert not list((tmp_path / "runs").glob("compare/*")), "no answer of a part"


def until_it(is_so: Callable[[], bool]) -> None:
    """Waits until it is so."""
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come about")


def test_the_rule_adds_as_many_seeds_as_stein_says() -> None:
    rule = Until(0.01, "jain")
    first = [98.0, 102.0] * 5  # mean 100, standard deviation 2 sqrt(10/9); t of 9 degrees 2.262157
    assert until.needed(rule, first) == math.ceil((2.262157 * 2 * math.sqrt(10 / 9) / 1) ** 2)
    assert until.needed(Until(0.5, "jain"), first) == 10
    assert until.needed(Until(1e-6, "jain", most=77), first) == 77
    assert until.needed(rule, [5.0] * 10) == 10
    assert until.needed(rule, first, samples=1) == 10
    # Five different runs among the ten: t of four degrees is 2.776445.
    assert until.needed(rule, first, samples=5) == math.ceil((2.776445 * 2 * math.sqrt(10 / 9) / 1) ** 2)
    assert until.needed(rule, [-1.0, 1.0] * 5) == 1000
    assert until.more((3, 7), 4) == (3, 7, 8, 9)


def test_intervals_of_the_rule_cover_the_mean() -> None:
    """Stein's rule with normal values. Of 2000 tries, 93.5 % is three deviations below 95 %."""
    draws, rule, covered = random.Random(20261123), Until(0.02, "jain"), 0
    for _ in range(2000):
        values = [draws.gauss(100, 4) for _ in range(10)]
        values += [draws.gauss(100, 4) for _ in range(until.needed(rule, values) - 10)]
        found = until.interval(values, 10)
        covered += found.low <= 100 <= found.high
    assert covered >= 0.935 * 2000


def test_the_page_of_measures_is_that_of_the_table() -> None:
    assert (DOCS / "reference" / "measures.md").read_text(encoding="utf-8") == page(), (
        "`tools/measure/measures` writes the page"
    )


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
