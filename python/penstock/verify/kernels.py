"""The kernels whose TCP is compared: that of this machine, and a user-mode Linux in virtual time (the jar).

In the jar, work takes no time and the clock jumps to the next event when all sleep. So nothing is late there, however
busy the machine is, and a run takes as long as its computation. `tools/jar` builds one.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from penstock import store
from penstock.mistake import MistakeError
from penstock.verify import recording
from penstock.verify.recording import LabError

Tick = Callable[[float], None]
_HERE = Path(__file__).parent
_MEMORY = "1500M"


class Kernel(Protocol):
    """A kernel through which runs are recorded."""

    @property
    def label(self) -> str:
        """The kernel, as tables name it."""

    @property
    def controls(self) -> list[str]:
        """The names of its congestion controls."""

    def record(self, wanted: dict[str, Any], directory: Path, tick: Tick) -> dict[str, Any]:
        """Executes one run, and returns what its programs printed; `packets.csv` comes into the directory."""


class Host:
    """The kernel of this machine, in real time."""

    @property
    def label(self) -> str:
        """The version of the kernel without the suffix of a distribution."""
        return f"Linux {platform.release().split('-')[0]}"

    @cached_property
    def controls(self) -> list[str]:
        """The names of its congestion controls."""
        return list(recording.about()["controls"])

    def record(self, wanted: dict[str, Any], directory: Path, tick: Tick) -> dict[str, Any]:
        """Executes one run in real time."""
        return recording.record(wanted, directory, tick)


class Jar:
    """A user-mode Linux in virtual time, whose file system is that of this machine, read only."""

    def __init__(self, linux: Path) -> None:
        if not os.access(linux, os.X_OK):
            raise MistakeError(f"--jar {linux}: no such program; `tools/jar` builds a user-mode Linux")
        self._linux = linux.resolve()

    @property
    def label(self) -> str:
        """The version of the kernel, and that its time is virtual."""
        return f"Linux {self._about['version'].split('-')[0]} in virtual time"

    @property
    def controls(self) -> list[str]:
        """The names of its congestion controls."""
        return list(self._about["controls"])

    @cached_property
    def _about(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="penstock-jar-") as directory:
            return self.record({}, Path(directory), lambda _: None)

    def record(self, wanted: dict[str, Any], directory: Path, tick: Tick) -> dict[str, Any]:
        """Boots the kernel for one run, which ends with it. `tick` is told the virtual time when all of it is over."""
        directory = directory.resolve()
        store.write(directory / "wanted.json", json.dumps(wanted))
        output = self._boot(directory)
        file = directory / "recorded.json"
        if not file.is_file():
            raise LabError(f"{self._linux.name} ended without a result: {' | '.join(output.splitlines()[-4:])}")
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if "error" in found:
            raise LabError(f"in the jar: {found['error']}")
        if wanted:
            tick(wanted["send"]["duration_s"])
        return found

    def _boot(self, directory: Path) -> str:
        """Runs the kernel until it ends; returns what it printed. Its processes end with this block in any case."""
        child = subprocess.Popen(
            [str(self._linux), *_boot_line(directory)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
            errors="replace",
        )
        try:
            return child.communicate()[0]
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def _boot_line(directory: Path) -> list[str]:
    """Returns the words of the kernel's command line. Those which it does not know become the environment of init."""
    return [
        *(f"mem={_MEMORY}", "time-travel=inf-cpu", "quiet", "panic=-1"),
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
        *("con=null", "con0=null,fd:1", "ssl=null", f"uml_dir={directory}/", "umid=jar"),
        f"init={_HERE / 'jar.sh'}",
        *(f"JAR_DIRECTORY={directory}", f"JAR_PYTHON={sys.executable}", f"JAR_PROGRAM={_HERE / 'recording.py'}"),
    ]
