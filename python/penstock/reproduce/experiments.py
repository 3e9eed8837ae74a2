"""The experiments. Each is one scenario file beside this one, and what is varied in it."""

from __future__ import annotations

from penstock.mistake import MistakeError
from penstock.reproduce.base import Case, Experiment
from penstock.reproduce.bufferbloat import ALL_BUFFERBLOAT
from penstock.reproduce.cooperation import ALL_COOPERATION
from penstock.reproduce.ern import ERN
from penstock.reproduce.flow_queueing import ALL_FLOW_QUEUEING
from penstock.reproduce.friendliness import FRIENDLINESS
from penstock.reproduce.hfs import ALL_HFS
from penstock.reproduce.lindrop import LINDROP
from penstock.reproduce.pink import ALL_PINK
from penstock.reproduce.satellite import TCP_SATELLITE
from penstock.reproduce.sweep import Sweep
from penstock.reproduce.tempest import ALL_TEMPEST
from penstock.reproduce.variants import ALL

AQMS = ALL


class ExperimentError(MistakeError):
    """No such experiment."""


SWEEPS = (
    Sweep(
        name="pink-dsl",
        title="PINK on a DSL link",
        source="document 000, section 6.1, Table 2, and document 002, section 3.3",
        figures={
            "goodput": "Figure 7; 002, Figure 3.33",
            "rtt": "Figure 8; 002, Figure 3.34",
            "fairness": "Figure 9; 002, Figure 3.35",
            "data": "Figure 10; 002, Figure 3.36",
        },
        paper_min_rtt_ms=107.0,
        paper_goodput_mbps=9.5,
        paper_limit_mbytes=356.0,
    ),
    Sweep(
        name="pink-sat",
        title="PINK on a satellite link",
        source="document 000, section 6.3, Table 3",
        figures={"goodput": "Figure 15", "rtt": "Figure 16", "fairness": "Figure 17", "data": "Figure 18"},
        paper_min_rtt_ms=780.0,
        paper_goodput_mbps=4.8,
        paper_limit_mbytes=146.0,
    ),
)

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        *SWEEPS,
        *ALL_PINK,
        LINDROP,
        TCP_SATELLITE,
        ERN,
        *ALL_BUFFERBLOAT,
        *ALL_FLOW_QUEUEING,
        FRIENDLINESS,
        *ALL_TEMPEST,
        *ALL_HFS,
        *ALL_COOPERATION,
    )
}


def find(name: str) -> Experiment:
    """The experiment of that name."""
    try:
        return EXPERIMENTS[name]
    except KeyError:
        raise ExperimentError(f"no experiment {name!r}; there are: {', '.join(EXPERIMENTS)}") from None


__all__ = ["AQMS", "EXPERIMENTS", "Case", "Experiment", "ExperimentError", "find"]
