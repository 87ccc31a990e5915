"""The names of the core ops: the one list of them, which mypy and pyright hold every use of a name
against, by the module of ``ops`` that has the op.

In: nothing. Out: ``OpName``, ``OP_NAMES``, ``MODULES``. Not done here: the ops (``ops``).
"""

from __future__ import annotations

from keyword import iskeyword
from typing import Literal, get_args

_Arithmetic = Literal[
    "abs",
    "add",
    "ceil",
    "div",
    "floor",
    "fmod",
    "max",
    "min",
    "mod",
    "mul",
    "neg",
    "pow",
    "reciprocal",
    "relu",
    "round",
    "sign",
    "sqrt",
    "sub",
]
_Functions = Literal[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "erf",
    "exp",
    "gelu",
    "log",
    "sigmoid",
    "silu",
    "sin",
    "sinh",
    "softplus",
    "tan",
    "tanh",
]
_Logic = Literal[
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "equal",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "select",
    "shift_left",
    "shift_right",
    "philox",
]
_Casts = Literal[
    "bit_cast",
    "cast",
]
_Sources = Literal[
    "constant",
    "dim_values",
    "iota",
    "literal",
    "read_dim",
]
_Requirements = Literal[
    "require",
    "require_dim",
]
_Layouts = Literal[
    "concat",
    "append",
    "broadcast_to",
    "copy",
    "pad",
    "reshape",
    "slice",
    "transpose",
]
_Indexing = Literal[
    "gather",
    "gather_elements",
    "gather_nd",
    "positions_of_true",
]
_Writes = Literal[
    "scatter_elements",
    "scatter_nd",
    "write_rows",
]
_Reductions = Literal[
    "argmax",
    "argmin",
    "reduce",
]
_AlongAxis = Literal[
    "argsort",
    "cumsum",
    "log_softmax",
    "softmax",
]
_Normalizations = Literal[
    "batch_norm",
    "group_norm",
    "layer_norm",
    "rms_norm",
]
_Pooling = Literal[
    "average_pool",
    "max_pool",
]
_Products = Literal[
    "grouped_matmul",
    "matmul",
    "matmul_integer",
]
_BlockProducts = Literal[
    "matmul_blocks",
    "grouped_matmul_blocks",
]
_Alone = Literal[
    "if",
    "loop",
    "composite",
    "suppress_overlaps",
    "walk_trees",
    "linear_attention",
    "recurrent",
    "attention",
    "conv",
    "conv_transpose",
    "resize",
]
"""Ops that have a module of their own name."""

OpName = Literal[
    _Arithmetic,
    _Functions,
    _Logic,
    _Casts,
    _Sources,
    _Requirements,
    _Layouts,
    _Indexing,
    _Writes,
    _Reductions,
    _AlongAxis,
    _Normalizations,
    _Pooling,
    _Products,
    _BlockProducts,
    _Alone,
]
OP_NAMES: tuple[OpName, ...] = get_args(OpName)

_FAMILIES = {
    "arithmetic": _Arithmetic,
    "functions": _Functions,
    "logic": _Logic,
    "casts": _Casts,
    "sources": _Sources,
    "requirements": _Requirements,
    "layouts": _Layouts,
    "indexing": _Indexing,
    "writes": _Writes,
    "reductions": _Reductions,
    "along_axis": _AlongAxis,
    "normalizations": _Normalizations,
    "pooling": _Pooling,
    "products": _Products,
    "block_products": _BlockProducts,
}
MODULES: dict[str, str] = {
    **{name: f"{name}_" if iskeyword(name) else name for name in get_args(_Alone)},
    **{name: module for module, names in _FAMILIES.items() for name in get_args(names)},
}
"""Op -> the module of ``ops`` that has it."""
