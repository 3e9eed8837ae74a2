"""`penstock verify cc` and `verify fates`: the kernel's windows are met, and differences made by hand are told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from conftest import Command
from penstock.mistake import MistakeError
from penstock.verify import fates, forms, rounds

KERNEL = Path(__file__).resolve().parents[1] / "crates" / "trace" / "tests" / "data"
FATES = "id,t_arr_ns,flow,size,ecn_in,fate,t_fate_ns,sojourn_ns,ecn_out\n"
LINK = ("--aqm", "droptail", "--rate", "8Mbit/s", "--limit", "1p")


def test_the_kernels_windows_are_met(penstock: Command) -> None:
    done = penstock("verify", "cc", KERNEL / "tcp_hybla_rtt100.csv", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["cc"], found["settings"]) == ("hybla", ["compat=linux"])
    assert (found["rounds"], found["equal"], found["first"], found["agrees"]) == (500, 500, None, True)
    told = penstock("verify", "cc", KERNEL / "tcp_hybla_rtt100.csv", "--cc", "hybla")
    assert told.returncode == 1, "the form of the literature is another one"
    assert "parts from the reference" in told.stdout


def test_the_pacing_of_cubic_is_found_and_told(penstock: Command, tmp_path: Path) -> None:
    """HyStart, by hand: in the fourth round ACKs come every 1.25 ms, a train.

    More than half of a round trip after the first ACK comes the 42nd: with 122 segments slow start ends. Of a sender
    that paces, a train of a whole round trip says nothing, and the window doubles.
    """
    rows = ["0,0,10,1000,-,20", "1,100000,20,1000,-,40", "2,200000,40,1000,-,80", "3,300000,80,1000,-,"]
    for window, paced in ((160, "true"), (122, "false")):
        file = tmp_path / "tcp_cubic_rtt100.csv"
        file.write_text("\n".join([",".join(rounds.COLUMNS), *rows]) + f"{window}\n")
        done = penstock("verify", "cc", file.name, "--json")
        found = json.loads(done.stdout)
        assert (done.returncode, found["settings"]) == (0, [f"paced={paced}", "hystart=true"]), done.stdout
        assert found["by_pacing"] == {"paced=false": 3 + (paced == "false"), "paced=true": 3 + (paced == "true")}
        other = {"true": "false", "false": "true"}[paced]
        done = penstock("verify", "cc", file.name, "--set", f"paced={other}")
        assert done.returncode == 1, done.stdout
        assert "does not say" not in done.stdout
    for name in ("cubic", "cubic_nohystart"):
        done = penstock("verify", "cc", KERNEL / f"tcp_{name}_rtt100.csv")
        assert done.returncode == 0, done.stdout
        assert "The reference does not say whether its sender paced" in done.stdout


def test_a_window_that_differs_is_told_with_its_round(tmp_path: Path) -> None:
    lines = (KERNEL / "tcp_reno_rtt100.csv").read_text().splitlines()
    round_7 = next(i for i, line in enumerate(lines) if line.startswith("7,"))
    lines[round_7] = lines[round_7].rsplit(",", 1)[0] + ",107"  # 104 in the kernel
    (tmp_path / "tcp_reno_rtt100.csv").write_text("\n".join(lines) + "\n")
    read = rounds.read(tmp_path / "tcp_reno_rtt100.csv")
    found = rounds.compare(read, *forms.linux("reno"))
    assert (found.equal, found.within, found.agrees) == (499, 499, False)
    assert found.first == found.largest == rounds.Part(7, 700_000, 107, 104)
    assert rounds.compare(read, *forms.linux("reno"), tolerance=3).agrees


@pytest.mark.parametrize(
    ("name", "cc"),
    [("tcp_bic_rtt100.csv", "bic"), ("tcp_cubic_nohystart_rtt20.csv", "cubic_nohystart"), ("reno.csv", "reno")],
)
def test_the_file_names_the_control(name: str, cc: str) -> None:
    assert rounds.name_of(Path(name)) == cc


def test_references_that_cannot_be_are_told_with_their_line(tmp_path: Path) -> None:
    head = ",".join(rounds.COLUMNS) + "\n"
    file = tmp_path / "reference.csv"
    for text, told in (
        ("round,t_us\n", "line 1: no column cwnd_start"),
        (head + "0,0,10,100,-,20\n", "1 rounds; at least 2"),
        (head + "0,0,10,100,-,20\n1,x,10,100,-,20\n", "line 3: round, times"),
        (head + "0,0,10,100,los,20\n", "event is 'los'"),
        (head + "0,0,0,100,-,20\n", "cwnd_start is 0"),
    ):
        file.write_text(text)
        with pytest.raises(MistakeError, match=told):
            rounds.read(file)
    with pytest.raises(MistakeError, match="No such file"):
        rounds.read(tmp_path / "nowhere.csv")


# Three packets of 1000 B at once before a link that takes 1 ms for each, and room for one: sent, waits, no room.
KERNELS = "0,0,1,1000,0,sent,0,0,0\n1,0,1,1000,2,sent,1000000,1000000,2\n2,0,2,1000,0,drop_enq_limit,0,0,0\n"


def test_the_fates_of_another_program_are_met(penstock: Command, tmp_path: Path) -> None:
    (tmp_path / "fates.csv.gz").write_bytes(gzip.compress((FATES + KERNELS).encode()))
    done = penstock("verify", "fates", "fates.csv.gz", *LINK, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["packets"], found["apart"], found["agrees"]) == (3, 0, True)
    assert found["counts"] == {"drop_overflow": {"reference": 1, "here": 1}, "sent": {"reference": 2, "here": 2}}


def test_a_fate_that_differs_is_told_with_its_packet(penstock: Command, tmp_path: Path) -> None:
    other = KERNELS.replace("sent,1000000,1000000,2", "sent,1000007,1000007,3").replace(
        "drop_enq_limit", "drop_deq_aqm"
    )
    (tmp_path / "fates.csv").write_text("# made by hand\n" + FATES + other)
    done = penstock("verify", "fates", "fates.csv", *LINK, "--json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    numbers = [found[key] for key in ("apart", "fates_apart", "times_apart", "ecn_apart", "largest_ns")]
    assert numbers == [2, 1, 1, 1, 7]
    assert (found["first"]["id"], found["first"]["here"]["t_ns"], found["first"]["reference"]["ecn"]) == (
        1,
        1_000_000,
        3,
    )
    assert found["pairs"]["drop_dequeue -> drop_overflow"] == 1
    shown = penstock("verify", "fates", "fates.csv", *LINK, "--tolerance", "7")
    assert shown.returncode == 1
    assert "other fate" in shown.stdout


def test_fates_that_cannot_be_are_told_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "fates.csv"
    for text, told in (
        ("id,fate\n", "line 1: no column t_arr_ns"),
        (FATES + "0,0,1,1000,0,lost,0,0,0\n", "line 2: fate is 'lost'"),
        (FATES + "0,zero,1,1000,0,sent,0,0,0\n", "line 2: times"),
    ):
        file.write_text(text)
        with pytest.raises(MistakeError, match=told):
            fates.read(file)
