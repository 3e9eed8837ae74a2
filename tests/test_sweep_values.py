"""What varies, as people write it: lists and ranges, in files and behind --vary; and what experiments refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from penstock import engine, units
from penstock.experiments import reading, values
from penstock.experiments.adjusting import adjusted
from penstock.experiments.paths import put, put_all
from penstock.mistake import MistakeError
from penstock.scenario import to_toml, tree


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,4,256", [1, 4, 256]),
        ("codel, pie", ["codel", "pie"]),
        ("true,false", [True, False]),
        ("0.5", [0.5]),
        ("1..4", [1, 2, 3, 4]),
        ("1..64:log7", [1, 2, 4, 8, 16, 32, 64]),
        ("1..64:log13", [1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64]),  # roots of two, rounded; 1.4 and 1 are the same
        ("10ms..100ms:lin4", ["10ms", "40ms", "70ms", "100ms"]),
        ("1Mbit/s..1Gbit/s:log4", ["1Mbit/s", "10Mbit/s", "100Mbit/s", "1000Mbit/s"]),
        ("500us..2ms:step500us", ["500us", "1000us", "1500us", "2000us"]),
        ("0.5..0.9:step0.1", [0.5, 0.6, 0.7, 0.8, 0.9]),
        ("9..1:step-4", [9, 5, 1]),
        ('[{name = "codel", target = "5ms"}, "pie"]', [{"name": "codel", "target": "5ms"}, "pie"]),
        ('"a,b","c"', ["a,b", "c"]),
    ],
)
def test_values_are_read_as_they_are_typed(text: str, expected: list[Any]) -> None:
    assert values.from_text(text) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1,,2", "a value is missing"),
        ("1ms..9ms", "how many values"),
        ("1..9:lgo3", "did you mean log"),
        ("0..9:log3", "both ends above zero"),
        ("1..9:step-1", "does not lead from 1 to 9"),
        ("1ms..9kB:lin3", "has not the unit of from"),
        ("1..9000000", "at most 100000"),
        ("1..9:lin1", "from 2 on"),
    ],
)
def test_what_is_no_value_is_told(text: str, told: str) -> None:
    with pytest.raises(MistakeError, match=told):
        values.from_text(text)


def test_numbers_with_units_have_an_order() -> None:
    assert units.base("500kbit/s") == 5e5
    assert units.base("20ms") == 0.02
    assert units.base("1KiB") == 1024
    assert units.base("codel") is None
    assert units.base_unit("20ms") == "s"


def test_a_path_leads_into_lists_and_to_algorithms_that_are_named_alone() -> None:
    tree: dict[str, Any] = {"aqm": "codel", "flows": [{"count": 1}, {"count": 2}]}
    put(tree, "aqm.target", "5ms")
    put(tree, "flows.*.count", 7)
    put(tree, "tcp.cc", "reno")
    assert tree == {
        "aqm": {"name": "codel", "target": "5ms"},
        "flows": [{"count": 7}, {"count": 7}],
        "tcp": {"cc": "reno"},
    }
    with pytest.raises(MistakeError, match="allowed are 0 to 1"):
        put(tree, "flows.2.count", 1)
    put(tree, "tcp.cc", 3)
    with pytest.raises(MistakeError, match="no table"):
        put(tree, "tcp.cc.beta", 1)


def test_a_new_name_drops_the_parameters_of_the_former_algorithm() -> None:
    tree: dict[str, Any] = {"aqm": {"name": "codel", "target": "5ms"}, "tcp": {"mss": "1kB"}}
    put_all(tree, {"aqm.tupdate": "9ms", "aqm.name": "pie", "tcp.cc.name": "reno"})
    assert tree == {"aqm": {"name": "pie", "tupdate": "9ms"}, "tcp": {"mss": "1kB", "cc": {"name": "reno"}}}


def test_the_discipline_of_a_graph_is_that_of_its_links() -> None:
    tree: dict[str, Any] = {"topology": {"links": [{"aqm": {"name": "pie"}}, {"rate": "1Mbit/s"}]}}
    put(tree, "aqm.name", "codel")
    assert tree["topology"]["links"] == [{"aqm": {"name": "codel"}}, {"rate": "1Mbit/s"}]


EXPERIMENT = """\
[experiment]
name = "mine"
scenario = "small.toml"
seeds = [3, 7]
measure = ["rtt_p90_ms"]
zip = [["topology.rate", "topology.limit"]]

[vary]
aqm.name = ["codel", "pie"]
"topology.rate" = ["1Mbit/s", "2Mbit/s"]
"topology.limit" = ["10kB", "20kB"]
flows.0.count = { from = 1, to = 4, points = 3, scale = "log" }
"""


def test_an_experiment_is_a_product_of_what_varies_and_keys_may_change_together(scenario: Path) -> None:
    file = scenario.with_name("experiment.toml")
    file.write_text(EXPERIMENT)
    found = reading.load(file)
    assert found.seeds == (3, 7)
    assert found.paths == ("aqm.name", "topology.rate", "topology.limit", "flows.0.count")
    points = list(found.points())
    assert len(points) == 2 * 3 * 2
    assert {(p.settings["topology.rate"], p.settings["topology.limit"]) for p in points} == {
        ("1Mbit/s", "10kB"),
        ("2Mbit/s", "20kB"),
    }
    assert {p.settings["flows.0.count"] for p in points} == {1, 2, 4}
    assert [p.index for p in points] == list(range(12))
    again = reading.from_json(found.described())
    assert [p.scenario.text for p in again.points()] == [p.scenario.text for p in points]


@pytest.mark.parametrize(
    ("old", "new", "told", "line"),
    [
        ("seeds =", "sedes =", "did you mean seeds", 4),
        ("[vary]", "[vray]", "did you mean vary", 8),
        ('"rtt_p90_ms"', '"rtt_p9_ms"', "did you mean rtt_p99_ms", 5),
        ("points = 3", "pionts = 3", "did you mean points", 12),
        ('["10kB", "20kB"]', '["10kB"]', "equally many values", 6),
        ("[3, 7]", "0", "from 1 to", 4),
        ('"small.toml"', '"smal.toml"', "cannot be read", 3),
    ],
)
def test_a_mistake_in_an_experiment_has_its_line(scenario: Path, old: str, new: str, told: str, line: int) -> None:
    file = scenario.with_name("experiment.toml")
    file.write_text(EXPERIMENT.replace(old, new, 1))
    with pytest.raises(MistakeError, match=told) as error:
        reading.load(file)
    assert f"{file}:{line}\n" in str(error.value)


def test_text_that_is_not_toml_is_told_with_its_place(scenario: Path) -> None:
    file = scenario.with_name("experiment.toml")
    file.write_text(EXPERIMENT + "\nx = = 1\n")
    with pytest.raises(MistakeError, match="line 14"):
        reading.load(file)


def test_what_is_typed_replaces_what_the_file_says(scenario: Path) -> None:
    file = scenario.with_name("experiment.toml")
    file.write_text(EXPERIMENT)
    found = adjusted(reading.load(file), vary={"aqm.name": "red", "tcp.cc": ["cubic"]}, seeds="5..6", until="3%")
    assert {p.settings["aqm.name"] for p in found.points()} == {"red"}
    assert found.paths[-1] == "tcp.cc"
    assert found.seeds == (5, 6)
    assert found.until is not None
    assert (found.until.part, found.until.measure) == (0.03, "rtt_p90_ms")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"vary": {"seed": "1,2"}}, "varies by seeds"),
        ({"vary": {"a..b": "1,2"}}, "no key that can vary"),
        ({"zipped": [["flows.0.count", "aqm.name"]], "vary": {"flows.0.count": "1,2"}}, "does not vary"),
        ({"seeds": "many"}, "are no seeds"),
        ({"until": "2"}, "no part of the mean"),
        ({"own": ["mine.py"]}, "write FILE.py:Class"),
    ],
)
def test_what_cannot_be_added_is_told(scenario: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(MistakeError, match=told):
        adjusted(reading.load(scenario), **change)


OWN = Path(__file__).resolve().parents[1] / "examples" / "own"
HOME: dict[str, Any] = {
    "duration": "3s",
    "topology": {"kind": "dumbbell", "rate": "4Mbit/s", "delay": "10ms", "limit": "60p"},
    "flows": [{"kind": "bulk", "count": 2}],
}
CLASSES = {"flows": 2, "weights": "1::1,3::1"}


@pytest.mark.parametrize(
    ("aqm", "own", "path", "kept", "rest"),
    [
        ("codel", "step.py:Step", "aqm", "codel", {}),
        ({"name": "fq", "per_flow": "pie"}, "step.py:Step", "aqm.per_flow", "pie", {}),
        ({"name": "drr", **CLASSES}, "turns.py:Turns", "aqm", {"name": "drr", **CLASSES}, CLASSES),
        ("fq-codel", "clamp.py:Clamp", "aqm", "fq-codel", {"queue": "fq-codel"}),
        ("codel", "my_cc.py:MyCc", "tcp.cc", "cubic", {}),
    ],
)
def test_an_own_algorithm_stands_where_its_kind_does(aqm: Any, own: str, path: str, kept: Any, rest: Any) -> None:
    mine = f"{OWN / own}"
    found = list(adjusted(reading.load({**HOME, "aqm": aqm}), own=[mine]).points())
    assert [point.settings[path] for point in found] == [kept, {"name": mine, **rest}]
    before, after = (engine.simulate(point.scenario, 1).summary for point in found)
    assert before["flows"] != after["flows"], "it decides"


def test_an_element_comes_before_the_discipline_also_among_names_that_vary() -> None:
    mine = f"{OWN}/clamp.py:Clamp"
    varied = adjusted(reading.load({**HOME, "aqm": "codel"}), vary={"aqm.name": "codel,pie"}, own=[mine])
    found = [tree(point.scenario.text)["aqm"] for point in varied.points()]
    assert found == [{"name": "codel"}, {"name": "pie"}, {"name": mine, "queue": "codel"}]
    with pytest.raises(MistakeError, match="derives from none of"):
        adjusted(reading.load(HOME), own=[f"{Path(__file__)}:Path"])


SITUATIONS = """
[experiment]
scenario = "home.toml"
[vary]
"aqm.name" = ["codel", { name = "pie", target = "5ms" }]
[[settings]]
name = "near"
[[settings]]
name = "far"
label = "a distant server"
change = { "topology.delay" = "90ms", "flows.*.count" = 3 }
"""


def test_settings_are_situations_that_run_with_all_that_varies(tmp_path: Path) -> None:
    (tmp_path / "home.toml").write_text(to_toml({**HOME, "aqm": "droptail"}))
    (tmp_path / "sweep.toml").write_text(SITUATIONS)
    found = reading.load(tmp_path / "sweep.toml")
    trees = [tree(point.scenario.text) for point in found.points()]
    assert [(one["topology"]["delay"], one["flows"][0]["count"], one["aqm"]) for one in trees] == [
        ("10ms", 2, {"name": "codel"}),
        ("10ms", 2, {"name": "pie", "target": "5ms"}),
        ("90ms", 3, {"name": "codel"}),
        ("90ms", 3, {"name": "pie", "target": "5ms"}),
    ]
    assert [point.label for point in found.points()][3] == "setting=far, aqm.name=pie(target=5ms)"
    again = reading.from_json(found.described())
    assert [point.scenario.text for point in again.points()] == [point.scenario.text for point in found.points()]
    fewer = adjusted(found, vary={"setting": "far", "aqm.name": "codel"})
    assert [tree(point.scenario.text)["topology"]["delay"] for point in fewer.points()] == ["90ms"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('label = "a', 'labl = "a', "did you mean label"),
        ('name = "far"', 'name = "near"', "each of [[settings]] has a name of its own"),
        ("change = {", "change = 3 # {", "change is a table"),
    ],
)
def test_mistakes_in_settings_are_told_with_their_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "home.toml").write_text(to_toml(HOME))
    (tmp_path / "sweep.toml").write_text(SITUATIONS.replace(old, new))
    with pytest.raises(MistakeError) as caught:
        reading.load(tmp_path / "sweep.toml")
    assert told in str(caught.value)
    assert "sweep.toml" in str(caught.value)


def test_a_setting_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "home.toml").write_text(to_toml(HOME))
    (tmp_path / "sweep.toml").write_text(SITUATIONS)
    with pytest.raises(MistakeError, match="no setting 'fra'; did you mean far"):
        adjusted(reading.load(tmp_path / "sweep.toml"), vary={"setting": "fra"})


RULES = """
[experiment]
scenario = "home.toml"
settings = "more.py:SETTINGS"
[[vary."aqm.name"]]
as = "short"
value = { name = "codel", target = "1ms" }
change = { "topology.limit" = "10p", "topology.delay" = "1ms" }
[[vary."aqm.name"]]
value = "pie"
[[settings]]
for = { ms = [20, 40], of = [{ rate = "1Mbit/s", name = "slow" }] }
name = "{of.name}-{ms}"
label = "{ms:.1f} ms"
change = { "topology.delay" = "{ms}ms", "topology.rate" = "{of.rate}", "flows.0.count" = "{ms}" }
only = { "aqm.name" = ["short"] }
[[settings]]
name = "counts"
vary = { "flows.0.count" = { from = 1, to = 2, step = 1 } }
"""
MORE = """
SETTINGS = [{"name": "made", "change": {"duration": f"{1 + 1}s"}, "only": {"aqm.name": ["pie"]}}]
"""


@pytest.fixture
def ruled(tmp_path: Path) -> Path:
    (tmp_path / "home.toml").write_text(to_toml({**HOME, "aqm": "droptail"}))
    (tmp_path / "more.py").write_text(MORE)
    (tmp_path / "rules.toml").write_text(RULES)
    return tmp_path / "rules.toml"


def test_settings_run_with_some_values_or_with_their_own_and_are_filled_in_or_computed(ruled: Path) -> None:
    found = reading.load(ruled)
    points = list(found.points())
    trees = [tree(point.scenario.text) for point in points]
    told = [(one["topology"]["delay"], one["flows"][0]["count"], one["aqm"]["name"], one["duration"]) for one in trees]
    home = HOME["duration"]
    assert told == [
        ("20ms", 20, "codel", home),  # the setting counts more than what the value changes elsewhere
        ("40ms", 40, "codel", home),
        ("1ms", 1, "codel", home),
        ("1ms", 2, "codel", home),
        ("10ms", 1, "pie", home),
        ("10ms", 2, "pie", home),
        ("10ms", 2, "pie", "2s"),
    ]
    assert [one["topology"]["limit"] for one in trees[:5]] == ["10p"] * 4 + [HOME["topology"]["limit"]]
    assert trees[0]["aqm"] == {"name": "codel", "target": "1ms"}
    assert trees[0]["topology"]["rate"] == "1Mbit/s"
    assert found.size == len(points)
    assert found.paths == ("setting", "aqm.name", "flows.0.count")
    assert [point.label for point in points][:3:2] == [
        "setting=slow-20, aqm.name=short",
        "setting=counts, aqm.name=short, flows.0.count=1",
    ]
    assert [one.label for one in found.situations.values()] == ["20.0 ms", "40.0 ms", "", ""]
    again = reading.from_json(found.described())
    assert [point.scenario.text for point in again.points()] == [point.scenario.text for point in points]


def test_what_a_command_varies_counts_more_than_what_a_setting_says(ruled: Path) -> None:
    found = reading.load(ruled)
    assert adjusted(found, vary={"flows.0.count": "7"}).size == 5
    assert adjusted(found, vary={"aqm.name": "red"}).size == 5, "`only` is about values that are no more"
    mine = adjusted(found, own=[f"{OWN}/step.py:Step"])
    assert mine.size == found.size + 5, "an own algorithm runs in every setting"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('["short"]', '["shrot"]', "has no value 'shrot'; did you mean short"),
        ('["short"]', '"short"', "has a list of names of its values"),
        ("only = {", "onyl = {", "did you mean only"),
        ('"{of.rate}"', '"{of.rat}"', "`for` has no 'rat'; did you mean rate"),
        ("{ms:.1f}", "{ms:.1q}", "format code"),
        ('value = "pie"', 'valeu = "pie"\nas = "pie"', "did you mean value"),
        ("more.py:SETTINGS", "more.py:SETTING", "defines no SETTING; did you mean SETTINGS"),
        ("more.py:SETTINGS", "less.py:SETTINGS", "there is no file"),
        ("more.py:SETTINGS", "more.py", "names a list in a Python file"),
        ('name = "counts"', 'name = "made"', "has a name of its own"),
    ],
)
def test_mistakes_in_rules_of_settings_are_told(ruled: Path, old: str, new: str, told: str) -> None:
    assert old in RULES
    ruled.write_text(RULES.replace(old, new))
    with pytest.raises(MistakeError) as caught:
        reading.load(ruled)
    assert told in str(caught.value)
    assert "rules.toml" in str(caught.value)


def test_an_exception_of_the_python_file_is_told(ruled: Path) -> None:
    (ruled.parent / "more.py").write_text("SETTINGS = [1 / 0]\n")
    with pytest.raises(MistakeError, match=r"more\.py: ZeroDivisionError: division by zero"):
        reading.load(ruled)
