"""One run on the wire: namespaces as hosts and routers, `penstock-emulate` as links, and what all of them printed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import store
from penstock.engine import Stopped
from penstock.mistake import MistakeError
from penstock.verify.recording import SYSCTLS, LabError, Program, inside
from penstock.wire import owner, plan, routes, shell
from penstock.wire.plan import Plan

Tick = Callable[[float, float], None]
_TRAFFIC = Path(__file__).with_name("traffic.py")
_PATIENCE_S = 20.0
_SOON_S = 0.3  # the run begins so long after all are ready
# A child that its killed parent leaves is killed by the kernel.
_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
_SHARED_SYSCTLS = {
    **{key: value for key, value in SYSCTLS.items() if not key.endswith(("tcp_sack", "tcp_wmem", "tcp_ecn"))},
    # A host answers those who ask for ECN; who asks is said by its routes.
    "net.ipv4.tcp_ecn": "2",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.ip_forward": "1",
}


@dataclass(frozen=True)
class Recorded:
    """What the programs of a run printed, and where the packets are."""

    reports: tuple[dict[str, Any], ...]  # of the emulators of links
    others: tuple[dict[str, Any], ...]  # of the emulators of longer ways
    sent: dict[int, dict[str, Any]]
    received: dict[int, dict[str, Any]]
    seconds: list[tuple[float, dict[int, int]]]
    packets: tuple[Path, ...]  # of each link
    zeros_s: tuple[float, ...]  # when the run began, by the clock of each of these emulators
    changed: tuple[dict[str, float], ...]
    sysctls: dict[str, str]


def emulator() -> Path:
    """Returns the program `penstock-emulate`; raises `MistakeError` without one."""
    if given := os.environ.get("PENSTOCK_EMULATE"):
        return Path(given)
    if found := shutil.which("penstock-emulate"):
        return Path(found)
    target = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[3] / "target"))
    built = target / "release" / "penstock-emulate"
    if built.is_file():
        return built
    raise MistakeError(
        "--on wire needs the program penstock-emulate: `cargo build --release -p penstock-net`, or set PENSTOCK_EMULATE"
    )


def require() -> None:
    """Raises `MistakeError` with what this machine lacks for real packets."""
    if os.geteuid() != 0:
        raise MistakeError("--on wire makes network namespaces, which needs root: sudo penstock run ... --on wire")
    if missing := [name for name in ("ip", "nsenter", "setpriv", "sysctl", "unshare") if shutil.which(name) is None]:
        raise MistakeError(f"--on wire needs {', '.join(missing)}: apt-get install iproute2 util-linux procps")
    if not Path("/dev/net/tun").exists():
        raise MistakeError(
            "--on wire needs /dev/net/tun: modprobe tun, or run the container with --device /dev/net/tun"
        )
    emulator()


@contextlib.contextmanager
def _marked() -> Iterator[tuple[str, Path]]:
    """Yields the mark of this run's namespaces and a directory; removes all of both at the end of the block."""
    owner.remove_leftovers()
    mark = owner.mark()
    if any(owner.NAMED.glob(f"{mark}-*")):
        raise MistakeError("--on wire: this process already plays a scenario; one after the other, please")
    with tempfile.TemporaryDirectory(prefix=f"{mark}-") as directory:
        try:
            yield mark, Path(directory)
        finally:
            for namespace in owner.NAMED.glob(f"{mark}-*"):
                owner.remove(namespace)


def play(
    wanted: Plan,
    folder: Path,
    tick: Tick = lambda _now, _end: None,
    *,
    on_host: str | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Recorded:
    """Plays a plan in real time; the fates of packets come into files in a folder, one for each link.

    With `on_host` the terminal has a shell on that host meanwhile. Raises `Stopped` when `stop` returns true.
    """

    def passed(now: float, end: float) -> None:
        if stop():
            raise Stopped
        tick(now, end)

    require()
    with _marked() as (mark, directory), contextlib.ExitStack() as stack:
        try:
            return _Run(wanted, mark, directory, stack).play(folder, passed, on_host)
        except LabError as error:
            raise MistakeError(f"--on wire: {error}") from None


def check(wanted: Plan) -> None:
    """Asks the emulator whether it takes the links of a plan."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "link.toml"
        for link in range(len(wanted.links)):
            store.write(file, plan.config(wanted, link))
            done = subprocess.run(
                [str(emulator()), "--config", str(file), "--check"], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise MistakeError(f"--on wire: {done.stderr.strip().removeprefix('error: ')}")


class _Run:
    def __init__(self, wanted: Plan, mark: str, directory: Path, stack: contextlib.ExitStack) -> None:
        self._wanted, self._mark, self._directory, self._stack = wanted, mark, directory, stack
        self._links = range(len(wanted.links))
        self._groups = range(1, len(wanted.groups) + 1)

    def play(self, folder: Path, tick: Tick, on_host: str | None) -> Recorded:
        lines = routes.commands(self._wanted)
        for space in lines:
            self._make(space)
        packets = tuple(folder / f"{link}.csv" for link in self._links)
        links = [self._link(link, file) for link, file in zip(self._links, packets, strict=True)]
        others = [self._longer(group) for group in self._groups]
        for space, wanted in lines.items():
            _run([*inside(self._name(space)), "ip", "-batch", "-"], "\n".join(wanted) + "\n")
        hosts = [one for space in lines if (one := self._hosts(space))]
        clocks = self._ask_clocks()
        begin = time.monotonic() + _SOON_S
        store.write(self._directory / "begin", repr(begin))
        with self._shell(on_host), _prompt():
            changed = self._wait(begin, tick)
        for program in (*links, *others):
            program.stop()
        told = [one.result(_PATIENCE_S) for one in hosts]
        return Recorded(
            reports=tuple(one.result(_PATIENCE_S) for one in links),
            others=tuple(one.result(_PATIENCE_S) for one in others),
            sent={int(flow): one for host in told for flow, one in host["sent"].items()},
            received={int(flow): one for host in told for flow, one in host["received"].items()},
            seconds=_joined([host["seconds"] for host in told]),
            packets=packets,
            zeros_s=tuple(begin - zero for zero in clocks),
            changed=tuple(changed),
            sysctls=self._sysctls,
        )

    @property
    def _sysctls(self) -> dict[str, str]:
        return {**_SHARED_SYSCTLS, **self._wanted.sysctls}

    def _name(self, space: str) -> str:
        return f"{self._mark}-{space}"

    def _make(self, space: str) -> None:
        _run([*_WITH_PARENT, "ip", "netns", "add", self._name(space)])
        told = [f"{key}={value}" for key, value in self._sysctls.items()]
        _run([*inside(self._name(space)), "sysctl", "-q", "-e", "-w", *told])

    def _link(self, link: int, packets: Path) -> Program:
        file = self._directory / f"{link}.toml"
        store.write(file, plan.config(self._wanted, link))
        named = routes.spaces(self._wanted)
        left, right = (named[end] for end in self._wanted.links[link].ends)
        return self._emulate(left, right, link, ["--config", str(file), "--packets", str(packets)])

    def _longer(self, group: int) -> Program:
        """Starts the emulator through which hosts behind long access links reach their router."""
        router, extra_s = self._wanted.groups[group - 1]
        options = ["--rate", "10Gbit/s", "--delay", f"{extra_s * 1e9:.0f}ns"]
        options += ["--limit", "100000p", "--reverse-limit", "100000p", "--mtu", str(self._wanted.mtu)]
        space = routes.spaces(self._wanted)[router]
        return self._emulate(routes.far(group), space, routes.number_of_way(self._wanted, group), options)

    def _emulate(self, left: str, right: str, number: int, options: Sequence[str]) -> Program:
        ends = ["--left-netns", self._name(left), "--right-netns", self._name(right)]
        near, away = routes.interfaces(number)
        ends += ["--left", near, "--right", away]
        ends += ["--left-address", f"10.77.{number}.1/24", "--right-address", f"10.77.{number}.2/24"]
        most = self._wanted.duration_s + 3 * _PATIENCE_S
        ends += [
            "--socket",
            str(self._directory / f"{number}.sock"),
            "--duration",
            f"{most:g}s",
            "--json",
            "--realtime",
        ]
        program = self._stack.enter_context(Program([*_WITH_PARENT, str(emulator()), *ends, *options]))
        program.await_line("ready", of_stderr=True)
        return program

    def _hosts(self, space: str) -> Program | None:
        """Starts the program of the hosts in a namespace; `None` if there are none."""
        send, receive = [], []
        for flow in self._wanted.flows:
            left, right = routes.addresses(self._wanted, flow)
            near, away = routes.hosts(self._wanted, flow)
            ways = {"from": left, "to": right} if flow.forward else {"from": right, "to": left}
            told = {"window": 1 << 22, "size": None, **flow.sends, **ways, "id": flow.id}
            told |= {"start_s": flow.start_s, "stop_s": flow.stop_s, "keeps_delays": flow.sends.get("keeps_delays")}
            here, there = (near, away) if flow.forward else (away, near)
            told["news"] = self._news(here)
            send += [told] if space == here else []
            receive += [told] if space == there else []
        if not send and not receive:
            return None
        file = self._directory / f"{space}.json"
        wanted = {"send": send, "receive": receive, "duration_s": self._wanted.duration_s, "news": self._news(space)}
        store.write(file, json.dumps({**wanted, "begin": str(self._directory / "begin")}))
        command = [*_WITH_PARENT, *inside(self._name(space)), sys.executable, "-I", str(_TRAFFIC), str(file)]
        program = self._stack.enter_context(Program(command))
        program.await_line("listening")
        return program

    def _shell(self, on_host: str | None) -> AbstractContextManager[None]:
        if on_host is None:
            return contextlib.nullcontext()
        space, _ = shell.hosts(self._wanted)[on_host]
        begin = [*_WITH_PARENT, *inside(self._name(space))]
        return shell.opened(self._wanted, on_host, begin, self._directory)

    def _news(self, space: str) -> str:
        """Returns the socket at which the senders in a namespace hear of transfers that have arrived."""
        return str(self._directory / f"{space}.news")

    def _ask_clocks(self) -> list[float]:
        """Returns when the clock of each link was zero, by the most exact of three answers."""
        asked: list[list[tuple[float, float]]] = [[] for _ in self._links]
        for _ in range(3):
            time.sleep(0.12)  # an answer is computed at most every 100 ms
            for link in self._links:
                before = time.monotonic()
                report = self._ask(link, {"do": "status"})
                after = time.monotonic()
                asked[link].append((after - before, (before + after) / 2 - float(report["elapsed_s"])))
        return [min(answers)[1] for answers in asked]

    def _ask(self, link: int, request: dict[str, Any]) -> Any:
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(5)
            asked.connect(str(self._directory / f"{link}.sock"))
            asked.sendall(json.dumps({"v": 1, **request}).encode() + b"\n")
            answer = json.loads(asked.makefile().readline())
        if "error" in answer:
            raise LabError(f"penstock-emulate: {answer['error']['what']}")
        return answer["ok"]

    def _wait(self, begin: float, tick: Tick) -> list[dict[str, float]]:
        """Waits for the end of the run, and changes the link at its times; returns how late each change was."""
        changed = []
        coming = list(self._wanted.changes)
        duration = self._wanted.duration_s
        while (now := time.monotonic() - begin) < duration:
            if coming and now >= coming[0].at_s:
                change = coming.pop(0)
                self._ask(change.link, {"do": "set", "values": change.values})
                changed.append({"at_s": change.at_s, "late_s": round(time.monotonic() - begin - change.at_s, 6)})
                continue
            tick(max(now, 0), duration)
            next_change = coming[0].at_s - now if coming else duration
            time.sleep(max(min(next_change, duration - now, 0.25), 0))
        return changed


@contextlib.contextmanager
def _prompt() -> Iterator[None]:
    """Gives this thread real-time priority in the block, so that changes of the link are in time on a busy machine."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, *before)


def _joined(hosts: list[list[list[Any]]]) -> list[tuple[float, dict[int, int]]]:
    """Joins the samples of several programs, which take them at the same times."""
    rows = []
    for samples in zip(*hosts, strict=False):
        counts = {int(flow): count for _, counted in samples for flow, count in counted.items()}
        rows.append((float(samples[0][0]), counts))
    return rows


def _run(command: Sequence[str], text: str | None = None) -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{' '.join(command[:6])}: {done.stderr.strip()}")
