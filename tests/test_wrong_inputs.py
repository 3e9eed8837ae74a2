"""Each wrong input is answered with what is wrong, where, what is allowed and the nearest name: wrong_inputs.toml."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from penstock import cli, starters

_TABLES = tomllib.loads((Path(__file__).parent / "wrong_inputs.toml").read_text(encoding="utf-8"))
INPUTS = {
    **{text: (shlex.split(text), parts) for text, parts in _TABLES["commands"].items()},
    **{text: (["run", "home.toml", "--set", text], parts) for text, parts in _TABLES["set"].items()},
}
# Types of Rust and Python, and the forms in which they print lists, tables and nothing.
TYPES = re.compile(
    r"\b[ui](8|16|32|64|128|size)\b|\bf(32|64)\b|\bstr\b|\bNone\b|\bdict\b|\bTrue\b|\bFalse\b|\bNoneType\b"
    r"|Some\(|Ok\(|Err\(|\[\"|\['|\{'|\binteger\b|\bfloating point\b|\bboolean\b|os error|Traceback|pydantic"
    r"|\bstruct\b|\benum\b|\bvariant\b"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the scenario that `penstock new scenario home` writes."""
    place = tmp_path_factory.mktemp("home")
    starters.write("scenario", str(place / "home"))
    return place


def answer(words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[object, str]:
    """The exit code of a command, and what it prints on stderr."""
    monkeypatch.setattr(sys, "argv", ["penstock", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, capsys.readouterr().err


def test_there_are_at_least_sixty() -> None:
    assert len(INPUTS) >= 60


@pytest.mark.parametrize("text", INPUTS)
def test_the_answer_says_what_where_and_what_is_allowed(
    text: str, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    words, parts = INPUTS[text]
    code, told = answer(words, capsys, monkeypatch)
    assert code == 2, told
    assert told.startswith("error: ")
    assert [part for part in parts if part not in told] == [], told
    without_input = told.replace(text, "")
    assert TYPES.findall(without_input) == [], told
    assert [path.name for path in home.iterdir()] == ["home.toml"], "a wrong input leaves nothing"


def test_rates_are_read_as_modems_tell_them(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    code, told = answer(["run", "home.toml", "--check", "--set", "topology.rate=5Mbps"], capsys, monkeypatch)
    assert (code, told) == (0, "")


def test_an_error_of_many_seeds_is_told_once(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["sweep", str(home / "home.toml"), "--vary", "aqm.name=codle,pie", "--seeds", "4", "--set", "duration=6s"]
    code, told = answer([*words, "-j", "1"], capsys, monkeypatch)
    assert code == 1
    assert told.count('no algorithm "codle"') == 1
    assert "aqm.name=codle, 4 seeds: " in told
