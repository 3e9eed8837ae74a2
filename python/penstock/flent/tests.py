"""Who sends what in each test, and how its series are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

UP, DOWN = "upload", "download"
AVERAGE, SUM, FAIRNESS = "avg", "sum", "fairness"
DEFAULT_CC = "cubic-linux"  # the kernel's CUBIC
ICMP = "Ping (ms) ICMP"
PINGS = "Ping (ms) avg"
CALL = "VoIP"
_HOSTS = ("host1", "host2", "host3", "host4")
FARTHER = (1, 2, 4, 8)  # round trips of the four hosts of rtt_fair, in those of the link
# Codepoints of Diffserv by what series are called.
_MARKS = {"BK": 8, "BK1": 8, "BK2": 8, "CS1": 8, "CS5": 40, "EF": 46, "CS6": 48}


def mark(series: str) -> int:
    """Returns the codepoint of the packets of a series."""
    return next((_MARKS[word] for word in series.split() if word in _MARKS), 0)


@dataclass(frozen=True)
class Stream:
    """One TCP connection of a test."""

    series: str
    up: bool
    cc: str = ""  # empty: the one that the person chose
    host: int = 0  # place in FARTHER


@dataclass(frozen=True)
class Test:
    """A test: its connections, its pings, and what is reckoned of all connections of a direction."""

    name: str
    title: str
    streams: Sequence[Stream] = ()
    pings: Mapping[str, int] = field(default_factory=dict)  # series, and the host that answers
    of_streams: Sequence[str] = ()
    totals: bool = False
    call: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)  # as Flent's option --test-parameter has them


def _streams(labels: Sequence[str], *ways: str, cc: Mapping[str, str] | None = None) -> list[Stream]:
    given = cc or {}
    return [Stream(f"TCP {way} {label}", way == UP, given.get(label, "")) for way in ways for label in labels]


def _near(*labels: str) -> dict[str, int]:
    return dict.fromkeys((f"Ping (ms) {label}" for label in labels), 0)


def _rrul(_count: int) -> Test:
    streams = _streams(("BE", "BK", "CS5", "EF"), UP, DOWN)
    pings = _near("UDP EF", "UDP BK", "UDP BE", "ICMP")
    return Test("rrul", "Realtime Response Under Load", streams, pings, (AVERAGE, SUM), totals=True)


def _rrul_be(_count: int) -> Test:
    streams = _streams(("BE", "BE2", "BE3", "BE4"), UP, DOWN)
    pings = _near("UDP BE1", "UDP BE2", "UDP BE3", "ICMP")
    title = "Realtime Response Under Load - exclusively Best Effort"
    return Test("rrul_be", title, streams, pings, (AVERAGE, SUM), totals=True)


def _one(way: str) -> Callable[[int], Test]:
    short = "up" if way == UP else "down"
    streams = [Stream(f"TCP {way}", way == UP)]
    return lambda _count: Test(f"tcp_1{short}", f"Single TCP {way} stream w/ping", streams, _near("ICMP"))


def _several(name: str, way: str, fixed: int = 0) -> Callable[[int], Test]:
    def made(count: int) -> Test:
        count = fixed or count
        streams = [Stream(f"TCP {way}::{index + 1}", way == UP) for index in range(count)]
        given = {} if fixed else {f"{way}_streams": str(count)}
        title = f"TCP {way} - {count} streams w/ping"
        return Test(name, title, streams, _near("ICMP"), (AVERAGE, SUM, FAIRNESS), parameters=given)

    return made


def _thousand(_count: int) -> Test:
    streams = [Stream(f"TCP upload BE::{index + 1}", up=True) for index in range(1000)]
    pings = _near("UDP BE1", "UDP BE2", "UDP BE3", "ICMP")
    return Test("tcp_upload_1000", "1000 up - exclusively Best Effort", streams, pings, (AVERAGE, SUM))


def _cubic_bbr(_count: int) -> Test:
    labels = {"Cubic BE": DEFAULT_CC, "BBR BE": "bbr", "Cubic CS1": DEFAULT_CC, "BBR CS1": "bbr"}
    streams = _streams(tuple(labels), UP, DOWN, cc=labels)
    pings = _near("UDP BE", "UDP CS1", "UDP CS6", "ICMP")
    return Test("cubic_bbr", "Cubic VS BBR smackdown", streams, pings, (AVERAGE, SUM))


def _rtt_fair(_count: int) -> Test:
    labels = ("BE1", "BE2", "BK1", "BK2")
    streams = [
        Stream(f"TCP {way} {label} {host}", way == UP, host=place)
        for place, (label, host) in enumerate(zip(labels, _HOSTS, strict=True))
        for way in (UP, DOWN)
    ]
    pings = {f"Ping (ms) ICMP{place + 1} {host}": place for place, host in enumerate(_HOSTS)}
    title = "RTT Fair Realtime Response Under Load"
    return Test("rtt_fair", title, streams, pings, (AVERAGE, SUM, FAIRNESS))


def _voip(_count: int) -> Test:
    return Test("voip", "VoIP one-way stream test", call=True)


_MADE: Mapping[str, Callable[[int], Test]] = {
    "rrul": _rrul,
    "rrul_be": _rrul_be,
    "tcp_1up": _one(UP),
    "tcp_1down": _one(DOWN),
    **{f"tcp_{count}up": _several(f"tcp_{count}up", UP, count) for count in (4, 8, 12)},
    **{f"tcp_{count}down": _several(f"tcp_{count}down", DOWN, count) for count in (4, 8, 12)},
    "tcp_nup": _several("tcp_nup", UP),
    "tcp_ndown": _several("tcp_ndown", DOWN),
    "tcp_upload_1000": _thousand,
    "cubic_bbr": _cubic_bbr,
    "rtt_fair": _rtt_fair,
    "voip": _voip,
}
NAMES = tuple(_MADE)
COUNTED = ("tcp_nup", "tcp_ndown")  # those whose number of connections a person chooses
STREAMS = 4  # connections of these unless a person says another number


def find(name: str, count: int = STREAMS) -> Test:
    """Returns the test of a name, with `count` connections if a person chooses it; raises `MistakeError` for others."""
    if name not in _MADE:
        raise MistakeError(f"there is no test {name!r}; {did_you_mean(name, NAMES)}there are {', '.join(NAMES)}")
    return _MADE[name](count)
