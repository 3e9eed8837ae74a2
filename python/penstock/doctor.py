"""Checks of this machine: one for each program, file or right that a verb may need. No check changes anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

from penstock import engine, jar, testbed
from penstock.jar import qdiscs
from penstock.mistake import EXTRAS, MistakeError
from penstock.wire import daemons, kernel_queues, world

_NET_ADMIN, _SYS_ADMIN = 12, 21  # bits of Linux's capabilities
_TUN = Path("/dev/net/tun")
_NAMESPACES = Path("/run/netns")
_INTERFACES = Path("/sys/class/net")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_REAL_TIME = Path("/proc/sys/kernel/sched_rt_runtime_us")
_HYSTART = Path("/sys/module/tcp_cubic/parameters/hystart")
_QUEUE = Path("/proc/sys/net/core/default_qdisc")
_FAST_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")
# Queues of hosts which neither drop by delay nor pace, so that the emulator's queue is the only one that does.
_PLAIN_QUEUES = ("pfifo_fast", "pfifo", "noqueue")
_NS3 = Path("/usr/include/ns3/core-module.h")
_PACKAGES = ("jinja2", "matplotlib", "numpy", "pyarrow", "rich", "typer")
_LEAST_PYTHON = (3, 11)
_LEAST_FREE_BYTES = 2 * 10**9


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    name: str
    ok: bool
    found: str
    needed_for: str
    essential: bool = False  # true if the simulator itself does not work without it
    repair: str = ""  # the command which adds what is missing; empty if no command helps

    def to_json(self) -> dict[str, Any]:
        """Returns the check as plain values."""
        return asdict(self)


def examine() -> list[Check]:
    """Carries out all checks and returns them in the order in which they are shown."""
    return [check for group in _GROUPS for check in group()]


def healthy(checks: list[Check]) -> bool:
    """Returns true if no essential check failed."""
    return all(check.ok for check in checks if check.essential)


def _lab() -> Iterator[Check]:
    """Checks what every run needs."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check(
        "python", sys.version_info >= _LEAST_PYTHON, version, "everything", True, "install Python 3.11 or newer"
    )
    yield _compiled()
    missing = [name for name in _PACKAGES if util.find_spec(name) is None]
    told = f"missing: {', '.join(missing)}" if missing else ", ".join(_PACKAGES)
    repair = f"{sys.executable} -m pip install {' '.join(missing)}" if missing else ""
    yield Check("packages", not missing, told, "everything", True, repair)
    yield _extras()
    yield _fonts()


def _extras() -> Check:
    missing = {package: extra for package, extra in EXTRAS.items() if util.find_spec(package) is None}
    told = f"missing: {', '.join(missing)}" if missing else ", ".join(EXTRAS)
    repair = f"{sys.executable} -m pip install 'penstock[{','.join(missing.values())}]'" if missing else ""
    return Check("extra packages", not missing, told, "frame(), claims fit, sweep --dask", repair=repair)


def _compiled() -> Check:
    core = engine.core_version()
    try:
        package = metadata.version("penstock")
    except metadata.PackageNotFoundError:
        return Check("compiled part", True, f"{core}, from a source tree", "everything", True)
    told = core if package == core else f"{core}, but the package is {package}"
    return Check("compiled part", package == core, told, "everything", True, "make setup")


def _fonts() -> Check:
    """Checks whether Matplotlib's list of fonts exists. The first figure creates it, and stores it if possible."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(os.environ.get("MPLCONFIGDIR") or f"{base}/matplotlib")
    needed = "a fast first figure"
    if any(folder.glob("fontlist*.json")):
        return Check("font list", True, str(folder), needed)
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(there, os.W_OK):
        return Check("font list", False, f"{folder} cannot be written", needed, repair="export MPLCONFIGDIR=DIRECTORY")
    make = f'{sys.executable} -c "import matplotlib.font_manager"'
    return Check("font list", False, "not created yet", needed, repair=make)


def _real_packets() -> Iterator[Check]:
    """Checks what the emulator and comparisons with the kernel need."""
    needed = "penstock-emulate, verify tcp-linux"
    emulator = _emulator()
    build = "tools/setup appliances"
    yield Check("penstock-emulate", bool(emulator), emulator or "not found", needed, repair=build)
    can = _capabilities()
    told = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    yield Check(
        "CAP_NET_ADMIN",
        bool(can >> _NET_ADMIN & 1),
        f"{told}, {'has it' if can >> _NET_ADMIN & 1 else 'lacks it'}",
        needed,
        repair="sudo penstock ..., or run the container with --cap-add NET_ADMIN",
    )
    yield _tun(needed)
    yield _program("ip", "iproute2", needed)
    yield _namespaces(bool(can >> _SYS_ADMIN & 1), needed)
    yield _kernel_controls()
    yield from _leftovers()


def _emulator() -> str | None:
    try:
        return str(world.emulator())
    except MistakeError:
        return None


def _disciplines(name: str, has: list[str] | None, needed: str) -> Check:
    """Says which disciplines of `tc` a kernel has; those which it lacks are modules, or the kernel is too old."""
    if has is None:
        return Check(name, False, "not tried: needs tc, unshare, and root or user namespaces", needed)
    lacks = [kind for kind in qdiscs.WORDS if kind not in has]
    told = f"it has {', '.join(has) or 'none'}" + (f", and not {', '.join(lacks)}" if lacks else "")
    return Check(name, not lacks, told, needed)


def _wire() -> Iterator[Check]:
    """Checks whether scenarios can run on real kernels here, and what would falsify their results."""
    needed = "run --on wire"
    try:
        world.require()
        yield Check("the wire", True, "scenarios run on real kernels here", needed)
    except MistakeError as error:
        yield Check("the wire", False, str(error), needed)
    try:
        daemons.require()
        yield Check("gateway and agents", True, str(testbed.hierarchy()), f"{needed}: [cooperation]")
    except MistakeError as error:
        yield Check("gateway and agents", False, str(error), f"{needed}: [cooperation]")
    yield _disciplines("disciplines", kernel_queues.kinds(), "run --on tc")
    try:
        kernel = jar.opened(jar.find(), jar.ENVIRONMENT)
        yield Check("the jar", True, f"Linux {kernel.version} in virtual time: {kernel.linux}", "run --on jar")
        yield _disciplines("disciplines of the jar", kernel.disciplines, "run --on jar-tc")
    except MistakeError as error:
        yield Check("the jar", False, str(error).removeprefix("--on jar "), "run --on jar")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = os.getloadavg()[0]
    told = f"{load:.1f} processes want {cores} cores"
    yield Check("contention", load <= cores, told, f"{needed}: late packets", repair="" if load <= cores else "top")
    yield _one_of("clock", _CLOCK, _FAST_CLOCKS, f"{needed}: a clock which costs little")
    yield _one_of("queue of hosts", _QUEUE, _PLAIN_QUEUES, f"{needed}: the only queue that drops is the emulator's")
    told = _read(_REAL_TIME)
    yield Check("real-time share", told not in ("0", ""), f"{told} us of each second", f"{needed}: --realtime")
    told = {"1": "on", "0": "off"}.get(_read(_HYSTART), "unknown")
    yield Check("cubic's HyStart", told == "on", told, f"{needed}: compare it with cc = cubic-linux and hystart = true")


def _one_of(name: str, file: Path, usual: tuple[str, ...], needed: str) -> Check:
    found = _read(file)
    return Check(name, found in (*usual, ""), found or "this machine has no such setting", needed)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _capabilities() -> int:
    """Returns the effective capabilities of this process as bits; 0 if they cannot be read."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    return int(found[1], 16) if found else 0


def _tun(needed: str) -> Check:
    if not _TUN.exists():
        return Check(
            "/dev/net/tun",
            False,
            "missing",
            needed,
            repair="modprobe tun, or run the container with --device /dev/net/tun",
        )
    usable = os.access(_TUN, os.R_OK | os.W_OK)
    told = "usable" if usable else "exists, but this user may not open it"
    return Check("/dev/net/tun", usable, told, needed, repair="" if usable else "sudo penstock ...")


def _namespaces(permitted: bool, needed: str) -> Check:
    """Checks whether a child process can create a network namespace, which is removed when the child exits."""
    program = shutil.which("unshare")
    if program is None:
        return Check("namespaces", False, "unshare is missing", needed, repair="apt-get install util-linux")
    done = subprocess.run([program, "--net", "true"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return Check("namespaces", True, "can be created", needed)
    why = done.stderr.strip().removeprefix("unshare: ") or f"unshare exited with {done.returncode}"
    repair = "run the container with --privileged" if permitted else "sudo penstock ..."
    return Check("namespaces", False, why, needed, repair=repair)


def _kernel_controls() -> Check:
    needed = "verify tcp-linux"
    try:
        controls = _CONTROLS.read_text(encoding="ascii").split()
    except OSError:
        return Check("kernel's TCP", False, "the list of its congestion controls cannot be read", needed)
    missing = sorted({"reno", "cubic", "bbr"} - set(controls))
    repair = "modprobe " + " ".join(f"tcp_{name}" for name in missing) if missing else ""
    return Check("kernel's TCP", not missing, " ".join(controls), needed, repair=repair)


def _leftovers() -> Iterator[Check]:
    """Checks for namespaces and interfaces of Penstock which ended programs left behind."""
    needed = "a machine without leftovers"
    names = [path.name for path in _NAMESPACES.glob("penstock-*")] if _NAMESPACES.is_dir() else []
    dead = sorted(name for name in names if testbed.is_dead(name))
    remove = "; ".join(f"ip netns delete {name}" for name in dead)
    yield Check("leftover namespaces", not dead, ", ".join(dead) or "none", needed, repair=remove)
    left = sorted(path.name for path in _INTERFACES.glob("penstock*")) if _INTERFACES.is_dir() else []
    unused = [] if _emulator_runs() else left
    remove = "; ".join(f"ip link delete {name}" for name in unused)
    told = ", ".join(unused) or (f"none; in use: {', '.join(left)}" if left else "none")
    yield Check("leftover interfaces", not unused, told, needed, repair=remove)


def _emulator_runs() -> bool:
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text(encoding="utf-8").startswith("penstock-emulat"):  # the kernel keeps 15 characters
                return True
        except OSError:
            continue
    return False


def _peers() -> Iterator[Check]:
    """Checks for programs of other projects."""
    yield _program("iperf3", "iperf3", "tests with real TCP")
    yield _program("tshark", "tshark", "the test of captures")
    yield _program("cargo", "cargo", "verify speed, building")
    yield _program("valgrind", "valgrind", "instructions per packet in verify speed")
    yield Check(
        "ns-3",
        _NS3.exists(),
        str(_NS3.parent) if _NS3.exists() else "not found",
        "verify speed",
        repair=_apt("libns3-dev"),
    )


def _program(name: str, package: str, needed: str) -> Check:
    found = shutil.which(name)
    return Check(name, found is not None, found or "not found", needed, repair="" if found else _apt(package))


def _apt(package: str) -> str:
    return f"apt-get install {package}"


def _machine() -> Iterator[Check]:
    """Checks the processor, the disk and the current directory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Check("cores", True, str(cores), "parallel runs (--jobs)")
    yield _governor()
    free = shutil.disk_usage(Path.cwd()).free
    enough = free >= _LEAST_FREE_BYTES
    repair = "" if enough else "penstock runs prune --older 30d"
    yield Check("disk", enough, f"{free / 1e9:.1f} GB free in this directory", "runs/", repair=repair)
    writable = os.access(Path.cwd(), os.W_OK)
    told = "can be written" if writable else "cannot be written"
    yield Check(
        "this directory", writable, told, "runs/", repair="" if writable else "penstock run FILE.toml --out DIRECTORY"
    )


def _governor() -> Check:
    needed = "comparable times in verify speed, tempest"
    try:
        governor = _GOVERNOR.read_text(encoding="ascii").strip()
    except OSError:
        return Check("CPU governor", True, "this machine has no such setting", needed)
    repair = "" if governor == "performance" else "sudo cpupower frequency-set --governor performance"
    return Check("CPU governor", governor == "performance", governor, needed, repair=repair)


_GROUPS: tuple[Callable[[], Iterator[Check]], ...] = (_lab, _real_packets, _wire, _peers, _machine)
