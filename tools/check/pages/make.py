"""Makes the pages that `tools/check/pages-check` opens: of runs of examples, of a reproduction, and of 500 runs."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import penstock
from penstock.cli import app
from penstock.report import table_page, write_experiment
from penstock.report.tidy import Measure, Tidy
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ("applications", "handover")  # all kinds of traffic; a graph with moves
MEASURES = (
    Measure("goodput", "goodput", "Mbit/s"),
    Measure("p90", "queueing delay, p90", "ms"),
    Measure("jain", "Jain index of bulk flows"),
    Measure("drops", "drops"),
    Measure("mos", "MOS of the worst call"),
)


def runs_500() -> str:
    """Returns the page of 500 points: 5 disciplines, 10 numbers of flows, 10 delays, with made-up numbers."""
    draw = random.Random(1)
    rows = [
        {
            "flows": flows,
            "delay": delay,
            "aqm": aqm,
            "measure": one.key,
            "median": value,
            "low": 0.9 * value,
            "high": value,
        }
        for aqm in ("codel", "pie", "fq-codel", "droptail", "pink")
        for flows in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
        for delay in ("10ms", "20ms", "30ms", "50ms", "75ms", "100ms", "150ms", "200ms", "300ms", "600ms")
        for one in MEASURES
        for value in [flows * draw.random() + 1]
    ]
    lines = [row for row in rows if row["delay"] == "100ms"]
    said = [{"flows": flows, "aqm": "codel", "measure": "goodput", "median": 0.6 * flows} for flows in (1, 8, 64)]
    tables = [
        Tidy(rows, ["flows", "delay"], MEASURES, group="aqm"),
        Tidy(lines, ["flows"], MEASURES, group="aqm", said=said),
    ]
    return table_page("A sweep of 500 runs", "500 points, made up.", tables, titles=["Maps", "Lines"])


def _command(*words: str | Path) -> None:
    """Calls `penstock`."""
    called = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    if called.exit_code not in (0, 1):  # 1: something breaks, which is what `verify break` looks for
        raise RuntimeError(f"{words[0]}: {called.output}")


def _replay(out: Path) -> None:
    """Replays packets of four flows, which come in bursts."""
    draw = random.Random(2)
    arrivals = sorted(
        (burst * 50_000_000 + draw.randrange(10_000_000), draw.randrange(4)) for burst in range(40) for _ in range(20)
    )
    out.mkdir()
    (out / "trace.csv").write_text("t_ns,flow,size,ecn\n" + "".join(f"{t},{flow},1000,0\n" for t, flow in arrivals))
    link = ("--aqm", "codel", "--rate", "3Mbit/s", "--limit", "30p")
    _command("replay", out / "trace.csv", *link, "--out", out)


def _commands(out: Path) -> None:
    """Writes the pages of the commands that write one, small."""
    _replay(out / "replay")
    bulk = ROOT / "examples" / "applications.toml"
    _command("sweep", bulk, "--vary", "aqm.name=codel,pie", "--seeds", "3", "--delays", "--out", out / "sweep")
    sides = ("--vary", "aqm.name=droptail,codel,fq-codel")
    _command("compare", bulk, *sides, "--seeds", "4", "--out", out / "compare")
    _command("suite", "rrul", "fq-codel", "--out", out / "flent")
    _command("suite", "rfc7928", "codel", "--quick", "--out", out / "suite")
    _command("verify", "break", "codel", "--trials", "10", "--out", out / "break")
    _command("run", bulk, "--pcapng", out / "capture.pcapng", "--out", out / "captured")
    _command("what-if", out / "capture.pcapng", "--out", out / "what-if")


def main(out: Path) -> None:
    """Writes the pages into a directory."""
    for name in EXAMPLES:
        penstock.lab.run(ROOT / "examples" / f"{name}.toml").save(out / name)
        (out / name / "report.html").rename(out / f"run-{name}.html")
    _commands(out)
    for page in out.glob("*/report.html"):
        page.rename(out / f"{page.parent.name}.html")
    sys.path.insert(0, str(ROOT / "tests"))
    from made_up import evidence

    found = evidence(variants={"no-pink-margin": lambda _aqm, _flows: {"goodput": 9.45}}, seeds=3)
    write_experiment(found, out / "experiment").rename(out / "reproduction.html")
    (out / "sweep-500.html").write_text(runs_500(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
