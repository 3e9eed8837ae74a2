"""The JSON Schemas of scenarios and summaries: current, and as strict as editors need."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import penstock
import pytest
from penstock import store

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = sorted(
    [
        *ROOT.glob("examples/*.toml"),
        *ROOT.glob("examples/own/*.toml"),
        *ROOT.glob("python/penstock/papers/*/scenario.toml"),
    ]
)
jsonschema = pytest.importorskip("jsonschema")


def validator(name: str) -> Any:
    schema = json.loads((ROOT / "python" / "penstock" / "schema" / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


SCENARIO = validator("scenario")


def test_files_are_those_of_the_core() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "schemas", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search(r"\bAny\b", (ROOT / "python/penstock/typed.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_scenarios_fit_the_schema(path: Path) -> None:
    SCENARIO.validate(tomllib.loads(path.read_text(encoding="utf-8")))


GOOD: dict[str, Any] = {
    "duration": "2s",
    "topology": {"kind": "dumbbell", "rate": "1Mbit/s", "delay": "1ms"},
    "flows": [{"kind": "bulk"}, {"kind": "voip"}],
}


@pytest.mark.parametrize(
    "change",
    [
        {"duratoin": "2s"},
        {"duration": 2},
        {"topology": {"kind": "ring", "rate": "1Mbit/s", "delay": "1ms"}},
        {"topology": {"kind": "dumbbell", "rate": "1Mbit/s"}},
        {"aqm": "codle"},
        {"aqm": {"name": "codel", "traget": "5ms"}},
        {"tcp": {"cc": {"name": "cubic", "bata": 0.7}}},
        {"flows": [{"kind": "bulk", "cuont": 2}]},
        {"flows": [{"kind": "cbr"}]},
        {"flows": [{"kind": "bulk", "size": "1MB"}]},
    ],
)
def test_mistakes_do_not_fit(change: dict[str, Any]) -> None:
    assert SCENARIO.is_valid(GOOD)
    assert not SCENARIO.is_valid({**GOOD, **change})


def test_algorithms_from_outside_fit() -> None:
    assert SCENARIO.is_valid({**GOOD, "aqm": "mine.py:Step"})
    assert SCENARIO.is_valid({**GOOD, "aqm": {"name": "mine.py:Step", "threshold": "5ms"}})


def test_a_summary_fits_its_schema_and_no_other_does() -> None:
    summary = json.loads(json.dumps(penstock.run(GOOD).summary))
    fits = validator("summary")
    fits.validate(summary)
    del summary["flows"][0]["rtt_ms"]
    assert not fits.is_valid(summary)


def test_a_kept_result_has_a_line_for_each_row() -> None:
    rows = [{"case": name, "numbers": list(range(60)), "text": 'a "quoted" é\n'} for name in ("one", "two", "three")]
    kept = {"format": 1, "rows": rows, "about": {"long": "x" * 300, "empty": [], "none": {}}}
    text = store.rows(kept)
    assert json.loads(text) == kept
    assert [json.loads(line.rstrip(",")) for line in text.splitlines() if '"case"' in line] == rows
    assert text.splitlines()[1] == ' "format": 1,'
    with pytest.raises(ValueError, match="JSON compliant"):
        store.rows({"x": [float("nan")]})
