"""The pages of the documentation which the package contains, by name and by algorithm.

`python/penstock/docs` is a link to `docs/`, so that a checkout shows its own pages; a wheel holds a copy of them. The
examples are those of the package or, in a checkout, its folder `examples/`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from penstock import ranking
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

ROOT = (Path(__file__).parent / "docs").resolve()
EXAMPLES = next((p for p in (Path(__file__).parent / "examples", ROOT.parent / "examples") if p.is_dir()), ROOT)
INDEX = "README"  # a list of pages, in Markdown
_LINK = re.compile(r"\[([^\]]+)\]\(([a-zA-Z0-9_/-]+)\.md\)")
_HEADING = re.compile(r"#{1,6} ")
_ROW = re.compile(
    r"^\| \[[^\]]+\]\((?:\.\./)?([a-zA-Z0-9_/-]+?)(?:/README)?\.md\) \| (.+) \|$", re.MULTILINE
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
    if not (checkout / "tools" / "pack" / "playground").is_file():
        raise MistakeError("this package was built without the playground; a checkout builds it with `make playground`")
    raise MistakeError(f"the playground is not built; run `make playground` in {checkout}")


@dataclass(frozen=True)
class Place:
    """The section of a page that fits a question best, and the line of it with the most of its words."""

    page: Page
    heading: str
    line: str


# How likely a page is what somebody means who searches, beside a guide: by its name, else by its folder.
_PRIOR = {"reference": 0.7, "results": 0.6, "algorithms": 0.45, "examples": 0.6, "overview": 0.4}
_PRIOR |= dict.fromkeys(("architecture", "release", "reference/dependencies"), 0.45)
_PRIOR |= {"extending": 0.7, "tests": 0.7, "how-to": 1.0}
# A question for the meaning of a word, and how much more likely the glossary answers it.
_MEANING, _OF_A_WORD = re.compile(r"(?i)\s*(?:what (?:is|are|does)|meaning of)\b"), 2.0
_SHOWN = 150  # characters of a line that is shown


def prior(page: Page) -> float:
    """Returns how likely a page is what somebody means who searches; 1 for a guide."""
    return _PRIOR.get(page.name, _PRIOR.get(page.folder, 1.0))


@cache
def _sections() -> ranking.Index:
    """Returns all sections of all pages, to be searched."""
    sections = []
    for name, page in pages().items():
        heading, lines = page.title, [name]
        for line in page.text.splitlines():
            if _HEADING.match(line):
                sections.append(ranking.Section(name, heading, "\n".join(lines)))
                heading, lines = line.lstrip("# ").strip(), []
            else:
                lines.append(line)
        sections.append(ranking.Section(name, heading, "\n".join(lines)))
    fronts = {
        name: ranking.Front(f"{page.title} {page.short}", page.about, prior(page)) for name, page in pages().items()
    }
    return ranking.Index(sections, fronts)


def search(text: str) -> list[Place]:
    """Returns a place of each page that has words of a text, the page that answers it best first."""
    wanted = ranking.asked(text)
    hits = _sections().find(text)
    if _MEANING.match(text):
        hits.sort(key=lambda hit: -hit.score * (_OF_A_WORD if hit.section.of == "glossary" else 1))
    found = []
    for hit in hits:
        lines = [line.strip() for line in hit.section.text.splitlines() if line.strip()]
        line = max(lines, key=lambda one: len(set(wanted) & set(ranking.words(one))), default=hit.section.heading)
        found.append(Place(pages()[hit.section.of], hit.section.heading, line[:_SHOWN]))
    return found


def _plain(name: str) -> str:
    return name.removesuffix(".md").removeprefix("docs/").strip("/")


def named(name: str) -> Page | None:
    """Returns a page by its name, by the last part of its name, or by the name of an algorithm: a guide comes first."""
    wanted = _plain(name)
    same = [page for page in pages().values() if page.short == wanted]
    told = (page for page in same if page.folder != "algorithms")
    return pages().get(wanted) or next(told, None) or page_of(wanted) or next(iter(same), None)


def meant(name: str) -> str:
    """Returns a question with the nearest name of a page or of an algorithm; nothing if none is near."""
    return did_you_mean(_plain(name), [*pages(), *(page.short for page in pages().values()), *_algorithms()])


def find(name: str) -> Page:
    """Returns a page by its name, by the last part of its name, or by the name of an algorithm.

    Raises `MistakeError` with a suggestion if there is none.
    """
    if not pages():
        raise MistakeError(f"{ROOT}: the pages of the documentation are not there; install the package again")
    if found := named(name):
        return found
    raise MistakeError(f"no page is called {name!r}, and none contains it; {meant(name)}`penstock docs` lists them")
