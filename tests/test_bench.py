"""The benchmark says the same network to both programs, and computes what it says it computes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from penstock import bench, engine, ns3, testbed
from penstock.bench import cases, compare, costs, emulated, instructions, layers, own, schedulers
from penstock.cli import speed
from penstock.mistake import MistakeError
from penstock.testbed import LabError
from penstock.verify import lab

PEER = ns3.Run(
    packets=1000,
    cpu_s=0.05,
    wall_s=0.06,
    goodput_bps=1e6,
    utilization=0.9,
    events=9000,
    drops=3,
    drops_elsewhere=0,
    version="3.37",
    build="made up",
)
SUMMARY: dict[str, Any] = {
    "duration_s": 20.0,
    "events": 6000,
    "flows": [{}, {}],
    "bottlenecks": [{"packets": 2000, "utilization": 0.95, "drops_overflow": 4, "drops_aqm": 1}],
}


def case(with_peer: bool = True) -> cases.Case:
    return cases.Case("made-up", cases.tree("dsl-4"), with_peer)


def test_units_become_those_of_ns3() -> None:
    said = ns3.arguments(cases.tree("dsl-4"))
    assert "--rate=10000000bps" in said
    assert "--delay=50000000ns" in said
    assert "--access-delay=1450000ns" in said
    assert "--limit=125000B" in said
    assert "--mss=1000" in said
    assert "--flows=4" in said
    assert "--aqm=droptail" in said


def test_parameters_of_red_are_said() -> None:
    said = ns3.arguments(cases.tree("thousand-red"))
    assert {"--red-min=500", "--red-max=1500", "--red-max-p=0.1", "--red-weight=0.002", "--red-wait=true"} <= set(said)
    assert "--limit=2500p" in said


@pytest.mark.parametrize(("section", "key"), [("tcp", "rack"), ("topology", "reverse_limit")])
def test_what_ns3_is_not_told_is_refused(section: str, key: str) -> None:
    scenario = copy.deepcopy(cases.tree("dsl-4"))
    scenario[section][key] = True
    with pytest.raises(MistakeError, match=rf"\[{section}\] {key}: is not something ns-3 is told"):
        ns3.arguments(scenario)


def test_a_default_on_which_the_programs_differ_is_refused() -> None:
    scenario = copy.deepcopy(cases.tree("dsl-4"))
    del scenario["tcp"]["min_rto"]
    with pytest.raises(MistakeError, match=r"\[tcp\] min_rto: must be given"):
        ns3.arguments(scenario)


@pytest.mark.parametrize("text", ["10", "fast", "10parsec", "-1s", ""])
def test_a_number_needs_a_known_unit(text: str) -> None:
    with pytest.raises(MistakeError):
        cases.time_ns(text)


@pytest.mark.parametrize(("full", "short"), [("100s", "20s"), ("60s", "12s"), ("5s", "2s"), ("10s", "2s")])
def test_quick_is_a_fifth_but_longer_than_the_starts(full: str, short: str) -> None:
    assert cases.shorter(full) == short


def test_every_scenario_is_there_and_those_with_a_peer_can_be_said() -> None:
    loaded = cases.load(quick=False)
    assert {c.name for c in loaded} == {path.stem for path in cases.SCENARIOS.glob("*.toml")}
    for one in loaded:
        assert one.tree["name"] == one.name
        if one.with_peer:
            ns3.arguments(one.tree)


def test_the_ratio_is_of_costs_per_packet() -> None:
    # 2000 packets in 1 ms are 500 ns each; 1000 packets in 50 ms are 50 us each: 100 times as much.
    row = compare.row(case(), SUMMARY, 0.001, PEER, None)
    assert row.ns_per_packet == pytest.approx(500)
    assert row.ratio == pytest.approx(100)
    assert row.drops == 5
    assert row.to_json()["peer"] == "ns-3 3.37"


def test_without_the_peer_its_fields_are_null() -> None:
    row = compare.row(case(), SUMMARY, 0.001, None, None).to_json()
    assert [row[key] for key in ("peer", "peer_cpu_s", "ratio")] == [None, None, None]
    assert row["packets"] == 2000


def test_the_least_cpu_time_of_each_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Result:
        def __init__(self, cpu_s: float) -> None:
            self.cpu_s, self.summary = cpu_s, SUMMARY

    # The second turn has three short runs, as together they take a tenth of a second.
    ours, theirs = iter([0.4, 0.06, 0.02, 0.03, 0.3]), iter([0.9, 0.8, 0.7])
    monkeypatch.setattr(engine, "run", lambda _tree: Result(next(ours)))
    monkeypatch.setattr(ns3, "run", lambda _program, _tree: ns3.Run(**{**vars(PEER), "cpu_s": next(theirs)}))
    row = compare.measure(case(), Path("program"), 3, lambda _line: None)
    assert row.cpu_s == 0.02
    assert row.peer is not None
    assert row.peer.cpu_s == 0.7
    assert next(ours, None) is None


def test_a_peer_that_fails_leaves_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Result:
        cpu_s, summary = 0.002, SUMMARY

    def fail(_program: Path, _tree: object) -> ns3.Run:
        raise ns3.PeerError("out of memory")

    monkeypatch.setattr(engine, "run", lambda _tree: Result())
    monkeypatch.setattr(ns3, "run", fail)
    row = compare.measure(case(), Path("program"), 2, lambda _line: None)
    assert (row.peer, row.peer_failure) == (None, "out of memory")


def test_a_program_that_ends_badly_is_a_peer_error(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho 'no such queue' >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(ns3.PeerError, match="no such queue"):
        ns3.run(program, cases.tree("dsl-4"))


def test_instructions_of_starting_are_left_out() -> None:
    def counted(instructions_run: int, packets: int) -> instructions.Counted:
        return instructions_run, {"bottlenecks": [{"packets": packets}], "bytes_per_flow": 2000}

    # 1 million to start, 4000 for each packet.
    count = instructions.between(counted(5_000_000, 1000), counted(13_000_000, 3000))
    assert (count.per_packet, count.bytes_per_flow) == (4000, 2000)


def test_the_total_of_a_callgrind_file() -> None:
    assert instructions.total("events: Ir\nfn=(1) main\n16 400\n\ntotals: 123456\n") == 123456


def test_an_interrupted_benchmark_shows_what_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = iter([compare.row(case(), SUMMARY, 0.001, None, None)])

    def once(*_: object) -> compare.Row:
        try:
            return next(done)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(bench, "measure", once)
    assert speed.main(json=True, quick=True, peer=False) == 130
    printed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in printed["rows"]] == ["made-up"]
    assert printed["interrupted"] is True
    assert "--no-peer" in printed["peer_missing"]
    assert printed["disciplines"] is None
    assert printed["disciplines_missing"] == "not reached"


DISCIPLINES = [
    {"name": "codel", "kind": "aqm", "flows": 1, "backlog": 1000, "ns_per_packet": 60.0},
    {"name": "codel", "kind": "aqm", "flows": 1024, "backlog": 1000, "ns_per_packet": 60.1},
    {"name": "fq-codel", "kind": "flow-queueing", "flows": 1, "backlog": 1000, "ns_per_packet": 119.9},
]
PINK = {
    "config": {},
    "sizes": [
        {"flows": 1000, "ns_per_ack": 59.0, "ns_per_data_packet": 41.0, "bytes_per_flow": 128},
        {"flows": 100_000, "ns_per_ack": 147.6, "ns_per_data_packet": 102.5, "bytes_per_flow": 128},
    ],
    "ack_ratio": 1.5,
    "data_ratio": 1.25,
}
CONTROLS = [
    {"name": "newreno", "ns_per_ack": 40.0},
    {"name": "cubic", "ns_per_ack": 40.1},
    {"name": "bbr", "ns_per_ack": 79.9},
]
COOP = {"clients": 10_000, "join_ns": 2001.0, "used_ns": 900.0, "leave_ns": 2000.0, "memory_full_bytes": 1_600_000}


@pytest.fixture
def cargo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cargo that prints what the examples would, and keeps what it was asked."""
    asked = tmp_path / "asked"
    stubs = (("qdisc_cost", DISCIPLINES), ("pink_cost", PINK), ("cc_cost", CONTROLS), ("coop_cost", COOP))
    for name, printed in stubs:
        (tmp_path / name).write_text(json.dumps(printed))
    stub = tmp_path / "cargo"
    stub.write_text(
        f'#!/bin/sh\necho "$@" >>{asked}\n'
        f"for name in {' '.join(name for name, _ in stubs)}; do\n"
        f'case "$*" in *$name*) cat {tmp_path}/$name;; esac; done\n'
    )
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return asked


def test_costs_are_held_against_their_bars(cargo: Path) -> None:
    alone = costs.measure(quick=False, say=lambda _line: None)
    assert isinstance(alone.disciplines, list)
    assert [(row["bar_ns"], row["met"]) for row in alone.disciplines] == [(60, True), (60, False), (120, True)]
    assert isinstance(alone.pink, dict)
    assert alone.pink["sizes"][0]["met"] == {"ns_per_ack": True, "ns_per_data_packet": False, "bytes_per_flow": True}
    # With more flows two and a half times as much as with the fewest: 147.5 and 102.5 ns.
    assert alone.pink["sizes"][1]["met"] == {"ns_per_ack": False, "ns_per_data_packet": True, "bytes_per_flow": True}
    assert isinstance(alone.controls, list)
    assert [(row["bar_ns"], row["met"]) for row in alone.controls] == [(40, True), (40, False), (80, True)]
    assert isinstance(alone.coop, dict)
    assert alone.coop["met"] == {"join_ns": False, "leave_ns": True}
    first, *others = cargo.read_text().splitlines()
    assert first == "run --release --locked --quiet --package penstock-core --example qdisc_cost"
    assert [line.split()[-1] for line in others] == ["pink_cost", "cc_cost", "coop_cost"]


def test_quick_shows_pink_fewer_packets(cargo: Path) -> None:
    costs.measure(quick=True, say=lambda _line: None)
    assert cargo.read_text().splitlines()[1].endswith("--example pink_cost -- packets=400000")


def test_what_an_example_does_not_say_is_missing(cargo: Path) -> None:
    (cargo.parent / "qdisc_cost").write_text("no JSON")
    (cargo.parent / "cargo").write_text("#!/bin/sh\necho 'error: no such example' >&2\nexit 101\n")
    told = costs.measure(quick=True, say=lambda _line: None).to_json()
    assert (told["disciplines"], told["pink"]) == (None, None)
    assert told["disciplines_missing"] == "qdisc_cost failed: error: no such example"
    (cargo.parent / "cargo").write_text("#!/bin/sh\necho 'no JSON'\n")
    assert "qdisc_cost: not JSON" in str(costs.measure(quick=True, say=lambda _line: None).disciplines)


def test_without_cargo_costs_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert costs.measure(quick=True, say=lambda _line: None).pink == "no cargo in PATH"


EMULATED = emulated.Costs(
    None,
    (
        emulated.Line("TUN", 20, 190.0, 200.0, 0.95, 3.9, 3.5, 0.01),
        emulated.Line("ports", 1, 170.0, 200.0, 0.85, 3.0, 2.8, 0.02),
        emulated.Line("kernel", 1, 300.0, None, None, None, None, None),
    ),
    (
        emulated.Rate("ports", 100, 1500.0, 0.006),
        emulated.Rate("TUN", 1000, 900.0, -0.1),
        emulated.Rate("kernel", 100, 1500.0, 0.0),
    ),
    (
        emulated.Idle("TUN", False, 149.0, 60.0, 50.0, 90.0, 110.0),
        emulated.Idle("TUN", True, 31.0, 2.0, 50.0, 90.0, 60.0),
    ),
    (0.5, 1.5),
)


def _has_emulator() -> bool:
    try:
        return not testbed.impossible() and lab.find_emulator(None).is_file()
    except (LabError, MistakeError):
        return False


@pytest.mark.skipif(not _has_emulator(), reason="needs root, namespaces and penstock-emulate")
def test_the_emulator_is_measured_beside_the_kernel() -> None:
    """No bar is tested: a busy machine meets none. A link is never faster than its rate."""
    measured = emulated._Bench(lab.find_emulator(None), quick=True)
    for path in (emulated.TUN, emulated.PORTS, emulated.KERNEL):
        found = measured.rate(path, 10)
        assert found.offered_mbps > 1
        assert -1 < found.error < emulated.RATE_ERROR
    for path, many in ((emulated.PORTS, 1), (emulated.TUN, 20)):
        kpps, cpu_us, wakeups = measured._carried(path, many, ["--bare"])
        assert kpps > 0
        assert 0 < cpu_us < 1e6
        assert wakeups >= 0
    silent, _ = measured.round_trip(emulated.KERNEL, polls_s=0.005)
    assert silent > 5000


@pytest.mark.usefixtures("cargo")
def test_the_benchmark_shows_all_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench, "measure", lambda *_: compare.row(case(), SUMMARY, 0.001, None, None))
    monkeypatch.setattr(instructions, "count", lambda _say: "not asked for")
    scheduled = schedulers.Costs((schedulers.Cost("drr", 1000, 32.5, 6.0, 1.0, 80.0, 32.0),), None)
    monkeypatch.setattr(schedulers, "measure", lambda *_: scheduled)
    monkeypatch.setattr(layers, "measure", lambda *_: [layers.Cost("a", 100, 50.0, 59.0), layers.Cost("b", 9, 50, 61)])
    monkeypatch.setattr(own, "measure", lambda *_: [own.Cost("mine.py:Mine", "newreno", 2000, 1500.0, 500.0, 2)])
    monkeypatch.setattr(emulated, "measure", lambda *_: EMULATED)
    assert speed.main(json=True, quick=True, peer=False) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {"name", "packets", "cpu_s", "ns_per_packet", "peer", "peer_cpu_s", "ratio"} <= printed["rows"][0].keys()
    assert [row["name"] for row in printed["disciplines"]] == ["codel", "codel", "fq-codel"]
    assert [row["name"] for row in printed["controls"]] == ["newreno", "cubic", "bbr"]
    assert [(row["ratio"], row["met"]) for row in printed["layers"]] == [(1.18, True), (1.22, False)]
    assert [row["ns_per_call"] for row in printed["python"]] == [500], "1000 ns more, in two calls"
    assert [row["met"] for row in printed["emulator"]["line"]] == [True, False, None]
    assert [row["met"] for row in printed["emulator"]["rates"]] == [False, None, None]
    assert [row["met"] for row in printed["emulator"]["idle"]] == [True, False]
    assert printed["emulator_missing"] is None
    assert printed["pink"]["sizes"][0]["bars"] == {"ns_per_ack": 60, "ns_per_data_packet": 40, "bytes_per_flow": 128}
    assert speed.main(quick=True, peer=False) == 0
    table = capsys.readouterr().out
    lines = [line.split() for line in table.splitlines()]
    assert ["codel", "1,024", "1,000", "60.1", "60", "no"] in lines
    assert ["fq-codel", "1", "1,000", "119.9", "120", "yes"] in lines
    assert ["bbr", "79.9", "80", "yes"] in lines
    assert ["drr", "1,000", "32.5", "6.0", "1.00", "80", "32", "no"] in lines
    assert ["b", "9", "50.0", "61.0", "1.22", "1.2", "no"] in lines
    assert ["mine.py:Mine", "newreno", "2,000", "1,500", "500", "500", "2"] in lines
    assert ["1,000", "59.0", "60", "yes", "41.0", "40", "no", "128", "128", "yes"] in lines
    assert "ACKs 1.50, data 1.25" in table
    assert ["TUN", "20", "190", "200", "0.95", "3.90", "3.50", "0.010", "yes"] in lines
    assert ["ports", "100", "1500.0", "+0.60%", "no"] in lines
    assert ["TUN", "polling", "31", "2", "50", "90", "60", "no"] in lines
    assert "load average: 0.5 before, 1.5 after" in table
    assert ["10,000", "2001", "no", "2000", "yes", "2000", "900", "1,600,000"] in lines


def test_two_layers_are_measured() -> None:
    found = layers.measure(quick=True, say=lambda _line: None)
    assert len({cost.case for cost in found}) == len(found) == 3
    assert all(0 < cost.double_drr_ns < 10_000 and 0 < cost.hfs_ns < 10_000 for cost in found)


def test_the_cost_of_python_is_measured() -> None:
    control, aqm, turns, clamp = own.measure(quick=True, repeat=1, say=lambda _line: None)
    assert (control.name, control.instead_of, aqm.instead_of) == ("my_cc.py:MyCc", "newreno", "droptail")
    assert (turns.name, clamp.name) == ("turns.py:Turns", "clamp.py:Clamp")
    # 12 s of a link that carries 8,333 packets of 1500 B each second.
    assert 60_000 < control.packets < 100_000
    assert 50 < control.ns_per_call < 100_000


def test_ns3_fills_a_bottleneck_as_theory_says() -> None:
    # Four flows, a queue of nearly one bandwidth-delay product: the link is busy but for the start, and every packet
    # that leaves carries 1000 B of payload in 1052 B.
    program, missing = ns3.ready()
    if program is None:
        pytest.skip(str(missing))
    run = ns3.run(program, {**cases.tree("dsl-4"), "duration": "20s"})
    most = 20 * 10e6 / 8 / 1052
    assert 0.9 * most < run.packets <= most
    assert run.utilization == pytest.approx(run.packets / most, abs=0.001)
    assert 0.9 * run.packets * 1000 * 8 / 20 < run.goodput_bps <= run.packets * 1000 * 8 / 20
    assert run.drops > 0
    assert run.drops_elsewhere == 0
