"""The notebooks of examples/ and the cells of the how-to page run to their ends, and show what they are to show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
# How many figures and tables each one shows, and the files that it leaves beside runs/.
SHOWN = {"compare-aqms": (1, 2, []), "own-aqm": (2, 1, ["target.py"]), "map": (3, 0, [])}


def executed(notebook: Any, folder: Path) -> list[dict[str, Any]]:
    """Runs all cells in a kernel, and returns what they showed, by kind of media."""
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    return [dict(output.data) for output in outputs if "data" in output]


def count(shown: list[dict[str, Any]], kind: str) -> int:
    return sum(kind in data for data in shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), "notebooks are kept without outputs"
    shown = executed(notebook, tmp_path)
    figures, tables, files = SHOWN[path.stem]
    assert (count(shown, "image/png"), count(shown, "text/html")) == (figures, tables)
    assert {one.name for one in tmp_path.iterdir()} - {"runs", "__pycache__"} == set(files)


def test_the_cells_of_the_how_to_page_show_a_table_and_a_figure(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "notebook.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    shown = executed(made, tmp_path)
    assert [count([data], "text/html") for data in shown] == [1, 0]
    assert "image/png" in shown[1]
