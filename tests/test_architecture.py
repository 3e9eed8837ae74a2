"""Scenarios of emergency networks: geometry by hand, and networks that run."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from penstock.architecture import (
    BACKHAULS,
    GEO,
    LEO,
    MEO,
    ArchitectureError,
    Backhaul,
    BaseStation,
    Handover,
    Meoc,
    Orbit,
    emergency_network,
)
from penstock.cli import app
from penstock.engine import simulate
from penstock.report import network
from penstock.scenario import Scenario, to_toml
from typer.testing import CliRunner


def test_an_o3b_satellite_rises_every_45_minutes() -> None:
    assert MEO.handover_s == pytest.approx(45 * 60, abs=1)


def test_orbits_turn_as_kepler_says() -> None:
    assert GEO.period_s == pytest.approx(86_164.0905, abs=1)  # a turn of the earth
    assert GEO.is_fixed
    assert GEO.handover_s == math.inf
    assert LEO.period_s / 60 == pytest.approx(100.4, abs=0.2)  # Iridium's


def test_round_trips_are_those_of_the_source() -> None:
    # 2.1.2.6: GEO at least 500 to 550 ms, MEO 200 ms on average, LEO less than 100 ms.
    def mean(one: Orbit) -> float:
        passage = 1.0 if one.is_fixed else one.handover_s
        return sum(2 * one.delay_ms((i + 0.5) / 100 * passage) for i in range(100)) / 100

    assert 500 <= mean(GEO) <= 550
    assert mean(MEO) == pytest.approx(200, rel=0.1)
    assert mean(LEO) < 100


def test_delay_at_the_zenith_and_at_handover() -> None:
    # Up and down again overhead: 2 x 8063 km. Half-way to the next of 8: the law of cosines for 22.5 degrees.
    assert MEO.delay_ms(MEO.handover_s / 2) - 35 == pytest.approx(2 * 8063 / 299.792458)
    slant = math.sqrt(6378.137**2 + 14441.137**2 - 2 * 6378.137 * 14441.137 * math.cos(math.pi / 8))
    assert MEO.delay_ms(0) - 35 == pytest.approx(2 * slant / 299.792458)


def test_what_cannot_be_seen() -> None:
    assert MEO.is_seen()
    assert LEO.is_seen()
    assert not Orbit(780, satellites=4).is_seen()  # 45 degrees away; the horizon is at 27
    assert not Orbit(8063, satellites=8, latitude=80).is_seen()
    sky = Backhaul("thin", Orbit(780, satellites=4), 1.0)
    with pytest.raises(ArchitectureError, match="above the horizon"):
        emergency_network([Meoc(sky)])


def steps_of(link: dict[str, Any], duration_s: int) -> list[tuple[float, float]]:
    """Seconds and milliseconds of the delay that a run over this orbit had, one way."""
    scenario = {
        "duration": f"{duration_s}s",
        "topology": {"kind": "dumbbell", "rate": "1Mbit/s", "delay": "50ms", "limit": "60kB"},
        "flows": [{"kind": "cbr", "rate": "1kbit/s"}],
        "changes": [{"link": "bottleneck", "direction": "forward", **link}],
    }
    table = simulate(Scenario.load(scenario)).tables["link_changes"]
    return [(row["t_s"], row["delay_s"] * 1e3) for row in table.to_pylist()]


def test_delays_repeat_with_each_satellite() -> None:
    steps = steps_of({"orbit": {**LEO.keys(), "step": "5s"}}, 1300)
    times, delays = zip(*steps, strict=True)
    assert times[0] == 0
    assert all(0 < later - earlier <= 5 for earlier, later in pairwise(times))
    passage = [step for step in steps if step[0] < LEO.handover_s]
    again = [(t - LEO.handover_s, ms) for t, ms in steps if LEO.handover_s <= t + 1e-6 < 2 * LEO.handover_s]
    assert [t for t, _ in again] == pytest.approx([t for t, _ in passage], abs=1e-6)
    assert [ms for _, ms in again] == [ms for _, ms in passage]
    lowest = delays.index(min(delays))
    assert times[lowest] == pytest.approx(LEO.handover_s / 2, abs=5)
    ((t, ms),) = steps_of({"orbit": "geo"}, 3600)
    assert (t, ms) == pytest.approx((0, GEO.delay_ms(0)), abs=1e-3)


def test_a_step_has_the_delay_of_its_middle() -> None:
    # As a step of 9.963 s, the 271st part of 2700.05 s, had it before there was `orbit`.
    steps = steps_of({"orbit": "meo"}, 1400)
    assert steps[0] == pytest.approx((0, 94.270))
    assert steps[1] == pytest.approx((9.963302518, 94.194))
    assert steps[134] == pytest.approx((1335.082537468, 88.791))


def test_the_words_for_orbits_are_the_orbits_here() -> None:
    for word, one in (("geo", GEO), ("meo", MEO), ("leo", LEO)):
        assert steps_of({"orbit": word}, 60) == steps_of({"orbit": one.keys()}, 60)


@pytest.mark.parametrize(("name", "least", "most"), [("geo", 270, 300), ("meo", 85, 110), ("leo", 40, 60)])
def test_a_call_over_each_satellite(name: str, least: float, most: float) -> None:
    scenario = emergency_network([Meoc(BACKHAULS[name], responders=1)], duration_s=20)
    scenario["flows"] = [flow for flow in scenario["flows"] if flow["kind"] == "voip"]
    delay = simulate(Scenario.load(scenario)).summary["flows"][0]["voip"]["delay_ms"]["mean"]
    # The cell's 6.25 ms and the satellite; nobody else sends.
    assert least < delay < most
    assert delay == pytest.approx(6.25 + BACKHAULS[name].orbit.delay_ms(10), abs=1)


def test_several_meocs_share_headquarters() -> None:
    meocs = [Meoc(BACKHAULS["geo"], 2), Meoc(BACKHAULS["meo"], 1, civilians=3)]
    scenario = emergency_network(meocs, duration_s=10, bridge_mbit=5.0)
    names = [link["name"] for link in scenario["topology"]["links"]]
    assert names == ["eoc-internet", "cell1", "satellite1", "cell2", "satellite2", "meoc1-meoc2"]
    assert {change["link"] for change in scenario["changes"]} == {"satellite2"}, "a geostationary one does not move"
    assert all(flow["start"] == "50ms" for flow in scenario["flows"]), "attaching comes first"
    assert simulate(Scenario.load(scenario)).summary["flows"]


def crowded(**meoc: Any) -> dict[str, Any]:
    """One cell with two responders and so many civilians that their pages fill it."""
    sky = Backhaul("near", Orbit(8063, satellites=8, processing_ms=0), mbit=200)
    return emergency_network([Meoc(sky, responders=2, civilians=30, cell_mbit=17, **meoc)], duration_s=40)


def test_responders_go_before_civilians_in_their_cell() -> None:
    def calls_down(scenario: dict[str, Any]) -> list[float]:
        flows = simulate(Scenario.load(scenario)).summary["flows"]
        # Two uploads, two calls up, two calls down.
        return [flow["voip"]["delay_ms"]["p99"] for flow in flows[4:6]]

    bearers, droptail = calls_down(crowded()), calls_down(crowded(cell_aqm={"name": "droptail"}))
    # 6.25 ms of the cell, the satellite overhead at most 66 ms away, one packet of somebody else.
    assert max(bearers) < 6.25 + 66 + 3
    assert min(droptail) > max(bearers) + 20


def test_civilians_are_not_cut_off() -> None:
    def pages(scenario: dict[str, Any]) -> list[int]:
        flows = simulate(Scenario.load(scenario)).summary["flows"]
        return [flow["transfers"]["count"] for flow in flows if flow["kind"] == "http"]

    # Five uploads fill the way up, where civilians have to acknowledge.
    one = Meoc(responders=5, civilians=3)
    assert min(pages(emergency_network([one]))) >= 4
    without = {"name": "lte-bearers", "bearers": "65:100kbit/s,70,9"}
    assert max(pages(emergency_network([replace(one, cell_aqm=without)]))) <= 2


def test_responders_move_between_meocs() -> None:
    meocs = [Meoc(BACKHAULS["meo"], 2, civilians=1), Meoc(BACKHAULS["meo"], 1)]
    moves = [Handover(15, "2", "1"), Handover(10, "1", "2")]
    scenario = emergency_network(meocs, duration_s=20, handovers=moves)
    # Flows 0 to 5 are the first two responders', 6 is the civilian's, 7 to 9 are the third responder's.
    assert [one["flows"] for one in scenario["handovers"]] == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 7, 8, 9]]
    assert {one["procedure"] for one in scenario["handovers"]} == {"s1"}, "each MEOC has a core network of its own"
    assert simulate(Scenario.load(scenario)).summary["handovers"]["moves"] == 15


def test_over_land_calls_move_seamlessly_and_files_without_loss() -> None:
    land = [BaseStation(responders=1, civilians=1), BaseStation(civilians=2)]
    moves = [Handover(5, "t1", "t2", "all"), Handover(8, "t2", "1", "civilians")]
    scenario = emergency_network([Meoc(responders=1)], duration_s=12, terrestrial=land, handovers=moves)
    # 0 to 2 are those of the MEOC; 3 a file, 4 and 5 a call, 6 pages of the first base station; 7 and 8 of the second.
    made = [(one["procedure"], one["from"], one["to"], one["flows"]) for one in scenario["handovers"]]
    assert made == [
        ("x2-seamless", "town1", "town2", [4, 5]),
        ("x2-lossless", "town1", "town2", [3, 6]),
        ("s1", "town2", "ian1", [6, 7, 8]),
    ]
    names = [link["name"] for link in scenario["topology"]["links"]]
    assert names[3:] == ["epc-internet", "land1", "enb1-epc", "land2", "enb2-epc", "enb1-enb2"]
    assert simulate(Scenario.load(scenario)).summary["handovers"]["moves"] == 7


@pytest.mark.parametrize(
    ("move", "told"),
    [
        (Handover(1, "1", "3"), "from or to '3'; there are 1, 2"),
        (Handover(1, "2", "1"), "no responders are in cell 2"),
        (Handover(1, "2", "1", "dogs"), "'dogs' cannot move"),
    ],
)
def test_moves_that_cannot_be(move: Handover, told: str) -> None:
    with pytest.raises(ArchitectureError, match=told):
        emergency_network([Meoc(), Meoc(responders=0, civilians=1)], handovers=[move])


def test_a_network_without_anybody() -> None:
    with pytest.raises(ArchitectureError, match="at least one MEOC"):
        emergency_network([])
    with pytest.raises(ArchitectureError, match="nobody is in its cell"):
        emergency_network([Meoc(responders=0)])


def test_the_drawing_shows_links_and_who_uses_them() -> None:
    scenario = emergency_network([Meoc(BACKHAULS["geo"], 2), Meoc(BACKHAULS["meo"], 1)], duration_s=10)
    drawn = network.drawing(tomllib.loads(to_toml(scenario)))
    assert drawn is not None
    bonds = {bond.texts[0]: bond for bond in drawn.links}
    assert bonds["satellite2"].texts[1].startswith("100 Mbit/s")
    assert bonds["satellite2"].changes
    assert "changes while it runs" in bonds["satellite2"].texts
    assert any(box.texts[:2] == ["ian1", "2 x bulk →"] for box in drawn.boxes)
    assert network.drawing({"topology": {"kind": "dumbbell"}}) is None


def test_the_drawing_shows_who_moves() -> None:
    scenario = emergency_network(
        [Meoc(), Meoc()], duration_s=30, handovers=[Handover(10, "1", "2"), Handover(20, "2", "1")]
    )
    drawn = network.drawing(tomllib.loads(to_toml(scenario)))
    assert drawn is not None
    assert [move.texts for move in drawn.moves] == [["10s: s1, 15 flows"], ["20s: s1, 30 flows"]]


def test_the_report_begins_with_the_drawing(tmp_path: Path) -> None:
    source = tmp_path / "one.toml"
    source.write_text(to_toml(emergency_network([Meoc(responders=1)], duration_s=2)))
    assert CliRunner().invoke(app, ["run", str(source), "--out", str(tmp_path / "out")]).exit_code == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert 0 < page.index(">Network<") < page.index(">Goodput of bulk flows<")


def test_the_command_writes_what_it_would_run(tmp_path: Path) -> None:
    out = tmp_path / "two.toml"
    arguments = ["architecture", "--backhaul", "geo", "--backhaul", "leo", "--duration", "5", "--out", str(out)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert simulate(Scenario.load(out)).summary["name"] == "emergency-geo-leo"
    wrong = CliRunner().invoke(app, ["architecture", "--backhaul", "moon"])
    assert isinstance(wrong.exception, ArchitectureError)


def test_the_command_moves_responders(tmp_path: Path) -> None:
    out = tmp_path / "moves.toml"
    arguments = ["architecture", "--backhaul", "leo", "--backhaul", "leo", "--duration", "9", "--out", str(out)]
    assert CliRunner().invoke(app, [*arguments, "--handover", "4:1:2"]).exit_code == 0
    assert tomllib.loads(out.read_text())["handovers"][0]["at"] == "4s"
    on_land = [*arguments, "--terrestrial", "2", "--neighbours", "1", "--handover", "4:t1:t2:civilians"]
    assert CliRunner().invoke(app, on_land).exit_code == 0
    assert tomllib.loads(out.read_text())["handovers"][0]["procedure"] == "x2-lossless"
    for text in ("4:1", "4:1:x", "soon:1:2", "4:1:2:all:3"):
        wrong = CliRunner().invoke(app, ["architecture", "--handover", text])
        assert isinstance(wrong.exception, ArchitectureError), text
