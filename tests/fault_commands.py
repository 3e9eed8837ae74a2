"""The commands that store something, as `faults` tries them: how each is prepared, and what belongs together."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from faults import Command

SCENARIO = """\
name = "small"
duration = "2s"

[topology]
kind = "dumbbell"
rate = "1Mbit/s"
delay = "10ms"
limit = "20kB"

[[flows]]
kind = "bulk"
"""
OLD = SCENARIO.replace('"1Mbit/s"', '"500kbit/s"').replace("[[flows]]", '[aqm]\nname = "mine.py:Mine"\n\n[[flows]]')
MINE = "import penstock\n\n\nclass Mine(penstock.Aqm):\n    def on_enqueue(self, packet):\n        return None\n"
TINY = Path(__file__).parent / "fixtures" / "tiny"
PAGE = "# Page\n\n<!-- table: begin -->\nold\n<!-- table: end -->\n"


def _in(folder: str, *but: str) -> Callable[[str], bool]:
    return lambda name: name.startswith(f"{folder}/") and not name.endswith(but or ("\0",))


def _scenario(root: Path) -> None:
    (root / "small.toml").write_text(SCENARIO)


def _older(root: Path) -> None:
    """An older run with a file of its own, and with notes of a person."""
    from penstock import rundir
    from penstock.engine import simulate
    from penstock.scenario import Scenario

    _scenario(root)
    (root / "old.toml").write_text(OLD)
    (root / "mine.py").write_text(MINE)
    rundir.write(simulate(Scenario.load(root / "old.toml")), root / "out")
    (root / "out" / "report.html").write_text("<p>old")
    (root / "out" / "notes").mkdir()
    (root / "out" / "notes" / "today.txt").write_text("mine")
    (root / "out" / "link").symlink_to("notes")
    (root / "mine.py").unlink()


def _prunable(root: Path) -> None:
    """An older run without files of a person."""
    _older(root)
    shutil.rmtree(root / "out" / "notes")
    (root / "out" / "link").unlink()


def _page(root: Path) -> None:
    (root / "page.md").write_text(PAGE)


def _experiment(root: Path) -> None:
    """An experiment with few and short runs."""
    shutil.copytree(TINY, root / "tiny", ignore=shutil.ignore_patterns("__pycache__"))
    text = (TINY / "experiment.toml").read_text().replace('"10s"', '"2s"').split('[[settings]]\nname = "far"')[0]
    (root / "tiny" / "experiment.toml").write_text(text)
    scenario = (TINY / "scenario.toml").read_text().replace('"10Mbit/s"', '"1Mbit/s"').replace('"5s"', '"0s"')
    (root / "tiny" / "scenario.toml").write_text(scenario)


def _older_experiment(root: Path) -> None:
    """The same with results of another build, which are run again."""
    _experiment(root)
    shutil.copytree(TINY.parent / "results-format-2", root / "out")
    for name in ("cases/far-codel-4-1", "cases/far-droptail-4-1"):
        for ending in (".json", ".toml"):
            (root / "out" / f"{name}{ending}").unlink()
    (root / "out" / "report.html").write_text("<p>old")


def _case(name: str) -> Callable[[str], bool]:
    return lambda path: path.startswith(f"out/cases/{name}.")


def _write_page() -> None:
    """What `verify ns3 --page` writes."""
    from penstock.verify import peer, peer_page

    network = peer.networks("0.1.0")[0]
    side = {name: peer.Range.of([1.0, 2.0]) for name in peer.MEASURES}
    peer_page.write(Path("page.md"), [peer.Row(network, peer.Compared(side, side), {})], "3.37", "0.1.0")


_RUN = {"run": _in("out", "report.html"), "page": lambda name: name == "out/report.html"}
_REPRODUCED = {
    "droptail": _case("near-droptail-4-1"),
    "codel": _case("near-codel-4-1"),
    "results": lambda name: name == "out/results.json",
    "report": lambda name: name == "out/report.html" or name.startswith("out/figures/"),
}
_REPRODUCE = ("reproduce", "./tiny", "--quick", "--jobs", "1", "--out", "out")
_SETS = ("out/cases/near-droptail-4-1.json", "out/cases/near-codel-4-1.json", "out/report.html")

COMMANDS = {
    "run-fresh": Command(("run", "small.toml", "--out", "out"), _scenario, _RUN, {"page": "run"}),
    "run-over": Command(("run", "small.toml", "--out", "out"), _older, _RUN, {"page": "run"}),
    "run-over-renamed": Command(
        ("run", "small.toml", "--out", "out"), _older, _RUN, {"page": "run"}, places=("out",), no_exchange=True
    ),
    "run-packets": Command(
        ("run", "small.toml", "--out", "out", "--pcapng", "packets.pcapng"),
        _older,
        {**_RUN, "packets": lambda name: name == "packets.pcapng"},
        {"page": "run"},
    ),
    "run-packets-inside": Command(
        ("run", "small.toml", "--out", "out", "--pcapng", "out/packets.csv"), _older, _RUN, {"page": "run"}
    ),
    "run-json-packets": Command(("run", "small.toml", "--json", "--pcapng", "p.pcapng"), _scenario),
    "trace": Command(("run", "small.toml", "--trace", "tcp", "--out", "traced"), _scenario),
    "report": Command(("runs", "report", "out"), _older),
    "reproduce-fresh": Command(_REPRODUCE, _experiment, _REPRODUCED, sets=_SETS),
    "reproduce-over": Command(_REPRODUCE, _older_experiment, _REPRODUCED, sets=_SETS),
    "claims-page": Command(("claims", "--page", "page.md"), _page),
    "verify-page": Command((), _page, sets=("page.md",), call=_write_page),
    "new-aqm": Command(
        ("new", "aqm", "mine"),
        once=True,
        units={
            "algorithm": lambda name: name == "mine.py",
            "scenario": lambda name: name == "mine.toml",
            "experiment": lambda name: name == "mine-experiment.toml",
            "test": lambda name: name == "test_mine.py",
        },
    ),
    "new-experiment": Command(("new", "experiment", "study"), once=True),
    "new-network": Command(("new", "network", "emergency"), once=True),
    "prune": Command(("runs", "prune", ".", "--yes"), _prunable),
}
