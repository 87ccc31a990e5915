"""Tile registers (AMX) in software: functions that stand for the instructions of a kernel's text.

In: the text of a kernel that names the intrinsics. Out: text that calls these functions in their
place. Not done here: any check but that registers have the shapes that an instruction asks for.

Written from the pseudocode of Intel's manual, apart from the compiler's own account of it.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_CALL = re.compile(r"call void @llvm\.x86\.(\w+)\(")
_DECLARATION = re.compile(r"^declare void @llvm\.x86\.(t\w+|ldtilecfg)\(.*\n", re.MULTILINE)
_BYTE, _PLACE, _WORD = ctypes.c_int8, ctypes.c_void_p, ctypes.c_int64


class SoftwareTiles:
    """Eight registers of up to 16 rows of 64 bytes; ``counts``: how often each function ran;
    ``errors``: what was wrong with a call."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.errors: list[Exception] = []
        self.shapes: list[tuple[int, int]] | None = None
        self.tiles = [np.zeros((16, 64), np.uint8) for _ in range(8)]
        signs = {
            f"tdpb{a}{b}d": self._bytes_by(a, b) for a in "su" for b in "su"
        }  # fmt: skip
        functions: dict[str, tuple[Callable[..., None], tuple[Any, ...]]] = {
            "ldtilecfg": (self._configure, (_PLACE,)),
            "tilerelease": (self._release, ()),
            "tilezero": (self._clear, (_BYTE,)),
            "tileloadd64": (self._load, (_BYTE, _PLACE, _WORD)),
            "tilestored64": (self._store, (_BYTE, _PLACE, _WORD)),
            "tdpbf16ps": (self._multiply_bf16, (_BYTE,) * 3),
            **{name: (function, (_BYTE,) * 3) for name, function in signs.items()},
        }
        self._functions = {
            name: ctypes.CFUNCTYPE(None, *kinds)(self._counted(name, function))
            for name, (function, kinds) in functions.items()
        }

    def in_place(self, text: str) -> str:
        """The text, with calls of functions in the place of instructions."""

        def call(found: re.Match[str]) -> str:
            function = self._functions.get(found[1])
            if function is None:
                return found[0]
            return f"call void inttoptr (i64 {ctypes.cast(function, _PLACE).value} to ptr)("

        return _CALL.sub(call, _DECLARATION.sub("", text))

    def _counted(self, name: str, function: Callable[..., None]) -> Callable[..., None]:
        def run(*arguments: int) -> None:
            self.counts[name] = self.counts.get(name, 0) + 1
            try:
                function(*arguments)
            except Exception as error:  # which must not go through the kernel
                self.errors.append(error)

        return run

    def _configure(self, place: int) -> None:
        content = ctypes.string_at(place, 64)
        assert content[:16] == b"\x01" + bytes(15), "palette, start row, reserved bytes"
        widths = np.frombuffer(content[16:32], np.uint16).tolist()
        rows = list(content[48:56])
        assert not any((*content[32:48], *content[56:])), "reserved bytes"
        for height, width in zip(rows, widths, strict=True):
            assert max(4 * height, width) <= 64
            assert (height == 0) == (width == 0)
        self.shapes = list(zip(rows, widths, strict=True))
        for tile in self.tiles:
            tile[...] = 0

    def _release(self) -> None:
        assert self.shapes is not None
        self.shapes = None

    def _shape(self, number: int) -> tuple[int, int]:
        assert self.shapes is not None, "no configuration"
        assert self.shapes[number][0], f"register {number} has no shape"
        return self.shapes[number]

    def _clear(self, number: int) -> None:
        self._shape(number)
        self.tiles[number][...] = 0

    def _load(self, number: int, place: int, pitch: int) -> None:
        rows, width = self._shape(number)
        self.tiles[number][...] = 0
        for row in range(rows):
            line = ctypes.string_at(place + row * pitch, width)
            self.tiles[number][row, :width] = np.frombuffer(line, np.uint8)

    def _store(self, number: int, place: int, pitch: int) -> None:
        rows, width = self._shape(number)
        for row in range(rows):
            ctypes.memmove(place + row * pitch, self.tiles[number][row].tobytes(), width)

    def _words(self, number: int, dtype: npt.DTypeLike) -> Array:
        rows, width = self._shape(number)
        return np.ascontiguousarray(self.tiles[number][:rows, :width]).view(dtype)

    def _operands(
        self, total: int, left: int, right: int, dtype: str
    ) -> tuple[Array, Array, Array]:
        """The sums, A as [row][step][element], B as [step][column][element]."""
        (rows, width), (high, step_bytes), (steps, wide) = map(self._shape, (total, left, right))
        assert (high, step_bytes // 4, wide) == (rows, steps, width), "shapes that do not fit"
        own, other = dtype.split()
        count = 4 // np.dtype(own).itemsize
        a = self._words(left, own).reshape(rows, steps, count)
        b = self._words(right, other).reshape(steps, width // 4, count)
        return self._words(total, "f4" if own == "u2" else "i4"), a, b

    def _keep(self, number: int, sums: Array) -> None:
        rows, width = self._shape(number)
        self.tiles[number][:rows, :width] = np.ascontiguousarray(sums).view(np.uint8)

    def _bytes_by(self, a_sign: str, b_sign: str) -> Callable[[int, int, int], None]:
        kinds = {"s": "i1", "u": "u1"}

        def multiply(total: int, left: int, right: int) -> None:
            sums, a, b = self._operands(total, left, right, f"{kinds[a_sign]} {kinds[b_sign]}")
            products = np.einsum("mkj,knj->mn", a.astype(np.int64), b.astype(np.int64))
            self._keep(total, (sums.astype(np.int64) + products).astype(np.int32))

        return multiply

    def _multiply_bf16(self, total: int, left: int, right: int) -> None:
        sums, a, b = self._operands(total, left, right, "u2 u2")
        wide_a, wide_b = (flushed((each.astype(np.uint32) << 16).view("f4")) for each in (a, b))
        with np.errstate(all="ignore"):
            chains = [np.zeros(sums.shape, np.float32)] * 2
            for step in range(a.shape[1]):
                for half in range(2):
                    # Exact in f64, and rounded once to f32 as by a multiply-add.
                    factors = wide_a[:, step, half, None], wide_b[None, step, :, half]
                    product = factors[0].astype(np.float64) * factors[1]
                    chains[half] = flushed((chains[half] + product).astype(np.float32))
            joined = flushed(chains[0] + chains[1])
            self._keep(total, flushed(flushed(sums) + joined))


def flushed(numbers: Array) -> Array:
    """Denormal numbers as 0."""
    return np.where(np.abs(numbers) < 2.0**-126, np.copysign(np.float32(0), numbers), numbers)
