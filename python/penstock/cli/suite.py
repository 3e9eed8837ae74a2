"""`suite`: judges an algorithm the way a document of the IETF asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from penstock.cli import flent, options, show
from penstock.cli.base import examples, group
from penstock.cli.layout import Cell, Styled
from penstock.cli.progress import RunsBar
from penstock.cli.worlds import On

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.suites.judging import Judged

suite = group(
    "suite",
    "Judge an algorithm by a whole document: RFC 7928 for AQMs; RFC 9743, the TCP evaluation suite and the BBR draft "
    "for controls.",
    "penstock suite rfc7928 codel pie",
    "penstock suite rfc9743 cubic-linux",
    "penstock suite tcp-eval cubic bbr --quick",
)

_DISTURBED_SHOWN = 5
_ALGORITHM = "A name with its parameters ('codel target=10ms'), or FILE.py:CLASS."
_QUICK = typer.Option(False, "--quick", help="Fewer seeds, shorter runs and fewer paths.")
_SEEDS = options.first_seeds(None, 1000, "Number of seeds; a value is the median over them")
_OUT = typer.Option(None, "-o", "--out", help="Directory of the results; default runs/suites/NAME-ALGORITHMS.")
_CHECK = typer.Option(False, "--check", help="Exit with 1 if a number of an algorithm is beyond its limit.")


@suite.command(
    "rfc7928",
    epilog=examples(
        "penstock suite rfc7928 codel",
        "penstock suite rfc7928 'pie target=20ms' mine.py:MyAqm --quick",
        "penstock suite rfc7928 fq-codel --json",
    ),
)
def rfc7928(
    algorithms: list[str] = typer.Argument(help=f"Disciplines. {_ALGORITHM}", metavar="AQM..."),
    quick: bool = _QUICK,
    seeds: int | None = _SEEDS,
    on: On = "sim",
    jobs: int | None = options.JOBS,
    out: Path | None = _OUT,
    check: bool = _CHECK,
    json: bool = options.JSON,
) -> None:
    """Judge AQMs by RFC 7928 beside drop-tail: transports, round trips, bursts, stability, mixes, ECN, scheduling."""
    _run("rfc7928", algorithms, quick, seeds, on, jobs, out, check, json)


_CC_HELP = f"Congestion controls. {_ALGORITHM}"


@suite.command("certify", hidden=True)
@suite.command(
    "rfc9743",
    epilog=examples(
        "penstock suite rfc9743 cubic-linux",
        "penstock suite rfc9743 mine.py:MyCc --check",
        "penstock suite rfc9743 'vegas alpha=3' --quick --json",
        "penstock suite rfc9743 quinn:cubic quinn:bbr --quick",
        "penstock suite rfc9743 mine --stack mine=./mine --quick",
    ),
)
def rfc9743(
    algorithms: list[str] = typer.Argument(help=_CC_HELP, metavar="CC..."),
    quick: bool = _QUICK,
    seeds: int | None = _SEEDS,
    on: On = "sim",
    jobs: int | None = options.JOBS,
    out: Path | None = _OUT,
    check: bool = _CHECK,
    stack: list[str] = options.STACK,
    json: bool = options.JSON,
) -> None:
    """Report a control, or a hosted stack, by the criteria of RFC 9743: numbers beside Reno, CUBIC and BBR."""
    options.hosting(stack)
    _run("rfc9743", algorithms, quick, seeds, on, jobs, out, check, json)


@suite.command(
    "tcp-eval",
    epilog=examples(
        "penstock suite tcp-eval cubic bbr",
        "penstock suite tcp-eval mine.py:MyCc --quick",
    ),
)
def tcp_eval(
    algorithms: list[str] = typer.Argument(help=_CC_HELP, metavar="CC..."),
    quick: bool = _QUICK,
    seeds: int | None = _SEEDS,
    on: On = "sim",
    jobs: int | None = options.JOBS,
    out: Path | None = _OUT,
    json: bool = options.JSON,
) -> None:
    """Measure controls in the basic scenarios of the TCP evaluation suite beside standard TCP."""
    _run("tcp-eval", algorithms, quick, seeds, on, jobs, out, False, json)


@suite.command(
    "bbr-draft",
    epilog=examples(
        "penstock suite bbr-draft",
        "penstock suite bbr-draft 'bbr3 beta=0.5' --quick --check",
    ),
)
def bbr_draft(
    algorithms: list[str] | None = typer.Argument(
        None, help="Forms of bbr3, with parameters in quotes; bbr3 if none is named.", metavar="[CC]..."
    ),
    quick: bool = _QUICK,
    seeds: int | None = _SEEDS,
    on: On = "sim",
    jobs: int | None = options.JOBS,
    out: Path | None = _OUT,
    check: bool = _CHECK,
    qlog: Path | None = typer.Option(None, "--qlog", help="Directory for a trace of each run as qlog."),
    json: bool = options.JSON,
) -> None:
    """Run the test cases of the BBR draft (appendix A) over a grid of rates and round trip times."""
    _run("bbr-draft", algorithms or ["bbr3"], quick, seeds, on, jobs, out, check, json, qlog)


@suite.command(
    "packetdrill",
    epilog=examples(
        "penstock suite packetdrill packetdrill/gtests/net/tcp",
        "penstock suite packetdrill linux/tools/testing/selftests/net/packetdrill --json",
    ),
)
def packetdrill(
    directory: Path = typer.Argument(help="A checkout of scripts (*.pkt), or one script.", metavar="DIR"),
    everything: bool = typer.Option(False, "--all", help="Show scripts that are not applicable or passed as well."),
    check: bool = typer.Option(False, "--check", help="Exit with 1 if a script differs that is not known to."),
    json: bool = options.JSON,
) -> None:
    """Play scripts of packetdrill, which say what Linux' TCP does, against the simulated TCP in virtual time."""
    from penstock.suites import packetdrill as judges

    found = list(judges.judge(directory))
    if json:
        show.as_json(judges.to_json(found))
    else:
        shown = [one for one in found if everything or one.verdict == "differs"]
        rows = [[one.script, one.verdict, one.known or one.why] for one in shown]
        if rows:
            show.table("scripts of packetdrill", ("script", "verdict", "why"), rows, left=3)
        show.line(judges.sentence(found))
    if check and any(one.verdict == "differs" and not one.known for one in found):
        raise typer.Exit(1)


flent.add(suite)


def _run(
    name: str,
    algorithms: list[str],
    quick: bool,
    seeds: int | None,
    on: str,
    jobs: int | None,
    out: Path | None,
    check: bool,
    json: bool,
    qlog: Path | None = None,
) -> None:
    from penstock import report
    from penstock.suites import judging, results

    chosen = results.suite(name)
    if qlog:
        from penstock.suites import bbr_draft

        chosen = bbr_draft.traced(qlog)
    path = out or results.default_path(name, algorithms, quick, on)
    with RunsBar(name, json) as bar:
        try:
            judged = judging.judge(chosen, algorithms, path, quick=quick, seeds=seeds, jobs=jobs, watcher=bar, on=on)
        except KeyboardInterrupt:
            show.warn("interrupted: what is finished is kept, and the same command goes on")
            raise typer.Exit(130) from None
    found = results.write(judged)
    page = report.write_suite(path)
    _tell_disturbed(judged)
    if json:
        show.as_json({"path": str(path), **found})
    else:
        _print(judged, found)
        show.line(f"results: {path}")
        show.line(f"report: {page}")
    beyond = any(judged.counted(one).get(chosen.words[1]) for one in judged.names)
    if check and beyond:
        raise typer.Exit(1)


def _tell_disturbed(judged: Judged) -> None:
    """Warns of the runs which the machine disturbed."""
    found = judged.disturbed
    if found:
        show.warn(
            f"warning: the machine disturbed {len(found)} runs: repeat them when it is idle, in another directory"
        )
    for one in found[:_DISTURBED_SHOWN]:
        show.warn(f"  {one.case} with {one.algorithm}, seed {one.seed}: {', '.join(one.by)}")


def _print(judged: Judged, found: Mapping[str, Any]) -> None:
    from penstock.report.suite_page import one_run

    suite_of = judged.suite
    styles = {suite_of.words[0]: "green", suite_of.words[1]: "red"}
    labels = [suite_of.labels.get(name, name) for name in judged.columns]
    rows: list[list[Cell]] = [_row(finding, judged.columns, styles) for finding in found["findings"]]
    rows += [
        [one["section"], one["title"], *(Styled("not judged", "dim") for _ in judged.columns)]
        for one in found["not_judged"]
    ]
    show.table(suite_of.title, ("section", "", *labels), rows, left=2)
    show.line()
    for name in judged.names:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in judged.counted(name).items())
        show.line(f"{name}: {counts}")
    show.line(f"{judged.seeds} seeds, medians. {suite_of.note}", "dim")
    if told := one_run(found["one_run"]):
        show.line(told, "dim")


def _row(finding: Mapping[str, Any], names: Sequence[str], styles: Mapping[str, str]) -> list[Cell]:
    unit = f", {finding['unit']}" if finding["unit"] else ""
    return [finding["section"], finding["title"] + unit, *(_cell(finding["algorithms"].get(n), styles) for n in names)]


def _cell(told: Mapping[str, Any] | None, styles: Mapping[str, str]) -> Cell:
    from penstock.report.suite_page import number

    if told is None or told["value"] is None:
        return Styled(told["verdict"] if told else "not judged", "dim")
    limit = "" if told["limit"] is None else f" {told['verdict']} ({number(told['limit'])})"
    return Styled(f"{number(told['value'])}{limit}", styles.get(told["verdict"], ""))
