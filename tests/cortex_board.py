"""C source as the program of a board with a Cortex-M4 and 2 MiB of RAM, which qemu plays.

In: a header that ``ingot export --c-source`` wrote. Out: outputs of calls, and the bytes of the
stack that a call wrote to. Not done here: tests. The board's own code is that of
``examples/microcontroller``; inputs and outputs go through files, by semihosting.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tests.c_source import Array, compile_c

from ingot_runtime.executor.numpy_dtypes import dtype_of
from ingot_runtime.format.dtypes import DTYPE_CODES

BOARD = Path(__file__).parents[1] / "examples" / "microcontroller"
RAM = "2M"
CORTEX_M4 = (
    "-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m4", "-std=c99", "-g0",
    "-fno-sanitize=all",
)  # fmt: skip
_FAILED = 100
_MAIN = """\
#include "{name}.h"
#include "board.h"

extern uint32_t zeros_end[];
{storage}
static uint32_t semihosting(uint32_t call, const void *argument) {{
  register uint32_t r0 __asm__("r0") = call;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}}
static uint32_t open(const char *name, uint32_t mode, uint32_t length) {{
  const uint32_t block[] = {{(uint32_t)name, mode, length}};
  return semihosting(0x01, block);
}}
static uint32_t move(uint32_t call, uint32_t file, void *data, uint32_t size) {{
  const uint32_t block[] = {{file, (uint32_t)data, size}};
  return semihosting(call, block);
}}
static uint32_t *base; // of the stack, where the call begins
static __attribute__((noinline)) int run(void) {{
  const struct {name}_inputs inputs = {{{inputs}}};
  const struct {name}_outputs outputs = {{{outputs}}};
  __asm__ volatile("mov %0, sp" : "=r"(base));
  return {name}_run(&inputs, &outputs);
}}
int main(void) {{
  uint32_t here, used = 0, file = open("in", 1, 2);
{reads}
  volatile uint32_t *const end = &here - 16;
  for (volatile uint32_t *at = zeros_end; at < end; at++) *at = 0x5AA5C33Cu;
  const int code = run();
  for (volatile uint32_t *at = zeros_end; at < end; at++)
    if (*at != 0x5AA5C33Cu) {{
      used = at < base ? 4 * (uint32_t)(base - at) : 4;
      break;
    }}
  file = open("out", 5, 3);
{writes}
  if (move(0x05, file, &used, 4)) return {failed};
  return code;
}}
"""


class BoardModel:
    """A model in C on the board. ``stack_bytes``: of the last call."""

    def __init__(self, header: Path, level: str = "-Os") -> None:
        """Compile and link it; what does not fit is an error of the linker."""
        assert shutil.which("qemu-system-arm"), "this needs it: apt-get install qemu-system-arm"
        self.folder, self.name, self.stack_bytes = header.parent, header.stem, 0
        facts = json.loads((self.folder / f"{self.name}.json").read_text())
        self.facts: dict[str, Any] = facts
        (self.folder / "main.c").write_text(self._main())
        layout = (BOARD / "board.ld").read_text()
        layout, count = re.subn(r"(ram \(rw\) .* LENGTH = )\w+", rf"\g<1>{RAM}", layout)
        assert count == 1
        (self.folder / "board.ld").write_text(layout)
        sources = sorted(path.name for path in self.folder.glob("*.c"))
        line = (*CORTEX_M4, level, "-Wl,--entry=start", "-T", "board.ld", f"-I{BOARD}", *sources)
        assert compile_c(self.folder, *line, str(BOARD / "board.c"), "-o", "m.elf") == ""

    def run(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Return the outputs by the user's names."""
        arrays = [np.ascontiguousarray(given[spec["name"]]) for spec in self.facts["inputs"]]
        (self.folder / "in").write_bytes(b"".join(array.tobytes() for array in arrays))
        line = (
            "qemu-system-arm", "-M", "mps2-an386", "-display", "none", "-serial", "none", "-monitor",
            "none", "-semihosting-config", "enable=on,target=native", "-kernel", "m.elf",
        )  # fmt: skip
        done = subprocess.run(line, cwd=self.folder, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        data, found = (self.folder / "out").read_bytes(), dict[str, Array]()
        for spec in self.facts["outputs"]:
            kind, size = dtype_of(DTYPE_CODES[spec["dtype"]]), _size(spec)
            found[spec["name"]] = np.frombuffer(data[:size], kind).reshape(spec["shape"])
            data = data[size:]
        (self.stack_bytes,) = struct.unpack("<I", data)
        return found

    def _main(self) -> str:
        tensors = {
            letter: [_size(spec) for spec in self.facts[kind]]
            for letter, kind in (("i", "inputs"), ("o", "outputs"))
        }
        places = {
            letter: ", ".join(f"(void *){letter}{at}" for at in range(len(sizes)))
            for letter, sizes in tensors.items()
        }
        storage = [
            f"static uint64_t {letter}{at}[{max(1, -(-size // 8))}];"
            for letter, sizes in tensors.items()
            for at, size in enumerate(sizes)
        ]
        moves = {
            letter: "\n".join(
                f"  if (move({call}, file, {letter}{at}, {size})) return {_FAILED};"
                for at, size in enumerate(tensors[letter])
                if size
            )
            for letter, call in (("i", "0x06"), ("o", "0x05"))
        }
        return _MAIN.format(
            name=self.name,
            storage="\n".join(storage),
            inputs=places["i"],
            outputs=places["o"],
            reads=moves["i"],
            writes=moves["o"],
            failed=_FAILED,
        )


def _size(spec: Mapping[str, Any]) -> int:
    kind = dtype_of(DTYPE_CODES[spec["dtype"]])
    return int(np.prod(spec["shape"], dtype=np.int64)) * kind.itemsize
