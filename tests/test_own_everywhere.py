"""Own algorithms wherever a name can stand: schedulers, flow queues, timers, the ACK path; and `verify agree`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import penstock as lab
import pytest
from conftest import Command
from penstock import engine
from penstock.mistake import MistakeError
from penstock.reference.sched.drr import Drr
from penstock.reproduce import EXPERIMENTS
from penstock.reproduce.base import aqm_tables
from penstock.reproduce.own import with_own
from penstock.scenario import tree
from penstock.verify import agree
from penstock.verify.agree import Setup

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "own"
TREE: dict[str, Any] = {
    "duration": "5s",
    "topology": {"kind": "dumbbell", "rate": "10Mbit/s", "delay": "10ms", "limit": "80p"},
    "tcp": {"cc": "cubic"},
    "flows": [{"kind": "bulk", "count": 4}, {"kind": "http", "size": "50kB", "idle": "10ms", "count": 2}],
}
CLASSES: dict[str, Any] = {"flows": 6, "weights": "1::2,3::4"}


class TwinDrr(lab.Scheduler):
    """The readable twin of DRR."""

    def __init__(self) -> None:
        self.twin = Drr(self.weights, self.max_packet)

    def arrive(self, cls: int, size: int) -> None:
        self.twin.arrive(cls, 0, size)

    def depart(self) -> int | None:
        # The twin picks and removes at once, and it may not look before: its choice changes deficits.
        waiting = [len(queue) for queue in self.twin.queues]
        if self.twin.depart() is None:
            return None
        return next(cls for cls, queue in enumerate(self.twin.queues) if len(queue) < waiting[cls])


def bottleneck(aqm: Any, **more: Any) -> dict[str, Any]:
    """The numbers of the bottleneck and what flows delivered, without the name of the discipline."""
    summary = lab.run({**TREE, **more, "aqm": aqm}).summary
    return {**summary["bottlenecks"][0], "aqm": "", "flows": [flow["delivered_bytes"] for flow in summary["flows"]]}


# Schedulers.


def test_a_scheduler_before_a_link_is_the_built_in_one_byte_for_byte() -> None:
    mine = bottleneck({"name": TwinDrr, **CLASSES})
    assert mine == bottleneck({"name": "drr", **CLASSES}) != bottleneck({"name": "prio", **CLASSES})


@pytest.mark.parametrize(("qos", "mac"), [("TwinDrr", "drr"), ("drr", "TwinDrr"), ("TwinDrr", "TwinDrr")])
def test_a_scheduler_in_either_layer_of_the_modular_architecture(qos: str, mac: str) -> None:
    layers = {"name": "modular", "stations": 3, "buffer": "5p", "flows": 6}
    theirs = bottleneck({**layers, "qos": "drr", "mac": "drr"})
    assert bottleneck({**layers, "qos": qos, "mac": mac}) == theirs


def test_a_scheduler_in_tempest() -> None:
    flags = {"flowsets": "3::2,1::2", "n": "3000", "measure": "fairness", "burst": "2"}
    mine, theirs = engine.tempest({**flags, "alg": "TwinDrr"}), engine.tempest({**flags, "alg": "drr"})
    assert (mine.pop("alg"), theirs.pop("alg")) == ("TwinDrr", "drr")
    assert mine == theirs
    double = {**flags, "mode": "double", "flowsmac": "2", "ploss": "0:0"}
    mine = engine.tempest({**double, "qos": "TwinDrr", "mac": "TwinDrr"})
    assert mine["flows_detail"] == engine.tempest({**double, "qos": "drr", "mac": "drr"})["flows_detail"]


class Fifo(lab.Scheduler):
    """First come, first served; `fault` says what it does wrong after some departures."""

    fault = "none"
    after = 5

    def __init__(self) -> None:
        self.order: list[int] = []
        self.departures = 0

    def arrive(self, cls: int, size: int) -> None:  # noqa: ARG002
        self.order.append(cls)

    def depart(self) -> Any:
        self.departures += 1
        if self.departures > self.after and self.order:
            answers: dict[str, Any] = {"idle": None, "beyond": len(self.weights), "word": "first"}
            if self.fault in answers:
                return answers[self.fault]
            empty = [cls for cls, queue in enumerate(self.queues) if not queue]
            if self.fault == "empty" and empty:
                return empty[0]
            if self.fault == "last":
                return self.order.pop()
        return self.order.pop(0) if self.order else None


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            "idle",
            r"depart of Fifo\w*, asked for departure \d+, answered no class although \d+ packets? waits?, .*"
            r"packet \d+ in class \d: the link must not be idle",
        ),
        ("beyond", r"depart of Fifo\w*, asked for departure \d+, answered class 6, which does not exist: there are 6"),
        ("empty", r"answered class \d, (to which no packet has come|which has no packet: its last, packet \d+, has)"),
        ("word", "the answer is 'first': it must be the number of a class, or None"),
    ],
)
def test_a_scheduler_that_breaks_a_rule_is_told_with_class_method_and_packet(fault: str, said: str) -> None:
    with pytest.raises(lab.AlgorithmError, match=said):
        lab.run({**TREE, "aqm": {"name": Fifo, "flows": 6, "fault": fault}})
    with pytest.raises(lab.AlgorithmError, match=said.replace("6", "4") if fault == "beyond" else said):
        engine.tempest({"alg": "Fifo" + fault.title(), "flows": "4", "n": "2000", "measure": "fairness"})


class FifoIdle(Fifo):
    fault = "idle"


class FifoBeyond(Fifo):
    fault = "beyond"


class FifoEmpty(Fifo):
    fault = "empty"


class FifoWord(Fifo):
    fault = "word"


class FifoLast(Fifo):
    """Right for the rules, but another order after 50 departures."""

    fault, after = "last", 50


def test_a_scheduler_learns_of_weights_and_channels() -> None:
    told: list[tuple[str, int, Any]] = []

    class Told(Fifo):
        def on_weight(self, cls: int, weight: int) -> None:
            told.append(("weight", cls, (weight, self.weights[cls])))

        def on_channel(self, cls: int, good: bool) -> None:
            told.append(("channel", cls, (good, self.good[cls])))

    events = [("arrive", 1, 100), ("weight", 1, 7), ("channel", 1, 0), ("channel", 1, 1), ("depart", 0, 0)]
    assert engine.schedule("Told", [1, 2], events) == [0]
    assert told == [("weight", 1, (7, 7)), ("channel", 1, (False, False)), ("channel", 1, (True, True))]


# Flow queues and timers.


class Pass(lab.Aqm):
    """Lets everything pass, and notes which objects were made."""

    made: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        self.made.append(self)
        self.seen: set[int] = set()

    def on_enqueue(self, packet: lab.Packet) -> lab.Verdict:
        self.seen.add(packet.flow)
        return None


def test_each_flow_queue_in_use_has_an_aqm_of_its_own() -> None:
    Pass.made.clear()
    fq = {"name": "fq", "flows": 4096, "perturbation": 3}
    flows = [{"kind": "bulk", "count": 6}]
    assert bottleneck({**fq, "per_flow": "Pass"}, flows=flows) == bottleneck(
        {**fq, "per_flow": "droptail"}, flows=flows
    )
    assert sorted(flow for one in Pass.made for flow in one.seen) == list(range(6)), "one object for each flow"
    assert all(len(one.seen) == 1 for one in Pass.made)


def test_an_aqm_with_parameters_in_flow_queues_survives_the_resolved_scenario() -> None:
    aqm = {"name": "fq", "per_flow": {"name": f"{EXAMPLES / 'step.py'}:Step", "target_ms": 3}}
    first = lab.run({**TREE, "aqm": aqm})
    assert first.summary["bottlenecks"][0]["drops_aqm"] > 0
    assert lab.run(first.resolved).summary == first.summary


class Ticks(lab.Aqm):
    """Drops what comes between an odd and an even tick; `late` sets a timer in the past."""

    every = 0.5
    late = False
    ticks: ClassVar[list[float]] = []

    def __init__(self) -> None:
        self.ticks.clear()
        self.timer_s = 0.25
        self.closed = False

    def on_enqueue(self, packet: lab.Packet) -> lab.Verdict:  # noqa: ARG002
        return "drop" if self.closed else None

    def on_timer(self, now_s: float, queue_packets: int, queue_bytes: int) -> None:
        assert (queue_packets > 0) == (queue_bytes > 0)
        self.ticks.append(now_s)
        self.closed = not self.closed
        self.timer_s = now_s - 0.1 if self.late else now_s + self.every


@pytest.mark.parametrize("aqm", [{"name": "Ticks"}, {"name": "fq", "per_flow": "Ticks"}])
def test_timers_come_at_their_times(aqm: dict[str, Any]) -> None:
    flows = [{"kind": "cbr", "rate": "1Mbit/s", "packet_size": "500B"}]
    sent = lab.run({**TREE, "duration": "4s", "flows": flows, "aqm": aqm}).summary["bottlenecks"][0]
    assert Ticks.ticks == pytest.approx([0.25 + 0.5 * n for n in range(8)], abs=1e-9)
    # Closed from 0.25 to 0.75, from 1.25 to 1.75, ...: half of the time.
    share = sent["drops_aqm"] / (sent["drops_aqm"] + sent["packets_all"])
    assert share == pytest.approx(0.5, abs=0.01)


def test_a_timer_in_the_past_is_told() -> None:
    with pytest.raises(
        lab.AlgorithmError, match=r"in timer_s of Ticks(.|\n)*self\.timer_s is 0\.15: it must be None or"
    ):
        lab.run({**TREE, "aqm": {"name": Ticks, "late": True}})


# The ACK path.


def test_windows_on_the_ack_path_bound_what_is_in_flight() -> None:
    """Two windows of 10 kB hold six whole segments each; a round trip is 20 ms and 1.5 ms of transmissions."""
    clamp = {"name": f"{EXAMPLES / 'clamp.py'}:Clamp", "most_kb": 10, "queue": {"name": "codel"}}
    run = lab.run({**TREE, "aqm": clamp, "flows": [{"kind": "bulk", "count": 2}], "warmup": "1s"}).summary
    assert run["goodput_1s_bps"]["mean"] == pytest.approx(2 * 6 * 1448 * 8 / 0.0215, rel=0.02)
    assert run["bottlenecks"][0]["queue_delay_ms"]["p50"] < 3
    free = lab.run({**TREE, "aqm": {**clamp, "most_kb": 10_000}, "flows": [{"kind": "bulk", "count": 2}]}).summary
    plain = lab.run({**TREE, "aqm": "codel", "flows": [{"kind": "bulk", "count": 2}]}).summary
    assert free["flows"] == plain["flows"], "an element that lowers nothing changes nothing"


def element(act: Callable[[Any], None]) -> type[lab.AckPath]:
    def inbound(_self: Any, segment: Any) -> None:
        act(segment)

    return type("Element", (lab.AckPath,), {"inbound": inbound})


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda s: setattr(s, "window", s.window + 1), r"the window of flow \d cannot be set to \d+: the segment came"),
        (lambda s: setattr(s, "window", 0), "a window is lowered, never raised, never zeroed"),
        (lambda s: setattr(s, "window_bytes", 1e9), r"the window in bytes of flow \d cannot be set to 1000000000\.0"),
        (lambda s: setattr(s, "window_bytes", 0), "never zeroed"),
        (lambda s: setattr(s, "window", "all"), "cannot be set to 'all'"),
        (lambda s: setattr(s, "seq", 1), "seq"),
    ],
)
def test_an_element_that_breaks_a_rule_is_stopped_at_its_line(act: Callable[[Any], None], said: str) -> None:
    with pytest.raises(lab.AlgorithmError, match=said) as told:
        lab.run({**TREE, "aqm": {"name": element(act)}})
    assert "in inbound of Element" in str(told.value)


def test_an_element_sees_segments_of_both_directions() -> None:
    seen: dict[str, list[Any]] = {"outbound": [], "inbound": []}

    class Sees(lab.AckPath):
        def outbound(self, segment: lab.Segment) -> None:
            seen["outbound"].append((segment.syn, segment.payload, segment.ack, segment.queue_packets))

        def inbound(self, segment: lab.Segment) -> None:
            seen["inbound"].append((segment.syn, segment.payload, segment.shift, segment.window_bytes))

    lab.run({**TREE, "duration": "2s", "flows": [{"kind": "bulk"}], "aqm": {"name": Sees}})
    assert seen["outbound"][0][:3] == (True, 0, None), "the SYN has no acknowledgment"
    assert max(payload for _, payload, _, _ in seen["outbound"]) == 1448
    assert max(waiting for _, _, _, waiting in seen["outbound"]) > 20
    (syn, payload, shift, window), *acks = seen["inbound"]
    assert (syn, payload, shift) == (True, 0, 0)
    assert window <= 65_535
    assert all(shift is not None and window > 65_535 for _, _, shift, window in acks), "both SYNs were seen"


# Names and mistakes.


MISTAKES = {
    "a scheduler without depart": ({"name": "Idle"}, "Idle has no method depart, so it would do nothing"),
    "a hook with another name": ({"name": "Hook"}, "Hook has a method on_arrive, which is never called"),
    "a parameter of neither": ({"name": "Fifo", "folws": 6}, r"Fifo has no parameter 'folws'.*it has fault, after"),
    "a value of the classes": ({"name": "Fifo", "flows": 0}, "flows: must be within 1 and 65536"),
    "an AQM in flow queues": ({"name": "fq", "per_flow": "Nobody"}, 'there is no AQM "Nobody"; it may be droptail'),
    "a scheduler in flow queues": ({"name": "fq", "per_flow": "Fifo"}, r"Fifo does not derive from penstock\.Aqm"),
    "an AQM as a layer": ({"name": "modular", "qos": "Pass"}, r"qos: Pass does not derive from penstock\.Scheduler"),
    "nobody as a layer": ({"name": "modular", "mac": "Nobody"}, "mac: is no scheduler; it may be fifo"),
    "nobody behind an element": ({"name": "Nothing", "queue": "codle"}, r'queue: .*did you mean "codel"\?'),
}


class Idle(lab.Scheduler):
    def arrive(self, cls: int, size: int) -> None: ...


class Hook(Fifo):
    def on_arrive(self, cls: int) -> None: ...


class Nothing(lab.AckPath):
    def outbound(self, segment: lab.Segment) -> None: ...


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_what_is_allowed(name: str) -> None:
    aqm, said = MISTAKES[name]
    with pytest.raises(lab.ScenarioError, match=said):
        lab.run({**TREE, "aqm": aqm})


def test_replay_takes_schedulers_and_flow_queues(penstock: Command, tmp_path: Path, trace: Path) -> None:
    for file in ("step.py", "turns.py"):
        shutil.copy(EXAMPLES / file, tmp_path)
    link = ("--rate", "8Mbit/s", "--limit", "10p", "--json")
    fq = json.loads(
        penstock("replay", trace, "--aqm", "fq", "--set", "per_flow=step.py:Step target_ms=0.5", *link).stdout
    )
    # Three packets at once on a link that takes one each millisecond: the first two do not wait, but for the link.
    assert (fq["sent"], fq["drop_dequeue"]) == (1, 2)
    turns = json.loads(penstock("replay", trace, "--aqm", "turns.py:Turns", "--set", "flows=2", *link).stdout)
    assert turns["sent"] == 3
    wrong = penstock("replay", trace, "--aqm", "turns.py:Turns", "--set", "flow=2", *link)
    assert (wrong.returncode, "no parameter 'flow'" in wrong.stderr) == (2, True)


# `verify agree`.


class Refuses(lab.Aqm):
    """Refuses what finds so many packets."""

    most = 1

    def __init__(self) -> None:
        self.refused = 0

    def on_enqueue(self, packet: lab.Packet) -> lab.Verdict:
        if packet.queue_packets < self.most:
            return None
        self.refused += 1
        return "drop"


def test_the_first_packet_on_which_two_aqms_part(trace: Path) -> None:
    """Packet 0 goes to the link, 1 waits; 2 finds one packet, which `most = 1` refuses and `most = 2` does not."""
    setup = Setup(trace=trace, rate="8Mbit/s", limit="10p")
    found = agree.compare("Refuses", "Refuses most=2", setup)
    assert not found.agrees
    assert found.what == "packet 2 of flow 2, 1000 B, arrived at 0.000000 ms"
    assert found.answers[0] == "drop_early at 0.000000 ms"
    assert found.answers[1].startswith("sent at 2.000000 ms")
    assert found.states == ("refused=1", "most=2, refused=0")
    assert [row.split(":")[0] for row in found.before] == ["packet 0 of flow 1, 1000 B, arrived at 0.000000 ms"]
    assert agree.compare("Refuses", "Refuses most=1", setup).agrees


def test_a_later_cause_is_found_before_its_effect_on_an_earlier_packet() -> None:
    """Packets are decided in the order of time: what comes first is told, not the packet with the lowest number."""
    found = agree.compare("codel", "codel target=6ms", Setup(random=3000))
    decided = float(re.findall(r"at ([0-9.]+) ms", found.answers[0] + found.answers[1])[0])
    assert not found.agrees
    assert all(float(re.findall(r"at ([0-9.]+) ms", row)[-1]) <= decided for row in found.before)
    assert len(found.before) == 10
    assert "Codel" in found.states[0]


def test_schedulers_agree_or_part_at_a_departure() -> None:
    assert agree.compare("TwinDrr", "drr", Setup(random=2000)).agrees
    found = agree.compare("Fifo", "fifo", Setup(random=2000))
    assert (found.kind, found.agrees) == ("scheduler", True)
    apart = agree.compare("FifoLast", "fifo", Setup(random=2000, before=3))
    number = int(apart.what.removeprefix("departure "))
    assert number >= 50
    assert [row.split(":")[0] for row in apart.before] == [f"departure {n}" for n in range(number - 3, number)]
    assert f"departures={number + 1}" in apart.states[0]
    assert "Fifo" in apart.states[1]


class Reno(lab.CongestionControl):
    """NewReno, but for `keep`."""

    keep = 0.5

    def __init__(self) -> None:
        self.acked: float = 0
        self.limit = 2 * self.mss

    def on_ack(self, ack: lab.Ack) -> None:
        if self.cwnd < self.ssthresh:
            self.cwnd += min(ack.acked, self.limit)
            return
        self.limit = 2 * self.mss
        self.acked += min(ack.acked, self.cwnd)
        if self.acked >= self.cwnd:
            self.acked -= self.cwnd
            self.cwnd += self.mss

    def on_loss(self, loss: lab.Loss) -> None:
        self.ssthresh = max(int(self.keep * loss.in_flight), 2 * self.mss)
        self.acked, self.limit = 0, 2 * self.mss

    def on_rto(self, loss: lab.Loss) -> None:
        super().on_rto(loss)
        self.limit = self.mss


def test_controls_part_at_the_first_loss_that_they_treat_differently() -> None:
    assert agree.compare("Reno", "newreno", Setup(random=3000)).agrees
    found = agree.compare("Reno keep=0.6", "newreno", Setup(random=3000))
    assert re.match(r"event \d+, (loss|ecn|rto) at ", found.what), found.what
    assert "keep=0.6" in found.states[0]
    assert "NewReno" in found.states[1]


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("codle", "codel", r"there is no algorithm 'codle'; did you mean codel\?"),
        ("codel", "cubic", "codel is a discipline, cubic is a control: two algorithms of one kind"),
        ("codel traget=5ms", "codel", r"did you mean `target`\?"),
        ("Refuses least=2", "codel", "Refuses has no parameter 'least'"),
    ],
)
def test_mistakes_of_agree(a: str, b: str, said: str) -> None:
    with pytest.raises(MistakeError, match=said):
        agree.compare(a, b, Setup(random=10))


def test_the_command_agrees_with_0_and_parts_with_1(penstock: Command, tmp_path: Path) -> None:
    for file in ("step.py", "turns.py"):
        shutil.copy(EXAMPLES / file, tmp_path)
    same = penstock("verify", "agree", "step.py:Step", "step.py:Step target_ms=10", "--random", "500")
    assert (same.returncode, same.stderr) == (0, "")
    assert "agree on all 500 packets" in same.stdout
    apart = penstock("verify", "agree", "turns.py:Turns", "drr", "--random", "500", "--json")
    found = json.loads(apart.stdout)
    assert (apart.returncode, found["agrees"], found["kind"]) == (1, False, "scheduler")
    assert found["algorithms"] == ["turns.py:Turns", "drr"]
    shown = penstock("verify", "agree", "turns.py:Turns", "drr", "--random", "500", "--before", "2").stdout
    assert shown.count("  both   ") == 1, "they part at departure 1"
    assert "state: turn=" in shown


# `reproduce --with`.


def test_an_own_aqm_runs_in_every_setting_of_an_experiment(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "step.py", tmp_path)
    published = EXPERIMENTS["modified-codel"]
    mine = with_own(published, [f"{tmp_path / 'step.py'}:Step"])
    theirs, ours = ({case.setting for case in one.cases(True, 1)} for one in (published, mine))
    own = [case for case in mine.cases(True, 1) if case.aqm == "Step"]
    assert {case.setting for case in own} == theirs == ours
    for case in own:
        tables = aqm_tables(tree(mine.scenario(case, True).text))
        assert all(table == {"name": f"{tmp_path / 'step.py'}:Step"} for table in tables), "no parameter of others"
    kept = [case for case in mine.cases(True, 1) if case.aqm != "Step"]
    assert [mine.scenario(case, True).text for case in kept] == [
        published.scenario(case, True).text for case in published.cases(True, 1)
    ]


def test_a_changed_file_runs_again_and_the_others_do_not(penstock: Command, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "step.py", tmp_path)
    assert penstock("new", "experiment", "my-study").returncode == 0
    command = ("reproduce", "./my-study", "--quick", "--with", "step.py:Step", "--json")
    first = json.loads(penstock(*command).stdout)
    assert {run["aqm"] for run in first["runs"]} == {"droptail", "codel", "Step"}
    again = penstock(*command)
    assert "s of CPU" not in again.stderr
    text = (tmp_path / "step.py").read_text()
    (tmp_path / "step.py").write_text(text.replace("target_ms = 10.0", "target_ms = 3.0"))
    changed = json.loads(penstock(*command).stdout)

    def summaries(found: dict[str, Any], aqm: str) -> list[Any]:
        return [run["summary"] for run in found["runs"] if run["aqm"] == aqm]

    assert summaries(changed, "codel") == summaries(first, "codel")
    assert summaries(changed, "Step") != summaries(first, "Step")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("step.py", "--with step.py: write FILE.py:CLASS"),
        ("{0}/my_cc.py:MyCc", "a congestion control; a class that derives from Aqm, Scheduler or AckPath"),
        ("{0}/none.py:Step", "there is no file"),
    ],
)
def test_mistakes_of_with(name: str, said: str) -> None:
    with pytest.raises(MistakeError, match=said):
        with_own(EXPERIMENTS["modified-codel"], [name.format(EXAMPLES)])
