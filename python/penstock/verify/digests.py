"""Digests of programs, by which stored results know what made them."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def digest(file: Path) -> str:
    """Returns the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
