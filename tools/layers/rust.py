"""Finds which module of a crate names which, from the syntax trees of its files without code for tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import tree_sitter
import tree_sitter_rust

from layers.graph import Module, Reference, Tree

if TYPE_CHECKING:
    from tree_sitter import Node

LANGUAGE = tree_sitter.Language(tree_sitter_rust.language())
PATH = re.compile(r"(?<![\w:$])\$?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+")
HIDDEN = re.compile(r"""'(?:\\.|[^'\\])'""" r'|//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|"(?:\\.|[^"\\])*"', re.DOTALL)
TEST_ONLY = re.compile(r"cfg\s*\(\s*(all\s*\(\s*)?test\b")
QUERY = """
(attribute_item) @attribute
(inner_attribute_item) @inner
(mod_item) @mod
(use_declaration) @use
(scoped_identifier) @path
(scoped_type_identifier) @path
(macro_invocation) @macro
(macro_definition) @macro
(function_item) @function
"""
ITEMS = {
    "const_item", "enum_item", "function_item", "macro_definition", "static_item", "struct_item", "trait_item",
    "type_item", "union_item",
}  # fmt: skip


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(LANGUAGE)


@cache
def _query() -> tree_sitter.Query:
    return tree_sitter.Query(LANGUAGE, QUERY)


@dataclass(eq=False)
class File:
    """The syntax of a file: nodes by kind, without those that are compiled for tests only."""

    name: str
    source: bytes
    root: Node
    nodes: dict[str, list[Node]]
    test_spans: list[tuple[int, int]]
    all_mods: list[Node]
    for_tests: bool

    def in_tests(self, node: Node) -> bool:
        """Returns true inside an item that is compiled for tests only."""
        return self.for_tests or any(begin <= node.start_byte < end for begin, end in self.test_spans)

    def text(self, node: Node) -> str:
        """Returns the text of a node."""
        return self.source[node.start_byte : node.end_byte].decode()


def bare(text: str) -> str:
    """Returns code without comments and without the contents of strings; all lines keep their numbers."""
    return HIDDEN.sub(lambda m: '""' + "\n" * m[0].count("\n"), text)


@cache
def parse(name: str, text: str) -> File:
    """Parses one file."""
    source = text.encode()
    root = _parser().parse(source).root_node
    nodes = tree_sitter.QueryCursor(_query()).captures(root)
    file = File(name, source, root, nodes, [], nodes.get("mod", []), False)
    file.for_tests = any(
        TEST_ONLY.search(file.text(n)) and "cfg_attr" not in file.text(n) for n in nodes.get("inner", [])
    )
    for attribute in nodes.get("attribute", []):
        text = file.text(attribute)
        if "cfg_attr" not in text and TEST_ONLY.search(text):
            item = attribute.next_named_sibling
            while item is not None and item.type in ("attribute_item", "line_comment", "block_comment"):
                item = item.next_named_sibling
            if item is not None:
                file.test_spans.append((item.start_byte, item.end_byte))
    file.nodes = {kind: [n for n in found if not file.in_tests(n)] for kind, found in nodes.items()}
    return file


def words(file: File, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Returns the lines of words in the code of a file, without those in comments, strings and code for tests."""
    source = file.source
    for begin, end in file.test_spans:
        blank = re.sub(rb"[^\n]", b" ", source[begin:end])
        source = source[:begin] + blank + source[end:]
    code = bare(source.decode())
    for match in pattern.finditer(code):
        yield code.count("\n", 0, match.start()) + 1, match[0]


def module_of(name: str) -> Module:
    """Returns the module of a file by its path below src: `aqm/mod.rs` and `aqm.rs` are both `aqm`."""
    parts = name.removesuffix(".rs").split("/")
    if parts[-1] == "mod" or parts == ["lib"]:
        parts.pop()
    return tuple(parts)


def child_name(file: File, node: Node) -> str:
    """Returns the name that a `mod` item declares."""
    name = node.child_by_field_name("name")
    return file.text(name) if name is not None else ""


def inside(file: File, node: Node, base: Module) -> Module:
    """Returns the module that contains a node: that of its file, or an inline module."""
    names = []
    parent = node.parent
    while parent is not None:
        if parent.type == "mod_item":
            names.append(child_name(file, parent))
        parent = parent.parent
    return (*base, *reversed(names))


def without_tests(files: Mapping[str, str]) -> dict[Module, File]:
    """Returns the files of a crate by their modules, without those that a `#[cfg(test)] mod` declares."""
    parsed = {module_of(name): parse(name, text) for name, text in files.items() if not name.startswith("bin/")}
    tests = {
        (*inside(file, node, module), child_name(file, node))
        for module, file in parsed.items()
        for node in file.all_mods
        if file.in_tests(node)
    }
    return {
        module: file
        for module, file in parsed.items()
        if not file.for_tests and not any(module[: len(test)] == test for test in tests)
    }


@dataclass
class Names:
    """The names in one module, and what each stands for."""

    defined: set[str] = field(default_factory=set)
    imported: dict[str, list[str]] = field(default_factory=dict)
    globs: list[list[str]] = field(default_factory=list)


@dataclass
class Crate:
    """The modules of a crate, including inline modules, with the file of each."""

    owner: dict[Module, Module]
    names: dict[Module, Names]

    def resolve(self, module: Module, path: list[str], depth: int = 0) -> Module | None:
        """Returns the module that defines what `path` means in `module`; `None` for other crates and plain names."""
        if depth > 20:
            return None
        at, rest = self._begin(module, path, depth)
        if at is None:
            return None
        for i, name in enumerate(rest):
            if (*at, name) in self.owner:
                at = (*at, name)
                continue
            found = self._through(at, name, rest[i + 1 :], depth) if at in self.names else None
            return found if found is not None else at
        return at

    def definition(self, module: Module, path: list[str]) -> tuple[Module, str] | None:
        """Returns the module which defines what `path` means in `module`, and its name there, through `use`."""
        for _ in range(20):
            if len(path) == 1 and path[0] in self.names[module].defined:
                return module, path[0]
            if len(path) == 1 and path[0] in self.names[module].imported:
                path = self.names[module].imported[path[0]]
                continue
            there = self.resolve(module, path[:-1]) if len(path) > 1 else None
            if there is None or there not in self.names:
                return None
            module, path = there, path[-1:]
        return None

    def _begin(self, module: Module, path: list[str], depth: int) -> tuple[Module | None, list[str]]:
        head, rest = path[0], path[1:]
        if head in ("crate", "$crate"):
            return (), rest
        if head in ("self", "super"):
            at = module if head == "self" else module[:-1]
            while rest and rest[0] == "super":
                at, rest = at[:-1], rest[1:]
            return at, rest
        if (*module, head) in self.owner:
            return module, path
        known = self.names.get(module, Names())
        if head in known.imported and known.imported[head][0] != head:
            return self.resolve(module, [*known.imported[head], *rest], depth + 1), []
        return None, []

    def _through(self, module: Module, name: str, rest: list[str], depth: int) -> Module | None:
        """Returns the origin of a name in `module` that a `use` imports from another module, by name or by `*`."""
        known = self.names[module]
        if name in known.defined:
            return module
        if name in known.imported:
            return self.resolve(module, [*known.imported[name], *rest], depth + 1)
        for path in known.globs:
            there = self.resolve(module, path, depth + 1)
            if there is not None and there != module and there in self.names and depth < 20:
                if name in self.names[there].defined:
                    return there
                found = self._through(there, name, rest, depth + 1)
                if found is not None:
                    return found
        return None


def index(parsed: Mapping[Module, File]) -> Crate:
    """Returns the modules of a crate and the names in them."""
    crate = Crate({}, {})
    for module, file in parsed.items():
        for scope, body in scopes(file, module):
            crate.owner[scope] = module
            names = crate.names.setdefault(scope, Names())
            for item in body.named_children:
                if item.type in ITEMS and (name := item.child_by_field_name("name")) is not None:
                    names.defined.add(file.text(name))
    for module, file in parsed.items():
        for node in file.nodes.get("use", []):
            names = crate.names[inside(file, node, module)]
            for path, known_as in uses(file.text(node)):
                if known_as == "*":
                    names.globs.append(path)
                else:
                    names.imported.setdefault(known_as, path)
    return crate


def scopes(file: File, module: Module) -> Iterator[tuple[Module, Node]]:
    """Returns the modules in a file: its own, and its inline modules."""
    yield module, file.root
    for node in file.nodes.get("mod", []):
        if (body := node.child_by_field_name("body")) is not None:
            yield (*inside(file, node, module), child_name(file, node)), body


def tree(name: str, files: Mapping[str, str]) -> Tree:
    """Reads a crate: the texts of its files by their paths below src."""
    parsed = without_tests(files)
    crate = index(parsed)
    references = set()
    for module, file in parsed.items():
        for here, path, line in _paths(file, module):
            there = crate.resolve(here, path)
            target = crate.owner.get(there) if there is not None else None
            if target is not None and target != module:
                references.add(Reference(module, target, f"{name}/{file.name}", line))
    return Tree(name, frozenset(parsed), tuple(sorted(references)))


@cache
def _paths(file: File, module: Module) -> list[tuple[Module, list[str], int]]:
    """Returns every path of a file, with the module that contains it and its line."""
    return list(_each_path(file, module))


def _each_path(file: File, module: Module) -> Iterator[tuple[Module, list[str], int]]:
    for node in file.nodes.get("use", []):
        here, line = inside(file, node, module), node.start_point.row + 1
        yield from ((here, path, line) for path, _ in uses(file.text(node)))
    longest: dict[int, Node] = {}
    for node in file.nodes.get("path", []):
        if node.start_byte not in longest or longest[node.start_byte].end_byte < node.end_byte:
            longest[node.start_byte] = node
    for node in [*longest.values(), *file.nodes.get("macro", [])]:
        here, line = inside(file, node, module), node.start_point.row + 1
        text = bare(file.text(node))
        for match in PATH.finditer(text):
            yield here, re.split(r"\s*::\s*", match[0]), line + text.count("\n", 0, match.start())


@cache
def uses(text: str) -> list[tuple[list[str], str]]:
    """Returns the paths that a `use` item imports, each with its new name; `*` for all names of a module."""
    body = re.sub(r"^.*?\buse\b", "", bare(text), count=1, flags=re.DOTALL).rstrip().removesuffix(";")
    tokens = re.findall(r"\$?\w+|::|[{},*]", body.replace("r#", ""))
    found, rest = _use_tree(tokens, [])
    if rest:
        raise ValueError(f"cannot read `{text}`")
    return found


def _use_tree(tokens: list[str], prefix: list[str]) -> tuple[list[tuple[list[str], str]], list[str]]:
    """Reads one tree of a `use`, and returns its paths and the tokens after it."""
    path = list(prefix)
    while tokens and tokens[0] not in ("}", ","):
        token, tokens = tokens[0], tokens[1:]
        if token == "{":
            found = []
            while tokens[0] != "}":
                branch, tokens = _use_tree(tokens, path)
                found += branch
                tokens = tokens[1:] if tokens[0] == "," else tokens
            return found, tokens[1:]
        if token == "*":
            return [(path, "*")], tokens
        if token == "as":
            return [(_without_self(path), tokens[0])], tokens[1:]
        if token != "::":
            path.append(token)
    path = _without_self(path)
    return [(path, path[-1])], tokens


def _without_self(path: list[str]) -> list[str]:
    """`a::{self}` is `a`."""
    return path[:-1] if len(path) > 1 and path[-1] == "self" else path
