"""The README is short, its commands run, and its picture is that of the runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import penstock

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_has_at_most_ninety_lines() -> None:
    assert len(README.splitlines()) <= 90


def test_each_of_its_commands_runs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "check" / "page-commands", "README.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("ok   README.md: penstock ") == 4


def test_its_picture_tells_what_a_run_gives() -> None:
    """The means of 20 seeds are near a run with another seed: those of the scenario with the names of the picture."""
    told = re.search(r"drop-tail \(today\) MOS ([\d.]+)(?: ± [\d.]+)?, pages (\d+) ", README)
    assert told is not None
    tree = penstock.scenario.tree((ROOT / "examples" / "home-line.toml").read_text(encoding="utf-8"))
    flows = penstock.run(tree, seed=77).summary["flows"]
    call = next(flow["voip"] for flow in flows if "voip" in flow)
    pages = next(flow["transfers"] for flow in flows if "transfers" in flow)
    assert abs(call["mos"] - float(told[1])) < 0.1
    assert abs(pages["completion_ms"]["p50"] - float(told[2])) < 0.25 * float(told[2])
    shown = (ROOT / "docs" / "images" / "home-line.svg").read_text(encoding="utf-8")
    assert f">{told[1]}</text>" in shown
    assert f">{told[2]}</text>" in shown
