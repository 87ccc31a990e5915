"""A whole model in C: the function that runs it, and the file around the kernels.

In: what runs in which order, kernels, the names of tensors. Out: text. Not done here: the header
and the weights (``ingot_build_rules.tools.export``), kernels (``kernel_text``).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from string import ascii_letters, digits

from ingot_compiler.backends.c.c_forms import CForm
from ingot_compiler.backends.c.stack_need import CKernel
from ingot_compiler.backends.c.straight_line import (
    INPUT,
    OUTPUT,
    WEIGHTS,
    WORKSPACE,
    BufferPlace,
    CalledKernel,
    StraightLine,
)
from ingot_runtime.format.abi import RC_REQUIREMENT
from ingot_runtime.lazy_dataclass import dataclass

_PLAIN = frozenset(f"{ascii_letters}{digits} ,.:;=+()[]<>_'-")
_HEAD = """\
#include "{model}.h"
#include "{model}_support.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the weights are written for little-endian machines"
#endif
#ifndef {model}_WORKSPACE_ATTRIBUTE
#define {model}_WORKSPACE_ATTRIBUTE
#endif
"""


@dataclass(frozen=True, slots=True)
class ModelText:
    """What the text is made of; ``model``, ``inputs``, ``outputs``: identifiers; ``kernels``:
    in the order of their numbers; ``messages``: of requirements."""

    model: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kernels: tuple[CKernel, ...]
    line: StraightLine
    messages: tuple[str, ...]


def support_text(form: CForm) -> str:
    """What kernels of a form are written with."""
    folder = resources.files("ingot_compiler.backends.c")
    names = ("support.h",) if form.lanes_max == 1 else ("support.h", "vectors.h")
    return "".join((folder / name).read_text(encoding="ascii") for name in names)


def model_text(made: ModelText) -> str:
    """Write the file: kernels that are called, workspace, ``MODEL_run``, ``MODEL_message``."""
    used = {call.kernel for call in made.line.calls}
    kernels = (kernel.text for at, kernel in enumerate(made.kernels) if at in used)
    head = _HEAD.format(model=made.model)
    parts = (*_workspace(made), *kernels, *_run(made), *_message(made), *_maps(made))
    return "\n".join((head, *parts, ""))


def ram_bytes(line: StraightLine) -> int:
    """Bytes of the workspace, with what kernels use as scratch behind it."""
    return line.workspace_bytes + line.scratch_bytes


def _workspace(made: ModelText) -> Iterator[str]:
    if size := ram_bytes(made.line):
        attribute = f"{made.model}_WORKSPACE_ATTRIBUTE"
        yield f"static uint64_t ALIGNED(64) {attribute} workspace[{-(-size // 8)}];\n"


def _run(made: ModelText) -> Iterator[str]:
    model, line = made.model, made.line
    used = {(place.kind, place.number) for call in line.calls for place in call.buffers}
    kinds = {kind for kind, _ in used}
    yield f"int {model}_run(const struct {model}_inputs *inputs,"
    yield f"{' ' * (len(model) + 9)}const struct {model}_outputs *outputs) {{"
    tensors = ((INPUT, made.inputs), (OUTPUT, made.outputs))
    for kind, names in tensors:
        for number, name in enumerate(names):
            if (kind, number) in used:
                variable = f"{_LETTERS[kind]}{number}"
                yield f"  unsigned char *const {variable} = (unsigned char *){kind}s->{name};"
    if WEIGHTS in kinds:
        yield f"  unsigned char *const w = (unsigned char *){model}_weights;"
    if WORKSPACE in kinds or (line.scratch_bytes and line.calls):
        yield "  unsigned char *const m = (unsigned char *)workspace;"
    if any(call.messages for call in line.calls):
        yield "  int code;"
    for kind, _ in tensors:
        if kind not in kinds:
            yield f"  (void){kind}s;"
    for call in line.calls:
        yield from _call(made, call)
    yield "  return 0;"
    yield "}"


def _call(made: ModelText, call: CalledKernel) -> Iterator[str]:
    symbol = made.kernels[call.kernel].symbol
    scratch = "m" if ram_bytes(made.line) else "(unsigned char *)spare_bytes"
    behind = f" + {made.line.workspace_bytes}" if made.line.workspace_bytes else ""
    arguments = [
        *map(_address, call.buffers),
        *map(str, call.scalars),
        "0",
        str(call.extent),
        f"{scratch}{behind}" if made.line.scratch_bytes else "(unsigned char *)spare_bytes",
    ]
    text = f"{symbol}({', '.join(arguments)})"
    if not call.messages:
        yield f"  (void){text};"
        return
    yield f"  code = {text};"
    for number, message in enumerate(call.messages):
        yield f"  if (code == {RC_REQUIREMENT + number}) return {message + 1};"


_LETTERS = {INPUT: "i", OUTPUT: "o"}


def _address(place: BufferPlace) -> str:
    if place.kind in _LETTERS:
        return f"{_LETTERS[place.kind]}{place.number}"
    start = {WEIGHTS: "w", WORKSPACE: "m"}[place.kind]
    return f"{start} + {place.offset_bytes}" if place.offset_bytes else start


def _message(made: ModelText) -> Iterator[str]:
    """The function that tells what a code means."""
    used = sorted({number for call in made.line.calls for number in call.messages})
    yield f"\nconst char *{made.model}_message(int code) {{"
    for number in used:
        yield f"  if (code == {number + 1})"
        yield f'    return "{plain_text(made.messages[number])}";'
    yield '  return code ? "unknown code" : "";'
    yield "}"


def _maps(made: ModelText) -> Iterator[str]:
    """The functions that tell where inputs and outputs lie, where that is in the workspace."""
    both = (("inputs", made.inputs), ("outputs", made.outputs))
    for (kind, names), offsets in zip(both, made.line.tensors, strict=False):
        struct = f"struct {made.model}_{kind}"
        yield f"\n{struct} {made.model}_map_{kind}(void) {{"
        yield f"  {struct} found;"
        for name, offset in zip(names, offsets, strict=True):
            yield f"  found.{name} = (void *)((unsigned char *)workspace + {offset});"
        yield "  return found;"
        yield "}"


def plain_text(text: str) -> str:
    """``text`` as it may stand in a comment or a string of C: what may end either, or is no ASCII,
    becomes an underscore."""
    return "".join(letter if letter in _PLAIN else "_" for letter in text)
