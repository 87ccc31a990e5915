"""C source that ``ingot export --c-source`` wrote, compiled by the pinned compiler and called in
this process.

In: a model, what the command takes. Out: the outputs of calls. Not done here: tests. Nothing is
linked to: the source needs no libc.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_build_rules.tools.cli.main import main
from ingot_compiler.backends.host.zig import run_zig
from ingot_runtime.executor.numpy_dtypes import dtype_of
from ingot_runtime.format.dtypes import DTYPE_CODES

Array = npt.NDArray[Any]
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")
_FLAGS = (
    "-target", "x86_64-linux-gnu", "-mcpu=x86_64_v3", "-O1", "-g0", "-fPIC", "-shared",
    "-nostdlib", "-fno-sanitize=all",
)  # fmt: skip


def export(model: Path, folder: Path, *options: str) -> Path:
    """Write the source into a folder; return its header."""
    folder.mkdir(exist_ok=True)
    assert main(["export", str(model), "--c-source", "-o", str(folder), *options]) == 0
    return next(path for path in folder.glob("*.h") if not path.stem.endswith("_support"))


def compile_c(folder: Path, *arguments: str) -> str:
    """Run the compiler in a folder; return what it has to complain of."""
    return run_zig(("cc", *arguments), str(folder)).stderr


class CModel:
    """A model in C, compiled with every warning that the standard's own options have."""

    def __init__(self, header: Path) -> None:
        """Compile and load it."""
        folder, self.name = header.parent, header.stem
        self.facts: dict[str, Any] = json.loads((folder / f"{self.name}.json").read_text())
        sources = sorted(path.name for path in folder.glob("*.c"))
        assert compile_c(folder, *_FLAGS, *STRICT, *sources, "-o", "model.so") == ""
        self.library = ctypes.CDLL(str(folder / "model.so"))
        self._message = self.library[f"{self.name}_message"]
        self._message.restype = ctypes.c_char_p

    def run(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Return the outputs by the user's names."""
        outputs = {
            spec["name"]: np.zeros(spec["shape"], dtype_of(DTYPE_CODES[spec["dtype"]]))
            for spec in self.facts["outputs"]
        }
        code = self.call(given, outputs)
        assert code == 0, self.message(code)
        return outputs

    def call(self, given: Mapping[str, Array], outputs: Mapping[str, Array]) -> int:
        """Return what a call returns; it writes to ``outputs``."""
        arrays = [np.array(given[spec["name"]], order="C") for spec in self.facts["inputs"]]
        code: int = self.library[f"{self.name}_run"](
            _addresses(arrays), _addresses(list(outputs.values()))
        )
        return code

    def run_inside(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Return the outputs of a model that has its tensors in the workspace; every other byte of
        that is what earlier calls left."""
        places = {
            kind: _pointers(self.library, f"{self.name}_map_{kind}", len(self.facts[kind]))
            for kind in ("inputs", "outputs")
        }
        arrays = [np.array(given[spec["name"]], order="C") for spec in self.facts["inputs"]]
        for array, place in zip(arrays, places["inputs"], strict=True):
            ctypes.memmove(place, array.ctypes.data, array.nbytes)
        code: int = self.library[f"{self.name}_run"](None, None)
        assert code == 0, self.message(code)
        found = dict[str, Array]()
        for spec, place in zip(self.facts["outputs"], places["outputs"], strict=True):
            array = np.zeros(spec["shape"], dtype_of(DTYPE_CODES[spec["dtype"]]))
            ctypes.memmove(array.ctypes.data, place, array.nbytes)
            found[spec["name"]] = array
        return found

    def message(self, code: int) -> str:
        """Return what a code means."""
        text: bytes = self._message(code)
        return text.decode()


def _pointers(library: ctypes.CDLL, name: str, count: int) -> list[int]:
    """The members of a struct of pointers that a function returns."""

    class Struct(ctypes.Structure):
        _fields_ = [(f"p{at}", ctypes.c_void_p) for at in range(count)]

    function = library[name]
    function.restype = Struct
    made = function()
    return [getattr(made, f"p{at}") for at in range(count)]


def _addresses(arrays: list[Array]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))
