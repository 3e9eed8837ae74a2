"""`replay`: sends a recorded trace through one algorithm."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import typer

from penstock.cli import show
from penstock.cli.base import verb
from penstock.mistake import MistakeError


@verb(
    "replay",
    "penstock replay capture.pcap --aqm codel --rate 10Mbit/s --limit 1000p --set target=5ms",
    "penstock replay trace.csv --aqm pie --rate 10Mbit/s --limit 125kB --csv",
    "penstock replay trace.csv --aqm pie --rate 10Mbit/s --limit 1000p --clock-offset 1s --draws numbers.txt",
    "penstock replay events.csv --cc cubic",
    "penstock replay events.csv --cc bic --preset linux --initial-ssthresh 100 --state",
)
def replay(
    trace: Path = typer.Argument(
        help="A pcap, pcapng or CSV file (columns t_ns,flow,size,ecn); with --cc a CSV file of events.", metavar="TRACE"
    ),
    aqm: str = typer.Option("", help="The queue discipline: `penstock list` has all names."),
    cc: str = typer.Option(
        "", help="Replay events (columns t_us,event,segments,rtt_us) through this congestion control instead."
    ),
    rate: str = typer.Option("", help='Rate of the link, such as "10Mbit/s".'),
    limit: str = typer.Option("", help='Limit of the queue, such as "125kB" or "1000p".'),
    settings: list[str] = typer.Option(
        [], "--set", help="Set a parameter of the discipline or control: key=value. Repeatable."
    ),
    nodes: str = typer.Option(
        "source",
        metavar="source|destination|none",
        help="The node that owns a captured flow, for disciplines that divide the link among nodes (qrm): the host "
        "(an IPv4 address or a /64 of IPv6) that is source or destination of its first packet. With none, and in CSV, "
        "each flow is a node.",
    ),
    seed: int = typer.Option(1, min=0, max=2**64 - 1, help="Seed of the discipline's random numbers."),
    clock_offset: str = typer.Option(
        "0s", help="What the discipline's clock shows at the beginning of the trace, such as 1s."
    ),
    draws: str = typer.Option(
        "",
        metavar="FILE|splitmix64:STATE",
        help="Take the discipline's random numbers from this file, one number of 64 bits per line, or from this "
        "generator.",
    ),
    preset: str = typer.Option(
        "",
        metavar="linux",
        help="With --cc: the form that the Linux kernel has of this control (reno, cubic, bic, ...).",
    ),
    mss: int | None = typer.Option(None, min=1, max=65000, help="With --cc: bytes of a segment; default 1448."),
    initial_window: int | None = typer.Option(None, min=1, help="With --cc: first window in segments; default 10."),
    initial_ssthresh: int | None = typer.Option(
        None, min=1, help="With --cc: first slow start threshold in segments; default none."
    ),
    hystart: bool | None = typer.Option(
        None, "--hystart/--no-hystart", help="With --cc: the parameter hystart of cubic and cubic-linux."
    ),
    state: bool = typer.Option(False, "--state", help="With --cc: a last column with the control's own state."),
    csv: bool = typer.Option(False, "--csv", help="Print every packet as CSV."),
    json: bool = typer.Option(False, "--json", help="Print the totals as one JSON object."),
) -> None:
    """Send the arrivals of a recorded trace through a queue discipline, or a script of events through a control."""
    from penstock import engine

    if csv and json:
        raise MistakeError("--csv and --json both want stdout; give one of them")
    if cc and (aqm or rate or limit or json or draws or clock_offset != "0s"):
        raise MistakeError(
            "--cc goes with --set, --preset, --mss, --initial-window, --initial-ssthresh, --hystart, --state and --csv "
            "alone: its rows are CSV"
        )
    endpoint = {"mss": mss, "initial_window": initial_window, "initial_ssthresh": initial_ssthresh, "hystart": hystart}
    given = [f"{key}={str(value).lower()}" for key, value in endpoint.items() if value is not None]
    if not cc and (given or preset or state):
        raise MistakeError("--preset, --mss, --initial-window, --initial-ssthresh, --hystart and --state need --cc")
    missing = [name for name, given in (("--aqm", aqm), ("--rate", rate), ("--limit", limit)) if not given]
    if not cc and missing:
        raise MistakeError(
            f"a discipline needs --aqm, --rate and --limit (a control --cc); missing: {', '.join(missing)}"
        )
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would run only after the compiled code returned
    try:
        if cc:
            from penstock.verify.forms import merged

            cc, form = _form(cc, preset)
            engine.replay_control(trace, cc, sys.stdout.buffer, merged(form, given, settings), state=state)
            return
        out = sys.stdout.buffer if csv else None
        summary = engine.replay(
            trace, aqm, rate, limit, settings, seed, out, nodes, clock_offset=clock_offset, draws=draws or None
        )
    except engine.TraceError:
        raise
    except ValueError as error:
        raise MistakeError(str(error)) from None
    if json:
        show.as_json(summary)
    elif not csv:
        _print_replay(summary)


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
        ["throughput", f"{summary['throughput_bps'] / 1e6:.3f} Mbit/s, {summary['utilization']:.1%} of the link"],
        [
            "sojourn ms p10, p50, p90, p99, max",
            ", ".join(f"{sojourn[q]:.2f}" for q in ("p10", "p50", "p90", "p99", "max")),
        ],
    ]
    show.table(f"{summary['aqm']}, {summary['duration_s']:.3f} s", ("", ""), rows, left=2)
