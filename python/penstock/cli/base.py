"""The command-line application: the order of its verbs in the help, and the helpers that all verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

# The headings of `penstock --help` and the verbs below each, in the order in which they are shown.
FAMILY = {
    "ask": ("run", "replay"),
    "papers": ("reproduce", "claims"),
    "judge": ("verify", "tempest"),
    "keep": ("runs",),
    "make": ("new",),
    "learn": ("list", "docs", "doctor"),
}
_HEADING = {name: heading for heading, names in FAMILY.items() for name in names}
_PLACE = {name: place for place, name in enumerate(_HEADING)}

HELP = {"help_option_names": ["-h", "--help"]}


class Group(TyperGroup):
    """A command with subcommands, which it lists in the order of `FAMILY`. It suggests a name for a misspelt one."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of the commands in the order of `FAMILY`; other names follow unsorted."""
        return sorted(super().list_commands(ctx), key=lambda name: _PLACE.get(name, len(_PLACE)))

    def visible(self) -> list[str]:
        """Returns the names of the commands that the help shows."""
        return [name for name, command in self.commands.items() if not command.hidden]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Returns the command of the first argument; raises `MistakeError` with a suggestion if there is none."""
        name = args[0]
        if not name.startswith("-") and name not in self.commands and not ctx.resilient_parsing:
            known = self.visible()
            path = _path(ctx)
            raise MistakeError(
                f"there is no command `{path} {name}`; {did_you_mean(name, known)}"
                f"`{path} --help` explains {', '.join(sorted(known))}"
            )
        return super().resolve_command(ctx, args)


def _path(ctx: Any) -> str:
    """Returns the command as a user types it, beginning with `penstock`, whatever the program file is called."""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name)
        ctx = ctx.parent
    return " ".join(["penstock", *words])


def examples(*lines: str) -> str:
    """Returns the last part of a command's help: one example on each line."""
    return "\n".join(["Examples:", *(f"  {line}" for line in lines)])


app = typer.Typer(
    cls=Group,
    help="Queue management for links that are thin, distant or crowded: the lab.",
    epilog=examples("penstock new scenario home", "penstock run home.toml", "penstock docs scenarios"),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)


def verb(name: str, *lines: str, **settings: Any) -> Callable[[Any], Any]:
    """Decorates the function of the verb `name`; `lines` are the examples of its help."""
    return app.command(name, rich_help_panel=_HEADING[name], epilog=examples(*lines), **settings)


def old_name(name: str, **settings: Any) -> Callable[[Any], Any]:
    """Decorates the function of a verb that had the name `name` in an earlier version; no help shows this name."""
    return app.command(name, hidden=True, **settings)


def group(name: str, about: str, *lines: str) -> typer.Typer:
    """Creates a verb with subcommands; `about` is its help, and `lines` are the examples."""
    made = typer.Typer(cls=Group, help=about, epilog=examples(*lines), no_args_is_help=True, context_settings=HELP)
    app.add_typer(made, name=name, rich_help_panel=_HEADING[name])
    return made
