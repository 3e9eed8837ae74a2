"""The figures of `minstrel-pie-testbed`."""

from __future__ import annotations

from penstock.papers._shared import mixes
from penstock.papers._shared.bufferbloat_figures import look, panels, queue_of
from penstock.papers._shared.flow_queueing_figures import over_time
from penstock.papers.minstrel_pie_testbed.runs import HIGHEST_MS, LOWEST_MS, PIES
from penstock.plots.kit import FAINT, Drawing, Figure, mark_level
from penstock.reproduce.results import Evidence
from penstock.reproduce.seconds import delays_ms

_ALONE = ("light", "heavy")


def _delay(run: Evidence) -> Figure:
    settings = run.settings
    figure, rows = panels((len(settings) + 2) // 3, 3, 2.6, sharey=True)
    axes = [axis for row in rows for axis in row]
    for axis, setting in zip(axes, settings, strict=False):
        for aqm in PIES:
            outcome = run.runs(aqm, setting=setting)[0]
            axis.plot(delays_ms(outcome), linewidth=1.2, **look(aqm))
        for phase in mixes.phases(outcome):
            axis.axvspan(phase.start, phase.stop, color=FAINT, alpha=0.5, linewidth=0, zorder=0)
        axis.set(title=run.experiment.label(setting), xlabel="time (s)", yscale="log")
    for axis in axes[len(settings) :]:
        axis.set_axis_off()
    mark_level(axes, HIGHEST_MS, "15 ms")
    mark_level(axes, LOWEST_MS, "5 ms")
    for row in rows:
        row[0].set_ylabel("time in the queue (ms)")
    axes[0].legend(loc="upper right")
    return figure


def _use(run: Evidence) -> Figure:
    settings = [setting for setting in _ALONE if setting in run.settings]
    figure, (axes,) = panels(1, len(settings), 3.0, sharey=True)
    for axis, setting in zip(axes, settings, strict=True):
        for aqm in PIES:
            used = [kbps / 100 for kbps in queue_of(run.runs(aqm, setting=setting)[0])]
            axis.plot(used, linewidth=1.3, **look(aqm))
        axis.set(title=run.experiment.label(setting), xlabel="time (s)")
    axes[0].set(ylabel="link in use (%)", ylim=(0, 108))
    axes[0].legend(loc="lower right")
    return figure


FIGURES: dict[str, Drawing] = {
    "testbed_delay": Drawing(
        "Delay over time",
        "How long packets waited, as a mean over each second. The dashed lines are the bounds of Minstrel PIE's "
        "target; PIE's is the upper one. UDP is on where the ground is grey.",
        _delay,
    ),
    "testbed_use": Drawing(
        "Use of the link over time",
        "What the link carried in each second, as a part of its rate.",
        _use,
    ),
    "testbed_throughput": Drawing(
        "TCP beside an unresponsive stream",
        "Payload of each second: TCP flows thin, all of them together thick; grey: the UDP stream, which is on where "
        "the ground is grey and sends as much as the link has.",
        lambda run: over_time(run, [setting for setting in run.settings if setting not in _ALONE]),
    ),
}
