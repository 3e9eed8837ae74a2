"""`replay`: sends a recorded trace through one algorithm."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from penstock.cli import completion, show
from penstock.cli.base import verb
from penstock.mistake import MistakeError

_NODES = typer.Option(
    "source",
    metavar="source|destination|none",
    help="The node that owns a captured flow, for disciplines that divide the link among nodes (qrm): the host "
    "(an IPv4 address or a /64 of IPv6) that is source or destination of its first packet. With none, and in CSV, "
    "each flow is a node.",
)
_DRAWS = typer.Option(
    "",
    metavar="FILE|splitmix64:STATE",
    help="Take the discipline's random numbers from this file, one number of 64 bits per line, or from this generator.",
)
_CLOCK_OFFSET = typer.Option("0s", help="What the discipline's clock shows at the beginning of the trace, such as 1s.")
_LAYER = typer.Option(
    [],
    metavar="KEY=VALUE",
    help="What the link adds to each packet: overhead=44, mpu=84, framing=atm, link_layer=pppoe-ptm. Repeatable.",
)
_DIRECTION = typer.Option(
    "",
    metavar="more|less|both",
    help="Which direction of a capture that holds both: that with more bytes (the default), the other, or both as one.",
)
_FLOW = typer.Option([], "--flow", help="Only this flow, by its number in the output of --csv. Repeatable.")
_HOST = typer.Option(
    [], "--host", metavar="ADDRESS", help="Only flows with this host, or with one of this prefix. Repeatable."
)
_PORT = typer.Option([], "--port", min=0, max=65535, help="Only flows with this port. Repeatable.")
_PRESET = typer.Option(
    "", metavar="linux", help="With --cc: the form that the Linux kernel has of this control (reno, cubic, bic, ...)."
)
_MSS = typer.Option(None, min=1, max=65000, help="With --cc: bytes of a segment; default 1448.")
_WINDOW = typer.Option(None, min=1, help="With --cc: first window in segments; default 10.")
_SSTHRESH = typer.Option(None, min=1, help="With --cc: first slow start threshold in segments; default none.")
_HYSTART = typer.Option(
    None, "--hystart/--no-hystart", help="With --cc: the parameter hystart of cubic and cubic-linux."
)


_OUT = typer.Option(
    None,
    "--out",
    "-o",
    metavar="DIRECTORY",
    help="Write a page with charts, all packets as Parquet, and the totals into this directory.",
)


@verb(
    "replay",
    "penstock replay capture.pcap --aqm codel --rate 10Mbit/s --limit 1000p --set target=5ms",
    "penstock replay capture.pcapng --aqm codel --rate 10Mbit/s --limit 1000p --direction less --host 10.0.0.0/24",
    "penstock replay trace.csv --aqm pie --rate 10Mbit/s --limit 125kB --csv",
    "penstock replay capture.pcap --aqm pie --rate 10Mbit/s --limit 125kB --out runs/replay-pie",
    "penstock replay trace.csv --aqm pie --rate 10Mbit/s --limit 1000p --clock-offset 1s --draws numbers.txt",
    "penstock replay events.csv --cc cubic",
    "penstock replay events.csv --cc bic --preset linux --initial-ssthresh 100 --state",
)
def replay(
    trace: Path = typer.Argument(
        help="A pcap, pcapng or CSV file (columns t_ns,flow,size,ecn); with --cc a CSV file of events.", metavar="TRACE"
    ),
    aqm: str = typer.Option(
        "", help="The queue discipline: `penstock list` has all names.", autocompletion=completion.disciplines
    ),
    cc: str = typer.Option(
        "",
        autocompletion=completion.controls,
        help="Replay events (columns t_us,event,segments,rtt_us) through this congestion control instead.",
    ),
    rate: str = typer.Option("", help='Rate of the link, such as "10Mbit/s".'),
    limit: str = typer.Option("", help='Limit of the queue, such as "125kB" or "1000p".'),
    settings: list[str] = typer.Option(
        [], "--set", help="Set a parameter of the discipline or control: key=value. Repeatable."
    ),
    direction: str = _DIRECTION,
    flow: list[int] = _FLOW,
    host: list[str] = _HOST,
    port: list[int] = _PORT,
    nodes: str = _NODES,
    seed: int = typer.Option(1, min=0, max=2**64 - 1, help="Seed of the discipline's random numbers."),
    clock_offset: str = _CLOCK_OFFSET,
    draws: str = _DRAWS,
    layer: list[str] = _LAYER,
    preset: str = _PRESET,
    mss: int | None = _MSS,
    initial_window: int | None = _WINDOW,
    initial_ssthresh: int | None = _SSTHRESH,
    hystart: bool | None = _HYSTART,
    state: bool = typer.Option(False, "--state", help="With --cc: a last column with the control's own state."),
    csv: bool = typer.Option(False, "--csv", help="Print every packet as CSV."),
    to: Path | None = _OUT,
    json: bool = typer.Option(False, "--json", help="Print the totals as one JSON object."),
) -> None:
    """Send the arrivals of a recorded trace through a queue discipline, or a script of events through a control.

    A replay is open loop: senders do not react to drops and delays. `penstock what-if` lets them react.
    """
    endpoint = {"mss": mss, "initial_window": initial_window, "initial_ssthresh": initial_ssthresh, "hystart": hystart}
    given = [f"{key}={str(value).lower()}" for key, value in endpoint.items() if value is not None]
    selection = (direction, flow, host, port)
    other = bool(aqm or rate or limit or json or to or draws or layer or clock_offset != "0s" or any(selection))
    _check_options(cc, others=other, endpoint=bool(given or preset or state))
    if csv and json:
        raise MistakeError("--csv and --json both want stdout; give one of them")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would run only after the compiled code returned
    if cc:
        _replay_control(trace, cc, preset, given, settings, state=state)
        return
    link = {"--aqm": aqm, "--rate": rate, "--limit": limit}
    conditions: dict[str, Any] = {"clock_offset": clock_offset, "draws": draws or None, "layer": layer}
    if to:
        conditions["nodes"] = nodes
        _keep(trace, link, settings, seed, conditions, selection, to, csv, json)
        return
    _replay_trace(trace, link, settings, seed, nodes, conditions, selection, csv, json)


def _check_options(cc: str, *, others: bool, endpoint: bool) -> None:
    """Refuses options of a discipline beside `--cc`, and options of a control without it."""
    if cc and others:
        raise MistakeError(
            "--cc goes with --set, --preset, --mss, --initial-window, --initial-ssthresh, --hystart, --state and --csv "
            "alone: its rows are CSV"
        )
    if not cc and endpoint:
        raise MistakeError("--preset, --mss, --initial-window, --initial-ssthresh, --hystart and --state need --cc")


def _replay_control(script: Path, cc: str, preset: str, given: list[str], settings: list[str], *, state: bool) -> None:
    from penstock import engine
    from penstock.verify.forms import merged

    name, form = _form(cc, preset)
    with _mistakes():
        engine.replay_control(script, name, sys.stdout.buffer, merged(form, given, settings), state=state)


def _replay_trace(
    trace: Path,
    link: dict[str, str],
    settings: list[str],
    seed: int,
    nodes: str,
    conditions: dict[str, Any],
    selection: tuple[str, list[int], list[str], list[int]],
    csv: bool,
    json: bool,
) -> None:
    out = sys.stdout.buffer if csv else None
    summary = _done(trace, link, settings, seed, {**conditions, "nodes": nodes}, selection, out)
    for message in _warnings(trace, summary):
        show.warn(message)
    if json:
        show.as_json(summary)
    elif not csv:
        _print_replay(summary)


def _done(
    trace: Path,
    link: dict[str, str],
    settings: list[str],
    seed: int,
    conditions: dict[str, Any],
    selection: tuple[str, list[int], list[str], list[int]],
    out: Any,
) -> dict[str, Any]:
    """Replays the selected packets, writes their fates to `out`, and returns the totals."""
    from penstock import engine

    missing = [name for name, given in link.items() if not given]
    if missing:
        raise MistakeError(
            f"a discipline needs --aqm, --rate and --limit (a control --cc); missing: {', '.join(missing)}"
        )
    with _mistakes():
        keep, cutting, selected = _selected(trace, selection)
        of = (link["--aqm"], link["--rate"], link["--limit"], settings, seed, out)
        summary = engine.replay(trace, *of, **conditions, keep=keep, cutting=cutting)
    return {**summary, "open_loop": True, **selected}


def _keep(
    trace: Path,
    link: dict[str, str],
    settings: list[str],
    seed: int,
    conditions: dict[str, Any],
    selection: tuple[str, list[int], list[str], list[int]],
    to: Path,
    csv: bool,
    json: bool,
) -> None:
    """Replays into a directory: totals, packets and page. The totals are printed as well."""
    import tempfile

    from penstock import columns, provenance, report, rundir, store

    if csv:
        raise MistakeError("--csv prints the packets, and --out keeps them; give one of them")
    with tempfile.NamedTemporaryFile() as file:
        summary = _done(trace, link, settings, seed, conditions, selection, file)
        packets = columns.from_csv(Path(file.name))
    warnings = list(_warnings(trace, summary))
    told = {
        "trace": trace.name,
        "link": {name.removeprefix("--"): given for name, given in link.items()},
        "settings": settings,
        "summary": summary,
        "warnings": [one[:1].upper() + one[1:] for one in warnings],
        "command": shlex.join(["penstock", *sys.argv[1:]]),
        "versions": provenance.versions(),
    }
    store.parents(to / report.REPLAY)
    store.together({to / report.REPLAY: store.dump(told), to / report.PACKETS: rundir.table_bytes("packets", packets)})
    page = report.write_replay(to)
    for message in warnings:
        show.warn(message)
    if json:
        show.as_json({**summary, "report": str(page)})
    else:
        _print_replay(summary)
        show.line(f"report: {page}")


def _selected(
    trace: Path, given: tuple[str, list[int], list[str], list[int]]
) -> tuple[bytes | None, bytes | None, dict[str, Any]]:
    """Returns which packets of a trace are replayed and how they are split, as the engine takes it, and what to say."""
    from penstock import capture as captures

    if not any(given) and captures.is_table(trace):
        return None, None, {"left_out": 0, "directions": None, "read": None}  # it may be larger than memory
    capture = captures.read(trace)
    keep, found = captures.Selection(*given).of(capture)
    told: dict[str, Any] = {"left_out": int((~keep).sum()), "directions": None, "read": None}
    if capture.has_hosts:
        told["read"] = captures.told(capture)
    if found.how:
        names = [{"packets": n, "bytes": size} for n, size in zip(found.packets, found.bytes, strict=True)]
        told["directions"] = {
            "told_apart": found.how,
            "replayed": given[0] or "more",
            "more": names[0],
            "less": names[1],
        }
    return (capture.records(keep) if told["left_out"] else None), capture.cutting, told


def _warnings(trace: Path, summary: dict[str, Any]) -> Iterator[str]:
    """Yields what a reader of the numbers must know: what was read, a capture that was cut, and its directions."""
    if summary["read"]:
        yield f"{trace}: {summary['read']}"
    if cut := summary["notes"]["cut_short"]:
        yield (
            f"warning: {trace} was cut short within packet {cut['packet']}, at byte {cut['byte']}; the "
            f"{summary['packets'] + summary['left_out']:,} packets before are read ({cut['what']})"
        )
    if both := summary["directions"]:
        counts = [f"{both[name]['packets']:,} packets with {both[name]['bytes']:,} B" for name in ("more", "less")]
        done = {"more": "the one with more bytes is replayed", "less": "the one with fewer bytes is replayed"}
        yield (
            f"{trace} holds two directions, told apart {both['told_apart']}: {counts[0]}, and {counts[1]}; "
            f"{done.get(both['replayed'], 'both are replayed as one')} (--direction more, less, both)"
        )


@contextmanager
def _mistakes() -> Iterator[None]:
    """Tells a wrong argument as a mistake of the user."""
    from penstock import engine

    try:
        yield
    except engine.TraceError:
        raise
    except ValueError as error:
        raise MistakeError(str(error)) from None


def _form(cc: str, preset: str) -> tuple[str, list[str]]:
    """Returns the control that `preset` means by a name, and its settings."""
    from penstock.verify import forms

    if not preset:
        return cc, []
    if preset not in forms.PRESETS:
        raise MistakeError(f"--preset {preset}: there is {', '.join(forms.PRESETS)}")
    return forms.linux(cc)


def _print_replay(summary: dict[str, Any]) -> None:
    sojourn = summary["sojourn_ms"]
    rows = [
        ["arrived", f"{summary['packets']:,} packets, {summary['bytes']:,} B"],
        ["sent", f"{summary['sent']:,} packets, {summary['sent_bytes']:,} B"],
        [
            "dropped early, full, at the head",
            f"{summary['drop_early']:,}, {summary['drop_overflow']:,}, {summary['drop_dequeue']:,}",
        ],
        ["marked", f"{summary['marked']:,}"],
        [
            "throughput",
            "-"
            if (bps := summary["throughput_bps"]) is None
            else f"{bps / 1e6:.3f} Mbit/s, {summary['utilization']:.1%} of the link",
        ],
        [
            "sojourn ms p10, p50, p90, p99, max",
            ", ".join(show.number(sojourn[q], ".2f") for q in ("p10", "p50", "p90", "p99", "max")),
        ],
    ]
    if summary["left_out"]:
        rows.insert(0, ["left out", f"{summary['left_out']:,} packets"])
    show.table(f"{summary['aqm']}, {summary['duration_s']:.3f} s", ("", ""), rows, left=2)
    show.line("open loop: the arrivals are those of the trace; senders do not react to drops and delays")
    show.line("closed loop: penstock what-if CAPTURE", "dim")
