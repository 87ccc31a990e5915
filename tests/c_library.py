"""A library that ``ingot export --library`` wrote, inside of this process.

In: a bundle, what the command takes. Out: the outputs of calls, codes. Not done here: tests.
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_build_rules.tools.cli.main import main
from ingot_runtime.executor.numpy_dtypes import dtype_of
from ingot_runtime.format.dtypes import DTYPE_CODES

Array = npt.NDArray[Any]
GUARD = 0xA5  # what memory beside that of a call keeps


def export(bundle: Path, folder: Path, *options: str) -> Path:
    """Write a library and its header into a folder; return the header."""
    folder.mkdir(exist_ok=True)
    arguments = ["export", str(bundle), "--library", "-o", str(folder), *options]
    assert main(arguments) == 0
    return next(folder.glob("*.h"))


class SharedLibrary:
    """One that was written with ``--shared``; the pools that its caller gives lie between
    guards."""

    def __init__(self, header: Path) -> None:
        """Load it; its constants lie beside it, if it has none."""
        self.model = header.stem
        self.library = ctypes.CDLL(str(header.parent / f"lib{self.model}.so"))
        call = self.library[f"{self.model}_metadata"]
        call.restype = ctypes.c_char_p
        self.metadata: dict[str, Any] = json.loads(call())
        self.text = header.read_text(encoding="utf-8")
        self.abi = int(self.number("ABI").removesuffix("u"), 16)
        self.message = ctypes.create_string_buffer(200)
        self._pools = {
            pool["identifier"]: aligned(pool["size_bytes"])
            for pool in self.metadata["pools"]
            if pool["from_caller"]
        }
        constants = header.with_suffix(".constants")
        if constants.exists():
            self._pools["constants"][:-64] = np.fromfile(constants, np.uint8)

    def number(self, name: str) -> str:
        """Return the text of a macro."""
        found = re.search(rf"^#define {self.model}_{name} (\S+)", self.text, re.MULTILINE)
        assert found, name
        return found[1]

    def call(self, inputs: Any, outputs: Any, *, abi: int | None = None, shift: int = 0) -> int:
        """Call it with the addresses of tensors; pools lie ``shift`` bytes from where they
        should."""
        pools = [memory.ctypes.data + shift for memory in self._pools.values()]
        words = (ctypes.c_uint64 * (len(pools) + 2))(
            *pools, ctypes.addressof(self.message), len(self.message)
        )
        function = self.library[f"{self.model}_call"]
        code: int = function(
            ctypes.c_uint32(self.abi if abi is None else abi), inputs, outputs, words
        )
        return code

    def run(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Return the outputs by the user's names; nothing beside the pools is written to."""
        arrays = [np.array(given[spec["name"]], order="C") for spec in self.metadata["inputs"]]
        outputs = {
            spec["name"]: np.zeros(spec["shape"], dtype_of(DTYPE_CODES[spec["dtype"]]))
            for spec in self.metadata["outputs"]
        }
        assert self.call(_addresses(arrays), _addresses(list(outputs.values()))) == 0
        assert all((memory[-64:] == GUARD).all() for memory in self._pools.values())
        return outputs


def aligned(size_bytes: int) -> Array:
    """Return memory at a multiple of 64, with 64 bytes of guard behind."""
    memory = np.full(size_bytes + 128, GUARD, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size_bytes + 64]


def _addresses(arrays: list[Array]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))
