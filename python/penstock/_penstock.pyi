"""The compiled part: converts, and holds no algorithm."""

from collections.abc import Sequence
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

__version__: str
TCP_STATES: list[str]

class ScenarioError(ValueError): ...
class TraceError(ValueError): ...
class BrokenInvariant(RuntimeError): ...  # noqa: N818

def entries() -> str: ...
def tcp_defaults() -> str: ...
def scenario_schema() -> str: ...
def summary_schema() -> str: ...
def replay(
    trace: str,
    aqm: str,
    rate: str,
    limit: str,
    settings: list[str] = ...,
    seed: int = ...,
    csv: BinaryIO | None = None,
    library: object = None,
    nodes: str = ...,
    clock_offset: str = ...,
    draws: str | None = None,
    keep: bytes | None = None,
    layer: list[str] = ...,
    cutting: bytes | None = None,
) -> str: ...
def on_wire(layer: list[str], size: int) -> int: ...
def packets(trace: str, cutting: bytes | None = None) -> tuple[dict[str, tuple[str, bytes]], str, str]: ...
def replay_control(
    script: str,
    cc: str,
    csv: BinaryIO,
    library: object = None,
    settings: list[str] = ...,
    state: bool = ...,
) -> int: ...
def link_from(files: list[tuple[str, bytes]]) -> str: ...
def fluid(
    text: str, file: str, seed: int | None = None, library: object = None
) -> tuple[str, int, str, dict[str, dict[str, tuple[str, bytes]]]]: ...
def replay_state(
    trace: str,
    aqm: str,
    rate: str,
    limit: str,
    last: int,
    at_ns: int,
    settings: list[str] = ...,
    seed: int = ...,
    library: object = None,
) -> str: ...
def replay_rounds(
    cc: str,
    rtt_us: int,
    rounds: list[tuple[int, int, str]],
    library: object = None,
    settings: list[str] = ...,
) -> list[tuple[float, float | None]]: ...

class Segment(Protocol):
    """A TCP segment at a gateway; `inbound` if it comes from the far side of the bottleneck.

    `flags` are those of the TCP header. Both directions of a connection are one flow. `size` and `ecn` are those of the
    packet, and matter for an outbound one. An option that the segment does not have is `None`.
    """

    @property
    def t_ns(self) -> int: ...
    @property
    def inbound(self) -> bool: ...
    @property
    def flow(self) -> int: ...
    @property
    def flags(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def ack(self) -> int: ...
    @property
    def payload(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def scale(self) -> int | None: ...
    @property
    def mss(self) -> int | None: ...
    @property
    def timestamps(self) -> tuple[int, int] | None: ...
    @property
    def size(self) -> int: ...
    @property
    def ecn(self) -> int: ...

# (time in ns, name, index, value): ("owner", flow, node), ("budget", node, bit/s or 0 for none), ("rest", 0, bit/s),
# ("rate", 0, bit/s), ("gone", node, 0), ("flow-gone", flow, 0), ("channel", station, lost packets of a million)
Fact = tuple[int, str, int, int]

def replay_segments(
    steps: Sequence[Segment | Fact],
    aqm: str,
    rate: str,
    limit: str,
    settings: list[str] = ...,
    seed: int = ...,
    library: object = None,
) -> tuple[list[tuple[int, tuple[str, int, int] | None]], str | None]: ...
def schedule(
    name: str,
    weights: list[int],
    events: list[tuple[str, int, int]],
    max_packet: int = ...,
    settings: str = ...,
    library: object = None,
    drain: bool = ...,
) -> tuple[list[int], str]: ...
def tempest(request: str, library: object = None) -> str: ...
def schedulers() -> str: ...

class Orbit:
    def __new__(
        cls, altitude_km: float, satellites: int, latitude: float, apart: float, processing_s: float
    ) -> Orbit: ...
    @property
    def period_s(self) -> float: ...
    @property
    def is_fixed(self) -> bool: ...
    @property
    def handover_s(self) -> float: ...
    @property
    def is_seen(self) -> bool: ...
    def delay_ms(self, t_s: float) -> float: ...

_Greeting = tuple[int, int | None, bool]
_Counters = tuple[bool, list[int]]

class Endpoint:
    """One side of a simulated connection; times are in nanoseconds, and bit 8 of flags is AE."""

    def __new__(cls, config: str, client: bool, iss: int) -> Endpoint: ...
    def open(self) -> None: ...
    def write(self, n: int) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def read_by_hand(self) -> None: ...
    def read(self, n: int) -> None: ...
    def arrive(
        self,
        now_ns: int,
        flags: int,
        seq: int,
        len: int,  # noqa: A002
        ack: int,
        window: int,
        ecn: int,
        syn: _Greeting | None = None,
        timestamps: tuple[int, int] | None = None,
        sacks: list[tuple[int, int]] = ...,
        accecn: _Counters | None = None,
    ) -> None: ...
    def deadline(self) -> int | None: ...
    def on_timer(self, now_ns: int) -> None: ...
    def transmit(
        self, now_ns: int
    ) -> (
        tuple[
            int,
            int,
            int,
            int,
            int,
            int,
            _Greeting | None,
            tuple[int, int] | None,
            list[tuple[int, int]],
            _Counters | None,
        ]
        | None
    ): ...
    @property
    def state(self) -> str: ...
    @property
    def delivered(self) -> int: ...
    @property
    def acked(self) -> int: ...
    @property
    def peer_finished(self) -> bool: ...
    @property
    def all_acked(self) -> bool: ...
    def info(self) -> str: ...

def observed(name: str) -> list[str]: ...

class Environments:
    """Episodes side by side. Arrays are C-contiguous: actions and rows of observations are float32, rewards float64."""

    def __new__(
        cls,
        count: int,
        agent: str,
        interval: str,
        weights: tuple[float, float, float],
        pacing: float | None = None,
        threads: int = ...,
    ) -> Environments: ...
    def step(
        self,
        actions: npt.NDArray[np.float32],
        observations: npt.NDArray[np.float32],
        rewards: npt.NDArray[np.float64],
        over: npt.NDArray[np.uint8],
        episodes: list[tuple[int, str, int]] = ...,
    ) -> None: ...
    def summary(self, place: int) -> str | None: ...

class Simulation:
    def __new__(
        cls, text: str, file: str, seed: int | None = None, pcapng: str | None = None, library: object = None
    ) -> Simulation: ...
    def advance(self, seconds: float) -> bool: ...
    def trace(self, flows: list[int], interval: str) -> list[int]: ...
    def control(self, flow: int) -> str | None: ...
    def steer(
        self, link: int, rate: str | None = None, delay: str | None = None, loss: float | None = None
    ) -> None: ...
    def impair(
        self,
        link: int,
        reverse: bool = False,
        police: tuple[str, str] | None = None,
        aggregate: str | None = None,
        reorder: tuple[float, str] | None = None,
    ) -> None: ...
    def offer(self, flow: int, count: int) -> bool: ...
    def traced(self) -> dict[str, dict[str, tuple[str, bytes]]]: ...
    def paths(self) -> list[list[tuple[int, bool]]]: ...
    def transfers_ahead(self) -> list[list[tuple[float, int]]]: ...
    @property
    def now_s(self) -> float: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def seed(self) -> int: ...
    def resolved(self) -> str: ...
    def summary(self) -> str: ...
    def tables(self) -> dict[str, dict[str, tuple[str, bytes]]]: ...
