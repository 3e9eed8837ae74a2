"""The store: what is written is whole, one writer at a time, and what is read was written."""

from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import SCENARIO, Command
from penstock import rundir, store
from penstock.claims import ledger
from penstock.engine import simulate
from penstock.own import kept_as
from penstock.reproduce import results
from penstock.reproduce.experiments import open_folder
from penstock.scenario import Scenario
from penstock.store.disk import Disk, here
from penstock.store.names import LOCK, LOG, NEW, OLD, beside

FIXTURES = Path(__file__).parent / "fixtures"
HERE = Path(__file__).parent
SHORT = SCENARIO.replace('"5s"', '"2s"')


def said(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence of a command that refused."""
    assert (done.returncode, done.stdout) == (2, ""), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


# Every step that fails. `tools/measure/store-faults` tries every step of every command.


@pytest.mark.parametrize(
    ("command", "every", "first"),
    [("run-over", 7, 3), ("run-over-renamed", 11, 1), ("run-packets", 13, 5), ("new-aqm", 2, 1), ("verify-page", 3, 1)],
)
def test_a_fault_at_a_step_leaves_no_mixture(command: str, every: int, first: int) -> None:
    words = ["faults.py", command, "--every", str(every), "--first", str(first), "--json"]
    done = subprocess.run([sys.executable, *words], cwd=HERE, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["problems"] == []
    assert found["commands"][0]["steps"] > 10


def test_a_mixture_would_be_found() -> None:
    """The helper itself: it sees a writer that replaces two files of a set one after the other."""
    code = """
import faults, fault_commands
from pathlib import Path
from penstock import store

def two() -> None:
    store.write(Path("page.md"), "new")
    store.write(Path("page.json"), "new")

fault_commands.COMMANDS = {"two": faults.Command((), fault_commands._page, call=two)}
raise SystemExit(faults.main())
"""
    command = [sys.executable, "-c", code, "--faults", "kill", "--json"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    assert any("all: mixture" in problem for problem in json.loads(done.stdout)["problems"])


# Locks.


def test_a_second_writer_is_told_who_writes(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    with store.replacing(tmp_path / "out"):
        refused = said(penstock("run", scenario, "--out", "out"))
    assert refused.startswith("error: ")
    assert f"out: process {os.getpid()} (penstock" in refused
    assert "is writing it; wait until it ends, or name another place" in refused
    assert penstock("run", scenario, "--out", "out").returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "small.toml"], "nothing is left beside it"


def test_the_lock_of_a_killed_writer_is_free(tmp_path: Path) -> None:
    def hold() -> None:
        with store.replacing(tmp_path / "out") as new:
            new.put("half", "x")
            os._exit(9)

    child = multiprocessing.get_context("fork").Process(target=hold)
    child.start()
    child.join()
    assert beside(tmp_path / "out", LOCK).exists()
    assert beside(tmp_path / "out", NEW).is_dir()
    with store.replacing(tmp_path / "out") as new:
        new.put("whole", "y")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["whole"]


def test_writers_of_one_file_wait_for_each_other(tmp_path: Path) -> None:
    file = tmp_path / "file"
    contents = [f"{index}" * 100_000 for index in range(8)]
    threads = [threading.Thread(target=store.write, args=(file, content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.read_text() in contents
    assert list(tmp_path.iterdir()) == [file]


def test_who_waits_for_a_place_gets_it_after_the_other(tmp_path: Path) -> None:
    place, order = tmp_path / "program", []

    def second() -> None:
        with store.held(place, wait=True):
            order.append("second")

    with store.held(place):
        other = threading.Thread(target=second)
        other.start()
        other.join(0.2)
        order.append("first")
    other.join()
    assert order == ["first", "second"]


def test_reproduce_of_one_directory_has_one_writer(tmp_path: Path, penstock: Command) -> None:
    with store.held(tmp_path / "out"):
        refused = said(penstock("reproduce", "pink-dsl", "--quick", "--out", "out"))
    assert "out: process" in refused


# Directories.


def test_files_of_others_stay_in_a_directory_that_is_replaced(
    penstock: Command, scenario: Path, tmp_path: Path
) -> None:
    assert penstock("run", scenario, "--out", "out", "--pcapng", "out/p.pcapng").returncode == 0
    out = tmp_path / "out"
    hashes = json.loads((out / "manifest.json").read_text())["files"]
    assert hashes["p.pcapng"] == hashlib.sha256((out / "p.pcapng").read_bytes()).hexdigest()
    assert set(hashes) == {path.name for path in out.iterdir()} - {"manifest.json", "report.html"}
    (out / "notes.txt").write_text("mine")
    (out / "more").mkdir()
    (out / "more" / "data.parquet").write_text("mine")
    (out / "link").symlink_to("notes.txt")
    stale = out / "link_changes.parquet"
    shutil.copy(out / "flow_seconds.parquet", stale)
    assert penstock("run", scenario, "--out", "out", "--seed", "2").returncode == 0
    assert (out / "notes.txt").read_text() == (out / "more" / "data.parquet").read_text() == "mine"
    assert (out / "link").readlink() == Path("notes.txt")
    assert not stale.exists(), "a table of the earlier run is none of this one"


def test_places_that_cannot_be_replaced_are_refused(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    assert "is or contains the current directory" in said(penstock("run", scenario, "--out", "."))
    assert "is or contains the current directory" in said(penstock("run", scenario, "--out", ".."))
    assert "is a file; name a directory" in said(penstock("run", scenario, "--out", scenario))
    assert "a file system is mounted here" in said(penstock("run", scenario, "--out", "/proc"))
    (tmp_path / "file").write_text("")
    assert "file" in said(penstock("run", scenario, "--out", "file/out"))
    assert "is a directory; name a file" in said(penstock("run", scenario, "--json", "--pcapng", tmp_path))


def test_a_link_to_a_directory_stays_a_link(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert penstock("run", scenario, "--out", "link").returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "manifest.json").is_file()


def test_a_trace_does_not_replace_a_run(penstock: Command, scenario: Path) -> None:
    assert penstock("run", scenario, "--out", "out").returncode == 0
    assert "holds a run" in said(penstock("run", scenario, "--trace", "tcp", "--out", "out"))


def test_a_reader_gives_an_old_directory_its_name_back(tmp_path: Path) -> None:
    place = tmp_path / "out"
    rundir.write(simulate(Scenario(SHORT, "a.toml")), place)
    place.rename(beside(place, OLD))  # as a writer leaves it that is killed between two renames
    assert rundir.read(place).summary["seed"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


class NoExchange(Disk):
    """A file system without RENAME_EXCHANGE."""

    def exchange(self, one: Path, other: Path) -> None:
        raise OSError(errno.EINVAL, "Invalid argument", str(one), None, str(other))


def test_directories_are_replaced_without_an_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "disk", NoExchange())
    for text in ("one", "two"):
        with store.replacing(tmp_path / "out") as new:
            new.put("file", text)
    assert (tmp_path / "out" / "file").read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_set_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    page, numbers = tmp_path / "page.md", tmp_path / "page.json"
    store.together({page: "old", numbers: "old"})
    beside(numbers, NEW).write_text("new")
    page.write_text("new")  # this one was renamed when the writer was killed
    beside(page, LOG).write_text(store.dump(["page.md", "page.json"]))
    store.finish(page)
    assert numbers.read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.json", "page.md"]


def test_a_file_of_a_set_that_is_a_directory_is_named(tmp_path: Path) -> None:
    page, numbers = tmp_path / "page.md", tmp_path / "page.json"
    numbers.mkdir()
    with pytest.raises(store.StoreError, match=r"page\.json: is a directory; name a file"):
        store.together({page: "new", numbers: "new"})
    assert [path.name for path in tmp_path.iterdir()] == ["page.json"]


def test_a_pipe_in_the_place_of_an_own_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "results.json")
    with pytest.raises(store.StoreError, match=r"results\.json: is a pipe or a device; remove it"):
        store.own_file(tmp_path / "results.json")
    assert store.own_file(tmp_path / "other.json") == tmp_path / "other.json"


def test_the_rights_of_a_file_stay(tmp_path: Path) -> None:
    file = tmp_path / "file"
    store.write(file, "one")
    file.chmod(0o600)
    store.write(file, "two")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("two", 0o600)


def test_a_full_device_is_one_sentence(penstock: Command, scenario: Path) -> None:
    assert "/dev/full: cannot be written: No space left" in said(
        penstock("new", "network", "x") and penstock("architecture", "--out", "/dev/full")
    )
    assert "No space left" in said(penstock("run", scenario, "--json", "--pcapng", "/dev/full"))


# Formats and hashes.


def test_a_run_of_format_1_is_read(penstock: Command, tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "run-format-1", tmp_path / "out")
    shown = penstock("runs", "show", "out", "--json")
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert (told["manifest"]["format"], told["manifest"]["seed"], told["summary"]["name"]) == (1, 3, "kept")
    assert penstock("runs", "report", "out").returncode == 0
    assert "rerun" not in penstock("runs", "rerun", "out", "--trust").stderr
    summary = tmp_path / "out" / "summary.json"
    summary.write_text(summary.read_text().replace('"seed": 3', '"seed": 4'))
    assert "summary.json: was changed after the run" in said(penstock("runs", "show", "out"))


def test_results_of_format_2_are_read(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "tiny", tmp_path / "tiny")
    open_folder(tmp_path / "tiny")
    shutil.copytree(FIXTURES / "results-format-2", tmp_path / "kept")
    found = results.load(tmp_path / "kept")
    assert (found.experiment.name, len(found.outcomes), found.quick) == ("tiny", 4, True)


def test_a_newer_format_is_refused(penstock: Command, tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "run-format-1", tmp_path / "out")
    file = tmp_path / "out" / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 99}))
    refused = said(penstock("runs", "show", "out"))
    assert f"manifest.json: has format 99 of a newer version; this one reads formats up to {rundir.FORMAT}" in refused


@pytest.mark.parametrize(
    "name", ["summary.json", "timing.json", "resolved.toml", "scenario.toml", "flow_seconds.parquet"]
)
def test_a_file_of_another_run_is_noticed(penstock: Command, tmp_path: Path, name: str) -> None:
    for seed in (1, 2):
        rundir.write(simulate(Scenario(SHORT.replace("small", f"s{seed}"), "a.toml"), seed), tmp_path / f"{seed}")
    (tmp_path / "2" / name).write_bytes((tmp_path / "1" / name).read_bytes() + b"\n")
    assert f"2/{name}: was changed after the run" in said(penstock("runs", "report", "2"))


def test_a_reader_meanwhile_sees_one_run(tmp_path: Path) -> None:
    """While one directory is replaced again and again, whoever reads it gets one run or the other, whole."""
    ran = [simulate(Scenario(SHORT, "a.toml"), seed) for seed in (1, 2)]
    rundir.write(ran[0], tmp_path / "out")
    stop = threading.Event()

    def replace() -> None:
        for index in range(30):
            rundir.write(ran[index % 2], tmp_path / "out")
        stop.set()

    thread = threading.Thread(target=replace)
    thread.start()
    seen = set()
    while not stop.is_set():
        kept = rundir.read(tmp_path / "out", tables=True)
        assert kept.manifest["seed"] == kept.summary["seed"]
        seen.add(kept.manifest["seed"])
    thread.join()
    assert seen == {1, 2}


# What others may have written into a directory.


def own_run(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURES / "run-format-1", tmp_path / "given")
    return tmp_path / "given"


def test_rerun_asks_before_it_executes_code(penstock: Command, tmp_path: Path) -> None:
    run = own_run(tmp_path)
    refused = said(penstock("rerun", "given"))
    hashed = hashlib.sha256((run / "own" / kept_as("mine.py")).read_bytes()).hexdigest()
    assert f"{run / 'own' / 'mine.py'} (SHA-256 {hashed}; as in the run): read it, then give --trust" in refused
    trusted = penstock("rerun", "given", "--trust")
    assert trusted.returncode in (0, 1), trusted.stderr
    assert "summary.json" in trusted.stdout


def test_a_changed_copy_of_own_code_is_not_executed(penstock: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text((FIXTURES / "run-format-1" / "own" / "mine.py").read_text())
    text = SHORT.replace('"droptail"', '"mine.py:Mine"')
    (tmp_path / "a.toml").write_text(text)
    assert penstock("run", "a.toml", "--out", "out").returncode == 0
    (tmp_path / "mine.py").unlink()
    evil = tmp_path / "out" / "own" / "mine.py"
    evil.write_text("from pathlib import Path\nPath('executed').touch()\n" + evil.read_text())
    assert "own/mine.py: was changed after the run" in said(penstock("rerun", "out", "--trust"))
    assert not (tmp_path / "executed").exists()


def test_a_broken_experiment_is_named_and_left_out(penstock: Command, tmp_path: Path) -> None:
    for name, text in (("pink-dsl", '{"format": 3, "runs": [{'), ("pink-sat", '{"format": 99}')):
        (tmp_path / "runs" / "reproduce" / name).mkdir(parents=True)
        (tmp_path / "runs" / "reproduce" / name / "results.json").write_text(text)
    done = penstock("claims", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) > 100
    assert "warning: left out: runs/reproduce/pink-dsl/results.json: not JSON" in done.stderr
    assert "warning: left out: runs/reproduce/pink-sat/results.json: has format 99" in done.stderr


def test_a_claim_that_cannot_be_judged_ends_no_ledger(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "tiny", tmp_path / "tiny")
    open_folder(tmp_path / "tiny")
    shutil.copytree(FIXTURES / "results-format-2", tmp_path / "kept")
    found = results.load(tmp_path / "kept")
    for outcome in found.outcomes:
        outcome.summary["bottlenecks"] = 7
    [entry] = ledger({"tiny": found}, only="tiny")
    assert entry.verdict == "not-run"
    assert entry.reason.startswith("the results cannot be judged: TypeError")


# Input.


@pytest.mark.parametrize("duration", ["1ns", "50ns", "99ns", "1us"])
def test_the_shortest_runs_end(penstock: Command, scenario: Path, duration: str) -> None:
    scenario.write_text(SCENARIO.replace('"5s"', f'"{duration}"').replace('warmup = "1s"\n', ""))
    done = penstock("run", scenario, "--out", "out")
    assert done.returncode == 0, done.stderr


def test_a_scenario_that_is_too_large_is_not_parsed(penstock: Command, scenario: Path) -> None:
    scenario.write_text(SCENARIO + "# comment\n" * 2_000_000)
    assert f"has {scenario.stat().st_size} bytes; a scenario has at most 16777216" in said(penstock("run", scenario))


def test_deep_nesting_is_one_sentence(penstock: Command, scenario: Path) -> None:
    for text in ("x = " + "[" * 100_000, SCENARIO + "x = " + "{a=" * 100_000, SCENARIO + "[a" + ".a" * 100_000 + "]\n"):
        scenario.write_text(text)
        assert "small.toml" in said(penstock("run", scenario))


def test_too_little_address_space_is_one_sentence(scenario: Path) -> None:
    command = f"ulimit -v 400000; {sys.executable} -m penstock run {scenario}"
    done = subprocess.run(["bash", "-c", command], cwd=scenario.parent, capture_output=True, text=True, check=False)
    assert "the address space is limited to 390 MiB (`ulimit -v`); run needs" in said(done)


@pytest.mark.parametrize(
    ("crash", "code", "said"), [("os.abort()", 2, "is limited to 1171 MiB"), ("os._exit(7)", 7, "")]
)
def test_a_run_that_outgrows_its_address_space_is_one_sentence(
    scenario: Path, crash: str, code: int, said: str
) -> None:
    """Rust ends the process as `os.abort` does when an allocation fails; other ends are passed on."""
    (scenario.parent / "mine.py").write_text(
        f"import os\nimport penstock\n\nclass Mine(penstock.Aqm):\n    def on_enqueue(self, packet):\n        {crash}\n"
    )
    scenario.write_text(SCENARIO.replace('"droptail"', '"mine.py:Mine"'))
    command = f"ulimit -v 1200000; exec {sys.executable} -m penstock run {scenario} --json"
    done = subprocess.run(["bash", "-c", command], cwd=scenario.parent, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr


def test_damaged_files_are_answered_with_a_sentence() -> None:
    words = ["tampered.py", "--every", "29"]
    done = subprocess.run([sys.executable, *words], cwd=HERE, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(" trials, 0 problems\n")
