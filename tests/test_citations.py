"""Documents are cited by authors and years where people read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from penstock import engine
from penstock.citations import DOCUMENTS, cited
from penstock.reproduce import EXPERIMENTS

DOCS = Path(__file__).parents[1] / "docs"
NUMBER = re.compile(r"\b(?:document|Document|thesis) 00[0-4]\b|(?<![\w.,])00[0-4],? (?:section|§)")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("document 000, section 6.1, and document 002", "Casoni et al. 2017, section 6.1, and Grazia 2016"),
        ("003 §III, §V", "Boudi and Loudini 2018 §III, §V"),
        ("Sun and Zukerman 2007; 001 §2", "Sun and Zukerman 2007; Brachman and Chrost 2010 §2"),
        ("thesis 004 §4.2", "Patil 2020 §4.2"),
        ("0.001 section, 100,000 sections of 004", "0.001 section, 100,000 sections of 004"),
    ],
)
def test_a_number_becomes_authors_and_year(text: str, told: str) -> None:
    assert cited(text) == told


def test_the_glossary_has_the_authors_and_years() -> None:
    rows = dict(re.findall(r"^\| (00\d) \| (.+) \|$", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert rows.keys() == DOCUMENTS.keys()
    for number, name in DOCUMENTS.items():
        first, year = name.split()[0], name.split()[-1]
        assert first in rows[number]
        assert year in rows[number]


def test_no_page_and_no_list_cites_by_number() -> None:
    listed = json.dumps([vars(one) for one in engine.entries()], default=vars, ensure_ascii=False)
    assert NUMBER.findall(listed) == []
    assert [name for name, one in EXPERIMENTS.items() if NUMBER.search(cited(one.source))] == []
    pages = [page for page in DOCS.rglob("*.md") if "api" not in page.parts]
    assert [page.name for page in pages if NUMBER.search(page.read_text(encoding="utf-8"))] == []
