"""Measures algorithms without the simulator, with example programs of the core which are built with --release.

`qdisc_cost` enqueues and dequeues packets in a queue with a backlog; `pink_cost` gives data and ACKs to PINK; `cc_cost`
gives a control an ACK for each segment; `coop_cost` lets clients join and leave a gateway. All print JSON.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.bench import cases

BAR_NS, BAR_FLOW_QUEUEING_NS = 60.0, 120.0  # one enqueue and one dequeue
BAR_PINK_ACK_NS, BAR_PINK_DATA_NS, BAR_PINK_BYTES = 60.0, 40.0, 128
GROWTH_OF_PINK = 2.5  # from the least number of flows to the largest: cache misses, not work
BAR_ACK_NS, BAR_MODEL_ACK_NS = 40.0, 80.0  # one segment sent and acknowledged; BBR measures with each ACK
BAR_COOP_NS = 2000.0  # a client that joins or leaves
QUICK_PACKETS, QUICK_ROUNDS = 400_000, 3

_RUN = ("cargo", "run", "--release", "--locked", "--quiet", "--package", "penstock-core", "--example")


class _NotMeasuredError(Exception):
    pass


@dataclass(frozen=True)
class Costs:
    """The results of the example programs, or the reason why one could not run."""

    disciplines: list[dict[str, Any]] | str
    pink: dict[str, Any] | str
    controls: list[dict[str, Any]] | str
    coop: dict[str, Any] | str

    def to_json(self) -> dict[str, Any]:
        """Returns the keys of the benchmark's JSON object: null for what was not measured, with the reason."""
        disciplines = self.disciplines if isinstance(self.disciplines, str) else None
        pink = self.pink if isinstance(self.pink, str) else None
        controls = self.controls if isinstance(self.controls, str) else None
        coop = self.coop if isinstance(self.coop, str) else None
        return {
            "disciplines": None if disciplines else self.disciplines,
            "disciplines_missing": disciplines,
            "pink": None if pink else self.pink,
            "pink_missing": pink,
            "controls": None if controls else self.controls,
            "controls_missing": controls,
            "coop": None if coop else self.coop,
            "coop_missing": coop,
        }


NOT_REACHED = Costs(*["not reached"] * 4)


def measure(quick: bool, say: Callable[[str], None]) -> Costs:
    """Builds the example programs, which may take minutes, and runs all of them."""
    say("disciplines alone")
    disciplines = _tried(_disciplines)
    say("PINK alone")
    pink = _tried(lambda: _pink(quick))
    say("controls alone")
    controls = _tried(_controls)
    say("cooperative control alone")
    return Costs(disciplines, pink, controls, _tried(lambda: _coop(quick)))


def _tried(part: Callable[[], Any]) -> Any:
    try:
        return part()
    except _NotMeasuredError as error:
        return str(error)


def _disciplines() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _run("qdisc_cost")
    for row in rows:
        row["bar_ns"] = bar_ns(row["kind"])
        row["met"] = row["ns_per_packet"] <= row["bar_ns"]
    return rows


def bar_ns(kind: str) -> float:
    """Returns the largest allowed time of one enqueue and one dequeue, in ns."""
    return BAR_FLOW_QUEUEING_NS if kind in ("flow-queueing", "scheduler") else BAR_NS


def _controls() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _run("cc_cost")
    for row in rows:
        row["bar_ns"] = BAR_MODEL_ACK_NS if row["name"] in ("bbr", "bbr3") else BAR_ACK_NS
        row["met"] = row["ns_per_ack"] <= row["bar_ns"]
    return rows


def _pink(quick: bool) -> dict[str, Any]:
    found: dict[str, Any] = _run("pink_cost", *([f"packets={QUICK_PACKETS}"] if quick else []))
    bars = {"ns_per_ack": BAR_PINK_ACK_NS, "ns_per_data_packet": BAR_PINK_DATA_NS, "bytes_per_flow": BAR_PINK_BYTES}
    first, *others = found["sizes"]
    first["bars"] = bars
    for size in others:
        grown = {name: GROWTH_OF_PINK * first[name] for name in bars if name.startswith("ns_")}
        size["bars"] = bars | grown
    for size in found["sizes"]:
        size["met"] = {name: size[name] <= bar for name, bar in size["bars"].items()}
    return found


def _coop(quick: bool) -> dict[str, Any]:
    found: dict[str, Any] = _run("coop_cost", *([f"rounds={QUICK_ROUNDS}"] if quick else []))
    met = {name: found[name] <= BAR_COOP_NS for name in ("join_ns", "leave_ns")}
    return {**found, "bar_ns": BAR_COOP_NS, "met": met}


def _run(example: str, *arguments: str) -> Any:
    if shutil.which("cargo") is None:
        raise _NotMeasuredError("no cargo in PATH")
    command = [*_RUN, example, *(["--", *arguments] if arguments else [])]
    done = subprocess.run(command, cwd=cases.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise _NotMeasuredError(f"{example} failed: {lines[-1] if lines else done.returncode}")
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise _NotMeasuredError(f"{example}: not JSON: {error}") from None


DISCIPLINE_COLUMNS = ("discipline", "flows", "backlog", "ns/packet", "bar", "met")


def discipline_cells(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Returns the rows of the table of disciplines."""
    return [
        [
            row["name"],
            f"{row['flows']:,}",
            f"{row['backlog']:,}",
            f"{row['ns_per_packet']:.1f}",
            f"{row['bar_ns']:g}",
            _yes(row["met"]),
        ]
        for row in rows
    ]


CONTROL_COLUMNS = ("control", "ns/ACK", "bar", "met")


def control_cells(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Returns the rows of the table of controls."""
    return [[row["name"], f"{row['ns_per_ack']:.1f}", f"{row['bar_ns']:g}", _yes(row["met"])] for row in rows]


PINK_COLUMNS = ("flows", "ns/ACK", "bar", "met", "ns/data packet", "bar", "met", "B/flow", "bar", "met")


def pink_cells(pink: dict[str, Any]) -> list[list[str]]:
    """Returns the rows of the table of PINK."""
    lines = []
    for size in pink["sizes"]:
        line = [f"{size['flows']:,}"]
        for name, form in (("ns_per_ack", "{:.1f}"), ("ns_per_data_packet", "{:.1f}"), ("bytes_per_flow", "{:,}")):
            line += [form.format(size[name]), f"{size['bars'][name]:.3g}", _yes(size["met"][name])]
        lines.append(line)
    return lines


COOP_COLUMNS = ("clients", "ns to join", "met", "ns to leave", "met", "bar", "ns to be heard", "B at the gateway")


def coop_cells(coop: dict[str, Any]) -> list[list[str]]:
    """Returns the row of the table of cooperative control."""
    line = [f"{coop['clients']:,}"]
    for name in ("join_ns", "leave_ns"):
        line += [f"{coop[name]:.0f}", _yes(coop["met"][name])]
    return [[*line, f"{coop['bar_ns']:g}", f"{coop['used_ns']:.0f}", f"{coop['memory_full_bytes']:,}"]]


def _yes(met: bool) -> str:
    return "yes" if met else "no"
