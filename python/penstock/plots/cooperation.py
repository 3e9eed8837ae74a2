"""Figures of C²ML, QRM and DyBRA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from penstock.claims.c2ml import ENDS, NODES, end_s, value
from penstock.claims.qrm import BOUND_KB
from penstock.plots.style import CYCLE, INK, LABELS, LIMIT, MARKERS, STYLE, colour, mark_level
from penstock.reproduce import columns, nodes
from penstock.reproduce.cooperation import ATTACKED, ATTACKERS, BUFFERS, CCS, FRIENDS, GOOD, SCALE, WAYS
from penstock.reproduce.results import Evidence, Outcome
from penstock.reproduce.seconds import series_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Value = Callable[[Outcome], float | None]
_RIGHT = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}


def _row(panels: int, titles: Sequence[str], height: float = 2.9) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(10, height), layout="constrained")
    axes = list(figure.subplots(1, panels, sharey=True, squeeze=False)[0])
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title)
    return figure, axes


def _goodput(axis: Axes, outcome: Outcome, names: Sequence[str] = (), thick: Sequence[int] = ()) -> None:
    """Each flow's payload over the seconds."""
    for flow, kbps in enumerate(series_of(outcome).flows):
        label = names[flow] if flow < len(names) else None
        tint = LIMIT if flow in thick else CYCLE[flow % len(CYCLE)]
        axis.plot([v / 1e3 for v in kbps], color=tint, linewidth=1.8 if flow in thick else 1.0, label=label)
    axis.set_ylim(0, None)
    axis.set_xlabel("time (s)")


def _c2ml(run: Evidence) -> dict[str, Figure]:
    with mpl.rc_context(STYLE):
        return {
            "c2ml_ends": _ends(run),
            "c2ml_queue": _queues(run),
            "c2ml_fairness": _fairness(run),
            "c2ml_three": _three(run),
            "c2ml_friends": _friends(run),
        }


def _counts(run: Evidence) -> list[int]:
    return [n for n in NODES if run.runs("c2ml", n, "files-cubic")]


def _ends(run: Evidence) -> Figure:
    figure, axes = _row(len(CCS), CCS)
    counts = _counts(run)
    for axis, cc in zip(axes, CCS, strict=True):
        for way in ("plain", "c2ml"):
            got = [end_s(run, way, cc, n) for n in counts]
            axis.plot(range(len(counts)), got, color=colour(way), label=LABELS[way])
            said = [ENDS[cc][way][NODES.index(n)] for n in counts]
            axis.plot(range(len(counts)), said, "o", color=colour(way), markersize=4)
        axis.set_xticks(range(len(counts)), [str(n) for n in counts])
    axes[0].set_ylabel("last end (s)")
    axes[-1].legend(**_RIGHT)
    figure.supxlabel("number of nodes", fontsize=9.5, color=INK)
    return figure


def _queues(run: Evidence) -> Figure:
    figure, axes = _row(len(CCS), CCS)
    counts = _counts(run)
    for axis, cc in zip(axes, CCS, strict=True):
        for way in ("plain", "c2ml"):
            got = [value(run, way, f"files-{cc}", columns.queue_max_kb, n) or 0.0 for n in counts]
            axis.plot(range(len(counts)), got, "o-", color=colour(way), label=LABELS[way], markersize=4)
        axis.set_xticks(range(len(counts)), [str(n) for n in counts])
        axis.set_yscale("log")
    axes[0].set_ylabel("longest queue (kB)")
    axes[-1].legend(**_RIGHT)
    return figure


def _fairness(run: Evidence) -> Figure:
    figure, axes = _row(len(BUFFERS), [f"{buffer} buffers" for buffer in BUFFERS])
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
    axes[-1].legend(**_RIGHT)
    return figure


def _three(run: Evidence) -> Figure:
    settings = [s for s in run.settings if s.startswith("three-")]
    figure, axes = _row(len(settings), [run.experiment.label(s).removeprefix("three nodes, ") for s in settings])
    for axis, setting in zip(axes, settings, strict=True):
        _goodput(axis, run.runs("c2ml", setting=setting)[0])
    axes[0].set_ylabel("goodput (Mbit/s)")
    return figure


def _friends(run: Evidence) -> Figure:
    shown = (("plain", "large"), ("c2ml", "standard"))
    figure, axes = _row(2, [f"{LABELS[way]}, {buffer} buffers" for way, buffer in shown])
    for axis, (way, buffer) in zip(axes, shown, strict=True):
        _goodput(axis, run.runs(way, setting=f"friends-{buffer}")[0], FRIENDS)
    axes[0].set_ylabel("goodput (Mbit/s)")
    axes[-1].legend(**_RIGHT)
    return figure


def _qrm(run: Evidence) -> dict[str, Figure]:
    with mpl.rc_context(STYLE):
        return {
            "qrm_worst": _over_attacks(run, nodes.worst_good, "part of an even share"),
            "qrm_queue": _over_attacks(run, columns.queue_max_kb, "longest queue (kB)", BOUND_KB),
            "qrm_seconds": _attacker(run),
        }


def _over_attacks(run: Evidence, measure: Value, label: str, bound: float | None = None) -> Figure:
    figure, axes = _row(2, ["one attacker", "32 nodes"], 3.2)
    kinds = (("one", (2, 4, 8, 16, 32), "number of nodes"), ("many", ATTACKERS, "number of attackers"))
    for axis, (kind, numbers, across) in zip(axes, kinds, strict=True):
        there = [n for n in numbers if f"{kind}-{n}" in run.settings]
        for index, aqm in enumerate(ATTACKED):
            got = [value(run, aqm, f"{kind}-{n}", measure) or 0.0 for n in there]
            marker = MARKERS.get(aqm, "o")
            name = LABELS.get(aqm, aqm)
            axis.plot(range(len(there)), got, f"{marker}-", color=colour(aqm, index), label=name, markersize=5)
        axis.set_xticks(range(len(there)), [str(n) for n in there])
        axis.set(xlabel=across, ylim=(0, None))
    axes[0].set_ylabel(label)
    axes[-1].legend(**_RIGHT)
    if bound is not None:
        mark_level(axes, bound, "")
    return figure


def _attacker(run: Evidence) -> Figure:
    shown = [aqm for aqm in ATTACKED if run.runs(aqm, setting="five-1")]
    figure, axes = _row(len(shown), [LABELS.get(aqm, aqm) for aqm in shown])
    for axis, aqm in zip(axes, shown, strict=True):
        _goodput(axis, run.runs(aqm, setting="five-1")[0], thick=(4,))
    axes[0].set_ylabel("goodput (Mbit/s)")
    return figure


def _dybra(run: Evidence) -> dict[str, Figure]:
    with mpl.rc_context(STYLE):
        return {"dybra_seconds": _seconds(run), "dybra_friends": _good_channels(run), "dybra_scale": _scale(run)}


def _seconds(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2, squeeze=False)[0]
    for way in run.experiment.aqms:
        series = series_of(run.runs(way, setting="mix")[0])
        left.plot([v / 1e3 for v in series.queues["bottleneck"]], color=colour(way), label=LABELS[way])
        right.plot([v / 1e3 for v in series.longest["bottleneck"]], color=colour(way), label=LABELS[way])
    left.set(xlabel="time (s)", ylabel="throughput (Mbit/s)", ylim=(0, None))
    right.set(xlabel="time (s)", ylabel="longest queue (kB)", ylim=(0, None))
    right.legend(**_RIGHT)
    return figure


def _good_channels(run: Evidence) -> Figure:
    figure, axes = _row(2, ["plain TCP", "C²ML + DyBRA"])
    for axis, way in zip(axes, ("plain", "dybra"), strict=True):
        outcome = run.runs(way, setting="mix")[0]
        for flow in range(nodes.obedient(outcome.case)):
            kbps = series_of(outcome).flows[flow]
            cc = outcome.summary["flows"][flow]["cc"]
            axis.plot([v / 1e3 for v in kbps], color=CYCLE[flow], label=cc, linewidth=1.2)
        axis.set(xlabel="time (s)", ylim=(0, None))
    axes[0].set_ylabel("goodput (Mbit/s)")
    axes[-1].legend(**_RIGHT)
    return figure


def _scale(run: Evidence) -> Figure:
    figure = Figure(figsize=(6, 3.0), layout="constrained")
    axis = figure.subplots()
    there = [n for n in SCALE if f"cubic-{n}" in run.settings]
    for way in ("plain", "dybra"):
        got = [value(run, way, f"cubic-{n}", lambda o: columns.mean_queue_kb(o.summary)) or 0.0 for n in there]
        axis.plot(range(len(there)), got, "o-", color=colour(way), label=LABELS[way])
    axis.set_xticks(range(len(there)), [str(n) for n in there])
    axis.set(xlabel="number of clients", ylabel="mean queue (kB)", yscale="log")
    axis.legend(**_RIGHT)
    return figure


def _ways(run: Evidence) -> dict[str, Figure]:
    with mpl.rc_context(STYLE):
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
        return {"ways": figure}


DRAWN = {"c2ml": _c2ml, "qrm": _qrm, "dybra": _dybra, "cooperation": _ways}
