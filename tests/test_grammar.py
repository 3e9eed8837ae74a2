"""One grammar of the command line: settings, standard input, completion, what is replaced, and Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from conftest import SCENARIO, Command
from penstock import cli, engine, manual, starters
from penstock.experiments import reading, setting
from penstock.mistake import MistakeError
from penstock.scenario import Scenario

SOURCE = Scenario(SCENARIO, "small.toml")


def test_a_setting_is_the_same_as_an_edited_file(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    edited = tmp_path / "edited.toml"
    edited.write_text(SCENARIO.replace("2Mbit/s", "3Mbit/s").replace("droptail", "pie"))
    wanted = json.loads(penstock("run", edited, "--json").stdout)
    done = penstock("run", scenario, "--set", "topology.rate=3Mbit/s", "--set", "aqm.name=pie", "--json")
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert {**found, "cpu_s": 0} == {**wanted, "cpu_s": 0}
    assert penstock("run", scenario, "--set", "aqm.name=pie", "-o", "out").returncode == 0
    assert tomllib.loads((tmp_path / "out" / "scenario.toml").read_text())["aqm"] == {"name": "pie"}


def test_a_scenario_comes_from_standard_input(scenario: Path) -> None:
    command = [sys.executable, "-m", "penstock"]
    for words in (("run", "-", "--json"), ("sweep", "-", "--vary", "aqm.name=pie,codel", "--dry-run", "--json")):
        done = subprocess.run(
            [*command, *words], cwd=scenario.parent, input=SCENARIO, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)
    wrong = subprocess.run([*command, "run", "-"], input="a =", capture_output=True, text=True, check=False)
    assert (wrong.returncode, "<stdin>:1:4" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("given", "nothing"),
    [
        ({"aqm.name": "droptail"}, ["aqm.name"]),
        ({"aqm.name": "pie", "topology.rate": "2000kbit/s"}, ["topology.rate"]),
        ({"tcp.cc": "bbr"}, []),
        ({"tcp.cc": "bbr", "flows.0.cc": "vegas"}, ["tcp.cc"]),
    ],
)
def test_a_setting_without_effect_is_told(given: dict[str, str], nothing: list[str]) -> None:
    assert setting.without_effect(SOURCE, given) == nothing
    assert all(key in setting.told(nothing, "--set") for key in nothing)


def test_a_varied_key_without_effect_is_told(penstock: Command, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace('"5s"', '"2s"') + 'cc = "vegas"\n')
    vary = ("--vary", "tcp.cc=bbr,cubic", "--vary", "aqm.name=pie,codel", "-j", "1")
    done = penstock("sweep", scenario, *vary)
    assert done.returncode == 0, done.stderr
    assert "note: --vary tcp.cc has no effect" in done.stderr
    assert "aqm.name has" not in done.stderr


def test_settings_stand_behind_what_varies() -> None:
    experiment = reading.load(SCENARIO)
    found = setting.applied_to(experiment, {"topology.rate": "1Mbit/s"})
    assert tomllib.loads(found.scenario.text)["topology"]["rate"] == "1Mbit/s"
    with pytest.raises(MistakeError, match="--seeds 3,7"):
        setting.applied_to(experiment, {"seed": 3})


def test_another_run_is_not_replaced_in_silence(penstock: Command, scenario: Path) -> None:
    short = ("--set", "duration=2s", "-o", "out")
    assert penstock("run", scenario, *short).stderr == ""
    assert penstock("run", scenario, *short).stderr == "", "the same run"
    other = penstock("run", scenario, *short, "--seed", "9")
    assert "note: out held another run" in other.stderr
    assert "with seed 1" in other.stderr


def test_a_smaller_sweep_says_what_it_replaces(penstock: Command, scenario: Path) -> None:
    large = ("sweep", scenario, "--vary", "aqm.name=pie,codel", "--seeds", "2", "--set", "duration=2s", "-j", "1")
    small = tuple("aqm.name=pie" if word == "aqm.name=pie,codel" else word for word in large)
    assert penstock(*large).stderr.count("note:") == 0
    assert penstock(*large).stderr.count("note:") == 0
    told = penstock(*small).stderr
    assert "held the tables of another sweep (4 runs; it varied aqm.name; 2 seeds)" in told
    assert penstock(*large).stderr.count("note:") == 0, "a larger one has all of the smaller"
    runs = {one.parent for one in (scenario.parent / "runs" / "sweeps").rglob("sweep.json")}
    assert len(runs) == 1


def test_names_of_any_alphabet_are_names_of_directories(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(SCENARIO.replace('"small"', '"дом с 家/../x"').replace('"5s"', '"2s"'))
    assert penstock("run", scenario).returncode == 0
    found = [path.name for path in (tmp_path / "runs").iterdir()]
    assert len(found) == 1
    assert found[0].startswith("дом-с-家-..-x-")
    assert penstock("new", "scenario", "хата").returncode == 0
    assert (tmp_path / "хата.toml").is_file()


def test_an_interrupt_ends_with_a_word_and_loses_nothing(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    assert penstock("run", scenario, "--set", "duration=2s", "-o", "out").returncode == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    # A shell lets what it starts in the background ignore the interrupt.
    command = [
        "env",
        "--default-signal=INT",
        sys.executable,
        "-m",
        "penstock",
        "run",
        str(scenario),
        "--set",
        "duration=20h",
        "-o",
        "out",
    ]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.glob(".out.*")):
        time.sleep(0.02)
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    printed, told = child.communicate(timeout=20)
    assert (child.returncode, printed) == (130, "")
    assert told.startswith("interrupted: nothing of this run was stored, and out is as it was")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


COMPLETED = {
    "run home.toml --set topology.ra": ["topology.rate=", "topology.rate_from="],
    "run home.toml --set aqm.ta": ["aqm.target="],
    "sweep home.toml --vary flows.1.per": [],
    "sweep home.toml --vary flows.2.per": ["flows.2.per_second="],
    "list fq-cod": ["fq-codel"],
    "reproduce pink-ds": ["pink-dsl"],
    "run home.toml --on jar-": ["jar-tc"],
    "new scenario x --like full-": ["full-house"],
    "sweep home.toml --measure link.mark": ["link.mark_share", "link.marks"],
    "docs bufferb": ["bufferbloat"],
}


@pytest.mark.parametrize("words", COMPLETED)
def test_names_and_keys_are_completed(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    starters.write("scenario", "home")
    line = f"penstock {words}"
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    monkeypatch.setenv("_PENSTOCK_COMPLETE", "complete_bash")
    monkeypatch.setattr(sys, "argv", ["penstock"])
    with pytest.raises(SystemExit):
        cli.main()
    assert sorted(capsys.readouterr().out.split()) == COMPLETED[words]


def test_the_whole_text_of_the_pages_is_searched() -> None:
    found = manual.search("silly window")
    assert {"tcp", "scenarios"} <= {one.page.short for one in found}
    assert all("silly" in one.page.text.casefold() for one in found[:2]), "pages with both words come first"
    assert manual.search("bufferbloat")[0].page.short == "bufferbloat", "the words of a title come first"
    assert manual.search("zzzqq") == []


def test_keys_that_completion_offers_are_keys() -> None:
    """A key that the schema has and the simulator does not would be refused as unknown."""
    from penstock.cli import completion

    for path in sorted(set(completion._paths(tomllib.loads(SCENARIO)))):
        if path.count(".") == 1 and path.startswith("topology."):
            with pytest.raises(engine.ScenarioError) as refused:
                setting.applied(SOURCE, {path: {"x": 1}})
            assert f"unknown field `{path.partition('.')[2]}`" not in str(refused.value)


def test_a_class_in_python_on_real_packets_is_told_the_way_on(penstock: Command) -> None:
    assert penstock("new", "aqm", "my_aqm").returncode == 0
    done = penstock("run", "my_aqm.toml", "--on", "wire", "--check")
    assert done.returncode == 2
    if "needs" not in done.stderr:  # the program for real packets is there
        assert "`penstock new aqm my-aqm --rust`" in done.stderr
        assert "cargo run --release --features emulate --bin my-aqm-emulate" in done.stderr
