"""Lets every step by which a command changes the disk fail, or ends the process there, and looks at what is left.

    python tests/faults.py                     every command, every step, every fault: ten minutes
    python tests/faults.py run-over --every 5  one command, every fifth step

A command runs in a child process of its own, in a directory that is prepared anew, with one fault: `kill` ends the
process before a step, `torn` in the middle of a write, `error` lets a step fail (EIO), `full` lets all writes fail from
a step on (ENOSPC). Then what is stored must be what was there or what was to be there; nothing may be a mixture; a
command that did not say so has not lost anything; and the same command, run again, must put everything right.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import hashlib
import io
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import store
from penstock.store.disk import Disk, here

FAULTS = ("kill", "torn", "error", "full")
KILLED = 99
_NEEDS_SPACE = {"open", "write", "make", "link", "symlink", "sync"}
_FREES = {"unlink", "remove"}

Tree = dict[str, str]


class Faulty(Disk):
    """A disk with one fault at one step. It writes down the names of the steps."""

    def __init__(self, fault: str, at: int, log: Path, no_exchange: bool) -> None:
        self._fault, self._at, self._no_exchange = fault, at, no_exchange
        self._steps = 0
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._dirty: dict[int, Path] = {}

    def _step(self, name: str, descriptor: int = -1, data: memoryview | None = None) -> None:
        self._steps += 1
        os.write(self._log, f"{name}\n".encode())
        if self._fault == "full" and self._steps >= self._at and name in _NEEDS_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self._steps != self._at:
            return
        if self._fault == "kill":
            os._exit(KILLED)
        if self._fault == "torn" and data is not None:
            os.write(descriptor, data[: len(data) // 2])
            os._exit(KILLED)
        if self._fault == "error":
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def open(self, path: Path, flags: int) -> int:
        if flags & (os.O_CREAT | os.O_TRUNC):
            self._step("open")
        found = super().open(path, flags)
        if flags & os.O_CREAT:
            self._dirty[found] = path
        return found

    def write(self, descriptor: int, data: memoryview) -> int:
        self._step("write", descriptor, data)
        return super().write(descriptor, data)

    def truncate(self, descriptor: int) -> None:
        self._step("truncate")
        super().truncate(descriptor)

    def sync(self, descriptor: int) -> None:
        self._step("sync")  # which is not done: a kill loses nothing that was written
        self._dirty.pop(descriptor, None)

    def replace(self, old: Path, new: Path) -> None:
        self._step("replace")
        self._check_synced(old)
        super().replace(old, new)

    def exchange(self, one: Path, other: Path) -> None:
        self._step("exchange")
        self._check_synced(one)
        if self._no_exchange:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        super().exchange(one, other)

    def link(self, old: Path, new: Path) -> None:
        self._step("link")
        super().link(old, new)

    def symlink(self, to: Path, path: Path) -> None:
        self._step("symlink")
        super().symlink(to, path)

    def make(self, path: Path) -> None:
        self._step("make")
        super().make(path)

    def unlink(self, path: Path) -> None:
        self._step("unlink")
        super().unlink(path)

    def remove(self, path: Path) -> None:
        self._step("remove")
        super().remove(path)

    def _check_synced(self, moved: Path) -> None:
        """What gets its name must have been synced, else a loss of power leaves a name without its content."""
        dirty = [path for path in self._dirty.values() if path == moved or moved in path.parents]
        if dirty:
            os.write(self._log, f"not synced: {dirty[0]}\n".encode())


@dataclass(frozen=True)
class Command:
    """A command that stores something."""

    words: Sequence[str]
    prepare: Callable[[Path], None] = lambda _: None
    # Each unit is stored as a whole: its name, and which paths belong to it.
    units: dict[str, Callable[[str], bool]] = field(default_factory=lambda: {"all": lambda _: True})
    # Units that are derived from another one: with the new one of this they may be new or missing, else they are old.
    derived: dict[str, str] = field(default_factory=dict)
    sets: Sequence[str] = ()  # first files of sets, which a reader finishes
    places: Sequence[str] = ()  # directories to which a reader gives their names back
    call: Callable[[], None] | None = None  # instead of the command line
    once: bool = False  # it refuses to write again what is there
    no_exchange: bool = False  # as on file systems without RENAME_EXCHANGE


def tree(root: Path) -> Tree:
    """Returns the hashes of all files below a directory, and its empty directories."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(root))] = f"-> {path.readlink()}"
        elif path.is_file():
            found[str(path.relative_to(root))] = hashlib.sha256(path.read_bytes()).hexdigest()
        elif path.is_dir() and not any(path.iterdir()):
            found[f"{path.relative_to(root)}/"] = "empty"
    return found


def hidden(name: str) -> bool:
    """Returns true for what the store left beside a place."""
    return any(store.is_beside(Path(part)) for part in Path(name).parts)


def visible(found: Tree) -> Tree:
    """Returns what is not the store's own; empty directories do not count."""
    return {name: value for name, value in found.items() if not hidden(name) and not name.endswith("/")}


class Trial:
    """Runs one command again and again, each time with another fault."""

    def __init__(self, name: str, command: Command, base: Path) -> None:
        self.name, self._command, self._base = name, command, base
        self._original = base / "original"
        self._original.mkdir()
        command.prepare(self._original)
        self.before = visible(tree(self._original))
        code, told = here_once(self._fresh(), lambda: called(command.words, command.call))
        assert code == 0, f"{name}: {told}"
        place = self._fresh()
        code, told = self._run(place, "none", 0)
        assert code == 0, f"{name}: {told}"
        self.after = visible(tree(place))
        assert self.after != self.before, f"{name}: nothing is stored"
        assert not [one for one in tree(place) if hidden(one)], f"{name}: leaves {tree(place)}"
        self.steps = (base / "log").read_text().splitlines()
        self.tried = 0  # number of faults

    def problems(self, faults: Sequence[str], every: int, first: int = 1) -> Iterator[str]:
        """Yields what is wrong after each fault."""
        yield from (f"{self.name}: {step}" for step in self.steps if step.startswith("not synced"))
        for fault in faults:
            for at in range(first, len(self.steps) + 1, every):
                if fault == "torn" and self.steps[at - 1] != "write":
                    continue
                for problem in self._after_fault(fault, at):
                    yield f"{self.name}: {fault} at step {at} of {len(self.steps)} ({self.steps[at - 1]}): {problem}"

    def _after_fault(self, fault: str, at: int) -> Iterator[str]:
        self.tried += 1
        place = self._fresh()
        code, told = self._run(place, fault, at)
        yield from self._spoken(fault, code, told)
        left = [name for name in tree(place) if hidden(name)]
        unchanged = visible(tree(place)) == self.before
        if fault in ("error", "full") and left and unchanged and self.steps[at - 1] not in _FREES:
            yield f"leaves {left}"
        yield from self._units(place, code)
        if self._command.once and visible(tree(place)) == self.after:
            return
        code, told = self._run(place, "none", 0)
        if code != 0:
            yield f"the same command fails afterwards: {told.strip()}"
        elif visible(tree(place)) != self.after:
            yield f"the same command gives something else afterwards: {_apart(visible(tree(place)), self.after)}"
        elif left := [name for name in tree(place) if hidden(name)]:
            yield f"the same command does not clear {left}"

    def _spoken(self, fault: str, code: int, told: str) -> Iterator[str]:
        if "Traceback" in told:
            yield f"a traceback: {told.strip().splitlines()[-1]}"
        if fault in ("kill", "torn"):
            if code != KILLED:
                yield f"exit code {code} instead of a kill"
        elif code not in (0, 1, 2):
            yield f"exit code {code}"
        elif code and not told.strip():
            yield "no message"

    def _units(self, place: Path, code: int) -> Iterator[str]:
        now = visible(tree(place))
        for name, value in now.items():
            if value not in (self.before.get(name), self.after.get(name)):
                yield f"{name} is neither the old one nor the new one"
        for directory in self._command.places:
            store.settle(place / directory)
        for first in self._command.sets:
            store.finish(place / first)
        now = visible(tree(place))
        states = {name: self._state(now, of) for name, of in self._command.units.items()}
        for name, state in states.items():
            source = self._command.derived.get(name)
            if state == "mixture" or (state == "missing" and source is None):
                yield f"{name}: {state}: {_apart(_part(now, self._command.units[name]), self.after)}"
            elif source and not _follows(state, states[source], _part(now, self._command.units[name])):
                yield f"{name} is {state} beside {source}, which is {states[source]}"
            if code == 0 and state not in ("new", "same"):
                yield f"{name} is {state}, and the command said nothing"

    def _state(self, now: Tree, of: Callable[[str], bool]) -> str:
        before, after, found = (_part(one, of) for one in (self.before, self.after, now))
        if before == after == found:
            return "same"
        return "new" if found == after else "old" if found == before else "mixture" if found else "missing"

    def _fresh(self) -> Path:
        """Makes the place of a trial anew; always the same one, for what this process keeps about it."""
        place = self._base / "trial"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._original, place, symlinks=True)
        return place

    def _run(self, place: Path, fault: str, at: int) -> tuple[int, str]:
        """Runs the command in a child process; returns its exit code and what it said on stderr."""
        said = self._base / "stderr"
        child = os.fork()
        if not child:
            code = 3
            try:
                code = self._child(place, said, fault, at)
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.read_text(errors="replace")

    def _child(self, place: Path, said: Path, fault: str, at: int) -> int:
        os.chdir(place)
        for stream, path in ((1, self._base / "stdout"), (2, said)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        here.disk = Faulty(
            fault, at, self._base / "log" if fault == "none" else Path(os.devnull), self._command.no_exchange
        )
        return called(self._command.words, self._command.call)


def here_once(place: Path, call: Callable[[], int]) -> tuple[int, str]:
    """Calls a command once in this process, so that no child imports, compiles or reads anew what it needs."""
    before, out = Path.cwd(), io.StringIO()
    os.chdir(place)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            return call(), out.getvalue()
    finally:
        os.chdir(before)


def called(words: Sequence[str], call: Callable[[], object] | None = None) -> int:
    """Calls the command `penstock` with these words, or `call` in its place; returns the exit code."""
    from penstock.cli import main

    sys.argv = ["penstock", *words]
    try:
        (call or main)()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0 if done.code is None else 1
    except store.StoreError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BaseException:
        import traceback

        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _follows(state: str, source: str, found: Tree) -> bool:
    """Returns true if a derived unit is beside its source what it may be: of the same run, or not there yet."""
    if source == "old":
        return state in ("old", "same")
    return state in ("new", "same") or not found


def _part(found: Tree, of: Callable[[str], bool]) -> Tree:
    return {name: value for name, value in found.items() if of(name)}


def _apart(now: Tree, wanted: Tree) -> str:
    others = sorted(name for name in {*now, *wanted} if now.get(name) != wanted.get(name))
    return ", ".join(others[:6])


def constant_times() -> None:
    """Lets all runs take the same time, so that the same command gives the same bytes."""
    from penstock import engine

    class Clock:
        """Stands still."""

        perf_counter = thread_time = staticmethod(lambda: 0.0)

    vars(engine)["time"] = Clock


def warm() -> None:
    """Imports and computes what all runs need and what stores nothing, before the first child."""
    import numpy  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    from penstock import cli, engine, provenance, report, rundir  # noqa: F401

    engine.core_fingerprint()
    vars(provenance)["revision"] = lambda: "unknown"  # it asks git


def plain_figures() -> None:
    """Replaces the drawing of figures, which takes most of the time and stores nothing."""
    from penstock import plots
    from penstock.report import pages

    def page(template: str, **values: Any) -> str:
        return f"{template}: {values['title']}, {values['versions']}"

    def files(_: object, path: Path) -> dict[Path, bytes]:
        return {path.with_suffix(f".{kind}"): kind.encode() for kind in ("png", "svg")}

    vars(pages)["_page"] = page
    vars(plots).update(svg=lambda _: b"<svg/>", png=lambda _: b"PNG", files=files, drawing=lambda _: None)
    vars(plots).update(single=lambda *_: {"goodput": None}, traced=lambda *_: None)


def main() -> int:
    """Tries the commands that are named, or all of them; prints what is wrong."""
    from fault_commands import COMMANDS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"commands: {', '.join(COMMANDS)}")
    parser.add_argument("--every", type=int, default=1, help="only every so many steps")
    parser.add_argument("--first", type=int, default=1, help="begin at this step")
    parser.add_argument("--faults", default=",".join(FAULTS), help="kinds of faults")
    parser.add_argument("--figures", action="store_true", help="draw the figures")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    warm()
    constant_times()
    if not given.figures:
        plain_figures()
    wrong, rows = [], []
    for name in given.names or COMMANDS:
        begin = time.process_time() + sum(os.times()[2:4])
        with tempfile.TemporaryDirectory(prefix="penstock-faults-") as base:
            trial = Trial(name, COMMANDS[name], Path(base))
            found = list(trial.problems(given.faults.split(","), given.every, given.first))
        cpu_s = time.process_time() + sum(os.times()[2:4]) - begin
        counts = {"steps": len(trial.steps), "faults": trial.tried, "problems": len(found)}
        rows.append({"command": name, **counts, "cpu_s": round(cpu_s, 1)})
        wrong += found
        if not given.json:
            print(f"{name}: {len(trial.steps)} steps, {len(found)} problems, {cpu_s:.1f} s", flush=True)
            print("".join(f"  {one}\n" for one in found), end="", flush=True)
    if given.json:
        report: dict[str, Any] = {"commands": rows, "problems": wrong}
        print(json.dumps(report))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
