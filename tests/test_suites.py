"""Suites: each criterion with an algorithm made to fail it, what is told and not told, and the command."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Command
from penstock import engine, report, worlds
from penstock.adversary import subject
from penstock.cli import app
from penstock.engine import ScenarioError
from penstock.mistake import MistakeError
from penstock.report.suite_page import ellipse, one_run
from penstock.scenario import Scenario
from penstock.suites import aqm_cases, bbr_draft, control_cases, judging, networks, results, rfc7928, rfc9743, tcp_eval
from penstock.suites.judging import Judged
from penstock.suites.kept import Kept, settled_after
from penstock.suites.ledbat import Ledbat
from penstock.suites.model import Suite
from penstock.suites.running import Wanted
from typer.main import get_command

BAD = Path(__file__).parent / "suites"
TWITCHY = "red min_threshold=1p max_threshold=3p max_probability=0.5 weight=0.9"


def own(kind: str, name: str) -> str:
    return f"{BAD / f'bad_{kind}.py'}:{name}"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suites")


def beyond(suite: Suite, out: Path, algorithm: str, only: Sequence[str] = ()) -> set[str]:
    """The criteria that tell that an algorithm is beyond their limit, with one seed in the quick form."""
    found = judging.judge(suite, [algorithm], out / suite.name, quick=True, seeds=1, only=only)
    return {one.criterion.id for one in found.findings if one.told[algorithm].verdict == suite.words[1]}


# An algorithm, the cases that it runs (none: all), and the criteria that it must fail.
FAILS_7928 = {
    "droptail": (
        "droptail",
        (),
        "lbe.delay sizes.fair friendly.delay windows.delay aggressive.delay unresponsive.delay mild.delay medium.delay "
        "heavy.delay varying.delay capacity-slow.delay capacity-fast.delay mix.delay both-ways.delay in-a-row.delay",
    ),
    "twitchy": (
        TWITCHY,
        (),
        "friendly.goodput windows.goodput beside-udp.tcp bursts-I.drops bursts-II.web bursts-III.drops "
        "bursts-IV.web mild.goodput medium.goodput heavy.goodput varying.goodput capacity-slow.goodput "
        "capacity-fast.goodput mix.goodput mix.call mix.web mix.video both-ways.goodput in-a-row.through",
    ),
    "naps": (
        own("aqms", "Naps"),
        ("mild", "medium", "heavy", "varying", "capacity-slow"),
        "mild.spread medium.spread heavy.spread varying.settles capacity-slow.settles",
    ),
    "grudge": (own("aqms", "Grudge"), ("rtt-20", "rtt-500"), "rtt-20.share rtt-500.share"),
    "forgiving": (own("aqms", "Forgiving"), ("ecn", "medium"), "ecn.delay ecn.drops"),
    "touchy": (own("aqms", "Touchy"), ("medium",), "parameters.delay parameters.goodput"),
    "moody": (own("aqms", "Moody"), ("scheduled",), "scheduled.fair"),
    "crowded": (own("aqms", "Crowded"), ("scheduled", "alone"), "scheduled.call"),
    "lossy": (own("aqms", "Lossy"), ("aggressive", "lbe"), "aggressive.goodput lbe.goodput"),
}


@pytest.mark.parametrize("name", FAILS_7928)
def test_an_aqm_made_to_fail_is_beyond_the_limit(name: str, out: Path) -> None:
    algorithm, only, expected = FAILS_7928[name]
    assert set(expected.split()) - beyond(rfc7928.SUITE, out, algorithm, only) == set()


def test_each_criterion_of_rfc7928_has_an_aqm_that_fails_it() -> None:
    failed = {one for _, _, expected in FAILS_7928.values() for one in expected.split()}
    alike = {f"rtt-{other}.share" for other in aqm_cases.ROUND_TRIPS}  # the same code with other round trips
    wanted = {one.id for one in rfc7928.criteria(subject.find("codel")) if one.limit}
    assert wanted - alike == failed - alike
    assert len(failed & alike) == 2


def test_a_good_aqm_meets_what_bad_ones_fail(out: Path) -> None:
    """CoDel with several flows: neither its delay nor its goodput is beyond a limit, and it absorbs bursts.

    Nineteen flows of Linux keep a full queue steadier than that of CoDel (7.3 ms against 4.5).
    """
    cases = ("mild", "medium", "heavy", "bursts-I", "bursts-III", "ecn", "sizes")
    assert beyond(rfc7928.SUITE, out, "codel", cases) <= {"heavy.spread"}


FAILS_9743 = {
    "bbr": (
        "bbr",
        "shallow-0.2 shallow-0.5 shallow-1 short pair-newreno-0.5 pair-cubic-0.5 "
        "real-time web-of-cubic queue-fq-codel onset path-10-50-0.25",
        "loss.shallow short.web harm.reno harm.cubic harm.delay harm.loss "
        "starvation.seconds real-time.video mixed.web queue-fq-codel.delay onset.drops tail.drops",
    ),
    "vegas": ("vegas", "swing", "swing.goodput"),
    "greedy": (
        own("controls", "Greedy"),
        "blackout deaf pair-newreno-4 radio web-of-ours real-time",
        "mixed.drops real-time.call collapse.blackout starvation.feedback harm.reno starvation.seconds wireless.delay",
    ),
    "full": (own("controls", "Full"), "other-path", "path.delay"),
    "full and deep": (own("controls", "Full segments=1740"), "deep", "bufferbloat.delay"),
    "one segment": (own("controls", "Full segments=1"), "thin", "thin.completion"),
    "first come": (own("controls", "FirstCome"), "late same-2 same-8 same-32", "fairness.late fairness.jain"),
    "resigned": (
        own("controls", "Resigned"),
        "onset outage incast",
        "onset.recovers outage.recovers incast.completion",
    ),
    "blind": (
        own("controls", "Blind"),
        "queue-pie queue-pie-drops queue-dualpi2",
        "ecn.reaction queue-pie.delay queue-dualpi2.delay",
    ),
    "never leaves start-up": (
        own("controls", "NeverLeaves"),
        "shallow-0.5 loss-30 breaker",
        "loss.shallow collapse.loss breaker.drops",
    ),
    "timid": (
        own("controls", "Timid"),
        "short loss-0.001 loss-0.01 reordering radio path-10-50-1 queue-fq-codel queue-pie queue-dualpi2 other-path "
        "cheated far",
        "cheated.share wireless.hundredth short.long wireless.thousandth reordering.goodput wireless.goodput tail.use "
        "queue-fq-codel.goodput queue-pie.goodput queue-dualpi2.goodput path.goodput far.completion",
    ),
}


@pytest.mark.parametrize("name", FAILS_9743)
def test_a_control_made_to_fail_is_worse(name: str, out: Path) -> None:
    algorithm, only, expected = FAILS_9743[name]
    assert set(expected.split()) - beyond(rfc9743.SUITE, out, algorithm, only.split()) == set()


def test_each_criterion_of_rfc9743_has_a_control_that_fails_it() -> None:
    failed = {one for _, _, expected in FAILS_9743.values() for one in expected.split()}
    assert {one.id for one in rfc9743.criteria(subject.find("cubic"))} == failed


def test_reno_and_cubic_are_never_worse_than_themselves(out: Path) -> None:
    """They set the limits; BBR version 1, which is always beside them, is told by its version."""
    only = ("pair-newreno-0.5", "pair-cubic-0.5", "shallow-0.5", "deep")
    for name in control_cases.STANDARD:
        assert not beyond(rfc9743.SUITE, out, name, only)
    assert rfc9743.SUITE.labels["bbr"] == "bbr (version 1)"


def test_the_scenarios_of_the_evaluation_suite_carry_their_loads(out: Path) -> None:
    """The use of a link follows the offered load, below an overload; and nine paths share it."""
    only = ("access-60", "access-85", "dial-up-110")
    found = judging.judge(tcp_eval.SUITE, ["cubic"], out / "tcp-eval", quick=True, seeds=1, only=only)
    used = {one.criterion.id: one.told["cubic"] for one in found.findings}
    assert {told.verdict for told in used.values()} == {"measured"}
    assert 45 < (used["access-60.use"].value or 0) < 75
    assert (used["access-60.use"].value or 0) < (used["access-85.use"].value or 0) < 100
    assert (used["dial-up-110.drops"].value or 0) > 1
    assert {len(case.roles) for case in tcp_eval.cases(quick=False)} == {9}


def test_round_trips_of_the_evaluation_suite_are_those_of_its_table() -> None:
    case = next(case for case in tcp_eval.cases(quick=True) if case.name == "access-60")
    one_way = [float(flow["access_delay"].removesuffix("us")) / 1e3 for flow in case.tables["flows"]]
    assert sorted(round(2 * ms) for ms in one_way) == [4, 28, 54, 74, 98, 124, 150, 174, 200]  # table 1 of the draft


def test_what_does_not_suit_an_algorithm_is_not_judged_with_a_reason(out: Path) -> None:
    found = judging.judge(rfc7928.SUITE, ["fq-codel", "weir", "droptail"], out / "rfc7928", quick=True, seeds=1,
                          only=("scheduled", "alone", "ecn", "medium"))  # fmt: skip
    told = {one.criterion.id: one.told for one in found.findings}
    assert told["scheduled.call"]["fq-codel"].verdict == "not judged"
    assert "scheduler of its own" in told["scheduled.call"]["fq-codel"].reason
    assert "marks nothing" in told["ecn.drops"]["droptail"].reason
    assert (told["ecn.drops"]["weir"].verdict, told["ecn.drops"]["weir"].value) == ("met", 0), "nothing is to be marked"
    assert "no number among its parameters" in told["parameters.delay"]["droptail"].reason
    assert "friendly.delay" not in told  # its case was not run


def test_a_run_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    bad = tmp_path / "broken.py"
    bad.write_text(
        "import penstock\n\n\nclass Broken(penstock.Aqm):\n    def on_enqueue(self, packet):\n"
        "        if packet.now_s > 40:\n            raise ValueError('after 40 s')\n"
    )
    name = f"{bad}:Broken"
    found = judging.judge(rfc7928.SUITE, [name], tmp_path / "out", quick=True, seeds=1, only=("mild", "rtt-20"))
    told = {one.criterion.id: one.told[name] for one in found.findings}
    assert told["rtt-20.share"].verdict == "not judged"
    assert "after 40 s" in told["rtt-20.share"].reason
    assert told["mild.delay"].verdict == "not met"  # it does nothing, and this case lasts 30 s


def test_variants_double_and_halve_each_number() -> None:
    found = aqm_cases.variants(subject.find("codel target=10ms"))
    changed = {tuple(sorted(one.given.items())) for one in found.values()}
    assert (("target", "5ms"),) in changed
    assert (("target", "20ms"),) in changed
    assert (("interval", "200ms"), ("target", "10ms")) in changed
    own_ones = aqm_cases.variants(subject.find(own("aqms", "Touchy")))
    assert {one.given["scale"] for one in own_ones.values()} == {1.0, 4.0}


def test_the_outline_of_an_ellipse_is_that_of_the_gaussian() -> None:
    """Of a straight line the outline is the line; of a circle its ends are one standard deviation from the middle."""
    xs, low, high = ellipse([(0, 0), (2, 4)]) or ([], [], [])
    assert (xs[0], xs[-1]) == pytest.approx((0, 2))
    assert low == pytest.approx(high)
    assert (low[0], low[-1]) == pytest.approx((0, 4))
    circle = [(math.cos(n * math.pi / 4), 3 + math.sin(n * math.pi / 4)) for n in range(8)]
    xs, low, high = ellipse(circle) or ([], [], [])
    assert (xs[0], xs[-1]) == pytest.approx((-math.sqrt(0.5), math.sqrt(0.5)))
    assert max(high) == pytest.approx(3 + math.sqrt(0.5), abs=0.01)
    assert ellipse([(1, 1), (1, 2)]) is None


def test_ledbat_follows_its_equations() -> None:
    """RFC 6817 §2.4.2: a segment more in a round trip without a queue, none at the target, one less at twice that."""
    grown = []
    for queue_s in (0.0, 0.1, 0.2):
        control = Ledbat.__new__(Ledbat)
        control.mss = 1000
        control.__init__()  # type: ignore[misc]
        control.cwnd = control.ssthresh = 20_000.0
        for _ in range(20):
            ack = SimpleNamespace(rtt_s=0.1 + queue_s, min_rtt_s=0.1, acked=1000, in_flight=20_000)
            control.on_ack(ack)
        grown.append(control.cwnd - 20_000)
    assert grown[0] == pytest.approx(1000, rel=0.03)
    assert grown[1] == pytest.approx(0)
    assert grown[2] == pytest.approx(-1000, rel=0.03)
    control.on_loss(SimpleNamespace())
    assert control.ssthresh == pytest.approx(control.cwnd / 2)
    control.cwnd = 3000.0
    control.on_loss(SimpleNamespace())
    assert control.ssthresh == 2000


def test_ledbat_yields_to_reno_before_drop_tail_and_not_before_codel(out: Path) -> None:
    """A buffer of twice the target would be needed to yield all; a queue below the target makes it an equal."""
    found = judging.judge(rfc7928.SUITE, ["codel"], out / "rfc7928", quick=True, seeds=1, only=("beside-lbe",))
    (share,) = (one.told for one in found.findings if one.criterion.id == "beside-lbe.share")
    assert (share["droptail"].value or 0) + 5 < (share["codel"].value or 0)


def test_a_delay_settles_after_its_peak() -> None:
    assert settled_after([1, 9, 30, 20, 4, 5, 4], 0, 7, 8.0) == 4
    assert settled_after([1, None, 1, 1], 0, 4, 8.0) == 0
    assert settled_after([9, 9, 9, 9], 0, 4, 8.0) == 4


ROLES: Any = [["bulk", 1]]  # as they come back from JSON


def test_what_is_kept_of_a_run_survives_its_record() -> None:
    run = Kept({"links": [], "flows": [], "duration_s": 1.0}, ROLES, [1], [None], {"bulk": [2.0]}, 0.5)
    assert Kept.unpacked(run.packed()) == run


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator in place of real hosts. It refuses what has a control in Python, and its machine is always busy."""

    def check(scenario: Scenario, _seed: int, on: str) -> None:
        if "ledbat.py" in scenario.text or "pi2" in scenario.text:
            raise ScenarioError(f"error: --on {on}: this kernel has no such thing\n --> suite.toml:3:4")

    def run(scenario: Scenario, seed: int, on: str, **_: Any) -> Any:
        assert on == "wire"
        if "pie" in scenario.text:
            raise MistakeError("--on wire: the emulator ended")
        found = engine.simulate(scenario, seed)
        return replace(found, wire={"disturbed_by": ["lateness"]})

    monkeypatch.setattr(worlds, "require", lambda _on: None)
    monkeypatch.setattr(worlds, "check", check)
    monkeypatch.setattr(worlds, "run", run)


def on_wire(out: Path, algorithm: str, *only: str) -> Judged:
    return judging.judge(rfc7928.SUITE, [algorithm], out, quick=True, seeds=1, only=only, on="wire")


@pytest.mark.usefixtures("wire")
def test_what_a_world_cannot_measure_is_told_and_not_failed(tmp_path: Path) -> None:
    judged = on_wire(tmp_path, "codel", "lbe", "aggressive", "medium")
    told = {one.criterion.id: one.told for one in judged.findings}
    here = "not measured on this world"
    assert (told["lbe.delay"]["codel"].verdict, told["lbe.delay"]["codel"].reason) == (
        here,
        "this kernel has no such thing",
    )
    assert told["cost.time"]["droptail"].verdict == here
    assert {told[f"{case}.delay"]["codel"].verdict for case in ("aggressive", "medium")} == {"met"}
    assert judged.counted("codel")[here] == 3  # delay and goodput of `lbe`, and the cost
    assert {(one.case, one.algorithm) for one in judged.disturbed} >= {("medium", "codel"), ("aggressive", "droptail")}
    stored = results.write(judged)
    assert stored["on"] == "wire"
    assert {"case": "medium", "algorithm": "codel", "seed": 1, "by": ["lateness"]} in stored["disturbed"]
    page = report.write_suite(tmp_path).read_text()
    assert here in page
    assert "--on wire" in page


@pytest.mark.usefixtures("wire")
def test_worlds_keep_their_runs_apart_and_a_failure_beside_a_kernel_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated = judging.judge(rfc7928.SUITE, ["pie"], tmp_path, quick=True, seeds=1, only=("medium",))
    assert simulated.on == "sim"
    assert simulated.disturbed == []
    failed = on_wire(tmp_path, "pie", "medium")
    reasons = {one.told["pie"].reason for one in failed.findings if one.criterion.id == "medium.delay"}
    assert reasons == {"--on wire: the emulator ended"}
    monkeypatch.setattr(worlds, "run", lambda scenario, seed, _on, **_: engine.simulate(scenario, seed))
    again = on_wire(tmp_path, "pie", "medium")
    assert {one.told["pie"].verdict for one in again.findings if one.criterion.id == "medium.delay"} == {"met"}


@pytest.mark.usefixtures("wire")
def test_an_algorithm_or_a_suite_that_a_world_cannot_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no such thing"):
        on_wire(tmp_path, "pi2", "medium")
    with pytest.raises(MistakeError, match="--on wire: suite bbr-draft: it reads the state of the control"):
        judging.judge(bbr_draft.SUITE, ["bbr3"], tmp_path, quick=True, on="wire")


def test_limits_are_packets_of_1500_bytes_where_queues_are_those_of_a_kernel() -> None:
    given = {
        "limit": "125000B",
        "links": [{"reverse_limit": "100B", "limit": "7p", "rate": "9B"}],
        "memory_limit": "1B",
    }
    told = {"limit": "83p", "links": [{"reverse_limit": "2p", "limit": "7p", "rate": "9B"}], "memory_limit": "1B"}
    assert networks.in_packets(given) == told
    (case,) = (one for one in rfc7928.SUITE.cases(True) if one.name == "medium")
    texts = {on: Wanted.of(case, "codel", subject.find("codel"), on).scenario.text for on in ("wire", "tc", "jar-tc")}
    assert 'limit = "125000B"' in texts["wire"]
    assert all('limit = "83p"' in texts[on] for on in ("tc", "jar-tc"))


def test_the_command_writes_results_a_page_and_json(penstock: Command, tmp_path: Path) -> None:
    words = ("suite", "tcp-eval", "vegas", "--quick", "--seeds", "1", "--out", "found", "--json")
    done = penstock(*words)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    stored = json.loads((tmp_path / "found" / "suite.json").read_text())
    assert {key: value for key, value in told.items() if key != "path"} == stored
    page = (tmp_path / "found" / "report.html").read_text()
    for word in ("vegas", "newreno", "Not judged", "wireless LAN", "geostationary satellite", "Delay and goodput"):
        assert word in page
    assert report.remake(tmp_path / "found").read_text() == page
    shown = penstock(*words[:-1])
    assert "not judged" in shown.stdout
    assert "15 of" not in shown.stderr
    assert "runs are reused" in shown.stderr


def test_the_page_tells_verdicts(tmp_path: Path) -> None:
    found: Judged = judging.judge(rfc7928.SUITE, ["codel"], tmp_path, quick=True, only=("mild",))
    results.write(found)
    page = report.write_suite(tmp_path).read_text()
    assert "Penstock&#39;s" in page or "Penstock's" in page  # whose limits they are
    assert "packet loss synchronization" in page
    assert "droptail: deviation" in page


def test_seeds_without_influence_are_told_and_are_one_point(tmp_path: Path) -> None:
    """One stream of datagrams leaves nothing to chance, four TCP flows begin when the seed says."""
    found = judging.judge(rfc7928.SUITE, ["codel"], tmp_path, quick=True, seeds=3, only=("mild", "unresponsive"))
    assert {(one.case, one.algorithm) for one in found.one_run} == {
        ("unresponsive", name) for name in ("codel", "droptail")
    }
    assert {len(one.points) for one in found.ellipses if one.case == "mild"} == {3}
    assert {len(one.points) for one in found.ellipses if one.case == "unresponsive"} <= {1}
    results.write(found)
    assert "Nothing is left to chance in unresponsive" in report.write_suite(tmp_path).read_text()
    assert one_run([{"case": f"c{n}"} for n in range(10)]).endswith("c7 and 2 more: there all seeds are one run")


@pytest.mark.parametrize(
    ("name", "algorithm", "told"),
    [
        ("rfc7928", "cubic", "is a congestion control; `suite rfc7928` judges a discipline"),
        ("rfc9743", "codel", "is a discipline; `suite rfc9743` judges a congestion control"),
        ("rfc7928", "codle", "did you mean codel?"),
        ("rfc7928", "codel target", "write key=value"),
    ],
)
def test_an_algorithm_that_cannot_be_judged_is_refused(name: str, algorithm: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(MistakeError, match=told.replace("?", r"\?")):
        judging.judge(results.suite(name), [algorithm], tmp_path)


def test_a_misspelt_parameter_is_refused_at_once(penstock: Command) -> None:
    done = penstock("suite", "rfc7928", "codel targt=5ms", "--quick")
    assert done.returncode == 2
    assert "target" in done.stderr


def test_certify_is_a_hidden_name_of_rfc9743() -> None:
    commands = get_command(app).commands["suite"].commands  # type: ignore[attr-defined]
    assert commands["certify"].hidden
    assert not commands["rfc9743"].hidden
    assert [one.opts for one in commands["certify"].params] == [one.opts for one in commands["rfc9743"].params]


def test_names_of_suites_are_guessed() -> None:
    with pytest.raises(MistakeError, match=r"did you mean rfc7928\?"):
        results.suite("rfc792")


# Forms of BBR version 3 made to break a case of the draft, at one path.
FAILS_DRAFT = {
    "never leaves start-up": (
        "bbr3 full_bw_rounds=1000000",
        "plateau drain up-plateau down",
    ),
    "drains slowly": ("bbr3 drain_pacing_gain=0.8", "drain"),
    "decelerates less": ("bbr3 down_pacing_gain=0.97", "down"),
    "no probe of the round trip time": ("bbr3 probe_rtt_interval=1h", "probe-rtt startup-probe-rtt"),
    "a short probe of it": ("bbr3 probe_rtt_time=1ms", "probe-rtt"),
    "a small window": ("bbr3 cwnd_gain=1", "startup-aggregation"),
    "no limits after losses": ("bbr3 beta=0.999 loss_threshold=0.99", "policer"),
}
_AT = "10M-30ms"


def draft(out: Path, algorithm: str, names: Sequence[str]) -> dict[str, Any]:
    """What the cases of the draft tell of a form of BBR at one path, by name."""
    only = [f"{name}/{_AT}" for name in names]
    found = judging.judge(bbr_draft.SUITE, [algorithm], out / "bbr-draft", quick=True, only=only)
    return {one.criterion.id: one.told[algorithm] for one in found.findings}


@pytest.mark.parametrize("name", FAILS_DRAFT)
def test_a_broken_form_of_bbr_breaks_a_case_of_the_draft(name: str, out: Path) -> None:
    algorithm, cases = FAILS_DRAFT[name]
    told = draft(out, algorithm, cases.split())
    assert told
    assert {one: told[one].verdict for one in told} == dict.fromkeys(told, "does not hold")
    assert all(_AT in one.reason for one in told.values())
    assert set(told) == set(cases.split())


def test_bbr3_keeps_the_cases_that_broken_forms_break(out: Path) -> None:
    names = {one for _, cases in FAILS_DRAFT.values() for one in cases.split()}
    assert {one.verdict for one in draft(out, "bbr3", sorted(names)).values()} == {"holds"}


def test_a_control_without_the_variables_of_bbr_is_not_judged(out: Path) -> None:
    told = draft(out, "cubic", ["plateau"])["plateau"]
    assert (told.verdict, told.reason) == ("not judged", "its state has none of BBR's variables")


def test_a_case_of_the_draft_leaves_a_trace_as_qlog(out: Path, tmp_path: Path) -> None:
    judging.judge(bbr_draft.traced(tmp_path), ["bbr3"], out / "traced", quick=True, only=[f"down/{_AT}"])
    text = (tmp_path / f"down-{_AT}-bbr3-1.sqlog").read_text(encoding="utf-8")
    records = [json.loads(one) for one in text.split("\x1e")[1:]]  # RFC 7464: each begins with RS and ends with LF
    assert text.startswith("\x1e")
    assert text.count("\n") == len(records)
    header, *events = records
    assert header["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    assert header["serialization_format"] == "application/qlog+json-seq"
    assert header["trace"]["common_fields"]["reference_time"] == {"clock_type": "monotonic", "epoch": "unknown"}
    times = [one["time"] for one in events]
    assert times == sorted(times)
    states = [one["data"]["new"] for one in events if one["name"] == "quic:congestion_state_updated"]
    assert states[:3] == ["Startup", "Drain", "Cruise"]
    assert states[-2:] == ["Down", "Cruise"]
    metrics = [one["data"] for one in events if one["name"] == "quic:recovery_metrics_updated"]
    last = metrics[-1]
    # A link of 10 Mbit/s and 30 ms: the payload is 1448 of 1500 bytes.
    assert last["min_rtt"] == pytest.approx(30, rel=0.05)
    assert last["pacing_rate"] == pytest.approx(0.99 * 10e6 * 1448 / 1500, rel=0.02)
    assert last["congestion_window"] == pytest.approx(2 * 10e6 / 8 * 0.03 * 1448 / 1500, rel=0.2)
