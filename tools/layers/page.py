"""Checks that the table of crates in docs/architecture.md agrees with `tools/layers.toml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from layers.law import Crate

HEAD = "| crate | may know | holds |"


def rows(crates: Mapping[str, Crate]) -> list[str]:
    """Returns the lines of the table which the page must contain."""
    known = {name: ", ".join(f"`{other}`" for other in sorted(crate.may)) or "nobody" for name, crate in crates.items()}
    return [f"| `{name}` | {known[name]} | {crate.holds} |" for name, crate in crates.items()]


def wrong_page(page: str, crates: Mapping[str, Crate]) -> Iterator[str]:
    """Returns the rows of the page that differ from the table."""
    lines = page.splitlines()
    if HEAD not in lines:
        yield f"docs/architecture.md: there is no table `{HEAD}`"
        return
    begin = lines.index(HEAD) + 2
    found = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        found.append(line)
    wanted = rows(crates)
    for line in [line for line in found if line not in wanted]:
        yield f"docs/architecture.md: `{line}` is not what tools/layers.toml says"
    for line in [line for line in wanted if line not in found]:
        yield f"docs/architecture.md: `{line}` is missing"
