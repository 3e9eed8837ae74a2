"""Ladders played against Linux: it does the same, but for what docs/reference/tcp.md names of Accurate ECN."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from penstock import jar
from penstock.mistake import MistakeError

PLAYER = Path(__file__).with_name("kernel_ladders.py")
FOLDER = PLAYER.parents[1] / "crates/sim/tests/ladders"
LADDERS = (FOLDER / "accecn.ladder").read_text(encoding="utf-8")
# What Linux 7.2 does instead; docs/reference/tcp.md has the reasons.
DIFFERENT: dict[str, list[str]] = {
    "both sides agree, and the client tells how the SYN-ACK came (RFC 9768 §3.1.1, Tables 2 and 3)": [
        "- .W 1:1 ack 1 accecn0 1/0/1 notect",
        "+ .W 1:1 ack 1 accecn1 1/0/1 ect0",
    ],
    "a server tells how the SYN came, and counts what comes (RFC 9768 Table 2, §3.2)": [
        "+ . 1:1 ack 5001 accecn1 1/3000/1001 ect0",
    ],
    "a receiver of ECT(1) puts its counter first (RFC 9768 §3.2.3.3)": [
        "+ .EA 1:1 ack 1001 accecn1 1001/0/1 ect0",
        "+ .WA 1:1 ack 4001 accecn1 2001/1000/1001 ect0",
    ],
    "SYNs that ask for both kinds of feedback are refused (RFC 9768 §3.1.5)": [
        "- R. 1:1 ack 1",
        "+ S.W 0:0 ack 1 notect",
    ],
    "a client of RFC 3168 is answered as ever (RFC 9768 Table 2)": [
        "- S.E 0:0 ack 1",
        "- .E 1:1 ack 1001",
        "+ S. 0:0 ack 1 notect",
        "+ . 1:1 ack 1001 notect",
    ],
    "both open at once: each answers as a server (RFC 9768 §3.1.2)": [
        "+ .EA 1:1 ack 1 ect0",
    ],
    "a SYN that comes after the handshake is answered with the counter (RFC 9768 §3.1.5)": [
        "- .EA 1:1 ack 1",
        "+ .WA 1:1 ack 1 ect0",
    ],
    "a SYN that was marked is told so, and counts nothing (RFC 9768 Table 2, §3.2.2.2)": [
        "+ .EA 1:1 ack 1001 accecn1 1/0/1001 ect0",
    ],
    "a client whose SYN was mangled sends no ECT, but goes on with feedback (RFC 9768 §3.2.2.3)": [
        "- P.EA 1:1001 accecn0 1/0/1 notect",
        "+ P.EA 1:1001 ack 1 accecn1 1/0/1 ect0",
    ],
    "a first ACE of zero ends ECT and the response (RFC 9768 §3.2.2.4)": [
        "ssthresh 2000 for 18446744073709551615",
        "- P.EA 2001:3001 notect",
        "+ P.EA 2001:3001 ack 1 ect0",
    ],
}


def by_this_kernel(wanted: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Plays ladders against the kernel of this machine."""
    (directory / "wanted.json").write_text(json.dumps(wanted), encoding="utf-8")
    subprocess.run([sys.executable, "-I", PLAYER, directory], check=True, timeout=60)
    found: dict[str, Any] = json.loads((directory / "recorded.json").read_text(encoding="utf-8"))
    return found


def by_a_jar(wanted: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Plays ladders against the kernel of a jar, if there is one."""
    try:
        kernel = jar.opened(jar.find(), jar.ENVIRONMENT)
    except MistakeError as error:
        return {"error": str(error)}
    (directory / "wanted.json").write_text(json.dumps(wanted), encoding="utf-8")
    printed = kernel.run(PLAYER, directory)
    file = directory / "recorded.json"
    assert file.is_file(), jar.last_lines(printed)
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def test_linux_does_as_the_ladders_say(tmp_path: Path) -> None:
    wanted = {"ladders": LADDERS, "accurate": 3}
    found = by_this_kernel(wanted, tmp_path)
    if "error" in found:
        missing, found = found["error"], by_a_jar(wanted, tmp_path)
        if "error" in found:
            pytest.skip(f"{missing}; {found['error']}")
    assert found["differences"].keys() >= DIFFERENT.keys()
    unknown = {title: now for title, now in found["differences"].items() if now not in ([], DIFFERENT.get(title, []))}
    assert unknown == {}, found["kernel"]


def of_the_kernels_form() -> str:
    """The ladders of controls in the form of Linux, but those that name a timestamp, as the kernel has another, of a
    buffer, in which it counts its memory, and of Accurate ECN, which not every kernel has."""
    blocks = [
        block
        for name in ("kernel", "rack")
        for block in (FOLDER / f"{name}.ladder").read_text(encoding="utf-8").split("\n== ")[1:]
    ]
    left_out = ("accurate_ecn", "receive_buffer")
    chosen = [
        block
        for block in blocks
        if 'compat = "linux"' in block and "timestamps = false" in block and not any(key in block for key in left_out)
    ]
    return "".join(f"\n== {block}\n" for block in chosen)


def test_endpoints_of_the_kernels_form_do_as_linux(tmp_path: Path) -> None:
    """In a jar alone: whether the kernel waits for an ACK is a matter of tenths of a millisecond."""
    ladders = of_the_kernels_form()
    found = by_a_jar({"ladders": ladders, "accurate": 0}, tmp_path)
    if "error" in found:
        pytest.skip(found["error"])
    assert len(found["differences"]) == ladders.count("\n== ") >= 6
    assert {title: now for title, now in found["differences"].items() if now} == {}, found["kernel"]
