"""Element types that share bytes: types say them, and whatever needs whole bytes refuses them by
name."""

from __future__ import annotations

import numpy as np
import pytest

from ingot_build_rules.rules.interface import make_interface
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.dims import evaluate, symbol
from ingot_compiler.ir.errors import ModelError, UnsupportedError
from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.interpret import interpret
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.parse_graph import parse_graph
from ingot_compiler.ir.print_graph import print_graph
from ingot_compiler.ir.types import (
    BYTE_DTYPES,
    DTYPES,
    DType,
    TensorType,
    dtype_size_bits,
    dtype_size_bytes,
)

SUB_BYTE: tuple[DType, ...] = ("i4", "u4")
TEXT = "graph(%0: {dtype}[s0, 3]) {{\n  return %0\n}}\n"


def test_every_element_type_is_one_or_the_other() -> None:
    """A new element type is of whole bytes, or of a size in bits that is none."""
    assert set(DTYPES) == {*BYTE_DTYPES, *SUB_BYTE}
    assert all(dtype_size_bits(dtype) == 8 * dtype_size_bytes(dtype) for dtype in BYTE_DTYPES)
    assert all(dtype_size_bits(dtype) == 4 for dtype in SUB_BYTE)


@pytest.mark.parametrize("dtype", SUB_BYTE)
def test_a_tensor_takes_whole_bytes(dtype: DType) -> None:
    """ceil(count * bits / 8), for sizes that are known and for open ones."""
    assert [TensorType(dtype, (count,)).size_bytes for count in range(5)] == [0, 1, 1, 2, 2]
    assert TensorType("f16", (3,)).size_bytes == 6
    size_bytes = TensorType(dtype, (symbol("s0"), 3)).size_bytes
    assert [evaluate(size_bytes, {"s0": count}) for count in range(4)] == [0, 2, 3, 5]


@pytest.mark.parametrize("dtype", SUB_BYTE)
def test_the_text_form_has_them(dtype: DType) -> None:
    """What is printed parses back."""
    graph = parse_graph(TEXT.format(dtype=dtype))
    assert graph.types[0] == TensorType(dtype, (symbol("s0"), 3))
    assert parse_graph(print_graph(graph)) == graph


@pytest.mark.parametrize("dtype", SUB_BYTE)
def test_no_op_takes_them(dtype: DType) -> None:
    """Builders and the verifier refuse an operand, and an attribute that would make one, for every
    op alike."""
    builder = GraphBuilder([TensorType(dtype, (2, 2))])
    with pytest.raises(OpTypeError) as caught:
        builder.add("transpose", (0,), {"permutation": (1, 0)})
    assert "whole bytes" in str(caught.value.expected)
    assert dtype in str(caught.value.got)
    with pytest.raises(OpTypeError, match=dtype):
        GraphBuilder([TensorType("i8", (2,))]).add("cast", (0,), {"dtype": dtype})
    with pytest.raises(ModelError, match="whole bytes"):
        parse_graph(
            f"graph(%0: {dtype}[2]) {{ %1 = reshape(%0) {{shape=[1, 2]}} : {dtype}[1, 2] return %1 }}"
        )


@pytest.mark.parametrize("dtype", SUB_BYTE)
def test_whatever_needs_an_address_refuses(dtype: DType) -> None:
    """Sizes in bytes of one element, arrays of the interpreter and the interface of a bundle name
    the type."""
    kind = TensorType(dtype, (2,))
    graph = GraphBuilder([kind]).finish([0])
    with pytest.raises(UnsupportedError, match=dtype):
        dtype_size_bytes(dtype)
    with pytest.raises(UnsupportedError, match=dtype):
        interpret(graph, [np.zeros(2, np.int8)], lambda _: memoryview(b""))
    with pytest.raises(UnsupportedError, match=dtype):
        make_interface((kind,), (kind,), Names("m", ("x",), ("y",), (), ())).signatures()
