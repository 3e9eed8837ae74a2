"""Runs scenarios in ns-3: builds bench/ns3/dumbbell.cc, and converts a scenario to the options of this program.

A scenario is refused if it has a key which is not converted, or lacks a key whose defaults differ in both programs,
since ns-3 would then simulate another network. Speeds (`penstock.bench`), differences (`penstock.verify`) and the
senders of published experiments, whose `[tcp]` it takes as well, have this one harness.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from penstock import store
from penstock.mistake import MistakeError
from penstock.units import RATES

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "bench" / "ns3" / "dumbbell.cc"
_HEADERS = Path("/usr/include/ns3")
_MODULES = ("applications", "point-to-point", "internet", "bridge", "traffic-control", "network", "stats", "core")

_TIME_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}
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
    queue_delay_ms: float = 0.0
    """Mean time from the discipline's taking a packet with data to its transmission; 0 if it was not measured."""
    marks: int = 0
    timeouts: int = 0
    """How often a sender entered the state Loss; 0 if it was not measured."""

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
    if _is_current(program):
        return program, None
    with store.held(program, wait=True):
        return (program, None) if _is_current(program) else _build(compiler, program, version)


def _is_current(program: Path) -> bool:
    return program.exists() and program.stat().st_mtime >= SOURCE.stat().st_mtime


def _build(compiler: str, program: Path, version: str) -> tuple[Path | None, str | None]:
    flags = ["-std=c++17", "-O2", f'-DNS3_VERSION_TEXT="{version}"']
    libraries = [f"-lns3-{module}" for module in _MODULES]
    fresh = program.with_name(f"{program.name}.new")
    done = subprocess.run(
        [compiler, *flags, str(SOURCE), "-o", str(fresh), *libraries], capture_output=True, text=True, check=False
    )
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        return None, f"{SOURCE.name} does not build: {(errors or ['no message'])[0].strip()}"
    store.adopt(fresh, program)
    return program, None


def installed_version() -> str:
    """Returns the version of ns-3's installed package."""
    for file in sorted(Path("/usr/lib").glob("*/pkgconfig/ns3-core.pc")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("Version:"):
                return line.removeprefix("Version:").strip()
    return "unknown"


def run(program: Path, scenario: Mapping[str, Any], measure: bool = False) -> Run:
    """Runs a scenario to its end; `measure` adds the queueing delay, which costs time."""
    return told(program, [*arguments(scenario), *(["--measure=true"] if measure else [])])


def told(program: Path, options: Sequence[str]) -> Run:
    """Runs the program with options."""
    done = subprocess.run([str(program), *options], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise PeerError(lines[0] if lines else f"it ended with {done.returncode}")
    return Run(**json.loads(done.stdout))


def scaled(text: str, units: dict[str, int]) -> int:
    """Returns the number in a text such as "1.45ms", multiplied by the factor of its unit in `units`."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/]+)", text.strip())
    if match is None or match[2] not in units:
        raise MistakeError(f"{text!r}: a number with one of the units {', '.join(units)}")
    return int(Decimal(match[1]) * units[match[2]])


def time_ns(text: str) -> int:
    """Returns a time such as "1.45ms" in nanoseconds."""
    return scaled(text, _TIME_NS)


def _rate(text: Any) -> str:
    return f"{scaled(text, RATES)}bps"


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


def _hard_drop(over_max: Any) -> str:
    if over_max not in {"drop", "mark"}:
        raise MistakeError(f"[aqm] over_max {over_max!r}: ns-3 can drop or mark")
    return _flag(over_max == "drop")


Said = Mapping[str, tuple[str, Callable[[Any], str]]]

_TOPOLOGY: Said = {
    "rate": ("rate", _rate),
    "delay": ("delay", _time),
    "limit": ("limit", _limit),
    "access_rate": ("access-rate", _rate),
    "access_delay": ("access-delay", _time),
}
_TCP: Said = {
    "mss": ("mss", _size),
    "receive_buffer": ("receive-buffer", _size),
    "send_buffer": ("send-buffer", _size),
    "min_rto": ("min-rto", _time),
    "delayed_ack_timeout": ("delayed-ack", _time),
}
# Keys whose defaults are the same in both programs, so that they may be left out.
_TCP_MORE: Said = {
    "sack": ("sack", _flag),
    "prr": ("prr", _flag),
    "timestamps": ("timestamps", _flag),
    "ecn": ("ecn", _flag),
    "limited_transmit": ("limited-transmit", _flag),
    "ack_every_segment": ("ack-every-segment", _flag),
    "initial_window": ("initial-window", str),
    "initial_ssthresh": ("initial-ssthresh", _size),
}
_CONTROLS: Mapping[str, Said] = {
    "newreno": {},
    "cubic": {"hystart": ("hystart", _flag)},
    "bic": {},
    "highspeed": {},
    "hybla": {"rtt0": ("hybla-rtt", _time)},
    "scalable": {},
    "vegas": {},
    "bbr": {},
}
_FLOWS: Said = {"count": ("flows", str), "start_spread": ("start-spread", _time)}
_AQM: Mapping[str, Said] = {
    "droptail": {},
    "codel": {"target": ("codel-target", _time), "interval": ("codel-interval", _time)},
    "fq-codel": {"target": ("codel-target", _time), "interval": ("codel-interval", _time)},
    "pie": {"target": ("pie-target", _time), "tupdate": ("pie-tupdate", _time)},
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

# Keys of disciplines whose defaults are the same in both programs.
_AQM_MORE: Mapping[str, Said] = {
    "codel": {"ecn": ("aqm-ecn", _flag)},
    "pie": {"ecn": ("aqm-ecn", _flag)},
    "red": {"ecn": ("aqm-ecn", _flag), "over_max": ("red-hard-drop", _hard_drop)},
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
    also = {key: known for key, known in _AQM_MORE.get(name, {}).items() if key in aqm}
    return [
        f"--aqm={name}",
        *_options("", top, {"duration": ("duration", _time), "seed": ("seed", str)}),
        *_options("topology", topology, _TOPOLOGY),
        *_options("aqm", aqm, {**_AQM[name], **also}),
        *_tcp(scenario["tcp"]),
        *_options("flows", flows, _FLOWS),
    ]


def _tcp(tcp: Mapping[str, Any]) -> list[str]:
    control = tcp["cc"] if isinstance(tcp["cc"], Mapping) else {"name": tcp["cc"]}
    parameters = {key: value for key, value in control.items() if key != "name"}
    if control["name"] not in _CONTROLS:
        raise MistakeError(f"[tcp] cc {control['name']!r}: ns-3 is compared with {', '.join(_CONTROLS)}")
    said = {key: known for key, known in _CONTROLS[control["name"]].items() if key in parameters}
    common = {key: value for key, value in tcp.items() if key not in {"cc", *_TCP_MORE}}
    more = {key: value for key, value in tcp.items() if key in _TCP_MORE}
    return [
        f"--cc={control['name']}",
        *_options("cc", parameters, said),
        *_options("tcp", common, _TCP),
        *_options("tcp", more, {key: _TCP_MORE[key] for key in more}),
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
