"""Profiles of simulators: pages have every value, scenarios get them, the comparison with ns-3 judges as it says."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from penstock import ns3
from penstock.engine import simulate
from penstock.marked import between
from penstock.scenario import Scenario
from penstock.verify import profile
from penstock.verify.profile import CELLS, Cell, Row

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "profiles.md"


def test_the_page_has_the_keys_of_all_profiles() -> None:
    assert "\n".join(between(PAGE, "keys")) == profile.keys()
    values = tomllib.loads((ROOT / "crates/sim/src/scenario/profiles.toml").read_text(encoding="utf-8"))
    for kinds in values.values():
        for table in (kinds["tcp"], *(of for kind in ("cc", "aqm") for of in kinds.get(kind, {}).values())):
            assert all(set(entry) - {"unconfirmed"} == {"is", "from"} for entry in table.values())


def test_a_scenario_of_the_comparison_says_nothing_but_the_profile() -> None:
    tree = Cell("ared", 16).tree(None)
    assert (tree["profile"], tree["aqm"], tree["tcp"]) == ("ns-3.37", {"name": "ared"}, {"cc": "newreno"})
    resolved = simulate(Scenario.load({**tree, "duration": "1s"}), 1).resolved
    told = tomllib.loads(resolved)
    assert (told["aqm"]["wait"], told["aqm"]["max_probability"], told["aqm"]["gentle_slope"]) == (True, 0.02, "initial")
    tcp = told["flows"][0]["tcp"]
    assert (tcp["mss"], tcp["cc"]["growth"], tcp["receive_buffer"]) == ("536B", "acks", "131.072kB")
    # ns-3 is told the link and the flows, and its own defaults are asked for.
    options = Cell("ared", 16).arguments(3)
    assert "--own-defaults=true" in options and "--flows=16" in options and "--seed=3" in options
    assert not [option for option in options if option.startswith(("--red", "--codel", "--pie", "--min-rto"))]
    assert len(CELLS) == 15


def means(goodput: float, delay: float, drops: float) -> dict[str, float]:
    return {"goodput_mbps": goodput, "queue_ms": delay, "drops": drops}


def test_a_measure_beyond_its_bar_has_its_residue() -> None:
    tried = {"device": means(9.0, 10.0, 140), "sack": means(9.0, 11.2, 101)}
    row = Row(Cell("ared", 4), means(9.0, 12.0, 130), means(9.2, 10.0, 100), tried)
    assert row.missed == ["queue_ms", "drops"]
    assert (row.residue("queue_ms"), row.residue("drops")) == ("device", "sack")
    assert row.off("goodput_mbps") == pytest.approx(-0.0217, abs=1e-4)
    cells = profile.cells(row)
    assert cells[3:] == ["12.0 / 10.0 (+20%)", "130 / 100 (+30%)", "delay: device, drops: sack"]
    other = Row(Cell("pie", 4), means(9.0, 10.0, 0), means(9.0, 10.0, 0), {})
    assert other.missed == [] and profile.cells(other)[-1] == "nothing"
    assert profile.summary([row, other]) == "4 of 6 measures are within their bars; of the others: device 1, sack 1"
    nothing = Row(Cell("red", 4), means(9.0, 10.0, 5), means(9.0, 10.0, 0), {})
    assert nothing.residue("drops") == "open"


def test_the_programs_options_are_those_that_it_knows() -> None:
    source = ns3.SOURCE.read_text(encoding="utf-8")
    for option in Cell("pie", 64).arguments(1):
        assert f'"{option.removeprefix("--").split("=")[0]}"' in source, option
    assert '"newreno-acks", "ns3::TcpNewReno"' in source
