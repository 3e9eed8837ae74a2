"""Runs a case of the comparison with a kernel's TCP through `penstock-emulate`."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.testbed import LabError
from penstock.verify.cases import Case
from penstock.verify.kernels import Kernel, Tick
from penstock.verify.measure import Measures, Packets, measure
from penstock.verify.recording import PATIENCE_S, TRAFFIC
from penstock.verify.traffic import SAMPLE_S

__all__ = ["TRAFFIC", "Attempt", "run", "wanted"]

RIGHT_ADDRESS = "10.77.0.2"
_PORT = 5201
# With more flows than this, the windows of the senders are not stored.
_MOST_WINDOWS = 4


@dataclass(frozen=True)
class Attempt:
    """The result of one run, and whether the machine delayed its packets too much."""

    measures: Measures
    disturbed: bool
    lateness_p99_us: float
    retransmits: int
    windows: list[list[float]]
    counters: dict[str, int]
    """What the kernel counted of the senders: timeouts, probes, recoveries."""


def run(case: Case, kernel: Kernel, emulator: Path, seed: int, starts: list[float], tick: Tick) -> Attempt:
    """Executes one run whose flows begin at `starts`, and measures it."""
    with tempfile.TemporaryDirectory(prefix="penstock-verify-") as directory:
        found = kernel.record(wanted(case, emulator, seed, starts), Path(directory), tick)
        packets = Packets.read(Path(directory) / "packets.csv", "forward").between(case.begin_s, case.end_s)
    sent, report = found["sent"], found["report"]
    goodput = _goodput_mbps(found["received"]["samples"], case.begin_s, case.end_s)
    late = max(report[way]["lateness_us"]["p99"] or 0.0 for way in ("forward", "reverse"))
    windows = [[round(t - sent["begin"], 3), *rest] for t, *rest in sent["windows"]]
    return Attempt(
        measure(packets, goodput, case.path.rtt_ms),
        bool(report["disturbed"]),
        late,
        sum(sent["retransmits"]),
        windows if case.flows <= _MOST_WINDOWS else [],
        found["counters"],
    )


def wanted(case: Case, emulator: Path, seed: int, starts: list[float]) -> dict[str, Any]:
    """Returns the run as `recording` wants it."""
    # The traffic lasts a little longer than the measurement, for the handshakes.
    duration = case.end_s + 0.5 + 2 * case.path.rtt_ms / 1e3
    patience = PATIENCE_S + 2 * case.path.rtt_ms / 1e3
    to = {"address": RIGHT_ADDRESS, "port": _PORT}
    return {
        "emulator": _emulate(case, emulator, seed, duration + 3 * patience),
        "receive": {**to, "flows": case.flows, "limit_s": duration + patience, "window": case.window_bytes},
        "send": {
            **to,
            "cc": case.control,
            "duration_s": duration,
            "starts_s": starts,
            "buffer": case.buffer_bytes,
        },
        "sysctls": {"net.ipv4.tcp_sack": str(int(case.sack)), "net.ipv4.tcp_ecn": str(int(case.ecn))},
        "patience_s": patience,
    }


def _emulate(case: Case, emulator: Path, seed: int, duration_s: float) -> list[str]:
    settings = [f"{key}={json.dumps(value)}" for key, value in case.settings.items()]
    return [
        *(str(emulator), "--rate", f"{case.path.rate_mbps}Mbit/s", "--delay", f"{case.path.rtt_ms / 2:g}ms"),
        *("--limit", case.limit, "--aqm", case.aqm, "--seed", str(seed), "--reverse-limit", case.reverse_limit),
        *(f"--set={setting}" for setting in settings),
        *((f"--loss={case.loss:g}",) if case.loss else ()),
        # The emulator prints its report at SIGTERM; the duration only ends it if the signal does not come.
        *("--json", "--realtime", "--duration", f"{duration_s:g}s"),
    ]


def _goodput_mbps(samples: list[list[float]], begin_s: float, end_s: float) -> float:
    """Returns the goodput between the first and the last sample in this time, in Mbit/s."""
    first = samples[0][0] if samples else 0.0
    # A round trip may deliver its window at once: the last sample is the one at the end, which may be a little late.
    inside = [sample for sample in samples if begin_s <= sample[0] - first <= end_s + SAMPLE_S / 2]
    if len(inside) < 2:
        raise LabError("the receiver got nothing in the time that counts")
    (begin, *before), (end, *after) = inside[0], inside[-1]
    return (sum(after) - sum(before)) * 8 / (end - begin) / 1e6
