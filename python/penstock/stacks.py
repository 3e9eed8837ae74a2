"""Transport stacks that others wrote: `docs/stacks.md`.

The released ones are a part of the compiled module. Any other is a program, whose command the user gives by
`--stack NAME=COMMAND`; a scenario names a stack and starts no program. The commands are kept in the environment, so
that the processes of a sweep have them too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
from pathlib import Path

from penstock import _penstock
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

_KEPT_IN = "PENSTOCK_STACKS"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def given() -> dict[str, list[str]]:
    """Returns the commands that were given, by name."""
    try:
        found = json.loads(os.environ.get(_KEPT_IN, "{}"))
        return {str(name): [str(word) for word in command] for name, command in found.items()}
    except (ValueError, AttributeError, TypeError):
        raise MistakeError(f"the variable {_KEPT_IN} is not what --stack writes; unset it") from None


def released() -> dict[str, str]:
    """Returns the versions of the stacks that are a part of the compiled module, by name."""
    return dict(_penstock.stacks())


def names() -> list[str]:
    """Returns the names of all stacks that can be hosted."""
    return [*released(), *given()]


def add(texts: list[str]) -> None:
    """Takes the commands of `NAME=COMMAND`; raises `MistakeError` for one that cannot be started."""
    found = given()
    for text in texts:
        name, equals, command = text.partition("=")
        try:
            words = shlex.split(command) if equals else []
        except ValueError as error:
            raise MistakeError(f"--stack {text}: {error}; close the quotation") from None
        if not words or not _NAME.fullmatch(name):
            raise MistakeError(
                f"--stack {text}: write NAME=COMMAND, such as mine=./mine; the name has letters, digits, - and _"
            )
        if name in {one.partition(":")[0] for one in released()}:
            raise MistakeError(f"--stack {text}: {name} is a stack that is there already; take another name")
        place = shutil.which(words[0])
        if place is None:
            raise MistakeError(f"--stack {text}: there is no program {words[0]}")
        found[name] = [str(Path(place).absolute()), *words[1:]]
    if texts:
        os.environ[_KEPT_IN] = json.dumps(found)


def command(name: str) -> list[str]:
    """Returns the command of a stack that is a program; raises `MistakeError` if there is none of this name."""
    found = given()
    if name not in found:
        raise MistakeError(
            f"there is no stack {name!r}; {did_you_mean(name, names())}there are {', '.join(names())}; a program of "
            "your own is given by --stack NAME=COMMAND"
        )
    return found[name]


def fingerprint(text: str) -> str:
    """Returns what tells the programs apart that a scenario may name; empty if none.

    It is their commands, and the contents of the files that these name: programs, scripts and files given to them.
    """
    used = given() if "stack" in text else {}
    files = [Path(word) for words in used.values() for word in words if Path(word).is_file()]
    contents = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return json.dumps([used, contents], sort_keys=True) if used else ""
