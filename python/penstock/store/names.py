"""Names that the store uses beside a file or a directory, and what may stand at a place."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from pathlib import Path

from penstock.mistake import MistakeError

NEW, OLD, LOCK, GONE, LOG = (
    "penstock-new",
    "penstock-old",
    "penstock-lock",
    "penstock-gone",
    "penstock-log",
)
_ROLES = (NEW, OLD, LOCK, GONE, LOG)
_LONGEST_NAME = 120  # bytes of a name that is made of a text of a person
_LONGEST = 220  # bytes of a name to which the store adds its own; file systems allow 255


class StoreError(MistakeError):
    """What is stored cannot be read, or cannot be stored here. The text names the file."""


def file_name(text: str) -> str:
    """Returns a name for a file made of a text of a person: its letters and digits, of any alphabet; empty if none."""
    kept = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", text)).strip("-.")
    return os.fsencode(kept)[:_LONGEST_NAME].decode("utf-8", "ignore").strip("-.")


def beside(path: Path, role: str) -> Path:
    """Returns the hidden name beside `path` which has this role: `.NAME.penstock-new`, and so on."""
    name = path.name if len(os.fsencode(path.name)) <= _LONGEST else hashlib.sha256(path.name.encode()).hexdigest()
    return path.with_name(f".{name}.{role}")


def is_beside(path: Path) -> bool:
    """Returns true for the hidden names of the store."""
    roles = {ending[1:] for ending in path.suffixes[-2:]}  # a capture has its own ending after that of the store
    return path.name.startswith(".") and bool(roles & set(_ROLES))


def of(path: Path) -> Path:
    """Returns the place of a hidden name: the reverse of `beside`."""
    name = path.name if path.suffix[1:] in _ROLES else path.name.removesuffix(path.suffix)
    return path.with_name(name[1:].rpartition(".")[0])


def real(path: Path) -> Path:
    """Returns the place at which `path` ends: links are followed, so that they stay when it is replaced."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def is_special(path: Path) -> bool:
    """Returns true for pipes and devices, such as /dev/stdout: they are written as they are."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def own_file(path: Path) -> Path:
    """Returns the place of a file of the program's own; raises `StoreError` if a pipe or a device has its name."""
    if is_special(path):
        raise StoreError(f"{path}: is a pipe or a device; remove it")
    return path


def directory_place(path: Path) -> Path:
    """Returns the place of a directory; raises `StoreError` if it cannot be replaced as a whole."""
    place = Path(os.path.realpath(path))
    here = Path.cwd()
    if place.exists() and not place.is_dir():
        raise StoreError(f"{path}: is a file; name a directory")
    if place == here or place in here.parents:
        raise StoreError(f"{path}: is or contains the current directory, and is replaced as a whole; name one below it")
    if place.is_mount():
        raise StoreError(
            f"{path}: a file system is mounted here, and it is replaced as a whole; name a directory below"
        )
    return place
