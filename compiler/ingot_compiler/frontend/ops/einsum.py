"""ONNX Einsum: sums of products over named axes.

In: an equation and its operands. Out: core ``transpose``, ``reshape``, ``reduce``, ``matmul``. Not
done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    broadcast_to,
    iota,
    range_mask,
    reduce,
    reshape,
    size_scalar,
    slice_axis,
    transpose,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.rules.shapes import broadcast_dims

_Term = tuple[int, str]
"""An operand and the labels of its axes."""


def _translate(context: OpContext) -> Sequence[int]:
    equation = context.string_attribute("equation", "").replace(" ", "")
    terms, result = _parse(equation, [context.rank_of(value) for value in context.given()])
    sizes: dict[str, Dim] = {}
    for value, term in zip(context.given(), terms, strict=True):
        for label, size in zip(term, context.shape_of(value), strict=True):
            sizes[label] = broadcast_dims(sizes.get(label, 1), size)
    values = [_diagonal(context, *pair) for pair in zip(context.given(), terms, strict=True)]
    value, term = values[0]
    for position, (other, labels) in enumerate(values[1:], 1):
        needed = set(result).union(*(rest for _, rest in values[position + 1 :]))
        value, term = _contract(context, (value, term), (other, labels), needed, sizes)
    value, term = _summed(context, value, term, set(result))
    missing = [label for label in result if label not in term]
    if missing:
        raise OpTypeError("output labels that some operand has", ", ".join(missing))
    return (transpose(context, value, [term.index(label) for label in result]),)


def _parse(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Labels per operand and of the result; the axes of an ellipsis get labels 0, 1, .. counted
    from its end."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise OpTypeError(f"an equation of {len(ranks)} operands", equation)
    hidden = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    pairs = list(zip(terms, hidden, strict=True))
    if any(count < 0 or (count and "..." not in term) for term, count in pairs):
        raise OpTypeError("as many labels as dimensions", f"{equation} for ranks {list(ranks)}")
    names = [_ellipsis(count if "..." in term else 0) for term, count in pairs]
    labels = [term.replace("...", name) for term, name in zip(terms, names, strict=True)]
    widest_name = max(names, key=len)
    if arrow:
        return labels, right.replace("...", widest_name)
    return labels, widest_name + _implicit_result(terms)


def _implicit_result(terms: Sequence[str]) -> str:
    """What follows the ellipsis in an equation without an arrow: labels that appear once,
    sorted."""
    everything = "".join(term.replace("...", "") for term in terms)
    return "".join(sorted(label for label in set(everything) if everything.count(label) == 1))


def _ellipsis(count: int) -> str:
    return "".join(chr(0x2460 + index) for index in reversed(range(count)))


def _diagonal(context: OpContext, x: int, term: str) -> _Term:
    """A label that one operand has twice: only the diagonal counts."""
    for label in sorted(set(term)):
        while term.count(label) > 1:
            axes = term.index(label), term.rindex(label)
            rest = [axis for axis in range(len(term)) if axis not in axes]
            shape = context.shape_of(x)
            if shape[axes[0]] == shape[axes[1]]:
                x = _last_diagonal(context, transpose(context, x, [*rest, *axes]))
                term = "".join(term[axis] for axis in rest) + label
            else:
                x = _masked_diagonal(context, x, axes)
                term = term[: axes[1]] + term[axes[1] + 1 :]
    return x, term


def _last_diagonal(context: OpContext, x: int) -> int:
    """The diagonal of the last two axes, of one size: nothing beside it is read."""
    *outer, size, _ = context.shape_of(x)
    flat = reshape(context, x, (*outer, size * size))
    if isinstance(size, int):
        return slice_axis(context, flat, len(outer), 0, size, size + 1)
    step = size_scalar(context, size + 1)
    places = context.add("mul", iota(context, size), step)
    return context.add("gather", flat, places, axis=len(outer))


def _masked_diagonal(context: OpContext, x: int, axes: tuple[int, int]) -> int:
    """The diagonal of two axes whose sizes only a run tells, along the first of them."""
    masks = [range_mask(context, context.shape_of(x), axis) for axis in axes]
    zero = context.scalar(context.dtype_of(x), 0)
    x = context.add("select", context.add("equal", *masks), x, zero)
    return reduce(context, x, "sum", (axes[1],))


def _summed(context: OpContext, x: int, term: str, needed: set[str]) -> _Term:
    """Labels that nobody needs any more are summed over."""
    axes = tuple(axis for axis, label in enumerate(term) if label not in needed)
    if not axes:
        return x, term
    kept = "".join(label for label in term if label in needed)
    return reduce(context, x, "sum", axes), kept


def _contract(
    context: OpContext, left: _Term, right: _Term, needed: set[str], sizes: dict[str, Dim]
) -> _Term:
    """One product of two operands as a batch of matrix products; labels not in ``needed`` are
    summed."""
    a, term_a = _summed(context, *left, needed | set(right[1]))
    b, term_b = _summed(context, *right, needed | set(left[1]))
    shared = [label for label in term_a if label in term_b]
    batch = [label for label in shared if label in needed]
    inner = [label for label in shared if label not in needed]
    rows = [label for label in term_a if label not in term_b]
    columns = [label for label in term_b if label not in term_a]
    matrix_a = _matrices(context, a, term_a, (batch, rows, inner), sizes)
    matrix_b = _matrices(context, b, term_b, (batch, inner, columns), sizes)
    product = context.add("matmul", matrix_a, matrix_b)
    labels = [*batch, *rows, *columns]
    return reshape(context, product, [sizes[label] for label in labels]), "".join(labels)


def _matrices(
    context: OpContext,
    x: int,
    term: str,
    groups: tuple[list[str], list[str], list[str]],
    sizes: dict[str, Dim],
) -> int:
    """``x`` as [batch, rows, columns], each the product of its labels."""
    order = [label for group in groups for label in group]
    x = transpose(context, x, [term.index(label) for label in order])
    x = broadcast_to(context, x, [sizes[label] for label in order])
    return reshape(
        context, x, [dim_product(tuple(sizes[label] for label in group)) for group in groups]
    )


OPS = (OnnxOp("Einsum", _translate),)
