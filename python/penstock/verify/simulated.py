"""Runs a case of the comparison in the simulator."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.engine import Result, simulate
from penstock.scenario import Scenario
from penstock.verify import forms
from penstock.verify.cases import START_SPREAD_S, Case
from penstock.verify.measure import Measures, Packets, measure


def scenario(case: Case, duration_s: float, seed: int = 1, control: str | None = None) -> Scenario:
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
                **_more_of_the_link(case),
            },
            "aqm": {"name": case.aqm, **case.settings},
            "tcp": {**host(case.control), **_more_of_the_host(case), **_instead(control)},
            "flows": _flows(case, seed),
            "output": {"pcapng": ["bottleneck"]},
        }
    )


def host(control: str) -> dict[str, Any]:
    """Returns the keys of [tcp] with which the kernel's TCP differs from the defaults of a scenario."""
    return {"cc": forms.SIMULATED.get(control, control), "hystart": control == "cubic", "rack": True}


def _more_of_the_link(case: Case) -> dict[str, Any]:
    return {"reverse_limit": case.reverse_limit, "loss": case.loss} if case.drawn else {}


def _more_of_the_host(case: Case) -> dict[str, Any]:
    if not case.drawn:
        return {}
    window = {"receive_buffer": f"{case.window_bytes}B", "send_buffer": f"{case.buffer_bytes}B"}
    return {**forms.recovery(case.sack), "ecn": case.ecn, **window}


def _instead(control: str | None) -> dict[str, Any]:
    return {"cc": control, "hystart": False} if control else {}


def _flows(case: Case, seed: int) -> list[dict[str, Any]]:
    if case.drawn:
        return [{"kind": "bulk", "start": f"{start * 1e6:.0f}us"} for start in case.starts_s(seed)]
    return [{"kind": "bulk", "count": case.flows, "start_spread": f"{START_SPREAD_S * 1e3:g}ms"}]


def run(case: Case, seed: int, control: str | None = None, stop: Callable[[], bool] = lambda: False) -> Measures:
    """Executes one run, and measures it; `control` stands for the simulated control of the case."""
    end_s = case.end_s + _first_data_s(case)
    with tempfile.TemporaryDirectory(prefix="penstock-verify-") as directory:
        file = Path(directory) / "packets.csv"
        result = simulate(scenario(case, end_s, seed, control), seed, file, stop=stop)
        packets = Packets.read(file, "bottleneck").between(case.begin_s, case.end_s)
    goodput = _goodput_from_the_start(result, case) if case.drawn else _goodput_mbps(result, case.begin_s)
    return measure(packets, goodput, case.path.rtt_ms)


def _first_data_s(case: Case) -> float:
    """Returns when the first data of a drawn path comes, a round trip and a half after its first flow began."""
    return 1.5 * case.path.rtt_ms / 1e3 if case.drawn else 0.0


def _goodput_from_the_start(result: Result, case: Case) -> float:
    delivered: int = sum(flow["delivered_bytes"] for flow in result.summary["flows"])
    return delivered * 8 / case.measured_s / 1e6


def _goodput_mbps(result: Result, begin_s: float) -> float:
    import pyarrow.compute as pc

    seconds = result.tables["flow_seconds"]
    steady = seconds.filter((pc.field("t_s") > begin_s) & (pc.floor(pc.field("t_s")) == pc.field("t_s")))
    return float(pc.sum(steady["goodput_bps"]).as_py()) / len(pc.unique(steady["t_s"])) / 1e6
