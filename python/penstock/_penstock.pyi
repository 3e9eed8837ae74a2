"""The compiled part: converts, and holds no algorithm."""

from collections.abc import Sequence
from typing import BinaryIO, Protocol

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
) -> str: ...
def packets(trace: str) -> tuple[dict[str, tuple[str, bytes]], str, str]: ...
def replay_control(
    script: str,
    cc: str,
    csv: BinaryIO,
    library: object = None,
    settings: list[str] = ...,
    state: bool = ...,
) -> int: ...
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

# (time in ns, name, index, value): ("owner", flow, node), ("budget", node, bit/s or 0 for none), ("gone", node, 0),
# ("flow-gone", flow, 0), ("channel", station, lost packets of a million)
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

class Simulation:
    def __new__(
        cls, text: str, file: str, seed: int | None = None, pcapng: str | None = None, library: object = None
    ) -> Simulation: ...
    def advance(self, seconds: float) -> bool: ...
    def trace(self, flows: list[int], interval: str) -> list[int]: ...
    def traced(self) -> dict[str, dict[str, tuple[str, bytes]]]: ...
    @property
    def now_s(self) -> float: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def seed(self) -> int: ...
    def resolved(self) -> str: ...
    def summary(self) -> str: ...
    def tables(self) -> dict[str, dict[str, tuple[str, bytes]]]: ...
