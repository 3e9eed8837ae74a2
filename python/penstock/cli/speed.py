"""What `penstock verify speed` prints of the measurements of `penstock.bench`."""

from __future__ import annotations

from penstock import bench
from penstock.bench import cases, costs, emulated, gym, instructions, layers, own, schedulers
from penstock.bench.compare import Row
from penstock.cli import show


def main(*, json: bool = False, quick: bool = False, peer: bool = True, repeat: int = 3) -> int:
    """Measures, prints the results and returns the exit code. After Ctrl-C it prints the scenarios that are done."""
    found = bench.run(quick=quick, peer=peer, repeat=repeat)
    if json:
        show.as_json(found.to_json())
    else:
        _print_table(found.rows, found.missing, found.counted)
        _print_costs(found.alone)
        _print_schedulers(found.scheduled)
        _print_layers(found.layered)
        _print_own(found.python)
        _print_decided(found.decided)
        _print_emulated(found.real)
    return 130 if found.interrupted else 0


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
    show.table("CPU time per packet: Penstock, then ns-3", _COLUMNS, [_cells(row) for row in rows])
    print(f"\n{bench.COMPARED}")
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
    show.table("Algorithms in Python (docs/your-own.md), beside built-in ones", own.COLUMNS, own.cells(python))


def _print_decided(decided: gym.Costs) -> None:
    if decided.missing:
        print(f"\ndecisions of agents: not measured: {decided.missing}")
        return
    show.table("Decisions of agents (penstock.gym), beside the same runs without", gym.COLUMNS, gym.cells(decided))
    print(f"load average before: {decided.load:.1f}")


def _print_emulated(real: emulated.Costs) -> None:
    """Prints what the emulator of real packets costs, and how exact it is."""
    if real.missing:
        print(f"\nemulator: not measured: {real.missing}")
        return
    title = "penstock-emulate at line rate: packets of 1500 B, FQ-CoDel, beside itself as a bare forwarder and TBF"
    show.table(title, emulated.LINE_COLUMNS, emulated.line_cells(real))
    show.table("Rate between two arrivals, beside the kernel's TBF", emulated.RATE_COLUMNS, emulated.rate_cells(real))
    show.table("Round trips of an idle path of 10 ms each way", emulated.IDLE_COLUMNS, emulated.idle_cells(real))
    print("load average: {:.1f} before, {:.1f} after".format(*real.load))


def _print_schedulers(costs: schedulers.Costs) -> None:
    title = "Packet schedulers alone (TEMPEST): an enqueue and a dequeue with the harness"
    show.table(title, schedulers.COLUMNS, schedulers.cells(costs))
    if costs.instructions_missing:
        print(f"instructions of schedulers: {costs.instructions_missing}")


def _print_layers(costs: list[layers.Cost]) -> None:
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
