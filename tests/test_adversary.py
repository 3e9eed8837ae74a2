"""The adversary: sentences and quantities by hand, searches that repeat themselves, and weaknesses found again."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import penstock as lab
import pytest
from conftest import Command
from penstock.adversary import breaking, known, sentence, space, standing, subject
from penstock.adversary.breaking import Budget, Plan
from penstock.adversary.page import tables
from penstock.adversary.quantities import QUANTITIES, Run, values
from penstock.adversary.sentence import Judged
from penstock.adversary.shrink import SEEDS, Shrinker, in_words
from penstock.adversary.space import Settings, Space
from penstock.adversary.trials import Judge, Trial
from penstock.marked import between
from penstock.mistake import MistakeError
from penstock.units import base

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples" / "adversary").glob("*.toml"))

SPACE = """\
about = "a small one"

[scenario]
duration = "4s"
aqm = "SUBJECT"
topology = { kind = "dumbbell", rate = "2Mbit/s", delay = "10ms" }

[[scenario.flows]]
kind = "bulk"
count = 2

[vary]
"topology.rate" = { from = "1Mbit/s", to = "4Mbit/s", scale = "log" }
"flows.0.count" = { from = 1, to = 6 }
"tcp.cc" = ["newreno", "bbr"]
buffer = { from = 0.5, to = 4.0, scale = "log", default = 1.0 }

[[parts]]
name = "udp"
table = { kind = "cbr", rate = "500kbit/s" }
[parts.vary]
rate = { from = "100kbit/s", to = "4Mbit/s", scale = "log" }
"""


def small(algorithm: str = "codel") -> Space:
    """A space whose runs cost next to nothing."""
    return space.read(SPACE, "small.toml").of(subject.find(algorithm))


def plan(trials: int, out: Path | None = None, **more: Any) -> Plan:
    """A search for two goals."""
    searched = small()
    goals = tuple(standing.goals(["jain_long < 0.9", "unused"], "discipline", ("udp",)))
    return Plan(searched, goals, Budget(trials), out=out, **more)


# Sentences.


@pytest.mark.parametrize(
    ("text", "true", "margin"),
    [
        ("jain < 0.5", True, 0.25),  # (0.5 - 0.3) / (0.5 + 0.3)
        ("jain > 0.5", False, -0.25),
        ("not jain > 0.5", True, 0.25),
        ("jain < 0.5 and rtt_p90_ms > 30", False, -0.2),  # (20 - 30) / 50
        ("jain < 0.5 or rtt_p90_ms > 30", True, 0.25),
        ("0.1 < jain < 0.4", True, 1 / 7),  # the second is nearer: 0.1 / 0.7
        ("rtt_p90_ms / 2 - 4 > 2 * min(1, jain * 10)", True, 0.5),  # 6 and 2
        ("jain < 0.5 and events == 7", True, 0.25),  # a condition that is met does not limit
        ("jain < 0.5 and events == 8", False, -1 / 15),
        ("flows.mos < 3", False, -1.0),  # no such number
        ("jain < 0.5 and rtt_p90_ms / (events - 7) > 1", False, -1.0),
    ],
)
def test_a_sentence_is_true_by_its_margin(text: str, true: bool, margin: float) -> None:
    found = sentence.read(text).judge({"jain": 0.3, "rtt_p90_ms": 20.0, "events": 7.0, "flows.mos": None})
    assert found.true is true
    assert found.margin == pytest.approx(margin)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jian < 0.5", "did you mean jain?"),
        ("jain_lonk < 0.5", "did you mean jain_long?"),
        ("upd.goodput_bps < 1", "did you mean udp?"),
        ("udp.goodput_bsp < 1", "did you mean goodput_bps?"),
        ("jain", "write a comparison"),
        ("jain < 0.5 +", "cannot be read"),
        ("jain < '0.5'", "only numbers"),
        ("jain < True", "only numbers"),
        ("1 < 2", "names no measure"),
        ("__import__('os').system('true') < 1", "expressions have"),
        ("jain.__class__ < 1", "there is no measure 'jain.__class__'"),
        ("(lambda: 1)() < jain", "expressions have"),
        ("[jain][0] < 1", "expressions have"),
        ("jain ** 9999999999 < 1", "expressions have"),
        ("jain in (1, 2)", "comparisons are"),
        ("abs(jain, 1) < 1", "write min"),
        ("jain < 1" + " and jain < 1" * 200, "at most 1000 characters"),
        ("(" * 400 + "jain" + ")" * 400 + " < 1", "cannot be read"),
    ],
)
def test_what_is_no_sentence_is_refused(text: str, message: str) -> None:
    with pytest.raises(MistakeError, match=re.escape(message)):
        sentence.read(text, ("udp",))


def test_a_goal_is_a_property_or_a_sentence() -> None:
    assert [one.name for one in standing.goals(["delay"], "discipline", ())] == ["delay"]
    assert "bully" not in {one.name for one in standing.goals([], "discipline", ())}
    assert "bully" in {one.name for one in standing.goals([], "control", ())}
    with pytest.raises(MistakeError, match="did you mean starvation"):
        standing.goals(["starvaton"], "discipline", ())


# Quantities.


def column(kind: str, values: list[float]) -> tuple[str, bytes]:
    """A column of a table as the simulator returns it."""
    return kind, np.array(values, kind).tobytes()


def made_up(seconds: int = 10, **change: Any) -> Run:
    """Ten seconds of a link of 10 Mbit/s: two long flows, and a stream of 4 Mbit/s."""
    tree: dict[str, Any] = {
        "topology": {"rate": "10Mbit/s", "delay": "20ms", "access_delay": "5ms", "limit": "50kB"},
        "flows": [{"kind": "bulk", "count": 2}, {"kind": "cbr", "rate": "4Mbit/s"}],
    }
    flow = {"ecn_lost": 0, "start_s": 0.0, "rtt_ms": {"min": 50.5}}
    summary: dict[str, Any] = {
        "bottlenecks": [
            {
                "utilization": 0.9,
                "bytes_all": 11_000_000,
                "packets_all": 900,
                "drops_overflow": 90,
                "drops_aqm": 10,
                "queue_delay_ms": {"mean": 10.0, "p10": 1.0, "p50": 2.0, "p90": 3.0, "p99": 4.0, "max": 5.0},
                "queue_bytes": {"max": 50_000},
            }
        ],
        "flows": [
            {**flow, "id": 0, "goodput_bps": 4.5e6, "delivered_bytes": 5_625_000},
            {**flow, "id": 1, "goodput_bps": 0.3e6, "delivered_bytes": 375_000},
            {**flow, "id": 2, "goodput_bps": 3.8e6, "delivered_bytes": 4_750_000},
        ],
        "rtt_ms": {"min": 60.0},
        "jain": {"overall": 0.6},
    }
    for path, value in change.items():
        place: Any = {"tree": tree, "summary": summary}
        *above, last = path.split("__")
        for key in above:
            place = place[int(key) if key.isdigit() else key]
        place[last] = value
    ends = [float(end) for end in range(1, seconds + 1) for _ in range(3)]
    raw = {
        "flow_seconds": {
            "t_s": column("<f8", ends),
            "flow": column("<u4", [0, 1, 2] * seconds),
            "goodput_bps": column("<f8", [flow["goodput_bps"] for flow in summary["flows"]] * seconds),
        }
    }
    return Run(tree, ["subject", "udp"], summary, raw)


def of(run: Run, name: str) -> float | None:
    """One quantity."""
    return values(run, [name])[name]


def test_shares_are_those_of_max_min_fairness() -> None:
    # Of the payload of the link, a third is less than the stream has: each of the three flows has a third.
    payload = 10e6 * 1448 / 1500
    assert of(made_up(), "share_lowest") == pytest.approx(0.3e6 / (payload / 3))
    assert of(made_up(), "subject_share") == pytest.approx(4.8e6 / 2 / (payload / 3))
    assert of(made_up(), "others_share") is None
    # A stream that got 1 Mbit/s keeps it, and the long flows share the rest.
    rest = (payload - 1e6) / 2
    little = made_up(summary__flows__2__goodput_bps=1e6)
    assert of(little, "share_lowest") == pytest.approx(0.3e6 / rest)
    # Without window scaling, a flow of 60 ms and 10 ms of waiting cannot have more than 64 kB in 70 ms.
    flows = [
        {"kind": "bulk", "count": 1, "tcp": {"window_scaling": False}},
        {"kind": "bulk"},
        {"kind": "cbr", "rate": "0bit/s"},
    ]
    windows = made_up(tree__flows=flows, tree__topology__rate="100Mbit/s")
    windows.roles = ["subject", "late", "udp"]
    assert of(windows, "subject_share") == pytest.approx(4.5e6 / (65_535 * 8 / 0.070))


def test_who_leaves_and_who_comes_is_judged_by_the_time_it_was_there() -> None:
    flows = [{"kind": "bulk", "stop": "5s"}, {"kind": "bulk", "start": "5s"}, {"kind": "cbr", "rate": "1Mbit/s"}]
    run = made_up(tree__flows=flows, summary__flows__1__start_s=5.0, summary__flows__2__goodput_bps=1e6)
    run.roles = ["subject", "late", "udp"]
    payload = 10e6 * 1448 / 1500
    # In its time the first shares with nobody; what the table has of the other one counts as other traffic.
    assert of(run, "subject_share") == pytest.approx(4.5e6 / (payload - 1e6 - 0.3e6))
    # In the time of the second, what the first still gets is more than half of what is left: half is its own.
    assert of(run, "others_share") == pytest.approx(0.3e6 / ((payload - 1e6) / 2))


def test_conditions_of_a_run() -> None:
    run = made_up()
    assert of(run, "base_rtt_ms") == pytest.approx(60)  # 20 ms, and 5 ms on both sides, there and back
    assert of(run, "buffer_products") == pytest.approx(50_000 / (10e6 * 0.060 / 8))
    assert of(run, "unresponsive_bps") == 4e6
    assert of(run, "flows_long") == 2
    assert of(run, "needless_drops") == pytest.approx(0.1)
    # Of 40 Mbit/s on 10 Mbit/s three quarters must be dropped, and all that is dropped is a tenth.
    assert of(made_up(tree__flows__1__rate="40Mbit/s"), "needless_drops") == 0
    assert of(run, "udp.goodput_bps") == 3.8e6 and of(run, "flows.goodput_lowest_bps") == 0.3e6


@pytest.mark.parametrize(
    "change",
    [
        {"summary__bottlenecks__0__utilization": 1.01},
        {"summary__bottlenecks__0__queue_delay_ms__p50": 3.5},
        {"summary__bottlenecks__0__queue_bytes__max": 50_001},
        {"summary__bottlenecks__0__bytes_all": 10_749_999},
        {"summary__rtt_ms__min": 50.0},
        {"summary__jain__overall": 1.1},
        {"summary__flows__0__goodput_bps": 10.1e6},
    ],
)
def test_what_cannot_be_is_counted(change: dict[str, Any]) -> None:
    assert made_up().impossible() == []
    assert len(made_up(**change).impossible()) == 1


def test_seconds_without_anything_and_the_time_to_recover() -> None:
    text = """
duration = "10s"
topology = { kind = "dumbbell", rate = "4Mbit/s", delay = "5ms", limit = "20kB" }
aqm = "droptail"
flows = [{ kind = "bulk", stop = "4s" }, { kind = "bulk", start = "9500ms" }]
changes = [{ link = "bottleneck", at = "5s", rate = "1Mbit/s" }]
"""
    result = lab.run(text, seed=1)
    run = Run(tomllib.loads(text), ["subject", "late"], result.summary, result.raw_tables)
    assert run.rates == [(0.0, 4e6), (5.0, 1e6)]
    assert of(run, "stalled_s") == 0, "who has stopped, or has not begun, is not stalled"
    assert run.seconds[1] > 0.9 and max(run.seconds[5:9]) == 0
    assert of(run, "recovery_s") == pytest.approx(5.0), "from 5 s to the end"


# Spaces.


def test_settings_become_a_scenario() -> None:
    searched = small("codel target=10ms")
    tree = searched.tree({"topology.rate": "4Mbit/s", "buffer": 2.0, "udp": True, "udp.rate": "1Mbit/s"})
    assert tree["aqm"] == {"name": "codel", "target": "10ms"}
    assert tree["topology"]["limit"] == "20kB"  # 2 * 4 Mbit/s * 20 ms
    assert tree["flows"][1] == {"kind": "cbr", "rate": "1Mbit/s"}
    assert searched.roles({"udp": True}) == ["subject", "udp"]
    assert searched.tree({})["topology"]["limit"] == "5kB"
    assert len(searched.tree({})["flows"]) == 1
    assert searched.normal({"udp.rate": "1Mbit/s", "tcp.cc": "bbr", "flows.0.count": 2}) == {"tcp.cc": "bbr"}


def test_ranges_have_round_values_and_places() -> None:
    rate = small().gene("topology.rate").values
    assert [rate.at(place) for place in (0, 0.25, 0.5, 1)] == ["1Mbit/s", "1.4Mbit/s", "2Mbit/s", "4Mbit/s"]
    assert rate.place("2Mbit/s") == pytest.approx(0.5)
    assert rate.place("900kbit/s") == 0
    assert small().gene("flows.0.count").values.at(0.5) in (3, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[vary]", "[varry]"), "did you mean vary"),
        (('scale = "log" }\n"flows', 'scale = "lgo" }\n"flows'), "did you mean log"),
        (('to = "4Mbit/s", scale = "log" }\n"flows', 'to = "4s", scale = "log" }\n"flows'), "no range of numbers"),
        ((", default = 1.0", ""), "needs a default"),
        (('name = "udp"', 'name = "u.dp"'), "without a dot"),
        (("[[parts]]", '[[parts]]\nto = "flow"'), "did you mean flows"),
        (('about = "a small one"', 'kind = "control"'), "the space is one of a control"),
        (("[[scenario.flows]]", "[[scenario.flow]]"), "[[scenario.flows]]"),
    ],
)
def test_a_wrong_space_is_explained(change: tuple[str, str], message: str) -> None:
    with pytest.raises(MistakeError, match=re.escape(message)):
        space.read(SPACE.replace(*change), "small.toml").of(subject.find("codel"))


@pytest.mark.parametrize("kind", ["discipline", "control"])
def test_every_end_of_the_spaces_of_this_release_is_a_scenario(kind: str) -> None:
    searched = space.standard(kind).of(subject.find("pie" if kind == "discipline" else "bbr"))
    for gene in searched.genes:
        for place in (0.0, 1.0):
            settings = {gene.key: gene.values.at(place)} | ({gene.part: True} if gene.part else {})
            lab.engine.check(searched.scenario_of(settings))


def test_parameters_vary_where_that_is_asked_for() -> None:
    keys = {gene.key for gene in space.standard("discipline").of(subject.find("codel"), parameters=True).genes}
    assert {"parameter.target", "parameter.interval", "parameter.ecn"} <= keys
    assert not any(gene.key.startswith("parameter") for gene in small().genes)
    names = {part.name for part in space.standard("discipline").of(subject.find("codel"), hostile=False).parts}
    assert not names & {"flood", "liar"} and "udp" in names


# The search.


def test_a_search_repeats_itself_on_any_number_of_processes(tmp_path: Path) -> None:
    one, two = (breaking.run(plan(100, tmp_path / str(jobs), jobs=jobs)) for jobs in (1, 2))
    assert (tmp_path / "1" / "break.json").read_bytes() == (tmp_path / "2" / "break.json").read_bytes()
    assert one.timing["ran"] == two.timing["ran"] > 70
    again = breaking.run(plan(100, tmp_path / "1", jobs=1))
    assert again.timing["ran"] == 0 and again.to_json() == one.to_json()
    longer = breaking.run(plan(140, tmp_path / "1", jobs=1))
    assert 0 < longer.timing["ran"] <= 40
    shared = [p for p in longer.findings[0].curve if p[0] <= 100]
    assert shared == list(one.findings[0].curve)
    other = breaking.run(plan(100, jobs=1, seed=2))
    assert other.findings[0].curve != one.findings[0].curve


def pretend(searched: Space, breaks: Any, mark: Any = lambda _seed: "") -> Shrinker:
    """A shrinker whose scenarios break as a function says; runs are equal whose seeds have the same mark."""
    counted = itertools.count(1)

    def execute(wanted: Sequence[Settings], seeds: Sequence[int]) -> list[Trial]:
        next(counted)
        found = []
        for settings, seed in itertools.product(wanted, seeds):
            true = breaks(settings, seed)
            judged, shown = (Judged(true, 0.1 if true else -0.1),), (1.0 if true else 0.0,)
            found.append(Trial(settings, seed, judged, shown, 0.0, mark=mark(seed)))
        return found

    return Shrinker(searched, 0, execute)


def test_shrinking_leaves_what_breaks_and_no_more() -> None:
    big = {
        "topology.rate": "3.7Mbit/s",
        "flows.0.count": 5,
        "tcp.cc": "bbr",
        "buffer": 2.7,
        "udp": True,
        "udp.rate": "3.3Mbit/s",
    }

    def breaks(settings: Settings, seed: int) -> bool:
        fast = settings.get("udp") and (base(settings.get("udp.rate")) or 0) >= 1e6
        return bool(fast and settings.get("tcp.cc") == "bbr" and seed != 3)

    shrinker = pretend(small(), breaks)
    found = shrinker.shrink(big)
    assert found.settings.keys() == {"tcp.cc", "udp", "udp.rate"}
    assert found.breaks == 4
    assert found.settings["udp.rate"] == "1Mbit/s", "a round number near the default"
    mends = {(change.key, change.after) for change in shrinker.mending(found, rises=True)}
    assert {("tcp.cc", "newreno"), ("udp", None)} <= mends
    assert not any(key == "flows.0.count" for key, _ in mends)


def test_what_breaks_with_few_seeds_is_no_finding() -> None:
    found = pretend(small(), lambda _settings, seed: seed < 4).over_seeds([{}])[0]
    assert found.breaks == 3


def test_seeds_with_equal_runs_are_one_run() -> None:
    """Of five equal runs there is one; seeds 1, 2 and 3 are one of three, of which two break, and all have to."""
    one = pretend(small(), lambda _settings, _seed: True, lambda _seed: "same").over_seeds([{}])[0]
    assert (one.breaks, one.of, one.is_broken) == (1, 1, True)
    assert one.to_json()["of_seeds"] == 1 and in_words(one.breaks, one.of) == "the one run that all seeds are"
    few = pretend(small(), lambda _settings, seed: seed != 5, lambda seed: f"{max(seed, 3)}").over_seeds([{}])[0]
    assert (few.breaks, few.of, few.is_broken) == (2, 3, False)
    assert in_words(few.breaks, few.of) == "2 of 3 different runs" and in_words(4, 5) == "4 of 5 seeds"


def test_a_trial_knows_which_run_it_was() -> None:
    """Flows that begin at once over a link without chance are the same with every seed, and not if starts differ."""
    goals = plan(1).goals
    alike, unlike = (
        Judge(space.read(text, "small.toml").of(subject.find("codel")), goals)
        for text in (SPACE, SPACE.replace("count = 2", 'count = 2\nstart_spread = "100ms"'))
    )
    assert len({alike.trial({}, seed).mark for seed in SEEDS}) == 1
    trials = [unlike.trial({}, seed) for seed in SEEDS]
    assert len({trial.mark for trial in trials}) == len(SEEDS)
    assert [Trial.unpacked(trial.packed()).mark for trial in trials] == [trial.mark for trial in trials]


def test_an_algorithm_that_fails_breaks_and_a_wrong_scenario_does_not(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import penstock\n\n\nclass Mine(penstock.Aqm):\n    def on_dequeue(self, packet):\n        return 1 / 0\n"
    )
    searched = space.read(SPACE, "small.toml").of(subject.find(f"{file}:Mine"))
    goals = tuple(standing.goals(["impossible", "jain < 0"], "discipline", ()))
    failed = Judge(searched, goals).trial({}, 1)
    assert [one.true for one in failed.judged] == [True, False]
    assert "ZeroDivisionError" in failed.error or "exception" in failed.error
    refused = Judge(small(), goals).trial({"flows.0.count": -1}, 1)
    assert refused.refused and not failed.refused


# Known weaknesses, and the command.


@pytest.mark.parametrize(("name", "trials"), [("vegas-beside-reno", 200), ("step-lost-syn", 60)])
def test_a_known_weakness_is_found_again(name: str, trials: int) -> None:
    one = known.by_name()[name]
    result = breaking.run(one.plan(Budget(trials), jobs=2))
    breach = one.breach(result)
    assert breach is not None
    assert len(breach.shrunk.settings) <= 12


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_a_scenario_of_a_weakness_still_breaks(file: Path) -> None:
    one = known.by_name()[file.stem]
    text = file.read_text(encoding="utf-8")
    assert f"breaks: {one.sentence}" in text.splitlines()[0]
    assert sum(line.startswith("#   ") for line in text.splitlines()) <= 12
    names = sentence.read(one.sentence, tuple(part.name for part in one.plan().space.parts)).names
    tree = tomllib.loads(text)
    true = 0
    for seed in SEEDS:
        result = lab.run(text, seed=seed)
        roles = ["subject", *("other" for _ in tree["flows"][1:])]
        run = Run(tree, roles, result.summary, result.raw_tables)
        true += sentence.read(one.sentence).judge(values(run, names)).true
    assert true >= 4


def test_at_least_seven_weaknesses_have_a_scenario() -> None:
    assert len(EXAMPLES) >= 7


def test_the_tables_of_the_page_are_those_of_the_code() -> None:
    for name, text in tables().items():
        assert "\n".join(between(ROOT / "docs" / "results" / "adversary.md", name)) == text, (
            "`tools/measure/measures` writes the tables"
        )
    assert set(QUANTITIES) & {"share_lowest", "impossible"}


def test_the_command_writes_what_run_repeats(penstock: Command, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SPACE)
    ran = penstock(
        *("verify", "break", "codel", "--space", "small.toml", "--until", "jain_long < 0.9", "--trials", "60"),
        *("--out", "found", "--json"),
    )
    assert ran.returncode == 1, ran.stderr
    found = json.loads(ran.stdout)
    (finding,) = found["findings"]
    breach = finding["breaches"][0]
    home = tmp_path / "found" / breach["directory"]
    assert penstock("run", home / "scenario.toml", "--out", "again").returncode == 0
    assert (tmp_path / "again" / "summary.json").read_bytes() == (home / "summary.json").read_bytes()
    page = (tmp_path / "found" / "report.html").read_text()
    assert "Congestion windows" in page and "Time in the queue" in page and "What mends it" in page
    never = penstock("verify", "break", "codel", "--space", "small.toml", "--until", "jain > 2", "--trials", "20")
    assert never.returncode == 0 and "jain" in never.stdout


@pytest.mark.parametrize(
    ("text", "message"), [("codle", "did you mean codel"), ("codel target", "write key=value"), ("", "no algorithm")]
)
def test_an_algorithm_that_is_none_is_explained(text: str, message: str) -> None:
    with pytest.raises(MistakeError, match=message):
        subject.find(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["codel", "--until", "jian < 1"], "did you mean jain"),
        (["codel", "--for", "10"], "with its unit"),
        (["codel", "--all"], "leave ALGORITHM"),
    ],
)
def test_a_mistake_is_explained(penstock: Command, arguments: list[str], message: str) -> None:
    ran = penstock("verify", "break", *arguments)
    assert ran.returncode == 2
    assert message in ran.stderr
