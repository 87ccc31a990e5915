"""The notebook runs cell by cell as Jupyter would, and shows what its cells give.

``--bless`` stores the outputs anew. A cell with the tag ``nbval-ignore-output`` runs, and its
stored output is that of the last blessing.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.tidy.source import ROOT

NOTEBOOK = ROOT / "examples" / "notebook.ipynb"
UNSTABLE = "nbval-ignore-output"


def outputs_of(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run one cell; return what it printed, and the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value: object = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append({
            "data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result",
        })  # fmt: skip
    return outputs


def executed(notebook: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the code cells as they are after a run of the whole notebook."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells: list[dict[str, Any]] = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count = len(cells) + 1
            outputs = outputs_of("".join(cell["source"]), names, count)
            cells.append({**cell, "execution_count": count, "outputs": outputs})
    return cells


def test_the_notebook_shows_what_its_cells_give(
    bless: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of its own, in which it leaves nothing; the format is that of Jupyter."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    cells = executed(notebook)
    if bless:
        by_id = {cell["id"]: cell for cell in cells}
        notebook["cells"] = [by_id.get(cell["id"], cell) for cell in notebook["cells"]]
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        NOTEBOOK.write_text(text, encoding="utf-8")
    stored = {cell["id"]: cell for cell in notebook["cells"]}
    for cell in cells:
        assert stored[cell["id"]]["execution_count"] == cell["execution_count"]
        assert bool(stored[cell["id"]]["outputs"]) == bool(cell["outputs"])
        if UNSTABLE not in cell["metadata"].get("tags", ()):
            assert stored[cell["id"]]["outputs"] == cell["outputs"], "".join(cell["source"])
    assert sum(bool(cell["outputs"]) for cell in cells) > 5
    assert not list(tmp_path.iterdir())
