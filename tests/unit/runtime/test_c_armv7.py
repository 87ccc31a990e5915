"""Models as C on a 32-bit processor (armv7), under qemu-user: every architecture of
``tests/models`` that C source takes, without any libc; some with musl and with glibc.

Needs ``qemu-user`` and, for glibc, ``libc6-armhf-cross`` (`pytest -m qemu`).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.c_source import STRICT, compile_c, export
from tests.harness.codegen_harness import Array
from tests.harness.qemu_harness import emulator
from tests.unit.end_to_end.test_models import STATIC, Cases
from tests.unit.tools.test_c_source import DATA_DEPENDENT, bundle_run

from ingot_runtime.executor.numpy_dtypes import dtype_of
from ingot_runtime.format.dtypes import DTYPE_CODES

pytestmark = pytest.mark.qemu
GLIBC_ROOT = Path("/usr/arm-linux-gnueabihf")
LINKED = {
    "none": ("arm-linux-musleabihf", "-static", "-nostdlib", "-fno-builtin", "-rtlib=compiler-rt"),
    "musl": ("arm-linux-musleabihf", "-static", "-DWITH_LIBC"),
    "glibc": ("arm-linux-gnueabihf.2.36", "-DWITH_LIBC"),
}
WITH_LIBC = ("gpt2", "lstm")  # the C compiler makes each libc first, which takes it a minute
# Reads and writes until all is done; ends the process with the code of the call.
SYSTEM = """\
#ifdef WITH_LIBC
#include <unistd.h>
int main(void) { return ended(); }
#else
static long call(long number, long first, void *second, unsigned long third) {
  register long r7 __asm__("r7") = number, r0 __asm__("r0") = first;
  register unsigned long r2 __asm__("r2") = third;
  register void *r1 __asm__("r1") = second;
  __asm__ volatile("svc 0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2) : "memory");
  return r0;
}
static long read(int file, void *data, unsigned long size) { return call(3, file, data, size); }
static long write(int file, void *data, unsigned long size) { return call(4, file, data, size); }
void _start(void);
void _start(void) { call(1, ended(), 0, 0); }
#endif
static int move(int is_written, void *data, unsigned long size) {
  char *at = data;
  while (size > 0) {
    long part = is_written ? write(1, at, size) : read(0, at, size);
    if (part <= 0) return 1;
    at += part, size -= (unsigned long)part;
  }
  return 0;
}
"""
_FLAGS = ("-mcpu=cortex_a9", "-O1", "-g0", "-fno-sanitize=all", *STRICT)


def main_text(name: str, tensors: dict[str, list[int]]) -> str:
    """A program that reads all inputs, one behind the other, and writes all outputs."""
    lines = [f'#include "{name}.h"', "static int ended(void);", SYSTEM]
    for kind, sizes in tensors.items():
        lines += [f"static uint64_t {kind}{at}[{-(-size // 8)}];" for at, size in enumerate(sizes)]
        places = ", ".join(f"(void *){kind}{at}" for at in range(len(sizes)))
        lines.append(f"static const struct {name}_{kind} {kind} = {{{places}}};")
    lines.append("static int ended(void) {")
    for at, size in enumerate(tensors["inputs"]):
        lines.append(f"  if (move(0, inputs{at}, {size})) return 100;")
    lines.append(f"  int code = {name}_run(&inputs, &outputs);")
    for at, size in enumerate(tensors["outputs"]):
        lines.append(f"  if (move(1, outputs{at}, {size})) return 100;")
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
        (self.folder / "main.c").write_text(main_text(name, sizes))
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


def check(model: str, folder: Path, libcs: tuple[str, ...]) -> None:
    """The bits are those of machine code for the same loops on x86-64."""
    cases = Cases(model, dynamic=False)
    header = export(cases.path, folder / "c", "--name", model)
    programs = [ArmModel(header, libc) for libc in libcs]
    for given in cases.feeds:
        expected = bundle_run(cases.path, "x86-64-v2", given, folder)
        for program in programs:
            result = program.run(given)
            assert list(result) == list(expected)
            for name, array in expected.items():
                assert array.tobytes() == result[name].tobytes()


@pytest.mark.parametrize("model", [model for model in STATIC if model not in DATA_DEPENDENT])
def test_architectures(model: str, tmp_path: Path) -> None:
    """Each runs on a kernel alone."""
    check(model, tmp_path, ("none",))


@pytest.mark.parametrize("model", WITH_LIBC)
def test_programs_with_a_libc(model: str, tmp_path: Path) -> None:
    """Linked with musl, and with a glibc that the system has."""
    assert GLIBC_ROOT.is_dir(), "this test needs glibc for armv7: apt-get install libc6-armhf-cross"
    check(model, tmp_path, ("musl", "glibc"))
