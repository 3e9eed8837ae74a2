"""`docs`: shows the pages of the documentation that the package contains."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import typer

from penstock.cli import completion, show
from penstock.cli.base import verb

if TYPE_CHECKING:
    from penstock.manual import Page, Place

_PLACES_SHOWN = 12


@verb(
    "docs",
    "penstock docs",
    "penstock docs scenarios",
    "penstock docs how-to",
    "penstock docs codel",
    "penstock docs round trip",
    "penstock docs play",
)
def docs(
    words: list[str] = typer.Argument(
        None,
        help="Name of a page or of an algorithm, words to search for in all pages, or `play` for the playground; "
        "default: list the pages.",
        metavar="[PAGE|WORD ...]",
        autocompletion=completion.pages,
    ),
) -> None:
    """Show a page of the documentation, list all pages, or search their text."""
    from penstock import manual

    page = " ".join(words or ())
    if not page:
        _list(list(manual.pages().values()))
        return
    if page == "play":
        _play()
        return
    if manual.named(page) is None and (places := manual.search(page)):
        show.warn(manual.meant(page))
        _print_places(page, places)
        return
    found = manual.find(page)
    if found.path.parent == manual.EXAMPLES:
        print(
            f"the files are in {manual.EXAMPLES}; `penstock new scenario NAME --like EXAMPLE` copies one",
            file=sys.stderr,
        )
    if sys.stdout.isatty():
        _paged(found.text)
    else:
        print(found.text, end="")


def _print_places(words: str, places: list[Place]) -> None:
    """Prints which pages answer words: the page that opens with `penstock docs`, its heading, and a line."""
    for one in places[:_PLACES_SHOWN]:
        print(f"{one.page.name}: {one.heading}")
        if one.line not in (one.heading, f"# {one.heading}"):
            print(f"    {one.line}")
    more = len(places) - _PLACES_SHOWN
    rest = f", and {more} more" if more > 0 else ""
    first = f"`penstock docs {places[0].page.name}` shows the first"
    print(f"\n{len(places)} pages have words of {words!r}, the best first{rest}; {first}")


def _play() -> None:
    """Opens the playground in a browser, and prints where it is for a machine without one."""
    from penstock import manual

    page = manual.playground()
    print(page.as_uri())
    if sys.stdout.isatty():
        typer.launch(page.as_uri())


def _doors() -> None:
    """Shows with which pages a researcher, an author, an operator and a teacher begin."""
    from penstock import manual

    links = [(who, re.findall(r"\[([^\]]+)\]\(([^)]+)\.md\)", where)) for who, where in manual.doors()]
    rows = [
        [who if not place else "", page, words] for who, found in links for place, (words, page) in enumerate(found)
    ]
    show.table("Begin with", ("you are", "page", ""), rows, left=3)
    print()


def _list(pages: list[Page]) -> None:
    _doors()
    for folder, title in (("", "Guides"), ("reference", "Reference"), ("results", "Results")):
        rows = [[page.short, page.about] for page in pages if page.folder == folder]
        show.table(title, ("page", "read it to"), rows, left=2)
        print()
    for folder, title in (("guides", "Begin"), ("how-to", "How to")):
        show.table(title, ("page", ""), [[page.name, page.title] for page in pages if page.folder == folder], left=2)
        print()
    algorithms = [[page.short, page.about] for page in pages if page.folder == "algorithms"]
    show.table("Algorithms", ("page", ""), algorithms, left=2)
    twice = {page.short for page in pages if page.folder == "algorithms"}
    for name in sorted(twice & {page.short for page in pages if page.folder != "algorithms"}):
        print(f"\n`penstock docs {name}` is the guide; the algorithm's page is `penstock docs algorithms/{name}`")


def _paged(text: str) -> None:
    from rich.markdown import Markdown

    os.environ.setdefault("LESS", "-FRX")  # shows colours; quits at once if the page fits on the screen
    out = show.console()
    with out.pager(styles=True):
        out.print(Markdown(text))
