"""Figures of `fq-pie` and `fq-minstrel-pie`."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.papers._shared import mixes
from penstock.papers._shared.flow_queueing import CALL, CONTROLS, UPLOADS
from penstock.plots.kit import CYCLE, FAINT, INK, LABELS, MARKERS, Axes, Drawing, Figure, box, colour, mark_level
from penstock.reproduce.results import Evidence, Outcome
from penstock.reproduce.seconds import series_of

_SHOWN = (1, 4, 12)  # the document's figures leave 8 out


def _panels(run: Evidence, down: int, height: float) -> tuple[Figure, list[list[Axes]]]:
    """A row for each test, a column for each discipline."""
    figure = Figure(figsize=(10, height * down + 0.4), layout="constrained")
    axes = figure.subplots(down, len(run.aqms), sharex=True, sharey="row", squeeze=False)
    for axis, aqm in zip(axes[0], run.aqms, strict=True):
        axis.set_title(LABELS.get(aqm, aqm), color=colour(aqm))
    return figure, [list(row) for row in axes]


def _shade(axis: Axes, outcome: Outcome) -> None:
    """The times in which UDP is on."""
    for phase in mixes.phases(outcome):
        axis.axvspan(phase.start, phase.stop, color=FAINT, alpha=0.5, linewidth=0, zorder=0)


def _lines(axis: Axes, outcome: Outcome, flows: Sequence[int], tint: str, label: str) -> None:
    """Each flow thin, their total thick."""
    series = series_of(outcome)
    seconds = range(series.seconds)
    if len(flows) > 1:
        for flow in flows:
            axis.plot(seconds, [v / 1e3 for v in series.flows[flow]], color=tint, linewidth=0.5, alpha=0.55)
    total = [sum(series.flows[flow][k] for flow in flows) / 1e3 for k in seconds]
    axis.plot(seconds, total, color=tint, linewidth=1.3, label=label)


def over_time(run: Evidence, settings: Sequence[str]) -> Figure:
    """What TCP and the stream get over time: a row for each setting, a column for each discipline."""
    figure, rows = _panels(run, len(settings), 1.9)
    for row, setting in zip(rows, settings, strict=True):
        for axis, aqm in zip(row, run.aqms, strict=True):
            outcome = run.runs(aqm, setting=setting)[0]
            _shade(axis, outcome)
            _lines(axis, outcome, mixes.of_kind(outcome, "cbr"), "#6b6b6b", "UDP")
            _lines(axis, outcome, mixes.of_kind(outcome, "bulk"), "#0072b2", "TCP together")
        row[0].set_ylabel(run.experiment.label(setting).removesuffix(", 10 Mbit/s"))
        row[0].set_ylim(0, None)
    rows[0][-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.supxlabel("time (s); grey: UDP is on", fontsize=9.5, color=INK)
    figure.supylabel("goodput (Mbit/s)", fontsize=9.5, color=INK)
    return figure


def _throughput(run: Evidence) -> Figure:
    return over_time(run, [f"up-{n}" for n in _SHOWN if f"up-{n}" in run.settings])


def _round_trips(run: Evidence) -> Figure:
    """Boxes from the 10th to the 90th percentile, the median, and a mark at the 99th."""
    counts = [n for n in UPLOADS if f"up-{n}" in run.settings]
    figure, rows = _panels(run, 1, 2.9)
    for axis, aqm in zip(rows[0], run.aqms, strict=True):
        for place, n in enumerate(counts):
            rtt = run.runs(aqm, setting=f"up-{n}")[0].summary["rtt_ms"]
            box(axis, place, rtt["p10"], rtt["p50"], rtt["p90"], colour(aqm))
            axis.plot(place, rtt["p99"], "_", color=colour(aqm), markersize=14, markeredgewidth=1.6)
        axis.set_xticks(range(len(counts)), [str(n) for n in counts])
    rows[0][0].set_ylabel("round trip time (ms)")
    rows[0][0].set_ylim(80, None)
    mark_level(rows[0], 85.0, "no queue")
    figure.supxlabel("number of TCP flows beside UDP", fontsize=9.5, color=INK)
    return figure


def _controls(run: Evidence) -> Figure:
    """Goodput over time, and round trips below."""
    figure, rows = _panels(run, 1, 2.9)
    for axis, aqm in zip(rows[0], run.aqms, strict=True):
        outcome = run.runs(aqm, setting=CONTROLS)[0]
        series = series_of(outcome)
        for flow, told in enumerate(outcome.summary["flows"]):
            name = f"{told['cc'].upper()}, {told['rtt_ms']['p50']:.0f} ms"
            tint = CYCLE[1] if told["cc"] == "bbr" else CYCLE[0]
            style = "-" if flow % 2 == 0 else (0, (3, 1))
            values = [v / 1e3 for v in series.flows[flow]]
            axis.plot(range(series.seconds), values, color=tint, linewidth=1.0, linestyle=style, label=name)
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, fontsize=8)
    rows[0][0].set_ylabel("goodput (Mbit/s)")
    rows[0][0].set_ylim(0, None)
    mark_level(rows[0], run.experiment.goodput_limit_bps / 4e6, "a quarter")
    return figure


def _fairness(run: Evidence) -> Figure:
    settings = [f"up-{n}" for n in UPLOADS if f"up-{n}" in run.settings]
    figure = Figure(figsize=(10, 3.0), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    rates = [("UDP at 100 Mbit/s", run)]
    if "udp-28" in run.varied:
        rates.append(("UDP at 28 Mbit/s", run.varied["udp-28"]))
    for axis, (title, evidence) in zip(axes, rates, strict=False):
        for aqm in evidence.aqms:
            values = [mixes.jain_on(evidence.runs(aqm, setting=setting)[0]) or 0.0 for setting in settings]
            axis.plot(values, color=colour(aqm), marker=MARKERS.get(aqm, "o"), label=LABELS.get(aqm, aqm))
        axis.set_title(title)
        axis.set_xticks(range(len(settings)), [setting.removeprefix("up-") for setting in settings])
    for axis in axes[len(rates) :]:
        axis.set_axis_off()
    axes[0].set(ylabel="Jain index while UDP is on", ylim=(0, 1.03))
    axes[len(rates) - 1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.supxlabel("number of TCP flows beside UDP", fontsize=9.5, color=INK)
    return figure


def _call(run: Evidence) -> Figure:
    """Queueing delay, jitter and loss of the call."""
    figure = Figure(figsize=(10, 2.9), layout="constrained")
    axes = figure.subplots(1, 3)
    for place, aqm in enumerate(run.aqms):
        outcome = run.runs(aqm, setting=CALL)[0]
        low, middle, high, last = (mixes.call_delay_ms(outcome, p) or 0.0 for p in ("p10", "p50", "p90", "max"))
        box(axes[0], place, low, middle, high, colour(aqm))
        axes[0].plot(place, last, "_", color=colour(aqm), markersize=18, markeredgewidth=1.6)
        for axis, value, form in (
            (axes[1], mixes.call_jitter_ms(outcome) or 0.0, "{:.2f}"),
            (axes[2], 100 * (mixes.call_loss(outcome) or 0.0), "{:.2f}"),
        ):
            axis.bar(place, value, 0.56, color=colour(aqm), alpha=0.6)
            label = form.format(value)
            axis.annotate(label, (place, value), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    for axis, title in zip(axes, ("queueing delay (ms)", "mean jitter (ms)", "packets lost (%)"), strict=True):
        axis.set_xticks(range(len(run.aqms)), [LABELS.get(aqm, aqm) for aqm in run.aqms])
        axis.set_xlim(-0.6, len(run.aqms) - 0.4)
        axis.set_title(title)
        axis.set_ylim(0, 1.15 * axis.get_ylim()[1])
    return figure


FIGURES: dict[str, Drawing] = {
    "fq_throughput": Drawing(
        "TCP beside an unresponsive stream",
        "Payload of each second: TCP flows thin, all of them together thick; grey: the UDP stream, which is "
        "on where the ground is grey and then sends as much as the link has. With flow queueing every flow "
        "keeps its part.",
        _throughput,
    ),
    "fq_rtt": Drawing(
        "Round trip times of TCP",
        "Every sample of every TCP flow. A box spans the 10th to the 90th percentile, the thick line is the "
        "median, the stroke above the 99th percentile.",
        _round_trips,
    ),
    "fq_controls": Drawing(
        "Two CUBIC flows and two BBR flows",
        "Payload of each flow in each second, and the median of its round trips.",
        _controls,
    ),
    "fq_fairness": Drawing(
        "Fairness beside an unresponsive stream",
        "Jain's index of all TCP flows and the stream while it is on. The document does not say how much "
        "the stream sends: left, as much as the link has; right, the rate that its table for PIE suggests.",
        _fairness,
    ),
    "fq_call": Drawing(
        "A call among bulk transfers",
        "One VoIP stream beside four TCP flows each way. A box spans the 10th to the 90th percentile of its "
        "packets' delay in the queue, in steps of about 1 ms; the stroke is the longest.",
        _call,
    ),
}
