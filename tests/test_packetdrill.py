"""Scripts of packetdrill: their language, the rule of what is applicable, and the play against the simulated TCP."""

import json
from pathlib import Path

import pytest
from penstock.cli import app
from penstock.suites.packetdrill import judge
from penstock.suites.packetdrill.code import Untrue, run
from penstock.suites.packetdrill.host import Host
from penstock.suites.packetdrill.known import KNOWN
from penstock.suites.packetdrill.rule import unsuited
from penstock.suites.packetdrill.script import Call, Code, Command, Packet, parse
from penstock.suites.packetdrill.values import GrammarError
from typer.testing import CliRunner

SERVER = """
--tolerance_usecs=3000
`./defaults.sh
sysctl -q net.ipv4.tcp_congestion_control=reno`

    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0   // a listener
  +.1 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 8>
  +.1 < . 1:1(0) ack 1 win 257
   +0 accept(3, ..., ...) = 4
"""
TIMEOUT = """
   +0 write(4, ..., 1000) = 1000
   +0 > P. 1:1001(1000) ack 1
  +.3 > P. 1:1001(1000) ack 1
   +0 %{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd }%
  +.1 < . 1:1(0) ack 1001 win 257
   +0 close(4) = 0
   +0 > F. 1001:1001(0) ack 1
"""


def verdict(tmp_path: Path, text: str) -> tuple[str, str]:
    (tmp_path / "one.pkt").write_text(text)
    (found,) = judge(tmp_path)
    return found.verdict, found.why


def test_a_script_is_events_with_times() -> None:
    script = parse(
        SERVER + TIMEOUT + "+.1~+.2 > [ect0] P5. 1:11(10) ack 1 <nop,nop,sack 1:2 4:6,TS val 1 ecr 2>\n`sysctl x=1`"
    )
    assert script.options == {"tolerance_usecs": "3000"}
    assert script.before[0].startswith("./defaults.sh") and script.after == ["sysctl x=1"]
    kinds = [type(event.action) for event in script.events]
    assert kinds[:5] == [Call, Call, Call, Packet, Packet] and Code in kinds
    last = script.events[-1]
    assert (last.when.start, last.when.end) == (100_000, 200_000)
    packet = last.action
    assert isinstance(packet, Packet)
    assert (packet.flags, packet.ecn, packet.length) == (0x100 | 0x40 | 0x10 | 0x08, 2, 10)
    assert [(option.kind, option.value) for option in packet.options or ()] == [("sack", (1, 2, 4, 6)), ("TS", (1, 2))]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0 < icmp unreachable", "not a TCP packet"),
        ("socket() = 3\n", "no time"),
        ("0 close(3)", "no result"),
        ("0 > S 0:0(0) <mss 1,,nop>", "an empty option"),
    ],
)
def test_what_is_not_understood_is_said_with_its_line(text: str, why: str) -> None:
    with pytest.raises(GrammarError, match=f"line 1: .*{why}"):
        parse(text)


def test_commands_are_taken_by_their_meaning() -> None:
    host = Host()
    host.take(
        "../common/defaults.sh\nsysctl -q net.ipv4.tcp_ecn=3 net.ipv4.tcp_timestamps=0\nip route add 1.2.3.4 dev tun0"
    )
    client, server = host.options(True, 1460), host.options(False, 1000)
    assert (client["ecn"], client["accurate_ecn"], client["timestamps"]) == (True, True, False)
    assert server["mss"] == "1000B" and server["receive_buffer"] == "15728640B"
    assert host.foreign == ["ip route add 1.2.3.4 dev tun0"]
    host.take("sysctl -q net.ipv4.tcp_ecn=5")
    assert [host.options(client, 1460)["accurate_ecn"] for client in (True, False)] == [False, True]


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ("+0 send(4, ..., 10, MSG_MORE) = 10", "corking"),
        ("+0 setsockopt(4, SOL_TCP, TCP_FASTOPEN, [1], 4) = 0", "Fast Open"),
        ("+0 write(4, ..., 1000) = 500", "memory of the kernel"),
        ("+0 < . 1:1(0) ack 1 win 1 <md5 ab>", "option md5"),
        ("+0 `tc qdisc replace dev tun0 root pfifo limit 0`", "command tc qdisc replace"),
        ("+0 `tc qdisc replace dev tun0 root fq`", "pacing by fq"),
        ("+0 %{ assert tcpi_rcv_mss == 1 }%", "memory of the kernel"),
    ],
)
def test_the_rule_says_what_a_script_needs(event: str, why: str) -> None:
    assert unsuited(parse(SERVER + TIMEOUT)) == []
    assert unsuited(parse(SERVER + event)) == [why]


def test_a_script_passes_or_says_where_it_differs(tmp_path: Path) -> None:
    assert verdict(tmp_path, SERVER + TIMEOUT) == ("passed", "")
    for right, wrong, why in (
        ("+.3 >", "+.7 >", "line 16: time: P. 1:1001(1000) ack 1 at 0.5000"),
        ("tcpi_snd_cwnd == 10", "tcpi_snd_cwnd == 9", "line 17: not true: tcpi_snd_cwnd == 9: tcpi_snd_cwnd is 10"),
        ("F. 1001:1001(0)", "R. 1001:1001(0)", "line 20: flags: sent"),
        ("1:1001(1000) ack 1\n", "1:1001(1000) ack 1 win 7\n", "line 15: window: sent"),
    ):
        found = verdict(tmp_path, SERVER + TIMEOUT.replace(right, wrong, 1))
        assert found[0] == "differs" and found[1].startswith(why), found


def test_large_packets_are_segments_in_a_row(tmp_path: Path) -> None:
    whole = "+0 write(4, ..., 3000) = 3000\n+0 > P. 1:3001(3000) ack 1\n"
    parts = "+0 write(4, ..., 3000) = 3000\n+0 > . 1:2001(2000) ack 1\n+0 > P. 2001:3001(1000) ack 1\n"
    other = "+0 write(4, ..., 3000) = 3000\n+0 > . 1:1501(1500) ack 1\n"
    assert [verdict(tmp_path, SERVER + text)[0] for text in (whole, parts, other)] == ["passed", "passed", "differs"]


def test_calls_block_until_data_is_there(tmp_path: Path) -> None:
    waits = "+0...0.1 read(4, ..., 500) = 500\n+.1 < P. 1:501(500) ack 1 win 257\n+0 > . 1:1(0) ack 501\n"
    assert verdict(tmp_path, SERVER + waits) == ("passed", "")
    early = waits.replace("0.1 read", "0.05 read")
    assert "the end of the call" in verdict(tmp_path, SERVER + early)[1]
    never = "+0...0.1 read(4, ..., 500) = 500\n"
    assert "does not return" in verdict(tmp_path, SERVER + never)[1]


def test_code_is_evaluated_and_cannot_do_more() -> None:
    names = {"tcpi_rtt": 100}
    run("LIMIT = 2 * 50\nassert 0 < tcpi_rtt <= LIMIT and not tcpi_rtt & 1, 'rtt=%d' % tcpi_rtt", names)
    run("print(tcpi_rtt); assert max(tcpi_rtt, 3) == 100; \\\n assert True", names)
    with pytest.raises(Untrue, match="tcpi_rtt > 100: tcpi_rtt is 100"):
        run("assert tcpi_rtt > 100", names)
    for text in ("import os", "assert open('x')", "assert tcpi_rtt.real", "while True: pass", "assert ("):
        with pytest.raises(GrammarError):
            run(text, names)


def test_the_command_prints_verdicts_and_checks(tmp_path: Path) -> None:
    (tmp_path / "good.pkt").write_text(SERVER + TIMEOUT)
    (tmp_path / "bad.pkt").write_text(SERVER + TIMEOUT.replace("+.3 >", "+.7 >"))
    (tmp_path / "foreign.pkt").write_text(SERVER + "+0 pipe([5, 6]) = 0")
    told = CliRunner().invoke(app, ["suite", "packetdrill", str(tmp_path), "--json"])
    found = json.loads(told.output)
    assert found["numbers"] == {"passed": 1, "differs": 1, "not applicable": 1}
    assert [one["verdict"] for one in found["scripts"]] == ["differs", "not applicable", "passed"]
    assert CliRunner().invoke(app, ["suite", "packetdrill", str(tmp_path), "--check"]).exit_code == 1
    assert CliRunner().invoke(app, ["suite", "packetdrill", str(tmp_path / "good.pkt"), "--check"]).exit_code == 0


def test_each_known_difference_says_what_it_is() -> None:
    assert all(sentence.partition(":")[0] in ("choice", "open", "player") for sentence in KNOWN.values())


def test_a_command_between_events_is_one() -> None:
    assert isinstance(parse(SERVER + "+0 `sysctl -q net.ipv4.tcp_ecn=1`").events[-1].action, Command)
