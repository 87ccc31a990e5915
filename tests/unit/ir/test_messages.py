"""Errors refer to nodes, inputs, outputs and sizes as data; one formatter puts the user's names
there, and nothing reads prose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.harness.end_to_end_harness import Feed
from tests.hostile.model_builder import graph_of, model, value

import ingot
import ingot_runtime
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.message_pack import pack, unpack
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.executors.wire import plain_outcome, read_outcome
from ingot_build_rules.making.options.memory_limit import MemoryLimit
from ingot_build_rules.making.rules.registry import RULEBOOK
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.errors import LimitError, ModelError, UnsupportedError
from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.in_names import error_in_names, refers, text_in_names
from ingot_compiler.ir.message import (
    InputRef,
    Message,
    NodeRef,
    OutputRef,
    joined,
    message,
    nodes_text,
    with_makers,
)
from ingot_compiler.ir.types import TensorType

NAMES = Names(
    "m", ("x",), ("y",), (("/a", "Relu"), ("node #0 s0", "Add")), (("s0", "batch"), ("s1", "s0"))
)
S0, S1 = symbol("s0"), symbol("s1")


def test_a_message_keeps_references_as_data() -> None:
    """Sizes, types and nodes are pieces of their own, wherever they stand; a text that refers to
    nothing is a ``str``."""
    built = message("got ", TensorType("f32", (S0, 3)), " at ", NodeRef(1))
    assert built == Message(("got f32[", S0, ", 3] at ", NodeRef(1)))
    assert str(built) == "got f32[s0, 3] at node #1"
    assert message("a", 1, (2, 3), [4], (5,), ["b"]) == "a1(2, 3)[4](5,)['b']"
    assert message([S0, 2]) == message("[", S0, ", 2]")
    assert joined(" and ", (S0, 1, "x")) == message(S0, " and 1 and x")
    assert nodes_text([0, 1]) == message(NodeRef(0), ", ", NodeRef(1))
    assert (message(), joined(", ", ())) == ("", "")


def test_names_are_put_where_references_are() -> None:
    """What looks like a reference and is a text, or a name, stays as it is; a name is never
    replaced by another one."""
    text = message(
        "node #0, s0, ",
        NodeRef(0),
        ", ",
        NodeRef(1),
        ", ",
        InputRef(0),
        ", ",
        OutputRef(0),
        ", ",
        2 * S0 + S1,
    )
    assert text_in_names(text, NAMES) == (
        "node #0, s0, node '/a' (Relu), node 'node #0 s0' (Add), input 'x', output 'y', 2*batch + s0"
    )


def test_an_error_gets_its_names_part_by_part() -> None:
    """Class and exit code stay; an error that refers to nothing is known by that."""
    error = LimitError("too large", NodeRef(0), message("got ", S0), "make it smaller")
    assert refers(error)
    named = error_in_names(error, NAMES)
    assert type(named) is LimitError
    assert named.parts == ("too large", "node '/a' (Relu)", "got batch", "make it smaller")
    assert not refers(named)


def test_sizes_that_the_model_computes_are_named_by_their_nodes() -> None:
    """Once each, in the order in which they are met; sizes of inputs are not among them."""
    sizes = message(symbol("size1"), " and ", symbol("size0") * S0, " and ", symbol("size1"))
    told = with_makers(sizes, {"size0": (0,), "size1": (0, 1)})
    assert text_in_names(told, NAMES) == (
        "size1 and batch*size0 and size1, where size1 is computed by node '/a' (Relu), node 'node #0 s0' (Add) "
        "and size0 is computed by node '/a' (Relu)"
    )
    assert with_makers("size0", {"size0": (0,)}) == "size0"


def test_attributes_that_look_like_references() -> None:
    """A text of the model's own is shown as it is."""
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], "n", mode="s0")
    source = model(
        [node], [value("x", ["batch", 4])], [value("y", None)], {"scales": np.ones(2, np.float32)}
    )
    with pytest.raises(ModelError, match="got 's0'"):
        graph_of(source)


def nonzero_then(op: str, **attributes: Any) -> ModelProto:
    """``op`` of the indices of x's elements that are not 0, and of z."""
    use = helper.make_node(op, ["i", "z"], ["y"], "/use", **attributes)
    inputs = [value("x", ["n"]), value("z", ["m", 5], TensorProto.INT64)]
    return model(
        [helper.make_node("NonZero", ["x"], ["i"], "/find"), use],
        inputs,
        [value("y", None, TensorProto.INT64)],
    )


def test_a_computed_size_in_a_build_error() -> None:
    """An error of the build names the node that computes a size without a name."""
    with pytest.raises(ModelError) as caught:
        graph_of(nonzero_then("Gather", axis=7))
    assert caught.value.where == "node '/use' (Gather)"
    assert caught.value.why == (
        "Gather(i64[1, size0], i64[m, 5]): expected axis in [-2, 2), got 7, where size0 is computed by node '/find' (NonZero)"
    )


def test_a_computed_size_in_an_error_of_a_call(tmp_path: Path) -> None:
    """So does a refusal of a call, natively and stepped, in the text that is stored in the
    bundle."""
    path = tmp_path / "m.ingot"
    ingot.compile(nonzero_then("Add").SerializeToString(), cache=tmp_path / "cache").save(path)
    feed: Feed = {"x": np.ones(2, np.float32), "z": np.zeros((1, 5), np.int64)}
    for executor in ("aot", "vm"):
        with ingot_runtime.load(path, executor=executor) as session:
            with pytest.raises(ingot_runtime.InputError) as caught:
                session.run(feed)
            assert caught.value.why == (
                "size0 does not broadcast to 5 (node '/use' (Add)), where size0 is computed by node '/find' (NonZero)"
            )
            assert session.run({**feed, "x": np.ones(5, np.float32)})["y"].shape == (1, 5)


def test_references_cross_process_borders() -> None:
    """An error that a rule raises in a worker refers to the same things here, of every kind of
    reference."""
    parts = (
        "a",
        NodeRef(3),
        message(InputRef(1), OutputRef(2), 2 * S0 + 1, NodeRef(0)),
        message(TensorType("f32", (S0,))),
    )
    codec = Codec(RULEBOOK.types)
    sent = pack(plain_outcome(Outcome(error=LimitError(*parts)), codec))
    error = read_outcome(unpack(sent), RULEBOOK.errors, codec).error
    assert isinstance(error, LimitError)
    assert error.parts == parts
    assert error_in_names(error, Names("", ("x", "i"), ("p", "q", "y"), NAMES.nodes * 2, NAMES.symbols)).parts == (
        "a", "node 'node #0 s0' (Add)", "input 'i'output 'y'2*batch + 1node '/a' (Relu)", "f32[batch]",
    )  # fmt: skip


def test_a_limit_names_the_nodes() -> None:
    """A limit that is looked at outside of rules refers to nodes as rules do."""
    with pytest.raises(LimitError) as caught:
        MemoryLimit(1).check(2, "a thing", nodes_text([0]))
    assert error_in_names(caught.value, NAMES).where == "node '/a' (Relu)"
    assert UnsupportedError("a").parts == ("a", "", "", "")
