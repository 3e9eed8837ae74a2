"""`verify agree`: the same arrivals or events through two algorithms, up to the first on which they part.

An algorithm is a name with its parameters ("codel target=10ms"), a class of one's own ("mine.py:Step"), or a program
that `penstock new KIND NAME --rust` wrote ("./step/target/release/step", with "PATH:NAME" if it has several).

    AQM, discipline   packets of a trace, or random ones, before a link; compared are fate, time and ECN field of each
    scheduler         random arrivals and departures; compared is the packet of each departure
    control           random ACKs, losses, marks and timeouts; compared are window, threshold and pacing rate after each
"""

from __future__ import annotations

import csv
import io
import os
import random
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock import engine, store
from penstock.mistake import MistakeError
from penstock.own import Library
from penstock.suggest import did_you_mean

KINDS = ("discipline", "scheduler", "control")
# What is random in the traces and events that this file draws.
_FLOWS, _SIZES = 6, (64, 576, 1000, 1500)
_LARGEST = 1500


@dataclass(frozen=True)
class Setup:
    """Under which both algorithms are compared."""

    trace: Path | None = None
    random: int = 10_000  # packets or events, without a trace
    rate: str = "10Mbit/s"
    limit: str = "100p"
    weights: tuple[int, ...] = (1, 2, 4, 8)  # of the classes of schedulers
    seed: int = 1
    before: int = 10  # rows that are shown before the first difference


@dataclass(frozen=True)
class Agreement:
    """Whether two algorithms did the same, and where they part."""

    kind: str
    names: tuple[str, str]
    compared: int  # packets, departures or events
    what: str = ""  # the packet, departure or event on which they part; empty if they agree
    answers: tuple[str, str] = ("", "")  # what each of them did
    states: tuple[str, str] = ("", "")  # of each, right after that
    before: list[str] = field(default_factory=list)  # the rows before, in which they agree

    @property
    def agrees(self) -> bool:
        """True if both did the same with everything."""
        return not self.what

    def to_json(self) -> dict[str, Any]:
        """All of it, each pair as a list in the order of the arguments."""
        return {
            **{key: value for key, value in vars(self).items() if key != "names"},
            "algorithms": list(self.names),
            "agrees": self.agrees,
        }


def compare(a: str, b: str, setup: Setup) -> Agreement:
    """Compares two algorithms; raises `MistakeError` if they are not of one kind or cannot be used."""
    with tempfile.TemporaryDirectory() as directory:
        pair = _open(a), _open(b)
        kind = _kind(pair, setup)
        ways: dict[str, Callable[[Path, Setup], _Way]] = {
            "discipline": _Packets,
            "scheduler": _Departures,
            "control": _Windows,
        }
        try:
            return _part(kind, pair, ways[kind](Path(directory), setup), setup.before)
        except (engine.TraceError, engine.AlgorithmError):
            raise
        except ValueError as error:
            raise MistakeError(str(error)) from None


# Algorithms.


@dataclass(frozen=True)
class _Here:
    """An algorithm that this process runs: a built-in one or a class of one's own."""

    name: str
    settings: tuple[str, ...]
    kinds: frozenset[str]

    def __str__(self) -> str:
        return " ".join([self.name, *self.settings])


@dataclass(frozen=True)
class _There:
    """An algorithm of a program that `penstock new --rust` wrote."""

    program: Path
    name: str
    settings: tuple[str, ...]
    kinds: frozenset[str]

    def __str__(self) -> str:
        return " ".join([f"{self.program.name}:{self.name}", *self.settings])

    def ask(self, *arguments: str | Path) -> str:
        """Returns what the program prints."""
        settings = [word for setting in self.settings for word in ("--set", setting)]
        return _printed([str(self.program.resolve()), *map(str, arguments), *settings])


_Algorithm = _Here | _There
_WORDS = {
    "cc": {"control"},
    "scheduler": {"scheduler", "discipline"},
    "aqm": {"discipline"},
    "ack-path": {"discipline"},
}


def _open(text: str) -> _Algorithm:
    name, *settings = text.split()
    program, _, wanted = name.partition(":")
    if not name.endswith(".py") and ".py:" not in name and "/" in program and Path(program).is_file():
        return _open_program(Path(program), wanted, tuple(settings))
    built_in = {entry.name: entry.kind for entry in engine.entries()}
    kinds = {"control"} if built_in.get(name) == "cc" else {"discipline"} if name in built_in else set()
    if name in (schedulers := {entry.name for entry in engine.schedulers()}):
        kinds = {"scheduler"} if built_in.get(name) != "scheduler" or name == "fifo" else {"scheduler", "discipline"}
    own = None if kinds else Library().kind(name)
    if own:
        kinds = _WORDS[own]
    if not kinds:
        known = [*built_in, *sorted(schedulers - built_in.keys())]
        raise MistakeError(
            f"there is no algorithm {name!r}; {did_you_mean(name, known)}give a name of `penstock list`, "
            "FILE.py:CLASS, or the path of a program that `penstock new --rust` wrote"
        )
    return _Here(name, tuple(settings), frozenset(kinds))


def _open_program(program: Path, wanted: str, settings: tuple[str, ...]) -> _There:
    if not os.access(program, os.X_OK):
        raise MistakeError(f"{program} is not a program that can be run; `cargo build --release` makes one of a crate")
    has = {name: kind for kind, _, name in (line.partition(" ") for line in _printed([program, "names"]).splitlines())}
    name = wanted or next(iter(has), "")
    if name not in has:
        raise MistakeError(f"{program} has no algorithm {name!r}; {did_you_mean(name, has)}it has {', '.join(has)}")
    return _There(program, name, settings, frozenset(_WORDS[has[name]]))


def _printed(command: Sequence[str | Path]) -> str:
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    except OSError as error:
        raise MistakeError(f"{command[0]}: cannot be run: {error.strerror}") from None
    if done.returncode:
        raise MistakeError(f"{Path(command[0]).name}: {done.stderr.strip().removeprefix('error: ') or done.returncode}")
    return done.stdout


def _kind(pair: tuple[_Algorithm, _Algorithm], setup: Setup) -> str:
    both = pair[0].kinds & pair[1].kinds
    if setup.trace and "discipline" in both:
        return "discipline"  # a trace has packets of flows, which are the classes of a scheduler
    found = next((kind for kind in reversed(KINDS) if kind in both), None)
    if found is None:
        told = [f"{algorithm} is a {' and a '.join(sorted(algorithm.kinds))}" for algorithm in pair]
        raise MistakeError(f"{told[0]}, {told[1]}: two algorithms of one kind can be compared")
    return found


# What is compared.


class _Way(Protocol):
    """How one kind of algorithm is driven. A row is a key, what the algorithm did, and its time among the rows."""

    def rows(self, algorithm: _Algorithm) -> list[Row]: ...

    def state(self, algorithm: _Algorithm, row: Row, at: int) -> str: ...


@dataclass(frozen=True)
class Row:
    """What happened to one packet, at one departure or at one event."""

    number: int
    about: str
    did: str
    at: int  # when it was decided, in nanoseconds or by number


def _part(kind: str, pair: tuple[_Algorithm, _Algorithm], way: _Way, most: int) -> Agreement:
    """Finds the earliest decision in which the two differ."""
    rows = [way.rows(algorithm) for algorithm in pair]
    names = (str(pair[0]), str(pair[1]))
    apart = [(min(x.at, y.at), x.number) for x, y in zip(*rows, strict=True) if x.did != y.did]
    if not apart:
        return Agreement(kind, names, len(rows[0]))
    at, number = min(apart)
    first = rows[0][number], rows[1][number]
    before = sorted((row.at, row.number) for row in rows[0] if (row.at, row.number) < (at, number))[-most or None :]
    states = (way.state(pair[0], first[0], at), way.state(pair[1], first[1], at))
    shown = [f"{rows[0][at].about}: {rows[0][at].did}" for _, at in (before if most else [])]
    return Agreement(kind, names, len(rows[0]), first[0].about, (first[0].did, first[1].did), states, shown)


class _Packets:
    """Packets through two disciplines before a link."""

    def __init__(self, directory: Path, setup: Setup) -> None:
        self._setup = setup
        self._trace = setup.trace or directory / "arrivals.csv"
        if not setup.trace:
            store.write(self._trace, "t_ns,flow,size,ecn\n" + "".join(arrivals(setup)))

    def rows(self, algorithm: _Algorithm) -> list[Row]:
        """One for each packet, in the order of arrival."""
        out = io.BytesIO()
        if isinstance(algorithm, _There):
            text = algorithm.ask("replay", self._trace, "--aqm", algorithm.name, *self._link())
        else:
            setup = self._setup
            arguments = (self._trace, algorithm.name, setup.rate, setup.limit, algorithm.settings, setup.seed, out)
            engine.replay(*arguments, nodes="none")
            text = out.getvalue().decode()
        return [self._row(row) for row in csv.DictReader(io.StringIO(text))]

    def _link(self) -> list[str]:
        return ["--rate", self._setup.rate, "--limit", self._setup.limit, "--seed", str(self._setup.seed)]

    @staticmethod
    def _row(row: dict[str, str]) -> Row:
        ecn = f", ECN {row['ecn_out']}" if row["fate"] == "sent" else ""
        about = f"packet {row['id']} of flow {row['flow']}, {row['size']} B, arrived at {_ms(row['t_arr_ns'])}"
        return Row(int(row["id"]), about, f"{row['fate']} at {_ms(row['t_fate_ns'])}{ecn}", int(row["t_fate_ns"]))

    def state(self, algorithm: _Algorithm, row: Row, at: int) -> str:
        """The state after everything up to the time `at`."""
        if isinstance(algorithm, _There):
            asked = ("--aqm", algorithm.name, *self._link(), "--state-at", f"{row.number}:{at}")
            return algorithm.ask("replay", self._trace, *asked).strip()
        setup = self._setup
        link = (algorithm.name, setup.rate, setup.limit)
        return engine.replay_state(self._trace, *link, row.number, at, algorithm.settings, setup.seed)


def _ms(ns: str) -> str:
    return f"{int(ns) / 1e6:.6f} ms"


def arrivals(setup: Setup) -> Iterator[str]:
    """Draws packets that fill a link of the rate in bursts, with pauses in which queues drain."""
    rng, bps = random.Random(setup.seed), _bps(setup.rate)
    now = 0.0
    for _ in range(setup.random):
        size, flow = rng.choice(_SIZES), int(rng.triangular(0, _FLOWS, 0))
        # On average a little more than the link takes; now and then a pause of as long as 40 packets take.
        pause = 40 if rng.random() < 0.01 else 0
        now += 8e9 * (size * rng.expovariate(1.1) + pause * _LARGEST) / bps
        yield f"{int(now)},{flow},{size},{rng.choice((0, 0, 2))}\n"


def _bps(rate: str) -> float:
    found = re.fullmatch(r"([0-9.]+) ?([kMG]?)bit/s", rate)
    bps = float(found[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[found[2]] if found and found[1].count(".") < 2 else 0
    if bps <= 0:
        raise MistakeError(f"--rate {rate}: write a rate such as 10Mbit/s")
    return bps


class _Departures:
    """Arrivals and departures of classes."""

    def __init__(self, directory: Path, setup: Setup) -> None:
        if setup.trace:
            raise MistakeError("--trace: a scheduler that is no discipline has no packets of flows; leave it out")
        self._setup, self._directory = setup, directory
        self._events = list(events(setup))
        self._departures = [place for place, event in enumerate(self._events) if event[0] == "depart"]

    def _played(self, algorithm: _Algorithm, until: int) -> tuple[list[int], str]:
        some = self._events[:until]
        if isinstance(algorithm, _Here):
            if algorithm.settings:
                raise MistakeError(f"{algorithm}: parameters of schedulers are not set here; give its name alone")
            return engine.scheduled(algorithm.name, self._setup.weights, some, _LARGEST)
        file = self._directory / "events.csv"
        store.write(file, "".join(f"{name},{cls},{size}\n" for name, cls, size in some))
        weights = ",".join(map(str, self._setup.weights))
        *order, state = algorithm.ask("schedule", file, "--alg", algorithm.name, "--weights", weights).splitlines()
        return [int(packet) for packet in order], state

    def rows(self, algorithm: _Algorithm) -> list[Row]:
        """One for each departure."""
        order, _ = self._played(algorithm, len(self._events))
        packets = [event for event in self._events if event[0] == "arrive"]
        return [Row(n, f"departure {n}", self._told(packet, packets), n) for n, packet in enumerate(order)]

    @staticmethod
    def _told(packet: int, packets: Sequence[tuple[str, int, int]]) -> str:
        if packet < 0:
            return "no packet"
        _, cls, size = packets[packet]
        return f"packet {packet} of class {cls}, {size} B"

    def state(self, algorithm: _Algorithm, row: Row, _at: int) -> str:
        """The state after this departure."""
        return self._played(algorithm, self._departures[row.number] + 1)[1]


def events(setup: Setup) -> Iterator[tuple[str, int, int]]:
    """Draws arrivals and departures: phases in which queues grow, and phases in which they drain."""
    rng, waiting = random.Random(setup.seed), 0
    for n in range(setup.random):
        growing = n // 50 % 2 == 0
        if rng.random() < (0.7 if growing else 0.3):
            waiting += 1
            yield "arrive", rng.randrange(len(setup.weights)), rng.choice(_SIZES)
        else:
            waiting = max(waiting - 1, 0)
            yield "depart", 0, 0


class _Windows:
    """What a connection tells its control."""

    def __init__(self, directory: Path, setup: Setup) -> None:
        self._script = setup.trace or directory / "events.csv"
        if not setup.trace:
            store.write(self._script, "t_us,event,segments,rtt_us\n" + "".join(script(setup)))
        self._states: dict[_Algorithm, list[str]] = {}

    def rows(self, algorithm: _Algorithm) -> list[Row]:
        """One for each event."""
        if isinstance(algorithm, _There):
            text = algorithm.ask("control", self._script, "--cc", algorithm.name)
        else:
            out = io.BytesIO()
            engine.replay_control(self._script, algorithm.name, out, algorithm.settings, state=True)
            text = out.getvalue().decode()
        found = list(csv.DictReader(io.StringIO(text)))
        self._states[algorithm] = [row["state"] for row in found]
        return [self._row(n, row) for n, row in enumerate(found)]

    @staticmethod
    def _row(n: int, row: dict[str, str]) -> Row:
        threshold, pace = row["ssthresh_segments"] or "none", row["pacing_bps"] or "none"
        did = f"window {row['cwnd_segments']}, threshold {threshold} segments, pacing {pace} bit/s"
        return Row(n, f"event {n}, {row['event']} at {int(row['t_us']) / 1e3:g} ms", did, n)

    def state(self, algorithm: _Algorithm, row: Row, _at: int) -> str:
        """The state after this event."""
        return self._states[algorithm][row.number]


def script(setup: Setup) -> Iterator[str]:
    """Yields random events of a connection: ACKs whose round trip times vary slowly, and 1.5 % congestion signals."""
    rng, now, rtt_us = random.Random(setup.seed), 0, 50_000
    for _ in range(setup.random):
        rtt_us = min(max(int(rtt_us * rng.uniform(0.97, 1.03)), 10_000), 400_000)
        now += rng.randrange(200, 4000)
        chance = rng.random()
        if chance < 0.985:
            yield f"{now},ack,{rng.choice((1, 1, 2))},{rtt_us}\n"
            continue
        event = "loss" if chance < 0.993 else "ecn" if chance < 0.998 else "rto"
        yield f"{now},{event},0,0\n"
        if event == "loss":
            now += rtt_us
            yield f"{now},recovered,0,0\n"
