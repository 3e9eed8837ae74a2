"""Hosted stacks: released ones and programs in runs, sweeps and suites, and the page that describes their protocol."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from conftest import on_wire as real
from penstock import engine, stacks, wire
from penstock.engine import BrokenInvariant, ScenarioError
from penstock.experiments.work import Keys
from penstock.mistake import MistakeError
from penstock.scenario import Scenario
from penstock.suites import bbr_draft, judging, rfc9743, tcp_eval
from penstock.wire import plan

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "stacks"
HEAD = """\
duration = "6s"
warmup = "1s"
[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "20ms"
limit = "100p"
[aqm]
name = "codel"
"""
QUINN = '[[flows]]\nkind = "stack"\nstack = "quinn:cubic"\nstart_spread = "100ms"\n'


@pytest.fixture(autouse=True)
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No stack is given but those of the test."""
    monkeypatch.setenv("PENSTOCK_STACKS", "{}")


@pytest.fixture(scope="module")
def aimd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program in C of the examples."""
    if not shutil.which("cc"):
        pytest.skip("a C compiler is not there")
    made = tmp_path_factory.mktemp("stacks") / "aimd"
    words = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(made), str(EXAMPLES / "aimd.c")]
    subprocess.run(words, check=True)
    return made


def summary(text: str, seed: int = 1) -> dict[str, Any]:
    return engine.simulate(Scenario(text, "stack.toml"), seed).summary


def test_a_released_stack_has_the_keys_of_a_flow() -> None:
    found = summary(HEAD + QUINN + '[[flows]]\nkind = "bulk"\ncc = "cubic"\n')
    flow = found["flows"][0]
    assert (flow["kind"], flow["cc"]) == ("stack", "quinn:cubic")
    assert flow["goodput_bps"] > 1e6
    assert 41 < flow["rtt_ms"]["p50"] < 100
    told = flow["stack"]
    assert told["version"] == "quinn-proto 0.11.19 with cubic"
    assert told["sent"] >= told["received"] > 500
    assert 0.4 < told["answers"] / told["received"] < 0.7, "it acknowledges every second datagram"
    assert 20 < told["delay_ms"]["p10"] < told["delay_ms"]["max"] < 200
    assert found["jain"]["overall"] > 0.5, "both flows are in the index"


def test_the_version_is_that_of_the_lock() -> None:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    [version] = [one["version"] for one in lock["package"] if one["name"] == "quinn-proto"]
    assert list(stacks.released()) == ["quinn:cubic", "quinn:newreno", "quinn:bbr"]
    assert all(f"quinn-proto {version} with " in told for told in stacks.released().values())


def test_two_processes_and_two_jobs_give_the_same_bytes(tmp_path: Path, penstock: Command) -> None:
    """The summary of a run of its own, and the results of sweeps with one and with two jobs."""
    file = tmp_path / "stack.toml"
    file.write_text(HEAD + QUINN)
    alone = [{**json.loads(penstock("run", file, "--json").stdout), "cpu_s": 0} for _ in range(2)]
    assert alone[0] == alone[1]
    rows = []
    for jobs in ("1", "2"):
        done = penstock("sweep", str(file), "--seeds", "4", "-j", jobs, "-o", str(tmp_path / jobs), "--json")
        rows.append([{**row, "cpu_s": 0} for row in json.loads(done.stdout)["points"]])
    assert rows[0] == rows[1]


def test_a_program_is_hosted_by_its_name(aimd: Path, tmp_path: Path, penstock: Command) -> None:
    out = tmp_path / "run"
    done = penstock("run", str(EXAMPLES / "aimd.toml"), "--stack", f"aimd={aimd}", "-o", str(out))
    assert done.returncode == 0, done.stderr
    found = json.loads((out / "summary.json").read_text())
    assert found["flows"][0]["stack"]["version"] == "aimd 1.0"
    got = [flow["goodput_bps"] for flow in found["flows"]]
    assert min(got) > 1.5e6, "both have a fair part of 10 Mbit/s"
    assert found["bottlenecks"][0]["marks"] > 10, "it sends ECT(0)"


def test_a_scenario_starts_no_program(aimd: Path, tmp_path: Path) -> None:
    for name in (str(aimd), "./aimd", "aimd", "sh", "quinn:nothing"):
        with pytest.raises(ScenarioError, match=r"there is no stack|quinn has no control"):
            summary(HEAD + QUINN.replace("quinn:cubic", name))
    assert not list(tmp_path.iterdir())


def test_results_are_kept_apart_by_the_program(aimd: Path, tmp_path: Path) -> None:
    program = tmp_path / "aimd"
    shutil.copy(aimd, program)
    scenario = Scenario(HEAD + QUINN.replace("quinn:cubic", "aimd"), "stack.toml")

    def key(words: str) -> bytes:
        stacks.add([f"aimd={program}{words}"])
        return Keys().of(scenario, [])(1)

    first, other = key(""), key(" 20")
    program.write_bytes(program.read_bytes() + b"\0")
    assert len({first, other, key(""), key(" 20")}) == 4
    assert Keys().of(Scenario(HEAD + QUINN, "stack.toml"), [])(1) == Keys().of(Scenario(HEAD + QUINN, "x.toml"), [])(1)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("mine", "write NAME=COMMAND"),
        ("mine=", "write NAME=COMMAND"),
        ("=sh", "write NAME=COMMAND"),
        ("a b=sh", "write NAME=COMMAND"),
        ("quinn=sh", "a stack that is there already"),
        ("mine=/no/such/program", "there is no program /no/such/program"),
    ],
)
def test_a_command_that_is_none_is_refused(given: str, told: str) -> None:
    with pytest.raises(MistakeError, match=re.escape(told)):
        stacks.add([given])


def test_a_program_that_fails_ends_the_run_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks.add(["mine=sh -c 'exit 7'"])
    with pytest.raises(BrokenInvariant, match=r"flow 0: mine: .*sh has ended with exit status: 7"):
        summary(HEAD + QUINN.replace("quinn:cubic", "mine"))
    monkeypatch.setenv("PENSTOCK_STACKS", "nonsense")
    with pytest.raises(ScenarioError, match="PENSTOCK_STACKS is not what --stack writes"):
        summary(HEAD + QUINN.replace("quinn:cubic", "mine"))


def test_a_suite_judges_a_stack(tmp_path: Path) -> None:
    only = ("same-2", "short", "cheated", "deep")
    found = judging.judge(rfc9743.SUITE, ["quinn:newreno"], tmp_path, quick=True, seeds=1, only=only)
    told = {one.criterion.id: one.told["quinn:newreno"] for one in found.findings}
    assert told["cheated.share"].reason.startswith("the case changes the host")
    assert told["short.web"].value is not None
    assert 100 < told["short.web"].value < 3000
    assert told["bufferbloat.delay"].verdict == "no worse"
    for suite in (tcp_eval.SUITE, bbr_draft.SUITE):
        with pytest.raises(MistakeError, match="looks into controls"):
            judging.judge(suite, ["quinn:bbr"], tmp_path / "other", quick=True)


def test_a_bad_stack_is_worse(aimd: Path, tmp_path: Path) -> None:
    stacks.add([f"greedy={aimd} 400", f"timid={aimd} 1"])
    only = ("shallow-0.5", "loss-0.01", "blackout", "queue-fq-codel")
    found = judging.judge(rfc9743.SUITE, ["greedy", "timid"], tmp_path, quick=True, seeds=1, only=only)
    worse = {name: {f.criterion.id for f in found.findings if f.told[name].verdict == "worse"} for name in found.names}
    assert worse["greedy"] >= {"collapse.blackout", "queue-fq-codel.delay", "wireless.hundredth"}
    assert worse["timid"] >= {"queue-fq-codel.goodput", "wireless.hundredth"}
    assert "queue-fq-codel.delay" not in worse["timid"]


def test_other_worlds_say_what_they_lack() -> None:
    scenario = Scenario(HEAD + QUINN, "stack.toml")
    with pytest.raises(ScenarioError, match="a stack is hosted in real time: --on wire and tc"):
        plan.read(scenario, world="jar", controls=["cubic"])


@real
def test_a_stack_is_hosted_over_real_sockets() -> None:
    """A link that it has alone is filled in both worlds, and what it sent arrived or was dropped."""
    found = wire.play(Scenario(HEAD + QUINN + 'size = "3MB"\n', "stack.toml"), 1)
    flow, queue = found.summary["flows"][0], found.summary["bottlenecks"][0]
    assert flow["delivered_bytes"] == 3_000_000
    assert 2.4 < flow["completion_s"] < 6
    told = flow["stack"]
    assert told["version"] == "quinn-proto 0.11.19 with cubic"
    lost = queue["drops_aqm"] + queue["drops_overflow"]
    assert abs(told["sent"] - told["received"] - lost) <= 3
    assert told["delay_ms"]["p50"] is None
    assert flow["rtt_ms"]["p50"] > 40


def test_the_page_has_the_numbers_of_the_protocol() -> None:
    source = (ROOT / "crates" / "stacks" / "src" / "frames.rs").read_text()
    kinds = {name: int(number) for name, number in re.findall(r"^    (\w+) = (\d+),$", source, re.MULTILINE)}
    page = (ROOT / "docs" / "stacks.md").read_text()
    told = {name: int(number) for number, name in re.findall(r"^\| (\d+) \| `(\w+)`", page, re.MULTILINE)}
    assert len(kinds) == 14
    assert told == kinds
    program = (EXAMPLES / "aimd.c").read_text()
    first, answers = re.findall(r"^enum \{ (\w+) = (\d+), ([\w, ]+) \};$", program, re.MULTILINE)[:2]
    for begin, number, rest in (first, answers):
        for place, name in enumerate([begin, *rest.split(", ")]):
            assert kinds[name.capitalize()] == int(number) + place


def test_the_adversary_breaks_a_stack(penstock: Command) -> None:
    """A deep buffer of drop-tail is what any control that fills buffers makes long, and the search finds it."""
    done = penstock("verify", "break", "quinn:cubic", "--until", "delay", "--trials", "30", "--json")
    assert done.returncode == 1, done.stderr
    [found] = json.loads(done.stdout)["findings"]
    assert found["broken"]
    assert "buffer" in found["breaches"][0]["settings"]
