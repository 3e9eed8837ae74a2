"""Penstock's lab: scenarios in, summaries, tables and reports out.

    >>> import penstock
    >>> result = penstock.run("dsl.toml")              # doctest: +SKIP
    >>> result.summary["jain"]["overall"]              # doctest: +SKIP
    >>> result.frame("queue_seconds")                  # doctest: +SKIP

A scenario is the path of a TOML file, a TOML text, or a mapping with the same keys (`docs/scenarios.md`).
"""

from penstock.engine import (
    AlgorithmError,
    BrokenInvariant,
    Entry,
    Parameter,
    Result,
    ScenarioError,
    Stopped,
    TraceError,
    core_version,
    entries,
    replay,
    run,
)
from penstock.own import Ack, Aqm, CongestionControl, Loss, Packet, Verdict
from penstock.scenario import Source

__version__ = core_version()

__all__ = [
    "Ack",
    "AlgorithmError",
    "Aqm",
    "BrokenInvariant",
    "CongestionControl",
    "Entry",
    "Loss",
    "Packet",
    "Parameter",
    "Result",
    "ScenarioError",
    "Source",
    "Stopped",
    "TraceError",
    "Verdict",
    "__version__",
    "entries",
    "replay",
    "run",
]
