"""Sphinx's settings of the site. tools/pack/site writes the pages into the directory that Sphinx is given."""

from pathlib import Path

project = "Penstock"
author = "Penstock's authors"
copyright = "Penstock's authors. MIT or Apache-2.0, at your choice"  # noqa: A001 - Sphinx has this name
extensions = ["myst_parser"]
exclude_patterns = ["_parts"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
# Pages name files of the source in code; nothing else may stay unresolved.
suppress_warnings = ["myst.header", "toc.not_included"]

html_theme = "furo"
html_title = "Penstock"
html_search_scorer = str(Path(__file__).resolve().with_name("scorer.js"))
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("ledger.js", {"defer": "defer"}), ("tables.js", {"defer": "defer"})]
html_extra_path = ["_extra"]
html_show_sphinx = False
html_copy_source = False
html_last_updated_fmt = None
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e99", "color-brand-content": "#0b6e99"},
    "dark_css_variables": {"color-brand-primary": "#6cc4e8", "color-brand-content": "#6cc4e8"},
}
pygments_style = "default"
pygments_dark_style = "github-dark"
