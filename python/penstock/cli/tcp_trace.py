"""`run --trace tcp` records windows of TCP connections over time. Contains the old verb `tcp-trace`, too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from penstock import ecn
from penstock.cli import show
from penstock.cli.base import old_name
from penstock.cli.progress import Bar
from penstock.mistake import MistakeError

if TYPE_CHECKING:
    from penstock.engine import Result
    from penstock.scenario import Scenario
    from penstock.store import Directory

INTERVAL = "10ms"


@old_name("tcp-trace", "run --trace tcp")
def command(
    scenario: Path = typer.Argument(help="A scenario file, see docs/reference/scenarios.md.", metavar="SCENARIO"),
    flows: str = typer.Option("", help='Numbers of bulk and transfer flows, such as "0,3"; default: the first eight.'),
    interval: str = typer.Option(INTERVAL, help="Time between samples."),
    seed: int | None = typer.Option(None, min=0, max=2**64 - 1, help="Seed to use instead of the scenario's."),
    out: Path | None = typer.Option(None, "-o", "--out", help="Directory; default runs/NAME-HASH-tcp."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run a scenario and write cwnd, ssthresh, RTT, pace, bytes in flight and state of its flows over time."""
    from penstock.scenario import Scenario

    trace(Scenario.load(scenario), flows, interval, seed, out, json)


def trace(source: Scenario, flows: str, interval: str, seed: int | None, out: Path | None, json: bool) -> None:
    """Runs the scenario, writes the tables and the figure of its TCP connections, and prints a summary of them."""
    from penstock import rundir
    from penstock.engine import Watch, simulate

    chosen = numbers(flows)
    path = out or rundir.default_path(source, seed).with_name(f"{rundir.default_path(source, seed).name}-tcp")
    if (path / rundir.MANIFEST).exists():
        raise MistakeError(f"{path}: holds a run, whose results a trace would replace; name another directory")
    with rundir.replacing(path) as new:
        with Bar(source.name, quiet=json) as bar:
            result = simulate(source, seed, on_progress=bar.of_one_run(), watch=Watch(chosen, interval))
        told = _summary(result, interval)
        _write(result, told, new)
    show.warn(ecn.warning(result.summary))
    if json:
        show.as_json({**told, "directory": str(path)})
    else:
        _print(told)
        show.line(f"{path}: tcp_trace.parquet, queue_trace.parquet, {rundir.TRACE}")


def numbers(flows: str) -> tuple[int, ...]:
    """Returns numbers of flows from a text such as `0,3`."""
    texts = [text.strip() for text in flows.split(",")] if flows.strip() else []
    if not all(text.isascii() and text.isdigit() for text in texts):
        raise MistakeError(f'--flows {flows}: numbers of flows with commas between, such as "0,3"')
    return tuple(dict.fromkeys(int(text) for text in texts))


def _summary(result: Result, interval: str) -> dict[str, Any]:
    from penstock import tcp_trace

    flows, queues = result.tables[tcp_trace.FLOWS], result.tables[tcp_trace.QUEUES]
    names = {flow["id"]: flow["cc"] for flow in result.summary["flows"]}
    return {
        "name": result.summary["name"],
        "duration_s": result.summary["duration_s"],
        "seed": result.seed,
        "interval": interval,
        "flows": [tcp_trace.flow_summary(flows, flow, names[flow]) for flow in result.watched],
        "queues": [
            tcp_trace.queue_summary(queues, index, bottleneck["name"])
            for index, bottleneck in enumerate(result.summary["bottlenecks"])
        ],
    }


def _write(result: Result, told: dict[str, Any], new: Directory) -> None:
    from penstock import plots, rundir, tcp_trace

    flows, queues = result.tables[tcp_trace.FLOWS], result.tables[tcp_trace.QUEUES]
    names = {flow["flow"]: f"{flow['flow']}: {flow['cc']}" for flow in told["flows"]}
    bottlenecks = [queue["queue"] for queue in told["queues"]]
    for name, table in ((tcp_trace.FLOWS, flows), (tcp_trace.QUEUES, queues)):
        new.put(f"{name}.parquet", rundir.table_bytes(name, table))
    new.put(rundir.TRACE, plots.png(plots.traced(flows, queues, names, bottlenecks)))
    new.put(rundir.SUMMARY, rundir.dump(told))


def _print(told: dict[str, Any]) -> None:
    def of(numbers: dict[str, float] | None, key: str, unit: float = 1.0) -> str:
        return "-" if numbers is None else f"{numbers[key] / unit:.1f}"

    rows = [
        [
            str(flow["flow"]),
            flow["cc"],
            of(flow["cwnd_bytes"], "mean", 1e3),
            of(flow["cwnd_bytes"], "max", 1e3),
            of(flow["in_flight_bytes"], "mean", 1e3),
            of(flow["srtt_ms"], "mean"),
            of(flow["srtt_ms"], "max"),
            of(flow["pacing_bps"], "mean", 1e6),
            f"{flow['retransmitted_segments']:,}",
            f"{flow['timeouts']}",
        ]
        for flow in told["flows"]
    ]
    heads = (
        "flow",
        "cc",
        "cwnd kB mean",
        "max",
        "in flight kB mean",
        "RTT ms mean",
        "max",
        "pace Mbit/s",
        "resent",
        "RTOs",
    )
    show.table(f"{told['name']}: a sample every {told['interval']}", heads, rows, left=2)
