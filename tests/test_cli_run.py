"""`run`, `rerun`, `report`, and what a mistake looks like."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path

import pytest
from conftest import SCENARIO, Command
from penstock import columns


def message(done: object) -> str:
    """The one message of a command that refused."""
    text = str(getattr(done, "stderr", ""))
    assert getattr(done, "returncode", None) == 2, text
    assert getattr(done, "stdout", None) == ""
    assert "Traceback" not in text
    return text


def test_json_is_one_object_and_writes_no_directory(penstock: Command, scenario: Path) -> None:
    done = penstock("run", scenario, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads(done.stdout)
    assert {"duration_s", "seed", "events", "bottlenecks", "flows", "jain", "rtt_ms", "cpu_s"} <= summary.keys()
    assert summary["duration_s"] == 5.0
    assert len(summary["flows"]) == 2
    # 2 Mbit/s for 5 s is 1.25 MB; without headers a little less.
    delivered = sum(flow["delivered_bytes"] for flow in summary["flows"])
    assert 0.7 * 1.25e6 < delivered < 1.25e6
    assert sorted(path.name for path in scenario.parent.iterdir()) == ["small.toml"]


def test_a_run_directory_has_all_that_is_needed(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    done = penstock("run", scenario, "--out", "out", "--seed", "7")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["seed"] == 7
    assert manifest["scenario"] == (out / "scenario.toml").read_text() == SCENARIO
    assert manifest["resolved"] == (out / "resolved.toml").read_text()
    assert tomllib.loads(manifest["resolved"])["topology"]["rate"] == "2Mbit/s"
    assert {"penstock", "core", "python", "revision"} <= manifest["versions"].keys()
    assert {"cpu_s", "wall_s"} == json.loads((out / "timing.json").read_text()).keys()
    assert "cpu_s" not in json.loads((out / "summary.json").read_text())
    table = columns.from_parquet((out / "flow_seconds.parquet").read_bytes())
    assert table.column_names == ["t_s", "flow", "goodput_bps", "cwnd_bytes"]
    assert table.num_rows == 2 * 5
    assert "out/report.html" in done.stdout


def test_applications_have_tables_of_their_own(penstock: Command, scenario: Path) -> None:
    kinds = ('kind = "voip"\ncount = 20', 'kind = "video"\nrate = "200kbit/s"', 'kind = "web"\nper_second = 5')
    tables = "".join(f"\n[[flows]]\n{kind}\n" for kind in kinds)
    scenario.write_text(SCENARIO + tables, encoding="utf-8")
    done = penstock("run", scenario)
    assert done.returncode == 0, done.stderr
    assert {"Transfers", "Calls", "Video"} <= set(done.stdout.split())
    assert "... and 4 more\n" in done.stdout
    summary = json.loads(penstock("run", scenario, "--json").stdout)
    told = [{"transfers", "voip", "video"} & flow.keys() for flow in summary["flows"]]
    assert told == [set(), set(), *[{"voip"}] * 20, {"video"}, {"transfers"}]


LOSES_ECN = """
[tcp]
ecn = true

[[flows]]
kind = "cbr"
rate = "4Mbit/s"
stop = "3s"

[[flows]]
kind = "bulk"
count = 8
start = "1s"
start_spread = "3s"
"""


def test_flows_that_lost_ecn_are_told_everywhere(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(SCENARIO.replace("20kB", "3p").replace("500ms", "0ms") + LOSES_ECN, encoding="utf-8")
    told = penstock("run", scenario, "--json")
    assert told.returncode == 0
    flows = json.loads(told.stdout)["flows"]
    assert (flows[2]["ecn_asked"], flows[2]["ecn_lost_why"]) == (0, None), "datagrams"
    lost = [flow["id"] for flow in flows if flow["ecn_lost"]]
    assert 0 < len(lost) < 8
    assert all(flow["ecn_used"] + flow["ecn_lost"] <= flow["ecn_asked"] for flow in flows)
    assert {flow["ecn_lost_why"] for flow in flows if flow["ecn_lost"]} == {"syn-retransmitted"}
    warning = f"warning: {len(lost)} of 10 flows with ecn = true go on without ECN ({', '.join(map(str, lost))}): "
    assert told.stderr.startswith(warning)
    assert "RFC 3168" in told.stderr
    shown = penstock("run", scenario, "--out", "out")
    assert warning in shown.stderr
    assert shown.stdout.count("lost: SYN retransmitted") == len(lost)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("<td>lost: SYN retransmitted</td>") == len(lost)
    assert warning.removeprefix("warning") in page
    scenario.write_text(SCENARIO, encoding="utf-8")
    without = penstock("run", scenario)
    assert "ECN" not in without.stdout + without.stderr


def test_the_part_of_a_second_at_the_end_has_its_row(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(SCENARIO.replace('"5s"', '"2250ms"'), encoding="utf-8")
    assert penstock("run", scenario, "--out", "out").returncode == 0
    table = columns.from_parquet((tmp_path / "out" / "queue_seconds.parquet").read_bytes()).to_pydict()
    assert table["t_s"] == [1.0, 2.0, 2.25]
    # Two greedy flows: the link is busy, and a rate over a quarter of a second is still a rate.
    assert 1.9e6 < table["throughput_bps"][2] <= 2e6


def test_without_out_the_same_run_lands_in_the_same_place(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    for seed in ("1", "1", "2"):
        assert penstock("run", scenario, "--seed", seed).returncode == 0
    assert len(list((tmp_path / "runs").glob("small-*/manifest.json"))) == 2


def test_rerun_gives_the_same_bytes(penstock: Command, scenario: Path) -> None:
    assert penstock("run", scenario, "--out", "out").returncode == 0
    done = penstock("rerun", "out", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"same": True, "versions_changed": {}, "differences": []}


# Whatever is recorded of a run: options of the command, and keys of the scenario.
WATCHED = {
    "pcapng": (["--pcapng", "p.pcapng"], ""),
    "csv": (["--pcapng", "p.csv"], ""),
    "key": ([], '[output]\npcapng = ["bottleneck"]\n'),
    "no series": ([], "[output]\nseries = false\n"),
    "invariant": ([], '[invariants]\nmax_queue = "1MB"\n'),
    "json": (["--json", "--seed", "0"], ""),
}


@pytest.mark.parametrize("name", WATCHED)
def test_watching_changes_no_result_and_rerun_says_so(
    penstock: Command, scenario: Path, tmp_path: Path, name: str
) -> None:
    options, keys = WATCHED[name]
    seed = options[-2:] if "--seed" in options else []
    alone = json.loads(penstock("run", scenario, "--json", *seed).stdout)
    scenario.write_text(SCENARIO + keys)
    assert penstock("run", scenario, "--out", "out", *options).returncode == 0
    watched = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert watched == {key: value for key, value in alone.items() if key != "cpu_s"}
    done = penstock("rerun", "out")
    assert (done.returncode, "same: summary.json" in done.stdout) == (0, True), done.stdout


def test_the_manifest_has_the_options(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    assert penstock("run", scenario, "--out", "out", "--seed", "0", "--pcapng", "p.pcapng", "--json").returncode == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["options"] == {"seed": 0, "pcapng": "p.pcapng", "out": "out", "json": True}


def test_rerun_names_each_key_that_differs(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    assert penstock("run", scenario, "--out", "out").returncode == 0
    summary = tmp_path / "out" / "summary.json"
    text = summary.read_text()
    values = json.loads(text)
    events = values["events"]
    values["events"] += 100
    values["flows"][1]["cc"] = "other"
    values["flows"].append({"id": 2})
    del values["jain"]["overall"]
    summary.write_text(json.dumps(values))
    done = penstock("rerun", "out")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "different: summary.json has changed in 4 keys"
    assert f"  events: {events + 100} then, {events} now (-100, {-10_000 / (events + 100):+.3g} %)" in lines
    assert '  flows[1].cc: "other" then, "cubic" now' in lines
    assert '  flows[2]: {"id": 2} then, missing now' in lines
    assert any(line.startswith("  jain.overall: missing then, ") for line in lines)
    told = {one["key"]: one["by"] for one in json.loads(penstock("rerun", "out", "--json").stdout)["differences"]}
    assert told.keys() == {"events", "flows[1].cc", "flows[2]", "jain.overall"}
    assert told["events"] == pytest.approx(-100 / (events + 100))
    assert told["flows[1].cc"] is None
    summary.write_text(text.replace("\n", ""))
    assert "the same values in another form" in penstock("rerun", "out").stdout


def test_rerun_tells_when_the_numbers_are_others(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    assert penstock("run", scenario, "--out", "out").returncode == 0
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    manifest["scenario"] = SCENARIO.replace('"20kB"', '"9kB"')
    manifest["versions"]["core"] = "0.0.1"
    refused = manifest | {"versions": {}}
    (tmp_path / "out/manifest.json").write_text(json.dumps(refused))
    assert "manifest.json: scenario is not that of the run" in message(penstock("rerun", "out"))
    manifest["scenario_sha256"] = hashlib.sha256(manifest["scenario"].encode()).hexdigest()
    (tmp_path / "out/manifest.json").write_text(json.dumps(manifest))
    done = penstock("rerun", "out")
    assert done.returncode == 1
    assert "core: 0.0.1 then" in done.stdout
    assert "different" in done.stdout


def test_the_report_needs_nothing_from_outside(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    assert penstock("run", scenario, "--out", "out").returncode == 0
    (tmp_path / "out/report.html").unlink()
    done = penstock("report", "out")
    assert done.stdout.strip() == "out/report.html"
    page = (tmp_path / "out/report.html").read_text()
    assert page.count('<figure class="chart">') == 7  # of which two show distributions
    assert "http://" not in page
    assert "https://" not in page
    assert not re.search(r"<(link|iframe|script src|img src=.(?!data:))", page)


def test_packets_are_written_as_pcapng(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    assert penstock("run", scenario, "--json", "--pcapng", "packets.pcapng").returncode == 0
    # The magic number of a section header block.
    assert (tmp_path / "packets.pcapng").read_bytes()[:4] == bytes.fromhex("0a0d0d0a")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SCENARIO.replace('"2Mbit/s"', '"2Mbit"x'), "small.toml:7"),
        (SCENARIO.replace('rate = "2Mbit/s"', "rate = 2"), "Mbit/s"),
        (SCENARIO.replace("limit =", "limitt ="), "limitt"),
        (SCENARIO.replace('"droptail"', '"droptial"'), "droptail"),
        (SCENARIO.replace('"bulk"', '"bulky"'), "bulk"),
        ("", "duration"),
        ('duration = "5s"\n', "topology"),
    ],
)
def test_a_mistake_is_one_message_that_helps(penstock: Command, scenario: Path, text: str, told: str) -> None:
    scenario.write_text(text)
    said = message(penstock("run", scenario))
    assert "small.toml" in said
    assert told in said
    assert not (scenario.parent / "runs").exists() or not list((scenario.parent / "runs").iterdir())


def test_files_that_cannot_be_read_are_named(penstock: Command, tmp_path: Path) -> None:
    assert "nowhere.toml: cannot be read: No such file" in message(penstock("run", "nowhere.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    assert "byte 0 is not UTF-8" in message(penstock("run", "binary.toml"))
    assert "not a run directory" in message(penstock("rerun", tmp_path))
    assert "no results yet" in message(penstock("report"))
    assert "holds neither" in message(penstock("report", tmp_path))


def test_options_out_of_range_are_refused(penstock: Command, scenario: Path) -> None:
    for seed in ("-1", str(2**64), "one"):
        assert "--seed" in message(penstock("run", scenario, "--seed", seed))
    unknown = message(penstock("reproduce", "pink-wan"))
    assert "did you mean pink-sat?" in unknown
    assert all(name in unknown for name in ("pink-dsl", "hfs", "friendliness"))
    assert "--run" in message(penstock("claims", "--quick"))


def test_an_invariant_that_breaks_is_a_failed_check(penstock: Command, scenario: Path) -> None:
    scenario.write_text(SCENARIO + "\n[invariants]\nno_drops = true\n")
    done = penstock("run", scenario)
    assert done.returncode == 1
    assert "drop" in done.stderr
    assert "Traceback" not in done.stderr


def test_there_is_a_version(penstock: Command) -> None:
    assert penstock("--version").stdout.startswith("penstock 0.")
