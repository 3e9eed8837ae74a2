"""Which paths, queues and controls are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

PACKET_BYTES = 1500


@dataclass(frozen=True)
class Path:
    """A bottleneck and its round trip time without a queue; the same one-way delay either way."""

    rate_mbps: int
    rtt_ms: int

    @property
    def name(self) -> str:
        """As in `--only`."""
        return f"{self.rate_mbps}M-{self.rtt_ms}ms"

    @property
    def bdp_packets(self) -> int:
        """Whole packets of a bandwidth-delay product."""
        return self.rate_mbps * 1000 * self.rtt_ms // (8 * PACKET_BYTES)


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    control: str
    path: Path
    aqm: str
    flows: int

    @property
    def name(self) -> str:
        """Names files, too."""
        return f"{self.control}-{self.path.name}-{self.aqm}-{self.flows}"

    @property
    def limit(self) -> str:
        """Tail drop has a bandwidth-delay product; an AQM has room enough never to need it."""
        return f"{self.path.bdp_packets}p" if self.aqm == "droptail" else "1000p"


CONTROLS = ("reno", "cubic", "bbr")
AQMS = ("droptail", "codel", "pie")
PATHS = (Path(10, 40), Path(50, 20))
FLOWS = (1, 4)

CASES = tuple(Case(control, path, aqm, n) for control in CONTROLS for path in PATHS for aqm in AQMS for n in FLOWS)
QUICK = tuple(Case(control, PATHS[0], aqm, 1) for control in CONTROLS for aqm in ("droptail", "codel"))


def chosen(cases: Sequence[Case], only: Sequence[str]) -> list[Case]:
    """Those cases of which each word of one of `only` is a part: `reno`, `10M-40ms`, `cubic,codel,4`."""
    words = {word for wanted in only for word in wanted.split(",")}
    known = {part for case in cases for part in _parts(case)}
    if unknown := sorted(words - known):
        meant = did_you_mean(unknown[0], known)
        raise MistakeError(f"--only {unknown[0]}: {meant}not one of {', '.join(sorted(known))}")
    return [case for case in cases if not only or any(set(w.split(",")) <= _parts(case) for w in only)]


def _parts(case: Case) -> set[str]:
    return {case.name, case.control, case.path.name, case.aqm, str(case.flows)}
