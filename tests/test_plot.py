"""Figures for papers: what they draw, and that their files are fit for print."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from matplotlib.figure import Figure
from penstock import plot
from penstock.mistake import MistakeError
from penstock.plots import style

TWO = """
name = "two"
duration = "8s"
warmup = "2s"
topology = { kind = "dumbbell", rate = "4Mbit/s", delay = "10ms", limit = "60p" }
aqm = { name = "codel" }
flows = [{ kind = "bulk", count = 2 }]
"""


@pytest.fixture(scope="module")
def two() -> penstock.Result:
    return penstock.run(TWO)


def test_a_distribution_ends_at_one(two: penstock.Result) -> None:
    [axis] = plot.cdf({"CoDel": two, "again": two}).axes
    assert [line.get_label() for line in axis.lines] == ["CoDel", "again"]
    ys = np.asarray(axis.lines[0].get_ydata())
    assert ys[-1] == pytest.approx(1.0)
    assert (np.diff(ys) > 0).all()


def test_a_series_has_the_values_of_its_table(two: penstock.Result) -> None:
    [axis] = plot.time_series(two, "goodput", parts=[1]).axes
    line: Any = axis.lines[0]
    table = two.tables["flow_seconds"].to_pydict()
    wanted = [bps / 1e6 for bps, flow in zip(table["goodput_bps"], table["flow"], strict=True) if flow == 1]
    assert list(line.get_ydata()) == pytest.approx(wanted)


def test_a_saw_has_the_windows_of_the_trace() -> None:
    traced = penstock.run(TWO, watch=penstock.Watch((0,), "10ms"))
    above, below = (np.asarray(axis.lines[0].get_xdata()) for axis in plot.sawtooth(traced).axes)
    assert len(above) > 700
    assert len(below) == 8
    with pytest.raises(MistakeError, match="no window of flow 7; there are those of 0"):
        plot.sawtooth(traced, 7)


def test_an_ellipse_stands_on_means_and_deviations(two: penstock.Result) -> None:
    [axis] = plot.ellipse(two).axes
    table = two.tables["queue_seconds"].to_pydict()
    delays = np.array(table["queue_delay_ms_mean"])[2:]  # after the warm-up
    rates = np.array(table["throughput_bps"])[2:] / 1e6
    patch: Any = axis.patches[0]
    assert patch.get_center() == pytest.approx((delays.mean(), rates.mean()))
    area = np.pi / 4 * patch.width * patch.height
    assert area == pytest.approx(np.pi * np.sqrt(np.linalg.det(np.cov(delays, rates))), rel=1e-6)
    assert axis.xaxis_inverted()


ROWS = [{"flows": n, "aqm": aqm, "value": n + i} for n in (1, 4) for aqm in ("codel", "pie") for i in (0, 1, 2)]


def test_tidy_tables_of_every_form_are_drawn() -> None:
    columns = {key: [row[key] for row in ROWS] for key in ROWS[0]}
    for source in (ROWS, columns):
        image = plot.heat_map(source, "flows", "aqm", "value").axes[0].images[0]
        assert np.asarray(image.get_array()).tolist() == [[2, 5], [2, 5]]
    lines: list[Any] = list(plot.box(ROWS, "value", x="flows", group="aqm").axes[0].collections)
    medians = [line.get_segments()[0][0][1] for line in lines]
    assert sorted(medians) == [2, 2, 5, 5]


def test_boxes_of_runs_have_the_quantiles_of_the_summary(two: penstock.Result) -> None:
    [axis] = plot.box([two], "rtt").axes
    bar: Any = axis.patches[0]
    assert bar.get_y() == pytest.approx(two.summary["rtt_ms"]["p10"])
    assert bar.get_y() + bar.get_height() == pytest.approx(two.summary["rtt_ms"]["p90"])


def test_files_have_the_width_of_a_column_and_their_fonts(two: penstock.Result, tmp_path: Path) -> None:
    figure = plot.cdf(two)
    assert figure.get_figwidth() == plot.COLUMN
    assert plot.cdf(two, width="text").get_figwidth() == plot.TEXT
    for name in ("a.pdf", "b.pdf"):
        plot.cdf(two).savefig(tmp_path / name)
    first = (tmp_path / "a.pdf").read_bytes()
    assert first == (tmp_path / "b.pdf").read_bytes()
    assert b"/FontFile2" in first, "TrueType, embedded"
    assert b"/Type3" not in first


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda run: plot.cdf(run, "rrt"), "did you mean rtt"),
        (lambda run: plot.time_series(run, "speed"), "it can be goodput, window"),
        (lambda _: plot.cdf(3), "neither a result nor a run directory"),
        (lambda _: plot.cdf([]), "neither a result nor a run directory"),
    ],
)
def test_mistakes_are_told(two: penstock.Result, call: Any, told: str) -> None:
    with pytest.raises(MistakeError, match=told):
        call(two)


def test_hidden_lines_are_dashed_and_axes_that_begin_far_above_zero_are_marked() -> None:
    figure = Figure()
    far, near = figure.subplots(1, 2)
    for height in (110.0, 110.2, 150.0):
        far.plot(range(5), [height] * 5)
    far.set_ylim(105, 160)
    near.plot(range(5), [1, 2, 3, 4, 5])
    style.svg(figure)
    first = [line.get_linestyle() for line in far.lines[:3]]
    assert first == ["-", "--", "-"], "the second lies on the first, within a hundredth"
    marks = [line.get_label() for line in far.lines[3:]]
    assert (len(marks), len(near.lines)) == (2, 1)
    style.png(figure)
    assert len(far.lines) == 5, "marked once"


def test_names_of_ticks_of_a_distribution_do_not_hide_each_other(two: penstock.Result) -> None:
    figure = plot.cdf(two, "rtt")
    figure.canvas.draw()
    [axis] = figure.axes
    boxes = [tick.get_window_extent() for tick in axis.get_xticklabels(which="both") if tick.get_text()]
    inside = sorted(((box.x0, box.x1) for box in boxes), key=lambda one: one[0])
    assert all(one[1] < other[0] for one, other in itertools.pairwise(inside))
