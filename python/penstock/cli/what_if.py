"""`what-if`: what would another discipline do for the link of a capture?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from penstock.cli import options, show
from penstock.cli.base import verb
from penstock.cli.progress import Bar
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

if TYPE_CHECKING:
    from penstock.what_if.answer import Answer
    from penstock.what_if.outcome import Range

_AQM = typer.Option(
    "", metavar="A,B,...", help="The candidates beside drop-tail; default fq-codel,fq-pie,fq-cobalt,pink."
)
_LAYER = typer.Option(
    [],
    metavar="KEY=VALUE",
    help="With --write: what the line adds to each packet, such as link_layer=pppoe-ptm, overhead=44 or framing=atm. "
    "The rates of the file are then those of the line. Repeatable.",
)
_DIRECTION = typer.Option(
    "", metavar="more|less", help="Ask about the direction with more or with fewer bytes; default: the longer queue."
)
_WORDS = {"recommended": "recommended", "leave": "leave it as it is", "cannot-tell": "cannot tell"}


@verb(
    "what-if",
    "penstock what-if capture.pcapng",
    "penstock what-if capture.pcapng --rate 10Mbit/s --aqm fq-codel,pie --json",
    "penstock what-if capture.pcapng --write gateway.toml",
)
def what_if(
    capture: Path = typer.Argument(help="A pcap or pcapng file with both directions of a link.", metavar="CAPTURE"),
    rate: str = typer.Option("", help='Rate of the link, such as "10Mbit/s"; default: what the capture shows.'),
    limit: str = typer.Option("", help='Limit of its queue, such as "125kB"; default: what the capture shows.'),
    aqm: str = _AQM,
    cc: str = typer.Option("", help="The congestion control of all senders; default: the one that fits best."),
    direction: str = _DIRECTION,
    seeds: int = options.first_seeds(5, 100, "Number of runs for each candidate"),
    write: Path | None = typer.Option(None, help="Write link and discipline for a gateway into this file."),
    layer: list[str] = _LAYER,
    out: Path | None = typer.Option(None, "-o", "--out", help="Directory of the scenario; default runs/what-if-NAME."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object; write a directory only with --out."),
) -> None:
    """Simulate the flows of a capture under other disciplines, and say which is the best for its link, if any.

    The flows react, as in a closed loop: transfers have the sizes, beginnings and round trips of the capture. If the
    capture does not decide, the answer is "cannot tell" with the reason.
    """
    from penstock.units import rate_bps
    from penstock.what_if import answer as answers
    from penstock.what_if import model

    if direction not in ("", "more", "less"):
        raise MistakeError(f"--direction {direction}: there is more and less")
    if layer and not write:
        raise MistakeError("--layer is what --write writes; give both, or leave it out")
    _check_layer(layer)
    candidates = _candidates(aqm) if aqm else answers.CANDIDATES
    seen = model.observe(capture, rate_bps(rate) if rate else None, direction)
    show.warn(f"{capture}: {seen.read}")
    with Bar("what-if", json) as bar:
        runs = len(set(candidates) | {answers.AS_IT_IS}) * seeds
        bar.begin(runs, 0, 0.0)
        found = answers.ask(seen, candidates, seeds, limit or None, cc)
    place = out or (None if json else Path("runs") / f"what-if-{capture.stem}")
    written = _keep(found, place) if place else None
    if json:
        show.as_json({**found.to_json(), "scenario": str(written) if written else None})
    else:
        _print(found, written)
        if written:
            from penstock import report

            show.line(f"report: {report.write_what_if(written.parent)}")
    if write:
        _write(found, write, layer)


def _check_layer(layer: list[str]) -> None:
    from penstock.engine import on_wire

    try:
        on_wire(layer, 0)
    except ValueError as error:
        raise MistakeError(f"--{error}") from None


def _candidates(given: str) -> list[str]:
    from penstock.engine import entries

    known = [entry.name for entry in entries() if entry.kind != "cc"]
    names = [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        if name not in known and ":" not in name:
            raise MistakeError(f"--aqm {name}: {did_you_mean(name, known)}`penstock list` has all names")
    return names


def _keep(found: Answer, place: Path) -> Path | None:
    """Writes the scenario and the answer; returns the path of the scenario."""
    from penstock import store
    from penstock.scenario import to_toml

    if not found.scenario:
        return None
    store.parents(place / "scenario.toml")
    store.together(
        {place / "scenario.toml": to_toml(found.scenario), place / "answer.json": store.dump(found.to_json())}
    )
    return place / "scenario.toml"


def _write(found: Answer, file: Path, layer: list[str]) -> None:
    from penstock import store
    from penstock.what_if import gateway

    if found.verdict == "cannot-tell":
        show.warn(f"{file}: not written, because the capture does not decide")
        raise typer.Exit(1)
    store.write(file, gateway.text(found, layer))


def _print(found: Answer, written: Path | None) -> None:
    from penstock.what_if.answer import shown

    show.table("The capture shows", ("", ""), _shown(shown(found.seen)), left=2, heads=False)
    show.line()
    if found.outcomes:
        seeds = f"{found.seeds} seeds" if found.seeds > 1 else "one seed"
        title = f"Simulated with senders of {found.control}: median and range of {seeds}"
        columns = ("discipline", "goodput Mbit/s", "other way", "delay p50 ms", "p90 ms", "p90 of the worse", "drops %")
        show.table(title, columns, [_row(one) for one in found.outcomes])
        show.line()
    show.line(f"{_WORDS[found.verdict]}{': ' + found.discipline if found.verdict == 'recommended' else ''}", "bold")
    for text in found.because:
        show.line(f"  {text}")
    for text in found.notes:
        show.line(f"note: {text}", "dim")
    if written:
        show.line(f"scenario: {written}")


def _row(one: Any) -> list[str]:
    return [
        one.discipline,
        _range(one.goodput_bps, 1e-6, 2),
        _range(one.back_goodput_bps, 1e-6, 2),
        _range(one.delay_ms["p50"], 1, 1),
        _range(one.delay_ms["p90"], 1, 1),
        _range(one.worse_ms, 1, 1),
        _range(one.drop_share, 100, 2),
    ]


def _range(found: Range, factor: float, digits: int) -> str:
    low, middle, high = (f"{value * factor:.{digits}f}" for value in (found.low, found.median, found.high))
    return f"{middle} ({low} to {high})"


def _mbps(bps: float | None) -> str:
    return "-" if bps is None else f"{bps / 1e6:.4g} Mbit/s"


def _shown(about: dict[str, Any]) -> list[list[str]]:
    rows = [
        ["length", f"{about['duration_s']:.1f} s, {about['packets']:,} packets"],
        ["link", f"{_mbps(about['rate_bps'])}, full in {show.number(about['full'], '.0%')} of the time"],
        ["other way", f"{_mbps(about['back_rate_bps'])}, {_mbps(about['back_goodput_bps'])} of goodput"],
        ["traffic", f"{about['transfers']:,} transfers, {about['datagrams']:,} series of datagrams"],
        ["goodput", f"{_mbps(about['goodput_bps'])}, {show.number(about['sent_again'], '.2%')} of segments sent again"],
    ]
    if about["lost_behind"] or about["marks"]:
        lost = show.number(about["lost_behind"], ".2%")
        rows.append(["beyond the queue", f"{lost} of segments lost, {about['marks']:,} marks of ECN"])
    if delay := about["queue_delay_ms"]:
        rows += [
            ["taken", about["taken"]],
            ["queue", f"{delay['p50']:.1f} ms (p50), {delay['p90']:.1f} ms (p90), limit {about['limit_bytes']:,} B"],
        ]
    return rows
