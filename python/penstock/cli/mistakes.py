"""What is said of wrong options and arguments: what, of which command, what is allowed, and the nearest name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer

from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

# What `typer` raises for wrong usage. Its base class is in a package of its own in older versions.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
# Options of other verbs which people try here, and what to write instead.
_ELSEWHERE = {
    ("run", "--seeds"): "`penstock run` takes one seed, --seed 7; `penstock sweep` takes --seeds 3,7 or 1..20",
    ("run", "--vary"): "--set KEY=VALUE sets one value here; `penstock sweep` takes --vary KEY=VALUES",
    ("run", "--aqm"): "write --set aqm.name=NAME",
    ("sweep", "--seed"): "write --seeds 7..7 for one seed, --seeds 20 for the first twenty",
    ("compare", "--seed"): "write --seeds 7..7 for one seed, --seeds 20 for the first twenty",
}


def told(error: Any) -> str:
    """Returns what is said of a command whose options or arguments are wrong."""
    context, name = error.ctx, type(error).__name__
    if name.startswith("NoArgsIsHelp"):
        return ""
    path = " ".join(["penstock", *_words(context)])
    if name == "NoSuchOption":
        return _no_option(error, path, context)
    if name == "MissingParameter":
        one = error.param
        word = one.metavar or (one.name or "").upper() if one is not None else ""
        about = f": {one.help}" if one is not None and getattr(one, "help", None) else ""
        return f"`{path}` needs {word}{about}\n{_help(path)}"
    message = str(error.message)
    if found := re.search(r"unexpected extra argument(?:s|\(s\))? \((.*)\)", message):
        return f"{found[1]}: `{path}` takes no such argument{_arguments(context)}\n{_help(path)}"
    if found := re.fullmatch(r"Option '?([^' ]+)'? requires an argument\.?", message):
        about = _about(context, found[1])
        return f"{found[1]} needs a value{': ' * bool(about)}{about}\n{_help(path)}"
    return f"{error.format_message()}\n{_help(path)}"


def _words(context: Any) -> list[str]:
    words: list[str] = []
    while context is not None and context.parent is not None:
        words.insert(0, str(context.info_name))
        context = context.parent
    return words


def _help(path: str) -> str:
    return f"`{path} --help` explains it"


def _options(context: Any) -> dict[str, str]:
    """Returns the options of a command with what the help says of each."""
    listed = context.command.get_params(context) if context is not None else []
    shown = (one for one in listed if not getattr(one, "hidden", False))
    return {name: getattr(one, "help", "") or "" for one in shown for name in one.opts if name.startswith("-")}


def _about(context: Any, option: str) -> str:
    return _options(context).get(option, "")


def _arguments(context: Any) -> str:
    listed = context.command.get_params(context) if context is not None else []
    words = [one.metavar or (one.name or "").upper() for one in listed if one.param_type_name == "argument"]
    return f"; it takes {' '.join(words)}" if words else ""


def _no_option(error: Any, path: str, context: Any) -> str:
    given = str(error.option_name)
    known = [name for name in _options(context) if name.startswith("--")]
    verb = (_words(context) or [""])[0]
    elsewhere = _ELSEWHERE.get((verb, given))
    if elsewhere:
        return f"{given}: {elsewhere}"
    if re.fullmatch(r"-\d.*", given):
        return (
            f"{given}: an option needs its value behind it, and {path!r} has no option {given}; it has {_list(known)}"
        )
    return f"{given}: `{path}` has no such option; {did_you_mean(given, known)}it has {_list(known)}"


def _list(names: list[str]) -> str:
    return ", ".join(names) if names else "no options"


def number(option: str, kind: type, least: float | None, most: float | None) -> Callable[[str], Any]:
    """Returns the reader of a number of an option, whose mistakes say which numbers are allowed."""

    def read(text: str) -> Any:
        try:
            value = kind(str(text).strip())
        except ValueError:
            value = None
        inside = value is not None and (least is None or value >= least) and (most is None or value <= most)
        if not inside:
            raise MistakeError(f"{option} {text}: write {_allowed(kind, least, most)}")
        return value

    return read


def _allowed(kind: type, least: float | None, most: float | None) -> str:
    what = "a whole number" if kind is int else "a number"
    if least is not None and most is not None:
        return f"{what} from {least:,} to {most:,}".replace(",", "")
    if least is not None:
        return f"{what} from {least} on"
    return what if most is None else f"{what} up to {most}"
