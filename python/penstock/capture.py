"""The packets of a capture: its flows, its two directions, and which of the packets are meant."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import engine
from penstock.headers import TCP, UDP, Capture, Flow
from penstock.joined import Cutting, cutting
from penstock.mistake import MistakeError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Choice = npt.NDArray[np.bool_]

_MOST = 0.99  # share of packets that a rule must tell apart
_WORDS = ("more", "less")
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "fc00::/7", "fe80::/10")
_GZIP = b"\x1f\x8b"
_PCAPNG = b"\n\r\r\n"  # the first bytes of such a file, which are text as well


@dataclass(frozen=True)
class Directions:
    """The two directions of a link: of each packet, whether it belongs to that with more bytes, or to the other."""

    less: Choice
    how: str  # how they were told apart; empty if there is one direction
    packets: tuple[int, int]
    bytes: tuple[int, int]


def read(path: Path) -> Capture:
    """Reads a trace, whose joined frames are split; raises `TraceError` if the file is no trace or holds no packet."""
    found = _read(path, None)
    cut = cutting(found, directions(found).less)
    return _read(path, cut) if cut else found


def _read(path: Path, cut: Cutting | None) -> Capture:
    columns, flows, notes = engine.packets(path, cut.data if cut else None)
    rates = cut.rates_bps if cut else ()
    return Capture(path, columns, tuple(Flow(**flow) for flow in flows), notes, cut.data if cut else None, rates)


def told(capture: Capture) -> str:
    """Returns one sentence: what was read of a capture, and what was left out or changed."""
    notes = capture.notes
    size = int(capture.column("size").sum())
    parts = [f"read {len(capture):,} packets with {size:,} B from {notes['frames']:,} frames"]
    if split := notes["split"]["frames"]:
        rates = " and ".join(f"{bps / 1e6:.4g} Mbit/s" for bps in capture.rates_bps if bps > 0)
        spread = f"spread at {rates}" if rates else "at the times of their frames"
        parts.append(f"split {split:,} joined frames into {notes['split']['packets']:,} packets, {spread}")
    if copies := notes["copies"]:
        parts.append(f"left out {copies:,} copies of packets that were seen before")
    if notes["not_ip"]:
        kinds = ", ".join(f"{count:,} of {what}" for what, count in notes["unread"].items())
        parts.append(f"skipped {notes['not_ip']:,} frames ({kinds})")
    if notes["untimed"]:
        parts.append(f"skipped {notes['untimed']:,} frames without a time")
    if notes["odd"]:
        parts.append(f"skipped {notes['odd']:,} odd records (the first: {notes['first_odd']})")
    if notes["out_of_order"]:
        late = notes["out_of_order"] - notes["restored"]
        parts.append(
            f"restored the order of {notes['restored']:,} packets" + (f", {late:,} were too late" if late else "")
        )
    if notes["clock_set"]["times"]:
        parts.append(_clock(notes["clock_set"]))
    return "; ".join(parts)


def _clock(step: dict[str, Any]) -> str:
    times = "once" if step["times"] == 1 else f"{step['times']:,} times"
    way = "back" if step["seconds"] < 0 else "forward"
    return (
        f"the clock was set {times}, by {abs(step['seconds']):.6g} s {way}: the {step['packets']:,} packets behind "
        "keep their distances"
    )


def is_table(path: Path) -> bool:
    """Returns true for a file of text, which is CSV and no capture."""
    import gzip
    import zlib

    try:
        with path.open("rb") as file:
            start = file.read(4)
        if start[:2] == _GZIP:
            with gzip.open(path) as packed:
                start = packed.read(4)
    except (OSError, EOFError, zlib.error):
        return False  # whoever reads it says so
    is_text = all(32 <= byte < 127 or byte in b"\t\n\r" for byte in start)
    return start != _PCAPNG and (is_text or start[:3] == b"\xef\xbb\xbf")


def directions(capture: Capture) -> Directions:
    """Tells the two directions of a capture apart, by the first rule that does."""
    import numpy as np

    rules = (_by_way, _by_interface, _by_sender, _by_private_hosts, _by_shared_host)
    found = next((found for rule in rules if (found := rule(capture)) is not None), None)
    if found is None:
        found = _by_volume(capture) if capture.has_hosts else (np.zeros(len(capture), bool), "")
    second, how = found
    size = capture.column("size")
    if size[second].sum() > size[~second].sum():
        second = ~second
    if not second.any():
        how = ""
    counts = (int((~second).sum()), int(second.sum()))
    return Directions(second, how, counts, (int(size[~second].sum()), int(size[second].sum())))


def _by_way(capture: Capture) -> tuple[Choice, str] | None:
    """What the machine received and what it sent, if it is an end of all flows. A router receives both directions."""
    way = capture.column("way")
    known = len(way) > 0 and (way > 0).mean() >= _MOST
    second = way == 2
    both = known and 0 < second.mean() < 1 and _splits_flows(capture, second)
    return (second, "by the marks of sent and received packets") if both else None


def _by_interface(capture: Capture) -> tuple[Choice, str] | None:
    """Two interfaces are the two directions if every flow has its two directions on different ones."""
    import numpy as np

    interface, back = capture.column("interface"), capture.column("back")
    if len(np.unique(interface)) != 2:
        return None
    second = interface == interface.max()
    known = back.any() and _splits_flows(capture, second)
    return (second, "by the two interfaces of the file") if known else None


def _splits_flows(capture: Capture, second: Choice) -> bool:
    """Returns true if nearly all packets of each flow and direction are on the same side."""
    import numpy as np

    both = second ^ (capture.column("back") == 1)  # the same for all packets of a flow
    packets = np.bincount(capture.column("flow"))
    agree = np.bincount(capture.column("flow"), both) / np.maximum(packets, 1)
    return float((np.maximum(agree, 1 - agree) * packets).sum() / packets.sum()) >= _MOST


def _by_sender(capture: Capture) -> tuple[Choice, str] | None:
    sender = capture.column("sender")
    two = len(sender) > 0 and sender.min() == 1 and sender.max() == 2
    return (sender == 2, "by the two Ethernet addresses that send") if two else None


def _by_private_hosts(capture: Capture) -> tuple[Choice, str] | None:
    """Of each flow one end must be a private address and the other a public one."""
    import numpy as np

    ends = [(is_private(flow.source), is_private(flow.destination)) for flow in capture.flows]
    if not ends or any(source == destination for source, destination in ends):
        return None
    outward = np.array([source for source, _ in ends])[capture.column("flow")]
    return outward ^ (capture.column("back") == 1), "by private and public addresses"


def is_private(address: str | None) -> bool:
    """Returns true for addresses of networks of their own: RFC 1918, RFC 4193, RFC 6598, and those of one link."""
    return address is not None and any(ipaddress.ip_address(address) in one for one in _private())


@functools.cache
def _private() -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in _PRIVATE)


def _by_shared_host(capture: Capture) -> tuple[Choice, str] | None:
    """One host is an end of every flow."""
    import numpy as np

    shared = set.intersection(*({flow.source, flow.destination} for flow in capture.flows)) if capture.flows else set()
    hosts = sorted(host for host in shared if host is not None)
    if not hosts:
        return None
    outward = np.array([flow.source == hosts[0] for flow in capture.flows])[capture.column("flow")]
    return outward ^ (capture.column("back") == 1), f"by the host {hosts[0]}, an end of every flow"


def _by_volume(capture: Capture) -> tuple[Choice, str]:
    """Of each flow the direction with more bytes counts as one with those of other flows."""
    import numpy as np

    flow, back, size = capture.column("flow"), capture.column("back"), capture.column("size")
    onward = np.bincount(flow, size * (back == 0), len(capture.flows))
    backward = np.bincount(flow, size * (back == 1), len(capture.flows))
    return (back == 1) ^ (backward > onward)[
        flow
    ], "by the bytes of each flow: the way of its data, and that of its ACKs"


@dataclass(frozen=True)
class Selection:
    """Which packets of a capture are meant. Empty lists mean all."""

    direction: str = ""  # "more", "less", "both"; empty: "more"
    flows: Sequence[int] = ()
    hosts: Sequence[str] = ()
    ports: Sequence[int] = ()

    def of(self, capture: Capture) -> tuple[Choice, Directions]:
        """Returns which packets are meant, and the directions; raises `MistakeError` if none is."""
        import numpy as np

        if self.direction not in ("", "both", *_WORDS):
            raise MistakeError(f"--direction {self.direction}: there is more, less and both")
        of_flow = np.array([self._has(flow) for flow in capture.flows], bool)
        self._check(capture)
        found = directions(capture)
        keep = of_flow[capture.column("flow")] if len(capture) else np.zeros(0, bool)
        if self.direction != "both":
            keep &= found.less == (self.direction == "less")
        if len(capture) and not keep.any():
            raise MistakeError(f"{capture.path}: no packet is left of {len(capture)}: {self._asked()}")
        return keep, found

    def _has(self, flow: Flow) -> bool:
        ends = (flow.source, flow.destination)
        return (
            (not self.flows or flow.label in self.flows)
            and (not self.hosts or any(_within(end, host) for end in ends for host in self.hosts))
            and (not self.ports or flow.source_port in self.ports or flow.destination_port in self.ports)
        )

    def _check(self, capture: Capture) -> None:
        labels = {flow.label for flow in capture.flows}
        for flow in self.flows:
            if flow not in labels:
                known = f"0 to {len(labels) - 1}" if capture.has_hosts else ", ".join(map(str, sorted(labels)[:10]))
                raise MistakeError(f"--flow {flow}: {capture.path} has the flows {known}")
        if not capture.has_hosts and len(capture) and (self.hosts or self.ports or self.direction in _WORDS):
            raise MistakeError(f"{capture.path}: a CSV file has no hosts, ports and directions; --flow takes its flows")

    def _asked(self) -> str:
        asked = {"--direction": [self.direction] if self.direction else [], "--flow": self.flows}
        asked |= {"--host": self.hosts, "--port": self.ports}
        return " ".join(f"{name} {value}" for name, values in asked.items() for value in values)


def _within(end: str | None, host: str) -> bool:
    return end is not None and ipaddress.ip_address(end) in network(host)


def network(host: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Returns an address or a prefix as a network; raises `MistakeError` if it is neither."""
    try:
        return ipaddress.ip_network(host, strict=False)
    except ValueError:
        raise MistakeError(f"--host {host}: neither an address nor a prefix, such as 10.0.0.1 or 10.0.0.0/8") from None


__all__ = [
    "TCP",
    "UDP",
    "Capture",
    "Directions",
    "Flow",
    "Selection",
    "directions",
    "is_private",
    "is_table",
    "network",
]
__all__ += ["read", "told"]
