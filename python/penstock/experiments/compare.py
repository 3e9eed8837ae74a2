"""Which is better, and by how much: the same seeds for all sides, and intervals of the differences seed by seed.

Runs with the same seed share their chance (starts, sizes, random numbers of links), so that the difference between two
sides has less of it than each side has alone. What is compared is the mean of these differences, with Student's
interval of 95 %. Better or worse is said where that of 99 % excludes zero, because a table has many lines. A side whose
seeds are one run (`penstock.chance`) is one sample: no interval and no verdict follows from it. Of sides with different
numbers of different runs, the smallest number counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock import chance, rundir, store, worlds
from penstock.engine import core_fingerprint, frame_of
from penstock.experiments import delays, quantities, reading, results, runner, statistics, verdict, work
from penstock.experiments.measures import HIGHER, RUN, Measure, find
from penstock.experiments.model import Experiment, Point
from penstock.experiments.results import Sweep
from penstock.experiments.runner import ONE_MACHINE, How, Watcher
from penstock.experiments.statistics import Interval
from penstock.experiments.values import shown
from penstock.experiments.verdict import Answer, Sample
from penstock.mistake import MistakeError
from penstock.scenario import Scenario, tree

FORMAT = 1
FILE, FELT = "compare.json", "felt.json"
SEEDS = tuple(range(1, 11))  # of scenarios and runs, which have one seed of their own
SURE = 0.99  # a table has many lines: a word needs more than the interval that is shown, whose level is 95 %
BETTER, WORSE, LARGER, SMALLER, SAME, NOTHING, MORE_SEEDS, ONE_SEED, NO_CHANCE, ALIKE, MISSING = (
    "better",
    "worse",
    "higher",
    "lower",
    "the same in every seed",
    "no difference shown",
    "more seeds may tell",
    "one seed cannot tell",
    "one run cannot tell",
    "differs alike in every seed",
    "a value is missing",
)
WORDS = (BETTER, WORSE, LARGER, SMALLER)  # which say that there is a difference
# What is compared unless measures are named, as far as the runs have it.
COMPARED = (
    "goodput_bps",
    "rtt_p50_ms",
    "rtt_p90_ms",
    "jain",
    "link.utilization",
    "link.queue_delay_p50_ms",
    "link.queue_delay_p90_ms",
    "link.drop_share",
    "flows.goodput_bps",
    "flows.rtt_p90_ms",
    "flows.completion_p50_s",
    "flows.transfer_p50_ms",
    "flows.transfer_p90_ms",
    "flows.mos",
    "flows.call_delay_p99_ms",
    "flows.video_played",
)
_ALSO_OF_THE_RUN = ("goodput_bps", "rtt_p90_ms")  # of flows only where there are several groups

_LONGEST = 38  # letters of the name of a directory, so that its path fits on a line of a terminal

Settings = tuple[tuple[str, str], ...]


class InterruptedCompareError(KeyboardInterrupt):
    """A comparison was interrupted. What is finished is kept: the same call goes on."""


@dataclass(frozen=True)
class Side:
    """One of those that are compared: its name, its runs, and its points by what they have in common with others."""

    label: str
    sweep: Sweep
    points: Mapping[Settings, int]


@dataclass(frozen=True)
class Difference:
    """How a side differs from the first one."""

    side: str
    interval: Interval
    share: float | None  # of the first side's mean
    verdict: str

    def to_json(self) -> dict[str, Any]:
        """Returns the difference as plain values."""
        return {"side": self.side, **self.interval.to_json(), "share": self.share, "verdict": self.verdict}


@dataclass(frozen=True)
class Line:
    """One measure of all sides, in one setting."""

    settings: Settings
    measure: Measure
    name: str  # of the group or link; empty for the run
    seeds: int
    sides: tuple[Interval, ...]
    differences: tuple[Difference, ...]  # of all but the first side
    samples: tuple[int, ...]  # number of different runs of each side

    def to_json(self) -> dict[str, Any]:
        """Returns the line as plain values."""
        return {
            "settings": dict(self.settings),
            "part": self.measure.part,
            "name": self.name,
            "measure": self.measure.name,
            "unit": self.measure.unit,
            "better": self.measure.better,
            "seeds": self.seeds,
            "samples": list(self.samples),
            "sides": [one.to_json() for one in self.sides],
            "differences": [one.to_json() for one in self.differences],
        }


@dataclass(frozen=True)
class Comparison:
    """The sides and the lines of a comparison."""

    path: Path
    sides: tuple[Side, ...]
    lines: tuple[Line, ...]
    samples: Mapping[Settings, Sequence[Sample]]  # by which sides are judged
    command: str = ""  # that of the terminal, which compares the same again
    replaced: str = ""  # what is to be said of another comparison that was in the directory

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """Which sides serve best, in each setting, by the rule of `verdict`."""
        names = {side.sweep.experiment.scenario.name for side in self.sides}
        of = names.pop() if len(names) == 1 else ""
        return tuple(verdict.answer(samples, of, settings) for settings, samples in self.samples.items())

    @property
    def without_chance(self) -> list[str]:
        """The sides with several seeds that are one run, at least in one setting."""
        found = [
            side.label
            for place, side in enumerate(self.sides)
            if any(line.seeds > 1 and line.samples[place] == 1 for line in self.lines)
        ]
        return list(dict.fromkeys(found))

    def told_of_chance(self) -> str:
        """Says, if it is so, that seeds had no influence, and which key would give them one; else nothing."""
        found = self.without_chance
        if not found:
            return ""
        seeds = max(line.seeds for line in self.lines)
        of = "" if len(found) == len(self.sides) else ", ".join(found)
        world = next(side.sweep.experiment.on for side in self.sides if side.label in found)
        return chance.none_told(seeds, of, world)

    def frame(self) -> Any:
        """Returns a frame of pandas: a row for each line and side, with its mean and its difference from the first."""
        import pyarrow as pa

        rows = [row for line in self.lines for row in _rows_of(line, self.sides)]
        return frame_of(pa.Table.from_pylist(rows))

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(index=False, float_format="{:.4g}".format, na_rep="", notebook=True))

    def to_json(self) -> dict[str, Any]:
        """Returns what `compare --json` prints, and what is stored."""
        sides = [
            {"label": one.label, "sweep": str(one.sweep.path), "disturbed": len(one.sweep.disturbed)}
            for one in self.sides
        ]
        told = {"chance": self.told_of_chance()} if self.without_chance else {}
        judged = [verdict.judged(samples, settings) for settings, samples in self.samples.items()]
        return {
            "format": FORMAT,
            "sides": sides,
            **told,
            "lines": [line.to_json() for line in self.lines],
            "answers": [one.to_json() for one in self.answers],
            "judged": judged,
            "command": self.command,
        }


def _rows_of(line: Line, sides: Sequence[Side]) -> Iterator[dict[str, Any]]:
    about = {**dict(line.settings), "measure": line.measure.name, "name": line.name, "unit": line.measure.unit}
    differences = (None, *line.differences)
    for side, one, difference in zip(sides, line.sides, differences, strict=True):
        apart = difference.interval if difference else None
        yield {
            **about,
            "side": side.label,
            "mean": one.value,
            "low": one.low,
            "high": one.high,
            "difference": apart.value if apart else None,
            "difference_low": apart.low if apart else None,
            "difference_high": apart.high if apart else None,
            "verdict": difference.verdict if difference else None,
        }


def items(given: Sequence[str | Path | Mapping[str, Any] | Experiment]) -> list[tuple[str, Experiment, Path | None]]:
    """Returns name, experiment and directory (of a sweep that is there) of what is compared."""
    return [_item(one, place) for place, one in enumerate(given)]


def _item(given: Any, place: int) -> tuple[str, Experiment, Path | None]:
    if isinstance(given, Experiment):
        return given.called, given, None
    if isinstance(given, Mapping):
        found = reading.load(given)
        return found.name or f"{found.called} {place + 1}", found, None
    path = Path(given)
    if results.is_sweep(path):
        return path.name, results.load(path).experiment, path
    if path.is_dir():
        manifest = rundir.read_manifest(path)
        kept = Scenario(manifest["scenario"], manifest["file"], kept=str(path / rundir.OWN))
        return path.name, reading.of_scenario(kept), path
    return path.stem, reading.load(given), None


def compare(
    given: Sequence[tuple[str, Experiment, Path | None]],
    *,
    seeds: Any = None,
    measure: Sequence[str] = (),
    by: str = "",
    how: How = ONE_MACHINE,
    watcher: Watcher | None = None,
    root: Path = Path("runs"),
    out: Path | None = None,
    command: str = "",
) -> Comparison:
    """Runs what is not run yet, and compares all sides with the first; writes what it found into a directory.

    Several items are compared with each other, each point with those of the same settings. Of one item, the values of
    one of its keys (`by`; else the first that varies) are compared with each other. `command` is kept with the results.
    """
    if out:
        _refuse_others(out)
    wanted = _seeds(given, seeds)
    ran = [
        (label, _ran(replace(one, seeds=wanted, until=None), path, how, watcher, root)) for label, one, path in given
    ]
    sides = _of_one(ran[0][1], by) if len(ran) == 1 else _of_several(_distinct(ran))
    lines = tuple(_lines(sides, [find(key) for key in measure]))
    path = out or _default_path(sides, root)
    found = Comparison(path, sides, lines, _samples(sides), command)
    told = found.to_json()
    found = replace(found, replaced=_replaced(path, told))
    store.parents(path / FILE)
    store.together({path / FILE: store.dump(told), path / FELT: store.dump(_felt(sides))})
    return found


def _felt(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Returns the distributions of what people feel, added over seeds, of each side in each setting, as curves."""
    sweeps = {id(side.sweep): side.sweep for side in sides}
    if not all(sweep.experiment.delays for sweep in sweeps.values()):
        return []  # of one side alone nothing can be compared
    found = {place: list(delays.distributions(sweep.delays)) for place, sweep in sweeps.items()}
    return [
        {"settings": dict(settings), "side": side.label, "part": one.part, "name": one.name, **one.curve()}
        for settings in _common(sides)
        for side in sides
        for one in found[id(side.sweep)]
        if one.point == side.points[settings] and one.part in delays.FELT
    ]


def _default_path(sides: Sequence[Side], root: Path) -> Path:
    folder = "-vs-".join(dict.fromkeys(side.label for side in sides))[:_LONGEST].replace("/", "-").replace(" ", "-")
    made_of = store.dump([[side.label, str(side.sweep.path)] for side in sides])
    return root / "compare" / f"{folder}-{store.sha256(made_of.encode())[:8]}"


def is_comparison(path: Path) -> bool:
    """Returns true for the directory of a comparison."""
    return (path / FILE).is_file()


def _refuse_others(path: Path) -> None:
    """Refuses a directory that holds something else: a page of a comparison would replace its page."""
    if path.exists() and not (path.is_dir() and (is_comparison(path) or not any(path.iterdir()))):
        raise MistakeError(f"--out {path}: holds something else; a comparison needs a directory of its own")


def _replaced(path: Path, told: Mapping[str, Any]) -> str:
    """Says that another comparison was in the directory; nothing if this one has all of it."""
    if not is_comparison(path):
        return ""
    try:
        before = store.read_json(path / FILE)
        was, now = (_compared(one) for one in (before, told))
    except (store.StoreError, KeyError, TypeError):
        return f"note: {path} held a comparison that cannot be read, which this one has replaced"
    if was[:2] == now[:2] and was[2] <= now[2]:
        return ""
    labels, seeds, measures = was
    return (
        f"note: {path} held another comparison ({', '.join(labels)}; {seeds} seeds, {len(measures)} measures), which "
        "this one has replaced; its runs are kept, and its command makes it again"
    )


def _compared(told: Mapping[str, Any]) -> tuple[list[str], int, set[tuple[str, str]]]:
    """Returns what a comparison is of: labels, number of seeds, measures."""
    lines = told["lines"]
    seeds = max((line["seeds"] for line in lines), default=0)
    return [side["label"] for side in told["sides"]], seeds, {(line["part"], line["measure"]) for line in lines}


def _seeds(given: Sequence[tuple[str, Experiment, Path | None]], seeds: Any) -> tuple[int, ...]:
    there = {path: kept for _, _, path in given if path and (kept := _of_another_world(path))}
    if there:
        found = {int(kept.manifest["seed"]) for kept in there.values()}
        if len(found) > 1 or (seeds is not None and set(reading.seeds(seeds)) != found):
            told = ", ".join(f"{path} has seed {kept.manifest['seed']}" for path, kept in there.items())
            raise MistakeError(f"a run outside of the simulator is compared with the seed that it has: {told}")
        return tuple(found)
    if seeds is not None:
        return reading.seeds(seeds)
    return next((one.seeds for _, one, _ in given if len(one.seeds) > 1), SEEDS)


def _ran(experiment: Experiment, path: Path | None, how: How, watcher: Watcher | None, root: Path) -> Sweep:
    out = results.default_path(experiment, root / "sweeps")
    if not path:
        experiment = _with_distributions(experiment, out)
    if path and (kept := _of_another_world(path)):
        # It is stored apart from simulated runs of the same scenario, which it must never stand for.
        world, hashed = kept.manifest["options"]["on"], store.sha256(kept.files[rundir.SUMMARY])
        out = out.with_name(f"{out.name}-{world}-{hashed[:8]}")
        how = replace(how, had=_summary_by_seed(kept))
    elif path and not results.is_sweep(path):
        how = replace(how, had=_had(path, experiment))
    elif path and path != out:
        how = replace(how, reuse=(path,))
    done = runner.run(experiment, out, how, watcher)
    if done.sweep is None:
        raise InterruptedCompareError(f"{done.finished} of {done.runs} runs are finished")
    return done.sweep


def _with_distributions(experiment: Experiment, out: Path) -> Experiment:
    """Returns the experiment so that it keeps distributions, unless runs without them are stored already."""
    if experiment.on != worlds.SIM or tree(experiment.scenario.text).get("output", {}).get("series") is False:
        return experiment
    kept = replace(experiment, delays=True)
    plain_only = not runner.is_stored(kept, out) and runner.is_stored(replace(experiment, delays=False), out)
    return experiment if plain_only else kept


def _of_another_world(path: Path) -> rundir.Kept | None:
    """Returns the run of a directory, if it did not run in the simulator."""
    if results.is_sweep(path):
        return None
    kept = rundir.read(path)
    return kept if kept.manifest.get("options", {}).get("on", "sim") != "sim" else None


def _had(path: Path, experiment: Experiment) -> dict[int, bytes]:
    """Returns the run of a run directory by its seed, if the experiment runs the same; own files may have changed."""
    kept = rundir.read(path)
    same = kept.manifest["versions"].get("core_sha256") == core_fingerprint() and not (path / rundir.OWN).exists()
    same = same and not experiment.paths and experiment.scenario.text == kept.manifest["scenario"]
    return _summary_by_seed(kept) if same else {}


def _summary_by_seed(kept: rundir.Kept) -> dict[int, bytes]:
    disturbed = (kept.manifest.get("wire") or {}).get("disturbed_by", [])
    text = json.dumps({"cpu_s": 0.0, "summary": kept.summary, "disturbed": disturbed})
    return {int(kept.manifest["seed"]): work.packed(text)}


def _distinct(ran: Sequence[tuple[str, Sweep]]) -> list[tuple[str, Sweep]]:
    """Gives sides of the same name numbers."""
    labels = [label for label, _ in ran]
    return [
        (f"{label} {place + 1}" if labels.count(label) > 1 else label, sweep)
        for place, (label, sweep) in enumerate(ran)
    ]


def _settings(point: Point, but: str = "") -> Settings:
    return tuple((path, shown(value)) for path, value in point.settings.items() if path != but)


def _of_several(ran: Sequence[tuple[str, Sweep]]) -> tuple[Side, ...]:
    sides = tuple(Side(label, sweep, {_settings(point): point.index for point in sweep.points}) for label, sweep in ran)
    if not any(all(settings in side.points for side in sides) for settings in sides[0].points):
        raise MistakeError("these have no point with the same settings: nothing can be compared")
    return sides


def _of_one(sweep: Sweep, by: str) -> tuple[Side, ...]:
    paths = sweep.experiment.paths
    if by and by not in paths:
        raise MistakeError(f"{by!r} does not vary; {', '.join(paths) or 'nothing'} does")
    if not paths:
        raise MistakeError("there is one side only: name two files, runs or sweeps, or --vary a key")
    by = by or paths[0]
    found: dict[str, dict[Settings, int]] = {}
    for point in sweep.points:
        found.setdefault(shown(point.settings[by]), {})[_settings(point, by)] = point.index
    if len(found) == 1:
        raise MistakeError(f"{by} has one value only: there is nothing to compare it with")
    return tuple(Side(label, sweep, points) for label, points in found.items())


def _common(sides: Sequence[Side]) -> list[Settings]:
    """Returns the settings that all sides have."""
    return [settings for settings in sides[0].points if all(settings in side.points for side in sides)]


def _samples(sides: Sequence[Side]) -> dict[Settings, list[Sample]]:
    """Returns the quantities by which sides are judged, in each setting, over the seeds that all have."""
    sweeps = {id(side.sweep): side.sweep for side in sides}
    runs = {place: quantities.by_point(sweep) for place, sweep in sweeps.items()}
    found = {}
    for settings in _common(sides):
        of_sides = [runs[id(side.sweep)][side.points[settings]] for side in sides]
        seeds = [seed for seed in of_sides[0].seeds() if all(seed in one.seeds() for one in of_sides)]
        ended = set().union(*(one.ended() for one in of_sides))
        found[settings] = [
            Sample(side.label, one.values(seeds, ended), side.sweep.samples(side.points[settings], seeds))
            for side, one in zip(sides, of_sides, strict=True)
        ]
    return found


def _lines(sides: Sequence[Side], wanted: Sequence[Measure]) -> Iterator[Line]:
    chosen = wanted or [find(key) for key in COMPARED]
    values = {
        (id(sweep), measure.key): sweep.values(measure.key)
        for sweep in {id(side.sweep): side.sweep for side in sides}.values()
        for measure in chosen
    }
    for settings in _common(sides):
        for measure in chosen:
            of_sides = [values[id(side.sweep), measure.key] for side in sides]
            for name in _names(of_sides, measure, bool(wanted)):
                by_seed = [
                    of_side[name].get(side.points[settings], {}) for of_side, side in zip(of_sides, sides, strict=True)
                ]
                if any(value is not None for of_side in by_seed for value in of_side.values()):
                    yield _line(settings, measure, name, sides, by_seed)


def _names(of_sides: Sequence[Mapping[str, Any]], measure: Measure, wanted: bool) -> list[str]:
    names = [name for name in of_sides[0] if all(name in of_side for of_side in of_sides)]
    twice = measure.part != RUN and measure.name in _ALSO_OF_THE_RUN
    return [] if twice and len(names) == 1 and not wanted else names


def _line(
    settings: Settings,
    measure: Measure,
    name: str,
    sides: Sequence[Side],
    by_seed: Sequence[Mapping[int, float | None]],
) -> Line:
    seeds = [seed for seed in by_seed[0] if all(seed in of_side for of_side in by_seed)]
    columns = [[of_side[seed] for seed in seeds] for of_side in by_seed]
    samples = tuple(side.sweep.samples(side.points[settings], seeds) for side in sides)
    means = tuple(_mean(column, count) for column, count in zip(columns, samples, strict=True))
    differences = tuple(
        difference(side.label, measure, columns[0], column, min(samples[0], count))
        for side, column, count in zip(sides[1:], columns[1:], samples[1:], strict=True)
    )
    return Line(settings, measure, name, len(seeds), means, differences, samples)


def _mean(column: Sequence[float | None], samples: int) -> Interval:
    known = [value for value in column if value is not None]
    if not known or len(known) < len(column):
        return Interval(math.nan, math.nan, math.nan)
    return statistics.mean(known, samples)


def difference(
    label: str, measure: Measure, first: Sequence[float | None], other: Sequence[float | None], samples: int
) -> Difference:
    """Returns how a side differs from the first, by their values seed by seed.

    `samples` is the number of different runs of the side that has fewer.
    """
    pairs = [(a, b) for a, b in zip(first, other, strict=True) if a is not None and b is not None]
    if not pairs or len(pairs) < len(first):
        return Difference(label, Interval(math.nan, math.nan, math.nan), None, MISSING)
    interval = statistics.mean([b - a for a, b in pairs], samples)
    base = math.fsum(a for a, _ in pairs) / len(pairs)
    share = interval.value / abs(base) if base else None
    if interval.known:
        return Difference(label, interval, share, _verdict(interval, measure, samples))
    return Difference(label, interval, share, _without_interval(pairs, samples))


def _without_interval(pairs: Sequence[tuple[float, float]], samples: int) -> str:
    """Returns what is said of differences which have no interval."""
    if len(pairs) == 1:
        return ONE_SEED
    if all(a == b for a, b in pairs):
        return SAME
    return NO_CHANCE if samples == 1 else ALIKE


def _verdict(interval: Interval, measure: Measure, samples: int) -> str:
    if interval.low <= 0 <= interval.high:
        return NOTHING
    if not statistics.excludes_zero(interval, samples, SURE):
        return MORE_SEEDS
    if not measure.better:
        return LARGER if interval.value > 0 else SMALLER
    return BETTER if (interval.value > 0) == (measure.better == HIGHER) else WORSE
