"""The kernels whose TCP is compared: that of this machine, and a user-mode Linux in virtual time (`penstock.jar`)."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from penstock import jar, store
from penstock.testbed import LabError
from penstock.verify import recording

Tick = Callable[[float], None]


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
        self._jar = jar.opened(linux, "--jar")

    @property
    def label(self) -> str:
        """The version of the kernel, and that its time is virtual."""
        return f"Linux {self._jar.version} in virtual time"

    @property
    def controls(self) -> list[str]:
        """The names of its congestion controls."""
        return self._jar.controls

    def record(self, wanted: dict[str, Any], directory: Path, tick: Tick) -> dict[str, Any]:
        """Boots the kernel for one run, which ends with it. `tick` is told the virtual time when all of it is over."""
        directory = directory.resolve()
        store.write(directory / "wanted.json", json.dumps(wanted))
        output = self._jar.run(Path(recording.__file__), directory)
        file = directory / "recorded.json"
        if not file.is_file():
            raise LabError(f"{self._jar.linux.name} ended without a result: {jar.last_lines(output)}")
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if "error" in found:
            raise LabError(f"in the jar: {found['error']}")
        tick(wanted["send"]["duration_s"])
        return found
