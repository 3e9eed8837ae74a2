"""Scenarios as text and as Python objects."""

from __future__ import annotations

import tomllib
from pathlib import Path

import penstock
import pytest
from conftest import SCENARIO
from penstock.scenario import Scenario, SourceError, to_toml


def test_what_is_written_is_read_back() -> None:
    tree = {
        "name": 'quotes " and \\ and ü and \x7f',
        "seed": 3,
        "ratio": 0.5,
        "yes": True,
        "words": ["a", "b"],
        "empty": [],
        "topology": {"rate": "1Mbit/s", "hops": [{"rate": "1Mbit/s"}, {"rate": "2Mbit/s", "aqm": {"name": "codel"}}]},
        "flows": [{"kind": "bulk", "tcp": {"cc": "cubic"}}, {"kind": "cbr"}],
        "odd key": 1,
    }
    assert tomllib.loads(to_toml(tree)) == tree


def test_what_toml_cannot_hold_is_refused() -> None:
    with pytest.raises(SourceError, match="a scenario cannot hold None"):
        to_toml({"a": None})


def test_the_name_is_the_files_unless_given(tmp_path: Path) -> None:
    assert Scenario.load(SCENARIO).name == "small"
    (tmp_path / "link.toml").write_text("duration = '1s'\n")
    assert Scenario.load(tmp_path / "link.toml").name == "link"
    assert Scenario("not toml at all", "x.toml").name == "x"


def test_text_file_and_object_are_the_same_run(scenario: Path) -> None:
    by_file = penstock.run(scenario)
    by_text = penstock.run(SCENARIO)
    by_object = penstock.run(tomllib.loads(SCENARIO))
    assert by_file.summary == by_text.summary == by_object.summary
    assert by_file.summary != penstock.run(SCENARIO, seed=2).summary or by_file.seed != 2


def test_the_resolved_scenario_is_the_same_run() -> None:
    result = penstock.run(SCENARIO)
    assert penstock.run(result.resolved).summary == result.summary


def test_tables_agree_with_the_summary() -> None:
    result = penstock.run(SCENARIO)
    flows = result.tables["flow_seconds"].to_pydict()
    for flow in result.summary["flows"]:
        bits = sum(bps for bps, who in zip(flows["goodput_bps"], flows["flow"], strict=True) if who == flow["id"])
        assert bits / 8 == pytest.approx(flow["delivered_bytes"], abs=1)


def test_a_mistake_in_an_object_shows_its_line() -> None:
    with pytest.raises(penstock.ScenarioError, match="python object"):
        penstock.run({"duration": "5s", "topologie": {}})
