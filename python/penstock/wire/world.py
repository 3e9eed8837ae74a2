"""One run on the wire: namespaces as hosts, `penstock-emulate` as bottleneck, and what all of them printed."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import store
from penstock.mistake import MistakeError
from penstock.verify.recording import SYSCTLS, LabError, Program, inside
from penstock.wire import owner, plan, tcp
from penstock.wire.plan import Flow, Plan

Tick = Callable[[float, float], None]
PACKETS = "packets.csv"
_TRAFFIC = Path(__file__).with_name("traffic.py")
_PATIENCE_S = 20.0
_SOON_S = 0.3  # the run begins so long after all are ready
_RIGHT, _LEFT = 200, 80  # second numbers of addresses: hosts on the right; those on the left, one block for each group
_BLOCK = 250
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

    report: dict[str, Any]
    others: tuple[dict[str, Any], ...]  # reports of the emulators of longer ways
    sent: dict[int, dict[str, Any]]
    received: dict[int, dict[str, Any]]
    seconds: list[tuple[float, dict[int, int]]]
    packets: Path
    zero_s: float  # when the run began, by the clock of the emulator
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
    if missing := [name for name in ("ip", "nsenter", "setpriv", "sysctl") if shutil.which(name) is None]:
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


def play(wanted: Plan, packets: Path, tick: Tick = lambda _now, _end: None) -> Recorded:
    """Plays a plan in real time; the fate of each packet comes into the file `packets`."""
    require()
    with _marked() as (mark, directory), contextlib.ExitStack() as stack:
        try:
            return _Run(wanted, mark, directory, stack).play(packets, tick)
        except LabError as error:
            raise MistakeError(f"--on wire: {error}") from None


def check(wanted: Plan) -> None:
    """Asks the emulator whether it takes the bottleneck of a plan."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "bottleneck.toml"
        store.write(file, plan.config(wanted))
        done = subprocess.run(
            [str(emulator()), "--config", str(file), "--check"], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise MistakeError(f"--on wire: {done.stderr.strip().removeprefix('error: ')}")


class _Run:
    def __init__(self, wanted: Plan, mark: str, directory: Path, stack: contextlib.ExitStack) -> None:
        self._wanted, self._mark, self._directory, self._stack = wanted, mark, directory, stack
        self._groups = [0.0, *wanted.extras_s]
        self._spaces = ["left", "right", *(f"far{number}" for number in range(1, len(self._groups)))]

    def play(self, packets: Path, tick: Tick) -> Recorded:
        for space in self._spaces:
            self._make(space)
        bottleneck = self._bottleneck(packets)
        others = [self._longer(number) for number in range(1, len(self._groups))]
        self._route()
        hosts = [self._hosts(space) for space in self._spaces]
        clock = min(self._ask_clock() for _ in range(3))
        begin = time.monotonic() + _SOON_S
        store.write(self._directory / "begin", repr(begin))
        with _prompt():
            changed = self._wait(begin, tick)
        for one in (bottleneck, *others):
            one.stop()
        told = [one.result(_PATIENCE_S) for one in hosts]
        return Recorded(
            report=bottleneck.result(_PATIENCE_S),
            others=tuple(one.result(_PATIENCE_S) for one in others),
            sent={int(flow): one for host in told for flow, one in host["sent"].items()},
            received={int(flow): one for host in told for flow, one in host["received"].items()},
            seconds=_joined([host["seconds"] for host in told]),
            packets=packets,
            zero_s=begin - clock[1],
            changed=tuple(changed),
            sysctls=self._sysctls,
        )

    @property
    def _sysctls(self) -> dict[str, str]:
        return {**_SHARED_SYSCTLS, **self._wanted.sysctls}

    def _name(self, space: str) -> str:
        return f"{self._mark}-{space}"

    def _make(self, space: str) -> None:
        _run(["ip", "netns", "add", self._name(space)])
        told = [f"{key}={value}" for key, value in self._sysctls.items()]
        _run([*inside(self._name(space)), "sysctl", "-q", "-e", "-w", *told])

    def _bottleneck(self, packets: Path) -> Program:
        file = self._directory / "bottleneck.toml"
        store.write(file, plan.config(self._wanted))
        options = ["--config", str(file), "--packets", str(packets)]
        return self._emulate("left", "right", 0, options)

    def _longer(self, number: int) -> Program:
        """Starts the emulator through which hosts of a longer way reach the left end of the bottleneck."""
        delay = f"{self._groups[number] * 1e9:.0f}ns"
        options = ["--rate", "10Gbit/s", "--delay", delay, "--limit", "100000p", "--reverse-limit", "100000p"]
        return self._emulate(f"far{number}", "left", number, [*options, "--mtu", str(self._wanted.mtu)])

    def _emulate(self, left: str, right: str, number: int, options: Sequence[str]) -> Program:
        ends = ["--left-netns", self._name(left), "--right-netns", self._name(right)]
        ends += ["--left", f"wire{number}l", "--right", f"wire{number}r"]
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

    def _addresses(self, flow: Flow) -> tuple[str, str]:
        """Returns the addresses of a flow on the left and on the right. Flows of a node share that on the left."""
        group = self._groups.index(flow.extra_s)
        named = [one for one in self._wanted.flows if flow.node is not None and one.node == flow.node]
        host = min((one.id for one in named if one.extra_s == flow.extra_s), default=flow.id)
        left = f"10.{_LEFT + group}.{host // _BLOCK}.{host % _BLOCK + 1}"
        return left, f"10.{_RIGHT}.{flow.id // _BLOCK}.{flow.id % _BLOCK + 1}"

    def _route(self) -> None:
        lines: dict[str, list[str]] = {space: ["link set lo up"] for space in self._spaces}
        lines["left"].append(f"route add 10.{_RIGHT}.0.0/16 dev wire0l")
        lines["right"].append("route add 10.64.0.0/10 dev wire0r")
        for number in range(1, len(self._groups)):
            lines[f"far{number}"].append(f"route add default dev wire{number}l")
            lines["left"].append(f"route add 10.{_LEFT + number}.0.0/16 dev wire{number}r")
        for flow in self._wanted.flows:
            left, right = self._addresses(flow)
            space, number = self._side(flow)
            for where, address in ((space, left), ("right", right)):
                if (line := f"addr add {address}/32 dev lo") not in lines[where]:
                    lines[where].append(line)
            if flow.tcp:
                to_right = tcp.metrics(flow.tcp, flow.forward)
                to_left = tcp.metrics(flow.tcp, not flow.forward)
                if to_right:
                    lines[space].append(f"route replace {right}/32 dev wire{number}l src {left} {' '.join(to_right)}")
                if to_left:
                    lines["right"].append(f"route replace {left}/32 dev wire0r src {right} {' '.join(to_left)}")
        for space, wanted in lines.items():
            _run([*inside(self._name(space)), "ip", "-batch", "-"], "\n".join(wanted) + "\n")

    def _side(self, flow: Flow) -> tuple[str, int]:
        group = self._groups.index(flow.extra_s)
        return (f"far{group}" if group else "left"), group

    def _hosts(self, space: str) -> Program:
        file = self._directory / f"{space}.json"
        send, receive = [], []
        for flow in self._wanted.flows:
            left, right = self._addresses(flow)
            ways = {"from": left, "to": right} if flow.forward else {"from": right, "to": left}
            told = {"window": 1 << 22, "size": None, **flow.sends, **ways, "id": flow.id}
            told |= {"start_s": flow.start_s, "stop_s": flow.stop_s, "keeps_delays": flow.sends.get("keeps_delays")}
            here, there = (self._side(flow)[0], "right") if flow.forward else ("right", self._side(flow)[0])
            send += [told] if space == here else []
            receive += [told] if space == there else []
        wanted = {"send": send, "receive": receive, "duration_s": self._wanted.duration_s}
        store.write(file, json.dumps({**wanted, "begin": str(self._directory / "begin")}))
        command = [*_WITH_PARENT, *inside(self._name(space)), sys.executable, "-I", str(_TRAFFIC), str(file)]
        program = self._stack.enter_context(Program(command))
        program.await_line("listening")
        return program

    def _ask_clock(self) -> tuple[float, float]:
        """Returns how exact it is, and when the bottleneck's clock was zero."""
        time.sleep(0.12)  # an answer is computed at most every 100 ms
        before = time.monotonic()
        report = self._ask({"do": "status"})
        after = time.monotonic()
        return after - before, (before + after) / 2 - float(report["elapsed_s"])

    def _ask(self, request: dict[str, Any]) -> Any:
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(5)
            asked.connect(str(self._directory / "0.sock"))
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
                self._ask({"do": "set", "values": change.values})
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
