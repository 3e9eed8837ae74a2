"""The graph of modules that name each other: finds circles, and edges which no table allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from layers.law import Part

Module = tuple[str, ...]


@dataclass(frozen=True, order=True)
class Reference:
    """A place where one module names another."""

    source: Module
    target: Module
    file: str
    line: int


@dataclass(frozen=True)
class Tree:
    """The modules of a crate or of a Python package, and which module names which."""

    name: str
    modules: frozenset[Module]
    references: tuple[Reference, ...]

    def children(self, parent: Module) -> list[Module]:
        """Returns the modules directly below `parent`."""
        return sorted(m for m in self.modules if m[:-1] == parent and m)

    def edges(self, parent: Module) -> dict[tuple[str, str], Reference]:
        """Returns which child of `parent` names which, with the first place. A child includes all modules below it."""
        depth = len(parent)
        found: dict[tuple[str, str], Reference] = {}
        for reference in sorted(self.references, key=lambda r: (r.file, r.line)):
            source, target = reference.source, reference.target
            if source[:depth] != parent or target[:depth] != parent or min(len(source), len(target)) <= depth:
                continue
            if source[depth] != target[depth]:
                found.setdefault((source[depth], target[depth]), reference)
        return found


@dataclass(frozen=True)
class Circle:
    """Modules with the same parent, each of which reaches all others."""

    members: frozenset[str]
    references: tuple[Reference, ...]

    def __str__(self) -> str:
        places = [f"  {r.file}:{r.line}: {'::'.join(r.source)} names {'::'.join(r.target)}" for r in self.references]
        return "\n".join([f"a circle of {len(self.members)} modules: {', '.join(sorted(self.members))}", *places])


def circles(tree: Tree) -> Iterator[Circle]:
    """Returns all circles of more than two modules, at every level of the tree.

    A module counts as one with the files of its own folder, so a parent and its children may name each other.
    """
    yield from (circle for circle in cycles(tree) if len(circle.members) > 2)


def cycles(tree: Tree) -> Iterator[Circle]:
    """Returns all circles of two or more modules, at every level of the tree."""
    parents = {m[:i] for m in tree.modules for i in range(len(m))}
    for parent in sorted(parents):
        edges = tree.edges(parent)
        for group in components(_known(tree, parent)):
            if len(group) > 1:
                places = tuple(ref for (a, b), ref in sorted(edges.items()) if a in group and b in group)
                yield Circle(frozenset("::".join((tree.name, *parent, name)) for name in group), places)


def _known(tree: Tree, parent: Module) -> dict[str, set[str]]:
    """Returns which children of `parent` name which."""
    known: dict[str, set[str]] = {child[-1]: set() for child in tree.children(parent)}
    for source, target in tree.edges(parent):
        known.setdefault(source, set()).add(target)
        known.setdefault(target, set())
    return known


def ordered(tree: Tree, rows: Iterable[str]) -> list[str]:
    """Returns the top modules from the ground up: each after those that it names, and otherwise as in `rows`."""
    known = _known(tree, ())
    circle = {name: group for group in components(known) for name in group}
    left = [*(name for name in rows if name in known), *sorted(set(known) - set(rows))]
    found: list[str] = []
    while left:
        ready = next(name for name in left if known[name] - circle[name] <= set(found))
        left.remove(ready)
        found.append(ready)
    return found


def upwards(tree: Tree, rows: Iterable[str]) -> Iterator[str]:
    """Returns the imports against the layers: a module names one whose row stands below its own in the table."""
    place = {name: i for i, name in enumerate(rows)}
    for (source, target), reference in sorted(tree.edges(()).items()):
        if source in place and target in place and place[source] < place[target]:
            yield f"{reference.file}:{reference.line}: {source} names {target}, which stands on a higher layer"


def components(known: Mapping[str, set[str]]) -> list[set[str]]:
    """Returns the strongly connected components of a graph (Tarjan 1972, with an explicit stack, not recursion)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_nodes: list[str] = []
    found: list[set[str]] = []
    for root in sorted(known):
        if root in number:
            continue
        work = [(root, iter(sorted(known[root])))]
        number[root] = low[root] = len(number)
        open_nodes.append(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in number:
                    number[other] = low[other] = len(number)
                    open_nodes.append(other)
                    work.append((other, iter(sorted(known[other]))))
                    break
                if other in open_nodes:
                    low[node] = min(low[node], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    at = open_nodes.index(node)
                    found.append(set(open_nodes[at:]))
                    del open_nodes[at:]
    return found


def wrong_circles(tree: Tree, known: tuple[frozenset[str], ...]) -> Iterator[str]:
    """Returns circles that are not listed, and listed ones that have fewer members now."""
    found = list(circles(tree))
    for circle in found:
        if not any(circle.members <= listed for listed in known):
            yield str(circle)
    for listed in known:
        ours = [member for member in listed if member.split("::")[0] == tree.name]
        if ours and not any(circle.members == listed for circle in found):
            yield f"[[circles]] with {min(ours)}: this circle is gone or has fewer members now: shorten the list"


def wrong_edges(tree: Tree, parts: Mapping[str, Part], table: str) -> Iterator[str]:
    """Returns edges between the top modules of a tree which its table does not allow, and rows without an edge."""
    there = {module[0] for module in tree.modules if module}
    edges = tree.edges(())
    for name in sorted(there - set(parts)):
        yield f"{table}: {name} is missing; say there whom it may know, and why"
    for name in sorted(set(parts) - there):
        yield f"{table}: there is no module {name}; remove its row"
    for (source, target), reference in sorted(edges.items()):
        if source in parts and target not in parts[source].may:
            yield f"{reference.file}:{reference.line}: {source} must not know {target}: {parts[source].why}"
    for source, part in sorted(parts.items()):
        for target in sorted(part.may - {b for a, b in edges if a == source}):
            if source in there:
                yield f"{table}: {source} does not need {target} any more; remove it from `may`"
