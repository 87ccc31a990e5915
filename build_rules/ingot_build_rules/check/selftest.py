"""The calls with which a device proves that a bundle works there: made with the bundle, kept in it.

In: a compilation, its bundle, how many. Out: the bundle with a section for each call. Not done
here: making the calls (``ingot_runtime.selftest``).

Inputs are generated, and outputs computed by the interpreter, so that a variant of any processor is
compared with the same numbers, and no machine has to run it now.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.check.deviation import JUMPING_PART_MAX, OUTPUT_SLACK, TOLERANCES, may_jump
from ingot_build_rules.check.generated_inputs import generated_inputs
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.in_names import error_in_names, refers
from ingot_compiler.ir.interpret import interpret
from ingot_compiler.ir.op import Array
from ingot_runtime.format import header as head
from ingot_runtime.format.defaults import head_size_bytes
from ingot_runtime.format.limits import ALIGNMENT_SMALL_BYTES, MIB
from ingot_runtime.format.selftest import LIMITS
from ingot_runtime.ingot_error import IngotError

if TYPE_CHECKING:
    from ingot_build_rules.compilation.compile_model import CompiledModel
    from ingot_compiler.ir.graph import Graph

_SECTION_BYTES_MAX = 256 * MIB
_SIZES_MAX = 8
_Call = tuple[Sequence[Array], Sequence[Array]]


def add_selftest(compiled: CompiledModel, path: str, count: int) -> str:
    """Put ``count`` calls into the bundle at ``path``; return its root digest.

    Raises:
        UserError: the interpreter accepts none of the generated inputs, or a call is too large.
    """
    payloads = {(head.SELFTEST, at): _section(compiled, at) for at in range(count)}
    if max(map(len, payloads.values())) > _SECTION_BYTES_MAX:
        why = "inputs and outputs of a call have more than 256 MiB"
        raise UserError("a call is too large", "option --selftest", why, "leave it out")
    with opened(path) as source:
        return rewrite_bundle(source, Changes(payloads), path)


def _section(compiled: CompiledModel, number: int) -> bytes:
    graph = compiled.graph
    given, expected = _call(compiled, graph, number)
    jumps = JUMPING_PART_MAX if may_jump(graph.nodes, dict(enumerate(graph.types))) else 0.0
    parts = [_tensor(array) for array in given]
    for tensor, array in zip(compiled.interface.outputs, expected, strict=True):
        tolerance = TOLERANCES.get(tensor.dtype, 0.0) * OUTPUT_SLACK
        parts += [LIMITS.pack(tolerance, jumps), _tensor(array)]
    return b"".join(parts)


def _call(compiled: CompiledModel, graph: Graph, number: int) -> _Call:
    """The first sizes of which the interpreter can compute something."""
    refusal: IngotError | None = None
    for _, given in islice(generated_inputs(graph, number), _SIZES_MAX):
        try:
            with np.errstate(all="ignore"):
                return given, interpret(graph, given, compiled.read_constant)
        except IngotError as error:
            refusal = error_in_names(error, compiled.names) if refers(error) else error
    why = str(refusal.why or refusal.what) if refusal else "every size leaves nothing to compute"
    what, do = "the model accepts none of the generated inputs", "leave the selftest out"
    raise UserError(what, "option --selftest", why, do)


def _tensor(array: Array) -> bytes:
    words = struct.pack(f"<{1 + array.ndim}q", array.ndim, *array.shape)
    content = words.ljust(head_size_bytes(array.ndim), b"\0") + array.tobytes()
    return content.ljust(len(content) + -len(content) % ALIGNMENT_SMALL_BYTES, b"\0")
