"""Measures penstock-emulate: packets at line rate beside itself as a bare forwarder, rates and idle round trips as set.

Each number stands beside that of a link of the kernel in the same run, because only ratios can be compared between
machines. Hosts are namespaces; packets have 1500 bytes, and none is merged.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.mistake import MistakeError
from penstock.testbed import LabError, impossible, inside, namespaces, run
from penstock.verify import lab
from penstock.verify.recording import Program

TUN, PORTS, KERNEL = "TUN", "ports", "kernel"
# Bars: own processor time of a packet on TUN, part of the bare forwarder's rate, errors of a rate and of an idle round
# trip.
CPU_US, PART, RATE_ERROR, IDLE_US, IDLE_SPIN_US = 4.0, 0.9, 0.005, 150.0, 30.0
RATES_MBPS = (1, 10, 100, 1000)

_SIZE, _ETHERNET = 1500, 14
_SOON_S = 0.5  # flows are steady after so long
_DELAY_S, _PROBE, _PROBE_RATE_BPS = 0.010, 92, 1e9
_QUEUE_S = 0.25
_PATIENCE_S = 20.0
# Other work on the machine has its turn after all programs of this measurement.
_FIRST = ("nice", "-n", "-20")
# Programs that mostly sleep may come before it at once.
_AT_ONCE = ("chrt", "-f", "1")
# Datagrams of a call, which the kernel cuts into packets before a TUN interface gets them (UDP_SEGMENT).
_MANY = 20

# Sends datagrams in packets of 1500 bytes: so many per second, or as fast as it can, with so many of them in a call.
_SENDER = """import socket, sys, time
to, rate, seconds, many = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if many > 1:
    one.setsockopt(socket.IPPROTO_UDP, 103, 1472)
one.connect((to, 9))
data, begin, sent = bytes(1472 * many), time.monotonic(), 0
while (passed := time.monotonic() - begin) < seconds:
    calls = min(int(passed * rate) - sent, 1000) // many if rate else 100
    for _ in range(calls):
        one.send(data)
    sent += calls * many
    if rate:
        time.sleep(0.001)
print("{}")
"""
# Answers datagrams at one port, after polling for a time, and takes those at another, which nobody reads.
_SINK = """import socket, sys, time
polls = float(sys.argv[1])
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("0.0.0.0", 9))
echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
echo.bind(("0.0.0.0", 7))
print("listening", flush=True)
while True:
    data, back = echo.recvfrom(2000)
    end = time.perf_counter() + polls
    while polls and time.perf_counter() < end:
        pass
    echo.sendto(data, back)
"""
# Prints the round trip of each of so many datagrams, in microseconds.
_PROBES = """import json, socket, sys, time
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.connect((sys.argv[1], 7))
one.settimeout(1)
found = []
for number in range(int(sys.argv[2])):
    data = number.to_bytes(64, "big")
    begin = time.perf_counter()
    one.send(data)
    try:
        if one.recv(100) == data:
            found.append((time.perf_counter() - begin) * 1e6)
    except TimeoutError:
        pass
    time.sleep(0.005)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Line:
    """What an emulator with FQ-CoDel carries as fast as it can, and a bare forwarder: medians of rounds."""

    path: str
    many: int  # packets that the sender gives to its kernel in a call
    kpps: float
    bare_kpps: float | None
    part: float | None  # of the bare forwarder's rate, in the same round
    cpu_us: float | None  # own processor time of a packet
    bare_cpu_us: float | None  # of the bare forwarder
    wakeups: float | None  # of the emulator, for each packet

    @property
    def met(self) -> bool | None:
        """True if it is as good as it should be; `None` for the kernel."""
        if self.part is None or self.cpu_us is None:
            return None
        return self.part >= PART and (self.cpu_us <= CPU_US or self.path != TUN)


@dataclass(frozen=True)
class Rate:
    """How far a link is from the rate that was set."""

    path: str
    set_mbps: float
    offered_mbps: float  # what the sender sent
    error: float

    @property
    def met(self) -> bool | None:
        """True if it is as near as it should be; `None` for the kernel, and if the sender did not send enough."""
        if self.path == KERNEL or self.offered_mbps < self.set_mbps:
            return None
        return abs(self.error) <= RATE_ERROR


@dataclass(frozen=True)
class Idle:
    """How much longer the median round trip of an idle path is than what was set, beside a wire of the kernel."""

    path: str
    spin: bool
    above_us: float  # without what the round trip takes over a wire of the kernel
    late_us: float  # the part of it that the emulator reports as its own: medians of both ways
    kernel_us: float  # with processors that do not sleep
    # Over a wire of the kernel whose far host polls for as long as was set before it answers, without that time: hosts
    # whose processors sleep wake up after a silence.
    silent_us: float
    bare_us: float  # over the emulator as a bare forwarder

    @property
    def met(self) -> bool:
        """True if it is as near as it should be."""
        return abs(self.above_us) <= (IDLE_SPIN_US if self.spin else IDLE_US)


@dataclass(frozen=True)
class Costs:
    """All results, or why there are none."""

    missing: str | None
    line: tuple[Line, ...] = ()
    rates: tuple[Rate, ...] = ()
    idle: tuple[Idle, ...] = ()
    load: tuple[float, float] = (0.0, 0.0)  # before and after, without what this measurement adds itself before

    def to_json(self) -> dict[str, Any]:
        """Returns the keys of the benchmark's JSON object."""
        if self.missing:
            return {"emulator": None, "emulator_missing": self.missing}
        tables = {
            name: [{**asdict(row), "met": row.met} for row in getattr(self, name)] for name in ("line", "rates", "idle")
        }
        return {"emulator": {**tables, "load": list(self.load)}, "emulator_missing": None}


NOT_REACHED = Costs("not reached")


def measure(quick: bool, say: Callable[[str], None]) -> Costs:
    """Measures everything; needs root."""
    if reason := impossible():
        return Costs(reason)
    try:
        emulator = lab.find_emulator(None)
    except (LabError, MistakeError) as error:
        return Costs(str(error))
    before = os.getloadavg()[0]
    bench = _Bench(emulator, quick)
    try:
        say("emulator at line rate")
        line = [bench.line(path, many) for path, many in ((TUN, 1), (TUN, _MANY), (PORTS, 1), (KERNEL, 1))]
        say("emulator: rates")
        rates = [bench.rate(path, mbps) for mbps in RATES_MBPS for path in (TUN, PORTS, KERNEL)]
        say("emulator: idle round trips")
        with _awake():  # as the emulator keeps the processors
            direct, _ = bench.round_trip(KERNEL)
        silent, _ = bench.round_trip(KERNEL, polls_s=_set_us() / 1e6)
        idle = []
        for path in (TUN, PORTS):
            for spin in (False, True):
                median, late = bench.round_trip(path, _waiting(spin))
                bare, _ = bench.round_trip(path, [*_waiting(spin), "--bare"])
                above = median - _set_us() - direct
                idle.append(Idle(path, spin, above, late, direct, silent - _set_us(), bare))
    except LabError as error:
        return Costs(str(error))
    return Costs(None, tuple(line), tuple(rates), tuple(idle), (before, os.getloadavg()[0]))


@contextlib.contextmanager
def _awake() -> Iterator[None]:
    """Lets no processor sleep, where the kernel offers it."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            asked = stack.enter_context(Path("/dev/cpu_dma_latency").open("wb", buffering=0))
            asked.write(bytes(4))
        yield


def _waiting(spin: bool) -> list[str]:
    return ["--spin" if spin else "--realtime"]


def _set_us() -> float:
    return 2e6 * (_DELAY_S + _PROBE * 8 / _PROBE_RATE_BPS)


@dataclass(frozen=True)
class _Net:
    """Two hosts, and what is between them."""

    left: str
    right: str
    address: str  # of the host on the right
    counter: str  # its interface
    options: tuple[str, ...]  # of the emulator


class _Bench:
    def __init__(self, emulator: Path, quick: bool) -> None:
        self._emulator, self._quick = emulator, quick

    def line(self, path: str, many: int) -> Line:
        rounds = range(1 if self._quick else 3)
        if path == KERNEL:
            with _network(path, "10gbit") as net:
                kpps = statistics.median(self._kernel_kpps(net) for _ in rounds)
                return Line(path, many, kpps, None, None, None, None, None)
        found = [
            (self._carried(path, many, ["--aqm", "fq-codel"]), self._carried(path, many, ["--bare"])) for _ in rounds
        ]
        return Line(
            path,
            many,
            statistics.median(one[0] for one, _ in found),
            statistics.median(bare[0] for _, bare in found),
            statistics.median(one[0] / bare[0] for one, bare in found),
            statistics.median(one[1] for one, _ in found),
            statistics.median(bare[1] for _, bare in found),
            statistics.median(one[2] for one, _ in found),
        )

    def _kernel_kpps(self, net: _Net) -> float:
        with _sink(net) as count, self._flood(net, 0):
            time.sleep(_SOON_S)
            begin, before = time.monotonic(), count()
            time.sleep(self._seconds)
            return (count() - before) / (time.monotonic() - begin) / 1e3

    def _carried(self, path: str, many: int, options: Sequence[str]) -> tuple[float, float, float]:
        """Returns thousands of packets per second, microseconds of processor time of each, and wake-ups for each."""
        wanted = ["--rate", "10Gbit/s", "--limit", "10000p", "--realtime", *options]
        with _network(path) as net, _sink(net), self._emulate(net, wanted) as status, self._flood(net, 0, many):
            time.sleep(_SOON_S)
            before = status()
            time.sleep(self._seconds)
            after = status()
        seconds, cpu, wakeups = (after[key] - before[key] for key in ("elapsed_s", "cpu_s", "wakeups"))
        packets = _forwarded(after) - _forwarded(before)
        if packets == 0:
            raise LabError(f"the emulator forwarded no packet: {after}")
        return packets / seconds / 1e3, cpu / packets * 1e6, wakeups / packets

    def rate(self, path: str, mbps: float) -> Rate:
        """Measures the rate between two arrivals, from a sender of one and a half times as much."""
        pps = mbps * 1e6 / 8 / _SIZE
        # The sender has pauses. The queue is long enough for them, so that the link always has something to send.
        options = ["--rate", f"{mbps}Mbit/s", "--limit", f"{max(100, int(pps * _QUEUE_S))}p", "--realtime"]
        with _network(path, f"{mbps}mbit") as net, _sink(net) as count, contextlib.ExitStack() as stack:
            if path != KERNEL:
                stack.enter_context(self._emulate(net, options))
            # A call for each packet takes a sender too long for the highest rate.
            many = _MANY if path == TUN and mbps == RATES_MBPS[-1] else 1
            sent = stack.enter_context(self._flood(net, 1.5 * pps, many))
            time.sleep(2 * _SOON_S)
            begin, before, sent_before = *_next_arrival(count), sent()
            time.sleep(self._seconds if mbps > 1 else 2 * self._seconds)
            end, after, sent_after = *_next_arrival(count), sent()
        # TBF counts the headers of Ethernet as well.
        size = _SIZE + (_ETHERNET if path == KERNEL else 0)
        offered, found = (
            packets * size * 8 / (end - begin) / 1e6 for packets in (sent_after - sent_before, after - before)
        )
        return Rate(path, mbps, offered, found / mbps - 1)

    def round_trip(self, path: str, more: Sequence[str] = (), polls_s: float = 0.0) -> tuple[float, float]:
        """Returns the median round trip of datagrams over an idle path in us, and how late the emulator says it was.

        The far host answers after it has polled for `polls_s`.
        """
        options = ["--rate", f"{_PROBE_RATE_BPS:.0f}bit/s", "--delay", f"{_DELAY_S * 1e3:g}ms", *more]
        with _network(path) as net, _sink(net, polls_s, _AT_ONCE), contextlib.ExitStack() as stack:
            status = None if path == KERNEL else stack.enter_context(self._emulate(net, options, _AT_ONCE))
            words = [sys.executable, "-I", "-c", _PROBES, net.address, "60" if self._quick else "200"]
            probes = stack.enter_context(Program([*_first(_AT_ONCE), *inside(net.left), *words]))
            found = probes.result(_PATIENCE_S + 30)
            report = status() if status else None
        if not found:
            raise LabError("no datagram came back over an idle path")
        late = sum(report[way]["lateness_us"]["p50"] or 0.0 for way in ("forward", "reverse")) if report else 0.0
        return float(statistics.median(found)), float(late)

    @property
    def _seconds(self) -> float:
        return 1.0 if self._quick else 3.0

    @contextlib.contextmanager
    def _emulate(
        self, net: _Net, options: Sequence[str], priority: Sequence[str] = _FIRST
    ) -> Iterator[Callable[[], Any]]:
        """Runs an emulator; yields what asks for its report."""
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
            socket = f"{directory}/s"
            command = [
                *_first(priority, apart=True),
                str(self._emulator),
                *net.options,
                *options,
                "--json",
                "--socket",
                socket,
                "--duration",
                "120s",
            ]
            with Program(command) as program:
                program.await_line("ready", of_stderr=True)

                def status() -> Any:
                    report = json.loads(run([str(self._emulator), "status", "--json", "--socket", socket]))
                    return {**report, "wakeups": _wakeups(program.pid)}

                yield status
                program.stop()
                program.result(_PATIENCE_S)

    @contextlib.contextmanager
    def _flood(self, net: _Net, pps: float, many: int = 1) -> Iterator[Callable[[], int]]:
        """Runs the sender; yields what counts the packets that its host has sent."""
        words = [sys.executable, "-I", "-c", _SENDER, net.address, str(pps), "100", str(many)]
        with Program([*_first(), *inside(net.left), *words]) as program:
            counters = Path(f"/proc/{program.pid}/net/snmp")

            def sent() -> int:
                names, values = (
                    x.split() for x in counters.read_text(encoding="ascii").splitlines() if x[:4] == "Udp:"
                )
                return many * int(values[names.index("OutDatagrams")])

            yield sent


def _forwarded(report: Any) -> int:
    """Returns the packets from left to right that were forwarded."""
    bare = report.get("bare")
    way = report["forward"]
    return int(bare[0] if bare else way["delivered"]["packets"]) - int(way["refused"])


def _first(priority: Sequence[str] = _FIRST, apart: bool = False) -> list[str]:
    """Returns the begin of a command line before which other work has no turn.

    If there are two processors or more, what is `apart` has the last one for itself, and all else has the others:
    otherwise it is chance whether the emulator runs in place of the sender that it reads from.
    """
    processors = sorted(os.sched_getaffinity(0))
    place = processors[-1:] if apart else processors[:-1]
    pinned = ["taskset", "-c", ",".join(map(str, place))] if len(processors) > 1 else []
    return [*priority, *pinned]


def _wakeups(pid: int) -> int:
    """Returns how often the main thread of a process has slept."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


@contextlib.contextmanager
def _sink(net: _Net, polls_s: float = 0.0, priority: Sequence[str] = _FIRST) -> Iterator[Callable[[], int]]:
    """Runs the host on the right; yields what counts the packets that its interface received."""
    # Who polls takes the place of an emulator.
    words = [*_first(priority, apart=polls_s > 0), *inside(net.right), sys.executable, "-I", "-c", _SINK, str(polls_s)]
    with Program(words) as program:
        program.await_line("listening")
        counters = Path(f"/proc/{program.pid}/net/dev")

        def count() -> int:
            for line in counters.read_text(encoding="ascii").splitlines():
                name, _, fields = line.partition(":")
                if name.strip() == net.counter:
                    return int(fields.split()[1])
            raise LabError(f"there is no interface {net.counter} on the right")

        yield count


def _next_arrival(count: Callable[[], int]) -> tuple[float, int]:
    """Returns when the next packet came, and the number of packets then."""
    before, begin = count(), time.monotonic()
    while (found := count()) == before:
        if time.monotonic() > begin + 2:
            raise LabError("no packet came for 2 s")
    return time.monotonic(), found


@contextlib.contextmanager
def _network(path: str, rate: str = "") -> Iterator[_Net]:
    """Makes two hosts: for TUN interfaces, at the ends of two wires to ports, or of one wire with TBF at `rate`."""
    spaces = ("l", "m", "r") if path == PORTS else ("l", "r")
    with namespaces("bench", spaces, {"net.ipv6.conf.all.disable_ipv6": "1"}) as (left, *others, right):
        if path == TUN:
            yield _Net(left, right, "10.77.0.2", "penstock1", ("--left-netns", left, "--right-netns", right))
            return
        middle = others[0] if others else right
        if path == KERNEL:
            run(["ip", "-n", left, "link", "add", "e0", "type", "veth", "peer", "name", "e0", "netns", right])
        else:
            for host, port in ((left, "pl"), (right, "pr")):
                run(["ip", "-n", host, "link", "add", "e0", "type", "veth", "peer", "name", port, "netns", middle])
                run(["ip", "-n", middle, "link", "set", port, "up"])
        for number, host in ((1, left), (2, right)):
            run(["ip", "-n", host, "addr", "add", f"10.77.0.{number}/24", "dev", "e0"])
            run(["ip", "-n", host, "link", "set", "e0", "up"])
        if path == KERNEL and rate:
            run(["tc", "-n", left, "qdisc", "add", "dev", "e0", "root", "tbf", "rate", rate, *_bucket(rate)])
        options = ("--left-netns", middle, "--right-netns", middle, "--left-port", "pl", "--right-port", "pr")
        yield _Net(left, right, "10.77.0.2", "e0", options)


def _bucket(rate: str) -> list[str]:
    """Returns a bucket of 4 ms, a usual tick of kernels, and at least two packets; and a queue of 100 packets."""
    bps = float(rate.removesuffix("mbit")) * 1e6 if rate.endswith("mbit") else float(rate.removesuffix("gbit")) * 1e9
    burst = max(2 * (_SIZE + _ETHERNET), int(bps / 8 * 0.004))
    return ["burst", str(burst), "limit", str(100 * (_SIZE + _ETHERNET))]


LINE_COLUMNS = (
    "path",
    "packets a call",
    "1000 packets/s",
    "bare",
    "part of bare",
    "own CPU us/packet",
    "bare",
    "wake-ups/packet",
    "met",
)
RATE_COLUMNS = ("path", "set Mbit/s", "offered", "error", "met")
IDLE_COLUMNS = (
    "path",
    "waits by",
    "above what is set us",
    "own lateness us",
    "wire of the kernel us",
    "with silent hosts us",
    "bare forwarder us",
    "met",
)
_WORDS = {True: "yes", False: "no", None: "-"}


def line_cells(costs: Costs) -> list[list[str]]:
    """Returns the rows of the table of packets at line rate."""

    def text(value: float | None, form: str) -> str:
        return "-" if value is None else f"{value:{form}}"

    return [
        [
            row.path,
            str(row.many),
            f"{row.kpps:.0f}",
            text(row.bare_kpps, ".0f"),
            text(row.part, ".2f"),
            text(row.cpu_us, ".2f"),
            text(row.bare_cpu_us, ".2f"),
            text(row.wakeups, ".3f"),
            _WORDS[row.met],
        ]
        for row in costs.line
    ]


def rate_cells(costs: Costs) -> list[list[str]]:
    """Returns the rows of the table of rates."""
    return [
        [row.path, f"{row.set_mbps:g}", f"{row.offered_mbps:.1f}", f"{row.error:+.2%}", _WORDS[row.met]]
        for row in costs.rates
    ]


def idle_cells(costs: Costs) -> list[list[str]]:
    """Returns the rows of the table of idle round trips."""
    return [
        [
            row.path,
            "polling" if row.spin else "sleeping",
            f"{row.above_us:.0f}",
            f"{row.late_us:.0f}",
            f"{row.kernel_us:.0f}",
            f"{row.silent_us:.0f}",
            f"{row.bare_us:.0f}",
            _WORDS[row.met],
        ]
        for row in costs.idle
    ]
