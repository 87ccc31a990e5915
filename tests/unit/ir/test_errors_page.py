"""The error that docs/errors.md begins with is one that a model provokes today."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from onnx import TensorProto, helper
from tests.tidy.source import ROOT

import ingot
from ingot_compiler.ir.errors import UnsupportedError

PAGE = ROOT / "docs" / "errors.md"


def refused() -> str:
    """What is told of a model with three nodes that nobody compiles."""
    nodes = [
        helper.make_node("ImageDecoder", ["bytes"], ["image"], name="/decode"),
        helper.make_node(
            "MaxRoiPool", ["x", "rois"], ["pooled"], name="/pool", pooled_shape=[2, 2]
        ),
        helper.make_node("Fancy", ["x"], ["fancy"], name="/mine", domain="com.acme"),
    ]
    types: dict[str, tuple[TensorProto.DataType, Sequence[str | int] | None]] = {
        "bytes": (TensorProto.UINT8, ["size"]),
        "x": (TensorProto.FLOAT, [1, 3, 8, 8]),
        "rois": (TensorProto.FLOAT, [2, 5]),
        "image": (TensorProto.UINT8, None),
        "pooled": (TensorProto.FLOAT, None),
        "fancy": (TensorProto.FLOAT, None),
    }
    infos = [helper.make_tensor_value_info(name, *of) for name, of in types.items()]
    graph = helper.make_graph(nodes, "g", infos[:3], infos[3:])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.acme", 1)]
    with pytest.raises(UnsupportedError) as found:
        ingot.compile(helper.make_model(graph, opset_imports=opsets, ir_version=9)).to_bytes()
    return str(found.value)


@pytest.mark.pages
def test_the_page_shows_an_error_of_today(bless: bool) -> None:
    """In the words of the command, which are others than Python's; ``--bless`` writes it anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, shown, after = text.split("```\n", 2)
    told = refused().replace("ops={'com.acme::Fancy': 'FILE'}", "--op com.acme::Fancy=FILE")
    if bless:
        shown = f"error: {told}\n"
        PAGE.write_text(f"{before}```\n{shown}```\n{after}", encoding="utf-8")
    assert shown == f"error: {told}\n"
