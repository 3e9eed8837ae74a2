"""`verify`: compares the simulator with the kernel's TCP and with ns-3, and algorithms with other programs."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli import options, show
from penstock.cli.base import examples, group, old_name
from penstock.cli.progress import Bar, RunsBar
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean
from penstock.worlds import NAMES

verify = group(
    "verify",
    "Compare the simulator with the kernel's TCP and ns-3, algorithms with other programs, and its speed with ns-3's.",
    "penstock verify tcp-linux --quick",
    "penstock verify ns3",
    "penstock verify cc tcp_bic_rtt100.csv",
    "penstock verify agree mine.py:Mine codel",
    "penstock verify speed --quick --no-peer",
)

if TYPE_CHECKING:
    from penstock.verify.agree import Agreement
    from penstock.verify.compare import Plan
    from penstock.verify.fates import Comparison as Fates
    from penstock.verify.fates import Part as FatePart
    from penstock.verify.rounds import Comparison, Part
    from penstock.verify.selection import Wanted

_OUT = Path("runs/verify/tcp-linux")
_AN_ALGORITHM = (
    "A name with its parameters ('codel target=6ms'), FILE.py:CLASS, or the path of a program that "
    "`penstock new KIND NAME --rust` wrote."
)


@verify.command(
    "tcp-linux",
    epilog=examples(
        "penstock verify tcp-linux --quick --only reno,codel",
        "penstock verify tcp-linux --paths 0-15",
        "penstock verify tcp-linux --jar ~/jar/linux --paths 0-63",
    ),
)
def tcp_linux(
    quick: bool = typer.Option(False, "--quick", help="Six cases of 10 s instead of 36 of 30 s and 64 drawn paths."),
    only: list[str] = typer.Option(
        [], "--only", help="Run only the cases with all of these words: reno,codel,4. Repeatable."
    ),
    paths: str | None = typer.Option(None, help="Run only these drawn paths: 0-15, or 3,7, or none."),
    draw: str | None = typer.Option(None, help="Draw the paths with another seed than that of this release."),
    control: str | None = typer.Option(None, help="The control of all drawn paths, instead of the drawn ones."),
    seconds: float | None = typer.Option(None, min=5, max=600, help="Measured time of each run."),
    earlier: Path | None = typer.Option(
        None,
        "--kernel-of",
        help="A page's .json, whose numbers of this kernel count for its paths.",
    ),
    repeat: int = typer.Option(1, min=1, max=20, help="How often the kernel runs each drawn path; the median counts."),
    jar: Path | None = typer.Option(
        None, help="Use this user-mode Linux in virtual time: `tools/pack/jar` builds one."
    ),
    out: Path | None = typer.Option(None, "-o", "--out", help=f"Directory of the results; default {_OUT}."),
    to: Path | None = typer.Option(None, "--page", help="Write the tables into this page, and a .json beside it."),
    emulator: Path | None = typer.Option(
        None, help="Path of penstock-emulate; default: the installed or the built one."
    ),
    fresh: bool = typer.Option(
        False, "--fresh", help="Run all again; otherwise finished runs of the same build are reused."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run the kernel's reno, cubic and bbr through penstock-emulate, and compare with the simulator. Needs root."""
    from penstock import testbed
    from penstock.verify import compare, lab, selection
    from penstock.verify.kernels import Host, Jar

    wanted = selection.Wanted(quick, tuple(only), paths, draw, control, seconds)
    chosen = selection.cases(wanted)
    if jar is None and (reason := testbed.impossible()):
        _skip(reason, json)
        return
    kernel = Jar(jar) if jar else Host()
    left_out = sorted({case.control for case in chosen} - set(kernel.controls))
    folder = _OUT.name + ("-jar" if jar else "") + ("-quick" if quick else "")
    plan = compare.Plan(
        [case for case in chosen if case.control in kernel.controls],
        out or _OUT.with_name(folder),
        lab.find_emulator(emulator),
        kernel,
        fresh,
        repeat,
        earlier,
    )
    if not plan.cases:
        _skip(f"this kernel has no {', '.join(left_out)}", json)
        return
    complete = _measure(plan, json)
    _show(plan, wanted, left_out, complete, to if complete else None, json)
    if not complete:
        print("interrupted: finished runs are kept; repeat the command to continue", file=sys.stderr)
        raise typer.Exit(130)


def _measure(plan: Plan, quiet: bool) -> bool:
    """Runs the cases; returns false if they were interrupted."""
    from penstock import testbed
    from penstock.verify import compare

    testbed.remove_leftovers()
    try:
        with Bar("verify", quiet) as bar, _termination_is_an_interrupt():
            return compare.run(plan, bar)
    except testbed.LabError as error:
        raise MistakeError(f"{error}; finished runs are kept") from None


def _show(plan: Plan, wanted: Wanted, left_out: list[str], complete: bool, to: Path | None, json: bool) -> None:
    """Stores and prints the comparison; writes it into the page `to` as well if one is given."""
    from penstock import store
    from penstock.verify import compare, page

    rows = compare.rows(plan)
    found = page.found(plan, rows, wanted.seed, left_out, complete)
    store.write(plan.out / "result.json", store.dump(found))
    if json:
        show.as_json(found)
    else:
        for part in page.parts(plan, rows, wanted.seed):
            show.table(part.about, part.headings, part.cells)
            show.line(part.summary)
    for name in left_out:
        print(f"left out: {name}, which this kernel does not have", file=sys.stderr)
    if to:
        page.write_all(to, plan, wanted)


@verify.command(
    "linux",
    epilog=examples(
        "penstock verify linux home.toml",
        "penstock verify linux examples/*.toml --seconds 20",
        "penstock verify linux --defaults --repeat 5",
        "penstock verify linux --suite rfc7928 --seconds 10",
        "sudo penstock verify linux home.toml --on wire",
    ),
)
def linux(
    files: list[Path] = typer.Argument(
        None, help="Scenarios, which run with the TCP of Linux.", metavar="FILE.toml ..."
    ),
    defaults: bool = typer.Option(False, "--defaults", help="Run what `penstock new` writes as well."),
    suites: list[str] = typer.Option(
        [], "--suite", help="Run the cases of this suite as well: rfc7928, rfc9743, tcp-eval. Repeatable."
    ),
    on: str = typer.Option("jar", "--on", help=f"The kernel: jar, {NAMES['jar']}; or wire, {NAMES['wire']}."),
    seeds: int = options.first_seeds(5, 100, "Seeds of the simulator"),
    repeat: int = typer.Option(1, min=1, max=100, help="Seeds of the kernel."),
    seconds: float = typer.Option(30.0, min=1, max=3600, help="Longest part of a scenario that runs."),
    jobs: int | None = options.JOBS,
    to: Path | None = typer.Option(None, "--page", help="Write the tables into this page, and a .json beside it."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run scenarios on a real kernel and in the simulator, with the same hosts, and compare goodput and delays."""
    from penstock import beside, store
    from penstock.scenario import Scenario
    from penstock.worlds import KERNELS

    if on not in KERNELS:
        raise MistakeError(f"--on {on}: a kernel is in {' or '.join(KERNELS)}")
    for name in suites:
        if name not in beside.SUITES:
            raise MistakeError(
                f"--suite {name}: {did_you_mean(name, beside.SUITES)}there are {', '.join(beside.SUITES)}"
            )
    wanted = beside.defaults() if defaults else []
    wanted += [case for name in suites for case in beside.of_suite(name)]
    wanted += [Scenario.load(file) for file in files or ()]
    if not wanted:
        raise MistakeError("there is nothing to run: name files, or give --defaults or --suite")
    part = "defaults" if defaults else "suites" if suites else ""
    beside_page = beside.check(to, on, part) if to else None
    with RunsBar("verify linux", json) as bar:
        bar.begin(len(wanted) * (seeds + repeat), 0, 0.0)
        found = beside.compare(
            wanted,
            on,
            seeds=seeds,
            kernel_seeds=repeat,
            most_s=seconds,
            jobs=jobs,
            tick=lambda _name: bar.finished(False),
        )
    if found is None:
        raise typer.Exit(130)
    if to and beside_page:
        beside.write(to, found, part)
        store.write(beside_page, store.dump(found.to_json()))
    if json:
        show.as_json(found.to_json())
        return
    show.table(
        f"Linux {found.kernel}: kernel / simulator", beside.HEADINGS, [beside.cells(row) for row in found.rows], left=2
    )
    show.line(found.summary)
    for name, why in found.refused.items():
        show.warn(f"left out: {name}: {why}")


@verify.command(
    "disciplines",
    epilog=examples("penstock verify disciplines", "penstock verify disciplines --page docs/results/verify-linux.md"),
)
def disciplines(
    names: list[str] = typer.Argument(None, help="Disciplines; default: all that both have.", metavar="NAME ..."),
    seeds: int = options.first_seeds(3, 100, "Seeds of each world"),
    seconds: float = typer.Option(15.0, min=2, max=3600, help="Time of a run."),
    jobs: int | None = options.JOBS,
    to: Path | None = typer.Option(None, "--page", help="Write the table into this page."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run our disciplines beside the kernel's own, behind the same hosts of a kernel in a jar."""
    from penstock import beside_tc as beside

    for name in names or ():
        if name not in beside.DISCIPLINES:
            known = ", ".join(beside.DISCIPLINES)
            raise MistakeError(f"{name}: {did_you_mean(name, beside.DISCIPLINES)}there are {known}")
    wanted = names or list(beside.DISCIPLINES)
    with RunsBar("verify disciplines", json) as bar:
        bar.begin(len(wanted) * len(beside.CONTROLS) * len(beside.COLUMNS) * seeds, 0, 0.0)
        found = beside.compare(seeds, seconds, jobs, lambda _name: bar.finished(False), wanted)
    if found is None:
        raise typer.Exit(130)
    if to:
        beside.write(to, found)
    if json:
        show.as_json({**vars(found), "rows": [row.to_json() for row in found.rows]})
        return
    show.table(found.about, beside.HEADINGS, [row.cells for row in found.rows], left=2)


@verify.command("ns3", epilog=examples("penstock verify ns3", "penstock verify ns3 --page docs/results/verify-ns3.md"))
def beside_ns3(
    draw: str | None = typer.Option(None, help="Draw the networks with another seed than that of this release."),
    out: Path = typer.Option(Path("runs/verify/ns3"), "-o", "--out", help="Directory of the results."),
    to: Path | None = typer.Option(None, "--page", help="Write the table into this page, and a .json beside it."),
    fresh: bool = typer.Option(False, "--fresh", help="Run all again; otherwise finished runs are reused."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run ten drawn networks here and in ns-3, and name what removes each difference. Needs ns-3's libraries."""
    from penstock import ns3
    from penstock.verify import drawn, peer, peer_page

    program, missing = ns3.ready()
    if program is None:
        _skip(str(missing), json)
        return
    seed, version = draw or drawn.release_seed(), ns3.installed_version()
    plan = peer.Plan(peer.networks(seed), program, out, fresh)
    with Bar("verify", json) as bar, _termination_is_an_interrupt():
        complete = peer.run(plan, bar)
    rows = peer.rows(plan)
    if json:
        show.as_json(peer_page.found(rows, version, seed, complete))
    else:
        show.table(peer_page.about(version, seed), peer_page.HEADINGS, [peer_page.cells(row) for row in rows])
        show.line(peer_page.summary(rows))
    if not complete:
        print("interrupted: finished runs are kept; repeat the command to continue", file=sys.stderr)
        raise typer.Exit(130)
    if to:
        peer_page.write(to, rows, version, seed)


@verify.command(
    "profile", epilog=examples("penstock verify profile", "penstock verify profile --page docs/reference/profiles.md")
)
def profile(
    out: Path = typer.Option(Path("runs/verify/profile"), "-o", "--out", help="Directory of ns-3's results."),
    to: Path | None = typer.Option(None, "--page", help="Write the table into this page."),
    fresh: bool = typer.Option(False, "--fresh", help="Run ns-3 again; otherwise its finished runs are reused."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Hold `profile = "ns-3.37"` against ns-3 with its own defaults, and name what is left. Needs ns-3's libraries."""
    from penstock import ns3
    from penstock.verify import profile as held

    program, missing = ns3.ready()
    if program is None:
        _skip(str(missing), json)
        return
    with Bar("verify", json) as bar, _termination_is_an_interrupt():
        found = held.rows(program, out, bar, fresh)
    if json:
        show.as_json({"about": held.about(), "rows": [row.to_json() for row in found], "summary": held.summary(found)})
    else:
        show.table(held.about(), held.HEADINGS, [held.cells(row) for row in found])
        show.line(held.summary(found))
    if to:
        held.write(to, found)


@verify.command(
    "cc",
    epilog=examples(
        "penstock verify cc tcp_bic_rtt100.csv", "penstock verify cc windows.csv --cc hybla --set compat=linux"
    ),
)
def control(
    reference: Path = typer.Argument(
        help="Windows of another program: CSV with the columns round,t_us,cwnd_start,ssthresh,event,cwnd_end.",
        metavar="REFERENCE.csv",
    ),
    cc: str = typer.Option(
        "", help="The control to compare; default: the Linux form of that in the file's name, tcp_NAME_rtt100.csv."
    ),
    preset: str = typer.Option("", metavar="linux", help="With --cc: its Linux form."),
    settings: list[str] = typer.Option(
        [], "--set", help="Set a parameter of the control, or mss, initial_window, initial_ssthresh. Repeatable."
    ),
    rtt: float | None = typer.Option(
        None, min=0.001, help="Round trip time in ms; default: the time between the first two rounds."
    ),
    tolerance: float = typer.Option(1.0, min=0, help="Segments by which windows may differ."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Give a control the rounds of ACKs of another program, and say where and by how much their windows part."""
    from penstock import engine
    from penstock.verify import forms, rounds

    read = rounds.read(reference)
    name, form = (cc, []) if cc and not preset else forms.linux(cc or rounds.name_of(reference) or reference.stem)
    if preset not in ("", *forms.PRESETS):
        raise MistakeError(f"--preset {preset}: there is {', '.join(forms.PRESETS)}")
    tried: dict[str, tuple[list[str], Comparison]] = {}
    try:
        for socket in forms.sockets(name, settings):
            merged = forms.merged(socket, form, settings)
            compared = rounds.compare(read, name, merged, round(rtt * 1000) if rtt else None, tolerance)
            tried[" ".join(socket)] = merged, compared
    except engine.TraceError:
        raise
    except ValueError as error:
        raise MistakeError(str(error)) from None
    merged, found = max(tried.values(), key=lambda one: (one[1].within, one[1].equal))  # of equal ones the first
    by_pacing = {socket: one.equal for socket, (_, one) in tried.items()} if len(tried) > 1 else None
    if json:
        told = {"reference": str(reference), "cc": name, "settings": merged, "by_pacing": by_pacing}
        show.as_json({**told, **found.to_json()})
    else:
        _show_rounds(" ".join([name, *merged]), found)
        if by_pacing:
            equal = ", ".join(f"{count} with {socket}" for socket, count in by_pacing.items())
            show.line(f"The reference does not say whether its sender paced. Equal windows: {equal}.")
    raise typer.Exit(0 if found.agrees else 1)


def _show_rounds(name: str, found: Comparison) -> None:
    def part(part: Part | None) -> str:
        if part is None:
            return "none"
        return f"round {part.round}, at {part.t_us / 1e6:g} s: {part.here:g} here, {part.reference:g} in the reference"

    rows = [
        ["rounds", f"{found.rounds}"],
        ["equal windows", f"{found.equal}"],
        [f"within {found.tolerance:g} segments", f"{found.within}"],
        ["thresholds further apart", f"{found.thresholds_apart}"],
        ["first difference", part(found.first)],
        ["largest difference", part(found.largest)],
    ]
    show.table(f"{name}: {'agrees' if found.agrees else 'parts from the reference'}", ("", ""), rows, left=2)


@verify.command(
    "fates",
    epilog=examples(
        "penstock verify fates fates.csv --aqm codel --set compat=linux --rate 10Mbit/s --limit 1000p --clock-offset 1s"
    ),
)
def fates(
    reference: Path = typer.Argument(
        help="Fates of another program: CSV (.xz, .gz) with the columns id,t_arr_ns,flow,size,ecn_in,fate,t_fate_ns,"
        "ecn_out.",
        metavar="REFERENCE.csv",
    ),
    aqm: str = typer.Option(..., help="The queue discipline to compare."),
    rate: str = typer.Option(..., help='Rate of the link, such as "10Mbit/s".'),
    limit: str = typer.Option(..., help='Limit of the queue, such as "1000p".'),
    settings: list[str] = typer.Option([], "--set", help="Set a parameter of the discipline: key=value. Repeatable."),
    seed: int = typer.Option(1, min=0, max=2**64 - 1, help="Seed of the discipline's random numbers."),
    clock_offset: str = typer.Option("0s", help="What the discipline's clock shows at the beginning of the trace."),
    draws: str = typer.Option(
        "", metavar="FILE|splitmix64:STATE", help="Take the random numbers from this file or generator."
    ),
    tolerance: int = typer.Option(0, min=0, help="Nanoseconds by which times may differ."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Give a discipline the arrivals of another program, and say where and by how much the fates of packets part."""
    from penstock import engine
    from penstock.verify import fates as compared

    packets = compared.read(reference)
    arguments = {"aqm": aqm, "rate": rate, "limit": limit, "settings": settings, "seed": seed, "nodes": "none"}
    try:
        here = compared.replayed(packets, **arguments, clock_offset=clock_offset, draws=draws or None)
    except engine.TraceError:
        raise
    except ValueError as error:
        raise MistakeError(str(error)) from None
    found = compared.compare(packets, here, tolerance)
    if json:
        show.as_json({"reference": str(reference), "aqm": aqm, "settings": settings, **found.to_json()})
    else:
        _show_fates(aqm, found)
    raise typer.Exit(0 if found.agrees else 1)


def _show_fates(aqm: str, found: Fates) -> None:
    def part(part: FatePart | None) -> str:
        if part is None:
            return "none"
        told = [f"{one.fate} at {one.t_ns} ns, ECN {one.ecn}" for one in (part.here, part.reference)]
        return f"packet {part.id}, arrived at {part.t_arr_ns} ns: {told[0]} here, {told[1]} in the reference"

    rows = [
        ["packets", f"{found.packets:,}"],
        *([f"{fate}: reference, here", f"{n['reference']:,}, {n['here']:,}"] for fate, n in found.counts.items()),
        ["other fate", f"{found.fates_apart:,}"],
        ["same fate at another time", f"{found.times_apart:,}, by at most {found.largest_ns:,} ns"],
        ["sent with another ECN field", f"{found.ecn_apart:,}"],
        ["first difference", part(found.first)],
        ["largest difference of times", part(found.largest)],
    ]
    show.table(f"{aqm}: {'agrees' if found.agrees else 'parts from the reference'}", ("", ""), rows, left=2)


@verify.command(
    "agree",
    epilog=examples(
        "penstock verify agree step.py:Step ./step/target/release/step",
        "penstock verify agree codel 'codel target=6ms' --random 2000 --json",
        "penstock verify agree mine.py:Rounds drr --weights 1,2,4",
        "penstock verify agree mine.py:Mine codel --trace capture.pcap --rate 10Mbit/s --limit 200p",
    ),
)
def agree(
    a: str = typer.Argument(help=_AN_ALGORITHM, metavar="A"),
    b: str = typer.Argument(help="The other one, of the same kind.", metavar="B"),
    trace: Path | None = typer.Option(
        None, help="Arrivals of packets (a capture, or CSV), or for controls a script of events; default: random ones."
    ),
    packets: int = typer.Option(10_000, "--random", min=1, max=1_000_000, help="Number of random packets or events."),
    rate: str = typer.Option("10Mbit/s", help="Rate of the link behind AQMs and disciplines."),
    limit: str = typer.Option("100p", help="Limit of their queue."),
    weights: str = typer.Option("1,2,4,8", help="Weights of the classes of schedulers."),
    seed: int = typer.Option(1, min=0, max=2**32 - 1, help="Seed of the packets or events, and of random numbers."),
    before: int = typer.Option(10, min=0, max=1000, help="Rows that are shown before the first difference."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Show the first packet on which two algorithms part: AQMs, disciplines, schedulers or controls.

    Exits with 0 if they agree and with 1 if they part.
    """
    from penstock.verify import agree as agreeing

    try:
        numbers = tuple(int(weight) for weight in weights.split(","))
    except ValueError:
        raise MistakeError(f"--weights {weights}: write numbers with commas between, such as 1,2,4") from None
    setup = agreeing.Setup(trace, packets, rate, limit, numbers, seed, before)
    found = agreeing.compare(a, b, setup)
    if json:
        show.as_json(found.to_json())
    else:
        _show_agreement(found)
    raise typer.Exit(0 if found.agrees else 1)


def _show_agreement(found: Agreement) -> None:
    of = {"discipline": "packets", "scheduler": "departures", "control": "events"}[found.kind]
    a, b = found.names
    if found.agrees:
        show.line(f"{a} and {b} agree on all {found.compared:,} {of}")
        return
    show.line(f"{a} and {b} part: {found.what}, of {found.compared:,} {of}")
    show.line()
    for row in found.before:
        show.line(f"  both   {row}")
    width = max(len(a), len(b))
    for name, answer, state in zip(found.names, found.answers, found.states, strict=True):
        show.line()
        show.line(f"{name:{width}}  {answer}")
        show.line(f"{'':{width}}  state: {state}")


@verify.command(
    "intervals", epilog=examples("penstock verify intervals --tries 200", "penstock verify intervals --json")
)
def intervals(
    tries: int = typer.Option(5000, "--tries", min=10, max=100_000, help="Number of tries of each kind of interval."),
    jobs: int | None = options.JOBS,
    to: Path | None = typer.Option(None, "--page", help="Write the table into this page."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Measure how often intervals cover the laws of M/D/1, M/M/1 and M/M/1/K, and exit with 1 if too seldom."""
    from penstock import coverage

    found = []
    for one in coverage.measure(tries, jobs):
        found.append(one)
        if not json:
            show.line(", ".join([*coverage.cells(one)[:2], coverage.cells(one)[-1]]))
    complete = len(found) > len(coverage.cases())
    if json:
        show.as_json({"tries": tries, "complete": complete, "cases": [one.to_json() for one in found]})
    if to and complete:
        coverage.write(to, found)
    if not complete:
        raise typer.Exit(130)
    raise typer.Exit(0 if all(one.holds for one in found) else 1)


@verify.command("speed", epilog=examples("penstock verify speed --quick --no-peer"))
@old_name("bench", "verify speed")
def speed(
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
    quick: bool = typer.Option(False, "--quick", help="Simulate a fifth of the time."),
    no_peer: bool = typer.Option(False, "--no-peer", help="Do not run ns-3."),
    repeat: int = typer.Option(3, min=1, help="Number of runs of each program; the least CPU time counts."),
) -> None:
    """Measure the CPU time of a simulated packet, here and in ns-3. See `penstock docs benchmarks`."""
    from penstock.cli import speed as benchmarks

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
