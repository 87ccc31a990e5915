"""A model as C99 source: for any compiler, and for machines without an operating system.

In: an open build, a model, the user's choices. Out: ``CFiles``: texts by name, the weights, what a
call needs. Not done here: the function and its kernels (``rules.c_source``), writing files
(``c_files``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.option_rows import GENERAL, REFUSE
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.rules.c_source import C_SOURCE, CSource, CSourceInputs
from ingot_build_rules.making.rules.codegen import CODEGEN, CodegenInputs
from ingot_build_rules.making.stages.start_compilation import start_compilation
from ingot_build_rules.making.values.packed_constant import PackedConstant
from ingot_build_rules.tools.export.c_header import CFacts, c_header
from ingot_build_rules.tools.export.c_names import c_identifier, c_identifiers
from ingot_build_rules.tools.export.c_tensors import named_tensors
from ingot_compiler.backends.c import C_KERNEL
from ingot_compiler.backends.c.c_forms import C_FORMS, CForm, read_form
from ingot_compiler.ir.dims import Dim, evaluate, symbols_of
from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.ir.precision import BF16, F32
from ingot_compiler.ir.sizes.profile import Profile
from ingot_compiler.ir.types import dtype_code
from ingot_runtime.format.plan import TensorPlan
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef
from ingot_runtime.option_values import shape_options

if TYPE_CHECKING:
    from ingot_build_rules.making.stages.compilation import Compilation
    from ingot_build_rules.making.values.interface import NamedTensor
    from ingot_compiler.ir.types import TensorType


_WORKSPACE = "workspace"


@dataclass(frozen=True, slots=True)
class CChoices:
    """``name``: of the model in C, "" for that of the file; ``shapes``: of inputs, as the user
    wrote them; ``form``: of C, by its name; ``weights_apart``: in a file that the program gives;
    ``tensors_inside``: inputs and outputs lie in the workspace;
    ``bundle``: what a bundle of the model is compiled with, whose shapes count where none are
    given."""

    name: str = ""
    shapes: tuple[Mapping[str, str], ...] = ()
    form: str = C_FORMS[0].name
    weights_apart: bool = False
    tensors_inside: bool = False
    bundle: CompileOptions | None = None


def are_tensors_in(pool: str) -> bool:
    """Whether inputs and outputs lie in the workspace, by the name of a pool that a user gave: ""
    for none.

    Raises:
        UserError: another pool.
    """
    if pool not in ("", _WORKSPACE):
        what, why = f"no pool {pool!r}", f"C source has {_WORKSPACE} alone"
        raise UserError(what, OptionRef("tensors-in"), why, f"write {_WORKSPACE}")
    return bool(pool)


@dataclass(frozen=True, slots=True)
class CFiles:
    """``source``: of ``NAME.c``; ``constants``: of the weights, at their places."""

    facts: CFacts
    source: Artifact[memoryview]
    header: str
    constants: tuple[PackedConstant, ...]


def make_c_source(build: Scheduler, model: str, choices: CChoices) -> CFiles:
    """Compile a model to C.

    Raises:
        UserError: two names become one in C, or what the model refuses. UnsupportedError: sizes
            that are open, or that the data decide.
    """
    form = read_form(choices.form)
    compiled = start_compilation(build, model, _options(form, choices))
    if devices := compiled.options.devices:
        why = f"it is for the device {devices[0].name!r}, too"
        raise UnsupportedError("C source runs on one processor", model, why, "leave devices out")
    return build.run(_made(compiled.compilation, model, form, choices))


def _options(form: CForm, choices: CChoices) -> CompileOptions:
    """The options of the bundle, if there is one, for another target. C has one pool, and
    measurements of methods belong to one machine."""
    shapes, bundle = list(choices.shapes), choices.bundle
    other_shapes, precision = (
        REFUSE if shapes else GENERAL,
        bundle.choices.precision if bundle else F32,
    )
    if precision == BF16:
        why, do = "C has no type for them", "export a bundle of another precision"
        raise UnsupportedError("C source has no products of bf16", "option precision", why, do)
    own = make_options([form.loops_for], shapes, other_shapes=other_shapes, precision=precision)
    if bundle is not None:
        profiles = own.shapes or bundle.shapes
        other_shapes = REFUSE if profiles else GENERAL
        own = replace(
            bundle,
            targets=own.targets,
            values=bundle.choices._replace(pools=()),
            tuning=own.tuning,
            shapes=profiles,
            other_shapes=other_shapes,
        )
    if len(own.shapes) > 1:
        what, why = "two shapes of one input", "C source is for one shape of each input"
        raise UserError(what, "option shape", why, "export once for each")
    return own


async def _made(compilation: Compilation, path: str, form: CForm, choices: CChoices) -> CFiles:
    interface, fused = await compilation.interface(), await compilation.targets[0].fused()
    profiles = (await compilation.typed()).profiles
    sizes = _sizes(profiles)
    shapes = _shapes(path, interface.inputs, fused.inputs, sizes)
    stem = os.path.splitext(os.path.basename(path))[0]
    model = c_identifier(choices.name or stem)
    identifiers = (
        (model,),
        c_identifiers([tensor.name for tensor in interface.inputs], "input"),
        c_identifiers([tensor.name for tensor in interface.outputs], "output"),
    )
    inside = choices.tensors_inside
    made = await _source(compilation, form, shapes, identifiers, tensors_inside=inside)
    constants = await compilation.packed_constants()
    facts = CFacts(
        model,
        named_tensors(_plans(interface.inputs, shapes), "input"),
        named_tensors(_plans(interface.outputs, made.shapes), "output"),
        made.workspace_bytes,
        made.scratch_bytes,
        made.stack_bytes,
        max((each.offset_bytes + each.size_bytes for each in constants), default=0),
        choices.weights_apart,
        inside,
        made.kernel_count,
        made.call_count,
        form.name,
    )
    return CFiles(facts, made.text, c_header(facts), constants)


async def _source(
    compilation: Compilation,
    form: CForm,
    shapes: tuple[tuple[int, ...], ...],
    identifiers: tuple[tuple[str, ...], ...],
    *,
    tensors_inside: bool,
) -> CSource:
    """The file with the kernels."""
    stages = compilation.targets[0]
    lowered, layout = await stages.lowered(), await compilation.layout()
    plan = await (stages.plan_with_tensors() if tensors_inside else stages.plan())
    programs = tuple(program for item in lowered for program in item.programs)
    inputs = [
        CodegenInputs(kernel, C_KERNEL, form.name) for item in lowered for kernel in item.kernels
    ]
    kernels = await compilation.need_all(CODEGEN, inputs, [form.name] * len(inputs))
    distinct = {kernel.symbol: kernel.content for kernel in kernels}
    positions = {symbol: at for at, symbol in enumerate(distinct)}
    fused = await stages.fused()
    return await compilation.need(
        C_SOURCE,
        CSourceInputs(
            fused.fused,
            tuple(item.steps for item in lowered),
            programs,
            tuple(positions[kernel.symbol] for kernel in kernels),
            tuple(distinct),
            tuple(distinct.values()),
            plan,
            layout.offsets_bytes[0],
            shapes,
            identifiers,
            await compilation.full_names(),
            tensors_inside,
        ),
        form.name,
    )


def _sizes(profiles: Sequence[Profile]) -> dict[str, int]:
    """The sizes that ``--shape`` names; a range names none."""
    return {
        item.symbol: item.least
        for profile in profiles[:1]
        for item in profile
        if item.least == item.most
    }


def _shapes(
    path: str,
    named: Sequence[NamedTensor],
    inputs: Sequence[TensorType],
    sizes: Mapping[str, int],
) -> tuple[tuple[int, ...], ...]:
    """The inputs' shapes in numbers.

    Raises:
        UnsupportedError: names all that have open sizes.
    """
    shapes = [tuple(_size(dim, sizes) for dim in tensor_type.shape) for tensor_type in inputs]
    opened = [tensor for tensor, shape in zip(named, shapes, strict=True) if None in shape]
    if opened:
        got = ", ".join(f"[{', '.join(map(str, tensor.shape))}]" for tensor in opened)
        options = shape_options((tensor.name, tensor.shape) for tensor in opened)
        raise UnsupportedError(
            "C source of open sizes",
            where=f"{path}, input {', '.join(repr(tensor.name) for tensor in opened)}",
            why=f"expected numbers, got {got}",
            do=f"give sizes, such as {options}",
        )
    return tuple(tuple(size or 0 for size in shape) for shape in shapes)


def _size(dim: Dim, sizes: Mapping[str, int]) -> int | None:
    is_known = all(name in sizes for name in symbols_of(dim))
    return evaluate(dim, sizes) if is_known else None


def _plans(
    tensors: Sequence[NamedTensor], shapes: Sequence[tuple[int, ...]]
) -> Sequence[TensorPlan]:
    return [
        TensorPlan(tensor.name, dtype_code(tensor.dtype), shape)
        for tensor, shape in zip(tensors, shapes, strict=True)
    ]


def weight_bytes(files: CFiles) -> bytes:
    """The weights as they lie in memory, up to a whole word."""
    size = -(-files.facts.weights_bytes // 8) * 8
    content = bytearray(size)
    for constant in files.constants:
        place = slice(constant.offset_bytes, constant.offset_bytes + constant.size_bytes)
        content[place] = constant.part_of(constant.content.value())
    return bytes(content)
