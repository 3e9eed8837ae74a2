"""Links that change as a file says: it is found, kept, and told of when it is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock as lab
import pytest
from conftest import Command
from penstock import provenance
from penstock.scenario import to_toml

# 10 packets in 100 ms, nothing for 400 ms, then two at once.
TRACE = "".join(f"{ms}\n" for ms in [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 500, 500])
TABLE = "t_s,rate_mbit_s,delay_ms,loss\n0,8,10,0\n2,4,40,0.25\n"


def tree(**change: Any) -> dict[str, Any]:
    """A stream that is faster than the link, whose rate changes."""
    return {
        "name": "recorded",
        "duration": "10s",
        "topology": {"kind": "dumbbell", "rate": "3Mbit/s", "delay": "10ms", "limit": "60kB"},
        "flows": [{"kind": "cbr", "rate": "20Mbit/s"}],
        "changes": [{"link": "bottleneck", **change}],
    }


def rows(result: lab.Result) -> list[dict[str, Any]]:
    """What became of the link, forward."""
    found: list[dict[str, Any]] = result.tables["link_changes"].to_pylist()
    return [row for row in found if not row["reverse"]]


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes files, and a scenario beside them whose link changes."""

    def written(files: dict[str, str], **change: Any) -> Path:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        path = tmp_path / "recorded.toml"
        path.write_text(to_toml(tree(**change)))
        return path

    return written


def test_a_trace_is_found_beside_the_scenario(write: Write) -> None:
    result = lab.run(write({"cell.mahi": TRACE}, trace="cell.mahi"))
    first = [(row["t_s"], row["rate_bps"]) for row in rows(result)[:3]]
    assert first == [(0, 1_200_000), (0.1, 60_000), (0.5, 1_200_000)]
    # 12 packets of 1500 B in each half second; the first comes 0.1 ms late, when a hundredth of one could have gone.
    bits = result.summary["bottlenecks"][0]["throughput_bps"] * 10
    assert bits == pytest.approx(12 * 20 * 12_000, abs=12_000)
    assert result.own_files == {"cell.mahi": TRACE}


def test_a_trace_with_its_two_rates_carries_their_mean(write: Write) -> None:
    # 3 Mbit/s for a second, then 12.
    text = "".join(f"{ms}\n" for ms in range(1, 2001) if ms % 4 == 0 or ms > 1000)
    throughput = lab.run(write({"cell.mahi": text}, trace="cell.mahi")).summary["bottlenecks"][0]["throughput_bps"]
    assert throughput == pytest.approx(7.5e6, rel=0.02)


def test_a_table_is_found_in_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sky.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    found = rows(lab.run(tree(table="sky.csv", every="5s")))
    assert [row["t_s"] for row in found] == [0, 2, 5, 7, 10]
    assert [row["loss"] for row in found] == [0, 0.25, 0, 0.25, 0]
    assert [row["delay_s"] for row in found[:2]] == [0.01, 0.04]


def test_one_change_can_be_one_direction(write: Write) -> None:
    table = lab.run(write({"sky.csv": TABLE}, table="sky.csv", direction="reverse")).tables["link_changes"]
    assert set(table["reverse"].to_pylist()) == {1}
    assert set(table["link"].to_pylist()) == {0}


def test_the_page_shows_series_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "reference" / "scenarios.md").read_text(encoding="utf-8")
    (block,) = (block for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "orbit = " in block)
    (tmp_path / "cell.mahi").write_text(TRACE)
    (tmp_path / "dish.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    names = ["satellite", "cell", "dish", "car"]
    links = [{"name": n, "a": f"a{n}", "b": f"b{n}", "rate": "5Mbit/s", "delay": "9ms"} for n in names]
    flow = {"kind": "bulk", "from": "acar", "to": "bcar"}
    scenario = {"duration": "9s", "topology": {"kind": "graph", "links": links}, "flows": [flow]}
    result = lab.run(to_toml(scenario) + "\n" + block)
    assert set(result.tables["link_changes"]["link"].to_pylist()) == {0, 1, 2, 3}
    assert result.own_files.keys() == {"cell.mahi", "dish.csv"}


@pytest.mark.parametrize("name", ["cell.mahi", "traces/night/cell.mahi", "../outside/cell.mahi", "absolute"])
def test_a_run_can_be_made_again_without_the_file(penstock: Command, tmp_path: Path, write: Write, name: str) -> None:
    outside = tmp_path.parent / "outside"
    name = str(tmp_path / "far" / "cell.mahi") if name == "absolute" else name
    write({name: TRACE}, trace=name)
    assert penstock("run", "recorded.toml", "--out", "out").returncode == 0
    versions = json.loads((tmp_path / "out" / "manifest.json").read_text())["versions"]
    assert versions[name] == provenance.sha256(TRACE)
    (tmp_path / name).write_text(TRACE.replace("20\n", "25\n"))
    changed = penstock("rerun", "out", "--json")
    assert json.loads(changed.stdout)["versions_changed"].keys() == {name}
    (tmp_path / name).unlink()
    again = penstock("rerun", "out")
    assert (again.returncode, "same" in again.stdout) == (0, True), again.stderr
    copies = [path for path in (tmp_path / "out" / "own").rglob("*") if path.is_file()]
    assert [path.read_text() for path in copies] == [TRACE]
    assert not outside.exists() or not any(outside.iterdir()), "nothing is written outside"


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (b"1\nx\n", 'cell.mahi:2: "x" is not a whole number of milliseconds'),
        (b"5\n3\n", "cell.mahi:2: 3 ms comes before 5 ms"),
        (b"\x00\xff\xfe", "cell.mahi: not a text: byte 1 is not UTF-8"),
        (None, "there is no file cell.mahi beside the scenario or in the current directory"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_at_its_line(
    write: Write, tmp_path: Path, file: bytes | None, told: str
) -> None:
    scenario = write({}, trace="cell.mahi")
    if file is not None:
        (tmp_path / "cell.mahi").write_bytes(file)
    with pytest.raises(lab.ScenarioError) as error:
        lab.run(scenario)
    assert told in str(error.value)
    line = scenario.read_text().splitlines().index('trace = "cell.mahi"') + 1
    assert f"recorded.toml:{line}:" in str(error.value)


def test_a_file_that_is_too_large_is_not_read(write: Write, tmp_path: Path) -> None:
    scenario = write({}, trace="cell.mahi")
    with (tmp_path / "cell.mahi").open("wb") as large:
        large.truncate(64 * 2**20 + 1)
    with pytest.raises(lab.ScenarioError, match="has 67108865 bytes; allowed are 67108864"):
        lab.run(scenario)


def test_a_change_without_a_series_has_its_row_too() -> None:
    found = rows(lab.run(tree(at="4s", rate="1Mbit/s")))
    assert [(row["t_s"], row["rate_bps"]) for row in found] == [(0, 3_000_000), (4, 1_000_000)]


def test_nothing_is_kept_of_links_that_stay_or_without_series() -> None:
    still, silent = tree(at="4s", rate="1Mbit/s"), tree(at="4s", rate="1Mbit/s")
    del still["changes"]
    silent["output"] = {"series": False}
    assert all("link_changes" not in lab.run(one).tables for one in (still, silent))


def test_the_report_shows_how_links_change(penstock: Command, write: Write, tmp_path: Path) -> None:
    write({"sky.csv": TABLE}, table="sky.csv", every="5s")
    assert penstock("run", "recorded.toml", "--out", "out").returncode == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert ">Rate of links that change<" in page
