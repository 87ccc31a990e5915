"""The page of ``ingot report`` in a real browser, without a network: every view draws.

Needs ``chromium`` (`pytest -m browser`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.unit.tools.test_report_data import matmul_chain

import ingot
from ingot_build_rules.tools.cli.main import main

pytestmark = pytest.mark.browser
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "chromium"
# view -> what is drawn there
VIEWS = {
    "view=overview": r"root digest.*median",
    "view=graph": r'<svg id="graph".*class="edge".*class="vertex input".*class="vertex launch"',
    "view=graph&step=1": r'class="edge near".*class="vertex launch chosen".*id="assembly">.*\.text',
    "view=kernels": r"<table>.*soft.*second.*skip",
    "view=kernels&search=soft": r"1 of 6 steps",
    "view=roofline": r'<svg id="roofline".*<circle class="mark',
    "view=memory": r'<svg class="memory".*<rect class="mark',
    "view=devices": r"acc.*Copies.*host",
    "view=file": r"weights 0.*by the tree",
    "view=provenance": r"toolchain",
    "view=differences": r"Against .*that kernel",
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every view: two devices, times, another bundle."""
    folder = tmp_path_factory.mktemp("page")
    placed = {"devices": {"acc": "null"}, "place": {"second": "acc"}}
    ingot.compile(matmul_chain(), **placed).save(folder / "m.ingot")  # type: ignore[arg-type]
    ingot.compile(matmul_chain()).save(folder / "other.ingot")
    words = ["report", folder / "m.ingot", "--against", folder / "other.ingot"]
    assert main([*map(str, words), "--seconds", "0.001"]) == 0
    folder.chmod(0o500)  # a place that cannot be written to
    return folder / "m.html"


def browse(page: Path, view: str, *more: str) -> str:
    """Open a view with every network switched off; return the document as it is then."""
    offline = ("--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:1")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000")
    size = "--window-size=1400,900"
    line = [
        CHROMIUM,
        *flags,
        *offline,
        size,
        "--enable-logging=stderr",
        *more,
        f"{page.as_uri()}#{view}",
    ]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert not re.search(r"CONSOLE.*(Uncaught|Refused|Error)", done.stderr), done.stderr
    return done.stdout


@pytest.mark.parametrize("view", VIEWS)
def test_view(page: Path, view: str) -> None:
    """The view has its drawing, and the console no error."""
    document = browse(page, view, "--dump-dom")
    assert 'data-ready="yes"' in document
    body = document[document.index("<main") : document.index('<script id="data"')]
    assert re.search(VIEWS[view], body, re.DOTALL), body[:2000]
    assert "alert(1)</script>" not in body


def test_picture(page: Path, tmp_path: Path) -> None:
    """The graph is painted: the picture has boxes, text and lines on a page that is mostly empty."""
    browse(page, "view=graph", f"--screenshot={tmp_path / 'graph.png'}")
    with Image.open(tmp_path / "graph.png") as picture:
        pixels = np.asarray(picture.convert("L"))
    ink = (pixels < 200).mean()
    assert 0.002 < ink < 0.2


def test_there_is_a_browser() -> None:
    """The suite is asked for by name: without a browser it fails, and does not pass as nothing."""
    assert os.path.exists(CHROMIUM)
