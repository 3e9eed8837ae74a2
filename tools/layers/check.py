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
    "measure/emulate-mtu",
    "measure/pictures",
    "check/prose-sample",
    "public-api",
    "schemas",
    "measure/store-faults",
    "verify-twins",
)

# What is counted, in words.
TITLES = {"cycles": "import cycles", "upwards": "imports against the layers"}


def main() -> int:
    """Prints every violation of a rule; returns the exit code."""
    parser = argparse.ArgumentParser(description="Checks the layers of the code against tools/layers.toml.")
    parser.add_argument("--tables", action="store_true", help="print who knows whom now, as rows for tools/layers.toml")
    parser.add_argument("--count", action="store_true", help="print every cycle, and every import against the layers")
    arguments = parser.parse_args()
    root = law.ROOT
    try:
        rules = law.read()
        if arguments.tables:
            print("\n".join(tables(root, rules)))
            return 0
        counted = counts(trees(root, rules), rules)
        wrong = [] if arguments.count else sorted(set(violations(root, rules)))
    except law.LawError as error:
        print(f"tools/layers.toml: {error}", file=sys.stderr)
        return 1
    for line in wrong:
        print(line, file=sys.stderr)
    if arguments.count:
        print(*(place for places in counted.values() for place in places), sep="\n")
    print(*summary(counted, rules), sep="\n")
    return 1 if wrong else 0


def trees(root: Path, rules: law.Law) -> dict[str, graph.Tree]:
    """Returns the trees of modules by the names of their tables: those of all crates, and of the package of Python."""
    found = {
        f"modules.{name}": rust.tree(name, texts(root / "crates" / name / "src", "**/*.rs")) for name in rules.crates
    }
    found["python"] = imports.read(PACKAGE, texts(root / "python", "**/*.py", "**/*.pyi")).tree()
    return found


def rows(table: str, rules: law.Law) -> Mapping[str, law.Part]:
    """Returns the rows of a table by its name."""
    return rules.python if table == "python" else rules.modules.get(table.removeprefix("modules."), {})


def counts(found: Mapping[str, graph.Tree], rules: law.Law) -> dict[str, list[str]]:
    """Returns every cycle of modules and every import against the layers in the whole source tree."""
    higher = [
        f"tools/layers.toml: crate {name} names {other}, which stands on a higher layer"
        for i, (name, crate) in enumerate(rules.crates.items())
        for other in sorted(crate.may & set(list(rules.crates)[i:]))
    ]
    for table, tree in found.items():
        higher += graph.upwards(tree, rows(table, rules))
    return {"cycles": [str(cycle) for tree in found.values() for cycle in graph.cycles(tree)], "upwards": higher}


def summary(counted: Mapping[str, list[str]], rules: law.Law) -> Iterator[str]:
    """Returns a line for each count, and what the rule allows."""
    for name, title in TITLES.items():
        count = rules.counts[name]
        debt = "" if len(counted[name]) <= count.most else f"; {len(counted[name]) - count.most} too many"
        yield f"{title}: {len(counted[name])} (at most {count.most}{debt})"


def wrong_counts(counted: Mapping[str, list[str]], rules: law.Law) -> Iterator[str]:
    """Returns counts above the rule, or above what the table says of today: that number only falls."""
    for name, title in TITLES.items():
        count, now = rules.counts[name], len(counted[name])
        most = count.most if count.today is None else max(count.most, count.today)
        if now > most:
            yield "\n".join([f"[counts]: {now} {title}; at most {most}", *(f"  {place}" for place in counted[name])])
        elif count.today is not None and now <= count.most:
            yield f"[counts]: {name} keeps its rule now; remove `today`"
        elif count.today is not None and now < count.today:
            yield f"[counts]: there are {now} {title} now; write that to `today`"


def violations(root: Path, rules: law.Law) -> Iterator[str]:
    """Returns all violations in a source tree."""
    found = trees(root, rules)
    yield from wrong_counts(counts(found, rules), rules)
    several = {name for name in rules.crates if len(found[f"modules.{name}"].children(())) > 1}
    for name in sorted(several - set(rules.modules)):
        yield f"[modules.{name}] is missing: crate {name} has several modules"
    packages = crates.metadata(root)
    yield from crates.wrong_dependencies(packages, rules.crates)
    sources = texts(root / "crates", "*/src/**/*.rs")
    yield from crates.wrong_lints(sources, rules.crates, rules.lints)
    yield from crates.wrong_tricks(sources)
    yield from page.wrong_page((root / "docs" / "architecture.md").read_text(encoding="utf-8"), rules.crates)
    yield from crates.wrong_types(sources, rules)
    yield from crates.wrong_unsafe(texts(root / "crates", "**/*.rs"), rules.unsafe_homes)
    yield from crates.wrong_manifests(texts(root / "crates", "*/Cargo.toml"))
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
    """Returns the rows which `tools/layers.toml` needs for the present code, with the reasons that it has.

    They stand from the ground up.
    """
    for table, tree in trees(root, rules).items():
        known = rows(table, rules)
        edges = tree.edges(())
        yield f"[{table}]"
        for name in graph.ordered(tree, known):
            may = ", ".join(f'"{b}"' for a, b in sorted(edges) if a == name)
            yield f'{name} = {{ may = [{may}], why = "{known[name].why if name in known else ""}" }}'
        yield ""


def texts(folder: Path, *patterns: str) -> dict[str, str]:
    """Reads the texts of files, by their paths below a folder."""
    files = sorted(file for pattern in patterns for file in folder.glob(pattern) if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in files}
