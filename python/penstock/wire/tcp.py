"""What `[tcp]` is on a real kernel: a control, options of sockets, metrics of routes, settings of hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from penstock.suggest import did_you_mean
from penstock.units import number
from penstock.wire.position import Path

Refuse = Callable[[Path, str], Exception]

AVAILABLE = File("/proc/sys/net/ipv4/tcp_available_congestion_control")
# Controls of scenarios by the kernel's names, where these differ.
_NAMES = {"newreno": "reno", "cubic-linux": "cubic"}
# Parameters of controls which are what the kernel does anyway.
_AS_KERNEL: Mapping[str, Any] = {"compat": "linux", "hystart": True}
_HEADERS, _TIMESTAMPS = 40, 12
_LEAST_WINDOW = 4096
_FIRST_BUFFER = 131_072  # of `tcp_rmem`, by default

# What a flow may say if it is what every Linux does; another value that is written is refused.
FIXED: Mapping[str, tuple[Any, str]] = {
    "without_sack": ("linux", 'without SACK the kernel recovers as "linux" says'),
    "acknowledging": ("linux", 'the kernel acknowledges as "linux" says'),
    "prr": (True, "the kernel always reduces proportionally"),
    "rack": (True, "the kernel always has RACK-TLP"),
    "limited_transmit": (True, "the kernel always has limited transmit"),
    "accurate_ecn": (False, "the wire asks the kernel for ECN of RFC 3168 alone"),
    "accurate_ecn_option": (True, "the kernel sends options"),
    "ecn_retransmits": (False, "the kernel's retransmissions are not ECN-capable"),
    "ern_ect1": (False, "the program that announces rates cannot set ECT(1)"),
    "optimistic_ack": ("0B", "the kernel's receivers behave"),
    "delayed_ack_timeout": ("40ms", "the kernel's longest delay of an ACK is fixed"),
    "rto_granularity": ("200ms", "the kernel's timer has a fixed granularity"),
    "silly_window": ("minshall", "the kernel has Minshall's rule"),
}
_LIKE_SIMULATOR = (
    "ern_ect1",
    "accurate_ecn",
    "accurate_ecn_option",
    "ecn_retransmits",
    "optimistic_ack",
    "delayed_ack_timeout",
)
_HOSTS = {"sack": "tcp_sack", "timestamps": "tcp_timestamps", "window_scaling": "tcp_window_scaling"}


@dataclass(frozen=True)
class Settings:
    """The TCP of one flow."""

    control: str
    mss: int
    timestamps: bool
    sack: bool
    window_scaling: bool
    ecn: bool
    initial_window: int
    every_segment: bool
    least_timeout_ms: float
    receive_bytes: int
    window_grows: bool  # up to `receive_bytes`, from what the kernel begins with
    send_bytes: int
    is_limited: bool  # by the budget of its node, if there is a gateway
    announces: bool  # its rate, in an option
    at: Path


def settings(
    spec: Mapping[str, Any],
    written: Mapping[str, Any],
    general: Mapping[str, Any],
    at: Path,
    refuse: Refuse,
    there: Sequence[str],
) -> Settings | None:
    """Reads the TCP of a flow; `None` for a flow of datagrams. What the kernel does not do is refused at its key.

    `there` has the names of its controls.
    """
    told = spec.get("tcp")
    if told is None:
        return None
    own = written.get("tcp", {})
    if "initial_ssthresh" in told:
        raise refuse(place_of("initial_ssthresh", own, at), "the kernel's slow start has no threshold at the start")
    if "scone" in told:
        raise refuse(
            place_of("scone", own, at), "the hosts have no QUIC; penstock-gateway gives advice to those with it"
        )
    if told["c2ml"] == "literal":
        raise refuse(
            place_of("c2ml", own, at), "an agent clamps windows and paces, and has no Figure 2.13 to the letter"
        )
    for key, (value, message) in FIXED.items():
        if key == "rack" and not told["sack"]:
            continue  # without SACK there is nothing that RACK could look at
        said = own.get(key, general.get(key)) if key not in _LIKE_SIMULATOR else told.get(key)
        if said is not None and said != value:
            raise refuse(place_of(key, own, at), f"{message}: {key} = {_toml(value)}")
    return Settings(
        control=_control(told["cc"], written, own, general, at, refuse, there),
        mss=int(number(told["mss"])),
        timestamps=told["timestamps"],
        sack=told["sack"],
        window_scaling=told["window_scaling"],
        ecn=told["ecn"],
        initial_window=told["initial_window"],
        every_segment=told["ack_every_segment"],
        least_timeout_ms=number(told["min_rto"]) * 1e3,
        receive_bytes=max(int(number(told["receive_buffer"])), _LEAST_WINDOW),
        window_grows=told.get("receive_window") == "linux",
        send_bytes=int(number(told["send_buffer"])),
        is_limited=told["c2ml"] == "on",
        announces=told["ern"],
        at=at,
    )


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def place_of(key: str, own: Mapping[str, Any], at: Path) -> Path:
    """Returns where a key stands: in the table of the flow, or in `[tcp]`."""
    return (*at, "tcp", key) if key in own else ("tcp", key)


def _control(
    cc: Any,
    written: Mapping[str, Any],
    own: Mapping[str, Any],
    general: Mapping[str, Any],
    at: Path,
    refuse: Refuse,
    there: Sequence[str],
) -> str:
    name = cc if isinstance(cc, str) else cc["name"]
    place: Path = (*at, "cc") if "cc" in written else place_of("cc", own, at)
    kernel = _NAMES.get(name, name)
    if kernel not in there:
        meant = did_you_mean(kernel, there)
        raise refuse(place, f"this kernel has no control {kernel}; {meant}it has {', '.join(there)}")
    said = written.get("cc", own.get("cc", general.get("cc")))
    for key, value in said.items() if isinstance(said, Mapping) else ():
        if key != "name" and _AS_KERNEL.get(key) != value:
            raise refuse((*place, key), f"the parameters of the kernel's {kernel} are fixed: it takes no {key}")
    return kernel


def controls() -> list[str]:
    """Lists the congestion controls of this kernel."""
    try:
        return AVAILABLE.read_text(encoding="ascii").split()
    except OSError:
        return []


def sends(spec: Mapping[str, Any], told: Settings) -> dict[str, Any]:
    """Returns what the sender of a flow is told."""
    options = _TIMESTAMPS if told.timestamps else 0
    return {
        "over": "tcp",
        "cc": told.control,
        "mss": told.mss,
        # The kernel takes the options that every segment has off what it is told.
        "max_segment": told.mss + options,
        "size": int(number(spec["size"])) if "size" in spec else None,
        "packet": told.mss + options + _HEADERS,
        "window": None if told.window_grows else told.receive_bytes,
        "buffer": told.send_bytes,
    }


def sysctls(flows: Sequence[tuple[Settings, Refuse]]) -> dict[str, str]:
    """Returns the settings of the namespaces, which all flows share; a flow that wants another is refused."""
    found: dict[str, str] = {}
    for told, refuse in flows:
        for key, name in _HOSTS.items():
            value = str(int(getattr(told, key)))
            if found.setdefault(f"net.ipv4.{name}", value) != value:
                raise refuse((*told.at, "tcp", key), f"all flows on the wire have the same {key}")
        if told.window_grows:
            # Half of a buffer is advertised.
            value = f"{_LEAST_WINDOW} {_FIRST_BUFFER} {2 * told.receive_bytes}"
            if found.setdefault("net.ipv4.tcp_rmem", value) != value:
                message = "all windows that grow have the same receive_buffer"
                raise refuse((*told.at, "tcp", "receive_buffer"), message)
    return found


def metrics(told: Settings, sender: bool) -> list[str]:
    """Returns the metrics of the route to the other host of a flow."""
    if not sender:
        return ["quickack", "1"] if told.every_segment else []
    words = ["initcwnd", str(told.initial_window)] if told.initial_window != 10 else []
    words += ["rto_min", f"{told.least_timeout_ms:.0f}ms"] if told.least_timeout_ms != 200 else []
    return words + (["features", "ecn"] if told.ecn else [])
