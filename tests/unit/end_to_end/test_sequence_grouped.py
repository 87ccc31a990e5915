"""Sequences of GroupQueryAttention: caches whose samples have lengths of their own stay in one
place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor

import ingot
import ingot_runtime

HEADS, GROUPS, DEPTH, BATCH = 4, 2, 16, 2
NAMES = ("key", "value")
# New rows of each call, for each sample: a prompt whose second sample ends early, single tokens,
# several; growth by doubling at 64 rows.
CALLS = ((5, 3), (1, 1), (1, 1), (3, 3), (60, 60), (1, 1))


def decoder(*, rotary: bool) -> ModelProto:
    """The attention of one layer as the GenAI builder writes it: lengths from the mask; with
    rotation, q, k and v are one tensor."""
    width = (HEADS + 2 * GROUPS) * DEPTH
    sizes = [HEADS * DEPTH] + [GROUPS * DEPTH] * 2
    parts = {"x": width} if rotary else dict(zip("qkv", sizes, strict=True))
    operands = "x - -" if rotary else "q k v"
    nodes: list[NodeProto] = [
        node("ReduceSum", "mask last", "sum", keepdims=0),
        node("Sub", "sum single", "before"),
        node("Cast", "before", "lengths", to=TensorProto.INT32),
        node("Shape", "mask", "shape"),
        node("Gather", "shape single", "long", axis=0),
        node("Cast", "long", "total", to=TensorProto.INT32),
    ]
    attention = node(
        "GroupQueryAttention",
        f"{operands} past.key past.value lengths total" + (" cos sin" if rotary else ""),
        "y present.key present.value",
        num_heads=HEADS,
        kv_num_heads=GROUPS,
        do_rotary=int(rotary),
    )
    attention.domain = "com.microsoft"
    # The builder leaves the size of heads open.
    cache: list[int | str] = ["batch", GROUPS, "past", "kv_cache_dim"]
    inputs = [tensor(name, ["batch", "length", size]) for name, size in parts.items()]
    inputs += [tensor(f"past.{name}", cache) for name in NAMES]
    inputs += [tensor("mask", ["batch", "total"], TensorProto.INT64)]
    outputs = [tensor(name, None) for name in ("y", "present.key", "present.value")]
    angles = np.arange(256)[:, None] / 10 ** np.linspace(0, 3, DEPTH // 2)
    constants: dict[str, Array] = {"last": np.array([1]), "single": np.array(1)}
    if rotary:
        constants |= {"cos": np.cos(angles).astype("f"), "sin": np.sin(angles).astype("f")}
    model = make_model([*nodes, attention], inputs, outputs, constants)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "rotary"])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("grouped") / "decoder.ingot"
    ingot.compile(decoder(rotary=request.param), targets=["x86-64-v3"]).save(path)
    return path


def steps(session: Any) -> Iterator[tuple[dict[str, Array], list[int]]]:
    """The inputs of each call beside the caches, and how many rows each sample has then."""
    rng, lengths = np.random.default_rng(2), np.zeros(BATCH, np.int64)
    fresh = [item for item in session.inputs if item.name in ("x", "q", "k", "v")]
    for rows in CALLS:
        lengths = lengths + rows
        given = {
            item.name: rng.standard_normal((BATCH, max(rows), item.shape[2])).astype(np.float32)
            for item in fresh
        }
        mask: Array = np.less(np.arange(lengths.max()), lengths[:, None]).astype(np.int64)
        yield {**given, "mask": mask}, lengths.tolist()


@pytest.mark.sweep(3)
@pytest.mark.parametrize("executor", ["aot", "vm"])
def test_every_call_gives_the_bits_of_one_with_all_caches(bundle: Path, executor: str) -> None:
    """Samples of different lengths, prompts and single tokens, over a growth of the memory; and the
    caches themselves, in which what no sample has is 0."""
    with ingot_runtime.load(bundle, threads=2, executor=executor) as session:
        assert session.states == {f"past.{name}": f"present.{name}" for name in NAMES}
        sequence, longest = session.sequence(), 0
        caches = {f"past.{n}": np.zeros((BATCH, GROUPS, 0, DEPTH), np.float32) for n in NAMES}
        for inputs, lengths in steps(session):
            expected, got = session.run({**inputs, **caches}), sequence.run(inputs)
            assert list(got) == ["y"]
            assert (got["y"] == expected["y"]).all()
            caches = {f"past.{name}": expected[f"present.{name}"] for name in NAMES}
            for name, cache in caches.items():
                assert (sequence.state(name) == cache).all()
                longest = max(lengths)
                for sample, length in enumerate(lengths):
                    assert cache[sample, :, :length].all()
                    assert not cache[sample, :, length:].any()
        assert len(sequence) == longest


@pytest.mark.broad
@pytest.mark.parametrize("executor", ["aot", "vm"])
def test_a_cache_of_the_size_of_its_window_stays_in_its_place(
    executor: str, tmp_path: Path
) -> None:
    """Calls evict, at different places of each sample, and replace what was there: a sequence gives
    the bits of calls with all caches, from rows of zeros."""
    model = decoder(rotary=True)
    window = {"local_window_size": 4, "sliding_window_cache": 1}
    model.graph.node[-1].attribute.extend(
        helper.make_attribute(name, value) for name, value in window.items()
    )
    ingot.compile(model, targets=["x86-64-v3"]).save(tmp_path / "window.ingot")
    with ingot_runtime.load(tmp_path / "window.ingot", threads=2, executor=executor) as session:
        assert session.states == {f"past.{name}": f"present.{name}" for name in NAMES}
        sequence = session.sequence(sizes={"past": 6})
        caches = {f"past.{n}": np.zeros((BATCH, GROUPS, 6, DEPTH), np.float32) for n in NAMES}
        for inputs, _ in steps(session):
            expected, got = session.run({**inputs, **caches}), sequence.run(inputs)
            assert got["y"].any()
            assert (got["y"] == expected["y"]).all()
            caches = {f"past.{name}": expected[f"present.{name}"] for name in NAMES}
            assert all((sequence.state(name) == cache).all() for name, cache in caches.items())


def test_rows_of_a_sample_are_its_own(bundle: Path) -> None:
    """Row by row, the cache of a sample has what its calls gave, whatever the other sample does."""
    with ingot_runtime.load(bundle) as session:
        both, alone = session.sequence(), session.sequence()
        for (inputs, _), rows in zip(steps(session), CALLS, strict=True):
            both.run(inputs)
            own = {name: array[1:] for name, array in inputs.items() if name != "mask"}
            own = {name: array[:, : rows[1]] for name, array in own.items()}
            mask = inputs["mask"][1:, : int(inputs["mask"][1].sum())]
            alone.run({**own, "mask": mask})
            for name in NAMES:
                want = alone.state(f"past.{name}")[0]
                got = both.state(f"past.{name}")[1, :, : want.shape[1]]
                np.testing.assert_allclose(got, want, 1e-6, 1e-6)


def _cut(case: str) -> ModelProto:
    """``present = concat(past[:m], ..)`` in forms that cannot lie in place."""
    cache = tensor("past", ["past", 4])
    # The first rows, as many as another input has of its own.
    nodes = [
        node("Shape", "rows", "m", end=1),
        node("Slice", "past zero m", "kept"),
        node("Slice", "past one_behind far", "rest"),
        node("Add", "m one", "one_behind"),
    ]
    nodes = [nodes[0], nodes[1], nodes[3], nodes[2]]
    if case == "a row is left out":
        nodes += [node("Concat", "kept rest", "present", axis=0)]
        outputs = ["present"]
    elif case == "the past is read again":
        nodes = [*nodes[:2], node("Concat", "kept new", "present", axis=0)]
        nodes += [node("Neg", "past", "other")]
        outputs = ["present", "other"]
    else:
        nodes = [node("Slice", "past zero end", "kept")]
        nodes += [node("Concat", "kept new", "present", axis=0)]
        outputs = ["present"]
    inputs = [cache, tensor("rows", ["m", 1]), tensor("new", ["n", 4])]
    inputs += [tensor("end", [1], TensorProto.INT64)]
    numbers = {"zero": np.array([0]), "one": np.array([1]), "far": np.array([1 << 40])}
    return make_model(nodes, inputs, [tensor(name, None) for name in outputs], numbers)


@pytest.mark.parametrize(
    "case", ["a row is left out", "the past is read again", "data tell the length"]
)
def test_what_cannot_lie_in_place_is_no_state(case: str, tmp_path: Path) -> None:
    """A row that moves, a past that something else needs, a length that only a run tells."""
    ingot.compile(_cut(case)).save(tmp_path / "m.ingot")
    with ingot_runtime.load(tmp_path / "m.ingot") as session:
        assert session.states == {}


def test_keys_beyond_the_tables_of_the_rotation_are_refused(bundle: Path) -> None:
    """A cache that outgrows the 256 positions that the model has tables for is an error, after
    which the sequence is as it was; without rotation nothing bounds it."""
    with ingot_runtime.load(bundle) as session:
        sequence = session.sequence()
        fresh = [item for item in session.inputs if item.name in ("x", "q", "k", "v")]

        def call(rows: int) -> None:
            whole = len(sequence) + rows
            given: dict[str, Array] = {
                it.name: np.ones((1, rows, int(it.shape[2])), np.float32) for it in fresh
            }
            given["mask"] = np.ones((1, whole), np.int64)
            sequence.run(given)

        call(250)
        call(6)
        if len(fresh) > 1:
            call(1)
            assert len(sequence) == 257
        else:
            with pytest.raises(ingot_runtime.InputError, match="at most 256 keys"):
                call(1)
            assert len(sequence) == 256
            sequence.truncate(255)
            call(1)


def test_heads_of_another_size_are_refused() -> None:
    """The size of the heads of a cache, which the file leaves open, is that of the new ones."""
    with pytest.raises(ingot.IngotError, match="expected kv_cache_dim = 16, got 32"):
        ingot.compile(decoder(rotary=False), shapes={"past.key": (2, GROUPS, 5, 32)})
