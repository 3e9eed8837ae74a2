"""What `penstock.run` returns in Python: a result that saves itself, shows itself in a notebook, and is typed."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from penstock import engine
from penstock.mistake import MistakeError
from penstock.scenario import Scenario, Source
from penstock.suggest import did_you_mean

if TYPE_CHECKING:
    from penstock.engine import Watch
    from penstock.typed import Summary


WORLDS = ("sim", "fluid", "wire")


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

    `on` is the world: "sim", the simulator, "fluid", the equations (docs/fluid.md), or "wire", real kernels
    (docs/wire.md). With `watch` the result has the
    tables `tcp_trace` and `queue_trace`; only the simulator has packets to watch. Raises `ScenarioError` with the
    complete diagnosis when the scenario cannot be run, `BrokenInvariant` when an invariant of the scenario does not
    hold, and `AlgorithmError` when an algorithm written in Python fails.
    """
    if on not in WORLDS:
        raise MistakeError(f"on={on!r}: {did_you_mean(on, WORLDS)}there are {', '.join(WORLDS)}")
    if on == "fluid" and (pcapng is not None or watch is not None):
        raise MistakeError("the equations have no packets: leave pcapng and watch out, or run on sim")
    scenario = Scenario.load(source)
    if on == "wire":
        found = _wired(scenario, seed, pcapng, watch)
    else:
        found = engine.solve(scenario, seed) if on == "fluid" else engine.simulate(scenario, seed, pcapng, watch=watch)
    values: dict[str, Any] = {field.name: getattr(found, field.name) for field in fields(found)}
    return Result(**values)


def _wired(scenario: Scenario, seed: int | None, packets: Path | None, watch: Watch | None) -> engine.Result:
    from penstock import wire

    if watch is not None:
        raise MistakeError("only the simulator shows the state of its TCP: leave watch out, or run on sim")
    return wire.play(scenario, seed, packets=packets)
