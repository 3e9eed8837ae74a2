"""Scenarios on real kernels: namespaces as hosts, `penstock-emulate` as bottleneck. docs/wire.md describes it."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from penstock import store
from penstock.engine import Result
from penstock.scenario import Scenario
from penstock.wire import measure, owner, plan, tcp, world
from penstock.wire.world import Tick

__all__ = ["check", "play"]


def check(scenario: Scenario, seed: int | None = None) -> dict[str, Any]:
    """Says what a run would do; raises `ScenarioError` at the first key that the wire cannot do."""
    wanted = plan.read(scenario, seed)
    world.check(wanted)
    return plan.told(wanted)


def play(
    scenario: Scenario,
    seed: int | None = None,
    *,
    packets: Path | None = None,
    on_progress: Tick = lambda _now, _end: None,
) -> Result:
    """Plays a scenario in real time; with `packets` the fate of each packet comes into that file."""
    world.require()
    begin, cpu = time.perf_counter(), _cpu_s()
    wanted = plan.read(scenario, seed)
    world.check(wanted)
    with TemporaryDirectory(prefix=f"{owner.mark()}-packets-") as directory:
        file = Path(directory) / world.PACKETS
        found = world.play(wanted, file, on_progress)
        summary, tables = measure.summarize(wanted, found)
        if packets is not None:
            store.write(packets, file.read_bytes())
    kept = tables if wanted.keeps_series else {k: v for k, v in tables.items() if not k.endswith("_seconds")}
    times = (_cpu_s() - cpu, time.perf_counter() - begin)
    return Result(scenario, wanted.resolved, wanted.seed, summary, *times, kept, wire=_about(found))


def _cpu_s() -> float:
    """Returns the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _about(found: world.Recorded) -> dict[str, Any]:
    """Returns what belongs to a run on the wire in its manifest."""
    report = found.report
    late = {way: report[way]["lateness_us"] for way in ("forward", "reverse")}
    disturbed = sorted({why for one in (report, *found.others) for why in one["disturbed_by"]})
    traffic = [one["late_s"] for one in found.sent.values() if "late_s" in one]
    return {
        "kernel": platform.release(),
        "controls": tcp.controls(),
        "sysctls": found.sysctls,
        "offloads": "TUN interfaces have none: each packet passes alone",
        "emulator": str(world.emulator()),
        "disturbed": bool(disturbed),
        "disturbed_by": disturbed,
        "lateness_us": late,
        "lateness_of_longer_ways_us": [one["forward"]["lateness_us"] for one in found.others],
        "lateness_of_datagrams_s": max(traffic, default=0.0),
        "lateness_of_changes_s": max((one["late_s"] for one in found.changed), default=0.0),
        "unread": sum(report[way]["unread"] for way in ("forward", "reverse")),
        "starved_s": sum(report[way]["starved_s"] for way in ("forward", "reverse")),
        "stalled": report["stalled"],
        "load": list(os.getloadavg()),
        "errors": {id_: one["error"] for id_, one in found.sent.items() if one.get("error")},
        "unmeasured": measure.UNMEASURED,
        "measured_otherwise": measure.OTHERWISE,
    }
