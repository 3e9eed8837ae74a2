"""The option `--on` selects the world in which a scenario runs: the simulator, the emulator or a kernel."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli import completion
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean
from penstock.worlds import KERNELS, SIM
from penstock.worlds import NAMES as HERE


def _checked(name: str, worlds: tuple[str, ...]) -> str:
    if name in worlds:
        return name
    if name in HERE:
        raise MistakeError(f"--on {name}: {HERE[name]}: this command runs in {', '.join(worlds)}")
    raise MistakeError(f"--on {name}: there is no such world; {did_you_mean(name, HERE)}there are {', '.join(HERE)}")


def option(*worlds: str) -> typer.models.OptionInfo:
    """Returns the option `--on` of a command that runs in these worlds."""
    told = ", ".join(f"{world} (default)" if world == SIM else world for world in worlds)
    option: typer.models.OptionInfo = typer.Option(
        "--on",
        callback=lambda name: _checked(name, worlds),
        metavar="WORLD",
        help=f"World in which it runs: {told}. `penstock docs commands` tells what each is.",
        autocompletion=completion.worlds,
    )
    return option


On = Annotated[str, option(SIM, *KERNELS)]
OnAny = Annotated[str, option(*HERE)]
