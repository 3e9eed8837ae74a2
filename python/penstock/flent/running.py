"""A test as a scenario of any world, and what its run says as the series of the test."""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import columns, worlds
from penstock.adversary.subject import SUBJECT, Subject
from penstock.fairness import jain
from penstock.flent.tests import CALL, DEFAULT_CC, DOWN, FAIRNESS, FARTHER, PINGS, SUM, UP, Test, mark
from penstock.scenario import Scenario, to_toml

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock.engine import Result

    Array = npt.NDArray[np.float64]
    # Of each flow of datagrams when they were sent, in s, and how long each was on its way, in ms; nan for a lost one
    Trips = Mapping[int, tuple[Array, Array]]

STEP_S = 0.2
DELAY_S = 5  # pings alone, before and after the connections
SPREAD = "5ms"  # within which connections begin, as processes do; it is what the seed decides
_PING_BYTES = 36  # of payload: 64 B with the headers of IP and UDP
_LINKS = ("up", "down")
_CALL_BYTES = 172  # of payload: 160 B of voice and the header of RTP
_UNIT = 1e6
_DROPS = ("drops_overflow", "drops_aqm")
Series = dict[str, list[float | None]]


@dataclass(frozen=True)
class Setup:
    """The link of a test, equal in both directions, and its hosts."""

    rate_bps: float = 20e6
    rtt_s: float = 0.04
    limit: str = "1000p"
    seconds: int = 60
    cc: str = DEFAULT_CC
    ecn: bool = False
    seed: int = 1
    on: str = worlds.SIM  # the world

    @property
    def total_s(self) -> int:
        """Seconds from the first ping to the last."""
        return self.seconds + 2 * DELAY_S


@dataclass(frozen=True)
class Measured:
    """What a test measured: values of each series every STEP_S, and numbers that sum it up."""

    xs: list[float]
    series: Series
    numbers: Mapping[str, float | None]
    drops: int | None  # nothing for results of others
    kernel: str = ""  # of the hosts, if they were real
    began_s: float | None = None  # by the calendar; nothing if no time passed, or a virtual one
    disturbed: tuple[str, ...] = ()  # how the machine disturbed a run in real time


def scenario(test: Test, setup: Setup, subject: Subject) -> str:
    """Returns the scenario of a test with a discipline, as TOML.

    Both directions have a link with the discipline, and its packets are seen; what comes back over a link comes at its
    rate and does not wait.
    """
    link = {"b": "middle", "rate": f"{setup.rate_bps:.0f}bit/s", "delay": _us(setup.rtt_s / 4), "limit": setup.limit}
    links: list[dict[str, Any]] = [
        {"name": name, "a": end, **link, "aqm": SUBJECT, "bottleneck": True}
        for name, end in zip(_LINKS, ("home", "net"), strict=True)
    ]
    far = {"rate": "10Gbit/s", "limit": "10000p", "aqm": "droptail"}
    links += [
        {"name": f"way{host}", "a": "net", "b": _node(host), "delay": _us(setup.rtt_s / 2 * (FARTHER[host] - 1)), **far}
        for host in _hosts(test)
        if host
    ]
    topology = {"kind": "graph", "links": links, "access_rate": "10Gbit/s", "access_delay": "0us"}
    tables = {
        "name": f"flent-{test.name}",
        "duration": f"{setup.total_s}s",
        "seed": setup.seed,
        "topology": topology,
        "tcp": {"profile": "linux", "cc": setup.cc, "ecn": setup.ecn},  # hosts as they are
        "flows": list(_flows(test, setup, _reads_marks(subject))),
    }
    return to_toml(subject.placed(tables))


def _reads_marks(subject: Subject) -> bool:
    """True for the discipline that reads codepoints; what it reads is the class of a flow in scenarios."""
    return subject.name == "cake" and subject.given.get("tins") != "besteffort"


def check(test: Test, setup: Setup, subject: Subject) -> None:
    """Raises `ScenarioError` for a test that the world cannot run."""
    worlds.check(_given(test, setup, subject), setup.seed, setup.on)


def measure(
    test: Test, setup: Setup, subject: Subject, advanced: Callable[[float], None] = lambda _seconds: None
) -> Measured:
    """Runs a test in the world of its set-up; `advanced` is called with the seconds that have been run since."""
    given = _given(test, setup, subject)
    xs = [round(step * STEP_S, 6) for step in range(round(setup.total_s / STEP_S))]
    began_s = time.time() if setup.on in worlds.REAL_TIME else None
    result, trips = _run(test, setup, given, advanced)
    seconds = result.tables["flow_seconds"]
    series = _goodput(test, setup, xs, {name: np.asarray(seconds[name]) for name in ("t_s", "flow", "goodput_bps")})
    series |= _pings(test, trips, len(xs))
    if test.call:
        series |= _call(trips, len(xs))
    drops = sum(link[key] for link in result.summary["bottlenecks"] for key in _DROPS)
    kernel = str(result.wire["kernel"]) if result.wire else ""
    about = (kernel, began_s, worlds.disturbed_by(result))
    return Measured(xs, series, _numbers(test, setup, series), drops, *about)


def _given(test: Test, setup: Setup, subject: Subject) -> Scenario:
    return Scenario(scenario(test, setup, subject), subject.file or "flent.toml", subject.classes)


def _run(test: Test, setup: Setup, given: Scenario, advanced: Callable[[float], None]) -> tuple[Result, Trips]:
    """Returns the result of a run, and how long each of its datagrams took."""
    done = 0.0

    def on_progress(now_s: float, _end_s: float) -> None:
        nonlocal done
        advanced(now_s - done)
        done = now_s

    if setup.on != worlds.SIM:
        result = worlds.run(given, setup.seed, setup.on, on_progress=on_progress, datagrams=True)
        on_progress(setup.total_s, setup.total_s)
        table = result.tables["datagrams"]
        return result, _measured(test, {name: np.asarray(table[name]) for name in ("flow", "sent_s", "delay_ms")})
    with tempfile.TemporaryDirectory() as folder:
        packets = Path(folder) / "packets.csv"
        result = worlds.run(given, setup.seed, pcapng=packets, on_progress=on_progress)
        table = columns.from_csv(packets)
    read = {name: np.asarray(table[name]) for name in ("queue", "t_ns", "waited_ns", "flow", "fate")}
    return result, _simulated(test, setup, read)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f}us"


def _node(host: int) -> str:
    return f"far{host}" if host else "net"


def _hosts(test: Test) -> list[int]:
    return sorted({*(one.host for one in test.streams), *test.pings.values()})


def _flows(test: Test, setup: Setup, with_marks: bool) -> Iterator[dict[str, Any]]:
    """Yields the connections, and then for each ping the requests and the answers."""

    def marked(series: str) -> dict[str, int]:
        return {"class": found} if with_marks and (found := mark(series)) else {}

    during = {"start": f"{DELAY_S}s", "stop": f"{DELAY_S + setup.seconds}s"}
    for stream in test.streams:
        ends = _ends("home", _node(stream.host), stream.up)
        yield {
            "kind": "bulk",
            **ends,
            **during,
            "start_spread": SPREAD,
            **({"cc": stream.cc} if stream.cc else {}),
            **marked(stream.series),
        }
    for name, host in test.pings.items():
        wire = f"{(_PING_BYTES + 28) * 8 / STEP_S:.0f}bit/s"
        for up in (True, False):
            start = {} if up else {"start": _us(setup.rtt_s / 2 * FARTHER[host])}
            ends = _ends("home", _node(host), up)
            yield {"kind": "cbr", "rate": wire, "packet_size": f"{_PING_BYTES}B", **ends, **start, **marked(name)}
    if test.call:
        yield {"kind": "voip", **_ends("home", "net", up=True)}


def _ends(home: str, far: str, up: bool) -> dict[str, str]:
    return {"from": home, "to": far} if up else {"from": far, "to": home}


def _datagrams(test: Test) -> Iterator[tuple[int, str, int]]:
    """Yields the number of each flow of datagrams, the link with its queue, and the host at its far end."""
    first = len(test.streams)
    for index, host in enumerate(test.pings.values()):
        yield from ((first + 2 * index + way, link, host) for way, link in enumerate(_LINKS))
    if test.call:
        yield first + 2 * len(test.pings), _LINKS[0], 0


def _simulated(test: Test, setup: Setup, packets: Mapping[str, npt.NDArray[Any]]) -> Trips:
    """Takes what waited in the queues, and adds the way."""
    found = {}
    for flow, queue, host in _datagrams(test):
        mine = (packets["queue"] == queue) & (packets["flow"] == flow)
        waited = np.where(packets["fate"][mine] == "sent", packets["waited_ns"][mine] / 1e6, np.nan)
        came = (packets["t_ns"][mine] - packets["waited_ns"][mine]) / 1e9
        order = np.argsort(came, kind="stable")
        found[flow] = came[order], setup.rtt_s / 2 * FARTHER[host] * 1e3 + waited[order]
    return found


def _measured(test: Test, datagrams: Mapping[str, npt.NDArray[Any]]) -> Trips:
    """Takes what hosts measured."""
    of = {flow: datagrams["flow"] == flow for flow, _, _ in _datagrams(test)}
    return {flow: (datagrams["sent_s"][mine], datagrams["delay_ms"][mine]) for flow, mine in of.items()}


def _goodput(test: Test, setup: Setup, xs: Sequence[float], table: Mapping[str, Array]) -> Series:
    """Returns Mbit/s of each connection, and of all in a direction; a second has one value."""
    found: Series = {}
    place = np.minimum(np.asarray(xs).astype(int), setup.total_s - 1)
    on = (np.asarray(xs) >= DELAY_S) & (np.asarray(xs) < DELAY_S + setup.seconds)
    rates = np.zeros((len(test.streams), setup.total_s))
    inside = (table["flow"] < len(test.streams)) & (table["t_s"] <= setup.total_s)
    rates[table["flow"][inside].astype(int), np.ceil(table["t_s"][inside]).astype(int) - 1] = (
        table["goodput_bps"][inside] / _UNIT
    )
    for index, stream in enumerate(test.streams):
        found[stream.series] = _listed(np.where(on, rates[index][place], np.nan))
    for way in (UP, DOWN):
        members = [index for index, stream in enumerate(test.streams) if stream.up == (way == UP)]
        if members:
            every = np.where(on, rates[members][:, place], np.nan)
            found |= {f"TCP {way} {name}": _listed(_together(name, every)) for name in test.of_streams}
    if test.totals:
        found["TCP totals"] = _listed(np.where(on, rates[:, place].sum(axis=0), np.nan))
    return found


def _together(name: str, every: Array) -> Array:
    if name == FAIRNESS:
        return np.array([np.nan if np.isnan(one).any() else jain(list(one)) for one in every.T])
    return np.asarray(every.sum(axis=0) if name == SUM else every.mean(axis=0))


def _pings(test: Test, trips: Trips, steps: int) -> Series:
    """Returns round trips in ms: the way of the request, and that of the answer which an idle link would see next."""
    found: dict[str, Array] = {}
    for index, name in enumerate(test.pings):
        found[name] = np.zeros(steps)
        for way in range(len(_LINKS)):
            _, ms = trips[len(test.streams) + 2 * index + way]
            known = min(steps, len(ms))
            found[name][:known] += ms[:known]
            found[name][known:] = np.nan
    series = {name: _listed(values) for name, values in found.items()}
    if len(found) > 1:
        every = np.array(list(found.values()))
        known = np.maximum((~np.isnan(every)).sum(axis=0), 1)
        mean = np.nansum(every, axis=0) / known
        series[PINGS] = _listed(np.where(np.isnan(every).all(axis=0), np.nan, mean))
    return series


def _call(trips: Trips, steps: int) -> Series:
    """Returns the series of a call upwards: each value is of the packets that were sent within its step."""
    sent_s, delay = trips[0]
    place = np.minimum((sent_s / STEP_S).astype(int), steps - 1)
    jitter = _jitter(delay)
    lost = np.bincount(place[np.isnan(delay)], minlength=steps).astype(float)
    arrived = np.bincount(place[~np.isnan(delay)], minlength=steps)
    means = [
        np.array(
            [
                np.nanmean(v) if len(v := of[place == step]) and not np.isnan(v).all() else np.nan
                for step in range(steps)
            ]
        )
        for of in (delay, jitter)
    ]
    return {
        f"{CALL}::bitrate": _listed(arrived * (_CALL_BYTES * 8) / STEP_S / 1e3),
        f"{CALL}::delay": _listed(means[0]),
        f"{CALL}::jitter": _listed(means[1]),
        f"{CALL}::loss": _listed(lost),
        f"{CALL}::induced_delay": _listed(means[0] - np.nanmin(delay)),
    }


def _jitter(delay: Array) -> Array:
    """Returns the interarrival jitter of RFC 3550 §6.4.1 after each packet that arrived, in ms."""
    found, last, before = np.full(len(delay), np.nan), 0.0, np.nan
    for index, value in enumerate(delay):
        if not np.isnan(value):
            last += 0.0 if np.isnan(before) else (abs(value - before) - last) / 16
            found[index], before = last, value
    return found


def _listed(values: Array) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 6) for value in values]


def _numbers(test: Test, setup: Setup, series: Series) -> dict[str, float | None]:
    """Returns what sums a test up, of the time in which connections send."""
    steps = len(next(iter(series.values()), []))
    on = [DELAY_S <= STEP_S * (step + 0.5) < DELAY_S + setup.seconds for step in range(steps)]
    streams = {way: [one.series for one in test.streams if one.up == (way == UP)] for way in (UP, DOWN)}
    return summed_up(series, streams, list(test.pings), on, call=test.call)


def summed_up(
    series: Series, streams: Mapping[str, Sequence[str]], pings: Sequence[str], on: Sequence[bool], *, call: bool
) -> dict[str, float | None]:
    """Returns mean rates of both directions, and percentiles of pings and of a call, of the steps which are `on`."""

    def of(name: str) -> list[float | None]:
        return list(itertools.compress(series.get(name, []), on))

    found: dict[str, float | None] = {}
    for way, mine in streams.items():
        if mine:
            means = [_mean(of(name)) for name in mine]
            found[f"{way}_mbps"] = _told(math.fsum(means))
            found[f"{way}_jain"] = _told(jain(means))
    trips = [value for name in pings for value in of(name) if value is not None]
    delays = [value for value in of(f"{CALL}::delay") if value is not None]
    for name, values in (("ping_ms", trips), ("call_ms", delays)):
        for part in (50, 90, 99):
            if values:
                found[f"{name}_p{part}"] = round(float(np.percentile(values, part)), 6)
    sent = sum(len(of(name)) for name in pings)
    if sent:
        found["ping_loss"] = round(1 - len(trips) / sent, 6)
    if call:
        lost = [value for value in series.get(f"{CALL}::loss", []) if value is not None]
        found["call_lost"] = sum(lost) if lost else None
    return found


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else math.nan


def _told(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)


def describe(setup: Setup) -> str:
    """Returns the set-up in words."""
    rate = f"{setup.rate_bps / _UNIT:g} Mbit/s"
    link = f"{rate} both ways, {setup.rtt_s * 1e3:g} ms, buffers of {setup.limit}, {setup.cc}, {setup.seconds} s"
    return link if setup.on == worlds.SIM else f"{link}, --on {setup.on}"
