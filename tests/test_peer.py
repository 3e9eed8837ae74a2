"""`penstock verify ns3`: the networks are dealt alike, differences are judged by the seeds, and causes by switches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from penstock import marked, ns3
from penstock.mistake import MistakeError
from penstock.verify import peer, peer_page

NETWORK = peer.Network(0, "hybla", 4, 100, "droptail", 29, 1)


def side(
    goodput: tuple[float, ...], queue: tuple[float, ...] = (20.0,), drops: tuple[float, ...] = (5.0,)
) -> peer.Side:
    return dict(zip(peer.MEASURES, (peer.Range.of(values) for values in (goodput, queue, drops)), strict=True))


def test_controls_and_disciplines_are_dealt() -> None:
    networks = peer.networks("0.1.0")
    assert networks == peer.networks("0.1.0") != peer.networks("0.1.1")
    assert {network.control for network in networks} == set(peer.CONTROLS)
    assert {network.aqm for network in networks} == set(peer.DISCIPLINES)


@pytest.mark.parametrize("seed", range(5))
def test_ns3_can_be_told_every_network_with_every_switch(seed: int) -> None:
    for network in peer.networks(str(seed)):
        for switch in peer.SWITCHES:
            if switch.concerns(network) and not switch.ours_alone:
                ns3.arguments(peer.theirs(switch.tree(network)))


def test_a_difference_is_one_if_the_seeds_have_no_number_in_common() -> None:
    assert peer.Compared(side((9.0, 9.4)), side((9.3, 9.8))).apart == []
    assert peer.Compared(side((9.0, 9.2)), side((9.3, 9.8))).apart == ["goodput_mbps"]
    assert peer.Compared(side((9.0,)), side((9.1,))).apart == [], "means within 2 %"


def test_a_discipline_can_look_away_from_the_packet_in_the_device() -> None:
    # A packet of 1500 B takes 3 ms at 4 Mbit/s.
    def aqm(name: str) -> Any:
        return peer.Network(0, "newreno", 4, 100, name, 29, 1).tree({}, one_less=True)["aqm"]

    assert (aqm("codel")["target"], aqm("pie")["target"]) == ("8000us", "18000us")
    assert (aqm("red")["min_threshold"], aqm("red")["max_threshold"]) == ("6p", "16p")
    assert aqm("red")["least_waiting"] == 3, "two in the queue, as ns-3 has it, and one in the device"


def test_marks_are_compared_as_well() -> None:
    marked = next(network for network in peer.networks("0") if network.ecn)
    said = ns3.arguments(peer.theirs(marked.tree({}, spread="1ms")))
    assert {"--aqm=red", "--aqm-ecn=true", "--ecn=true", "--start-spread=1000000ns"} <= set(said)
    assert not any("least" in option for option in said), "ns-3's RED has this rule by itself"
    plain = {**marked.tree({})["aqm"], "over_max": "mark"}
    assert "--red-hard-drop=false" in ns3.arguments(peer.theirs({**marked.tree({}), "aqm": plain}))
    with pytest.raises(MistakeError, match="over_max"):
        ns3.arguments(peer.theirs({**marked.tree({}), "aqm": {**plain, "over_max": "linear"}}))


def test_the_cause_is_the_first_switch_that_removes_the_difference() -> None:
    apart = peer.Compared(side((9.0,), (30.0,)), side((8.0,), (20.0,)))
    goodput_gone = peer.Compared(side((8.0,), (30.0,)), side((8.0,), (20.0,)))
    row = peer.Row(NETWORK, apart, {"acks": apart, "prr": goodput_gone})
    assert {name: row.cause(name) for name in apart.apart} == {"goodput_mbps": "prr", "queue_ms": "open"}
    assert peer_page.cells(row)[-1] == "goodput: prr, queue: open"
    assert peer_page.summary([row]) == "2 of 3 measures differ by more than the seeds: removed by open 1, prr 1"


def test_a_sender_of_a_published_experiment_can_be_said() -> None:
    tree = NETWORK.tree({"sack": False, "prr": False, "initial_window": 1, "ack_every_segment": True})
    told = {"--cc=hybla", "--sack=false", "--prr=false", "--initial-window=1", "--ack-every-segment=true"}
    assert told <= set(ns3.arguments(tree))
    with pytest.raises(MistakeError, match="compound"):
        ns3.arguments({**tree, "tcp": {**tree["tcp"], "cc": "compound"}})
    assert "--hybla-rtt=50000000ns" in ns3.arguments(NETWORK.tree({"cc": {"rtt0": "50ms"}}))


def test_without_ns3_it_says_so_in_one_sentence(penstock: Any) -> None:
    if ns3.ready()[0] is None:
        said = penstock("verify", "ns3").stdout
        assert said.startswith("SKIPPED: ") and said.count("\n") == 1


def test_the_table_is_written_between_its_marks(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"{marked.BEGIN}\n{marked.END}\n")
    peer_page.write(file, [peer.Row(NETWORK, peer.Compared(side((9.0,)), side((9.0,))), {})], "3.37", "0.1.0")
    assert (
        "| 0-hybla-4M-100ms-droptail-1 | 9.00 / 9.00 (1.00) | 20.0 / 20.0 (1.00) | 5 / 5 (1.00) | nothing |"
        in file.read_text()
    )
    assert file.with_suffix(".json").is_file()
