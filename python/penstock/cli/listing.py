"""`list`: prints algorithms and experiments with their parameters and sources."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from penstock.citations import cited
from penstock.cli import completion, show
from penstock.cli.base import verb
from penstock.cli.layout import styled
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

if TYPE_CHECKING:
    from penstock.engine import Entry

_EXPERIMENT, _STACK = "experiment", "stack"
# Kinds of entries, and what the entries of each kind do.
_KINDS = {
    "aqm": "judge the packets of one queue",
    "ack-path": "edit or hold passing segments",
    "flow-queueing": "keep a queue for each flow",
    "scheduler": "choose among classes",
    "cc": "control the congestion window of a sender",
    _STACK: "hosted, `stack = NAME` of a flow",
    _EXPERIMENT: "published, run by `penstock reproduce NAME`",
}


@verb("list", "penstock list", "penstock list aqm", "penstock list codel", "penstock list satellite --json")
def list_(
    word: str = typer.Argument(
        "",
        help="A kind, a name, or any text to search for; default: all.",
        metavar="[KIND|WORD]",
        autocompletion=completion.algorithms,
    ),
    json: bool = typer.Option(False, "--json", help="Print a JSON list."),
) -> None:
    """List algorithms with their sources; one name shows its parameters with their defaults."""
    found = _wanted(word)
    if json:
        show.as_json([_to_json(entry) for entry in found])
    elif word and all(entry.name == word for entry in found):
        for entry in found:
            _print_whole(entry)
    else:
        _print_short(found)
        if not word:
            kinds = ", ".join([*dict.fromkeys(entry.kind for entry in found), _STACK, _EXPERIMENT])
            show.line(f"kinds: {kinds}; `penstock list NAME` shows parameters", "dim")


def _wanted(word: str) -> list[Entry]:
    """Returns the entries whose kind or name is `word`, or whose text contains it; all algorithms if it is empty."""
    from penstock import engine

    algorithms = engine.entries()
    if not word:
        return algorithms
    if of_kind := [entry for entry in algorithms if entry.kind == word]:
        return of_kind
    if named := [entry for entry in algorithms if entry.name == word]:
        return named
    others = [*_stacks(), *_experiments()]
    for chosen in ([entry for entry in others if entry.kind == word], [one for one in others if one.name == word]):
        if chosen:
            return chosen
    every = [*algorithms, *others]
    if found := [entry for entry in every if word.lower() in _text(entry)]:
        return found
    known = [*(entry.name for entry in every), *_KINDS]
    raise MistakeError(f"nothing is called {word!r} or tells of it; {did_you_mean(word, known)}`penstock list` has all")


def _stacks() -> list[Entry]:
    from penstock import stacks
    from penstock.engine import Entry

    source = "https://github.com/quinn-rs/quinn"
    return [Entry(name, _STACK, f"{version}, as released", source, ()) for name, version in stacks.released().items()]


def _experiments() -> list[Entry]:
    from penstock.engine import Entry
    from penstock.reproduce import EXPERIMENTS

    return [Entry(name, _EXPERIMENT, one.title, cited(one.source), ()) for name, one in EXPERIMENTS.items()]


def _text(entry: Entry) -> str:
    parameters = (f"{parameter.name} {parameter.about}" for parameter in entry.parameters)
    return " ".join((entry.name, entry.about, entry.source, *parameters)).lower()


def _to_json(entry: Entry) -> dict[str, object]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "about": entry.about,
        "source": entry.source,
        "parameters": [vars(parameter) for parameter in entry.parameters],
    }


def _print_short(entries: Iterable[Entry]) -> None:
    kinds: dict[str, list[Entry]] = {}
    for entry in entries:
        kinds.setdefault(entry.kind, []).append(entry)
    for kind, of_kind in kinds.items():
        about = f": {_KINDS[kind]}" if kind in _KINDS else ""
        show.table(
            f"{kind}{about}",
            ("", "", ""),
            [[e.name, e.about, e.source] for e in of_kind],
            left=3,
            heads=False,
        )
        print()


def _print_whole(entry: Entry) -> None:
    from penstock import manual

    show.line(f"{styled(entry.name, 'bold')} {styled(f'({entry.kind})', 'dim')}")
    show.line(f"  {entry.about}")
    for parameter in entry.parameters:
        default = "from the link" if parameter.default is None else jsonlib.dumps(parameter.default)
        show.line(f"    {parameter.name} = {default}{styled(f'  {parameter.about}', 'dim')}")
    show.line(f"  source: {entry.source}")
    if entry.kind == _EXPERIMENT:
        show.line(f"  run it: penstock reproduce {entry.name}")
    elif page := manual.page_of(entry.name):
        show.line(f"  page: penstock docs {page.name}")
