"""States in place by the loader in C: the bits, the growth and the words of the loader in Python's
sequences."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.c_loader import CBundle, LoaderError, Verdict, library, options
from tests.harness.codegen_harness import Array
from tests.harness.decoder_harness import decoder, empty_caches, step
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.hostile.reseal import Parts
from tests.unit.end_to_end.test_sequence_grouped import decoder as grouped_decoder
from tests.unit.end_to_end.test_sequence_grouped import steps
from tests.unit.runtime.test_sequence import LENGTHS

import ingot
import ingot_runtime
from ingot_runtime import FormatError
from ingot_runtime.format import header as head
from ingot_runtime.format.states import ROW

Y, KEY, VALUE = range(3)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("decoder") / "decoder.ingot"
    ingot.compile(decoder().SerializeToString(), targets=["x86-64-v3"]).save(path)
    return path


def capacity(loaded: CBundle, index: int = KEY) -> tuple[int, int | None]:
    """Rows that there is room for, and where they are."""
    found = library().ingot_output(loaded.session, ctypes.c_uint32(index))[0]
    return found.capacity, found.data


def run(loaded: CBundle, length: int, seed: int = 0, batch: int = 2) -> dict[str, Array]:
    """Make a call of one step."""
    return loaded.run(step(length, batch, seed))


def test_the_bundle_says_which_states_it_has(bundle: Path) -> None:
    """The pairs of the loader in Python, and the axis."""
    with CBundle(bundle) as loaded:
        info = loaded.info
        found = [
            (info.inputs[row.input].name, info.outputs[row.output].name, row.axis)
            for row in info.states[: info.state_count]
        ]
    assert found == [(b"past.key", b"present.key", 2), (b"past.value", b"present.value", 2)]


@pytest.mark.parametrize("threads", [1, 2])
def test_every_call_gives_the_bits_of_the_other_loader(bundle: Path, threads: int) -> None:
    """Prompts, single tokens and none, over two growths of the memory; and the states."""
    sequence = ingot_runtime.load(bundle).sequence()
    with CBundle(bundle, options(threads=threads, states=0)) as loaded:
        for number, length in enumerate(LENGTHS):
            expected = sequence.run(step(length, seed=number))["y"]
            found = run(loaded, length, number)
            assert found["y"].tobytes() == expected.tobytes()
            for name in ("present.key", "present.value"):
                assert found[name].tobytes() == sequence.state(name).tobytes()
            assert capacity(loaded)[0] == sequence.capacity


def test_memory_grows_by_doubling_and_stays_where_it_is(bundle: Path) -> None:
    """200 rows take three blocks."""
    with CBundle(bundle, options(states=0)) as loaded:
        places: dict[tuple[int, int | None], None] = {}
        for number in range(200):
            run(loaded, 1, number)
            places[capacity(loaded)] = None
    assert [rows for rows, _ in places] == [64, 128, 256]


def test_what_is_kept_can_be_less(bundle: Path) -> None:
    """Nothing, in the same memory and of another batch; the first rows; beams."""
    with CBundle(bundle, options(states=0)) as loaded:
        first, place = run(loaded, 3)["y"], capacity(loaded)
        loaded.keep(0)
        assert (run(loaded, 3)["y"] == first).all()
        assert capacity(loaded) == place
        expected = run(loaded, 1, 5)["y"]
        loaded.keep(3)
        assert (run(loaded, 1, 5)["y"] == expected).all()
        before = run(loaded, 0)["present.value"]
        loaded.keep(-1, [1, 1])
        assert (run(loaded, 0)["present.value"] == before[[1, 1]]).all()
        loaded.keep(2, [1, 0])
        assert (run(loaded, 0)["present.value"] == before[[1, 1], :, :2]).all()
        loaded.keep(0)
        assert run(loaded, 3, batch=3)["y"].shape[0] == 3


def test_a_session_like_another_goes_its_own_way(bundle: Path) -> None:
    """It begins with the same states and bound, shares threads, and outlives the first one."""
    with CBundle(bundle, options(threads=2, states=9)) as loaded:
        run(loaded, 4)
        fork = loaded.fork()
        expected = run(loaded, 1, 1)["y"]
        run(loaded, 1, 2)
        assert (run(fork, 1, 1)["y"] == expected).all()
        again = fork.fork()
        library().ingot_close(loaded.session)
        loaded.session = ctypes.c_void_p()
        assert (run(again, 3)["y"] == run(fork, 3)["y"]).all()
        with pytest.raises(LoaderError, match="max_length is 9: it has 8 rows"):
            run(fork, 2)
        fork.close()
        again.keep(0)
        assert run(again, 9)["y"].shape == (*expected.shape[:1], 9, expected.shape[2])
        again.close()


def test_a_session_like_a_plain_one_shares_its_workspace(bundle: Path) -> None:
    """A larger call of one moves what both use; neither has states of the other."""
    sequence = ingot_runtime.load(bundle).sequence()
    with CBundle(bundle, options(threads=2)) as plain:
        one = plain.fork(options(states=0))
        for number, length in enumerate((1, 70, 1)):
            assert (run(one, 1, number)["y"] == sequence.run(step(1, seed=number))["y"]).all()
            plain.run({**step(length), **empty_caches()})
            assert (run(one, 0)["y"] == sequence.run(step(0))["y"]).all()
        one.close()


def test_sessions_that_share_take_turns(bundle: Path) -> None:
    """While another thread uses one, none of the others runs, is prepared, or changed."""
    refused: list[str] = []
    with CBundle(bundle, options(states=0)) as loaded:
        run(loaded, 4)
        fork = loaded.fork()

        def hear(_: object, _launch: int, _is_end: int) -> None:
            def use() -> None:
                for attempt in (lambda: run(loaded, 1), lambda: loaded.keep(0), loaded.fork):
                    try:
                        attempt()
                    except LoaderError as error:
                        refused.append(error.verdict.kind)

            if not refused:
                other = threading.Thread(target=use)
                other.start()
                other.join()

        hook = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(hear)
        chosen = options()
        chosen.profile = ctypes.cast(hook, ctypes.c_void_p)
        heard = fork.fork(chosen)
        run(heard, 1)
        assert refused == ["BusyError"] * 3
        heard.close()
        fork.close()


def _overlong(loaded: CBundle) -> None:
    run(loaded, 3)
    run(loaded, 2)


def _other_batch(loaded: CBundle) -> None:
    run(loaded, 1)
    run(loaded, 1, batch=3)


def _beams_outside(loaded: CBundle) -> None:
    run(loaded, 1)
    loaded.keep(-1, [0, 2])


ERRORS: list[tuple[Callable[[CBundle], object], str]] = [
    (_overlong, "max_length is 4: it has 3 rows, this call makes them 5"),
    (_other_batch, "batch is 2 in input 'past.key'"),
    (_beams_outside, r"expected 2 numbers from 0 to 1, got \[0, 2\]"),
    (lambda c: c.run({**step(1), **empty_caches()}), "'past.key' is a state"),
    (lambda c: c.run({}), "missing input 'x'"),
    (lambda c: c.keep(1), "expected 0 to 0 rows, got 1"),
    (lambda c: c.keep(-2), "expected 0 to 0 rows, got -2"),
]


@pytest.mark.parametrize(("use", "message"), ERRORS)
def test_errors_are_those_of_the_other_loader(
    bundle: Path, use: Callable[[CBundle], object], message: str
) -> None:
    """The same words, but for how one gets on in C; the next call is right."""
    with CBundle(bundle, options(states=4)) as loaded:
        with pytest.raises(LoaderError, match=message) as caught:
            use(loaded)
        assert caught.value.verdict.kind == "InputError"
        loaded.keep(0)
        expected = ingot_runtime.load(bundle).sequence().run(step(4))["y"]
        assert (run(loaded, 4)["y"] == expected).all()


def test_a_call_that_fails_leaves_the_states_as_they_were(bundle: Path) -> None:
    """A size that does not fit, memory that is not there, and a bound."""
    with CBundle(bundle, options(states=6)) as loaded:
        run(loaded, 4)
        expected = run(fork := loaded.fork(), 1, 1)["y"]
        fork.close()
        for length, batch in ((3, 2), (1, 3), (1 << 40, 2)):
            wrong = np.broadcast_to(np.float32(0), (batch, length, 8))
            loaded.set_input(0, wrong)
            with pytest.raises(LoaderError):
                loaded.call()
        assert (run(loaded, 1, 1)["y"] == expected).all()


def test_options_of_states_are_checked(bundle: Path, tmp_path: Path) -> None:
    """A negative bound, a bundle without states, a session of another bundle, none that keeps."""
    found = make_model([node("Relu", "x", "y")], [tensor("x", [2])], [tensor("y", [2])])
    ingot.compile(found).save(tmp_path / "m.ingot")
    with pytest.raises(LoaderError, match="expected an integer of at least 1, got -1"):
        CBundle(bundle, options(states=-1))
    with pytest.raises(LoaderError, match="the bundle has no state"):
        CBundle(tmp_path / "m.ingot", options(states=0))
    with CBundle(tmp_path / "m.ingot") as other, CBundle(bundle) as loaded:
        with pytest.raises(LoaderError, match="the session keeps no states"):
            loaded.keep(0)
        chosen = options()
        chosen.like = other.session
        with pytest.raises(LoaderError, match="a session of another bundle"):
            CBundle(bundle, chosen)


def test_sizes_that_no_input_tells_are_asked_for(tmp_path: Path) -> None:
    """A state whose batch is a symbol of its own: the words, and the outputs, of both loaders."""
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
    x = {"x": np.ones((1, 2), np.float32)}
    with pytest.raises(ingot_runtime.InputError) as wanted:
        session.sequence().run(x)
    with CBundle(tmp_path / "m.ingot", options(states=0)) as loaded:
        with pytest.raises(LoaderError) as caught:
            loaded.run(x)
        got, symbols = caught.value, loaded.info.symbols[: loaded.info.symbol_count]
    assert (got.verdict.what, got.verdict.where) == (wanted.value.what, wanted.value.where)
    assert got.why == wanted.value.why
    sizes = [1 if symbol == b"rows" else -1 for symbol in symbols]
    with CBundle(tmp_path / "m.ingot", options(states=0, sizes=sizes)) as loaded:
        assert [loaded.run(x)["present"].tolist() for _ in range(2)] == [[[1] * 2], [[1] * 4]]


@pytest.mark.parametrize("rotary", [False, True])
def test_samples_with_lengths_of_their_own(tmp_path: Path, rotary: bool) -> None:
    """The form of the GenAI builder, whose prompts end early: the bits of the other loader."""
    path = tmp_path / "m.ingot"
    ingot.compile(grouped_decoder(rotary=rotary), targets=["x86-64-v3"]).save(path)
    session = ingot_runtime.load(path)
    sequence = session.sequence()
    with CBundle(path, options(states=0)) as loaded:
        for inputs, _ in steps(session):
            expected, found = sequence.run(inputs), loaded.run(inputs)
            assert all(found[name].tobytes() == array.tobytes() for name, array in expected.items())
            assert found["present.key"].tobytes() == sequence.state("past.key").tobytes()


@pytest.fixture(scope="module")
def open_state() -> bytes:
    """A bundle whose section of states lies: the output has a size that only the data decide."""
    p, q = (
        helper.make_tensor_value_info(name, TensorProto.INT64, [2, rows])
        for name, rows in (("p", "n"), ("q", None))
    )
    nodes = [node("NonZero", "x", "q"), node("ReduceSum", "p", "z", keepdims=1)]
    z = helper.make_tensor_value_info("z", TensorProto.INT64, [1, 1])
    model = make_model(nodes, [p, tensor("x", [2, "m"])], [q, z], {})
    parts = Parts(ingot.compile(model, targets=["x86-64-v3"]).to_bytes())
    parts.add(head.STATE, 0, ROW.pack(0, 0, 1))
    return parts.sealed()


def test_a_state_of_open_size_is_refused(open_state: bytes) -> None:
    """It would lie elsewhere than the rows before it; both loaders say so."""
    feed = {"x": np.ones((2, 100), np.float32)}
    with ingot_runtime.load(open_state) as session, pytest.raises(FormatError) as in_python:
        session.sequence().run(feed)
    with CBundle(open_state, options(states=0)) as loaded, pytest.raises(LoaderError) as in_c:
        loaded.run(feed)
    wanted, got = in_python.value, in_c.value
    assert got.verdict == Verdict.of(wanted)
    assert got.why == wanted.why == "its size depends on the data"
