"""What a release consists of: versions that agree, and archives whose bytes depend on nothing but their files."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import penstock
import pytest

PROJECT = Path(__file__).resolve().parents[1]


def tool(name: str) -> ModuleType:
    """Loads a script of tools/ that has no ending."""
    loader = importlib.machinery.SourceFileLoader(f"tools_{name}", str(next(PROJECT.glob(f"tools/*/{name}"))))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_files_agree_on_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = tool("release")
    version = release.versions()
    for name in ("pyproject.toml", "Cargo.toml", "CITATION.cff"):
        (tmp_path / name).write_text((PROJECT / name).read_text().replace(f'"{version}"', '"9.9.9"', 1))
    monkeypatch.setattr(release, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="the versions differ"):
        release.versions()


def test_an_archive_has_the_same_bytes_whatever_the_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = tool("release")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    packed = []
    for place, order, time in (("one", ("a", "b"), 1), ("two", ("b", "a"), 2_000_000_000)):
        (tmp_path / place / "in").mkdir(parents=True)
        for name in order:
            path = tmp_path / place / "in" / name
            path.write_text(name)
            path.chmod(0o600 if place == "one" else 0o644)
            os.utime(path, (time, time))
        release.archive(tmp_path / place, tmp_path / f"{place}.tar.gz")
        packed.append((tmp_path / f"{place}.tar.gz").read_bytes())
    assert packed[0] == packed[1]
    (tmp_path / "two" / "in" / "a").write_text("else")
    release.archive(tmp_path / "two", tmp_path / "two.tar.gz")
    assert (tmp_path / "two.tar.gz").read_bytes() != packed[0]


def test_a_page_of_roff_shows_a_text_as_it_is() -> None:
    manpages = tool("manpages")
    assert manpages.quoted("--seed N") == r"\-\-seed N"
    assert manpages.quoted(".toml is an ending") == r"\&.toml is an ending"
    assert manpages.quoted("a\\b") == r"a\eb"


@pytest.mark.parametrize("name", ["sim", "stacks"])
def test_the_readme_of_a_crate_has_a_test_that_runs(name: str) -> None:
    crate = PROJECT / "crates" / name
    assert f"```rust\n{(crate / 'tests' / 'readme.rs').read_text()}```" in (crate / "README.md").read_text()


def test_the_readmes_count_the_algorithms_of_the_registry() -> None:
    counts = tool("site").counts(penstock.entries())
    for name in ("README.md", "docs/install.md"):
        assert counts in " ".join((PROJECT / name).read_text().split()), name


def test_links_out_of_the_documentation_become_names_of_files() -> None:
    site = tool("site")
    assert site.outside("[the examples](../examples/README.md)") == "[the examples](examples.md)"
    assert site.outside("[tests](../crates/web/tests/sessions.rs)") == "tests (`crates/web/tests/sessions.rs`)"
    assert site.outside("[TCP](tcp.md#ecn)") == "[TCP](tcp.md#ecn)"


def test_a_broken_link_of_the_site_is_found(tmp_path: Path) -> None:
    site = tool("site")
    (tmp_path / "a.html").write_text(
        '<a id="x" href="b.html#y">b</a> <a href="#x">x</a> <a href="https://example.org">o</a>'
    )
    (tmp_path / "b.html").write_text('<p id="y"><a href="a.html#gone">a</a> <img src="no.png"></p>')
    assert site.broken_links(tmp_path) == ["broken: b.html: a.html#gone", "broken: b.html: no.png"]


def test_what_scrolls_can_be_reached_with_a_keyboard() -> None:
    site = tool("site")
    assert site.accessible("<p>a</p><pre>b</pre>") == '<p>a</p><pre tabindex="0">b</pre>'
    assert site.accessible('<th class="head"><p></p></th><th>c</th>') == "<td></td><th>c</th>"


@pytest.mark.skipif(not shutil.which("node"), reason="needs node: apt-get install nodejs")
@pytest.mark.parametrize(("asked", "first"), [("windows", "faq"), ("write congestion control", "your-own")])
def test_the_search_of_the_site_ranks_guides_before_what_has_the_words_more_often(asked: str, first: str) -> None:
    window = f'globalThis.window = {{ location: {{ search: "?q={asked.replace(" ", "+")}" }} }};'
    pages = ["faq", "your-own", "algorithms/pink", "results/ledger", "changelog"]
    ask = f"{json.dumps(pages)}.map((name) => Scorer.score([name, '', '', null, name === '{first}' ? 5 : 15]))"
    program = f"{window}\n{tool('site').scorer()}\nconsole.log(JSON.stringify({ask}))"
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True, timeout=60)
    scores = dict(zip(pages, json.loads(done.stdout), strict=True))
    assert max(scores, key=lambda name: scores[name]) == first
