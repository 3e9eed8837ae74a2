"""The option `--on` selects the world in which a scenario runs: the simulator, the emulator or a kernel."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

# HERE lists the worlds in which this version runs scenarios; the others have only a name and a description yet.
HERE = ("sim",)
_ELSEWHERE = {
    "fluid": "the equations of the fluid model",
    "wire": "the emulator between real hosts in network namespaces",
    "tc": "the kernel's own disciplines",
    "jar": "a stock kernel in virtual time",
}


def _checked(name: str) -> str:
    if name in HERE:
        return name
    if name in _ELSEWHERE:
        raise MistakeError(f"--on {name}: {_ELSEWHERE[name]}: not in this version, which runs in {', '.join(HERE)}")
    raise MistakeError(
        f"--on {name}: there is no such world; {did_you_mean(name, (*HERE, *_ELSEWHERE))}this version runs in "
        f"{', '.join(HERE)}"
    )


On = Annotated[
    str,
    typer.Option(
        "--on", callback=_checked, metavar="WORLD", help="World in which the scenario runs: sim, the simulator."
    ),
]
