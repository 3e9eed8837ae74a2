"""Runs a case of the comparison with the kernel's TCP through `penstock-emulate`."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.verify import lab
from penstock.verify.cases import Case
from penstock.verify.measure import Measures, Packets, measure
from penstock.verify.simulated import START_SPREAD_S

_TRAFFIC = Path(__file__).with_name("traffic.py")
_PORT = 5201
# Seconds after the duration of a run until a program that does not end is killed.
_PATIENCE_S = 15.0


@dataclass(frozen=True)
class Attempt:
    """The result of one run, and whether the machine delayed its packets too much."""

    measures: Measures
    disturbed: bool
    lateness_p99_us: float
    retransmits: int
    windows: list[list[float]]


def run(case: Case, begin_s: float, end_s: float, emulator: Path, seed: int, tick: Callable[[float], None]) -> Attempt:
    """Executes one run, and measures it from `begin_s` to `end_s` after its first data packet."""
    with tempfile.TemporaryDirectory(prefix="penstock-verify-") as directory, ExitStack() as stack:
        left, right = stack.enter_context(lab.namespaces())
        file = Path(directory) / "packets.csv"
        bottleneck = stack.enter_context(lab.Program(_emulate(case, emulator, left, right, file, seed, end_s)))
        bottleneck.await_line("ready", of_stderr=True)
        receiver = stack.enter_context(lab.Program(_traffic(right, "receive", _receiving(case, end_s))))
        receiver.await_line("listening")
        # The traffic lasts a little longer than the measurement, for the handshakes.
        sender = stack.enter_context(lab.Program(_traffic(left, "send", _sending(case, end_s + 0.5, seed))))
        sent = sender.result(end_s + _PATIENCE_S, tick)
        received = receiver.result(_PATIENCE_S)
        bottleneck.stop()
        report = bottleneck.result(_PATIENCE_S)
        packets = Packets.read(file, "forward").between(begin_s, end_s)
    goodput = _goodput_mbps(received["samples"], begin_s, end_s)
    late = max(report[way]["lateness_us"]["p99"] for way in ("forward", "reverse"))
    windows = [[round(t - sent["begin"], 3), *rest] for t, *rest in sent["windows"]]
    return Attempt(
        measure(packets, goodput, case.path.rtt_ms), bool(report["disturbed"]), late, sum(sent["retransmits"]), windows
    )


def _emulate(case: Case, emulator: Path, left: str, right: str, file: Path, seed: int, end_s: float) -> list[str]:
    return [
        *(str(emulator), "--left-netns", left, "--right-netns", right),
        *("--rate", f"{case.path.rate_mbps}Mbit/s", "--delay", f"{case.path.rtt_ms / 2:g}ms"),
        *("--limit", case.limit, "--aqm", case.aqm, "--seed", str(seed)),
        # The emulator prints its report at SIGTERM; the duration only ends it if the signal does not come.
        *("--json", "--realtime", "--packets", str(file), "--duration", f"{end_s + 2 * _PATIENCE_S:g}s"),
    ]


def _traffic(namespace: str, work: str, wanted: dict[str, Any]) -> list[str]:
    return [*lab.inside(namespace), sys.executable, "-I", str(_TRAFFIC), work, json.dumps(wanted)]


def _receiving(case: Case, end_s: float) -> dict[str, Any]:
    return {"address": lab.RIGHT_ADDRESS, "port": _PORT, "flows": case.flows, "limit_s": end_s + _PATIENCE_S}


def _sending(case: Case, duration_s: float, seed: int) -> dict[str, Any]:
    dice = random.Random(f"{case.name} {seed}")
    starts = sorted(dice.uniform(0, START_SPREAD_S) for _ in range(case.flows))
    wanted = {"cc": case.control, "duration_s": duration_s, "starts_s": starts}
    return {"address": lab.RIGHT_ADDRESS, "port": _PORT, **wanted}


def _goodput_mbps(samples: list[list[float]], begin_s: float, end_s: float) -> float:
    """Returns the goodput between the first and the last sample in this time, in Mbit/s."""
    first = samples[0][0]
    inside = [sample for sample in samples if begin_s <= sample[0] - first <= end_s]
    if len(inside) < 2:
        raise lab.LabError("the receiver got nothing in the time that counts")
    (begin, *before), (end, *after) = inside[0], inside[-1]
    return (sum(after) - sum(before)) * 8 / (end - begin) / 1e6
