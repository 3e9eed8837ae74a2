"""Files to begin with: a new scenario, algorithm or experiment is complete and commented, and runs unchanged."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container, Mapping
from pathlib import Path
from string import Template

from penstock import store
from penstock.mistake import MistakeError

_TEMPLATES = Path(__file__).parent / "templates"
# The files of each kind by the ending that they get.
KINDS = {
    "aqm": {".py": "aqm.py.txt", ".toml": "aqm.toml"},
    "cc": {".py": "cc.py.txt", ".toml": "cc.toml"},
    "scenario": {".toml": "scenario.toml"},
}
# The files of the folder of a new experiment: a file in the folder, and its template.
FOLDER = {
    "experiment.toml": "experiment/experiment.toml",
    "scenario.toml": "experiment/scenario.toml",
    "claims.py": "experiment/claims.py.txt",
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def write(kind: str, name: str) -> list[Path]:
    """Writes the files of a kind and returns their paths, the scenario last; an existing file is never replaced."""
    stem = place(name)
    words = {"FILE": stem.name, "CLASS": _class_name(stem.name)}
    return write_texts(stem, {ending: _text(file, words) for ending, file in KINDS[kind].items()})


def write_folder(name: str, taken: Container[str]) -> Path:
    """Writes the folder of a new experiment and returns its path; `taken` has the names of all other experiments.

    Raises `MistakeError` if the folder exists, even an empty one, or if its experiment would have a name in `taken`.
    """
    path = place(name)
    experiment = path.name.replace("_", "-")
    if experiment in taken:
        raise MistakeError(f"{experiment} is the name of an installed experiment; choose another name")
    if path.exists() or path.is_symlink():
        raise MistakeError(f"{path}: exists already and is not replaced; choose another name")
    words = {"NAME": experiment, "FOLDER": path.name}
    with store.replacing(path) as new:
        for file, template in FOLDER.items():
            new.put(file, _text(template, words))
    return path


def _text(template: str, words: Mapping[str, str]) -> str:
    return Template((_TEMPLATES / template).read_text(encoding="utf-8")).substitute(words)


def write_texts(stem: Path, texts: Mapping[str, str]) -> list[Path]:
    """Writes each text to `stem` with its ending; writes nothing if one of the files exists with another text.

    A file with just this text is what an earlier command wrote before it was ended; the others are added to it.
    """
    paths = {Path(f"{stem}{ending}"): text for ending, text in texts.items()}
    missing = [path for path in paths if not (path.exists() or path.is_symlink())]
    for path, text in paths.items():
        if path not in missing and (not missing or not _has(path, text)):
            raise MistakeError(f"{path}: exists already and is not replaced; choose another name")
    for path in missing:
        try:
            store.create(path, paths[path])
        except FileExistsError:
            raise MistakeError(f"{path}: exists already and is not replaced; choose another name") from None
    return list(paths)


def _has(path: Path, text: str) -> bool:
    return path.is_file() and not path.is_symlink() and store.read(path) == text.encode()


def place(name: str) -> Path:
    """Returns the path of a new file without its ending; raises `MistakeError` if `name` cannot name a file."""
    path = Path(name)
    stem = path.with_suffix("") if path.suffix in (".py", ".toml") else path
    if not _NAME.fullmatch(stem.name):
        raise MistakeError(f"{name!r} is no name for a file; write a letter, then letters, digits, `-` and `_`")
    if not stem.parent.is_dir():
        raise MistakeError(f"{stem.parent}: there is no such directory; `mkdir -p {stem.parent}` makes it")
    return stem


def _class_name(stem: str) -> str:
    """Returns the name of the class in a file: `my-red_2` gives `MyRed2`."""
    name = "".join(part[:1].upper() + part[1:] for part in re.split(r"[-_]", stem))
    return f"{name}_" if keyword.iskeyword(name) else name
