"""Guesses what a misspelt word was meant to be, for every "did you mean" of the lab."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Returns at most `most` of the `known` words that resemble `word`, the most similar first."""
    lower = {name.lower(): name for name in known}
    return [lower[name] for name in difflib.get_close_matches(word.lower(), lower, most)]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns `did you mean X? `, or nothing if no known word resembles `word`; to be put between two sentences."""
    found = nearest(word, known)
    return f"did you mean {found[0]}? " if found else ""
