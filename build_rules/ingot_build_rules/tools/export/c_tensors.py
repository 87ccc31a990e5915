"""The inputs and outputs of a model as C sees them: members of two structs, sizes as macros.

In: a bundle's plan. Out: ``CTensor``, lines of a header. Not done here: the rest of a header
(``library_header``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ingot_build_rules.tools.export.c_names import c_identifiers
from ingot_compiler.ir.errors import UnsupportedError
from ingot_runtime.format.dtypes import DTYPE_NAMES, DTYPE_SIZES_BYTES, NUMPY_NAMES
from ingot_runtime.format.plan import BundlePlan, TensorPlan
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_values import shape_options

# By numpy's name. What C has no type for travels as its bits; a bool is a byte of 0 or 1.
_C_TYPES = {"float32": "float", "float64": "double", "float16": "uint16_t", "bool": "uint8_t"}


@dataclass(frozen=True, slots=True)
class CTensor:
    """One input or output of fixed sizes, dense and row-major. ``name``: the user's; ``dtype``:
    ours."""

    name: str
    identifier: str
    c_type: str
    dtype: str
    element_bytes: int
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return self.element_bytes * prod(self.shape)


def c_tensors(
    bundle: str, plan: BundlePlan, tensors: Sequence[TensorPlan], what: str
) -> tuple[CTensor, ...]:
    """Return inputs or outputs.

    Args:
        bundle: its path, for errors.
        plan: its plan.
        tensors: the inputs, or the outputs, with the sizes that are known.
        what: "input" or "output".

    Raises:
        UserError: two names become one. UnsupportedError: sizes that are open.
    """
    shapes = {it.name: it.shape(plan.symbols) for it in tensors if not it.is_static}
    if shapes:
        where = f"{bundle}, {', '.join(map(repr, shapes))}"
        got = ", ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes.values())
        do = "only the data decide them: export an executable, or use the loader in C"
        if what == "input":
            do = f"choose them, such as {shape_options(shapes.items())}"
        why = f"expected fixed sizes, got {got}"
        raise UnsupportedError("open sizes cannot be exported to C", where, why, do)
    return named_tensors(tensors, what)


def named_tensors(tensors: Sequence[TensorPlan], what: str) -> tuple[CTensor, ...]:
    """Return tensors of fixed sizes; ``what``: "input" or another word for errors.

    Raises:
        UserError: two names become one.
    """
    names = c_identifiers([tensor.name for tensor in tensors], what)
    return tuple(map(_tensor, tensors, names))


def _tensor(tensor: TensorPlan, identifier: str) -> CTensor:
    numpy_name = NUMPY_NAMES[tensor.dtype]
    return CTensor(
        tensor.name,
        identifier,
        _C_TYPES.get(numpy_name, f"{numpy_name}_t"),
        DTYPE_NAMES[tensor.dtype],
        DTYPE_SIZES_BYTES[tensor.dtype],
        tensor.dims,
    )


def struct_lines(tag: str, tensors: Sequence[CTensor], qualifier: str = "") -> Iterator[str]:
    """Write a struct with a pointer for each tensor; ``qualifier``: "const " for what is only
    read."""
    yield f"struct {tag} {{"
    for tensor in tensors:
        shape = ", ".join(map(str, tensor.shape))
        note = f"{tensor.dtype}[{shape}]"
        yield f"  {qualifier}{tensor.c_type} *{tensor.identifier}; // {note}"
    if not tensors:
        yield "  char unused; // C has no empty structs"
    yield "};"


def size_lines(prefix: str, tensors: Sequence[CTensor]) -> Iterator[str]:
    """Write a macro with the bytes of each tensor, ``PREFIX_NAME_BYTES``."""
    for tensor in tensors:
        yield f"#define {prefix}_{tensor.identifier}_BYTES {tensor.size_bytes}"
