"""The header of a model in C source: structs with the model's names, what a call needs as macros.

In: ``CFacts``. Out: text that compiles alone as C99 and C++11. Not done here: the code behind it
(``rules.c_source``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from ingot_build_rules.tools.export.c_tensors import CTensor, size_lines, struct_lines
from ingot_runtime.lazy_dataclass import dataclass

_HEAD = """\
// Written by `ingot export --c-source`: the model {model} as C99.
// RAM: {model}_RAM_BYTES in {model}.c, inputs and outputs, and {model}_STACK_BYTES of the stack
// (of processors of 32 bits, by compilers that optimise).
// Flash: {model}_WEIGHTS_BYTES, and code. It is not reentrant: a call uses the one workspace.
#ifndef {guard}
#define {guard}
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif
"""
_RUN = """
// Runs the model: 0, or the number of a requirement that its inputs break.
int {model}_run(const struct {model}_inputs *inputs, const struct {model}_outputs *outputs);
// What such a number means.
const char *{model}_message(int code);
"""
_MAPS = """
// Where inputs and outputs lie in the workspace; {model}_run takes null for both. A call writes
// over its inputs: write them before each, and read the outputs before the next.
struct {model}_inputs {model}_map_inputs(void);
struct {model}_outputs {model}_map_outputs(void);"""
_END = """\
#ifdef __cplusplus
}
#endif
#endif
"""


@dataclass(frozen=True, slots=True)
class CFacts:
    """``model``: its identifier; ``weights_apart``: the program says where they lie;
    ``tensors_inside``: inputs and outputs are in the workspace; ``form``: of C."""

    model: str
    inputs: tuple[CTensor, ...]
    outputs: tuple[CTensor, ...]
    workspace_bytes: int
    scratch_bytes: int
    stack_bytes: int
    weights_bytes: int
    weights_apart: bool
    tensors_inside: bool
    kernel_count: int
    call_count: int
    form: str

    @property
    def ram_bytes(self) -> int:
        """The bytes of intermediate results, with what kernels use behind them."""
        return self.workspace_bytes + self.scratch_bytes

    def counts(self) -> dict[str, int]:
        """Return what a report tells."""
        return {
            "ram_bytes": self.ram_bytes,
            "stack_bytes": self.stack_bytes,
            "weights_bytes": self.weights_bytes,
            "kernel_count": self.kernel_count,
            "call_count": self.call_count,
        }

    def plain(self) -> dict[str, object]:
        """Return them as ``NAME.json`` has them."""
        return {
            "model": self.model,
            "target": self.form,
            **self.counts(),
            "workspace_bytes": self.workspace_bytes,
            "scratch_bytes": self.scratch_bytes,
            "weights": "apart" if self.weights_apart else "inside",
            "tensors": "inside" if self.tensors_inside else "apart",
            "inputs": [asdict(tensor) for tensor in self.inputs],
            "outputs": [asdict(tensor) for tensor in self.outputs],
        }


def c_header(facts: CFacts) -> str:
    """Write it."""
    head = _HEAD.format(model=facts.model, guard=f"{facts.model.upper()}_H")
    return "\n".join((head, *_body(facts), _END))


def _body(facts: CFacts) -> Iterator[str]:
    model = facts.model
    yield f"#define {model}_RAM_BYTES {facts.ram_bytes}"
    yield f"#define {model}_STACK_BYTES {facts.stack_bytes}"
    yield f"#define {model}_WEIGHTS_BYTES {facts.weights_bytes}"
    yield from size_lines(f"{model}_input", facts.inputs)
    yield from size_lines(f"{model}_output", facts.outputs)
    yield ""
    written = "" if facts.tensors_inside else "const "
    yield from struct_lines(f"{model}_inputs", facts.inputs, written)
    yield from struct_lines(f"{model}_outputs", facts.outputs)
    if facts.tensors_inside:
        yield _MAPS.format(model=model)
    yield _RUN.format(model=model)
    if facts.weights_apart:
        yield f"// Where {model}.weights lies, at a multiple of 8 bytes; set it before a call."
        yield f"extern const void *{model}_weights;"
    elif facts.weights_bytes:
        yield f"extern const uint64_t {model}_weights[{-(-facts.weights_bytes // 8)}];"
