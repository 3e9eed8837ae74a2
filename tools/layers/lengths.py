"""Finds functions and files that are longer than the limits. Tests may be longer."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from layers import rust


def wrong_rust(files: Mapping[str, str], function: int, file: int) -> Iterator[str]:
    """Returns functions and files of Rust above the limits, in lines; `files` are texts by their paths below src."""
    for parsed in rust.without_tests(files).values():
        lines = parsed.root.end_point.row - sum(
            parsed.source.count(b"\n", begin, end) + 1 for begin, end in parsed.test_spans
        )
        if lines > file:
            yield f"{parsed.name}: {lines} lines without its tests; at most {file}"
        for node in parsed.nodes.get("function", []):
            length = node.end_point.row - node.start_point.row + 1
            name = node.child_by_field_name("name")
            if length > function and name is not None:
                line = node.start_point.row + 1
                yield f"{parsed.name}:{line}: {parsed.text(name)} has {length} lines; at most {function}"


def wrong_python(files: Mapping[str, str], function: int, file: int) -> Iterator[str]:
    """Returns functions and files of Python above the limits, in lines."""
    for path, text in sorted(files.items()):
        lines = len(text.splitlines())
        if lines > file:
            yield f"{path}: {lines} lines; at most {file}"
        for node in ast.walk(ast.parse(text, path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > function:
                    yield f"{path}:{node.lineno}: {node.name} has {length} lines; at most {function}"
