"""The command `penstock`.

Exit codes: 0 done, 1 a check failed or the run could not be finished, 2 a mistake in what was asked, 130 interrupted.
"""

from __future__ import annotations

import sys

import typer

from penstock.engine import BrokenInvariant, ScenarioError, TraceError, core_version
from penstock.mistake import MistakeError

app = typer.Typer(
    help="Queue management for links that are thin, distant or crowded: the lab.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {core_version()}")
        raise typer.Exit


@app.callback()
def _common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


# Each module adds its commands to the application.
from penstock.cli import experiments, inspect, run, tempest  # noqa: E402, F401


def main() -> None:
    """Runs the command; a person's mistake becomes one message and no traceback."""
    try:
        app()
    except (MistakeError, ScenarioError, TraceError) as mistake:
        _fail(str(mistake), 2)
    except BrokenInvariant as broken:
        _fail(f"the run was stopped: {broken}", 1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}", 2)


def _fail(message: str, code: int) -> None:
    text = message if message.startswith("error") else f"error: {message}"
    print(text, file=sys.stderr)
    sys.exit(code)
