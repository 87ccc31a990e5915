"""What a report is about: one variant of a bundle, its program evaluated for one call.

In: a bundle, the name of a variant, sizes of inputs. Out: ``ReportSubject``. Not done here: what is
shown of it (``report_data``).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ingot_artifacts.inspect.describe import describe_bundle, opened, variant_program
from ingot_build_rules.tools.text.loop_record import read_program
from ingot_build_rules.tools.view.evaluate_call import (
    BufferSpan,
    EvaluatedCall,
    LaunchStep,
    evaluate_call,
)
from ingot_compiler.ir.errors import UserError
from ingot_compiler.lowering.loops.kernel_of import kernel_of
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_runtime.format.dtypes import DTYPE_SIZES_BYTES
from ingot_runtime.format.plan import BundlePlan, TensorPlan
from ingot_runtime.format.source import read_plan
from ingot_runtime.lazy_dataclass import dataclass

OPEN_SIZE = 64
"""What an open dimension counts as where nobody says its size, as in the plan of memory."""


@dataclass(frozen=True, slots=True)
class ReportSubject:
    """What a report is about: one variant of a bundle, its program evaluated for one call."""

    described: dict[str, Any]
    plan: BundlePlan
    variant: int
    shapes: tuple[tuple[int, ...], ...]
    call: EvaluatedCall
    programs: dict[str, LoopProgram | None] = field(default_factory=dict[str, "LoopProgram | None"])

    @property
    def target(self) -> str:
        """The target of the variant."""
        return self.plan.variants[self.variant].target

    def symbol(self, launch: LaunchStep) -> str:
        """The symbol of the kernel that a launch runs."""
        library = self.plan.devices[launch.device].library
        if launch.device and library >= 0:
            return str(self.described["library_kernels"][library][launch.kernel])
        return str(self.described["kernels"][self.target][launch.kernel])

    def loops(self, launch: LaunchStep) -> LoopProgram | None:
        """The loops of a launch's kernel, if the bundle carries a record that this version
        reads."""
        symbol = self.symbol(launch)
        if symbol not in self.programs:
            self.programs[symbol] = self._read_loops(launch, symbol)
        return self.programs[symbol]

    def _read_loops(self, launch: LaunchStep, symbol: str) -> LoopProgram | None:
        table = self.described["debug"].get("programs", {})
        record = table.get(self.code_target(launch), {}).get(symbol)
        try:
            program = None if record is None else kernel_of(read_program(record))
        except UserError:
            return None
        # A device may get buffers of its own behind those of the loops.
        fits = program is not None and len(program.buffers) <= len(launch.buffers)
        return program if fits else None

    def code_target(self, launch: LaunchStep) -> str:
        """The target that the code of a launch is compiled for."""
        library = self.plan.devices[launch.device].library
        if launch.device and library >= 0:
            return self.plan.libraries[library].target
        return self.target

    def writes(self, launch: LaunchStep) -> Sequence[bool]:
        """Which operands a launch writes; without its loops, the last one."""
        loops = self.loops(launch)
        if loops is None:
            return [number == len(launch.buffers) - 1 for number in range(len(launch.buffers))]
        written = [buffer.written for buffer in loops.buffers]
        return written + [False] * (len(launch.buffers) - len(written))

    def size_bytes(self, span: BufferSpan) -> int:
        """The size of a buffer; inputs and outputs have that of their tensor."""
        if span.origin == "input":
            return _bytes_of(self.plan.inputs[span.offset], self.shapes[span.offset])
        if span.origin == "output":
            shape = self.call.output_shapes.get(span.offset, ())
            return _bytes_of(self.plan.outputs[span.offset], shape)
        return span.size_bytes


def read_subject(
    path: str | os.PathLike[str],
    variant: str | None,
    shapes: Mapping[str, Sequence[int]],
    digest: str | None = None,
) -> ReportSubject:
    """Open a bundle, and evaluate a variant (the first) for a call; ``shapes``: input name ->
    sizes, by default those of the model, with 64 for what is open.

    Raises:
        BundleError: not a valid bundle. UserError: no such variant.
    """
    described = describe_bundle(path, digest)
    with opened(path, digest) as source:
        plan = read_plan(source)
        index = _variant_index(plan, variant, os.fspath(path))
        program = variant_program(source, plan, index)
    chosen = tuple(tuple(shapes.get(t.name) or _typical(t, plan)) for t in plan.inputs)
    call = evaluate_call(program, chosen, len(plan.devices))
    return ReportSubject(described, plan, index, chosen, call)


def _variant_index(plan: BundlePlan, variant: str | None, where: str) -> int:
    targets = [row.target for row in plan.variants]
    if variant is None:
        return 0
    if variant not in targets:
        raise UserError(
            f"no variant {variant!r}",
            where,
            f"the bundle has: {', '.join(targets)}",
            "name one of them",
        )
    return targets.index(variant)


def _typical(tensor: TensorPlan, plan: BundlePlan) -> tuple[int, ...]:
    return tuple(
        size if isinstance(size, int) else OPEN_SIZE for size in tensor.shape(plan.symbols)
    )


def _bytes_of(tensor: TensorPlan, shape: Sequence[int]) -> int:
    return math.prod(shape) * DTYPE_SIZES_BYTES[tensor.dtype]
