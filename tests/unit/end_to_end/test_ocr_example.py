"""The steps of the OCR example around its networks: boxes, their order, what a reader gets."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as drawn
from PIL import Image
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.tidy.source import ROOT

from ingot_artifacts.bundle.write import write_bundle


def read_text() -> ModuleType:
    """Return the example's script as a module."""
    path = ROOT / "examples" / "ocr" / "read_text.py"
    spec = importlib.util.spec_from_file_location("read_text_example", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SCRIPT = read_text()
Mask = npt.NDArray[np.bool_]


def flooded(mask: Mask) -> set[tuple[int, int, int, int]]:
    """Boxes of what hangs together, found pixel by pixel."""
    left = {(int(row), int(column)) for row, column in np.argwhere(mask)}
    boxes: set[tuple[int, int, int, int]] = set()
    while left:
        seen, edge = set[tuple[int, int]](), [left.pop()]
        while edge:
            row, column = edge.pop()
            seen.add((row, column))
            around = [(row + y, column + x) for y in (-1, 0, 1) for x in (-1, 0, 1)]
            edge += [place for place in around if place in left]
            left -= set(around)
        rows, columns = zip(*seen, strict=True)
        boxes.add((min(rows), min(columns), max(rows) + 1, max(columns) + 1))
    return {box for box in boxes if min(box[2] - box[0], box[3] - box[1]) > 2}


@given(drawn.arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 12))))
def test_what_hangs_together(mask: Mask) -> None:
    """Rows of runs find the boxes that a flood finds; corners that touch count."""
    found = {(b.top, b.left, b.bottom, b.right) for b in SCRIPT.connected(mask)}
    assert found == flooded(mask)


def test_small_gaps_close() -> None:
    """A pixel counts for those right of it and below it."""
    mask = np.zeros((3, 4), np.bool_)
    mask[0, 1] = True
    assert SCRIPT.thickened(mask).astype(int).tolist() == [[0, 1, 1, 0], [0, 1, 1, 0], [0] * 4]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((900, 420), (1568, 736)),
        ((736, 736), (736, 736)),
        ((4000, 100), (2016, 64)),
        ((1, 1), (736, 736)),
    ],
)
def test_sizes_for_the_detector(size: tuple[int, int], expected: tuple[int, int]) -> None:
    """Multiples of 32; the short side has 736 pixels, unless the long one would have too many."""
    assert SCRIPT.detector_size(*size) == expected


def test_reading_order() -> None:
    """From the top, and in a line from the left, also if its boxes differ by some pixels."""
    box = SCRIPT.Box
    one, two, three = box(12, 0, 30, 50), box(10, 60, 32, 90), box(40, 0, 60, 90)
    assert SCRIPT.in_reading_order([three, two, one]) == [one, two, three]


def test_a_strip_has_the_height_of_the_reader() -> None:
    """What is short is filled up with grey, what is long keeps its width up to the most."""
    cut = Image.new("RGB", (100, 24), "white")
    strip = SCRIPT.strip(cut, 320)
    assert strip.shape == (1, 3, 48, 320)
    assert (strip[..., :200] == 1).all()
    assert (strip[..., 200:] == 0).all()
    assert SCRIPT.strip(cut, 100).shape == (1, 3, 48, 200)
    assert SCRIPT.strip(cut, 192, 192).shape == (1, 3, 48, 192)


def test_blue_comes_first() -> None:
    """The networks were trained with pictures that OpenCV had read."""
    values = SCRIPT.pixels(Image.new("RGB", (1, 1), (255, 0, 0)))
    assert values.ravel().tolist() == [-1.0, -1.0, 1.0]


def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is no picture, and bundles that are not there, are told without a traceback."""
    (tmp_path / "text.png").write_text("text")
    Image.new("RGB", (9, 9)).save(tmp_path / "good.png")

    def told(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["read_text.py", *words])
        with pytest.raises(SystemExit) as caught:
            SCRIPT.main()
        return str(caught.value.code)

    picture, bundles = str(tmp_path / "good.png"), ("--bundles", str(tmp_path))
    assert told(str(tmp_path / "none.png")).startswith("error: cannot read the picture")
    assert told(str(tmp_path / "text.png")).endswith("text.png is no picture that Pillow knows")
    assert "ingot build -C" in told(picture, *bundles)
    for name in ("detect", "turn", "recognise"):
        write_bundle(tiny_contents(), tmp_path / f"{name}.ingot", tree_entry)
    assert told(picture, *bundles).startswith("error: cannot read the characters")
    (tmp_path / "turn.ingot").write_bytes(b"damaged")
    assert told(picture, *bundles).startswith("error: not a bundle\n  where: ")
