"""Runs scenarios in ns-3: builds bench/ns3/dumbbell.cc, and converts a scenario to the options of this program.

A scenario is refused if it has a key which is not converted, or lacks a key whose defaults differ in both programs,
since ns-3 would then simulate another network.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.bench.cases import ROOT, scaled, time_ns
from penstock.mistake import MistakeError

SOURCE = ROOT / "bench" / "ns3" / "dumbbell.cc"
_HEADERS = Path("/usr/include/ns3")
_MODULES = ("applications", "point-to-point", "internet", "bridge", "traffic-control", "network", "stats", "core")

_RATES = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}
_SIZES = {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20}


@dataclass(frozen=True)
class Run:
    """The results of one run of ns-3."""

    packets: int
    cpu_s: float
    wall_s: float
    goodput_bps: float
    utilization: float
    events: int
    drops: int
    drops_elsewhere: int
    version: str
    build: str

    @property
    def ns_per_packet(self) -> float:
        """CPU time per data segment, in ns."""
        return self.cpu_s * 1e9 / max(self.packets, 1)


class PeerError(Exception):
    """A run of ns-3 failed."""


def ready() -> tuple[Path | None, str | None]:
    """Returns the program, which is built if necessary, or the reason why there is none."""
    compiler = shutil.which("c++")
    if not (_HEADERS / "core-module.h").exists():
        return None, "ns-3 is not installed (Debian: libns3-dev; `make bench` installs it when run by root)"
    if compiler is None:
        return None, "no C++ compiler (c++) in PATH"
    version = installed_version()
    program = ROOT / "build" / f"ns3-{version}-dumbbell"
    if program.exists() and program.stat().st_mtime >= SOURCE.stat().st_mtime:
        return program, None
    program.parent.mkdir(exist_ok=True)
    return _build(compiler, program, version)


def _build(compiler: str, program: Path, version: str) -> tuple[Path | None, str | None]:
    flags = ["-std=c++17", "-O2", f'-DNS3_VERSION_TEXT="{version}"']
    libraries = [f"-lns3-{module}" for module in _MODULES]
    fresh = program.with_suffix(".new")
    done = subprocess.run(
        [compiler, *flags, str(SOURCE), "-o", str(fresh), *libraries], capture_output=True, text=True, check=False
    )
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        return None, f"{SOURCE.name} does not build: {(errors or ['no message'])[0].strip()}"
    fresh.replace(program)
    return program, None


def installed_version() -> str:
    """Returns the version of ns-3's installed package."""
    for file in sorted(Path("/usr/lib").glob("*/pkgconfig/ns3-core.pc")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("Version:"):
                return line.removeprefix("Version:").strip()
    return "unknown"


def run(program: Path, scenario: Mapping[str, Any]) -> Run:
    """Runs a scenario to its end."""
    done = subprocess.run([str(program), *arguments(scenario)], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise PeerError(lines[0] if lines else f"it ended with {done.returncode}")
    return Run(**json.loads(done.stdout))


def _rate(text: Any) -> str:
    return f"{scaled(text, _RATES)}bps"


def _time(text: Any) -> str:
    return f"{time_ns(text)}ns"


def _size(text: Any) -> str:
    return str(scaled(text, _SIZES))


def _limit(text: Any) -> str:
    return f"{_packets(text)}p" if text.endswith("p") else f"{_size(text)}B"


def _packets(text: Any) -> str:
    return str(scaled(text, {"p": 1}))


def _flag(value: Any) -> str:
    return "true" if value else "false"


Said = Mapping[str, tuple[str, Callable[[Any], str]]]

_TOPOLOGY: Said = {
    "rate": ("rate", _rate),
    "delay": ("delay", _time),
    "limit": ("limit", _limit),
    "access_rate": ("access-rate", _rate),
    "access_delay": ("access-delay", _time),
}
_TCP: Said = {
    "cc": ("cc", str),
    "mss": ("mss", _size),
    "receive_buffer": ("receive-buffer", _size),
    "send_buffer": ("send-buffer", _size),
    "min_rto": ("min-rto", _time),
    "delayed_ack_timeout": ("delayed-ack", _time),
}
_FLOWS: Said = {"count": ("flows", str), "start_spread": ("start-spread", _time)}
_AQM: Mapping[str, Said] = {
    "droptail": {},
    "codel": {"target": ("codel-target", _time), "interval": ("codel-interval", _time)},
    "red": {
        "min_threshold": ("red-min", _packets),
        "max_threshold": ("red-max", _packets),
        "max_probability": ("red-max-p", str),
        "weight": ("red-weight", str),
        "mean_packet": ("red-mean-packet", _size),
        "gentle": ("red-gentle", _flag),
        "wait": ("red-wait", _flag),
    },
}


def arguments(scenario: Mapping[str, Any]) -> list[str]:
    """Returns the scenario as options of the program."""
    top = {key: scenario[key] for key in ("duration", "seed")}
    topology, aqm = dict(scenario["topology"]), dict(scenario["aqm"])
    flows = dict(_only(scenario["flows"]))
    if (topology.pop("kind"), flows.pop("kind")) != ("dumbbell", "bulk"):
        raise MistakeError("ns-3 is compared on dumbbells with bulk flows")
    name = aqm.pop("name")
    if name not in _AQM:
        raise MistakeError(f"aqm {name!r}: ns-3 is compared with {', '.join(_AQM)}")
    return [
        f"--aqm={name}",
        *_options("", top, {"duration": ("duration", _time), "seed": ("seed", str)}),
        *_options("topology", topology, _TOPOLOGY),
        *_options("aqm", aqm, _AQM[name]),
        *_options("tcp", scenario["tcp"], _TCP),
        *_options("flows", flows, _FLOWS),
    ]


def _only(flows: Any) -> Mapping[str, Any]:
    if len(flows) != 1:
        raise MistakeError("ns-3 is compared with one kind of flow at a time")
    first: Mapping[str, Any] = flows[0]
    return first


def _options(section: str, given: Mapping[str, Any], said: Said) -> list[str]:
    unlike = sorted(set(given) ^ set(said))
    if unlike:
        word = "is not something ns-3 is told" if unlike[0] in given else "must be given, the defaults differ"
        raise MistakeError(f"[{section}] {unlike[0]}: {word}")
    return [f"--{option}={convert(given[key])}" for key, (option, convert) in said.items()]
