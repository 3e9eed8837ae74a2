"""What the tests share: a small scenario, and the command as a person would call it."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from penstock.mistake import MistakeError
from penstock.wire import world

Command = Callable[..., subprocess.CompletedProcess[str]]


def _no_wire() -> str:
    """Why nothing can be played on the wire here; empty if it can."""
    try:
        world.require()
    except MistakeError as error:
        return str(error)
    return ""


on_wire = pytest.mark.skipif(bool(_no_wire()), reason=_no_wire() or "real packets")

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
start_spread = "500ms"  # what the seed decides
"""


def commands(page: str) -> list[list[str]]:
    """The commands in the first block of a page, at most ten, as words without `penstock`."""
    text = (Path(__file__).parents[1] / "docs" / f"{page}.md").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    penstock ")]
    block = lines[: next((n for n, line in enumerate(lines) if "[" in line), len(lines))]
    assert 0 < len(block) <= 10
    return [shlex.split(line, comments=True)[1:] for line in block]


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


# Variants of quick forms that tests look at. That all of them are scenarios is tested without running them.
VARIANTS = {
    "ern": "late-starts,all-marked,certain-drops",
    "fq-pie": "udp-28",
    "lindrop": "falling-steps",
    "modified-codel": "interval-30ms,law-alone,departure-rate",
    "tempest-twfi": "all",
}


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs the quick form of an experiment with some variants, once for all processes: what it printed, and where."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "quick"
    root.mkdir(exist_ok=True)

    def run(name: str) -> tuple[dict[str, Any], Path]:
        out, printed = root / name, root / f"{name}.json"
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be running it
            if not printed.exists():
                command = [sys.executable, "-m", "penstock", "reproduce", name, "--quick", "--json", "--out", str(out)]
                variants = VARIANTS.get(name, "none")
                command += [] if variants == "all" else ["--variants", variants]
                ran = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=900, check=False)
                assert ran.returncode == 0, ran.stderr
                printed.write_text(ran.stdout)
        return json.loads(printed.read_text()), out

    return run


@pytest.fixture(scope="session")
def verdicts(quick: Any) -> Any:
    """The verdicts of a quick form, by the claims' ids without the experiment's name."""

    def of(name: str) -> dict[str, str]:
        return {claim["id"].split(".", 1)[1]: claim["verdict"] for claim in quick(name)[0]["claims"]}

    return of
