"""Finds the section of a set of texts that answers a question: BM25 over words, with weights for titles and headings.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3.4 and 3.6: a word
counts more the fewer texts have it, and less each further time that a text has it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

K1, B = 1.2, 0.4  # how fast more of the same word counts less, and how much long texts are made equal to short ones
TITLE, HEADING = 2.0, 3.0  # what a word counts there; 1 in the text
FRONT = 3.0  # what title and sentence of a text count beside its text
ALL_WORDS = 2.0  # exponent of the share of a question's words, by their weight, that a text has
_WORD = re.compile(r"[^\W_]+(?:[-.'’_][^\W_]+)*")
_PART = re.compile(r"[-._]")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """
    a about after all also am an and any are as at be been but by can could did do does doing else for from get give
    had has have having how i if in into is it its just let like make many may me mean means more most much must my
    need no not of on one only or other our out over please say should so some such take tell than that the their
    them then there these they thing this those to too use used using want was way we were what when where which
    while who whom whose why will with without work works would you your
        """,
    )
)
_ENDINGS = (
    "ations",
    "ation",
    "ingly",
    "ings",
    "ing",
    "ies",
    "ied",
    "ers",
    "ed",
    "er",
    "es",
    "ly",
    "ness",
    "s",
    "e",
    "y",
)
# Words of newcomers, with those of the pages.
_SAME = {
    "mac": "macos",
    "osx": "macos",
    "docker": "container",
    "quickstart": "tutorial",
    "wi-fi": "wifi",
    "wlan": "wifi",
    "wireless": "wifi",
    "accuracy": "accurate",
    "license": "licence",
    "speed": "fast",
    "performance": "fast",
}


def stem(word: str) -> str:
    """Returns a word without its ending, so that "queues" and "queueing" are the same word."""
    word = word.replace("’", "'").removesuffix("'s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def words(text: str) -> list[str]:
    """Returns the words of a text without their endings; parts of a word with hyphens or dots count as well."""
    found = []
    for word in _WORD.findall(text.casefold()):
        found.append(stem(_SAME.get(word, word)))
        if len(parts := _PART.split(word)) > 1:
            found += [stem(part) for part in parts if part]
    return found


def asked(question: str) -> list[str]:
    """Returns the words of a question that tell something; all of them if none does."""
    every = _WORD.findall(question.casefold())
    telling = [word for word in every if word not in _COMMON]
    return list(dict.fromkeys(stem(_SAME.get(word, word)) for word in telling or every))


@dataclass(frozen=True)
class Section:
    """A heading of a text and what stands below it, up to the next heading."""

    of: str
    heading: str
    text: str


@dataclass(frozen=True)
class Front:
    """The title of a text, a sentence about it, and how likely it is what is meant."""

    title: str
    about: str
    prior: float = 1.0


@dataclass(frozen=True)
class Hit:
    """The best section of a text for a question."""

    section: Section
    score: float


class _Field:
    """Words of one part of all texts, such as their titles."""

    def __init__(self, counts: Mapping[str, Counter[str]]) -> None:
        self._counts = counts
        self._mean = max(1.0, sum(one.total() for one in counts.values()) / max(1, len(counts)))

    def score(self, name: str, known: Mapping[str, float]) -> float:
        """Returns how well the part of this text fits the words, which have their weights."""
        counts = self._counts[name]
        length = 1 - B + B * counts.total() / self._mean
        having = {word: weight for word, weight in known.items() if counts[word]}
        fits = sum(weight * counts[word] * (K1 + 1) / (counts[word] + K1 * length) for word, weight in having.items())
        share = sum(having.values()) / sum(known.values())
        return fits * math.pow(share, ALL_WORDS)


class Index:
    """Sections of texts, and the front of each text."""

    def __init__(self, sections: Sequence[Section], fronts: Mapping[str, Front]) -> None:
        self._sections = list(sections)
        self._fronts = fronts
        parts = [_counted((one.heading, HEADING), (one.text, 1)) for one in sections]
        whole: dict[str, Counter[str]] = {name: Counter() for name in fronts}
        for section, part in zip(sections, parts, strict=True):
            whole[section.of].update(part)
        front = {name: _counted((one.title, TITLE), (one.about, 1)) for name, one in fronts.items()}
        for name, words_ in front.items():
            whole[name].update(words_)
        self._among: Counter[str] = Counter(word for text in whole.values() for word in text)
        self._whole, self._front = _Field(whole), _Field(front)
        self._part = _Field({str(place): part for place, part in enumerate(parts)})
        self._there = whole

    def _weight(self, word: str) -> float:
        have, count = self._among[word], len(self._fronts)
        return math.log(1 + (count - have + 0.5) / (have + 0.5))

    def find(self, question: str) -> list[Hit]:
        """Returns the best section of each text that has a word of the question, the best text first."""
        known = {word: self._weight(word) for word in asked(question) if self._among[word]}
        best: dict[str, tuple[float, Section]] = {}
        for place, section in enumerate(self._sections):
            if not any(word in self._there[section.of] for word in known):
                continue
            score = self._part.score(str(place), known)
            if section.of not in best or score > best[section.of][0]:
                best[section.of] = (score, section)
        hits = []
        for name, (score, section) in best.items():
            fits = score + self._whole.score(name, known) + FRONT * self._front.score(name, known)
            hits.append(Hit(section, self._fronts[name].prior * fits))
        return sorted(hits, key=lambda hit: (-hit.score, hit.section.of))


def _counted(*parts: tuple[str, float]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text, weight in parts:
        for word in words(text):
            counts[word] += weight  # type: ignore[assignment]  # weights are fractions
    return counts
