"""Models as C on a 32-bit processor (armv7), with musl and with glibc, under qemu-user: every
architecture of ``tests/models`` that C source takes.

Needs ``qemu-user`` and, for glibc, ``libc6-armhf-cross`` (`pytest -m qemu`).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.c_source import STRICT, compile_c, export
from tests.unit.codegen_harness import Array
from tests.unit.qemu_harness import emulator
from tests.unit.test_c_source import DATA_DEPENDENT, bundle_run
from tests.unit.test_models import STATIC, Cases

from ingot_runtime.executor.numpy_dtypes import dtype_of
from ingot_runtime.format.dtypes import DTYPE_CODES

pytestmark = pytest.mark.qemu
GLIBC_ROOT = Path("/usr/arm-linux-gnueabihf")
LINKED = {"musl": ("arm-linux-musleabihf", "-static"), "glibc": ("arm-linux-gnueabihf.2.36",)}
_FLAGS = ("-mcpu=cortex_a9", "-O1", "-g0", "-fno-sanitize=all", *STRICT)


def main_text(facts: dict[str, object], tensors: dict[str, list[int]]) -> str:
    """A program that reads all inputs, one behind the other, and writes all outputs."""
    name = facts["model"]
    lines = [f'#include "{name}.h"', "#include <stdio.h>"]
    for kind, sizes in tensors.items():
        lines += [f"static uint64_t {kind}{at}[{-(-size // 8)}];" for at, size in enumerate(sizes)]
        places = ", ".join(f"(void *){kind}{at}" for at in range(len(sizes)))
        lines.append(f"static const struct {name}_{kind} {kind} = {{{places}}};")
    lines.append("int main(void) {")
    for at, size in enumerate(tensors["inputs"]):
        lines.append(f"  if (fread(inputs{at}, 1, {size}, stdin) != {size}) return 100;")
    lines.append(f"  int code = {name}_run(&inputs, &outputs);")
    for at, size in enumerate(tensors["outputs"]):
        lines.append(f"  if (fwrite(outputs{at}, 1, {size}, stdout) != {size}) return 100;")
    return "\n".join([*lines, "  return code;", "}", ""])


class ArmModel:
    """A model in C as a program for armv7."""

    def __init__(self, header: Path, libc: str) -> None:
        """Compile it with every warning of the standard's own options."""
        self.folder, name = header.parent, header.stem
        facts = json.loads((self.folder / f"{name}.json").read_text())
        self.outputs = facts["outputs"]
        self.inputs = [spec["name"] for spec in facts["inputs"]]
        sizes = {kind: [size_of(spec) for spec in facts[kind]] for kind in ("inputs", "outputs")}
        (self.folder / "main.c").write_text(main_text({"model": name}, sizes))
        sources = sorted(path.name for path in self.folder.glob("*.c"))
        triple, *flags = LINKED[libc]
        line = ("-target", triple, *flags, *_FLAGS, *sources, "-o", libc)
        assert compile_c(self.folder, *line) == ""
        root = ["-L", str(GLIBC_ROOT)] if libc == "glibc" else []
        self.command = [*emulator("arm"), *root, str(self.folder / libc)]

    def run(self, given: dict[str, Array]) -> dict[str, Array]:
        """Return the outputs by the user's names."""
        data = b"".join(np.ascontiguousarray(given[name]).tobytes() for name in self.inputs)
        done = subprocess.run(self.command, input=data, capture_output=True, check=False, env={})
        assert (done.returncode, done.stderr) == (0, b"")
        found, at = dict[str, Array](), 0
        for spec in self.outputs:
            end = at + size_of(spec)
            array = np.frombuffer(done.stdout[at:end], dtype_of(DTYPE_CODES[spec["dtype"]]))
            found[spec["name"]], at = array.reshape(spec["shape"]), end
        assert at == len(done.stdout)
        return found


def size_of(spec: dict[str, list[int]]) -> int:
    """Bytes of a tensor as the report of an export tells of it."""
    dtype = dtype_of(DTYPE_CODES[str(spec["dtype"])])
    return int(np.prod(spec["shape"], dtype=np.int64)) * dtype.itemsize


@pytest.mark.parametrize("model", [model for model in STATIC if model not in DATA_DEPENDENT])
def test_architectures(model: str, tmp_path: Path) -> None:
    """The bits are those of machine code for the same loops on x86-64, with both C libraries."""
    assert GLIBC_ROOT.is_dir(), "this test needs glibc for armv7: apt-get install libc6-armhf-cross"
    cases = Cases(model, dynamic=False)
    header = export(cases.path, tmp_path / "c", "--name", model)
    programs = [ArmModel(header, libc) for libc in LINKED]
    for given in cases.feeds:
        expected = bundle_run(cases.path, "x86-64-v2", given, tmp_path)
        for program in programs:
            result = program.run(given)
            assert list(result) == list(expected)
            for name, array in expected.items():
                assert array.tobytes() == result[name].tobytes()
