"""Links of the playground: what they hold, what damages them, and what `penstock run` does with them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import SCENARIO, Command
from penstock import link

SOURCE = Path(__file__).parents[1] / "web" / "playground" / "src"
TEXTS = [SCENARIO, 'name = "ü"\r\n# \t two\n']
# Written by hand: a stored block of DEFLATE (RFC 1951 section 3.2.4: last, stored, length 3 and its complement) with
# the text "a=1", which no compressor of ours made.
BY_HAND = "p1=AQMA_P9hPTE"

node = pytest.mark.skipif(not shutil.which("node"), reason="needs node: apt-get install nodejs")


def in_node(program: str, given: object) -> object:
    """Runs a program after link.js; `given` is what it has as `given`, and it prints JSON."""
    text = f"const given = {json.dumps(given)};\n{(SOURCE / 'link.js').read_text()}\n{program}"
    done = subprocess.run(["node", "-e", text], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def test_a_link_is_known_by_its_fragment() -> None:
    assert link.is_link("https://example.org/a/#p1=AQ") and link.is_link("p1=AQ") and link.is_link("file:///x.html#p1=")
    assert not link.is_link("p1.toml") and not link.is_link("runs/p1=x.toml") and not link.is_link("x#p2=AQ")


def test_the_format_is_that_of_its_description() -> None:
    assert link.decode(f"https://example.org/#{BY_HAND}") == ["a=1"]


def test_every_text_comes_back_with_the_same_bytes() -> None:
    assert link.decode(f"file:///x.html#{link.encode(TEXTS)}") == TEXTS


@node
def test_python_reads_what_the_page_writes_and_the_page_what_python_writes() -> None:
    assert (
        link.decode(str(in_node("PS.link.encode(given).then((t) => console.log(JSON.stringify(t)))", TEXTS))) == TEXTS
    )
    fragment = link.encode(TEXTS)
    assert in_node("PS.link.decode(given).then((t) => console.log(JSON.stringify(t)))", f"#{fragment}") == TEXTS


@pytest.mark.parametrize("damaged", [BY_HAND[:-4], "p1=", "p1=!!!!", "p1=AQMA_P__PTE", "p1=BwBw", BY_HAND + "A"])
def test_a_damaged_link_is_refused_in_one_sentence(penstock: Command, damaged: str) -> None:
    done = penstock("run", f"https://example.org/#{damaged}")
    assert done.returncode == 2
    assert "this link" in done.stderr and "Traceback" not in done.stderr


def test_a_link_runs_as_its_file_does(penstock: Command, scenario: Path) -> None:
    alone = json.loads(penstock("run", scenario, "--json").stdout)
    other = SCENARIO.replace("seed = 1", "seed = 2") if "seed = 1" in SCENARIO else f"seed = 2\n{SCENARIO}"
    of_link = json.loads(penstock("run", f"https://x/#{link.encode([SCENARIO, other])}", "--json").stdout)
    assert [one["seed"] for one in of_link] == [1, 2]
    for summary in (alone, of_link[0]):
        summary.pop("cpu_s")
        summary.pop("name")  # that of the file
    assert of_link[0] == alone


def test_each_scenario_of_a_link_gets_a_directory(penstock: Command, tmp_path: Path) -> None:
    fragment = link.encode([SCENARIO, SCENARIO])
    assert penstock("run", fragment, "--out", "both").returncode == 0
    for number in ("1", "2"):
        assert (tmp_path / "both" / number / "scenario.toml").read_text(encoding="utf-8") == SCENARIO
    refused = penstock("run", fragment, "--pcapng", "x.pcapng")
    assert refused.returncode == 2 and "--pcapng goes with a scenario file" in refused.stderr


# What a stranger can name: code, and files to read.
CODE = """\
from pathlib import Path
import penstock
Path("ran").touch()
class Mine(penstock.CongestionControl):
    pass
"""
WISHES = {
    "code of a control": '\n[tcp]\ncc = { name = "mine.py:Mine" }\n',
    "code at an absolute path": '\n[tcp]\ncc = { name = "{here}/mine.py:Mine" }\n',
    "a file to read": '\n[[changes]]\nlink = "bottleneck"\ntrace = "mine.py"\n',
}


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("options", [(), ("--check",), ("--json",)])
def test_a_link_of_a_stranger_runs_no_code_and_names_no_file(
    penstock: Command, tmp_path: Path, wish: str, options: tuple[str, ...]
) -> None:
    (tmp_path / "mine.py").write_text(CODE)
    text = SCENARIO + WISHES[wish].replace("{here}", str(tmp_path))
    done = penstock("run", f"https://x/#{link.encode([text])}", *options)
    assert not (tmp_path / "ran").exists()
    assert done.returncode == 2, done.stdout
    assert "is not part of what you were sent" in done.stderr


def test_a_link_is_checked_without_a_run(penstock: Command, tmp_path: Path) -> None:
    done = penstock("run", f"https://x/#{link.encode([SCENARIO])}", "--check")
    assert done.returncode == 0 and done.stdout.startswith("duration_s: "), done.stderr
    assert list(tmp_path.iterdir()) == []
