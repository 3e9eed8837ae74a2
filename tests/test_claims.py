"""Verdicts follow from numbers: each test makes results by hand and knows what they must mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from made_up import Values, evidence
from penstock import marked
from penstock.claims import Cause, Entry, Kind, Verdict, counted, ledger, page
from penstock.claims.changes import RULES, RUNS, baseline, changed
from penstock.claims.ledger import Comparison, claims, judge
from penstock.claims.rows import Finding, Standing
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
        # Those of sharing are about what the documents of the controls say.
        assert claim.document in ("000", "001", "002", "003", "004") or claim.needs == ("friendliness",)
        assert claim.claim
        assert claim.paper
        assert set(claim.needs) <= EXPERIMENTS.keys()


def test_the_page_names_the_simulator_of_each_document() -> None:
    assert all(experiment.simulator for experiment in EXPERIMENTS.values())
    line = next(line for line in page.body(ledger({"pink-dsl": evidence()})).splitlines() if "- pink-dsl: " in line)
    assert line.endswith("; the document's: ns-3.24")


def test_without_results_nothing_is_judged() -> None:
    assert {line.verdict for line in ledger({}) if line.kind != Kind.SCOPE} == {"not-run"}
    line = next(line for line in ledger({}) if line.id == "pink-dsl.pink-drops-nothing")
    assert line.reason == "no results: run `penstock reproduce pink-dsl`"


def test_the_page_has_every_claim_under_its_document() -> None:
    entries = ledger({"pink-dsl": evidence()})
    text = page.body(entries)
    lines = [line for line in text.splitlines() if line.startswith(tuple(f"| {v}" for v in (*Verdict, *Standing)))]
    lines = [line for line in lines if line.count(" | ") == len(page.HEADINGS) - 1]
    assert len(lines) == len(entries), "no cell breaks its row"
    assert all(f"`{entry.id}`" in text for entry in entries)
    assert [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")] == [
        *page.TITLES.values(),
        *(title for title, _ in page.BESIDE.values()),
        "What the words mean",
        "Changed since the ledger of one seed",
        "What was run",
    ]


def test_the_page_is_written_again_from_its_rows(tmp_path: Path) -> None:
    entries = ledger({"pink-dsl": evidence(values=falling, variants={"rto-200ms": falling})})
    written = tmp_path / "ledger.md"
    written.write_text("\n".join(marked.marks("table")))
    page.write(written, entries)
    again = page.read(page.data_of(written))
    assert [entry.to_json() for entry in again] == [entry.to_json() for entry in entries]
    assert page.body(again) == "\n".join(marked.between(written, "table"))


def test_the_first_lines_count_what_stands_and_why_the_rest_does_not() -> None:
    about = ("0", "000", "1", "Figure 1", "text", "1", "2")
    entries = [
        Entry(*about, "holds", "", "", standing="stands"),
        Entry(*about, "holds", "", "", standing="conditional", condition="not with tcp.sack = true"),
        Entry(*about, "holds", "", "", standing="not searched"),
        Entry(*about, "fails", "", "", cause=Cause.PAPER.value, because="1 + 1 = 2"),
        Entry(*about, "partly", "", "", cause=Cause.UNEXPLAINED.value, because="no key"),
        Entry(*about, "holds", "", "", kind=Kind.OTHER.value, standing="stands"),
        Entry(*about, "holds", "", "", kind=Kind.OWN.value),
        Entry(*about, "out-of-scope", "", "", kind=Kind.SCOPE.value),
    ]
    assert counted(entries) == "3 holds, 1 partly, 1 fails"
    assert page.first_lines(entries, frozenset("0")) == [
        "- 5 claims of the documents: 3 holds, 1 partly, 1 fails.",
        "- Of those that hold, 1 stand their adversary, 1 are conditional (a run within the document's own set-up "
        "contradicts them), 1 were not searched.",
        "- Of those that do not hold: 1 paper against itself, 1 unexplained.",
        "- 5 have a [verdict on a Linux kernel](ledger-linux.md) as well.",
        "- Not counted: 1 claims of other papers and RFCs, 1 findings of our own, 0 checks of set-ups, 1 rows out of "
        "scope.",
    ]
    line = next(line for line in page.body(entries).splitlines() if line.startswith("| 000 |"))
    assert line.endswith("| 5 | 1 | 1 | 1 | 2 | 1 | 0 | 0 | 0 | 1 |")


def test_every_row_of_the_ledger_of_one_seed_is_still_there() -> None:
    old = baseline()
    assert len(old) == 333
    assert old.keys() <= {claim.id for claim in claims()}
    assert {v: list(old.values()).count(v) for v in ("holds", "partly", "fails")} == {
        "holds": 199,
        "partly": 82,
        "fails": 52,
    }
    named = [name for names in RULES.values() for name in names]
    assert len(named) == len(set(named)), "one thing changed a row"
    assert set(named) <= old.keys()


def test_what_changed_a_row_is_its_check_or_the_runs() -> None:
    def row(name: str, verdict: str, kind: Kind = Kind.CLAIM) -> Entry:
        return Entry(name, "000", "1", "", "", "", "", verdict, "", "", kind.value)

    rows = [
        row("pink-dsl.pink-fairness-approaches-one", "partly"),
        row("pink-dsl.pink-drops-nothing", "holds"),
        row("pink-sat.pink-rtt-at-base", "partly"),
        row("pink-dsl.smallest-rtt", "holds", Kind.SET_UP),
        row("pink-dsl.stated-maximum", "not-run"),
    ]
    assert list(changed(rows, {"pink-sat.pink-rtt-at-base": "partly"})) == [
        ("pink-dsl.pink-fairness-approaches-one", "holds", "partly", "what stays where it is does not rise"),
        ("pink-sat.pink-rtt-at-base", "holds", "partly", RUNS),
        ("pink-dsl.smallest-rtt", "holds", "holds", "a check of our set-up: not counted"),
    ]


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


def sum_of(name: str) -> Finding:
    """What a claim that is arithmetic says, with runs that it does not read."""
    claim = next(claim for claim in claims() if claim.id == name)
    run = replace(evidence(), experiment=EXPERIMENTS[claim.needs[0]], part=True)
    return claim.check({claim.needs[0]: run})


def test_arithmetic_of_the_documents_is_computed() -> None:
    indices = sum_of("minstrel-pie-testbed.indices-are-those-of-the-throughputs")
    assert indices.verdict == Verdict.FAILS
    assert [part.text.rsplit(" ", 1)[1] for part in indices.parts] == ["0.2456", "0.2410", "0.2803", "0.2801"]
    assert (
        "8 of 8 are, of which the probability is 5^-8 = 2.6e-06"
        in sum_of("modified-codel.counts-are-of-packets").reason
    )
    assert "96.0 ms at 2 Mbit/s, 91.6 ms at 2 x 2^20" in sum_of("c2ml.ninety-one-ms-are-of-binary-megabits").reason
    assert "with 1024 for 1000 kbit/s it is 146.0" in sum_of("pink-sat.stated-maximum").reason
    assert "a link of 1 Mbit/s more has: 4.75" in sum_of("pink-sat.stated-goodput-limit").reason


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


def falling(_aqm: str, flows: int) -> Values:
    """Crowds are less fair."""
    return {"jain": 0.7 if flows < 64 else 0.5}


def rising(_aqm: str, flows: int) -> Values:
    """Crowds are fairer."""
    return {"jain": 0.5 if flows < 64 else 0.8}


def only_codel_rises(aqm: str, flows: int) -> Values:
    """Crowds are fairer with CoDel alone."""
    return (rising if aqm == "codel" else falling)(aqm, flows)


CROWDS = "pink-dsl.crowds-are-fairer"
AS_PUBLISHED = "at 4 and 64 flows, 1 seed: as published 0 of 3"


def test_a_variant_that_makes_a_claim_hold_is_the_reason_and_not_the_verdict() -> None:
    run = evidence(values=falling, variants={"rto-200ms": rising, "ack-pairs": falling})
    line = entry(CROWDS, run)
    assert line.verdict == "fails"
    assert line.measured == "; ".join(f"{aqm} 0.70 at 4, 0.50 at 64 flows" for aqm in ("droptail", "green", "codel"))
    assert AS_PUBLISHED in line.reason
    held = "; ".join(f"{aqm} 0.50 at 4, 0.80 at 64 flows" for aqm in ("droptail", "green", "codel"))
    assert f"with a timeout floor of 200 ms instead of 1 s it holds ({held})" in line.reason
    assert line.reason.endswith("same numbers with ack-pairs")


def test_a_variant_that_helps_is_told_from_one_that_decides() -> None:
    line = entry(CROWDS, evidence(values=falling, variants={"rto-200ms": only_codel_rises}))
    assert line.verdict == "fails"
    assert "better but still not with a timeout floor of 200 ms instead of 1 s: 1 of 3 (" in line.reason
    assert "it holds" not in line.reason


def test_variants_that_explain_nothing_are_listed_with_their_numbers() -> None:
    def lower(_aqm: str, flows: int) -> Values:
        return {"jain": 0.6 if flows < 64 else 0.4}

    line = entry(CROWDS, evidence(values=falling, variants={"rto-200ms": lower}))
    assert "the variants tried do not change it; no better with rto-200ms 0 of 3 (droptail 0.60 at 4," in line.reason


def test_a_claim_that_holds_where_variants_are_run_says_so() -> None:
    def sags_between(_aqm: str, flows: int) -> Values:
        return {"rtt": {4: 110, 16: 105, 64: 150}[flows]}

    def shrinks(_aqm: str, flows: int) -> Values:
        return {"rtt": 150 - flows}

    run = evidence(values=sags_between, counts=(4, 16, 64), variants={"ack-pairs": shrinks})
    line = entry("pink-dsl.codel-rtt-rises", run)
    assert line.verdict == "partly"
    expected = "at 4 and 64 flows alone, where variants are run, it holds, though not with ack-pairs (0 of 3)"
    assert line.reason.endswith(expected)


def test_claims_that_hold_and_sums_are_not_tried_again() -> None:
    run = evidence("pink-sat", variants={"rto-200ms": lambda _a, _n: {"drops": 1}})
    assert entry("pink-sat.pink-drops-nothing", run).reason == "0 drops at 4 flows; 0 drops at 64 flows"
    assert entry("pink-sat.stated-maximum", run).reason.endswith("; a sum, which no run can change")


def test_disciplines_that_a_variant_cannot_touch_keep_their_runs() -> None:
    def published(aqm: str, _flows: int) -> Values:
        return {"goodput": {"pink": 9.3, "droptail": 9.4, "green": 7.0}.get(aqm, 9.0)}

    run = evidence(values=published, counts=(2, 4, 64), variants={"no-pink-margin": lambda _a, _n: {"goodput": 9.45}})
    varied = run.varied["no-pink-margin"]
    assert varied.counts() == [4, 64]
    assert [varied.value(aqm, 4, lambda s: float(s["goodput_1s_bps"]["p50"])) for aqm in ("droptail", "pink")] == [
        9.4e6,
        9.45e6,
    ]
    assert "with PINK's c = 1 instead of 0.95 it holds" in entry("pink-dsl.pink-goodput-highest", run).reason


def test_a_variant_cut_short_explains_nothing() -> None:
    whole = evidence(values=falling, variants={"rto-200ms": rising})
    short = replace(whole, variants=whole.variants[:-1])
    assert AS_PUBLISHED in entry(CROWDS, whole).reason
    assert "as published" not in entry(CROWDS, short).reason


def test_claims_on_two_experiments_need_the_variant_of_both() -> None:
    def wide(_aqm: str, _flows: int) -> Values:
        return {"goodput_p10": 2.0, "goodput": 3.0, "goodput_p90": 3.7}

    dsl = evidence(
        values=lambda _a, _n: {"goodput_p10": 1.0, "goodput_p90": 9.0}, variants={"rto-200ms": lambda _a, _n: {}}
    )
    name = "pink-sat.wider-on-satellite"
    assert "as published" not in entry(name, dsl, evidence("pink-sat", wide)).reason
    both = entry(name, dsl, evidence("pink-sat", wide, variants={"rto-200ms": wide}))
    # 8 of 9.5 Mbit/s on DSL against 1.7 of 3.8: narrower; nothing of 9.5 with the variant: wider, all 4 x 2.
    assert both.verdict == "fails"
    assert "with a timeout floor of 200 ms instead of 1 s it holds (wider in 8 of 8 pairs)" in both.reason


def test_the_missing_milliseconds_are_not_those_of_sending() -> None:
    # 1104 B at 4 Mbit/s and twice at 100 Mbit/s are 2.208 + 0.177 = 2.4 ms; 780 - (705.8 + 2.4) = 71.8.
    line = entry("pink-sat.smallest-rtt", evidence("pink-sat", lambda _a, _n: {"rtt_min": 706.1}))
    assert line.verdict == "fails"
    assert "of which sending is 2.4: it cannot make up for the 71.8 ms between" in line.reason


def test_the_median_over_seeds_counts() -> None:
    run = evidence(seeds=3)
    values = iter((1.0, 9.0, 2.0))
    assert run.value("pink", 4, lambda _: next(values)) == 2.0
