"""`verify linux`: the simulator beside kernels, with another simulator in the place of a kernel."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from penstock import beside, beside_tc, engine, worlds
from penstock.cli import app
from penstock.engine import ScenarioError
from penstock.jar import qdiscs
from penstock.mistake import MistakeError
from penstock.scenario import Scenario
from penstock.wire import linux, plan
from typer.testing import CliRunner

TEXT = """\
duration = "6s"
profile = "ns-3.37"
[topology]
kind = "dumbbell"
rate = "5Mbit/s"
delay = "10ms"
limit = "40p"
[tcp]
cc = { name = "newreno", growth = "acks" }
prr = false
sack = false
mss = "1000B"
[[flows]]
kind = "bulk"
[[flows]]
kind = "bulk"
cc = "cubic"
tcp = { limited_transmit = false, ecn = true, sack = true }
"""


def test_hosts_are_those_of_linux_and_what_a_kernel_can_be_told_stays() -> None:
    tree = tomllib.loads(linux.hosts(Scenario(TEXT, "home.toml")).text)
    assert tree["tcp"] == {
        "cc": {"name": "newreno", "compat": "linux"},
        "sack": False,
        "mss": "1000B",
        "rack": False,
        "without_sack": "linux",
        "acknowledging": "linux",
    }
    assert tree["flows"][1]["cc"] == {"name": "cubic-linux", "hystart": True}
    assert tree["flows"][1]["tcp"] == {
        "ecn": True,
        "sack": True,
        "rack": True,
        "without_sack": "linux",
        "acknowledging": "linux",
    }
    assert "profile" not in tree
    bbr = linux.hosts(Scenario(TEXT.replace('cc = "cubic"', 'cc = "bbr"'), "home.toml"))
    assert tomllib.loads(bbr.text)["flows"][1]["cc"] == {"name": "bbr", "compat": "linux"}
    # A control without a Linux form here is left for the kernel to judge.
    other = linux.hosts(Scenario(TEXT.replace('cc = "cubic"', 'cc = { name = "vegas", alpha = 3 }'), "home.toml"))
    assert tomllib.loads(other.text)["flows"][1]["cc"] == "vegas"


def played(monkeypatch: pytest.MonkeyPatch, changed: str, to: str, disturbed: int = 0) -> None:
    """Puts a simulator with a changed scenario in the place of the kernel; the run with the seed `disturbed` is."""

    def run(scenario: Scenario, seed: int, on: str, **given: Any) -> engine.Result:
        text = scenario.text if on == worlds.SIM else scenario.text.replace(changed, to)
        assert on == worlds.SIM or text != scenario.text or changed == to
        found = engine.simulate(Scenario(text, scenario.file), seed, **given)
        wire = {"kernel": "7.0", "disturbed_by": ["lateness"] if seed == disturbed else []}
        return found if on == worlds.SIM else replace(found, wire=wire)

    def check(scenario: Scenario, _seed: int, on: str) -> None:
        if "refused" in scenario.file:
            raise ScenarioError(f"error: --on {on}: no such thing\n --> {scenario.file}:1:1")

    monkeypatch.setattr(worlds, "run", run)
    monkeypatch.setattr(worlds, "check", check)


def test_flows_of_a_seed_begin_a_little_apart_where_the_file_says_nothing() -> None:
    text = TEXT.replace('kind = "bulk"\ncc', 'kind = "bulk"\nstart_spread = "1s"\ncc')
    tree = tomllib.loads(beside.comparable(Scenario(text, "home.toml"), 4).text)
    assert tree["duration"] == "4s"
    assert [flow["start_spread"] for flow in tree["flows"]] == [beside.SPREAD, "1s"]


def test_sides_are_compared_over_the_seeds_of_the_kernel() -> None:
    ours = {seed: {"q": (float(seed), 10.0, 0.0, 1.0, 10.0 * seed)} for seed in range(1, 6)}
    theirs = {seed: {"q": (float(seed), 10.0, 0.0, 1.0, 20.0)} for seed in (1, 2)}
    [row] = beside._rows("home", ours, theirs)
    assert (row.goodput_mbps, row.gaps) == ((1.5, 1.5), (0.0, 0.0))
    assert row.ranges[0] == (1.0, 5.0)
    assert (row.drops, row.ranges[2]) == ((15.0, 20.0), (10.0, 50.0))


@pytest.mark.parametrize(
    ("drops", "verdict"),
    [
        ((27.0, 18.0), "pass"),
        ((28.0, 18.0), "pass"),  # ten packets
        ((29.0, 18.0), "apart: drops"),
        ((18.0, 29.0), "apart: drops (seeds)"),
        ((150.0, 100.0), "pass"),  # a factor of 1.5
        ((151.0, 100.0), "apart: drops"),
        ((0.0, 10.0), "pass"),
        ((11.0, 0.0), "apart: drops"),
    ],
)
def test_drops_are_within_a_factor_or_some_packets(drops: tuple[float, float], verdict: str) -> None:
    row = beside.Row("home", "q", (9.0, 9.0), (5.0, 5.0), (0.0, 0.0), drops, ((9.0, 9.0), (5.0, 5.0), (28.5, 29.5)))
    assert row.verdict == verdict
    assert beside.cells(row)[-2] == f"{drops[1]:.0f} / {drops[0]:.0f}"


@pytest.mark.parametrize("name", beside.SUITES)
def test_cases_of_a_suite_have_hosts_as_they_are(name: str) -> None:
    scenarios = beside.of_suite(name)
    assert len(scenarios) == len({scenario.file for scenario in scenarios}) > 10
    assert all('profile = "linux"' in scenario.text for scenario in scenarios)
    engine.check(scenarios[0])


def test_nothing_to_run_and_an_unknown_suite_are_refused() -> None:
    for words, told in (((), "name files"), (("--suite", "rfc7982"), "did you mean rfc7928?")):
        done = CliRunner().invoke(app, ["verify", "linux", *words])
        assert done.exit_code != 0
        assert told in " ".join(str(done.exception or done.output).split())


def test_what_new_writes_has_the_hosts_that_the_comparison_gives_it() -> None:
    """`profile = "linux"` says all that `hosts` would say, so the numbers are those of the files as they are."""
    scenarios = beside.defaults()
    assert len(scenarios) == len({scenario.file for scenario in scenarios}) > 10
    for scenario in scenarios:
        short = Scenario(
            re.sub(r'duration = "\d+s"', 'duration = "3s"', scenario.text).replace("warmup", "# warmup"), "x"
        )
        assert '"linux"' in scenario.text
        as_it_is, as_given = (engine.simulate(one, 1).summary for one in (short, linux.hosts(short)))
        assert as_it_is["bottlenecks"] == as_given["bottlenecks"], scenario.file


def compared(**given: Any) -> beside.Beside:
    found = beside.compare([Scenario(TEXT, "home.toml"), Scenario(TEXT, "refused.toml")], worlds.JAR, **given)
    assert found is not None
    return found


def test_equal_sides_pass_and_what_a_kernel_cannot_do_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    played(monkeypatch, "x", "x")
    found = compared(seeds=2, kernel_seeds=2, most_s=4)
    [row] = found.rows
    assert (row.scenario, row.queue, row.verdict, row.gaps) == ("home", "bottleneck", "pass", (0.0, 0.0))
    assert found.refused == {"refused": "no such thing"}
    assert "goodput within 3% in 1" in found.summary
    page = tmp_path / "page.md"
    page.write_text("<!-- table: begin -->\n<!-- table: end -->\n")
    beside.write(page, found)
    assert "| home | bottleneck |" in page.read_text()
    assert "| refused | no such thing |" in page.read_text()
    assert beside.check(page, worlds.JAR) == tmp_path / "page.json"
    page.write_text("<!-- defaults: begin -->\n<!-- defaults: end -->\n")
    beside.write(page, found, "defaults")
    assert "| home | bottleneck |" in page.read_text()
    assert beside.check(page, worlds.JAR, "defaults") == tmp_path / "page-defaults.json"
    with pytest.raises(MistakeError, match="wire: begin"):
        beside.check(page, worlds.WIRE)


def test_each_world_has_a_part_of_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    played(monkeypatch, "x", "x")
    found = replace(compared(seeds=1, kernel_seeds=1, most_s=2), on=worlds.WIRE, kernel="6.18.44-of-somebody")
    page = tmp_path / "page.md"
    page.write_text("<!-- table: begin -->\n<!-- table: end -->\n<!-- wire: begin -->\n<!-- wire: end -->\n")
    beside.write(page, found)
    in_virtual_time, on_wire = page.read_text().split("<!-- table: end -->")
    assert "home" not in in_virtual_time and "Linux 6.18.44: kernel" in on_wire and "| home | bottleneck |" in on_wire
    assert beside.check(page, worlds.WIRE) == tmp_path / "page-wire.json"


@pytest.mark.parametrize("disturbed", [0, 2])
def test_a_verdict_says_that_the_machine_disturbed_the_kernel(monkeypatch: pytest.MonkeyPatch, disturbed: int) -> None:
    played(monkeypatch, "x", "x", disturbed)
    [row] = compared(seeds=1, kernel_seeds=2, most_s=2).rows
    assert row.verdict.endswith("; disturbed: lateness") == bool(disturbed)


@pytest.mark.parametrize(
    ("changed", "to", "missed"),
    [('rate = "5000000bit/s"', 'rate = "4500000bit/s"', "goodput"), ('limit = "40p"', 'limit = "80p"', "delay")],
)
def test_sides_that_differ_are_apart(monkeypatch: pytest.MonkeyPatch, changed: str, to: str, missed: str) -> None:
    changed, to = (text.replace("5000000bit/s", "5Mbit/s").replace("4500000bit/s", "4Mbit/s") for text in (changed, to))
    played(monkeypatch, changed, to)
    [row] = compared(seeds=2).rows
    assert missed in row.missed
    assert not row.missed[missed]
    assert row.verdict.startswith("apart: ")


def _discipline(ours: tuple[float, float], theirs: tuple[float, float]) -> beside_tc.Row:
    medians = {worlds.SIM: (9.0, 9.0, 0.0), worlds.JAR: (*ours, 0.01), worlds.JAR_TC: (*theirs, 0.02)}
    return beside_tc.Row("codel", "newreno", medians)


def test_a_discipline_is_judged_beside_the_kernels_behind_the_same_hosts() -> None:
    assert _discipline((9.2, 20.0), (9.4, 22.0)).missed == []  # 2.1 %, 9.1 %
    assert _discipline((9.0, 1.0), (9.4, 1.4)).missed == ["goodput"]  # 4.3 %; 0.4 ms
    row = _discipline((9.4, 20.0), (9.4, 23.0))
    assert row.missed == ["delay"]
    assert row.cells[2:] == ["9.00 / 9.40 / 9.40", "9.0 / 20.0 / 23.0", "0.00 / 1.00 / 2.00", "apart: delay"]


@pytest.mark.parametrize("name", beside_tc.DISCIPLINES)
def test_both_worlds_take_each_discipline(name: str) -> None:
    for world in (worlds.JAR, worlds.JAR_TC):
        found = plan.read(beside_tc.scenario(name, "newreno", 5, world), 1, world, ["reno"], list(qdiscs.WORDS))
        assert found.links[0].aqm[0]["name"] == name
        assert bool(found.kernel_queues) == (world == worlds.JAR_TC)


def test_the_table_of_disciplines_has_a_part_of_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    parts = (
        "<!-- table: begin -->\nkept\n<!-- table: end -->\n",
        "<!-- disciplines: begin -->\n<!-- disciplines: end -->\n",
    )
    page.write_text("".join(parts))
    beside_tc.write(page, beside_tc.Found("6.12.1", 3, 15, (_discipline((9.4, 20.0), (9.4, 21.0)),)))
    text = page.read_text()
    assert "kept" in text
    assert "| codel | newreno | 9.00 / 9.40 / 9.40 | 9.0 / 20.0 / 21.0 | 0.00 / 1.00 / 2.00 | pass |" in text


def test_an_unknown_discipline_is_refused() -> None:
    done = CliRunner().invoke(app, ["verify", "disciplines", "codle"])
    assert done.exit_code != 0
    assert "did you mean codel?" in " ".join(str(done.exception or done.output).split())
