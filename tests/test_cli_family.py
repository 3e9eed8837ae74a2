"""The family of verbs: headings, examples, old names, guesses at misspelt words, and what the start must not load."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from penstock.cli import app, base
from penstock.cli.base import FAMILY, FILE_OF
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean, nearest
from typer.main import get_command
from typer.testing import CliRunner

ROOT: Any = get_command(app)
PROJECT = Path(__file__).resolve().parents[1]
MOST_VERBS = 15
OLD_NAMES = ("architecture", "bench", "report", "rerun", "tcp-trace")
SLOW_TO_LOAD = ("PIL", "jinja2", "matplotlib", "numpy", "pandas", "pyarrow", "pydantic", "rich", "scipy")
# Modules of `typer`, of Python itself and of the command together; 176 for the help of all verbs in Python 3.11.
MOST_MODULES = 190


def visible(command: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that a help shows, with the words that call it."""
    for name, below in command.commands.items():
        if not below.hidden:
            yield (*path, name), below
            if hasattr(below, "commands"):
                yield from visible(below, (*path, name))


def examples(command: Any) -> list[list[str]]:
    """The examples at the end of a help, each as words without `penstock`."""
    lines = [line.strip() for line in (command.epilog or "").splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("penstock ")]


ALL = [("", *words) for command in (ROOT, *(c for _, c in visible())) for words in examples(command)]


def refusal(*words: str) -> str:
    """What the command says to words that it refuses."""
    done = CliRunner().invoke(app, list(words))
    assert isinstance(done.exception, MistakeError), done.output
    return str(done.exception)


def test_there_are_at_most_fifteen_verbs_and_all_have_a_heading() -> None:
    top = [path[0] for path, _ in visible() if len(path) == 1]
    assert len(top) <= MOST_VERBS
    assert sorted(top) == sorted(name for names in FAMILY.values() for name in names)


def test_the_help_shows_the_verbs_in_order_under_their_headings() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    marks = [
        mark for heading, names in FAMILY.items() for mark in (f"─ {heading} ─", *(f"│ {name} " for name in names))
    ]
    places = [shown.index(mark) for mark in marks]
    assert places == sorted(places)
    assert "penstock new scenario home" in shown
    for name in OLD_NAMES:
        assert f"│ {name} " not in shown


@pytest.mark.parametrize("path", [path for path, _ in visible()], ids=" ".join)
def test_each_help_ends_with_examples(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "160"})
    assert done.exit_code == 0
    assert f"penstock {path[0]}" in done.output.split("Examples:")[1]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_each_example_can_be_typed(words: tuple[str, ...]) -> None:
    command, rest = ROOT, list(words[1:])
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    command.make_context(words[1], rest)  # raises what a person would read


def written(page: Path) -> Iterator[list[str]]:
    """The commands in the blocks of a page, as words; those with brackets or over several lines are left out."""
    for line in page.read_text(encoding="utf-8").splitlines():
        found = re.fullmatch(r"(?: {4})?(?:\.venv/bin/)?penstock ([^\[\\]+)", line.split(" #")[0].rstrip())
        if found and not line.startswith("penstock-"):
            yield shlex.split(found[1])


@pytest.mark.parametrize(
    "page",
    [PROJECT / "README.md", *sorted(p for p in (PROJECT / "docs").rglob("*.md") if p.parent.name != "how-to")],
    ids=lambda p: f"{p.parent.name}/{p.stem}",
)
def test_the_commands_of_a_page_can_be_typed_by_their_new_names(page: Path) -> None:
    for words in written(page):
        command, rest = ROOT, words[:]
        while hasattr(command, "commands") and not rest[0].startswith("-"):
            command = command.commands[rest.pop(0)]
            assert not command.hidden, words
        if not {"--help", "--version"} & set(rest):
            command.make_context("penstock", rest)


def test_the_readme_has_commands() -> None:
    assert len(list(written(PROJECT / "README.md"))) >= 4
    assert len(list(written(PROJECT / "docs" / "overview.md"))) > 10


def test_a_newcomer_can_type_the_examples_of_the_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in examples(ROOT):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.output)
    assert len(list(tmp_path.glob("runs/home-*/report.html"))) == 1


@pytest.mark.parametrize("name", OLD_NAMES)
def test_old_names_are_hidden_and_work(name: str) -> None:
    assert ROOT.commands[name].hidden
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0
    assert "Usage" in done.output


def test_an_old_name_says_the_new_one(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["rerun", str(tmp_path)])
    assert done.stderr.startswith(
        "warning: `penstock rerun` is now `penstock runs rerun`; the old name works until version "
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [("rerun", ("runs", "rerun")), ("report", ("runs", "report")), ("bench", ("verify", "speed"))],
)
def test_an_old_name_has_the_options_of_the_new(old: str, new: tuple[str, str]) -> None:
    group, name = new
    there = ROOT.commands[group].commands[name]
    assert [p.opts for p in ROOT.commands[old].params] == [p.opts for p in there.params]
    assert inspect.unwrap(ROOT.commands[old].callback) is inspect.unwrap(there.callback)


def test_trace_tcp_is_tcp_trace(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    old = penstock("tcp-trace", scenario, "--flows", "1", "--interval", "50ms", "--out", "old", "--json")
    new = penstock("run", scenario, "--trace", "tcp", "--flows", "1", "--interval", "50ms", "--out", "new", "--json")
    assert (old.returncode, new.returncode) == (0, 0), new.stderr
    told = [json.loads(done.stdout) for done in (old, new)]
    assert [one.pop("directory") for one in told] == ["old", "new"]
    assert told[0] == told[1]
    for file in ("tcp_trace.parquet", "queue_trace.parquet", "summary.json", "tcp_trace.png"):
        assert (tmp_path / "new" / file).read_bytes() == (tmp_path / "old" / file).read_bytes()


def test_options_of_a_trace_need_one() -> None:
    assert "--flows goes with --trace tcp" in refusal("run", "x.toml", "--flows", "1")
    assert "--interval goes with --trace tcp" in refusal("run", "x.toml", "--interval", "1ms")
    assert "did you mean tcp?" in refusal("run", "x.toml", "--trace", "tpc")
    assert "--pcapng" in refusal("run", "x.toml", "--trace", "tcp", "--pcapng", "p.pcapng")


def test_there_are_six_worlds(scenario: Path) -> None:
    for world in ("sim", "fluid"):
        assert CliRunner().invoke(app, ["run", str(scenario), "--on", world, "--json"]).exit_code == 0
    assert "this command runs in sim, wire, jar, tc, jar-tc" in refusal("reproduce", "x", "--on", "fluid")
    assert "this command runs in sim, wire, jar, tc, jar-tc" in refusal("suite", "rfc7928", "codel", "--on", "fluid")
    assert "which only the simulator lets it do" in refusal("suite", "bbr-draft", "--on", "wire")
    for verb in ("run", "reproduce"):
        assert "did you mean wire?" in refusal(verb, "x", "--on", "wires")
        assert "there are sim, fluid, wire, jar, tc, jar-tc" in refusal(verb, "x", "--on", "moon")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("rnu",), "did you mean run?"),
        (("doktor",), "did you mean doctor?"),
        (("runs", "lst"), "`penstock runs lst`; did you mean list?"),
        (("verify", "tcp-linx"), "did you mean tcp-linux?"),
        (
            ("verify", "linux-tcp-and-more"),
            "`penstock verify --help` explains agree, break, cc, disciplines, fates, intervals, linux, ns3, profile, "
            "speed, tcp-linux",
        ),
        (("new", "scenari", "x"), "did you mean scenario?"),
        (("reproduce", "pnk-dsl"), "did you mean pink-dsl?"),
        (("claims", "pnk-dsl"), "did you mean pink-dsl?"),
        (("list", "codle"), "did you mean codel?"),
        (("docs", "scenarois"), "did you mean scenarios?"),
        (("new", "network", "x", "--backhaul", "goe"), "did you mean geo?"),
        (("tempest", "-flws", "3"), "did you mean -flows?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_misspelt_word_is_guessed(words: tuple[str, ...], told: str) -> None:
    assert told in refusal(*words)


def test_a_wrong_command_is_one_line(penstock: Command) -> None:
    done = penstock("reprodcue", "pink-dsl")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: there is no command `penstock reprodcue`; did you mean reproduce?")
    assert len(done.stderr.splitlines()) == 1


def test_old_names_are_never_suggested() -> None:
    assert "did you mean rerun" not in refusal("rerunn")
    assert "tcp-trace" not in refusal("tcptrace")
    assert "`penstock --help` explains" in refusal("zzzz")


def test_a_guess_is_near_or_none() -> None:
    assert nearest("PINK-dls", ["pink-dsl", "pink-sat", "red"]) == ["pink-dsl"]
    assert nearest("zzz", ["pink", "red"]) == []
    assert did_you_mean("zzz", ["pink", "red"]) == ""
    assert did_you_mean("rde", ["red"]) == "did you mean red? "


STARTS = (("--help",), ("list",), ("list", "aqm"), ("run", "small.toml", "--json"))


@pytest.mark.parametrize("words", STARTS, ids=" ".join)
def test_the_start_loads_nothing_slow(words: tuple[str, ...], scenario: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "penstock", *words]
    done = subprocess.run(command, cwd=scenario.parent, capture_output=True, text=True, timeout=120, check=True)
    modules = [line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "import time:" in line]
    loaded = {name.split(".")[0] for name in modules}
    assert "typer" in loaded  # the list is that of what was loaded
    assert loaded.isdisjoint(SLOW_TO_LOAD)
    assert not [
        name for name in modules if name.startswith(("penstock.papers", "penstock.reproduce", "penstock.plots"))
    ]
    assert len(modules) <= MOST_MODULES, sorted(modules)
    files = {file for file in FILE_OF.values() if f"penstock.cli.{file}" in modules}
    assert words == ("--help",) or files <= {FILE_OF[words[0]], "tcp_trace"}  # `run` has the files of both


def test_the_file_that_is_loaded_for_a_verb_has_the_verb() -> None:
    for file in Path(base.__file__).parent.glob("*.py"):
        __import__(f"penstock.cli.{file.stem}")  # refuses a verb which is in no file of the table
    for verb, command in ROOT.commands.items():
        one = next(iter(getattr(command, "commands", {"": command}).values()))
        assert inspect.unwrap(one.callback).__module__ == f"penstock.cli.{FILE_OF[verb]}", verb


def test_a_help_needs_no_compiled_part() -> None:
    """The library behind the command is loaded when a name of it is used."""
    code = "import sys, penstock.cli; assert 'penstock._penstock' not in sys.modules; import penstock; penstock.run"
    subprocess.run([sys.executable, "-c", code], timeout=120, check=True)


def test_values_that_typer_would_convert_are_the_same(penstock: Command, scenario: Path) -> None:
    """Values are converted without `pydantic`, and what is wrong is told."""
    assert json.loads(penstock("run", scenario, "--json", "--seed", "7").stdout)["seed"] == 7
    for words, told in ((("run",), "needs FILE.toml"), (("run", "x.toml", "--seed", "one"), "--seed")):
        done = penstock(*words)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr
