"""`run`: runs one scenario."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from penstock import ecn
from penstock.cli import options, show, tcp_trace
from penstock.cli.base import verb
from penstock.cli.progress import Bar
from penstock.cli.worlds import OnAny
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean
from penstock.worlds import KERNELS, REAL_TIME

if TYPE_CHECKING:
    from penstock.engine import Result
    from penstock.scenario import Scenario

TRACES = ("tcp",)
_COUNTED = {
    "sim": "events",
    "fluid": "steps",
    "wire": "packets",
    "jar": "packets",
    "tc": "packets",
    "jar-tc": "packets",
}  # what the key `events` counts in each world


@verb(
    "run",
    "penstock run home.toml",
    "penstock run home.toml --seed 7 --json",
    "penstock run home.toml --set aqm.name=pie --set topology.rate=5Mbit/s",
    "cat home.toml | penstock run - --json",
    "penstock run home.toml --open",
    "penstock run home.toml --on fluid",
    "sudo penstock run home.toml --on wire",
    "penstock run home.toml --on wire --check",
    "sudo penstock run home.toml --on wire --shell c0",
    "penstock run home.toml --on jar",
    "sudo penstock run home.toml --on tc",
    "penstock run home.toml --on jar-tc",
    "penstock run home.toml --trace tcp --flows 0,1 --interval 20ms",
    "penstock run 'https://example.org/playground/#p1=...'",
)
def run(
    scenario: str = typer.Argument(
        help="A scenario file, whose keys `penstock docs scenarios` explains, `-` for standard input, or a link of the "
        "playground.",
        metavar="FILE.toml|-|LINK",
    ),
    settings: list[str] = options.SET,
    stack: list[str] = options.STACK,
    seed: int | None = typer.Option(None, min=0, max=2**64 - 1, help="Seed to use instead of the scenario's."),
    on: OnAny = "sim",
    out: Path | None = typer.Option(None, "-o", "--out", help="Directory of the results; default runs/NAME-HASH."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object; write a directory only with --out."),
    browse: bool = options.OPEN,
    pcapng: Path | None = typer.Option(None, help="Write the bottlenecks' packets with the reason of each drop."),
    trace: str = typer.Option("", metavar="tcp", help="Write windows, RTT, pace and state of TCP flows over time."),
    flows: str = typer.Option("", help='With --trace tcp: flows to trace, such as "0,3"; default: the first eight.'),
    interval: str = typer.Option("", help="With --trace tcp: time between samples; default 10ms."),
    shell: str = typer.Option(
        "", metavar="HOST", help="With --on wire: open a shell on a host while it runs: c0 or s0 of the first flow, ..."
    ),
    check: bool = typer.Option(False, "--check", help="Say whether the world can run the scenario, and run nothing."),
) -> None:
    """Run a scenario: tables on the terminal, everything else in a directory."""
    from penstock import link

    options.hosting(stack)
    _check_world(on, trace, pcapng)
    _check_shell(on, shell, json or check)
    if browse and (check or (json and out is None)):
        raise MistakeError(
            "--open opens the page of a run; without a directory there is none: give --out, or no --json"
        )
    if (flows or interval) and not trace:
        raise MistakeError(f"{'--flows' if flows else '--interval'} goes with --trace tcp")
    given = _settings(settings)
    if link.is_link(scenario):
        if on != "sim":
            raise MistakeError(
                f"--on {on} goes with a scenario file: save the scenarios of the playground as files first"
            )
        _run_link(scenario, given, seed, out, json, [("--trace", trace), ("--pcapng", pcapng)], check)
        return
    if trace:
        _check_trace(trace, pcapng)
    source = _changed(options.scenario(scenario), given)
    if trace:
        tcp_trace.trace(source, flows, interval or tcp_trace.INTERVAL, seed, out, json)
        return
    if check:
        _check(source, seed, on, json)
        return
    page = _simulate(source, seed, out, json, pcapng, on, shell)
    if page:
        options.opened(page, browse)


def _settings(texts: list[str]) -> dict[str, object]:
    """Returns keys and values of `--set`, whose module is loaded only if there are any."""
    if not texts:
        return {}
    from penstock.experiments import setting

    return setting.read(texts)


def _changed(source: Scenario, given: dict[str, object]) -> Scenario:
    """Returns the scenario with what `--set` says, and tells which settings have no effect."""
    if not given:
        return source
    from penstock.experiments import setting

    found = setting.applied(source, given)
    show.warn(setting.told(setting.without_effect(source, given), "--set"))
    return found


def _check_shell(on: str, shell: str, prints: bool) -> None:
    """Refuses a shell where there are no hosts, and beside other output."""
    if shell and on not in REAL_TIME:
        raise MistakeError(f"--shell {shell}: only --on {' and '.join(REAL_TIME)} have hosts on which a shell can run")
    if shell and prints:
        raise MistakeError("--shell goes neither with --json nor with --check: the shell has the standard output")


def _check_world(on: str, trace: str, pcapng: Path | None) -> None:
    """Refuses what a world does not record."""
    given = [name for name, value in (("--trace", trace), ("--pcapng", pcapng)) if value]
    if on == "fluid" and given:
        raise MistakeError(f"{given[0]} needs packets, which the equations of --on {on} do not have")
    if on in KERNELS and trace:
        raise MistakeError("--trace needs the state of the simulator's TCP, which real kernels do not show")
    if on in KERNELS and pcapng is not None and pcapng.suffix == ".parquet":
        raise MistakeError(f"--pcapng {pcapng}: --on {on} writes pcapng, or CSV if the name of the file ends in .csv")


def _check(source: Scenario, seed: int | None, on: str, json: bool) -> None:
    """Says whether a world can run a scenario."""
    from penstock import worlds

    told = worlds.check(source, seed, on)
    if json:
        show.as_json(told)
        return
    for key, value in told.items():
        show.line(f"{key}: {_plain(value)}")


def _plain(value: object) -> str:
    """Returns a value as a person writes it: the parts of tables and lists with commas between."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(one)}" for key, one in value.items())
    return ", ".join(map(_plain, value)) if isinstance(value, list | tuple) else str(value)


def _run_link(
    text: str,
    given: dict[str, object],
    seed: int | None,
    out: Path | None,
    json: bool,
    refused: list[tuple[str, object]],
    check: bool,
) -> None:
    """Runs the scenarios of a link one after another; with several, --out is the directory of their directories."""
    from penstock import link

    if wrong := [option for option, value in refused if value]:
        raise MistakeError(f"{wrong[0]} goes with a scenario file: save the scenarios of the playground as files first")
    sources = [_changed(source, given) for source in link.scenarios(text)]
    if check:
        for source in sources:
            _check(source, seed, "sim", json)
    elif len(sources) == 1:
        _simulate(sources[0], seed, out, json, None)
    elif json and out is None:
        show.as_json(
            [{**(result := _run(source, seed, None, True)).summary, "cpu_s": result.cpu_s} for source in sources]
        )
    else:
        for number, source in enumerate(sources, 1):
            _simulate(source, seed, out and out / str(number), json, None)


def _check_trace(trace: str, pcapng: Path | None) -> None:
    if trace not in TRACES:
        raise MistakeError(f"--trace {trace}: {did_you_mean(trace, TRACES)}it can be {', '.join(TRACES)}")
    if pcapng is not None:
        raise MistakeError("--pcapng does not go with --trace: run the scenario once with each")


def _simulate(
    source: Scenario,
    seed: int | None,
    out: Path | None,
    json: bool,
    pcapng: Path | None,
    on: str = "sim",
    shell: str = "",
) -> Path | None:
    """Runs a scenario and prints its tables; returns its page, if one was written."""
    path = out or (None if json else _default_path(source, seed, on))
    given = pcapng or (_packets(path) if path and source.wants_packets else None)
    told: dict[str, object] = {
        "seed": seed,
        "pcapng": given and str(given),
        "out": out and str(out),
        "json": json or None,
        "on": None if on == "sim" else on,
        "shell": shell or None,
    }
    page = None
    try:
        if path:
            result, page = _run_into(path, source, seed, given, told, json)
        else:
            result = _run(source, seed, given, json, on)
    except KeyboardInterrupt:
        kept = f", and {path} is as it was" if path and path.exists() else ""
        show.warn(f"interrupted: nothing of this run was stored{kept}; the same command runs it again")
        raise typer.Exit(130) from None
    show.warn(ecn.warning(result.summary))
    show.warn(_disturbed(result))
    if json:
        show.as_json({**result.summary, "cpu_s": result.cpu_s})
        return page
    show.summary(result.summary)
    speed = result.summary["events"] / max(result.cpu_s, 1e-9) / 1e6
    show.line(f"{result.cpu_s:.2f} s of CPU time, {speed:.1f} million {_COUNTED[on]} per second", "dim")
    show.line(f"report: {page}")
    return page


def _disturbed(result: Result) -> str:
    """Returns the warning about a run in real time that the machine disturbed."""
    if not result.wire or not result.wire["disturbed"]:
        return ""
    late = [way["p99"] for way in result.wire["lateness_us"].values() if way["p99"] is not None]
    why = ", ".join(result.wire["disturbed_by"])
    told = f"; the 99th percentile of packets was {max(late):.0f} us late" if late else ""
    return f"warning: the machine disturbed this run ({why}{told}): repeat it when the machine is idle"


def _packets(path: Path) -> Path:
    from penstock import rundir

    return path / rundir.PACKETS


def _default_path(source: Scenario, seed: int | None, on: str) -> Path:
    from penstock import rundir

    path = rundir.default_path(source, seed)
    return path if on == "sim" else path.with_name(f"{path.name}-{on}")


def _run_into(
    path: Path, source: Scenario, seed: int | None, pcapng: Path | None, options: dict[str, object], quiet: bool
) -> tuple[Result, Path]:
    """Runs the scenario, stores the results in place of those in the directory, and writes the page."""
    from penstock import report as pages
    from penstock import rundir

    before = _held(path)
    with rundir.replacing(path) as new:
        inside = _inside(pcapng, path)
        on, shell = str(options["on"] or "sim"), str(options["shell"] or "")
        result = _run(source, seed, new.path / inside if inside else pcapng, quiet, on, shell)
        if inside:
            new.adopt(inside)
        rundir.fill(new, result, {name: value for name, value in options.items() if value is not None})
    if before:
        now = rundir.read_manifest(path)
        if any(before[key] != now[key] for key in ("scenario", "seed")):
            show.warn(_replaced(path, before))
    return result, pages.write_run(path)


def _held(path: Path) -> dict[str, Any] | None:
    """Returns the manifest of the run that is in a directory, if there is one."""
    from penstock import rundir

    try:
        return rundir.read_manifest(path)
    except rundir.RunDirError:
        return None


def _replaced(path: Path, before: dict[str, Any]) -> str:
    return f"note: {path} held another run, of {before['file']} with seed {before['seed']}; this one has replaced it"


def _inside(file: Path | None, path: Path) -> Path | None:
    """Returns the path of a file in the directory `path`; `None` if it is somewhere else."""
    if file is None or file.absolute().parent.resolve() != path.resolve():
        return None
    return Path(file.name)


def _run(
    source: Scenario, seed: int | None, pcapng: Path | None, quiet: bool, on: str = "sim", shell: str = ""
) -> Result:
    from penstock import worlds

    quiet = quiet or bool(shell) or on == worlds.FLUID
    with Bar("" if quiet else source.name, quiet) as bar:
        return worlds.run(source, seed, on, pcapng=pcapng, on_progress=bar.of_one_run(), shell=shell)
