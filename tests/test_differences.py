"""Every deliberate deviation from a source names what pins it, and that exists.

A paragraph of a file's header that begins `DIFFERENCE:` names a test, a ladder (the title of a script of segments) or a
golden file in backticks, or the twin of its algorithm.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEST = re.compile(r"#\[test\]\s*(?:(?:#\[[^\]]*\]|///[^\n]*)\s*)*fn (\w+)")
SOURCES = sorted((ROOT / "crates").glob("*/src/**/*.rs"))


def differences() -> list[tuple[str, str]]:
    """File and text of each."""
    found = []
    for file in SOURCES:
        text: list[str] = []
        for line in [*file.read_text(encoding="utf-8").splitlines(), ""]:
            comment = re.match(r"\s*//[!/]? ?(.*)", line)
            body = comment[1] if comment else ""
            if body.startswith("DIFFERENCE:") or (text and not body.strip()):
                if text:
                    found.append((str(file.relative_to(ROOT)), " ".join(text)))
                text = []
            if body.startswith("DIFFERENCE:") or (text and body.strip()):
                text.append(body)
    return found


def names() -> set[str]:
    """Tests, ladders and golden files."""
    known: set[str] = set()
    for file in (ROOT / "crates").glob("**/*.rs"):
        known.update(TEST.findall(file.read_text(encoding="utf-8")))
    for file in (ROOT / "tests").glob("*.py"):
        known.update(re.findall(r"\bdef (test_\w+)", file.read_text(encoding="utf-8")))
    for file in (ROOT / "crates").glob("*/tests/**/*.ladder"):
        titles = re.findall(r"^== (.*)", file.read_text(encoding="utf-8"), re.MULTILINE)
        known.update(title.partition(" (")[0].strip() for title in titles)
    known.update(file.name for file in (ROOT / "crates").glob("*/tests/golden/*"))
    return known


KNOWN = names()


@pytest.mark.parametrize(("file", "text"), differences(), ids=lambda value: value[-60:])
def test_a_difference_names_what_pins_it(file: str, text: str) -> None:
    quoted = re.findall(r"`([^`]+)`", text)
    twins = list((ROOT / "python/penstock/reference").rglob(f"{Path(file).stem}.py"))
    twins += [ROOT / name for name in quoted if name.startswith("python/") and (ROOT / name).exists()]
    assert ("twin" in text and twins) or KNOWN.intersection(quoted), f"{file}: {text}"


def test_there_are_as_many_as_there_were() -> None:
    assert len(differences()) >= 120
