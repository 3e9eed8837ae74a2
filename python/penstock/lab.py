"""What `penstock.run` returns in Python: a result that saves itself, shows itself in a notebook, and is typed."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from penstock import engine, worlds
from penstock.mistake import MistakeError
from penstock.scenario import Scenario, Source
from penstock.suggest import did_you_mean

if TYPE_CHECKING:
    from penstock.engine import Watch
    from penstock.typed import Summary


class Result(engine.Result):
    """The results of one run."""

    @property
    def typed(self) -> Summary:
        """The summary with its keys typed, so that editors complete them."""
        return cast("Summary", self.summary)

    def save(self, path: str | Path) -> Path:
        """Writes the run directory that `penstock run --out` writes, and returns the path of its page."""
        from penstock import report, rundir

        rundir.write(self, Path(path))
        return report.write_run(Path(path))

    def _repr_html_(self) -> str:
        from penstock.report import notebook

        return notebook.html(self.scenario.name, self.summary)


def run(
    source: Source,
    seed: int | None = None,
    pcapng: Path | None = None,
    *,
    watch: Watch | None = None,
    on: str = "sim",
) -> Result:
    """Runs a scenario to its end; `pcapng` is a file into which the packets of the bottlenecks are written.

    `on` is the world: "sim", the simulator, "fluid", the equations (docs/reference/fluid.md), "wire", real kernels,
    "jar", a stock kernel in virtual time, or "tc" and "jar-tc", the same with disciplines of the kernel
    (docs/wire.md). With `watch` the result has the tables `tcp_trace` and `queue_trace`; only the simulator has
    packets to watch. Raises `ScenarioError` with the complete diagnosis when the scenario cannot be run,
    `BrokenInvariant` when an invariant of the scenario does not hold, and `AlgorithmError` when an algorithm
    written in Python fails.
    """
    if on not in worlds.NAMES:
        raise MistakeError(f"on={on!r}: {did_you_mean(on, worlds.NAMES)}there are {', '.join(worlds.NAMES)}")
    if on == worlds.FLUID and (pcapng is not None or watch is not None):
        raise MistakeError("the equations have no packets: leave pcapng and watch out, or run on sim")
    if on in worlds.KERNELS and watch is not None:
        raise MistakeError("only the simulator shows the state of its TCP: leave watch out, or run on sim")
    found = worlds.run(Scenario.load(source), seed, on, pcapng=pcapng, watch=watch)
    values: dict[str, Any] = {field.name: getattr(found, field.name) for field in fields(found)}
    return Result(**values)
