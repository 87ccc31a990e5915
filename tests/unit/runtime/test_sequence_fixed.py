"""Sequences of models whose caches have a fixed length: the rows that a call writes are written where
the cache lies, and every call gives the bits of one that is given all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from onnx.reference import ReferenceEvaluator
from tests.c_loader import CBundle, LoaderError, options
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor

import ingot
import ingot_runtime
from ingot_runtime.executor.sequence import Sequence
from ingot_runtime.executor.session import Session

HEADS, GROUPS, ROWS, DEPTH = 4, 2, 16, 8
STEPS = (5, 1, 1, 3)
Feed = dict[str, Array]


def _inputs(rows: int | str, batch: int | str = "batch") -> list[Any]:
    shapes = {"q": HEADS, "k": GROUPS, "v": GROUPS}
    cache: list[int | str] = [batch, GROUPS, rows, DEPTH]
    return [
        *(tensor(name, [batch, heads, "length", DEPTH]) for name, heads in shapes.items()),
        *(tensor(f"past.{name}", cache) for name in ("key", "value")),
    ]


def _outputs(rows: int | str, batch: int | str = "batch") -> list[Any]:
    cache: list[int | str] = [batch, GROUPS, rows, DEPTH]
    return [
        tensor("y", [batch, HEADS, "length", DEPTH]),
        *(tensor(f"present.{name}", cache) for name in ("key", "value")),
    ]


def tensor_scatter(mode: str = "linear", rows: int | str = ROWS) -> ModelProto:
    """TensorScatter of keys and values, Attention with the lengths of samples."""
    nodes = [
        *(
            node("TensorScatter", f"past.{name} {name[0]} places", f"present.{name}", mode=mode)
            for name in ("key", "value")
        ),
        node("Attention", "q present.key present.value - - - lengths", "y"),
    ]
    numbers = [tensor(name, ["batch"], TensorProto.INT64) for name in ("places", "lengths")]
    model = make_model(nodes, [*_inputs(rows), *numbers], _outputs(rows))
    model.opset_import[0].version, model.ir_version = 24, 11
    return model


def index_put() -> ModelProto:
    """What torch's exporter writes of ``index_copy_``, and attention with a mask of positions, whose
    lookup is refused where a position has no bias."""
    nodes = [node("Unsqueeze", "positions last", "column")]
    for name in ("key", "value"):
        nodes += [
            node("Transpose", f"past.{name}", f"{name}0", perm=[2, 0, 1, 3]),
            node("Transpose", name[0], f"{name}1", perm=[2, 0, 1, 3]),
            node("ScatterND", f"{name}0 column {name}1", f"{name}2"),
            node("Transpose", f"{name}2", f"present.{name}", perm=[1, 2, 0, 3]),
        ]
    return _masked(nodes, "batch")


def scatter_elements() -> ModelProto:
    """The same by places of single elements, of one list; of a batch of two, for sizes that a run
    tells might differ."""
    nodes = [
        node("Reshape", "positions shape", "column"),
        node("Shape", "k", "sizes"),
        node("Expand", "column sizes", "everywhere"),
        *(
            node("ScatterElements", f"past.{name} everywhere {name[0]}", f"present.{name}", axis=2)
            for name in ("key", "value")
        ),
    ]
    return _masked(nodes, 2)


def _masked(nodes: list[Any], batch: int | str) -> ModelProto:
    """Attention of one key head each, whose mask says which rows there are; ids look up a bias."""
    nodes += [
        node("Unsqueeze", "positions last", "own"),
        node("LessOrEqual", "rows own", "seen"),
        node("Where", "seen zero lowest", "mask"),
        node("Concat", "present.key present.key", "keys", axis=1),
        node("Concat", "present.value present.value", "values", axis=1),
        node("Transpose", "keys", "turned", perm=[0, 1, 3, 2]),
        node("MatMul", "q turned", "raw"),
        node("Add", "raw mask", "scores"),
        node("Softmax", "scores", "weights", axis=-1),
        node("MatMul", "weights values", "attended"),
        node("Gather", "biases ids", "bias"),
        node("Add", "attended bias", "y"),
    ]
    constants = {
        "last": np.array([1]),
        "shape": np.array([1, 1, -1, 1]),
        "rows": np.arange(ROWS)[None],
        "zero": np.zeros((), np.float32),
        "lowest": np.array(-np.inf, np.float32),
        "biases": np.arange(4, dtype=np.float32),
    }
    taken = [
        tensor("positions", ["length"], TensorProto.INT64),
        tensor("ids", [1], TensorProto.INT64),
    ]
    return make_model(nodes, [*_inputs(ROWS, batch), *taken], _outputs(ROWS, batch), constants)


MODELS = {
    "tensor_scatter": tensor_scatter(),
    "index_put": index_put(),
    "scatter_elements": scatter_elements(),
}


def step(name: str, start: int, length: int, seed: int = 0, batch: int = 2) -> Feed:
    """What a call is given beside the caches, whose new rows begin at ``start``."""
    rng = np.random.default_rng(seed)
    shapes = {"q": HEADS, "k": GROUPS, "v": GROUPS}
    feed: Feed = {
        key: rng.standard_normal((batch, heads, length, DEPTH)).astype(np.float32)
        for key, heads in shapes.items()
    }
    if name == "tensor_scatter":
        starts = np.arange(batch) + start
        return {**feed, "places": starts, "lengths": starts + length}
    return {**feed, "positions": np.arange(start, start + length), "ids": np.array([1])}


def empty(batch: int = 2) -> Feed:
    """Caches of zeros."""
    shape = (batch, GROUPS, ROWS, DEPTH)
    return {f"past.{name}": np.zeros(shape, np.float32) for name in ("key", "value")}


def kept(result: Feed) -> Feed:
    """The caches that a call has returned."""
    return {f"past.{name}": result[f"present.{name}"] for name in ("key", "value")}


@pytest.fixture(scope="module", params=list(MODELS))
def named(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The name of a model, its bundle."""
    path = tmp_path_factory.mktemp("fixed") / f"{request.param}.ingot"
    ingot.compile(MODELS[request.param].SerializeToString(), targets=["x86-64-v3"]).save(path)
    return request.param, path


@pytest.mark.parametrize("executor", ["aot", "vm"])
def test_every_call_gives_the_bits_of_one_with_all_caches(
    named: tuple[str, Path], executor: str
) -> None:
    """A prompt and tokens; both give what the reference gives."""
    name, path = named
    session = ingot_runtime.load(path, executor=executor)
    assert session.states == {"past.key": "present.key", "past.value": "present.value"}
    sequence, caches, start = session.sequence(), empty(), 0
    reference = ReferenceEvaluator(MODELS[name])
    for number, length in enumerate(STEPS):
        feed = step(name, start, length, number)
        whole, found = session.run({**feed, **caches}), sequence.run(feed)
        given: dict[str, Any] = {**feed, **caches}
        answers = cast("list[Array]", cast("Any", reference).run(None, given))
        expected = dict(zip(cast("list[str]", reference.output_names), answers, strict=True))
        assert list(found) == ["y"]
        assert found["y"].tobytes() == whole["y"].tobytes()
        np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-5, atol=1e-5)
        caches, start = kept(whole), start + length
        for key, array in caches.items():
            assert sequence.state(key).tobytes() == array.tobytes()
            assert array.tobytes() == expected[key.replace("past", "present")].tobytes()
    assert (len(sequence), sequence.capacity) == (ROWS, ROWS)


def _refused(name: str, feed: Feed) -> list[tuple[Feed, str]]:
    """Calls that the model refuses, and what it says: each check stands before the first row."""
    if name == "tensor_scatter":
        beyond = np.array([0, ROWS])
        below = np.array([-1, 0])
        return [({**feed, "places": places}, "every write index in") for places in (beyond, below)]
    return [
        ({**feed, "positions": feed["positions"] + ROWS}, "every index in .*Scatter"),
        ({**feed, "ids": np.array([4])}, "every index in .*Gather"),
    ]


def test_a_call_that_is_refused_changes_no_row(named: tuple[str, Path]) -> None:
    """Also where what is refused is computed behind the caches."""
    name, path = named
    sequence = ingot_runtime.load(path).sequence()
    sequence.run(step(name, 0, 4))
    before = {key: sequence.state(key) for key in empty()}
    for feed, message in _refused(name, step(name, 4, 1)):
        with pytest.raises(ingot_runtime.InputError, match=message):
            sequence.run(feed)
        for key, array in before.items():
            assert (sequence.state(key) == array).all()


def test_forks_beams_and_a_new_beginning(named: tuple[str, Path]) -> None:
    """A fork has memory of its own; after a reset the rows are zeros, perhaps of another batch."""
    name, path = named
    session = ingot_runtime.load(path)
    sequence = session.sequence()
    first = sequence.run(step(name, 0, 4))["y"]
    before, fork = sequence.state("past.key"), sequence.fork()
    expected = sequence.run(step(name, 4, 1, 1))["y"]
    sequence.run(step(name, 5, 1, 2))
    assert (fork.run(step(name, 4, 1, 1))["y"] == expected).all()
    fork.reorder([1, 1])
    assert (fork.state("past.key")[:, :, :4] == before[[1, 1], :, :4]).all()
    sequence.reset()
    assert (sequence.run(step(name, 0, 4))["y"] == first).all()
    assert (sequence.state("past.key") == before).all()
    sequence.reset()
    batch = 2 if name == "scatter_elements" else 3
    assert sequence.run(step(name, 0, 2, batch=batch))["y"].shape[0] == batch


def test_rows_are_not_taken_back(named: tuple[str, Path]) -> None:
    """The model says where rows are written: it writes over them."""
    name, path = named
    sequence = ingot_runtime.load(path).sequence()
    sequence.run(step(name, 0, 4))
    with pytest.raises(ingot_runtime.InputError, match="'past\\.key' has a fixed length"):
        sequence.truncate(3)


def test_the_loader_in_c_does_the_same(named: tuple[str, Path]) -> None:
    """Its bits, its refusals, a fork, beams and a new beginning."""
    name, path = named
    sequence = ingot_runtime.load(path).sequence()
    with CBundle(path, options(states=0)) as loaded:
        start = 0
        for number, length in enumerate(STEPS):
            feed = step(name, start, length, number)
            expected, found, start = sequence.run(feed), loaded.run(feed), start + length
            assert found["y"].tobytes() == expected["y"].tobytes()
            for key in ("present.key", "present.value"):
                assert found[key].tobytes() == sequence.state(key).tobytes()
        for feed, message in _refused(name, step(name, start, 1)):
            with pytest.raises(LoaderError, match=message):
                loaded.run(feed)
        with pytest.raises(LoaderError, match="'past\\.key' has a fixed length"):
            loaded.keep(3)
        fork = loaded.fork()
        loaded.keep(-1, [1, 1])
        sequence.reorder([1, 1])
        again = step(name, start, 1, 9)
        alone = fork.run(again)["present.key"]
        assert loaded.run(again)["y"].tobytes() == sequence.run(again)["y"].tobytes()
        assert loaded.run(again)["present.key"].tobytes() != alone.tobytes()
        fork.close()
        loaded.keep(0)
        sequence.reset()
        begun = step(name, 0, 2)
        assert loaded.run(begun)["present.key"].tobytes() == _after(sequence, begun).tobytes()


def _after(sequence: Sequence, feed: Feed) -> Array:
    sequence.run(feed)
    return sequence.state("past.key")


def _session(model: ModelProto, tmp_path: Path) -> Session:
    path = tmp_path / "one.ingot"
    ingot.compile(model.SerializeToString(), targets=["x86-64-v3"]).save(path)
    return ingot_runtime.load(path)


def test_a_ring_is_written_around_its_end(tmp_path: Path) -> None:
    """Mode circular: places modulo the length."""
    session = _session(tensor_scatter("circular"), tmp_path)
    sequence, caches = session.sequence(), empty()
    for number in range(6):
        feed = step("tensor_scatter", 5 * number, 5, number)
        whole = session.run({**feed, **caches})
        assert sequence.run(feed)["y"].tobytes() == whole["y"].tobytes()
        caches = kept(whole)
        assert (sequence.state("past.value") == caches["past.value"]).all()


@pytest.mark.broad
def test_an_open_length_is_said_once_and_bounded(tmp_path: Path) -> None:
    """The length of the caches is no other input's: ``sizes`` gives it, ``max_length`` bounds it."""
    session = _session(tensor_scatter(rows="rows"), tmp_path)
    with pytest.raises(
        ingot_runtime.InputError, match="no input that is given has the size 'rows'"
    ):
        session.sequence().run(step("tensor_scatter", 0, 2))
    with pytest.raises(ingot_runtime.InputError, match="max_length is 8"):
        session.sequence(max_length=8, sizes={"rows": ROWS}).run(step("tensor_scatter", 0, 2))
    sequence = session.sequence(sizes={"rows": ROWS})
    sequence.run(step("tensor_scatter", 0, 2))
    assert sequence.size_bytes == 2 * (2 * GROUPS * ROWS * DEPTH * 4)


def _pair(nodes: list[Any], *others: Any) -> ModelProto:
    """A cache of one head with rows written at ``positions``, called ``written``."""
    cache = tensor("past", [ROWS, DEPTH])
    given = [
        tensor("rows", ["length", DEPTH]),
        tensor("positions", ["length", 1], TensorProto.INT64),
    ]
    write = node("ScatterND", "past positions rows", "written")
    outputs = [tensor("written", [ROWS, DEPTH]), *others]
    constants = {"table": np.arange(9, dtype=np.float32)}
    return make_model([write, *nodes], [cache, *given], outputs, constants)


@pytest.mark.broad
def test_what_may_be_refused_later_or_is_read_elsewhere_is_no_state(tmp_path: Path) -> None:
    """A lookup by what the cache holds may fail behind the write; who reads the cache as it was needs
    it as it was; what is added to it is no row that is replaced."""
    number = tensor("y", None)
    looked_up = [
        node("Cast", "written", "ids", to=TensorProto.INT64),
        node("Gather", "table ids", "y"),
    ]
    assert _session(_pair([]), tmp_path).states
    assert not _session(_pair(looked_up, number), tmp_path).states
    assert not _session(_pair([node("Neg", "past", "y")], number), tmp_path).states
    added = _pair([])
    added.graph.node[0].attribute.extend(node("X", "a", "b", reduction="add").attribute)
    assert not _session(added, tmp_path).states
