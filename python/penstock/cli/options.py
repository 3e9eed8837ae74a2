"""Options that several verbs have, so that they read the same everywhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from penstock.cli import completion
from penstock.mistake import MistakeError

if TYPE_CHECKING:
    from penstock.scenario import Scenario

SET = typer.Option(
    [],
    "--set",
    metavar="KEY=VALUE",
    help="Set a key of the scenario to another value, such as aqm.name=pie. Repeatable.",
    autocompletion=completion.keys,
)
VARY = typer.Option(
    [],
    "--vary",
    metavar="KEY=VALUES",
    help="A key of the scenario and its values: 1,4,256 or 1..64:log7 or 1ms..9ms:lin5. Repeatable.",
    autocompletion=completion.keys,
)
SEEDS = typer.Option(None, "--seeds", metavar="SEEDS", help='Number of seeds, or seeds: "20", "3,7", "11..20".')
JOBS = typer.Option(None, "-j", "--jobs", min=1, help="Runs at once; default: one per core.")
JSON = typer.Option(False, "--json", help="Print one JSON object.")
OPEN = typer.Option(False, "--open", help="Open the page in a browser when it is written.")
MEASURE = typer.Option(
    [],
    "--measure",
    metavar="NAME",
    help="Measure of the table; `penstock docs measures`. Repeatable.",
    autocompletion=completion.measures,
)
WITH = typer.Option([], "--with", metavar="FILE.py:Class", help="An algorithm of yours, beside the rest. Repeatable.")
STACK = typer.Option(
    [],
    "--stack",
    metavar="NAME=COMMAND",
    help="Host a program as the transport stack NAME; `penstock docs stacks`. Repeatable.",
)
STDIN = "-"
_STDIN_FILE = "<stdin>"  # the name of the file in messages; the scenario's name is then "stdin"


def hosting(given: list[str]) -> None:
    """Takes the programs of `--stack`."""
    if given:
        from penstock import stacks

        stacks.add(given)


def opened(page: Path, wanted: bool) -> None:
    """Opens a page in a browser if that is wanted."""
    if wanted:
        typer.launch(page.absolute().as_uri())


def scenario(given: str | Path) -> Scenario:
    """Returns the scenario of a file, or of standard input for `-`."""
    from penstock.scenario import Scenario, SourceError

    if str(given) != STDIN:
        return Scenario.load(Path(given))
    if sys.stdin.isatty():
        print("reading a scenario from standard input; Ctrl-D ends it", file=sys.stderr)
    data = sys.stdin.buffer.read()
    try:
        return Scenario(data.decode("utf-8"), _STDIN_FILE)
    except UnicodeDecodeError as error:
        raise SourceError(f"standard input: not a scenario: byte {error.start} is not UTF-8 text") from None


def first_seeds(default: int | None, most: int, about: str) -> Any:
    """Returns the option `--seeds` of a verb that takes the first seeds: 20 and 1..20 are the same."""

    def read(text: Any) -> int:
        from penstock.experiments import reading

        found = reading.seeds(str(text))
        if found != tuple(range(1, len(found) + 1)) or len(found) > most:
            raise MistakeError(f"--seeds {text}: this verb takes the first seeds; write 20 or 1..20, at most {most}")
        return len(found)

    return typer.Option(default, "--seeds", parser=read, metavar="SEEDS", help=f'{about}: "20" or "1..20".')
