"""Your own algorithms, in Python: `docs/your-own.md`.

Derive from `CongestionControl` or `Aqm` and use the class by its name wherever a built-in one could stand:
`file.py:Class` in scenario files and on the command line, or the class itself in a scenario that is a Python object.

Other files that a scenario names, recorded traces of links, are found and kept in the same way.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import json
import math
import random
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Protocol

from penstock.mistake import MistakeError

Verdict = Literal["drop", "mark"] | None

MOST_BYTES = 64 * 2**20  # of a file that a scenario names: what the simulator takes


class AlgorithmError(RuntimeError):
    """An algorithm of yours failed; the run was stopped. The text has the traceback, `__cause__` the exception."""


class Ack(Protocol):
    """What an ACK of new data tells. Sizes are bytes."""

    now_s: float
    acked: int  # newly acknowledged
    rtt_s: float | None  # if this ACK gave a sample
    srtt_s: float
    min_rtt_s: float | None  # the least so far
    in_flight: int  # before this ACK
    cwnd_limited: bool  # the window was in use; one that is not should not grow
    delivered: int  # so far, counted from any number on
    marked: int  # of `acked`, with `accurate_ecn`
    delivery_rate_bps: float | None  # over the last round trip


class Loss(Protocol):
    """A congestion signal."""

    now_s: float
    in_flight: int


class Packet(Protocol):
    """A packet at a queue. Sizes are bytes."""

    now_s: float
    size: int
    flow: int
    ecn_capable: bool
    sojourn_s: float  # how long it waited; 0 when it arrives
    queue_packets: int  # the others that wait
    queue_bytes: int


class CongestionControl:
    """The window of a TCP connection: say how it grows, and what a loss does to it if not what Reno does.

    Set in `self` before `__init__()` is called: `mss` and `initial_window` in bytes, `random`, a seeded
    `random.Random`, and every parameter that the scenario gives. Parameters are the attributes of the class which the
    base class does not have. After each method `cwnd`, `ssthresh` (bytes) and `pacing_bps` are read.
    """

    mss: int
    initial_window: int
    random: random.Random
    cwnd: float
    ssthresh: float = math.inf
    pacing_bps: float | None = None  # None: segments leave as the window lets them

    ack_per_segment = False  # True: the receiver acknowledges every segment
    accurate_ecn = False  # True: `Ack.marked` is filled (RFC 8257); the connection then uses ECN
    ect1 = False  # True: segments carry ECT(1), for L4S queues

    def on_ack(self, ack: Ack) -> None:
        """New data was acknowledged outside of loss recovery: grow."""
        raise NotImplementedError(f"{type(self).__name__} needs a method on_ack(self, ack)")

    def on_loss(self, loss: Loss) -> None:
        """A packet was lost, once per window: set `ssthresh`. The endpoint brings what is in flight down to it."""
        self.ssthresh = max(loss.in_flight // 2, 2 * self.mss)

    def on_ecn(self, loss: Loss) -> None:
        """A packet was marked, once per window: as a loss."""
        self.on_loss(loss)

    def on_recovered(self, now_s: float) -> None:  # noqa: ARG002
        """Loss recovery is over; after a mark at once."""
        if self.ssthresh < math.inf:
            self.cwnd = self.ssthresh

    def on_rto(self, loss: Loss) -> None:
        """The retransmission timer fired, once per loss."""
        self.on_loss(loss)
        self.cwnd = self.mss

    def on_idle(self, now_s: float) -> None:  # noqa: ARG002
        """Nothing was sent for longer than the timeout: restart."""
        self.cwnd = min(self.cwnd, self.initial_window)

    def adopt(self, cwnd: float, ssthresh: float) -> None:
        """With C²ML the budget of the node makes window and threshold these. A control with a model may ignore it."""
        self.cwnd, self.ssthresh = cwnd, ssthresh

    def on_recovery_ack(self, ack: Ack) -> None:
        """Data was acknowledged during loss recovery: for controls that measure."""


class Aqm:
    """Judges the packets of one queue: what arrives, what leaves, or both.

    Set in `self` before `__init__()` is called: `link_bps`, `limit_packets` or `limit_bytes` (the other is None),
    `random`, a seeded `random.Random`, and every parameter that the scenario gives. Parameters are the attributes of
    the class.
    """

    link_bps: int
    limit_packets: int | None
    limit_bytes: int | None
    random: random.Random

    def on_enqueue(self, packet: Packet) -> Verdict:
        """A packet arrives; the queue does not count it yet. "drop", "mark" (drops what is not ECN-capable) or None."""

    def on_dequeue(self, packet: Packet) -> Verdict:
        """The packet at the head may leave; after "drop" the next is shown. The queue no longer counts it."""

    def on_overflow(self, now_s: float) -> None:
        """A packet that you let pass found no room."""

    def on_empty(self, now_s: float) -> None:
        """The link asked for a packet and there was none."""


_BASES: tuple[type, ...] = (CongestionControl, Aqm)


def overridden(algorithm: object, name: str) -> Any:
    """A method of an algorithm; `None` if it is the base's and does nothing."""
    method = getattr(type(algorithm), name)
    idle = (CongestionControl.on_recovery_ack, Aqm.on_enqueue, Aqm.on_dequeue, Aqm.on_overflow, Aqm.on_empty)
    return None if method in idle else getattr(algorithm, name)


@dataclass(frozen=True)
class ControlMaker:
    """Makes a control for each end of each connection."""

    of: type[CongestionControl]
    parameters: Mapping[str, Any]

    @property
    def requirements(self) -> tuple[bool, bool, bool]:
        """What all of them require of the endpoint."""
        return self.of.ack_per_segment, self.of.accurate_ecn, self.of.ect1

    def make(self, mss: int, initial_window: int, initial_ssthresh: int | None, seed: int) -> CongestionControl:
        """A control for a new connection."""
        control = self.of.__new__(self.of)
        control.mss, control.initial_window, control.cwnd = mss, initial_window, initial_window
        if initial_ssthresh is not None:
            control.ssthresh = initial_ssthresh
        control.random = random.Random(seed)
        for name, value in self.parameters.items():
            setattr(control, name, value)
        control.__init__()  # type: ignore[misc]
        return control


@dataclass(frozen=True)
class AqmMaker:
    """Makes an AQM for a queue."""

    of: type[Aqm]
    parameters: Mapping[str, Any]

    def make(self, link_bps: int, limit_packets: int | None, limit_bytes: int | None, seed: int) -> Aqm:
        """An AQM for a queue before a link."""
        aqm = self.of.__new__(self.of)
        aqm.link_bps, aqm.limit_packets, aqm.limit_bytes = link_bps, limit_packets, limit_bytes
        aqm.random = random.Random(seed)
        for name, value in self.parameters.items():
            setattr(aqm, name, value)
        aqm.__init__()  # type: ignore[misc]
        return aqm


@dataclass(frozen=True)
class Library:
    """Finds classes for one run: those at hand first, then `file.py:Class`, then any of that name in this program.

    And the text of any file that the scenario names.
    """

    file: str = ""  # of the scenario: paths begin beside it
    classes: Mapping[str, type] = field(default_factory=dict)
    kept: str = ""  # a directory with copies, for files that are no longer where they were
    sources: dict[str, str] = field(default_factory=dict, init=False)  # what was read, by the path that names it
    _modules: dict[Path, ModuleType] = field(default_factory=dict, init=False)

    def control(self, name: str, parameters: str = "{}") -> ControlMaker | None:
        """The control of that name with these parameters, which come as JSON."""
        found = self._find(name, CongestionControl)
        return ControlMaker(found, _given(name, found, parameters)) if found else None

    def aqm(self, name: str, parameters: str = "{}") -> AqmMaker | None:
        """The AQM of that name with these parameters, which come as JSON."""
        found = self._find(name, Aqm)
        return AqmMaker(found, _given(name, found, parameters)) if found else None

    def text(self, name: str, _parameters: str = "") -> str:
        """The text of a file that is no Python."""
        where = self._place(name)
        try:
            size = where.stat().st_size
            if size > MOST_BYTES:
                raise MistakeError(f"{name}: has {size} bytes; allowed are {MOST_BYTES}")
            text = where.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise MistakeError(f"{name}: not a text: byte {error.start} is not UTF-8") from None
        except OSError as error:
            raise MistakeError(f"{name}: cannot be read: {error.strerror}") from None
        self.sources[name] = text
        return text

    def _place(self, name: str) -> Path:
        """Where a file is: beside the scenario, else in the current directory, else where its copy is kept."""
        places = [Path(self.file).parent / name, Path(name)]
        if self.kept:
            places.append(Path(self.kept) / kept_as(name))
        where = next((place.resolve() for place in places if place.is_file()), None)
        if where is None:
            raise MistakeError(f"there is no file {name} beside the scenario or in the current directory")
        return where

    def _find(self, name: str, base: type) -> Any:
        found = self.classes.get(name)
        if found is None and ".py:" in name:
            path, _, wanted = name.rpartition(":")
            found = self._of_file(Path(path), wanted, base)
        if found is None:
            found = next((c for c in reversed(_derived(base)) if c.__name__ == name), None)
        if found is not None and not (isinstance(found, type) and issubclass(found, base)):
            raise MistakeError(f"{name} does not derive from penstock.{base.__name__}")
        return found

    def _of_file(self, path: Path, wanted: str, base: type) -> Any:
        where = self._place(str(path))
        self.sources[str(path)] = where.read_text(encoding="utf-8")
        if where not in self._modules:
            self._modules[where] = _load(where)
        module = self._modules[where]
        if not hasattr(module, wanted):
            own = [
                n for n, c in vars(module).items() if isinstance(c, type) and issubclass(c, base) and c not in _BASES
            ]
            there = f"it has {', '.join(own)}" if own else f"it has no class that derives from penstock.{base.__name__}"
            raise MistakeError(f"{path} has no class {wanted!r}; {there}")
        return getattr(module, wanted)


def kept_as(name: str) -> Path:
    """Where in a directory of copies that of a file stands: as it is called, unless that leads out of the directory."""
    path = Path(name)
    if not path.is_absolute() and ".." not in path.parts:
        return path
    return Path("elsewhere", hashlib.sha256(name.encode()).hexdigest()[:16], path.name)


def _derived(base: type) -> list[type]:
    """All classes below, each after those it derives from, the newest last."""
    children: list[type] = base.__subclasses__()
    return [c for child in children for c in (child, *_derived(child))]


def _given(name: str, of: type, parameters: str) -> dict[str, Any]:
    """The parameters that a scenario gives, as JSON; each must be one of the class."""
    given: dict[str, Any] = json.loads(parameters)
    known = _parameters(of)
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise MistakeError(f"{name} has no parameter {key!r}{hint}; {has}")
    return given


def _parameters(of: type) -> list[str]:
    """Public attributes of the class that are values and not those of the base class."""
    own = [vars(c) for c in reversed(of.__mro__) if c is not object and c not in _BASES]
    of_base = {name for base in _BASES if issubclass(of, base) for name in (*vars(base), *base.__annotations__)}
    found = {n: None for names in own for n, v in names.items() if not n.startswith("_") and _is_value(v)}
    return [name for name in found if name not in of_base]


def _is_value(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _load(path: Path) -> ModuleType:
    """Runs a file as a module of its own, with its neighbours at hand. Every run loads it anew and shares nothing."""
    name = f"penstock_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise MistakeError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def explained(error: BaseException, what: str) -> BaseException:
    """The exception to raise for `error`, which was raised `what` ("in on_ack of my.py:MyCc")."""
    if isinstance(error, MistakeError) or not isinstance(error, Exception):
        return error
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_globals.get("__name__", "")):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(error.with_traceback(trace))).rstrip()
    told = AlgorithmError(f"an exception {what}\n{text}")
    told.__cause__ = error
    return told


def _is_ours(module: str) -> bool:
    """Where a traceback begins: the part that calls yours."""
    return module == __name__ or "importlib" in module


def name_of(of: type) -> str:
    """What a class is called in a scenario."""
    if not issubclass(of, _BASES):
        raise MistakeError(
            f"a scenario cannot hold {of.__name__}: derive it from penstock.CongestionControl or penstock.Aqm"
        )
    return of.__name__
