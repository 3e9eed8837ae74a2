"""The cases of the comparison: paths, queues and congestion controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

PACKET_BYTES = 1500


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
    """One row of the table: a path, a queue, a control and a number of flows."""

    control: str
    path: Path
    aqm: str
    flows: int

    @property
    def name(self) -> str:
        """The name of the case, which its files have, too."""
        return f"{self.control}-{self.path.name}-{self.aqm}-{self.flows}"

    @property
    def limit(self) -> str:
        """The limit of the queue: one bandwidth-delay product for tail drop, and ample room for an AQM."""
        return f"{self.path.bdp_packets}p" if self.aqm == "droptail" else "1000p"


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
