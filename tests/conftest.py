"""What the tests share: a small scenario, and the command as a person would call it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]

SCENARIO = """\
name = "small"
duration = "5s"
warmup = "1s"

[topology]
kind = "dumbbell"
rate = "2Mbit/s"
delay = "10ms"
limit = "20kB"

[aqm]
name = "droptail"

[[flows]]
kind = "bulk"
count = 2
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Five seconds of two flows on a slow link."""
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def penstock(tmp_path: Path) -> Command:
    """Runs `penstock ...` in an empty directory."""

    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "penstock", *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    return call


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three packets of 1000 B that come together: a link of 8 Mbit/s takes one each millisecond."""
    path = tmp_path / "trace.csv"
    path.write_text("t_ns,flow,size,ecn\n0,1,1000,0\n0,1,1000,0\n0,2,1000,0\n")
    return path
