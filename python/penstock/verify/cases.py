"""The cases of the comparison: paths, queues and congestion controls."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

PACKET_BYTES = 1500
# The flows of a case of the table begin within this time.
START_SPREAD_S = 0.1


@dataclass(frozen=True)
class Path:
    """A bottleneck and the base round trip time. The one-way delays of both directions are equal."""

    rate_mbps: int
    rtt_ms: int

    @property
    def name(self) -> str:
        """The name of the path in `--only`."""
        return f"{self.rate_mbps}M-{self.rtt_ms}ms"

    @property
    def bdp_packets(self) -> int:
        """The bandwidth-delay product in whole packets."""
        return self.rate_mbps * 1000 * self.rtt_ms // (8 * PACKET_BYTES)


@dataclass(frozen=True)
class Case:
    """One row of a table: a path, a queue, a control, a number of flows, and what the hosts do."""

    control: str
    path: Path
    aqm: str
    flows: int
    number: int | None = None
    """The number of a drawn path; `None` for a case of the fixed table."""
    limit_packets: int | None = None
    """The limit of the queue; `None` for that of the fixed table."""
    sack: bool = True
    ecn: bool = False
    loss: float = 0.0
    """The probability with which the wire loses a packet that carries data."""
    begin_s: float = 5.0
    """The measurement begins so long after the first data."""
    measured_s: float = 30.0

    @property
    def name(self) -> str:
        """The name of the case, which its files have, too."""
        words = f"{self.control}-{self.path.name}-{self.aqm}-{self.flows}"
        if self.number is None:
            return words
        return "-".join([f"{self.number:02}", words, *(word for word, said in self._extras if said)])

    @property
    def _extras(self) -> tuple[tuple[str, bool], ...]:
        return ("nosack", not self.sack), ("ecn", self.ecn), (f"loss{self.loss:.4f}", self.loss > 0)

    @property
    def drawn(self) -> bool:
        """The case is a drawn path, whose flows begin when and as the dice say and which is measured from its start."""
        return self.number is not None

    @property
    def limit(self) -> str:
        """The limit of the queue: one bandwidth-delay product for tail drop, and ample room for an AQM."""
        if self.limit_packets is not None:
            return f"{self.limit_packets}p"
        return f"{self.path.bdp_packets}p" if self.aqm == "droptail" else "1000p"

    @property
    def reverse_limit(self) -> str:
        """The limit of the queue of the way back, in which ACKs never find it full."""
        return "100000p" if self.drawn else "1000p"

    @property
    def window_bytes(self) -> int:
        """The receive window, which never is what limits a flow."""
        if not self.drawn:
            return 1_000_000
        return max(1_000_000, 2 * PACKET_BYTES * (self.path.bdp_packets + int(self.limit.removesuffix("p"))))

    @property
    def buffer_bytes(self) -> int:
        """The send buffer, which never is what limits a flow."""
        return 2 * self.window_bytes

    @property
    def end_s(self) -> float:
        """The end of the measurement, in seconds after the first data."""
        return self.begin_s + self.measured_s

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of the discipline that are not its defaults."""
        return {"ecn": True} if self.ecn and self.aqm not in ("dualpi2", "pink", "droptail") else {}

    def starts_s(self, seed: int) -> list[float]:
        """Returns when the flows begin in the run with this seed. Those of a drawn path belong to it."""
        dice = random.Random(f"{self.name} {1 if self.drawn else seed}")
        spread = 1.0 if self.drawn else START_SPREAD_S
        starts = sorted(dice.uniform(0, spread) for _ in range(self.flows))
        return [round(start - starts[0], 6) for start in starts] if self.drawn else starts


CONTROLS = ("reno", "cubic", "bbr")
AQMS = ("droptail", "codel", "pie")
PATHS = (Path(10, 40), Path(50, 20))
FLOWS = (1, 4)

CASES = tuple(Case(control, path, aqm, n) for control in CONTROLS for path in PATHS for aqm in AQMS for n in FLOWS)
QUICK = tuple(Case(control, PATHS[0], aqm, 1) for control in CONTROLS for aqm in ("droptail", "codel"))


def chosen(cases: Sequence[Case], only: Sequence[str]) -> list[Case]:
    """Returns the cases that match an entry of `only`, which lists parts of the case: `reno`, `cubic,codel,4`."""
    words = {word for wanted in only for word in wanted.split(",")}
    known = {part for case in cases for part in _parts(case)}
    if unknown := sorted(words - known):
        meant = did_you_mean(unknown[0], known)
        raise MistakeError(f"--only {unknown[0]}: {meant}not one of {', '.join(sorted(known))}")
    return [case for case in cases if not only or any(set(w.split(",")) <= _parts(case) for w in only)]


def _parts(case: Case) -> set[str]:
    return {case.name, case.control, case.path.name, case.aqm, str(case.flows)}
