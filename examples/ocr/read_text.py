"""Read the text in a picture: three bundles, Ingot's loader, numpy and Pillow, nothing else.

In: a picture, the folder with the bundles and ``characters.txt``. Out: a line per piece of text,
from the top to the bottom. Not done here: slanted text (boxes are parallel to the picture), more
than one picture at once.

The steps and their numbers are those of PaddleOCR's PP-OCRv4: a network marks the pixels of text;
what hangs together is a piece; each is turned if it stands on its head, and read column by column.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

import ingot_runtime

HERE = Path(__file__).resolve().parent
Floats = npt.NDArray[np.float32]

SIDE_MIN, SIDE_MAX, SIDE_STEP = 736, 2016, 32  # pixels of what the detector gets
TEXT_MIN, PIECE_MIN = 0.3, 0.5  # how sure it is of a pixel, and of a piece on average
GROWTH = 1.6  # how much smaller than a piece the detector marks it
HEIGHT, WIDTH_MIN, TURN_WIDTH = 48, 320, 192
TURNED_MIN, READ_MIN = 0.9, 0.5


@dataclass(frozen=True, slots=True)
class Box:
    """Pixels: the first row and column, and those behind the last."""

    top: int
    left: int
    bottom: int
    right: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text, where it stands, and how sure the reader is of it on average."""

    text: str
    box: Box
    sureness: float


class Reader:
    """Three sessions, loaded once."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        """Load ``detect.ingot``, ``turn.ingot``, ``recognise.ingot`` and ``characters.txt``."""
        self._detect, self._turn, self._recognise = (
            ingot_runtime.load(folder / f"{name}.ingot", threads=threads)
            for name in ("detect", "turn", "recognise")
        )
        text = (folder / "characters.txt").read_text(encoding="utf-8")
        # Number 0 means that nothing new begins here, and a blank is the last one.
        self._characters = ["", *text.split("\n"), " "]

    def read(self, picture: Image.Image) -> list[Piece]:
        """Return the pieces of text, line by line."""
        picture = picture.convert("RGB")
        found = [self._read_piece(picture, box) for box in self._boxes(picture)]
        return [piece for piece in found if piece.text and piece.sureness >= READ_MIN]

    def _boxes(self, picture: Image.Image) -> list[Box]:
        """Where text is, in the order in which people read it."""
        size = detector_size(picture.width, picture.height)
        (sure,) = self._detect.run({"x": pixels(picture.resize(size))}).values()
        scale = picture.width / size[0], picture.height / size[1]
        boxes = [
            scaled(grown(box), scale, picture)
            for box in connected(thickened(sure[0, 0] > TEXT_MIN))
            if sure[0, 0, box.top : box.bottom, box.left : box.right].mean() >= PIECE_MIN
        ]
        return in_reading_order(boxes)

    def _read_piece(self, picture: Image.Image, box: Box) -> Piece:
        cut = picture.crop((box.left, box.top, box.right, box.bottom))
        (turned,) = self._turn.run({"x": strip(cut, TURN_WIDTH, TURN_WIDTH)}).values()
        if turned[0, 1] > TURNED_MIN:
            cut = cut.transpose(Image.Transpose.ROTATE_180)
        (columns,) = self._recognise.run({"x": strip(cut, WIDTH_MIN)}).values()
        sureness: Floats = columns[0].max(axis=1)
        numbers: npt.NDArray[np.intp] = columns[0].argmax(axis=1)
        # A character spans several columns; between two equal ones is a column of number 0.
        begins = (numbers != 0) & (numbers != np.roll(numbers, 1))
        begins[0] = numbers[0] != 0
        read: list[int] = numbers[begins].tolist()
        text = "".join(self._characters[number] for number in read)
        return Piece(text, box, float(sureness[begins].mean()) if text else 0.0)


def detector_size(width: int, height: int) -> tuple[int, int]:
    """Width and height that the detector can take, and at which it sees small text."""
    ratio = max(1.0, SIDE_MIN / min(width, height))
    ratio = min(ratio, SIDE_MAX / max(width, height))
    sides = (max(1, round(side * ratio / SIDE_STEP)) * SIDE_STEP for side in (width, height))
    return next(sides), next(sides)


def pixels(picture: Image.Image) -> Floats:
    """Return [1, 3, height, width], blue first, from -1 to 1."""
    values = np.asarray(picture, np.float32)[:, :, ::-1] / 127.5 - 1
    return np.ascontiguousarray(values.transpose(2, 0, 1)[np.newaxis])


def strip(cut: Image.Image, width_min: int, width_max: int | None = None) -> Floats:
    """Return a piece at the height of the readers, with grey behind it up to the least width."""
    width = math.ceil(HEIGHT * cut.width / cut.height)
    width = min(width, width_max or width)
    filled: Floats = np.zeros((1, 3, HEIGHT, max(width_min, width)), np.float32)
    filled[:, :, :, :width] = pixels(cut.resize((width, HEIGHT)))
    return filled


def thickened(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the mask with each pixel of text also below and right of itself: small gaps close."""
    thick = mask.copy()
    thick[1:] |= mask[:-1]
    thick[:, 1:] |= thick[:, :-1].copy()
    return thick


def connected(mask: npt.NDArray[np.bool_]) -> list[Box]:
    """Return the boxes around what hangs together, also at corners.

    Rows are cut into runs of text; a run belongs to all runs of the row above that it touches.
    """
    boxes: dict[int, Box] = {}
    numbers = itertools.count()
    above: list[tuple[int, int, int]] = []  # first column, end, number of the box
    for row, runs in enumerate(map(row_runs, mask)):
        here: list[tuple[int, int, int]] = []
        for left, right in runs:
            touched = {n for first, end, n in above if first <= right and left <= end}
            number = min(touched, default=next(numbers))
            joined = [boxes.pop(n) for n in touched] + [Box(row, left, row + 1, right)]
            boxes[number] = around(joined)
            above = [(first, end, number if n in touched else n) for first, end, n in above]
            here = [(first, end, number if n in touched else n) for first, end, n in here]
            here.append((left, right, number))
        above = here
    return [box for box in boxes.values() if min(box.bottom - box.top, box.right - box.left) > 2]


def row_runs(row: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield the first column and the end of each run of text in a row."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], row, [False]))))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def around(boxes: list[Box]) -> Box:
    """Return the box around several."""
    return Box(
        min(box.top for box in boxes),
        min(box.left for box in boxes),
        max(box.bottom for box in boxes),
        max(box.right for box in boxes),
    )


def grown(box: Box) -> Box:
    """Return the box of the text whose middle the detector has marked."""
    height, width = box.bottom - box.top, box.right - box.left
    by = round(height * width * GROWTH / (2 * (height + width)))
    return Box(box.top - by, box.left - by, box.bottom + by, box.right + by)


def scaled(box: Box, scale: tuple[float, float], picture: Image.Image) -> Box:
    """Return a box of what the detector saw as one of the picture."""
    return Box(
        max(0, math.floor(box.top * scale[1])),
        max(0, math.floor(box.left * scale[0])),
        min(picture.height, math.ceil(box.bottom * scale[1])),
        min(picture.width, math.ceil(box.right * scale[0])),
    )


def in_reading_order(boxes: list[Box]) -> list[Box]:
    """Return the boxes by lines, each from the left; a box is of a line if their middles are less
    than half its height apart."""
    lines: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: box.top + box.bottom):
        last = lines[-1][-1] if lines else None
        apart = abs(box.top + box.bottom - last.top - last.bottom) if last else 0
        if last and apart < box.bottom - box.top:
            lines[-1].append(box)
        else:
            lines.append([box])
    return [box for line in lines for box in sorted(line, key=lambda box: box.left)]


def open_picture(path: Path) -> Image.Image:
    """Return a picture with all its pixels, or end with what is wrong."""
    try:
        with Image.open(path) as picture:
            picture.load()
            return picture
    except UnidentifiedImageError:
        sys.exit(f"error: {path} is no picture that Pillow knows")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        sys.exit(f"error: cannot read the picture {path}: {error}")


def open_reader(folder: Path, threads: int) -> Reader:
    """Return a reader, or end with what is wrong."""
    try:
        return Reader(folder, threads)
    except ingot_runtime.FileError as error:
        do = f"run `{HERE / 'fetch_models.py'}`, then `ingot build -C {HERE}`"
        sys.exit(f"error: {error.what}\n  why: {error.why}\n  do: {do}")
    except ingot_runtime.BundleError as error:
        sys.exit(f"error: {error}")
    except (OSError, UnicodeError) as error:
        sys.exit(f"error: cannot read the characters\n  why: {error}\n  do: run fetch_models.py")


def main() -> None:
    """Read one picture, and print what it says."""
    parser = argparse.ArgumentParser(description="read the text in a picture")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--bundles", type=Path, default=HERE / "dist", help="default: dist")
    parser.add_argument("--threads", type=int, default=1)
    arguments: Any = parser.parse_args()
    picture = open_picture(arguments.picture)
    for piece in open_reader(arguments.bundles, arguments.threads).read(picture):
        print(f"{piece.sureness:.2f}  {piece.text}")


if __name__ == "__main__":
    main()
