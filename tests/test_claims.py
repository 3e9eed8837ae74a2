"""Verdicts follow from numbers: each test makes results by hand and knows what they must mean."""

from __future__ import annotations

from made_up import Values, evidence
from penstock.claims import Entry, Verdict, ledger
from penstock.claims.ledger import Comparison, claims, judge
from penstock.reproduce import EXPERIMENTS, Evidence


def entry(name: str, run: Evidence, *others: Evidence) -> Entry:
    """The line of the ledger with this id."""
    runs = {e.experiment.name: e for e in (run, *others)}
    return next(line for line in ledger(runs) if line.id == name)


def test_a_verdict_is_made_of_comparisons() -> None:
    good, bad = Comparison(True, "1 < 2"), Comparison(False, "3 < 2")
    assert judge("m", [good, good]).verdict == Verdict.HOLDS
    assert judge("m", [bad, bad]).verdict == Verdict.FAILS
    partly = judge("m", [good, bad])
    assert partly.verdict == Verdict.PARTLY
    assert partly.reason == "1 of 2 comparisons agree; against it: 3 < 2"
    assert judge("m", []).verdict == Verdict.NOT_RUN


def test_every_claim_is_told_apart_and_says_where_it_is_from() -> None:
    everything = claims()
    assert len({claim.id for claim in everything}) == len(everything)
    for claim in everything:
        assert claim.document
        assert claim.section.startswith("6.")
        assert claim.claim
        assert claim.paper
        assert set(claim.needs) <= EXPERIMENTS.keys()


def test_without_results_nothing_is_judged() -> None:
    assert {line.verdict for line in ledger({})} == {"not-run"}
    line = next(iter(ledger({})))
    assert line.reason == "no results: run `penstock reproduce pink-dsl`"


def test_one_drop_is_too_many_for_pink() -> None:
    def one_drop(aqm: str, flows: int) -> Values:
        return {"drops": 1 if (aqm, flows) == ("pink", 64) else 0}

    assert entry("pink-dsl.pink-drops-nothing", evidence()).verdict == "holds"
    line = entry("pink-dsl.pink-drops-nothing", evidence(values=one_drop))
    assert line.verdict == "partly"
    assert "1 drops at 64 flows" in line.reason


def test_close_to_the_limit_is_within_three_percent() -> None:
    # 10 Mbit/s x 1000 / 1052 = 9.506 Mbit/s; 97 % of it is 9.221.
    assert (
        entry("pink-dsl.pink-goodput-near-limit", evidence(values=lambda _a, _n: {"goodput": 9.23})).verdict == "holds"
    )
    assert (
        entry("pink-dsl.pink-goodput-near-limit", evidence(values=lambda _a, _n: {"goodput": 9.21})).verdict == "fails"
    )


def test_the_papers_sums_are_checked() -> None:
    # Erratum 1: 4 Mbit/s for 300 s carries 142.6 MB of payload, not 146; 3.80 Mbit/s, not 4.8.
    line = entry("pink-sat.stated-maximum", evidence("pink-sat"))
    assert (line.verdict, line.measured) == ("fails", "142.6 MB")
    line = entry("pink-sat.stated-goodput-limit", evidence("pink-sat", lambda _a, _n: {"goodput": 3.7}))
    assert (line.verdict, line.measured) == ("fails", "3.80 Mbit/s")
    assert entry("pink-dsl.stated-maximum", evidence()).verdict == "holds"
    assert entry("pink-dsl.stated-goodput-limit", evidence()).verdict == "holds"


def test_a_trend_is_judged_from_count_to_count() -> None:
    def rising(_aqm: str, flows: int) -> Values:
        return {"rtt": 100 + flows}

    def falling(_aqm: str, flows: int) -> Values:
        return {"rtt": 300 - flows}

    counts = (4, 16, 64)
    assert entry("pink-dsl.codel-rtt-rises", evidence(values=rising, counts=counts)).verdict == "holds"
    assert entry("pink-dsl.codel-rtt-rises", evidence(values=falling, counts=counts)).verdict == "fails"
    assert entry("pink-dsl.green-rtt-falls", evidence(values=falling, counts=counts)).verdict == "holds"


def test_order_looks_at_every_count() -> None:
    def codel_wins_once(aqm: str, flows: int) -> Values:
        return {"goodput": 9.4 if (aqm, flows) == ("codel", 64) else 9.3 if aqm == "pink" else 9.0}

    line = entry("pink-dsl.pink-goodput-highest", evidence(values=codel_wins_once))
    assert line.verdict == "partly"
    assert "Mbit/s at 64 flows: pink 9.3, codel 9.4" in line.reason


def test_claims_on_two_experiments_need_both() -> None:
    def wide(_aqm: str, _flows: int) -> Values:
        return {"goodput_p10": 2.0, "goodput": 3.0, "goodput_p90": 3.7}

    name = "pink-sat.wider-on-satellite"
    assert entry(name, evidence()).verdict == "not-run"
    assert entry(name, evidence(), evidence("pink-sat", wide)).verdict == "holds"


def test_results_of_some_disciplines_only_are_not_judged() -> None:
    line = entry("pink-dsl.pink-goodput-highest", evidence(aqms=("pink", "codel")))
    assert (line.verdict, line.reason) == ("not-run", "only codel, pink have results")


def test_the_median_over_seeds_counts() -> None:
    run = evidence(seeds=3)
    values = iter((1.0, 9.0, 2.0))
    assert run.value("pink", 4, lambda _: next(values)) == 2.0
