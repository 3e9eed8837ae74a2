"""Scenarios on real kernels: namespaces as hosts, `penstock-emulate` as bottleneck. docs/wire.md describes it.

The kernel is that of this machine, in real time, or one in a jar, in virtual time.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from penstock import store, testbed
from penstock.engine import Result
from penstock.jar import Jar
from penstock.scenario import Scenario
from penstock.wire import captures, jarred, kernel_queues, measure, plan, programs, shell, tcp, world
from penstock.wire.packets import dropped_on_arrival, joined
from penstock.wire.world import Tick

__all__ = ["check", "play", "require"]

_LATE_AGENT_S = 0.05  # a flow which begins so late has been disturbed


def check(
    scenario: Scenario, seed: int | None = None, kernel: Jar | None = None, has_tc: bool = False
) -> dict[str, Any]:
    """Says what a run would do; raises `ScenarioError` at the first key that the wire cannot do."""
    return plan.told(_planned(scenario, seed, kernel, has_tc))


def require(has_tc: bool = False) -> None:
    """Raises `MistakeError` with what this machine lacks for real packets, or for disciplines of its kernel as well."""
    world.require()
    if has_tc:
        kernel_queues.require()


def _planned(scenario: Scenario, seed: int | None, kernel: Jar | None, has_tc: bool) -> plan.Plan:
    if kernel:
        wanted = plan.read(scenario, seed, "jar-tc" if has_tc else "jar", kernel.controls, kernel.disciplines)
    elif has_tc:
        wanted = plan.read(scenario, seed, "tc", disciplines=kernel_queues.kinds())
    else:
        wanted = plan.read(scenario, seed)
    world.check(wanted)
    return wanted


def play(
    scenario: Scenario,
    seed: int | None = None,
    *,
    packets: Path | None = None,
    on_progress: Tick = lambda _now, _end: None,
    on_host: str | None = None,
    kernel: Jar | None = None,
    has_tc: bool = False,
    stop: Callable[[], bool] = lambda: False,
    keeps_datagrams: bool = False,
) -> Result:
    """Plays a scenario in real time, or in the virtual time of a `kernel` in a jar.

    With `packets` the fate of each packet comes into that file: CSV if its name ends in .csv, else pcapng. With
    `on_host` the terminal has a shell on that host while the scenario runs in real time. With `has_tc` queues are
    disciplines of the kernel. Raises `Stopped` when `stop` returns true. With `keeps_datagrams` the result has the
    table `datagrams`: of each flow their numbers, when they were sent and how long they were on their way.
    """
    if kernel is None:
        world.require()
    begin, cpu = time.perf_counter(), _cpu_s()
    as_capture = packets is not None and packets.suffix != ".csv"
    planned = _planned(scenario, seed, kernel, has_tc)
    wanted = replace(planned, keeps_capture=as_capture, keeps_datagrams=keeps_datagrams)
    if on_host is not None:
        shell.check(wanted, on_host)
    with TemporaryDirectory(prefix=testbed.mark("wire") + "-packets-") as directory:
        if kernel is None:
            found = world.play(wanted, Path(directory), on_progress, on_host=on_host, stop=stop)
        else:
            testbed.remove_leftovers()
            found = jarred.play(wanted, Path(directory), kernel, on_progress, stop)
        for queue in found.tc:
            if queue["kind"] == "codel" and queue["dropped"]["overflow"]:
                way = ("forward", "reverse")[queue["reverse"]]
                dropped_on_arrival(found.packets[queue["index"]], way, queue["dropped"]["overflow"])
        summary, tables = measure.summarize(wanted, found)
        measure.check_invariants(wanted, summary)
        if packets is not None:
            _keep(packets, wanted, found)
    kept = tables if wanted.keeps_series else {k: v for k, v in tables.items() if not k.endswith("_seconds")}
    times = (_cpu_s() - cpu, time.perf_counter() - begin)
    about = {**_about(found, kernel), "shell": on_host}
    return Result(scenario, wanted.resolved, wanted.seed, summary, *times, kept, wire=about)


def _keep(file: Path, wanted: plan.Plan, found: world.Recorded) -> None:
    """Writes the packets of all links into one file."""
    names = [link.name for link in wanted.links]
    if wanted.keeps_capture:
        store.write(file, captures.joined(list(zip(names, found.captures, strict=True)), wanted.captured))
    else:
        store.write(file, joined(list(zip(names, found.packets, found.zeros_s, strict=True))))


def _cpu_s() -> float:
    """Returns the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _about(found: world.Recorded, kernel: Jar | None) -> dict[str, Any]:
    """Returns what belongs to a run on the wire in its manifest."""
    reports = found.reports
    lates = {way: [report[way]["lateness_us"] for report in reports] for way in ("forward", "reverse")}
    # Of packets that there were not, nothing was late.
    late = {way: max(of, key=lambda one: -1.0 if one["p99"] is None else one["p99"]) for way, of in lates.items()}
    disturbed = sorted({why for one in (*reports, *found.others) for why in one["disturbed_by"]})
    late_agents = max((one["late_s"] for one in found.agents.values()), default=0.0)
    lost = sum(one["lost_sessions"] for one in found.agents.values())
    disturbed += ["a flow waited for the budget of its node"] * (late_agents > _LATE_AGENT_S)
    disturbed += ["an agent lost its session"] * (lost > 0)
    strange = sum(report[way].get("through", {}).get("strange", 0) for report in found.reports for way in lates)
    disturbed += ["packets overtook others of their connection in the kernel"] * (strange > 0)
    disturbed += ["an agent failed"] * any(one["failed"] for one in found.agents.values())
    traffic = [one["late_s"] for one in found.sent.values() if "late_s" in one]
    return {
        "kernel": f"{kernel.version} in virtual time" if kernel else platform.release(),
        "controls": kernel.controls if kernel else tcp.controls(),
        "sysctls": found.sysctls,
        "offloads": "TUN interfaces have none: each packet passes alone",
        "emulator": str(world.emulator()),
        "disturbed": bool(disturbed),
        "disturbed_by": disturbed,
        "lateness_us": late,
        "lateness_of_links_us": lates,
        "lateness_of_longer_ways_us": [one["forward"]["lateness_us"] for one in found.others],
        "lateness_of_datagrams_s": max(traffic, default=0.0),
        "lateness_of_changes_s": max((one["late_s"] for one in found.changed), default=0.0),
        "unread": sum(report[way]["unread"] for report in reports for way in ("forward", "reverse")),
        "starved_s": sum(report[way]["starved_s"] for report in reports for way in ("forward", "reverse")),
        "stalled": max((report["stalled"] for report in reports), key=lambda one: float(one["longest_s"])),
        "load": list(os.getloadavg()),
        "errors": {id_: one["error"] for id_, one in found.sent.items() if one.get("error")},
        "unmeasured": measure.UNMEASURED | (measure.UNMEASURED_OF_GATEWAY if found.gateway else {}),
        "measured_otherwise": measure.OTHERWISE | (measure.OTHERWISE_OF_GATEWAY if found.gateway else {}),
        **({"cooperation": _of_agents(found)} if found.gateway else {}),
        **({"tc": found.tc} if found.tc else {}),
    }


def _of_agents(found: world.Recorded) -> dict[str, Any]:
    """Returns what belongs to the gateway of budgets and its agents."""
    return {
        "form": "windows clamped and paced at each round trip (docs/hosts.md), and not set by equations 2.1 and 2.2",
        "gateway": str(programs.find("gateway")),
        "agent": str(programs.find("agent")),
        "agents": found.agents,
    }
