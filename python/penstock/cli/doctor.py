"""`doctor`: reports what this machine can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from penstock.cli import show
from penstock.cli.base import verb
from penstock.cli.layout import Cell, Styled

if TYPE_CHECKING:
    from penstock.doctor import Check

_LACKS = {True: Styled("missing", "red"), False: Styled("no", "yellow")}  # by `Check.essential`


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
    rows: list[list[Cell]] = []
    for check in found:
        state = Styled("ok", "green") if check.ok else _LACKS[check.essential]
        help_ = "" if check.ok else f"for {check.needed_for}: {check.repair}".removesuffix(": ")
        rows.append([state, check.name, check.found, help_])
    show.table("", ("", "what", "found", "repair"), rows, left=4)
