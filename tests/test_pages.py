"""The pages of the algorithms say of parameters what the code says, and name files that are there."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from penstock import engine

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "algorithms"
ENTRIES = engine.entries()
NAMES = {entry.name for entry in engine.entries()}
OF_ONE = [page for page in sorted(PAGES.glob("*.md")) if page.stem in NAMES]  # others tell what several have in common
BASE = {"minstrel-pie": "pie"}  # whose page has the rest of the parameters
BASE |= {f"fq-{name}": name for name in ("codel", "cobalt", "pie", "minstrel-pie")}
BASE |= dict.fromkeys(("hfs-drr", "double-drr", "double-wf2q-plus", "modular"), "hfs")
BASE |= {entry.name: "classful" for entry in ENTRIES if entry.kind == "scheduler" and entry.name not in BASE}
PAGE = {"hfs-drr": "hfs"} | {entry.name: "fq" for entry in ENTRIES if entry.name.startswith("fq")}
# What a discipline sets otherwise than the page that it shares with others; the page tells in its text.
OTHERWISE = {
    ("fq-cobalt", "ways"): 8,
    ("fq", "per_flow"): {"name": "droptail"},
    ("fq-codel", "ecn"): True,
}
BYTES = {"B": 1, "kB": 1000, "MB": 1_000_000, "KiB": 1024, "MiB": 1 << 20}


@cache
def table(name: str) -> dict[str, str]:
    """Parameter and default, from the rows of a page; a row may have several of both."""
    path = PAGES / f"{PAGE.get(name, name)}.md"
    found: dict[str, str] = {}
    inside = False
    for line in path.read_text(encoding="utf-8").splitlines():
        inside = "| default |" in line or (inside and line.startswith("|"))
        if inside and (row := re.match(r"\| (`[a-z0-9_`, ]+`) \| ([^|]+) \|", line)):
            names, told = re.findall(r"`([a-z0-9_]+)`", row[1]), re.split(r", (?=`)", row[2].strip())
            found |= {n: told[i] if len(told) == len(names) else row[2].strip() for i, n in enumerate(names)}
    return found


def plain(default: object) -> object:
    """A default as a number of bytes, as a number, or as a text."""
    text = str(default).lower() if isinstance(default, bool) else str(default).strip("`").strip('"')
    if size := re.fullmatch(r"([0-9.]+)(kB|MB|KiB|MiB|B)", text):
        return round(float(size[1]) * BYTES[size[2]])
    try:
        return float(Fraction(text))
    except ValueError:
        return text


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_parameter_is_on_the_page_with_its_default(entry: engine.Entry) -> None:
    for parameter in entry.parameters:
        known, told = entry.name, table(entry.name)
        while parameter.name not in told and known in BASE:
            known = BASE[known]
            told = table(known)
        if (entry.name, parameter.name) in OTHERWISE:
            assert parameter.default == OTHERWISE[entry.name, parameter.name]
            continue
        assert parameter.name in told, f"{entry.name}: {parameter.name} is not on its page"
        if parameter.default is not None:  # else it follows from the link or others
            assert plain(told[parameter.name]) == plain(parameter.default), f"{entry.name}: {parameter.name}"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_page_has_no_parameter_that_is_not_there(entry: engine.Entry) -> None:
    if not entry.name.startswith("fq"):
        assert table(entry.name).keys() <= {parameter.name for parameter in entry.parameters}


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:crates|python|tests|tools|examples|docs)/[A-Za-z0-9_./-]+)`", text):
        assert (ROOT / name).exists(), name
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", OF_ONE, ids=lambda page: page.stem)
def test_a_page_says_where_it_is_checked_and_where_it_comes_from(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "Source" in text
    assert "Check" in text


def test_the_tests_that_the_page_of_flow_queueing_names_are_there() -> None:
    """Its table shows for each statement of the draft of FQ-PIE the test that shows ours."""
    text = (PAGES / "fq.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z0-9]+_){4,}[a-z0-9]+)`", text))
    files = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("tests/*.py")]
    there = set(re.findall(r"(?:fn|def) (\w+)\(", "\n".join(file.read_text(encoding="utf-8") for file in files)))
    assert len(named) >= 8
    assert named <= there, named - there
