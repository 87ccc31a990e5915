"""The text of one kernel: the function that runs a part of its units, and the kernel that calls it.

In: a loop program. Out: ``DeviceKernel``. Not done here: libraries (``link_library``).

Arguments of a kernel: memory and byte offset of each buffer; the scalars (long); memory and offset
of scratch; memory where a broken requirement is reported, behind which 128 bytes may be read;
extent and the units of a work item (long). ``runtime/FORMAT.md`` states it for loaders.
"""

from __future__ import annotations

from ingot_compiler.backends.c_text.function import function_source
from ingot_compiler.backends.c_text.scope import SPARE
from ingot_compiler.backends.c_text.values import GLOBAL
from ingot_compiler.backends.host.device_kernel import DeviceKernel, kernel_row
from ingot_compiler.backends.opencl.c_dims import ITEMS_MAX, c_dim
from ingot_compiler.backends.opencl.opencl_dialect import OPENCL_C
from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.kernels.machines import VECTOR_MACHINE
from ingot_compiler.lowering.loops.program import LoopProgram

REPORT_BYTES = 64


def kernel_source(program: LoopProgram) -> DeviceKernel:
    """Write the kernel of a program."""
    kernel = kernel_module(program, VECTOR_MACHINE)
    symbol, source = kernel.symbol, function_source(OPENCL_C, kernel.without_tables())
    parameters = ", ".join(
        OPENCL_C.pointer(GLOBAL, each.text) if each.space else f"long {each.text}"
        for each in (*source.parameters, SPARE)
    )
    lines = [
        *source.tables,
        f"int {symbol}_units({parameters}) {{",
        *(each.text for each in (*source.declarations, *source.statements)),
        "}",
        *_kernel(symbol, program),
    ]
    row = kernel_row(program, symbol, has_report=kernel.reports)
    return DeviceKernel(symbol, row, "\n".join([*lines, ""]))


def kernel_text(program: LoopProgram, target: str) -> str:
    """The hook ``kernel_text``: the OpenCL C that the device's driver compiles."""
    del target
    return kernel_source(program).text


def _kernel(symbol: str, program: LoopProgram) -> list[str]:
    """The kernel proper: each work item runs some units beside each other."""
    buffers, scalars = range(len(program.buffers)), range(len(program.scalars))
    parameters = ", ".join(
        (
            *(f"__global uchar *m{number}, long o{number}" for number in buffers),
            *(f"long s{number}" for number in scalars),
            "__global uchar *scratch, long scratch_at, __global int *report, long extent, long share",
        )
    )
    names = dict(zip(program.scalars, (f"s{number}" for number in scalars), strict=True))
    own = c_dim(dim_floordiv(program.scratch_bytes, ITEMS_MAX), names)
    arguments = ", ".join(
        (
            *(f"m{number} + o{number}" for number in buffers),
            *(f"s{number}" for number in scalars),
            "first, last, scratch + scratch_at + item * own",
            f"(__global uchar *)report + {REPORT_BYTES}",
        )
    )
    return [
        f"__kernel void {symbol}({parameters}) {{",
        "  const long item = get_global_id(0);",
        f"  const long own = {own};",
        "  const long first = item * share;",
        "  const long last = min(first + share, extent);",
        "  if (first < last) {",
        f"    const int code = {symbol}_units({arguments});",
        "    if (code) atomic_max(report, code);",
        "  }",
        "}",
    ]
