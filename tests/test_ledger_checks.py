"""What the words of the documents mean, and what several seeds and variants say of a verdict."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest
from made_up import Values, evidence
from penstock.claims import Cause, Finding, Verdict, checks, ledger, words
from penstock.claims.entering import of, unsaid
from penstock.claims.ledger import Because, Claim, Comparison, judge
from penstock.claims.ledger import claims as all_claims
from penstock.claims.seeds import over_seeds, ranged
from penstock.claims.why import _cause, _Trial, by_chance, explained, speaks_of
from penstock.reproduce import EXPERIMENTS, Case, Evidence, open_keys
from penstock.reproduce.results import goodput_mbps
from penstock.reproduce.variants import Variant


def held(parts: list[Comparison]) -> list[bool]:
    return [part.holds for part in parts]


def test_each_word_has_one_meaning() -> None:
    said = [word.strip() for meaning in words.TABLE for word in meaning.words.split(",")]
    assert len(said) == len(set(said))
    assert len(words.TABLE) >= 25


def test_a_number_of_a_table_is_a_line() -> None:
    held_to = Comparison(True, "2 nodes: 110 for 100 s", 100.0, 109.9, "2 nodes", "s")
    assert checks.about(109.9, 100.0, "2 nodes", " s") == held_to
    assert not checks.about(111.0, 100.0, "2 nodes").holds
    assert checks.close(97.1, 100.0, "c").holds
    assert not checks.close(96.9, 100.0, "c").holds
    assert checks.factor(51.0, 100.0, "drops").holds
    assert not checks.factor(49.0, 100.0, "drops").holds
    assert checks.index(0.90, 0.94, "PIE").holds
    assert not checks.index(0.88, 0.94, "PIE").holds
    assert held(checks.table(words.ABOUT, {"a": 1.0, "b": 2.0}, {"a": 1.05, "b": 3.0, "not run": 1.0})) == [True, False]


def test_what_stays_where_it_is_does_not_rise() -> None:
    level = [("4", 1.0), ("16", 1.0), ("64", 1.0)]
    assert held(checks.rises(level, "index")) == [False, False, False]
    assert held(checks.falls(level, "index")) == [False, False, False]


def test_a_rise_may_pause_and_not_turn_back() -> None:
    assert held(checks.rises([("4", 1.0), ("16", 1.2), ("64", 1.199)], "x")) == [True, True, True]
    assert held(checks.rises([("4", 1.0), ("16", 1.3), ("64", 1.2)], "x")) == [True, False, True]
    assert held(checks.falls([("4", 1.2), ("64", 1.0)], "x")) == [True]
    assert checks.rises([("4", 1.0)], "x") == []


def test_slightly_above_is_above_and_not_far() -> None:
    assert checks.slightly_above(("codel", 9.4), ("ared", 9.0), "Mbit/s").holds
    assert not checks.slightly_above(("codel", 9.0), ("ared", 9.0), "Mbit/s").holds
    assert not checks.slightly_above(("codel", 9.4), ("ared", 6.8), "Mbit/s").holds
    assert checks.above(("pink", 9.4), ("green", 7.0), "Mbit/s", by=words.MUCH).holds
    assert not checks.above(("pink", 9.4), ("green", 8.0), "Mbit/s", by=words.MUCH).holds


def test_orders_are_comparisons_of_neighbours() -> None:
    assert held(checks.ordered([("a", 3.0), ("b", 2.0), ("c", 2.5)], "x")) == [True, False]
    assert held(checks.first_of("a", {"a": 3.0, "b": 2.0, "c": 3.0}, "x")) == [True, False]
    assert checks.constant([("4", 100.0), ("64", 104.0)], "x").holds
    assert not checks.constant([("4", 100.0), ("64", 107.0)], "x").holds


# Seeds.

MEASURE = goodput_mbps("p50")


def full(run: Evidence) -> Finding:
    """The link is full."""
    value = run.value("pink", 4, MEASURE)
    return judge(f"{value:.2f} Mbit/s", [Comparison(value >= 9.0, f"{value:.2f} Mbit/s of 9.51")])


def claim(check: Callable[[Evidence], Finding] = full) -> Claim:
    claims: list[Claim] = []
    of(claims, "pink-dsl")("1", "Figure 1", "9")(check)
    return claims[0]


def seeded(*goodputs: float) -> Evidence:
    run = evidence(seeds=len(goodputs))

    def changed(seed: int) -> Values:
        return dict.fromkeys(("p10", "p50", "p90"), goodputs[seed - 1] * 1000000.0)

    outcomes = tuple(replace(o, summary={**o.summary, "goodput_1s_bps": changed(o.case.seed)}) for o in run.outcomes)
    return replace(run, outcomes=outcomes)


def judged(run: Evidence) -> Finding:
    one, runs = claim(), {"pink-dsl": run}
    return over_seeds(one, runs, one.check(runs))


def test_the_verdict_says_in_how_many_seeds_it_holds_and_numbers_have_their_range() -> None:
    found = judged(seeded(9.2, 9.4, 8.9))
    assert (found.verdict, found.seeds) == (Verdict.HOLDS, "2/3")
    assert found.measured == "9.20 [8.90 to 9.40] Mbit/s"
    assert found.reason == "9.20 [8.90 to 9.40] Mbit/s of 9.51"


def test_numbers_in_a_list_and_numbers_of_thousands_have_their_range() -> None:
    texts = ["180, 1,203 ms at 4, 64 flows", "179, 1,199 ms at 4, 64 flows", "183, 1,203 ms at 4, 64 flows"]
    assert ranged(texts[0], texts) == "180 [179 to 183], 1,203 [1,199 to 1,203] ms at 4, 64 flows"
    assert ranged("RED-ERN 0.80, p90 -3.3 ms", ["RED-ERN 0.80, p90 -3.3 ms", "RED-ERN 0.79, p90 -3.5 ms"]) == (
        "RED-ERN 0.80 [0.79 to 0.80], p90 -3.3 [-3.5 to -3.3] ms"
    )
    assert ranged("9.4 Mbit/s", ["9.4 Mbit/s", "not complete"]) == "9.4 Mbit/s", "texts that differ have no range"


def test_one_seed_has_no_range() -> None:
    found = judged(seeded(9.2))
    assert (found.seeds, found.measured) == ("1/1", "9.20 Mbit/s")


def test_seeds_that_change_nothing_count_as_one() -> None:
    found = judged(evidence(values=lambda _a, _n: {"goodput": 9.2}, seeds=3))
    assert (found.seeds, found.measured) == ("1/1", "9.20 Mbit/s")


def test_what_most_seeds_do_not_show_holds_partly() -> None:
    def all_flows(run: Evidence) -> Finding:
        """All flows."""
        counts = run.counts("pink")
        values = [run.value("pink", n, MEASURE) for n in counts]
        parts = [Comparison(v >= 9.0, f"{v:.2f} at {n}") for n, v in zip(counts, values, strict=True)]
        return judge("", parts)

    # The medians are 9.1 at both counts; each seed has a low value somewhere but one.
    run = evidence(seeds=3)
    low = {(1, 4): 8.0, (2, 64): 8.0, (3, 4): 9.1}
    outcomes = tuple(
        replace(o, summary={**o.summary, "goodput_1s_bps": {"p50": low.get((o.case.seed, o.case.flows), 9.1) * 1e6}})
        for o in run.outcomes
    )
    one, runs = claim(all_flows), {"pink-dsl": replace(run, outcomes=outcomes)}
    found = over_seeds(one, runs, one.check(runs))
    assert (found.verdict, found.seeds) == (Verdict.PARTLY, "1/3")
    assert found.reason.startswith("holds in the medians, but in 1 of 3 seeds alone; ")


# Causes.


def cause(variants: Mapping[str, Callable[[str, int], Values]], published: float = 8.0) -> Because | None:
    run = evidence(values=lambda _a, _n: {"goodput": published}, variants=variants)
    return explained(claim(), {"pink-dsl": run}).because


def test_without_a_search_a_cause_is_unexplained() -> None:
    none = "no key that the document leaves open was searched"
    assert cause({}) == Because(Cause.UNEXPLAINED, none)
    # PINK's c is in the paper: a run with another one shows on what the claim depends, and earns no cause.
    stated = cause({"no-pink-margin": lambda _a, _n: {"goodput": 9.4}})
    assert stated is not None
    assert (stated.cause, stated.keys) == (Cause.UNEXPLAINED, ())


def low_droptail(high: float) -> Callable[[str, int], Values]:
    return lambda aqm, _n: {"goodput": 8.0 if aqm == "droptail" else high}


def test_a_reading_that_makes_it_hold_shows_what_is_not_said() -> None:
    found = cause({"rto-200ms": low_droptail(9.4)})
    text = "it holds with a reading of the document: a timeout floor of 200 ms instead of 1 s (tcp.min_rto)"
    assert found == Because(Cause.NOT_SAID, text, ("tcp.min_rto",))


def test_a_reading_with_which_drop_tail_does_as_well_explains_nothing() -> None:
    found = cause({"rto-200ms": lambda _a, _n: {"goodput": 9.4}})
    assert found is not None
    assert found.cause == Cause.UNEXPLAINED
    assert "200 ms instead of 1 s it holds, and with drop-tail in its place as well" in found.text


def test_a_search_without_success_names_its_keys_and_the_nearest_reading() -> None:
    def far(run: Evidence) -> Finding:
        """Full, and full twice."""
        value = run.value("pink", 4, MEASURE)
        return judge("", [Comparison(value >= bound, f"{value:.2f} of {bound}") for bound in (9.0, 9.4)])

    given = {"rto-200ms": low_droptail(9.1), "buffers-128kB": low_droptail(8.1)}
    run = evidence(values=lambda _a, _n: {"goodput": 8.0}, variants=given)
    found = explained(claim(far), {"pink-dsl": run}).because
    assert found is not None
    assert found.cause == Cause.UNEXPLAINED
    assert found.keys == ("tcp.min_rto", "tcp.receive_buffer")
    assert "tcp.min_rto, tcp.receive_buffer" in found.text
    assert found.nearest.startswith("a timeout floor of 200 ms instead of 1 s: 1 of 2 (")
    farther = evidence(values=lambda _a, _n: {"goodput": 9.1}, variants={"rto-200ms": low_droptail(8.1)})
    assert (because := explained(claim(far), {"pink-dsl": farther}).because) is not None
    assert because.nearest.startswith("as published: 1 of 2 ("), "no reading is nearer"


def test_a_joint_search_earns_a_cause_or_comes_nearest() -> None:
    row = {"keys": ["warmup"], "trials": 9, "holds": {"warmup": "2s"}, "nearest": None, "agree": 1, "of": 1}
    row |= {"measured": "9.20 Mbit/s", "droptail": False}
    found = _cause([], "0/5", row)
    text = "it holds with a reading that the joint search of 9 found: warmup = 2s: 9.20 Mbit/s"
    assert found == Because(Cause.NOT_SAID, text, ("warmup",))
    for droptail in (True, None):
        assert _cause([], "0/5", {**row, "droptail": droptail}).cause == Cause.UNEXPLAINED
    near = _cause([], "0/5", {**row, "holds": None, "nearest": {"warmup": "0s"}, "of": 3})
    assert (near.cause, near.nearest) == (Cause.UNEXPLAINED, "warmup = 0s: 1 of 3 (9.20 Mbit/s)")


def test_what_holds_where_variants_are_run_alone_is_no_reading() -> None:
    found, published = Finding(Verdict("holds"), "9.4", "", 1, 1), Finding(Verdict("fails"), "8", "", 0, 1)
    trial = _Trial("rto-200ms", "a floor of 200 ms", "", found, published, ("tcp.min_rto",))
    row = {"keys": ["tcp.min_rto", "warmup"], "trials": 9, "holds": None, "nearest": None, "agree": 0, "of": 1}
    row |= {"measured": "8 Mbit/s", "droptail": None}
    assert _cause([trial], "0/5").cause == Cause.NOT_SAID
    searched = _cause([trial], "0/5", row)
    assert searched.cause == Cause.UNEXPLAINED
    assert "with a floor of 200 ms it holds, but not in the runs that variants leave out" in searched.text
    assert _cause([trial], "0/5", {**row, "keys": ["warmup"]}).cause == Cause.NOT_SAID, "the search lacks its key"


def test_chance_has_seeds_enough() -> None:
    assert not by_chance("1/5") and not by_chance("0/5") and not by_chance("2/3") and not by_chance("")
    assert by_chance("2/5") and by_chance("4/5")
    assert not by_chance("2/20") and by_chance("5/20"), "a claim that is true in a tenth of runs does so in two of 20"
    assert _cause([_published("fails")], "2/5").cause == Cause.CHANCE
    assert _cause([_published("holds")], "1/5").cause == Cause.UNEXPLAINED


def _published(verdict: str) -> _Trial:
    found = Finding(Verdict("fails"), "other numbers", "", 0, 1)
    return _Trial("x", "anything", "", found, Finding(Verdict(verdict), "", "", 0, 1))


def test_a_cause_that_a_claim_brings_itself_is_shown_by_its_comparisons() -> None:
    brought = unsaid("the rule of senders", "minshall", "the paper does not say which rule")
    agree, not_so = Comparison(True, "81 % with minshall senders"), Comparison(False, "50 % with minshall senders")
    other = Comparison(False, "50 % with strict senders")
    assert brought.earned((agree, other))
    assert not brought.earned((agree, not_so, other)) and not brought.earned((other,))


def test_the_list_of_open_keys_fits_its_experiments() -> None:
    for name in open_keys.tables()["experiments"]:
        experiment = EXPERIMENTS[name]
        given = open_keys.of(name)
        assert set(given.get("tests", ())) <= set(experiment.aqms), name
        assert "plain" not in given or open_keys.plain(experiment) in experiment.aqms, name
        for one in open_keys.own(name):
            assert one.values and one.why and one.source, (name, one.key)
            assert set(one.aqms) <= set(experiment.aqms), (name, one.key)


def test_what_a_document_states_is_no_open_key() -> None:
    variants = {v.name: v for v in EXPERIMENTS["pink-dsl"].variants}
    read = {name: [one.name for one in open_keys.read_by(EXPERIMENTS["pink-dsl"], v)] for name, v in variants.items()}
    assert read["no-pink-margin"] == []
    assert read["from-the-start"] == ["warmup"]
    assert read["ns3-hosts"] == ["tcp.ack_every_segment", "tcp.delayed_ack_timeout", "tcp.receive_buffer"]
    # Section 2.2.2.1 of document 002 has the first threshold.
    satellite = EXPERIMENTS["tcp-satellite"]
    assert open_keys.read_by(satellite, next(v for v in satellite.variants if v.name == "slow-start")) == ()


# Drop-tail in the place of the discipline under test.


def drawn(draw: Random, variants: Sequence[Variant]) -> Callable[[str], Callable[[str, int], Values]]:
    """Made-up runs, in which drop-tail is in PINK's place and every other number is drawn."""
    known: dict[tuple[str, str, int], Values] = {}

    def values(variant: str) -> Callable[[str, int], Values]:
        affected = {v.name: v.aqms for v in variants}

        def of_run(aqm: str, flows: int) -> Values:
            name = "droptail" if aqm == "pink" else aqm
            which = variant if name in affected.get(variant, ()) else ""
            if (which, name, flows) not in known:
                goodput, rtt = draw.uniform(5, 9.5), draw.uniform(107, 300)
                some = {
                    "goodput": goodput,
                    "rtt": rtt,
                    "jain": draw.uniform(0.2, 1),
                    "drops": draw.choice((0, 9, 5331)),
                }
                known[which, name, flows] = some
            return known[which, name, flows]

        return of_run

    return values


@pytest.mark.parametrize("name", ["pink-dsl", "pink-sat"])
def test_no_row_blames_its_paper_where_drop_tail_is_in_the_place_of_pink(name: str) -> None:
    experiment = EXPERIMENTS[name]
    rows = [one for one in all_claims() if one.needs == (name,) and one.varies]
    failed, not_said = 0, 0
    for seed in range(20):
        values = drawn(Random(seed), experiment.variants)
        run = evidence(name, values(""), (2, 4, 64), variants={v.name: values(v.name) for v in experiment.variants})
        lines = {entry.id: entry for entry in ledger({name: run}, searched={})}
        for one in rows:
            entry = lines[one.id]
            if speaks_of(one, {name: run.subset()}) and entry.verdict in ("partly", "fails"):
                failed += 1
                assert entry.cause != Cause.NOT_SAID.value, (seed, entry.id, entry.because)
        not_said += sum(entry.cause == Cause.NOT_SAID.value for entry in lines.values())
    assert failed > 100, "rows that speak of PINK fail"
    assert not_said > 0, "others may hang on what is not said"


def test_claims_that_hold_have_no_cause() -> None:
    assert cause({}, published=9.4) is None


def test_a_sum_that_fails_is_the_paper_against_itself() -> None:
    line = next(line for line in ledger({"pink-sat": evidence("pink-sat")}) if line.id == "pink-sat.stated-maximum")
    assert (line.verdict, line.cause) == ("fails", "paper against itself")
    assert "142.6 MB, 2.3% from the stated 146" in line.because


def test_a_reading_needs_something_that_speaks_for_it() -> None:
    with pytest.raises(TypeError, match="go together"):
        Variant("x", "anything", ("pink",), reading=True)
    with pytest.raises(TypeError, match="go together"):
        Variant("x", "anything", ("pink",), because="the text")
    Variant("x", "anything", ("pink",), reading=True, because="the text")


def test_a_joint_variant_makes_the_changes_of_its_parts() -> None:
    experiment = EXPERIMENTS["pink-dsl"]
    joint = next(v for v in experiment.variants if v.joint)
    tree = experiment.varied_tree(Case("ared", 4, 1, joint.name), quick=True)
    published = experiment.varied_tree(Case("ared", 4, 1), quick=True)
    assert published["tcp"]["ack_every_segment"]
    assert "receive_buffer" not in published["tcp"]
    assert not tree["tcp"]["ack_every_segment"]
    assert tree["tcp"]["receive_buffer"] == "131072B"


def test_joint_variants_name_variants() -> None:
    for experiment in EXPERIMENTS.values():
        known = {variant.name for variant in experiment.variants}
        for variant in experiment.variants:
            assert set(variant.joint) <= known - {variant.name}, f"{experiment.name}: {variant.name}"


def test_a_check_that_asks_for_missing_runs_is_not_judged_by_zeros() -> None:
    def of_64(run: Evidence) -> Finding:
        """Of 64 flows."""
        low = run.median_or_zero("pink", "no such setting", lambda _: 1.0)
        return judge("", [Comparison(low <= 0, f"{low}")])

    one = claim(of_64)
    found = one.check({"pink-dsl": evidence()})
    assert found.verdict == Verdict.NOT_RUN
    assert "no results of pink, no such setting" in found.reason


def test_variants_of_qrm_explain_its_claims() -> None:
    """The compared runs had no `plain`, so 23 runs explained nothing."""
    experiment = EXPERIMENTS["qrm"]
    cells = {case.cell for case in experiment.variant_cases(1)}
    assert {("plain", 5, "five"), ("qrm", 5, "five-1"), ("red", 32, "many-16")} <= cells
    settings = {setting for variant in experiment.variants for setting in variant.settings}
    there = experiment.settings_in_order
    assert all(fnmatch.filter(there, one) for one in settings), "a variant of a setting that is not there is never run"
    assert ("codel", 32, "one-32") in cells, "claims on the number of nodes have variants"
