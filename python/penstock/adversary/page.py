"""The tables of docs/results/adversary.md that come from the code; `tools/measure/measures` writes them."""

from __future__ import annotations

from penstock import marked
from penstock.adversary.quantities import QUANTITIES
from penstock.adversary.space import Gene, standard
from penstock.adversary.standing import STANDING


def tables() -> dict[str, str]:
    """Returns the tables by the names of their marks."""
    quantities = [[f"`{name}`", one.unit, one.about] for name, one in QUANTITIES.items()]
    properties = [[f"`{one.name}`", f"`{one.text}`", one.about, ", ".join(one.kinds)] for one in STANDING]
    return {
        "quantities": "\n".join(marked.table(("name", "unit", "meaning"), quantities)),
        "properties": "\n".join(marked.table(("property", "broken if", "meaning", "of"), properties)),
        "parts": "\n".join(marked.table(("part", "what", "varies"), _parts())),
    }


def _parts() -> list[list[str]]:
    space = standard("discipline")
    return [
        [
            f"`{part.name}`" + (", hostile" if part.hostile else ""),
            part.about,
            "; ".join(_varied(gene) for gene in space.genes if gene.part == part.name and not gene.is_part),
        ]
        for part in space.parts
    ]


def _varied(gene: Gene) -> str:
    return f"`{gene.key.partition('.')[2]}` {gene.values.told}"
