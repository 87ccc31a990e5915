"""Sequences of models whose layers keep a state of one size, which each call replaces: beside a cache
that grows, or alone. Every call gives the bits of one that is given all states."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.c_loader import CBundle, LoaderError, options
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, tensor
from tests.harness.lowering_harness import normal

import ingot
import ingot_runtime
from ingot_runtime.errors import InputError
from ingot_runtime.executor.session import Session

HEADS, DEPTH, TAPS, WORDS = 2, 8, 3, 20
WIDTH = HEADS * DEPTH
STEPS = (5, 1, 1, 4, 1)
Feed = dict[str, Array]
STATES = {"past.conv": "present.conv", "past.matrix": "present.matrix"}
CACHE = {"past.key": "present.key"}


def _node(op: str, inputs: str, outputs: str, domain: str = "", **attributes: Any) -> Any:
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), domain=domain, **attributes)


def model_of(*, has_cache: bool, more: tuple[Any, ...] = (), returned: str = "") -> ModelProto:
    """Words are looked up, which may be refused; a causal convolution, linear attention, and perhaps
    a cache of all rows, of which the mean is taken."""
    nodes = [
        _node("Gather", "table ids", "x"),
        _node("Transpose", "x", "turned", perm=[0, 2, 1]),
        _node(
            "CausalConvWithState", "turned taps - past.conv", "moved present.conv",
            "com.microsoft", activation="silu",
        ),
        _node("Transpose", "moved", "rows", perm=[0, 2, 1]),
        _node("Slice", "rows zero heads axis", "logarithms"),
        _node("Abs", "logarithms", "beta"),
        _node("Neg", "beta", "decay"),
        _node(
            "LinearAttention", "rows rows rows past.matrix decay beta", "seen present.matrix",
            "com.microsoft", q_num_heads=HEADS, kv_num_heads=HEADS,
        ),
        _node("Concat", "past.key rows", "present.key", axis=1),
        _node("ReduceMean", "present.key one", "mean", keepdims=1),
        _node("Add", "seen mean", "sum"),
        _node("MatMul", "sum last" if has_cache else "seen last", "y"),
    ]  # fmt: skip
    if not has_cache:
        nodes = [
            node for node in nodes if not {"present.key", "mean"} & {*node.input, *node.output}
        ]
    inputs = [
        tensor("ids", ["batch", "length"], TensorProto.INT64),
        tensor("past.conv", ["batch", WIDTH, TAPS - 1]),
        tensor("past.matrix", ["batch", HEADS, DEPTH, DEPTH]),
        *([tensor("past.key", ["batch", "past", WIDTH])] if has_cache else []),
    ]
    names = ["y", *_states(has_cache=has_cache).values(), *returned.split()]
    constants = {
        "table": normal(1, WORDS, WIDTH), "taps": normal(2, WIDTH, 1, TAPS),
        "last": normal(3, WIDTH, 4), "zero": np.array([0]), "heads": np.array([HEADS]),
        "axis": np.array([2]), "one": np.array([1]),
    }  # fmt: skip
    outputs = [tensor(name, None) for name in names]
    model = make_model([*nodes, *more], inputs, outputs, constants)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


def _states(*, has_cache: bool) -> dict[str, str]:
    return STATES | CACHE if has_cache else STATES


def _saved(model: ModelProto, path: Path) -> Session:
    ingot.compile(model, targets="x86-64-v3").save(path)
    return ingot_runtime.load(path)


def _step(number: int, batch: int = 2) -> Feed:
    words = np.random.default_rng(number).integers(0, WORDS, (batch, STEPS[number]))
    return {"ids": words}


def _empty(batch: int = 2) -> Feed:
    shapes = {
        "past.conv": (batch, WIDTH, TAPS - 1),
        "past.matrix": (batch, HEADS, DEPTH, DEPTH),
        "past.key": (batch, 0, WIDTH),
    }
    return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}


@pytest.mark.sweep(60)
@pytest.mark.parametrize("has_cache", [True, False])
def test_every_call_gives_the_bits_of_one_with_all_states(
    tmp_path: Path, *, has_cache: bool
) -> None:
    """In Python and in C, natively and in the vm; a cache that grows tells the rows, else the states
    themselves."""
    path = tmp_path / "m.ingot"
    session = _saved(model_of(has_cache=has_cache), path)
    states = _states(has_cache=has_cache)
    assert dict(session.states) == states
    stepped = ingot_runtime.load(path, executor="vm")
    given = {name: array for name, array in _empty().items() if name in states}
    sequences = [session.sequence(), stepped.sequence(max_length=sum(STEPS))]
    with CBundle(path, options(states=0)) as in_c:
        for number in range(len(STEPS)):
            expected = session.run({**_step(number), **given})
            given = {name: expected[result] for name, result in states.items()}
            for sequence in sequences:
                found = sequence.run(_step(number))
                assert list(found) == ["y"]
                assert found["y"].tobytes() == expected["y"].tobytes()
                for name, array in given.items():
                    assert sequence.state(name).tobytes() == array.tobytes()
                if has_cache:
                    assert len(sequence) == sum(STEPS[: number + 1])
            found = in_c.run(_step(number))
            for result in ("y", *states.values()):
                assert found[result].tobytes() == expected[result].tobytes()


def test_forks_beams_and_a_new_beginning(tmp_path: Path) -> None:
    """A fork goes its own way; beams take their states along; nothing is taken back but all."""
    path = tmp_path / "m.ingot"
    session = _saved(model_of(has_cache=True), path)
    sequence = session.sequence()
    first = sequence.run(_step(0))["y"]
    fork = sequence.fork()
    second = sequence.run(_step(1))["y"]
    assert fork.run(_step(1))["y"].tobytes() == second.tobytes()
    sequence.reorder([1, 1])
    for name in (*STATES, *CACHE):
        held = sequence.state(name)
        assert held[0].tobytes() == held[1].tobytes() == fork.state(name)[1].tobytes()
    with pytest.raises(InputError, match="no rows to take back"):
        sequence.truncate(3)
    sequence.truncate(len(sequence))
    assert sequence.state("past.matrix").any()
    sequence.reset()
    assert sequence.run(_step(0))["y"].tobytes() == first.tobytes()
    with CBundle(path, options(states=0)) as in_c:
        in_c.run(_step(0))
        with pytest.raises(LoaderError, match="has a fixed length"):
            in_c.keep(3)
        in_c.keep(5)
        assert in_c.run(_step(1))["y"].tobytes() == second.tobytes()
        in_c.keep(0)
        assert in_c.run(_step(0))["y"].tobytes() == first.tobytes()


def test_a_call_that_is_refused_changes_no_state(tmp_path: Path) -> None:
    """A word that is none, or more rows than the bound: what comes next is as if it had not been."""
    session = _saved(model_of(has_cache=True), tmp_path / "m.ingot")
    sequence, other = session.sequence(max_length=6), session.sequence()
    sequence.run(_step(0))
    other.run(_step(0))
    with pytest.raises(ingot_runtime.BundleError, match="expected every index"):
        sequence.run({"ids": np.full((2, 1), WORDS)})
    with pytest.raises(InputError, match="max_length is 6"):
        sequence.run(_step(3))
    assert sequence.run(_step(1))["y"].tobytes() == other.run(_step(1))["y"].tobytes()


def test_what_something_else_reads_is_no_state(tmp_path: Path) -> None:
    """Who reads a state as it was may do so behind the write; nor is what two outputs are."""
    reads = (_node("Neg", "past.matrix", "turned.matrix"),)
    model = model_of(has_cache=True, more=reads, returned="turned.matrix")
    states = _saved(model, tmp_path / "m.ingot").states
    assert "past.matrix" not in states
    assert "past.key" in states


@pytest.mark.parametrize("has_cache", [True, False])
def test_matrices_are_computed_where_they_are_kept(*, has_cache: bool) -> None:
    """No kernel copies them there, also behind words that may be refused."""
    text = ingot.compile(model_of(has_cache=has_cache), targets="x86-64-v3").text("fused")
    assert "require" in text
    kernels = text.split("kernel ")
    (made,) = (kernel for kernel in kernels if kernel.startswith("linear_attention"))
    ((value, place),) = re.findall(r"writes (%\d+): f32\[\w+, 2, 8, 8\] in (b\d+)", made)
    assert f"buffer {place}: f32 x 128*s0, output" in text
    assert sum(f"writes {value}:" in kernel for kernel in kernels) == 1
