"""Sweeps: the rows of their tables, what is run and what is not, and what is left when they are killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import penstock
import pytest
from conftest import Command
from penstock import store
from penstock.experiments import cluster, delays, reading, results, runner, tables, work
from penstock.experiments.adjusting import adjusted
from penstock.experiments.interrupts import Stop
from penstock.experiments.runner import How, Shard
from penstock.mistake import MistakeError
from penstock.store import segments

TABLES = (results.RESULTS, results.INTERVALS, results.SWEEP)


def experiment(scenario: Path, **change: Any) -> Any:
    """Six points with two seeds."""
    given = {"vary": {"aqm.name": "codel,pie", "flows.0.count": "1,2,4"}, "seeds": 2, **change}
    return adjusted(reading.load(scenario), **given)


def stored(path: Path) -> dict[str, bytes]:
    """The files of a sweep that depend on nothing but its runs."""
    return {name: (path / name).read_bytes() for name in TABLES}


@pytest.fixture
def whole(scenario: Path, tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    """A sweep that nothing disturbed."""
    done = runner.run(experiment(scenario), tmp_path / "whole", How(jobs=1))
    assert (done.runs, done.finished, done.ran) == (12, 12, 12)
    return tmp_path / "whole", stored(tmp_path / "whole")


def test_rows_are_what_single_runs_give(scenario: Path, whole: tuple[Path, dict[str, bytes]]) -> None:
    sweep = results.load(whole[0])
    rows = sweep.results.to_pylist()
    point = next(p for p in sweep.points if p.settings == {"aqm.name": "pie", "flows.0.count": 4})
    text = scenario.read_text().replace("droptail", "pie").replace("count = 2", "count = 4")
    alone = penstock.run(text, seed=2).summary
    run, flows, link = [row for row in rows if (row["point"], row["seed"]) == (point.index, 2)]
    assert (run["part"], flows["part"], link["part"]) == ("run", "flows", "link")
    assert (run["aqm.name"], run["flows.0.count"], flows["name"], link["name"]) == ("pie", 4, "0 bulk", "bottleneck")
    assert run["rtt_p90_ms"] == alone["rtt_ms"]["p90"]
    assert run["jain_worst"] == alone["jain"]["worst_1s"]
    assert flows["flows"] == 4
    assert flows["goodput_bps"] == pytest.approx(sum(flow["goodput_bps"] for flow in alone["flows"]))
    assert flows["goodput_lowest_bps"] == min(flow["goodput_bps"] for flow in alone["flows"])
    bottleneck = alone["bottlenecks"][0]
    drops = bottleneck["drops_overflow"] + bottleneck["drops_aqm"]
    assert link["drops"] == drops
    assert link["drop_share"] == pytest.approx(drops / (drops + bottleneck["packets_all"]))
    assert link["rtt_p90_ms"] is None
    assert run["error"] is None


def test_processes_shards_and_watching_change_nothing(
    scenario: Path, tmp_path: Path, whole: tuple[Path, dict[str, bytes]]
) -> None:
    told: list[Any] = []

    class Watching(runner.Quiet):
        def begin(self, *numbers: float) -> None:
            told.append(numbers)

        def finished(self, failed: bool) -> None:
            told.append(failed)

    runner.run(experiment(scenario), tmp_path / "two", How(jobs=2), Watching())
    assert stored(tmp_path / "two") == whole[1]
    assert told == [(12, 0, 60.0), *[False] * 12]
    ran = 0
    for number in (3, 1, 2):
        done = runner.run(experiment(scenario), tmp_path / "parts", How(jobs=1, shard=Shard(number, 3)))
        ran += done.ran
        assert (done.sweep is None) == (number != 2)
    assert ran == 12
    assert stored(tmp_path / "parts") == whole[1]


def test_what_is_finished_is_never_run_again(scenario: Path, whole: tuple[Path, dict[str, bytes]]) -> None:
    assert runner.run(experiment(scenario), whole[0]).ran == 0
    assert stored(whole[0]) == whole[1]
    assert runner.run(experiment(scenario, seeds=3), whole[0]).ran == 6
    more = {"aqm.name": "codel,pie", "flows.0.count": "1,2,4,5"}
    assert runner.run(experiment(scenario, vary=more, seeds=3), whole[0]).ran == 6
    assert runner.run(experiment(scenario), whole[0]).ran == 0
    assert stored(whole[0]) == whole[1]
    scenario.write_text(scenario.read_text().replace("10ms", "11ms"))
    assert runner.run(experiment(scenario), whole[0]).ran == 12


def test_a_changed_file_of_an_own_algorithm_is_run_again(scenario: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    code = (
        "import penstock\nclass Mine(penstock.Aqm):\n    def on_enqueue(self, p):\n"
        "        return 'drop' if {} else None\n"
    )
    own.write_text(code.format("self.random.random() < 0.01"))
    scenario.write_text(scenario.read_text().replace("5s", "2s"))
    mine = adjusted(reading.load(scenario), own=[f"{own.name}:Mine"])
    assert [p.settings["aqm"] for p in mine.points()] == [{"name": "droptail"}, {"name": "mine.py:Mine"}]
    out = tmp_path / "own"
    assert runner.run(mine, out).ran == 2
    assert runner.run(mine, out).ran == 0
    own.write_text(code.format("self.random.random() < 0.5"))
    done = runner.run(mine, out)
    assert done.ran == 1
    assert done.sweep is not None
    drops = done.sweep.values("link.drops_aqm")["bottleneck"]
    assert drops[0][1] == 0
    assert (drops[1][1] or 0) > 10


def test_a_point_that_fails_is_a_row_with_its_error(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    varied = ("--vary", "aqm.name=codel,pei", "--out", "out")
    done = penstock("sweep", scenario, *varied)
    assert done.returncode == 1
    assert 'aqm.name=pei, seed 1: error: no algorithm "pei"' in done.stderr
    rows = results.load(tmp_path / "out").results.to_pylist()
    assert [(row["aqm.name"], row["part"], row["error"] is None) for row in rows] == [
        ("codel", "run", True),
        ("codel", "flows", True),
        ("codel", "link", True),
        ("pei", "run", False),
    ]
    assert 'did you mean "pi"' in rows[-1]["error"]
    again = json.loads(penstock("sweep", scenario, *varied, "--json").stdout)
    assert [one["point"] for one in again["failures"]] == ["aqm.name=pei"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--vary", "flows.0.cuont=1,2"), "did you mean `count`?"),
        (("--vary", "flows.3.count=1,2"), "allowed are 0 to 0"),
        (("--vary", "aqm.name"), "write KEY=VALUES"),
        (("--vary", "aqm.name=pie", "--measure", "rtt"), "there is no measure 'rtt'"),
        (("--shard", "3/2"), "with I from 1 to N"),
        (("--array-script", "slrum"), "did you mean slurm?"),
        (("--dask", "tcp://127.0.0.1:1"), "--dask"),
    ],
)
def test_a_mistake_is_told_before_anything_is_run(
    penstock: Command, scenario: Path, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    if words[0] == "--dask":
        pytest.importorskip("distributed")
        return
    done = penstock("sweep", scenario, *words, "--out", "out")
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert not list(tmp_path.glob("out/*.json"))


def test_a_process_that_dies_costs_its_own_run_only(scenario: Path, tmp_path: Path) -> None:
    own = tmp_path / "deadly.py"
    own.write_text(
        "import os, signal, penstock\nclass Deadly(penstock.Aqm):\n    deadly = False\n"
        "    def on_enqueue(self, p):\n        if self.deadly:\n            os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    one = adjusted(
        reading.load(scenario),
        vary={"duration": "2s", "aqm": [{"name": "deadly.py:Deadly", "deadly": d} for d in (False, True, False)]},
        seeds=2,
    )
    done = runner.run(one, tmp_path / "out", How(jobs=2))
    assert done.sweep is not None
    assert [one.seed for one in done.sweep.failures] == [1, 2]
    assert all("ended twice, by SIGKILL" in one.error for one in done.sweep.failures)
    assert runner.run(one, tmp_path / "out", How(jobs=1)).ran == 0  # what died is tried again, and not stored


def _begin(scenario: Path, out: Path) -> subprocess.Popen[bytes]:
    varied = ["--vary", "aqm.name=codel,pie", "--vary", "flows.0.count=1,2,4", "--seeds", "2", "--jobs", "2"]
    command = [sys.executable, "-m", "penstock", "sweep", str(scenario), *varied, "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=scenario.parent)


def _left(out: Path) -> list[bytes]:
    while True:
        with contextlib.suppress(store.StoreError):  # the sweep has just put a segment elsewhere
            return [key for key, _ in segments.records(out / results.RUNS)]


@pytest.mark.parametrize("signal_sent", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_that_is_killed_at_any_moment_goes_on(
    scenario: Path, tmp_path: Path, whole: tuple[Path, dict[str, bytes]], signal_sent: signal.Signals
) -> None:
    out = tmp_path / "killed"
    draws = random.Random(int(signal_sent))
    for _ in range(4):
        process = _begin(scenario, out)
        try:
            end = time.monotonic() + 20
            before = len(_left(out))
            wanted = before + draws.randrange(3)
            while process.poll() is None and len(_left(out)) < wanted and time.monotonic() < end:
                time.sleep(0.002)
            time.sleep(draws.random() * 0.02)
            process.send_signal(signal_sent)
        finally:
            process.wait()
        keys = _left(out)
        assert len(keys) == len(set(keys))
        assert len(keys) >= before
    assert runner.run(experiment(scenario), out).ran == 12 - len(keys)
    assert stored(out) == whole[1]


def test_an_interrupt_says_how_to_go_on(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(scenario.read_text().replace("5s", "2000s"))
    process = _begin(scenario, tmp_path / "out")
    while not list(tmp_path.glob("out/runs/*.segment")):
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130


def test_two_commands_do_not_write_one_sweep(scenario: Path, tmp_path: Path, penstock: Command) -> None:
    with segments.appending(tmp_path / "out" / results.RUNS, "all"):
        done = penstock("sweep", scenario, "--out", "out")
    assert done.returncode == 2
    assert f"process {os.getpid()}" in done.stderr


def test_records_that_are_cut_off_at_any_byte_are_left_out(tmp_path: Path) -> None:
    given = [(bytes([number]) * segments.KEY_BYTES, b"x" * number) for number in range(1, 5)]
    with segments.appending(tmp_path, "all") as segment:
        segment.append(given[:2])
        segment.append(given[2:])
    [file] = tmp_path.glob("*.segment")
    data = file.read_bytes()
    whole = 0
    for end in range(len(data) + 1):
        file.write_bytes(data[:end])
        found = list(segments.records(tmp_path))
        assert found == given[: len(found)]
        assert len(found) >= whole
        whole = len(found)
    assert whole == 4
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert list(segments.records(tmp_path)) == given[:3]
    with segments.appending(tmp_path, "all") as segment:
        segment.append(given[3:])
    assert [file.name for file in sorted(tmp_path.glob("*.segment"))] == ["all-0001.segment", "all-0002.segment"]
    assert list(segments.records(tmp_path)) == given


def test_dry_run_stores_nothing_and_tells_what_is_left(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    varied = ("--vary", "flows.0.count=1,2,4", "--seeds", "50", "--out", "out", "--dry-run")
    told = json.loads(penstock("sweep", scenario, *varied, "--json").stdout)
    assert (told["points"], told["runs"], told["finished"]) == (3, 150, 0)
    assert 0 < told["cpu_s"] < 60
    assert not (tmp_path / "out").exists()


def test_the_job_script_runs_the_sweep_in_parts(penstock: Command, scenario: Path, tmp_path: Path) -> None:
    words = ("--vary", "flows.0.count=1,2,4", "--jobs", "2", "--out", "out")
    assert penstock("sweep", scenario, *words, "--array-script", "slurm:2").returncode == 0
    script = (tmp_path / "small.slurm.sh").read_text()
    assert "#SBATCH --array=1-2\n" in script
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "penstock").write_text(f'#!/bin/sh\nexec {sys.executable} -m penstock "$@"\n')
    (bin_ / "penstock").chmod(0o755)
    for number in "12":
        env = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": number}
        subprocess.run(["bash", "small.slurm.sh"], cwd=tmp_path, env=env, check=True, capture_output=True)
    assert len(results.load(tmp_path / "out").points) == 3


def test_a_sweep_from_python_is_that_of_the_command(
    scenario: Path, tmp_path: Path, whole: tuple[Path, dict[str, bytes]]
) -> None:
    found = penstock.sweep(
        scenario, vary={"aqm.name": ["codel", "pie"], "flows.0.count": "1,2,4"}, seeds=2, out=tmp_path / "api", jobs=1
    )
    assert stored(tmp_path / "api") == whole[1]
    assert found.results.num_rows == 36
    assert found.failures == ()


def test_classes_of_a_program_need_no_file(tmp_path: Path) -> None:
    class Dropper(penstock.Aqm):
        def on_enqueue(self, packet: penstock.Packet) -> penstock.Verdict:  # noqa: ARG002
            return "drop" if self.random.random() < 0.2 else None

    table = {
        "duration": "2s",
        "topology": {"kind": "dumbbell", "rate": "2Mbit/s", "delay": "10ms", "limit": "20kB"},
        "aqm": {"name": Dropper},
        "flows": [{"kind": "bulk"}],
    }
    found = penstock.sweep(table, seeds=2, out=tmp_path / "out")
    assert all((drops or 0) > 5 for drops in found.values("link.drops_aqm")["bottleneck"][0].values())


def test_seeds_are_added_until_the_interval_is_narrow(scenario: Path, tmp_path: Path) -> None:
    given = adjusted(
        reading.load(scenario), vary={"flows.0.start_spread": ["1s"]}, until={"part": 0.005, "measure": "rtt_mean_ms"}
    )
    out = tmp_path / "out"
    done = runner.run(given, out, How(jobs=2))
    assert done.sweep is not None
    seeds = done.sweep.values("rtt_mean_ms")[""][0]
    rows = done.sweep.intervals.to_pylist()
    [row] = [row for row in rows if (row["part"], row["measure"]) == ("run", "rtt_mean_ms")]
    assert (row["rule"], row["seeds"]) == ("stein", len(seeds))
    assert list(seeds) == list(range(1, len(seeds) + 1))
    assert len(seeds) > 10
    # The rule promises the part of the mean of the first stage.
    first = [seeds[seed] or 0.0 for seed in range(1, 11)]
    assert (row["mean_high"] - row["mean_low"]) / 2 <= 0.005 * sum(first) / 10
    assert runner.run(given, out, How(jobs=1)).ran == 0


def test_equal_runs_are_one_sample(penstock: Command, scenario: Path) -> None:
    """Without a spread of starts nothing in the scenario is left to chance; PIE draws random numbers."""
    fixed = scenario.with_name("fixed.toml")
    fixed.write_text(scenario.read_text().replace("start_spread", "# start_spread"))
    words = ("sweep", fixed, "--vary", "aqm.name=droptail,pie", "--seeds", "6", "--out", "swept")
    told = penstock(*words).stdout
    assert told.count("start_spread") == 1
    assert "in 1 of 2 points: the seed has no influence: 6 seeds are one run" in told
    droptail, pie = (next(line for line in told.splitlines() if line.startswith(name)) for name in ("droptail", "pie"))
    assert "[" not in droptail
    assert "[" in pie
    assert "96.9%" in told, "the level that the smallest and the largest of six reach"
    sweep = results.load(scenario.parent / "swept")
    rows = sweep.results.to_pylist()
    assert {row["same_as"] for row in rows if row["aqm.name"] == "droptail"} == {1}
    assert [row["same_as"] for row in rows if (row["aqm.name"], row["part"]) == ("pie", "run")] == [1, 2, 3, 4, 5, 6]
    for row in sweep.intervals.to_pylist():
        if row["aqm.name"] == "droptail":
            assert (row["seeds"], row["samples"]) == (6, 1)
            assert [row[key] for key in ("mean_low", "mean_high", "median_low", "median_high", "median_level")] == [
                None
            ] * 5
        else:
            assert row["samples"] == 6
            assert row["median_level"] in (None, pytest.approx(0.96875))
            assert (row["median_level"] is None) == (row["median_low"] is None)
            assert row["median_low"] is None or row["median_low"] <= row["median"] <= row["median_high"]
    assert "start_spread" in json.loads(penstock(*words, "--json").stdout)["chance"]
    page = (scenario.parent / "swept" / "report.html").read_text(encoding="utf-8")
    assert "start_spread" in page


def test_one_run_asks_for_no_more_seeds(penstock: Command, scenario: Path) -> None:
    scenario.write_text(scenario.read_text().replace("start_spread", "# start_spread"))
    told = penstock("sweep", scenario, "--vary", "aqm.name=droptail,codel", "--until", "1%", "--out", "swept").stdout
    assert "±" not in told
    assert "10 seeds are one run" in told
    assert {row["seed"] for row in results.load(scenario.parent / "swept").results.to_pylist()} == set(range(1, 11))


@pytest.fixture
def fleet() -> Any:
    """A Dask cluster of two processes on this machine."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield cluster


def test_a_cluster_that_loses_a_worker_gives_the_same_tables(
    fleet: Any, scenario: Path, tmp_path: Path, whole: tuple[Path, dict[str, bytes]]
) -> None:
    killed: list[int] = []

    class Killing(runner.Quiet):
        def finished(self, failed: bool) -> None:  # noqa: ARG002
            if not killed:
                killed.append(next(iter(fleet.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

    done = runner.run(experiment(scenario), tmp_path / "dask", How(dask=fleet.scheduler_address), Killing())
    assert (done.ran, len(killed)) == (12, 1)
    assert stored(tmp_path / "dask") == whole[1]


def test_answers_that_a_worker_takes_with_it_are_waited_for(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at a future its worker may die: Dask has the batch run again, and it is not the run's fault."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "wait", lambda *_, **__: None)

    class Future:
        def __init__(self, number: int) -> None:
            self.number, self.states = number, ["lost", "pending", "finished"]

        def done(self) -> bool:
            return True

        @property
        def status(self) -> str:
            return self.states.pop(0) if len(self.states) > 1 else self.states[0]

        def result(self) -> list[bytes]:
            return [bytes([self.number])]

        def exception(self) -> None:
            return None

    class Client:
        def nthreads(self) -> dict[str, int]:
            return {"worker": 1}

        def submit(self, _: Any, batch: list[work.Task], *__: Any, **___: Any) -> Future:
            return Future(batch[0].point)

    tasks = [work.Task(point, 1, b"", reading.load(scenario).scenario) for point in range(6)]
    found = list(cluster._Cluster(Client(), tasks).results(Stop()))
    assert sorted((task.point, data) for task, data in found) == [(n, bytes([n])) for n in range(6)]


def test_another_build_on_the_cluster_is_refused(scenario: Path) -> None:
    task = work.Task(0, 1, b"", reading.load(scenario).scenario)
    with pytest.raises(MistakeError, match="another build"):
        work.batch([task], "0" * 64)


def test_reserved_names_are_columns_of_the_tables(whole: tuple[Path, dict[str, bytes]]) -> None:
    sweep = results.load(whole[0])
    kept = delays.Merged().table()
    columns = {*sweep.results.column_names, *sweep.intervals.column_names, *kept.column_names}
    assert set(tables.RESERVED) <= columns
