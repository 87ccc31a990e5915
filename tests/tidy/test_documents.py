"""Every shell block of README and docs runs as written, in the order of its file.

A reader's folder is the project's, with ``m.onnx`` (a small model), its bundle ``m.ingot`` and its
inputs ``x.npz`` in it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.tidy.source import ROOT

import ingot

DOCUMENTS = tuple(
    str(path.relative_to(ROOT))
    for path in sorted(
        [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "runtime").glob("*.md")]
    )
)
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# start of a command -> why it is not run here
NOT_RUN = {
    "git clone": "fetches over the network",
    "pip install": "fetches over the network; .ci/run does it",
    "python -m pip install": "fetches over the network; .ci/run does it",
    "python3 -m venv": "the tests run in the environment that it makes",
    "make": "runs these very tests; .ci/run does it",
}
SECONDS_MAX = 300


def shell_blocks(document: str) -> list[str]:
    """Return the shell blocks of a document without the commands of ``NOT_RUN``; a leading ``$ ``
    is the prompt."""
    blocks: list[str] = []
    for found in _BLOCK.finditer((ROOT / document).read_text(encoding="utf-8")):
        lines = [line.removeprefix("$ ") for line in found[1].splitlines()]
        blocks.append("\n".join(line for line in lines if not line.startswith(tuple(NOT_RUN))))
    return [block for block in blocks if block.strip()]


def make_files(folder: Path) -> None:
    """Write ``m.onnx``, ``m.ingot`` and ``x.npz``."""
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], name="only")],
        "m",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    ingot.compile(folder / "m.onnx").save(folder / "m.ingot")
    np.savez(folder / "x.npz", x=np.ones((2, 3), np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_shell_blocks_run_as_written(document: str, tmp_path: Path) -> None:
    """All blocks of one document, one after the other in one folder with the examples beside, end
    without error."""
    for name in ("examples", "build_rules", "compiler", "artifacts", "runtime", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    make_files(tmp_path)
    python_path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    script = "set -eu\n" + "\n".join(shell_blocks(document))
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        | python_path,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"


def test_blocks_are_found(tmp_path: Path) -> None:
    """The prompt goes, excepted commands go, other blocks are left alone."""
    text = "```sh\n$ make demo\n$ ingot --help\n```\n\n```python\nimport ingot\n```\n"
    path = tmp_path / "page.md"
    path.write_text(text)
    assert shell_blocks(str(path)) == ["ingot --help"]


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE"])
def test_each_distribution_has_the_same_licence(name: str) -> None:
    """A distribution can name files of its own folder alone, so each has a copy."""
    folders = (ROOT, ROOT / "runtime", ROOT / "runtime" / "ingot_runtime_devices")
    assert len({(folder / name).read_bytes() for folder in folders}) == 1


def test_every_decision_is_listed() -> None:
    """Each page once, by its number and title."""
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(
        r"^- \[(\d+)\]\((\S+)\): (.*)$", (folder / "README.md").read_text(), re.MULTILINE
    )
    pages = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    titles = [(path, path.read_text(encoding="utf-8").partition("\n")[0]) for path in pages]
    assert sorted((name, f"# {number}. {title}") for number, name, title in listed) == [
        (path.name, title) for path, title in titles
    ]
    assert [int(path.name[:4]) for path in pages] == sorted(int(each[0]) for each in listed)


def test_decisions_have_no_missing_number() -> None:
    """The next page takes the number after the greatest one."""
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in pages] == list(range(1, len(pages) + 1))


def test_every_page_is_listed() -> None:
    """A reader finds each page of ``docs`` in the list of all, once."""
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[([\w-]+\.md)\]", text, re.MULTILINE)
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert set(listed) == pages
