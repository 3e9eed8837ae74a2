"""One run through a kernel: two namespaces, the emulator between them, a sender and a receiver.

Like `traffic`, this file imports nothing of the package but `testbed`, so that it also runs where only files are, as in
the jar:

    python -I recording.py DIRECTORY

`wanted.json` in the directory holds the command lines and settings, which `real` makes. Into the directory go
`packets.csv`, what became of each packet, and `recorded.json`, what the programs printed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from penstock.testbed import LabError, inside, namespaces

# Settings of a new namespace. They are set here, so that they do not depend on the defaults of the machine.
SYSCTLS = {
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_ecn": "0",
    "net.ipv4.tcp_sack": "1",
    "net.ipv6.conf.all.disable_ipv6": "1",
}
# Seconds after the duration of a run until a program that does not end is killed.
PATIENCE_S = 15.0
TRAFFIC = Path(__file__).with_name("traffic.py")


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

    @property
    def pid(self) -> int:
        """The number of the process; a program that takes its place, as `nsenter` has, keeps it."""
        return self._child.pid

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


def record(
    wanted: dict[str, Any], directory: Path, tick: Callable[[float], None] = lambda _: None
) -> dict[str, dict[str, Any]]:
    """Executes one run; returns what emulator, sender and receiver printed."""
    patience = wanted["patience_s"]
    with contextlib.ExitStack() as stack:
        settings = {**SYSCTLS, **wanted["sysctls"]}
        left, right = stack.enter_context(namespaces("verify", ("left", "right"), settings))
        ends = ["--left-netns", left, "--right-netns", right, "--packets", str(directory / "packets.csv")]
        bottleneck = stack.enter_context(Program([*wanted["emulator"], *ends]))
        bottleneck.await_line("ready", of_stderr=True)
        receiver = stack.enter_context(Program(_traffic(right, "receive", wanted["receive"])))
        receiver.await_line("listening")
        sender = stack.enter_context(Program(_traffic(left, "send", wanted["send"])))
        sent = sender.result(wanted["send"]["duration_s"] + patience, tick)
        received = receiver.result(patience)
        bottleneck.stop()
        report = bottleneck.result(patience)
        return {"sent": sent, "received": received, "report": report, "counters": counters(left)}


def counters(namespace: str) -> dict[str, int]:
    """Returns what the kernel counted of TCP in a namespace, without what is zero: `TCPTimeouts` and many more."""
    files = ["/proc/net/netstat", "/proc/net/snmp"]
    text = subprocess.run([*inside(namespace), "cat", *files], capture_output=True, text=True, check=False).stdout
    lines = [line.split() for line in text.splitlines() if line.startswith(("TcpExt:", "Tcp:"))]
    pairs = [
        pair for names, values in zip(lines[::2], lines[1::2], strict=False) for pair in zip(names, values, strict=True)
    ]
    return {name: int(value) for name, value in pairs if value.lstrip("-").isdigit() and int(value) > 0}


def _traffic(namespace: str, work: str, wanted: dict[str, Any]) -> list[str]:
    return [*inside(namespace), sys.executable, "-I", str(TRAFFIC), work, json.dumps(wanted)]


def about() -> dict[str, Any]:
    """Returns the version of the running kernel, and the names of its congestion controls."""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    return {"version": os.uname().release, "controls": available.read_text(encoding="ascii").split()}


def main() -> None:
    """Makes the recording that the arguments describe."""
    directory = Path(sys.argv[1])
    wanted = json.loads((directory / "wanted.json").read_text(encoding="utf-8"))
    found: dict[str, Any]
    try:
        found = record(wanted, directory)
    except (LabError, OSError, subprocess.SubprocessError, ValueError) as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    (directory / "recorded.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
