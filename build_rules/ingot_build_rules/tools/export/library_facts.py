"""What there is to say of one variant of a bundle as a library: the one source of its header, its
code and its metadata.

In: an open bundle, the user's choices. Out: ``LibraryFacts``, or a refusal. Not done here: texts
(``library_header``, ``library_source``, ``library_metadata``), compiling them.
"""

from __future__ import annotations

import os
import struct
from dataclasses import field
from itertools import dropwhile

from ingot_artifacts.inspect.describe import variant_program
from ingot_build_rules.tools.export.c_names import c_identifier
from ingot_build_rules.tools.export.c_tensors import CTensor, c_tensors
from ingot_build_rules.tools.export.given_sizes import sized_inputs, sized_outputs
from ingot_build_rules.tools.export.host_alone import require_host
from ingot_build_rules.tools.export.library_pools import (
    WORKSPACE,
    Pool,
    PoolWishes,
    WorkingMemory,
    make_pools,
    working_memory,
)
from ingot_build_rules.tools.view.evaluate_call import LaunchStep, evaluate_call
from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.targets.target import parse_target
from ingot_runtime.format import abi
from ingot_runtime.format.debug import named_message
from ingot_runtime.format.header import CODE
from ingot_runtime.format.plan import BundlePlan
from ingot_runtime.format.program import CODES, Program
from ingot_runtime.format.source import Source, read_plan, weights_sizes_bytes
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

INSIDE_BYTES_MAX = 1 << 30
"""Constants within a library: code reaches over 2 GiB, and other code may lie between."""


@dataclass(frozen=True, slots=True)
class LibraryFacts:
    """``model``: its name in C; ``main_at``: where the function lies in the code;
    ``planned_bytes``: what is planned in each pool that is written to; ``launches``: of a call
    whose loops run once."""

    model: str
    digest: str
    variant: int
    target: str
    features: tuple[str, ...]
    inputs: tuple[CTensor, ...]
    outputs: tuple[CTensor, ...]
    pools: tuple[Pool, ...]
    memory: WorkingMemory
    planned_bytes: tuple[int, ...]
    constants_bytes: int
    scratch_bytes: int
    code_bytes: int
    main_at: int
    frame_bytes: int
    launches: tuple[LaunchStep, ...]

    @property
    def triple(self) -> str:
        """Processor and system as the C compiler spells them."""
        return f"{parse_target(self.target).arch.replace('x86-64', 'x86_64')}-freestanding-none"


@dataclass(frozen=True, slots=True)
class LibraryChoices:
    """``name``: of the model in C, "" for that of the bundle's file; ``variant``: its target, ""
    for the only one; ``shapes``: (input, shape) of inputs whose sizes the bundle leaves open."""

    name: str = ""
    variant: str = ""
    pools: PoolWishes = field(default_factory=PoolWishes)
    shapes: tuple[tuple[str, str], ...] = ()


def library_facts(bundle: str, source: Source, choices: LibraryChoices) -> LibraryFacts:
    """Return the facts; ``bundle``: the path.

    Raises:
        BundleError: a damaged section. UnsupportedError: devices, open sizes, memory that only the
            data decide, too many constants. UserError: no such variant or pool, a bad name.
    """
    plan = read_plan(source)
    require_host("a library", bundle, plan)
    given = sized_inputs(plan, dict(choices.shapes))
    inputs = c_tensors(bundle, plan, given, "input")
    variant = _variant(bundle, plan, choices.variant)
    program = variant_program(source, plan, variant)
    _require_known_sizes(bundle, plan, program)
    call = evaluate_call(program, [tensor.shape for tensor in inputs], len(plan.devices))
    if call.problem:
        why = named_message(source, call.problem)
        raise UserError(
            "the model refuses these sizes",
            bundle,
            why,
            ("choose others: ", OptionRef("shape", "NAME=1x3x224x224")),
        )
    outputs = c_tensors(bundle, plan, sized_outputs(plan, call), "output")
    code = source.section(CODE, variant)
    frame_bytes = struct.unpack_from("<Q", code, _export(code, "frame_bytes"))[0]
    constants_bytes = weights_sizes_bytes(source, plan)[0]
    memory = working_memory(
        call.workspace_bytes[0],
        call.scratch_bytes,
        frame_bytes,
        (*inputs, *outputs),
        len(plan.devices),
    )
    names = [WORKSPACE, *(device.name for device in plan.devices[1:])]
    sizes = [memory.size_bytes, *call.workspace_bytes[1:]]
    pools = make_pools(
        list(zip(names, sizes, strict=True)), constants_bytes, (*inputs, *outputs), choices.pools
    )
    _require_near(bundle, pools)
    planned = plan.variants[variant]
    return LibraryFacts(
        model=_model_name(bundle, choices.name),
        digest=source.root_digest.hex(),
        variant=variant,
        target=planned.target,
        features=planned.features,
        inputs=inputs,
        outputs=outputs,
        pools=pools,
        memory=memory,
        planned_bytes=call.workspace_bytes,
        constants_bytes=constants_bytes,
        scratch_bytes=call.scratch_bytes,
        code_bytes=len(code),
        main_at=_export(code, "main"),
        frame_bytes=frame_bytes,
        launches=tuple(step for step in call.steps if isinstance(step, LaunchStep)),
    )


def _export(code: bytes, name: str) -> int:
    """Where an export lies in an image."""
    at = 4 * (len(abi.IMAGE_HEADER) + abi.EXPORTS.index(name))
    return int.from_bytes(code[at : at + 4], "little")


def _model_name(bundle: str, name: str) -> str:
    stem = os.path.basename(bundle).partition(".")[0]
    made = c_identifier(name or stem)
    if name and made != name:
        why = f"expected an identifier of C, got {name!r}"
        raise UserError(
            "a name that C does not allow", OptionRef("name"), why, OptionRef("name", made)
        )
    return made


def _variant(bundle: str, plan: BundlePlan, wanted: str) -> int:
    targets = [variant.target for variant in plan.variants]
    if wanted and wanted not in targets:
        why = f"the bundle has {', '.join(targets)}"
        raise UserError(f"no variant {wanted!r}", bundle, why, "choose one of these")
    if not wanted and len(targets) > 1:
        why = f"a library has one, the bundle has {', '.join(targets)}"
        raise UserError("which variant?", bundle, why, OptionRef("variant", targets[0]))
    return targets.index(wanted) if wanted else 0


def _require_known_sizes(bundle: str, plan: BundlePlan, program: Program) -> None:
    """The part of `main` before `begin` has only the shapes of the inputs: what it says of outputs
    is for good, unless the part behind it, which has seen data, says it again."""
    behind = list(dropwhile(lambda one: one[0] != CODES["begin"], program.instructions))
    grows = any(opcode == CODES["buffer_grow"] for opcode, _ in behind)
    output_dims = {operands[0] for opcode, operands in behind if opcode == CODES["output_dim"]}
    outputs = [tensor.name for number, tensor in enumerate(plan.outputs) if number in output_dims]
    if grows or outputs:
        where = ", ".join([bundle, *map(repr, outputs)])
        why = "values of it have sizes that only the data decide, and a library allocates nothing"
        do = "export an executable, or use the loader in C"
        raise UnsupportedError("a library needs all sizes in advance", where, why, do)


def _require_near(bundle: str, pools: tuple[Pool, ...]) -> None:
    for pool in pools:
        if not pool.from_caller and pool.size_bytes > INSIDE_BYTES_MAX:
            why = f"expected at most {INSIDE_BYTES_MAX} bytes, got {pool.size_bytes}"
            what = f"pool {pool.name!r} is too large to lie in the library"
            raise UnsupportedError(what, bundle, why, OptionRef("pool", f"{pool.name}=caller"))
