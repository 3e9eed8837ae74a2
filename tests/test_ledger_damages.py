"""The fixed list of mild damages changes what it says, and a claim that nothing breaks is told."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from penstock import marked
from penstock.reproduce import EXPERIMENTS, Case, open_keys

TOOLS = Path(__file__).parents[1] / "tools"


def tool(name: str) -> ModuleType:
    """A command as a module."""
    module_name = name.replace("-", "_")
    loader = importlib.machinery.SourceFileLoader(module_name, str(TOOLS / "measure" / name))
    spec = importlib.util.spec_from_loader(module_name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def damages() -> ModuleType:
    """The command as a module."""
    return tool("ledger-damages")


def tree(name: str, case: Case) -> dict[str, Any]:
    return EXPERIMENTS[name].tree(case, True)


def test_drop_tail_comes_in_the_place_of_a_discipline(damages: ModuleType) -> None:
    changed = tree("pink-dsl", Case("codel", 4, 1))
    assert damages.drop_tail(changed)
    assert changed["aqm"] == {"name": "droptail"}
    assert not damages.drop_tail(tree("pink-dsl", Case("droptail", 4, 1)))


def test_thresholds_keep_their_units(damages: ModuleType) -> None:
    doubled, halved = tree("pink-dsl", Case("codel", 4, 1)), tree("pink-dsl", Case("codel", 4, 1))
    assert damages.scaled(2.0)(doubled)
    assert damages.scaled(0.5)(halved)
    assert doubled["aqm"]["target"] == "10ms"
    assert halved["aqm"]["target"] == "2.5ms" or halved["aqm"]["target"] == "2ms"
    assert not damages.scaled(2.0)(tree("pink-dsl", Case("droptail", 4, 1)))


def test_an_estimator_is_another_one(damages: ModuleType) -> None:
    changed = tree("minstrel-pie", Case("pie", 5, 1, setting="light"))
    before = changed["aqm"].get("estimator", "timestamps")
    assert damages.wrong_estimator(changed)
    assert changed["aqm"]["estimator"] != before


def test_nobody_gets_what_others_leave(damages: ModuleType) -> None:
    changed = tree("pink-multi", Case("pink", 8, 1, setting="paper"))
    assert damages.no_reallocation(changed)
    assert {table["reallocation"] for table in damages.aqm_tables(changed)} == {"off"}
    changed = tree("dybra", Case("dybra", 10, 1, setting="mix"))
    assert damages.no_reallocation(changed)
    assert "sharing" not in changed["cooperation"]


def test_every_syn_counts(damages: ModuleType) -> None:
    changed = tree("pink-flood", Case("pink", 8, 1, setting="always-1000"))
    assert damages.no_sampling(changed)
    assert {table["sampling"] for table in damages.aqm_tables(changed)} == {"off"}
    assert not damages.no_sampling(changed)


def test_the_messages_of_a_gateway_stop(damages: ModuleType) -> None:
    changed = tree("dybra", Case("dybra", 10, 1, setting="mix"))
    assert damages.no_messages(changed)
    assert changed["cooperation"]["silent_from"] == "0s"
    assert not damages.no_messages(changed), "they are silent already"


def test_controls_and_buffers_change(damages: ModuleType) -> None:
    changed = tree("qrm", Case("qrm", 5, 1, setting="five-1"))
    assert damages.another_control(changed)
    assert changed["tcp"]["cc"] == "newreno"
    assert damages.another_control(changed)
    assert changed["tcp"]["cc"] == "cubic"
    assert damages.buffer(0.5)(changed)
    assert changed["topology"]["limit"] == "902kB"


def test_schedulers_become_fifos(damages: ModuleType) -> None:
    changed = tree("tempest-twfi", Case("hfs", 100, 1, setting="q-10"))
    assert damages.drop_tail(changed)
    assert (changed["tempest"]["qos"], changed["tempest"]["mac"]) == ("fifo", "fifo")


def test_a_claim_that_nothing_breaks_is_told(damages: ModuleType) -> None:
    claim = next(one for one in damages.claims() if one.id == "pink-dsl.pink-drops-nothing")
    assert damages.Row(claim, (), 5).cells() == ["`pink-dsl.pink-drops-nothing`", "**nothing that was tried**", "5"]
    assert damages.Row(claim, ("pink: drop-tail in its place",), 5).cells()[1] == "pink: drop-tail in its place"


@pytest.mark.parametrize("name", ["pink-dsl", "pink-multi"])
def test_what_fails_with_drop_tail_in_its_place_is_not_blamed_on_the_paper(name: str) -> None:
    droptail = tool("ledger-droptail")
    case = Case("pink", 4, 1) if name == "pink-dsl" else next(EXPERIMENTS[name].cases(True, 1))
    assert '"droptail"' in droptail.scenario(EXPERIMENTS[name], case).text
    entries = list(droptail.spoken_of(droptail.damaged(EXPERIMENTS[name], 1)))
    failed = [entry for entry in entries if entry.verdict in ("partly", "fails")]
    assert len(failed) >= 5
    assert not [entry.id for entry in failed if entry.cause == "not said"]


def test_every_document_has_a_discipline_under_test_that_drop_tail_replaces() -> None:
    tested = {name: open_keys.under_test(experiment) for name, experiment in EXPERIMENTS.items()}
    page = TOOLS.parent / "docs" / "results" / "ledger-damages.md"
    rows = {line.split("`")[1]: line.split(" | ") for line in marked.between(page, "droptail")[2:]}
    assert rows.keys() <= {name for name, aqms in tested.items() if aqms}
    assert len(rows) >= 24
    assert {row[4] for row in rows.values()} == {"0"}, "no row that speaks of it says `not said`"
