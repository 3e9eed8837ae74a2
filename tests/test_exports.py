"""Exports of a run: CSV, LaTeX, PDF and qlog; and the archive that is repeated elsewhere."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, commands
from penstock import engine, rundir
from penstock.cli import app
from penstock.experiments import results as sweeps
from penstock.exports import pack, qlog, tables
from penstock.exports import run as exports
from penstock.mistake import MistakeError
from penstock.report import run_tables
from penstock.report.kit.model import Cell
from typer.testing import CliRunner


@pytest.fixture
def run(scenario: Path, tmp_path: Path) -> Path:
    """The directory of a run of five seconds with two flows."""
    rundir.write(engine.run(scenario), tmp_path / "small")
    return tmp_path / "small"


def test_csv_has_what_the_summary_and_the_tables_have(run: Path) -> None:
    made = exports.files(run, ["csv"])
    of_tables = ["flow_seconds.csv", "queue_delays.csv", "queue_seconds.csv", "round_trips.csv"]
    assert sorted(made) == sorted(["bottlenecks.csv", "flows.csv", "run.csv", *of_tables])

    def rows(name: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(str(made[name]))))

    kept = rundir.read(run, tables=True)
    for name in ("bottlenecks", "flows"):
        for row, one in zip(rows(f"{name}.csv"), kept.summary[name], strict=True):
            assert {key: str(value) if value is not None else "" for key, value in tables.flat(one)} == row
    seconds = rows("flow_seconds.csv")
    assert [float(row["goodput_bps"]) for row in seconds] == kept.tables["flow_seconds"]["goodput_bps"].to_pylist()
    assert rows("run.csv")[0]["jain.overall"] == str(kept.summary["jain"]["overall"])


TALK = """
duration = "900ms"
[topology]
kind = "graph"
links = [
  { name = "there", a = "a", b = "b", rate = "1Mbit/s", delay = "10ms", limit = "20p", bottleneck = true },
  { name = "idle", a = "b", b = "c", rate = "1Mbit/s", delay = "10ms", limit = "20p", bottleneck = true },
]
[[flows]]
kind = "voip"
from = "a"
to = "b"
[[flows]]
kind = "voip"
start = "2s"
from = "a"
to = "c"
[[flows]]
kind = "transfer"
size = "10kB"
start = "2s"
from = "a"
to = "b"
"""


def test_what_was_not_measured_is_missing_in_every_format(tmp_path: Path, penstock: Command) -> None:
    """A call has no round trips; the second call and the transfer begin after the end; there is no whole second."""
    (tmp_path / "talk.toml").write_text(TALK)
    done = penstock("run", "talk.toml", "--out", "talk")
    assert done.returncode == 0, done.stderr
    assert "Jain" not in done.stdout
    shown = [line.split() for line in done.stdout.splitlines() if line.split()[1:2] in (["voip"], ["transfer"])]
    assert [words[4] == "-" for words in shown] == [False, True, True], done.stdout
    summary = rundir.read(tmp_path / "talk").summary
    assert [flow["goodput_bps"] is None for flow in summary["flows"]] == [False, True, True]
    assert [flow["delivered_bytes"] == 0 for flow in summary["flows"]] == [False, True, True], "a count of nothing is 0"
    nothing = dict.fromkeys(("min", "mean", "p10", "p50", "p90", "p99"))
    assert [flow["rtt_ms"] for flow in summary["flows"]] == [nothing] * 3
    assert summary["rtt_ms"] == nothing
    assert summary["jain"] == dict.fromkeys(("overall", "mean_1s", "worst_1s"))
    assert set(summary["goodput_1s_bps"].values()) == {None}
    call, silent = (flow["voip"] for flow in summary["flows"][:2])
    assert call["loss"] == 0.0, "nothing was lost, which was measured"
    assert 1 < call["mos"] <= 4.5
    assert [silent[key] for key in ("loss", "playout_ms", "late", "r", "mos")] == [None] * 5
    assert set(silent["delay_ms"].values()) == set(silent["jitter_ms"].values()) == {None}
    assert {link["name"]: link["queue_delay_ms"]["p90"] is None for link in summary["bottlenecks"]} == {
        "there": False,
        "idle": True,
    }
    made = exports.files(tmp_path / "talk", ["csv", "latex"])
    rows = list(csv.DictReader(io.StringIO(str(made["flows.csv"]))))
    assert {row["rtt_ms.p50"] for row in rows} == {""}
    assert [row["goodput_bps"] == "" for row in rows] == [False, True, True]
    assert [row["voip.mos"] == "" for row in rows] == [False, True, True]
    latex = [line for line in str(made["flows.tex"]).splitlines() if " & voip & " in line]
    assert all(line.split(" & ")[4:6] == ["--", "--"] for line in latex), latex
    assert [line.split(" & ")[3] == "--" for line in latex] == [False, True], latex
    seconds = list(csv.DictReader(io.StringIO(str(made["queue_seconds.csv"]))))
    assert {row["queue_delay_ms_mean"] for row in seconds if row["queue"] == "1"} == {""}
    tables_of_run = rundir.read(tmp_path / "talk", tables=True).tables
    assert tables_of_run["flow_seconds"]["cwnd_bytes"].null_count == tables_of_run["flow_seconds"].num_rows
    assert tables_of_run["queue_seconds"]["queue_delay_ms_mean"].null_count > 0
    table = [[cell.text for cell in row if isinstance(cell, Cell)] for row in run_tables.by_kind(summary).rows]
    [talk, transfer] = table  # number, goodput of all, of the median, of the least, of the most
    assert transfer[1:5] == ["–"] * 4 and talk[1] == talk[3] != "–", "what never began is not the slowest"
    swept = penstock(
        "sweep", "talk.toml", "--seeds", "2", "--out", "swept", "--measure", "rtt_p50_ms", "--measure", "flows.mos"
    )
    assert swept.returncode == 0, swept.stderr
    for row in sweeps.load(tmp_path / "swept").results.to_pylist():
        assert row["rtt_p50_ms"] is None
        assert row["jain"] is None or row["name"] == "0 voip", "of flows that delivered nothing there is no index"
        assert row["mos"] is None or row["name"] == "0 voip"
        assert row["part"] != "flows" or (row["goodput_bps"] is None) == (row["name"] != "0 voip")


def test_latex_is_a_table_of_its_own(run: Path) -> None:
    made = exports.files(run, ["latex"])
    assert sorted(made) == ["bottlenecks.tex", "flows.tex"]
    text = str(made["bottlenecks.tex"])
    assert text.startswith("\\begin{tabular}{llrrrrrrr}\n\\toprule\nLink & Discipline")
    assert text.endswith("\\bottomrule\n\\end{tabular}\n")
    one = rundir.read(run).summary["bottlenecks"][0]
    assert f"bottleneck & droptail & {one['goodput_bps'] / 1e6:.2f} & {100 * one['utilization']:.1f} & " in text
    assert all(line.count("&") == 8 for line in text.splitlines() if line.endswith(r"\\"))
    assert tables.escaped(r"50% of a_b & \c~") == r"50\% of a\_b \& \textbackslash{}c\textasciitilde{}"


def test_figures_are_pdf_with_the_same_bytes_again(run: Path) -> None:
    made = exports.files(run, ["pdf"])
    assert sorted(made) == ["goodput.pdf", "queue.pdf"]
    assert all(bytes(data)[:5] == b"%PDF-" for data in made.values())  # type: ignore[arg-type]
    assert exports.files(run, ["pdf"]) == made


def test_a_log_has_the_form_of_qlog(run: Path) -> None:
    made = exports.files(run, ["qlog"], (1,), "20ms")
    assert list(made) == ["flow-1.qlog"]
    log = json.loads(made["flow-1.qlog"])
    assert list(log)[:2] == ["qlog_version", "qlog_format"]  # where tools look for them
    assert (log["qlog_version"], log["qlog_format"]) == ("0.4", "JSON")
    (trace,) = log["traces"]
    assert trace["common_fields"]["time_format"] == "relative"
    assert trace["vantage_point"]["type"] == "client"
    events = trace["events"]
    assert {event["name"] for event in events} == {"recovery:metrics_updated", "recovery:congestion_state_updated"}
    times = [event["time"] for event in events]
    assert times == sorted(times)
    assert times[-1] <= 5000
    assert all(event["data"] for event in events)


def test_an_event_has_what_has_changed() -> None:
    def row(t_s: float, state: str, cwnd: int, **more: Any) -> dict[str, Any]:
        given = {"ssthresh_bytes": None, "srtt_ms": 30.0, "in_flight_bytes": 0, "pacing_bps": None}
        return {
            "t_s": t_s,
            "state": state,
            "cwnd_bytes": cwnd,
            **given,
            "retransmitted_segments": 0,
            "timeouts": 0,
        } | more

    rows = [
        row(0.01, "closed", 10),
        row(0.02, "slow_start", 10),
        row(0.03, "slow_start", 10),
        row(0.04, "recovery", 5, ssthresh_bytes=5, retransmitted_segments=2),
        row(0.05, "recovery", 5, ssthresh_bytes=5, retransmitted_segments=2),
    ]
    state, metrics = "recovery:congestion_state_updated", "recovery:metrics_updated"
    first = {"congestion_window": 10, "smoothed_rtt": 30.0, "bytes_in_flight": 0}
    assert list(qlog.events(rows)) == [
        {"time": 10.0, "name": state, "data": {"new": "closed"}},
        {"time": 20.0, "name": state, "data": {"old": "closed", "new": "slow_start"}},
        {"time": 20.0, "name": metrics, "data": first},
        {"time": 40.0, "name": state, "data": {"old": "slow_start", "new": "recovery"}},
        {"time": 40.0, "name": metrics, "data": {"congestion_window": 5, "ssthresh": 5}, "retransmitted_segments": 2},
    ]


def test_an_archive_says_what_it_is(run: Path, tmp_path: Path) -> None:
    data = pack.archive(run)
    assert pack.archive(run) == data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        readme = archive.read("small/README.md").decode()
        sums = archive.read("small/SHA256SUMS").decode().splitlines()
        assert len(sums) == len(archive.namelist()) - 1
    assert "penstock runs rerun small.zip" in readme
    assert "MIT or Apache-2.0" in readme
    (tmp_path / "small.zip").write_bytes(data)
    with pack.unpacked(tmp_path / "small.zip") as place:
        assert rundir.rerun(place).same


def test_own_code_of_an_archive_is_asked_for(penstock: Command, tmp_path: Path) -> None:
    made = penstock("new", "aqm", "mine")
    assert made.returncode == 0, made.stderr
    rundir.write(engine.run(tmp_path / "mine.toml"), tmp_path / "own")
    (tmp_path / "own.zip").write_bytes(pack.archive(tmp_path / "own"))
    (tmp_path / "mine.py").unlink()
    refused = penstock("runs", "rerun", "own.zip")
    assert refused.returncode == 2
    assert "give --trust" in refused.stderr
    with pack.unpacked(tmp_path / "own.zip") as place:
        assert rundir.rerun(place).same


def test_an_archive_names_no_file_of_the_machine(penstock: Command, tmp_path: Path) -> None:
    assert penstock("new", "aqm", "mine").returncode == 0
    rundir.write(engine.run(tmp_path / "mine.toml"), tmp_path / "own")
    shutil.rmtree(tmp_path / "own" / rundir.OWN)
    assert penstock("runs", "rerun", "own", "--trust").returncode == 0, "a directory may use the original"
    (tmp_path / "own.zip").write_bytes(pack.archive(tmp_path / "own"))
    refused = penstock("runs", "rerun", "own.zip", "--trust")
    assert refused.returncode == 2
    assert "mine.py is not part of what you were sent" in refused.stderr


def test_what_was_changed_is_not_packed_and_not_repeated(run: Path, tmp_path: Path) -> None:
    data = pack.archive(run)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}

    def refused(name: str, **changed: bytes) -> str:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for file, content in {**files, **{key.replace("__", "/"): value for key, value in changed.items()}}.items():
                archive.writestr(file, content)
        with pytest.raises(MistakeError) as told, pack.unpacked(tmp_path / name):
            pass
        return str(told.value)

    assert "README.md is not that which was packed" in refused("a.zip", **{"small__README.md": b"other"})
    assert "run/more is not that which was packed" in refused("b.zip", small__run__more=b"")
    assert "no common folder" in refused("c.zip", other__x=b"")
    assert "is not that of a file in its folder" in refused("d.zip", **{"small__..__..__x": b""})
    (tmp_path / "e.zip").write_bytes(data[:-40])
    with pytest.raises(MistakeError, match=r"e\.zip: no archive"), pack.unpacked(tmp_path / "e.zip"):
        pass
    (run / "resolved.toml").write_text("other")
    with pytest.raises(MistakeError, match=r"resolved\.toml: was changed"):
        pack.archive(run)


def test_the_lines_of_the_page_run(monkeypatch: pytest.MonkeyPatch, scenario: Path, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    scenario.rename(tmp_path / "home.toml")
    for line in commands("plots"):
        words = [word.replace("0,3", "0,1") for word in line]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (line, done.output)
    assert (tmp_path / "home-export" / "goodput.pdf").is_file()
    assert (tmp_path / "logs" / "flow-1.qlog").is_file()


def test_a_sweep_is_exported_as_its_tables(penstock: Command, tmp_path: Path, scenario: Path) -> None:
    swept = penstock("sweep", scenario, "--vary", "aqm.name=codel,pie", "--seeds", "2", "--out", "swept", "--json")
    assert swept.returncode == 0, swept.stderr
    assert penstock("runs", "export", "swept", "-o", "made").returncode == 0
    rows = list(csv.DictReader((tmp_path / "made" / "intervals.csv").open()))
    expected = sweeps.load(tmp_path / "swept").intervals.to_pylist()
    assert [(row["aqm.name"], row["measure"], float(row["mean"] or 0)) for row in rows] == [
        (row["aqm.name"], row["measure"], row["mean"] or 0) for row in expected
    ]
    table = (tmp_path / "made" / "points.tex").read_text().splitlines()
    assert table[0].startswith("\\begin{tabular}{lr")
    assert [line.split(" & ")[0] for line in table[4:6]] == ["codel", "pie"]
    assert "$\\pm$" in table[4]
    assert "is exported as CSV and LaTeX" in penstock("runs", "export", "swept", "--pdf").stderr


def test_prune_keeps_the_newest(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for seed in (1, 2, 3):
        place = tmp_path / "runs" / str(seed)
        rundir.write(engine.run(scenario, seed), place)
        os.utime(place / rundir.MANIFEST, (1e9 + seed, 1e9 + seed))
    done = penstock("runs", "prune", "--keep", "2", "--dry-run")
    assert done.stdout.startswith("runs/1  ")
    assert "would be removed: 1 directory," in done.stdout
    assert penstock("runs", "prune", "--keep", "1", "--yes").returncode == 0
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["3"]
