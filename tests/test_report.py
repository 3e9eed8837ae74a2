"""Pages: what they show, that the same results give the same bytes, and that nothing of a kind hides in another."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock.cli.sweep import varied
from penstock.experiments import reading
from penstock.experiments.adjusting import adjusted
from penstock.experiments.verdict import BY_KEY
from penstock.mistake import MistakeError
from penstock.report import groups, kit, network, run_charts, run_tables, sweep_page, table_page, write_sweep
from penstock.report.kit.model import Axis, Cell, Chart, Heat, Line, Mark, Section, Strip, Table, rounded
from penstock.report.tidy import Measure, Tidy, chart, number_of, parts

HOME = """
name = "home"
duration = "6s"
warmup = "1s"
topology = { kind = "dumbbell", rate = "4Mbit/s", delay = "10ms", limit = "60p" }
aqm = { name = "fq-codel" }
tcp = { ecn = true }
flows = [
  { kind = "bulk", count = 2 },
  { kind = "bulk", direction = "reverse" },
  { kind = "voip" },
  { kind = "video", rate = "400kbit/s" },
  { kind = "web", per_second = 4, mean_size = "20kB" },
]
"""


@pytest.fixture(scope="module")
def home() -> penstock.Result:
    return penstock.run(HOME)


def data(page: str) -> list[dict[str, Any]]:
    """The charts of a page, as its script reads them."""
    found = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return [json.loads(text) for text in found]


def test_the_page_of_a_run_shows_all_its_summary_has(home: penstock.Result, tmp_path: Path) -> None:
    page = home.save(tmp_path / "a").read_text(encoding="utf-8")
    call = home.summary["flows"][3]["voip"]
    for part in ("Calls", "Video", "Transfers", "Transfers by size", "ECN", "Marks", "Each flow", "Flows by kind"):
        assert f">{part}<" in page, part
    assert f">{call['mos']:.2f}<" in page
    assert len(page.encode()) < 1.5e6


def test_the_same_run_gives_the_same_page(home: penstock.Result, tmp_path: Path) -> None:
    first = home.save(tmp_path / "run").read_bytes()
    (tmp_path / "run" / "report.html").unlink()
    assert penstock.lab.Result.save(home, tmp_path / "run").read_bytes() == first


def test_flows_of_a_kind_are_drawn_apart(home: penstock.Result, tmp_path: Path) -> None:
    charts = {one["title"]: one for one in data(home.save(tmp_path / "run").read_text(encoding="utf-8"))}
    assert [name for name in charts if name.startswith("Goodput")] == [
        "Goodput of bulk flows",
        "Goodput of voip flows",
        "Goodput of video flows",
        "Goodput of web flows",
    ]
    assert [line["name"] for line in charts["Goodput of voip flows"]["lines"]] == ["flow 3"]
    assert [line["name"] for line in charts["Goodput of bulk flows"]["lines"]][2] == "flow 2 (cubic, back)"
    # 64 kbit/s of voice: a call among the flows of megabits would be a line at zero.
    assert max(charts["Goodput of voip flows"]["lines"][0]["y"]) == pytest.approx(64, abs=8)


def test_fairness_is_that_of_a_kind_and_a_direction() -> None:
    flows = [
        {"id": 0, "kind": "bulk", "cc": "cubic", "goodput_bps": 5e6},
        {"id": 1, "kind": "bulk", "cc": "cubic", "goodput_bps": 5e6, "back": True},
        {"id": 2, "kind": "bulk", "cc": "cubic", "goodput_bps": 1e6},
        {"id": 3, "kind": "voip", "cc": "", "goodput_bps": 8e4},
    ]
    found = groups.groups(flows)
    assert [(one.label, one.ids) for one in found] == [
        ("bulk (cubic)", [0, 2]),
        ("bulk (cubic, back)", [1]),
        ("voip", [3]),
    ]
    assert [one.jain for one in found] == [pytest.approx(36 / 52), None, None]


def test_flows_know_whether_they_go_back() -> None:
    flows = [{"id": i} for i in range(4)]
    dumbbell = {"flows": [{"count": 2}, {"direction": "reverse"}, {}]}
    assert [flow["back"] for flow in groups.directed(flows, dumbbell)] == [False, False, True, False]
    graph = {"flows": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}, {"from": "b", "to": "a", "count": 2}]}
    assert [flow["back"] for flow in groups.directed(flows, graph)] == [False, False, True, True]
    assert groups.directed(flows, {"flows": []}) == flows


def test_distributions_have_the_quantiles_of_the_summary(home: penstock.Result) -> None:
    table = home.tables["queue_delays"].to_pydict()
    packets, delays = np.array(table["packets"]), np.array(table["delay_ms"])
    [bottleneck] = home.summary["bottlenecks"]
    assert packets.sum() == bottleneck["packets_all"]
    shares = np.cumsum(packets) / packets.sum()
    for key, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        exact = bottleneck["queue_delay_ms"][key]
        assert delays[np.searchsorted(shares, q)] == pytest.approx(exact, rel=0.012), key
    assert delays.max() == pytest.approx(bottleneck["queue_delay_ms"]["max"], rel=1e-6)
    *_, delay, _ = run_charts.distributions(home.tables, home.summary)
    assert delay.lines[0].ys[-1] == 1.0
    trips = home.tables["round_trips"].to_pydict()
    assert set(trips["flow"]) == {0, 5}, "the first flows of bulk and of web, by kind and control"


def test_what_people_feel_is_drawn_for_each_flow_and_for_each_host(home: penstock.Result) -> None:
    calls = [flow["id"] for flow in home.summary["flows"] if "voip" in flow]
    by_title = {chart.title: chart for chart in run_charts.felt(home.tables, home.summary, {})}
    assert [line.name for line in by_title["Delay of calls"].lines] == [f"flow {flow} (voip)" for flow in calls]
    hosts = dict.fromkeys(range(len(home.summary["flows"])), "tablet")
    for drawn in run_charts.felt(home.tables, home.summary, hosts):
        [line] = drawn.lines
        assert (line.name, line.ys[-1]) == ("tablet", 1.0), drawn.title
    assert groups.hosts({"flows": [{"count": 2}, {"node": "tablet", "count": 2}, {}]}) == {2: "tablet", 3: "tablet"}


def test_many_flows_are_a_range_and_a_median() -> None:
    series = {flow: ([1.0], [float(flow)]) for flow in range(10)}
    group = groups.Group("bulk", "cubic", [{"id": flow} for flow in range(10)])
    [line] = run_charts._lines([group], series)
    assert (line.low, line.ys, line.high) == ([0.0], [4.0], [8.0])
    assert line.name == "10 x bulk (cubic): median, p10 to p90"


def test_a_long_series_is_drawn_as_means() -> None:
    xs, ys = run_charts._thin([float(t) for t in range(1, 3001)], [1.0, 3.0, 5.0] * 1000)
    assert (len(xs), set(ys), xs[:2]) == (1000, {3.0}, [3.0, 6.0])


def test_a_line_that_hides_another_is_dashed() -> None:
    lines = [Line("a", [1, 2, 3]), Line("b", [1, 2, 3.001], 1), Line("c", [3, 2, 1], 2)]
    chart_ = json.loads(Chart("t", "r", Axis("x"), Axis("y"), lines, [0, 1, 2]).to_json())
    assert ["dash" in line for line in chart_["lines"]] == [False, True, False]


def test_numbers_of_charts_are_short_and_missing_ones_null() -> None:
    assert rounded([1234567.0, 0.123456789, float("nan"), None, 2.0]) == [1234600, 0.12346, None, None, 2]


def test_names_cannot_break_the_page() -> None:
    evil = '</script><img src=x onerror="alert(1)">'
    rows = [{"x": 1, "aqm": evil, "measure": "m", "median": 1.0}]
    page = table_page(evil, evil, [Tidy(rows, ["x"], [Measure("m", evil)], group="aqm")])
    assert "<img" not in page
    assert data(page)[0]["lines"][0]["name"] == evil


def test_a_network_is_drawn_for_every_kind_of_topology() -> None:
    link = {"rate": "10Mbit/s", "delay": "5ms"}
    dumbbell = network.drawing({"topology": {"kind": "dumbbell", **link}, "flows": [{"kind": "bulk", "count": 3}]})
    assert dumbbell is not None
    assert [box.texts for box in sorted(dumbbell.boxes, key=lambda box: box.x)] == [
        ["left", "3 x bulk →"],
        ["right", "→ 3 x bulk"],
    ]
    lot = network.drawing({"topology": {"kind": "parking-lot", "hops": [link, link]}, "flows": []})
    assert lot is not None
    assert [box.texts[0] for box in sorted(lot.boxes, key=lambda box: box.x)] == ["r0", "r1", "r2"]


# Tidy tables.


def rows(keys: dict[str, list[Any]], **more: Any) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = [{}]
    for key, values in keys.items():
        points = [{**point, key: value} for point in points for value in values]
    return [{**point, "measure": "m", "median": 2.0, **more} for point in points]


MEASURE = Measure("m", "delay", "ms")


def test_a_document_has_open_marks_beside_ours() -> None:
    said = [{"flows": 4, "aqm": "codel", "measure": "m", "median": 3.0}]
    tidy = Tidy(rows({"flows": [4, 8], "aqm": ["pie", "codel"]}), ["flows"], [MEASURE], group="aqm", said=said)
    lines = chart(tidy, MEASURE).lines
    assert [(line.name, line.open, line.colour) for line in lines] == [
        ("pie", False, 0),
        ("codel", False, 1),
        ("codel: the document", True, 1),
    ]
    assert lines[1].xs
    assert lines[2].xs == lines[1].xs[:1]


def test_two_keys_with_many_values_are_a_map() -> None:
    few = Tidy(rows({"flows": [1, 2], "delay": ["5ms", "10ms"]}), ["flows", "delay"], [MEASURE])
    assert [type(one) for one in parts(few)] == [Chart]
    many = Tidy(
        rows({"flows": [1, 2, 4, 8, 16], "delay": [f"{ms}ms" for ms in (100, 5, 10, 20, 50)]}),
        ["flows", "delay"],
        [MEASURE],
    )
    [heat] = parts(many)
    assert isinstance(heat, Heat)
    assert [name for name, _ in heat.rows] == ["5ms", "10ms", "20ms", "50ms", "100ms"]


def test_too_many_lines_are_a_chart_for_each_group_with_one_axis() -> None:
    rows = [
        {
            "n": n,
            "delay": delay,
            "aqm": aqm,
            "measure": "a",
            "median": float(n * place),
            "low": n - 1.0,
            "high": n * 9.0,
        }
        for place, aqm in enumerate(("codel", "pie"), 1)
        for delay in ("10ms", "20ms", "30ms", "40ms", "50ms")
        for n in (1, 2)
    ]
    tidy = Tidy(rows, ["n", "delay"], [Measure("a", "A")], group="aqm")
    found = parts(tidy)
    assert [(one.title, one.lines[0].name) for one in found if isinstance(one, Chart)] == [
        ("A: codel", "delay 10ms"),
        ("A: pie", "delay 10ms"),
    ]
    ends = {(one.y.low, one.y.high) for one in found if isinstance(one, Chart)}
    assert ends == {(0.0, 18 + 0.05 * 18)}, "from zero to the highest interval and some room"
    few = [row for row in rows if row["delay"] in ("10ms", "20ms")]
    assert len(parts(Tidy(few, ["n", "delay"], [Measure("a", "A")], group="aqm"))) == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [("10Mbit/s", 10e6), ("5ms", 5e-3), ("2s", 2.0), ("1000p", 1000.0), ("codel", None), (4, 4.0), (True, None)],
)
def test_quantities_are_put_in_order(text: Any, number: float | None) -> None:
    assert number_of(text) == number


def test_a_cell_sorts_by_its_number() -> None:
    assert run_tables.number(1234.5) == Cell("1,234.50", 1234.5)
    assert Table("t", ["a"], [["x"]]).cells == [[Cell("x")]]


def test_a_sweep_has_a_page(tmp_path: Path) -> None:
    vary = {"aqm.name": ["codel", "fq-codel"], "flows.0.count": [1, 2, 3]}
    wanted = ["goodput_bps", "link.drops"]
    sweep = penstock.sweep(HOME, vary=vary, seeds=2, measure=wanted, out=tmp_path / "sweep", jobs=1)
    page = write_sweep(sweep.path).read_text(encoding="utf-8")
    goodput, drops = data(page)
    assert [line["name"] for line in goodput["lines"]] == ["codel", "fq-codel"]
    assert goodput["x"]["names"] == ["1", "2", "3"]
    means = [
        row["mean"] / 1e6
        for row in sweep.intervals.to_pylist()
        if (row["part"], row["measure"], row["aqm.name"]) == ("run", "goodput_bps", "codel")
    ]
    assert goodput["lines"][0]["y"] == pytest.approx(means, rel=1e-4)
    assert drops["y"]["label"] == "drops"
    assert ">Failed runs<" not in page


@pytest.mark.parametrize(
    "change",
    [
        {"vary": {"aqm.name": ["codel", {"name": "pie", "target": "5ms"}], "flows.0.count": "1..3"}, "seeds": 2},
        {"vary": {"topology.delay": "10ms..40ms:log3", "tcp.ecn": [True, False]}, "seeds": [7], "until": "2%"},
        {"vary": {"a.b": ["1", "x,y"], "topology.rate": ["1Mbit/s", "2Mbit/s"]}, "zipped": [["a.b", "topology.rate"]]},
    ],
)
def test_the_command_on_the_page_of_a_sweep_names_its_points(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "home.toml").write_text(HOME)
    wanted = adjusted(reading.load(tmp_path / "home.toml"), **change)
    words = shlex.split(sweep_page.command(reading.from_json(wanted.described())))
    assert words[:3] == ["penstock", "sweep", str(tmp_path / "home.toml")]
    given: dict[str, list[str]] = {}
    for option, value in zip(words[3::2], words[4::2], strict=True):
        given.setdefault(option, []).append(value)
    again = adjusted(
        reading.load(words[2]),
        vary=varied(given["--vary"]),
        zipped=[keys.split(",") for keys in given.get("--zip", [])],
        seeds=given["--seeds"][0] if "--seeds" in given else None,
        until=given["--until"][0] if "--until" in given else None,
    )
    assert [point.scenario.text for point in again.points()] == [point.scenario.text for point in wanted.points()]
    assert (again.seeds, again.until) == (wanted.seeds, wanted.until)


# A result in Python.


def test_a_result_shows_itself_in_a_notebook(home: penstock.Result) -> None:
    shown = home._repr_html_()
    assert "<script" not in shown
    assert "home: 6 flows, 6 s, seed 1" in shown
    assert f'<td style="text-align: right">{home.typed["flows"][3]["voip"]["mos"]:.2f}</td>' in shown


def test_a_frame_is_one_of_pandas(home: penstock.Result) -> None:
    pandas = pytest.importorskip("pandas")
    frame = home.frame("queue_seconds")
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["t_s"]) == [1, 2, 3, 4, 5, 6]
    with pytest.raises(MistakeError, match="no table 'queues'; there are: flow_seconds"):
        home.frame("queues")


def test_a_column_without_a_name_is_no_table() -> None:
    with pytest.raises(ValueError, match="'Flows': a column without a name"):
        Table("Flows", ("Name", ""), [["a", "b"]])


def test_a_strip_has_round_ticks_in_its_range() -> None:
    rows = [Mark("a", 0, "", -2754.0, -3501.0, -2008.0), Mark("b", 1, "", -40.0, dots=[-100.0, 20.0])]
    strip = Strip("Pages", "", "difference", rows, BY_KEY["page_ms"].form, zero=0.0, band=(-20.0, 20.0))
    assert [text for _, text in strip.ticks] == ["-3,000 ms", "-2,000 ms", "-1,000 ms", "0 ms"]
    places = [float(place.removesuffix("%")) for place, _ in strip.ticks]
    assert places == sorted(places)
    assert 0 < places[0] < places[-1] < 100
    assert strip.at(0.0) == strip.ticks[-1][0]
    alone = Strip("Calls", "", "mean", [Mark("a", 0, "", 4.4, dots=[4.4, 4.4])])
    assert 3 <= len(alone.ticks) <= 6, "one value has an axis"
    assert "nothing" in kit.page("nothing", "", [Section("Empty", [Strip("Drops", "", "mean", [])])])
