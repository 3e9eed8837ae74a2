"""One run on the wire: namespaces as hosts and routers, `penstock-emulate` as links, and what all of them printed."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import store, testbed
from penstock.engine import Stopped
from penstock.mistake import MistakeError
from penstock.scenario import to_toml
from penstock.testbed import LabError, inside
from penstock.units import number
from penstock.verify.recording import SYSCTLS, Program
from penstock.wire import announcing, daemons, kernel_queues, plan, programs, routes, shell
from penstock.wire.daemons import Daemons
from penstock.wire.flow import Flow
from penstock.wire.plan import Plan
from penstock.wire.programs import WITH_PARENT

Tick = Callable[[float, float], None]
_TRAFFIC = Path(__file__).with_name("traffic.py")
_PATIENCE_S = 20.0
_SOON_S = 0.3  # the run begins so long after all are ready
_SHARED_SYSCTLS = {
    **{key: value for key, value in SYSCTLS.items() if not key.endswith(("tcp_sack", "tcp_ecn"))},
    # A host answers those who ask for ECN; who asks is said by its routes.
    "net.ipv4.tcp_ecn": "2",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.ip_forward": "1",
}
_CAPTURE = ".pcapng"


@dataclass(frozen=True)
class Recorded:
    """What the programs of a run printed, and where the packets are."""

    reports: tuple[dict[str, Any], ...]  # of the emulators of links
    others: tuple[dict[str, Any], ...]  # of the emulators of longer ways
    sent: dict[int, dict[str, Any]]
    received: dict[int, dict[str, Any]]
    seconds: list[tuple[float, dict[int, int]]]
    packets: tuple[Path, ...]  # of each link
    captures: tuple[Path, ...]  # of each link; none unless the plan has them
    zeros_s: tuple[float, ...]  # when the run began, by the clock of each of these emulators
    changed: tuple[dict[str, float], ...]
    sysctls: dict[str, str]
    gateway: dict[str, Any] | None = None  # what the gateway of budgets told at the end; `None` without one
    tc: list[dict[str, Any]] = field(default_factory=list)  # queues of the kernel, with the commands that made them
    agents: dict[str, Any] = field(default_factory=dict)  # what the agents of nodes told, by node


def emulator() -> Path:
    """Returns the program `penstock-emulate`; raises `MistakeError` without one."""
    return programs.find("emulate")


def require() -> None:
    """Raises `MistakeError` with what this machine lacks for real packets."""
    if why := testbed.impossible():
        raise MistakeError(f"--on wire: {why}")
    emulator()


@contextlib.contextmanager
def _marked() -> Iterator[tuple[str, Path]]:
    """Yields the mark of this run's namespaces and a directory; removes all of both at the end of the block."""
    testbed.remove_leftovers()
    mark = testbed.mark("wire")
    if testbed.made_by(mark):
        raise MistakeError("--on wire: this process already plays a scenario; one after the other, please")
    with tempfile.TemporaryDirectory(prefix=f"{mark}-") as directory:
        try:
            yield mark, Path(directory)
        finally:
            for made in testbed.made_by(mark):
                testbed.remove(made)


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
    if wanted.kernel_queues:
        kernel_queues.require()
    if wanted.cooperation:
        daemons.require()
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
            store.write(file, to_toml(plan.config(wanted, link)))
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
        self._daemons = Daemons(wanted, wanted.cooperation, mark, directory) if wanted.cooperation else None
        self._announcing: Path | None = None  # the cgroup of senders that announce their rates

    def play(self, folder: Path, tick: Tick, on_host: str | None) -> Recorded:
        lines = routes.commands(self._wanted)
        for space in lines:
            self._make(space)
        packets = tuple(folder / f"{link}.csv" for link in self._links)
        links = [self._link(link, file) for link, file in zip(self._links, packets, strict=True)]
        emulator = self._emulate([*links, *map(self._longer, self._groups)])
        self._make_queues()
        for space, wanted in lines.items():
            testbed.run([*inside(self._name(space)), "ip", "-batch", "-"], "\n".join(wanted) + "\n")
        agents = self._enrolled()
        if self._wanted.announces:
            self._announce()
        hosts = self._hosts(tuple(lines), agents)
        clocks = self._ask_clocks()
        begin = time.monotonic() + _SOON_S
        store.write(self._directory / "begin", repr(begin))
        with self._shell(on_host), _prompt():
            changed = self._wait(begin, tick)
        gateway = self._daemons.status() if self._daemons else None
        tc = [self._told_of_queue(link, way) for link, way in self._kernel_queues]
        emulator.stop()
        told = {place: one.result(_PATIENCE_S) for place, one in hosts.items()}
        wires = emulator.result(_PATIENCE_S)["wires"]
        reports, others = tuple(wires[: len(links)]), tuple(wires[len(links) :])
        for (link, way), queue in zip(self._kernel_queues, tc, strict=True):
            report = reports[link][("forward", "reverse")[way]]
            report |= {"dropped": queue["dropped"], "marked": report["through"]["marked"]}
        return Recorded(
            reports=reports,
            tc=tc,
            others=others,
            sent={int(flow): one for host in told.values() for flow, one in host["sent"].items()},
            received={int(flow): one for host in told.values() for flow, one in host["received"].items()},
            seconds=_joined([host["seconds"] for host in told.values()]),
            packets=packets,
            captures=tuple(file.with_suffix(_CAPTURE) for file in packets if self._wanted.keeps_capture),
            zeros_s=tuple(begin - zero for zero in clocks),
            changed=tuple(changed),
            sysctls=self._sysctls,
            gateway=gateway,
            agents={place: told[place]["agent"] for place in agents},
        )

    @property
    def _sysctls(self) -> dict[str, str]:
        return {**_SHARED_SYSCTLS, **self._wanted.sysctls}

    def _name(self, space: str) -> str:
        return f"{self._mark}-{space}"

    def _make(self, space: str) -> None:
        testbed.run([*WITH_PARENT, "ip", "netns", "add", self._name(space)])
        told = [f"{key}={value}" for key, value in self._sysctls.items()]
        testbed.run([*inside(self._name(space)), "sysctl", "-q", "-e", "-w", *told])

    def _link(self, link: int, packets: Path) -> dict[str, Any]:
        """Returns the wire of a link, as the file of the emulator has it."""
        named = routes.spaces(self._wanted)
        left, right = (named[end] for end in self._wanted.links[link].ends)
        wire = {**self._wire(left, right, link), **plan.config(self._wanted, link), "packets": str(packets)}
        if self._wanted.numbers_flows:
            wire["hosts"] = routes.numbered(self._wanted)
        if self._wanted.keeps_capture:
            wire["pcapng"] = str(packets.with_suffix(_CAPTURE))
        if self._wanted.kernel_queues:
            for way, (queue, key) in enumerate(
                zip(self._wanted.kernel_queues[link], ("through", "reverse_through"), strict=True)
            ):
                space = routes.queue(link, way)
                self._make(space)
                wire[key] = {"netns": self._name(space), "drops": queue.drops}
        return wire

    @property
    def _kernel_queues(self) -> list[tuple[int, int]]:
        """The queues of the kernel: links and directions."""
        return [(link, way) for link in range(len(self._wanted.kernel_queues)) for way in (0, 1)]

    def _make_queues(self) -> None:
        for link, way in self._kernel_queues:
            begin = inside(self._name(routes.queue(link, way)))
            testbed.run([*begin, "ip", "route", "replace", "default", "dev", kernel_queues.INTERFACE])
            lines = self._wanted.kernel_queues[link][way].lines(
                self._wanted.links[link].rates_bps[way], self._wanted.mtu
            )
            testbed.run([*begin, "tc", "-batch", "-"], "\n".join(lines) + "\n")

    def _shape(self, change: plan.Change) -> None:
        """Gives the shapers of a link the rates of a change."""
        for way, key in enumerate(("rate", "reverse_rate")):
            if key in change.values:
                queue = self._wanted.kernel_queues[change.link][way]
                line = queue.shaped("change", number(change.values[key]), self._wanted.mtu)
                testbed.run([*inside(self._name(routes.queue(change.link, way))), "tc", *line.split()])

    def _told_of_queue(self, link: int, way: int) -> dict[str, Any]:
        """Returns how a queue of the kernel was made, and what it has counted."""
        queue, wanted = self._wanted.kernel_queues[link][way], self._wanted.links[link]
        command = ["tc", "-s", "-j", "qdisc", "show", "dev", kernel_queues.INTERFACE]
        listed = testbed.run([*inside(self._name(routes.queue(link, way))), *command])
        return {
            "link": wanted.name,
            "index": link,
            "reverse": bool(way),
            "kind": queue.kind,
            "commands": queue.lines(wanted.rates_bps[way], self._wanted.mtu),
            "dropped": kernel_queues.counted(queue.kind, listed),
            "told": json.loads(listed),
        }

    def _longer(self, group: int) -> dict[str, Any]:
        """Returns the wire through which hosts behind long access links reach their router."""
        router, extra_s = self._wanted.groups[group - 1]
        link = {"rate": "10Gbit/s", "delay": f"{extra_s * 1e9:.0f}ns", "limit": plan.ROOM, "reverse_limit": plan.ROOM}
        space, number = routes.spaces(self._wanted)[router], routes.number_of_way(self._wanted, group)
        return {**self._wire(routes.far(group), space, number), "mtu": self._wanted.mtu, "link": link}

    def _wire(self, left: str, right: str, number: int) -> dict[str, Any]:
        """Returns name, control socket and ends of a wire."""
        spaces, interfaces = (left, right), routes.interfaces(number)
        ends = {
            end: {
                "netns": self._name(spaces[at]),
                "interface": interfaces[at],
                "address": f"10.77.{number}.{at + 1}/24",
            }
            for at, end in enumerate(("left", "right"))
        }
        return {"name": str(number), "socket": str(self._directory / f"{number}.sock"), **ends}

    def _emulate(self, wires: Sequence[dict[str, Any]]) -> Program:
        """Starts the emulator of all wires."""
        file = self._directory / "wires.toml"
        most = self._wanted.duration_s + 3 * _PATIENCE_S
        store.write(file, to_toml({"duration": f"{most:g}s", "realtime": True, "wire": wires}))
        command = [*WITH_PARENT, str(emulator()), "--config", str(file), "--json"]
        program = self._stack.enter_context(Program(command))
        program.await_line("ready", of_stderr=True)
        return program

    def _enrolled(self) -> dict[str, dict[str, Any]]:
        """Starts the gateway of budgets and enrols its nodes; returns what each is told of its agent."""
        if self._daemons is None:
            return {}
        named, wanted = routes.spaces(self._wanted), self._daemons.wanted
        self._stack.enter_context(self._daemons.serving(inside(self._name(named[wanted.router]))))
        spaces = {node: routes.hosts(self._wanted, self._wanted.flows[node.flows[0]])[0] for node in wanted.nodes}
        return {node.name: self._daemons.enrol(node, inside(self._name(space))) for node, space in spaces.items()}

    def _announce(self) -> None:
        """Lets the senders announce their rates that are to do so: those of nodes with an agent, and others."""
        nodes = self._daemons.wanted.nodes if self._daemons else ()
        cgroups = [self._daemons.cgroup(node) for node in nodes if self._daemons and node.announces]
        self._announcing = announcing.make(self._mark)
        program = self._stack.enter_context(Program(announcing.command([self._announcing, *cgroups])))
        program.await_line("announce", of_stderr=True)

    def _hosts(self, spaces: Sequence[str], agents: Mapping[str, dict[str, Any]]) -> dict[str, Program]:
        """Starts the programs of hosts, by place.

        There is one for each namespace, one for its senders that announce their rates, and one for each node that has
        an agent.
        """
        cgroups: dict[str, str | None] = dict.fromkeys(spaces)
        cgroups |= {_announcing(space): str(self._announcing) for space in spaces if self._announcing}
        cgroups |= {place: agent["cgroup"] for place, agent in agents.items()}
        told: dict[str, dict[str, Any]] = {place: {"send": [], "receive": []} for place in cgroups}
        within = {space: space for space in spaces}
        for flow in self._wanted.flows:
            near, away = routes.hosts(self._wanted, flow)
            here, there = (near, away) if flow.forward else (away, near)
            node = self._daemons.wanted.node_of(flow.id) if self._daemons else None
            place = node.name if node else _announcing(here) if flow.tcp and flow.tcp.announces else here
            within[place] = here
            about = self._told(flow, place)
            told[place]["send"].append(about)
            told[there]["receive"].append(about)
        found = {
            place: self._program(place, within[place], {**one, "agent": agents.get(place), "cgroup": cgroups[place]})
            for place, one in told.items()
            if one["send"] or one["receive"]
        }
        for program in found.values():
            program.await_line("listening")
        if self._daemons:
            starts = {place: min(flow["start_s"] for flow in told[place]["send"]) for place in agents}
            self._daemons.await_sessions(sum(start <= agents[place]["lead_s"] for place, start in starts.items()))
        return found

    def _told(self, flow: Flow, place: str) -> dict[str, Any]:
        """Returns what both hosts of a flow are told of it; the sender is in the program of a place."""
        left, right = routes.addresses(self._wanted, flow)
        ways = {"from": left, "to": right} if flow.forward else {"from": right, "to": left}
        told = {"window": 1 << 22, "size": None, **flow.sends, **ways, "id": flow.id, "news": self._news(place)}
        keeps = self._wanted.keeps_datagrams or flow.sends.get("keeps_delays")
        told |= {"tos": (flow.class_ or 0) << 2 if self._wanted.kernel_queues else 0, "keeps_delays": keeps}
        return told | {"start_s": flow.start_s, "stop_s": flow.stop_s}

    def _program(self, place: str, space: str, told: dict[str, Any]) -> Program:
        file = self._directory / f"{place}.json"
        wanted = {**told, "duration_s": self._wanted.duration_s, "news": self._news(place)}
        store.write(file, json.dumps({**wanted, "begin": str(self._directory / "begin")}))
        command = [*WITH_PARENT, *inside(self._name(space)), sys.executable, "-I", str(_TRAFFIC), str(file)]
        return self._stack.enter_context(Program(command))

    def _shell(self, on_host: str | None) -> AbstractContextManager[None]:
        if on_host is None:
            return contextlib.nullcontext()
        space, _ = shell.hosts(self._wanted)[on_host]
        begin = [*WITH_PARENT, *inside(self._name(space))]
        return shell.opened(self._wanted, on_host, begin, self._directory)

    def _news(self, place: str) -> str:
        """Returns the socket at which the senders of a place hear of transfers that have arrived."""
        return str(self._directory / f"{place}.news")

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
        return programs.ask(self._directory / f"{link}.sock", request)

    def _wait(self, begin: float, tick: Tick) -> list[dict[str, float]]:
        """Waits for the end of the run, and changes the link at its times; returns how late each change was."""
        changed = []
        coming = list(self._wanted.changes)
        duration = self._wanted.duration_s
        while (now := time.monotonic() - begin) < duration:
            if coming and now >= coming[0].at_s:
                change = coming.pop(0)
                self._ask(change.link, {"do": "set", "values": change.values})
                if self._wanted.kernel_queues:
                    self._shape(change)
                if self._daemons:
                    self._daemons.changed(change.link, change.values)
                changed.append({"at_s": change.at_s, "late_s": round(time.monotonic() - begin - change.at_s, 6)})
                continue
            tick(max(now, 0), duration)
            next_change = coming[0].at_s - now if coming else duration
            time.sleep(max(min(next_change, duration - now, 0.25), 0))
        return changed


def _announcing(space: str) -> str:
    """Returns the place of the senders in a namespace that announce their rates."""
    return f"{space}-{announcing.CGROUP}"


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
