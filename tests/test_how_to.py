"""The how-to pages: commands and Python run as written, in an empty directory, and do what the page says."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from penstock import manual, testbed

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md"))
MOST_LINES = 10
# What each page promises: words of what it prints, and files that are there afterwards.
PROMISED: dict[str, tuple[list[str], list[str]]] = {
    "compare": (["voip mos", "better"], ["delay.pdf"]),
    "sweep": (["[", "queue delay"], ["buffers/report.html", "buffers/results.parquet", "buffers/intervals.parquet"]),
    "capture": (["open loop", "recommended: "], ["capture.pcapng", "runs/what-if-capture/report.html"]),
    "pandas": (["fq-codel", "Name: queue_delay_p90_ms"], ["delay.pdf"]),
    "own-aqm": (["pink-dsl", "pink ", "Step "], ["step.py"]),
    "cluster": (["flows.0.count", "mean_low"], []),
    "namespaces": (["Mbits/sec", "fq-codel"], []),
    "uplink": (["0.095 Mbit/s", "among 20 hosts"], ["token.txt"]),
    "live": (["set after", "aqm.target=10ms"], []),
    "linux": (["cubic-10M-40ms-codel-1"], []),
    "wire": (["controls: cubic", "one seed"], ["sim/summary.json", "wire/report.html"]),
    "starlink": (["queue delay p90 ms", "difference"], ["dish.csv"]),
    "export": (
        ["reproduced byte for byte"],
        ["home-export/flows.csv", "home-export/flows.tex", "home-export/flow-0.qlog", "home.zip"],
    ),
}
BY_NOTEBOOK = {"notebook"}  # its blocks are cells: tests/test_notebooks.py


def blocks(page: Path) -> list[tuple[str, str]]:
    """The blocks of a page: language and text."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_short_and_in_the_index(page: Path) -> None:
    found = blocks(page)
    assert {language for language, _ in found} <= {"sh", "python"}
    lines = [line for _, text in found for line in text.splitlines() if line.strip()]
    assert 0 < len(lines) <= MOST_LINES
    assert f"](how-to/{page.stem}.md)" in manual.find("how-to").text
    assert manual.find(f"how-to/{page.stem}").path == page
    assert page.stem in PROMISED.keys() | BY_NOTEBOOK


def impossible(text: str) -> str:
    """Why the commands of a page cannot run here; empty if they can."""
    if "distributed" in text:
        pytest.importorskip("distributed")
    if not any(word in text for word in ("penstock-emulate", "penstock-gateway", "tcp-linux", "--on wire")):
        return ""
    return testbed.impossible("iperf3") or ""


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_the_commands_of_a_page_run_as_written(name: str, tmp_path: Path) -> None:
    found = blocks(ROOT / "docs" / "how-to" / f"{name}.md")
    if reason := impossible(" ".join(text for _, text in found)):
        pytest.skip(reason)
    try:
        printed = "".join(run(language, text, tmp_path) for language, text in found)
    finally:  # a page that failed may leave its namespaces
        for namespace in re.findall(r"ip netns add ([a-z-]+)", str(found)):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)
    words, files = PROMISED[name]
    assert [word for word in words if word not in printed] == [], printed
    assert [file for file in files if not (tmp_path / file).is_file()] == []


def run(language: str, text: str, folder: Path) -> str:
    """Runs a block with the commands of this checkout, and returns what it printed. What it leaves running is ended."""
    (folder / "block").write_text(text)
    command = [sys.executable, "block"] if language == "python" else ["bash", "-euo", "pipefail", "-c", text]
    places = [str(Path(sys.executable).parent), str(ROOT / "target" / "release"), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(places), "COLUMNS": "160", "MPLBACKEND": "agg"}
    with (folder / "printed.txt").open("w+") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = process.wait(timeout=180)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        out.seek(0)
        printed = out.read()
    assert code == 0, printed
    return printed
