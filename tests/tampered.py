"""Damages every file that the lab stores, in every way, and lets every command that reads read it.

    python tests/tampered.py [--every N]

A command may refuse or not notice what it does not read: its exit code is 0, 1 or 2, it prints no traceback, and
when it refuses it names the damaged file.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faults
from fault_commands import MINE, OLD, SCENARIO, TINY

LONGEST_S = 120  # a command that waits for ever is ended; others are beside this one
DEEP = "[" * 100_000 + "]" * 100_000


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _bytes(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


def _text(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text)

    return write


def _forged(value: Any, *kept: str) -> Callable[[Path], None]:
    """Replaces the value of each key of a JSON file but those `kept`; of another file, the content."""

    def forge(path: Path) -> None:
        if path.suffix != ".json":
            path.write_text(str(value))
            return
        stored = json.loads(path.read_text())
        path.write_text(json.dumps({key: one if key in kept else value for key, one in stored.items()}))

    return forge


KEPT = ("format", "scenario", "file")  # so that the reader goes on to the others

TAMPERS: dict[str, Callable[[Path], None]] = {
    "removed": lambda path: path.unlink(),
    "empty": _text(""),
    "truncated": _truncated,
    "a bit": _bit,
    "a directory": _directory,
    "a pipe": _pipe,
    "not UTF-8": _bytes,
    "deep": _text(DEEP),
    "a list": _text("[]"),
    "a number": _text("7"),
    "NaN": _forged(float("nan")),
    "huge": _text('{"format": 1e999}'),
    "many digits": _text("1" * 5000),
    "null": _forged(None),
    "negative": _forged(-1, *KEPT),
    "texts": _forged("x", *KEPT),
    "lists": _forged([[]], *KEPT),
    "newer": _text('{"format": 99, "scenario": "", "file": "", "seed": 1, "versions": {}, "runs": [], "name": "tiny"}'),
}

RUN = "runs/one"
EXPERIMENT = "runs/reproduce/tiny-quick"
READERS: dict[str, tuple[tuple[str, ...], ...]] = {
    RUN: (
        ("runs", "list"),
        ("runs", "show", RUN),
        ("runs", "show", RUN, "--json"),
        ("runs", "rerun", RUN, "--trust"),
        ("runs", "report", RUN),
        ("runs", "prune", "--yes"),
        ("run", "small.toml", "--out", RUN),
    ),
    EXPERIMENT: (
        ("runs", "list"),
        ("runs", "report", EXPERIMENT),
        ("claims",),
        ("reproduce", "./tiny", "--quick", "--jobs", "1"),
    ),
}


def prepare(root: Path) -> None:
    """Makes a run directory and an experiment's results."""
    from penstock import rundir
    from penstock.engine import simulate
    from penstock.scenario import Scenario

    (root / "old.toml").write_text(OLD)
    (root / "mine.py").write_text(MINE)
    rundir.write(simulate(Scenario.load(root / "old.toml")), root / RUN)
    (root / "mine.py").unlink()  # so that the copy is used
    (root / "small.toml").write_text(SCENARIO)
    shutil.copytree(TINY, root / "tiny", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(TINY.parent / "results-format-2", root / EXPERIMENT)
    text = (root / "tiny" / "experiment.toml").read_text().replace('"10s"', '"2s"')
    (root / "tiny" / "experiment.toml").write_text(text)
    scenario = (root / "tiny" / "scenario.toml").read_text().replace('"5s"', '"0s"').replace('"10Mbit/s"', '"1Mbit/s"')
    (root / "tiny" / "scenario.toml").write_text(scenario)


def trials(every: int, counted: list[int]) -> Iterator[str]:
    """Yields what is wrong with the answer of a command."""
    with tempfile.TemporaryDirectory(prefix="penstock-tampered-") as made:
        base = Path(made)
        original = base / "original"
        original.mkdir()
        prepare(original)
        for words in (words for commands in READERS.values() for words in commands):
            faults.here_once(_fresh(base, original), functools.partial(_called, words))
        number = 0
        for folder, commands in READERS.items():
            files = [path.relative_to(original) for path in sorted((original / folder).rglob("*")) if path.is_file()]
            for file in files:
                for name, tamper in TAMPERS.items():
                    for words in commands:
                        number += 1
                        if number % every:
                            continue
                        counted[0] += 1
                        code, said = _answer(base, original, file, tamper, words)
                        for problem in _problems(code, said, file):
                            yield f"penstock {' '.join(words)} with {file} ({name}): {problem}"


def _answer(
    base: Path, original: Path, file: Path, tamper: Callable[[Path], None], words: tuple[str, ...]
) -> tuple[int, str]:
    place = _fresh(base, original)
    tamper(place / file)
    said = base / "said"
    child = os.fork()
    if not child:
        code = 3
        try:
            signal.alarm(LONGEST_S)
            os.chdir(place)
            for stream in (1, 2):
                os.dup2(os.open(said if stream == 2 else base / "out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            code = _called(words)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.read_text(errors="replace")


def _fresh(base: Path, original: Path) -> Path:
    place = base / "place"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(original, place)
    return place


def _called(words: tuple[str, ...]) -> int:
    from penstock.reproduce.experiments import open_folder

    open_folder(Path("tiny"))
    return faults.called(words)


def _problems(code: int, said: str, file: Path) -> Iterator[str]:
    if code not in (0, 1, 2):
        yield f"exit code {code}"
    if "Traceback" in said:
        yield f"a traceback: {' | '.join(said.strip().splitlines()[-3:])}"
    elif code == 2 and file.name not in said:
        yield f"does not name the file: {said.strip()}"
    elif code and not said.strip() and code != 1:
        yield "no message"


def main() -> int:
    """Prints what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="only every so many trials")
    given = parser.parse_args()
    faults.warm()
    faults.plain_figures()
    counted = [0]
    found = 0
    for problem in trials(given.every, counted):
        found += 1
        print(problem, flush=True)
    print(f"{counted[0]:,} trials, {found} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
