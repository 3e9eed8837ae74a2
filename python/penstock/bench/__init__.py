"""Measures the CPU time of a simulated packet, here and in ns-3: `penstock verify speed`, docs/benchmarks.md.

`cases` reads bench/scenarios, `penstock.ns3` runs them in ns-3, `compare` runs both programs in turn, `instructions`
counts instructions, `costs` measures disciplines and controls alone, `schedulers` packet schedulers, `layers` two
schedulers in a row, `own` algorithms in Python, `emulated` the emulator of real packets, and this module shows the
results.
"""

from __future__ import annotations

import sys
from typing import Any

from penstock import ns3
from penstock.bench import cases, costs, emulated, instructions, layers, own, schedulers
from penstock.bench.compare import Row, measure
from penstock.mistake import MistakeError

__all__ = ["main"]

COMPARED = (
    "CPU seconds per TCP segment with payload that the bottleneck sent, the least of the repetitions of each program; "
    "ratio: ns-3's over Penstock's"
)


def main(*, json: bool = False, quick: bool = False, peer: bool = True, repeat: int = 3) -> int:
    """Measures, prints the results and returns the exit code. After Ctrl-C it prints the scenarios that are done."""
    if repeat < 1:
        raise MistakeError(f"--repeat {repeat}: must be at least 1")
    rows: list[Row] = []
    counted: instructions.Count | str = "not reached"
    alone = costs.NOT_REACHED
    scheduled = schedulers.NOT_REACHED
    layered: list[layers.Cost] = []
    python: list[own.Cost] = []
    real = emulated.NOT_REACHED
    missing: str | None = "not asked for (--no-peer)"
    interrupted = False
    try:
        program, missing = ns3.ready() if peer else (None, missing)
        if missing:
            _say(f"without ns-3: {missing}")
        for case in cases.load(quick):
            rows.append(measure(case, program, repeat, _say))
        counted = instructions.count(_say)
        alone = costs.measure(quick, _say)
        scheduled = schedulers.measure(quick, _say)
        layered = layers.measure(quick, _say)
        python = own.measure(quick, repeat, _say)
        real = emulated.measure(quick, _say)
    except KeyboardInterrupt:
        interrupted = True
        _say("interrupted: what is done is shown")
    if json:
        two = {"layers": [cost.to_json() for cost in layered], "python": [cost.to_json() for cost in python]}
        costs_alone = {**alone.to_json(), **scheduled.to_json(), **two, **real.to_json()}
        _print_json(rows, missing, counted, costs_alone, interrupted)
    else:
        _print_table(rows, missing, counted)
        _print_costs(alone)
        _print_schedulers(scheduled)
        _print_layers(layered)
        _print_own(python)
        print_emulated(real)
    return 130 if interrupted else 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print_json(
    rows: list[Row], missing: str | None, counted: instructions.Count | str, alone: dict[str, Any], interrupted: bool
) -> None:
    from penstock.cli import show

    show.as_json(
        {
            "rows": [row.to_json() for row in rows],
            "compared": COMPARED,
            "processor": cases.processor(),
            "peer_missing": missing,
            "instructions_per_packet": None if isinstance(counted, str) else counted.per_packet,
            "bytes_per_flow": None if isinstance(counted, str) else counted.bytes_per_flow,
            "instructions_missing": counted if isinstance(counted, str) else None,
            **alone,
            "interrupted": interrupted,
        }
    )


_COLUMNS = (
    "scenario",
    "flows",
    "simulated s",
    "packets",
    "use",
    "CPU s",
    "ns/packet",
    "ns-3 packets",
    "use",
    "CPU s",
    "ns/packet",
    "ratio",
)


def _print_table(rows: list[Row], missing: str | None, counted: instructions.Count | str) -> None:
    from penstock.cli import show

    show.table("CPU time per packet: Penstock, then ns-3", _COLUMNS, [_cells(row) for row in rows])
    print(f"\n{COMPARED}")
    print(f"processor: {cases.processor()}")
    builds = {row.peer.build for row in rows if row.peer}
    for build in sorted(builds):
        print(f"ns-3: {build}")
    if missing:
        print(f"no ns-3: {missing}")
    for row in rows:
        if row.peer_failure:
            print(f"{row.name}: no ns-3: {row.peer_failure}")
    if isinstance(counted, str):
        print(f"instructions per packet: not counted: {counted}")
    else:
        print(f"instructions per packet: {counted.per_packet:,.0f} ({counted.scenario}, callgrind)")
        print(f"memory per flow: {counted.bytes_per_flow:,} B ({counted.scenario})")


def _print_costs(alone: costs.Costs) -> None:
    from penstock.cli import show

    if isinstance(alone.disciplines, str):
        print(f"\ndisciplines alone: not measured: {alone.disciplines}")
    else:
        title = "Disciplines alone: one packet in and one out beside a backlog, and the most it may cost"
        show.table(title, costs.DISCIPLINE_COLUMNS, costs.discipline_cells(alone.disciplines))
    if isinstance(alone.pink, str):
        print(f"\nPINK alone: not measured: {alone.pink}")
    else:
        show.table("PINK alone, and the most it may cost", costs.PINK_COLUMNS, costs.pink_cells(alone.pink))
        ratios = (alone.pink["ack_ratio"], alone.pink["data_ratio"])
        print("best times at 100,000 flows over those at 1,000: ACKs {:.2f}, data {:.2f}".format(*ratios))
    if isinstance(alone.coop, str):
        print(f"\ncooperative control alone: not measured: {alone.coop}")
    else:
        show.table("Cooperative control at the gateway", costs.COOP_COLUMNS, costs.coop_cells(alone.coop))

    if isinstance(alone.controls, str):
        print(f"\ncontrols alone: not measured: {alone.controls}")
    else:
        title = "Controls alone: one segment sent and acknowledged, and the most it may cost"
        show.table(title, costs.CONTROL_COLUMNS, costs.control_cells(alone.controls))


def _print_own(python: list[own.Cost]) -> None:
    from penstock.cli import show

    show.table("Algorithms in Python (docs/your-own.md), beside built-in ones", own.COLUMNS, own.cells(python))


def print_emulated(real: emulated.Costs) -> None:
    """Prints what the emulator of real packets costs, and how exact it is."""
    from penstock.cli import show

    if real.missing:
        print(f"\nemulator: not measured: {real.missing}")
        return
    title = "penstock-emulate at line rate: packets of 1500 B, FQ-CoDel, beside itself as a bare forwarder and TBF"
    show.table(title, emulated.LINE_COLUMNS, emulated.line_cells(real))
    show.table("Rate between two arrivals, beside the kernel's TBF", emulated.RATE_COLUMNS, emulated.rate_cells(real))
    show.table("Round trips of an idle path of 10 ms each way", emulated.IDLE_COLUMNS, emulated.idle_cells(real))
    print("load average: {:.1f} before, {:.1f} after".format(*real.load))


def _print_schedulers(costs: schedulers.Costs) -> None:
    from penstock.cli import show

    title = "Packet schedulers alone (TEMPEST): an enqueue and a dequeue with the harness"
    show.table(title, schedulers.COLUMNS, schedulers.cells(costs))
    if costs.instructions_missing:
        print(f"instructions of schedulers: {costs.instructions_missing}")


def _print_layers(costs: list[layers.Cost]) -> None:
    from penstock.cli import show

    title = "HFS beside double-DRR (TEMPEST): an enqueue and a dequeue with the harness"
    show.table(title, layers.COLUMNS, layers.cells(costs))


def _cells(row: Row) -> list[str]:
    own = [
        row.name,
        f"{row.flows:,}",
        f"{row.duration_s:g}",
        f"{row.packets:,}",
        f"{row.utilization:.1%}",
        f"{row.cpu_s:.3f}",
        f"{row.ns_per_packet:,.0f}",
    ]
    if row.peer is None:
        return [*own, "-", "-", "-", "-", "-"]
    peer = row.peer
    return [
        *own,
        f"{peer.packets:,}",
        f"{peer.utilization:.1%}",
        f"{peer.cpu_s:.2f}",
        f"{peer.ns_per_packet:,.0f}",
        "-" if row.ratio is None else f"{row.ratio:.0f}x",
    ]
