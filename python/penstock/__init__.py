"""Penstock's lab: scenarios in, summaries, tables and reports out.

    >>> import penstock
    >>> result = penstock.run("dsl.toml")              # doctest: +SKIP
    >>> result.summary["jain"]["overall"]              # doctest: +SKIP
    >>> result.frame("queue_seconds")                  # doctest: +SKIP
    >>> result.save("runs/dsl")                        # doctest: +SKIP
    >>> penstock.plot.cdf(result)                      # doctest: +SKIP

A scenario is the path of a TOML file, a TOML text, or a mapping with the same keys (`docs/reference/scenarios.md`).

The modules behind these names are imported when a name is used first, so that a command that needs none starts fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.engine import (
        AlgorithmError,
        BrokenInvariant,
        Entry,
        Parameter,
        ScenarioError,
        Stopped,
        TraceError,
        Watch,
        entries,
        replay,
    )
    from penstock.experiments.api import compare, sweep
    from penstock.experiments.compare import Comparison
    from penstock.experiments.model import Experiment
    from penstock.experiments.results import Sweep
    from penstock.lab import Result, run
    from penstock.own import Ack, AckPath, Aqm, CongestionControl, Loss, Packet, Scheduler, Segment, Verdict
    from penstock.scenario import Source

    __version__: str

__all__ = [
    "Ack",
    "AckPath",
    "AlgorithmError",
    "Aqm",
    "BrokenInvariant",
    "Comparison",
    "CongestionControl",
    "Entry",
    "Experiment",
    "Loss",
    "Packet",
    "Parameter",
    "Result",
    "ScenarioError",
    "Scheduler",
    "Segment",
    "Source",
    "Stopped",
    "Sweep",
    "TraceError",
    "Verdict",
    "Watch",
    "__version__",
    "compare",
    "entries",
    "replay",
    "run",
    "sweep",
]


_EXPERIMENTS = ("Comparison", "Experiment", "Sweep", "compare", "sweep")


def __getattr__(name: str) -> Any:
    """Imports what a public name stands for when the name is used first."""
    if name in __all__:
        return _public(name)
    # Each module is imported alone: these modules import each other.
    if name == "engine":
        import penstock.engine as engine

        return engine
    if name == "lab":
        import penstock.lab as lab

        return lab
    if name == "plot":
        import penstock.plot as plot

        return plot
    if name == "own":
        import penstock.own as own

        return own
    if name == "scenario":
        import penstock.scenario as scenario

        return scenario
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _public(name: str) -> Any:
    from penstock import engine, lab, own, scenario

    if name == "__version__":
        return engine.core_version()
    if name in _EXPERIMENTS:
        from penstock.experiments import api, compare, model, results

        return next(getattr(module, name) for module in (api, compare, model, results) if hasattr(module, name))
    return next(getattr(module, name) for module in (lab, engine, own, scenario) if hasattr(module, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
