"""`suite rrul` and its sisters: the tests of Flent by their names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from penstock.cli import show
from penstock.cli.base import examples
from penstock.cli.progress import Bar
from penstock.cli.worlds import On
from penstock.flent.tests import COUNTED, DEFAULT_CC, NAMES, STREAMS, find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.flent.reading import Statistics
    from penstock.flent.running import Measured

PANEL = "Tests of Flent"
_AQM = typer.Argument(
    help="Disciplines: a name with its parameters ('codel target=10ms'), or FILE.py:CLASS; or results: FILE.flent.gz."
)
_RATE = typer.Option("20Mbit/s", "--rate", help="Rate of the link in each direction.")
_RTT = typer.Option("40ms", "--rtt", help="Round trip time without queues.")
_LIMIT = typer.Option("1000p", "--limit", help="Limit of each queue, in packets or bytes.")
_SECONDS = typer.Option(60, "--seconds", "-l", min=1, max=3600, help="Seconds for which the connections last.")
_CC = typer.Option(DEFAULT_CC, "--cc", help="Congestion control, where the test does not say it.")
_ECN = typer.Option(False, "--ecn", help="The connections ask for ECN.")
_SEED = typer.Option(1, "--seed", min=0, help="Seed of the run.")
_OUT = typer.Option(None, "-o", "--out", help="Directory of the results; default runs/suites/NAME-ALGORITHMS.")
_JSON = typer.Option(False, "--json", help="Print one JSON object.")
_COLUMNS = {
    "download_mbps": "down Mbit/s",
    "upload_mbps": "up Mbit/s",
    "download_jain": "Jain down",
    "upload_jain": "Jain up",
    "ping_ms_p50": "ping ms p50",
    "ping_ms_p90": "p90",
    "ping_ms_p99": "p99",
    "ping_loss": "pings lost",
    "call_ms_p50": "call ms p50",
    "call_ms_p90": "p90",
    "call_ms_p99": "p99",
    "call_lost": "packets lost",
}


def add(suite: typer.Typer) -> None:
    """Adds a command for each test."""
    for name in NAMES:
        title = find(name).title
        told = examples(f"penstock suite {name} fq-codel pink droptail", f"penstock suite {name} mine.py:MyAqm --json")
        register = suite.command(name, help=f"{title}; writes .flent.gz.", epilog=told, rich_help_panel=PANEL)
        register(_command(name))


def _command(name: str) -> Any:
    def command(
        algorithms: list[str] = typer.Argument(help=_AQM.help, metavar="AQM..."),
        streams: int = _streams(name),
        rate: str = _RATE,
        rtt: str = _RTT,
        limit: str = _LIMIT,
        seconds: int = _SECONDS,
        cc: str = _CC,
        ecn: bool = _ECN,
        seed: int = _SEED,
        on: On = "sim",
        out: Path | None = _OUT,
        json: bool = _JSON,
    ) -> None:
        given = {
            "rate": rate,
            "rtt": rtt,
            "limit": limit,
            "seconds": seconds,
            "cc": cc,
            "ecn": ecn,
            "seed": seed,
            "on": on,
        }
        _run(name, streams, algorithms, given, out, json)

    return command


def _streams(name: str) -> Any:
    """Returns `--streams`, which is hidden, and takes its default alone, where the test itself says the number."""
    if name in COUNTED:
        return typer.Option(STREAMS, "--streams", min=1, max=1000, help="Number of connections of the test.")
    return typer.Option(STREAMS, "--streams", min=STREAMS, max=STREAMS, hidden=True)


def _run(name: str, streams: int, algorithms: list[str], given: dict[str, Any], out: Path | None, json: bool) -> None:
    from penstock import report
    from penstock.flent import results

    test = find(name, streams)
    setup = results.setup(**given)
    path = out or results.default_path(name, algorithms, setup.on)
    with Bar(name, quiet=json) as bar:
        bar.begin(len(algorithms), 0, setup.total_s * len(algorithms))
        found = results.measure_all(test, setup, algorithms, bar.advanced)
    files = results.write(path, test, setup, found)
    page = report.write_flent(path)
    for label, one in found.items():
        if one.disturbed:
            why = ", ".join(one.disturbed)
            show.warn(f"warning: the machine disturbed the run of {label} ({why}): repeat it when it is idle")
    if json:
        show.as_json({"path": str(path), **results.to_json(test, setup, found)})
        return
    _print(test.title, found)
    show.line(f"files for `flent --gui` and `flent -i FILE -p PLOT`: {', '.join(one.name for one in files)}")
    show.line(f"results: {path}")
    show.line(f"report: {page}")


def _print(title: str, found: dict[str, Measured]) -> None:
    keys = [key for key in _COLUMNS if any(key in one.numbers for one in found.values())]
    rows = [[label, *(_cell(one.numbers.get(key)) for key in keys), _count(one.drops)] for label, one in found.items()]
    show.table(title, ("discipline", *(_COLUMNS[key] for key in keys), "drops"), rows, left=1)


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def compare(items: Sequence[str], json: bool) -> None:
    """Prints the series of files of Flent side by side, with the numbers that its own command prints."""
    from penstock.flent import reading
    from penstock.mistake import MistakeError

    found = []
    for item in items:
        path = Path(item)
        inside = sorted(path.glob("*.flent.gz")) if path.is_dir() else [path]
        if not inside or not all(reading.is_file(one) for one in inside):
            raise MistakeError(
                f"{item}: has no results of Flent; beside them stand files .flent.gz and directories of `penstock "
                "suite rrul` and its sisters"
            )
        found += [reading.read(one) for one in inside]
    names = list(dict.fromkeys(name for one in found for name in one.series))
    told = [{name: one.statistics(name) for name in one.series} for one in found]
    if json:
        keys = ("mean", "median", "p99", "points")
        sides = [
            {
                "file": str(one.path),
                "test": one.test,
                "title": one.title,
                "series": {name: {key: getattr(of[name], key) for key in keys} for name in of},
                "numbers": one.measured().numbers,
            }
            for one, of in zip(found, told, strict=True)
        ]
        show.as_json({"flent": sides})
        return
    heads = ("series", *(one.label for one in found))
    units = {name: found[0].unit(name) for name in names}
    rows = [
        [name if units[name] in name else f"{name} ({units[name]})", *(_series(of.get(name)) for of in told)]
        for name in names
    ]
    show.table("mean, median, 99th percentile", heads, rows)
    show.line("the numbers of `flent -f summary`", "dim")


def _series(one: Statistics | None) -> str:
    if one is None or one.mean is None:
        return "-"
    return ", ".join("-" if value is None else f"{value:.2f}" for value in (one.mean, one.median, one.p99))


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
