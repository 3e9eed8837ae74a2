"""The drawing of a scenario's network: nodes, links with rate and delay, and the flows at each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from penstock.plots.style import CYCLE, INK, STYLE

Tree = Mapping[str, Any]
Place = tuple[float, float]


def drawing(scenario: Tree) -> Figure | None:
    """Draws the network of a scenario whose topology is a graph; returns `None` for other kinds of topology."""
    topology = scenario.get("topology", {})
    links = topology.get("links", []) if topology.get("kind") == "graph" else []
    if not links:
        return None
    handovers = _handovers(scenario.get("handovers", []))
    places = _places(links, {cell for start, end, _ in handovers for cell in (start, end)})
    changing = {change["link"] for change in scenario.get("changes", [])}
    rows = 1 + 2 * max(y for _, y in places.values())
    columns = 1 - min(x for x, _ in places.values()) + (0.6 if handovers else 0)  # room for the texts of handovers
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 0.6 + 1.3 * rows))
        axis = figure.add_axes((0, 0, 1, 1))
        figure.set_layout_engine("none")
        for link in links:
            _link(axis, link, places, link.get("name") in changing)
        boxes: dict[str, Any] = {}
        axis.set(xlim=(0.5 - columns, 0.5), ylim=(-rows / 2 - 0.1, rows / 2 + 0.1))
        for node, (x, y) in places.items():
            label = "\n".join([node, *_hosts(node, scenario.get("flows", []))])
            box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": INK}
            boxes[node] = axis.text(x, y, label, ha="center", va="center", bbox=box, zorder=3)
        for start, end, said in handovers:
            _handover(axis, boxes[start], boxes[end], said)
        axis.set_axis_off()
    return figure


def _link(axis: Any, link: Tree, places: dict[str, Place], changes: bool) -> None:
    (x0, y0), (x1, y1) = places[link["a"]], places[link["b"]]
    colour = CYCLE[1] if changes else CYCLE[0]
    axis.plot([x0, x1], [y0, y1], color=colour, linewidth=2, linestyle="--" if changes else "-", zorder=1)
    facts = [link.get("name", ""), f"{_readable(link['rate'])}, {_readable(link['delay'])}"]
    facts += ["changes while it runs"] if changes else []
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "color": colour, "zorder": 2}
    box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    axis.text((x0 + x1) / 2, (y0 + y1) / 2, "\n".join(filter(None, facts)), bbox=box, **style)


def _handovers(handovers: Sequence[Tree]) -> list[tuple[str, str, str]]:
    """Returns each pair of cells with handovers, and a text with their times, procedures and numbers of flows."""
    said: dict[tuple[str, str], list[str]] = {}
    for one in handovers:
        who = f", {len(one['flows'])} flows" if "flows" in one else ""
        said.setdefault((one["from"], one["to"]), []).append(f"{one['at']}: {one['procedure']}{who}")
    return [(*way, "\n".join(lines[:4] + ["..."] * (len(lines) > 4))) for way, lines in said.items()]


def _handover(axis: Any, start: Any, end: Any, text: str) -> None:
    """Draws an arrow between boxes. It bends to its right, so that arrows of opposite directions do not overlap."""
    bow, ways = 0.4, [start.get_position(), end.get_position()]
    boxes = {"patchA": start.get_bbox_patch(), "patchB": end.get_bbox_patch(), "shrinkA": 0, "shrinkB": 0}
    style = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bow}", "color": CYCLE[2], **boxes}
    # Boxes are drawn first, since the arrow ends at the border of a box, whose size is known only then.
    axis.annotate("", xy=ways[1], xytext=ways[0], arrowprops=style, zorder=4)
    # The text is at a point of the curve half a row from its start, where no link is. The point is computed in display
    # coordinates, in which both axes have the same scale.
    part = 0.5 / max(1.0, abs(ways[1][1] - ways[0][1]))
    (x0, y0), (x1, y1) = axis.transData.transform(ways)
    aside = bow * (y1 - y0), bow * (x0 - x1)
    toward = [part * (b - a) + 2 * part * (1 - part) * by for a, b, by in ((x0, x1, aside[0]), (y0, y1, aside[1]))]
    at = axis.transData.inverted().transform((x0 + toward[0], y0 + toward[1]))
    side = "center" if abs(aside[1]) > abs(aside[0]) else ("left" if aside[0] > 0 else "right")
    box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    axis.text(*at, text, ha=side, va="center", fontsize=8, color=CYCLE[2], bbox=box, zorder=4)


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


def _readable(quantity: str) -> str:
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
