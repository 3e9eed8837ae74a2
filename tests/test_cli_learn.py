"""`list`, `docs`, `doctor`."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from penstock import doctor, engine, manual, testbed
from penstock.cli import app
from penstock.mistake import MistakeError
from typer.testing import CliRunner

PROJECT = Path(__file__).resolve().parents[1]
NAMES = [entry.name for entry in engine.entries()]


def told(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def listed(*words: str) -> list[dict[str, Any]]:
    return list(json.loads(told("list", *words, "--json")))


def test_list_has_each_algorithm_once_by_its_kind() -> None:
    lines = told("list").splitlines()
    for name in NAMES:
        assert sum(line.startswith(f"{name} ") for line in lines) == NAMES.count(name), name
    assert any(line.startswith("cc: ") for line in lines)


def test_a_kind_is_listed_alone() -> None:
    assert [entry["name"] for entry in listed("cc")] == [e.name for e in engine.entries() if e.kind == "cc"]
    assert "droptail" not in told("list", "cc")
    assert {entry["kind"] for entry in listed("experiment")} == {"experiment"}


def test_a_name_shows_all_of_its_parameters() -> None:
    codel = next(entry for entry in engine.entries() if entry.name == "codel")
    shown = told("list", "codel")
    for parameter in codel.parameters:
        assert f"{parameter.name} = " in shown
        assert parameter.about in shown
    assert "source: RFC 8289" in shown
    assert "page: penstock docs algorithms/codel" in shown
    assert "modified-codel" not in shown
    assert [entry["name"] for entry in listed("codel")] == ["codel"]
    assert "run it: penstock reproduce pink-dsl" in told("list", "pink-dsl")


def test_a_word_is_searched_in_all_texts() -> None:
    found = [entry["name"] for entry in listed("SATELLITE")]
    assert {"noordwijk", "tcp-satellite"} <= set(found)
    assert {"fq-codel", "modified-codel"} <= {entry["name"] for entry in listed("CoDel")}
    with pytest.raises(MistakeError, match="did you mean droptail"):
        CliRunner().invoke(app, ["list", "droptial"], catch_exceptions=False)


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_each_algorithm_has_a_page(name: str) -> None:
    page = manual.page_of(name)
    assert page is not None
    assert page.short == name or name in page.text
    assert manual.find(name) == page or manual.find(name).short == name, "a guide may have the name of an algorithm"


def test_the_pages_are_those_of_the_documentation() -> None:
    there = {path.relative_to(PROJECT / "docs").with_suffix("").as_posix() for path in (PROJECT / "docs").rglob("*.md")}
    assert set(manual.pages()) == there - {"README"} | {"examples"}
    for page in manual.pages().values():
        assert page.about, page.name
        if page.folder in ("", "reference", "results"):
            assert page.about != page.title, f"{page.name} is not in docs/README.md"


NAMING = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "Cargo.toml", "docs/**/*.md", "examples/**/*.*"),
    *("python/penstock/**/*.py", "python/penstock/**/*.toml", "crates/*/src/**/*.rs", "tools/*", "tools/*/*"),
)


def test_every_page_that_a_file_names_is_there() -> None:
    """A path below docs/, a link of a page, and what `penstock docs` is told to show."""
    wrong = []
    for path in sorted({path for glob in NAMING for path in PROJECT.glob(glob) if path.is_file()}):
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"(?<![\w/.-])docs/[a-z0-9/-]+\.(?:md|json|svg|png)\b", text)
        told = re.findall(r"penstock docs ([a-z][a-z0-9/-]*[a-z0-9])\b(?![/-])", text)
        links = re.findall(r"\]\(([^)\s:#]+)(?:#[^)\s]*)?\)", text) if path.suffix == ".md" else []
        wrong += [f"{path}: {name}" for name in named if not (PROJECT / name).exists() and name not in MEASURED]
        wrong += [f"{path}: docs {name}" for name in told if name not in VERBS and manual.named(name) is None]
        wrong += [f"{path}: {link}" for link in links if not (path.parent / link).exists()]
    assert not wrong, "\n".join(wrong)


MEASURED = {"docs/costs.json"}  # `tools/pack/site` shows it when somebody has measured
VERBS = {"play", "round"}  # the playground, and a word of an example of a search


QUESTIONS = {
    "how do I install it": "install",
    "does it run on windows": "faq",
    "how do I cite it": "faq",
    "uninstall": "faq",
    "which queue is best for my home": "experiments",
    "how do I write my own congestion control": "your-own",
    "move a python algorithm to rust": "python-to-rust",
    "put it on my router": "gateway",
    "plot queue delay over time": "plots",
    "where are results stored": "reference/store",
    "is it safe to open an archive of somebody else": "strangers",
    "jupyter notebook": "how-to/notebook",
    "what is bufferbloat": "glossary",
    "how fast is it": "results/benchmarks",
    "teach a class about queues": "guides/teacher",
    "reproduce the figure of a paper": "commands",
}


@pytest.mark.parametrize(("question", "answer"), QUESTIONS.items(), ids=QUESTIONS)
def test_the_first_hit_answers_a_newcomer(question: str, answer: str) -> None:
    assert manual.search(question)[0].page.name == answer
    assert f"`penstock docs {answer}` shows the first" in told("docs", *question.split())


def test_a_place_shows_the_heading_and_the_line_that_answer() -> None:
    place = manual.search("openwrt")[0]
    assert (place.page.name, place.heading) == ("faq", "Does it run on OpenWrt?")
    assert "OpenWrt" in place.line
    assert manual.search("") == []


def test_docs_lists_and_prints_pages() -> None:
    shown = told("docs")
    assert "write a scenario" in shown
    assert "CoDel: Controlled Delay" in shown
    assert told("docs", "scenarios") == (PROJECT / "docs" / "reference" / "scenarios.md").read_text()
    assert told("docs", "codel") == told("docs", "algorithms/codel.md")
    assert told("docs", "fq-codel") == told("docs", "fq")
    assert told("docs", "pink") == (PROJECT / "docs" / "results" / "pink.md").read_text()


def test_a_terminal_gets_rendered_pages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from penstock.cli import docs as command

    monkeypatch.setattr("pydoc.pager", lambda text, title="": print(text))  # noqa: ARG005
    command._paged("# Title\n\nA **bold** word.\n")
    shown = capsys.readouterr().out
    assert "Title" in shown
    assert "**" not in shown


def test_the_wheel_is_told_to_hold_the_pages() -> None:
    told = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["maturin"]["include"]
    pages = {
        f"python/penstock/{path.parent.relative_to(PROJECT).as_posix()}/*.md" for path in manual.ROOT.rglob("*.md")
    }
    assert pages <= set(told), "a folder of pages that no wheel would have"
    assert manual.ROOT == PROJECT / "docs"
    assert manual.EXAMPLES == PROJECT / "examples"


def test_an_example_is_shown_found_and_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "full-house" in told("docs", "examples")
    told("new", "scenario", "mine", "--like", "cellular-trace")
    assert (tmp_path / "mine.toml").read_text() == (PROJECT / "examples" / "cellular-trace.toml").read_text()
    assert (tmp_path / "made-up-cell.mahi").is_file()
    with pytest.raises(MistakeError, match="did you mean full-house"):
        manual.example("ful-house")


def test_doctor_names_what_is_missing_and_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "fonts"))
    monkeypatch.setattr(doctor, "_TUN", tmp_path / "tun")
    found = {check.name: check for check in doctor.examine()}
    assert found["python"].ok
    assert found["compiled part"].ok
    for name, repair in (
        ("iperf3", "apt-get install iperf3"),
        ("ip", "apt-get install iproute2"),
        ("/dev/net/tun", "modprobe tun"),
        ("namespaces", "apt-get install util-linux"),
        ("font list", "matplotlib.font_manager"),
    ):
        assert not found[name].ok, name
        assert repair in found[name].repair, name
    assert doctor.healthy(list(found.values()))


def test_doctor_finds_leftovers_and_leaves_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, interfaces = tmp_path / "netns", tmp_path / "net"
    own = testbed.mark("test")
    gone = f"penstock-verify-4194305-1-{own.rpartition('-')[2]}-left"  # above the highest process number
    for path in (names / gone, names / f"{own}-0-c", interfaces / "penstock0"):
        path.mkdir(parents=True)
    (names / "somebody-else").mkdir()
    monkeypatch.setattr(doctor, "_NAMESPACES", names)
    monkeypatch.setattr(doctor, "_INTERFACES", interfaces)
    monkeypatch.setattr(doctor, "_emulator_runs", lambda: False)
    before = sorted(tmp_path.rglob("*"))
    found = {check.name: check for check in doctor.examine()}
    assert found["leftover namespaces"].repair == f"ip netns delete {gone}"
    assert found["leftover interfaces"].repair == "ip link delete penstock0"
    assert sorted(tmp_path.rglob("*")) == before
    monkeypatch.setattr(doctor, "_emulator_runs", lambda: True)
    assert {check.name: check for check in doctor.examine()}["leftover interfaces"].ok


def test_doctor_ends_with_1_when_something_essential_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert report["healthy"] is True
    assert {"name", "ok", "found", "needed_for", "essential", "repair"} == report["checks"][0].keys()
    monkeypatch.setattr(doctor, "_PACKAGES", ("numpy", "not_installed_at_all"))
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1
    assert "missing: not_installed_at_all" in done.stdout
    packages = next(check for check in doctor.examine() if check.name == "packages")
    assert packages.repair.endswith("-m pip install not_installed_at_all")
