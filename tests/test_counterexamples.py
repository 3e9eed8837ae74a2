"""The search for the run that contradicts a claim within the set-up of its document."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from made_up import evidence
from penstock import marked
from penstock.claims import counterexample, page
from penstock.claims.checks import at_least, at_most
from penstock.claims.entering import of
from penstock.claims.ledger import claims as all_claims
from penstock.claims.ledger import ledger, with_found
from penstock.claims.rows import JUDGED, Claim, Comparison, Finding, judge
from penstock.cli.counterexamples import Options, command
from penstock.counterexamples import joint
from penstock.counterexamples.again import again
from penstock.counterexamples.judge import contradicted
from penstock.counterexamples.search import Worst, judge_of, not_searched, search, searched
from penstock.counterexamples.space import Altered, space_of
from penstock.experiments.interrupts import Stop
from penstock.mistake import MistakeError
from penstock.reproduce import EXPERIMENTS, Evidence, open_keys

SATELLITE = EXPERIMENTS["tcp-satellite"]  # a trial of it takes a twentieth of a second
STANDARD_KB = 75  # its standard buffer: 1 Mbit/s x 600 ms
LEDGER = Path(__file__).parents[1] / "docs" / "results" / "ledger.json"


def made(bound_kb: float) -> Claim:
    """A claim about the queue of three NewReno flows, which fill the standard buffer."""
    claims: list[Claim] = []

    @of(claims, "tcp-satellite")("0", "made", "a bound")
    def queue_is_bounded(run: Evidence) -> Finding:
        """The queue stays below a bound."""
        longest = run.value("droptail", 3, _queue_kb, setting="newreno-standard")
        return judge(f"{longest:.1f} kB", [at_most(longest, bound_kb, "queue", " kB")])

    return claims[0]


def _queue_kb(summary: dict[str, Any]) -> float:
    return float(summary["bottlenecks"][0]["queue_bytes"]["max"]) / 1e3


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Worst]:
    """What is found against a claim that a larger buffer contradicts, and against one that nothing can."""
    claims = [made(STANDARD_KB), made(2 * STANDARD_KB)]
    return search(SATELLITE, claims, Stop(), trials=18, jobs=1, out=tmp_path_factory.mktemp("trials"))


def test_the_search_finds_what_contradicts_a_claim(found: list[Worst]) -> None:
    broken = found[0]
    assert broken.changed == {"buffer": 1.05}, "a buffer of 78.75 kB alone has room for more than 75"
    assert (broken.verdict, broken.agree, broken.of, broken.seeds) == ("fails", 0, 1, "1/1")
    assert 15 <= broken.trials <= 18, "trials that are drawn twice count once"


def test_nothing_is_found_against_what_cannot_break(found: list[Worst]) -> None:
    assert found[1].changed is None
    assert counterexample.sentence(found[1].to_json()) == f"none found in {found[0].trials} trials"


def test_a_counter_example_runs_again_to_the_same_bytes(found: list[Worst], tmp_path: Path) -> None:
    row = json.loads(json.dumps(found[0].to_json()))
    first = again(made(STANDARD_KB), row, tmp_path)
    assert first.same(row)
    assert len(first.files) == len(list(SATELLITE.cases(False, 1)))
    scenario = tomllib.loads((tmp_path / "tcp-satellite-newreno-standard-droptail-3.toml").read_text())
    assert scenario["topology"]["limit"] == "78.75kB"
    assert not first.same({**row, "changed": {}, "sha256": "0" * 64})


def test_a_stored_counter_example_runs_again_to_the_same_value() -> None:
    stored = counterexample.stored()
    rows = {c.id: stored[c.id] for c in searched(SATELLITE) if stored[c.id].get("changed") is not None}
    claim = next(claim for claim in searched(SATELLITE) if claim.id in rows)
    rerun = "the simulator has changed: tools/measure/ledger-counterexamples tcp-satellite"
    assert again(claim, rows[claim.id]).same(rows[claim.id]), rerun


def test_each_row_of_the_ledger_is_searched_or_says_why_not() -> None:
    stored = counterexample.stored()
    for claim in (one for one in all_claims() if one.kind in JUDGED):
        assert stored[claim.id].get("not_searched", "") == not_searched(claim)
        assert "not_searched" in stored[claim.id] or stored[claim.id]["trials"] >= 0


def test_the_page_has_the_rows_beside_it_and_what_the_adversary_found() -> None:
    entries = page.read(LEDGER)
    assert {entry.id: entry.counterexample for entry in entries if entry.judged} == counterexample.stored()
    lines = marked.between(LEDGER.with_suffix(".md"), "table")
    assert [line for line in page.body(entries).splitlines() if "`" in line and line.startswith("| ")] == [
        line for line in lines if "`" in line and line.startswith("| ")
    ], "penstock claims --from docs/results/ledger.json --page docs/results/ledger.md"


def test_a_claim_that_is_contradicted_is_conditional_and_keeps_its_verdict() -> None:
    row = {"trials": 9, "changed": {"tcp.sack": True}, "seed": 1, "seeds": "2/3", "verdict": "fails", "measured": ""}
    name = "pink-dsl.pink-drops-nothing"
    held = next(entry for entry in ledger({"pink-dsl": evidence()}) if entry.id == name)

    def standing(found: dict[str, Any] | None) -> tuple[str, str, str]:
        one = with_found([held], {name: found} if found else {})[0]
        return one.verdict, one.standing, one.condition

    assert standing(row) == ("holds", "conditional", "not with tcp.sack = true")
    assert standing({**row, "seeds": "1/3"}) == ("holds", "stands", ""), "in fewer than half of the seeds"
    assert standing({"trials": 9, "changed": None}) == ("holds", "stands", "")
    assert standing({**row, "trials": 0}) == standing(None) == ("holds", "not searched", "")
    assert page._cells(with_found([held], {name: row})[0])[0] == "conditional"


def test_a_row_of_the_ledger_carries_what_was_found() -> None:
    entry = next(entry for entry in ledger({}) if entry.id == "tcp-satellite.six-controls-are-unfair")
    assert entry.to_json()["counterexample"] == counterexample.stored()[entry.id]
    assert entry.verdict == "not-run", "what is found decides no verdict"


def long_queue(name: str, least_kb: float) -> Claim:
    """A claim that the queue of three NewReno flows becomes so long."""
    claims: list[Claim] = []

    @of(claims, "tcp-satellite")("0", "made", "a length")
    def queue_is_long(run: Evidence) -> Finding:
        """The queue becomes long."""
        longest = run.value("droptail", 3, _queue_kb, setting="newreno-standard")
        return judge(f"{longest:.1f} kB", [at_least(longest, least_kb, "queue", " kB")])

    return replace(claims[0], id=f"tcp-satellite.{name}")


def test_the_joint_search_finds_a_reading_or_what_comes_nearest(tmp_path: Path) -> None:
    wanted = [long_queue("longer", 1.03 * STANDARD_KB), long_queue("twice", 2 * STANDARD_KB), long_queue("short", 1)]
    rows = joint.search(SATELLITE, wanted, Stop(), trials=24, jobs=1, out=tmp_path)
    assert rows.keys() == {"tcp-satellite.longer", "tcp-satellite.twice"}, "what holds as published is not searched"
    longer = rows["tcp-satellite.longer"]
    assert (longer["holds"], longer["nearest"], longer["agree"], longer["of"]) == ({"buffer": 1.05}, None, 1, 1)
    assert longer["droptail"] is False, "the document is about controls"
    assert {"buffer", "tcp.sack", "topology.limit"} <= set(longer["keys"])
    assert rows["tcp-satellite.twice"]["holds"] is None


def test_drop_tail_takes_the_place_of_what_is_tested_in_a_trial() -> None:
    experiment = EXPERIMENTS["pink-dsl"]
    case = next(case for case in experiment.cases(True, 1) if case.aqm == "pink")
    altered = Altered.of(experiment, {"warmup": "2s", "green: aqm.c": 1.22})
    assert tomllib.loads(altered.scenario(case).text)["aqm"]["name"] == "pink"
    put = tomllib.loads(replace(altered, instead=True).scenario(case).text)
    assert (put["aqm"], put["warmup"]) == ({"name": "droptail"}, "2s")
    green = tomllib.loads(replace(altered, instead=True).scenario(replace(case, aqm="green")).text)
    assert (green["aqm"]["name"], green["aqm"]["c"]) == ("green", 1.22)
    # It is open in some settings alone.
    small = Altered.of(SATELLITE, {"topology.limit": "37500B"})
    limits = {c.setting: tomllib.loads(small.scenario(c).text)["topology"]["limit"] for c in SATELLITE.cases(False, 1)}
    assert limits["newreno-standard"] == "37500B" != limits["newreno-large"]


def test_what_varies_is_no_published_value_and_exists() -> None:
    tables = open_keys.tables()
    known = {key["name"] for key in tables["keys"]}
    for name, given in tables["experiments"].items():
        assert {*given.get("said", ()), *given.get("more", ())} <= known
        genes = {gene.key: gene for gene in space_of(EXPERIMENTS[name]).genes}
        assert not genes.keys() & set(given.get("said", ()))
        published = EXPERIMENTS[name].template.get("tcp", {})
        for key, gene in genes.items():
            if key.startswith("tcp."):
                assert published.get(key.removeprefix("tcp.")) not in gene.values.values  # type: ignore[union-attr]


def test_every_run_of_a_trial_has_the_same_change() -> None:
    experiment = EXPERIMENTS["pink-dsl"]
    altered = Altered.of(experiment, {"tcp.sack": True, "buffer": 1.05, "topology.access_delay": "1.7ms"})
    scenarios = [tomllib.loads(altered.scenario(case).text) for case in altered.cases(2)]
    assert {s["tcp"]["sack"] and s["tcp"]["prr"] for s in scenarios} == {True}
    assert {s["topology"]["limit"] for s in scenarios} == {"131.2kB"}
    assert {s["seed"] for s in scenarios} == {2}
    assert len({s["aqm"]["name"] for s in scenarios}) == 5
    # What claims compute from a scenario follows: 4 x 0.25 ms more.
    plain = Altered.of(experiment, {}).experiment
    assert altered.experiment.unloaded_rtt_ms - plain.unloaded_rtt_ms == pytest.approx(1.0)  # type: ignore[attr-defined]


def test_more_false_comparisons_contradict_more_and_then_distance_does() -> None:
    def finding(*values: float) -> Finding:
        return judge("", [Comparison(value <= 10, f"part {i}: {value:.1f}") for i, value in enumerate(values)])

    published = finding(5, 5).parts
    one_near, one_far, both = finding(11, 5), finding(20, 5), finding(11, 11)
    margins = [contradicted(one, published).margin for one in (finding(5, 5), one_near, one_far, both)]
    assert margins == sorted(margins) and len(set(margins)) == 4
    assert margins[0] < 0 < margins[1] and margins[3] <= 1
    assert contradicted(judge("", []), published).margin == -1


def test_published_runs_are_not_repeated() -> None:
    judge_ = judge_of(SATELLITE, [made(STANDARD_KB)])
    before = judge_.outcomes({}, 1)
    assert all(a is b for a, b in zip(before, judge_.outcomes({}, 1), strict=True))


@pytest.mark.parametrize(
    ("wanted", "again_", "out", "says"),
    [
        ("tcp-satelite", False, None, "did you mean tcp-satellite"),
        ("", False, None, "give an id that `penstock claims` lists"),
        ("pink-scale", False, None, "processor times"),
        ("tempest-time.wf2q-plus-costs-most", False, None, "does not apply"),
        ("tcp-satellite", True, None, "the id of one claim"),
        ("tcp-satellite", False, Path("x"), "--out goes with --again"),
    ],
)
def test_mistakes_are_told(wanted: str, again_: bool, out: Path | None, says: str) -> None:
    with pytest.raises(MistakeError, match=re.escape(says)):
        command(wanted, Options(None, 1, again_, out, json=True))


def test_options_of_the_search_go_with_it(penstock: Command) -> None:
    said = penstock("claims", "--trials", "5")
    assert said.returncode == 2 and "--trials goes with `penstock claims break`" in said.stderr
