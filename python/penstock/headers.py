"""The headers of all packets of a capture, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]
    Choice = npt.NDArray[np.bool_]

TCP, UDP = 6, 17


@dataclass(frozen=True)
class Flow:
    """A connection, by the ends of its first packet. Flows of a CSV file have a label only."""

    label: int
    protocol: int
    source: str | None
    destination: str | None
    source_port: int
    destination_port: int

    def __str__(self) -> str:
        name = {TCP: "TCP", UDP: "UDP"}.get(self.protocol, f"protocol {self.protocol}")
        return f"{name} {self.source}:{self.source_port} - {self.destination}:{self.destination_port}"


@dataclass(frozen=True)
class Capture:
    """The headers of all packets of a trace, as columns; see `crates/trace/src/packets.rs`."""

    path: Path
    columns: dict[str, npt.NDArray[Any]]
    flows: tuple[Flow, ...]
    notes: dict[str, Any]
    cutting: bytes | None = None  # how joined frames were split, see `penstock.joined`
    rates_bps: tuple[float, ...] = ()  # at which their packets were spread

    @property
    def has_hosts(self) -> bool:
        """False for a CSV file."""
        return any(flow.source is not None for flow in self.flows)

    @property
    def seconds(self) -> Any:
        """Times since the first packet in seconds."""
        return self.columns["t_ns"] / 1e9

    def column(self, name: str) -> Numbers:
        """Returns a column as signed numbers."""
        import numpy as np

        return self.columns[name].astype(np.int64)

    def records(self, keep: Choice) -> bytes:
        """Returns a byte for each record of the file, which is 1 if a packet of it is to be kept."""
        import numpy as np

        found = np.zeros(int(self.columns["record"].max()) + 1, np.uint8)
        found[self.columns["record"][keep]] = 1
        return found.tobytes()

    def __len__(self) -> int:
        return len(self.columns["t_ns"])
