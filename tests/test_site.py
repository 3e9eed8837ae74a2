"""The pages of the site in Chromium: the search of the ledger on a phone and a desktop, and what comes first."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "web" / "site"
PLAYGROUND = ROOT / "web" / "playground"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="needs chromium: apt-get install chromium")
# A page in a frame of a given width, because a window of Chromium is at least 500 pixels wide.
FRAME = """<body style="margin:0">
<iframe id="frame" src="page.html" style="width:{width}px;height:844px;border:0"></iframe>
<script>document.getElementById("frame").onload = ({{ target }}) => {{
  const document = target.contentDocument, window = target.contentWindow, told = () => {{ {script} }};
  const out = globalThis.document.createElement("pre");
  Object.assign(out, {{ id: "out", textContent: JSON.stringify(told()) }});
  globalThis.document.body.append(out);
}};</script>"""


def in_chromium(place: Path, width: int, script: str) -> Any:
    """Returns what a script says of `page.html` in a directory, with a screen of this width."""
    (place / "frame.html").write_text(FRAME.format(width=width, script=script), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--no-first-run"]
    options += [f"--user-data-dir={place / 'profile'}", "--virtual-time-budget=20000", "--window-size=1600,900"]
    command = [str(CHROMIUM), *options, "--dump-dom", (place / "frame.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr
    return json.loads(html.unescape(found[1]))


def sections(text: str) -> str:
    """Returns a page of HTML with a section around each heading and what is below it, as Sphinx writes pages."""
    out: list[str] = []
    open_ones: list[int] = []
    for line in MarkdownIt("commonmark").enable("table").render(text).splitlines():
        if found := re.match(r"<h(\d)>", line):
            while open_ones and open_ones[-1] >= int(found[1]):
                open_ones.pop()
                out.append("</section>")
            open_ones.append(int(found[1]))
            out.append("<section>")
        out.append(line)
    return "\n".join([*out, *("</section>" for _ in open_ones)])


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a directory with the page of the ledger, its style and its script."""
    place = tmp_path_factory.mktemp("site")
    for name in ("site.css", "ledger.js"):
        shutil.copy(SITE / "static" / name, place)
    text = re.sub(
        "<table>", '<div class="table-wrapper"><table>', sections((ROOT / "docs" / "results" / "ledger.md").read_text())
    )
    text = text.replace("</table>", "</table></div>")
    head = '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="site.css">'
    script = '<script src="ledger.js"></script>'
    page = f"<!doctype html><html><head>{head}</head><body><article>{text}</article>{script}</body></html>"
    (place / "page.html").write_text(page, encoding="utf-8")
    return place


ROWS = [
    json.loads(line.rstrip(",")) for line in (ROOT / "docs" / "results" / "ledger.json").read_text().splitlines()[1:-1]
]
SEARCH = """
  const input = document.querySelector("input[type=search]");
  const boxes = [...document.querySelectorAll(".ledger-bar input[type=checkbox]")];
  const search = (text, kinds) => {
    input.value = text;
    boxes.forEach((box) => { box.checked = !kinds || kinds.includes(box.value); });
    document.querySelector(".ledger-bar").dispatchEvent(new window.Event("input"));
    const shown = [...document.querySelectorAll("table.claims tbody tr")].filter((row) => row.offsetHeight > 0);
    return { told: document.querySelector("output").textContent, shown: shown.map((row) => row.dataset.verdict) };
  };
"""


@needs_chromium
@pytest.mark.parametrize("width", [390, 1440])
def test_claims_are_searched_by_words_and_by_verdict(ledger: Path, width: int) -> None:
    script = f"""{SEARCH}
      const all = search("", null), named = search("pink-dsl.ared-unfair", null);
      const fails = search("satellite", ["fails"]), none = search("no such claim at all", null);
      return {{ width: window.innerWidth, kinds: boxes.map((box) => box.value), all, named, fails, none }};"""
    seen = in_chromium(ledger, width, script)
    count = len(ROWS)
    assert seen["width"] == width
    assert {"holds", "conditional", "partly", "fails"} <= set(seen["kinds"])
    assert seen["all"]["told"] == f"{count} of {count} claims"
    assert seen["named"] == {"told": f"1 of {count} claims", "shown": ["partly"]}
    assert set(seen["fails"]["shown"]) == {"fails"}
    assert 1 < int(seen["fails"]["told"].split()[0]) < 60
    assert seen["none"] == {"told": f"0 of {count} claims", "shown": []}


@needs_chromium
@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_of_the_ledger_is_short_until_more_is_asked_for(ledger: Path, width: int) -> None:
    script = f"""{SEARCH}
      const colour = (kind) => window.getComputedStyle(document.querySelector(`td.verdict.${{kind}}`)).color;
      const high = () => document.documentElement.scrollHeight;
      const before = high(), shown = search("", null).shown.length;
      const row = document.querySelector("table.claims tbody tr"), button = row.querySelector("button.open");
      const closed = row.offsetHeight, visible = button.offsetHeight > 0;
      button.click();
      const opened = row.offsetHeight, expanded = button.getAttribute("aria-expanded");
      document.querySelectorAll("button.pager").forEach((one) => one.click());
      return {{ before, shown, after: high(), all: search("", null).shown.length, closed, opened, visible, expanded,
        colours: ["holds", "conditional", "partly", "fails"].map(colour) }};"""
    seen = in_chromium(ledger, width, script)
    assert seen["before"] < 20_000
    assert seen["after"] > 2 * seen["before"]
    assert seen["shown"] < 60 < seen["all"] == len(ROWS)
    assert len(set(seen["colours"])) == 4
    assert seen["visible"] == (width < 500)
    if width < 500:
        assert seen["opened"] > seen["closed"]
        assert seen["expanded"] == "true"


def test_the_live_demo_comes_before_everything_to_install() -> None:
    home = (SITE / "home.md").read_text(encoding="utf-8")
    assert home.index("# Penstock") < home.index("$PLAYGROUND") < home.index("pip install")


@needs_chromium
def test_the_playground_says_that_it_loads(tmp_path: Path) -> None:
    page = (PLAYGROUND / "index.html").read_text(encoding="utf-8")
    shutil.copy(PLAYGROUND / "style.css", tmp_path)
    (tmp_path / "page.html").write_text(re.sub(r"<script.*</script>\n", "", page), encoding="utf-8")
    script = """const line = document.getElementById("loading"), seen = () => line.offsetHeight > 0;
      const first = seen();
      document.body.dataset.ready = "true";
      const ready = seen();
      delete document.body.dataset.ready;
      document.getElementById("mistake").hidden = false;
      return { text: line.textContent, first, ready, failed: seen() };"""
    seen = in_chromium(tmp_path, 390, script)
    assert "loads" in seen.pop("text")
    assert seen == {"first": True, "ready": False, "failed": False}
