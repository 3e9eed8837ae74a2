"""The emergency network of section 2.1, and PINK's corollaries: networks by hand, and claims that can fail."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from penstock.claims import Verdict
from penstock.claims.ledger import claims
from penstock.papers.emergency.runs import HOPS, NETWORKS
from penstock.papers.pink_scale.runs import COUNTS, bound_bytes
from penstock.reproduce import EXPERIMENTS, Case, Evidence, reproduce

EMERGENCY, SCALE = EXPERIMENTS["emergency"], EXPERIMENTS["pink-scale"]


class Quiet:
    def begin(self, *_: float) -> None: ...
    def advanced(self, _: float) -> None: ...
    def finished(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """All of it, which takes about seven seconds of one core."""
    out: Path = tmp_path_factory.mktemp("emergency")
    found, complete = reproduce(EMERGENCY, out, quick=True, watcher=Quiet())
    assert found is not None and complete
    return found


def verdict(name: str, run: Evidence) -> str:
    claim = next(claim for claim in claims() if claim.id == f"emergency.{name}")
    return claim.check({"emergency": run}).verdict


def with_network(run: Evidence, setting: str, other: str) -> Evidence:
    """The same results, as if the network of one setting had been that of another."""
    given = {o.case.aqm: o.summary for o in run.outcomes if o.case.setting == other}
    changed = tuple(
        replace(o, summary=given.get(o.case.aqm, o.summary)) if o.case.setting == setting else o for o in run.outcomes
    )
    return replace(run, outcomes=changed)


def test_a_chain_has_a_cell_for_each_relay() -> None:
    for hops in HOPS:
        links = NETWORKS[f"chain-meo-{hops}"][1]()["topology"]["links"]
        assert [link["name"] for link in links if link["name"].startswith("relay")] == [
            f"relay{n}" for n in range(1, hops + 1)
        ]
    tree = tomllib.loads(EMERGENCY.scenario(Case("bearers", 50, 1, setting="one-queue"), False).text)
    assert {link["aqm"]["name"] for link in tree["topology"]["links"] if "aqm" in link} == {"droptail"}


# A network in the place of another breaks the claim: a check that nothing could fail would say nothing.
BREAKS = [
    ("whole-round-trips", "orbit-geo", "orbit-meo"),
    ("satellites-change-without-a-loss", "orbit-meo", "s1-meo"),
    ("a-handover-is-hardly-heard", "s1-meo", "s1-geo"),
    ("vehicles-without-a-bridge-talk-over-two-satellites", "apart", "bridge"),
    ("relays-reach-into-a-building", "chain-meo-6", "chain-meo-1"),
    ("bearers-keep-responders-calls", "busy", "one-queue"),
]


@pytest.mark.parametrize(("name", "setting", "other"), BREAKS)
def test_claims_hold_and_fail_with_another_network(evidence: Evidence, name: str, setting: str, other: str) -> None:
    assert verdict(name, evidence) == Verdict.HOLDS
    assert verdict(name, with_network(evidence, setting, other)) != Verdict.HOLDS


def test_links_grow_with_the_flows() -> None:
    assert (COUNTS[0], COUNTS[-1]) == (10, 100_000)
    for flows in COUNTS:
        tree = tomllib.loads(SCALE.scenario(Case("pink", flows, 1, setting=f"n-{flows}"), False).text)
        rate = float(tree["topology"]["rate"].removesuffix("bit/s"))
        assert rate / 8 * 0.1 == pytest.approx(bound_bytes(flows)), "two packets of 1500 B for each flow"
        assert float(tree["topology"]["limit"].removesuffix("B")) == 4 * bound_bytes(flows)
