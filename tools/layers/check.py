"""The command `tools/check-layers`: runs the checks of all other modules on the source tree."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from layers import crates, graph, imports, law, lengths, page, rust, writes

PACKAGE = "penstock"
# Scripts without a suffix are Python as well.
SCRIPTS = (
    "check-layers",
    "emulate-mtu",
    "pictures",
    "prose-sample",
    "public-api",
    "schemas",
    "store-faults",
    "verify-twins",
)


def main() -> int:
    """Prints every violation of a rule; returns the exit code."""
    parser = argparse.ArgumentParser(description="Checks the layers of the code against tools/layers.toml.")
    parser.add_argument("--tables", action="store_true", help="print who knows whom now, as rows for tools/layers.toml")
    arguments = parser.parse_args()
    root = law.ROOT
    if arguments.tables:
        print("\n".join(tables(root, law.read())))
        return 0
    try:
        wrong = sorted(set(violations(root, law.read())))
    except law.LawError as error:
        wrong = [f"tools/layers.toml: {error}"]
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def violations(root: Path, rules: law.Law) -> Iterator[str]:
    """Returns all violations in a source tree."""
    packages = crates.metadata(root)
    yield from crates.wrong_dependencies(packages, rules.crates)
    sources = texts(root / "crates", "*/src/**/*.rs")
    yield from crates.wrong_lints(sources, rules.crates, rules.lints)
    yield from crates.wrong_tricks(sources)
    yield from page.wrong_page((root / "docs" / "architecture.md").read_text(encoding="utf-8"), rules.crates)
    yield from crates.wrong_types(sources, rules)
    for name in rules.crates:
        yield from wrong_crate(name, texts(root / "crates" / name / "src", "**/*.rs"), rules)
    yield from wrong_package(texts(root / "python", "**/*.py", "**/*.pyi"), rules)
    yield from wrong_lengths(root, rules)


def wrong_crate(name: str, files: Mapping[str, str], rules: law.Law) -> Iterator[str]:
    """Returns the violations between the modules of a crate; `files` are texts by their paths below src."""
    tree = rust.tree(name, files)
    yield from graph.wrong_circles(tree, rules.circles)
    if name in rules.modules:
        yield from graph.wrong_edges(tree, rules.modules[name], f"[modules.{name}]")


def wrong_package(files: Mapping[str, str], rules: law.Law) -> Iterator[str]:
    """Returns the violations between Python modules; `files` are texts by their paths below the folder `python`."""
    python = imports.read(PACKAGE, files)
    tree = python.tree()
    yield from graph.wrong_circles(tree, rules.circles)
    yield from graph.wrong_edges(tree, rules.python, "[python]")
    yield from imports.wrong_homes(python, rules.homes)
    yield from imports.wrong_apart(python, rules.apart)
    yield from imports.wrong_dynamic(python, rules.dynamic)
    yield from writes.wrong_writes(files, rules.store, rules.writes)


def wrong_lengths(root: Path, rules: law.Law) -> Iterator[str]:
    """Returns functions and files that are too long, except listed files."""
    limits = rules.function_lines, rules.file_lines
    found: list[str] = []
    for folder in [*sorted(root.glob("crates/*/")), root / "fuzz"]:
        for part in ("src", "examples", "benches", "fuzz_targets"):
            files = texts(folder / part, "**/*.rs")
            where = (folder / part).relative_to(root)
            found += [f"{where}/{line}" for line in lengths.wrong_rust(files, *limits)]
    python = texts(root, "python/**/*.py", "tools/**/*.py")
    python |= {f"tools/{name}": (root / "tools" / name).read_text(encoding="utf-8") for name in SCRIPTS}
    found += lengths.wrong_python(python, *limits)
    yield from (line for line in found if line.split(":")[0] not in rules.long_files)
    for file in sorted(rules.long_files - {line.split(":")[0] for line in found}):
        yield f"[lengths]: {file} is short enough now; remove it from `known`"


def tables(root: Path, rules: law.Law) -> Iterator[str]:
    """Returns the rows which `tools/layers.toml` needs for the present code, with the reasons that it has."""
    trees = {
        f"modules.{name}": rust.tree(name, texts(root / "crates" / name / "src", "**/*.rs")) for name in rules.modules
    }
    trees["python"] = imports.read(PACKAGE, texts(root / "python", "**/*.py", "**/*.pyi")).tree()
    for table, tree in trees.items():
        rows = rules.python if table == "python" else rules.modules[table.removeprefix("modules.")]
        edges = tree.edges(())
        names = {module[0] for module in tree.modules if module}
        yield f"[{table}]"
        for name in [*(name for name in rows if name in names), *sorted(names - set(rows))]:
            may = ", ".join(f'"{b}"' for a, b in sorted(edges) if a == name)
            yield f'{name} = {{ may = [{may}], why = "{rows[name].why if name in rows else ""}" }}'
        yield ""


def texts(folder: Path, *patterns: str) -> dict[str, str]:
    """Reads the texts of files, by their paths below a folder."""
    files = sorted(file for pattern in patterns for file in folder.glob(pattern) if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in files}
