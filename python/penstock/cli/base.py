"""The command-line application: the order of its verbs in the help, and the helpers that all verbs share."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_command

from penstock.cli import layout, mistakes
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

# The headings of `penstock --help` and the verbs below each, in the order in which they are shown.
FAMILY = {
    "ask": ("run", "sweep", "compare", "replay", "what-if"),
    "papers": ("reproduce", "claims"),
    "judge": ("suite", "verify", "tempest"),
    "keep": ("runs",),
    "make": ("new",),
    "learn": ("list", "docs", "doctor"),
}
# The files of the verbs, with the names of earlier versions. A command loads only the file of its own verb.
_FILES = {
    "compare": ("compare",),
    "docs": ("docs",),
    "doctor": ("doctor",),
    "experiments": ("reproduce", "claims"),
    "listing": ("list",),
    "new": ("new", "architecture"),
    "replay": ("replay",),
    "run": ("run",),
    "runs": ("runs", "rerun", "report"),
    "suite": ("suite",),
    "sweep": ("sweep",),
    "tcp_trace": ("tcp-trace",),
    "tempest": ("tempest",),
    "verify": ("verify", "bench"),
    "what_if": ("what-if",),
}
# Files with subcommands of a verb, loaded with the verb's own file.
_PARTS = {"verify": ("adversary",)}
FILE_OF = {name: file for file, names in _FILES.items() for name in names}
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

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns a command, whose simple values `typer` does not convert."""
        found = super().get_command(ctx, cmd_name)
        if found is not None and not isinstance(found, TyperGroup):
            _convert_simple_values(found)
        return found

    def invoke(self, ctx: Any) -> Any:
        """Runs the command; an interrupt ends it with a word."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("interrupted: what was stored before is as it was; the same command begins again", file=sys.stderr)
            raise typer.Exit(130) from None

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


def _convert_simple_values(command: Any) -> None:
    """Lets the parameters of a command convert texts, paths, numbers, lists, flags and missing values themselves.

    `typer` gives all values to `pydantic`, which takes longer to load than all the rest of `penstock list`, and which
    speaks of types. It still converts what is unknown here.
    """
    function = inspect.unwrap(command.callback) if command.callback else None
    types = get_type_hints(function, include_extras=True) if function else {}
    given = inspect.signature(function).parameters if function else {}
    listed = command.get_params
    if getattr(listed, "converts", False):
        return

    def get_params(ctx: Any) -> list[Any]:
        found: list[Any] = listed(ctx)
        for parameter in found:
            if not isinstance(parameter.process_value, _Simple):
                name = parameter.name
                about = (given[name].default, types.get(name)) if name in given else (None, None)
                parameter.process_value = _Simple(parameter, *about)
        return found

    get_params.converts = True  # type: ignore[attr-defined]
    command.get_params = get_params


class _Simple:
    """Processes a value that needs no `pydantic`, and gives all others to `typer`; see `_convert_simple_values`."""

    def __init__(self, parameter: Any, info: Any, wanted: Any) -> None:
        self._parameter, self._process = parameter, parameter.process_value
        if get_origin(wanted) is Annotated:
            wanted, info = get_args(wanted)[:2]
        items = get_args(wanted)[:1] if get_origin(wanted) is list else ()
        self._is_list = bool(items)
        self._convert = _converter(parameter, info, items[0] if items else wanted)

    def __call__(self, ctx: Any, value: Any) -> Any:
        one, convert = self._parameter, self._convert
        if value is None and one.required:
            return self._process(ctx, value)
        if convert is not None and self._is_list:
            value = [convert(item) for item in value or ()]
            if one.required and not value:
                return self._process(ctx, None)
        elif convert is not None and value is not None:
            value = convert(value)
        elif not isinstance(value, bool) and (value is not None or one.multiple or one.nargs != 1):
            return self._process(ctx, value)
        return one.callback(ctx, one, value) if one.callback else value


def _converter(parameter: Any, info: Any, wanted: Any) -> Callable[[Any], Any] | None:
    """Returns what converts a text to the type of a parameter; `None` for a type that `typer` converts."""
    if reads := getattr(info, "parser", None):
        return cast("Callable[[Any], Any]", reads)
    kind = next((one for one in (str, Path, int, float) if wanted in (one, one | None)), None)
    if kind not in (int, float):
        return kind
    names = [name for name in parameter.opts if name.startswith("--")] or [parameter.metavar or parameter.name.upper()]
    return mistakes.number(names[0], kind, getattr(info, "min", None), getattr(info, "max", None))


def _load(name: str) -> None:
    """Loads the files of a verb, which decorate the functions of its verbs with `verb`, `old_name` or `group`."""
    for file in (FILE_OF[name], *_PARTS.get(FILE_OF[name], ())):
        importlib.import_module(f"penstock.cli.{file}")


class Verbs(Mapping[str, Any]):
    """All verbs by name. A verb is loaded and constructed when it is asked for: a command loads only its own verb."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            _load(name)
            self._made[name] = get_command(_VERBS[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(FILE_OF)

    def __len__(self) -> int:
        return len(FILE_OF)


class Root(Group):
    """The command `penstock`. It prints its help without `rich`, which would take longer to load than all the rest."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = Verbs()
        _convert_simple_values(self)

    def visible(self) -> list[str]:
        """Returns the names of the verbs that the help shows."""
        return list(_HEADING)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the method has these arguments
        """Prints the help: the options, and the verbs under their headings."""
        for name in _HEADING:
            _load(name)
        params: list[Any] = self.get_params(ctx)
        options = [(", ".join(sorted(one.opts, key=len)), one.help or "") for one in params]
        panels = [("Options", options)]
        panels += [(heading, [(name, _ABOUT[name]) for name in names]) for heading, names in FAMILY.items()]
        lines = ["", f" Usage: {' '.join([_path(ctx), *self.collect_usage_pieces(ctx)])}", "", f" {self.help}", ""]
        for title, rows in panels:
            lines += layout.panel(title, rows)
        lines += ["", *(f" {line}" for line in (self.epilog or "").splitlines()), ""]
        typer.echo("\n".join(lines))


# The verbs by name, each with its own parser; and the first sentence of the help of those that the help shows.
_VERBS: dict[str, typer.Typer] = {}
_ABOUT: dict[str, str] = {}

app = typer.Typer(
    cls=Root,
    help="Queue management for links that are thin, distant or crowded: the lab.",
    epilog=examples("penstock new scenario home", "penstock run home.toml", "penstock docs scenarios"),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)


def verb(name: str, *lines: str, **settings: Any) -> Callable[[Any], Any]:
    """Decorates the function of the verb `name`; `lines` are the examples of its help."""

    def decorate(function: Any) -> Any:
        _ABOUT[name] = " ".join(str(function.__doc__).split("\n\n")[0].split())
        return _command(name, epilog=examples(*lines), **settings)(function)

    return decorate


# The release from which on old names are no longer there: two after the one in which they became old.
_OLD_UNTIL = "0.3"


def old_name(name: str, new: str) -> Callable[[Any], Any]:
    """Decorates the function of the verb `new` that had the name `name` in an earlier version; no help shows that."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def warned(*arguments: Any, **named: Any) -> Any:
            told = f"warning: `penstock {name}` is now `penstock {new}`; the old name works until version {_OLD_UNTIL}"
            print(told, file=sys.stderr)
            return function(*arguments, **named)

        _command(name, hidden=True)(warned)
        return function

    return decorate


def _command(name: str, **settings: Any) -> Callable[[Any], Any]:
    return _add(name, typer.Typer(add_completion=False, context_settings=HELP)).command(name, **settings)


def _add(name: str, made: typer.Typer) -> typer.Typer:
    if name not in FILE_OF:
        raise LookupError(f"the verb {name!r} is in no file of _FILES, so that nobody could call it")
    _VERBS[name] = made
    return made


def group(name: str, about: str, *lines: str) -> typer.Typer:
    """Creates a verb with subcommands; `about` is its help, and `lines` are the examples."""
    made = typer.Typer(
        name=name,
        cls=Group,
        help=about,
        epilog=examples(*lines),
        no_args_is_help=True,
        add_completion=False,
        context_settings=HELP,
    )
    _ABOUT[name] = about
    return _add(name, made)
