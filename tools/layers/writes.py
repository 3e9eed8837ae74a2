"""Finds calls in Python that change the disk, which only the store may do."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache

# Methods of paths and functions of modules, whatever they are called on.
METHODS = {
    "hardlink_to", "mkdir", "rmdir", "savefig", "symlink_to", "touch", "unlink", "write_bytes", "write_csv",
    "write_table", "write_text",
}  # fmt: skip
OF_MODULES = {
    "os": {
        "chmod", "ftruncate", "link", "makedirs", "mkdir", "open", "remove", "removedirs", "rename", "renames",
        "replace", "rmdir", "symlink", "truncate", "unlink",
    },
    "shutil": {"copy", "copy2", "copyfile", "copyfileobj", "copytree", "move", "rmtree"},
}  # fmt: skip
_WRITING = set("wax+")


def wrong_writes(files: Mapping[str, str], home: str, known: frozenset[tuple[str, str]]) -> Iterator[str]:
    """Returns calls that change the disk outside of `home`, except known ones."""
    found = [(file, line, call) for file, text in files.items() if file.endswith(".py") for line, call in calls(text)]
    for file, line, call in found:
        if not file.startswith(home) and (file, call) not in known:
            yield f"{file}:{line}: {call} changes the disk; only {home} may, so that nothing is left half written"
    for file, call in sorted(known - {(file, call) for file, _, call in found}):
        yield f"[[writes.known]]: {file} has no {call} any more; remove its row"


@cache
def calls(text: str) -> tuple[tuple[int, str], ...]:
    """Returns the calls in a module that change the disk: their lines, and the last names of what is called."""
    tree = ast.parse(text)
    named = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in OF_MODULES
        for alias in node.names
        if alias.name in OF_MODULES[node.module]
    }
    found = ((node, _changes(node, named)) for node in ast.walk(tree) if isinstance(node, ast.Call))
    return tuple((node.lineno, call) for node, call in found if call)


def _changes(node: ast.Call, named: Mapping[str, str]) -> str:
    if isinstance(node.func, ast.Name):
        writes = node.func.id == "open" and _writes(node, 1)
        return "open" if writes else named.get(node.func.id, "")
    if not isinstance(node.func, ast.Attribute):
        return ""
    name, of = node.func.attr, node.func.value
    module = of.id if isinstance(of, ast.Name) else ""
    if module in OF_MODULES:
        return name if name in OF_MODULES[module] else ""
    if name in METHODS or (name == "open" and _writes(node, 1 if module in ("gzip", "io", "lzma") else 0)):
        return name
    # A path is replaced by, or renamed to, one other; texts and values are replaced by two or by keywords.
    return name if name in ("rename", "replace") and len(node.args) == 1 and not node.keywords else ""


def _writes(node: ast.Call, place: int) -> bool:
    """Returns true unless the mode of an `open` is a text that only reads."""
    modes = [word.value for word in node.keywords if word.arg == "mode"] + node.args[place : place + 1]
    return any(not isinstance(mode, ast.Constant) or bool(_WRITING & set(str(mode.value))) for mode in modes)
