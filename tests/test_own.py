"""Algorithms of one's own: the examples of the docs run, equal ones give equal runs, mistakes become one message."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock as lab
import pytest
from conftest import SCENARIO, Command
from penstock import engine
from penstock.experiments.processes import Job, run_all
from penstock.mistake import MistakeError
from penstock.scenario import Scenario, to_toml

ROOT = Path(__file__).resolve().parents[1]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples" / "own"
TREE: dict[str, Any] = {
    "duration": "20s",
    "topology": {"kind": "dumbbell", "rate": "10Mbit/s", "delay": "20ms", "limit": "100p"},
    "aqm": {"name": "codel"},
    "tcp": {"cc": "newreno"},
    "flows": [{"kind": "bulk", "count": 3}, {"kind": "http", "size": "100kB", "idle": "10ms"}],
}


class NewReno(lab.CongestionControl):
    """The built-in NewReno, statement by statement."""

    def __init__(self) -> None:
        self.acked: float = 0
        self.limit = 2 * self.mss

    def on_ack(self, ack: lab.Ack) -> None:
        if not ack.cwnd_limited:
            return
        if self.cwnd < self.ssthresh:
            self.cwnd += min(ack.acked, self.limit)
            return
        self.limit = 2 * self.mss
        self.acked += min(ack.acked, self.cwnd)
        if self.acked >= self.cwnd:
            self.acked -= self.cwnd
            self.cwnd += self.mss

    def on_loss(self, loss: lab.Loss) -> None:
        super().on_loss(loss)
        self.acked, self.limit = 0, 2 * self.mss

    def on_rto(self, loss: lab.Loss) -> None:
        super().on_rto(loss)
        self.limit = self.mss

    def on_idle(self, now_s: float) -> None:
        super().on_idle(now_s)
        self.acked = 0


class Keeps(NewReno):
    """The same, which keeps another part of the flight after a loss."""

    keep = 0.5
    ack_per_segment = False

    def on_loss(self, loss: lab.Loss) -> None:
        super().on_loss(loss)
        self.ssthresh = max(int(self.keep * loss.in_flight), 2 * self.mss)


class Shortest(lab.Aqm):
    """Refuses whatever finds so many packets."""

    most = 3

    def on_enqueue(self, packet: lab.Packet) -> lab.Verdict:
        return "mark" if packet.queue_packets >= self.most else None


class Coin(lab.Aqm):
    """Drops every other packet at the head, by lot."""

    def on_dequeue(self, packet: lab.Packet) -> lab.Verdict:  # noqa: ARG002
        return "drop" if self.random.random() < 0.5 else None


DRAWS = """
import penstock

class Toss(penstock.Aqm):
    def on_dequeue(self, packet):
        return "drop" if self.random.random() < 0.05 else None

class Jumpy(penstock.CongestionControl):
    def on_ack(self, ack):
        self.cwnd += self.random.random() * ack.acked
"""


def unnamed(summary: dict[str, Any]) -> dict[str, Any]:
    """Without the names of controls."""
    return {**summary, "flows": [{**flow, "cc": ""} for flow in summary["flows"]]}


# The docs.


def test_the_docs_show_the_examples() -> None:
    page = (DOCS / "your-own.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.DOTALL)
    for name in ("my_cc.py", "my_aqm.py", "mine.toml"):
        assert (EXAMPLES / name).read_text(encoding="utf-8") in blocks, name
    for name in ("my_cc.py", "my_aqm.py"):
        assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 22


def test_every_command_of_the_docs_runs(penstock: Command, tmp_path: Path, trace: Path) -> None:
    for file in EXAMPLES.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    (tmp_path / "events.csv").write_text("t_us,event,segments,rtt_us\n0,ack,1,100000\n10,loss,11,0\n30,recovered,0,0\n")
    page = (DOCS / "your-own.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    penstock (.+)$", page, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        if not command.startswith("bench"):
            done = penstock(*command.split())
            assert done.returncode == 0, (command, done.stderr)
    manifest = json.loads(next((tmp_path / "runs").glob("mine-*/manifest.json")).read_text())
    assert {"my_cc.py", "my_aqm.py"} <= manifest["versions"].keys(), "a run knows the files it was made with"
    assert trace.is_file()


def test_the_python_of_the_docs_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "your-own.md").read_text(encoding="utf-8")
    block = next(b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "penstock.run(" in b)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["result"].summary["flows"][0]["cc"] == "MyCc"
    sys.modules.pop("my_cc")


class Blind(lab.CongestionControl):
    """Notes what it is told of round trip times."""

    seen: list[tuple[float | None, float, float]] = []  # noqa: RUF012 - all connections note here

    def on_ack(self, ack: lab.Ack) -> None:
        self.seen.append((ack.rtt_s, ack.srtt_s, ack.min_rtt_s))
        self.cwnd += ack.acked


def lossy(seed: int, flow: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A path that loses every fourth packet, SYNs as well, without timestamps."""
    topology = {"kind": "dumbbell", "rate": "5Mbit/s", "delay": "20ms", "limit": "50p", "loss": 0.25}
    flows = [{"kind": "transfer", "size": "20kB", "count": 8, **flow}]
    return {"duration": "20s", "seed": seed, "topology": topology, "tcp": {"timestamps": False}, "flows": flows, **more}


def test_every_block_of_the_docs_runs_under_loss_without_timestamps() -> None:
    page = (DOCS / "your-own.md").read_text(encoding="utf-8")
    classes: list[type] = []
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        names: dict[str, Any] = {}
        if "penstock.run(" not in block:
            exec(block, names)
        classes += [kind for kind in names.values() if isinstance(kind, type)]
    controls = [kind for kind in classes if issubclass(kind, lab.CongestionControl)]
    aqms = [kind for kind in classes if issubclass(kind, lab.Aqm)]
    assert controls
    assert aqms
    for seed in range(5):
        for control in controls:
            assert lab.run(lossy(seed, {"cc": control})).summary["flows"][0]["delivered_bytes"] > 0
        for aqm in aqms:
            assert lab.run(lossy(seed, {"cc": "cubic"}, aqm=aqm)).summary["flows"][0]["delivered_bytes"] > 0


def test_round_trip_times_are_always_numbers() -> None:
    Blind.seen.clear()
    for seed in range(5):
        lab.run(lossy(seed, {"cc": Blind}))
    assert all(srtt > 0 and lowest > 0 for _, srtt, lowest in Blind.seen)
    # RFC 6298 §2.1: before the first sample a second is assumed. It happens: SYN or first data were sent again.
    unknown = [(srtt, lowest) for rtt, srtt, lowest in Blind.seen if rtt is None and srtt == 1.0]
    assert unknown
    assert all(lowest == 1.0 for _, lowest in unknown)


def test_the_example_is_as_friendly_as_it_looks() -> None:
    # Two of MyCc beside two of CUBIC, before MyAqm: both get something, and the queue is far shorter than its limit.
    summary = lab.run(EXAMPLES / "mine.toml").summary
    share = sum(flow["delivered_bytes"] for flow in summary["flows"][:2]) / sum(
        flow["delivered_bytes"] for flow in summary["flows"]
    )
    assert 0.25 < share < 0.75
    assert summary["bottlenecks"][0]["queue_delay_ms"]["p50"] < 20
    assert summary["bottlenecks"][0]["aqm"] == "my_aqm.py:MyAqm"


def test_a_run_directory_keeps_the_files(penstock: Command, tmp_path: Path) -> None:
    for file in EXAMPLES.iterdir():
        shutil.copy(file, tmp_path)
    assert penstock("run", "mine.toml", "--out", "out").returncode == 0
    again = penstock("rerun", "out", "--trust")
    assert (again.returncode, "same" in again.stdout) == (0, True), again.stderr
    (tmp_path / "my_cc.py").write_text((EXAMPLES / "my_cc.py").read_text().replace("1.25", "1.5"))
    changed = penstock("rerun", "out", "--trust", "--json")
    assert changed.returncode == 1
    assert json.loads(changed.stdout)["versions_changed"].keys() == {"my_cc.py"}
    (tmp_path / "my_cc.py").unlink()
    assert penstock("rerun", "out", "--trust").returncode == 0, "the copy is there"


# What a control sees and says is what a built-in one does.


def test_a_control_in_python_is_the_built_in_one_byte_for_byte() -> None:
    built_in = lab.run(TREE).summary
    mine = lab.run({**TREE, "tcp": {"cc": NewReno}}).summary
    assert {flow["cc"] for flow in mine["flows"]} == {"NewReno"}
    assert unnamed(mine) == unnamed(built_in)


def test_a_first_threshold_is_known_to_both() -> None:
    first = {**TREE, "tcp": {"cc": "newreno", "initial_ssthresh": "20kB"}}
    mine = lab.run({**first, "tcp": {**first["tcp"], "cc": NewReno}}).summary
    assert unnamed(mine) == unnamed(lab.run(first).summary) != unnamed(lab.run(TREE).summary)


def test_the_limit_of_a_queue_can_be_an_aqm_in_python() -> None:
    built_in = {**TREE, "topology": {**TREE["topology"], "limit": "5p"}, "aqm": {"name": "droptail"}}
    mine = lab.run({**TREE, "aqm": {"name": Shortest, "most": 5}}).summary["bottlenecks"][0]
    theirs = lab.run(built_in).summary["bottlenecks"][0]
    assert (mine["drops_aqm"], mine["drops_overflow"]) == (theirs["drops_overflow"], 0)
    same = ("utilization", "packets_all", "queue_bytes", "queue_delay_ms")
    assert [mine[key] for key in same] == [theirs[key] for key in same]


def test_marks_are_marks_where_they_can_be() -> None:
    ecn = {**TREE, "aqm": {"name": Shortest}, "tcp": {"cc": "newreno", "ecn": True}}
    found = lab.run(ecn).summary["bottlenecks"][0]
    assert found["marks"] > 0
    assert found["drops_aqm"] > 0, "SYNs and retransmissions are not ECN-capable"
    assert lab.run({**ecn, "tcp": {"cc": "newreno"}}).summary["bottlenecks"][0]["marks"] == 0


def test_random_numbers_follow_the_seed() -> None:
    tree = {**TREE, "aqm": {"name": Coin}}
    first, again, other = lab.run(tree), lab.run(tree), lab.run(tree, seed=2)
    assert first.summary == again.summary
    assert first.summary["bottlenecks"] != other.summary["bottlenecks"]
    bottleneck = first.summary["bottlenecks"][0]
    assert 0.4 < bottleneck["drops_aqm"] / (bottleneck["drops_aqm"] + bottleneck["packets_all"]) < 0.6


def test_random_numbers_do_not_depend_on_the_directory(tmp_path: Path) -> None:
    """The stream of an algorithm was named by the whole path of its file."""
    found = []
    for place in (tmp_path / "a", tmp_path / "b" / "c"):
        place.mkdir(parents=True)
        (place / "draws.py").write_text(DRAWS, encoding="utf-8")
        mine = {"aqm": {"name": f"{place}/draws.py:Toss"}, "tcp": {"cc": f"{place}/draws.py:Jumpy"}}
        summary = lab.run({**TREE, **mine}).summary
        found.append([{k: v for k, v in row.items() if k not in ("aqm", "cc")} for row in summary["flows"]])
    assert found[0] == found[1]


def test_pace_and_measured_rate() -> None:
    seen: list[float] = []

    class Paced(lab.CongestionControl):
        def on_ack(self, ack: lab.Ack) -> None:
            self.cwnd = 200_000
            self.pacing_bps = 2e6
            if ack.delivery_rate_bps:
                seen.append(ack.delivery_rate_bps)

    tree = {**TREE, "tcp": {"cc": Paced}, "flows": [{"kind": "bulk"}], "warmup": "1s", "aqm": {"name": "droptail"}}
    result = lab.run(tree)
    # Payload at 2 Mbit/s, of which the rate samples are right once the first window is through.
    assert result.summary["goodput_1s_bps"]["p50"] == pytest.approx(2e6, rel=0.01)
    assert seen[-1] == pytest.approx(2e6, rel=0.05)


def test_a_control_that_counts_marks_has_them() -> None:
    marked: list[int] = []

    class Counts(NewReno):
        accurate_ecn = True

        def on_ack(self, ack: lab.Ack) -> None:
            super().on_ack(ack)
            marked.append(ack.marked)

    result = lab.run(
        {**TREE, "aqm": {"name": "codel", "ecn": True}, "tcp": {"cc": Counts}, "flows": [{"kind": "bulk"}]}
    )
    assert result.summary["bottlenecks"][0]["marks"] > 0
    assert sum(marked) > 0
    assert tomllib.loads(result.resolved)["flows"][0]["tcp"]["ecn"] is True


def test_many_runs_at_once(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "my_cc.py", tmp_path)
    tree = {**TREE, "duration": "5s", "tcp": {"cc": "my_cc.py:MyCc"}}
    scenario = Scenario(to_toml(tree), str(tmp_path / "mine.toml"))
    jobs = [Job(seed, scenario, seed % 2) for seed in range(6)]
    found: dict[int, dict[str, Any]] = {}
    assert run_all(jobs, 3, lambda _job, result: result.summary, lambda job, summary: found.update({job.key: summary}))
    assert found[0] == found[2] == found[4] != found[1] == found[3]


def test_an_error_of_one_run_ends_all_and_reaches_who_asked(tmp_path: Path) -> None:
    scenario = Scenario(to_toml({**TREE, "duration": "1s"}), str(tmp_path / "mine.toml"))
    jobs = [Job(f"run {seed}", scenario, seed) for seed in range(4)]

    def keep(job: Job[str], _result: engine.Result) -> int:
        if job.seed == 1:
            raise MistakeError(f"{job.key} is wrong")
        return job.seed

    found: list[int] = []
    with pytest.raises(MistakeError, match=r"^run 1 is wrong$"):
        run_all(jobs, 1, keep, lambda _job, seed: found.append(seed))
    assert found == [0]


# Mistakes.


def failing(method: str, act: Callable[[Any], None]) -> type[lab.CongestionControl]:
    """NewReno with one method that does something else."""

    def body(self: Any, _fact: Any) -> None:
        act(self)

    return type("Failing", (NewReno,), {method: body})


def test_an_exception_stops_the_run_and_is_told_with_its_traceback() -> None:
    calls: list[int] = []

    def act(_self: Any) -> None:
        calls.append(1)
        raise KeyError("no such thing")

    with pytest.raises(lab.AlgorithmError) as told:
        lab.run({**TREE, "tcp": {"cc": failing("on_loss", act)}})
    assert isinstance(told.value.__cause__, KeyError)
    text = str(told.value)
    assert text.startswith("an exception in on_loss of Failing\n")
    assert 'raise KeyError("no such thing")' in text
    assert len(calls) == 1, "nothing is called after the first failure"


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda self: setattr(self, "cwnd", "much"), "self.cwnd is 'much': it must be a number of bytes, 0 or more"),
        (lambda self: setattr(self, "cwnd", float("nan")), "self.cwnd is nan"),
        (lambda self: setattr(self, "cwnd", float("inf")), "self.cwnd is inf: it must be at most 2^50 bytes"),
        (lambda self: setattr(self, "cwnd", 1e300), "self.cwnd is 1e300: it must be at most 2^50 bytes"),
        (lambda self: setattr(self, "ssthresh", -1), "self.ssthresh is -1"),
        (lambda self: setattr(self, "pacing_bps", 0), "self.pacing_bps is 0"),
    ],
)
def test_a_value_that_cannot_be_is_named(act: Callable[[Any], None], said: str) -> None:
    with pytest.raises(lab.AlgorithmError, match=re.escape(said)):
        lab.run({**TREE, "tcp": {"cc": failing("on_ack", act)}})


def test_an_answer_that_is_none_of_the_three_is_named() -> None:
    class Maybe(lab.Aqm):
        def on_enqueue(self, packet: lab.Packet) -> Any:
            return packet.size > 40

    with pytest.raises(lab.AlgorithmError, match='the answer is True: it must be "drop", "mark" or None'):
        lab.run({**TREE, "aqm": {"name": Maybe}})


def test_a_control_without_on_ack_is_told_so() -> None:
    class Nothing(lab.CongestionControl):
        pass

    with pytest.raises(lab.ScenarioError, match="Nothing has no method on_ack"):
        lab.run({**TREE, "tcp": {"cc": Nothing}})


def test_a_window_of_nothing_is_one_segment() -> None:
    class Least(lab.CongestionControl):
        def on_ack(self, ack: lab.Ack) -> None:  # noqa: ARG002
            self.cwnd = 0

    tree = {**TREE, "tcp": {"cc": Least, "ack_every_segment": True}, "flows": [{"kind": "bulk"}], "warmup": "1s"}
    # One segment of 1448 B in each round trip of 40 ms and two transmissions.
    assert lab.run(tree).summary["goodput_1s_bps"]["p50"] == pytest.approx(1448 * 8 / 0.0413, rel=0.03)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my_cc.py:Mine", "my_cc.py has no class 'Mine'; it has MyCc"),
        ("my_aqm.py:MyAqm", "my_aqm.py:MyAqm does not derive from penstock.CongestionControl"),
        ("none.py:MyCc", "there is no file none.py"),
        ("NoSuchClass", '"NoSuchClass" is not one of'),
    ],
)
def test_a_name_that_cannot_be_used_is_shown_at_its_line(
    penstock: Command, tmp_path: Path, name: str, said: str
) -> None:
    for file in EXAMPLES.glob("*.py"):
        shutil.copy(file, tmp_path)
    text = (EXAMPLES / "mine.toml").read_text().replace("my_cc.py:MyCc", name)
    (tmp_path / "mine.toml").write_text(text)
    done = penstock("run", "mine.toml")
    assert done.returncode == 2
    assert said in done.stderr
    assert "mine.toml:19" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_parameter_that_does_not_exist_is_refused() -> None:
    with pytest.raises(lab.ScenarioError, match="Shortest has no parameter 'least'; it has most"):
        lab.run({**TREE, "aqm": {"name": Shortest, "least": 5}})
    with pytest.raises(
        lab.ScenarioError, match=r"Keeps has no parameter 'ceep' \(did you mean 'keep'\?\); it has keep"
    ):
        lab.run({**TREE, "tcp": {"cc": {"name": Keeps, "ceep": 0.8}}})
    with pytest.raises(lab.ScenarioError, match="Keeps has no parameter 'ect1'"):
        lab.run({**TREE, "tcp": {"cc": {"name": Keeps, "ect1": True}}})


def test_a_scenario_sets_the_parameters_of_a_control() -> None:
    """The same parameter in Python and built in gives the same run, and another value another run."""

    def summary(cc: object) -> dict[str, Any]:
        return unnamed(lab.run({**TREE, "tcp": {"cc": cc}, "flows": [{"kind": "bulk"}]}).summary)

    plain, kept = summary("newreno"), summary({"name": "newreno", "beta": 0.9})
    assert plain["flows"][0]["retransmits"] != kept["flows"][0]["retransmits"]
    assert summary(Keeps) == summary({"name": Keeps}) == summary({"name": Keeps, "keep": 0.5}) == plain
    assert summary({"name": Keeps, "keep": 0.9}) == kept


def test_a_file_that_cannot_be_loaded_is_told_with_its_traceback(penstock: Command, tmp_path: Path) -> None:
    (tmp_path / "my_cc.py").write_text("import penstock\n\nraise RuntimeError('unfinished')\n")
    shutil.copy(EXAMPLES / "my_aqm.py", tmp_path)
    shutil.copy(EXAMPLES / "mine.toml", tmp_path)
    done = penstock("run", "mine.toml")
    assert done.returncode == 1
    assert "while my_cc.py:MyCc was looked up" in done.stderr
    assert "line 3" in done.stderr
    assert "RuntimeError: unfinished" in done.stderr
    assert "importlib" not in done.stderr


def test_replay_takes_them_too(penstock: Command, tmp_path: Path, trace: Path) -> None:
    (tmp_path / "one.py").write_text(
        "import penstock\n\n\nclass One(penstock.Aqm):\n    most = 1\n\n"
        "    def on_enqueue(self, packet):\n        return 'drop' if packet.queue_packets >= self.most else None\n"
    )
    common = ("--rate", "8Mbit/s", "--limit", "10p", "--json")
    # Three packets at once: the first goes to the link, the second waits, the third finds one that waits.
    summary = json.loads(penstock("replay", trace, "--aqm", "one.py:One", *common).stdout)
    assert (summary["aqm"], summary["sent"], summary["drop_early"]) == ("one.py:One", 2, 1)
    summary = json.loads(penstock("replay", trace, "--aqm", "one.py:One", "--set", "most=2", *common).stdout)
    assert summary["drop_early"] == 0
    refused = penstock("replay", trace, "--aqm", "one.py:One", "--set", "least=2", *common)
    assert (refused.returncode, "no parameter 'least'" in refused.stderr) == (2, True)


def test_replay_of_a_control_in_python(penstock: Command, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("t_us,event,segments,rtt_us\n0,ack,1,100000\n10,loss,10,0\n30,recovered,0,0\n")
    shutil.copy(EXAMPLES / "my_cc.py", tmp_path)
    done = penstock("replay", "events.csv", "--cc", "my_cc.py:MyCc")
    assert done.returncode == 0, done.stderr
    windows = [line.split(",")[2:4] for line in done.stdout.splitlines()[1:]]
    # Ten segments and one; a loss with ten in flight leaves seven.
    assert windows == [["11.000", ""], ["11.000", "7.000"], ["7.000", "7.000"]]
    pace = float(done.stdout.splitlines()[1].split(",")[4])
    assert pace == pytest.approx(2 * 8 * 11 * 1448 / 0.1, abs=1)


def test_a_class_of_another_kind_is_refused() -> None:
    with pytest.raises(MistakeError, match=r"derive it from penstock\.CongestionControl, penstock\.Aqm, penstock\.Sch"):
        lab.run({**TREE, "tcp": {"cc": dict}})


HOOKS = {
    "a misspelt hook": ("Aqm", "on_deque", "has a method on_deque, which is never called; did you mean on_dequeue?"),
    "no hook": ("Aqm", "decide", "has no method on_enqueue or on_dequeue, so it would do nothing"),
    "a control's misspelt hook": ("CongestionControl", "on_akc", "has a method on_akc, which is never called; did you"),
    "a control without on_ack": ("CongestionControl", "on_loss", "has no method on_ack, so it would do nothing"),
}


@pytest.mark.parametrize("name", HOOKS)
def test_a_class_that_would_do_nothing_is_refused(penstock: Command, tmp_path: Path, name: str) -> None:
    base, method, said = HOOKS[name]
    (tmp_path / "mine.py").write_text(
        f"import penstock\n\n\nclass Mine(penstock.{base}):\n    def {method}(self, x): ...\n"
    )
    aqm, cc = ("mine.py:Mine", "cubic") if base == "Aqm" else ("droptail", "mine.py:Mine")
    flow = f'[[flows]]\nkind = "bulk"\ncc = "{cc}"\n'
    (tmp_path / "a.toml").write_text(SCENARIO.replace('"droptail"', f'"{aqm}"').split("[[flows]]")[0] + flow)
    done = penstock("run", "a.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"mine.py:Mine {said}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_helper_with_the_name_of_a_hook_is_allowed(penstock: Command, tmp_path: Path) -> None:
    lines = ("def on_enqueue(self, packet):", "    return self.on_late(packet)", "def on_late(self, packet): ...")
    body = "".join(f"    {line}\n" for line in lines)
    (tmp_path / "mine.py").write_text(f"import penstock\n\n\nclass Mine(penstock.Aqm):\n{body}")
    (tmp_path / "a.toml").write_text(SCENARIO.replace('"droptail"', '"mine.py:Mine"'))
    done = penstock("run", "a.toml", "--json")
    assert done.returncode == 0, done.stderr


CLASS = "class Mine(penstock.Aqm):\n    def on_enqueue(self, packet):\n        "


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("import sys\nsys.exit(3)\n", "mine.py: sys.exit(3) while it was loaded"),
        (f"{CLASS}exit()\n", "sys.exit(None) in on_enqueue of mine.py"),
        (f"{CLASS}return None\n    def __init__(self):\n        raise SystemExit\n", "sys.exit(None) "),
    ],
)
def test_an_algorithm_that_ends_the_program_is_named(penstock: Command, tmp_path: Path, where: str, said: str) -> None:
    (tmp_path / "mine.py").write_text(f"import penstock\n\n\n{where}")
    (tmp_path / "a.toml").write_text(SCENARIO.replace('"droptail"', '"mine.py:Mine"'))
    done = penstock("run", "a.toml")
    assert done.returncode == 2
    assert said in done.stderr
    assert "must not end the program" in done.stderr
    assert "Traceback" not in done.stderr
