"""`verify`: compares the simulator with the kernel's TCP and with ns-3."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli import show
from penstock.cli.base import examples, group, old_name
from penstock.cli.progress import Bar
from penstock.mistake import MistakeError

verify = group(
    "verify",
    "Compare the simulator with the kernel's TCP, and its speed with that of ns-3.",
    "penstock verify tcp-linux --quick",
    "penstock verify speed --quick --no-peer",
)

if TYPE_CHECKING:
    from penstock.verify.compare import Plan

_OUT = Path("runs/verify/tcp-linux")


@verify.command("tcp-linux", epilog=examples("penstock verify tcp-linux --quick --only reno,codel"))
def tcp_linux(
    quick: bool = typer.Option(False, "--quick", help="Six cases of 10 s instead of 36 of 30 s."),
    only: list[str] = typer.Option(
        [], "--only", help="Run only the cases with all of these words: reno,codel,4. Repeatable."
    ),
    seconds: float | None = typer.Option(None, min=5, max=600, help="Measured time of each run."),
    out: Path | None = typer.Option(None, help=f"Directory of the results; default {_OUT}."),
    to: Path | None = typer.Option(None, "--page", help="Write the table into this page, and a .json beside it."),
    emulator: Path | None = typer.Option(
        None, help="Path of penstock-emulate; default: the installed or the built one."
    ),
    fresh: bool = typer.Option(
        False, "--fresh", help="Run all again; otherwise finished runs of the same build are reused."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run the kernel's reno, cubic and bbr through penstock-emulate, and compare with the simulator. Needs root."""
    from penstock.verify import cases as all_cases
    from penstock.verify import compare, lab

    chosen = all_cases.chosen(all_cases.QUICK if quick and not only else all_cases.CASES, only)
    if reason := lab.impossible():
        _skip(reason, json)
        return
    available = lab.controls()
    left_out = sorted({case.control for case in chosen} - set(available))
    plan = compare.Plan(
        [case for case in chosen if case.control in available],
        out or (_OUT.with_name("tcp-linux-quick") if quick else _OUT),
        lab.find_emulator(emulator),
        seconds or (compare.QUICK_S if quick else compare.MEASURED_S),
        fresh,
    )
    if not plan.cases:
        _skip(f"this kernel has no {', '.join(left_out)}", json)
        return
    complete = _measure(plan, json)
    _show(plan, left_out, complete, to if complete else None, json)
    if not complete:
        print("interrupted: finished runs are kept; repeat the command to continue", file=sys.stderr)
        raise typer.Exit(130)


def _measure(plan: Plan, quiet: bool) -> bool:
    """Runs the cases; returns false if they were interrupted."""
    from penstock.verify import compare, lab

    lab.clear_away()
    try:
        with Bar("verify", quiet) as bar, _termination_is_an_interrupt():
            return compare.run(plan, bar)
    except lab.LabError as error:
        raise MistakeError(f"{error}; finished runs are kept") from None


def _show(plan: Plan, left_out: list[str], complete: bool, to: Path | None, json: bool) -> None:
    """Stores and prints the comparison; writes it into the page `to` as well if one is given."""
    from penstock import rundir
    from penstock.verify import compare, page

    rows = compare.rows(plan)
    about = (
        f"Linux {compare.kernel_version()}: kernel / simulator, {plan.measured_s:g} s measured after "
        f"{compare.BEGIN_S:g} s; the simulator's number is the median of {compare.SEEDS} seeds."
    )
    found = {
        "about": about,
        "rows": [row.to_json() for row in rows],
        "summary": page.summary(rows),
        "left_out": left_out,
        "complete": complete,
    }
    (plan.out / "result.json").write_text(rundir.dump(found), encoding="utf-8")
    if json:
        show.as_json(found)
    else:
        show.table(about, page.HEADINGS, [page.cells(row) for row in rows])
        show.line(page.summary(rows))
    for name in left_out:
        print(f"left out: {name}, which this kernel does not have", file=sys.stderr)
    if to:
        page.write(to, rows, about)
        to.with_suffix(".json").write_text(rundir.dump(found), encoding="utf-8")


@verify.command("speed", epilog=examples("penstock verify speed --quick --no-peer"))
@old_name("bench")
def speed(
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
    quick: bool = typer.Option(False, "--quick", help="Simulate a fifth of the time."),
    no_peer: bool = typer.Option(False, "--no-peer", help="Do not run ns-3."),
    repeat: int = typer.Option(3, min=1, help="Number of runs of each program; the least CPU time counts."),
) -> None:
    """Measure the CPU time of a simulated packet, here and in ns-3. See `penstock docs benchmarks`."""
    from penstock import bench as benchmarks

    raise typer.Exit(benchmarks.main(json=json, quick=quick, peer=not no_peer, repeat=repeat))


def _skip(reason: str, json: bool) -> None:
    if json:
        show.as_json({"skipped": reason})
    else:
        print(f"SKIPPED: {reason}")


@contextmanager
def _termination_is_an_interrupt() -> Iterator[None]:
    """Treats SIGTERM as Ctrl-C inside the block: namespaces and programs are removed, and results are kept."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
