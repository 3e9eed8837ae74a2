"""The figures of `c2ml`."""

from __future__ import annotations

from penstock.papers._shared.cooperation_claims import value
from penstock.papers._shared.cooperation_figures import RIGHT, goodput, row
from penstock.papers.c2ml.claims import ENDS, NODES, end_s
from penstock.papers.c2ml.runs import BUFFERS, CCS, FRIENDS
from penstock.plots.kit import CYCLE, INK, LABELS, Drawing, Figure, colour
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence


def _counts(run: Evidence) -> list[int]:
    return [n for n in NODES if run.runs("c2ml", n, "files-cubic")]


def _ends(run: Evidence) -> Figure:
    figure, axes = row(len(CCS), CCS)
    counts = _counts(run)
    for axis, cc in zip(axes, CCS, strict=True):
        for way in ("plain", "c2ml"):
            got = [end_s(run, way, cc, n) for n in counts]
            axis.plot(range(len(counts)), got, color=colour(way), label=LABELS[way])
            said = [ENDS[cc][way][NODES.index(n)] for n in counts]
            axis.plot(range(len(counts)), said, "o", color=colour(way), markersize=4)
        axis.set_xticks(range(len(counts)), [str(n) for n in counts])
    axes[0].set_ylabel("last end (s)")
    axes[-1].legend(**RIGHT)
    figure.supxlabel("number of nodes", fontsize=9.5, color=INK)
    return figure


def _queues(run: Evidence) -> Figure:
    figure, axes = row(len(CCS), CCS)
    counts = _counts(run)
    for axis, cc in zip(axes, CCS, strict=True):
        for way in ("plain", "c2ml"):
            got = [value(run, way, f"files-{cc}", columns.queue_max_kb, n) or 0.0 for n in counts]
            axis.plot(range(len(counts)), got, "o-", color=colour(way), label=LABELS[way], markersize=4)
        axis.set_xticks(range(len(counts)), [str(n) for n in counts])
        axis.set_yscale("log")
    axes[0].set_ylabel("longest queue (kB)")
    axes[-1].legend(**RIGHT)
    return figure


def _fairness(run: Evidence) -> Figure:
    figure, axes = row(len(BUFFERS), [f"{buffer} buffers" for buffer in BUFFERS])
    controls = ("newreno", "cubic", "bic", "noordwijk", "highspeed")
    for axis, buffer in zip(axes, BUFFERS, strict=True):
        for index, cc in enumerate(controls):
            setting = f"fair-{buffer}-{cc}"
            counts = [n for n in NODES if run.runs("c2ml", n, setting)]
            for way, line in (("plain", ":"), ("c2ml", "-")):
                got = [
                    value(run, way, setting, lambda o: float(o.summary["jain"]["worst_1s"]), n) or 0.0 for n in counts
                ]
                label = cc if way == "c2ml" else None
                axis.plot(range(len(counts)), got, f"o{line}", color=CYCLE[index], label=label, markersize=4)
        axis.set_xticks(range(len(counts)), [str(n) for n in counts])
        axis.set(xlabel="number of nodes; dotted: plain", ylim=(0, 1.03))
    axes[0].set_ylabel("worst Jain index")
    axes[-1].legend(**RIGHT)
    return figure


def _three(run: Evidence) -> Figure:
    settings = [s for s in run.settings if s.startswith("three-")]
    figure, axes = row(len(settings), [run.experiment.label(s).removeprefix("three nodes, ") for s in settings])
    for axis, setting in zip(axes, settings, strict=True):
        goodput(axis, run.runs("c2ml", setting=setting)[0])
    axes[0].set_ylabel("goodput (Mbit/s)")
    return figure


def _friends(run: Evidence) -> Figure:
    shown = (("plain", "large"), ("c2ml", "standard"))
    figure, axes = row(2, [f"{LABELS[way]}, {buffer} buffers" for way, buffer in shown])
    for axis, (way, buffer) in zip(axes, shown, strict=True):
        goodput(axis, run.runs(way, setting=f"friends-{buffer}")[0], FRIENDS)
    axes[0].set_ylabel("goodput (Mbit/s)")
    axes[-1].legend(**RIGHT)
    return figure


FIGURES: dict[str, Drawing] = {
    "c2ml_ends": Drawing(
        "When the last of the transfers ends",
        "5 MB for each node. Lines are ours, dots the numbers of the paper's tables, whose runs end at 900 "
        "s. Lower is better.",
        _ends,
    ),
    "c2ml_queue": Drawing(
        "Longest queue",
        "Of the same runs, on a logarithmic scale; the buffer holds 4000 kB.",
        _queues,
    ),
    "c2ml_fairness": Drawing(
        "Worst fairness",
        "Jain's index of the worst second after ten, in five minutes of bulk flows.",
        _fairness,
    ),
    "c2ml_three": Drawing(
        "Three nodes that join one after the other",
        "Payload of each second; 1 Mbit/s, a buffer of one bandwidth-delay product.",
        _three,
    ),
    "c2ml_friends": Drawing(
        "Six controls at one link",
        "Payload of each second; each control begins 3 s after the one before.",
        _friends,
    ),
}
