"""The algorithm that is to be broken: a name with its parameters, built in or one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import engine, stacks
from penstock.experiments.values import scalar
from penstock.mistake import MistakeError
from penstock.own import Library
from penstock.suggest import did_you_mean

STACK = "stack"  # the kind of a whole transport stack that is hosted
SUBJECT = "SUBJECT"  # what stands for it in the scenario of a space
_OWN = {"cc": "control", "aqm": "discipline", "scheduler": "discipline", "ack-path": "discipline"}


@dataclass(frozen=True)
class Subject:
    """An algorithm with the parameters that are given."""

    name: str
    kind: str  # "discipline", "control", or STACK
    given: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)  # defaults of all other parameters
    file: str = ""  # a file beside which files of algorithms are looked for
    classes: Mapping[str, type] = field(default_factory=dict)

    @property
    def judged_as(self) -> str:
        """Its kind, where a hosted stack is judged by what its flows do, as a control is."""
        return "control" if self.kind == STACK else self.kind

    @property
    def table(self) -> dict[str, Any]:
        """The algorithm as a scenario has it."""
        return {"name": self.name, **self.given}

    def placed(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a copy of the tables of a scenario with the algorithm wherever the name SUBJECT stands."""

        def put_in(value: Any) -> Any:
            if value == SUBJECT:
                return self.table
            if isinstance(value, Mapping):
                if self.kind == STACK and value.get("cc") == SUBJECT:
                    value = {
                        **{key: one for key, one in value.items() if key != "cc"},
                        "kind": STACK,
                        "stack": self.name,
                    }
                return {key: put_in(item) for key, item in value.items()}
            return [put_in(item) for item in value] if isinstance(value, list) else value

        found: dict[str, Any] = put_in(tables)
        return found

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.given.items())])

    @property
    def word(self) -> str:
        """The name for files."""
        return Path(self.name.rpartition(":")[2] if ".py:" in self.name else self.name).name


def find(text: str) -> Subject:
    """Returns the algorithm of `NAME key=value ...`; raises `MistakeError` if there is none."""
    name, *settings = text.split() or [""]
    given = dict(_setting(one) for one in settings)
    entry = next((one for one in engine.entries() if one.name == name), None)
    if entry is not None:
        rest = {one.name: one.default for one in entry.parameters if one.name not in given}
        return Subject(name, "control" if entry.kind == "cc" else "discipline", given, rest)
    if name in stacks.names() and not given:
        return Subject(name, STACK)
    own = Library().kind(name) if name else None
    if own is None:
        known = [*(one.name for one in engine.entries()), *stacks.names()]
        raise MistakeError(
            f"there is no algorithm {name!r}; {did_you_mean(name, known)}give a name of `penstock list` or "
            "FILE.py:CLASS, with parameters behind it: 'codel target=10ms'"
        )
    return Subject(name, _OWN[own], given, {}, str(Path("trial.toml").resolve()))


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise MistakeError(f"{text!r}: write key=value, such as target=10ms")
    return key, scalar(value)
