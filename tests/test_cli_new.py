"""`new`: what it writes runs, and nothing is overwritten."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from penstock import starters
from penstock.cli import app
from penstock.engine import Result, simulate
from penstock.experiments.paths import put
from penstock.mistake import MistakeError
from penstock.reproduce import EXPERIMENTS, experiments
from penstock.reproduce.experiments import open_folder
from penstock.scenario import Scenario, to_toml
from penstock.starters import crates
from typer.testing import CliRunner

TEMPLATES = Path(starters.__file__).parent / "templates"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory in which the command runs; experiments opened by a test are unknown to the next one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiments, "_OPENED", {})
    return tmp_path


def made(*words: str) -> Result:
    """Runs `penstock new`, then what it says to run next."""
    done = CliRunner().invoke(app, ["new", *words])
    assert done.exit_code == 0, (done.output, done.exception)
    following = done.output.splitlines()[-1]
    assert following.startswith("next: penstock run ")
    return simulate(Scenario.load(following.removeprefix("next: penstock run ")))


def test_an_aqm_runs_and_drops(here: Path) -> None:
    result = made("aqm", "my-red_2")
    assert 'name = "my-red_2.py:MyRed2"' in (here / "my-red_2.toml").read_text()
    assert list(result.own_files) == ["my-red_2.py"]
    assert result.summary["bottlenecks"][0]["drops_aqm"] > 0
    assert "penstock.Aqm" in (here / "my-red_2.py").read_text()


def test_a_control_runs_beside_cubic() -> None:
    flows = made("cc", "mine").summary["flows"]
    assert [flow["cc"] for flow in flows] == ["mine.py:Mine"] * 2 + ["cubic-linux"] * 2
    assert all(flow["delivered_bytes"] > 1e5 for flow in flows)


def test_a_scenario_runs_with_its_traffic(here: Path) -> None:
    summary = made("scenario", "home").summary
    assert [flow["kind"] for flow in summary["flows"]] == ["bulk", "bulk", "voip", "web"]
    assert summary["bottlenecks"][0]["drops_aqm"] > 0
    # CoDel holds the delay near its target where a full queue would be 240 ms.
    assert summary["bottlenecks"][0]["queue_delay_ms"]["p50"] < 20
    comments = [line for line in (here / "home.toml").read_text().splitlines() if "#" in line]
    assert len(comments) > 15


DATA = Path(__file__).parents[1] / "crates" / "grammar" / "tests" / "data" / "from"


def test_the_link_of_a_scenario_is_that_of_a_line_of_tc(here: Path) -> None:
    (here / "shaper.sh").write_text(
        "tc qdisc add dev eth0 root cake bandwidth 4Mbit overhead 18 nat\n"
        "tc qdisc add dev ifb4eth0 root fq_codel target 8ms\n"
    )
    summary = made("scenario", "mine", "--from", "shaper.sh").summary
    assert [flow["kind"] for flow in summary["flows"]] == ["bulk", "bulk", "voip", "web"]
    text = (here / "mine.toml").read_text()
    assert text.startswith(
        "# The link of shaper.sh (lines of tc), with the traffic of a home\n#\n#   penstock run mine.toml"
    )
    tables = tomllib.loads(text)
    usual = tomllib.loads(starters.scenario("scenario", "mine"))
    assert {key: tables[key] for key in tables if key not in ("topology", "aqm")} == {
        key: usual[key] for key in usual if key not in ("topology", "aqm")
    }
    link = tables["topology"]
    assert (link["rate"], link["overhead"], link["reverse_overhead"]) == ("4Mbit/s", 18, 0)
    # Two uploads fill the line: what a packet of 1500 bytes takes of it, 18 more.
    assert summary["bottlenecks"][0]["utilization"] > 0.95
    assert tables["aqm"]["name"] == "cake"


def test_netem_is_the_wire_of_a_scenario(here: Path) -> None:
    (here / "wire.sh").write_text(
        "tc qdisc add dev eth0 root handle 1: netem delay 40ms 4ms loss 1% rate 5mbit\n"
        "tc qdisc add dev ifb0 root netem delay 30ms loss 1% rate 20mbit\n"
    )
    summary = made("scenario", "mine", "--from", "wire.sh").summary
    call = next(flow for flow in summary["flows"] if flow["kind"] == "voip")
    # 40 ms on the wire, 4 ms more or less, and what waits before it.
    assert call["voip"]["delay_ms"]["mean"] > 40
    link = tomllib.loads((here / "mine.toml").read_text())["topology"]
    assert (link["delay"], link["reverse_delay"], link["loss"]) == ("40ms", "30ms", 0.01)
    assert summary["bottlenecks"][0]["lost"] > 0


@pytest.mark.parametrize("source", [("ShapedDevices.csv", "network.json"), ("",)])
def test_a_scenario_of_libreqos_has_its_busiest_link(here: Path, source: tuple[str, ...]) -> None:
    options = [word for name in source for word in ("--from", str(DATA / name))]
    done = CliRunner().invoke(app, ["new", "scenario", "mine", *options])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "not the same: " in done.output and "a scenario has one link and no tree of subscribers" in done.output
    link = tomllib.loads((here / "mine.toml").read_text())["topology"]
    # Mast North has promised 50, 100, 5, 20 and 20 Mbit/s of its 80; no other node has promised more for what it has.
    assert (link["reverse_rate"], link["rate"]) == ("80Mbit/s", "20Mbit/s")


def test_what_is_no_link_is_refused_in_one_sentence(here: Path) -> None:
    (here / "bad.sh").write_text("\ntc qdisc add dev $DEV root cake bandwidth 4Mbit\n")
    for words, told in (
        (("--from", "bad.sh"), "bad.sh:2"),
        (("--from", "missing"), "cannot read missing"),
        (("--from", "."), "has neither ShapedDevices.csv nor network.json"),
        (("--from", "bad.sh", "--like", "full-house"), "--from and --like"),
    ):
        done = CliRunner().invoke(app, ["new", "scenario", "mine", *words])
        assert done.exit_code == 1 and told in str(done.exception), (words, done.exception)
        assert not (here / "mine.toml").exists()


def test_a_network_runs_and_is_that_of_the_old_name(here: Path) -> None:
    options = ("--backhaul", "leo", "--duration", "3", "--responders", "2", "--seed", "4")
    assert made("network", "emergency", *options).summary["duration_s"] == 3.0
    printed = CliRunner().invoke(app, ["architecture", *options]).stdout
    assert (here / "emergency.toml").read_text() == printed
    assert tomllib.loads(printed)["seed"] == 4


@pytest.mark.parametrize("kind", ["aqm", "cc", "scenario", "network"])
def test_nothing_is_overwritten(here: Path, kind: str) -> None:
    (here / "x.toml").write_text("mine")
    done = CliRunner().invoke(app, ["new", kind, "x"])
    assert isinstance(done.exception, MistakeError)
    assert "x.toml: exists already" in str(done.exception)
    assert [path.name for path in here.iterdir()] == ["x.toml"]
    assert (here / "x.toml").read_text() == "mine"


@pytest.mark.parametrize("name", ["my-study", "my_study", "Far"])
def test_an_experiment_runs_by_the_printed_command(here: Path, name: str) -> None:
    done = CliRunner().invoke(app, ["new", "experiment", name])
    assert done.exit_code == 0, (done.output, done.exception)
    following = done.output.splitlines()[-1].removeprefix("next: penstock ")
    assert following == f"reproduce ./{name}"
    assert {path.name for path in (here / name).iterdir()} == {"experiment.toml", "scenario.toml", "claims.py"}

    ran = CliRunner().invoke(app, [*following.split(), "--quick", "--json"])
    assert ran.exit_code == 0, (ran.output, ran.exception)
    printed = json.loads(ran.stdout)
    called = name.replace("_", "-")
    assert printed["name"] == called
    runs = [(run["setting"], run["aqm"], run["summary"]["duration_s"]) for run in printed["runs"]]
    assert runs == [(setting, aqm, 10.0) for setting in ("near", "far") for aqm in ("droptail", "codel")]
    (claim,) = printed["claims"]
    assert claim["id"] == f"{called}.codel-halves-the-delay"
    assert (claim["verdict"], claim["section"]) == ("holds", "1")
    assert (here / "runs" / "reproduce" / f"{called}-quick" / "report.html").is_file()


def test_an_experiment_of_another_directory_replaces_one_of_its_name(here: Path) -> None:
    for directory, title in (("one", "First"), ("two", "Second")):
        (here / directory).mkdir()
        starters.write_folder(f"{directory}/same", ())
        file = here / directory / "same" / "experiment.toml"
        file.write_text(re.sub('title = ".*"', f'title = "{title}"', file.read_text()))
        assert open_folder(here / directory / "same").title == title
        assert EXPERIMENTS["same"].title == title


def test_no_folder_is_overwritten_and_no_installed_experiment_replaced(here: Path) -> None:
    (here / "mine").mkdir()
    done = CliRunner().invoke(app, ["new", "experiment", "mine"])
    assert "mine: exists already" in str(done.exception)
    assert list((here / "mine").iterdir()) == []
    done = CliRunner().invoke(app, ["new", "experiment", "pink_dsl"])
    assert "pink-dsl is the name of an installed experiment" in str(done.exception)

    starters.write_folder("pink_dsl", ())
    done = CliRunner().invoke(app, ["reproduce", "./pink_dsl"])
    assert "pink-dsl is the name of an installed experiment; rename the folder" in str(done.exception)
    assert EXPERIMENTS["pink-dsl"].package == "penstock.papers.pink_dsl"


def test_a_mistake_in_a_folder_is_told_with_its_path(here: Path) -> None:
    (here / "empty").mkdir()
    assert "no experiment.toml" in str(CliRunner().invoke(app, ["reproduce", "./empty"]).exception)
    (here / "1st.2").mkdir()
    (here / "1st.2" / "experiment.toml").touch()
    assert "the name of the folder must be" in str(CliRunner().invoke(app, ["reproduce", "./1st.2"]).exception)
    file = starters.write_folder("wrong", ()) / "experiment.toml"
    file.write_text(file.read_text().replace("title =", "titel ="))
    told = str(CliRunner().invoke(app, ["reproduce", "./wrong"]).exception)
    assert "no key 'titel'; did you mean title?" in told
    assert f"{here / file}:10" in told


def test_a_link_that_leads_nowhere_is_not_followed(here: Path) -> None:
    (here / "x.toml").symlink_to(here / "elsewhere")
    assert isinstance(CliRunner().invoke(app, ["new", "scenario", "x"]).exception, MistakeError)
    assert not (here / "elsewhere").exists()


@pytest.mark.parametrize(
    ("name", "told"),
    [("1st", "no name"), ("a b", "no name"), ("", "no name"), ("../x y", "no name"), ("there/x", "mkdir -p there")],
)
def test_a_name_that_cannot_be_is_refused(here: Path, name: str, told: str) -> None:
    done = CliRunner().invoke(app, ["new", "aqm", name])
    assert told in str(done.exception)
    assert list(here.iterdir()) == []


def test_endings_and_keywords_are_no_trouble(here: Path) -> None:
    made("aqm", "none.py")
    names = {path.name for path in here.iterdir() if path.is_file()}
    assert names == {"none.py", "test_none.py", "none-experiment.toml", "none.toml"}
    assert "class None_(penstock.Aqm)" in (here / "none.py").read_text()


@pytest.mark.parametrize("kind", ["gateway", "subscriber"])
def test_kinds_that_cannot_be_made_are_not_offered(kind: str) -> None:
    done = CliRunner().invoke(app, ["new", kind, "x"])
    assert "explains ack-path, aqm, cc, experiment, network, scenario, scheduler, stack" in str(done.exception)
    assert kind not in CliRunner().invoke(app, ["new", "--help"]).output


@pytest.mark.parametrize("kind", starters.ALGORITHMS)
def test_the_written_test_of_an_algorithm_holds_and_its_experiment_names_it(here: Path, kind: str) -> None:
    made(kind, "my-one")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_my-one.py"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{ran.returncode}: {ran.stdout}{ran.stderr}"
    experiment = tomllib.loads((here / "my-one-experiment.toml").read_text())
    assert experiment["experiment"]["scenario"] == "my-one.toml"
    values = [value for values in experiment["vary"].values() for value in values]
    assert "my-one.py:MyOne" in [value["name"] if isinstance(value, dict) else value for value in values]
    for key, first in ((key, values[0]) for key, values in experiment["vary"].items()):
        scenario = tomllib.loads((here / "my-one.toml").read_text())
        put(scenario, key, first)
        simulate(Scenario(to_toml({**scenario, "duration": "1s", "warmup": "0s"}), str(here / "x.toml")))


@pytest.mark.parametrize("kind", starters.ALGORITHMS)
def test_a_crate_is_complete_wherever_it_lies(here: Path, kind: str) -> None:
    """Whether it compiles and runs is what `tools/check/verify-crates` finds out; that takes minutes."""
    done = CliRunner().invoke(app, ["new", kind, "my-one", "--rust"])
    assert done.exit_code == 0, done.output
    files = {path.relative_to(here / "my-one") for path in (here / "my-one").rglob("*") if path.is_file()}
    own = {str(file) for file in files if file.parts[0] != "penstock"}
    assert own == {*starters.files_of_crate(kind), "Cargo.lock"}
    manifest = tomllib.loads((here / "my-one" / "Cargo.toml").read_text())
    packed = crates.SIMULATED if kind == "cc" else crates.REAL
    for name in packed:
        one = tomllib.loads((here / "my-one" / "penstock" / "crates" / name / "Cargo.toml").read_text())
        needs = {need.removeprefix("penstock-") for need in one["dependencies"] if need.startswith("penstock-")}
        assert needs <= set(packed)
        assert not {"dev-dependencies", "test", "example", "lints"} & one.keys()
    assert str(Path(crates.__file__).parents[3]) not in "".join(
        path.read_text() for path in (here / "my-one").rglob("Cargo.toml")
    )
    assert ("emulate" in manifest.get("features", {})) == (kind != "cc")
    assert "pub struct MyOne" in (here / "my-one" / "src" / "algorithm.rs").read_text()
    main = (here / "my-one" / "src" / "main.rs").read_text()
    assert len(main.splitlines()) == 5
    assert "penstock_sim::main_with(&my_one::own())" in main
    again = CliRunner().invoke(app, ["new", kind, "my-one", "--rust"])
    assert "exists already" in str(again.exception)


@pytest.mark.skipif(not shutil.which("cargo"), reason="cargo is not there")
def test_cargo_finds_all_that_a_moved_crate_is_built_of(here: Path) -> None:
    """Each file is there that another one includes, and the manifests are those of a workspace."""
    assert CliRunner().invoke(app, ["new", "aqm", "mine", "--rust"]).exit_code == 0
    shutil.move(here / "mine", here / "elsewhere")
    words = ["cargo", "tree", "--offline", "--features", "emulate", "--edges", "normal,build", "--prefix", "none"]
    told = subprocess.run(words, cwd=here / "elsewhere", stdout=subprocess.PIPE, text=True, check=True).stdout
    ours = {line.split()[0].removeprefix("penstock-") for line in told.splitlines() if line.startswith("penstock-")}
    assert ours == set(crates.REAL)
    for source in (here / "elsewhere" / "penstock").rglob("*.rs"):
        built = source.read_text().split("#[cfg(test)]")[0] if "tests" not in str(source.relative_to(here)) else ""
        for named in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', built):
            assert (source.parent / named).is_file(), f"{source}: {named}"
    assert (here / "elsewhere" / "penstock" / "bpf" / "pink.bpf.c").is_file()


@pytest.mark.parametrize("kind", [*starters.ALGORITHMS, "stack"])
def test_what_a_wheel_packs_serves_every_kind(tmp_path: Path, kind: str) -> None:
    """The sources in a wheel are those of `crates.ALL`; a crate that is written from them alone has what it needs."""
    for file, content in crates.files(crates.ALL).items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(content)
    assert crates.files(starters.needed_by(kind), tmp_path).keys() == crates.files(starters.needed_by(kind)).keys()


def test_a_crate_with_a_stack_is_complete(here: Path) -> None:
    """Its main is the one of docs/stacks.md; `tools/verify-crates` compiles it, tests it and hosts it."""
    done = CliRunner().invoke(app, ["new", "stack", "mine"])
    assert done.exit_code == 0, done.output
    assert "--stack mine=target/release/mine" in done.output
    files = {str(path.relative_to(here / "mine")) for path in (here / "mine").rglob("*") if path.is_file()}
    assert {name for name in files if not name.startswith("penstock/")} == {*starters.STACK, "Cargo.lock"}
    assert {"penstock/crates/stacks/src/quinn/certificate.der", "penstock/crates/stacks/src/serve.rs"} <= files
    main = (here / "mine" / "src" / "main.rs").read_text()
    assert f"```rust\n{main}```" in (Path(__file__).resolve().parents[1] / "docs" / "stacks.md").read_text()
    assert not [name for name in starters.STACK if "$" in (here / "mine" / name).read_text()]


def test_a_crate_needs_a_checkout(here: Path) -> None:
    done = CliRunner().invoke(app, ["new", "aqm", "mine", "--rust", "--source", str(here)])
    assert "no checkout of penstock; give --source the directory of one" in str(done.exception)
    done = CliRunner().invoke(app, ["new", "aqm", "mine", "--source", str(here)])
    assert "--source goes with --rust" in str(done.exception)


def test_flows_of_each_template_begin_by_the_seed() -> None:
    """What is started with a template has seeds that mean something: long flows have a spread of starts."""
    files = [path for path in TEMPLATES.rglob("*.toml") if "[[flows]]" in path.read_text(encoding="utf-8")]
    assert len(files) >= 10
    for path in files:
        for flow in tomllib.loads(path.read_text(encoding="utf-8").replace("$", "")).get("flows", []):
            assert flow["kind"] not in ("bulk", "transfer") or "start_spread" in flow, path
