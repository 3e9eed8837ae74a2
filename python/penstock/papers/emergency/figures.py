"""The figures of `emergency`."""

from __future__ import annotations

from penstock.papers.emergency.columns import calls
from penstock.papers.emergency.runs import ORBITS
from penstock.plots.kit import FAINT, INK, Drawing, Figure
from penstock.reproduce.results import Evidence

_PARTS = ("the satellite", "all of the path")
_SAID = {"geo": 600, "meo": 230}


def _delays(run: Evidence) -> Figure:
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axis = figure.subplots()
    for place, name in enumerate(ORBITS):
        found = list(calls(run.runs("bearers", setting=f"orbit-{name}")[0]))
        trips = [float(found[i]["delay_ms"]["mean"] + found[i + 1]["delay_ms"]["mean"]) for i in (0, 2)]
        for k, (trip, colour) in enumerate(zip(trips, (FAINT, INK), strict=True)):
            axis.bar(place + 0.36 * (k - 0.5), trip, 0.32, color=colour, label=_PARTS[k] if place == 0 else None)
        if name in _SAID:
            axis.plot(place + 0.18, _SAID[name], "o", mfc="white", mec=INK, label="document" if place == 0 else None)
    axis.set_xticks(range(len(ORBITS)), [name.upper() for name in ORBITS])
    axis.set(ylabel="mean round trip (ms)", ylim=(0, None))
    axis.legend(loc="upper right")
    return figure


FIGURES: dict[str, Drawing] = {
    "emergency_delays": Drawing(
        "Round trips over three orbits",
        "Mean round trips over a passage of a satellite, of the satellite alone and from a terminal to a host in the "
        "internet. Open marks are the document's numbers.",
        _delays,
    ),
}
