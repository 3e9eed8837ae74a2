"""Runs a case of the comparison in the simulator."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.engine import Result, simulate
from penstock.scenario import Scenario
from penstock.verify.cases import Case
from penstock.verify.measure import Measures, Packets, measure

# Names of controls in the kernel, and their names in scenarios.
_CONTROLS = {"reno": "newreno", "cubic": "cubic-linux"}
START_SPREAD_S = 0.1


def scenario(case: Case, duration_s: float) -> Scenario:
    """Returns the scenario of a case. Only the bottleneck has a delay, as in the emulator."""
    return Scenario.load(
        {
            "name": case.name,
            "duration": f"{duration_s:g}s",
            "topology": {
                "kind": "dumbbell",
                "rate": f"{case.path.rate_mbps}Mbit/s",
                "delay": f"{case.path.rtt_ms / 2:g}ms",
                "limit": case.limit,
                "access_rate": "10Gbit/s",
            },
            "aqm": {"name": case.aqm},
            "tcp": host(case.control),
            "flows": [{"kind": "bulk", "count": case.flows, "start_spread": f"{START_SPREAD_S * 1e3:g}ms"}],
            "output": {"pcapng": ["bottleneck"]},
        }
    )


def host(control: str) -> dict[str, Any]:
    """Returns the keys of [tcp] with which the kernel's TCP differs from the defaults of a scenario."""
    return {"cc": _CONTROLS.get(control, control), "hystart": control == "cubic", "rack": True}


def run(case: Case, begin_s: float, end_s: float, seed: int, stop: Callable[[], bool] = lambda: False) -> Measures:
    """Executes one run, and measures it from `begin_s` to its end."""
    with tempfile.TemporaryDirectory(prefix="penstock-verify-") as directory:
        file = Path(directory) / "packets.csv"
        result = simulate(scenario(case, end_s), seed, file, stop=stop)
        packets = Packets.read(file, "bottleneck").between(begin_s, end_s)
    return measure(packets, _goodput_mbps(result, begin_s), case.path.rtt_ms)


def _goodput_mbps(result: Result, begin_s: float) -> float:
    import pyarrow.compute as pc

    seconds = result.tables["flow_seconds"]
    steady = seconds.filter((pc.field("t_s") > begin_s) & (pc.floor(pc.field("t_s")) == pc.field("t_s")))
    return float(pc.sum(steady["goodput_bps"]).as_py()) / len(pc.unique(steady["t_s"])) / 1e6
