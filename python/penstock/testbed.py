"""The testbed of all that has real packets: network namespaces, whose names say who made them, and what they need.

docs/tests.md ("Testbeds") has the names, which tests in Rust make as well (`crates/linux/src/testing/`).
A number that another process has since, or that belongs to another container, is not taken for the maker, so that the
next start removes what a killed run left. Nothing without such a mark is touched.

This file imports nothing of the package, so that it also serves where only files are.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

NAMED = Path("/run/netns")
CONTROL = Path("/run/penstock")  # control sockets and locks of the daemons
_MARKED = re.compile(r"penstock-[a-z]+-(?P<pid>\d+)-(?P<start>\d+)-(?P<ns>[0-9a-f]+)(?:-.*)?")
# The programs whose command lines have marked names.
_STARTED = {"ip", "nsenter", "penstock-agent", "penstock-emulate", "penstock-gateway", "setpriv", "timeout"}
# What every testbed runs, and the packages of Debian which have it.
_PROGRAMS, _PACKAGES = ("ip", "nsenter", "setpriv", "sysctl", "unshare"), "iproute2 util-linux procps"
_TRIES, _WAIT_S = 100, 0.02  # until a cgroup is empty
_START_FIELD = 21  # of /proc/PID/stat: when the process started, in clock ticks since the boot


class LabError(Exception):
    """A program in the lab failed. The text names it and contains its messages."""


def impossible(*programs: str) -> str | None:
    """Returns why this machine cannot have real packets between namespaces; `None` if it can.

    Who asks also needs these programs.
    """
    if os.geteuid() != 0:
        return "not root: interfaces and namespaces need it"
    if missing := [name for name in (*_PROGRAMS, *programs) if shutil.which(name) is None]:
        return f"needs {', '.join(missing)}: apt-get install {' '.join([_PACKAGES, *programs])}"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing: `modprobe tun`, or give the container the device (--device /dev/net/tun)"
    probe = f"{mark('probe')}-{time.monotonic_ns()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespaces: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", probe], check=False)
    return None


def run(command: Sequence[str], text: str | None = None) -> str:
    """Runs a program to its end, and returns what it printed; raises `LabError` with its message if it fails."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{_called(command)}: {done.stderr.strip()}")
    return done.stdout


def _called(command: Sequence[str]) -> str:
    """Returns the program that was to run and its arguments, without those that started it where it was to run."""
    words = list(command)
    while words and words[0] in ("setpriv", "nsenter"):
        words = [
            word for word in words[1:] if word not in ("--", "--pdeathsig", "KILL") and not word.startswith("--net=")
        ]
    return " ".join(words[:12])


@contextlib.contextmanager
def namespaces(kind: str, sides: Sequence[str], settings: Mapping[str, str] | None = None) -> Iterator[list[str]]:
    """Makes a namespace for each side, and removes them at the end of the block; yields their names.

    Settings of `sysctl` that a kernel does not know are passed over.
    """
    names = [f"{mark(kind)}-{side}" for side in sides]
    try:
        for name in names:
            run(["ip", "netns", "add", name])
            if settings:
                told = [f"{key}={value}" for key, value in settings.items()]
                run([*inside(name), "sysctl", "-q", "-e", "-w", *told])
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def inside(namespace: str) -> list[str]:
    """Returns the beginning of a command line that runs a program in a namespace."""
    return ["nsenter", f"--net={NAMED / namespace}"]


def mark(kind: str) -> str:
    """Returns the beginning of the names of all that this process makes as a part of one kind."""
    return f"penstock-{kind}-{os.getpid()}-{_started(os.getpid())}-{_pid_namespace():x}"


def _started(pid: int) -> int | None:
    """Returns when a process started; `None` if there is no such process, or only its entry waits for its parent."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[_START_FIELD - 2])


def _pid_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def is_dead(name: str) -> bool:
    """Returns true if the name has a mark whose maker has ended; false for all other names."""
    found = _MARKED.fullmatch(name)
    if found is None or int(found["ns"], 16) != _pid_namespace():
        return False
    return _started(int(found["pid"])) != int(found["start"])


def leftovers() -> list[Path]:
    """Lists the namespaces, cgroups and files of runs that ended without removing them."""
    return sorted(path for folder in _folders() for path in folder.glob("penstock-*") if is_dead(path.name))


def _folders() -> list[Path]:
    found = [NAMED, CONTROL, Path(tempfile.gettempdir())]
    if (cgroups := hierarchy()) is not None:
        found.insert(1, cgroups)
    return [folder for folder in found if folder.is_dir()]


def hierarchy() -> Path | None:
    """Returns where cgroups of version 2 are mounted; `None` if they are not."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((Path(words[1]) for line in lines if (words := line.split(" "))[2] == "cgroup2"), None)


def made_by(mark: str) -> list[Path]:
    """Lists the namespaces, cgroups and control sockets with a mark."""
    folders = [folder for folder in _folders() if folder != Path(tempfile.gettempdir())]
    return [path for folder in folders for path in folder.glob(f"{mark}-*")]


def remove_leftovers() -> list[Path]:
    """Removes what dead runs left: first the processes, then the namespaces and directories.

    `setpriv --pdeathsig` ends a program with its run, unless the run was killed before `setpriv` had said so.
    """
    for pid in _orphans():
        _kill(pid)
    found = leftovers()
    for path in found:
        remove(path)
    return found


def remove(path: Path) -> None:
    """Removes a namespace or a cgroup with its processes, or a directory or file."""
    if (path / "cgroup.procs").exists():
        _remove_cgroup(path)
        return
    if path.parent == CONTROL:
        path.unlink(missing_ok=True)
        return
    if path.parent != NAMED:
        shutil.rmtree(path, ignore_errors=True)
        return
    for pid in _inside(path):
        _kill(pid)
    subprocess.run(["ip", "netns", "delete", path.name], capture_output=True, check=False)
    path.unlink(missing_ok=True)  # a run killed between the file and the mount left the file alone


def _remove_cgroup(path: Path) -> None:
    """Kills what is in a cgroup and removes it, when its processes have ended."""
    for _ in range(_TRIES):
        with contextlib.suppress(OSError):
            for line in (path / "cgroup.procs").read_text(encoding="ascii").split():
                _kill(int(line))
        try:
            path.rmdir()
        except FileNotFoundError:
            return
        except OSError:  # a process has not ended yet
            time.sleep(_WAIT_S)
        else:
            return


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _orphans() -> list[int]:
    """Lists the programs that dead runs have started, by the marked names in their command lines."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            program, *told = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            parts = (part for argument in told for part in argument.split("/"))
            if Path(program).name in _STARTED and any(is_dead(part) for part in parts):
                found.append(int(entry.name))
    return found


def _inside(namespace: Path) -> list[int]:
    """Lists the processes in a namespace. A file on which no namespace is mounted has none."""
    try:
        wanted = namespace.stat()
    except OSError:
        return []
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            there = (entry / "ns" / "net").stat()
            if (there.st_dev, there.st_ino) == (wanted.st_dev, wanted.st_ino):
                found.append(int(entry.name))
    return found
