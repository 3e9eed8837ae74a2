"""Finds which module of a Python package imports which, and which outside packages it imports, in any spelling."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache

from layers.graph import Module, Reference, Tree

# Functions that import modules by names which are computed.
DYNAMIC = {
    "__import__", "compile", "eval", "exec", "exec_module", "import_module", "module_from_spec", "run_module",
    "run_path", "spec_from_file_location", "spec_from_loader",
}  # fmt: skip
IMPORTERS = {"__import__", "import_module"}


@dataclass(frozen=True)
class Import:
    """One import: the full name of what is imported, and where."""

    module: Module
    name: str
    file: str
    line: int


@dataclass
class Python:
    """The imports of all files of a package."""

    package: str
    modules: dict[Module, str] = field(default_factory=dict)
    imports: list[Import] = field(default_factory=list)
    dynamic: list[tuple[str, int, str]] = field(default_factory=list)
    exports: dict[Module, dict[str, str]] = field(default_factory=dict)

    def resolve(self, name: str, depth: int = 0) -> Module | None:
        """Returns the module of this package in which `name` is defined; `None` if the package does not define it."""
        parts = tuple(name.split("."))
        if parts[0] != self.package:
            return None
        at: Module = ()
        for i, part in enumerate(parts[1:], 2):
            if (*at, part) in self.modules:
                at = (*at, part)
            elif self._is_package(at) and part in self.exports.get(at, {}) and depth < 20:
                return self.resolve(".".join((self.exports[at][part], *parts[i:])), depth + 1) or at
            else:
                break
        return at

    def _is_package(self, module: Module) -> bool:
        """Returns true for a package, which may export names that its modules define."""
        return self.modules.get(module, "").endswith("__init__.py")

    def tree(self) -> Tree:
        """Returns the package as a tree of modules."""
        references = set()
        for found in self.imports:
            target = self.resolve(found.name)
            if target is not None and target != found.module:
                references.add(Reference(found.module, target, found.file, found.line))
        return Tree(self.package, frozenset(self.modules), tuple(sorted(references)))


def read(package: str, files: Mapping[str, str]) -> Python:
    """Reads a package: the texts of its files by their paths below the folder that holds it."""
    python = Python(package)
    for file in files:
        parts = tuple(file.removesuffix("i").removesuffix(".py").split("/"))[1:]
        python.modules[parts[:-1] if parts[-1] == "__init__" else parts] = file
    for module, file in python.modules.items():
        if file.endswith(".py"):
            visitor = _visited(package, module, file, files[file])
            python.imports += visitor.imports
            python.dynamic += visitor.dynamic
            python.exports[module] = visitor.exports
    return python


@cache
def _visited(package: str, module: Module, file: str, text: str) -> _Visitor:
    visitor = _Visitor(package, module, file)
    visitor.visit(ast.parse(text, file))
    return visitor


class _Visitor(ast.NodeVisitor):
    """Collects all imports of one file."""

    def __init__(self, package: str, module: Module, file: str) -> None:
        self.module, self.file = module, file
        here = (package, *module)
        self.folder = here if file.endswith("__init__.py") else here[:-1]
        self.importers = set(IMPORTERS)
        self.literal: set[int] = set()
        self.imports: list[Import] = []
        self.dynamic: list[tuple[str, int, str]] = []
        self.exports: dict[str, str] = {}

    def add(self, name: str, line: int) -> None:
        self.imports.append(Import(self.module, name, self.file, line))

    def export(self, name: str, target: str) -> None:
        self.exports[name] = target

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(alias.name, node.lineno)
            self.export(
                alias.asname or alias.name.split(".")[0], alias.name if alias.asname else alias.name.split(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self.absolute(node.module or "", node.level)
        for alias in node.names:
            name = base if alias.name == "*" else f"{base}.{alias.name}"
            self.add(name, node.lineno)
            self.export(alias.asname or alias.name, name)
            if alias.name in DYNAMIC:
                self.importers.add(alias.asname or alias.name)

    def absolute(self, name: str, level: int) -> str:
        """Returns the full name of a module that is written with `level` dots before it."""
        folder = self.folder[: len(self.folder) - level + 1] if level else ()
        return ".".join((*folder, *filter(None, [name])))

    def visit_Call(self, node: ast.Call) -> None:
        if _called(node.func) in self.importers and node.args and isinstance(node.args[0], ast.Constant):
            text = str(node.args[0].value)
            name = text.lstrip(".")
            self.add(self.absolute(name, len(text) - len(name)), node.lineno)
            self.literal.add(id(node.func))
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if (node.id in DYNAMIC or node.id in self.importers) and id(node) not in self.literal:
            self.dynamic.append((self.file, node.lineno, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in DYNAMIC - {"compile", "eval"} and id(node) not in self.literal:
            self.dynamic.append((self.file, node.lineno, node.attr))
        self.generic_visit(node)


def _called(func: ast.expr) -> str:
    """Returns the last name in a call: `import_module` for `importlib.import_module(...)`."""
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def wrong_homes(python: Python, homes: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Returns imports of outside packages by modules other than their homes."""
    for found in python.imports:
        importer = ".".join((python.package, *found.module))
        for package, allowed in homes.items():
            if within(found.name, package) and not any(within(importer, home) for home in allowed):
                yield f"{found.file}:{found.line}: only {', '.join(sorted(allowed)) or 'nobody'} may import {package}"


def wrong_apart(python: Python, apart: tuple[tuple[str, str, str], ...]) -> Iterator[str]:
    """Returns imports between modules which must not import each other, by patterns of their names."""
    tree = python.tree()
    for module, other, why in apart:
        named = [".".join((python.package, *known)) for known in python.modules]
        if not any(fnmatchcase(name, module) for name in named):
            yield f"[[apart]]: there is no module {module}; remove its row"
        for reference in tree.references:
            source, target = (".".join((python.package, *end)) for end in (reference.source, reference.target))
            if fnmatchcase(source, module) and fnmatchcase(target, other):
                yield f"{reference.file}:{reference.line}: {source} must not know {target}: {why}"


def wrong_dynamic(python: Python, allowed: frozenset[tuple[str, str]]) -> Iterator[str]:
    """Returns imports by computed names, except listed ones."""
    for file, line, call in python.dynamic:
        if (file, call) not in allowed:
            yield f"{file}:{line}: {call} brings in code by a name that no reader sees; write the import out"
    for file, call in sorted(allowed - {(file, call) for file, _, call in python.dynamic}):
        yield f"[[dynamic]]: {file} has no {call} any more; remove its row"


def within(module: str, package: str) -> bool:
    """Returns true if `module` is `package` or a module in it."""
    return module == package or module.startswith(package + ".")
