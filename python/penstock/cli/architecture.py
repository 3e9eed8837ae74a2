"""`architecture`: scenarios of emergency networks."""

from __future__ import annotations

from pathlib import Path

import typer

from penstock.architecture import BACKHAULS, ArchitectureError, BaseStation, Handover, Meoc, emergency_network
from penstock.cli import app
from penstock.scenario import to_toml


@app.command()
def architecture(
    backhaul: list[str] = typer.Option(["meo"], help="geo, meo or leo; once for each MEOC."),
    responders: int = typer.Option(5, min=0, help="In each cell."),
    civilians: int = typer.Option(0, min=0, help="In each cell."),
    duration: float = typer.Option(60.0, min=1.0, max=86_400.0, help="Seconds."),
    seed: int = typer.Option(1, min=0, max=2**64 - 1, help="Of the scenario."),
    bridge: float | None = typer.Option(None, min=0.001, help="Mbit/s of a link between neighbouring MEOCs."),
    terrestrial: int = typer.Option(0, min=0, max=100, help="Terrestrial base stations that still work."),
    neighbours: int = typer.Option(5, min=1, help="Civilians in the cell of each of them."),
    handover: list[str] = typer.Option(
        [], help="SECONDS:CELL:CELL, such as 20:1:2, or with :civilians or :all; 1 is a MEOC, t1 a base station."
    ),
    out: Path | None = typer.Option(None, help="A file; default: print it."),
) -> None:
    """Write the scenario of an emergency network: LTE cells, MEOCs, satellites, headquarters."""
    for name in backhaul:
        if name not in BACKHAULS:
            raise ArchitectureError(f"there is no backhaul {name!r}; there are {', '.join(BACKHAULS)}")
    meocs = [Meoc(BACKHAULS[name], responders, civilians) for name in backhaul]
    stations = [BaseStation(civilians=neighbours)] * terrestrial
    moves = [_handover(text) for text in handover]
    text = to_toml(emergency_network(meocs, duration, seed, bridge, stations, moves))
    if out is None:
        print(text, end="")
        return
    out.write_text(text, encoding="utf-8")
    print(f"{out}: run it with `penstock run {out}`")


def _handover(text: str) -> Handover:
    try:
        at_s, start, end, *who = text.split(":")
        return Handover(float(at_s), start, end, *who)
    except (TypeError, ValueError):
        raise ArchitectureError(f"{text!r} is no handover; write SECONDS:CELL:CELL, such as 20:1:2") from None
