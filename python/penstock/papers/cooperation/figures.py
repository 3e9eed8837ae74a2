"""The figures of `cooperation`."""

from __future__ import annotations

from penstock.papers._shared import nodes
from penstock.papers._shared.cooperation import GOOD
from penstock.papers.cooperation.runs import WAYS
from penstock.plots.kit import LABELS, Drawing, Figure, colour
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence


def _ways(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    upper, lower = figure.subplots(2, len(run.settings), sharex=True, sharey="row", squeeze=False)
    for place, setting in enumerate(run.settings):
        for at, way in enumerate(WAYS):
            outcome = run.runs(way, setting=setting)[0]
            share = (GOOD if nodes.obedient(outcome.case) == GOOD else 16) / 16 * 20
            upper[place].bar(at, nodes.goodput_good_mbps(outcome) / share, 0.7, color=colour(way))
            lower[place].bar(at, columns.queue_delay_ms(outcome), 0.7, color=colour(way))
        upper[place].set_title(run.experiment.label(setting), fontsize=8.5)
        names = [LABELS.get(way, way) for way in WAYS]
        lower[place].set_xticks(range(len(WAYS)), names, rotation=60, ha="right")
    upper[0].set_ylabel("goodput / even share")
    lower[0].set_ylabel("queueing (ms)")
    return figure


FIGURES: dict[str, Drawing] = {
    "ways": Drawing(
        "Ways to share a satellite link",
        "Goodput of the nodes that obey and have a good channel, as a part of their even share; and the "
        "mean queueing delay.",
        _ways,
    ),
}
