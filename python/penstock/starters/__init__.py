"""Files to begin with: a new scenario, algorithm or experiment is complete and commented, and runs unchanged."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container, Mapping
from pathlib import Path
from string import Template

from penstock import store
from penstock.mistake import MistakeError
from penstock.starters import crates

_TEMPLATES = Path(__file__).parent / "templates"
# The files of an algorithm in Python: their names, in which {} is that of the algorithm, and their templates.
_OF_ALGORITHM = {
    "{}.py": "KIND.py.txt",
    "test_{}.py": "KIND.test.txt",
    "{}-experiment.toml": "algorithm-experiment.toml",
    "{}.toml": "KIND.toml",
}
ALGORITHMS = ("aqm", "cc", "scheduler", "ack-path")
KINDS = {
    **{kind: {file: name.replace("KIND", kind) for file, name in _OF_ALGORITHM.items()} for kind in ALGORITHMS},
    "scenario": {"{}.toml": "scenario.toml"},
}
# What the experiment of each kind of algorithm measures, and what it varies beside a number of flows.
_MEASURES = {
    "aqm": '"link.queue_delay_p90_ms", "link.utilization", "link.drop_share"',
    "cc": '"flows.goodput_bps", "flows.rtt_p50_ms", "jain"',
    "scheduler": '"jain", "flows.goodput_bps", "link.queue_delay_p90_ms"',
    "ack-path": '"link.queue_delay_p90_ms", "link.utilization", "jain"',
}
_VARY = {
    "aqm": """"aqm" = [{ name = "$FILE.py:$CLASS" }, { name = "codel" }, { name = "droptail" }]
"flows.0.count" = [1, 4, 16]""",
    "cc": """"flows.0.cc" = ["$FILE.py:$CLASS", "cubic-linux", "bbr"]
"topology.limit" = ["25p", "100p", "400p"]""",
    "scheduler": """"aqm" = [{ name = "$FILE.py:$CLASS", flows = 4 }, { name = "drr", flows = 4 }]
"flows.0.cc" = ["cubic-linux", "bbr"]""",
    "ack-path": """"aqm" = [{ name = "$FILE.py:$CLASS" }, { name = "pink" }, { name = "droptail" }]
"flows.0.count" = [1, 4, 16]""",
}
# The files of a crate with an algorithm in Rust: a file in its folder, and its template.
CRATE = {
    "Cargo.toml": "rust/Cargo.toml.txt",
    "src/lib.rs": "rust/lib.rs.txt",
    "src/algorithm.rs": "rust/KIND.rs.txt",
    "src/main.rs": "rust/main.rs.txt",
    "src/emulate.rs": "rust/emulate.rs.txt",
    "scenario.toml": "rust/KIND.toml",
}
# Those of a crate with a transport stack.
STACK = {
    "Cargo.toml": "rust/stack.Cargo.toml.txt",
    "src/lib.rs": "rust/stack.lib.rs.txt",
    "src/main.rs": "rust/stack.main.rs.txt",
    "scenario.toml": "rust/stack.toml",
}
# Of an algorithm that can stand before real packets.
_FEATURES = """\
[[bin]] # the algorithm on real packets: cargo build --release --features emulate
name = "{}-emulate"
path = "src/emulate.rs"
required-features = ["emulate"]

[features]
emulate = ["dep:penstock-emulator"]

"""
_EMULATOR = 'penstock-emulator = { path = "penstock/crates/emulator", optional = true }\n'
# The method of the library that takes each kind.
_WITH = {"aqm": "with_aqm", "cc": "with_control", "scheduler": "with_scheduler", "ack-path": "with_ack_path"}
# The files of the folder of a new experiment: a file in the folder, and its template.
FOLDER = {
    "experiment.toml": "experiment/experiment.toml",
    "scenario.toml": "experiment/scenario.toml",
    "claims.py": "experiment/claims.py.txt",
}
_NAME = re.compile(r"[^\W\d_][\w-]*")  # letters of any alphabet


def write(kind: str, name: str) -> list[Path]:
    """Writes the files of a kind and returns their paths, the scenario last; an existing file is never replaced."""
    stem = place(name)
    words = {"FILE": stem.name, "CLASS": _class_name(stem.name)}
    if kind in ALGORITHMS:
        words |= {"MEASURES": _MEASURES[kind], "VARY": Template(_VARY[kind]).substitute(words)}
    return write_texts(stem, {name: _text(file, words) for name, file in KINDS[kind].items()})


def of_link(name: str, link: str, told: str) -> list[Path]:
    """Writes the scenario of kind "scenario" with this link, of which `told` says where it comes from."""
    stem = place(name)
    text = scenario("scenario", stem.name)
    comments, begin, rest = text.partition("\nname = ")
    _, traffic, flows = rest.partition("\n[tcp]")
    head = rest[: rest.index("[topology]")]
    usual = comments[comments.index("#   penstock run") : comments.index("#\n# Try")]
    return write_texts(
        stem, {"{}.toml": f"# {told}, with the traffic of a home\n#\n{usual}{begin}{head}{link}{traffic}{flows}"}
    )


def scenario(kind: str, name: str) -> str:
    """Returns the scenario that `write` or `write_folder` writes for a kind, one of `KINDS` or "experiment"."""
    file = FOLDER["scenario.toml"] if kind == "experiment" else f"{kind}.toml"
    return _text(file, {"FILE": name, "CLASS": _class_name(name), "NAME": name})


def copy(example: Path, name: str) -> list[Path]:
    """Copies an example and the files beside it that it names; returns their paths, the scenario last."""
    text = example.read_text(encoding="utf-8")
    named = [path for path in sorted(example.parent.iterdir()) if path.is_file() and f'"{path.name}"' in text]
    texts = {path.name: path.read_text(encoding="utf-8") for path in named}
    return write_texts(place(name), {**texts, "{}.toml": text})


def write_crate(kind: str, name: str, source: Path | None) -> Path:
    """Writes the crate of an algorithm in Rust, with the crates that it needs, and returns its folder.

    `source` is a checkout of this project; without it the crates are those of this installation.
    Raises `MistakeError` if the folder exists or there are no crates.
    """
    path = place(name)
    if path.exists() or path.is_symlink():
        raise MistakeError(f"{path}: exists already and is not replaced; choose another name")
    needed = crates.files(needed_by(kind), source)
    words = {
        "NAME": path.name,
        "CRATE": path.name.replace("-", "_"),
        "CLASS": _class_name(path.name),
        "WITH": _WITH.get(kind, ""),
        "FEATURES": _FEATURES.format(path.name) if _is_real(kind) else "",
        "NET": _EMULATOR if _is_real(kind) else "",
    }
    with store.replacing(path) as new:
        for file in files_of_crate(kind):
            new.put(file, _text((STACK if kind == "stack" else CRATE)[file].replace("KIND", kind), words))
        for file, content in needed.items():
            new.put(f"penstock/{file}" if file != "Cargo.lock" else file, content)
    return path


def files_of_crate(kind: str) -> list[str]:
    """Lists the files of a crate with an algorithm of this kind, or with a transport stack."""
    return list(STACK) if kind == "stack" else [file for file in CRATE if _is_real(kind) or "emulate" not in file]


def needed_by(kind: str) -> tuple[str, ...]:
    """Lists the crates of Penstock of which a crate of this kind is built."""
    return crates.REAL if _is_real(kind) else crates.HOSTED if kind == "stack" else crates.SIMULATED


def _is_real(kind: str) -> bool:
    """True if an algorithm of this kind can stand before real packets."""
    return kind not in ("cc", "stack")


def write_folder(name: str, taken: Container[str]) -> Path:
    """Writes the folder of a new experiment and returns its path; `taken` has the names of all other experiments.

    Raises `MistakeError` if the folder exists, even an empty one, or if its experiment would have a name in `taken`.
    """
    path = place(name)
    experiment = path.name.replace("_", "-")
    if experiment in taken:
        raise MistakeError(f"{experiment} is the name of an installed experiment; choose another name")
    if path.exists() or path.is_symlink():
        raise MistakeError(f"{path}: exists already and is not replaced; choose another name")
    words = {"NAME": experiment, "FOLDER": path.name}
    with store.replacing(path) as new:
        for file, template in FOLDER.items():
            new.put(file, _text(template, words))
    return path


def _text(template: str, words: Mapping[str, str]) -> str:
    return Template((_TEMPLATES / template).read_text(encoding="utf-8")).substitute(words)


def write_texts(stem: Path, texts: Mapping[str, str]) -> list[Path]:
    """Writes each text to a file beside `stem`; writes nothing if one of the files exists with another text.

    The keys of `texts` are names in which {} stands for that of `stem`.

    A file with just this text is what an earlier command wrote before it was ended; the others are added to it.
    """
    paths = {stem.with_name(name.format(stem.name)): text for name, text in texts.items()}
    missing = [path for path in paths if not (path.exists() or path.is_symlink())]
    for path, text in paths.items():
        if path not in missing and (not missing or not _has(path, text)):
            raise MistakeError(f"{path}: exists already and is not replaced; choose another name")
    for path in paths.keys() - set(missing):
        store.tidy(path)
    for path in missing:
        try:
            store.create(path, paths[path])
        except FileExistsError:
            raise MistakeError(f"{path}: exists already and is not replaced; choose another name") from None
    return list(paths)


def _has(path: Path, text: str) -> bool:
    return path.is_file() and not path.is_symlink() and store.read(path) == text.encode()


def place(name: str) -> Path:
    """Returns the path of a new file without its ending; raises `MistakeError` if `name` cannot name a file."""
    path = Path(name)
    stem = path.with_suffix("") if path.suffix in (".py", ".toml") else path
    if not _NAME.fullmatch(stem.name):
        raise MistakeError(f"{name!r} is no name for a file; write a letter, then letters, digits, `-` and `_`")
    if not stem.parent.is_dir():
        raise MistakeError(f"{stem.parent}: there is no such directory; `mkdir -p {stem.parent}` makes it")
    return stem


def _class_name(stem: str) -> str:
    """Returns the name of the class in a file: `my-red_2` gives `MyRed2`."""
    name = "".join(part[:1].upper() + part[1:] for part in re.split(r"[-_]", stem))
    return f"{name}_" if keyword.iskeyword(name) else name
