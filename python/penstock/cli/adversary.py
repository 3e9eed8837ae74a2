"""`verify break`: searches the scenarios in which an algorithm breaks, and makes them small."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli import options, show
from penstock.cli.base import examples
from penstock.cli.verify import verify
from penstock.mistake import MistakeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.adversary.breaking import Broken, Budget, Finding, Watcher
    from penstock.adversary.search import Search
    from penstock.adversary.space import Space
    from penstock.adversary.standing import Goal
    from penstock.adversary.subject import Subject

_BARS = " ▁▂▃▄▅▆▇█"
_DEFAULT_S = 60.0
_LINE_S = 10.0
_LOOK_S = 0.5
_MENDS = 5


@verify.command(
    "break",
    epilog=examples(
        'penstock verify break codel --until "jain_long < 0.5" --for 1min',
        "penstock verify break bbr --until bully --until drops",
        "penstock verify break mine.py:Mine --trials 5000 --seed 7",
        "penstock verify break pie --space my-links.toml --json",
        "penstock verify break --all --trials 500 --page docs/results/book.md",
    ),
)
def break_(
    algorithm: str = typer.Argument(
        "", help="A discipline or a control with its parameters ('codel target=10ms'), or FILE.py:CLASS."
    ),
    until: list[str] = typer.Option(
        [],
        metavar="SENTENCE",
        help='What counts as broken: "jain_long < 0.5", or a standing property such as starvation. Repeatable; '
        "default: all standing properties.",
    ),
    space: Path | None = typer.Option(None, metavar="FILE.toml", help="What may vary; default: that of this release."),
    for_: str | None = typer.Option(None, "--for", metavar="10min", help="Time of the search; default 1min."),
    trials: int | None = typer.Option(None, min=1, help="Number of trials, with those of earlier calls."),
    seed: int = typer.Option(1, min=0, max=2**32 - 1, help="Seed of the search."),
    hostile: bool = typer.Option(False, "--hostile", help="Try neighbours that mean harm as well: floods, liars."),
    parameters: bool = typer.Option(False, "--parameters", help="Vary the algorithm's own parameters as well."),
    jobs: int | None = options.JOBS,
    out: Path | None = typer.Option(
        None, "-o", "--out", help="Directory of the results; default runs/break/NAME-HASH."
    ),
    all_: bool = typer.Option(False, "--all", help="Every discipline and control: the standing book."),
    to: Path | None = typer.Option(None, "--page", help="With --all: write the book into this page."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Search the scenario in which an algorithm breaks worst, make it small, and say what mends it.

    Exits with 0 if nothing breaks and with 1 if something does.
    """
    from penstock.adversary.breaking import Budget

    seconds = _seconds(for_) if for_ else None if trials else _DEFAULT_S
    budget = Budget(trials, seconds)
    if all_:
        if algorithm or until or space:
            raise MistakeError(
                "--all is for every algorithm and standing property: leave ALGORITHM, --until, --space out"
            )
        _book(budget, seed, jobs, out, to, json)
        return
    if not algorithm:
        raise MistakeError("which algorithm? `penstock verify break codel`, or --all for every one")
    subject, searched = _searched(algorithm, space, parameters, hostile)
    found = _break(subject, searched, until, budget, seed, jobs, out, json)
    raise typer.Exit(130 if found.interrupted else 1 if found.broken else 0)


def _searched(algorithm: str, space: Path | None, parameters: bool, hostile: bool) -> tuple[Subject, Space]:
    from penstock.adversary import space as spaces
    from penstock.adversary import subject as subjects

    subject = subjects.find(algorithm)
    read = spaces.load(space) if space else spaces.standard(subject.judged_as)
    return subject, read.of(subject, parameters=parameters, hostile=hostile or space is not None)


def _break(
    subject: Subject,
    space: Space,
    until: Sequence[str],
    budget: Budget,
    seed: int,
    jobs: int | None,
    out: Path | None,
    json: bool,
) -> Broken:
    from dataclasses import replace

    from penstock import report
    from penstock.adversary import breaking, standing

    goals = tuple(standing.goals(until, subject.judged_as, tuple(part.name for part in space.parts)))
    plan = breaking.Plan(space, goals, budget, seed, jobs)
    path = out or breaking.default_path(plan)
    progress = Progress(str(subject), json)
    found = breaking.run(replace(plan, out=path), progress.watcher())
    progress.end()
    page = report.write_break(path)
    if json:
        show.as_json({"path": str(path), **found.to_json(), "timing": found.timing})
    else:
        _show(found)
        show.line(f"results: {path}")
        show.line(f"report: {page}")
    if found.interrupted:
        show.warn("interrupted: what was tried is kept, and the same command goes on")
    return found


def _show(found: Broken) -> None:
    rows = [_row(finding) for finding in found.findings]
    subject = found.plan.space.subject
    timing = found.timing
    show.table(f"{subject}", ("", "broken if", "worst", "runs", "keys", "first trial"), rows, left=2)
    show.line(
        f"\n{found.trials:,} trials ({found.refused:,} were no scenarios), of which {timing['known']:,} were known; "
        f"{timing['search_cpu_s']:.1f} s of CPU time in {timing['search_wall_s']:.1f} s"
    )
    for finding in found.broken:
        _show_finding(finding)


def _row(finding: Finding) -> list[str]:
    worst = finding.breaches[0].shrunk if finding.breaches else finding.worst
    if worst is None:
        return [finding.goal.name, finding.goal.sentence.text, "-", "-", "-", "-"]
    value = "-" if worst.shown is None else f"{finding.goal.shown} = {worst.shown:.4g}"
    first = "-" if finding.first is None else f"{finding.first:,}"
    text = finding.goal.sentence.text if finding.goal.about else ""
    return [finding.goal.name, text, value, f"{worst.breaks}/{worst.of}", str(len(worst.settings)), first]


def _show_finding(finding: Finding) -> None:
    from penstock.adversary.shrink import in_words

    for place, breach in enumerate(finding.breaches):
        show.line()
        again = f", way {place + 1}" if place else ""
        show.line(f"{finding.goal.name}{again}: {finding.goal.about or 'is true'}", "bold")
        value = "-" if breach.shrunk.shown is None else f"{breach.shrunk.shown:.4g}"
        show.line(f"  {finding.goal.shown} = {value}, true in {in_words(breach.shrunk.breaks, breach.shrunk.of)}, with")
        for key, setting in breach.shrunk.settings.items():
            show.line(f"    {key} = {setting}" if setting is not True else f"    with {key}")
        if not breach.shrunk.settings:
            show.line("    the defaults of the space")
        for change in breach.mends[:_MENDS]:
            after = "without it" if change.after is None else f"{change.before} to {change.after}"
            value = "" if change.shown is None else f": {finding.goal.shown} = {change.shown:.4g}"
            show.line(f"    mended by {change.key}, {after}{value}", "dim")


def _book(budget: Budget, seed: int, jobs: int | None, out: Path | None, to: Path | None, json: bool) -> None:
    from penstock.adversary import book

    rows = book.run(budget, seed, jobs, out or Path("runs/break/book"), lambda name: Progress(name, json).watcher())
    if json:
        show.as_json(book.to_json(rows, budget, seed))
    else:
        show.table("Standing book", ("algorithm", "kind", "breaks", "trials", "CPU s"), book.overview(rows), left=3)
    if to:
        book.write(to, rows, budget, seed)
    if book.interrupted(rows):
        show.warn("interrupted: what was tried is kept, and the same command goes on")
        raise typer.Exit(130)


def _seconds(text: str) -> float:
    from penstock.units import base, base_unit

    found = base(text)
    if found is None or base_unit(text) != "s" or found <= 0:
        raise MistakeError(f"--for {text}: write a time with its unit, such as 30s or 10min")
    return found


class Progress:
    """Shows on stderr how bad the worst is so far: one line on a terminal, a line now and then elsewhere."""

    def __init__(self, label: str, quiet: bool = False) -> None:
        self._label, self._quiet = label, quiet
        self._terminal = sys.stderr.isatty()
        self._last = time.monotonic()

    def watcher(self) -> Watcher:
        """Returns what a search calls."""
        from penstock.adversary.breaking import Watcher

        return Watcher(self._searching, self._shrinking)

    def _searching(self, search: Search, goals: Sequence[Goal], budget: Budget, seconds: float) -> None:
        now = time.monotonic()
        if self._quiet or now - self._last < (_LOOK_S if self._terminal else _LINE_S):
            return
        self._last = now
        worst = [
            f"{goal.name[:24]} {picture(archive.curve, search.trials)}"
            for goal, archive in zip(goals, search.archives, strict=True)
        ]
        left = f" of {budget.seconds:.0f} s" if budget.seconds else ""
        self._say(f"{self._label}: {search.trials:,} trials, {seconds:.0f}{left} s; worst so far: {'  '.join(worst)}")

    def _shrinking(self, goal: Goal) -> None:
        self._last = time.monotonic() + _LINE_S  # the worst does not change any more
        if not self._quiet and self._terminal:
            self._say(f"{self._label}: makes {goal.name} small")

    def end(self) -> None:
        """Removes the line of a terminal."""
        if self._terminal and not self._quiet:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _say(self, line: str) -> None:
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{line[:width]}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)


def picture(curve: Sequence[tuple[int, float]], trials: int, width: int = 8) -> str:
    """Returns how the worst margin rose over the trials: a bar for each part of them, and ! once it is broken."""
    bars, margin, place = [], -1.0, 0
    for part in range(1, width + 1):
        while place < len(curve) and curve[place][0] <= trials * part / width:
            margin = curve[place][1]
            place += 1
        bars.append(_BARS[round((len(_BARS) - 1) * min(max((margin + 1) / 2, 0.0), 1.0))])
    return "".join(bars) + ("!" if margin > 0 else "")
