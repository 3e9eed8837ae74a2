"""The pages of the documentation which the package contains, by name and by algorithm.

`python/penstock/docs` is a link to `docs/`, so that a checkout shows its own pages; a wheel holds a copy of them. The
examples are those of the package or, in a checkout, its folder `examples/`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

ROOT = (Path(__file__).parent / "docs").resolve()
EXAMPLES = next((p for p in (Path(__file__).parent / "examples", ROOT.parent / "examples") if p.is_dir()), ROOT)
INDEX = "README"  # a list of pages, in Markdown
_LINK = re.compile(r"\[([^\]]+)\]\(([a-zA-Z0-9_/-]+)\.md\)")
_ROW = re.compile(
    r"^\| \[[^\]]+\]\((?:\.\./)?([a-zA-Z0-9_-]+)(?:/README)?\.md\) \| (.+) \|$", re.MULTILINE
)  # a page, and the purpose for which one reads it


@dataclass(frozen=True)
class Page:
    """One page; its name is its path below `docs/` without the ending."""

    name: str
    path: Path

    @property
    def short(self) -> str:
        """The last part of the name, by which the page is found if no other page has it."""
        return self.name.rsplit("/", 1)[-1]

    @property
    def folder(self) -> str:
        """The folder of pages of its kind ("algorithms", "how-to"); empty for a guide."""
        return self.name.rpartition("/")[0]

    @property
    def text(self) -> str:
        """The whole page in Markdown."""
        return self.path.read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        """The first heading without its marks."""
        heading = next((line for line in self.text.splitlines() if line.startswith("# ")), f"# {self.name}")
        return heading.removeprefix("# ").strip()

    @property
    def about(self) -> str:
        """The description of the page in the index; its title if the index has none."""
        return _told().get(self.name, self.title)


@cache
def pages() -> dict[str, Page]:
    """Returns every page by its name; the pages of algorithms are last."""
    named = [(path.relative_to(ROOT).with_suffix("").as_posix(), path) for path in ROOT.rglob("*.md")]
    named += [("examples", EXAMPLES / "README.md")] if EXAMPLES != ROOT else []
    ordered = sorted((name.count("/"), name, path) for name, path in named if name != INDEX)
    return {name: Page(name, path) for _, name, path in ordered}


def _index() -> str:
    return (ROOT / f"{INDEX}.md").read_text(encoding="utf-8") if ROOT.is_dir() else ""


@cache
def _told() -> dict[str, str]:
    """Returns the description of each guide in the index, by the name of the guide."""
    return dict(_ROW.findall(_index()))


def doors() -> list[tuple[str, str]]:
    """Returns for whom the documentation is, and links to the pages with which each begins, as the index has them."""
    table = _index().partition("| you are | begin with |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return [(who, where) for who, where in rows]


@cache
def _algorithms() -> dict[str, str]:
    """Returns the name of the page of each algorithm, as the index of the documentation links them."""
    return {
        name.strip(): page
        for names, page in _LINK.findall(_index())
        if page.startswith("algorithms/")
        for name in names.split(",")
    }


def page_of(algorithm: str) -> Page | None:
    """Returns the page that describes an algorithm, or `None`. Several algorithms may share a page."""
    return pages().get(_algorithms().get(algorithm, f"algorithms/{algorithm}"))


def example(name: str) -> Path:
    """Returns the file of a commented scenario, such as `fq-codel-home`. Raises `MistakeError` with a suggestion."""
    known = {path.stem: path for path in sorted(EXAMPLES.glob("*.toml"))}
    if not known:
        raise MistakeError(f"{EXAMPLES}: the examples are not there; install the package again")
    if found := known.get(name.removesuffix(".toml")):
        return found
    raise MistakeError(f"there is no example {name!r}; {did_you_mean(name, known)}there are: {', '.join(known)}")


def playground() -> Path:
    """Returns the page of the playground: that of the package, or the one that was built in this checkout."""
    checkout = ROOT.parent
    places = [Path(__file__).parent / "playground" / "index.html", checkout / "target" / "playground" / "index.html"]
    if found := next((place for place in places if place.is_file()), None):
        return found
    if not (checkout / "tools" / "playground").is_file():
        raise MistakeError("this package was built without the playground; a checkout builds it with `make playground`")
    raise MistakeError(f"the playground is not built; run `make playground` in {checkout}")


def find(name: str) -> Page:
    """Returns a page by its name, by the last part of its name, or by the name of an algorithm.

    Raises `MistakeError` with a suggestion if there is none.
    """
    if not pages():
        raise MistakeError(f"{ROOT}: the pages of the documentation are not there; install the package again")
    wanted = name.removesuffix(".md").removeprefix("docs/").strip("/")
    if found := pages().get(wanted) or page_of(wanted):
        return found
    same = [page for page in pages().values() if page.short == wanted]
    if same:
        return same[0]
    known = [*pages(), *(page.short for page in pages().values()), *_algorithms()]
    raise MistakeError(f"there is no page {name!r}; {did_you_mean(wanted, known)}`penstock docs` lists them")
