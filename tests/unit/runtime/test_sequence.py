"""Sequences: what a model keeps from call to call stays in one place, and every call gives the bits
of one that is given all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from tests.harness.codegen_harness import Array
from tests.harness.decoder_harness import decoder, empty_caches, step
from tests.harness.end_to_end_harness import make_model, node, tensor

import ingot
import ingot_runtime
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.view.report_subject import read_subject
from ingot_runtime.executor.session import Session

LENGTHS = (5, 1, 1, 3, 1, 60, 1, 0, 1, 70)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("decoder") / "decoder.ingot"
    model = decoder().SerializeToString()
    ingot.compile(model, targets=["x86-64-v3"]).save(path)
    return path


@pytest.fixture(scope="module")
def session(bundle: Path) -> Session:
    return ingot_runtime.load(bundle)


def continued(session: Session, lengths: Sequence[int]) -> list[dict[str, Array]]:
    """The results of calls that are given the caches that the last one returned."""
    caches, results = empty_caches(), list[dict[str, Array]]()
    for number, length in enumerate(lengths):
        results.append(session.run({**step(length, seed=number), **caches}))
        caches = {f"past.{name}": results[-1][f"present.{name}"] for name in ("key", "value")}
    return results


def test_states_are_found_by_what_the_graph_does(session: Session) -> None:
    """A pair is an input and the output that is the input with more behind it."""
    assert session.states == {"past.key": "present.key", "past.value": "present.value"}


@pytest.mark.parametrize("executor", ["aot", "vm"])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_call_gives_the_bits_of_one_with_all_caches(
    bundle: Path, executor: str, threads: int
) -> None:
    """Prompts and single tokens, over two growths of the memory; and the states themselves."""
    session = ingot_runtime.load(bundle, threads=threads, executor=executor)
    sequence = session.sequence()
    for number, expected in enumerate(continued(session, LENGTHS)):
        result = sequence.run(step(LENGTHS[number], seed=number))
        assert list(result) == ["y"]
        assert (result["y"] == expected["y"]).all()
        for name in ("key", "value"):
            assert (sequence.state(f"past.{name}") == expected[f"present.{name}"]).all()
            assert (sequence.state(f"present.{name}") == expected[f"present.{name}"]).all()
    assert len(sequence) == sum(LENGTHS)


@pytest.mark.broad
def test_versions_for_some_sizes_have_the_same_states(tmp_path: Path, session: Session) -> None:
    """One token, and one token behind five rows."""
    path = tmp_path / "decoder.ingot"
    shapes = [{"x": "2x1x8", "past.key": "2x2x5x16"}, {"x": "?x1x8"}]
    ingot.compile(decoder().SerializeToString(), targets=["x86-64-v3"], shapes=shapes).save(path)
    sequence = ingot_runtime.load(path).sequence()
    for number, expected in enumerate(continued(session, LENGTHS)):
        result = sequence.run(step(LENGTHS[number], seed=number))
        np.testing.assert_allclose(result["y"], expected["y"], rtol=1e-4, atol=1e-5)
        assert (sequence.state("past.key") == expected["present.key"]).all()


def test_memory_grows_by_doubling_and_stays_where_it_is(session: Session) -> None:
    """200 rows take three blocks; between growths, no byte of the cache moves."""
    sequence = session.sequence()
    places: list[int] = []
    for number in range(200):
        sequence.run(step(1, seed=number))
        places.append(sequence.capacity)
    assert sorted(set(places)) == [64, 128, 256]
    assert sequence.size_bytes == 2 * (2 * 2 * 256 * 16 * 4)


def test_several_sequences_of_one_session_do_not_meet(session: Session) -> None:
    """Calls in turn give what each one gives alone; lengths may differ."""
    first, second = session.sequence(), session.sequence()
    alone = continued(session, (3, 1, 1))
    for number, length in enumerate((3, 1, 1)):
        result = first.run(step(length, seed=number))
        second.run(step(2, batch=1, seed=number))
        assert (result["y"] == alone[number]["y"]).all()
    assert (len(first), len(second)) == (5, 6)


def test_reset_begins_anew(session: Session) -> None:
    """After a reset the next call is a first one, perhaps of another batch; the memory stays."""
    sequence = session.sequence()
    first = sequence.run(step(3))["y"]
    capacity = sequence.capacity
    sequence.reset()
    assert (len(sequence), sequence.capacity) == (0, capacity)
    assert (sequence.run(step(3))["y"] == first).all()
    sequence.reset()
    assert sequence.run(step(3, batch=3))["y"].shape[0] == 3


def test_rows_are_taken_back(session: Session) -> None:
    """What was appended last is forgotten, and another token takes its place."""
    sequence = session.sequence()
    sequence.run(step(4))
    expected = sequence.fork().run(step(1, seed=1))["y"]
    sequence.run(step(3, seed=2))
    sequence.truncate(4)
    assert (sequence.run(step(1, seed=1))["y"] == expected).all()


def test_a_fork_goes_its_own_way(session: Session) -> None:
    """Both continue what was there, neither sees what the other does, also when one is closed."""
    sequence = session.sequence()
    sequence.run(step(4))
    fork = sequence.fork()
    expected = sequence.run(step(1, seed=1))["y"]
    sequence.run(step(1, seed=2))
    assert (fork.run(step(1, seed=1))["y"] == expected).all()
    again = sequence.fork()
    sequence.close()
    assert again.run(step(1))["y"].shape == expected.shape


def test_beams_are_reordered(session: Session) -> None:
    """Entry i continues what entry rows[i] had."""
    sequence = session.sequence()
    sequence.run(step(4))
    before = sequence.state("past.key")
    sequence.reorder([1, 1])
    assert (sequence.state("past.key") == before[[1, 1]]).all()


def test_outputs_are_written_where_the_caller_says(session: Session) -> None:
    """The arrays that are given are the results."""
    sequence = session.sequence()
    y = np.empty((2, 3, 64), np.float32)
    result = sequence.run(step(3), outputs={"y": y})
    assert result["y"] is y
    assert (y == continued(session, (3,))[0]["y"]).all()


def test_inputs_that_do_not_lie_together_are_copied(session: Session) -> None:
    """A view with steps gives what its copy gives."""
    wide = np.repeat(step(3)["x"], 2, 2)[:, :, ::2]
    assert not wide.flags.c_contiguous
    expected = session.sequence().run(step(3))["y"]
    assert (session.sequence().run({"x": wide})["y"] == expected).all()


def test_sessions_of_several_lanes_have_sequences(bundle: Path) -> None:
    """Each sequence stays with its context."""
    session = ingot_runtime.load(bundle, sessions=2)
    sequences = [session.sequence() for _ in range(3)]
    results = [sequence.run(step(2))["y"] for sequence in sequences]
    assert all((result == results[0]).all() for result in results)


def _overlong(session: Session) -> None:
    sequence = session.sequence(max_length=4)
    sequence.run(step(3))
    sequence.run(step(2))


def _closed(session: Session) -> None:
    sequence = session.sequence()
    sequence.close()
    sequence.run(step(1))


def _fork_of_closed(session: Session) -> None:
    sequence = session.sequence()
    sequence.close()
    sequence.fork()


def _other_batch(session: Session) -> None:
    sequence = session.sequence()
    sequence.run(step(1))
    sequence.run(step(1, batch=3))


def _beams_outside(session: Session) -> None:
    sequence = session.sequence()
    sequence.run(step(1))
    sequence.reorder([0, 2])


ERRORS: list[tuple[Callable[[Session], object], type[Exception], str]] = [
    (_overlong, ingot_runtime.InputError, "max_length is 4: it has 3 rows, this call makes them 5"),
    (_closed, ingot_runtime.BusyError, "the sequence is closed"),
    (_fork_of_closed, ingot_runtime.BusyError, "the sequence is closed"),
    (_other_batch, ingot_runtime.InputError, "batch is 2 in input 'past.key'"),
    (_beams_outside, ingot_runtime.InputError, "expected 2 numbers from 0 to 1"),
    (
        lambda s: s.sequence().run({**step(1), **empty_caches()}),
        ingot_runtime.InputError,
        "'past.key' is a state",
    ),
    (lambda s: s.sequence().run({}), ingot_runtime.InputError, "missing input 'x'"),
    (
        lambda s: s.sequence().run(cast("Any", [])),
        ingot_runtime.InputError,
        "inputs are not a dict",
    ),
    (
        lambda s: s.sequence().run({"y": np.ones(1), **step(1)}),
        ingot_runtime.InputError,
        "no input 'y'",
    ),
    (
        lambda s: s.sequence().run(step(1), {"z": np.ones(1)}),
        ingot_runtime.InputError,
        "no output 'z'",
    ),
    (
        lambda s: s.sequence().run(step(1), {"y": np.empty(3)}),
        ingot_runtime.InputError,
        "output 'y' does not fit",
    ),
    (lambda s: s.sequence().truncate(1), ingot_runtime.InputError, "expected 0 to 0 rows, got 1"),
    (lambda s: s.sequence().state("x"), ingot_runtime.InputError, "no state 'x'"),
    (
        lambda s: s.sequence(max_length=0),
        ingot_runtime.InputError,
        "an integer of at least 1, got 0",
    ),
    (lambda s: s.sequence(sizes={"heads": 3}), ingot_runtime.InputError, "got 'heads': 3"),
]


@pytest.mark.parametrize(("use", "error", "text"), ERRORS)
def test_errors_name_what_is_wrong(
    session: Session, use: Callable[[Session], object], error: type[Exception], text: str
) -> None:
    """Four parts, and the sequence's own rows and names."""
    with pytest.raises(error) as caught:
        use(session)
    assert text in str(caught.value)


def test_a_call_that_fails_leaves_the_sequence_as_it_was(session: Session) -> None:
    """What a refused call would have added is not there."""
    sequence = session.sequence(max_length=4)
    sequence.run(step(3))
    with pytest.raises(ingot_runtime.InputError):
        sequence.run(step(2))
    expected = continued(session, (3, 1))[1]["y"]
    assert len(sequence) == 3
    assert (sequence.run(step(1, seed=1))["y"] == expected).all()


def test_two_uses_at_once_are_refused(bundle: Path) -> None:
    """A call that finds another one of the same sequence, as a second thread may, is refused."""
    session = ingot_runtime.load(bundle, executor="vm")
    sequence = session.sequence()
    found: list[str] = []

    def meddle(*_: object) -> None:
        with pytest.raises(ingot_runtime.BusyError) as caught:
            sequence.reset()
        found.append(str(caught.value))

    session.observe(meddle)
    sequence.run(step(2))
    assert found
    assert "a sequence is used twice at once" in found[0]
    assert len(sequence) == 2


def test_a_closed_session_ends_its_sequences(bundle: Path) -> None:
    """Neither a call nor a fork comes behind it."""
    session = ingot_runtime.load(bundle)
    sequence = session.sequence()
    sequence.run(step(1))
    session.close()
    for use in (lambda: sequence.run(step(1)), sequence.fork):
        with pytest.raises(ingot_runtime.BusyError):
            use()


def test_a_bundle_without_states_says_so(tmp_path: Path) -> None:
    """An input of a fixed length cannot grow, and what comes before an input is not behind it."""
    model = make_model(
        [node("Concat", "a x", "b", axis=0), node("Concat", "x c", "d", axis=1)],
        [tensor("x", ["n", 4]), tensor("a", [2, 4]), tensor("c", ["n", "m"])],
        [tensor("b", None), tensor("d", None)],
    )
    ingot.compile(model.SerializeToString(), targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    assert session.states == {}
    with pytest.raises(ingot_runtime.InputError, match="the bundle has no state"):
        session.sequence()


def test_sizes_that_no_input_tells_are_asked_for(tmp_path: Path) -> None:
    """A state whose batch is a symbol of its own."""
    model = make_model(
        [
            node("Shape", "past", "rows", end=1),
            node("Concat", "rows minus", "shape", axis=0),
            node("Expand", "x shape", "wide"),
            node("Concat", "past wide", "present", axis=1),
        ],
        [tensor("x", [1, "n"]), tensor("past", ["rows", "p"])],
        [tensor("present", None)],
        {"minus": np.array([1])},
    )
    ingot.compile(model.SerializeToString(), targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    with pytest.raises(ingot_runtime.InputError, match="no input that is given has the size"):
        session.sequence().run({"x": np.ones((1, 2), np.float32)})
    sequence = session.sequence(sizes={"rows": 1})
    sequence.run({"x": np.ones((1, 2), np.float32)})
    assert sequence.state("past").tolist() == [[1, 1]]


@pytest.mark.sweep(60)
@pytest.mark.parametrize("is_causal", [0, 1])
def test_caches_of_the_attention_op_are_states(tmp_path: Path, is_causal: int) -> None:
    """What ONNX's own Attention takes as past and gives as present; a query sees the keys up to its
    own."""
    size: list[int | str] = ["batch", 2, "new", 16]
    past: list[int | str] = ["batch", 2, "old", 16]
    model = make_model(
        [node("Attention", "q k v - pk pv", "y nk nv", is_causal=is_causal)],
        [tensor(name, size if len(name) == 1 else past) for name in ("q", "k", "v", "pk", "pv")],
        [tensor(name, None) for name in ("y", "nk", "nv")],
    )
    model.opset_import[0].version = 23
    model.ir_version = 11
    ingot.compile(model.SerializeToString(), targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    session, reference = (
        ingot_runtime.load(tmp_path / "m.ingot"),
        cast("Any", ReferenceEvaluator(model)),
    )
    sequence, rng = session.sequence(), np.random.default_rng(0)
    caches = {name: np.zeros((1, 2, 0, 16), np.float32) for name in ("pk", "pv")}
    for new in (3, 1, 4, 1):
        made = rng.standard_normal((3, 1, 2, new, 16)).astype(np.float32)
        given = dict(zip("qkv", made, strict=True))
        y, caches["pk"], caches["pv"] = reference.run(None, {**given, **caches})
        np.testing.assert_allclose(sequence.run(given)["y"], y, rtol=1e-4, atol=1e-5)
    assert (sequence.state("nk") == caches["pk"]).all()


def test_a_call_with_caches_is_evaluated_and_checked(bundle: Path, tmp_path: Path) -> None:
    """What views tell of a call knows how it lies: launches and sizes are those of a run; every
    launch agrees with the interpreter."""
    (tmp_path / "m.onnx").write_bytes(decoder().SerializeToString())
    caches = {"past.key": (2, 2, 3, 16), "past.value": (2, 2, 3, 16)}
    call = read_subject(str(bundle), None, {"x": (2, 1, 8), **caches}).call
    assert call.problem == ""
    assert call.output_shapes[1] == (2, 2, 4, 16)
    checked = [str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.ingot"), "--check"]
    assert main(["compile", *checked, "--target", "x86-64-v3"]) == 0
