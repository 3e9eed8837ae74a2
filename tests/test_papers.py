"""Experiments are folders: each is complete in itself, and one more folder is one more experiment everywhere."""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from penstock import engine, papers, plots
from penstock.claims.ledger import claims, ledger
from penstock.cli import app
from penstock.experiments import reading
from penstock.mistake import MistakeError
from penstock.report import write_experiment
from penstock.reproduce import EXPERIMENTS, Evidence, Experiment, Outcome, Tempest, columns, folder, load
from penstock.reproduce.files import read
from penstock.reproduce.results import over_seeds, stored
from penstock.scenario import tree
from typer.testing import CliRunner

EXPERIMENT = """\
[experiment]
title = "A toy"
scenario = "scenario.toml"

[vary]
"aqm.name" = ["droptail", { name = "codel", target = "10ms" }]

[reproduction]
source = "document 000, section 6.15"
place = "000, 6.15"
columns = ["use", "toy_flows"]

[reproduction.figures]
toy_use = "Figure 99"

[reproduction.pictures]
toy-picture = "toy_use"

[[settings]]
name = "few"
label = "two flows"

[[settings]]
name = "many"
label = "four flows, CoDel only"
only = { "aqm.name" = ["codel"] }
change = { "flows.*.count" = 4 }

[[reproduction.variants]]
name = "newreno"
change = "NewReno senders"
tcp = { cc = "newreno" }
settings = ["f*"]
"""
SCENARIO = """\
name = "toy"
duration = "3s"
warmup = "1s"
seed = 1

[topology]
kind = "dumbbell"
rate = "2Mbit/s"
delay = "10ms"
limit = "20kB"

[aqm]
name = "droptail"

[tcp]
cc = "cubic"
mss = "1000B"

[[flows]]
kind = "bulk"
count = 2
"""
CLAIMS = '''\
from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, judge
from penstock.reproduce.columns import use
from penstock.reproduce.folder import numbers
from penstock.reproduce.results import Evidence

CLAIMS: list[Claim] = []
MOST = numbers(__name__)["most"]


@of(CLAIMS, "toy")("6.15", "Figure 99", "all of it")
def the_link_is_in_use(run: Evidence) -> Finding:
    """The link is in use."""
    share = run.median_or_zero("droptail", "few", use)
    return judge(f"{share:.0%}", [Comparison(0.5 < share <= MOST, f"{share:.0%} of the link")])
'''
COLUMNS = """\
from penstock.reproduce.columns import Column

COLUMNS = {"toy_flows": Column("toy flows", "{:.0f}", lambda outcome: float(len(outcome.summary["flows"])))}
"""
FIGURES = """\
from penstock.plots.kit import Drawing, Evidence, Figure, colour
from penstock.reproduce.columns import use


def _use(run: Evidence) -> Figure:
    figure = Figure(figsize=(4, 3))
    axis = figure.subplots()
    for place, aqm in enumerate(run.aqms):
        axis.bar(place, run.median_or_zero(aqm, "few", use), color=colour(aqm))
    return figure


FIGURES = {"toy_use": Drawing("How much a toy uses", "One bar for each discipline.", _use)}
"""
FILES = {
    "__init__.py": "",
    "experiment.toml": EXPERIMENT,
    "scenario.toml": SCENARIO,
    "paper.toml": "most = 1.0\n",
    "claims.py": CLAIMS,
    "columns.py": COLUMNS,
    "figures.py": FIGURES,
}


@pytest.fixture
def another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One more directory of experiments, with a folder `toy`."""
    root = tmp_path / "more"
    (root / "toy").mkdir(parents=True)
    for name, text in FILES.items():
        (root / "toy" / name).write_text(text)
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(root)])
    yield root
    for name in [name for name in sys.modules if name.startswith("penstock.papers.toy")]:
        del sys.modules[name]


@pytest.mark.usefixtures("another")
def test_a_folder_is_an_experiment_in_every_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(EXPERIMENTS)
    # Section 6.15 comes after 6.5 of the same document, and before document 001.
    assert names.index("toy") == names.index("pink-c") + 1 == names.index("lindrop") - 1
    assert "toy.the-link-is-in-use" in {claim.id for claim in claims()}
    toy = EXPERIMENTS["toy"]
    cases = list(toy.cases(quick=False, seeds=1))
    assert [(case.setting, case.aqm, case.flows) for case in cases] == [
        ("few", "droptail", 2),
        ("few", "codel", 2),
        ("many", "codel", 4),
    ]
    assert [(case.setting, case.aqm) for case in toy.variant_cases(1)] == [("few", "droptail"), ("few", "codel")]
    assert 'target = "10ms"' in toy.scenario(cases[1], quick=False).text

    monkeypatch.chdir(tmp_path)
    listed = CliRunner().invoke(app, ["list", "experiment", "--json"])
    assert {"name": "toy", "about": "A toy"}.items() <= next(
        entry.items() for entry in json.loads(listed.stdout) if entry["name"] == "toy"
    )
    done = CliRunner().invoke(app, ["reproduce", "toy", "--json"])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert (len(printed["runs"]), len(printed["variants"])) == (3, 2)
    assert [(claim["id"], claim["verdict"]) for claim in printed["claims"]] == [("toy.the-link-is-in-use", "holds")]
    out = tmp_path / "runs/reproduce/toy"
    page = (out / "report.html").read_text(encoding="utf-8")
    for part in ("A toy", "Figure 99", "How much a toy uses", "One bar for each discipline.", "Toy flows"):
        assert part in page
    assert {file.name for file in (out / "figures").iterdir()} == {"toy_use.png", "toy_use.svg"}
    assert "toy" in stored()
    told = CliRunner().invoke(app, ["claims", "--json"])
    assert next(line for line in json.loads(told.stdout) if line["id"] == "toy.the-link-is-in-use")["measured"]


def test_without_its_folder_it_is_in_no_list(another: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [name for name in EXPERIMENTS if name != "toy"]
    assert "toy" in EXPERIMENTS
    shutil.rmtree(another / "toy")
    monkeypatch.setattr(papers, "__path__", papers.__path__[:1])
    assert list(EXPERIMENTS) == before
    assert not any("toy" in claim.needs for claim in claims())
    done = CliRunner().invoke(app, ["reproduce", "toy"])
    assert "no experiment 'toy'" in str(done.exception)


def _plain(text: str) -> str:
    """A scenario without its name and seed, which are not the same in a sweep."""
    return json.dumps({key: value for key, value in tree(text).items() if key not in ("name", "seed")}, sort_keys=True)


FILES_OF_ANY_KIND = [
    experiment.name
    for experiment in EXPERIMENTS.values()
    if reading.is_experiment(folder.text(experiment.package, folder.EXPERIMENT))
]


def test_all_experiments_with_scenarios_are_files_of_any_experiment() -> None:
    assert {name for name, one in EXPERIMENTS.items() if not isinstance(one, Tempest)} == {*FILES_OF_ANY_KIND}


@pytest.mark.parametrize("name", FILES_OF_ANY_KIND)
def test_sweep_takes_the_file_of_a_published_experiment_and_has_its_runs(name: str) -> None:
    experiment = EXPERIMENTS[name]
    found = reading.load(Path(folder.place(experiment.package, folder.EXPERIMENT)))
    published = [experiment.scenario(case, quick=False).text for case in experiment.cases(quick=False, seeds=1)]
    assert sorted(_plain(point.scenario.text) for point in found.points()) == sorted(map(_plain, published))
    assert (found.title, len(found.seeds)) == (experiment.title, experiment.seeds)
    assert reading.from_json(found.described()).described() == found.described()


def test_without_its_folder_each_is_in_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[claims.__module__]
    every = dict(EXPERIMENTS)
    for name in every:
        monkeypatch.setattr(module, "EXPERIMENTS", {other: one for other, one in every.items() if other != name})
        assert not any(name in claim.needs for claim in claims())


def test_a_claim_on_two_experiments_goes_with_either(monkeypatch: pytest.MonkeyPatch) -> None:
    left = {name: experiment for name, experiment in EXPERIMENTS.items() if name != "pink-dsl"}
    monkeypatch.setattr(sys.modules[claims.__module__], "EXPERIMENTS", left)
    assert not any("pink-dsl" in claim.needs for claim in claims())
    assert any("pink-sat" in claim.needs for claim in claims())
    assert "pink-dsl" not in json.dumps([line.to_json() for line in ledger({})])


def test_the_worked_example_of_the_documentation(another: Path) -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    example = re.search(r"## Adding an experiment.*?```toml\n(.*?)```", page, re.DOTALL)
    assert example is not None
    (another / "toy" / "experiment.toml").write_text(example[1])
    toy = read("penstock.papers.toy")
    runs = [*toy.cases(False, 1), *toy.variant_cases(1)]
    assert [(case.aqm, case.variant) for case in runs] == [
        (aqm, variant) for variant in ("", "newreno") for aqm in ("codel", "pie")
    ]
    for case in runs:
        result = engine.simulate(toy.scenario(case, quick=False))
        assert all(column.measure(Outcome(case, "", result.summary, 0.0)) is not None for column in columns.of(toy))


@pytest.mark.parametrize(
    ("tcp", "control", "payload"),
    [
        ("", "cubic", 1448),  # docs/reference/scenarios.md
        ("[tcp]\nsack = true\n", "cubic", 1448),
        ('[tcp]\ncc = "vegas"\nmss = "1.2kB"\n', "vegas", 1200),
        ('[tcp]\ncc = { name = "cubic", beta = 0.8 }\nmss = "500B"\n', "cubic", 500),
    ],
)
def test_keys_of_tcp_that_a_scenario_leaves_out_have_the_defaults(
    another: Path, tcp: str, control: str, payload: int
) -> None:
    (another / "toy" / "scenario.toml").write_text(SCENARIO.replace('[tcp]\ncc = "cubic"\nmss = "1000B"\n', tcp))
    toy = read("penstock.papers.toy")
    plain, varied = next(toy.cases(False, 1)), next(toy.variant_cases(1))
    assert (toy.cc, toy.mss_bytes) == (control, payload)
    assert (toy.cc_of(plain, quick=False), toy.cc_of(varied, quick=False)) == (control, "newreno")
    flows = engine.simulate(toy.scenario(plain, quick=False)).summary["flows"]
    assert {flow["cc"] for flow in flows} == {control}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('columns = ["use"]\nflavour = 3', "no key 'flavour'; there are: name, "),
        ('columns = ["use"]\nkind = "game"', "no kind 'game'; there are: sweep, listed, tempest"),
        ("columns = ", "Invalid value"),
        ("", "missing 1 required"),
    ],
)
def test_a_mistake_in_experiment_toml_is_told(another: Path, wrong: str, told: str) -> None:
    file = another / "toy" / "experiment.toml"
    old = 'columns = ["use", "toy_flows"]' if "columns" in wrong else 'source = "document 000, section 6.15"\n'
    file.write_text(EXPERIMENT.replace(old, wrong))
    with pytest.raises(MistakeError, match=r"toy/experiment.toml: ") as caught:
        read("penstock.papers.toy")
    assert told in str(caught.value)


def test_a_setting_with_an_unknown_key_is_told(another: Path) -> None:
    file = another / "toy" / "experiment.toml"
    file.write_text(EXPERIMENT.replace('label = "two flows"', 'labels = "two flows"'))
    with pytest.raises(MistakeError, match=r"\[settings\] has no key 'labels'; did you mean label"):
        read("penstock.papers.toy")


def test_a_figure_or_column_that_nobody_has_is_told(another: Path) -> None:
    file = another / "toy" / "experiment.toml"
    file.write_text(EXPERIMENT.replace("toy_use =", "toy_misuse =").replace('"toy_flows"]', '"toy_boats"]'))
    toy = read("penstock.papers.toy")
    with pytest.raises(MistakeError, match=r"toy: no figure 'toy_misuse'; there are: toy_use"):
        plots.drawings(toy)
    with pytest.raises(MistakeError, match=r"toy: no column 'toy_boats'; there are: .*toy_flows"):
        columns.of(toy)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda experiment: experiment.name)
def test_every_folder_is_complete(experiment: Experiment) -> None:
    assert experiment.source
    assert list(plots.drawings(experiment)) == list(experiment.figures)
    assert len(columns.of(experiment)) == len(experiment.columns)
    assert set(experiment.pictures.values()) <= experiment.figures.keys()
    for case in (*experiment.cases(quick=False, seeds=1), *experiment.variant_cases(seeds=1)):
        assert case.aqm in experiment.aqms
        assert case.setting in experiment.settings_in_order
    variants = {variant.name for variant in experiment.variants}
    assert {case.variant for case in experiment.variant_cases(1)} <= variants
    assert len(variants) == len(experiment.variants)


def test_no_folder_needs_another_and_nothing_needs_a_folder() -> None:
    python = Path(papers.__file__).parents[1]
    for file in python.rglob("*.py"):
        inside = file.relative_to(python).parts
        own = {"_shared", inside[1]} if inside[0] == "papers" and len(inside) > 2 else set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("penstock.papers"):
                folders = (node.module or "").split(".")[2:3] or [alias.name for alias in node.names]
                assert {*folders} <= own, f"{file}:{node.lineno}"


def test_a_new_algorithm_leaves_every_experiment_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> Any:
        raise AssertionError("an experiment asks what algorithms there are")

    before = {name: _runs(experiment) for name, experiment in EXPERIMENTS.items()}
    packages = [experiment.package for experiment in EXPERIMENTS.values()]
    for name in [name for name in sys.modules if name.startswith(f"{papers.__name__}.")]:
        monkeypatch.delitem(sys.modules, name)
    for listing in ("entries", "schedulers"):
        monkeypatch.setattr(engine, listing, forbidden)
        monkeypatch.setattr(sys.modules["penstock._penstock"], listing, forbidden)
    again = {experiment.name: _runs(experiment) for experiment in map(read, packages)}
    assert again == before


def _runs(experiment: Experiment) -> list[str]:
    cases = (*experiment.cases(False, 1), *experiment.cases(True, 1), *experiment.variant_cases(1))
    return [str(case) for case in cases]


def test_the_median_over_seeds() -> None:
    assert over_seeds([3.0, 1.0, 2.0]) == 2.0
    assert over_seeds([1.0, 2.0]) == 1.5
    assert over_seeds([1.0, None, 2.0]) is None
    assert over_seeds([]) is None


def test_a_report_needs_no_claims_and_no_figures(
    another: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("claims.py", "figures.py", "columns.py", "paper.toml"):
        (another / "toy" / part).unlink()
    text = EXPERIMENT.replace('"use", "toy_flows"', '"use"').replace('toy_use = "Figure 99"', "")
    (another / "toy" / "experiment.toml").write_text(text.replace('toy-picture = "toy_use"', ""))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["reproduce", "toy", "--json"])
    assert done.exit_code == 0, done.output
    found = load(tmp_path / "runs/reproduce/toy")
    assert isinstance(found, Evidence)
    assert "A toy" in write_experiment(found, tmp_path / "again").read_text(encoding="utf-8")
