"""``ingot report``: one file, whole or not at all; what cannot be measured is told in it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.tools.test_report_data import ROWS, WIDTH, matmul_chain

import ingot
from ingot_build_rules.tools.cli.main import main


def data_of(page: Path) -> dict[str, Any]:
    """Return the data in a page."""
    found = re.search(r'<script id="data"[^>]*>([^<]+)<', page.read_text())
    assert found
    return dict(json.loads(zlib.decompress(base64.b64decode(found[1]))))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundles of fixed and of open sizes, and inputs."""
    made = tmp_path_factory.mktemp("report")
    ingot.compile(matmul_chain()).save(made / "fixed.ingot")
    ingot.compile(matmul_chain("rows")).save(made / "open.ingot")
    ingot.compile(matmul_chain(), targets=["aarch64"]).save(made / "foreign.ingot")
    np.savez(made / "x.npz", x=np.ones((ROWS, WIDTH), np.float32))
    return made


def report(*words: str | Path) -> int:
    """Run the command for a very short measurement."""
    return main(["report", *map(str, words), "--seconds", "0.001"])


def test_default_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page stands beside the bundle, with times of every launch."""
    assert report(folder / "fixed.ingot", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    page = Path(told["output"])
    assert page == folder / "fixed.html"
    assert told["size_bytes"] == page.stat().st_size
    data = data_of(page)
    assert all(row["seconds"] > 0 for row in data["launches"])
    assert data["measured"]["calls"] >= 5
    assert all(".text" in text for text in data["assembly"].values())


@pytest.mark.parametrize("name", ["open", "foreign"])
def test_what_cannot_run_has_no_times(
    folder: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Open sizes without inputs, and another machine's code: the page says why, and has the rest."""
    assert report(folder / f"{name}.ingot", "-o", tmp_path / "r.html") == 0
    assert "not measured" in capsys.readouterr().out
    data = data_of(tmp_path / "r.html")
    assert data["measured"] is None
    assert all(row["operations"] for row in data["launches"])


@pytest.mark.broad
def test_inputs_decide_sizes(folder: Path, tmp_path: Path) -> None:
    """A file of inputs makes an open size known, and the call runs."""
    output = tmp_path / "r.html"
    assert report(folder / "open.ingot", "-o", output, "--inputs", folder / "x.npz") == 0
    data = data_of(output)
    assert data["shapes"] == {"x": [ROWS, WIDTH]}
    assert data["measured"]


def test_against(folder: Path, tmp_path: Path) -> None:
    """Launches stand beside those of the other bundle that run the same nodes."""
    output = tmp_path / "r.html"
    words = ("--against", folder / "open.ingot", "--inputs", folder / "x.npz", "-o", output)
    assert report(folder / "fixed.ingot", *words) == 0
    against = data_of(output)["against"]
    assert any(line.startswith("input x: ") for line in against["lines"])
    changed = [row for row in against["launches"] if row["before"] != row["after"]]
    assert changed
    assert all(row["before_seconds"] > 0 and row["after_seconds"] > 0 for row in changed)


def test_no_run(folder: Path, tmp_path: Path) -> None:
    """A page that runs nothing is the same bytes each time."""
    for name in ("a", "b"):
        assert report(folder / "fixed.ingot", "--no-run", "-o", tmp_path / name) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.ingot",), "none.ingot"),
        (("damaged.ingot",), "section manifest 0 is damaged"),
        (("fixed.ingot", "-o", "nowhere/r.html"), "no such output folder"),
        (("fixed.ingot", "-o", "fixed.ingot"), "the output is an input"),
        (("fixed.ingot", "--variant", "x86-64-v9"), "x86-64-v9"),
        (("fixed.ingot", "--against", "none.ingot"), "none.ingot"),
        (("fixed.ingot", "--against", "x.npz"), "it is arrays of numpy"),
        (
            ("open.ingot", "--shape", "x=2x40", "--against", "fixed.ingot"),
            "where: fixed.ingot, --shape x=2x40",
        ),
    ],
)
def test_errors(
    folder: Path,
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A mistake has an error in parts, and leaves no page."""
    content = bytearray((folder / "fixed.ingot").read_bytes())
    content[700] ^= 1
    (folder / "damaged.ingot").write_bytes(content)
    monkeypatch.chdir(folder)
    (folder / "fixed.html").unlink(missing_ok=True)
    assert report(*words) != 0
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not list(folder.glob("*.html"))


def test_on_another_device(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page tells on what it was measured; another bundle takes the devices that it has; a name
    twice, and one that the bundle has not, are refused."""
    path, output = tmp_path / "m.ingot", tmp_path / "r.html"
    ingot.compile(matmul_chain(), devices={"acc": "cpu"}, place={"*": "acc"}).save(path)
    words = (path, "-o", output, "--device", "acc=null:2")
    assert report(*words, "--against", folder / "fixed.ingot") == 0
    assert data_of(output)["measured"]["devices"] == {"host": "host:0", "acc": "null:2"}
    capsys.readouterr()
    for more, said in ((("acc=cpu",), "acc"), (("other=cpu",), "no device 'other'")):
        assert report(*words, "--device", *more) == 1
        assert said in capsys.readouterr().err
