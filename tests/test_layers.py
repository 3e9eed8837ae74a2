"""The rules of tools/layers.toml: each catches what is planted against it, and the tree has nothing of the kind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from layers import api, check, crates, graph, imports, law, lengths, page, rust

ROOT = law.ROOT
RULES = law.read()


def test_the_tree_keeps_its_layers() -> None:
    assert list(check.violations(ROOT, RULES)) == []


# Python.


@pytest.fixture(scope="module")
def python() -> dict[str, str]:
    """The files of the package."""
    return check.texts(ROOT / "python", "**/*.py", "**/*.pyi")


def planted_in(files: dict[str, str], file: str, line: str) -> list[str]:
    """What is wrong after a line is written into a function at the end of a file."""
    text = f"{files[file]}\n\ndef planted() -> None:\n    {line}\n"
    return list(check.wrong_package({**files, file: text}, RULES))


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("penstock/claims/ledger.py", "from penstock import plots", "claims must not know plots"),
        ("penstock/claims/ledger.py", "from penstock.plots.style import figure", "claims must not know plots"),
        ("penstock/claims/ledger.py", "from ..plots import style", "claims must not know plots"),
        ("penstock/claims/ledger.py", "from .. import plots as p", "claims must not know plots"),
        ("penstock/claims/ledger.py", "import penstock.plots.pink", "claims must not know plots"),
        ("penstock/claims/ledger.py", "import importlib; importlib.import_module('penstock.plots')", "not know plots"),
        ("penstock/claims/ledger.py", "__import__('penstock.plots.pink')", "claims must not know plots"),
        (
            "penstock/claims/ledger.py",
            "from importlib import import_module as im; im('..plots', 'x')",
            "not know plots",
        ),
        ("penstock/papers/pink_c/claims.py", "from ...plots import style", "must not know penstock.plots"),
        ("penstock/papers/pink_c/claims.py", "from . import figures", "must not know penstock.papers.pink_c.figures"),
        ("penstock/reference/red.py", "from ..engine import run", "reference must not know engine"),
        ("penstock/reference/red.py", "from penstock import run", "reference must not know lab"),
        ("penstock/rundir.py", "from penstock import _penstock", "rundir must not know _penstock"),
        ("penstock/rundir.py", "from ._penstock import Simulation", "rundir must not know _penstock"),
        ("penstock/rundir.py", "from penstock.cli import main", "rundir must not know cli"),
        ("penstock/claims/ledger.py", "import matplotlib.figure", "only penstock.plots may import matplotlib"),
        ("penstock/claims/ledger.py", "__import__('matplotlib')", "only penstock.plots may import matplotlib"),
        ("penstock/rundir.py", "from rich import print", "only penstock.cli may import rich"),
        (
            "penstock/engine.py",
            "import socket",
            "only penstock.datagrams, penstock.verify, penstock.wire may import socket",
        ),
        ("penstock/engine.py", "import urllib.request", "only nobody may import urllib"),
        ("penstock/rundir.py", "name = 'x'; __import__(name)", "__import__ brings in code by a name"),
        ("penstock/rundir.py", "import importlib; importlib.import_module('a' + 'b')", "import_module brings in code"),
        ("penstock/rundir.py", "from importlib import import_module as im; f = im", "im brings in code"),
        ("penstock/rundir.py", "exec('import penstock.cli')", "exec brings in code"),
        ("penstock/rundir.py", "import runpy; runpy.run_path('x')", "run_path brings in code"),
    ],
)
def test_an_import_against_the_rules_is_caught(python: dict[str, str], file: str, line: str, message: str) -> None:
    found = planted_in(python, file, line)
    assert any(message in wrong and wrong.startswith(f"{file}:") for wrong in found), found


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("Path('x').write_text('y')", "write_text"),
        ("Path('x').write_bytes(b'y')", "write_bytes"),
        ("open('x', 'w').write('y')", "open"),
        ("open('x', mode='ab')", "open"),
        ("open('x', mode)", "open"),
        ("Path('x').open('r+')", "open"),
        ("import os; os.replace('x', 'y')", "replace"),
        ("import os; os.open('x', os.O_WRONLY)", "open"),
        ("from os import rename as r; r('x', 'y')", "rename"),
        ("Path('x').replace(Path('y'))", "replace"),
        ("Path('x').mkdir(parents=True)", "mkdir"),
        ("Path('x').unlink()", "unlink"),
        ("import shutil; shutil.rmtree('x')", "rmtree"),
        ("from shutil import copytree; copytree('x', 'y')", "copytree"),
        ("import pyarrow.parquet as pq; pq.write_table(table, 'x')", "write_table"),
    ],
)
def test_a_write_outside_of_the_store_is_caught(python: dict[str, str], line: str, call: str) -> None:
    [wrong] = planted_in(python, "penstock/claims/ledger.py", line)
    assert wrong.startswith("penstock/claims/ledger.py:")
    assert f": {call} changes the disk; only penstock/store/ may" in wrong
    assert planted_in(python, "penstock/store/disk.py", line) == []


def test_reading_is_no_write(python: dict[str, str]) -> None:
    reads = "open('x'); open('x', 'rb'); Path('x').open(encoding='utf-8'); 'x'.replace('y', 'z'); Path('x').read_text()"
    assert planted_in(python, "penstock/claims/ledger.py", reads) == []
    bare = {**python, "penstock/verify/recording.py": ""}
    assert any("recording.py has no write_text any more" in wrong for wrong in check.wrong_package(bare, RULES))


def test_an_import_within_the_rules_passes(python: dict[str, str]) -> None:
    assert planted_in(python, "penstock/cli/show.py", "from penstock import plots, claims; import rich.table") == []
    assert planted_in(python, "penstock/plots/one_run.py", "from . import style; import matplotlib.figure") == []


def test_a_package_without_a_row_is_caught(python: dict[str, str]) -> None:
    wrong = list(check.wrong_package({**python, "penstock/planted/__init__.py": ""}, RULES))
    assert wrong == ["[python]: planted is missing; say there whom it may know, and why"]


def test_a_row_that_nothing_needs_is_caught(python: dict[str, str]) -> None:
    part = RULES.python["reference"]
    rules = replace(RULES, python={**RULES.python, "reference": replace(part, may=frozenset({"engine"}))})
    assert "[python]: reference does not need engine any more; remove it from `may`" in check.wrong_package(
        python, rules
    )


# Modules of Rust.


@pytest.fixture(scope="module")
def core() -> dict[str, str]:
    """The files of the core."""
    return check.texts(ROOT / "crates/core/src", "**/*.rs")


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("units.rs", "use crate::coop::Gateway;", "units must not know coop"),
        ("units.rs", "fn planted() { crate::coop::planted(); }", "units must not know coop"),
        ("units.rs", "use super::{rng::Rng, coop as other};", "units must not know coop"),
        ("units.rs", "macro_rules! planted { () => { $crate::coop::planted() } }", "units must not know coop"),
        ("units.rs", "mod inner { fn planted() -> super::super::coop::Gateway { todo!() } }", "must not know coop"),
        ("units.rs", 'fn planted() { println!("{}", crate::coop::planted()); }', "units must not know coop"),
        ("units.rs", "use crate as root; fn planted() { root::coop::planted() }", "units must not know coop"),
        ("packet.rs", "pub use crate::registry::*;", "packet must not know registry"),
        ("aqm/codel.rs", "use super::super::cc::Ack;", "aqm must not know cc"),
    ],
)
def test_a_path_against_the_rules_is_caught(core: dict[str, str], file: str, line: str, message: str) -> None:
    found = check.wrong_crate("core", {**core, file: f"{core[file]}\n{line}\n"}, RULES)
    last = core[file].count("\n") + 2
    assert any(wrong.startswith(f"core/{file}:{last}: ") and message in wrong for wrong in found)


@pytest.mark.parametrize(
    "line",
    [
        "// use crate::coop::Gateway;",
        'const PLANTED: &str = "crate::coop::Gateway";',
        "#[cfg(test)] mod planted { use crate::coop::Gateway; }",
        "#[cfg(test)]\n#[allow(unused)]\nuse crate::coop::Gateway;",
        "/// As [`crate::coop::Gateway`].\nconst PLANTED: u8 = 0;",
    ],
)
def test_comments_texts_and_tests_are_no_paths(core: dict[str, str], line: str) -> None:
    file = {**core, "units.rs": f"{core['units.rs']}\n{line}\n"}
    assert not [wrong for wrong in check.wrong_crate("core", file, RULES) if "coop" in wrong and "units" in wrong]


def crate(**files: str) -> graph.Tree:
    """A crate of small files, with `__` for the slash in a path."""
    return rust.tree("small", {name.replace("__", "/") + ".rs": text for name, text in files.items()})


def members(tree: graph.Tree) -> list[list[str]]:
    """The circles of a tree."""
    return [sorted(circle.members) for circle in graph.circles(tree)]


def test_a_circle_of_three_files_is_caught_and_one_of_two_is_not() -> None:
    three = crate(a="use crate::b::B;", b="use super::c::C;", c="fn f() { crate::a::f() }")
    assert members(three) == [["small::a", "small::b", "small::c"]]
    assert "small/c.rs:1: c names a" in str(next(iter(graph.circles(three))))
    assert members(crate(a="use crate::b::B;", b="use crate::a::A;", c="use crate::a::A;")) == []


def test_a_circle_below_a_folder_is_caught() -> None:
    tree = crate(x__mod="", x__a="use super::b::B;", x__b="use crate::x::c::C;", x__c="use crate::x::a::A;")
    assert members(tree) == [["small::x::a", "small::x::b", "small::x::c"]]


def test_a_module_counts_as_one_with_its_folder() -> None:
    parent = {"x": "mod a; mod b; use a::A; use b::B;", "x__a": "use super::X;", "x__b": "use super::{X, a::A};"}
    assert members(crate(**parent)) == []
    through = crate(**parent, y="use crate::x::a::A;", z="use crate::y::Y;", x__c="use crate::z::Z;")
    assert members(through) == [["small::x", "small::y", "small::z"]]


def test_a_circle_through_names_that_are_handed_on_is_caught() -> None:
    tree = crate(
        a="use crate::hub::Renamed;", b="use crate::hub::*; pub struct B; fn f() { crate::c::g() }",
        c="pub use crate::a::A as C;", hub="pub use crate::b::{self, B as Renamed};",
    )  # fmt: skip
    assert members(tree) == [["small::a", "small::b", "small::c", "small::hub"]] or members(tree) == [
        ["small::a", "small::b", "small::c"]
    ]


def test_a_listed_circle_passes_until_it_is_smaller() -> None:
    three = crate(a="use crate::b::B;", b="use super::c::C;", c="use crate::a::A;")
    listed = (frozenset({"small::a", "small::b", "small::c"}),)
    assert list(graph.wrong_circles(three, listed)) == []
    assert len(list(graph.wrong_circles(three, ()))) == 1
    assert "gone or has fewer members" in next(graph.wrong_circles(crate(a="", b="", c=""), listed))


def test_a_circle_of_python_is_caught() -> None:
    files = {
        "small/__init__.py": "from small.a import A",
        "small/a.py": "def f():\n    from .b import B",
        "small/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import small.c",
        "small/c.py": "import importlib\nimportlib.import_module('.a', 'small')",
    }
    assert members(imports.read("small", files).tree()) == [["small::a", "small::b", "small::c"]]


def test_uses_are_read_whatever_their_form() -> None:
    text = 'pub(in crate::x) use a::{self, b::{c as d, /* e, */ f::*}, g}; // "h"'
    assert rust.uses(text) == [(["a"], "a"), (["a", "b", "c"], "d"), (["a", "b", "f"], "*"), (["a", "g"], "g")]
    assert rust.uses("use ::std::fmt as _;") == [(["std", "fmt"], "_")]


def test_code_that_hides_its_place_is_caught() -> None:
    sources = {"core/src/units.rs": '#[path = "../../sim/src/sim.rs"] mod sim;\ninclude!("other.rs");'}
    assert len(list(crates.wrong_tricks(sources))) == 2
    assert list(crates.wrong_tricks({"core/src/units.rs": '// include!("x")\nlet x = include_str!("y");'})) == []


# Crates.


def dependency(name: str, kind: str | None = None) -> dict[str, object]:
    """A dependency as cargo tells it."""
    return {"name": name, "kind": kind}


@pytest.mark.parametrize(
    ("to", "name", "kind", "message"),
    [
        ("core", "penstock-sim", None, "crate core: must not know sim"),
        ("core", "penstock-sim", "dev", "crate core: its tests must not know sim"),
        ("core", "penstock-trace", "build", "crate core: must not know trace"),
        ("sim", "penstock-emulator", None, "crate sim: must not know emulator"),
        ("core", "socket2", None, "crate core: must not use socket2"),
        ("sim", "getrandom", "build", "crate sim: must not use getrandom"),
    ],
)
def test_a_dependency_against_the_rules_is_caught(to: str, name: str, kind: str | None, message: str) -> None:
    packages = crates.metadata(ROOT)
    assert list(crates.wrong_dependencies(packages, RULES.crates)) == []
    for package in packages:
        if package["name"] == f"penstock-{to}":
            package["dependencies"].append(dependency(name, kind))
    assert any(wrong.startswith(message) for wrong in crates.wrong_dependencies(packages, RULES.crates))


def test_a_dependency_under_another_name_is_caught(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lib.rs").touch()
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "penstock-core"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n'
        f'[target.\'cfg(unix)\'.dependencies]\nunits = {{ package = "penstock-sim", path = "{ROOT}/crates/sim" }}\n'
    )
    assert "crate core: must not know sim" in crates.wrong_dependencies(crates.metadata(tmp_path), RULES.crates)


def test_a_crate_without_a_row_is_caught() -> None:
    packages = [*crates.metadata(ROOT), {"name": "penstock-planted", "dependencies": []}]
    assert any(wrong.startswith("[crates]: planted is") for wrong in crates.wrong_dependencies(packages, RULES.crates))


def test_a_pure_crate_that_does_not_deny_the_lints_is_caught() -> None:
    sources = check.texts(ROOT / "crates", "*/src/**/*.rs")
    bare = {**sources, "sim/src/lib.rs": sources["sim/src/lib.rs"].replace("clippy::disallowed_types", "")}
    assert [wrong[:24] for wrong in crates.wrong_lints(bare, RULES.crates, RULES.lints)] == ["crates/sim/src/lib.rs: m"]


@pytest.mark.parametrize(
    "line",
    [
        "#![allow(clippy::disallowed_types)]",
        '#[expect(clippy::needless, clippy::disallowed_types, reason = "because (so)")] fn f() {}',
        "#[cfg_attr(unix, allow(clippy::all))] fn f() {}",
    ],
)
def test_an_exception_from_the_lints_is_caught(line: str) -> None:
    sources = check.texts(ROOT / "crates", "*/src/**/*.rs")
    sources["sim/src/event.rs"] += line
    wrong = list(crates.wrong_lints(sources, RULES.crates, RULES.lints))
    assert "crates/sim/src/event.rs: allows clippy::disallowed_types, and [[lints]] does not list it" in wrong


def test_an_exception_that_is_gone_is_caught() -> None:
    sources = check.texts(ROOT / "crates", "*/src/**/*.rs")
    sources["trace/src/read.rs"] = ""
    [wrong] = crates.wrong_lints(sources, RULES.crates, RULES.lints)
    assert wrong.startswith("[[lints]]: crates/trace/src/read.rs does not allow")


@pytest.mark.parametrize(
    "line",
    [
        "use std::net::TcpStream;",
        "use std::{net::{self, UdpSocket as Socket}};",
        "fn planted() { let _ = std::os::unix::net::UnixStream::pair(); }",
        "use std::net::*; fn planted(_: &TcpListener) {}",
    ],
)
def test_a_socket_outside_of_its_crate_is_caught(line: str) -> None:
    sources = check.texts(ROOT / "crates", "*/src/**/*.rs")
    at = sources["appliance/src/log.rs"].count("\n") + 2
    planted = {**sources, "appliance/src/log.rs": f"{sources['appliance/src/log.rs']}\n{line}\n"}
    [wrong] = crates.wrong_types(planted, RULES)
    assert wrong.startswith(f"crates/appliance/src/log.rs:{at}: only linux may name ")


@pytest.mark.parametrize(
    "line",
    [
        "// use std::net::TcpStream;",
        'const PLANTED: &str = "TcpStream";',
        "#[cfg(test)] mod planted { use std::net::TcpStream; }",
        "use std::net::SocketAddr;",
    ],
)
def test_addresses_and_tests_are_no_sockets(line: str) -> None:
    sources = check.texts(ROOT / "crates", "*/src/**/*.rs")
    planted = {**sources, "appliance/src/log.rs": f"{sources['appliance/src/log.rs']}\n{line}\n"}
    assert list(crates.wrong_types(planted, RULES)) == []


def test_a_file_that_opens_no_socket_any_more_is_caught() -> None:
    rules = replace(RULES, types_known=frozenset({"appliance/src/log.rs"}))
    sources = check.texts(ROOT / "crates", "appliance/src/*.rs")
    [wrong] = crates.wrong_types(sources, rules)
    assert wrong == "[types]: crates/appliance/src/log.rs names none of them any more; remove its row"


# Each line breaks a rule of clippy.toml.
CAUGHT = """
pub fn clock() -> std::time::Instant { std::time::Instant::now() }
pub fn other_clock() -> bool { std::time::SystemTime::now().elapsed().is_ok() }
pub fn socket() -> bool { std::net::UdpSocket::bind("0.0.0.0:0").is_ok() }
pub fn stream() -> bool { std::net::TcpStream::connect("127.0.0.1:1").is_ok() }
pub fn name() -> bool { use std::net::ToSocketAddrs; "localhost:1".to_socket_addrs().is_ok() }
pub fn environment() -> bool { std::env::var("HOME").is_ok() }
pub fn arguments() -> usize { std::env::args().count() }
pub fn built_with() -> Option<&'static str> { option_env!("HOME") }
pub fn file() -> bool { std::fs::read_to_string("x").is_ok() }
pub fn opened() -> bool { std::fs::File::open("x").is_ok() }
pub fn there() -> bool { std::path::Path::new("x").exists() }
pub fn thread() { drop(std::thread::spawn(|| ())); }
pub fn nap() { std::thread::sleep(std::time::Duration::ZERO) }
pub fn other_program() -> bool { std::process::Command::new("x").status().is_ok() }
pub fn end() { std::process::exit(1) }
pub fn map() -> usize { std::collections::HashMap::<u8, u8>::default().len() }
pub fn set() -> usize { let set: std::collections::HashSet<u8> = [1].into(); set.len() }
pub fn entropy() -> u64 { use std::hash::BuildHasher; std::hash::RandomState::new().hash_one(1) }
pub fn print() { println!("x") }
pub fn complain() { eprintln!("x") }
pub fn look() -> u8 { dbg!(1) }
pub fn logarithm(x: f64) -> f64 { x.ln() }
pub fn power(x: f64) -> f64 { f64::powf(x, 2.5) }
pub fn root(x: f32) -> f32 { x.cbrt() }
pub fn angle(x: f64) -> f64 { x.atan2(1.0) }
pub fn kept() -> bool { static KEPT: std::sync::OnceLock<u8> = std::sync::OnceLock::new(); KEPT.get().is_some() }
"""
PASSED = """
pub fn exact(x: f64) -> f64 { x.sqrt().floor().abs().mul_add(2.0, 1.0) }
pub fn address() -> std::net::Ipv4Addr { std::net::Ipv4Addr::LOCALHOST }
pub fn ordered() -> usize { std::collections::BTreeMap::<u8, u8>::new().len() }
pub fn write(mut out: impl std::io::Write) -> bool { writeln!(out, "x").is_ok() }
#[cfg(test)] mod tests { #[test] fn may() { println!("{:?}", std::time::Instant::now()); } }
"""


def test_clippy_catches_what_a_pure_crate_must_not_touch(tmp_path: Path) -> None:
    shutil.copy(ROOT / "clippy.toml", tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "p"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n')
    lines = f"{crates.DENIED}{CAUGHT}{PASSED}"
    (tmp_path / "src/lib.rs").write_text(lines)
    command = ["cargo", "clippy", "--offline", "--quiet", "--message-format", "json"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "CARGO_TARGET_DIR": str(tmp_path / "target")}, capture_output=True
    )
    told = [message for line in done.stdout.splitlines() if (message := json.loads(line).get("message"))]
    spans = [span for message in told if message["code"] for span in message["spans"] if span["is_primary"]]
    caught = sorted({span["line_start"] for span in spans if span["file_name"] == "src/lib.rs"})
    names = dict(enumerate(lines.splitlines(), 1))
    assert [names[line] for line in caught] == CAUGHT.split("\n")[1:-1]
    assert not [message["message"] for message in told if "does not refer" in message["message"]]


# The public interfaces.


def test_the_lists_of_public_items_are_those_of_the_source() -> None:
    assert list(api.changed(ROOT)) == []


def test_what_others_can_reach_is_listed() -> None:
    files = {
        "lib.rs": "pub mod shown;\nmod hidden;\npub use hidden::Out as Renamed;\npub(crate) use hidden::Kept;",
        "shown.rs": """
            /// A document.
            #[derive(Debug, thiserror::Error)]
            pub struct Pair<T>(pub u8, T) where T: Copy;
            pub(crate) struct Own;
            pub struct Fields { pub a: u8, b: u8 }
            pub enum Kind { One, Two { x: u8 } }
            pub trait Able { const N: u8; type Out; fn one(&self) -> u8 { 1 } fn two(); }
            impl<T: Copy> Pair<T> { pub const fn get(
                self,
            ) -> u8 { self.0 } fn own() {} }
            impl Able for Fields {}
            #[cfg(test)] pub fn tested() {}
            macro_rules! rows { ($($n:ident),*) => { pub fn names() -> u8 { 1 } } }
            rows! { first, second }
        """,
        "hidden.rs": "pub struct Out; impl Out { pub fn f() {} } pub struct Kept;",
    }
    assert api.lines(files) == [
        "pub fn Renamed::f()",
        "pub struct Renamed",
        "pub use Renamed = hidden::Out",
        "derive shown::Pair: Debug, Error",
        "impl Able for Fields @ shown::Fields",
        "pub const fn shown::Pair::get(self) -> u8",
        "pub const shown::Able::N: u8",
        "pub enum shown::Kind",
        "pub fn shown::Able::one(&self) -> u8 { .. }",
        "pub fn shown::Able::two()",
        "pub mod shown",
        "pub shown::Fields::a: u8",
        "pub shown::Kind::One",
        "pub shown::Kind::Two { x: u8 }",
        "pub struct shown::Fields",
        "pub struct shown::Pair<T>(pub u8, _) where T: Copy",
        "pub trait shown::Able",
        "pub type shown::Able::Out",
        "shown::rows! first, second",
        "shown::rows! pub fn names() -> u8",
    ]


# Lengths, and the page.


def test_a_long_function_is_caught() -> None:
    text = "fn short() {}\nfn long() {\n" + "    f();\n" * 59 + "}\n#[test]\nfn t() {}\n"
    assert list(lengths.wrong_rust({"a.rs": text}, 60, 600)) == ["a.rs:2: long has 61 lines; at most 60"]
    tests = "#[cfg(test)]\nmod tests {\n" + text + "}\n"
    assert list(lengths.wrong_rust({"a.rs": tests}, 60, 600)) == []
    python = "class A:\n    def long(self):\n" + "        f()\n" * 60
    assert list(lengths.wrong_python({"a.py": python}, 60, 600)) == ["a.py:2: long has 61 lines; at most 60"]


def test_a_long_file_is_caught() -> None:
    text = "fn f() {}\n" * 601
    [wrong] = lengths.wrong_rust({"a.rs": text}, 60, 600)
    assert "601 lines without its tests" in wrong
    tests = "fn f() {}\n" + "#[cfg(test)]\nmod tests {\n" + text + "}\n"
    assert (
        list(lengths.wrong_rust({"a.rs": tests, "b/tests.rs": text, "b.rs": "#[cfg(test)] mod tests;"}, 60, 600)) == []
    )
    assert list(lengths.wrong_python({"a.py": "f()\n" * 601}, 60, 600)) == ["a.py: 601 lines; at most 600"]


def test_a_page_that_differs_from_the_table_is_caught() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    told = list(page.wrong_page(text.replace("| `trace` | `core` |", "| `trace` | `core`, `sim` |"), RULES.crates))
    assert len(told) == 2 and "missing" in told[1]
    assert "there is no table" in next(page.wrong_page("", RULES.crates))


@pytest.mark.parametrize(
    "key", ['why = "the compiled part"', 'holds = "the Python extension"', 'why = "figures have one style"']
)
def test_a_rule_without_its_reason_is_refused(key: str) -> None:
    text = law.FILE.read_text(encoding="utf-8")
    assert key in text
    with pytest.raises((law.LawError, KeyError)):
        law.parse(text.replace(f", {key}", "").replace(key, ""))


# The whole command, on a copy of the sources in which everything below is planted at once.

LONG = "\n".join(f"    step({i});" for i in range(60))
LONG_PYTHON = "\n".join(f"    step({i})" for i in range(60))
# Kind, file, what is written at its end (or a pair: what becomes what), and what has to be told of it.
PLANTED: list[tuple[str, str, str | tuple[str, str], str]] = [
    (
        "a crate of ours",
        "crates/trace/Cargo.toml",
        ("[dependencies]", '[dependencies]\npenstock-sim = { path = "../sim" }'),
        "crate trace: must not know sim",
    ),
    (
        "a crate of ours in tests",
        "crates/conntrack/Cargo.toml",
        '\n[dev-dependencies.penstock-emulator]\npath = "../emulator"\n',
        "crate conntrack: its tests must not know emulator",
    ),
    (
        "an outside package",
        "crates/core/Cargo.toml",
        ("[dependencies]", '[dependencies]\nsocket2 = "0.6"'),
        "crate core: must not use socket2",
    ),
    (
        "an outside package that builds",
        "crates/grammar/Cargo.toml",
        '\n[build-dependencies]\ngetrandom = "0.3"\n',
        "crate grammar: must not use getrandom",
    ),
    (
        "an outside package under another name",
        "crates/fluid/Cargo.toml",
        ("[dependencies]", '[dependencies]\nlibm2 = { package = "chrono", version = "0.4" }'),
        "crate fluid: must not use chrono",
    ),
    (
        "an outside package of one target",
        "crates/sim/Cargo.toml",
        "\n[target.'cfg(unix)'.dependencies]\nnix = \"0.30\"\n",
        "crate sim: must not use nix",
    ),
    (
        "a crate with lints of its own",
        "crates/web/Cargo.toml",
        ("[lints]\nworkspace = true", '[lints.rust]\nunsafe_code = "allow"'),
        "crates/web/Cargo.toml: must have the lints of the workspace",
    ),
    (
        "upwards in core",
        "crates/core/src/units.rs",
        "use crate::coop::Gateway;",
        "core/units.rs:{}: units must not know coop",
    ),
    (
        "upwards in core by a path",
        "crates/core/src/packet.rs",
        "fn planted() { crate::registry::planted() }",
        "core/packet.rs:{}: packet must not know registry",
    ),
    (
        "upwards in sim",
        "crates/sim/src/segment.rs",
        "use crate::world::World;",
        "sim/segment.rs:{}: segment must not know world",
    ),
    (
        "upwards in linux",
        "crates/linux/src/error.rs",
        "use crate::netlink;",
        "linux/error.rs:{}: error must not know netlink",
    ),
    (
        "upwards in conntrack",
        "crates/conntrack/src/sets.rs",
        "use crate::table::Table;",
        "conntrack/sets.rs:{}: sets must not know table",
    ),
    (
        "upwards in shaper",
        "crates/shaper/src/pool.rs",
        "use crate::{path::Path, direction};",
        "shaper/pool.rs:{}: pool must not know path",
    ),
    (
        "upwards in appliance",
        "crates/appliance/src/socket/message.rs",
        "use crate::run::run;",
        "appliance/socket/message.rs:{}: socket must not know run",
    ),
    (
        "upwards in emulator",
        "crates/emulator/src/carried.rs",
        "use super::emulator::Emulator;",
        "emulator/carried.rs:{}: carried must not know emulator",
    ),
    (
        "upwards in budgets",
        "crates/budgets/src/identity.rs",
        "pub use crate::command::*;",
        "budgets/identity.rs:{}: identity must not know command",
    ),
    (
        "upwards in gateway",
        "crates/gateway/src/held.rs",
        "use crate::daemon::Daemon as Owner;",
        "gateway/held.rs:{}: held must not know daemon",
    ),
    (
        "upwards in grammar",
        "crates/grammar/src/range.rs",
        "macro_rules! planted { () => { $crate::named::planted() } }",
        "grammar/range.rs:{}: range must not know named",
    ),
    (
        "upwards in trace",
        "crates/trace/src/arrival.rs",
        "type Planted = crate::replay::Outcome;",
        "trace/arrival.rs:{}: arrival must not know replay",
    ),
    (
        "upwards in tempest",
        "crates/tempest/src/numbers.rs",
        "use crate::run;\nfn f() { crate::run::run() }",
        "tempest/numbers.rs:{}: numbers must not know run",
    ),
    (
        "upwards in fluid",
        "crates/fluid/src/model.rs",
        "use crate::solver::Solver;",
        "fluid/model.rs:{}: model must not know solver",
    ),
    (
        "upwards in web",
        "crates/web/src/samples.rs",
        "use crate::edit::set;",
        "web/samples.rs:{}: samples must not know edit",
    ),
    (
        "upwards in py",
        "crates/py/src/convert.rs",
        "use crate::own::PyLibrary;",
        "py/convert.rs:{}: convert must not know own",
    ),
    ("a module without a row", "crates/trace/src/planted.rs", "", "[modules.trace]: planted is missing"),
    (
        "a circle of three files",
        "crates/core/src/cc/planted_a.rs",
        "use super::planted_b::B;",
        "a circle of 3 modules: core::cc::planted_a, core::cc::planted_b, core::cc::planted_c",
    ),
    (
        "cycles above their number",
        "crates/core/src/cc/planted_d.rs",
        "use super::planted_e::E;",
        "[counts]: {} import cycles",
    ),
    (
        "imports against the layers above their number",
        "crates/core/src/rng.rs",
        "use crate::slab::Slab;",
        "[counts]: {} imports against the layers",
    ),
    (
        "a socket of TCP",
        "crates/appliance/src/log.rs",
        "use std::net::TcpStream;",
        "crates/appliance/src/log.rs:{}: only linux may name TcpStream",
    ),
    (
        "a socket of UDP",
        "crates/budgets/src/roster.rs",
        "use std::net::UdpSocket as Other;",
        "crates/budgets/src/roster.rs:{}: only linux may name UdpSocket",
    ),
    (
        "a socket of this machine",
        "crates/gateway/src/voice.rs",
        "fn planted(_: &std::os::unix::net::UnixStream) {}",
        "crates/gateway/src/voice.rs:{}: only linux may name UnixStream",
    ),
    (
        "a socket that listens",
        "crates/emulator/src/waits.rs",
        "use std::net::{TcpListener};",
        "crates/emulator/src/waits.rs:{}: only linux may name TcpListener",
    ),
    (
        "an unsafe function",
        "crates/core/src/slab.rs",
        "unsafe fn planted() {}",
        "crates/core/src/slab.rs:{}: only linux/",
    ),
    (
        "an unsafe block",
        "crates/shaper/src/sheet.rs",
        "fn planted() { unsafe { other() } }",
        "crates/shaper/src/sheet.rs:{}: only linux/",
    ),
    (
        "an unsafe trait",
        "crates/emulator/src/machine.rs",
        "struct P;\nunsafe impl Send for P {}",
        "crates/emulator/src/machine.rs:{}: only linux/",
    ),
    (
        "an unsafe attribute",
        "crates/web/src/session.rs",
        "#[unsafe(no_mangle)]\npub fn planted() {}",
        "crates/web/src/session.rs:{}: only linux/",
    ),
    (
        "leave for unsafe",
        "crates/sim/src/digest.rs",
        "#[allow(dead_code, unsafe_code)]\nfn planted() {}",
        "crates/sim/src/digest.rs:{}: only linux/",
    ),
    (
        "unsafe in tests",
        "crates/gateway/tests/planted.rs",
        "#[test]\nfn planted() { unsafe { other() } }",
        "crates/gateway/tests/planted.rs:{}: only linux/",
    ),
    (
        "a clock in a pure crate",
        "crates/shaper/src/talkers.rs",
        "#[allow(clippy::disallowed_methods)]\nfn planted() { std::time::Instant::now(); }",
        "crates/shaper/src/talkers.rs: allows clippy::disallowed_methods",
    ),
    (
        "a file in a pure crate",
        "crates/grammar/src/source.rs",
        '#[expect(clippy::disallowed_methods, reason = "planted")]\nfn planted() { std::fs::read("x"); }',
        "crates/grammar/src/source.rs: allows clippy::disallowed_methods",
    ),
    (
        "a hash map in a pure crate",
        "crates/conntrack/src/pool.rs",
        "#[allow(clippy::disallowed_types)]\nstruct Planted(std::collections::HashMap<u8, u8>);",
        "crates/conntrack/src/pool.rs: allows clippy::disallowed_types",
    ),
    (
        "all lints at once",
        "crates/core/src/recency.rs",
        "#[cfg_attr(unix, allow(clippy::all))]\nfn planted() {}",
        "crates/core/src/recency.rs: allows clippy::disallowed_macros",
    ),
    (
        "a pure crate without its lints",
        "crates/tempest/src/lib.rs",
        (crates.DENIED, ""),
        "crates/tempest/src/lib.rs: must have",
    ),
    (
        "an exception that is gone",
        "crates/trace/src/read.rs",
        ("clippy::disallowed_types", "clippy::planted"),
        "[[lints]]: crates/trace/src/read.rs does not allow",
    ),
    (
        "code from another place",
        "crates/appliance/src/change.rs",
        '#[path = "../../sim/src/run.rs"]\nmod planted;',
        "crates/appliance/src/change.rs: #[path] hides",
    ),
    (
        "included code",
        "crates/budgets/src/tls.rs",
        'include!("planted.rs");',
        "crates/budgets/src/tls.rs: include! hides",
    ),
    (
        "a long function",
        "crates/linux/src/random.rs",
        f"fn planted() {{\n{LONG}\n}}",
        "crates/linux/src/random.rs:{}: planted has 62 lines",
    ),
    ("a long file", "crates/fluid/src/history.rs", "fn f() {}\n" * 601, "crates/fluid/src/history.rs: "),
    (
        "a long function of Python",
        "python/penstock/units.py",
        f"\n\ndef planted():\n{LONG_PYTHON}",
        "python/penstock/units.py:{}: planted has 61 lines",
    ),
    ("a long file of a tool", "tools/layers/page.py", "pass\n" * 601, "tools/layers/page.py: "),
    (
        "upwards in Python",
        "python/penstock/units.py",
        "import penstock.engine",
        "penstock/units.py:{}: units must not know engine",
    ),
    (
        "upwards in Python by a dot",
        "python/penstock/fairness.py",
        "from . import cli",
        "penstock/fairness.py:{}: fairness must not know cli",
    ),
    ("a package without a row", "python/penstock/planted/__init__.py", "", "[python]: planted is missing"),
    (
        "a circle of Python",
        "python/penstock/claims/planted_a.py",
        "from penstock.claims import planted_b",
        "a circle of 3 modules: penstock::claims::planted_a, penstock::claims::planted_b, penstock::claims::planted_c",
    ),
    (
        "figures in a verdict",
        "python/penstock/papers/pink_c/claims.py",
        "from penstock.plots import style",
        "penstock/papers/pink_c/claims.py:{}: penstock.papers.pink_c.claims must not know",
    ),
    (
        "a package of others",
        "python/penstock/ecn.py",
        "import matplotlib.figure",
        "penstock/ecn.py:{}: only penstock.plots may import matplotlib",
    ),
    (
        "a network",
        "python/penstock/columns.py",
        "import urllib.request",
        "penstock/columns.py:{}: only nobody may import urllib",
    ),
    ("another program", "python/penstock/marked.py", "import subprocess", "penstock/marked.py:{}: only "),
    ("a write", "python/penstock/link.py", "open('x', 'w')", "penstock/link.py:{}: open changes the disk"),
    (
        "a write of a path",
        "python/penstock/manual.py",
        "Path('x').write_text('y')",
        "penstock/manual.py:{}: write_text changes the disk",
    ),
    (
        "a removal",
        "python/penstock/capture.py",
        "import shutil; shutil.rmtree('x')",
        "penstock/capture.py:{}: rmtree changes the disk",
    ),
    (
        "a computed import",
        "python/penstock/tcp_trace.py",
        "import importlib; importlib.import_module(name)",
        "penstock/tcp_trace.py:{}: import_module brings in code",
    ),
    ("code from a text", "python/penstock/typed.py", "exec('x')", "penstock/typed.py:{}: exec brings in code"),
    (
        "another table on the page",
        "docs/architecture.md",
        ("| `trace` | `core` |", "| `trace` | `core`, `sim` |"),
        "docs/architecture.md: `| `trace`",
    ),
]
# Further files that circles need.
BESIDE = {
    "crates/core/src/cc/planted_b.rs": "use super::planted_c::C;",
    "crates/core/src/cc/planted_c.rs": "use crate::cc::planted_a::A;",
    "crates/core/src/cc/planted_e.rs": "use super::planted_d::D;",
    "python/penstock/claims/planted_b.py": "def f():\n    from . import planted_c",
    "python/penstock/claims/planted_c.py": "import penstock.claims.planted_a",
}


def written(text: str, change: str | tuple[str, str]) -> str:
    """A text with what is planted in it."""
    if isinstance(change, tuple):
        assert change[0] in text
        return text.replace(*change)
    return f"{text}\n{change}\n"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the check tells of a copy of the sources with everything planted in it."""
    root = tmp_path_factory.mktemp("planted")
    kept = ("Cargo.toml", "crates/**/*.rs", "crates/*/Cargo.toml", "python/**/*.py", "python/**/*.pyi",
            "tools/layers/*.py", "docs/architecture.md")  # fmt: skip
    files = check.texts(ROOT, *kept)
    files |= {f"tools/{name}": (ROOT / "tools" / name).read_text(encoding="utf-8") for name in check.SCRIPTS}
    for _, name, change, _ in PLANTED:
        files[name] = written(files.get(name, ""), change)
    for name, text in {**files, **BESIDE}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return list(check.violations(root, RULES))


@pytest.mark.parametrize(("kind", "file", "change", "message"), PLANTED, ids=[row[0] for row in PLANTED])
def test_what_is_planted_into_a_copy_is_caught(
    told: list[str], kind: str, file: str, change: str | tuple[str, str], message: str
) -> None:
    before, _, after = message.partition("{}")
    found = [wrong for wrong in told if wrong.startswith(before) and after in wrong]
    assert found, f"{kind} in {file}: {change!r} is not caught"


def test_cycles_are_counted_at_every_level() -> None:
    two = crate(a="use crate::b::B;", b="use crate::a::A;", x__mod="", x__c="use super::d::D;", x__d="use super::c::C;")
    assert sorted(sorted(cycle.members) for cycle in graph.cycles(two)) == [
        ["small::a", "small::b"],
        ["small::x::c", "small::x::d"],
    ]


def test_rows_are_ordered_from_the_ground_up() -> None:
    tree = crate(a="use crate::c::C;", b="", c="use crate::d::D;", d="use crate::c::C;")
    assert graph.ordered(tree, ["a", "d", "c", "b"]) == ["d", "c", "a", "b"]
    assert list(graph.upwards(tree, ["d", "c", "a", "b"])) == [
        "small/d.rs:1: d names c, which stands on a higher layer"
    ]


@pytest.mark.parametrize(
    ("count", "now", "message"),
    [
        (law.Count(1), 2, "[counts]: 2 import cycles; at most 1"),
        (law.Count(1, 3), 4, "[counts]: 4 import cycles; at most 3"),
        (law.Count(1, 3), 2, "[counts]: there are 2 import cycles now; write that to `today`"),
        (law.Count(1, 3), 1, "[counts]: cycles keeps its rule now; remove `today`"),
        (law.Count(1, 3), 3, None),
        (law.Count(1), 1, None),
    ],
)
def test_a_count_may_only_fall(count: law.Count, now: int, message: str | None) -> None:
    rules = replace(RULES, counts={"cycles": count, "upwards": law.Count(0)})
    found = list(check.wrong_counts({"cycles": ["a place"] * now, "upwards": []}, rules))
    assert [wrong.split("\n")[0] for wrong in found] == ([message] if message else [])


def test_a_crate_of_several_modules_needs_a_table() -> None:
    rules = replace(RULES, modules={name: rows for name, rows in RULES.modules.items() if name != "web"})
    wrong = list(check.violations(ROOT, rules))
    assert "[modules.web] is missing: crate web has several modules" in wrong


def test_a_home_without_unsafe_is_caught() -> None:
    sources = {"linux/src/port.rs": "// unsafe\nfn f() {}", "core/src/units.rs": 'const A: &str = "unsafe";'}
    assert list(crates.wrong_unsafe(sources, frozenset({"linux/"}))) == [
        "[unsafe]: crates/linux/ has none any more; remove it from `only`"
    ]
