"""The drawing of a scenario's network: nodes, links with rate, delay and discipline, and the flows at each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from penstock.report.kit.model import Bond, Box, Move, Network

Tree = Mapping[str, Any]
Place = tuple[float, float]

LETTER, LINE, GAP = 7.6, 17, 46  # width and height of letters, and the space between boxes, in pixels
_LISTED = 4  # handovers between two cells that are listed
READ = (
    "Boxes are nodes with the flows that begin (before the arrow) and end at them. A dashed link changes while the run "
    "goes on; its numbers are those of the start."
)


def drawing(scenario: Tree) -> Network | None:
    """Draws the network of a scenario; returns `None` for one without links."""
    links, flows = _links(scenario), _flows(scenario)
    if not links:
        return None
    handovers = _handovers(scenario.get("handovers", []))
    places = _places(links, {cell for start, end, _ in handovers for cell in (start, end)})
    texts = {node: [node, *_hosts(node, flows)] for node in places}
    changing = {change["link"] for change in scenario.get("changes", [])}
    bonds = {id(link): _texts(link, link.get("name") in changing) for link in links}
    size = _Size(places, texts, list(bonds.values()), bool(handovers))
    boxes = {node: size.box(node, at) for node, at in places.items()}
    drawn = [_bond(link, boxes, bonds[id(link)], link.get("name") in changing) for link in links]
    moves = [_move(boxes[start], boxes[end], said) for start, end, said in handovers]
    said = f"{len(places)} nodes and {len(links)} links: " + "; ".join(
        f"between {link['a']} and {link['b']} {', '.join(bonds[id(link)])}" for link in links[:12]
    )
    return Network(said, size.width, size.height, list(boxes.values()), drawn, moves, READ)


class _Size:
    """The sizes of a drawing, from the places of its nodes and from its texts."""

    def __init__(
        self, places: Mapping[str, Place], texts: Mapping[str, Sequence[str]], bonds: Any, moves: bool
    ) -> None:
        self.texts = texts
        self.wide = max(self._width(lines) for lines in texts.values())
        self.tall = max(self._height(lines) for lines in texts.values())
        labels = max((self._width(lines) for lines in bonds), default=0.0)
        self.column = self.wide + max(GAP, labels + 24)
        self.row = self.tall + max(GAP, LINE * max((len(lines) for lines in bonds), default=0) + 30)
        self.left = -min(x for x, _ in places.values())
        self.top = max(y for _, y in places.values())
        self.width = round(self.left * self.column + self.wide + 12 + (190 if moves else 0), 1)
        self.height = round(2 * self.top * self.row + self.tall + 12, 1)

    @staticmethod
    def _width(lines: Sequence[str]) -> float:
        return LETTER * max(map(len, lines)) + 18

    @staticmethod
    def _height(lines: Sequence[str]) -> float:
        return LINE * len(lines) + 12

    def box(self, node: str, place: Place) -> Box:
        """Returns the box of a node at a place in columns and rows."""
        lines = self.texts[node]
        x = (place[0] + self.left) * self.column + self.wide / 2 + 6
        y = (self.top - place[1]) * self.row + self.tall / 2 + 6
        return Box(round(x, 1), round(y, 1), round(self._width(lines), 1), self._height(lines), lines)


def _bond(link: Tree, boxes: Mapping[str, Box], texts: Sequence[str], changes: bool) -> Bond:
    a, b = boxes[link["a"]], boxes[link["b"]]
    return Bond(a.x, a.y, b.x, b.y, texts, changes)


def _move(start: Box, end: Box, texts: Sequence[str]) -> Move:
    """Returns an arrow that bends to the right of the boxes, with its text there."""
    side = max(start.x + start.width / 2, end.x + end.width / 2)
    down = 1 if end.y >= start.y else -1
    y0, y1 = start.y + down * start.height / 4, end.y - down * end.height / 4
    bow = side + (70 if down > 0 else 35)
    path = f"M{start.x + start.width / 2} {y0}C{bow} {y0} {bow} {y1} {end.x + end.width / 2} {y1}"
    return Move(path, bow - 12, (y0 + y1) / 2 - 7.5 * len(texts) + (0 if down > 0 else -30), texts)


def _links(scenario: Tree) -> Sequence[Tree]:
    """Returns the links of any kind of topology as those of a graph."""
    topology = scenario.get("topology", {})
    if topology.get("kind") == "graph":
        return list(topology.get("links", []))
    if topology.get("kind") == "parking-lot":
        hops = enumerate(topology.get("hops", []))
        return [{**hop, "name": f"hop{i}", "a": f"r{i + 1}", "b": f"r{i}"} for i, hop in hops][::-1]
    if "rate" not in topology:
        return []
    ends = {"name": "bottleneck", "a": "right", "b": "left", "aqm": scenario.get("aqm", "droptail")}
    return [{**topology, **ends}]


def _flows(scenario: Tree) -> Sequence[Tree]:
    """Returns the groups of flows with their ends, which a dumbbell does not name."""
    ends = {"forward": ("left", "right"), "reverse": ("right", "left")}
    named = []
    for flow in scenario.get("flows", []):
        start, end = ends.get(flow.get("direction", "forward"), ("", ""))
        named.append({"from": start, "to": end, **flow})
    return named


def _texts(link: Tree, changes: bool) -> list[str]:
    lines = [str(link.get("name", "")), f"{readable(link['rate'])}, {readable(link['delay'])}"]
    if "aqm" in link or link.get("bottleneck"):
        aqm = link.get("aqm", "droptail")
        lines.append(str(aqm["name"] if isinstance(aqm, Mapping) else aqm))
    return [line for line in lines if line] + (["changes while it runs"] if changes else [])


def _handovers(handovers: Sequence[Tree]) -> list[tuple[str, str, list[str]]]:
    """Returns each pair of cells with handovers, and texts with their times, procedures and numbers of flows."""
    said: dict[tuple[str, str], list[str]] = {}
    for one in handovers:
        who = f", {len(one['flows'])} flows" if "flows" in one else ""
        said.setdefault((one["from"], one["to"]), []).append(f"{one['at']}: {one['procedure']}{who}")
    return [(*way, lines[:_LISTED] + ["..."] * (len(lines) > _LISTED)) for way, lines in said.items()]


def _hosts(node: str, flows: Sequence[Tree]) -> list[str]:
    """Returns lines of text with the flows that start and end at a node."""
    lines = []
    for end, form in (("from", "{} x {} →"), ("to", "→ {} x {}")):
        counted: dict[str, int] = {}
        for flow in flows:
            if flow.get(end) == node:
                counted[flow["kind"]] = counted.get(flow["kind"], 0) + flow.get("count", 1)
        lines += [form.format(count, kind) for kind, count in counted.items()]
    return lines


def _places(links: Sequence[Tree], cells: Set[str]) -> dict[str, Place]:
    """Returns the place of each node: columns by distance from the node on the right, rows in the order of the file.

    The node on the right is the end node from which the network has the fewest columns, then the fewest links inside a
    column. It is none of the cells between which hosts move. These are in one column if possible.
    """
    beside: dict[str, list[str]] = {}
    for link in links:
        beside.setdefault(link["a"], []).append(link["b"])
        beside.setdefault(link["b"], []).append(link["a"])

    def untidy(columns: dict[str, int]) -> tuple[int, int, int]:
        inside = sum(columns.get(link["a"]) == columns.get(link["b"]) for link in links)
        return max(columns.values()), inside, len({columns.get(cell) for cell in cells})

    ends = [node for node, near in beside.items() if len(near) == 1 and node not in cells] or list(beside)
    columns = min((_distances(end, beside) for end in ends), key=untidy)
    places = {}
    for column in range(max(columns.values()) + 1):
        # Nodes without a connection are in the column of the node on the right.
        nodes = [node for node in beside if columns.get(node, 0) == column]
        for row, node in enumerate(nodes):
            places[node] = (-float(column), (len(nodes) - 1) / 2 - row)
    return places


def _distances(start: str, beside: dict[str, list[str]]) -> dict[str, int]:
    found, edge = {start: 0}, [start]
    while edge:
        distance = found[edge[0]] + 1
        edge = list(dict.fromkeys(near for node in edge for near in beside[node] if near not in found))
        found |= dict.fromkeys(edge, distance)
    return found


def readable(quantity: str) -> str:
    """Returns a quantity in a readable unit: 25000000bit/s as 25 Mbit/s, 88784us as 88.8 ms."""
    for unit, ms in (("us", 1e-3), ("ns", 1e-6)):
        number = quantity.removesuffix(unit)
        if number.isdecimal():
            return f"{int(number) * ms:.3g} ms"
    number = quantity.removesuffix("bit/s")
    if not number.isdecimal():
        return quantity
    power = min(3, (len(str(int(number))) - 1) // 3)
    return f"{int(number) / 1000**power:.3g} {('', 'k', 'M', 'G')[power]}bit/s"
