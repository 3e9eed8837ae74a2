"""Figures of LINDROP beside other disciplines on long paths."""

from __future__ import annotations

from collections.abc import Callable

from penstock.papers.lindrop.claims import QUEUE, THROUGHPUT, Table, value
from penstock.papers.lindrop.runs import AVG_MAX, LOADS, NETWORKS, NINE, OVER_TIME, STEPS_DOWN, STEPS_UP, TUNED_MAX
from penstock.plots.kit import CYCLE, INK, LABELS, Axes, Drawing, Figure, box, colour
from penstock.reproduce import columns, seconds
from penstock.reproduce.results import Evidence, Outcome


def _bars(run: Evidence, measure: Callable[[Outcome], float | None], paper: Table, label: str, most: float) -> Figure:
    """A row of panels for each network, a column for each load, a bar for each discipline."""
    figure = Figure(figsize=(10, 8), layout="constrained")
    panels = figure.subplots(len(NETWORKS), len(LOADS), sharex=True, sharey=True, squeeze=False)
    for row, (network, (title, _)) in zip(panels, NETWORKS.items(), strict=True):
        for place, (axis, load) in enumerate(zip(row, LOADS, strict=True)):
            for at, aqm in enumerate(NINE):
                got = value(run, aqm, f"{network}-{load}", measure)
                axis.barh(at, got, 0.7, color=colour(aqm), alpha=0.8)
                said = paper.get(network, {}).get(aqm)
                if said:
                    axis.plot([said[place]] * 2, [at - 0.42, at + 0.42], color=INK, linewidth=1.8)
            axis.set_title(f"{title}, {LOADS[load]} connections")
            axis.set_xlim(0, most * 1.04)
            axis.grid(visible=True, axis="x")
            axis.grid(visible=False, axis="y")
        row[0].set_yticks(range(len(NINE)), [LABELS.get(aqm, aqm) for aqm in NINE])
    panels[0][0].invert_yaxis()
    panels[0][-1].plot([], [], color=INK, linewidth=1.8, label="paper")
    panels[0][-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.supxlabel(label, fontsize=9.5, color=INK)
    return figure


def _queue_time(run: Evidence) -> Figure:
    """A panel for each of the paper's figures, a line for each discipline."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    panels = figure.subplots(len(OVER_TIME), 1, sharex=True, squeeze=False)
    for (axis,), setting in zip(panels, OVER_TIME, strict=True):
        for aqm in NINE:
            packets = seconds.queue_packets(run.runs(aqm, setting=setting)[0])
            axis.plot(packets, color=colour(aqm), linewidth=1.2, label=LABELS.get(aqm, aqm))
        axis.set(title=f"{run.experiment.label(setting)} congestion", ylabel="queue (packets)", ylim=(0, None))
    panels[0][0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    panels[-1][0].set_xlabel("time (s)")
    return figure


def _own_drops(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axis = figure.subplots()
    settings = [f"{network}-{load}" for network in NETWORKS for load in LOADS]
    forms = {"n_pd = 1.05, as published": run}
    for name, label in (("level-steps", "1.02"), ("falling-steps", "1.005")):
        if name in run.varied:
            forms[label] = run.varied[name]
    width = 0.8 / len(forms)
    for index, (name, found) in enumerate(forms.items()):
        shares = [100 * value(found, "lindrop", setting, columns.own_drops) for setting in settings]
        places = [at + width * (index - (len(forms) - 1) / 2) for at in range(len(settings))]
        axis.bar(places, shares, width * 0.92, color=("#cc79a7", "#56b4e9", "#0072b2")[index], label=name)
    names = [f"{NETWORKS[network][0]}\n{load}" for network in NETWORKS for load in LOADS]
    axis.set_xticks(range(len(settings)), names)
    axis.set(ylabel="drops that LINDROP decided on (%)", ylim=(0, 105))
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _steps(run: Evidence) -> Figure:
    """Throughput over n_pu, a line for each n_pd, a panel for each avg_max."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes: list[Axes] = list(figure.subplots(1, len(TUNED_MAX), sharey=True, squeeze=False)[0])
    for axis, most in zip(axes, TUNED_MAX, strict=True):
        ups = [up for up in STEPS_UP if any(s.startswith(f"steps-{most}-{up:.2f}") for s in run.settings)]
        for index, down in enumerate(STEPS_DOWN):
            names = [f"steps-{most}-{up:.2f}-{down:.2f}" for up in ups]
            if all(name in run.settings for name in names):
                got = [value(run, "lindrop", name) for name in names]
                axis.plot(range(len(ups)), got, "o-", color=CYCLE[index], linewidth=1.6, label=f"n_pd = {down:.2f}")
        axis.set_xticks(range(len(ups)), [f"{up:.2f}" for up in ups])
        axis.set(xlabel="n_pu", title=f"avg_max = {most}", ylim=(0, 104))
    axes[0].set_ylabel("throughput (Mbit/s)")
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _avg_max(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, squeeze=False)[0]
    values = [most for most in AVG_MAX if f"max-{most}" in run.settings]
    for place, most in enumerate(values):
        delay = run.runs("lindrop", setting=f"max-{most}")[0].summary["bottlenecks"][0]["queue_delay_ms"]
        box(right, place, delay["p10"], delay["p50"], delay["p90"], colour("lindrop"))
    left.plot(range(len(values)), [value(run, "lindrop", f"max-{m}") for m in values], "o-", color=colour("lindrop"))
    for axis in (left, right):
        axis.set_xticks(range(len(values)), [str(most) for most in values])
        axis.set_xlabel("avg_max (packets)")
    left.set(ylabel="throughput (Mbit/s)", ylim=(80, 100))
    right.set(ylabel="queueing delay (ms)", ylim=(0, None))
    return figure


FIGURES: dict[str, Drawing] = {
    "delay_throughput": Drawing(
        "Throughput of the bottleneck",
        "With headers, over the whole run. The short line in each row is the number of the paper's Table 3 "
        "or 4; DropTail 300, which has LINDROP's buffer, is not in the paper. Further right is better.",
        lambda run: _bars(run, columns.throughput_all_mbps, THROUGHPUT, "throughput (Mbit/s)", 100.0),
    ),
    "delay_queue": Drawing(
        "Queue of the bottleneck",
        "The mean over the whole run, in packets of the mean size. The short line in each row is the number "
        "of the paper's Table 5. All buffers hold 300 packets but that of DropTail, which holds 100.",
        lambda run: _bars(run, columns.queue_packets, QUEUE, "mean queue (packets)", 300.0),
    ),
    "queue_time": Drawing(
        "Queue over time",
        "The mean queue of each second, in packets of the mean size: 100 connections in the LAN, 10 in "
        "WAN_100, 100 in WAN_300.",
        _queue_time,
    ),
    "delay_drops": Drawing(
        "Who drops with LINDROP",
        "The share of the drops that LINDROP decided on; the others found no room. As published, each step "
        "down of the spacing between drops and one up leave it wider (0.98 x 1.05 > 1); with n_pd = 1.02 "
        "they cancel, with 1.005 it becomes narrower.",
        _own_drops,
    ),
    "lindrop_steps": Drawing(
        "LINDROP's steps",
        "Throughput in the LAN with 10 connections, over n_pu and n_pd. A drop is further from the next "
        "when the product of both is larger: to the lower left LINDROP drops much, to the upper right next "
        "to nothing.",
        _steps,
    ),
    "lindrop_max": Drawing(
        "LINDROP's avg_max",
        "In the LAN with 10 connections: throughput, and the queueing delay from its 10th to its 90th "
        "percentile with a line at the median.",
        _avg_max,
    ),
}
