"""Two network namespaces, the emulator between them, and programs in them, all of which end with a `with` block."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from penstock.mistake import MistakeError

_PREFIX = "penstock-verify-"
_NAMED = Path("/run/netns")
_SOURCE = Path(__file__).resolve().parents[3]
# Settings of a new namespace. They are set here, so that they do not depend on the defaults of the machine.
_SYSCTLS = ("net.ipv4.tcp_no_metrics_save=1", "net.ipv4.tcp_ecn=0", "net.ipv6.conf.all.disable_ipv6=1")
RIGHT_ADDRESS = "10.77.0.2"


class LabError(Exception):
    """A program in the lab failed. The text names it and contains its messages."""


def impossible() -> str | None:
    """Returns the reason why this machine cannot run the comparison; `None` if it can."""
    if not sys.platform.startswith("linux"):
        return "this is not Linux"
    if os.geteuid() != 0:
        return "not root: interfaces and namespaces need it"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing: `modprobe tun`, or give the container the device"
    for program in ("ip", "nsenter", "sysctl"):
        if shutil.which(program) is None:
            return f"the program {program} is missing"
    probe = f"{_PREFIX}{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespaces: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", probe], check=False)
    return None


def controls() -> list[str]:
    """Returns the names of the congestion controls that the kernel offers."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()


def find_emulator(given: Path | None) -> Path:
    """Returns the path of `penstock-emulate`: `given`, the installed one, or the newest built from this source."""
    if given is not None:
        if not os.access(given, os.X_OK):
            raise MistakeError(f"--emulator {given}: no such program")
        return given.resolve()
    if installed := shutil.which("penstock-emulate"):
        return Path(installed)
    target = Path(os.environ.get("CARGO_TARGET_DIR", _SOURCE / "target"))
    built = [path for profile in ("release", "debug") if (path := target / profile / "penstock-emulate").is_file()]
    if not built:
        raise MistakeError(
            "penstock-emulate is missing: `cargo build --release -p penstock-net` makes it; "
            "or say where it is by --emulator"
        )
    return max(built, key=lambda path: path.stat().st_mtime)


def clear_away() -> None:
    """Removes namespaces of earlier runs whose process has ended."""
    for path in _NAMED.glob(f"{_PREFIX}*") if _NAMED.is_dir() else ():
        pid = path.name.removeprefix(_PREFIX).split("-")[0]
        if not Path(f"/proc/{pid}").exists():
            subprocess.run(["ip", "netns", "delete", path.name], capture_output=True, check=False)


@contextlib.contextmanager
def namespaces() -> Iterator[tuple[str, str]]:
    """Creates two namespaces, and removes them at the end of the block; yields the names of the left and the right."""
    names = tuple(f"{_PREFIX}{os.getpid()}-{side}" for side in ("left", "right"))
    try:
        for name in names:
            _run(["ip", "netns", "add", name])
            _run([*inside(name), "sysctl", "-q", "-w", *_SYSCTLS])
        yield names[0], names[1]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def inside(namespace: str) -> list[str]:
    """Returns the beginning of a command line that runs a program in a namespace."""
    return ["nsenter", f"--net={_NAMED / namespace}"]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip()}")


class Program:
    """A child process which prints one JSON object at its end. It is ended at the latest with its `with` block."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        # The child has its own session: Ctrl-C reaches only this process, which then ends its children in order.
        self._child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdout, self._child.stderr):
            if pipe:
                pipe.close()

    def await_line(self, word: str, of_stderr: bool = False) -> None:
        """Waits until the child prints a line with `word`, which means that it is ready."""
        pipe = self._child.stderr if of_stderr else self._child.stdout
        assert pipe is not None
        line = pipe.readline()
        if word not in line:
            raise LabError(f"{self._command[0]} did not start: {line}{self._child.communicate(timeout=5)[1]}".strip())

    def stop(self) -> None:
        """Asks the child to end, by SIGTERM."""
        self._child.send_signal(signal.SIGTERM)

    def result(self, timeout_s: float, tick: Callable[[float], None] = lambda _: None) -> Any:
        """Waits for the end of the child, and returns its JSON object; calls `tick` with the seconds that pass."""
        end = time.monotonic() + timeout_s
        while True:
            begin = time.monotonic()
            try:
                out, error = self._child.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                tick(time.monotonic() - begin)
                if time.monotonic() > end:
                    raise LabError(f"{self._command[0]} did not end within {timeout_s:.0f} s") from None
                continue
            tick(time.monotonic() - begin)
            if self._child.returncode:
                raise LabError(f"{' '.join(self._command[:6])} failed: {error.strip()}")
            return json.loads(out)
