"""`new`: writes files to begin with. Contains the old verb `architecture` of `new network`, too."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock import starters, store
from penstock.cli import completion
from penstock.cli.base import examples, group, old_name
from penstock.mistake import MistakeError

new = group(
    "new",
    "Write commented files that run: an algorithm or a transport stack of your own, a scenario, or an experiment.",
    "penstock new scenario home",
    "penstock new aqm my_aqm",
    "penstock new scheduler my_turns --rust",
)

_SPREAD = "5ms"  # within which flows of a network begin, by the seed

Name = Annotated[str, typer.Argument(help="Name of the files without an ending.", metavar="NAME")]


Rust = Annotated[bool, typer.Option("--rust", help="Write a crate in Rust instead: a folder of this name.")]
Source = Annotated[
    Path | None,
    typer.Option(
        help="With --rust: take the crates of this checkout of penstock; default: those of this program.", metavar="DIR"
    ),
]


def _examples(kind: str, name: str) -> str:
    crate = name.replace("_", "-")
    return examples(
        f"penstock new {kind} {name}",
        f"penstock run {name}.toml",
        f"penstock new {kind} {crate} --rust",
        f"cd {crate} && cargo run --release -- scenario.toml",
    )


@new.command("aqm", epilog=_examples("aqm", "my_aqm"))
def aqm(name: Name, rust: Rust = False, source: Source = None) -> None:
    """Write an active queue management (AQM), its test, a scenario that uses it, and an experiment."""
    _algorithm("aqm", name, rust, source)


@new.command("cc", epilog=_examples("cc", "my_cc"))
def cc(name: Name, rust: Rust = False, source: Source = None) -> None:
    """Write a congestion control, its test, a scenario in which it competes with CUBIC, and an experiment."""
    _algorithm("cc", name, rust, source)


@new.command("scheduler", epilog=_examples("scheduler", "my_turns"))
def scheduler(name: Name, rust: Rust = False, source: Source = None) -> None:
    """Write a packet scheduler, its test, a scenario with classes of flows, and an experiment."""
    _algorithm("scheduler", name, rust, source)


@new.command("ack-path", epilog=_examples("ack-path", "my_clamp"))
def ack_path(name: Name, rust: Rust = False, source: Source = None) -> None:
    """Write an element on the ACK path, which lowers windows, with its test, a scenario and an experiment."""
    _algorithm("ack-path", name, rust, source)


@new.command("stack", epilog=examples("penstock new stack mine", "cd mine && cargo build --release"))
def stack(name: Name, source: Source = None) -> None:
    """Write a transport stack as a crate in Rust: a program that the simulator hosts, its test, and a scenario."""
    folder = _crate("stack", name, source)
    run = f"penstock run scenario.toml --stack {folder.name}=target/release/{folder.name}"
    print(f"next: cd {shlex.quote(str(folder))} && cargo test && cargo build --release && {run}")


def _algorithm(kind: str, name: str, rust: bool, source: Path | None) -> None:
    if source and not rust:
        raise MistakeError("--source goes with --rust")
    if not rust:
        _told(starters.write(kind, name))
        return
    folder = _crate(kind, name, source)
    print(f"next: cd {shlex.quote(str(folder))} && cargo test && cargo run --release -- scenario.toml")


def _crate(kind: str, name: str, source: Path | None) -> Path:
    """Writes a crate and tells of it; returns its folder."""
    folder = starters.write_crate(kind, name, source)
    print(f"written: {', '.join(str(folder / file) for file in starters.files_of_crate(kind))}")
    print(f"written: {folder / 'penstock'}, the crates of Penstock of which it is built")
    return folder


Like = Annotated[
    str,
    typer.Option(
        help="Copy this example, of which `penstock docs examples` tells, instead.",
        metavar="EXAMPLE",
        autocompletion=completion.examples,
    ),
]


From = Annotated[
    list[Path],
    typer.Option(
        "--from",
        help="Take the link from this: lines of tc, or ShapedDevices.csv and network.json of LibreQoS (twice, or their "
        "directory). What has no counterpart is listed.",
        metavar="FILE",
    ),
]
_OF_LIBREQOS = ("ShapedDevices.csv", "network.json")
_MOST_BYTES = 64 << 20


@new.command(
    "scenario",
    epilog=examples(
        "penstock new scenario home",
        "penstock run home.toml",
        "penstock new scenario full --like full-house",
        "penstock new scenario mine --from shaper.sh",
    ),
)
def scenario(
    name: Name,
    like: Like = "",
    source: From = [],  # noqa: B006 - typer reads it and never changes it
) -> None:
    """Write a scenario: a link, a queue, and the traffic of a home."""
    from penstock import manual

    if source and like:
        raise MistakeError("--from and --like are two ways to begin; give one of them")
    if source:
        _from(name, source)
        return
    _told(starters.copy(manual.example(like), name) if like else starters.write("scenario", name))


def _from(name: str, source: list[Path]) -> None:
    """Writes a scenario whose link is that of other tools' files, and lists what has no counterpart."""
    from penstock.engine import link_from

    files = [file for path in source for file in _given(path)]
    read = link_from([(str(path), _bytes(path)) for path in files])
    paths = starters.of_link(name, read["text"], f"The link of {', '.join(map(str, files))} ({read['format']})")
    for line in read["listed"]:
        print(f"not the same: {line}")
    _told(paths)


def _given(path: Path) -> list[Path]:
    """Lists the file, or those of LibreQoS in a directory."""
    if not path.is_dir():
        return [path]
    found = [path / name for name in _OF_LIBREQOS if (path / name).is_file()]
    if not found:
        raise MistakeError(f"{path} has neither {' nor '.join(_OF_LIBREQOS)}; name a file")
    return found


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise MistakeError(f"cannot read {path}: {error.strerror}") from None


@new.command("experiment", epilog=examples("penstock new experiment my-study", "penstock reproduce ./my-study"))
def experiment(name: Annotated[str, typer.Argument(help="Name of the folder.", metavar="NAME")]) -> None:
    """Write the folder of an experiment: a scenario, what its runs vary, and a claim about them."""
    from penstock.reproduce import EXPERIMENTS

    path = starters.write_folder(name, EXPERIMENTS)
    print(f"written: {', '.join(str(path / file) for file in starters.FOLDER)}")
    print(f"next: penstock reproduce {shlex.quote(str(path) if path.is_absolute() else f'./{path}')}")


def _told(paths: list[Path]) -> None:
    print(f"written: {', '.join(map(str, paths))}")
    print(f"next: penstock run {paths[-1]}")


Backhauls = Annotated[
    list[str],
    typer.Option(help="Satellite of a MEOC (cell on a vehicle): geo, meo or leo. Repeatable: once for each MEOC."),
]
Responders = Annotated[int, typer.Option(min=0, help="Number of responders in the cell of each MEOC.")]
Civilians = Annotated[int, typer.Option(min=0, help="Number of civilians in the cell of each MEOC.")]
Duration = Annotated[float, typer.Option(min=1.0, max=86_400.0, help="Simulated seconds.")]
Seed = Annotated[int, typer.Option(min=0, max=2**64 - 1, help="Seed of the scenario.")]
Bridge = Annotated[float | None, typer.Option(min=0.001, help="Rate of links between neighbouring MEOCs, Mbit/s.")]
Terrestrial = Annotated[int, typer.Option(min=0, max=100, help="Number of terrestrial base stations that still work.")]
Neighbours = Annotated[int, typer.Option(min=1, help="Number of civilians in the cell of each base station.")]
Handovers = Annotated[
    list[str],
    typer.Option(help="SECONDS:CELL:CELL, such as 20:1:2, or with :civilians or :all; 1 is a MEOC, t1 a base station."),
]


@new.command(
    "network",
    epilog=examples(
        "penstock new network emergency --backhaul geo --backhaul meo --responders 5 --civilians 3",
        "penstock run emergency.toml",
    ),
)
def network(
    name: Name,
    backhaul: Backhauls = ["meo"],  # noqa: B006 - typer reads it and never changes it
    responders: Responders = 5,
    civilians: Civilians = 0,
    duration: Duration = 60.0,
    seed: Seed = 1,
    bridge: Bridge = None,
    terrestrial: Terrestrial = 0,
    neighbours: Neighbours = 5,
    handover: Handovers = [],  # noqa: B006 - typer reads it and never changes it
) -> None:
    """Write the scenario of an emergency network: LTE cells, MEOCs, satellites, headquarters."""
    stem = starters.place(name)
    text = _emergency(backhaul, responders, civilians, duration, seed, bridge, terrestrial, neighbours, handover)
    _told(starters.write_texts(stem, {"{}.toml": text}))


@old_name("architecture", "new network")
def architecture(
    backhaul: Backhauls = ["meo"],  # noqa: B006 - typer reads it and never changes it
    responders: Responders = 5,
    civilians: Civilians = 0,
    duration: Duration = 60.0,
    seed: Seed = 1,
    bridge: Bridge = None,
    terrestrial: Terrestrial = 0,
    neighbours: Neighbours = 5,
    handover: Handovers = [],  # noqa: B006 - typer reads it and never changes it
    out: Path | None = typer.Option(None, help="A file; default: print it."),
) -> None:
    """Write the scenario of an emergency network: LTE cells, MEOCs, satellites, headquarters."""
    text = _emergency(backhaul, responders, civilians, duration, seed, bridge, terrestrial, neighbours, handover)
    if out is None:
        print(text, end="")
        return
    store.write(out, text)
    print(f"{out}: run it with `penstock run {out}`")


def _emergency(
    backhaul: list[str],
    responders: int,
    civilians: int,
    duration: float,
    seed: int,
    bridge: float | None,
    terrestrial: int,
    neighbours: int,
    handover: list[str],
) -> str:
    """Returns the TOML text of the scenario which the options describe."""
    from penstock.architecture import BACKHAULS, ArchitectureError, BaseStation, Meoc, emergency_network
    from penstock.scenario import to_toml
    from penstock.suggest import did_you_mean

    for name in backhaul:
        if name not in BACKHAULS:
            meant = did_you_mean(name, BACKHAULS)
            raise ArchitectureError(f"there is no backhaul {name!r}; {meant}there are {', '.join(BACKHAULS)}")
    meocs = [Meoc(BACKHAULS[name], responders, civilians) for name in backhaul]
    stations = [BaseStation(civilians=neighbours)] * terrestrial
    moves = [_handover(text) for text in handover]
    tables = emergency_network(meocs, duration, seed, bridge, stations, moves)
    flows = [{**flow, "start_spread": _SPREAD} for flow in tables["flows"]]
    return to_toml({**tables, "flows": flows})


def _handover(text: str) -> Any:
    from penstock.architecture import ArchitectureError, Handover

    try:
        at_s, start, end, *who = text.split(":")
        return Handover(float(at_s), start, end, *who)
    except (TypeError, ValueError):
        raise ArchitectureError(f"{text!r} is no handover; write SECONDS:CELL:CELL, such as 20:1:2") from None
