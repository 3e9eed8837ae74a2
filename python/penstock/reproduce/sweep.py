"""Experiments of the kind `sweep`, which compare disciplines over the number of flows at one bottleneck."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.experiments.paths import put
from penstock.reproduce.base import HEADER_BYTES, Case, Experiment


@dataclass(frozen=True)
class Sweep(Experiment):
    """An experiment whose runs are queue disciplines times numbers of flows."""

    columns: tuple[str, ...] = ("goodput", "rtt", "rtt90", "jain", "drops", "delivered")
    quick: str = "fewer flow counts and shorter runs"
    flows: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    quick_flows: tuple[int, ...] = (4, 64)
    quick_duration: str = "60s"
    variant_flows: tuple[int, ...] = (4, 64)

    @property
    def sending_ms(self) -> float:
        """The transmission times of a full segment and its ACK over all three links, in milliseconds."""
        access_bps = float(self.template["topology"]["access_rate"].removesuffix("Mbit/s")) * 1e6
        bits = 8 * (self.mss_bytes + 2 * HEADER_BYTES)
        return 1e3 * bits * (1 / self.rate_bps + 2 / access_bps)

    @property
    def unloaded_rtt_ms(self) -> float:
        """The round trip time without queueing: propagation and transmission, in milliseconds."""
        topology = self.template["topology"]
        delay_ms, access_ms = (float(topology[key].removesuffix("ms")) for key in ("delay", "access_delay"))
        return 2 * delay_ms + 4 * access_ms + self.sending_ms

    def cases(self, quick: bool, seeds: int) -> Iterator[Case]:
        """Yields the runs, for each seed the longest first, so that all cores are busy to the end."""
        counts = self.quick_flows if quick else self.flows
        for seed in range(1, seeds + 1):
            for flows in sorted(counts, reverse=True):
                for aqm in self.aqms:
                    yield Case(aqm, flows, seed)

    def variant_cases(self, seeds: int) -> Iterator[Case]:
        """The runs with one assumption changed, longest first within a seed."""
        for seed in range(1, seeds + 1):
            for flows in sorted(self.variant_flows, reverse=True):
                for variant in self.variants:
                    for aqm in self.aqms:
                        if aqm in variant.aqms:
                            yield Case(aqm, flows, seed, variant.name)

    def in_subset(self, case: Case) -> bool:
        """True at the flow counts where variants are run."""
        return case.flows in self.variant_flows

    @property
    def subset(self) -> str:
        """Those flow counts."""
        return " and ".join(map(str, self.variant_flows)) + " flows"

    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """The template with the discipline, the number of flows and the seed of the case."""
        tree = self._copy(case, f"{self.name}-{case.aqm}-{case.flows}")
        for path, value in self.per_aqm.get(case.aqm, {}).items():
            put(tree, path, value)
        tree["flows"][0]["count"] = case.flows
        if quick:
            tree["duration"] = self.quick_duration
        return tree
