"""Algorithms written in Python: `docs/your-own.md`.

A class that derives from `CongestionControl`, `Aqm`, `Scheduler` or `AckPath` can be used like a built-in algorithm: as
`file.py:Class` in scenario files and on the command line, or as the class itself in a scenario that is a Python object.
Other files that a scenario names, such as recorded traces of links, are found and copied by the same rules.
"""

from __future__ import annotations

import difflib
import importlib.util
import json
import math
import sys
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from penstock import stacks
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

if TYPE_CHECKING:
    import random

Verdict = Literal["drop", "mark"] | None
# Is asked before a file is executed: its name in the scenario, its path and its text. Raises `MistakeError` to refuse.
Permit = Callable[[str, Path, str], None]

MOST_BYTES = 64 * 2**20  # largest size of a file that a scenario names, which is the simulator's limit


class AlgorithmError(RuntimeError):
    """An algorithm in Python raised an exception, which is the `__cause__`. The text contains its traceback."""


class BrokenRule(Exception):  # noqa: N818 - users see its sentence, inside an `AlgorithmError`
    """A scheduler left the link idle, or served a packet that is not there; the text is the sentence."""


class Ack(Protocol):
    """An acknowledgment of new data. All sizes are in bytes."""

    now_s: float
    acked: int  # newly acknowledged bytes
    rtt_s: float | None  # round trip time; None if this ACK gave no sample
    srtt_s: float  # smoothed round trip time (RFC 6298); 1.0 before the first sample of the connection
    min_rtt_s: float  # smallest round trip time of the connection; 1.0 before the first sample
    in_flight: int  # bytes in flight before this ACK
    cwnd_limited: bool  # true if the window limited the sender; a window which does not should not grow
    delivered: int  # bytes delivered so far; only differences have a meaning
    marked: int  # how many of the bytes in `acked` had CE marks; 0 without `accurate_ecn`
    delivery_rate_bps: float | None  # delivery rate over the last round trip


class Loss(Protocol):
    """A congestion signal: a loss, a mark or a timeout."""

    now_s: float
    in_flight: int


class Packet(Protocol):
    """A packet at a queue. All sizes are in bytes."""

    now_s: float
    size: int
    flow: int
    ecn_capable: bool
    sojourn_s: float  # how long the packet waited in the queue; 0 when it arrives
    queue_packets: int  # number of other packets in the queue
    queue_bytes: int  # total size of the other packets in the queue


class Segment(Protocol):
    """A TCP segment at a gateway, of which `window` or `window_bytes` may be lowered."""

    now_s: float
    flow: int  # both directions of a connection have one number
    seq: int
    ack: int | None  # None: the segment has no acknowledgment
    payload: int  # bytes
    syn: bool
    fin: bool
    rst: bool
    window: int  # the field of the header
    window_bytes: float | None  # the window in bytes; None: a SYN of the connection was not seen
    shift: int | None  # bits by which the field is shifted to give bytes; None: a SYN was not seen
    mss: int | None  # option of a SYN
    timestamps: tuple[int, int] | None  # TSval and TSecr
    queue_packets: int  # what waits in the queue behind the element
    queue_bytes: int


# What an algorithm is given and does not change, which is no part of its state.
_GIVEN = frozenset(
    (
        "random",
        "mss",
        "initial_window",
        "link_bps",
        "limit_packets",
        "limit_bytes",
        "weights",
        "queues",
        "good",
        "max_packet",
    )
)


class _Algorithm:
    """What all kinds of algorithms have."""

    def state(self) -> Any:
        """The state that `penstock verify agree` and `penstock replay --state` show: by default all own attributes."""
        return {name: value for name, value in vars(self).items() if name not in _GIVEN}


class CongestionControl(_Algorithm):
    """Base class of congestion controls. A control must implement `on_ack`; the other methods default to Reno's.

    These attributes are set before `__init__()` is called: `mss` and `initial_window` in bytes, `random` (a seeded
    `random.Random`), and every parameter that the scenario gives. Parameters are the attributes of the class which the
    base class does not have. After each call of a method, the endpoint reads `cwnd` and `ssthresh` (both in bytes) and
    `pacing_bps`.
    """

    mss: int
    initial_window: int
    random: random.Random
    cwnd: float
    ssthresh: float = math.inf
    pacing_bps: float | None = None  # None: no pacing; segments leave as soon as the window allows

    ack_per_segment = False  # True: the receiver acknowledges every segment
    accurate_ecn = False  # True: the connection uses ECN, and `Ack.marked` counts marked bytes (RFC 8257)
    ect1 = False  # True: segments carry ECT(1), for L4S queues

    def on_ack(self, ack: Ack) -> None:
        """Called when new data is acknowledged outside of loss recovery: the window should grow here."""
        raise NotImplementedError(f"{type(self).__name__} needs a method on_ack(self, ack)")

    def on_loss(self, loss: Loss) -> None:
        """Called once for each window with losses. Sets `ssthresh`, to which the endpoint reduces what is in flight."""
        self.ssthresh = max(loss.in_flight // 2, 2 * self.mss)

    def on_ecn(self, loss: Loss) -> None:
        """Called once for each window with marks; by default the reaction is that to a loss."""
        self.on_loss(loss)

    def on_recovered(self, now_s: float) -> None:  # noqa: ARG002
        """Called when loss recovery ends, and immediately after `on_ecn`."""
        if self.ssthresh < math.inf:
            self.cwnd = self.ssthresh

    def on_rto(self, loss: Loss) -> None:
        """Called when the retransmission timer expires; not again when it expires for the same segment."""
        self.on_loss(loss)
        self.cwnd = self.mss

    def on_idle(self, now_s: float) -> None:  # noqa: ARG002
        """Called before a segment is sent after an idle time longer than the retransmission timeout."""
        self.cwnd = min(self.cwnd, self.initial_window)

    def adopt(self, cwnd: float, ssthresh: float) -> None:
        """Called when C²ML sets window and threshold by the node's budget. A model-based control may ignore it."""
        self.cwnd, self.ssthresh = cwnd, ssthresh

    def on_recovery_ack(self, ack: Ack) -> None:
        """Called when data is acknowledged during loss recovery, for controls which measure rates or delays."""


class Aqm(_Algorithm):
    """Base class of AQMs, which judge the packets of one queue: at arrival, at departure, or at both.

    These attributes are set before `__init__()` is called: `link_bps`, `limit_packets` or `limit_bytes` (the other is
    None), `random` (a seeded `random.Random`), and every parameter that the scenario gives. Parameters are the
    attributes of the class. As the AQM of the discipline `fq` it has one object for each flow queue in use.
    """

    link_bps: int
    limit_packets: int | None
    limit_bytes: int | None
    random: random.Random
    timer_s: float | None = None  # when `on_timer` is called; read after each method, None after a call of `on_timer`

    def on_enqueue(self, packet: Packet) -> Verdict:
        """Judges an arriving packet, which the queue does not count yet.

        Returns "drop", "mark" (which drops a packet that is not ECN-capable) or None to accept the packet.
        """

    def on_dequeue(self, packet: Packet) -> Verdict:
        """Judges the packet at the head, which the queue no longer counts; after "drop" it judges the next packet."""

    def on_overflow(self, now_s: float) -> None:
        """Called when a packet which `on_enqueue` accepted is dropped because the queue is full."""

    def on_empty(self, now_s: float) -> None:
        """Called when the link asks for a packet and the queue is empty."""

    def on_timer(self, now_s: float, queue_packets: int, queue_bytes: int) -> None:
        """Called at the time `timer_s`, which is None then; to be called again, set it anew."""


class Scheduler(_Algorithm):
    """Base class of packet schedulers, which pick the class whose first packet is sent next. `depart` is required.

    These attributes are set before `__init__()` is called: `weights` (a list with the weight of each class, which is
    kept up to date), `max_packet` (bytes), `random` (a `random.Random` with the same seed in every run), and every
    parameter that the scenario gives. Parameters are the attributes of the class. Packets are kept by the queues, which
    are checked: if the link is idle while packets wait, or a class without packets is served, the run ends.
    """

    weights: list[int]
    queues: list[deque[int]]  # sizes of the packets that wait in each class, the first one first; only to be read
    good: list[bool]  # whether the channel of each class is good; always in a network without a wireless link
    max_packet: int
    random: random.Random

    def arrive(self, cls: int, size: int) -> None:
        """Called when a packet joined the queue of a class; `queues` has it already."""

    def depart(self) -> int | None:
        """Returns the class whose first packet is sent now, or None if no packet may be sent."""
        raise NotImplementedError(f"{type(self).__name__} needs a method depart(self)")

    def on_weight(self, cls: int, weight: int) -> None:
        """Called when the weight of a class changed; `weights` has the new one."""

    def on_channel(self, cls: int, good: bool) -> None:
        """Called when the channel of a class turned good or bad; while it is bad, its packets may wait."""


class AckPath(_Algorithm):
    """Base class of elements on the ACK path: at a gateway they see each TCP segment, and may lower its window.

    These attributes are set before `__init__()` is called: `link_bps`, `limit_packets` or `limit_bytes` (the other is
    None), and every parameter that the scenario gives. Parameters are the attributes of the class. The parameter
    `queue` of the scenario names the discipline behind the element.
    """

    link_bps: int
    limit_packets: int | None
    limit_bytes: int | None

    def outbound(self, segment: Segment) -> None:
        """Called for a segment which is about to enter the queue."""

    def inbound(self, segment: Segment) -> None:
        """Called for a segment which came back from the far side: it carries the ACKs of outbound data."""


# The base classes by the words which the compiled part has for their kinds.
_KINDS: Mapping[str, type] = {"cc": CongestionControl, "aqm": Aqm, "scheduler": Scheduler, "ack-path": AckPath}
_BASES: tuple[type, ...] = (*_KINDS.values(), _Algorithm)
# Of these methods, a class must have at least one of its own; else it would do nothing.
_NEEDED: Mapping[type, tuple[str, ...]] = {
    CongestionControl: ("on_ack",),
    Aqm: ("on_enqueue", "on_dequeue"),
    Scheduler: ("depart",),
    AckPath: ("outbound", "inbound"),
}


def overridden(algorithm: object, name: str) -> Any:
    """Returns a method of an algorithm, or `None` if the class inherits the empty one of its base."""
    method = getattr(type(algorithm), name)
    base = next(base for base in _BASES if isinstance(algorithm, base))
    idle = base is not CongestionControl or name == "on_recovery_ack"
    return None if idle and method is getattr(base, name) else getattr(algorithm, name)


def state_of(algorithm: _Algorithm) -> str:
    """Returns what `state()` of an algorithm tells, as one line."""
    told = algorithm.state()
    if not isinstance(told, Mapping):
        return str(told)
    return ", ".join(f"{name}={_short(value)}" for name, value in told.items())


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


@dataclass(frozen=True)
class ControlMaker:
    """Creates the controls of a scenario: one for each end of each connection."""

    of: type[CongestionControl]
    parameters: Mapping[str, Any]

    @property
    def requirements(self) -> tuple[bool, bool, bool]:
        """The values of `ack_per_segment`, `accurate_ecn` and `ect1`."""
        return self.of.ack_per_segment, self.of.accurate_ecn, self.of.ect1

    def make(self, mss: int, initial_window: int, initial_ssthresh: int | None, seed: int) -> CongestionControl:
        """Creates the control of a new connection; `initial_ssthresh` of None means no first threshold."""
        import random

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
    """Creates the AQMs of a scenario: one for each queue."""

    of: type[Aqm]
    parameters: Mapping[str, Any]

    def make(self, link_bps: int, limit_packets: int | None, limit_bytes: int | None, seed: int) -> Aqm:
        """Creates the AQM of a queue in front of a link; one of the two limits is None."""
        import random

        aqm = self.of.__new__(self.of)
        aqm.link_bps, aqm.limit_packets, aqm.limit_bytes = link_bps, limit_packets, limit_bytes
        aqm.random = random.Random(seed)
        for name, value in self.parameters.items():
            setattr(aqm, name, value)
        aqm.__init__()  # type: ignore[misc]
        return aqm


@dataclass(frozen=True)
class SchedulerMaker:
    """Creates the schedulers of a scenario: one for each set of queues."""

    of: type[Scheduler]
    parameters: Mapping[str, Any]

    def make(self, weights: list[int], max_packet: int) -> Scheduler:
        """Creates a scheduler of as many classes as weights."""
        import random

        scheduler = self.of.__new__(self.of)
        scheduler.weights, scheduler.max_packet = list(weights), max_packet
        scheduler.queues, scheduler.good = [deque() for _ in weights], [True] * len(weights)
        scheduler.random = random.Random(1)
        for name, value in self.parameters.items():
            setattr(scheduler, name, value)
        scheduler.__init__()  # type: ignore[misc]
        return scheduler


@dataclass(frozen=True)
class AckPathMaker:
    """Creates the elements of a scenario: one before each queue."""

    of: type[AckPath]
    parameters: Mapping[str, Any]

    def make(self, link_bps: int, limit_packets: int | None, limit_bytes: int | None) -> AckPath:
        """Creates the element before the queue of a link; one of the two limits is None."""
        element = self.of.__new__(self.of)
        element.link_bps, element.limit_packets, element.limit_bytes = link_bps, limit_packets, limit_bytes
        for name, value in self.parameters.items():
            setattr(element, name, value)
        element.__init__()  # type: ignore[misc]
        return element


@dataclass(frozen=True)
class Library:
    """Finds the classes and reads the files that the scenario of one run names.

    A class is looked for among `classes`, then by `file.py:Class`, then among all derived classes of this program.
    """

    file: str = ""  # the scenario's file, to whose directory relative paths refer
    classes: Mapping[str, type] = field(default_factory=dict)  # classes of a scenario that is a Python object, by name
    kept: str = ""  # directory with copies of the files, used where an original is missing; empty: none
    confined: bool = False  # true: no file is read or executed but these copies
    permit: Permit | None = None  # None: every file may be executed
    sources: dict[str, str] = field(
        default_factory=dict, init=False
    )  # texts of the files read, by path in the scenario
    _modules: dict[Path, ModuleType] = field(default_factory=dict, init=False)

    def control(self, name: str, parameters: str = "{}") -> ControlMaker | None:
        """Returns the maker of the control `name` with `parameters` (JSON); `None` if there is no such class."""
        found = self._find(name, CongestionControl)
        return ControlMaker(found, _given(name, found, parameters)) if found else None

    def aqm(self, name: str, parameters: str = "{}") -> AqmMaker | None:
        """Returns the maker of the AQM `name` with `parameters` (JSON); `None` if there is no such class."""
        found = self._find(name, Aqm)
        return AqmMaker(found, _given(name, found, parameters)) if found else None

    def scheduler(self, name: str, parameters: str = "{}") -> SchedulerMaker | None:
        """Returns the maker of the scheduler `name` with `parameters` (JSON); `None` if there is no such class."""
        found = self._find(name, Scheduler)
        return SchedulerMaker(found, _given(name, found, parameters)) if found else None

    def ack_path(self, name: str, parameters: str = "{}") -> AckPathMaker | None:
        """Returns the maker of the element `name` with `parameters` (JSON); `None` if there is no such class."""
        found = self._find(name, AckPath)
        return AckPathMaker(found, _given(name, found, parameters)) if found else None

    def stack(self, name: str, _parameters: str = "") -> list[str]:
        """Returns the command of the transport stack `name`, which is a program that the user gave."""
        return stacks.command(name)

    def parameters(self, name: str) -> list[str]:
        """Returns the names of the parameters of a class, which must exist."""
        return _parameters(self._class(name, Aqm) or object)

    def kind(self, name: str, _parameters: str = "") -> str | None:
        """Returns the kind of the class `name`: "cc", "aqm", "scheduler" or "ack-path"; `None` if it has none."""
        found = self._class(name, Aqm)
        return next((kind for kind, base in _KINDS.items() if found and issubclass(found, base)), None)

    def text(self, name: str, _parameters: str = "") -> str:
        """Returns the text of a file that the scenario names, and remembers it; at most `MOST_BYTES` long."""
        self.sources[name] = text = self._read(name, self._place(name))
        return text

    def _read(self, name: str, where: Path) -> str:
        try:
            size = where.stat().st_size
            if size > MOST_BYTES:
                raise MistakeError(f"{name}: has {size} bytes; allowed are {MOST_BYTES}")
            return where.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise MistakeError(f"{name}: not a text: byte {error.start} is not UTF-8") from None
        except OSError as error:
            raise MistakeError(f"{name}: cannot be read: {error.strerror}") from None

    def _place(self, name: str) -> Path:
        """Returns the path of a file: beside the scenario, else in the current directory, else among the copies."""
        places = [] if self.confined else [Path(self.file).parent / name, Path(name)]
        if self.kept:
            places.append(Path(self.kept) / kept_as(name))
        where = next((place.resolve() for place in places if place.is_file()), None)
        if where is None and self.confined:
            raise MistakeError(
                f"the file {name} is not part of what you were sent, so it is neither read nor executed; if you trust "
                "the sender, save the scenario as a file, with the files that it names beside it"
            )
        if where is None:
            raise MistakeError(f"there is no file {name} beside the scenario or in the current directory")
        return where

    def _find(self, name: str, base: type) -> Any:
        found = self._class(name, base)
        if found is not None and not issubclass(found, base):
            raise MistakeError(f"{name} does not derive from penstock.{base.__name__}")
        if found is not None:
            _check_hooks(name, found, base)
        return found

    def _class(self, name: str, wanted_base: type) -> type | None:
        """Returns the class `name`, one that derives from `wanted_base` before others."""
        found = self.classes.get(name)
        if found is None and ".py:" in name:
            path, _, wanted = name.rpartition(":")
            found = self._of_file(Path(path), wanted, wanted_base)
            if not isinstance(found, type):
                raise MistakeError(f"{name} does not derive from penstock.{wanted_base.__name__}")
        for base in (wanted_base, Aqm, Scheduler, AckPath, CongestionControl):
            found = found or next((c for c in reversed(_derived(base)) if c.__name__ == name), None)
        return found

    def _of_file(self, path: Path, wanted: str, base: type) -> Any:
        where = self._place(str(path))
        self.sources[str(path)] = text = self._read(str(path), where)
        if where not in self._modules:
            if self.permit:
                self.permit(str(path), where, text)
            self._modules[where] = load(where)
        module = self._modules[where]
        if not hasattr(module, wanted):
            own = [
                n for n, c in vars(module).items() if isinstance(c, type) and issubclass(c, base) and c not in _BASES
            ]
            there = f"it has {', '.join(own)}" if own else f"it has no class that derives from penstock.{base.__name__}"
            raise MistakeError(f"{path} has no class {wanted!r}; {there}")
        return getattr(module, wanted)


def _check_hooks(name: str, of: type, base: type) -> None:
    """Raises `MistakeError` if a class has none of the methods it needs, or a method `on_...` that nobody calls."""
    known = [name for name, value in vars(base).items() if not name.startswith("_") and isinstance(value, FunctionType)]
    own = {method: value for c in of.__mro__ if c not in (*_BASES, object) for method, value in vars(c).items()}
    called = {used for value in own.values() if isinstance(value, FunctionType) for used in value.__code__.co_names}
    for method in own:
        if method.startswith("on_") and method not in called and method not in known and callable(getattr(of, method)):
            raise MistakeError(
                f"{name} has a method {method}, which is never called; {did_you_mean(method, known)}"
                f"there are {', '.join(known)}"
            )
    needed = _NEEDED[base]
    if all(getattr(of, method) is getattr(base, method) for method in needed):
        raise MistakeError(f"{name} has no method {' or '.join(needed)}, so it would do nothing; write one")


def kept_as(name: str) -> Path:
    """Returns the path of a file's copy in a directory of copies: its own path unless that leads out of it."""
    import hashlib

    path = Path(name)
    if not path.is_absolute() and ".." not in path.parts:
        return path
    return Path("elsewhere", hashlib.sha256(name.encode()).hexdigest()[:16], path.name)


def _derived(base: type) -> list[type]:
    """Lists all classes that derive from `base`, each after its base classes."""
    children: list[type] = base.__subclasses__()
    return [c for child in children for c in (child, *_derived(child))]


def _given(name: str, of: type, parameters: str) -> dict[str, Any]:
    """Reads the parameters that a scenario gives (JSON); raises `MistakeError` for an unknown one."""
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
    """Lists the public attributes of the class which hold values and which the base class does not have."""
    own = [vars(c) for c in reversed(of.__mro__) if c is not object and c not in _BASES]
    of_base = {name for base in _BASES if issubclass(of, base) for name in (*vars(base), *base.__annotations__)}
    public = [(n, v) for names in own for n, v in names.items() if not n.startswith("_")]
    found = dict.fromkeys(n for n, v in public if v is None or isinstance(v, bool | int | float | str))
    return [name for name in found if name not in of_base]


def load(path: Path) -> ModuleType:
    """Loads a file as a new module, which may import modules from its directory. Runs share no loaded file."""
    name = f"penstock_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise MistakeError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # the decorator of dataclasses looks it up
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except SystemExit as error:
        raise MistakeError(
            f"{path.name}: {_ending(error)} while it was loaded: a file must not end the program"
        ) from None
    finally:
        sys.path.remove(str(path.parent))
    return module


def explained(error: BaseException, what: str) -> BaseException:
    """Returns the exception to raise for `error`; `what` says where it came from ("in on_ack of my.py:MyCc")."""
    if isinstance(error, SystemExit | GeneratorExit):
        return MistakeError(f"{_ending(error)} {what}: an algorithm must not end the program")
    if isinstance(error, BrokenRule):
        return AlgorithmError(str(error))
    if isinstance(error, MistakeError) or not isinstance(error, Exception):
        return error
    trace = error.__traceback__
    while trace is not None and _calls_them(trace.tb_frame.f_globals.get("__name__", "")):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(error.with_traceback(trace))).rstrip()
    told = AlgorithmError(f"an exception {what}\n{text}")
    told.__cause__ = error
    return told


def _ending(error: BaseException) -> str:
    return f"sys.exit({error.code!r})" if isinstance(error, SystemExit) else type(error).__name__


def _calls_them(module: str) -> bool:
    return module == __name__ or "importlib" in module  # tracebacks leave these modules out


def name_of(of: type) -> str:
    """Returns the name of a class in a scenario; raises `MistakeError` if it is no algorithm."""
    if not issubclass(of, _BASES):
        raise MistakeError(
            f"a scenario cannot hold {of.__name__}: derive it from penstock.CongestionControl, penstock.Aqm, "
            "penstock.Scheduler or penstock.AckPath"
        )
    return of.__name__
