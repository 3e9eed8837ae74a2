"""A kernel in a jar: a user-mode Linux in virtual time, booted for one program. `tools/pack/jar` builds one.

In the jar, work takes no time and the clock jumps to the next event when all sleep. So nothing is late there, however
busy the machine is, and a run takes as long as its computation. Its file system is that of this machine, read only,
with one directory for what comes out. It needs no root.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock import store
from penstock.mistake import MistakeError

__all__ = ["ENVIRONMENT", "Jar", "find", "opened"]

ENVIRONMENT = "PENSTOCK_JAR"
_HERE = Path(__file__).parent
_BUILT = _HERE.parents[2] / "build" / "jar" / "linux"  # where `tools/pack/jar` puts it
MEMORY_MB = 1500
_ASKED = 2  # grows with what a kernel is asked of itself
_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")


def find() -> Path:
    """Returns the kernel that PENSTOCK_JAR names, or the one that `tools/pack/jar` has built."""
    if given := os.environ.get(ENVIRONMENT):
        return Path(given)
    if _BUILT.is_file():
        return _BUILT
    raise MistakeError(
        "--on jar needs a user-mode Linux: `tools/pack/jar` builds one in about eight minutes, and "
        f"{ENVIRONMENT}=FILE names one that is elsewhere"
    )


def opened(linux: Path, named: str) -> Jar:
    """Returns the jar of a kernel; `named` is the option that named it."""
    if not os.access(linux, os.X_OK) or not linux.is_file():
        raise MistakeError(f"{named} {linux}: no such program; `tools/pack/jar` builds a user-mode Linux")
    return Jar(linux.resolve())


class Jar:
    """A user-mode Linux that is booted for each program, and ends with it."""

    def __init__(self, linux: Path) -> None:
        self.linux = linux

    @property
    def version(self) -> str:
        """The version of the kernel without the suffix of a distribution."""
        return str(self._about["version"]).split("-")[0]

    @property
    def controls(self) -> list[str]:
        """The names of its congestion controls."""
        return list(self._about["controls"])

    @property
    def disciplines(self) -> list[str]:
        """The kinds of queue disciplines which it has, as `tc` calls them."""
        return list(self._about["disciplines"])

    @cached_property
    def _about(self) -> dict[str, Any]:
        """What the kernel says of itself; a file in the user's cache keeps it, so that it is booted once for this."""
        stat = self.linux.stat()
        known = (
            _cache() / f"{store.sha256(f'{_ASKED} {self.linux} {stat.st_mtime_ns} {stat.st_size}'.encode())[:16]}.json"
        )
        try:
            found: dict[str, Any] = json.loads(known.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = self._ask()
            with contextlib.suppress(OSError, MistakeError):  # it is asked again next time
                store.write(known, json.dumps(found))
        return found

    def _ask(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="penstock-jar-") as directory:
            output = self.run(_HERE / "about.py", Path(directory))
        for line in output.splitlines():
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise MistakeError(f"{self.linux} is no user-mode Linux that boots here: {last_lines(output)}")

    def run(
        self,
        program: Path,
        directory: Path,
        on_line: Callable[[str], None] = lambda _line: None,
        memory_mb: int = MEMORY_MB,
    ) -> str:
        """Boots the kernel for a program in Python, which is given `directory`; returns all that was printed.

        `on_line` gets each line when it is printed. The processes of the jar end with this call in any case. The kernel
        has so much memory; this machine gives it what it touches.
        """
        words = {"JAR_DIRECTORY": directory.resolve(), "JAR_PYTHON": sys.executable, "JAR_PROGRAM": program}
        child = subprocess.Popen(
            [
                *(_WITH_PARENT if shutil.which(_WITH_PARENT[0]) else ()),
                str(self.linux),
                *_boot_line(directory, words, memory_mb),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
            errors="replace",
        )
        printed = []
        try:
            assert child.stdout is not None
            for line in child.stdout:
                printed.append(line)
                on_line(line.rstrip())
            child.wait()
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        return "".join(printed)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "jars"


def last_lines(output: str) -> str:
    """Returns the end of what a kernel printed, on one line."""
    return " | ".join(output.splitlines()[-4:])


def _boot_line(directory: Path, words: Mapping[str, object], memory_mb: int) -> list[str]:
    """Returns the words of the kernel's command line. Those which it does not know become the environment of init."""
    return [
        *(f"mem={memory_mb}M", "time-travel=inf-cpu", "quiet", "panic=-1"),
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
        *("con=null", "con0=null,fd:1", "ssl=null", f"uml_dir={directory.resolve()}/", "umid=jar"),
        f"init={_HERE / 'init.sh'}",
        *(f"{name}={value}" for name, value in words.items()),
    ]
