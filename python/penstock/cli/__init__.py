"""The command `penstock`.

Exit codes: 0 for success, 1 if a check failed or a run could not be finished, 2 for a mistake in the arguments or the
scenario, 130 after an interrupt.

Each verb has a file of its own, which is loaded when the verb is asked for (`base`). Modules that load slowly are
imported inside the functions that need them, so that help and listings appear at once.
"""

from __future__ import annotations

import re
import sys

import typer

from penstock.cli import memory, mistakes
from penstock.cli.base import app
from penstock.mistake import MistakeError

__all__ = ["app", "main"]


def _version(wanted: bool) -> None:
    if wanted:
        from penstock.engine import core_version

        typer.echo(f"penstock {core_version()}")
        raise typer.Exit


@app.callback()
def _common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main() -> None:
    """Runs the command; a mistake of the user is printed as one message without a traceback."""
    try:
        memory.check("".join(sys.argv[1:2]))
        code = app(prog_name="penstock", standalone_mode=False)
    except mistakes.UsageError as error:
        if message := mistakes.told(error):
            _fail(message, 2)
        sys.exit(2)
    except typer.Abort:
        _fail("stopped: nothing was changed", 1)
    except MistakeError as mistake:
        _fail(str(mistake), 2)
    except MemoryError:
        _fail("the memory is not enough for this command, or is limited: `ulimit -v` and `ulimit -d` tell", 2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}", 2)
    except (ValueError, RuntimeError) as error:
        _explain(error)
        raise
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> None:
    """Prints an error of the simulator and exits; returns if the error is another one."""
    from penstock.engine import AlgorithmError, BrokenInvariant, ScenarioError, TraceError

    if isinstance(error, ScenarioError | TraceError):
        _fail(str(error), 2)
    if isinstance(error, AlgorithmError | BrokenInvariant):
        _fail(f"the run was stopped: {error}", 1)


def _fail(message: str, code: int) -> None:
    text = re.sub(r" \(os error \d+\)", "", message)
    text = text if text.startswith("error") else f"error: {text}"
    print(text, file=sys.stderr)
    sys.exit(code)
