"""`doctor`: reports what this machine can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.text import Text

from penstock.cli import show
from penstock.cli.base import verb

if TYPE_CHECKING:
    from penstock.doctor import Check

_LACKS = {True: Text("missing", "red"), False: Text("no", "yellow")}  # by `Check.essential`


@verb("doctor", "penstock doctor", "penstock doctor --json")
def doctor(json: bool = typer.Option(False, "--json", help="Print one JSON object.")) -> None:
    """Report what this machine can do, and which command adds what is missing. Nothing is changed.

    Exit code 1 means that the simulator cannot work because something essential is missing.
    """
    from penstock import doctor as checks

    found = checks.examine()
    if json:
        show.as_json({"healthy": checks.healthy(found), "checks": [check.to_json() for check in found]})
    else:
        _print(found)
    if not checks.healthy(found):
        raise typer.Exit(1)


def _print(found: list[Check]) -> None:
    rows = []
    for check in found:
        state = Text("ok", "green") if check.ok else _LACKS[check.essential]
        help_ = Text("" if check.ok else f"for {check.needed_for}: {check.repair}".removesuffix(": "))
        rows.append([state, Text(check.name), Text(check.found), help_])
    show.table("", ("", "what", "found", "repair"), rows, left=4)
