"""Lists what a crate makes public: one line for each item with its signature.

The list is read from the syntax of the source. So it needs no compiler, does not depend on its version, and takes a
second. The JSON output of rustdoc needs a nightly compiler and changes with it. A limitation: items which a macro makes
are listed as they stand in the macro, with its placeholders, followed by the rows of its call.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from layers import law, rust
from layers.check import texts
from layers.graph import Module

if TYPE_CHECKING:
    from tree_sitter import Node

Item = tuple[Module, str]
KINDS = {
    "const_item", "enum_item", "function_item", "function_signature_item", "static_item", "struct_item", "trait_item",
    "type_item", "associated_type", "union_item",
}  # fmt: skip
HEAD = """# Everything that the crate {name} makes public, made by `tools/public-api --write`.
# A change of this file is a change of what others may use.
"""


def main() -> int:
    """Compares the lists with the source, or writes them; returns the exit code."""
    parser = argparse.ArgumentParser(description="Lists what crates make public, and shows what has changed.")
    parser.add_argument("--write", action="store_true", help="write docs/api/ anew")
    arguments = parser.parse_args()
    changes = list(changed(law.ROOT, write=arguments.write))
    if changes and not arguments.write:
        print(*changes, sep="\n", file=sys.stderr)
        print("the public API has changed: if that is meant, `tools/public-api --write`", file=sys.stderr)
        return 1
    return 0


def changed(root: Path, *, write: bool = False) -> Iterator[str]:
    """How the lists in docs/api differ from the source; writes them if asked to."""
    for name, crate in law.read().crates.items():
        if not crate.pure:
            continue
        file = root / "docs" / "api" / f"{name}.txt"
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        listed = lines(texts(root / "crates" / name / "src", "**/*.rs"))
        after = HEAD.format(name=name) + "".join(f"{line}\n" for line in listed)
        label = file.relative_to(root).as_posix()
        yield from difflib.unified_diff(before.splitlines(), after.splitlines(), label, label, "", "", 0, "")
        if write and before != after:
            file.parent.mkdir(exist_ok=True)
            file.write_text(after, encoding="utf-8")


def lines(files: Mapping[str, str]) -> list[str]:
    """The list of one crate: texts of its files by their paths below src."""
    return _Listing(rust.without_tests(files)).lines()


class _Listing:
    """The items of a crate by the module that defines them, and the blocks `impl`."""

    def __init__(self, parsed: Mapping[Module, rust.File]) -> None:
        self.crate = rust.index(parsed)
        self.scopes: dict[Module, tuple[rust.File, Node]] = {}
        self.items: dict[Item, tuple[rust.File, Node]] = {}
        self.impls: dict[Item, list[tuple[rust.File, Node]]] = {}
        for module, file in parsed.items():
            for scope, body in rust.scopes(file, module):
                self.scopes[scope] = (file, body)
        for scope, (file, body) in self.scopes.items():
            for node in body.named_children:
                name = node.child_by_field_name("name")
                if node.type in KINDS and name is not None and not file.in_tests(node):
                    self.items[scope, file.text(name)] = (file, node)
                if node.type == "impl_item" and not file.in_tests(node):
                    self.impls.setdefault(self._subject(file, scope, node), []).append((file, node))

    def _subject(self, file: rust.File, scope: Module, node: Node) -> Item:
        """Returns the type of an `impl`."""
        subject = node.child_by_field_name("type")
        assert subject is not None
        path = re.findall(r"\w+", re.sub(r"<.*", "", file.text(subject).lstrip("&"), flags=re.DOTALL)) or [""]
        return self.crate.definition(scope, path) or (scope, path[-1])

    def lines(self) -> list[str]:
        """Returns all lines, sorted within each module, and the modules in order."""
        found: dict[Module, list[str]] = {}
        self.module((), found)
        return [line for module in sorted(found) for line in sorted(set(found[module]))]

    def module(self, module: Module, found: dict[Module, list[str]]) -> None:
        """Adds the public items of a module, and those of the public modules in it."""
        file, body = self.scopes[module]
        listed = found.setdefault(module, [f"pub mod {'::'.join(module)}"] if module else [])
        for node in body.named_children:
            if file.in_tests(node):
                continue
            name = node.child_by_field_name("name")
            text = file.text(name) if name is not None else ""
            if node.type == "mod_item" and public(file, node) and (*module, text) in self.scopes:
                self.module((*module, text), found)
            elif node.type == "use_declaration" and public(file, node):
                listed += self.handed_on(module, file, node)
            elif node.type in KINDS and public(file, node):
                listed += self.item(file, node, (*module, text), (module, text))
            elif node.type in ("macro_definition", "macro_invocation", "expression_statement"):
                listed += macro(file, node, module)

    def handed_on(self, module: Module, file: rust.File, node: Node) -> Iterator[str]:
        """Returns the lines of a `pub use`: those of the item if its own module is private."""
        for path, name in rust.uses(file.text(node)):
            yield f"pub use {'::'.join((*module, name))} = {'::'.join(path)}"
            item = self.crate.definition(module, path)
            if item in self.items and not self.reachable(item[0]):
                yield from self.item(*self.items[item], (*module, name), item)

    def reachable(self, module: Module) -> bool:
        """True if every module down to this one is public."""
        for i in range(len(module)):
            file, body = self.scopes[module[:i]]
            declared = (n for n in body.named_children if n.type == "mod_item" and public(file, n))
            if module[i] not in {rust.child_name(file, node) for node in declared}:
                return False
        return True

    def item(self, file: rust.File, node: Node, path: tuple[str, ...], item: Item) -> Iterator[str]:
        """Returns the lines of an item with its fields, variants and methods, under its public path."""
        yield signature(file, node, "::".join(path))
        body = node.child_by_field_name("body")
        if node.type in ("enum_item", "struct_item", "trait_item") and body is not None:
            yield from parts(file, node, body, "::".join(path))
        derives = [text.partition("derive(")[2] for text in attributes(file, node)]
        derived = [name.split("::")[-1] for text in derives for name in re.findall(r"[\w:]+", text)]
        if derived:
            yield f"derive {'::'.join(path)}: {', '.join(sorted(derived))}"
        for where, block in self.impls.get(item, []):
            yield from implemented(where, block, "::".join(path))


def public(file: rust.File, node: Node) -> bool:
    """Returns true for `pub`, but not for `pub(crate)` and others that limit it to the crate."""
    return any(file.text(child) == "pub" for child in node.children if child.type == "visibility_modifier")


def attributes(file: rust.File, node: Node) -> Iterator[str]:
    """Returns the attributes before an item."""
    before = node.prev_named_sibling
    while before is not None and before.type in ("attribute_item", "line_comment", "block_comment"):
        if before.type == "attribute_item":
            yield file.text(before)
        before = before.prev_named_sibling


def signature(file: rust.File, node: Node, path: str) -> str:
    """Returns an item on one line, without its body, and with its path in place of its name."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    assert name is not None
    shown = body is not None and body.type == "ordered_field_declaration_list"
    end = body.start_byte if body is not None and not shown else node.end_byte
    text = file.source[node.start_byte : name.start_byte].decode() + path
    text += fields(file, node, body) if shown and body is not None else file.source[name.end_byte : end].decode()
    text = flat(text).removesuffix(";").rstrip().removesuffix("where").rstrip()
    return text if text.startswith("pub ") else f"pub {text}"


def fields(file: rust.File, node: Node, body: Node) -> str:
    """Returns the fields of a tuple struct, with `_` for private ones."""
    name = node.child_by_field_name("name")
    assert name is not None
    shown, seen = [], False
    for child in body.named_children:
        if child.type == "visibility_modifier":
            seen = file.text(child) == "pub"
        elif child.type not in ("attribute_item", "line_comment", "block_comment"):
            shown.append(f"pub {file.text(child)}" if seen else "_")
            seen = False
    before, after = file.source[name.end_byte : body.start_byte], file.source[body.end_byte : node.end_byte]
    return f"{before.decode()}({', '.join(shown)}){after.decode()}"


def flat(text: str) -> str:
    """Returns code on one line."""
    text = re.sub(r"\s+", " ", re.sub(r"//[^\n]*", " ", text)).strip()
    return re.sub(r",? ([)\]>])", r"\1", re.sub(r"([(\[]) ", r"\1", text))


def parts(file: rust.File, node: Node, body: Node, path: str) -> Iterator[str]:
    """Returns the public fields of a struct, all variants of an enum, or all items of a trait."""
    for child in body.named_children:
        name = child.child_by_field_name("name")
        if name is None or file.in_tests(child):
            continue
        inner = f"{path}::{file.text(name)}"
        if child.type == "field_declaration" and public(file, child):
            kind = child.child_by_field_name("type")
            yield f"pub {inner}: {flat(file.text(kind)) if kind is not None else '_'}"
        elif child.type == "enum_variant":
            yield flat(f"pub {inner}{file.source[name.end_byte : child.end_byte].decode()}")
        elif node.type == "trait_item" and child.type in KINDS:
            default = " { .. }" if child.child_by_field_name("body") is not None else ""
            yield signature(file, child, inner) + default


def implemented(file: rust.File, node: Node, path: str) -> Iterator[str]:
    """Returns the public items of an `impl`, or one line for the `impl` of a trait."""
    trait, body = node.child_by_field_name("trait"), node.child_by_field_name("body")
    end = body.start_byte if body is not None else node.end_byte
    if trait is not None:
        yield f"{flat(file.source[node.start_byte : end].decode())} @ {path}"
        return
    for child in body.named_children if body is not None else []:
        name = child.child_by_field_name("name")
        if child.type in KINDS and name is not None and public(file, child) and not file.in_tests(child):
            yield signature(file, child, f"{path}::{file.text(name)}")


def macro(file: rust.File, node: Node, module: Module) -> Iterator[str]:
    """Returns the public items in the definition of a macro, and the rows of a call, without expanding them."""
    if node.type == "expression_statement":
        if not node.named_children or node.named_children[0].type != "macro_invocation":
            return
        node = node.named_children[0]
    name = node.child_by_field_name("name" if node.type == "macro_definition" else "macro")
    if name is None:
        return
    label = "::".join((*module, file.text(name) + "!"))
    text = re.sub(r"(?m)^\s*//.*$", "", file.text(node))
    if node.type == "macro_definition":
        for match in re.finditer(r"\bpub (?:const |unsafe )*(?:fn|struct|enum|trait|type|const|static) [^{;=]*", text):
            yield f"{label} {flat(match[0])}"
    else:
        for row in re.split(r",\s*\n|;\s*\n", text[text.index("!") + 1 :].strip()[1:-1]):
            if flat(row):
                yield f"{label} {flat(row)}"
