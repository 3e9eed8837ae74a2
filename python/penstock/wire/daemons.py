"""The gateway of budgets and the agents of a run: real daemons, which enrol by a token that is made in the run."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import store, testbed
from penstock.mistake import MistakeError
from penstock.testbed import LabError
from penstock.wire import cooperation, programs
from penstock.wire.cooperation import Cooperation, Node
from penstock.wire.plan import Plan

_PATIENCE_S, _LOOK_S = 20.0, 0.02


def require() -> None:
    """Raises `MistakeError` with what this machine lacks for budgets."""
    programs.find("gateway")
    programs.find("agent")
    if testbed.hierarchy() is None:
        raise MistakeError("[cooperation] --on wire needs cgroups of version 2: mount -t cgroup2 none /mnt")


@dataclass(frozen=True)
class Daemons:
    """The daemons of a run; `mark` begins the names of all that they make."""

    plan: Plan
    wanted: Cooperation
    mark: str
    directory: Path

    @contextlib.contextmanager
    def serving(self, inside: Sequence[str]) -> Iterator[None]:
        """Has the gateway run in the block; `inside` begins the command lines of its namespace."""
        file, rate = self._file("gateway"), self.plan.links[self.wanted.link].rates_bps[0]
        told = cooperation.gateway_file(self.wanted, self._name("g"), str(self.directory / "c2ml"), rate)
        store.write(file, told)
        command = [*programs.WITH_PARENT, *inside, str(programs.find("gateway")), "run", str(file)]
        log = self.directory / "gateway.log"
        with log.open("wb") as said:
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True)
        try:
            self._await(child, log, lambda status: status["c2ml"] is not None)
            yield
        finally:
            child.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_PATIENCE_S)
            child.kill()
            child.wait()

    def enrol(self, node: Node, inside: Sequence[str]) -> dict[str, Any]:
        """Makes a node of the gateway; returns what the program of its host is told of its agent."""
        cgroup = self.cgroup(node)
        cgroup.mkdir()
        usable = cooperation.usable_keys(self.wanted, node, self.plan.links, str(self._usable(node.usable)))
        if "usable_command" in usable:
            assert node.usable is not None
            self._tell_usable(node.usable, f"{self.plan.links[node.usable].rates_bps[0]:.0f}bit/s")
        file = self._file(node.name)
        told = cooperation.agent_file(
            node, self._name(node.name), str(self.directory / f"{node.name}.node"), str(cgroup), usable
        )
        store.write(file, told)
        agent, token = str(programs.find("agent")), self._token(node)
        testbed.run([*inside, agent, "enrol", str(file), "--token", str(token), "--called", node.name])
        return {"agent": agent, "file": str(file), "cgroup": str(cgroup), "lead_s": node.lead_s}

    def cgroup(self, node: Node) -> Path:
        """Returns the cgroup of a node."""
        hierarchy = testbed.hierarchy()
        assert hierarchy is not None, "require() has looked"
        return hierarchy / self._name(node.name)

    def changed(self, link: int, values: Mapping[str, Any]) -> None:
        """Tells the gateway and agents of a change of a link, if it is that of its forward rate."""
        if "rate" not in values:
            return
        if link == self.wanted.link:
            programs.ask(self._socket, {"do": "set", "values": {"reverse_rate": values["rate"]}})
        if any(node.usable == link for node in self.wanted.nodes):
            self._tell_usable(link, values["rate"])

    def status(self) -> dict[str, Any]:
        """Returns what the gateway tells of its nodes; it is at most 0.2 s old."""
        found: dict[str, Any] = programs.ask(self._socket, {"do": "status"})["c2ml"]
        return found

    def await_sessions(self, count: int) -> None:
        """Waits until so many nodes have budgets."""
        end = time.monotonic() + _PATIENCE_S
        while (found := self.status()["holders"]) < count:
            if time.monotonic() > end:
                raise LabError(f"{found} of {count} nodes have budgets after {_PATIENCE_S:g} s")
            time.sleep(_LOOK_S)

    def _token(self, node: Node) -> Path:
        """Makes a token for a node; returns the file which has it."""
        file = self.directory / f"{node.name}.token"
        gateway = str(programs.find("gateway"))
        store.write(file, testbed.run([gateway, "invite", str(self._file("gateway")), *node.share]))
        return file

    def _await(self, child: subprocess.Popen[bytes], log: Path, is_ready: Callable[[Any], bool]) -> None:
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end and child.poll() is None:
            with contextlib.suppress(LabError):
                if is_ready(programs.ask(self._socket, {"do": "status"})):
                    return
            time.sleep(_LOOK_S)
        raise LabError(f"penstock-gateway did not start: {log.read_text(encoding='utf-8', errors='replace').strip()}")

    def _tell_usable(self, link: int, rate: str) -> None:
        store.write(self._usable(link), rate)

    def _usable(self, link: int | None) -> Path:
        return self.directory / f"usable{link}"

    def _name(self, what: str) -> str:
        return f"{self.mark}-{what}"

    def _file(self, what: str) -> Path:
        return self.directory / f"{what}.toml"

    @property
    def _socket(self) -> Path:
        return testbed.CONTROL / f"{self._name('g')}.sock"
