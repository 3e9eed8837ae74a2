"""The playground: its presets run, and the module in a page computes what the lab computes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Command
from penstock import link
from penstock._penstock import Simulation

ROOT = Path(__file__).parents[1]
PLAYGROUND = ROOT / "web" / "playground"
ENGINE = ROOT / "target" / "playground" / "engine.js"
PRESETS = sorted((PLAYGROUND / "presets").glob("*.toml"))


def preset(path: Path) -> list[str]:
    """The scenario of a preset with its own discipline and with those beside it."""
    text = path.read_text(encoding="utf-8")
    title, beside, look = text.splitlines()[:3]
    assert title.startswith("# ") and look.startswith("# Look at: ")
    own = text.split('[aqm]\nname = "')[1].split('"')[0]
    names = [own, *(name.strip() for name in beside.removeprefix("# beside:").split(","))]
    return [text.replace(f'[aqm]\nname = "{own}"', f'[aqm]\nname = "{name}"') for name in names]


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_preset_runs_with_each_of_its_disciplines(path: Path) -> None:
    for text in preset(path):
        run = Simulation(text, link.FILE)
        run.advance(3.0)
        assert json.loads(run.summary())["bottlenecks"][0]["packets"] > 0


def test_what_presets_say_is_so() -> None:
    """The drops of PINK, and the share of one flow beside thirty idle connections."""
    dsl, idle = (
        preset(PLAYGROUND / "presets" / name)[at] for name, at in (("01-dsl.toml", 2), ("06-pink-idle.toml", 0))
    )
    summaries = []
    for text in (dsl, idle):
        run = Simulation(text, link.FILE)
        run.advance(1e6)
        summaries.append(json.loads(run.summary()))
    queue = summaries[0]["bottlenecks"][0]
    assert queue["aqm"] == "pink" and queue["drops_aqm"] + queue["drops_overflow"] == 0
    assert queue["queue_delay_ms"]["p90"] < 10
    # 10 Mbit/s are 9.6 of payload; a share of 1/31 would be 0.3.
    assert summaries[1]["flows"][0]["goodput_bps"] > 9e6


needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs node: apt-get install nodejs")


def in_node(files: tuple[str, ...], expression: str) -> object:
    """The value of an expression after these files of the page."""
    text = "\n".join((PLAYGROUND / "src" / name).read_text(encoding="utf-8") for name in files)
    program = f"{text}\nconsole.log(JSON.stringify({expression}))"
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


@needs_node
def test_the_page_reads_and_writes_units_as_scenarios_do() -> None:
    found = in_node(
        ("units.js",),
        """[[150e3, 999.6e3, 12.5e6, 1e9].map(PS.units.rateText), [0.25, 1, 12.34, 600].map(PS.units.delayText),
        ["1Mbit/s", "10kbit/s", "5ms", "1e3"].map(PS.units.rate), ["250us", "2s", "1p"].map(PS.units.delayMs),
        ["5ms", "0.95", "true", "-1e-3", "[1, 2]", "a b"].map(PS.units.typed),
        PS.units.literal({ name: "pie", target: "5ms", ecn: true, list: [1, 2] }), PS.units.spaced("10Mbit/s")]""",
    )
    assert found == [
        ["150kbit/s", "1Mbit/s", "12.5Mbit/s", "1Gbit/s"],
        ["250us", "1ms", "12.3ms", "600ms"],
        [1e6, 1e4, None, None],
        [0.25, 2000, None],
        ['"5ms"', "0.95", "true", "-1e-3", "[1, 2]", '"a b"'],
        '{ name = "pie", target = "5ms", ecn = true, list = [1, 2] }',
        "10 Mbit/s",
    ]


@needs_node
def test_a_direction_with_a_rate_of_its_own_is_steered_alone() -> None:
    found = in_node(
        ("units.js", "dom.js", "controls.js"),
        """["rate", "reverse_rate", "delay", "loss"].map((key) =>
            PS.controls.stepOf({ rate: "9Mbit/s", reverse_rate: "1Mbit/s", delay: "5ms" }, key))""",
    )
    assert found == [
        {"step": "rate", "direction": "forward"},
        {"step": "rate", "direction": "reverse"},
        {"step": "delay", "direction": None},
        {"step": "loss", "direction": None},
    ]


@needs_node
def test_samples_are_kept_in_order_and_goodput_is_smoothed() -> None:
    """Two rows of one queue and one flow, 0.25 s apart, so that a new value counts half; at first no packet left."""
    found = in_node(
        ("rows.js",),
        """(() => {
            const rows = new PS.Rows(12, 1, 1, 0.25);
            rows.add(Float32Array.of(0.25, 100, NaN, 3, 1, 0, 8, 10, 5, 7, 20, 80));
            rows.add(Float32Array.of(0.5, 200, 2, 4, 0, 1, 4, 10, 5, 9, 21, 40));
            for (let i = 0; i < 2000; i++) rows.add(new Float32Array(12));
            const [delay, flow] = [rows.queue("delay"), rows.flow("goodput", 0)];
            return [rows.mean(delay, 0, 1),
                rows.at(0, delay), rows.at(1, delay), rows.at(1, rows.queue("sent")), rows.at(1, flow),
                rows.counted("drops"), rows.counted("marks"), rows.counted("lost"), rows.at(1, rows.flow("cwnd", 0)),
                rows.rowAt(0.5), rows.rowAt(-3), rows.count];
        })()""",
    )
    assert found == [None, None, 2, 6, 60, 7, 1, 1, 9, 1, 0, 2002]


@needs_node
def test_what_is_missing_is_a_gap_and_a_dash() -> None:
    """A delay in 0.1 s, then none for 0.3 s, then two; the flow begins with the third sample."""
    found = in_node(
        ("units.js", "rows.js", "charts.js"),
        """(() => {
            const rows = new PS.Rows(12, 1, 1, 0.1);
            const delays = [5, NaN, NaN, NaN, 7, 8], rates = [NaN, NaN, 40, 40, 40, 40];
            delays.forEach((delay, i) => {
                rows.add(Float32Array.of((i + 1) / 10, 0, delay, 0, 0, 0, 0, 1, 1, NaN, NaN, rates[i]));
            });
            const round = (pieces) => pieces.map((piece) => piece.map(([t, value]) => [Math.round(10 * t), value]));
            const whole = { first: 0, last: 6, group: 1 };
            return [round(PS.charts.pieces(rows, rows.queue("delay"), whole)),
                round(PS.charts.pieces(rows, rows.flow("srtt", 0), whole)),
                [1, 2].map((row) => rows.at(row, rows.flow("goodput", 0))), rows.mean(rows.queue("delay")),
                PS.units.told(rows.mean(rows.queue("delay"), 1, 4), "ms"), PS.units.told(0, "ms"),
                PS.units.told(NaN, "%")];
        })()""",
    )
    pieces = [[[1, 5]], [[5, 7], [6, 8]]]
    assert found == [pieces, [], [None, 40], pytest.approx(20 / 3), "–", "0 ms", "–"]


@needs_node
@pytest.mark.skipif(not ENGINE.is_file(), reason="needs the playground: make playground")
def test_the_module_computes_what_the_lab_computes() -> None:
    names = ("pie", "dualpi2-prague-and-cubic", "changing-link", "lte-cell")
    texts = [(ROOT / "examples" / f"{name}.toml").read_text(encoding="utf-8") for name in names]
    texts = [text.replace('duration = "', 'duration = "1s" # "', 1) for text in texts]
    texts = [text.replace("warmup", "# warmup", 1) for text in texts]
    program = PLAYGROUND / "check" / "summaries.mjs"
    done = subprocess.run(
        ["node", program, ENGINE], input=json.dumps(texts), capture_output=True, text=True, check=True, timeout=120
    )
    for name, text, theirs in zip(names, texts, json.loads(done.stdout), strict=True):
        run = Simulation(text, link.FILE)
        run.advance(1e6)
        assert theirs == run.summary(), name


def test_docs_play_says_how_to_build_it_or_where_it_is(penstock: Command) -> None:
    done = penstock("docs", "play")
    if ENGINE.is_file():
        assert done.stdout.startswith("file://") and done.stdout.strip().endswith("playground/index.html")
    else:
        assert done.returncode == 2 and "make playground" in done.stderr
