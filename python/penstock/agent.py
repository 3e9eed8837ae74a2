"""The agent of a node (docs/hosts.md), a part of the program of hosts. It imports nothing of the package."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

_PATIENCE_S = 20.0
_LOOK_S = 0.002
_STATUS_S = 0.5  # an agent stays so long after the run, until the status of its gateway has been asked


class Hosts(Protocol):
    """What happens in one namespace."""

    flow_ended: Callable[[], None]

    def now(self) -> float:
        """Returns the seconds since the begin of the run."""

    def at(self, due: float, work: Callable[[], None]) -> None:
        """Calls `work` at a time of the run."""


class Agent:
    """The agent of this node: it runs while the node has a flow, and a flow begins when the node has a budget."""

    def __init__(self, hosts: Hosts, wanted: dict[str, Any]) -> None:
        self._hosts, self._told = hosts, wanted["agent"]
        self._log, self._last = (Path(f"{self._told['file']}.{what}") for what in ("log", "json"))
        self._flows, self._starts, self._late_s, self._said = 0, 0, 0.0, 0
        self._child: subprocess.Popen[bytes] | None = None
        hosts.flow_ended = self._leave
        for flow in wanted["send"]:
            self._plan(flow, flow["start_s"] - self._told["lead_s"])

    def _plan(self, flow: dict[str, Any], lead: float) -> None:
        if lead <= 0:
            self._join()
            self._await_budget()
        else:
            self._hosts.at(lead, self._join)
            self._hosts.at(flow["start_s"], lambda: self._await_budget(flow["start_s"]))
        if flow["over"] != "tcp" and flow["stop_s"] is not None:
            self._hosts.at(flow["stop_s"], self._leave)

    def _join(self) -> None:
        self._flows += 1
        if self._flows > 1:
            return
        self._end()  # one that was told to go may not have gone yet
        command = ["setpriv", "--pdeathsig", "KILL", "--", self._told["agent"], "run", "--json", self._told["file"]]
        with self._log.open("ab") as log, self._last.open("ab") as last:
            self._said = log.tell()
            self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=last, stderr=log)
        self._starts += 1

    def _leave(self) -> None:
        self._flows -= 1
        if not self._flows and self._child is not None:
            self._child.send_signal(signal.SIGTERM)

    def _await_budget(self, since: float | None = None) -> None:
        end = time.monotonic() + _PATIENCE_S
        while b"a budget of" not in (said := self._log.read_bytes()[self._said :]):
            if self._child is None or self._child.poll() is not None or time.monotonic() > end:
                sys.exit(f"penstock-agent has no budget: {said.decode(errors='replace').strip()}")
            time.sleep(_LOOK_S)
        if since is not None:
            self._late_s = max(self._late_s, self._hosts.now() - since)

    def _end(self) -> None:
        if self._child is not None:
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()

    def result(self) -> dict[str, Any]:
        """Ends the agent; returns how often it ran and how late flows began, and sums of what its runs counted."""
        time.sleep(_STATUS_S)
        self._end()
        lines = self._last.read_text(encoding="utf-8").splitlines() if self._starts else []
        ran = [json.loads(line) for line in lines]
        return {
            "starts": self._starts,
            "late_s": round(self._late_s, 6),
            "changes": sum(one["changes"] for one in ran),
            "failed": self._starts - len(ran),  # one that ends in order tells what it counted
            "lost_sessions": sum(one["sessions"]["lost"] for one in ran),
        }
